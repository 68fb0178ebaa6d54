"""Helpers of programs that launch kernels."""
from . import tensor_descriptor
from .tensor_descriptor import TensorDescriptor

__all__ = ["TensorDescriptor", "tensor_descriptor"]
