"""Symmetric memory from inside of kernels, as OpenSHMEM names it. Written by scripts/gen-docs from builtins.def."""
from ._base import outside

MORI_SIGNAL_ADD = None  # a constant
MORI_SIGNAL_SET = None  # a constant
NVSHMEMX_TEAM_NODE = None  # a constant
NVSHMEM_CMP_EQ = None  # a constant
NVSHMEM_CMP_GE = None  # a constant
NVSHMEM_CMP_GT = None  # a constant
NVSHMEM_CMP_LE = None  # a constant
NVSHMEM_CMP_LT = None  # a constant
NVSHMEM_CMP_NE = None  # a constant
NVSHMEM_SIGNAL_ADD = None  # a constant
NVSHMEM_SIGNAL_SET = None  # a constant
NVSHMEM_TEAM_SHARED = None  # a constant
NVSHMEM_TEAM_WORLD = None  # a constant
ROCSHMEM_CMP_EQ = None  # a constant
ROCSHMEM_CMP_GE = None  # a constant
ROCSHMEM_CMP_GT = None  # a constant
ROCSHMEM_CMP_LE = None  # a constant
ROCSHMEM_CMP_LT = None  # a constant
ROCSHMEM_CMP_NE = None  # a constant
ROCSHMEM_SIGNAL_ADD = None  # a constant
ROCSHMEM_SIGNAL_SET = None  # a constant


def barrier(team):
    """all ranks of a team meet"""
    outside("barrier")


def barrier_all():
    """all ranks meet"""
    outside("barrier_all")


def barrier_all_block():
    """all ranks meet"""
    outside("barrier_all_block")


def barrier_all_vec():
    """all ranks meet"""
    outside("barrier_all_vec")


def barrier_all_warp():
    """all ranks meet"""
    outside("barrier_all_warp")


def barrier_all_wave():
    """all ranks meet"""
    outside("barrier_all_wave")


def barrier_all_wg():
    """all ranks meet"""
    outside("barrier_all_wg")


def barrier_block(team):
    """all ranks of a team meet"""
    outside("barrier_block")


def barrier_warp(team):
    """all ranks of a team meet"""
    outside("barrier_warp")


def broadcast(team, dest, source, nelems, pe_root):
    """one rank's elements on every rank"""
    outside("broadcast")


def broadcast_block(team, dest, source, nelems, pe_root):
    """one rank's elements on every rank"""
    outside("broadcast_block")


def broadcast_warp(team, dest, source, nelems, pe_root):
    """one rank's elements on every rank"""
    outside("broadcast_warp")


def broadcastmem(team, dest, source, nelems, pe_root):
    """one rank's elements on every rank"""
    outside("broadcastmem")


def broadcastmem_block(team, dest, source, nelems, pe_root):
    """one rank's elements on every rank"""
    outside("broadcastmem_block")


def broadcastmem_warp(team, dest, source, nelems, pe_root):
    """one rank's elements on every rank"""
    outside("broadcastmem_warp")


def fcollect(team, dest, source, nelems):
    """every rank's elements on every rank, in rank order"""
    outside("fcollect")


def fcollect_block(team, dest, source, nelems):
    """every rank's elements on every rank, in rank order"""
    outside("fcollect_block")


def fcollect_warp(team, dest, source, nelems):
    """every rank's elements on every rank, in rank order"""
    outside("fcollect_warp")


def fcollectmem(team, dest, source, nelems):
    """every rank's elements on every rank, in rank order"""
    outside("fcollectmem")


def fcollectmem_block(team, dest, source, nelems):
    """every rank's elements on every rank, in rank order"""
    outside("fcollectmem_block")


def fcollectmem_warp(team, dest, source, nelems):
    """every rank's elements on every rank, in rank order"""
    outside("fcollectmem_warp")


def fence():
    """copies before are delivered before those after"""
    outside("fence")


def getmem(dest, source, nbytes, pe):
    """copies from a peer"""
    outside("getmem")


def getmem_block(dest, source, nbytes, pe):
    """copies from a peer"""
    outside("getmem_block")


def getmem_nbi(dest, source, nbytes, pe):
    """copies from a peer"""
    outside("getmem_nbi")


def getmem_nbi_block(dest, source, nbytes, pe):
    """copies from a peer"""
    outside("getmem_nbi_block")


def getmem_nbi_warp(dest, source, nbytes, pe):
    """copies from a peer"""
    outside("getmem_nbi_warp")


def getmem_nbi_wave(dest, source, nbytes, pe):
    """copies from a peer"""
    outside("getmem_nbi_wave")


def getmem_nbi_wg(dest, source, nbytes, pe):
    """copies from a peer"""
    outside("getmem_nbi_wg")


def getmem_warp(dest, source, nbytes, pe):
    """copies from a peer"""
    outside("getmem_warp")


def getmem_wave(dest, source, nbytes, pe):
    """copies from a peer"""
    outside("getmem_wave")


def getmem_wg(dest, source, nbytes, pe):
    """copies from a peer"""
    outside("getmem_wg")


def int_p(dest, value, pe, qp_id=None):
    """one word to a peer"""
    outside("int_p")


def my_pe():
    """this rank"""
    outside("my_pe")


def n_pes():
    """number of ranks"""
    outside("n_pes")


def putmem(dest, source, nbytes, pe):
    """copies to a peer"""
    outside("putmem")


def putmem_block(dest, source, nbytes, pe):
    """copies to a peer"""
    outside("putmem_block")


def putmem_nbi(dest, source, nbytes, pe, qp_id=None):
    """copies to a peer"""
    outside("putmem_nbi")


def putmem_nbi_block(dest, source, nbytes, pe, qp_id=None):
    """copies to a peer"""
    outside("putmem_nbi_block")


def putmem_nbi_warp(dest, source, nbytes, pe, qp_id=None):
    """copies to a peer"""
    outside("putmem_nbi_warp")


def putmem_nbi_wave(dest, source, nbytes, pe, qp_id=None):
    """copies to a peer"""
    outside("putmem_nbi_wave")


def putmem_nbi_wg(dest, source, nbytes, pe, qp_id=None):
    """copies to a peer"""
    outside("putmem_nbi_wg")


def putmem_rma(dest, source, nbytes, pe):
    """copies to a peer; which way is the runtime's choice"""
    outside("putmem_rma")


def putmem_rma_block(dest, source, nbytes, pe):
    """copies to a peer; which way is the runtime's choice"""
    outside("putmem_rma_block")


def putmem_rma_nbi(dest, source, nbytes, pe):
    """copies to a peer; which way is the runtime's choice"""
    outside("putmem_rma_nbi")


def putmem_rma_nbi_block(dest, source, nbytes, pe):
    """copies to a peer; which way is the runtime's choice"""
    outside("putmem_rma_nbi_block")


def putmem_rma_nbi_warp(dest, source, nbytes, pe):
    """copies to a peer; which way is the runtime's choice"""
    outside("putmem_rma_nbi_warp")


def putmem_rma_warp(dest, source, nbytes, pe):
    """copies to a peer; which way is the runtime's choice"""
    outside("putmem_rma_warp")


def putmem_signal(dest, source, nbytes, sig_addr, signal, sig_op, pe):
    """copies to a peer, then signals it"""
    outside("putmem_signal")


def putmem_signal_block(dest, source, nbytes, sig_addr, signal, sig_op, pe):
    """copies to a peer, then signals it"""
    outside("putmem_signal_block")


def putmem_signal_nbi(dest, source, nbytes, sig_addr, signal, sig_op, pe, qp_id=None):
    """copies to a peer, then signals it"""
    outside("putmem_signal_nbi")


def putmem_signal_nbi_block(dest, source, nbytes, sig_addr, signal, sig_op, pe, qp_id=None):
    """copies to a peer, then signals it"""
    outside("putmem_signal_nbi_block")


def putmem_signal_nbi_warp(dest, source, nbytes, sig_addr, signal, sig_op, pe, qp_id=None):
    """copies to a peer, then signals it"""
    outside("putmem_signal_nbi_warp")


def putmem_signal_nbi_wave(dest, source, nbytes, sig_addr, signal, sig_op, pe, qp_id=None):
    """copies to a peer, then signals it"""
    outside("putmem_signal_nbi_wave")


def putmem_signal_nbi_wg(dest, source, nbytes, sig_addr, signal, sig_op, pe, qp_id=None):
    """copies to a peer, then signals it"""
    outside("putmem_signal_nbi_wg")


def putmem_signal_rma(dest, source, nbytes, sig_addr, signal, sig_op, pe):
    """copies to a peer, then signals it; which way is the runtime's choice"""
    outside("putmem_signal_rma")


def putmem_signal_rma_block(dest, source, nbytes, sig_addr, signal, sig_op, pe):
    """copies to a peer, then signals it; which way is the runtime's choice"""
    outside("putmem_signal_rma_block")


def putmem_signal_rma_nbi(dest, source, nbytes, sig_addr, signal, sig_op, pe):
    """copies to a peer, then signals it; which way is the runtime's choice"""
    outside("putmem_signal_rma_nbi")


def putmem_signal_rma_nbi_block(dest, source, nbytes, sig_addr, signal, sig_op, pe):
    """copies to a peer, then signals it; which way is the runtime's choice"""
    outside("putmem_signal_rma_nbi_block")


def putmem_signal_rma_nbi_warp(dest, source, nbytes, sig_addr, signal, sig_op, pe):
    """copies to a peer, then signals it; which way is the runtime's choice"""
    outside("putmem_signal_rma_nbi_warp")


def putmem_signal_rma_warp(dest, source, nbytes, sig_addr, signal, sig_op, pe):
    """copies to a peer, then signals it; which way is the runtime's choice"""
    outside("putmem_signal_rma_warp")


def putmem_signal_warp(dest, source, nbytes, sig_addr, signal, sig_op, pe):
    """copies to a peer, then signals it"""
    outside("putmem_signal_warp")


def putmem_signal_wave(dest, source, nbytes, sig_addr, signal, sig_op, pe):
    """copies to a peer, then signals it"""
    outside("putmem_signal_wave")


def putmem_signal_wg(dest, source, nbytes, sig_addr, signal, sig_op, pe):
    """copies to a peer, then signals it"""
    outside("putmem_signal_wg")


def putmem_warp(dest, source, nbytes, pe):
    """copies to a peer"""
    outside("putmem_warp")


def putmem_wave(dest, source, nbytes, pe):
    """copies to a peer"""
    outside("putmem_wave")


def putmem_wg(dest, source, nbytes, pe):
    """copies to a peer"""
    outside("putmem_wg")


def quiet():
    """copies before are complete"""
    outside("quiet")


def quiet_pe(pe):
    """copies to a rank before are complete"""
    outside("quiet_pe")


def remote_mc_ptr(team, ptr):
    """the address for multimem accesses to all ranks"""
    outside("remote_mc_ptr")


def remote_ptr(local_ptr, pe):
    """a peer's address of a symmetric pointer"""
    outside("remote_ptr")


def signal_op(sig_addr, signal, sig_op, pe):
    """sets or adds to a signal word of a peer"""
    outside("signal_op")


def signal_wait_until(sig_addr, cmp_, cmp_val):
    """until a signal word compares with a value"""
    outside("signal_wait_until")


def sync_all():
    """all ranks meet"""
    outside("sync_all")


def sync_all_block():
    """all ranks meet"""
    outside("sync_all_block")


def sync_all_vec():
    """all ranks meet"""
    outside("sync_all_vec")


def sync_all_warp():
    """all ranks meet"""
    outside("sync_all_warp")


def sync_all_wave():
    """all ranks meet"""
    outside("sync_all_wave")


def sync_all_wg():
    """all ranks meet"""
    outside("sync_all_wg")


def team_my_pe(team):
    """this rank in a team"""
    outside("team_my_pe")


def team_n_pes(team):
    """ranks of a team"""
    outside("team_n_pes")


def team_sync_block(team):
    """all ranks of a team meet"""
    outside("team_sync_block")


def team_sync_warp(team):
    """all ranks of a team meet"""
    outside("team_sync_warp")


def team_translate_pe(src_team, src_pe, dest_team):
    """a rank of one team as a rank of another"""
    outside("team_translate_pe")


def uint64_wait_until_equals(ivar, value):
    """until a word equals a value"""
    outside("uint64_wait_until_equals")


def ulong_put_signal(dest, source, nelems, sig_addr, signal, sig_op, pe):
    """copies 64-bit words to a peer, then signals it"""
    outside("ulong_put_signal")
