// ir_samples: the smallest valid use of every op, as text. For the tests of ops and for the fuzzer.
#ifndef DITRON_IR_SAMPLES_H
#define DITRON_IR_SAMPLES_H

#include "ir/ir.h"

#include <string.h>

typedef struct Sample {
  IrOpKind kind;
  const char *stage;
  const char *text; // lines of a function body; may use the values of its stage's prelude
} Sample;

// What samples stand on. In the placed stage tiles are vectors and nothing is at thread level.
static const char tile_head[] =
    "func @helper(%a: i32) -> i32 {\n return %a\n}\n"
    "kernel @k(%p: ptr<f32>, %pi: ptr<i32>, %pl: ptr<i64>, %i: i32, %l: i64, %x: f32, %c: i1) {\n";
static const char tile_values[] = " %ti = arange {start=0, end=16} : tile<16xi32>\n"
                                  " %tx = splat %x : tile<16xf32>\n"
                                  " %tc = splat %c : tile<16xi1>\n"
                                  " %sp = splat %p : tile<16xptr<f32>>\n"
                                  " %tp = ptr_add %sp, %ti : tile<16xptr<f32>>\n"
                                  " %m1 = expand_dims %tx {axis=0} : tile<1x16xf32>\n"
                                  " %m16 = broadcast %m1 : tile<16x16xf32>\n"
                                  " %two = broadcast %m1 : tile<16x16xf32>\n"
                                  " %buf = mem_alloc : memdesc<2*16xf32, shared>\n"
                                  " %one = mem_alloc : memdesc<16xf32, shared>\n";
static const char tile_threads[] = " %t = tid : thread i32\n"
                                   " %tf = to_thread %x : thread f32\n"
                                   " %tb = cmp %t, %t {cmp=eq} : thread i1\n"
                                   " %pt = to_thread %p : thread ptr<f32>\n";
static const char async_values[] = " %bar = mbarrier_alloc {count=1} : mbarrier<2>\n"
                                   " %d = make_desc %p, %i, %l : desc<16xf32>\n";
static const char placed_values[] = " %ti = ramp %i, %i : tile<16xi32>\n"
                                    " %tx = splat %x : tile<16xf32>\n"
                                    " %tc = splat %c : tile<16xi1>\n"
                                    " %d = make_desc %p, %i, %l : desc<16xf32>\n"
                                    " %am = mem_alloc {offset=0} : memdesc<8x8xf32, scratch>\n"
                                    " %bm = mem_alloc {offset=256} : memdesc<8x8xf32, scratch>\n"
                                    " %cm = mem_alloc {offset=512} : memdesc<8x8xf32, scratch>\n";

#define BINARY_I(op) \
  { OP_##op, "tile", "%r = " #op " %ti, %ti : tile<16xi32>" }
#define BINARY_F(op) \
  { OP_##op, "tile", "%r = " #op " %tx, %tx : tile<16xf32>" }

static const Sample samples[] = {
    {OP_const, "tile", "%r = const {value=7} : i32"},
    {OP_program_id, "tile", "%r = program_id {axis=0} : i32"},
    {OP_num_programs, "tile", "%r = num_programs {axis=2} : i32"},
    {OP_rank, "tile", "%r = rank : i32"},
    {OP_num_ranks, "tile", "%r = num_ranks : i32"},
    {OP_tid, "tile", "%r = tid : thread i32"},
    {OP_num_threads, "tile", "%r = num_threads : i32"},
    {OP_warp_size, "tile", "%r = warp_size : i32"},
    {OP_timer, "tile", "%r = timer : i64"},
    {OP_smid, "tile", "%r = smid : thread i32"},
    BINARY_I(add),
    BINARY_I(sub),
    BINARY_I(mul),
    BINARY_I(div_s),
    BINARY_I(div_u),
    BINARY_I(rem_s),
    BINARY_I(rem_u),
    BINARY_I(mulhi_s),
    BINARY_I(mulhi_u),
    BINARY_I(and),
    BINARY_I(or),
    BINARY_I(xor),
    BINARY_I(shl),
    BINARY_I(shr_s),
    BINARY_I(shr_u),
    BINARY_I(min_s),
    BINARY_I(max_s),
    BINARY_I(min_u),
    BINARY_I(max_u),
    {OP_abs_s, "tile", "%r = abs_s %t : thread i32"},
    BINARY_F(fadd),
    BINARY_F(fsub),
    BINARY_F(fmul),
    BINARY_F(frem),
    BINARY_F(fmin),
    BINARY_F(fmax),
    {OP_fdiv, "tile", "%r = fdiv %x, %x {exact=true} : f32"},
    {OP_fneg, "tile", "%r = fneg %x : f32"},
    {OP_fabs, "tile", "%r = fabs %tf : thread f32"},
    {OP_fma, "tile", "%r = fma %tx, %tx, %tx : tile<16xf32>"},
    {OP_math, "tile", "%e = math %tx {fn=exp} : tile<16xf32>  %r = math %tx, %e {fn=pow} : tile<16xf32>"},
    {OP_cmp, "tile", "%r = cmp %tp, %tp {cmp=ult} : tile<16xi1>"},
    {OP_fcmp, "tile", "%r = fcmp %x, %x {fcmp=une} : i1"},
    {OP_select, "tile", "%r = select %tc, %tp, %tp : tile<16xptr<f32>>"},
    {OP_ext_s, "tile", "%r = ext_s %ti : tile<16xi64>"},
    {OP_ext_u, "tile", "%r = ext_u %c : i8"},
    {OP_trunc, "tile", "%r = trunc %l : i16"},
    {OP_fcast, "tile", "%r = fcast %tx {round=rtz} : tile<16xbf16>"},
    {OP_si2f, "tile", "%r = si2f %ti : tile<16xf64>"},
    {OP_ui2f, "tile", "%r = ui2f %t : thread f16"},
    {OP_f2si, "tile", "%r = f2si %x : i8"},
    {OP_f2ui, "tile", "%r = f2ui %tx : tile<16xi64>"},
    {OP_bitcast, "tile", "%q = bitcast %x : i32  %r = bitcast %tp : tile<16xptr<i32>>"},
    {OP_ptr2int, "tile", "%r = ptr2int %tp : tile<16xi64>"},
    {OP_int2ptr, "tile", "%r = int2ptr %l : ptr<f8e4m3>"},
    {OP_ptr_add, "tile", "%r = ptr_add %p, %l {divisible=[16]} : ptr<f32>"},
    {OP_hint, "tile", "%r = hint %ti {divisible=[16], contiguous=[16]} : tile<16xi32>"},
    {OP_assume, "tile", "assume %c"},
    {OP_to_thread, "tile", "%r = to_thread %pi : thread ptr<i32>"},
    {OP_from_thread, "tile", "%r = from_thread %t : i32"},
    {OP_splat, "tile", "%r = splat %p : tile<4x4xptr<f32>>"},
    {OP_unsplat, "tile", "%u = splat %x : tile<1x1xf32>  %r = unsplat %u : f32"},
    {OP_arange, "tile", "%r = arange {start=-8, end=8} : tile<16xi32>"},
    {OP_ramp, "placed", "%r = ramp %l, %l : tile<8xi64>"},
    {OP_expand_dims, "tile", "%r = expand_dims %m16 {axis=1} : tile<16x1x16xf32>"},
    {OP_broadcast, "tile", "%r = broadcast %m1 : tile<8x16xf32>"},
    {OP_reshape, "tile", "%r = reshape %m16 {reorder=true} : tile<4x64xf32>"},
    {OP_trans, "tile",
     "%u = expand_dims %m1 {axis=2} : tile<1x16x1xf32>  %r = trans %u {perm=[1, 2, 0]} : tile<16x1x1xf32>"},
    {OP_join, "tile", "%r = join %tx, %tx : tile<16x2xf32>"},
    {OP_split, "tile", "%u = join %ti, %ti : tile<16x2xi32>  %r, %s = split %u : tile<16xi32>, tile<16xi32>"},
    {OP_cat, "tile", "%r = cat %m16, %two : tile<32x16xf32>"},
    {OP_gather, "tile", "%u = splat %i : tile<4x16xi32>  %r = gather %m16, %u {axis=0} : tile<4x16xf32>"},
    {OP_histogram, "tile", "%r = histogram %ti, %tc : tile<64xi32>"},
    {OP_reduce, "tile",
     "%r, %ri = reduce %m16, %m16 {axis=1} : tile<16xf32>, tile<16xf32> { (%a: f32, %ai: f32, %b: f32, %bi: f32)\n"
     " %g = fcmp %a, %b {fcmp=ogt} : i1  %v = select %g, %a, %b : f32  %w = select %g, %ai, %bi : f32  yield %v, %w }\n"
     "%rs = reduce %ti {axis=0} : i32 { (%a: i32, %b: i32) %v = add %a, %b : i32  yield %v }"},
    {OP_scan, "tile",
     "%r = scan %m16 {axis=0, reverse=true} : tile<16x16xf32> { (%a: f32, %b: f32) %v = fmul %a, %b : f32  yield %v }"},
    {OP_dot, "tile", "%r = dot %m16, %two, %m16 {prec=tf32} : tile<16x16xf32>"},
    {OP_load, "tile",
     "%r = load %tp, %tc, %tx {cache=cg, evict=first} : tile<16xf32>\n%s = load %pt, _, _ {order=acquire, scope=sys} : thread f32"},
    {OP_store, "tile", "store %tp, %tx, %tc {nt=true}"},
    {OP_atomic_rmw, "tile",
     "%r = atomic_rmw %tp, %tx, %tc {order=acq_rel, scope=gpu, rmw=fadd} : tile<16xf32>"},
    {OP_atomic_cas, "tile", "%r = atomic_cas %pi, %i, %i {order=acq_rel, scope=sys} : i32"},
    {OP_prefetch, "placed", "prefetch %p"},
    {OP_load_vec, "placed", "%r = load_vec %p, %tc, %tx {label=\"a row\"} : tile<16xf32>"},
    {OP_store_vec, "placed", "store_vec %p, %tx, _ {nt=true}"},
    {OP_make_desc, "tile", "%r = make_desc %p, %i, %l, %l, %l {pad=nan} : desc<16x16xf32>"},
    {OP_desc_load, "async", "%r = desc_load %d, %i : tile<16xf32>"},
    {OP_desc_store, "async", "desc_store %d, %tx, %l"},
    {OP_desc_rmw, "async", "desc_rmw %d, %tx, %i {rmw=fmax}"},
    {OP_desc_base, "async", "%r = desc_base %d : ptr<f32>"},
    {OP_desc_dim, "async", "%r = desc_dim %d {axis=0} : i64"},
    {OP_desc_stride, "async", "%r = desc_stride %d {axis=0} : i64"},
    {OP_mem_alloc, "tile", "%r = mem_alloc {label=\"ring\"} : memdesc<3*64x32xf8e5m2, tensor>"},
    {OP_mem_view, "tile", "%r = mem_view %buf, %i : memdesc<16xf32, shared>"},
    {OP_mem_load, "tile", "%r = mem_load %one : tile<16xf32>"},
    {OP_mem_store, "tile", "mem_store %one, %tx"},
    {OP_mem_get, "tile", "%r = mem_get %one, %t : thread f32"},
    {OP_mem_set, "tile", "mem_set %one, %x, %i"},
    {OP_copy_async, "async", "%r = copy_async %one, %tp, %tc, %tx : token"},
    {OP_async_wait, "async",
     "%u = copy_async %one, %tp, _, _ : token  %r = async_wait %u {pending=0} : token"},
    {OP_mbarrier_alloc, "async", "%r = mbarrier_alloc {count=128} : mbarrier"},
    {OP_mbarrier_expect, "async", "mbarrier_expect %bar, %i, %i"},
    {OP_mbarrier_arrive, "async", "mbarrier_arrive %bar, %t"},
    {OP_mbarrier_wait, "async", "%r = mbarrier_wait %bar, %i, %i : token"},
    {OP_desc_load_async, "async", "desc_load_async %d, %one, %bar, %i, %i"},
    {OP_desc_store_async, "async", "%r = desc_store_async %d, %one, %i : token"},
    {OP_dot_mem, "placed", "dot_mem %cm, %am, %bm {prec=ieee}"},
    {OP_mem_gather, "placed", "%r = mem_gather %am, %i, %ti : tile<16xf32>"},
    {OP_mem_scatter, "placed", "mem_scatter %am, %tx, %ti, %i"},
    {OP_vec_get, "placed", "%r = vec_get %tx, %i : f32"},
    {OP_vec_set, "placed", "%r = vec_set %tx, %i, %x : tile<16xf32>"},
    {OP_barrier, "tile", "barrier"},
    {OP_warp_barrier, "tile", "warp_barrier"},
    {OP_fence, "tile", "fence {order=acq_rel, scope=sys}\nfence {proxy=async}"},
    {OP_symm_at, "tile", "%r = symm_at %p, %i : ptr<f32>"},
    {OP_wait, "tile", "%r = wait %pi, _, %i {cmp=sge, order=acquire, scope=sys} : token"},
    {OP_consume, "tile",
     "%u = wait %pi, %i, %i {order=acquire, scope=sys} : token  %r = consume %p, %u : ptr<f32>"},
    {OP_signal, "tile", "signal %pl, %l, %i {order=release, scope=sys, sigop=add}"},
    {OP_release, "tile", "release %pl, %l, _ {scope=sys}\nrelease %pi, %i, %i {scope=gpu, sigop=add}"},
    {OP_acquire, "tile", "%r = acquire %pl, %l {cmp=sge, scope=sys} : token"},
    {OP_put, "tile", "put %p, %p, %l, %i {group=block, nbi=true}"},
    {OP_get, "tile", "get %p, %p, %i, %i"},
    {OP_put_signal, "tile", "put_signal %p, %p, %l, %pl, %l, %i {sigop=add, nbi=true}"},
    {OP_put_fence, "tile", "put_fence"},
    {OP_put_quiet, "tile", "put_quiet"},
    {OP_team_barrier, "tile", "team_barrier _ {group=block}"},
    {OP_shfl, "tile", "%r = shfl %tf, %t {shfl=xor} : thread f32"},
    {OP_ballot, "tile", "%r = ballot %tb : thread i32"},
    {OP_active_mask, "tile", "%r = active_mask : thread i64"},
    {OP_print, "tile", "print %i, %tx {prefix=\"x =\", hex=true, uns=[1, 0]}"},
    {OP_assert, "tile", "assert %tc {msg=\"in range\"}"},
    {OP_inline_asm, "tile",
     "%r = inline_asm %ti, %ti {asm=\"add.s32 $0, $1, $2;\", constraints=\"=r,r,r\", pack=1, pure=true} : tile<16xi32>"},
    {OP_relayout, "laid", "%r = relayout %ti : tile<16xi32, reg(8) lane(1 2 4 0 0) warp(0 0)>"},
    {OP_mem_ptr, "lowered", "%r = mem_ptr %buf : thread ptr<f32, shared>"},
    {OP_load_pack, "lowered", "%r, %s = load_pack %pt, %tb, %tf : thread f32, thread f32"},
    {OP_add_pack, "lowered", "add_pack %pt, _, %tf, %tf {order=relaxed}"},
    {OP_store_pack, "lowered", "store_pack %pt, _, %tf, %tf {cache=cs}"},
    {OP_ldmatrix, "lowered",
     "%u = mem_ptr %buf : thread ptr<f32, shared>  %r, %s = ldmatrix %u {transposed=true} : thread i32, thread i32"},
    {OP_stmatrix, "lowered", "%u = mem_ptr %buf : thread ptr<f32, shared>  stmatrix %u, %t, %t"},
    {OP_mma, "lowered",
     "%r, %s, %u, %v = mma %t, %t, %t, %t, %t, %t, %tf, %tf, %tf, %tf {mma=m16n8k16_bf16} : thread f32, thread f32, thread f32, thread f32"},
    {OP_dot_async, "laid",
     "%u = mem_alloc : memdesc<16x16xf32, shared>\n"
     "%r = dot_async %m16, %u, %two {late=true} : tile<16x16xf32>\n"
     "%s = dot_async %u, %u, _ {until_use=true, a_trans=true, b_trans=true} : tile<16x16xf32>"},
    {OP_dot_wait, "laid", "%r, %s = dot_wait %m16, %tx {pending=1} : tile<16x16xf32>, tile<16xf32>"},
    {OP_wgmma, "lowered",
     "%u = mem_ptr %buf : thread ptr<f32, shared>\n"
     "%r, %s, %v, %w = wgmma %t, %t, %t, %t, %u {wgmma=bf16_bf16, product=[64, 8, 16, 1, 1]} : thread f32, "
     "thread f32, thread f32, thread f32\n"
     "%e, %f, %g, %h = wgmma %u, %u, %r, %s, %v, %w {wgmma=f16_f16, product=[64, 8, 64, 1, 1], a_trans=true, "
     "b_trans=true} : thread f32, thread f32, thread f32, thread f32"},
    {OP_wgmma_wait, "lowered", "%r, %s = wgmma_wait %tf, %t {pending=0} : thread f32, thread i32"},
    {OP_strip_store, "lowered",
     "%u = bitcast %p : ptr<f16>  %v = make_desc %u, %i, %i, %l, %l : desc<16x64xf16>\n"
     "%w = mem_alloc : memdesc<8*16x64xf16, shared, reg(1 2 4 8 16 32 72 144 288 512) lane() warp()>\n"
     "strip_store %v, %w, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t, %t {strip=3}"},
    {OP_strips_end, "lowered", "strips_end"},
    {OP_turn_begin, "lowered", "%turns = mbarrier_alloc {count=4} : mbarrier<2>  turn_begin %turns"},
    {OP_turn_end, "lowered", "%turns = mbarrier_alloc {count=4} : mbarrier<2>  turn_end %turns"},
    {OP_copy_pack, "lowered",
     "%u = mem_ptr %buf : thread ptr<f32, shared>  copy_pack %u, %pt, %tb {bytes=16, cache=cg}"},
    {OP_copy_commit, "lowered", "copy_commit"},
    {OP_copy_wait, "lowered", "copy_wait {pending=1}"},
    {OP_if, "tile",
     "%r = if %c : f32 { yield %x } { %u = fneg %x : f32  yield %u }\nif %tb { yield } { yield }"},
    {OP_for, "tile",
     "%r, %s = for %i, %i, %i, %tx, %t {min_trip=1, stages=3} : tile<16xf32>, thread i32 { (%iv: i32, %a: tile<16xf32>, %b: thread i32) yield %a, %b }"},
    {OP_while, "tile",
     "%r = while %i : f32 { (%a: i32) %g = cmp %a, %i {cmp=slt} : i1  cond_yield %g, %x } { (%b: f32) yield %i }"},
    {OP_switch, "tile", "%r = switch %i {cases=[0, 5]} : i32 { yield %i } { yield %i } { yield %i }"},
    {OP_warp_partitions, "async",
     "warp_partitions {first=[0, 1], warps=[1, 3], regs=[40, 232]} { mbarrier_arrive %bar, %i  yield } { %v = mbarrier_wait %bar, %i, %i : token  %w = mem_load %one : tile<16xf32>  desc_store %d, %w, %i  yield }"},
    {OP_warp_for, "placed", "warp_for {fiber=true, count=4} { (%w: i32) barrier  yield }"},
    {OP_call, "tile", "%r = call %i {callee=@helper} : i32"},
    {OP_yield, "tile", "if %c { yield } { yield }"},
    {OP_cond_yield, "tile", "while { cond_yield %c } { yield }"},
    {OP_return, "tile", ""},
};

// The function of a sample, in a stage; its stage "async" is laid with the values of asynchronous copies.
static char *sample_text(Arena *a, const Sample *s, const char *stage) {
  const bool placed = strcmp(s->stage, "placed") == 0, async = strcmp(s->stage, "async") == 0;
  return arena_printf(a, "module stage=%s warps=4 stages=2 lanes=32\n%s%s%s%s%s\n return\n}\n", stage,
                      tile_head, placed ? placed_values : tile_values, placed ? "" : tile_threads,
                      async ? async_values : "", s->text);
}

static const char *sample_stage(const Sample *s) {
  return strcmp(s->stage, "async") == 0 ? "laid" : s->stage;
}

#endif
