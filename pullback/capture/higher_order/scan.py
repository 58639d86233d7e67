"""`scan`: a loop over the slices of tensors that carries a state along and gives one output per step.

In: `combine_fn(carry, x) -> (carry, y)`, the carry to begin with, and tensors whose slices along `dim` are the x's. Out:
the last carry, and the y's stacked along `dim`. The operator itself works on flat lists and along the first dimension.

The backward of a scan is a scan over the steps in reverse: its carry is the gradient of the carry, and the gradients so
far of what all steps share.
"""

from __future__ import annotations

from collections.abc import Callable

from ...batching.batched import make_batched, outside, unwrap
from ...batching.vmap import vmap
from ...core import modes, tree
from ...core.geometry import contiguous_strides, wrap_dim
from ...core.modes import ambient
from ...core.tensor import Tensor, stride_of
from ...ops.system.operator import public
from .autograd import is_floating, recorded, wanted_of
from .backward import backward_graph, refuse_random
from .base import HigherOrderOperator, Part
from .cond import check_operands, is_traced
from .consistency import check_same, refusal
from .subgraph import Example, examples, fake_mode_for


class Scan(HigherOrderOperator):
    """`torch.ops.higher_order.scan(combine_fn, init, xs, additional_inputs)`: (*carry, *ys), all lists flat."""

    schema_names = ("combine_fn", "init", "xs", "additional_input")
    runs_once = False
    prefixes = ("scan_combine_graph_",)

    def __init__(self) -> None:
        super().__init__("scan")

    def __call__(self, combine_fn, init, xs, additional_inputs):
        if not isinstance(additional_inputs, (tuple, list)):
            raise AssertionError(f"additional_inputs must be a tuple or list, got {type(additional_inputs)}")
        check_operands(additional_inputs)
        return super().__call__(combine_fn, list(init), list(xs), tuple(additional_inputs))

    def parts(self, combine_fn, init, xs, additional_inputs) -> list[Part]:
        given = [*examples(init), *examples(xs, sliced=True), *examples(additional_inputs)]
        return [Part(0, "scan combine_fn", given)]

    def extended(self, args: tuple, free: list[Tensor]) -> tuple:
        return (*args[:3], (*args[3], *free))

    def plain(self, combine_fn, init, xs, additional_inputs):
        carry, rows = list(init), []
        for x in zip(*[t.unbind(0) for t in xs], strict=True):
            out = list(combine_fn(*carry, *x, *additional_inputs))
            check_same(self.shown_name, carry, out[: len(init)], "init", "carry")
            carry = out[: len(init)]
            rows.append(out[len(init) :])
        stack = public("torch", "stack")
        return (*carry, *[stack(list(column)) for column in zip(*rows, strict=True)])

    def fake_rule(self, mode, combine_fn, init, xs, additional_inputs):
        with mode:
            out = list(combine_fn(*init, *[Example(t, sliced=True).fake(mode) for t in xs], *additional_inputs))
        check_same(self.shown_name, init, out[: len(init)], "init", "carry")
        steps = xs[0]._array.shape[0]
        carry = [mode.make(tuple(t._array.shape), stride_of(t), t.dtype, t.device) for t in out[: len(init)]]
        return (*carry, *[stacked_fake(mode, t, steps) for t in out[len(init) :]])

    def autograd(self, combine_fn, init, xs, additional_inputs):
        operands, steps = (*init, *xs, *additional_inputs), Steps(self, combine_fn, len(init), len(xs))
        steps.differentiate(operands, wanted_of(operands))
        return recorded(steps.forward, steps.backward, operands)

    def vmap_rule(self, level, combine_fn, init, xs, additional_inputs):
        parts = [[unwrap(t, level) for t in group] for group in (init, xs, additional_inputs)]
        with outside(level):
            firsts = [
                t.unsqueeze(0).expand(level.size, *t.shape) if d is None else t.movedim(d, 0) for t, d in parts[0]
            ]
            moved = [t if d is None else t.movedim(d, 1) for t, d in parts[1]]
            dims = [0] * len(firsts) + [None if d is None else 0 for _, d in parts[1]] + [d for _, d in parts[2]]
            batched = vmap(combine_fn, tuple(dims), randomness=level.randomness)
            out = self(batched, firsts, moved, tuple(t for t, _ in parts[2]))
        carries = len(init)
        return tuple(make_batched(t, 0 if i < carries else 1, level) for i, t in enumerate(out))


class Steps:
    """The forward and the backward of one scan, for autograd."""

    def __init__(self, op: Scan, f: Callable, carries: int, slices: int):
        self.op, self.f, self.carries, self.slices = op, f, carries, slices
        self.saved: list[Tensor] = []  # the carries before each step, where no gradient of the gradient is wanted

    def split(self, values) -> tuple[list, list, list]:
        end = self.carries + self.slices
        return list(values[: self.carries]), list(values[self.carries : end]), list(values[end:])

    def differentiate(self, operands: tuple, wanted: list[bool]) -> None:
        init, xs, shared = self.split(operands)
        given = [*examples(init), *examples(xs, sliced=True), *examples(shared)]
        self.wanted = wanted
        inner = [is_floating(t) or w for t, w in zip(init, wanted, strict=False)] + wanted[self.carries :]
        result = backward_graph(self.f, given, inner, fake_mode_for(operands))
        self.graph, self.floating = result.graph, inner[: self.carries]
        self.outputs = result.outputs

    def forward(self, values):
        """The scan; beside its results, the carry that each step began with is kept."""
        init, xs, shared = self.split(values)
        out = self.op(self._with_carries, init, xs, tuple(shared))
        self.saved = list(out[len(out) - self.carries :])
        return out[: len(out) - self.carries]

    def _with_carries(self, *values):
        out = list(self.f(*values))
        return [*out, *[t.clone() for t in values[: self.carries]]]

    def backward(self, values, gs):
        init, xs, shared = self.split(values)
        if ambient.mode & modes.GRAD:  # the carries as functions of the operands, for gradients of these gradients
            refuse_random(self.f)
            out = self.op(self._with_carries, init, xs, tuple(shared))
            carries = list(out[len(out) - self.carries :])
        else:
            carries = self.saved
        count = sum(self.floating)
        shares = [t for t, w in zip(shared, self.wanted[self.carries + self.slices :], strict=True) if w]
        state = [g.contiguous() for g in gs[:count]] + [t.new_zeros(t.shape) for t in shares]
        along = [t.flip([0]) for t in (*carries, *xs, *gs[count:])]
        out = self.op(self._backward_step, state, along, tuple(shared))
        firsts = iter(out[:count])
        result = [g for g, w in zip(self._spread(firsts), self.wanted, strict=False) if w]
        return [*result, *[g.flip([0]) for g in out[len(state) :]], *out[count : len(state)]]

    def _spread(self, grads) -> list:
        return [next(grads) if floating else None for floating in self.floating]

    def _backward_step(self, *values):
        """(gradients of the carry, sums for what is shared; carry, x, gradients of y; what is shared) -> the next ones."""
        count = sum(self.floating)
        sums = sum(self.wanted[self.carries + self.slices :])
        g_carry, totals, rest = values[:count], values[count : count + sums], values[count + sums :]
        n_gs = sum(self.outputs) - count
        carry, rest = rest[: self.carries], rest[self.carries :]
        x, g_y, shared = rest[: self.slices], rest[self.slices : self.slices + n_gs], rest[self.slices + n_gs :]
        result = list(self.graph(*carry, *x, *shared, *g_carry, *g_y))
        g_shared = result[len(result) - sums :] if sums else []
        return [
            *result[:count],
            *[a + b for a, b in zip(totals, g_shared, strict=True)],
            *result[count : len(result) - sums],
        ]


def stacked_fake(mode, t: Tensor, steps) -> Tensor:
    """A fake of as many of these as there are steps."""
    shape = (steps, *t._array.shape)
    return mode.make(shape, contiguous_strides(shape), t.dtype, t.device)


scan_op = Scan()


def scan(combine_fn: Callable, init, xs, *, dim: int = 0, reverse: bool = False) -> tuple:
    """(last carry, stacked outputs) of `combine_fn(carry, x) -> (carry, y)` over the slices of `xs`; in a graph, one node."""
    firsts, init_spec = tree.tree_flatten(init)
    slices, xs_spec = tree.tree_flatten(xs)
    if not slices:
        return init, []
    _check(combine_fn, firsts, slices, dim, reverse)
    dim = wrap_dim(dim, slices[0].ndim)
    if any(t.ndim <= dim or t.shape[dim] == 0 for t in slices):
        raise RuntimeError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    slices = [t.movedim(dim, 0) if dim else t for t in slices]
    if reverse:
        slices = [t.flip([0]) for t in slices]
    kept: list = []

    def flat(*values):
        out, spec = _flat_step(combine_fn, init_spec, xs_spec, len(firsts), values)
        kept.append(spec)
        return out

    result = list((scan_op if is_traced([*firsts, *slices]) else scan_op.plain)(flat, firsts, slices, ()))
    out = [t.flip([0]) if reverse else t for t in result[len(firsts) :]]
    out = [t.movedim(0, dim) if dim and dim < t.ndim else t for t in out]
    return tree.tree_unflatten(result[: len(firsts)], init_spec), tree.tree_unflatten(out, kept[0])


def _flat_step(combine_fn: Callable, init_spec, xs_spec, count: int, values) -> tuple[list, object]:
    """(the leaves of the next carry and of the output, how the output is nested) of one step, whose first `count` values are the
    carry's."""
    values = list(values)
    carry = tree.tree_unflatten(values[:count], init_spec)
    pair = combine_fn(carry, tree.tree_unflatten(values[count:], xs_spec))
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise refusal(
            scan_op.shown_name,
            "combine_fn needs to produce two pytrees, one for the carries and one for the outputs, but gave "
            f"{type(pair).__name__}",
        )
    leaves, spec = tree.tree_flatten(pair[0])
    if spec != init_spec:
        raise refusal(
            scan_op.shown_name,
            f"Expected init and carry to have same number of outputs but got lhs:{init_spec} and rhs:{spec}",
        )
    out, out_spec = tree.tree_flatten(pair[1])
    _check_outputs(out)
    return [*leaves, *out], out_spec


def wrap_combine_fn_flat(*args, combine_fn: Callable, spec_init, spec_xs, num_init_leaves: int, num_inp_leaves: int):
    """One step of a scan on flat lists: the leaves of the next carry, then those of the output."""
    if len(args) != num_init_leaves + num_inp_leaves:
        raise AssertionError(f"Expected {num_init_leaves + num_inp_leaves} args, got {len(args)}")
    return _flat_step(combine_fn, spec_init, spec_xs, num_init_leaves, args)[0]


def generic_scan(operator: Callable, init: list, xs: list, dim: int = 0, additional_inputs: tuple = ()) -> tuple:
    """A scan on flat lists, step by step: (*last carry, *outputs stacked along the first dimension)."""
    return scan_op.plain(operator, list(init), [t.movedim(dim, 0) for t in xs] if dim else list(xs), additional_inputs)


def _check_outputs(out: list) -> None:
    for v in out:
        if not isinstance(v, Tensor):
            raise refusal(scan_op.shown_name, f"combine_fn must give tensors to stack, but gave {v!r}")


def _check(combine_fn, init: list, xs: list, dim, reverse) -> None:
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError("Dim must be an int, but got " + str(type(dim)))
    if not isinstance(reverse, bool):
        raise RuntimeError("Reverse must be a bool, but got " + str(type(reverse)))
    if not init:
        raise RuntimeError("scan() operator requires init leaves.")
    for kind, leaves in (("init", init), ("xs", xs)):
        for v in leaves:
            if not isinstance(v, Tensor):
                raise RuntimeError(f"All {kind} leaves must be a Tensor but got {v}")
