// Kernels: from a call in Python to a launch.
//
//   kernel[grid](x, y, n, BLOCK=128)
//     bind, take  values in the order of the parameters; the key of what they decide of the code (_call.c)
//     find        the kernel that was loaded for this key; at the first time _compile() of the package makes it, with the variant that
//                 most launches take; at the first launch that this one is not for, with all
//     launch      on the stream of the arrays' device; one on the processor is waited for
//
// The key holds constants that are objects (texts, functions, element types) by address; the entry keeps them alive.
#include "_ditron.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ENTRIES = 2048 };

typedef struct Entry {
  uint64_t hash;
  size_t nkey;
  PyObject *refs; // list of the constants in the key
  Loaded *loaded; // owned
  bool whole;     // with all variants that there are
  size_t nargs;
  uint8_t param_of[MOST_PARAMS]; // launch argument -> parameter
  bool written[MOST_PARAMS];     // launch argument: the kernel may write there
  char key[];
} Entry;

typedef struct Launcher {
  PyObject ob_base; // as PyObject_HEAD
  Kernel *kernel;
  PyObject *grid;
} Launcher;

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
// Calls self._compile(device, values, num_warps, num_stages, max_registers, debug, first_only), which gives a Loaded.
static Loaded *compile(Kernel *k, const Call *c, PyObject *values, bool whole) {
  PyObject *device = PyLong_FromLong(c->device), *warps = PyLong_FromLong(c->options.num_warps),
           *stages = PyLong_FromLong(c->options.num_stages),
           *registers = PyLong_FromLong(c->options.max_registers), *r = NULL;
  if (device && warps && stages && registers)
    r = PyObject_CallMethodObjArgs((PyObject *)k, k->state->s_compile, device, values, warps, stages,
                                   registers, c->options.debug ? Py_True : Py_False,
                                   whole ? Py_False : Py_True, NULL);
  Py_XDECREF(device);
  Py_XDECREF(warps);
  Py_XDECREF(stages);
  Py_XDECREF(registers);
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

static Loaded *load(Kernel *k, const Call *c, bool whole) {
  PyObject *values = call_request(k, c);
  Loaded *loaded = values ? compile(k, c, values, whole) : NULL;
  Py_XDECREF(values);
  return loaded;
}

static Entry *make_entry(Kernel *k, const Call *c, uint64_t hash, bool whole) {
  Loaded *loaded = load(k, c, whole);
  if (!loaded) return NULL;
  Entry *e = PyMem_Malloc(sizeof *e + c->nkey);
  if (!e) {
    Py_DECREF((PyObject *)loaded);
    return (Entry *)PyErr_NoMemory();
  }
  *e = (Entry){.hash = hash, .nkey = c->nkey, .refs = constants_of(k, c), .loaded = loaded};
  e->whole = whole || !c->device; // the processor's kernels have one variant
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

// The entry of the call with all variants. What Python runs meanwhile may change the entries, so it is looked for anew.
static Entry *complete(Kernel *k, const Call *c, Entry *e) {
  const uint64_t hash = e->hash;
  Loaded *loaded = load(k, c, true);
  if (!loaded) return NULL;
  if (!(e = find_entry(k, c, hash))) {
    Py_DECREF((PyObject *)loaded);
    return make_entry(k, c, hash, true);
  }
  Loaded *before = e->loaded;
  e->loaded = loaded;
  e->whole = true;
  Py_DECREF((PyObject *)before);
  return e;
}

static Entry *entry_of(Kernel *k, const Call *c, bool whole) {
  const uint32_t generation = k->state->generation;
  if (k->last && k->last->loaded->generation != generation) forget_entries(k); // a child of fork
  if (k->last && same_key(k->last, c) && (k->last->whole || !whole)) return k->last;
  const uint64_t hash = hash_key(c->key, c->nkey);
  Entry *e = find_entry(k, c, hash);
  if (!e)
    e = make_entry(k, c, hash, whole);
  else if (whole && !e->whole)
    e = complete(k, c, e);
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

// One to three extents; more than three where the rest are 1.
static bool take_grid(PyObject *grid, uint32_t out[3]) {
  const char *const what = "a grid is one to three integers, or a function that gives them";
  out[0] = out[1] = out[2] = 1;
  if (PyLong_Check(grid)) return take_extent(grid, out);
  const bool tuple = PyTuple_Check(grid);
  const Py_ssize_t n = tuple ? PyTuple_Size(grid) : PySequence_Check(grid) ? PySequence_Size(grid) : -1;
  if (n < 1) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, what);
    return false;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    uint32_t extent = 1;
    PyObject *o = tuple ? PyTuple_GetItem(grid, i) : PySequence_GetItem(grid, i);
    const bool ok = o && take_extent(o, &extent);
    if (!tuple) Py_XDECREF(o);
    if (!ok) return false;
    if (i < 3) out[i] = extent;
    if (i >= 3 && extent != 1) return PyErr_SetString(PyExc_TypeError, what), false;
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
  State *s = k->state;
  if (c->torch && !s->torch_stream && !(s->torch_stream = PyObject_CallFunction(s->current_stream, NULL)))
    return false;
  PyObject *r = PyObject_CallFunction(c->torch ? s->torch_stream : s->current_stream, "i", c->device - 1);
  *out = r ? PyLong_AsVoidPtr(r) : NULL;
  Py_XDECREF(r);
  return !PyErr_Occurred();
}

static bool check_readonly(const Kernel *k, const Call *c, const Entry *e) {
  for (size_t i = 0; c->readonly && i < e->nargs; i++) {
    const int at = e->param_of[i];
    if (!e->written[i] || c->args[at].device < 0 || !c->args[at].readonly) continue;
    PyErr_Format(PyExc_ValueError, "%s: '%U' is read-only, and the kernel writes there", k->text,
                 k->names[at]);
    return false;
  }
  return true;
}

// *again, and no exception: with all variants it may go.
static PyObject *launch(const Kernel *k, const Call *c, const Entry *e, const uint32_t grid[3], bool *again) {
  State *s = k->state;
  dt_value values[MOST_PARAMS];
  void *native = NULL;
  if (!check_readonly(k, c, e)) return NULL;
  for (size_t i = 0; i < e->nargs; i++) values[i] = c->args[e->param_of[i]].value;
  const size_t nargs = e->nargs;
  const bool whole = e->whole;
  Loaded *loaded = e->loaded;
  Py_INCREF((PyObject *)loaded); // e may go as soon as other Python code runs
  Device *d = state_device(s, c->device);
  dt_stream *stream = d && native_stream(k, c, &native) ? device_stream(s, d, native) : NULL;
  if (!stream) {
    Py_DECREF((PyObject *)loaded);
    return NULL;
  }
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
  *again = st == DT_INVALID && !whole;
  if (*again) return NULL;
  device_failed(d, st);
  return state_raise(s, st, NULL);
}

// grid NULL: only compiles and loads; whole: all that later launches may need.
static PyObject *call_kernel(Kernel *k, PyObject *grid, bool whole, PyObject *args, PyObject *kwargs) {
  Call c;
  uint32_t g[3];
  PyObject *r = NULL;
  c.nowned = c.ndescs = 0;
  c.readonly = c.torch = false;
  c.nkey = 0;
  c.options = (Options){.num_warps = k->num_warps, .num_stages = k->num_stages, .debug = k->debug};
  if (!k->state) return PyErr_SetString(PyExc_RuntimeError, "the kernel was not initialised"), NULL;
  if (call_bind(k, &c, args, kwargs) && call_take(k, &c) && globals_unchanged(k) &&
      (!grid || eval_grid(k, &c, grid, g))) {
    const Entry *e = entry_of(k, &c, whole);
    bool again = false;
    if (e && grid) {
      r = launch(k, &c, e, g, &again);
      if (again && (e = entry_of(k, &c, true))) r = launch(k, &c, e, g, &again);
    } else if (e) {
      r = (PyObject *)e->loaded;
      Py_INCREF(r);
    }
  }
  call_end(&c);
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
  return call_kernel(l->kernel, l->grid, false, args, kwargs);
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
  return call_kernel((Kernel *)self, NULL, true, args, kwargs);
}

static PyObject *kernel_prepare(PyObject *self, PyObject *args, PyObject *kwargs) {
  return call_kernel((Kernel *)self, NULL, false, args, kwargs);
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
     "Compiles and loads for such arguments, without a launch, whatever launches like it may need."},
    {"prepare", (PyCFunction)(void (*)(void))kernel_prepare, METH_VARARGS | METH_KEYWORDS,
     "Compiles and loads what most launches with such arguments take."},
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
