// fiber: stacks to run on, and the switch between them.
//
//   mapping   [ guard page | stack ................ ]
//                                        sp -> saved control words, registers, return address
//
// A switch saves what the calling convention lets a callee keep: rbx rbp r12-r15, and the control words of the floating
// point units. Address and thread sanitizers are told of every switch. A fiber stays on the thread that made it.
#include "rt/rt_impl.h"

#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
void __sanitizer_start_switch_fiber(void **fake, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake, const void **bottom, size_t *size);
#endif
#if defined(__SANITIZE_THREAD__)
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void *__tsan_get_current_fiber(void);
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK = 512 << 10, GUARD = 4096 };
#else
enum { STACK = 128 << 10, GUARD = 4096 };
#endif

void rt_switch_stacks(void **save, void *to);
__asm__(".text\n"
        ".p2align 4\n"
        ".globl rt_switch_stacks\n"
        ".hidden rt_switch_stacks\n"
        ".type rt_switch_stacks, @function\n"
        "rt_switch_stacks:\n"
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  subq $8, %rsp\n"
        "  stmxcsr (%rsp)\n"
        "  fnstcw 4(%rsp)\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  ldmxcsr (%rsp)\n"
        "  fldcw 4(%rsp)\n"
        "  addq $8, %rsp\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  ret\n"
        ".size rt_switch_stacks, . - rt_switch_stacks\n"
        // where a new fiber begins: its entry is in r12, itself in r13; a zero return address ends backtraces
        ".p2align 4\n"
        ".type rt_fiber_start, @function\n"
        "rt_fiber_start:\n"
        "  movq %r13, %rdi\n"
        "  pushq $0\n"
        "  jmpq *%r12\n"
        ".size rt_fiber_start, . - rt_fiber_start\n");
extern const char rt_fiber_start[] __attribute__((visibility("hidden")));

uint64_t rt_fiber_stack_bytes(void) { return STACK; }

static void first_frame(Fiber *f, void (*entry)(Fiber *)) {
  // ret pops the start address, which leaves sp 16-byte aligned; the pushed 0 makes it as after a call
  void **sp = (void **)(void *)(f->map + f->map_bytes - 16);
  *--sp = (void *)(uintptr_t)rt_fiber_start;
  *--sp = NULL;                                 // rbp
  *--sp = NULL;                                 // rbx
  *--sp = (void *)(uintptr_t)entry;             // r12
  *--sp = f;                                    // r13
  *--sp = NULL;                                 // r14
  *--sp = NULL;                                 // r15
  const uint32_t control[2] = {0x1f80, 0x037f}; // the defaults: all masked, round to nearest
  memcpy(--sp, control, sizeof control);
  f->sp = sp;
}

Fiber *rt_fiber_new(RtRank *r, void (*entry)(Fiber *), Worker *w) {
  Fiber *f = calloc(1, sizeof *f);
  if (!f) return NULL;
  f->map_bytes = GUARD + STACK;
  f->map = mmap(NULL, f->map_bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (f->map == MAP_FAILED || mprotect(f->map, GUARD, PROT_NONE) != 0) {
    if (f->map != MAP_FAILED) munmap(f->map, f->map_bytes);
    free(f);
    return NULL;
  }
  f->rank = r;
  f->worker = w;
#if defined(__SANITIZE_THREAD__)
  f->tsan = __tsan_create_fiber(0);
#endif
  first_frame(f, entry);
  return f;
}

void rt_fiber_free(Fiber *f) {
  if (!f) return;
#if defined(__SANITIZE_THREAD__)
  if (f->tsan && f->map) __tsan_destroy_fiber(f->tsan);
#endif
  free(f->arena);
  if (f->map) {
    munmap(f->map, f->map_bytes);
    free(f);
  }
}

void rt_fiber_adopt(Fiber *f) {
  (void)f;
#if defined(__SANITIZE_THREAD__)
  f->tsan = __tsan_get_current_fiber();
#endif
#if defined(__SANITIZE_ADDRESS__)
  pthread_attr_t attr;
  void *stack;
  size_t bytes;
  if (pthread_getattr_np(pthread_self(), &attr) != 0) return;
  if (pthread_attr_getstack(&attr, &stack, &bytes) == 0) {
    f->map = stack; // only to name its bounds; cleared before it would be freed
    f->map_bytes = bytes;
  }
  pthread_attr_destroy(&attr);
#endif
}

void rt_fiber_entered(Fiber *f) {
  (void)f;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(f->asan_fake, NULL, NULL);
#endif
}

void rt_fiber_switch(Fiber *from, Fiber *to) {
#if defined(__SANITIZE_ADDRESS__)
  const bool own = to == &to->worker->root;
  __sanitizer_start_switch_fiber(&from->asan_fake, to->map + (own ? 0 : GUARD),
                                 to->map_bytes - (own ? 0 : GUARD));
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to->tsan, 0);
#endif
  rt_switch_stacks(&from->sp, to->sp);
  rt_fiber_entered(from);
}

bool rt_fiber_arena(Fiber *f, uint64_t bytes) {
  if (f->arena_bytes >= bytes) return true;
  free(f->arena);
  f->arena = NULL;
  f->arena_bytes = 0;
  void *p;
  bytes = bits_round_up(bytes, 4096);
  if (posix_memalign(&p, bytes >= 2 << 20 ? 2 << 20 : 4096, bytes) != 0) return false;
  if (bytes >= 2 << 20) madvise(p, bytes, MADV_HUGEPAGE);
  f->arena = p;
  f->arena_bytes = bytes;
  return true;
}
