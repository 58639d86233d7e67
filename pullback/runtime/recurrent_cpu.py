"""A direction of a recurrent layer on the CPU: all time steps by one call of the extension (`core/_recurrent.c`).

In: arrays as `ops/network/recurrent_steps` has them: x (time, batch, features) in any order of memory, states, weights, float32 or float64.
Out: what `forward` and `backward` give there, or None where this is not for the call (another dtype, no elements, no extension,
`PULLBACK_NATIVE=0`): the caller then computes with the array library.
"""

from __future__ import annotations

import numpy as np

from ..core.extension import extension
from .network import FLOATS

KINDS = ("rnn_tanh", "rnn_relu", "lstm", "gru")  # in the order of the enumeration in _recurrent.c
GATES = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}
KEPT = {"rnn_tanh": 0, "rnn_relu": 0, "lstm": 5, "gru": 4}  # values that a step keeps, each of the state's size
FEW_ROWS = 8  # of all steps together, for which weights of MANY numbers are read faster than laid out
MANY = 1 << 18

_recurrent = extension("_recurrent")


def kernels():
    """The extension, or None."""
    return _recurrent


def _apply_to(x, w_ih, w_hh, *others) -> bool:
    given = (x, w_ih, w_hh, *[a for a in others if a is not None])
    if (
        kernels() is None
        or x.dtype not in FLOATS
        or any(a.__class__ is not np.ndarray or a.dtype != x.dtype for a in given)
    ):
        return False
    return x.shape[0] * x.shape[1] >= FEW_ROWS or w_ih.size + w_hh.size < MANY


def _rows(a):
    return None if a is None else np.ascontiguousarray(a)


def forward(kind: str, x, state: tuple, cell: tuple, reverse: bool):
    """(outputs, final state, what each step keeps or None)."""
    w_ih, w_hh, b_ih, b_hh = cell[:4]
    if not _apply_to(x, w_ih, w_hh, b_ih, b_hh, *state):
        return None
    (time, batch), n = x.shape[:2], w_hh.shape[1]
    out = np.empty((time, batch, n), x.dtype)
    kept = np.empty((time, batch, KEPT[kind] * n), x.dtype) if KEPT[kind] else None
    last = np.empty((batch, n), x.dtype) if kind == "lstm" else None
    h, c = (*map(_rows, state), None)[:2]
    given = (x, *map(_rows, (w_ih, w_hh, b_ih, b_hh)), h, c, out, kept, last, *(None,) * 10)
    if not _recurrent.run(KINDS.index(kind), False, reverse, given):
        return None
    final = out[0 if reverse else -1].copy()
    return out, (final,) if last is None else (final, last), kept


def backward(
    kind: str, g_out, g_state: tuple, x, state: tuple, cell: tuple, reverse: bool, outputs, kept, wanted: tuple
):
    """Gradients of (x, h, c, w_ih, w_hh, b_ih, b_hh), each of those that are `wanted`; the states' always."""
    w_ih, w_hh = cell[:2]
    kept = kept if KEPT[kind] else None
    if not _apply_to(x, w_ih, w_hh, g_out, *g_state, *state, outputs, kept):
        return None
    n = w_hh.shape[1]
    gh, gc = (*[np.array(g, order="C") for g in g_state], None)[:2]
    h, c = (*map(_rows, state), None)[:2]
    d = np.empty((*outputs.shape[:2], GATES[kind] * n), x.dtype)
    ds = np.empty_like(d) if kind == "gru" else d
    shapes = (x.shape, w_ih.shape, w_hh.shape, w_ih.shape[:1], w_ih.shape[:1])
    results = [np.empty(s, x.dtype) if wish else None for s, wish in zip(shapes, (wanted[0], *wanted[3:]), strict=True)]
    given = (
        x,
        _rows(w_ih),
        _rows(w_hh),
        None,
        None,
        h,
        c,
        _rows(outputs),
        _rows(kept),
        None,
        g_out,
        gh,
        gc,
        d,
        ds,
        *results,
    )
    if not _recurrent.run(KINDS.index(kind), True, reverse, given):
        return None
    return results[0], gh, gc, *results[1:]
