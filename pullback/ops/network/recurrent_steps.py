"""What recurrent layers compute, written once for arrays and for tensors.

`lib` says how: `Arrays(xp)` runs on arrays, which makes the kernels of the fused operator; `Tensors()` runs on
operators, which makes the decomposition and what double backward differentiates. A layer sees time first: x is (time,
batch, size). `forward` gives the outputs, the final state and what `backward` wants to know again of every step: lstm
(input, forget, cell, output gate, cell state), gru (reset, update, new, what the state adds to new), rnn nothing.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ...core.records import Record
from ...runtime import recurrent_cpu
from ...runtime.products import multiply
from ...runtime.recurrent_cpu import GATES as GATES  # noqa: PLC0414 - both are facts of steps
from ...runtime.recurrent_cpu import KEPT as KEPT  # noqa: PLC0414
from ..system.operator import public


class Cell(Record):
    """The weights of one direction of one layer."""

    w_ih: Any
    w_hh: Any
    b_ih: Any = None
    b_hh: Any = None
    w_hr: Any = None


class Arrays:
    """The functions that steps need, on arrays."""

    def __init__(self, xp):
        self.xp = xp
        self.tanh = xp.tanh

    def linear(self, x, weight, bias):
        rows = x if x.ndim == 2 else self._rows(x)
        result = multiply(rows, weight.T) if self.xp is np else rows.dot(weight.T)
        result = result.reshape(*x.shape[:-1], weight.shape[0])
        if bias is not None:
            result += bias
        return result

    @staticmethod
    def _rows(x):
        return x.reshape(prod(x.shape[:-1]), x.shape[-1])  # of known number, since there may be none

    def sigmoid(self, x):
        return self.tanh(x * 0.5) * 0.5 + 0.5

    def lstm_gates(self, x):
        """Sigmoids and, for the third gate, tanh: one tanh over all four, since sigmoid(x) = tanh(x / 2) / 2 + 1 / "
        "2."""
        scale, shift = _lstm_scale(self.xp, x.shape[-1] // 4, x.dtype)
        result = x * scale
        self.tanh(result, result)
        result *= scale
        result += shift
        return self.split(result, 4)

    def relu(self, x):
        return self.xp.maximum(x, 0)

    def positive(self, x):
        return (x > 0).astype(x.dtype)

    def split(self, x, n: int):
        size = x.shape[-1] // n
        return [x[..., k * size : (k + 1) * size] for k in range(n)]

    def cat(self, parts):
        return self.xp.concatenate(parts, axis=-1)

    def stack(self, parts):
        return self.xp.stack(parts)

    def turned(self, x):
        return x.T

    def rows(self, x):
        return x.reshape(-1, x.shape[-1])

    def run(self, kind: str, x, state: tuple, cell: Cell, reverse: bool):
        """All steps at once, where there is a kernel for it: what `forward` gives; else None."""
        if cell.w_hr is not None:
            return None
        if self.xp is not np:
            return device_layers().forward(self.xp, kind, x, state, cell, reverse)
        return recurrent_cpu.forward(kind, x, state, tuple(cell), reverse)

    def run_back(self, wanted: tuple, *call):
        """What `backward` gives, where there is a kernel for it; else None."""
        return recurrent_cpu.backward(*call, wanted) if self.xp is np else device_layers().backward(self.xp, *call)


def device_layers():
    """The kernels of CUDA devices, which few programs need."""
    from ...runtime import recurrent

    return recurrent


@lru_cache(32)
def _lstm_scale(xp, size: int, dtype) -> tuple:
    scale = xp.full(4 * size, 0.5, dtype=dtype)
    scale[2 * size : 3 * size] = 1
    return scale, 1 - scale


class Tensors:
    """The functions that steps need, in operators."""

    def __init__(self):
        self.linear = public("nn.functional", "linear")
        self.stack = public("torch", "stack")
        self._cat = public("torch", "cat")

    def tanh(self, x):
        return x.tanh()

    def sigmoid(self, x):
        return x.sigmoid()

    def lstm_gates(self, x):
        i, f, g, o = x.chunk(4, -1)
        return i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()

    def relu(self, x):
        return x.relu()

    def positive(self, x):
        return (x > 0).to(x.dtype)

    def split(self, x, n: int):
        return x.chunk(n, -1)

    def cat(self, parts):
        return self._cat(parts, -1)

    def turned(self, x):
        return x.t()

    def rows(self, x):
        return x.reshape(-1, x.shape[-1])


# ---- one step: gates from the input (already multiplied), the state, the weights -> (state, what is kept)
def _rnn_step(lib, gates, state, cell: Cell, activation: str):
    h = getattr(lib, activation)(gates + lib.linear(state[0], cell.w_hh, cell.b_hh))
    return (h,), ()


def _lstm_step(lib, gates, state, cell: Cell):
    h, c = state
    i, f, g, o = lib.lstm_gates(gates + lib.linear(h, cell.w_hh, cell.b_hh))
    c = f * c + i * g
    h = o * lib.tanh(c)
    return (h if cell.w_hr is None else lib.linear(h, cell.w_hr, None), c), (i, f, g, o, c)


def _gru_step(lib, gates, state, cell: Cell):
    (h,) = state
    r_in, z_in, n_in = lib.split(gates, 3)
    r_h, z_h, n_h = lib.split(lib.linear(h, cell.w_hh, cell.b_hh), 3)
    r, z = lib.sigmoid(r_in + r_h), lib.sigmoid(z_in + z_h)
    n = lib.tanh(n_in + r * n_h)
    return (n + z * (h - n),), (r, z, n, n_h)


STEPS = {
    "rnn_tanh": lambda lib, gates, state, cell: _rnn_step(lib, gates, state, cell, "tanh"),
    "rnn_relu": lambda lib, gates, state, cell: _rnn_step(lib, gates, state, cell, "relu"),
    "lstm": _lstm_step,
    "gru": _gru_step,
}


def forward(lib, kind: str, x, state: tuple, cell: Cell, reverse: bool, keep: bool = False):
    """(outputs, final state, what each step keeps or None)."""
    whole = lib.run(kind, x, state, cell, reverse) if isinstance(lib, Arrays) else None
    if whole is not None:
        return whole
    gates = lib.linear(x, cell.w_ih, cell.b_ih)
    step, outputs, kept = STEPS[kind], [], []
    times = range(x.shape[0])
    for t in reversed(times) if reverse else times:
        state, more = step(lib, gates[t], state, cell)
        outputs.append(state[0])
        if keep and more:
            kept.append(lib.cat(more))
    if reverse:
        outputs, kept = outputs[::-1], kept[::-1]
    return lib.stack(outputs), state, lib.stack(kept) if kept else None


# ---- one step back: gradient of the new state -> (gradients of the gates from input and from state, of the old state)
def _rnn_back(lib, kind, gh, gc, h, before, kept, cell):
    d = gh * (1 - h * h) if kind == "rnn_tanh" else gh * lib.positive(h)
    return d, d, d @ cell.w_hh, None


def _lstm_back(lib, kind, gh, gc, h, before, kept, cell):
    i, f, g, o, c = lib.split(kept, 5)
    top = lib.tanh(c)
    gc = gc + gh * o * (1 - top * top)
    parts = (gc * g * i * (1 - i), gc * before[1] * f * (1 - f), gc * i * (1 - g * g), gh * top * o * (1 - o))
    d = lib.cat(parts)
    return d, d, d @ cell.w_hh, gc * f


def _gru_back(lib, kind, gh, gc, h, before, kept, cell):
    r, z, n, n_h = lib.split(kept, 4)
    d_n = gh * (1 - z) * (1 - n * n)
    d_z = gh * (before[0] - n) * z * (1 - z)
    d_r = d_n * n_h * r * (1 - r)
    from_state = lib.cat((d_r, d_z, d_n * r))
    return lib.cat((d_r, d_z, d_n)), from_state, gh * z + from_state @ cell.w_hh, None


_BACK = {"rnn_tanh": _rnn_back, "rnn_relu": _rnn_back, "lstm": _lstm_back, "gru": _gru_back}


def backward(
    lib, kind: str, g_out, g_state: tuple, x, state: tuple, cell: Cell, reverse: bool, outputs, kept, wanted=(True,) * 7
):
    """Gradients of (x, h, c, w_ih, w_hh, b_ih, b_hh), or None for those that are not `wanted`; c is None where there is none."""
    if isinstance(lib, Arrays) and cell.w_hr is None:
        result = lib.run_back(wanted, kind, g_out, g_state, x, state, tuple(cell), reverse, outputs, kept)
        if result is not None:
            return tuple(g if wish else None for g, wish in zip(result, wanted, strict=True))
    d_in, d_state, gh, gc, past = _step_back(lib, kind, g_out, g_state, x, state, cell, reverse, outputs, kept)
    rows_in, rows_state = lib.rows(d_in), lib.rows(d_state)
    d_x = d_in @ cell.w_ih if wanted[0] else None
    d_w_ih = lib.turned(rows_in) @ lib.rows(x) if wanted[3] else None
    d_w_hh = lib.turned(rows_state) @ lib.rows(past) if wanted[4] else None
    return d_x, gh, gc, d_w_ih, d_w_hh, rows_in.sum(0) if wanted[5] else None, rows_state.sum(0) if wanted[6] else None


def _step_back(lib, kind: str, g_out, g_state: tuple, x, state: tuple, cell: Cell, reverse: bool, outputs, kept):
    """(gradients of gates from the input, from the state, of the first state, what each step started from), step by step."""
    back = _BACK[kind]
    gh, gc = (*g_state, None)[:2]
    times = range(x.shape[0])
    order = list(times) if reverse else list(reversed(times))  # the last step that ran comes first
    befores = [_state_before(kind, t, order, k, state, outputs, kept, lib) for k, t in enumerate(order)]
    from_input, from_state = [None] * len(order), [None] * len(order)
    for t, before in zip(order, befores, strict=True):
        gh = gh if g_out is None else gh + g_out[t]
        saved = None if kept is None else kept[t]
        from_input[t], from_state[t], gh, gc = back(lib, kind, gh, gc, outputs[t], before, saved, cell)
    d_in, d_state = lib.stack(from_input), lib.stack(from_state)
    past = [None] * len(order)
    for t, before in zip(order, befores, strict=True):
        past[t] = before[0]
    return d_in, d_state, gh, gc, lib.stack(past)


def _state_before(kind: str, t: int, order: list, k: int, state: tuple, outputs, kept, lib) -> tuple:
    """The state that step t started from: what the step before it left, or the initial one."""
    if k == len(order) - 1:
        return state
    earlier = order[k + 1]
    if kind != "lstm":
        return (outputs[earlier],)
    return outputs[earlier], lib.split(kept[earlier], 5)[4]
