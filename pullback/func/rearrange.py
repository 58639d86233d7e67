"""`rearrange`: dimensions named, split, merged and reordered by a pattern such as "b (h w) c -> b c h w".

In: a tensor (or a list of equal ones, stacked in front), a pattern, the sizes the pattern leaves open. Out: the tensor
rearranged, by reshape and permute alone, so that gradients and batches follow. Both sides name the same dimensions.
"""

from __future__ import annotations

import keyword
import re

from ..core.tensor import Tensor
from ..ops.shape.joining import stack

__all__ = ["rearrange"]

ELLIPSIS = "…"
_TOKEN = r"\s*(\.\.\.|[()]|[^\s().]+|\.+)"  # compiled when first met

# A side of a pattern: one group of names per dimension; () is a dimension of size 1, ELLIPSIS stands for many.
Side = list[tuple[str, ...]]


def rearrange(tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int) -> Tensor:
    """`tensor` with its dimensions as the right side of the pattern orders them."""
    whole: Tensor = tensor if isinstance(tensor, Tensor) else stack(list(tensor))
    left, right = _sides(pattern, axes_lengths)
    left, right = _without_ellipsis(left, right, whole.dim())
    sizes: dict[str, int] = {}
    for group, size in zip(left, whole.shape):
        sizes.update(_group_sizes(group, size, axes_lengths))
    names = [name for group in left for name in group]
    order = [names.index(name) for group in right for name in group]
    split = whole.reshape([sizes[name] for name in names]).permute(order)
    return split.reshape([_product(sizes[name] for name in group) for group in right])


def _sides(pattern: str, lengths: dict[str, int]) -> tuple[Side, Side]:
    halves = pattern.split("->")
    if len(halves) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = _parse(halves[0]), _parse(halves[1])
    if any(ELLIPSIS in group and len(group) > 1 for group in left) or (ELLIPSIS, ")") in left:
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    seen_left, seen_right = ({name for group in side for name in group} - {")"} for side in (left, right))
    if ELLIPSIS in seen_right - seen_left:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if seen_left != seen_right:
        one_sided = seen_left ^ seen_right
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {one_sided}")
    unknown = set(lengths) - seen_left
    if unknown:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")
    return left, right


def _parse(text: str) -> Side:
    """The groups of one side; an ellipsis in parentheses keeps a closing one, which says that it is merged."""
    side: Side = []
    group: list[str] | None = None
    seen: set[str] = set()
    for token in re.findall(_TOKEN, text):
        if token == "(":
            if group is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            group = []
        elif token == ")":
            if group is None:
                raise ValueError(f"Imbalanced parentheses in expression: '{text}'")
            side.append((*group, ")") if ELLIPSIS in group else tuple(group))
            group = None
        else:
            name = _name(token, seen)
            if group is None:
                side.append(name)
            else:
                group.extend(name)
    if group is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{text}'")
    return side


def _name(token: str, seen: set[str]) -> tuple[str, ...]:
    """A name as a group of its own; the size 1 is a group without names."""
    if "." in token:
        if token != "..." or ELLIPSIS in seen:
            raise ValueError("Expression may contain dots only inside ellipsis (...); only one ellipsis for tensor ")
        token = ELLIPSIS
    elif token.isdecimal():
        if token != "1":
            raise ValueError("rearrange only supports unnamed axes of size 1")
        return ()
    elif not token.isidentifier() or keyword.iskeyword(token):
        raise ValueError(f"Invalid axis identifier: {token}\nnot a valid python identifier")
    elif token.startswith("_") or token.endswith("_"):
        raise ValueError(f"Invalid axis identifier: {token}\naxis name should should not start or end with underscore")
    if token in seen:
        raise ValueError(f"Indexing expression contains duplicate dimension '{token}'")
    seen.add(token)
    return (token,)


def _without_ellipsis(left: Side, right: Side, dims: int) -> tuple[Side, Side]:
    """Both sides with the ellipsis spelled out: one made-up name for every dimension it stands for."""
    many = (ELLIPSIS,) in left
    named = len(left) - many
    if dims < named or (dims > named and not many):
        raise ValueError(
            f"Number of dimensions in pattern ({named}) must be equal to the number of dimensions in the tensor ({dims})"
        )
    made_up = [f"{ELLIPSIS}{i}" for i in range(dims - named)]

    def spelled(side: Side) -> Side:
        out: Side = []
        for group in side:
            if group == (ELLIPSIS,):
                out += [(name,) for name in made_up]
            else:
                names = [n for name in group if name != ")" for n in (made_up if name == ELLIPSIS else [name])]
                out.append(tuple(names))
        return out

    return spelled(left), spelled(right)


def _group_sizes(group: tuple[str, ...], size: int, lengths: dict[str, int]) -> dict[str, int]:
    """The sizes of the names that one dimension is made of; at most one of them is left to infer."""
    sizes = {name: lengths[name] for name in group if name in lengths}
    open_names = [name for name in group if name not in lengths]
    if len(open_names) > 1:
        raise ValueError(f"cannot infer the sizes of two dimensions at once {open_names[0]} and {open_names[1]}")
    known = _product(sizes.values())
    if open_names:
        shown = tuple(lengths.get(name, "?") for name in group)
        if known == 0 or size % known:
            raise ValueError(f"inferred dimension does not evenly fit into larger dimension: {size} vs {shown}")
        sizes[open_names[0]] = size // known
    elif known != size:
        raise ValueError(f"Dimension sizes do not match ({size} != {known}) when matching dimension pack {group}")
    return sizes


def _product(values) -> int:
    result = 1
    for value in values:
        result *= value
    return result
