// Kernels: from a call in Python to a launch.
//
//   kernel[grid](x, y, n, BLOCK=128)
//     bind       values in the order of the parameters, from positions, names and defaults; options apart
//     key        what of each value decides the code, in two bytes: a pointer's element type and whether it is a multiple of 16,
//                an integer's width, whether it is a multiple of 16 or is 1; of a constexpr its value
//     find       the kernel that was loaded for this key; at the first time _compile() of the package makes it
//     launch     on the stream of the arrays' device; one on the processor is waited for
//
// The key holds constants that are objects (texts, functions, element types) by address; the entry keeps them alive.
#include "_ditron.h"

#include <stdio.h>
#include <string.h>

enum { // of a parameter; the package's jit.py has the same numbers
  CONSTEXPR = 1,
  NO_SPECIALIZE = 2, // an integer's value decides nothing but its width
  TYPED = 4,         // the width is fixed by an annotation
  MOST_KEY = MOST_PARAMS * 10 + 8,
  MOST_ENTRIES = 2048
};

typedef struct Entry {
  uint64_t hash;
  size_t nkey;
  PyObject *refs; // list of the constants in the key
  Loaded *loaded; // owned
  size_t nargs;
  uint8_t param_of[MOST_PARAMS]; // launch argument -> parameter
  bool written[MOST_PARAMS];     // launch argument: the kernel may write there
  char key[];
} Entry;

typedef struct Watched { // a global that the code has built in
  PyObject *dict, *name, *value;
} Watched;

typedef struct Kernel {
  PyObject ob_base; // as PyObject_HEAD
  PyObject *module; // owned: it keeps the state
  State *state;
  PyObject *launcher_type; // the state's
  char *text;              // the name, for messages
  int n;
  PyObject **names, **defaults; // defaults: NULL where there is none
  uint8_t *flags;
  long num_warps, num_stages; // 0: the compiler's
  bool debug;
  Entry **slots; // open addressing; cap is a power of two
  size_t cap, count;
  Entry *last;
  Watched *watched;
  size_t nwatched;
} Kernel;

typedef struct Launcher {
  PyObject ob_base; // as PyObject_HEAD
  Kernel *kernel;
  PyObject *grid;
} Launcher;

typedef struct Options {
  long num_warps, num_stages;
  bool debug, has_stream;
  void *stream;
} Options;

typedef struct Call { // one call, on the C stack; `values` are borrowed but for those in `owned`
  PyObject *values[MOST_PARAMS], *owned[MOST_PARAMS];
  int nowned;
  Arg args[MOST_PARAMS];
  dt_desc descs[MOST_DESCS];
  int ndescs, device, device_from; // device_from: the parameter that decided
  bool readonly;                   // an array is
  Options options;
  size_t nkey;
  char key[MOST_KEY];
} Call;

// ---- binding -----------------------------------------------------------------------------------------------------------
static bool take_long(PyObject *o, const char *what, long lo, long hi, long *out) {
  if (o == Py_None) return true;
  const long x = PyLong_AsLong(o);
  if (x == -1 && PyErr_Occurred()) return false;
  if (x < lo || x > hi)
    return PyErr_Format(PyExc_ValueError, "%s is %ld; it must be from %ld to %ld", what, x, lo, hi), false;
  *out = x;
  return true;
}

static bool take_stream(PyObject *o, Options *out) {
  out->has_stream = o != Py_None;
  if (o == Py_None) return true;
  PyObject *number = PyLong_Check(o) ? NULL : PyObject_GetAttrString(o, "cuda_stream");
  if (!number && !PyLong_Check(o)) return false;
  out->stream = PyLong_AsVoidPtr(number ? number : o);
  Py_XDECREF(number);
  return !PyErr_Occurred();
}

// Launch options of Triton's that change nothing here: hints for other machines or compilers.
static bool is_hint(PyObject *name) {
  static const char *const hints[] = {"maxnreg",
                                      "enable_fp_fusion",
                                      "launch_cooperative_grid",
                                      "launch_pdl",
                                      "waves_per_eu",
                                      "matrix_instr_nonkdim",
                                      "kpack",
                                      "sanitize_overflow",
                                      "allow_fp8e4nv",
                                      "ir_override",
                                      "instrumentation_mode",
                                      "num_buffers_warp_spec",
                                      "num_consumer_groups",
                                      "reg_dec_producer",
                                      "reg_inc_consumer"};
  for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
    if (PyUnicode_CompareWithASCIIString(name, hints[i]) == 0) return true;
  }
  return false;
}

// 1: an option, 0: none, -1: a wrong one.
static int take_option(PyObject *name, PyObject *value, Options *o) {
  if (PyUnicode_CompareWithASCIIString(name, "num_warps") == 0)
    return take_long(value, "num_warps", 1, 32, &o->num_warps) ? 1 : -1;
  if (PyUnicode_CompareWithASCIIString(name, "num_stages") == 0)
    return take_long(value, "num_stages", 0, 16, &o->num_stages) ? 1 : -1;
  if (PyUnicode_CompareWithASCIIString(name, "num_ctas") == 0) {
    long one = 1;
    return take_long(value, "num_ctas", 1, 1, &one) ? 1 : -1;
  }
  if (PyUnicode_CompareWithASCIIString(name, "debug") == 0) {
    const int t = PyObject_IsTrue(value);
    o->debug |= t > 0;
    return t < 0 ? -1 : 1;
  }
  if (PyUnicode_CompareWithASCIIString(name, "stream") == 0) return take_stream(value, o) ? 1 : -1;
  return is_hint(name);
}

static int param_at(const Kernel *k, PyObject *name) {
  for (int i = 0; i < k->n; i++) {
    if (k->names[i] == name) return i;
  }
  for (int i = 0; i < k->n; i++) { // a name that was not interned
    if (PyUnicode_Compare(k->names[i], name) == 0) return i;
  }
  return -1;
}

static bool bind_keyword(const Kernel *k, Call *c, PyObject *name, PyObject *value) {
  const int at = param_at(k, name);
  const int option = take_option(name, value, &c->options);
  if (option < 0) return false;
  if (at < 0) {
    if (!option) PyErr_Format(PyExc_TypeError, "%s: there is no parameter and no option '%U'", k->text, name);
    return option;
  }
  if (c->values[at]) {
    PyErr_Format(PyExc_TypeError, "%s: argument '%U' is given twice", k->text, name);
    return false;
  }
  c->values[at] = value;
  return true;
}

static bool bind(const Kernel *k, Call *c, PyObject *args, PyObject *kwargs) {
  const Py_ssize_t given = PyTuple_Size(args);
  if (given > k->n) {
    PyErr_Format(PyExc_TypeError, "%s takes %d arguments, but %zd were given", k->text, k->n, given);
    return false;
  }
  for (Py_ssize_t i = 0; i < given; i++) c->values[i] = PyTuple_GetItem(args, i);
  for (int i = (int)given; i < k->n; i++) c->values[i] = NULL;
  PyObject *name, *value;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &name, &value);) {
    if (!bind_keyword(k, c, name, value)) return false;
  }
  for (int i = 0; i < k->n; i++) {
    if (!c->values[i]) c->values[i] = k->defaults[i];
    if (c->values[i]) continue;
    PyErr_Format(PyExc_TypeError, "%s: argument '%U' is missing", k->text, k->names[i]);
    return false;
  }
  return true;
}

// ---- keys --------------------------------------------------------------------------------------------------------------
static void put(Call *c, const void *p, size_t n) {
  memcpy(c->key + c->nkey, p, n);
  c->nkey += n;
}
static void put2(Call *c, char tag, uint8_t what) {
  c->key[c->nkey++] = tag;
  c->key[c->nkey++] = (char)what;
}

static uint8_t int_width(const dt_value *v) { return v->dtype == DT_U64 ? 2 : v->dtype == DT_I64 ? 1 : 0; }
enum { WIDTH = 3, BY_16 = 4, IS_ONE = 8 };

static uint8_t int_facts(const dt_value *v, uint8_t flags) {
  const uint8_t width = int_width(v);
  if (flags & NO_SPECIALIZE) return width;
  if (v->u.i == 1 && !(flags & TYPED)) return IS_ONE;
  return width | (v->u.i % 16 == 0 ? BY_16 : 0);
}

static bool put_constant(Call *c, PyObject *o, const Arg *a) {
  const dt_value *v = &a->value;
  switch (v->kind) {
  case DT_VALUE_INT:
    c->key[c->nkey++] = v->dtype == DT_U64 ? 'U' : 'I';
    put(c, &v->u.i, 8);
    return true;
  case DT_VALUE_FLOAT:
    c->key[c->nkey++] = 'F';
    put(c, &v->u.f, 8);
    return true;
  case DT_VALUE_BOOL: return put2(c, 'B', v->u.i != 0), true;
  case DT_VALUE_NONE:
    if (o == Py_None) return put2(c, 'N', 0), true;
    c->key[c->nkey++] = 'C';
    put(c, &o, sizeof o);
    return true;
  default: return false;
  }
}

static bool put_runtime(Call *c, PyObject *o, const Arg *a, uint8_t flags) {
  const dt_value *v = &a->value;
  switch (v->kind) {
  case DT_VALUE_PTR: put2(c, 'p', (uint8_t)(v->dtype | ((uintptr_t)v->u.ptr % 16 ? 0 : 128))); return true;
  case DT_VALUE_INT: put2(c, 'i', int_facts(v, flags)); return true;
  case DT_VALUE_FLOAT: put2(c, 'f', 0); return true;
  case DT_VALUE_BOOL: put2(c, 'b', 0); return true;
  case DT_VALUE_DESC:
    put2(c, 'd', (uint8_t)(v->dtype | v->u.desc->rank << 4));
    for (int i = 0; i < v->u.desc->rank; i++) put(c, &v->u.desc->block[i], 4);
    return true;
  default: return put_constant(c, o, a);
  }
}

// ---- values ------------------------------------------------------------------------------------------------------------
static bool keep(Call *c, PyObject *o) { // owned from now on
  if (c->nowned == MOST_PARAMS) {
    Py_XDECREF(o);
    return PyErr_SetString(PyExc_ValueError, "too many wrapped constants"), false;
  }
  if (o) c->owned[c->nowned++] = o;
  return o;
}

// What stands for o in the rest of the call: the inside of wrappers, equal texts as one object.
static PyObject *unwrap(const Kernel *k, Call *c, PyObject *o, const TypeInfo **type) {
  for (int depth = 0; (*type)->class == CLASS_WRAPPED; depth++) {
    o = depth < 8 ? PyObject_GetAttr(o, k->state->s_value) : NULL;
    if (!o || !keep(c, o) || !(*type = args_type(k->state, o))) return NULL;
  }
  if (PyUnicode_CheckExact(o)) {
    Py_INCREF(o);
    PyUnicode_InternInPlace(&o);
    return keep(c, o) ? o : NULL;
  }
  return o;
}

static bool is_array(const Arg *a) { return a->device >= 0; }

static bool check_device(const Kernel *k, Call *c, int i) {
  const Arg *a = &c->args[i];
  if (c->device < 0) {
    c->device = a->device;
    c->device_from = i;
  }
  if (a->device == c->device) return true;
  PyErr_Format(PyExc_ValueError, "%s: '%U' and '%U' lie on different devices", k->text,
               k->names[c->device_from], k->names[i]);
  return false;
}

static bool take_value(const Kernel *k, Call *c, int i) {
  PyObject *o = c->values[i];
  Arg *a = &c->args[i];
  const uint8_t flags = k->flags[i];
  a->device = -1;
  if (o == Py_None) {
    a->value = dt_none();
    return put2(c, 'N', 0), true;
  }
  if (o == Py_True || o == Py_False) {
    a->value = dt_bool(o == Py_True);
  } else {
    const TypeInfo *type = args_type(k->state, o);
    if (!type || !(o = c->values[i] = unwrap(k, c, o, &type))) return false;
    if (o == Py_None || o == Py_True || o == Py_False) return take_value(k, c, i); // was wrapped
    if (c->ndescs == MOST_DESCS && type->class == CLASS_DESC)
      return PyErr_Format(PyExc_ValueError, "%s: more than %d tensor descriptors", k->text, MOST_DESCS),
             false;
    if (!args_take(k->state, o, type, k->text, k->names[i], a, &c->descs[c->ndescs])) return false;
    c->ndescs += type->class == CLASS_DESC;
    if (is_array(a) && !check_device(k, c, i)) return false;
    c->readonly |= a->readonly;
  }
  if (!(flags & CONSTEXPR)) return put_runtime(c, o, a, flags);
  if (put_constant(c, o, a)) return true;
  PyErr_Format(PyExc_TypeError, "%s: '%U' is a constexpr: it takes a constant, not an array", k->text,
               k->names[i]);
  return false;
}

static bool take_values(const Kernel *k, Call *c) {
  c->device = -1;
  for (int i = 0; i < k->n; i++) {
    if (!take_value(k, c, i)) return false;
  }
  if (c->device < 0) c->device = 0;
  const Options *o = &c->options;
  const char options[4] = {(char)c->device, (char)o->num_warps, (char)o->num_stages, o->debug};
  put(c, options, sizeof options);
  return true;
}

// ---- entries -----------------------------------------------------------------------------------------------------------
static uint64_t hash_key(const char *p, size_t n) { // FNV-1a over words
  uint64_t h = 0xcbf29ce484222325u, w;
  for (; n >= 8; n -= 8, p += 8) {
    memcpy(&w, p, 8);
    h = (h ^ w) * 0x100000001b3u;
    h ^= h >> 29;
  }
  for (; n; n--) h = (h ^ (unsigned char)*p++) * 0x100000001b3u;
  return h ^ h >> 32;
}

static bool same_key(const Entry *e, const Call *c) {
  return e->nkey == c->nkey && memcmp(e->key, c->key, e->nkey) == 0;
}

static void entry_free(Entry *e) {
  if (!e) return;
  Py_XDECREF(e->refs);
  Py_XDECREF((PyObject *)e->loaded);
  PyMem_Free(e);
}

static void forget_entries(Kernel *k) {
  Entry **slots = k->slots;
  const size_t cap = k->cap;
  k->slots = NULL;
  k->last = NULL;
  k->cap = k->count = 0;
  for (size_t i = 0; i < cap; i++) entry_free(slots[i]);
  PyMem_Free(slots);
}

static Entry *find_entry(Kernel *k, const Call *c, uint64_t hash) {
  for (size_t i = hash; k->cap; i++) {
    Entry *e = k->slots[i & (k->cap - 1)];
    if (!e) break;
    if (e->hash == hash && same_key(e, c)) return e;
  }
  return NULL;
}

static void place(Kernel *k, Entry *e) {
  size_t i = e->hash & (k->cap - 1);
  while (k->slots[i]) i = (i + 1) & (k->cap - 1);
  k->slots[i] = e;
}

static bool add_entry(Kernel *k, Entry *e) {
  if (k->count == MOST_ENTRIES) forget_entries(k);
  if (2 * (k->count + 1) > k->cap) {
    const size_t old = k->cap, cap = old ? old * 2 : 8;
    Entry **before = k->slots, **slots = PyMem_Malloc(cap * sizeof *slots);
    if (!slots) return PyErr_NoMemory(), false;
    memset(slots, 0, cap * sizeof *slots);
    k->slots = slots;
    k->cap = cap;
    for (size_t i = 0; i < old; i++)
      if (before[i]) place(k, before[i]);
    PyMem_Free(before);
  }
  place(k, e);
  k->count++;
  return true;
}

// Which parameter each launch argument is.
static bool map_args(const Kernel *k, Entry *e) {
  e->nargs = e->loaded->info.nargs;
  for (size_t i = 0; i < e->nargs; i++) {
    const char *name = dt_kernel_arg_name(e->loaded->kernel, i);
    int at = 0;
    while (at < k->n && PyUnicode_CompareWithASCIIString(k->names[at], name) != 0) at++;
    if (at == k->n || i >= MOST_PARAMS)
      return PyErr_Format(k->state->error, "%s: the compiled kernel takes '%s', which the function does not",
                          k->text, name),
             false;
    e->param_of[i] = (uint8_t)at;
    e->written[i] = dt_kernel_arg_written(e->loaded->kernel, i);
  }
  return true;
}

// ---- compiling -----------------------------------------------------------------------------------------------------------
// A value as a request to compile has it, with nothing in it that decides no code. Constants that are objects go as they are.
static PyObject *request_value(const Kernel *k, const Call *c, int i) {
  dt_value v = c->args[i].value;
  PyObject *o = c->values[i];
  char b[8 + DT_MAX_RANK * 20];
  size_t n = 0;
  const bool constant = k->flags[i] & CONSTEXPR;
  if (v.kind == DT_VALUE_NONE && o != Py_None) {
    Py_INCREF(o);
    return o;
  }
  if (v.kind == DT_VALUE_INT && !constant) {
    const uint8_t facts = int_facts(&v, k->flags[i]), width = facts & WIDTH;
    const int64_t far = facts & BY_16 ? (int64_t)1 << 40 : ((int64_t)1 << 40) + 3;
    v.u.i = facts & IS_ONE  ? 1
            : width == 1    ? far
            : width == 2    ? (facts & BY_16 ? -16 : -3)
            : facts & BY_16 ? 32
                            : 3;
  }
  if (v.kind == DT_VALUE_PTR) v.u.i = (uintptr_t)v.u.ptr % 16 ? 8 : 16;
  if (v.kind == DT_VALUE_FLOAT && !constant) v.u.f = 0.5;
  if (v.kind == DT_VALUE_BOOL && !constant) v.u.i = 0;
  b[n++] = (char)v.kind;
  b[n++] = (char)v.dtype;
  if (v.kind == DT_VALUE_DESC) {
    const dt_desc *d = v.u.desc;
    b[n++] = (char)d->rank;
    for (int a = 0; a < d->rank; a++) {
      const int64_t numbers[2] = {16, a == d->rank - 1 ? 1 : 16};
      memcpy(b + n, numbers, 16);
      memcpy(b + n + 16, &d->block[a], 4);
      n += 20;
    }
  } else if (v.kind != DT_VALUE_NONE) {
    memcpy(b + n, &v.u.i, 8);
    n += 8;
  }
  return PyBytes_FromStringAndSize(b, (Py_ssize_t)n);
}

static PyObject *request_values(const Kernel *k, const Call *c) {
  PyObject *list = PyTuple_New(k->n);
  for (int i = 0; list && i < k->n; i++) {
    PyObject *v = request_value(k, c, i);
    if (!v || PyTuple_SetItem(list, i, v) != 0) Py_CLEAR(list);
  }
  return list;
}

// Calls self._compile(device, values, num_warps, num_stages, debug), which gives a Loaded.
static Loaded *compile(Kernel *k, const Call *c, PyObject *values) {
  PyObject *device = PyLong_FromLong(c->device), *warps = PyLong_FromLong(c->options.num_warps),
           *stages = PyLong_FromLong(c->options.num_stages), *r = NULL;
  if (device && warps && stages)
    r = PyObject_CallMethodObjArgs((PyObject *)k, k->state->s_compile, device, values, warps, stages,
                                   c->options.debug ? Py_True : Py_False, NULL);
  Py_XDECREF(device);
  Py_XDECREF(warps);
  Py_XDECREF(stages);
  if (r && (PyObject *)Py_TYPE(r) != k->state->loaded_type) {
    PyErr_SetString(PyExc_TypeError, "_compile() returned no loaded kernel");
    Py_CLEAR(r);
  }
  return (Loaded *)r;
}

static PyObject *constants_of(const Kernel *k, const Call *c) {
  PyObject *list = PyList_New(0);
  for (int i = 0; list && i < k->n; i++) {
    if (c->args[i].value.kind == DT_VALUE_NONE && PyList_Append(list, c->values[i]) != 0) Py_CLEAR(list);
  }
  return list;
}

static Entry *make_entry(Kernel *k, const Call *c, uint64_t hash) {
  PyObject *values = request_values(k, c);
  Loaded *loaded = values ? compile(k, c, values) : NULL;
  Py_XDECREF(values);
  if (!loaded) return NULL;
  Entry *e = PyMem_Malloc(sizeof *e + c->nkey);
  if (!e) {
    Py_DECREF((PyObject *)loaded);
    return (Entry *)PyErr_NoMemory();
  }
  *e = (Entry){.hash = hash, .nkey = c->nkey, .refs = constants_of(k, c), .loaded = loaded};
  memcpy(e->key, c->key, c->nkey);
  if (e->refs && map_args(k, e) && add_entry(k, e)) return e;
  entry_free(e);
  return NULL;
}

static bool globals_unchanged(const Kernel *k) {
  for (size_t i = 0; i < k->nwatched; i++) {
    const Watched *w = &k->watched[i];
    PyObject *now = PyDict_GetItemWithError(w->dict, w->name);
    if (now == w->value) continue;
    const int same = now ? PyObject_RichCompareBool(now, w->value, Py_EQ) : 0;
    if (same > 0) continue;
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_RuntimeError,
                   "%s: the global '%U' has changed since the kernel was compiled, from %R to %R", k->text,
                   w->name, w->value, now ? now : Py_None);
    return false;
  }
  return true;
}

static Entry *entry_of(Kernel *k, const Call *c) {
  const uint32_t generation = k->state->generation;
  if (k->last && k->last->loaded->generation != generation) forget_entries(k); // a child of fork
  if (k->last && same_key(k->last, c)) return k->last;
  const uint64_t hash = hash_key(c->key, c->nkey);
  Entry *e = find_entry(k, c, hash);
  if (!e) e = make_entry(k, c, hash);
  if (e) k->last = e;
  return e;
}

// ---- grids ---------------------------------------------------------------------------------------------------------------
static bool take_extent(PyObject *o, uint32_t *out) {
  PyObject *index = PyLong_CheckExact(o) ? NULL : PyNumber_Index(o);
  if (!index && !PyLong_CheckExact(o)) return false;
  const long long n = PyLong_AsLongLong(index ? index : o);
  Py_XDECREF(index);
  if (n == -1 && PyErr_Occurred()) return false;
  if (n < 0 || n > UINT32_MAX)
    return PyErr_Format(PyExc_ValueError, "a grid cannot have %lld programs along an axis", n), false;
  *out = (uint32_t)n;
  return true;
}

static bool take_grid(PyObject *grid, uint32_t out[3]) {
  out[0] = out[1] = out[2] = 1;
  if (PyLong_Check(grid)) return take_extent(grid, out);
  const bool tuple = PyTuple_Check(grid);
  const Py_ssize_t n = tuple ? PyTuple_Size(grid) : PySequence_Check(grid) ? PySequence_Size(grid) : -1;
  if (n < 1 || n > 3) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError, "a grid is one to three integers, or a function that gives them");
    return false;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *o = tuple ? PyTuple_GetItem(grid, i) : PySequence_GetItem(grid, i);
    const bool ok = o && take_extent(o, &out[i]);
    if (!tuple) Py_XDECREF(o);
    if (!ok) return false;
  }
  return true;
}

// grid(meta): meta has the value of every parameter.
static bool eval_grid(const Kernel *k, const Call *c, PyObject *grid, uint32_t out[3]) {
  if (PyTuple_Check(grid) || !PyCallable_Check(grid)) return take_grid(grid, out);
  PyObject *meta = PyDict_New();
  for (int i = 0; meta && i < k->n; i++) {
    if (PyDict_SetItem(meta, k->names[i], c->values[i]) != 0) Py_CLEAR(meta);
  }
  PyObject *r = meta ? PyObject_CallFunctionObjArgs(grid, meta, NULL) : NULL;
  const bool ok = r && take_grid(r, out);
  Py_XDECREF(r);
  Py_XDECREF(meta);
  return ok;
}

// ---- launching -------------------------------------------------------------------------------------------------------------
static bool native_stream(const Kernel *k, const Call *c, void **out) {
  *out = c->options.stream;
  if (!c->device || c->options.has_stream) return true;
  PyObject *r = PyObject_CallFunction(k->state->current_stream, "i", c->device - 1);
  *out = r ? PyLong_AsVoidPtr(r) : NULL;
  Py_XDECREF(r);
  return !PyErr_Occurred();
}

static bool check_readonly(const Kernel *k, const Call *c, const Entry *e) {
  for (size_t i = 0; c->readonly && i < e->nargs; i++) {
    const int at = e->param_of[i];
    if (!e->written[i] || !is_array(&c->args[at]) || !c->args[at].readonly) continue;
    PyErr_Format(PyExc_ValueError, "%s: '%U' is read-only, and the kernel writes there", k->text,
                 k->names[at]);
    return false;
  }
  return true;
}

static PyObject *launch(const Kernel *k, const Call *c, const Entry *e, const uint32_t grid[3]) {
  State *s = k->state;
  dt_value values[MOST_PARAMS];
  void *native = NULL;
  Device *d = state_device(s, c->device);
  if (!d || !check_readonly(k, c, e) || !native_stream(k, c, &native)) return NULL;
  for (size_t i = 0; i < e->nargs; i++) values[i] = c->args[e->param_of[i]].value;
  const size_t nargs = e->nargs;
  Loaded *loaded = e->loaded;
  dt_stream *stream = device_stream(s, d, native);
  if (!stream) return NULL;
  Py_INCREF((PyObject *)loaded); // e may go while other threads run
  dt_status st = dt_launch(loaded->kernel, stream, grid, values, nargs);
  if (!c->device) {
    if (st == DT_OK) {
      Py_BEGIN_ALLOW_THREADS;
      st = dt_stream_sync(stream);
      Py_END_ALLOW_THREADS;
    }
    device_give_back(d, stream);
  }
  if (st == DT_OK) return (PyObject *)loaded;
  Py_DECREF((PyObject *)loaded);
  d->recover = true;
  return state_raise(s, st, NULL);
}

// grid NULL: only compiles and loads.
static PyObject *call_kernel(Kernel *k, PyObject *grid, PyObject *args, PyObject *kwargs) {
  Call c;
  uint32_t g[3];
  PyObject *r = NULL;
  c.nowned = c.ndescs = 0;
  c.readonly = false;
  c.nkey = 0;
  c.options = (Options){.num_warps = k->num_warps, .num_stages = k->num_stages, .debug = k->debug};
  if (!k->state) return PyErr_SetString(PyExc_RuntimeError, "the kernel was not initialised"), NULL;
  if (bind(k, &c, args, kwargs) && take_values(k, &c) && globals_unchanged(k) &&
      (!grid || eval_grid(k, &c, grid, g))) {
    const Entry *e = entry_of(k, &c);
    if (e && grid) {
      r = launch(k, &c, e, g);
    } else if (e) {
      r = (PyObject *)e->loaded;
      Py_INCREF(r);
    }
  }
  for (int i = 0; i < c.nowned; i++) Py_DECREF(c.owned[i]);
  return r;
}

// ---- Launcher: kernel[grid] ----------------------------------------------------------------------------------------------------
static void launcher_free(PyObject *o) {
  Launcher *l = (Launcher *)o;
  PyTypeObject *type = Py_TYPE(o);
  Py_XDECREF((PyObject *)l->kernel);
  Py_XDECREF(l->grid);
  PyObject_Free(o);
  Py_DECREF(type);
}

static PyObject *launcher_call(PyObject *o, PyObject *args, PyObject *kwargs) {
  const Launcher *l = (const Launcher *)o;
  return call_kernel(l->kernel, l->grid, args, kwargs);
}

static PyType_Slot launcher_slots[] = {
    {Py_tp_dealloc, launcher_free},
    {Py_tp_new, no_new},
    {Py_tp_call, launcher_call},
    {Py_tp_doc, (void *)"A kernel with its grid: call it with the arguments."},
    {0, NULL}};
PyType_Spec launcher_spec = {"ditron._ditron.Launcher", sizeof(Launcher), 0, Py_TPFLAGS_DEFAULT,
                             launcher_slots};

// ---- Kernel ----------------------------------------------------------------------------------------------------------------------
static PyObject *kernel_getitem(PyObject *self, PyObject *grid) {
  Kernel *k = (Kernel *)self;
  Launcher *l = k->state ? PyObject_New(Launcher, (PyTypeObject *)k->launcher_type) : NULL;
  if (!l)
    return k->state ? NULL : (PyErr_SetString(PyExc_RuntimeError, "the kernel was not initialised"), NULL);
  Py_INCREF(self);
  Py_INCREF(grid);
  l->kernel = k;
  l->grid = grid;
  return (PyObject *)l;
}

static PyObject *kernel_specialize(PyObject *self, PyObject *args, PyObject *kwargs) {
  return call_kernel((Kernel *)self, NULL, args, kwargs);
}

static void drop_watched(Kernel *k) {
  Watched *w = k->watched;
  const size_t n = k->nwatched;
  k->watched = NULL;
  k->nwatched = 0;
  for (size_t i = 0; i < n; i++) {
    Py_XDECREF(w[i].dict);
    Py_XDECREF(w[i].name);
    Py_XDECREF(w[i].value);
  }
  PyMem_Free(w);
}

// _watch([(dict, name, value)]): what later launches must find unchanged.
static PyObject *kernel_watch(PyObject *self, PyObject *list) {
  Kernel *k = (Kernel *)self;
  const Py_ssize_t n = PyList_Check(list) ? PyList_Size(list) : -1;
  if (n < 0) return PyErr_SetString(PyExc_TypeError, "_watch() takes a list"), NULL;
  drop_watched(k);
  k->watched = PyMem_Malloc((size_t)(n + 1) * sizeof *k->watched);
  if (!k->watched) return PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < n; i++) {
    Watched w;
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "O!OO", &PyDict_Type, &w.dict, &w.name, &w.value))
      return NULL;
    Py_INCREF(w.dict);
    Py_INCREF(w.name);
    Py_INCREF(w.value);
    k->watched[k->nwatched++] = w;
  }
  Py_RETURN_NONE;
}

// Forgets what was compiled, as after a change of the function.
static PyObject *kernel_forget(PyObject *self, PyObject *unused) {
  (void)unused;
  forget_entries((Kernel *)self);
  drop_watched((Kernel *)self);
  Py_RETURN_NONE;
}

static int kernel_clear(PyObject *self) {
  Kernel *k = (Kernel *)self;
  forget_entries(k);
  drop_watched(k);
  for (int i = 0; i < k->n && k->defaults; i++) Py_CLEAR(k->defaults[i]);
  return 0;
}

static void free_params(Kernel *k) {
  kernel_clear((PyObject *)k);
  for (int i = 0; i < k->n && k->names; i++) Py_CLEAR(k->names[i]);
  PyMem_Free(k->names);
  PyMem_Free(k->defaults);
  PyMem_Free(k->flags);
  PyMem_Free(k->text);
  k->names = k->defaults = NULL;
  k->flags = NULL;
  k->text = NULL;
  k->n = 0;
}

static bool set_params(Kernel *k, const char *text, PyObject *names, PyObject *flags, PyObject *defaults) {
  const Py_ssize_t n = PyTuple_Size(names);
  char *bytes;
  Py_ssize_t nbytes;
  if (PyBytes_AsStringAndSize(flags, &bytes, &nbytes) != 0) return false;
  if (n > MOST_PARAMS || nbytes != n)
    return PyErr_Format(PyExc_ValueError, "%s has %zd parameters; %d is the most", text, n, MOST_PARAMS),
           false;
  k->names = PyMem_Malloc((size_t)(n + 1) * sizeof *k->names);
  k->defaults = PyMem_Malloc((size_t)(n + 1) * sizeof *k->defaults);
  k->flags = PyMem_Malloc((size_t)n + 1);
  k->text = PyMem_Malloc(strlen(text) + 1);
  if (!k->names || !k->defaults || !k->flags || !k->text) return PyErr_NoMemory(), false;
  strcpy(k->text, text);
  memcpy(k->flags, bytes, (size_t)n);
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *name = PyTuple_GetItem(names, i);
    Py_XINCREF(name);
    if (name) PyUnicode_InternInPlace(&name);
    PyObject *value = name ? PyDict_GetItemWithError(defaults, name) : NULL;
    Py_XINCREF(value);
    k->names[i] = name;
    k->defaults[i] = value;
    k->n++;
    if (PyErr_Occurred()) return false;
  }
  return true;
}

static int kernel_init(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char s_name[] = "name", s_names[] = "names", s_flags[] = "flags", s_defaults[] = "defaults",
              s_debug[] = "debug", s_warps[] = "num_warps", s_stages[] = "num_stages";
  static char *words[] = {s_name, s_names, s_flags, s_defaults, s_debug, s_warps, s_stages, NULL};
  Kernel *k = (Kernel *)self;
  const char *text;
  PyObject *names, *flags, *defaults;
  int debug = 0;
  long warps = 0, stages = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO!O!O!|pll", words, &text, &PyTuple_Type, &names,
                                   &PyBytes_Type, &flags, &PyDict_Type, &defaults, &debug, &warps, &stages))
    return -1;
  PyObject *module;
  State *s = state_get(&module);
  if (!s) return -1;
  free_params(k);
  Py_XDECREF(k->module);
  k->module = module;
  k->debug = debug;
  k->num_warps = warps;
  k->num_stages = stages;
  if (!set_params(k, text, names, flags, defaults)) return -1;
  k->state = s;
  k->launcher_type = s->launcher_type;
  return 0;
}

static int kernel_traverse(PyObject *self, visitproc visit, void *arg) {
  const Kernel *k = (const Kernel *)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(k->module);
  for (int i = 0; i < k->n && k->defaults; i++) Py_VISIT(k->defaults[i]);
  for (size_t i = 0; i < k->cap; i++) {
    if (k->slots[i]) Py_VISIT(k->slots[i]->refs);
  }
  for (size_t i = 0; i < k->nwatched; i++) {
    Py_VISIT(k->watched[i].dict);
    Py_VISIT(k->watched[i].value);
  }
  return 0;
}

static void kernel_free(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  PyObject *module = ((Kernel *)self)->module;
  free_params((Kernel *)self);
  PyObject_GC_Del(self);
  Py_XDECREF(module);
  Py_DECREF(type);
}

static PyMethodDef kernel_methods[] = {
    {"specialize", (PyCFunction)(void (*)(void))kernel_specialize, METH_VARARGS | METH_KEYWORDS,
     "Compiles and loads for such arguments, without a launch."},
    {"_watch", kernel_watch, METH_O, "Globals that the code has built in: [(dict, name, value)]."},
    {"_forget", kernel_forget, METH_NOARGS, "Forgets what was compiled."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot kernel_slots[] = {
    {Py_tp_init, kernel_init},
    {Py_tp_dealloc, kernel_free},
    {Py_tp_traverse, kernel_traverse},
    {Py_tp_clear, kernel_clear},
    {Py_tp_methods, kernel_methods},
    {Py_mp_subscript, kernel_getitem},
    {Py_tp_doc, (void *)"What a jit function is beneath: arguments to launches."},
    {0, NULL}};
PyType_Spec kernel_spec = {"ditron._ditron.Kernel", sizeof(Kernel), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, kernel_slots};
