// A driver library that is none: the entry points of NVIDIA's driver that the runtime calls, in host memory, so that every path
// of the CUDA device can be tested on any machine. Built as libcuda_fake.so beside the unit tests. Streams run at once, in
// the calling thread; launches call `kernel`. A test reaches the state through the symbol fake_cuda.
#ifndef DITRON_FAKE_CUDA_H
#define DITRON_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef struct FakeLaunch {
  const char *entry;
  const void *args;
  size_t bytes;
  unsigned grid[3], block[3], shared_bytes, cluster[3]; // cluster 0 0 0: none
  int early;                                            // may start before what is in front of it has ended
  void *stream;
} FakeLaunch;

typedef struct FakeMap { // what lies in the 128 bytes of an encoded tensor map
  uint64_t base, sizes[5],
      strides[4]; // as the driver counts: axes from the contiguous one on, strides in bytes
  uint32_t box[5];
  uint8_t type, rank, swizzle, promotion, nan, is_map;
} FakeMap;

typedef struct FakeCuda {
  // what there is; fake_cuda(1) sets the defaults
  int devices, sm, init_status;
  size_t memory;                                         // of each device
  int max_threads, static_shared, registers, max_shared; // of every function; max_shared of the device
  int capturing;
  // The call of this name ("MemAlloc") that comes `after` more of them fails with this status.
  const char *fail_call;
  int fail_status, fail_after;
  int (*kernel)(const FakeLaunch *l); // runs a launch; not 0: the error that breaks the context
  // what happened
  int dead; // the context's error
  size_t used;
  int allocations, pinned, modules, module_loads, streams, events, contexts, launches, function_loads;
  int syncs;             // calls that wait for the device
  int carveout, dynamic; // as last set
  int maps;              // encoded
  FakeLaunch last;
} FakeCuda;

FakeCuda *fake_cuda(int reset);

#endif
