"""Recurrent layers: rnn_tanh, rnn_relu, lstm, gru over padded or packed sequences, and their single steps.

Written in other operators, from which every rule follows. Weights come as PyTorch orders them: for each layer and direction
w_ih, w_hh, then b_ih, b_hh where there are biases, then w_hr where an lstm projects its state. Gates lie in PyTorch's order
(lstm: input, forget, cell, output; gru: reset, update, new).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..core.tensor import Tensor
from .calls import front
from .family.base import composite


class Cell(NamedTuple):
    """The weights of one direction of one layer."""

    w_ih: Tensor
    w_hh: Tensor
    b_ih: Tensor | None = None
    b_hh: Tensor | None = None
    w_hr: Tensor | None = None


def _functional(name: str):
    from . import public

    return public("nn.functional", name)


def _linear(x, weight, bias):
    return _functional("linear")(x, weight, bias)


# ---- one step, from what the input contributes (already multiplied) and the state
def _rnn_step(activation: str) -> Callable:
    def step(gates_in, state, cell: Cell):
        return (getattr(gates_in + _linear(state[0], cell.w_hh, cell.b_hh), activation)(),)

    return step


def _lstm_step(gates_in, state, cell: Cell):
    h, c = state
    i, f, g, o = (gates_in + _linear(h, cell.w_hh, cell.b_hh)).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return (h if cell.w_hr is None else _linear(h, cell.w_hr, None)), c


def _gru_step(gates_in, state, cell: Cell):
    (h,) = state
    r_in, z_in, n_in = gates_in.chunk(3, -1)
    r_h, z_h, n_h = _linear(h, cell.w_hh, cell.b_hh).chunk(3, -1)
    n = (n_in + (r_in + r_h).sigmoid() * n_h).tanh()
    return (n + (z_in + z_h).sigmoid() * (h - n),)


_STEPS: dict[str, Callable] = {
    "rnn_tanh": _rnn_step("tanh"),
    "rnn_relu": _rnn_step("relu"),
    "lstm": _lstm_step,
    "gru": _gru_step,
}


# ---- one direction over time
def _run_padded(step: Callable, x: Tensor, state: tuple, cell: Cell, reverse: bool):
    gates = _linear(x, cell.w_ih, cell.b_ih).unbind(0)
    outputs = []
    for gates_in in reversed(gates) if reverse else gates:
        state = step(gates_in, state, cell)
        outputs.append(state[0])
    return _stack(outputs[::-1] if reverse else outputs), state


def _run_packed(step: Callable, x: Tensor, batch_sizes: list[int], state: tuple, cell: Cell, reverse: bool):
    gates = _linear(x, cell.w_ih, cell.b_ih).split(batch_sizes, 0)
    run = _packed_backward if reverse else _packed_forward
    outputs, state = run(step, gates, batch_sizes, state, cell)
    return _cat(outputs), state


def _packed_forward(step: Callable, gates, batch_sizes: list[int], state: tuple, cell: Cell):
    """Sequences are sorted by length: those that end leave from the back, and their last state is kept."""
    finished: list[tuple] = []
    outputs = []
    for gates_in, size in zip(gates, batch_sizes, strict=True):
        if size < state[0].shape[0]:
            finished.append(tuple(s[size:] for s in state))
            state = tuple(s[:size] for s in state)
        state = step(gates_in, state, cell)
        outputs.append(state[0])
    finished.append(state)
    return outputs, tuple(_cat([f[k] for f in reversed(finished)]) for k in range(len(state)))


def _packed_backward(step: Callable, gates, batch_sizes: list[int], state: tuple, cell: Cell):
    """From the last time step on: shorter sequences join, each with its initial state."""
    initial, size = state, batch_sizes[-1]
    state = tuple(s[:size] for s in initial)
    outputs = []
    for gates_in, wanted in zip(reversed(gates), reversed(batch_sizes), strict=True):
        if wanted > size:
            state = tuple(_cat([s, first[size:wanted]]) for s, first in zip(state, initial, strict=True))
            size = wanted
        state = step(gates_in, state, cell)
        outputs.append(state[0])
    return outputs[::-1], state


def _stack(tensors: list) -> Tensor:
    from . import public

    return public("torch", "stack")(tensors)


def _cat(tensors: list, dim: int = 0) -> Tensor:
    from . import public

    return tensors[0] if len(tensors) == 1 else public("torch", "cat")(tensors, dim)


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
    step = _STEPS[kind]
    projected = kind == "lstm" and state[0].shape[2] != state[1].shape[2]
    cells = _cells(params, has_biases, projected)
    directions = 2 if bidirectional else 1
    if len(cells) != num_layers * directions:
        raise RuntimeError(f"{kind}: expected weights for {num_layers * directions} cells, got {len(cells)}")
    firsts = [s.unbind(0) for s in state]
    finals: list[tuple] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            start = tuple(f[k] for f in firsts)
            if batch_sizes is None:
                out, final = _run_padded(step, x, start, cells[k], direction == 1)
            else:
                out, final = _run_packed(step, x, batch_sizes, start, cells[k], direction == 1)
            outputs.append(out)
            finals.append(final)
        x = _cat(outputs, -1)
        if dropout and train and layer < num_layers - 1:
            x = _functional("dropout")(x, dropout, True)
    return x, tuple(_stack([f[i] for f in finals]) for i in range(len(state)))


def _over_input(
    kind: str, input, state: tuple, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
):
    x = input.transpose(0, 1) if batch_first else input
    out, finals = _layers(kind, x, None, state, params, has_biases, num_layers, dropout, train, bidirectional)
    return (out.transpose(0, 1) if batch_first else out, *finals)


def _over_data(
    kind: str, data, batch_sizes, state: tuple, params, has_biases, num_layers, dropout, train, bidirectional
):
    sizes = batch_sizes.tolist()
    out, finals = _layers(kind, data, sizes, state, params, has_biases, num_layers, dropout, train, bidirectional)
    return (out, *finals)


_INPUT = (
    "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
)
_DATA = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"


def _declare(kind: str) -> None:
    many = kind == "lstm"
    hx = "Tensor[] hx" if many else "Tensor hx"
    results = "(Tensor, Tensor, Tensor)" if many else "(Tensor, Tensor)"
    options = {"function": False, "method": False, "out": False}

    def over_input(input, hx, *rest):
        return _over_input(kind, input, tuple(hx) if many else (hx,), *rest)

    def over_data(data, batch_sizes, hx, *rest):
        return _over_data(kind, data, batch_sizes, tuple(hx) if many else (hx,), *rest)

    for_input = composite(f"{kind}.input(Tensor input, {hx}, {_INPUT}) -> {results}", **options)(over_input)
    for_data = composite(f"{kind}.data(Tensor data, Tensor batch_sizes, {hx}, {_DATA}) -> {results}", **options)(
        over_data
    )

    def layer(input, *args):
        return (for_input if isinstance(args[2], bool) else for_data)(input, *args)

    layer.__name__ = kind
    layer.__doc__ = f"{kind}(input, hx, params, ...) over padded sequences, {kind}(data, batch_sizes, hx, params, ...) over packed ones."
    front(f"torch.{kind}")(layer)


for _kind in _STEPS:
    _declare(_kind)


# ---- single steps
def _check_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor) -> None:
    if input.ndim and input.shape[-1] != w_ih.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[-1]} expected {w_ih.shape[1]}")
    if hx.shape[-1] != w_hh.shape[1]:
        raise RuntimeError(f"hidden0 has inconsistent hidden_size: got {hx.shape[-1]}, expected {w_hh.shape[1]}")
    if input.ndim == 2 and input.shape[0] != hx.shape[0]:
        raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden0 batch size {hx.shape[0]}")


def _cell(kind: str, input, state: tuple, w_ih, w_hh, b_ih, b_hh):
    _check_cell(input, state[0], w_ih, w_hh)
    return _STEPS[kind](_linear(input, w_ih, b_ih), state, Cell(w_ih, w_hh, b_ih, b_hh))


_CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


@composite(f"lstm_cell(Tensor input, Tensor[] hx, {_CELL}) -> (Tensor, Tensor)", method=False, out=False)
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return _cell("lstm", input, tuple(hx), w_ih, w_hh, b_ih, b_hh)


@composite(f"gru_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", method=False, out=False)
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    return _cell("gru", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@composite(f"rnn_tanh_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", method=False, out=False)
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    return _cell("rnn_tanh", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@composite(f"rnn_relu_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", method=False, out=False)
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    return _cell("rnn_relu", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]
