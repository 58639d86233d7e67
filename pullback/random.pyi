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


from pullback.core.random import Generator as Generator

default_generator: _Any
def fork_rng(devices: _Any = None, enabled: _bool = True, _caller: _Any = 'fork_rng', _devices_kw: _Any = 'devices', device_type: _Any = None) -> _Any: ...
def get_rng_state() -> _Tensor: ...
def initial_seed() -> _int: ...
def manual_seed(seed: _int) -> _Any: ...
def seed() -> _int: ...
def set_rng_state(new_state: _Tensor) -> None: ...
def thread_safe_generator() -> _Any: ...
