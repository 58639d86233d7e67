"""einsum: sums of products, written as subscripts.

`parse` reads the equation (or the sublist format is turned into one) with PyTorch's grammar and errors. Then every operand is
brought to one order of labels (diagonals taken, absent labels as size 1), and operands are contracted two at a time by
one batched matrix product each, left to right or along the path given.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..core.tensor import Tensor
from .calls import export_operator, front
from .contraction import _count
from .family.base import PLAIN_FAMILY
from .operator import Operator

ELLIPSIS = "."  # stands for "..." among the labels


@dataclass(frozen=True)
class Equation:
    """Labels of each operand, and of the result where it is written out."""

    operands: tuple[tuple[str, ...], ...]
    output: tuple[str, ...] | None


@lru_cache(512)
def parse(equation: str) -> Equation:
    """Read `"ij,jk->ik"`."""
    arrow = equation.find("->")
    left = equation if arrow < 0 else equation[:arrow]
    operands, at = [], 0
    for i, term in enumerate(left.split(",")):
        operands.append(_labels(equation, at, at + len(term), f"operand {i}"))
        at += len(term) + 1
    output = None if arrow < 0 else _labels(equation, arrow + 2, len(equation), "output")
    return Equation(tuple(operands), output)


def _labels(equation: str, start: int, stop: int, where: str) -> tuple[str, ...]:
    labels: list[str] = []
    is_output = where == "output"
    dots = " (...)" if is_output else ""
    at = start
    while at < stop:
        c = equation[at]
        if c == ".":
            if ELLIPSIS in labels:
                already = (
                    "but an ellipsis (...) was already found"
                    if is_output
                    else "for which an ellipsis was already found"
                )
                raise RuntimeError(f"einsum(): found '.' for {where} {already}")
            if equation[at : min(at + 3, stop)] != "...":
                raise RuntimeError(f"einsum(): found '.' for {where} that is not part of any ellipsis{dots}")
            labels.append(ELLIPSIS)
            at += 2
        elif c.isascii() and c.isalpha():
            if is_output and c in labels:
                raise RuntimeError(f"einsum(): output subscript {c} appears more than once in the output")
            labels.append(c)
        elif c != " ":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {at} in the equation string, subscripts must be in [a-zA-Z]"
            )
        at += 1
    return tuple(labels)


def _einsum(equation: str, tensors: tuple, path=None) -> Tensor:
    parsed = parse(equation)
    if not tensors:
        raise RuntimeError("einsum(): must provide at least one operand")
    if len(tensors) != len(parsed.operands):
        more = len(tensors) > len(parsed.operands)
        raise RuntimeError(
            f"einsum(): {'more' if more else 'fewer'} operands were provided than specified in the equation"
        )
    covered = _covered(parsed, tensors)
    order, kept = _label_order(parsed, covered)
    _check_sizes(parsed, tensors, covered)
    operands = [_prepared(t, labels, covered, order) for t, labels in zip(tensors, parsed.operands, strict=True)]
    return _contract(operands, kept, len(order), path)


def _covered(parsed: Equation, tensors: tuple) -> int:
    """How many dimensions the ellipsis stands for (the most that any operand needs)."""
    most = 0
    for i, (labels, t) in enumerate(zip(parsed.operands, tensors, strict=True)):
        named = len(labels) - (ELLIPSIS in labels)
        if ELLIPSIS in labels:
            if named > t.ndim:
                raise RuntimeError(
                    f"einsum(): the number of subscripts in the equation ({named}) is more than the number of dimensions ({t.ndim}) for operand {i}"
                )
            most = max(most, t.ndim - named)
        elif named != t.ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions ({t.ndim}) for operand {i} "
                "and no ellipsis was given"
            )
    return most


def _label_order(parsed: Equation, covered: int) -> tuple[list, int]:
    """All labels in the order of the working dimensions, those of the result first; and how many of them stay."""
    counts: dict[str, int] = {}
    for labels in parsed.operands:
        for label in labels:
            counts[label] = counts.get(label, 0) + 1
    hidden = [(ELLIPSIS, d) for d in range(covered)]
    if parsed.output is None:
        result = hidden + sorted(c for c, n in counts.items() if n == 1 and c != ELLIPSIS)
    else:
        result = []
        for label in parsed.output:
            if label == ELLIPSIS:
                result += hidden
            elif label not in counts:
                raise RuntimeError(
                    f"einsum(): output subscript {label} does not appear in the equation for any input operand"
                )
            else:
                result.append(label)
    summed = [label for label in (*hidden, *(c for c in counts if c != ELLIPSIS)) if label not in result]
    return result + summed, len(result)


def _check_sizes(parsed: Equation, tensors: tuple, covered: int) -> None:
    seen: dict = {}
    for i, (labels, t) in enumerate(zip(parsed.operands, tensors, strict=True)):
        own: dict = {}
        for label, size in zip(_spelled(labels, t.ndim, covered), t.shape, strict=True):
            if label in own and own[label] != size:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, {size} != {own[label]}"
                )
            own[label] = size
        for label, size in own.items():
            have = seen.get(label, 1)
            if have != 1 and size not in (1, have):
                name = label if isinstance(label, str) else "..."
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {size} for operand {i} which does not broadcast with previously seen size {have}"
                )
            seen[label] = max(have, size) if size else size


def _spelled(labels: tuple, ndim: int, covered: int) -> list:
    """One label per dimension, the ellipsis written out (aligned to the right)."""
    out: list = []
    for label in labels:
        if label == ELLIPSIS:
            width = ndim - (len(labels) - 1)
            out += [(ELLIPSIS, d) for d in range(covered - width, covered)]
        else:
            out.append(label)
    return out


def _prepared(t: Tensor, labels: tuple, covered: int, order: list) -> Tensor:
    """An operand with one dimension per label, in order; diagonals taken, missing labels as ones."""
    names = _spelled(labels, t.ndim, covered)
    for label in dict.fromkeys(names):
        while names.count(label) > 1:
            first = names.index(label)
            second = names.index(label, first + 1)
            t = t.diagonal(0, first, second)
            del names[second], names[first]
            names.append(label)
    t = t.permute([names.index(label) for label in order if label in names]) if names else t
    for d, label in enumerate(order):
        if label not in names:
            t = t.unsqueeze(d)
    return t


def _contract(operands: list[Tensor], kept: int, rank: int, path) -> Tensor:
    """Operands of equal rank, of whose dimensions the first `kept` stay, contracted to one tensor of these."""
    for i, j in _steps(path, len(operands)):
        a, b = operands[i], operands[j]
        operands = [t for k, t in enumerate(operands) if k not in (i, j)]
        gone = [d for d in range(kept, rank) if all(t.shape[d] == 1 for t in operands)]
        made = _pair(a, b, gone)
        operands = [made, *operands] if path is None else [*operands, made]
    (t,) = operands
    gone = list(range(kept, rank))
    if any(t.shape[d] != 1 for d in gone):
        return t.sum(gone, dtype=t.dtype)
    return t.reshape(t.shape[:kept]) if gone else t


def _steps(path, n: int) -> list[tuple[int, int]]:
    if path is None:
        return [(0, 1)] * (n - 1)
    if len(path) != 2 * (n - 1):
        raise RuntimeError(
            f"einsum(): expected contraction path given in path parameter to be a list of {2 * (n - 1)} elements, got {len(path)}"
        )
    return [(path[k], path[k + 1]) for k in range(0, 2 * (n - 1), 2)]


def _pair(a: Tensor, b: Tensor, gone: list[int]) -> Tensor:
    """Multiply two operands and sum the dimensions that are gone, which become ones."""
    shared = []
    for d in gone:
        if a.shape[d] != 1 and b.shape[d] != 1:
            shared.append(d)
        elif a.shape[d] != 1:
            a = a.sum(d, keepdim=True, dtype=a.dtype)
        elif b.shape[d] != 1:
            b = b.sum(d, keepdim=True, dtype=b.dtype)
    if not shared:
        return a * b
    rest = [d for d in range(a.ndim) if d not in shared]
    batch = [d for d in rest if a.shape[d] != 1 and b.shape[d] != 1]
    left = [d for d in rest if a.shape[d] != 1 and d not in batch]
    right = [d for d in rest if d not in batch and d not in left]
    return _as_bmm(a, b, batch, left, right, shared)


def _as_bmm(a: Tensor, b: Tensor, batch: list, left: list, right: list, shared: list) -> Tensor:
    sizes = [
        _count(a.shape[d] for d in batch),
        _count(a.shape[d] for d in left),
        _count(a.shape[d] for d in shared),
        _count(b.shape[d] for d in right),
    ]
    x = a.permute([*batch, *left, *shared, *right]).reshape(sizes[0], sizes[1], sizes[2])
    y = b.permute([*batch, *shared, *right, *left]).reshape(sizes[0], sizes[2], sizes[3])
    order = [*batch, *left, *right, *shared]
    shape = [a.shape[d] for d in (*batch, *left)] + [b.shape[d] for d in right] + [1] * len(shared)
    made = x.bmm(y).reshape(shape)
    return made.permute([order.index(d) for d in range(a.ndim)])


einsum_operator = export_operator(
    Operator(
        "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
        PLAIN_FAMILY,
        body=_einsum,
        function=False,
        method=False,
    )
)


@front("torch.einsum")
def einsum(*args) -> Tensor:
    """`einsum(equation, *operands)`, or `einsum(operand, sublist, ..., [output sublist])`."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation, operands = _from_sublists(args)
    else:
        equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        return einsum(equation, *operands[0])
    if not isinstance(equation, str):
        raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}")
    for i, t in enumerate(operands):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {type(t).__name__}")
    return einsum_operator(equation, operands)


def _from_sublists(args: tuple) -> tuple[str, tuple]:
    terms = [",".join(_letters(s) for s in args[1 : len(args) // 2 * 2 : 2])]
    if len(args) % 2:
        terms.append(_letters(args[-1]))
    return "->".join(terms), args[0 : len(args) // 2 * 2 : 2]


def _letters(sublist) -> str:
    return "".join("..." if s is Ellipsis else _letter(s) for s in sublist)


def _letter(n: int) -> str:
    if not 0 <= n < 52:
        raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return chr(ord("A") + n) if n < 26 else chr(ord("a") + n - 26)
