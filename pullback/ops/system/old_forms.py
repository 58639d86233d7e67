"""Deprecated calls with a number in front of tensors: `p.add_(-lr, g)`, `torch.addmm(beta, m, alpha, a, b)`; and `torch.rsub(x, 3, alpha)`,
which is none: beside a number, the schema has the factor in a row with the others.

In: a public function and all positional arguments of a call that has more of them than its signature. Out: what the call of
today gives (`p.add_(g, alpha=-lr)`), after a warning that says once per function how to write it; TypeError where the
arguments fit no old form either.
"""

from __future__ import annotations

from ...core.errors import warn_once
from ...core.tensor import Tensor

_FACTORS = {
    **dict.fromkeys(("add", "sub"), ("alpha",)),
    **dict.fromkeys(("addcmul", "addcdiv"), ("value",)),
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), ("beta", "alpha")),
}


def has_old_form(name: str) -> bool:
    """Whether an operator of this name was once called with numbers in front."""
    return name in _FACTORS or name == "rsub"


def call_old_form(function, args: tuple, keywords: dict):
    """A call with more positional arguments than the signature has, as it is written today."""
    name = function.__name__
    source = name.removesuffix("_")
    if source == "rsub":
        return _call_rsub(function, args, keywords)
    tensors, factors = _sorted_out(source, args)
    if factors is None:
        expected = 2 if source in ("add", "sub") else 3
        raise TypeError(f"{name}() takes {expected} positional arguments but {len(args)} were given")
    today = ", ".join(f"{factor}=..." for factor in factors)
    warn_once(
        f"This overload of {name} is deprecated: numbers in front of tensors. "
        f"Consider using the signature {name}(tensors, {today}) instead.",
    )
    return function(*tensors, **factors, **keywords)


def _call_rsub(function, args: tuple, keywords: dict):
    """`rsub` with its factor by position, which it may have where what is subtracted from is a number."""
    x, other, *factors = args
    if len(factors) != 1 or _number(other) is None:
        raise TypeError(f"rsub() takes from 0 to 2 positional arguments but {len(args)} were given")
    return function(x, _number(other), alpha=factors[0], **keywords)


def _number(value):
    """A number, also of a tensor without dimensions of which no gradient is asked; None of other tensors."""
    if isinstance(value, Tensor):
        return value.item() if not value._array.shape and not value.requires_grad else None
    return value


def _sorted_out(source: str, args: tuple) -> tuple[list, dict | None]:
    """The tensors in order, and the factors by name; None for the factors where the arguments fit no old form."""
    names = _FACTORS[source]
    if source in ("add", "sub"):  # (input, alpha, other): all three may be numbers
        alpha = _number(args[1]) if len(args) == 3 else None
        return [args[0], args[-1]], None if alpha is None else {"alpha": alpha}
    tensors = [a for a in args if isinstance(a, Tensor)]
    numbers = [a for a in args if not isinstance(a, Tensor)]
    fits = len(tensors) == 3 and 1 <= len(numbers) <= len(names)
    fits = fits and isinstance(args[-1], Tensor) and isinstance(args[-2], Tensor)
    return tensors, dict(zip(names, numbers, strict=False)) if fits else None
