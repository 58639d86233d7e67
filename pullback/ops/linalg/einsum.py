"""einsum: sums of products, written as subscripts.

`parse` reads the equation (or the sublist format is turned into one) with PyTorch's grammar and errors. `plan` decides,
from the equation and the shapes alone, what is done to each operand and how operands are contracted two at a time, left
to right or along the path given; plans are kept, so that a repeated call only runs its steps. A label of size 1 that
broadcasts is dropped from its operand, and a label that appears more than once in an operand means its diagonal.
"""

from __future__ import annotations

from functools import lru_cache

from ...core.records import Record
from ...core.tensor import Tensor
from ..family.base import PLAIN_FAMILY
from ..system.calls import export_operator, front
from ..system.operator import Operator
from .contraction import _count

ELLIPSIS = "."  # stands for "..." among the labels


class Equation(Record):
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
                f"einsum(): invalid subscript given at index {at} in the equation string, subscripts must be in "
                "[a-zA-Z]"
            )
        at += 1
    return tuple(labels)


class Side(Record):
    """What is done to one operand of a pair: dimensions summed, then permuted, then reshaped (None: left as it is)."""

    summed: tuple[int, ...]
    order: tuple[int, ...] | None
    shape: tuple | None

    def apply(self, t: Tensor) -> Tensor:
        if self.summed:
            t = t.sum(self.summed)
        if self.order is not None:
            t = t.permute(self.order)
        return t if self.shape is None else t.reshape(self.shape)


class Pairing(Record):
    """Two operands made one: by `mm`, `bmm` or element-wise multiplication, then reshaped.

    `turned`: the second operand is the left factor, since all its labels come first in the output.
    """

    kind: str
    left: Side
    right: Side
    shape: tuple | None
    turned: bool = False

    def apply(self, a: Tensor, b: Tensor) -> Tensor:
        a, b = (b, a) if self.turned else (a, b)
        a, b = self.left.apply(a), self.right.apply(b)
        if self.kind == "mul":
            return a * b
        if self.kind == "mm" and a.dtype is b.dtype:
            result = a.mm(b)
        elif self.kind == "mm":
            result = a.unsqueeze(0).bmm(b.unsqueeze(0)).squeeze(0)
        else:
            result = a.bmm(b)
        return result if self.shape is None else result.reshape(self.shape)


class Plan(Record):
    """Everything that a call does: diagonals and dropped dimensions of each operand, pairings, what is left at the "
    "end."""

    prepared: tuple[tuple[tuple[tuple[int, int], ...], tuple[int, ...]], ...]
    steps: tuple[tuple[int, int, Pairing], ...]
    last: tuple[tuple[int, ...] | None, tuple[int, ...]]  # order of dimensions, then those that are summed


def _einsum(equation: str, tensors: tuple, path=None) -> Tensor:
    if not tensors:
        raise RuntimeError("einsum(): must provide at least one operand")
    shapes = tuple(tuple(t.shape) for t in tensors)
    # Symbolic sizes cannot be looked up; only tensors without data have them.
    fixed = all(not t._keys or all(s.__class__ is int for s in t.shape) for t in tensors)
    result = (_kept_plan if fixed else plan)(equation, shapes, path)
    operands = [_prepare(t, *steps) for t, steps in zip(tensors, result.prepared, strict=True)]
    for i, j, pairing in result.steps:
        t = pairing.apply(operands[i], operands[j])
        rest = [o for k, o in enumerate(operands) if k not in (i, j)]
        operands = [t, *rest] if path is None else [*rest, t]
    order, summed = result.last
    t = operands[0] if order is None else operands[0].permute(order)
    return t.sum(summed) if summed else t


def _prepare(t: Tensor, diagonals: tuple, dropped: tuple) -> Tensor:
    for first, second in diagonals:
        t = t.diagonal(0, first, second)
    return t.squeeze(dropped) if dropped else t


def plan(equation: str, shapes: tuple, path=None) -> Plan:
    """Check the operands' shapes against the equation and work out the steps."""
    parsed = parse(equation)
    if len(shapes) != len(parsed.operands):
        more = len(shapes) > len(parsed.operands)
        raise RuntimeError(
            f"einsum(): {'more' if more else 'fewer'} operands were provided than specified in the equation"
        )
    covered = _covered(parsed, shapes)
    output = _output_labels(parsed, covered)
    sizes = _check_sizes(parsed, shapes, covered)
    prepared, operands = [], []
    for labels, shape in zip(parsed.operands, shapes, strict=True):
        steps, kept = _preparation(_spelled(labels, len(shape), covered), shape, sizes)
        prepared.append(steps)
        operands.append(kept)
    pairs = []
    for i, j in _steps(path, len(operands)):
        a, b = operands[i], operands[j]
        rest = [o for k, o in enumerate(operands) if k not in (i, j)]
        pairing, result = _pairing(a, b, {label for o in (*rest, output) for label in o}, sizes, output)
        pairs.append((i, j, pairing))
        operands = [result, *rest] if path is None else [*rest, result]
    return Plan(tuple(prepared), tuple(pairs), _ending(operands[0], output))


_kept_plan = lru_cache(512)(plan)


def _covered(parsed: Equation, shapes: tuple) -> int:
    """How many dimensions the ellipsis stands for (the most that any operand needs)."""
    most = 0
    for i, (labels, shape) in enumerate(zip(parsed.operands, shapes, strict=True)):
        named = len(labels) - (ELLIPSIS in labels)
        if ELLIPSIS in labels:
            if named > len(shape):
                raise RuntimeError(
                    f"einsum(): the number of subscripts in the equation ({named}) is more than the number of "
                    f"dimensions ({len(shape)}) for operand {i}"
                )
            most = max(most, len(shape) - named)
        elif named != len(shape):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
                f"({len(shape)}) for operand {i} and no ellipsis was given"
            )
    return most


def _output_labels(parsed: Equation, covered: int) -> list:
    """Labels of the result: as written, or all that appear once, in alphabetical order."""
    counts: dict[str, int] = {}
    for labels in parsed.operands:
        for label in labels:
            counts[label] = counts.get(label, 0) + 1
    hidden = [(ELLIPSIS, d) for d in range(covered)]
    if parsed.output is None:
        return hidden + sorted(c for c, n in counts.items() if n == 1 and c != ELLIPSIS)
    result: list = []
    for label in parsed.output:
        if label == ELLIPSIS:
            result += hidden
        elif label not in counts:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
        else:
            result.append(label)
    return result


def _check_sizes(parsed: Equation, shapes: tuple, covered: int) -> dict:
    """The size of each label; raises where two operands do not agree."""
    seen: dict = {}
    for i, (labels, shape) in enumerate(zip(parsed.operands, shapes, strict=True)):
        own: dict = {}
        for label, size in zip(_spelled(labels, len(shape), covered), shape, strict=True):
            if label in own and own[label] != size:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, "
                    f"{size} != {own[label]}"
                )
            own[label] = size
        for label, size in own.items():
            have = seen.get(label, 1)
            if have != 1 and size != 1 and size != have:
                raise RuntimeError(
                    f"einsum(): subscript {label if isinstance(label, str) else '...'} has size {size} for operand {i} "
                    f"which does not broadcast with previously seen size {have}"
                )
            seen[label] = size if have == 1 else have
    return seen


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


def _preparation(names: list, shape: tuple, sizes: dict) -> tuple[tuple, list]:
    """((diagonals to take, dimensions to drop), labels that are left)."""
    names, diagonals = list(names), []
    extent = dict(zip(names, shape, strict=True))
    for label in dict.fromkeys(names):
        while names.count(label) > 1:
            first = names.index(label)
            second = names.index(label, first + 1)
            diagonals.append((first, second))
            del names[second], names[first]
            names.append(label)
    dropped = tuple(d for d, label in enumerate(names) if extent[label] == 1 and sizes[label] != 1)
    return (tuple(diagonals), dropped), [label for d, label in enumerate(names) if d not in dropped]


def _ending(labels: list, output: list) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
    """What is done at the end: labels brought to the output's order, the others last, and those summed."""
    order = [*(labels.index(label) for label in output), *(d for d, label in enumerate(labels) if label not in output)]
    summed = tuple(range(len(output), len(labels)))
    return None if order == list(range(len(order))) else tuple(order), summed


def _side(labels: list, needed: set, order: list, shape: tuple | None = None) -> Side:
    """Bring an operand to an order of labels, summing those that nobody needs."""
    summed = tuple(d for d, label in enumerate(labels) if label not in needed)
    left = [label for label in labels if label in needed]
    moved = tuple(left.index(label) for label in order)
    return Side(summed, None if moved == tuple(range(len(moved))) else moved, shape)


def _pairing(a: list, b: list, needed: set, sizes: dict, output: list) -> tuple[Pairing, list]:
    """How two operands with these labels become one, and the labels of that one: as near to the output's order as it goes."""
    both = [label for label in a if label in b]
    place = {label: i for i, label in enumerate(output)}
    ordered = lambda labels: sorted(labels, key=lambda label: place.get(label, len(place)))
    batch = ordered(label for label in both if label in needed)
    gone = [label for label in both if label not in needed]
    left = ordered(label for label in a if label not in b and label in needed)
    right = ordered(label for label in b if label not in a and label in needed)
    extent = lambda labels: tuple(sizes[label] for label in labels)
    if not gone:  # nothing to contract: multiply, each operand with ones for the labels of the other
        result = ordered((*batch, *left, *right))
        first, second = (_beside(o, result, needed, sizes) for o in (a, b))
        return Pairing("mul", first, second, None), result
    if left and right and place.get(right[-1], len(place)) < place.get(left[0], len(place)):
        pairing, result = _pairing(b, a, needed, sizes, output)
        return pairing._replace(turned=True), result
    result = [*batch, *left, *right]
    n, m, k, p = (_count(extent(labels)) for labels in (batch, left, gone, right))
    lead = (n,) if batch else ()
    flat = len(batch) <= 1 and len(left) == len(right) == len(gone) == 1
    first = _side(a, {*both, *left}, [*batch, *left, *gone], None if flat else (*lead, m, k))
    second = _side(b, {*both, *right}, [*batch, *gone, *right], None if flat else (*lead, k, p))
    return Pairing("bmm" if batch else "mm", first, second, None if flat else extent(result)), result


def _beside(labels: list, result: list, needed: set, sizes: dict) -> Side:
    """An operand of a product, in the order of the result, with ones for labels that it has not."""
    own = [label for label in result if label in labels]
    shape = None if len(own) == len(result) else tuple(sizes[label] if label in own else 1 for label in result)
    return _side(labels, needed, own, shape)


def _steps(path, n: int) -> list[tuple[int, int]]:
    if path is None:
        return [(0, 1)] * (n - 1)
    if len(path) != 2 * (n - 1):
        raise RuntimeError(
            f"einsum(): expected contraction path given in path parameter to be a list of {2 * (n - 1)} elements, got "
            f"{len(path)}"
        )
    return [(path[k], path[k + 1]) for k in range(0, 2 * (n - 1), 2)]


einsum_operator = export_operator(
    Operator(
        "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
        PLAIN_FAMILY,
        body=_einsum,
        function=False,
        method=False,
        autocast_cpu="lower",
        autocast_cuda="lower",
    )
)


def _operands_one_by_one(args: tuple) -> tuple:
    """`einsum(equation, (a, b))` as `einsum(equation, a, b)`."""
    if len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (tuple, list)):
        return args[0], *args[1]
    return args


@front("torch.einsum", spelled=_operands_one_by_one)
def einsum(*args) -> Tensor:
    """`einsum(equation, *operands)`, or `einsum(operand, sublist, ..., [output sublist])`."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation, operands = _from_sublists(args)
    else:
        equation, operands = args[0], args[1:]
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
