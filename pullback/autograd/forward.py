"""Forward mode: tangents that travel with tensors.

A tensor may carry one tangent per open level. An operator on such tensors computes its result one level further out,
and its tangent by the operator's jvp rule there: given (`jvp`), by linearity, element-wise from the vjp, or in general
as the gradient of `g -> vjp(g)`, which is linear in `g`. Levels nest, so derivatives of derivatives do not mix.
"""

from __future__ import annotations

import itertools

from ..batching.levels import batch_everywhere, lower, rewrap, strip
from ..core import device as devices
from ..core import modes
from ..core.geometry import contiguous_strides, may_overlap
from ..core.layers import above
from ..core.modes import ambient
from ..core.node import UNTRACKED_VIEW, Autograd, as_leaf, edge_of, own_autograd, requires_grad
from ..core.tensor import INFERENCE_TENSOR, LAYOUTS, Tensor, stride_of
from ..ops.family.pointwise import POINTWISE
from ..ops.shape.complex_views import view_dtype
from ..ops.shape.views import alias as alias_op
from ..ops.shape.views import as_strided as as_strided_op
from ..ops.shape.views import view_ as view_op
from ..ops.system import dispatch as dispatching
from ..ops.system.operator import ELEMENTWISE, LINEAR, Missing, Operator
from ..ops.system.record import (
    base_argument,
    dtype_of,
    info_of,
    parameters_of,
    plan_of,
    result_names,
    shape_of,
)
from .accumulation import reduce_to
from .calls import grad
from .saved import unhooked
from .views import recipe, replay

_next_level = itertools.count().__next__


class DualLevel:
    """An open level of forward mode. Each opening has a number of its own, so tangents never outlive their level.

    Tangents of a level that `records` are recorded wherever they are computed, under `no_grad` too, which lets tangents pass.
    """

    def __init__(self, records: bool = False):
        self.records = records

    def __enter__(self) -> int:
        self.number = _next_level()
        if self.records:
            ambient.recorded_levels = ambient.recorded_levels | {self.number}
        ambient.forward_levels = (*ambient.forward_levels, self.number)
        ambient.switch(modes.FORWARD, True)
        return self.number

    def __exit__(self, *exc) -> None:
        ambient.forward_levels = tuple(n for n in ambient.forward_levels if n != self.number)
        if self.records:
            ambient.recorded_levels = ambient.recorded_levels - {self.number}
        ambient.switch(modes.FORWARD, ambient.forward_levels)


class at_levels(modes.other_stack):
    """Compute with these levels open and no others."""

    name, bit = "forward_levels", modes.FORWARD

    def __init__(self, levels: tuple):
        self.levels = levels

    def __enter__(self) -> None:
        self.replace(self.levels)


def below_level(level: int | None = None) -> at_levels:
    """Compute one level further out than the innermost, or than a given one."""
    levels = ambient.forward_levels
    return at_levels(levels[: levels.index(level) if level in levels else -1])


class recording:
    """Record what is computed of the tangents of a level, under `no_grad` too, if the level asks for that."""

    def __init__(self, level: int):
        self.on = level in ambient.recorded_levels and not ambient.mode & modes.INFERENCE

    def __enter__(self) -> None:
        self.before = ambient.mode
        if self.on:
            ambient.switch(modes.GRAD, True)

    def __exit__(self, *exc) -> None:
        ambient.restore(self.before)


def tangent_of(t, level: int) -> Tensor | None:
    """The tangent that a tensor carries at a level; that of a view may have come to its base by a later write."""
    if not isinstance(t, Tensor):
        return None
    a = t._autograd
    found = None if a is None or not a.tangents else a.tangents.get(level)
    if found is None and t._view_info is not None and tangent_of(t._view_info.base, level) is not None:
        found = replay_tangent(t, level)
    return found


def replay_tangent(t: Tensor, level: int) -> Tensor:
    """The tangent of a view, as the same view of its base's tangent."""
    with below_level(level), recording(level):
        found = replay(recipe(t._view_info), tangent_of(t._view_info.base, level))
    with_tangent(t, found, level)
    return found


def with_tangent(t: Tensor, tangent: Tensor, level: int) -> None:
    """Give a tensor a tangent at a level."""
    a = own_autograd(t)
    a.tangents = {**(a.tangents or {}), level: tangent}


def primal_of(t, level: int):
    """The tensor without its tangent at a level, with its place in the graph and its other tangents."""
    if isinstance(t, tuple):
        return tuple(primal_of(v, level) for v in t)
    if (
        not isinstance(t, Tensor)
        or t._autograd is None
        or not t._autograd.tangents
        or level not in t._autograd.tangents
    ):
        return t
    return _copy(t, {n: v for n, v in t._autograd.tangents.items() if n != level})


def _copy(t: Tensor, tangents: dict | None) -> Tensor:
    """The same values at the same place in the graph, with other tangents."""
    a = Autograd(requires_grad(t), edge_of(t))
    a.tangents = tangents or None
    result = t.shallow(a if a.requires_grad or tangents else None)
    result._view_info = t._view_info
    return result


def forward_layer(op: Operator, args: tuple, keys: int, wanted: bool):
    """Run an operator under the innermost open level.

    The result and its tangent are computed one level further out. If the call is also recorded for backward, that is
    done again here, on the arguments with their tangents: a backward inside the level then carries tangents too.
    """
    level = ambient.forward_levels[-1]
    tangents = [argument_tangents(a, level) for a in args]
    primals = tuple(primal_of(a, level) for a in args)
    with below_level():
        if (op is view_op or op is view_dtype) and tangents[0] is not None:
            with recording(level):
                tangents[0] = _laid_out_alike(args[0], tangents[0], level)
        out = dispatching.autograd_layer(op, primals)
        if all(t is None for t in tangents) or not op.differentiable:
            return out
        with recording(level):
            result = _strided_tangent(args, level) if op is as_strided_op else None
            if result is None:
                result = jvp(op, primals, tangents, out)
    many = isinstance(out, (tuple, list))
    results = [
        _copy(r, r._autograd.tangents if r._autograd else None) if isinstance(r, Tensor) else r
        for r in (out if many else (out,))
    ]
    for r, t in zip(results, result if isinstance(result, (tuple, list)) else (result,), strict=True):
        if t is not None and isinstance(r, Tensor) and r.dtype.category >= 2:
            with_tangent(r, t if op.is_view else _own_memory(t, tangents, level), level)
    final = type(out)(results) if many else results[0]
    if op.is_view and not keys & LAYOUTS:  # views of the arguments, not of their copies without tangents
        for r in results:
            r._view_info = None
        dispatching.mark_views(op, final, args)
    if wanted and ambient.mode & modes.GRAD:
        op.record(final, *args)
    return final


def _laid_out_alike(t: Tensor, tangent: Tensor, level: int) -> Tensor:
    """A tangent that can be viewed wherever the tensor can: it lies in memory as the tensor does, from now on (row by row,
    if the tensor has one element at several places)."""
    stride = stride_of(t)
    stride = contiguous_strides(t._array.shape) if may_overlap(t._array.shape, stride) else stride
    if tangent._keys or stride == stride_of(tangent):
        return tangent
    result = tangent.new_empty_strided(t.shape, stride).copy_(tangent)
    with_tangent(t, result, level)
    return result


def _strided_tangent(args: tuple, level: int) -> Tensor | None:
    """The tangent of `as_strided`, as the same window on the tangent of the tensor's base, so that writes to one are seen by
    both; None where that lies otherwise than the base, and has to be read."""
    t, size, stride, offset = args
    found = _whole_tangent(t, level)
    if found is None:
        return None
    whole, lies, begins = found
    if tuple(whole.stride()) != tuple(lies) or may_overlap(tuple(size), tuple(stride)):
        return None
    at = (t._offset if offset is None else offset) - begins
    span = at + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if at < 0 or 0 in size or span >= whole.numel():
        return None
    return whole.as_strided(size, stride, whole.storage_offset() + at)


def _whole_tangent(t: Tensor, level: int) -> tuple | None:
    """(tangent, stride, offset) of what a tensor is a view of and has a tangent: its base, or a dual tensor, itself a view."""
    base = t if t._view_info is None else t._view_info.base
    whole = tangent_of(base, level)
    if whole is not None:
        return whole, stride_of(base), base._offset
    info = t._view_info
    while info is not None:
        found = getattr(info, "dual", {}).get(level)
        if found is not None:
            return found
        info = info.parent
    return None


def _own_memory(t: Tensor, tangents: list, level: int) -> Tensor:
    """A tangent that later writes may change: no argument's tangent, and every element at a place of its own."""
    given = [v for a in tangents for v in (a if isinstance(a, list) else [a])]
    shared = any(v is not None and v._counter is t._counter for v in given)
    if not shared and not may_overlap(t._array.shape, stride_of(t)):
        return t
    with recording(level):
        return t.clone(memory_format=devices.contiguous_format)


def argument_tangents(value, level: int):
    if isinstance(value, tuple) and any(isinstance(v, Tensor) for v in value):
        each = [tangent_of(v, level) for v in value]
        return each if any(t is not None for t in each) else None
    return tangent_of(value, level)


def jvp(op: Operator, args: tuple, tangents: list, out):
    """The tangent of an operator's result (a list for several), from those of its arguments."""
    rule = op.jvp
    if rule is LINEAR:
        return _linear(op, args, tangents)
    if isinstance(rule, dict):
        return _by_rules(op, rule, args, tangents, out)
    if callable(rule):
        return rule(args, tangents, out)
    if (rule is ELEMENTWISE or rule is None and _is_elementwise(op, tangents)) and _all_real(op, args, out):
        return _elementwise(op, args, tangents, out)
    return transposed(op, args, tangents, out)


def _is_elementwise(op: Operator, tangents: list) -> bool:
    return op.family is POINTWISE and not any(
        r.joint or isinstance(r.function, Missing) for r in _rules_in_use(op, tangents)
    )


def _rules_in_use(op: Operator, tangents: list) -> list:
    """The vjp rules of the arguments that have tangents."""
    index = op.schema.index
    return [r for r in plan_of(op).rules if any(tangents[index[t]] is not None for t in r.targets)]


def _all_real(op: Operator, args: tuple, out) -> bool:
    return (
        not any(t.dtype.is_complex for t in op.tensors(args)) and isinstance(out, Tensor) and not out.dtype.is_complex
    )


def _linear(op: Operator, args: tuple, tangents: list):
    """The operator itself on tangents; absent ones are zero."""
    replaced = tuple(
        _zero_like(a) if t is None and _is_tensorial(a) else _fill(t, a) for a, t in zip(args, tangents, strict=True)
    )
    return dispatching.dispatch(op, tuple(r if _is_tensorial(a) else a for a, r in zip(args, replaced, strict=True)))


def _is_tensorial(a) -> bool:
    return isinstance(a, Tensor) or isinstance(a, tuple) and any(isinstance(v, Tensor) for v in a)


def _zero_like(a):
    if isinstance(a, tuple):
        return tuple(_zero_like(v) for v in a)
    return a.new_zeros(a.shape) if isinstance(a, Tensor) and a.dtype.category >= 2 else a


def _fill(tangent, a):
    if isinstance(tangent, list):
        return tuple(_zero_like(v) if t is None else t for t, v in zip(tangent, a, strict=True))
    return tangent


def _values(op: Operator, names, args: tuple, out, **extra) -> list:
    """What a rule's parameters name."""
    index, results = op.schema.index, result_names(op)
    result = []
    for p in names:
        if p in extra:
            result.append(extra[p])
        elif p in index:
            result.append(args[index[p]])
        elif p in results:
            result.append(out if len(results) == 1 else out[results.index(p)])
        else:
            base, suffix = base_argument(p, index)  # type: ignore[misc]
            result.append({"_shape": shape_of, "_dtype": dtype_of, "_info": info_of}[suffix](args[index[base]]))
    return result


def _by_rules(op: Operator, rules: dict, args: tuple, tangents: list, out):
    total = None
    for name, rule in rules.items():
        t = tangents[op.schema.index[name]]
        if t is not None:
            part = rule(*_values(op, parameters_of(rule), args, out, t=t))
            total = (
                part
                if total is None
                else [a + b for a, b in zip(total, part, strict=True)]
                if isinstance(part, (tuple, list))
                else total + part
            )
    missing = [n for n, t in zip(op.schema.index, tangents, strict=True) if t is not None and n not in rules]
    if missing:
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name} that does not support it for argument {missing[0]!r}"
        )
    return total


def _elementwise(op: Operator, args: tuple, tangents: list, out: Tensor) -> Tensor:
    """Each rule applied to the tangent: derivatives of element-wise functions are diagonal."""
    total = None
    for rule in plan_of(op).rules:
        t = tangents[op.schema.index[rule.targets[0]]]
        if t is not None:
            t = t.expand(out.shape) if t.shape != out.shape else t
            part = rule.function(*_values(op, rule.parameters, args, out, g=t))
            total = part if total is None else total + part
    if total is None:
        return None
    return total.to(out.dtype) if total.dtype is not out.dtype else total


def transposed(op: Operator, args: tuple, tangents: list, out):
    """The derivative of `<vjp(g), tangents>` with respect to `g`: the jvp, by transposing the vjp."""
    if any(isinstance(r.function, Missing) for r in _rules_in_use(op, tangents)):
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name} that does not support it because it has not been implemented yet."
        )
    args, tangents, out = tuple(_recordable(a) for a in args), [_recordable(t) for t in tangents], _recordable(out)
    results = list(out) if isinstance(out, (tuple, list)) else [out]
    # the graph below may reach the seeds, which are of no concern to anybody
    recorded = ambient.mode & modes.GRAD and any(map(requires_grad, _leaves(args, tangents, results)))
    with modes.masked(modes.INFERENCE, modes.GRAD), unhooked():
        seeds = [
            as_leaf(r.new_zeros(r.shape)) if isinstance(r, Tensor) and r.dtype.category >= 2 else None for r in results
        ]
        pairs = _vjp_pairs(op, args, tangents, out, seeds)
        live = [s for s in seeds if s is not None]
        pairs = [(v, t) for v, t in pairs if v is not None and v.requires_grad]
        result = (
            grad([v for v, _ in pairs], live, [t for _, t in pairs], create_graph=True, allow_unused=True)
            if pairs
            else [None] * len(live)
        )
    found = iter(result)
    each = [None if s is None else _settle(next(found), s) for s in seeds]
    if not recorded:
        each = [t if t is None else _copy(t.detach(), t._autograd.tangents if t._autograd else None) for t in each]
    return each if isinstance(out, (tuple, list)) else each[0]


def _leaves(*groups) -> list[Tensor]:
    """Every tensor of some lists and tuples."""
    return [t for g in groups for t in (_leaves(*g) if isinstance(g, list | tuple) else [g]) if isinstance(t, Tensor)]


def _recordable(a):
    """An argument that may be saved for the short time that a jvp is taken from a graph."""
    if isinstance(a, tuple | list):
        return type(a)([_recordable(v) for v in a])
    if not isinstance(a, Tensor) or not a._keys & INFERENCE_TENSOR:
        return a
    result = a.shallow(None if a._autograd is UNTRACKED_VIEW else a._autograd)
    result._keys &= ~INFERENCE_TENSOR
    return result


def _settle(t, seed: Tensor) -> Tensor:
    return seed.new_zeros(seed.shape) if t is None else t


def _vjp_pairs(op: Operator, args: tuple, tangents: list, out, seeds: list) -> list:
    """(gradient, tangent) of each argument that has a tangent, the gradients as functions of `seeds`."""
    pairs = []
    index = op.schema.index
    for rule in plan_of(op).rules:
        wanted = tuple(tangents[index[t]] is not None for t in rule.targets)
        if not any(wanted):
            continue
        mask = {"mask": wanted} if rule.joint else {}  # elsewhere `mask` is an argument of the operator
        got = rule.function(*_values(op, rule.parameters, args, out, g=seeds[0], gs=tuple(seeds), **mask))
        for name, value in zip(rule.targets, got if rule.joint else (got,), strict=True):
            tangent = tangents[index[name]]
            if tangent is None or value is None:
                continue
            for v, t in zip(
                value if isinstance(tangent, list) else [value],
                tangent if isinstance(tangent, list) else [tangent],
                strict=True,
            ):
                if v is None or t is None:
                    continue
                v = reduce_to(None, v, tuple(t.shape)) if v.shape != t.shape else v
                v = v.real if v.dtype.is_complex and not t.dtype.is_complex else v
                pairs.append((v.to(t.dtype) if v.dtype is not t.dtype else v, t))
    return pairs


def dual(primal: Tensor, tangent: Tensor, level: int) -> Tensor:
    """An alias of `primal` that carries `tangent`; inside vmap both belong to the values underneath."""
    if primal.shape != tangent.shape:
        raise RuntimeError(
            f"Expected tangent to have the same shape as primal, got {tuple(tangent.shape)} and {tuple(primal.shape)}"
        )
    result = dispatching.dispatch(alias_op, (batch_everywhere(primal),))
    value, wraps = strip(result)
    make_carry(value, lower(tangent, wraps, ambient.transforms), level)
    return rewrap(value, wraps)


def make_carry(alias: Tensor, tangent: Tensor, level: int) -> None:
    """Make a tensor the dual of what it is an alias of. What is made of its memory finds the tangent, which its base has not."""
    with_tangent(alias, tangent, level)
    with below_level(level):
        tangent = _laid_out_alike(alias, tangent, level)
    info = alias._view_info
    if info is not None:
        info.dual = {**getattr(info, "dual", {}), level: (tangent, stride_of(alias), alias._offset)}


def parts(t: Tensor, level: int) -> tuple[Tensor, Tensor | None]:
    """(primal, tangent) of a tensor; None where it has no tangent at the level."""
    value, wraps = strip(t)
    tangent = tangent_of(value, level)
    primal = primal_of(value, level)
    return rewrap(primal, wraps), None if tangent is None else rewrap(tangent, wraps)


above.forward_layer = forward_layer
