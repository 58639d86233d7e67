"""Recurrent layers: rnn_tanh, rnn_relu, lstm, gru over padded or packed sequences, and their single steps.

Weights come as PyTorch orders them: for each layer and direction w_ih, w_hh, then b_ih, b_hh where there are biases,
then w_hr where an lstm projects its state. Gates lie in PyTorch's order (lstm: input, forget, cell, output; gru: reset,
update, new). Where nothing listens, one operator runs a direction of a layer over all time steps; else, and for packed
or projected sequences, the same steps run in other operators, from which every rule follows.
"""

from __future__ import annotations

import threading

from ...core import dtype as dtypes
from ...core.modes import AUTOCAST, GRAD, ambient
from ...core.tensor import CUDA, FAKE, META, PLAIN, TRANSFORMED, Tensor
from ..eager.functions import bypassing
from ..family.base import composite, operator
from ..family.contraction import working
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import NONDIFFERENTIABLE, DataDependent, Spec, public
from . import recurrent_steps as steps
from .recurrent_steps import Cell


def _torch(name: str):
    return public("torch", name)


# ---- the fused operator: one direction of one layer
_LAYER = (
    "Tensor input, Tensor hx, Tensor? cx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, str kind, bool reverse"
)
_TARGETS = ("input", "hx", "cx", "w_ih", "w_hh", "b_ih", "b_hh")


def _state(hx, cx) -> tuple:
    return (hx,) if cx is None else (hx, cx)


def _layer_shape(input, hx, cx, w_ih, w_hh, b_ih, b_hh, kind, reverse):
    time, batch = input.shape[:2]
    size = hx.shape[1]
    final = Spec((batch, size), input.dtype)
    wide = dtypes.float32 if input.dtype in dtypes.reduced_precision else input.dtype
    reserve = Spec((time, batch, steps.KEPT[kind] * size), wide)
    return Spec((time, batch, size), input.dtype), final, None if cx is None else final, reserve


def _layer_kernel(xp, input, hx, cx, w_ih, w_hh, b_ih, b_hh, kind, reverse):
    x, h, c, *weights = (working(a) for a in (input, hx, cx, w_ih, w_hh, b_ih, b_hh))
    out, final, kept = steps.forward(steps.Arrays(xp), kind, x, _state(h, c), Cell(*weights), reverse, keep=True)
    if kept is None:
        kept = xp.zeros((*out.shape[:2], 0), dtype=out.dtype)
    result = [a.astype(input.dtype, copy=False) for a in (out, *final)]
    return result[0], result[1], result[2] if c is not None else None, kept


def _layer_grads(gs, input, hx, cx, w_ih, w_hh, b_ih, b_hh, kind, reverse, output, reserve, mask):
    if ambient.mode & GRAD:  # to be differentiated again: everything is computed from the arguments, in operators
        return _written_out(gs, input, hx, cx, Cell(w_ih, w_hh, b_ih, b_hh), kind, reverse)
    given = (input, hx, cx, w_ih, w_hh, b_ih, b_hh, kind, reverse)
    return tuple(dispatch(layer_backward, (gs[0], gs[1], gs[2], output, reserve, *given, tuple(mask))))


def _written_out(gs, input, hx, cx, cell: Cell, kind: str, reverse: bool):
    lib = steps.Tensors()
    state = _state(hx, cx)
    outputs, _, kept = steps.forward(lib, kind, input, state, cell, reverse, keep=True)
    final = tuple(s.new_zeros(s.shape) if g is None else g for g, s in zip(gs[1:3], state, strict=False))
    result = steps.backward(lib, kind, gs[0], final, input, state, cell, reverse, outputs, kept)
    return tuple(g if given is not None else None for g, given in zip(result, (input, hx, cx, *cell[:4]), strict=True))


def _backward_kernel(xp, g_out, g_h, g_c, output, reserve, input, hx, cx, w_ih, w_hh, b_ih, b_hh, kind, reverse, mask):
    arrays = (g_out, g_h, g_c, output, reserve, input, hx, cx, w_ih, w_hh)
    g_out, g_h, g_c, out, kept, x, h, c, w_ih, w_hh = (working(a) for a in arrays)
    state = _state(h, c)
    final = tuple(xp.zeros_like(s) if g is None else g for g, s in zip((g_h, g_c), state, strict=False))
    cell = Cell(w_ih, w_hh)
    wanted = tuple(_wanted(mask, input, hx, cx, w_ih, w_hh, b_ih, b_hh))
    result = steps.backward(steps.Arrays(xp), kind, g_out, final, x, state, cell, reverse, out, kept, wanted)
    return tuple(g.astype(input.dtype, copy=False) if wish else None for g, wish in zip(result, wanted, strict=True))


def _wanted(mask, *given):
    return [wish and t is not None for wish, t in zip(mask, given, strict=True)]


def _backward_shapes(g_out, g_h, g_c, output, reserve, *given):
    wanted = _wanted(given[-1], *given[:7])
    return tuple(Spec(t.shape, t.dtype) if wish else None for t, wish in zip(given, wanted, strict=False))


layer = operator(
    f"recurrent_layer({_LAYER}) -> (Tensor output, Tensor hy, Tensor cy, Tensor reserve)",
    library="pullback",
    cost="compute",
    meta=_layer_shape,
    kernel=_layer_kernel,
    function=False,
    method=False,
    out=False,
    named=False,
    nondifferentiable=(3,),
    vjp={_TARGETS: _layer_grads},
)

layer_backward = operator(
    f"recurrent_layer_backward(Tensor? g_out, Tensor? g_h, Tensor? g_c, Tensor output, Tensor reserve, {_LAYER}, "
    "bool[7] output_mask) "
    "-> (Tensor g_input, Tensor g_hx, Tensor g_cx, Tensor g_w_ih, Tensor g_w_hh, Tensor g_b_ih, Tensor g_b_hh)",
    library="pullback",
    cost="compute",
    meta=_backward_shapes,
    kernel=_backward_kernel,
    function=False,
    method=False,
    out=False,
    named=False,
    vjp=NONDIFFERENTIABLE,  # double backward takes the written-out rule of the forward instead
)


# What a step is made of where it is not fused.
_WITHIN_STEPS = tuple([f"{name}.default" for name in ("t", "mm", "addmm", "sigmoid", "tanh", "relu")]) + (
    "add.Tensor", "mul.Tensor", "sub.Tensor", "chunk.default", "split.Tensor", "unbind.int", "stack.default",
    "select.int", "view.default", "clone.default", "_unsafe_view.default",
)  # fmt: skip


# ---- one direction over time
def _run_padded(kind: str, x: Tensor, state: tuple, cell: Cell, reverse: bool):
    if _fusable(x, *state, *cell) and x.shape[0]:
        given = (x, state[0], state[1] if len(state) > 1 else None, *cell[:4], kind, reverse)
        out, hy, cy, _ = dispatch(layer, given)
        return out, (hy,) if cy is None else (hy, cy)
    out, final, _ = steps.forward(steps.Tensors(), kind, x, state, cell, reverse)
    return out, final


@bypassing(*_WITHIN_STEPS)
def _fusable(x, *others) -> bool | None:
    """Whether nothing listens (or a trace wants layers whole) and all tensors are plain and of one floating dtype; the last is
    the projection."""
    traced = ambient.mode >= 2 and whole_layers.wanted
    if ambient.mode >= 2 and not traced or others[-1] is not None or not x.dtype.is_floating_point:
        return False
    given = (x, *(t for t in others if t is not None))
    keys = FAKE | META if traced else CUDA
    return all(
        t.__class__ in PLAIN and not t._keys & ~keys and t.dtype is x.dtype and t.device is x.device for t in given
    )


class WholeLayers(threading.local):
    """Inside this context traces keep a recurrent layer as one operator: written out, every step would be a part of the graph."""

    wanted = False

    def __enter__(self) -> None:
        self.wanted = True

    def __exit__(self, *exc) -> None:
        self.wanted = False


whole_layers = WholeLayers()


def _run_packed(kind: str, x: Tensor, batch_sizes: list[int], state: tuple, cell: Cell, reverse: bool):
    lib = steps.Tensors()
    gates = lib.linear(x, cell.w_ih, cell.b_ih).split(batch_sizes, 0)
    run = _packed_backward if reverse else _packed_forward
    outputs, state = run(lib, kind, gates, batch_sizes, state, cell)
    return _cat(outputs), state


def _packed_forward(lib, kind: str, gates, batch_sizes: list[int], state: tuple, cell: Cell):
    """Sequences are sorted by length: those that end leave from the back, and their last state is kept."""
    finished: list[tuple] = []
    outputs = []
    for gates_in, size in zip(gates, batch_sizes, strict=True):
        if size < state[0].shape[0]:
            finished.append(tuple(s[size:] for s in state))
            state = tuple(s[:size] for s in state)
        state, _ = steps.STEPS[kind](lib, gates_in, state, cell)
        outputs.append(state[0])
    finished.append(state)
    return outputs, tuple(_cat([f[k] for f in reversed(finished)]) for k in range(len(state)))


def _packed_backward(lib, kind: str, gates, batch_sizes: list[int], state: tuple, cell: Cell):
    """From the last time step on: shorter sequences join, each with its initial state."""
    initial, size = state, batch_sizes[-1]
    state = tuple(s[:size] for s in initial)
    outputs = []
    for gates_in, wanted in zip(reversed(gates), reversed(batch_sizes), strict=True):
        if wanted > size:
            state = tuple(_cat([s, first[size:wanted]]) for s, first in zip(state, initial, strict=True))
            size = wanted
        state, _ = steps.STEPS[kind](lib, gates_in, state, cell)
        outputs.append(state[0])
    return outputs[::-1], state


def _cat(tensors: list, dim: int = 0) -> Tensor:
    return tensors[0] if len(tensors) == 1 else _torch("cat")(tensors, dim)


# ---- all layers
def _cells(params: tuple, has_biases: bool, projected: bool) -> list[Cell]:
    width = 2 + (2 if has_biases else 0) + (1 if projected else 0)
    cells = []
    for at in range(0, len(params), width):
        part = params[at : at + width]
        biases = part[2:4] if has_biases else (None, None)
        cells.append(Cell(part[0], part[1], *biases, part[-1] if projected else None))
    return cells


def _layers(
    kind: str, x: Tensor, batch_sizes, state: tuple, params, has_biases, num_layers, dropout, train, bidirectional
):
    """(outputs of the last layer, final states stacked as (layers * directions, batch, size))."""
    projected = kind == "lstm" and state[0].shape[2] != state[1].shape[2]
    cells = _cells(params, has_biases, projected)
    directions = 2 if bidirectional else 1
    if len(cells) != num_layers * directions:
        raise RuntimeError(f"{kind}: expected weights for {num_layers * directions} cells, got {len(cells)}")
    firsts = [s.unbind(0) for s in state]
    finals: list[tuple] = []
    for level in range(num_layers):
        outputs = []
        for direction in range(directions):
            k = level * directions + direction
            start = tuple(f[k] for f in firsts)
            if batch_sizes is None:
                out, final = _run_padded(kind, x, start, cells[k], direction == 1)
            else:
                out, final = _run_packed(kind, x, batch_sizes, start, cells[k], direction == 1)
            outputs.append(out)
            finals.append(final)
        x = _cat(outputs, -1)
        if dropout and train and level < num_layers - 1:
            x = _torch("dropout")(x, dropout, True)
    return x, tuple(_torch("stack")([f[i] for f in finals]) for i in range(len(state)))


def _over_input(
    kind: str, input, state: tuple, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
):
    x = input.transpose(0, 1) if batch_first else input
    out, finals = _layers(kind, x, None, state, params, has_biases, num_layers, dropout, train, bidirectional)
    return (out.transpose(0, 1) if batch_first else out, *finals)


def _over_data(
    kind: str, data, batch_sizes, state: tuple, params, has_biases, num_layers, dropout, train, bidirectional
):
    if (
        batch_sizes._keys & (META | TRANSFORMED) and not batch_sizes._keys & FAKE
    ):  # fakes say themselves what is missing
        raise DataDependent(kind, "how packed sequences (batch_sizes) lie in memory")
    sizes = batch_sizes.tolist()
    out, finals = _layers(kind, data, sizes, state, params, has_biases, num_layers, dropout, train, bidirectional)
    return (out, *finals)


_INPUT = (
    "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
)
_DATA = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"


def _is_whole(input: Tensor, hx: tuple) -> bool:
    """Whether PyTorch gives an lstm to oneDNN as a whole: on a CPU, with elements, without projections."""
    return input.device.type == "cpu" and input.numel() != 0 and hx[0].shape[-1] == hx[1].shape[-1]


whole_lstm = composite(
    f"lstm_whole(Tensor input, Tensor[] hx, {_INPUT}) -> (Tensor, Tensor, Tensor)",
    library="pullback",
    function=False,
    method=False,
    out=False,
    autocast_cpu="lower",  # of other recurrent layers, autocast casts the single products
)(lambda input, hx, *rest: _over_input("lstm", input, tuple(hx), *rest))


def _declare(kind: str) -> None:
    many = kind == "lstm"
    hx = "Tensor[] hx" if many else "Tensor hx"
    results = "(Tensor, Tensor, Tensor)" if many else "(Tensor, Tensor)"
    options = {"function": False, "method": False, "out": False}

    def over_input(input, hx, *rest):
        if many and ambient.mode & AUTOCAST and _is_whole(input, hx):
            return dispatch(whole_lstm, (input, hx, *rest))
        return _over_input(kind, input, tuple(hx) if many else (hx,), *rest)

    def over_data(data, batch_sizes, hx, *rest):
        return _over_data(kind, data, batch_sizes, tuple(hx) if many else (hx,), *rest)

    for_input = composite(f"{kind}.input(Tensor input, {hx}, {_INPUT}) -> {results}", **options)(over_input)
    for_data = composite(f"{kind}.data(Tensor data, Tensor batch_sizes, {hx}, {_DATA}) -> {results}", **options)(
        over_data
    )

    def public_function(input, *args):
        return (for_input if isinstance(args[2], bool) else for_data)(input, *args)

    public_function.__name__ = kind
    public_function.__doc__ = (
        f"{kind}(input, hx, params, ...), or {kind}(data, batch_sizes, hx, params, ...) if packed."
    )
    front(f"torch.{kind}")(public_function)


for _kind in steps.STEPS:
    _declare(_kind)


# ---- single steps
def _check_cell(input: Tensor, state: tuple, w_ih: Tensor, w_hh: Tensor) -> None:
    """Sizes as they are: nothing is broadcast over a batch, neither a hidden state nor a cell's."""
    if input.ndim and input.shape[-1] != w_ih.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[-1]} expected {w_ih.shape[1]}")
    for i, hx in enumerate(state):
        if hx.shape[-1] != w_hh.shape[1]:
            raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {hx.shape[-1]}, expected {w_hh.shape[1]}")
        if input.ndim == 2 and input.shape[0] != hx.shape[0]:
            raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden{i} batch size {hx.shape[0]}")


def _check_gates(kind: str, w_ih: Tensor, w_hh: Tensor) -> None:
    """One row for each gate and hidden number."""
    gates, hidden = {"lstm": 4, "gru": 3}.get(kind, 1), w_hh.shape[1]
    for name, weight in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if weight.shape[0] != gates * hidden:
            raise RuntimeError(
                f"{name} first dim must be {gates} * hidden_size = {gates * hidden}, but got {weight.shape[0]}"
            )


def _cell(kind: str, input, state: tuple, w_ih, w_hh, b_ih, b_hh):
    _check_cell(input, state, w_ih, w_hh)
    _check_gates(kind, w_ih, w_hh)
    lib = steps.Tensors()
    return steps.STEPS[kind](lib, lib.linear(input, w_ih, b_ih), state, Cell(w_ih, w_hh, b_ih, b_hh))[0]


_CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


@composite(
    f"lstm_cell(Tensor input, Tensor[] hx, {_CELL}) -> (Tensor, Tensor)", method=False, out=False, autocast_cuda="lower"
)
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return _cell("lstm", input, tuple(hx), w_ih, w_hh, b_ih, b_hh)


@composite(f"gru_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", method=False, out=False, autocast_cuda="lower")
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    return _cell("gru", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@composite(f"rnn_tanh_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", method=False, out=False, autocast_cuda="lower")
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    return _cell("rnn_tanh", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@composite(f"rnn_relu_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", method=False, out=False, autocast_cuda="lower")
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    return _cell("rnn_relu", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]
