"""Tensor descriptors made by the host: a kernel's parameter with .load([i, j]) and .store([i, j], value)."""
from dataclasses import dataclass
from typing import Any, List

MOST_AXES = 5
MOST_ELEMENTS = 1 << 20


def strides_of(tensor):
    """Strides in elements, of torch's and NumPy's arrays."""
    if hasattr(tensor, "stride"):
        return tuple(tensor.stride())
    return tuple(s // tensor.itemsize for s in tensor.strides)


@dataclass
class TensorDescriptor:
    """A tensor in memory that a kernel reads and writes in blocks. Sizes and strides in elements; the last stride is 1. What a block
    reaches beyond the tensor reads as zero and is not written."""
    base: Any
    shape: List[int]
    strides: List[int]
    block_shape: List[int]
    padding: str = "zero"

    def __post_init__(self):
        rank = len(self.shape)
        if not 1 <= rank <= MOST_AXES:
            raise ValueError(f"a tensor descriptor has 1 to {MOST_AXES} axes, not {rank}")
        if len(self.strides) != rank or len(self.block_shape) != rank:
            raise ValueError("a tensor descriptor has as many strides and block sizes as axes")
        if self.strides[-1] != 1:
            raise ValueError("the last axis of a tensor descriptor must be contiguous")
        if any(s <= 0 for s in self.shape):
            raise ValueError("the axes of a tensor descriptor must not be empty")
        elements = 1
        for b in self.block_shape:
            if b < 1 or b & (b - 1):
                raise ValueError(f"a block size is a power of two, not {b}")
            elements *= b
        if elements > MOST_ELEMENTS:
            raise ValueError(f"a block of {elements} elements is too large; {MOST_ELEMENTS} is the most")
        if self.padding != "zero":
            raise ValueError("tensor descriptors are padded with zeros; other padding is not supported")

    @staticmethod
    def from_tensor(tensor, block_shape, padding="zero"):
        return TensorDescriptor(tensor, list(tensor.shape), list(strides_of(tensor)), list(block_shape), padding)
