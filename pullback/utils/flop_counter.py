"""`torch.utils.flop_counter`: how many floating point operations a block does, by module and by operator.

Products of matrices and convolutions count (a multiplication and an addition are two), everything else is free: also, as in
PyTorch, the attention kernel of the CPU, for which `sdpa_flop_count` can be given as a `custom_mapping`.
A formula takes the shapes of an operator's arguments in place of the tensors and `out_shape`, those of its results.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from ..core.tensor import Tensor
from ..core.tree import tree_map
from ..nn.module import Module
from ..ops.system.operator import Operator
from ..ops.system.overrides import TorchDispatchMode
from ..ops.system.packet import ops
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = ops.aten
flop_registry: dict[Any, Callable[..., int]] = {}
_SUFFIXES = ("", "K", "M", "B", "T")


def _shapes(value: Any) -> Any:
    return tree_map(lambda v: v.shape if isinstance(v, Tensor) else v, value)


def shape_wrapper(formula: Callable[..., int]) -> Callable[..., int]:
    """A formula of shapes as a function of an operator's arguments and its result, `out_val`."""

    @wraps(formula)
    def counted(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = _shapes(args), _shapes(kwargs), _shapes(out_val)
        return formula(*args, out_shape=out_shape, **kwargs)

    return counted


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable:
    """Count operators by the decorated formula; with `get_raw` it gets the tensors themselves, and `out_val`."""

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        counted = formula if get_raw else shape_wrapper(formula)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if isinstance(target, Operator):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops.mylib.foo), "
                    f"JitFunction, or HigherOrderOperator, got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = counted
        return formula

    return register


@register_flop_formula(aten.mm)
def mm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs) -> int:
    m, k = a_shape
    return m * b_shape[1] * 2 * k


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs) -> int:
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape, b_shape, out_shape=None, **kwargs) -> int:
    b, m, k = a_shape
    return b * m * b_shape[2] * 2 * k


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs) -> int:
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape, w_shape, out_shape, transposed: bool = False) -> int:
    """One filter at each place of the output, or, transposed, of the input."""
    places = (x_shape if transposed else out_shape)[2:]
    return x_shape[0] * math.prod(places) * math.prod(w_shape) * 2


@register_flop_formula([aten.convolution, aten._convolution])
def conv_flop(
    x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, *args, out_shape=None, **kwargs
) -> int:
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape, x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, _output_padding, _groups, output_mask,
    out_shape=None, **kwargs,
) -> int:  # fmt: skip
    """Both gradients are convolutions again: of the output's gradient with the filter, and of it with the input."""

    def swapped(shape):
        return [shape[1], shape[0], *shape[2:]]

    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, out_shape[0], not transposed)
    if output_mask[1]:
        one, other = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        count += conv_flop_count(swapped(one), swapped(other), swapped(out_shape[1]), False)
    return count


def sdpa_flop_count(query_shape, key_shape, value_shape) -> int:
    """Scores, and the values weighted by them; a head of keys and values may serve several heads of queries."""
    b, h, queries, width = query_shape
    *outer, keys, key_width = key_shape
    d_v = value_shape[3]
    if outer[0] != b or list(value_shape[:3]) != [*outer, keys] or key_width != width:
        raise AssertionError(
            f"sdpa_flop_count: query/key/value shapes are incompatible: q={query_shape}, k={key_shape}, v={value_shape}"
        )
    if h % outer[1]:
        raise AssertionError(f"sdpa_flop_count: query heads ({h}) must be a multiple of key/value heads ({outer[1]})")
    return bmm_flop((b * h, queries, width), (b * h, width, keys)) + bmm_flop(
        (b * h, queries, keys), (b * h, keys, d_v)
    )


class FlopCounterMode:
    """Counts inside the block, and prints a table down to `depth` modules at its end if `display` says so.

    `custom_mapping` has formulas for further operators, which take precedence: of shapes, or, where the formula has an attribute
    `_get_raw`, of the arguments themselves.
    """

    def __init__(
        self,
        mods: Module | list[Module] | None = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ):
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        own = {
            op: formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
            for op, formula in (custom_mapping or {}).items()
        }
        self.depth, self.display = depth, display
        self.flop_registry = {**flop_registry, **own}
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """For each module by its full name, and for "Global": operators and their counts."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A row for each module and each of its operators: the count and its share of all."""
        limit = self.depth if depth is None else depth
        limit = 999999 if limit is None else limit
        total = self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for name in sorted(self.flop_counts, key=lambda name: (name != "Global", name)):
            inside = 0 if name == "Global" else name.count(".") + 1
            if inside <= limit:
                rows += _rows(name, self.flop_counts[name], inside, total)
        return _aligned(rows)

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self._mode = _Counting(self)
        self._mode.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        self._mode.__exit__(*details)
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def _count_flops(self, packet: Any, result: Any, args: tuple, kwargs: dict) -> Any:
        formula = self.flop_registry.get(packet)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=result)
            for name in self.mod_tracker.parents:
                self.flop_counts[name][packet] += count
        return result


class _Counting(TorchDispatchMode):
    """Shows every operator to a counter."""

    def __init__(self, counter: FlopCounterMode):
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        return self.counter._count_flops(func.overloadpacket, func(*args, **kwargs), args, kwargs)


def get_suffix_str(number: int) -> str:
    """The suffix under which a count is written with three digits."""
    return _SUFFIXES[max(0, min(len(_SUFFIXES) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    value = f"{number / 1000 ** _SUFFIXES.index(suffix):.3f}"
    return value + suffix


def convert_to_percent_str(number: int, total: int) -> str:
    return "0%" if total == 0 else f"{number / total:.2%}"


def _rows(name: str, counts: dict[Any, int], inside: int, total: int) -> Iterable[tuple[str, str, str]]:
    def row(text: str, count: int) -> tuple[str, str, str]:
        share = convert_to_percent_str(count, total)
        return text, convert_num_with_suffix(count, get_suffix_str(total)), share

    indent = " " * inside
    yield row(indent + name, sum(counts.values()))
    for op, count in counts.items():
        yield row(f"{indent} - {op}", count)


def _aligned(rows: list[tuple[str, str, str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in rows]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])
