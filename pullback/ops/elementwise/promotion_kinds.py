"""`elementwise_dtypes`: in which dtype an element-wise operator computes and gives its result, by the kind of operator.

In: operands (tensors and numbers) and a kind. Out: (dtype of the computation, dtype of the result).
"""

from __future__ import annotations

import enum
from typing import Any

from ...core import dtype as dtypes
from ...core.dtype import dtype
from ...core.modes import ambient
from ...core.promotion import result_type

COMPUTED_AS = {dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32, dtypes.complex32: dtypes.complex64}
REAL = {dtypes.complex32: dtypes.float16, dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}


class ELEMENTWISE_TYPE_PROMOTION_KIND(enum.Enum):
    """What an operator makes of the dtype that its operands meet in."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


def elementwise_dtypes(*args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> tuple[dtype, dtype]:
    """See the module's docstring.

    >>> elementwise_dtypes(torch.ones(2, dtype=torch.half), type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
    (torch.float32, torch.float16)
    """
    kind, operands = type_promotion_kind, [a for a in args if a is not None]
    found = result_type(*operands)
    computed = COMPUTED_AS.get(found, found)
    if kind is ELEMENTWISE_TYPE_PROMOTION_KIND.NO_OPMATH:
        return found, found
    if kind is ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT and not (found.is_floating_point or found.is_complex):
        return ambient.default_dtype, ambient.default_dtype
    if kind is ELEMENTWISE_TYPE_PROMOTION_KIND.COMPLEX_TO_FLOAT and found.is_complex:
        return computed, REAL[found]
    if kind is ELEMENTWISE_TYPE_PROMOTION_KIND.BOOL_TO_LONG and found is dtypes.bool:
        return dtypes.int64, dtypes.int64
    return computed, dtypes.bool if kind is ELEMENTWISE_TYPE_PROMOTION_KIND.ALWAYS_BOOL else found
