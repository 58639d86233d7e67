"""Names of the 2:4 semi-structured formats. They are made of GPU kernels that are not here: using them raises."""

from __future__ import annotations


class SparseSemiStructuredTensor:
    """A tensor of which two of every four elements are zero, in a format of NVIDIA's sparse tensor cores."""

    _DEFAULT_ALG_ID = 0  # which of a library's algorithms its products take; programs set it before they make one

    def __init__(self, *args, **kwargs):
        raise RuntimeError(f"{type(self).__name__} needs a GPU with sparse tensor cores; it is not supported here")


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """The CUTLASS form."""


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """The cuSPARSELt form."""


def to_sparse_semi_structured(original_tensor, transposed: bool = False) -> SparseSemiStructuredTensor:
    """Convert a dense tensor to a semi-structured one: not supported here."""
    return SparseSemiStructuredTensor(original_tensor)
