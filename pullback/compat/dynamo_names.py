"""What programs and tests import of PyTorch's private modules around `compile`, and that has no other home here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..capture.front.config import config
from ..core import modes
from ..core.modes import ambient
from ..core.tensor import Tensor
from ..ops.system.operator import public

range_iterator: Any = type(iter(range(0)))


def same(
    ref: Any,
    res: Any,
    fp64_ref: Any = None,
    cos_similarity: bool = False,
    tol: float = 1e-4,
    equal_nan: bool = False,
    exact_dtype: bool = True,
    **ignored: Any,
) -> bool:
    """Whether two results are the same: of one structure, with tensors that are close."""
    if isinstance(ref, (list, tuple, set, frozenset)):
        return type(ref) is type(res) and len(ref) == len(res) and (
            ref == res
            if isinstance(ref, (set, frozenset))
            else all(same(a, b, None, cos_similarity, tol, equal_nan, exact_dtype) for a, b in zip(ref, res, strict=True))
        )  # fmt: skip
    if isinstance(ref, dict):
        return set(ref) == set(res) and all(
            same(ref[k], res[k], None, cos_similarity, tol, equal_nan, exact_dtype) for k in ref
        )
    if isinstance(ref, Tensor):
        if not isinstance(res, Tensor) or ref.shape != res.shape or exact_dtype and ref.dtype is not res.dtype:
            return False
        return bool(public("torch", "allclose")(ref, res.to(ref.dtype), atol=tol, rtol=tol, equal_nan=equal_nan))
    if isinstance(ref, float) and isinstance(res, float):
        return ref == res or abs(ref - res) <= tol * max(1.0, abs(ref)) or equal_nan and ref != ref and res != res
    if isinstance(ref, (str, int, bool, complex, type(None), type)):
        return bool(ref == res)
    if hasattr(ref, "__dict__") and type(ref) is type(res):
        return same(vars(ref), vars(res), None, cos_similarity, tol, equal_nan, exact_dtype)
    return bool(ref == res)


def istype(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """Whether a value is of exactly one of these types."""
    return type(value) in (kinds if isinstance(kinds, (tuple, list, set)) else (kinds,))


def ifdynstaticdefault(static: Any, dynamic: Any) -> Any:
    """The first where sizes are numbers until they change, the second where they are symbols from the start."""
    return static if config.assume_static_by_default else dynamic


def innermost_fn(fn: Callable) -> Callable:
    """The function that a compiled or decorated one was made of."""
    while hasattr(fn, "_torchdynamo_orig_callable"):
        fn = fn._torchdynamo_orig_callable
    return fn


def is_any_autocast_enabled() -> bool:
    """Whether autocast is on for some device."""
    return bool(ambient.mode & modes.AUTOCAST)
