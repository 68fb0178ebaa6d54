// Python objects as launch arguments. Two kinds of arrays are read here, without a call of Python code: torch's tensors, by their
// methods (torch is never imported), and whatever has __array_struct__, as NumPy's arrays do. The rest is the package's.
#include "_ditron.h"

#include <string.h>

typedef struct ArrayStruct { // what __array_struct__ holds: NumPy's array interface, version 3
  int two, nd;
  char kind;
  int itemsize, flags;
  Py_ssize_t *shape, *strides;
  void *data;
} ArrayStruct;
enum { NATIVE_ORDER = 0x200, WRITEABLE = 0x400 };

// ---- classes of types ------------------------------------------------------------------------------------------------
static void forget(TypeInfo *t) {
  Py_CLEAR(t->type);
  Py_CLEAR(t->data_ptr);
  Py_CLEAR(t->get_device);
}

void args_forget(State *s) {
  while (s->ntypes) forget(&s->types[--s->ntypes]);
  while (s->ndtypes) {
    s->ndtypes--;
    Py_CLEAR(s->dtypes[s->ndtypes].object);
  }
}

static const TypeInfo *learn(State *s, PyObject *o) {
  if (!s->classify) {
    PyErr_SetString(PyExc_RuntimeError, "ditron is not set up");
    return NULL;
  }
  PyObject *r = PyObject_CallFunctionObjArgs(s->classify, o, NULL);
  const long class = r ? PyLong_AsLong(r) : -1;
  Py_XDECREF(r);
  if (class < 0 || class >= NCLASSES) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "classify() returned no class");
    return NULL;
  }
  if (s->ntypes == MOST_TYPES) forget(&s->types[--s->ntypes]); // the last: the others are asked for first
  TypeInfo t = {.class = (Class) class};
  PyObject *type = (PyObject *)Py_TYPE(o);
  if (t.class == CLASS_TORCH && (!(t.data_ptr = PyObject_GetAttr(type, s->s_data_ptr)) ||
                                 !(t.get_device = PyObject_GetAttr(type, s->s_get_device)))) {
    forget(&t);
    return NULL;
  }
  Py_INCREF(type);
  t.type = type;
  s->types[s->ntypes] = t;
  return &s->types[s->ntypes++];
}

const TypeInfo *args_type(State *s, PyObject *o) {
  const PyObject *type = (PyObject *)Py_TYPE(o);
  for (int i = 0; i < s->ntypes; i++) {
    if (s->types[i].type == type) return &s->types[i];
  }
  return learn(s, o);
}

// ---- element types -----------------------------------------------------------------------------------------------------
static int dtype_of_name(const char *name) {
  static const struct {
    const char *name;
    dt_dtype dtype;
  } names[] = {
      {"bool", DT_I1},     {"int8", DT_I8},           {"int16", DT_I16},   {"int32", DT_I32},
      {"int64", DT_I64},   {"uint8", DT_U8},          {"uint16", DT_U16},  {"uint32", DT_U32},
      {"uint64", DT_U64},  {"float16", DT_F16},       {"half", DT_F16},    {"bfloat16", DT_BF16},
      {"float32", DT_F32}, {"float", DT_F32},         {"float64", DT_F64}, {"float8_e4m3fn", DT_F8E4M3},
      {"double", DT_F64},  {"float8_e5m2", DT_F8E5M2}};
  if (strncmp(name, "torch.", 6) == 0) name += 6;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(name, names[i].name) == 0) return (int)names[i].dtype;
  }
  return -1;
}

// By the text of a dtype object, which is remembered: there are few, and they live on.
static int dtype_of_object(State *s, PyObject *object) {
  for (int i = 0; i < s->ndtypes; i++) {
    if (s->dtypes[i].object == object) return (int)s->dtypes[i].dtype;
  }
  PyObject *text = PyObject_Str(object), *utf8 = text ? PyUnicode_AsUTF8String(text) : NULL;
  const char *name = utf8 ? PyBytes_AsString(utf8) : NULL;
  const int d = name ? dtype_of_name(name) : -1;
  if (name && d < 0) PyErr_Format(PyExc_TypeError, "arrays of %s have no counterpart in a kernel", name);
  if (d >= 0 && s->ndtypes < MOST_DTYPES && !s->ended) {
    Py_INCREF(object);
    s->dtypes[s->ndtypes].object = object;
    s->dtypes[s->ndtypes++].dtype = (dt_dtype)d;
  }
  Py_XDECREF(utf8);
  Py_XDECREF(text);
  return d;
}

static int dtype_of_kind(char kind, int itemsize) {
  switch (kind) {
  case 'b': return DT_I1;
  case 'i': return itemsize == 1 ? DT_I8 : itemsize == 2 ? DT_I16 : itemsize == 4 ? DT_I32 : DT_I64;
  case 'u': return itemsize == 1 ? DT_U8 : itemsize == 2 ? DT_U16 : itemsize == 4 ? DT_U32 : DT_U64;
  case 'f': return itemsize == 2 ? DT_F16 : itemsize == 4 ? DT_F32 : itemsize == 8 ? DT_F64 : -1;
  default: return -1; // 'V' is what the packages of small floats say
  }
}

// ---- arrays --------------------------------------------------------------------------------------------------------------
static bool take_pointer(PyObject *number, Arg *out) {
  out->value.u.ptr = number ? PyLong_AsVoidPtr(number) : NULL;
  Py_XDECREF(number);
  return !PyErr_Occurred();
}

// Of a tensor with no address: whether it is empty, or without memory and nowhere.
static bool is_on(State *s, PyObject *o, int device) {
  PyObject *cpu = PyObject_GetAttr(o, s->s_is_cpu);
  if (cpu && cpu != Py_True && !device)
    PyErr_SetString(PyExc_ValueError, "a tensor without memory, or of a device unknown here");
  Py_XDECREF(cpu);
  return !PyErr_Occurred();
}

static bool take_torch(State *s, PyObject *o, const TypeInfo *type, Arg *out) {
  PyObject *dtype = PyObject_GetAttr(o, s->s_dtype);
  const int d = dtype ? dtype_of_object(s, dtype) : -1;
  Py_XDECREF(dtype);
  if (d < 0) return false;
  PyObject *index = PyObject_CallFunctionObjArgs(type->get_device, o, NULL); // -1: the processor, or none
  const long device = index ? PyLong_AsLong(index) : -1;
  Py_XDECREF(index);
  out->device = (int)device + 1;
  if (device >= MOST_GPUS) PyErr_SetString(PyExc_ValueError, "of a GPU beyond those that Ditron counts");
  if (PyErr_Occurred()) return false;
  out->value.kind = DT_VALUE_PTR;
  out->value.dtype = (dt_dtype)d;
  if (!take_pointer(PyObject_CallFunctionObjArgs(type->data_ptr, o, NULL), out)) return false;
  return out->value.u.ptr || is_on(s, o, out->device);
}

static bool take_numpy(State *s, PyObject *o, Arg *out) {
  PyObject *capsule = PyObject_GetAttr(o, s->s_array_struct);
  const ArrayStruct *a = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
  int d = a ? dtype_of_kind(a->kind, a->itemsize) : -1;
  if (a && a->two != 2) PyErr_SetString(PyExc_TypeError, "its __array_struct__ is of an unknown version");
  if (a && d < 0) {
    PyObject *dtype = PyObject_GetAttr(o, s->s_dtype);
    d = dtype ? dtype_of_object(s, dtype) : -1;
    Py_XDECREF(dtype);
  }
  if (a && d >= 0 && dt_dtype_bytes((dt_dtype)d) != (size_t)a->itemsize)
    PyErr_SetString(PyExc_TypeError, "its elements have a size of no known type");
  if (a && !(a->flags & NATIVE_ORDER) && a->itemsize > 1)
    PyErr_SetString(PyExc_TypeError, "its bytes are not in the machine's order");
  if (a && d >= 0) {
    out->value.kind = DT_VALUE_PTR;
    out->value.dtype = (dt_dtype)d;
    out->value.u.ptr = a->data;
    out->device = 0;
    out->readonly = !(a->flags & WRITEABLE);
  }
  Py_XDECREF(capsule);
  return !PyErr_Occurred() && d >= 0;
}

// describe(o) -> (address, dtype, device, readonly)
static bool take_foreign(State *s, PyObject *o, Arg *out) {
  unsigned long long address;
  int dtype, device, readonly;
  PyObject *r = PyObject_CallFunctionObjArgs(s->describe, o, NULL);
  const bool ok = r && PyArg_ParseTuple(r, "Kiip", &address, &dtype, &device, &readonly);
  Py_XDECREF(r);
  if (!ok) return false;
  out->value.kind = DT_VALUE_PTR;
  out->value.dtype = (dt_dtype)dtype;
  out->value.u.ptr = (void *)(uintptr_t)address;
  out->device = device;
  out->readonly = readonly;
  return true;
}

// describe_descriptor(o) -> (base, sizes, strides, blocks)
static bool take_desc(State *s, PyObject *o, Arg *out, dt_desc *desc) {
  PyObject *r = PyObject_CallFunctionObjArgs(s->describe_descriptor, o, NULL), *base, *lists[3];
  Arg b = {.device = -1};
  bool ok = r && PyArg_ParseTuple(r, "OO!O!O!", &base, &PyTuple_Type, &lists[0], &PyTuple_Type, &lists[1],
                                  &PyTuple_Type, &lists[2]);
  const TypeInfo *type = ok ? args_type(s, base) : NULL;
  ok = type && args_take(s, base, type, NULL, NULL, &b, NULL);
  if (ok && b.value.kind != DT_VALUE_PTR) {
    PyErr_SetString(PyExc_TypeError, "the base of a tensor descriptor must be an array");
    ok = false;
  }
  const Py_ssize_t rank = ok ? PyTuple_Size(lists[0]) : 0;
  if (ok &&
      (rank < 1 || rank > DT_MAX_RANK || PyTuple_Size(lists[1]) != rank || PyTuple_Size(lists[2]) != rank)) {
    PyErr_Format(PyExc_ValueError,
                 "a tensor descriptor has 1 to %d axes, and as many sizes, strides and blocks", DT_MAX_RANK);
    ok = false;
  }
  if (ok) {
    *desc = (dt_desc){.base = b.value.u.ptr, .dtype = b.value.dtype, .rank = (int)rank};
    for (Py_ssize_t i = 0; i < rank; i++) {
      desc->shape[i] = PyLong_AsLongLong(PyTuple_GetItem(lists[0], i));
      desc->strides[i] = PyLong_AsLongLong(PyTuple_GetItem(lists[1], i));
      desc->block[i] = (int32_t)PyLong_AsLong(PyTuple_GetItem(lists[2], i));
    }
    out->value = dt_tensor(desc);
    out->device = b.device;
    out->readonly = b.readonly;
    ok = !PyErr_Occurred();
  }
  Py_XDECREF(r);
  return ok;
}

// ---- numbers -------------------------------------------------------------------------------------------------------------
static bool take_int(PyObject *o, Arg *out) {
  int overflow = 0;
  const long long i = PyLong_AsLongLongAndOverflow(o, &overflow);
  out->value.kind = DT_VALUE_INT;
  if (!overflow) {
    out->value.dtype = i >= INT32_MIN && i <= INT32_MAX ? DT_I32 : DT_I64;
    out->value.u.i = i;
    return i != -1 || !PyErr_Occurred();
  }
  const unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    PyErr_SetString(PyExc_OverflowError, "an integer that does not fit 64 bits");
    return false;
  }
  out->value.dtype = DT_U64;
  out->value.u.i = (int64_t)u;
  return true;
}

static bool take_float(PyObject *o, Arg *out) {
  const double f = PyFloat_AsDouble(o);
  out->value = dt_float(f);
  return f != -1 || !PyErr_Occurred();
}

static bool take_index(PyObject *o, Arg *out) {
  PyObject *i = PyNumber_Index(o);
  const bool ok = i && take_int(i, out);
  Py_XDECREF(i);
  return ok;
}

static bool take_truth(PyObject *o, Arg *out) {
  const int t = PyObject_IsTrue(o);
  out->value = dt_bool(t > 0);
  return t >= 0;
}

static bool take(State *s, PyObject *o, const TypeInfo *type, Arg *out, dt_desc *desc) {
  switch (type->class) {
  case CLASS_INT: return take_int(o, out);
  case CLASS_FLOAT:
  case CLASS_REAL: return take_float(o, out);
  case CLASS_CONST: out->value = dt_none(); return true;
  case CLASS_TORCH: return take_torch(s, o, type, out);
  case CLASS_NUMPY: return take_numpy(s, o, out);
  case CLASS_FOREIGN: return take_foreign(s, o, out);
  case CLASS_INDEX: return take_index(o, out);
  case CLASS_TRUTH: return take_truth(o, out);
  case CLASS_DESC:
    if (desc) return take_desc(s, o, out, desc);
    // fall through
  default:
    PyErr_SetString(PyExc_TypeError, "neither an array, a number nor a constant that kernels know");
    return false;
  }
}

// The exception that is set, with the kernel's and the parameter's name before its text.
static void name_it(const char *kernel, PyObject *name, PyObject *o) {
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  PyObject *text = value ? PyObject_Str(value) : NULL;
  PyObject *type = text ? PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__name__") : NULL;
  const bool ours = kind && (PyErr_GivenExceptionMatches(kind, PyExc_TypeError) ||
                             PyErr_GivenExceptionMatches(kind, PyExc_ValueError) ||
                             PyErr_GivenExceptionMatches(kind, PyExc_OverflowError));
  if (!ours || !text || !type) {
    Py_XDECREF(text);
    Py_XDECREF(type);
    PyErr_Restore(kind, value, trace);
    return;
  }
  PyErr_Format(kind, "%s: argument '%U' (%U): %U", kernel, name, type, text);
  Py_DECREF(text);
  Py_DECREF(type);
  Py_XDECREF(kind);
  Py_XDECREF(value);
  Py_XDECREF(trace);
}

bool args_take(State *s, PyObject *o, const TypeInfo *type, const char *kernel, PyObject *name, Arg *out,
               dt_desc *desc) {
  out->class = type->class;
  out->device = -1;
  out->readonly = false;
  if (take(s, o, type, out, desc)) return true;
  if (kernel) name_it(kernel, name, o);
  return false;
}

// ---- DLPack ----------------------------------------------------------------------------------------------------------------
PyObject *args_dlpack(PyObject *module, PyObject *capsule) {
  typedef struct Tensor { // version 0, as the capsule "dltensor" holds it; what owns it follows
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
  } Tensor;
  (void)module;
  const Tensor *t = PyCapsule_GetPointer(capsule, "dltensor");
  if (!t) return NULL;
  return Py_BuildValue("(Kiii)", (unsigned long long)(uintptr_t)t->data + t->byte_offset, (int)t->code,
                       (int)t->bits, (int)t->lanes);
}
