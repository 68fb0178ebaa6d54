// _ditron: the native part of the Python package, on CPython's limited API (3.9) and ditron.h alone.
//
//   _module.c   the module: context, devices, images, errors
//   _args.c     Python objects as arguments: their class, their value
//   _call.c     one call: its arguments bound, what they are, the key of what was compiled for such ones
//   _kernel.c   kernels: what was compiled for which key, launching it
//
// Everything hangs off the module's State. The interpreter's lock guards it; it is given up only while a launch on the processor is
// waited for, and then nothing but that launch's stream is in use.
#ifndef DITRON_PYTHON_H
#define DITRON_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define DT_UNSTABLE
#include "ditron/ditron.h"

enum {
  MOST_GPUS = 16,
  MOST_CPU_STREAMS = 24, // launches from so many threads at once
  MOST_WRAPPED = 32,     // streams of others' that a device remembers
  MOST_TYPES = 128,
  MOST_DTYPES = 64,
  MOST_PARAMS = 120,
  MOST_DESCS = 8,
  MOST_KEY = MOST_PARAMS * 10 + MOST_DESCS * 12 + 8
};

// What an object is as an argument. The package's classify() says it, once a type.
typedef enum Class {
  CLASS_UNKNOWN,
  CLASS_INT,
  CLASS_FLOAT,
  CLASS_CONST,   // text, element type, function: a constant wherever it stands
  CLASS_WRAPPED, // a constant in a wrapper with .value
  CLASS_TORCH,   // .dtype .is_cpu .get_device() .data_ptr()
  CLASS_NUMPY,   // .__array_struct__
  CLASS_FOREIGN, // another array: the package's describe() knows it
  CLASS_DESC,    // a tensor descriptor: describe_descriptor() knows it
  CLASS_INDEX,   // a number with __index__
  CLASS_REAL,    // a number with __float__
  CLASS_TRUTH,   // another library's bool
  NCLASSES
} Class;

typedef struct TypeInfo {
  PyObject *type; // owned
  Class class;
  PyObject *data_ptr, *get_device; // of CLASS_TORCH: the type's methods
} TypeInfo;

typedef struct Wrapped {
  void *native;
  dt_stream *stream;
  uint64_t used;
} Wrapped;

typedef struct Device {
  char name[24];   // "cpu", "cuda:1"
  char target[16]; // as the compiler takes it
  dt_team *team;   // NULL: not open
  dt_rank *rank;
  dt_stream *idle[MOST_CPU_STREAMS]; // of a CPU
  int nidle, nmade;
  bool recover;                  // a launch failed: the team must recover before the next
  Wrapped wrapped[MOST_WRAPPED]; // of a GPU
  int nwrapped;
  uint64_t uses;
} Device;

typedef struct State {
  PyObject *error, *compile_error, *resources, *deadline, *assertion; // exceptions
  PyObject *classify, *describe, *describe_descriptor, *current_stream;
  PyObject *torch_stream; // what current_stream asks where torch is loaded; NULL: not known yet
  PyObject *s_dtype, *s_is_cpu, *s_value, *s_array_struct, *s_data_ptr, *s_get_device, *s_compile,
      *s_num_warps, *s_num_stages;
  PyObject *image_type, *loaded_type, *launcher_type;
  TypeInfo types[MOST_TYPES];
  int ntypes;
  struct {
    PyObject *object; // owned
    dt_dtype dtype;
  } dtypes[MOST_DTYPES];
  int ndtypes;
  dt_context *context; // NULL: not yet, or after a fork or the end
  bool ended;
  uint32_t generation; // grows with every fork: what was loaded before is void
  Device devices[1 + MOST_GPUS];
} State;

// For types whose objects only this module makes.
PyObject *no_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);

// The module's state, and with `owner` a reference to the module, without which the state would go; NULL with an exception.
State *state_get(PyObject **owner);

// ---- _module.c ----
typedef struct Loaded { // a kernel on a device
  PyObject ob_base;     // as PyObject_HEAD
  PyObject *module;     // owned: it keeps the state
  PyObject *image;      // owned: it must outlive the kernel
  State *state;
  dt_kernel *kernel; // NULL once void
  uint32_t generation;
  int device;
  dt_kernel_info info;
} Loaded;

dt_context *state_context(State *s);        // made at the first use; NULL with an exception
Device *state_device(State *s, int device); // 0: the processor, n: GPU n - 1; NULL with an exception
// Sets the exception that fits a failed call; text NULL: the context's. Returns NULL.
PyObject *state_raise(State *s, dt_status st, const char *text);
// A stream for one launch; a CPU's must be given back.
dt_stream *device_stream(State *s, Device *d, void *native);
void device_give_back(Device *d, dt_stream *stream);
// After a failed call on the device: whether the team must recover before the next launch.
void device_failed(Device *d, dt_status st);

// ---- _args.c ----
typedef struct Arg {
  dt_value value;
  Class class;
  int device;    // of an array; -1: none
  bool readonly; // only set where device is
} Arg;
const TypeInfo *args_type(State *s, PyObject *o); // NULL with an exception
// The value of o, an object of class `class`; *desc is storage for a descriptor. False with an exception that names `name`.
bool args_take(State *s, PyObject *o, const TypeInfo *type, const char *kernel, PyObject *name, Arg *out,
               dt_desc *desc);
PyObject *args_dlpack(PyObject *module, PyObject *capsule); // (address, code, bits, lanes)
void args_forget(State *s);                                 // what is remembered about types

// ---- _call.c ----
enum { // of a parameter; the package's jit.py has the same numbers
  CONSTEXPR = 1,
  NO_SPECIALIZE = 2, // an integer's value decides nothing but its width
  TYPED = 4          // the width is fixed by an annotation
};

struct Entry;            // a loaded kernel under the key that it was compiled for
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
  struct Entry **slots; // open addressing; cap is a power of two
  size_t cap, count;
  struct Entry *last;
  Watched *watched;
  size_t nwatched;
} Kernel;

typedef struct Options {
  long num_warps, num_stages, max_registers; // 0: the compiler's, no limit
  bool debug, has_stream;
  void *stream;
} Options;

typedef struct Call { // one call, on the C stack; `values` are borrowed but for those in `owned`
  PyObject *values[MOST_PARAMS], *owned[MOST_PARAMS];
  int nowned;
  Arg args[MOST_PARAMS];
  dt_desc descs[MOST_DESCS];
  int ndescs, device, device_from; // device_from: the parameter that decided
  bool readonly, torch;            // an array is, is torch's
  Options options;
  size_t nkey;
  char key[MOST_KEY];
} Call;

// Values in the order of the parameters, options apart. False with an exception.
bool call_bind(const Kernel *k, Call *c, PyObject *args, PyObject *kwargs);
// What the bound values are, the call's device and its key. False with an exception.
bool call_take(const Kernel *k, Call *c);
// The values as a request to compile has them: bytes, or constants that are objects. NULL with an exception.
PyObject *call_request(const Kernel *k, const Call *c);
void call_end(Call *c);

// ---- _kernel.c ----
extern PyType_Spec kernel_spec, launcher_spec;

#endif
