"""How a function that a transform has made is made again, by whoever captures a call of it (`vmap(f)`, `grad(f)`, made before).

In: what `functools.wraps` has left of the function transformed (`__wrapped__`), the maker and its options. What always holds: a function
that copies another's attributes, as decorators do, is not taken for one that was made.
"""

from __future__ import annotations

import types
from collections.abc import Callable


def remember(made: Callable, maker: Callable, **options) -> None:
    """`made` is `maker(made.__wrapped__, **options)`."""
    made.made_by = (made.__code__, maker, options)  # type: ignore[attr-defined]


def is_made(function: object) -> bool:
    made_by = getattr(function, "__dict__", {}).get("made_by")
    return made_by is not None and isinstance(function, types.FunctionType) and made_by[0] is function.__code__
