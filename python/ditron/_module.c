// The module: the context and the devices that the process has opened, images and loaded kernels, and how a failed call becomes
// an exception. Nothing is opened before it is needed.
#include "_ditron.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static struct PyModuleDef module_def;

State *state_get(PyObject **owner) {
  PyObject *m = PyState_FindModule(&module_def);
  if (!m) return PyErr_SetString(PyExc_RuntimeError, "the module _ditron is gone"), NULL;
  Py_INCREF(m);
  *owner = m;
  return PyModule_GetState(m);
}

PyObject *no_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  (void)args, (void)kwargs;
  PyErr_Format(PyExc_TypeError, "%R objects are made by ditron alone", (PyObject *)type);
  return NULL;
}

// ---- errors ----------------------------------------------------------------------------------------------------------
PyObject *state_raise(State *s, dt_status st, const char *text) {
  PyObject *class = s->error;
  switch (st) {
  case DT_COMPILE: class = s->compile_error; break;
  case DT_NO_MEMORY:
  case DT_LIMIT: class = s->resources; break;
  case DT_DEADLINE: class = s->deadline; break;
  case DT_ASSERT: class = s->assertion; break;
  default: break;
  }
  if (!text) text = dt_error(s->context);
  size_t n = strlen(text);
  while (n && text[n - 1] == '\n') n--;
  PyObject *message =
      n ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace") : PyUnicode_FromString(dt_status_name(st));
  PyObject *e = message ? PyObject_CallFunctionObjArgs(class, message, NULL) : NULL;
  PyObject *name = e ? PyUnicode_FromString(dt_status_name(st)) : NULL;
  if (name && PyObject_SetAttrString(e, "status", name) == 0) PyErr_SetObject(class, e);
  Py_XDECREF(name);
  Py_XDECREF(e);
  Py_XDECREF(message);
  return NULL;
}

// ---- the context -------------------------------------------------------------------------------------------------------
// What kernels print, from any thread: to sys.stdout, where notebooks and test runners look for it.
static void print_line(void *user, int rank, const char *line) {
  (void)user, (void)rank;
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  PyObject *out = PySys_GetObject("stdout"); // borrowed
  PyObject *text = out && out != Py_None ? PyUnicode_FromFormat("%s\n", line) : NULL;
  PyObject *r = text ? PyObject_CallMethod(out, "write", "O", text) : NULL;
  Py_XDECREF(r);
  Py_XDECREF(text);
  PyErr_Restore(kind, value, trace);
  PyGILState_Release(gil);
}

dt_context *state_context(State *s) {
  if (s->context) return s->context;
  if (s->ended) {
    PyErr_SetString(PyExc_RuntimeError, "ditron has ended, as the interpreter is about to");
    return NULL;
  }
  const dt_context_options o = {.size = sizeof o, .print = print_line};
  dt_context *c = NULL;
  const dt_status st = dt_context_create(&o, &c);
  if (st != DT_OK) return state_raise(s, st, dt_error(NULL)), NULL;
  return s->context = c;
}

static bool name_target(State *s, Device *d) {
  dt_device info;
  for (size_t i = 0; dt_device_info(s->context, i, &info); i++) {
    if (strcmp(info.name, d->name) == 0 && info.usable) {
      snprintf(d->target, sizeof d->target, "%s", info.target);
      if (*info.target) return true;
      PyErr_Format(s->error, "the compiler has no target for %s, %s", d->name, info.text);
      return false;
    }
    if (!info.usable && strncmp(d->name, info.name, strlen(info.name)) == 0) {
      state_raise(s, DT_UNSUPPORTED, info.text);
      return false;
    }
  }
  PyErr_Format(s->error, "there is no device '%s'", d->name);
  return false;
}

Device *state_device(State *s, int device) {
  Device *d = &s->devices[device];
  if (d->team) return d;
  if (!state_context(s)) return NULL;
  if (device)
    snprintf(d->name, sizeof d->name, "cuda:%d", device - 1);
  else
    strcpy(d->name, "cpu");
  if (!name_target(s, d)) return NULL;
  const dt_team_options o = {.size = sizeof o, .device = d->name, .symmetric_bytes = 1 << 20};
  dt_team *team = NULL;
  const dt_status st = dt_team_create(s->context, &o, &team);
  if (st != DT_OK) return state_raise(s, st, NULL), NULL;
  d->team = team;
  d->rank = dt_team_local(team, 0);
  return d;
}

// ---- streams -------------------------------------------------------------------------------------------------------------
static dt_stream *cpu_stream(State *s, Device *d) {
  while (!d->nidle && d->nmade == MOST_CPU_STREAMS) { // as many threads launch: wait for one of them
    Py_BEGIN_ALLOW_THREADS;
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    Py_END_ALLOW_THREADS;
  }
  if (d->nidle) return d->idle[--d->nidle];
  dt_stream *stream = NULL;
  const dt_status st = dt_stream_create(d->rank, "python", &stream);
  if (st != DT_OK) return state_raise(s, st, NULL), NULL;
  d->nmade++;
  return stream;
}

static dt_stream *gpu_stream(State *s, Device *d, void *native) {
  Wrapped *oldest = &d->wrapped[0];
  for (int i = 0; i < d->nwrapped; i++) {
    Wrapped *w = &d->wrapped[i];
    if (w->native == native) {
      w->used = ++d->uses;
      return w->stream;
    }
    if (w->used < oldest->used) oldest = w;
  }
  dt_stream *stream = NULL;
  const dt_status st = dt_stream_wrap(d->rank, native, "python", &stream);
  if (st != DT_OK) return state_raise(s, st, NULL), NULL;
  if (d->nwrapped < MOST_WRAPPED)
    oldest = &d->wrapped[d->nwrapped++];
  else
    dt_stream_destroy(oldest->stream);
  *oldest = (Wrapped){native, stream, ++d->uses};
  return stream;
}

// After a launch that failed nothing runs until all streams are idle and the team has recovered.
static bool recover(State *s, Device *d) {
  for (int i = 0; i < d->nwrapped; i++) dt_stream_sync(d->wrapped[i].stream); // their failure is known
  const dt_status st = dt_team_recover(d->rank);
  if (st != DT_OK) return state_raise(s, st, NULL) != NULL;
  d->recover = false;
  return true;
}

dt_stream *device_stream(State *s, Device *d, void *native) {
  if (d->recover && d->nidle == d->nmade && !recover(s, d)) return NULL;
  return d == &s->devices[0] ? cpu_stream(s, d) : gpu_stream(s, d, native);
}

void device_failed(Device *d, dt_status st) {
  d->recover |= st == DT_DEADLINE || st == DT_ASSERT || st == DT_PEER_LOST || st == DT_DEVICE;
}

void device_give_back(Device *d, dt_stream *stream) { d->idle[d->nidle++] = stream; }

// ---- images ----------------------------------------------------------------------------------------------------------------
typedef struct Image {
  PyObject ob_base; // as PyObject_HEAD
  PyObject *module; // owned: it keeps the state
  dt_image *image;
  uint32_t generation;
} Image;

static PyObject *image_object(PyObject *module, dt_image *image) {
  const State *s = PyModule_GetState(module);
  Image *o = PyObject_New(Image, (PyTypeObject *)s->image_type);
  if (!o) {
    dt_image_destroy(image);
    return NULL;
  }
  Py_INCREF(module);
  o->module = module;
  o->image = image;
  o->generation = s->generation;
  return (PyObject *)o;
}

static void free_object(PyObject *o, PyObject *module) {
  PyTypeObject *type = Py_TYPE(o);
  PyObject_Free(o);
  Py_DECREF(type);
  Py_DECREF(module);
}

static void image_free(PyObject *o) {
  const Image *i = (const Image *)o;
  const State *s = PyModule_GetState(i->module);
  if (s->context && s->generation == i->generation) dt_image_destroy(i->image);
  free_object(o, i->module);
}

static PyType_Slot image_slots[] = {
    {Py_tp_dealloc, image_free}, {Py_tp_new, no_new}, {Py_tp_doc, (void *)"A compiled kernel."}, {0, NULL}};
static PyType_Spec image_spec = {"ditron._ditron.Image", sizeof(Image), 0, Py_TPFLAGS_DEFAULT, image_slots};

static void loaded_free(PyObject *o) {
  Loaded *l = (Loaded *)o;
  if (l->kernel && l->state->context && l->state->generation == l->generation) dt_kernel_destroy(l->kernel);
  Py_DECREF(l->image);
  free_object(o, l->module);
}

static PyObject *loaded_get(PyObject *o, void *what) {
  const Loaded *l = (const Loaded *)o;
  switch (*(const char *)what) {
  case 'n': return PyUnicode_FromString(l->info.name);
  case 'w': return PyLong_FromLong(l->info.num_warps);
  case 'v': return PyLong_FromSize_t(l->info.nvariants);
  case 'c': return PyUnicode_FromString(l->info.wait_class);
  default: return PyUnicode_FromString(l->state->devices[l->device].name);
  }
}

static PyGetSetDef loaded_gets[] = {
    {"name", loaded_get, NULL, "the kernel's name", (void *)"n"},
    {"num_warps", loaded_get, NULL, "warps of a program", (void *)"w"},
    {"variants", loaded_get, NULL, "how many variants its image has", (void *)"v"},
    {"wait_class", loaded_get, NULL, "what its waits wait for", (void *)"c"},
    {"device", loaded_get, NULL, "where it is loaded", (void *)"d"},
    {0}};
static PyType_Slot loaded_slots[] = {
    {Py_tp_dealloc, loaded_free},
    {Py_tp_new, no_new},
    {Py_tp_getset, loaded_gets},
    {Py_tp_doc, (void *)"A kernel compiled for some arguments, loaded on a device."},
    {0, NULL}};
static PyType_Spec loaded_spec = {"ditron._ditron.Loaded", sizeof(Loaded), 0, Py_TPFLAGS_DEFAULT,
                                  loaded_slots};

// ---- functions ---------------------------------------------------------------------------------------------------------------
static State *state_of(PyObject *module) { return PyModule_GetState(module); }

static PyObject *fn_setup(PyObject *m, PyObject *args) {
  State *s = state_of(m);
  PyObject *classify, *describe, *descriptor, *stream;
  if (!PyArg_ParseTuple(args, "OOOO", &classify, &describe, &descriptor, &stream)) return NULL;
  PyObject *const in[] = {classify, describe, descriptor, stream};
  PyObject **const out[] = {&s->classify, &s->describe, &s->describe_descriptor, &s->current_stream};
  for (int i = 0; i < 4; i++) {
    Py_INCREF(in[i]);
    Py_XDECREF(*out[i]);
    *out[i] = in[i];
  }
  Py_RETURN_NONE;
}

static PyObject *compile_request(PyObject *m, PyObject *bytes, bool cached_only) {
  State *s = state_of(m);
  char *p;
  Py_ssize_t n;
  dt_image *image = NULL;
  if (PyBytes_AsStringAndSize(bytes, &p, &n) != 0 || !state_context(s)) return NULL;
  const dt_status st = dt_compile_request(s->context, p, (size_t)n, cached_only, &image);
  if (st == DT_NOT_FOUND && cached_only) Py_RETURN_NONE;
  return st == DT_OK ? image_object(m, image) : state_raise(s, st, NULL);
}

static PyObject *fn_cached(PyObject *m, PyObject *bytes) { return compile_request(m, bytes, true); }
static PyObject *fn_compile_here(PyObject *m, PyObject *bytes) { return compile_request(m, bytes, false); }

static PyObject *fn_read_image(PyObject *m, PyObject *bytes) {
  State *s = state_of(m);
  char *p;
  Py_ssize_t n;
  dt_image *image = NULL;
  if (PyBytes_AsStringAndSize(bytes, &p, &n) != 0 || !state_context(s)) return NULL;
  const dt_status st = dt_image_read(s->context, p, (size_t)n, &image);
  return st == DT_OK ? image_object(m, image) : state_raise(s, st, NULL);
}

static PyObject *fn_fail(PyObject *m, PyObject *args) {
  int status;
  const char *text;
  if (!PyArg_ParseTuple(args, "is", &status, &text)) return NULL;
  return state_raise(state_of(m), (dt_status)status, text);
}

static bool known_device(int device) {
  if (device >= 0 && device <= MOST_GPUS) return true;
  PyErr_Format(PyExc_ValueError, "device %d is none of 0 (the processor) to %d", device, MOST_GPUS);
  return false;
}

static PyObject *fn_load(PyObject *m, PyObject *args) {
  State *s = state_of(m);
  PyObject *image;
  int device;
  if (!PyArg_ParseTuple(args, "O!i", (PyTypeObject *)s->image_type, &image, &device) || !known_device(device))
    return NULL;
  const Device *d = state_device(s, device);
  dt_kernel *kernel = NULL;
  if (!d) return NULL;
  const dt_status st = dt_kernel_load(d->rank, ((Image *)image)->image, NULL, &kernel);
  if (st != DT_OK) return state_raise(s, st, NULL);
  Loaded *l = PyObject_New(Loaded, (PyTypeObject *)s->loaded_type);
  if (!l) {
    dt_kernel_destroy(kernel);
    return NULL;
  }
  Py_INCREF(m);
  Py_INCREF(image);
  l->module = m;
  l->image = image;
  l->state = s;
  l->kernel = kernel;
  l->generation = s->generation;
  l->device = device;
  dt_kernel_query(kernel, &l->info);
  return (PyObject *)l;
}

// What the compiler calls a device: 0 -> "host", 1 -> "sm_90a".
static PyObject *fn_target(PyObject *m, PyObject *number) {
  const int device = (int)PyLong_AsLong(number);
  if (PyErr_Occurred() || !known_device(device)) return NULL;
  const Device *d = state_device(state_of(m), device);
  return d ? PyUnicode_FromString(d->target) : NULL;
}

// [(name, usable, text)]: opens none of them.
static PyObject *fn_devices(PyObject *m, PyObject *unused) {
  State *s = state_of(m);
  dt_device info;
  (void)unused;
  PyObject *list = state_context(s) ? PyList_New(0) : NULL;
  for (size_t i = 0; list && dt_device_info(s->context, i, &info); i++) {
    PyObject *row = Py_BuildValue("(sOs)", info.name, info.usable ? Py_True : Py_False, info.text);
    if (!row || PyList_Append(list, row) != 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

// Device of an array, or None.
static PyObject *fn_device_of(PyObject *m, PyObject *o) {
  State *s = state_of(m);
  const TypeInfo *t = args_type(s, o);
  Arg a;
  dt_desc desc;
  if (!t) return NULL;
  if (t->class != CLASS_TORCH && t->class != CLASS_NUMPY && t->class != CLASS_FOREIGN &&
      t->class != CLASS_DESC)
    Py_RETURN_NONE;
  return args_take(s, o, t, NULL, NULL, &a, &desc) ? PyLong_FromLong(a.device) : NULL;
}

// Waits for all that was launched on a device's streams.
static PyObject *fn_synchronize(PyObject *m, PyObject *number) {
  State *s = state_of(m);
  const int device = (int)PyLong_AsLong(number);
  if (PyErr_Occurred() || !known_device(device)) return NULL;
  Device *d = &s->devices[device];
  for (int i = 0; d->team && device && i < d->nwrapped; i++) {
    dt_status st;
    dt_stream *stream = d->wrapped[i].stream;
    Py_BEGIN_ALLOW_THREADS;
    st = dt_stream_sync(stream);
    Py_END_ALLOW_THREADS;
    if (st == DT_OK) continue;
    device_failed(d, st);
    return state_raise(s, st, NULL);
  }
  Py_RETURN_NONE;
}

static PyObject *fn_cache_dir(PyObject *m, PyObject *unused) {
  State *s = state_of(m);
  (void)unused;
  return state_context(s) ? PyUnicode_DecodeFSDefault(dt_cache_dir(s->context)) : NULL;
}

// In a child of fork(): the threads of the parent's devices are not there, so all begins anew. What there was stays as it is.
static PyObject *fn_forked(PyObject *m, PyObject *unused) {
  State *s = state_of(m);
  (void)unused;
  s->generation++;
  s->context = NULL;
  memset(s->devices, 0, sizeof s->devices);
  Py_RETURN_NONE;
}

// Before the interpreter ends: the devices' threads must not outlive it.
static PyObject *fn_shutdown(PyObject *m, PyObject *unused) {
  State *s = state_of(m);
  (void)unused;
  s->ended = true;
  s->generation++; // kernels and images are the context's now
  args_forget(s);  // while the libraries whose objects these are live
  for (int i = 0; i <= MOST_GPUS; i++) {
    Device *d = &s->devices[i];
    if (!d->team) continue;
    for (int k = 0; k < d->nidle; k++) dt_stream_destroy(d->idle[k]);
    for (int k = 0; k < d->nwrapped; k++) dt_stream_destroy(d->wrapped[k].stream);
    if (d->nidle == d->nmade) dt_team_destroy(d->team); // else a thread is still launching
    memset(d, 0, sizeof *d);
  }
  s->context = NULL; // images that objects still hold are its children
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"setup", fn_setup, METH_VARARGS,
     "What the package knows of types: classify, describe, describe_descriptor, stream."},
    {"cached", fn_cached, METH_O, "The image that a request asks for if the disk cache holds it, or None."},
    {"compile_here", fn_compile_here, METH_O, "Compiles a request in this process."},
    {"read_image", fn_read_image, METH_O, "An image from its bytes."},
    {"load", fn_load, METH_VARARGS, "An image's kernel on a device."},
    {"fail", fn_fail, METH_VARARGS, "Raises what fits a status and a text."},
    {"target", fn_target, METH_O, "What the compiler calls a device; opens it."},
    {"devices", fn_devices, METH_NOARGS, "Devices: name, whether it can be used, and a text."},
    {"device_of", fn_device_of, METH_O,
     "Where an array lies: 0 the processor, n GPU n - 1; None for no array."},
    {"synchronize", fn_synchronize, METH_O, "Waits for a device."},
    {"cache_dir", fn_cache_dir, METH_NOARGS, "Folder of the disk cache; empty where it is off."},
    {"dlpack", args_dlpack, METH_O, "Address, code, bits and lanes of a DLPack capsule."},
    {"forked", fn_forked, METH_NOARGS, "Begins anew in a child of fork."},
    {"shutdown", fn_shutdown, METH_NOARGS, "Ends all devices."},
    {NULL, NULL, 0, NULL}};

// ---- the module's life -----------------------------------------------------------------------------------------------------------
static void module_free(void *m) {
  State *s = PyModule_GetState(m);
  if (!s) return;
  args_forget(s);
  PyObject **const all[] = {&s->error,          &s->compile_error,  &s->resources,    &s->deadline,
                            &s->assertion,      &s->classify,       &s->describe,     &s->describe_descriptor,
                            &s->current_stream, &s->torch_stream,   &s->s_dtype,      &s->s_is_cpu,
                            &s->s_value,        &s->s_array_struct, &s->s_data_ptr,   &s->s_get_device,
                            &s->s_compile,      &s->s_num_warps,    &s->s_num_stages, &s->image_type,
                            &s->loaded_type,    &s->launcher_type};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) Py_CLEAR(*all[i]);
}

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,   .m_name = "_ditron",    .m_doc = "The native part of ditron.",
    .m_size = sizeof(State), .m_methods = functions, .m_free = module_free};

static bool add(PyObject *m, const char *name, PyObject *o) {
  if (!o) return false;
  Py_INCREF(o);
  return PyModule_AddObject(m, name, o) == 0;
}

static PyObject *exception(PyObject *m, const char *name, const char *doc, PyObject *base, PyObject *second) {
  char full[64];
  snprintf(full, sizeof full, "ditron.%s", name);
  PyObject *bases = second ? PyTuple_Pack(2, base, second) : PyTuple_Pack(1, base);
  PyObject *e = bases ? PyErr_NewExceptionWithDoc(full, doc, bases, NULL) : NULL;
  Py_XDECREF(bases);
  return add(m, name, e) ? e : NULL;
}

static bool make_exceptions(PyObject *m, State *s) {
  s->error = exception(m, "Error", "A call of Ditron failed; .status names why.", PyExc_RuntimeError, NULL);
  if (!s->error) return false;
  s->compile_error = exception(m, "CompilationError", "A kernel does not compile.", s->error, NULL);
  s->resources =
      exception(m, "OutOfResources", "Memory, registers or another limit is exceeded.", s->error, NULL);
  s->deadline = exception(m, "DeadlineError", "A wait inside a kernel passed its deadline.", s->error,
                          PyExc_TimeoutError);
  s->assertion = exception(m, "DeviceAssertionError", "An assertion of a kernel failed.", s->error,
                           PyExc_AssertionError);
  return s->compile_error && s->resources && s->deadline && s->assertion;
}

static bool make_names(State *s) {
  const struct {
    PyObject **out;
    const char *text;
  } names[] = {{&s->s_dtype, "dtype"},           {&s->s_is_cpu, "is_cpu"},
               {&s->s_value, "value"},           {&s->s_data_ptr, "data_ptr"},
               {&s->s_compile, "_compile"},      {&s->s_array_struct, "__array_struct__"},
               {&s->s_get_device, "get_device"}, {&s->s_num_warps, "num_warps"},
               {&s->s_num_stages, "num_stages"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (!(*names[i].out = PyUnicode_InternFromString(names[i].text))) return false;
  }
  return true;
}

static bool make_types(PyObject *m, State *s) {
  s->image_type = PyType_FromSpec(&image_spec);
  s->loaded_type = PyType_FromSpec(&loaded_spec);
  s->launcher_type = PyType_FromSpec(&launcher_spec);
  PyObject *kernel = PyType_FromSpec(&kernel_spec);
  const bool ok = add(m, "Image", s->image_type) && add(m, "Loaded", s->loaded_type) &&
                  add(m, "Kernel", kernel) && add(m, "Launcher", s->launcher_type);
  Py_XDECREF(kernel);
  return ok;
}

PyMODINIT_FUNC PyInit__ditron(void);
PyMODINIT_FUNC PyInit__ditron(void) {
  PyObject *m = PyModule_Create(&module_def);
  if (!m) return NULL;
  State *s = PyModule_GetState(m);
  memset(s, 0, sizeof *s);
  if (make_exceptions(m, s) && make_names(s) && make_types(m, s) &&
      PyModule_AddStringConstant(m, "version", dt_version()) == 0)
    return m;
  Py_DECREF(m);
  return NULL;
}
