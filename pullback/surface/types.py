"""`torch.types`: names for annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, TypeAlias, Union

from ..capture.shapes.numbers import SymBool, SymFloat, SymInt
from ..core.device import device, layout, qscheme
from ..core.dtype import dtype
from ..core.size import Size
from ..core.storage import UntypedStorage as Storage
from ..core.tensor import Tensor
from ..library.keys import DispatchKey

__all__ = ["Device", "FileLike", "Number", "Storage"]

_device, _dtype, _layout, _qscheme = device, dtype, layout, qscheme
_int, _float, _bool, _complex, _str, _bytes = int, float, bool, complex, str, bytes
_dispatchkey: TypeAlias = str | DispatchKey
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = Size | Sequence[int | SymInt]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]

Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = Union[str, os.PathLike[str], IO[bytes]]  # noqa: UP007 - a special form cannot be the left of `|`
Number: TypeAlias = int | float | bool
_Number = (int, float, bool)

IntLikeType: TypeAlias = int | SymInt
FloatLikeType: TypeAlias = float | SymFloat
BoolLikeType: TypeAlias = bool | SymBool
PySymType: TypeAlias = SymInt | SymFloat | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)
