"""Tile orders: which output tile a program computes. A tile order is a jit function
    pid_m, pid_n = order(pid, tiles_m, tiles_n, rank, world, GROUP_M)
passed to a kernel as a constexpr argument. rank and world let an order begin with the tiles whose inputs are local, or
whose results a peer waits for."""
import triton
import triton.language as tl


@triton.jit
def row_major(pid, tiles_m, tiles_n, rank, world, GROUP_M: tl.constexpr):
    """One row of tiles after the other."""
    return pid // tiles_n, pid % tiles_n


@triton.jit
def grouped(pid, tiles_m, tiles_n, rank, world, GROUP_M: tl.constexpr):
    """GROUP_M rows of tiles, column by column: neighbours in time share rows of A and columns of B in the cache."""
    width = GROUP_M * tiles_n
    group = pid // width
    first_m = group * GROUP_M
    rows = min(tiles_m - first_m, GROUP_M)
    return first_m + (pid % width) % rows, (pid % width) // rows


@triton.jit
def own_rows_first(pid, tiles_m, tiles_n, rank, world, GROUP_M: tl.constexpr):
    """Grouped, rotated so that the rows this rank owns come first, then those of rank + 1, ...: for all-gather + GEMM."""
    pid_m, pid_n = grouped(pid, tiles_m, tiles_n, rank, world, GROUP_M)
    return (pid_m + rank * tiles_m // world) % tiles_m, pid_n


@triton.jit
def own_rows_last(pid, tiles_m, tiles_n, rank, world, GROUP_M: tl.constexpr):
    """Grouped, rotated so that the rows of rank + 1 come first and this rank's own last: for GEMM + reduce-scatter, where the
    peers wait for their rows."""
    pid_m, pid_n = grouped(pid, tiles_m, tiles_n, rank, world, GROUP_M)
    return (pid_m + (rank + 1) * tiles_m // world) % tiles_m, pid_n


@triton.jit
def snake_turns(tiles):
    """How many tiles this instance takes where each turn hands one to every instance, from the other end in every second turn: of work
    that falls from tile to tile each gets about the same."""
    grid = tl.num_programs(0)
    turns = tiles // grid
    return turns + (snake_tile(turns) < tiles).to(tl.int32)


@triton.jit
def snake_tile(turn):
    """The tile of a turn of this instance."""
    grid = tl.num_programs(0)
    at = tl.program_id(0)
    return turn * grid + tl.where(turn % 2 == 0, at, grid - 1 - at)
