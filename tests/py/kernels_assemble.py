"""Every single-device kernel of the library, in the sizes that GPUs run, compiled for sm_80 (with 8-bit floats sm_89 too) and sm_90a and read by ptxas: no spills, and
nothing that it complains of. Of the machine's code kernels_assemble.counts keeps, a line a row and machine: registers of a thread, instructions,
instructions of the loop around the products, how many of these move an operand's descriptor into a uniform register (R2UR), and which of
the instructions that make a kernel fast it has. Counts may only go down (3 % and 8 are left to the assembler's mood), instructions may not go
missing; another ptxas than the file's only has to have them. RENEW=1 writes the file.
TIMEOUT: 300"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from _ditron import KERNELS, ROOT, case, ditron, finish

COUNTS = ROOT / "tests/py/kernels_assemble.counts"


def program(name, *more):
    """Where NVIDIA's program is: on PATH, in the toolkit, or as scripts/setup fetched it."""
    found = [shutil.which(name), f"/usr/local/cuda/bin/{name}", ROOT / f"build/deps/bin/{name}", *more]
    return next((str(p) for p in found if p and os.access(p, os.X_OK)), None)


PTXAS, NVDISASM = os.environ.get("DITRON_PTXAS") or program("ptxas"), program("nvdisasm")


def sig(text="", **more):
    """A signature from words: "a b:*bf16 M N:i32" gives types to the names before them; by keyword, constants."""
    out, names = [], []
    for word in text.split():
        name, _, kind = word.partition(":")
        names.append(name)
        if kind:
            out += [f"{n}={kind}{':16' if kind[0] == '*' else ''}" for n in names]
            names = []
    return ", ".join(out + [f"{n}={v}" for n, v in more.items()])


def strides(names, one="", zero=""):
    """Strides of 16-byte rows, some of them 1 or 0."""
    return ", ".join(f"stride_{n}={1 if n in one.split() else 0 if n in zero.split() else 'i32:16'}" for n in names.split())


MATMUL = sig("a_ptr b_ptr c_ptr:*bf16 M N K:i32:16") + ", " + strides("am ak bk bn cm cn", "ak bn cn") + ", "
GEMM = strides("ab am ak bb bk bn cb cm cn rb rm rn", "ak bn cn rn") + ", "
ATTENTION = sig("scale:f32 seq_q seq_k rows_q:i32 q_batch q_head q_row k_batch k_head k_row:i32:16 heads kv_heads:i32") + ", "
DENSE, PACKED = "cu_q_ptr=None, cu_k_ptr=None, ", sig("cu_q_ptr cu_k_ptr:*i32") + ", "
BLOCKS = sig(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8)
ROWS = [
    ("elementwise.py:add_kernel", 4, 2, sig("x_ptr y_ptr out_ptr:*f32 n_elements:i32:16", BLOCK_SIZE=1024)),
    ("elementwise.py:silu_mul_kernel", 4, 2, sig("gate_ptr up_ptr out_ptr:*bf16 n_elements:i32:16", BLOCK_SIZE=1024)),
    ("elementwise.py:silu_mul_rows_kernel", 4, 2, sig("x_ptr out_ptr:*bf16 n_cols stride_x stride_out:i32:16", BLOCK_SIZE=1024)),
    ("softmax.py:softmax_kernel", 8, 2, sig("out_ptr x_ptr:*bf16 x_row_stride out_row_stride:i32:16 n_rows:i32 n_cols:i32:16", BLOCK_SIZE=8192)),
    ("norm.py:layer_norm_kernel", 8, 2, sig("x_ptr w_ptr b_ptr out_ptr:*bf16 row_stride:i32:16 n_rows:i32 n_cols:i32:16 eps:f32", BLOCK_SIZE=8192)),
    ("norm.py:rms_norm_kernel", 8, 2, sig("x_ptr w_ptr out_ptr:*bf16 row_stride:i32:16 n_rows:i32 n_cols:i32:16 eps:f32", BLOCK_SIZE=8192)),
    ("rope.py:rope_kernel", 4, 2, sig("x_ptr out_ptr:*bf16 cos_ptr sin_ptr:*f32 positions_ptr:*i64 heads:i32 rest half:i32:16") + ", " +
     strides("xt xh ot oh angle") + ", BLOCK_H=16, BLOCK_HALF=64, BLOCK_REST=0"),
    ("cross_entropy.py:cross_entropy_kernel", 8, 2,
     sig("x_ptr:*bf16 target_ptr:*i64 loss_ptr lse_ptr:*f32 row_stride n_cols:i32:16 ignore:i32 smoothing penalty:f32", BLOCK=4096)),
    ("cross_entropy.py:cross_entropy_backward_kernel", 8, 2,
     sig("x_ptr dx_ptr:*bf16 target_ptr:*i64 lse_ptr grad_ptr:*f32 row_stride dx_row_stride n_cols:i32:16 ignore:i32 smoothing penalty:f32",
         BLOCK=4096)),
    ("topk.py:topk_kernel", 4, 2, sig("x_ptr values_ptr:*f32 indices_ptr:*i32 row_stride k n_cols:i32", K=8, BLOCK=1024)),
    ("topk.py:sort_kernel", 4, 2, sig("x_ptr values_ptr:*f32 indices_ptr:*i32 row_stride n_cols:i32", BLOCK=1024)),
    ("matmul.py:matmul_kernel", 8, 3, MATMUL + BLOCKS),
    ("matmul.py:matmul_wrapped_kernel", 8, 3, MATMUL + BLOCKS),
    ("matmul.py:matmul_block_ptr_kernel", 8, 3, MATMUL + BLOCKS),
    ("matmul.py:matmul_descriptor_kernel", 8, 3,
     "a_desc=desc(bf16;128,32), b_desc=desc(bf16;32,128), c_desc=desc(bf16;128,128), M=i32:16, N=i32:16, K=i32:16, " +
     sig(BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, GROUP_M=8)),
    ("matmul.py:matmul_persistent_kernel", 8, 3, sig("a_ptr b_ptr c_ptr:*bf16 M N K:i32:16") + ", " + BLOCKS),
    ("gemm.py:gemm_kernel", 8, 3, sig("a_ptr b_ptr c_ptr bias_ptr residual_ptr:*bf16 M N K:i32:16 alpha:f32") + ", " + GEMM + BLOCKS +
     ', ACTIVATION="gelu_tanh"'),
    ("gemm.py:gemm_kernel", 8, 3, sig("a_ptr b_ptr:*bf16 c_ptr:*f32 M N K:i32:16 alpha:f32") + ", bias_ptr=None, residual_ptr=None, " +
     strides("ab am ak bb bk bn cb cm cn rb rm rn", "am bk cn", "rb rm rn") + ", " + BLOCKS + ', ACTIVATION=""'),
    ("gemm.py:gemm_kernel", 8, 3, sig("a_ptr b_ptr:*i8 c_ptr:*i32 M N K:i32:16 alpha:f32") + ", bias_ptr=None, residual_ptr=None, " +
     strides("ab am ak bb bk bn cb cm cn rb rm rn", "ak bk cn", "rb rm rn") + ", " + BLOCKS + ', ACTIVATION=""'),
    ("gemm.py:gemm_split_k_kernel", 4, 3, sig("a_ptr b_ptr c_ptr bias_ptr:*bf16 partial_ptr:*f32 arrived_ptr:*i32 M N K:i32:16 alpha:f32") +
     ", residual_ptr=None, " + strides("am ak bk bn cm cn rm rn", "ak bk cn", "rm rn") +
     ', BLOCK_M=16, BLOCK_N=64, BLOCK_K=128, SPLITS=4, ACTIVATION="silu"'),
    ("gemm_scaled.py:gemm_scaled_kernel", 8, 3, sig("a_ptr b_ptr:*f8e4m3 c_ptr:*bf16 scale_a_ptr scale_b_ptr:*f32 M N K:i32:16") +
     ", bias_ptr=None, " + strides("am ak bk bn cm cn", "ak bk cn") + ", PER_ROW=True, PER_COLUMN=True, " + BLOCKS),
    ("gemm_scaled.py:gemm_scaled_kernel", 8, 3, sig("a_ptr b_ptr:*i8 c_ptr bias_ptr:*bf16 scale_a_ptr scale_b_ptr:*f32 M N K:i32:16") +
     ", " + strides("am ak bk bn cm cn", "ak bk cn") + ", PER_ROW=False, PER_COLUMN=False, " + BLOCKS),
    ("gemm_scaled.py:gemm_block_scaled_kernel", 8, 3, sig("a_ptr b_ptr:*f8e4m3 c_ptr:*bf16 scale_a_ptr scale_b_ptr:*f32 M N K:i32:16") +
     ", bias_ptr=None, " + strides("am ak bk bn cm cn sam sak sbk sbn", "ak bk cn sak sbn") +
     ", SCALE_K=128, SCALE_N=128, BLOCK_M=64, BLOCK_N=128, BLOCK_K=128, GROUP_M=8"),
    ("grouped_gemm.py:grouped_gemm_kernel", 8, 3, sig("a_ptr b_ptr c_ptr:*bf16 offsets_ptr:*i32 groups:i32 N K:i32:16") + ", " +
     strides("am ak bg bk bn cm cn", "ak bn cn") + ", " + BLOCKS),
    ("grouped_gemm.py:grouped_gemm_descriptor_kernel", 8, 3, "a_desc=desc(bf16;128,64), b_desc=desc(bf16;1,64,128), " +
     sig("c_ptr:*bf16 offsets_ptr:*i32 groups:i32 N K:i32:16") + ", " + strides("cm cn", "cn") + ", " + BLOCKS),
    ("grouped_gemm.py:grouped_gemm_weights_descriptor_kernel", 8, 3,
     "a_desc=desc(bf16;64,128), dc_desc=desc(bf16;64,128), db_desc=desc(bf16;1,128,128), " +
     sig("a_ptr dc_ptr:*bf16 offsets_ptr:*i32 groups:i32 N K stride_am stride_cm:i32:16", BLOCK_M=64, BLOCK_N=128, BLOCK_K=128, GROUP_M=8)),
    ("grouped_gemm.py:grouped_gemm_weights_kernel", 8, 3, sig("a_ptr dc_ptr db_ptr:*bf16 offsets_ptr:*i32 N K:i32:16") + ", " +
     strides("am ak bg bk bn cm cn", "ak bn cn") + ", BLOCK_M=64, BLOCK_N=128, BLOCK_K=128, GROUP_M=8"),
    ("attention.py:attention_kernel", 8, 2, sig("q_ptr k_ptr v_ptr out_ptr:*bf16 lse_ptr:*f32 scale:f32 seq_q seq_k:i32:16 heads kv_heads:i32",
                                                HEAD_DIM=128, BLOCK_M=128, BLOCK_N=32, CAUSAL=True)),
    ("attention_descriptor.py:attention_descriptor_kernel", 8, 2,
     "q_desc=desc(bf16;1,128,64), k_desc=desc(bf16;1,64,64), v_desc=desc(bf16;1,64,64), out_desc=desc(bf16;1,128,64), " +
     sig("lse_ptr:*f32 scale:f32 batch_heads seq_q seq_k heads kv_heads:i32", HEAD_DIM=64, BLOCK_M=128, BLOCK_N=64, CAUSAL=True)),
    ("attention_varlen.py:attention_varlen_kernel", 8, 2, sig("q_ptr k_ptr v_ptr out_ptr:*bf16 lse_ptr:*f32") + ", " + PACKED + ATTENTION +
     sig(HEAD_DIM=64, BLOCK_M=128, BLOCK_N=64, CAUSAL=True)),
    ("attention_backward.py:attention_delta_kernel", 4, 2, sig("out_ptr dout_ptr:*bf16 delta_ptr:*f32") + ", cu_q_ptr=None, " +
     sig("seq_q rows_q:i32 q_batch q_head q_row:i32:16 heads:i32", HEAD_DIM=128, BLOCK_M=64)),
    ("attention_backward.py:attention_backward_kv_kernel", 8, 1,
     sig("q_ptr k_ptr v_ptr dout_ptr dk_ptr dv_ptr:*bf16 lse_ptr delta_ptr:*f32") + ", dq_sum_ptr=None, " + DENSE + ATTENTION +
     sig(HEAD_DIM=64, BLOCK_M=32, BLOCK_N=128, CAUSAL=True)),
    ("attention_backward.py:attention_backward_kv_kernel", 8, 1,
     sig("q_ptr k_ptr v_ptr dout_ptr dk_ptr dv_ptr:*bf16 lse_ptr delta_ptr dq_sum_ptr:*f32") + ", " + DENSE + ATTENTION +
     sig(HEAD_DIM=64, BLOCK_M=32, BLOCK_N=64, CAUSAL=True)),
    ("attention_backward.py:attention_backward_q_kernel", 8, 1,
     sig("q_ptr k_ptr v_ptr dout_ptr dq_ptr:*bf16 lse_ptr delta_ptr:*f32") + ", " + PACKED + ATTENTION +
     sig(HEAD_DIM=128, BLOCK_M=64, BLOCK_N=32, CAUSAL=True)),
    ("decode.py:decode_split_kernel", 4, 2,
     sig("q_ptr k_ptr v_ptr:*bf16 partial_ptr partial_lse_ptr:*f32 block_table_ptr seq_lens_ptr:*i32 scale:f32 table_stride:i32 "
         "q_batch q_head k_page k_row k_head:i32:16 heads kv_heads:i32", HEAD_DIM=128, GROUP=16, PAGE=16, BLOCK_N=64, SPLITS=8)),
    ("decode.py:decode_split_kernel", 4, 2,
     sig("q_ptr k_ptr v_ptr:*bf16 partial_ptr partial_lse_ptr:*f32 seq_lens_ptr:*i32 scale:f32 table_stride:i32 "
         "q_batch q_head k_page k_row k_head:i32:16 heads kv_heads:i32", block_table_ptr="None", HEAD_DIM=128, GROUP=16, PAGE=0, BLOCK_N=64,
         SPLITS=8)),
    ("decode.py:decode_combine_kernel", 4, 2, sig("partial_ptr partial_lse_ptr lse_ptr:*f32 out_ptr:*bf16", HEAD_DIM=128, SPLITS=8)),
]
# Not here: kernels over several ranks.
BOTH_MACHINES = len(ROWS)
# What docs/performance.md publishes times of: on sm_90a.
WIDE = sig(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8)
ROWS += [
    ("matmul.py:matmul_kernel", 8, 4, MATMUL + WIDE),
    ("matmul.py:matmul_persistent_kernel", 8, 4, sig("a_ptr b_ptr c_ptr:*bf16 M N K:i32:16") + ", " + WIDE),
    ("gemm_scaled.py:gemm_scaled_kernel", 8, 3, sig("a_ptr b_ptr:*f8e4m3 c_ptr:*bf16 scale_a_ptr scale_b_ptr:*f32 M N K:i32:16") +
     ", bias_ptr=None, " + strides("am ak bk bn cm cn", "ak bk cn") + ", PER_ROW=False, PER_COLUMN=False, " +
     sig(BLOCK_M=128, BLOCK_N=256, BLOCK_K=128, GROUP_M=8)),
    ("attention_descriptor.py:attention_descriptor_kernel", 8, 2,
     "q_desc=desc(bf16;1,128,128), k_desc=desc(bf16;1,128,128), v_desc=desc(bf16;1,128,128), out_desc=desc(bf16;1,128,128), " +
     sig("lse_ptr:*f32 scale:f32 batch_heads seq_q seq_k:i32:16 heads kv_heads:i32:16", HEAD_DIM=128, BLOCK_M=128, BLOCK_N=128, CAUSAL=True)),
    ("attention_descriptor.py:attention_descriptor_kernel", 4, 2,
     "q_desc=desc(bf16;1,64,64), k_desc=desc(bf16;1,64,64), v_desc=desc(bf16;1,64,64), out_desc=desc(bf16;1,64,64), " +
     sig("lse_ptr:*f32 scale:f32 batch_heads seq_q seq_k:i32:16 heads kv_heads:i32:16", HEAD_DIM=64, BLOCK_M=64, BLOCK_N=64, CAUSAL=True)),
    ("attention_varlen.py:attention_varlen_kernel", 8, 2, sig("q_ptr k_ptr v_ptr out_ptr:*bf16 lse_ptr:*f32") + ", " + DENSE +
     sig("scale:f32 seq_q seq_k rows_q q_batch q_head q_row k_batch k_head k_row heads kv_heads:i32:16", HEAD_DIM=128, BLOCK_M=128, BLOCK_N=128,
         CAUSAL=True)),
    ("attention_backward.py:attention_backward_kv_kernel", 8, 2,
     sig("q_ptr k_ptr v_ptr dout_ptr dk_ptr dv_ptr:*bf16 lse_ptr delta_ptr dq_sum_ptr:*f32") + ", " + DENSE +
     sig("scale:f32 seq_q seq_k rows_q q_batch q_head q_row k_batch k_head k_row heads kv_heads:i32:16", HEAD_DIM=128, BLOCK_M=64, BLOCK_N=128,
         CAUSAL=True)),
    ("decode.py:decode_split_kernel", 4, 3,
     sig("q_ptr k_ptr v_ptr:*bf16 partial_ptr partial_lse_ptr:*f32 block_table_ptr seq_lens_ptr:*i32 scale:f32 table_stride "
         "q_batch q_head k_page k_row k_head heads kv_heads:i32:16", HEAD_DIM=128, GROUP=16, PAGE=64, BLOCK_N=64, SPLITS=8)),
]
SPILLS = {  # bytes that a thread stores and loads again; no other row has any
    ("attention_backward.py:attention_backward_kv_kernel", 2, "sm_90a"): 48,
    ("attention_descriptor.py:attention_descriptor_kernel", 0, "sm_80"): 112,  # that machine reads descriptors' blocks element by element
}
SEVERAL_RANKS = {"collectives.py", "lowlevel.py", "moe.py", "overlap.py", "overlap_raw.py", "tile_order.py"}
NEWER = "wgmma cp.async.bulk mbarrier stmatrix setmaxnreg griddepcontrol".split()  # than sm_80
PRODUCTS = "HGMMA IGMMA QGMMA HMMA IMMA QMMA DMMA".split()
FAST = PRODUCTS + "LDSM STSM LDGSTS UTMALDG UTMASTG USETMAXREG SYNCS".split()


def loop_of_products(lines):
    """The instructions of the innermost loop with products: between a label and a branch back to it."""
    labels = {line[:-1]: i for i, line in enumerate(lines) if line.endswith(":")}
    loops = []
    for i, line in enumerate(lines):
        back = labels.get((re.search(r"\bBRA[^`]*`\((\S+)\)", line) or [0, ""])[1], i)
        if back < i and any(p in x for x in lines[back:i] for p in PRODUCTS):
            loops.append(lines[back:i + 1])
    return [x for x in min(loops, key=len) if not x.endswith(":")] if loops else []


def counted(cubin, registers):
    """[registers, instructions, of these in the loop of products, R2UR there], and the instructions of FAST."""
    text = subprocess.run([NVDISASM, "-c", cubin], capture_output=True, text=True, timeout=100, check=True).stdout
    lines = [m[1] or m[2] for m in re.finditer(r"^(?:(\.L\w+:)|\s*/\*[0-9a-f]+\*/\s+(.*?);)", text, re.M)]
    code = [x for x in lines if not x.endswith(":") and not x.startswith("NOP")]
    names = {re.sub(r"^@!?U?P\w+\s+", "", x).split(".")[0].split()[0] for x in code}
    loop = loop_of_products(lines)
    return [registers, len(code), len(loop), sum("R2UR" in x for x in loop)], [x for x in FAST if x in names]


def read_counts():
    """(version of ptxas; kernel, its how manieth row, machine -> (counts, instructions))"""
    version, rows = "", {}
    for line in COUNTS.read_text().splitlines():
        if line.startswith("# ptxas "):
            version = line.split()[2].rstrip(":")
        elif line and not line.startswith("#"):
            kernel, nth, machine, *rest = line.split()
            rows[kernel, int(nth), machine] = [int(n) for n in rest[:4]], rest[4:]
    return version, rows


def write_counts(rows):
    with COUNTS.open("w") as f:
        f.write(f"# ptxas {ptxas_version()}: kernel, its how manieth row, machine; registers, instructions, in the loop of products, R2UR there; what it must have\n")
        for at, (counts, names) in sorted(rows.items()):
            f.write(" ".join(map(str, [*at, *counts, *names])) + "\n")


def ptxas_version():
    return re.search(r"V(\d+\.\d+\.\d+)", subprocess.run([PTXAS, "--version"], capture_output=True, text=True, check=True).stdout)[1]


def ratchet(at, counts, names):
    version, rows = kept
    assert at in rows, "kernels_assemble.counts has no such row: RENEW=1"
    most, must = rows[at]
    missing = set(must) - set(names)
    assert not missing, f"has no {missing}"
    if version != ptxas_version():
        return
    for what, have, may in zip(("registers", "instructions", "instructions in the loop of products"), counts, most):
        assert have <= may + (0 if what == "registers" else max(8, may * 3 // 100)), f"{have} {what}, {may} before"
    assert counts[3] <= most[3], f"{counts[3]} R2UR in the loop of products, {most[3]} before"


def assemble(machine, nth, kernel, warps, stages, signature):
    ptx, cubin = Path("k.ptx"), Path("k.cubin")
    ditron("compile", f"{KERNELS}/{kernel}", "--target", machine, "--warps", warps, "--stages", stages, "--sig", signature, "--emit", "asm",
           "-o", ptx)
    text = ptx.read_text()
    assert f".target {machine}" in text
    if machine != "sm_90a":
        assert not any(x in text for x in NEWER), [x for x in NEWER if x in text]
    if not PTXAS:
        return
    if machine == "sm_80":  # as a newer machine's driver takes it
        later = subprocess.run([PTXAS, "-arch=sm_90", "-O1", str(ptx), "-o", str(cubin)], capture_output=True, text=True, timeout=100)
        assert later.returncode == 0, later.stderr
    p = subprocess.run([PTXAS, f"-arch={machine}", "-v", str(ptx), "-o", str(cubin)], capture_output=True, text=True, timeout=100)
    said = p.stdout + p.stderr
    assert p.returncode == 0, said
    assert not re.search(r"\bC75\d\d\b", said), said
    spills = [int(n) for n in re.findall(r"(\d+) bytes spill", said)]
    assert spills and max(spills) <= SPILLS.get((kernel, nth, machine), 0), said
    if NVDISASM:
        counts, names = counted(cubin, int(re.search(r"Used (\d+) registers", said)[1]))
        seen[kernel, nth, machine] = counts, names
        if not RENEW:
            ratchet((kernel, nth, machine), counts, names)


# What the library's products must have on a Hopper: a|b, one of both.
GEMM_FORM = "HGMMA|IGMMA|QGMMA UTMALDG UTMASTG STSM USETMAXREG SYNCS"
HOPPER = {
    "matmul.py:matmul_kernel": GEMM_FORM,
    "matmul.py:matmul_wrapped_kernel": GEMM_FORM,
    "matmul.py:matmul_block_ptr_kernel": GEMM_FORM,
    "matmul.py:matmul_descriptor_kernel": GEMM_FORM,
    "matmul.py:matmul_persistent_kernel": GEMM_FORM,
    "gemm.py:gemm_kernel": "HGMMA|IGMMA UTMALDG USETMAXREG SYNCS",
    "gemm.py:gemm_split_k_kernel": "HMMA LDSM LDGSTS",  # 16 rows are fewer than the 64 of wgmma
    "gemm_scaled.py:gemm_scaled_kernel": GEMM_FORM,
    "gemm_scaled.py:gemm_block_scaled_kernel": GEMM_FORM,
    "grouped_gemm.py:grouped_gemm_kernel": "HGMMA LDGSTS",
    "grouped_gemm.py:grouped_gemm_descriptor_kernel": "HGMMA UTMALDG USETMAXREG SYNCS",
    "grouped_gemm.py:grouped_gemm_weights_kernel": "HGMMA LDGSTS",
    "grouped_gemm.py:grouped_gemm_weights_descriptor_kernel": "HGMMA UTMALDG UTMASTG USETMAXREG SYNCS",
    "attention.py:attention_kernel": "HGMMA UTMALDG UTMASTG STSM SYNCS",
    "attention_descriptor.py:attention_descriptor_kernel": "HGMMA UTMALDG UTMASTG STSM SYNCS",
    "attention_varlen.py:attention_varlen_kernel": "HGMMA UTMALDG|LDGSTS",
    "attention_backward.py:attention_backward_kv_kernel": "HGMMA|HMMA",
    "attention_backward.py:attention_backward_q_kernel": "HGMMA",
    "decode.py:decode_split_kernel": "HMMA LDSM",
}


def complete():
    """Each kernel of the library has a row."""
    want = set()
    for path in sorted(KERNELS.glob("*.py")):
        if path.name not in SEVERAL_RANKS:
            want |= {f"{path.name}:{n}" for n in re.findall(r"^def (\w+_kernel)\(", path.read_text(), re.M)}
    assert want == {row[0] for row in ROWS}, want ^ {row[0] for row in ROWS}


def promised():
    """That products have what they must is said above, and not by what happened to be there when the counts were written."""
    rows = read_counts()[1]
    for i, (kernel, *_) in enumerate(ROWS):
        if kernel not in HOPPER:
            continue
        nth = nth_of(i)
        counts, names = rows[kernel, nth, "sm_90a"]
        missing = [x for x in HOPPER[kernel].split() if not set(x.split("|")) & set(names)]
        assert not missing, f"{kernel} row {nth}: has no {missing}"
        if HOPPER[kernel] == GEMM_FORM:  # descriptors of operands stay in uniform registers
            assert counts[3] == 0, f"{kernel} row {nth}: {counts[3]} R2UR in the loop of products"
        if i < BOTH_MACHINES:
            assert set(rows[kernel, nth, "sm_80"][1]) & {"HMMA", "IMMA"}, f"{kernel} row {nth}: no matrix unit on sm_80"
            assert "QMMA" in rows.get((kernel, nth, "sm_89"), ([], ["QMMA"]))[1], f"{kernel} row {nth}: no 8-bit floats on sm_89's matrix unit"


def nth_of(i):
    """How many rows of the same kernel stand before row i."""
    return sum(row[0] == ROWS[i][0] for row in ROWS[:i])


def line_tables():
    """The machine code of an image, of each of its variants, knows the lines of the source that do the work."""
    if not PTXAS or not NVDISASM:
        return
    kernel, warps, stages, signature = next(row for row in ROWS if row[0] == "matmul.py:matmul_kernel")
    ditron("compile", f"{KERNELS}/{kernel}", "--target", "sm_90a", "--warps", warps, "--stages", stages, "--sig", signature.replace("M=i32:16", "M=i32"),
           "-o", "k.image", env=dict(DITRON_PTXAS=PTXAS, DITRON_CACHE_OFF="1"))
    image = Path("k.image").read_bytes()
    starts = [m.start() for m in re.finditer(b"\x7fELF", image)]
    assert len(starts) == 2, f"{len(starts)} variants"
    source = (KERNELS / "matmul.py").read_text().splitlines()
    first = next(i for i, line in enumerate(source) if line.startswith("def matmul_kernel("))
    for n, start in enumerate(starts):
        Path("part.cubin").write_bytes(image[start:])
        text = subprocess.run([NVDISASM, "-g", "-c", "part.cubin"], capture_output=True, text=True, timeout=100, check=True).stdout
        seen_lines = {int(x) for x in re.findall(r'File ".*kernels/matmul\.py", line (\d+)', text)}
        for word in ("tl.load(a_ptrs", "tl.load(b_ptrs", "tl.dot(", "tl.store("):
            line = next(i for i in range(first, len(source)) if word in source[i]) + 1
            assert line in seen_lines, f"variant {n}: no code of line {line}, {word}...: {sorted(seen_lines)}"


RENEW = bool(os.environ.get("RENEW"))
kept, seen = ("", {}) if RENEW or not COUNTS.exists() else read_counts(), {}
if not PTXAS or not NVDISASM:
    print(f"not ok no {'disassembler' if PTXAS else 'assembler'} here: registers, spills and instructions are not looked at # skip", flush=True)
case("every kernel has a row", complete)
case("line tables", line_tables)
for i, row in enumerate(ROWS):
    for machine in (("sm_80",) + (("sm_89",) if "f8e" in row[3] else ()) if i < BOTH_MACHINES else ()) + ("sm_90a",):
        case(f"{row[0]} row {nth_of(i)} {machine}", assemble, machine, nth_of(i), *row)
if RENEW:
    write_counts(seen)
case("products have what they were promised", promised)
finish()
