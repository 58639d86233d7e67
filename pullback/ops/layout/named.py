"""Named dimensions: `refine_names`, `rename`, `align_to`, and how names go through operators.

In: tensors, and names for their dimensions (None: a dimension without one). Out: tensors on the same memory that know the
names, and results of operators with the names that follow. What always holds: names never change a number; they live in
the tensor's `__dict__` behind the key bit `NAMED`, so tensors without names pay nothing; gradients have none; and an
operator that says nothing of names refuses named tensors.
"""

from __future__ import annotations

from itertools import zip_longest

from ...core import modes
from ...core.geometry import wrap_dim
from ...core.layers import above, extend
from ...core.modes import ambient
from ...core.tensor import NAMED, Tensor
from ..family.along import ALONG
from ..family.contraction import CONTRACTION
from ..family.pointwise import POINTWISE
from ..family.reduction import REDUCTION
from ..shape.views import alias, permute, unsqueeze
from ..system import dispatch as calls
from ..system.calls import front
from ..system.operator import Operator, rule_of

Names = tuple  # of str or None, one per dimension


# ---- names of one tensor
def names_of(t: Tensor) -> Names:
    """The names of a tensor's dimensions; None for those without.

    >>> torch.zeros(2, 3, names=("N", "C")).names
    ('N', 'C')
    """
    named = t.__dict__.get("dimension_names") if t._keys & NAMED else None
    return named if named is not None else (None,) * t._array.ndim


def set_names(t: Tensor, names: Names | None) -> Tensor:
    """Give a tensor names, or take them away."""
    if names is None or not any(names):
        t.__dict__.pop("dimension_names", None)
        t._keys &= ~NAMED
    else:
        t.__dict__["dimension_names"] = tuple(names)
        t._keys |= NAMED
    return t


def check_names(names: Names, t: Tensor) -> Names:
    """Names that a tensor may have, or PyTorch's errors."""
    names = tuple(names)
    if len(names) != t._array.ndim:
        raise RuntimeError(
            f"Number of names ({len(names)}) and number of dimensions in tensor ({t._array.ndim}) do not match. Attempted to "
            f"create a tensor with names {_shown(names)}"
        )
    for name in names:
        _check_name(name)
    twice = next((n for n in names if n is not None and names.count(n) > 1), None)
    if twice is not None:
        raise RuntimeError(
            f"Cannot construct a tensor with duplicate names. Got names: {_shown(names)}. Duplicate: '{twice}'."
        )
    return names


def _check_name(name) -> None:
    if name is not None and not isinstance(name, str):
        raise TypeError(f"expected None or string for Dimname but got {type(name).__name__}")
    if name is not None and not name.isidentifier():
        raise RuntimeError(
            "Invalid name: a valid identifier contains only digits, alphabetical characters, and/or underscore and starts "
            f"with a non-digit. got: '{name}'."
        )


def _shown(names: Names) -> str:
    return "[" + ", ".join("None" if n is None else f"'{n}'" for n in names) + "]"


def position_of(name: str, t: Tensor) -> int:
    """Which dimension has a name."""
    if name not in names_of(t):
        raise RuntimeError(f"Name '{name}' not found in Tensor{_shown(names_of(t))}.")
    return names_of(t).index(name)


# ---- how names go through operators
def match(a: str | None, b: str | None, ours: Names, theirs: Names) -> str | None:
    """The name of a dimension that two tensors share."""
    if a is not None and b is not None and a != b:
        raise RuntimeError(
            f"Error when attempting to broadcast dims {_shown(ours)} and dims {_shown(theirs)}: dim '{a}' and dim '{b}' are at "
            "the same position from the right but do not match."
        )
    misplaced = a if b is None and a in theirs else b if a is None and b in ours else None
    if misplaced is not None:
        raise RuntimeError(
            f"Misaligned dims when attempting to broadcast dims {_shown(ours)} and dims {_shown(theirs)}: dim '{misplaced}' "
            "appears in a different position from the right across both lists."
        )
    return a if a is not None else b


def unify(ours: Names, theirs: Names) -> Names:
    """The names of two tensors that broadcast against each other, matched from the right."""
    pairs = list(zip_longest(reversed(ours), reversed(theirs)))
    return tuple(match(a, b, ours, theirs) for a, b in pairs)[::-1]


def _unified(op: Operator, args: tuple) -> Names:
    found: Names = ()
    for t in op.tensors(args):
        found = unify(found, names_of(t))
    return found


def _reduced(op: Operator, args: tuple) -> Names:
    t, axes, keepdim = REDUCTION.bind(op, args)[:3]
    return tuple(n for d, n in enumerate(names_of(t)) if keepdim or d not in axes)


def _along(op: Operator, args: tuple) -> Names:
    index = op.schema.index
    names = names_of(args[0])
    if "keepdim" not in index or args[index["keepdim"]]:
        return names
    return _without(names, args[index["dim"]])


def _without(names: Names, dim: int) -> Names:
    d = wrap_dim(dim, len(names))
    return names[:d] + names[d + 1 :]


def _transposed(names: Names, a: int, b: int) -> Names:
    order = list(names)
    a, b = wrap_dim(a, len(names)), wrap_dim(b, len(names))
    order[a], order[b] = order[b], order[a]
    return tuple(order)


def _squeezed(op: Operator, args: tuple) -> Names:
    t = args[0]
    dims = args[1] if len(args) > 1 else range(t._array.ndim)
    axes = {wrap_dim(d, t._array.ndim) for d in ((dims,) if isinstance(dims, int) else dims)}
    return tuple(n for d, n in enumerate(names_of(t)) if d not in axes or t._array.shape[d] != 1)


def _contracted(op: Operator, args: tuple) -> Names:
    """Rows of the first matrix and columns of the second; what an added tensor has must agree."""
    ours, theirs = map(names_of, op.tensors(args)[-2:])
    if len(theirs) == 1:
        result = ours[:-1]
    else:
        batch = unify(ours[:-2], theirs[:-2])
        result = (*batch, *(ours[-2:-1] if len(ours) > 1 else ()), theirs[-1])
    return unify(names_of(args[0]), result) if len(op.tensors(args)) == 3 else result


rule_of(
    "dim_names", "alias", "clone", "_to_copy", "detach", "empty_like", "zeros_like", "ones_like", "full_like", "rand_like",
    "randn_like", "copy", "zero", "fill", "_conj", "_neg_view", "conj_physical", "bernoulli", "dropout", "native_dropout",
    "resolve_conj", "resolve_neg", "cat",
)(_unified)  # fmt: skip
rule_of("dim_names", "slice", "split", "split_with_sizes")(lambda op, args: names_of(args[0]))
rule_of("dim_names", "select", "unbind")(lambda op, args: _without(names_of(args[0]), args[1]))
rule_of("dim_names", "transpose")(lambda op, args: _transposed(names_of(args[0]), *args[1:3]))
rule_of("dim_names", "t")(lambda op, args: names_of(args[0])[::-1])
rule_of("dim_names", "permute")(lambda op, args: tuple(names_of(args[0])[d] for d in args[1]))
rule_of("dim_names", "squeeze")(_squeezed)
rule_of("dim_names", "expand")(lambda op, args: (None,) * (len(args[1]) - args[0]._array.ndim) + names_of(args[0]))
rule_of("dim_names", "view_as_real")(lambda op, args: (*names_of(args[0]), None))  # `real` and `imag` select from it
_BY_FAMILY = {POINTWISE: _unified, REDUCTION: _reduced, ALONG: _along, CONTRACTION: _contracted}


def follow(op: Operator, args: tuple) -> Names:
    """The names of an operator's results."""
    rule = op.declared.dim_names or _BY_FAMILY.get(op.family)
    if rule is None:
        raise RuntimeError(
            f"{op.qualified_name} is not yet supported with named tensors. Please drop names via `tensor = "
            "tensor.rename(None)`, call the op with an unnamed tensor, and set names on the result of the operation."
        )
    return rule(op, args)


def named_layer(op: Operator, args: tuple):
    """Run an operator of which some argument has names; in a backward names mean nothing."""
    named = not ambient.tasks and any(any(names_of(t)) for t in op.tensors(args))  # a copy may have the bit alone
    names = follow(op, args) if named else None
    with modes.masked(0, modes.UNNAMED):
        out = calls.autograd_layer(op, args)
    for t in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(t, Tensor):
            set_names(t, names)
    return out


def named_write(op: Operator, target: Tensor, args: tuple) -> None:
    """After a write: the target takes on the names that its operands bring."""
    if not ambient.tasks:
        set_names(target, unify(names_of(target), follow(op.inplace_of, args)))


def named_out(out: Tensor, result: Tensor) -> None:
    """Before a result is put into `out`: it has the names of the result, or takes them on."""
    names = names_of(result)
    if out._keys & NAMED and names_of(out) != names:
        raise RuntimeError(
            f"Name mismatch: the tensor given as out= has the names {_shown(names_of(out))}, and the result {_shown(names)}. "
            "Rename one of them to write it there."
        )
    set_names(out, names)


def positions(args: tuple, kwargs: dict | None = None) -> tuple | None:
    """Arguments with positions in the place of names, where the first is a named tensor; None where there is no name."""
    t = args[0] if args else None
    if not isinstance(t, Tensor) or not t._keys & NAMED:
        return None
    keywords = kwargs or {}
    changed = [_position(a, t) for a in args[1:]], {k: _position(v, t) for k, v in keywords.items()}
    if all(a is b for a, b in zip(changed[0], args[1:], strict=True)) and changed[1] == keywords:
        return None
    return (t, *changed[0]), changed[1]


def _position(a, t: Tensor):
    if isinstance(a, str):
        return position_of(a, t)
    if isinstance(a, (tuple, list)) and a and all(isinstance(x, str) for x in a):
        return tuple(position_of(x, t) for x in a)
    return a


# ---- public
def _renamed(t: Tensor, names: Names | None) -> Tensor:
    """An alias with other names."""
    with modes.masked(0, modes.UNNAMED):
        result = calls.dispatch(alias, (t,))
    return set_names(result, None if names is None else check_names(names, t))


def _filled(names: tuple, t: Tensor, own: Names) -> tuple:
    """`...` among names stands for those in between."""
    if "..." not in names and Ellipsis not in names:
        return names
    at = names.index("...") if "..." in names else names.index(Ellipsis)
    after = len(names) - at - 1
    return (*names[:at], *own[at : len(own) - after], *names[at + 1 :])


def _new_names(t: Tensor, names: tuple, mapping: dict) -> Names | None:
    if names and mapping:
        raise RuntimeError("rename: expected either positional args or keyword args to be passed in, but not both.")
    if names == (None,):
        return None
    if not mapping:
        if len(names) == 1 and isinstance(names[0], (tuple, list)):
            names = tuple(names[0])
        return _filled(names, t, names_of(t))
    for old in mapping:
        if old not in names_of(t):
            raise RuntimeError(
                f"rename: Tried to rename dim '{old}' to dim '{mapping[old]}' in Tensor[{', '.join(map(str, names_of(t)))}] but "
                f"dim '{old}' does not exist"
            )
    return tuple(mapping.get(n, n) for n in names_of(t))


@front("Tensor.rename")
def rename(self, *names, **rename_map) -> Tensor:
    """The tensor under other names: `rename('N', 'C')`, `rename(N='batch')`, `rename(None)` for none."""
    return _renamed(self, _new_names(self, names, rename_map))


@front("Tensor.rename_")
def rename_(self, *names, **rename_map) -> Tensor:
    """`rename` of this tensor itself."""
    result = _new_names(self, names, rename_map)
    return set_names(self, None if result is None else check_names(result, self))


@front("Tensor.refine_names")
def refine_names(self, *names) -> Tensor:
    """Give names to dimensions that have none; those that are there must stay."""
    if len(names) == 1 and isinstance(names[0], (tuple, list)):
        names = tuple(names[0])
    own = names_of(self)
    wanted = check_names(_filled(tuple(names), self, own), self)
    for d, (have, want) in enumerate(zip(own, wanted, strict=True)):
        if have is not None and want != have:
            less = want is None
            raise RuntimeError(
                f"refine_names: cannot coerce Tensor{_shown(own)} to Tensor{_shown(wanted)} because "
                + (f"'{have}' is more specific than None" if less else f"'{have}' is different from '{want}'")
                + f" at index {d}"
            )
    return _renamed(self, wanted)


@front("Tensor.align_to")
def align_to(self, *names) -> Tensor:
    """Dimensions in the order of `names`; one of size 1 for a name that is not there, the rest in the place of `...`."""
    own = names_of(self)
    if None in own:
        raise RuntimeError(
            f"align_to: All input dims must be named. Found unnamed dim at index {own.index(None)} of Tensor{_shown(own)}"
        )
    if "..." in names or Ellipsis in names:
        at = names.index("...") if "..." in names else names.index(Ellipsis)
        names = (*names[:at], *(n for n in own if n not in names), *names[at + 1 :])
    lost = [n for n in own if n not in names]
    if lost:
        raise RuntimeError(
            f"align_to: Cannot find dim '{lost[0]}' from Tensor{_shown(own)} in desired alignment {_shown(names)}."
        )
    with modes.masked(0, modes.UNNAMED):
        result = calls.dispatch(permute, (self, tuple(own.index(n) for n in names if n in own)))
        for d, n in enumerate(names):
            result = result if n in own else calls.dispatch(unsqueeze, (result, d))
    return set_names(result, tuple(names))


@front("Tensor.align_as")
def align_as(self, other: Tensor) -> Tensor:
    """`align_to` the names of another tensor."""
    return align_to(self, *names_of(other))


@front("torch.align_tensors")
def align_tensors(*tensors) -> tuple:
    """All tensors aligned to the names of the one with most dimensions."""
    given = tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    longest = max(given, key=lambda t: t._array.ndim)
    return tuple(align_as(t, longest) for t in given)


@front("Tensor.has_names")
def has_names(self) -> bool:
    """Whether any dimension has a name."""
    return any(names_of(self))


def _assign(self: Tensor, names) -> None:
    set_names(self, None if names is None else check_names(names, self))


extend(Tensor, __name__, names=property(names_of, _assign))
above.named_layer = named_layer
above.positions = positions
above.named_write = named_write
above.named_out = named_out
