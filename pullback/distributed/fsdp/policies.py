"""What `fully_shard` is told about dtypes and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes in which parameters are gathered, gradients reduced, and outputs given."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Nothing is moved."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts of parameters stay in host memory: where they are anyway, for modules on the CPU."""

    pin_memory: bool = True
