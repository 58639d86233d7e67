# Written by `python -m pullback.ops.system.stubs` from the operators' schemas; not to be edited.

from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable as _Callable, Sequence as _Sequence
from typing import Any as _Any, NamedTuple as _NamedTuple, Self as _Self, TypeAlias as _TypeAlias, overload as _overload

from pullback.core.device import device as _device, layout as _layout, memory_format as _memory_format
from pullback.core.dtype import dtype as _dtype
from pullback.core.random import Generator as _Generator
from pullback.core.tensor import Tensor as _Tensor

_Number: _TypeAlias = _int | _float | _complex
_Ints: _TypeAlias = _Sequence[_int]
_DeviceLike: _TypeAlias = _device | _str | _int


from pullback.ops.layout.sparse.semi_structured import SparseSemiStructuredTensor as SparseSemiStructuredTensor
from pullback.ops.layout.sparse.semi_structured import SparseSemiStructuredTensorCUSPARSELT as SparseSemiStructuredTensorCUSPARSELT
from pullback.ops.layout.sparse.semi_structured import SparseSemiStructuredTensorCUTLASS as SparseSemiStructuredTensorCUTLASS
from pullback.ops.layout.sparse import arithmetic as arithmetic
from pullback.ops.layout.sparse.testing import as_sparse_gradcheck as as_sparse_gradcheck
from pullback.ops.layout.sparse.invariants import check_sparse_tensor_invariants as check_sparse_tensor_invariants
from pullback.ops.layout.sparse import construct as construct
from pullback.ops.layout.sparse import conversion as conversion
from pullback.ops.layout.sparse import convert as convert
from pullback.ops.layout.sparse import diagonals as diagonals
from pullback.ops.layout.sparse.table import execute_sparse as execute_sparse
from pullback.ops.layout.sparse import gradients as gradients
from pullback.ops.layout.sparse import invariants as invariants
from pullback.ops.layout.sparse import kernels as kernels
from pullback.ops.layout.sparse import layouts as layouts
from pullback.ops.layout.sparse import masks as masks
from pullback.ops.layout.sparse import parts as parts
from pullback.ops.layout.sparse import products as products
from pullback.ops.layout.sparse import reductions as reductions
from pullback.ops.layout.sparse.resizing import resize_sparse_ as resize_sparse_
from pullback.ops.layout.sparse import resizing as resizing
from pullback.ops.layout.sparse import semi_structured as semi_structured
from pullback.ops.layout.sparse import shapes as shapes
from pullback.ops.layout.sparse import softmaxes as softmaxes
from pullback.ops.layout.sparse import table as table
from pullback.ops.layout.sparse import testing as testing
from pullback.ops.layout.sparse.semi_structured import to_sparse_semi_structured as to_sparse_semi_structured
from pullback.ops.layout.sparse import typed as typed
from pullback.ops.layout.sparse import without_data as without_data
from pullback.ops.layout.sparse.writes import write_sparse as write_sparse
from pullback.ops.layout.sparse import writes as writes

BFloat16Tensor: _Any
BoolTensor: _Any
ByteTensor: _Any
CharTensor: _Any
ComplexDoubleTensor: _Any
ComplexFloatTensor: _Any
ComplexHalfTensor: _Any
DoubleTensor: _Any
FloatTensor: _Any
HalfTensor: _Any
IntTensor: _Any
LongTensor: _Any
SPARSE: _int
ShortTensor: _Any
def addmm(mat: _Any, mat1: _Any, mat2: _Any, *, beta: _Any = 1, alpha: _Any = 1) -> _Tensor: ...
def log_softmax(input: _Any, dim: _Any, *, dtype: _dtype | None = None) -> _Tensor: ...
def mm(sparse: _Any, dense: _Any, reduce: _Any = None) -> _Tensor: ...
def sampled_addmm(input: _Tensor, mat1: _Tensor, mat2: _Tensor, *, beta: _Number | _Tensor = 1, alpha: _Number | _Tensor = 1, out: _Tensor | None = None) -> _Tensor: ...
def softmax(input: _Any, dim: _Any, *, dtype: _dtype | None = None) -> _Tensor: ...
def spdiags(diagonals: _Tensor, offsets: _Tensor, shape: _Any, layout: _layout | None = None) -> _Tensor: ...
def sum(input: _Any, dim: _Any = None, dtype: _dtype | None = None) -> _Tensor: ...
