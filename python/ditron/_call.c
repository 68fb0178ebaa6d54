// One call: arguments bound to parameters, and the key of what they decide of the code.
//
//   a pointer     'p', element type and whether the address is a multiple of 16
//   an integer    'i', its width, whether it is a multiple of 16 or 8 or is 1
//   a descriptor  'd', element type and axes, its block
//   float, bool   'f' or 'b'
//   a constexpr   a letter and its value; objects (texts, functions, element types) by address: whoever keeps the key keeps them
//   at the end    the device and the options
#include "_ditron.h"

#include <string.h>

// ---- binding -----------------------------------------------------------------------------------------------------------
static bool take_long(PyObject *o, const char *what, long lo, long hi, long *out) {
  if (o == Py_None) return true;
  if (!PyIndex_Check(o))
    return PyErr_Format(PyExc_TypeError, "%s is %R; it must be an integer", what, o), false;
  const long x = PyLong_AsLong(o);
  if (x == -1 && PyErr_Occurred()) return false;
  if ((x < lo || x > hi) && lo == hi)
    return PyErr_Format(PyExc_ValueError, "%s is %ld; only %ld is supported", what, x, lo), false;
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
  static const char *const hints[] = {
      "enable_fp_fusion",     "launch_cooperative_grid", "launch_pdl",
      "waves_per_eu",         "matrix_instr_nonkdim",    "kpack",
      "sanitize_overflow",    "allow_fp8e4nv",           "ir_override",
      "instrumentation_mode", "num_buffers_warp_spec",   "num_consumer_groups",
      "reg_dec_producer",     "reg_inc_consumer"};
  for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
    if (PyUnicode_CompareWithASCIIString(name, hints[i]) == 0) return true;
  }
  return false;
}

// 1: an option, 0: none, -1: a wrong one.
static int take_option(const State *s, PyObject *name, PyObject *value, Options *o) {
  if (name == s->s_num_warps || PyUnicode_CompareWithASCIIString(name, "num_warps") == 0) {
    if (!take_long(value, "num_warps", 1, 32, &o->num_warps)) return -1;
    if (!(o->num_warps & (o->num_warps - 1))) return 1;
    PyErr_Format(PyExc_ValueError, "num_warps is %ld; it must be a power of two from 1 to 32", o->num_warps);
    return -1;
  }
  if (name == s->s_num_stages || PyUnicode_CompareWithASCIIString(name, "num_stages") == 0)
    return take_long(value, "num_stages", 0, 16, &o->num_stages) ? 1 : -1;
  if (PyUnicode_CompareWithASCIIString(name, "maxnreg") == 0)
    return take_long(value, "maxnreg", 24, 255, &o->max_registers) ? 1 : -1;
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

// The error that is set, with the kernel's name before it.
static bool of_kernel(const Kernel *k) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (value) PyErr_Format(type, "%s: %S", k->text, value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return false;
}

static bool bind_keyword(const Kernel *k, Call *c, PyObject *name, PyObject *value) {
  const State *s = k->state;
  const int at = param_at(k, name);
  // a parameter may have the name of an option, and is then both
  const bool may = at < 0 || name == s->s_num_warps || name == s->s_num_stages;
  const int option = may ? take_option(s, name, value, &c->options) : 0;
  if (option < 0) return of_kernel(k);
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

bool call_bind(const Kernel *k, Call *c, PyObject *args, PyObject *kwargs) {
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
enum { WIDTH = 3, BY_16 = 4, IS_ONE = 8, BY_8 = 16 };

static uint8_t int_facts(const dt_value *v, uint8_t flags) {
  const uint8_t width = int_width(v);
  if (flags & NO_SPECIALIZE) return width;
  if (v->u.i == 1 && !(flags & TYPED)) return IS_ONE;
  return width | (v->u.i % 16 == 0 ? BY_16 : v->u.i % 8 == 0 ? BY_8 : 0);
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
    c->torch |= type->class == CLASS_TORCH;
  }
  if (!(flags & CONSTEXPR)) return put_runtime(c, o, a, flags);
  if (put_constant(c, o, a)) return true;
  PyErr_Format(PyExc_TypeError, "%s: '%U' is a constexpr: it takes a constant, not an array", k->text,
               k->names[i]);
  return false;
}

bool call_take(const Kernel *k, Call *c) {
  c->device = -1;
  for (int i = 0; i < k->n; i++) {
    if (!take_value(k, c, i)) return false;
  }
  if (c->device < 0) c->device = 0;
  const Options *o = &c->options;
  const char options[5] = {(char)c->device, (char)o->num_warps, (char)o->num_stages, (char)o->max_registers,
                           o->debug};
  put(c, options, sizeof options);
  return true;
}

// ---- requests -----------------------------------------------------------------------------------------------------------
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
    const int64_t least = facts & BY_16 ? 16 : facts & BY_8 ? 8 : 3; // of its kind
    v.u.i = facts & IS_ONE ? 1 : width == 1 ? ((int64_t)1 << 40) + least : width == 2 ? -least : least;
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

PyObject *call_request(const Kernel *k, const Call *c) {
  PyObject *list = PyTuple_New(k->n);
  for (int i = 0; list && i < k->n; i++) {
    PyObject *v = request_value(k, c, i);
    if (!v || PyTuple_SetItem(list, i, v) != 0) Py_CLEAR(list);
  }
  return list;
}

void call_end(Call *c) {
  for (int i = 0; i < c->nowned; i++) Py_DECREF(c->owned[i]);
}
