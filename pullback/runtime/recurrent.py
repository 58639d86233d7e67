"""A direction of a recurrent layer on a CUDA device: all time steps by one call of the launcher.

In: arrays of CuPy's as `ops/network/recurrent_steps` has them: x (time, batch, size), states, weights, float32 or float64. Out: what
`forward` and `backward` give there, or None where this is not for the call. A step is a product with the recurrent weights and one
kernel for everything else; products of all steps at once (gates of the input, gradients of weights) come before and after.

What a plan is told besides addresses are numbers: of the step, of the one before it (-1: the initial state), of batch and state.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.modes import process
from .cuda import Machine, machine
from .launcher import launcher
from .recurrent_cpu import GATES, KEPT
from .replays import Replays

TYPES = {np.dtype(np.float32): ("float", 0), np.dtype(np.float64): ("double", 1)}
THREADS = 128
GRAPHS = 64  # of one geometry: as many layers may have it
NAMES = (
    "lstm",
    "gru",
    "rnn_tanh",
    "rnn_relu",
    "lstm_back",
    "gru_back",
    "rnn_tanh_back",
    "rnn_relu_back",
    "past",
    "columns",
)

TEXT = r"""
typedef long i64;
#define STEP i64 t, i64 before, i64 batch, i64 size
#define PLACE const i64 at = blockIdx.x * (i64)128 + threadIdx.x; if (at >= batch * size) return; const i64 b = at / size, j = at % size;
static __device__ __forceinline__ T sigmoid(T x) { return (T)1 / ((T)1 + exp(-x)); }
extern "C" __global__ void lstm(const T *gates, const T *part, const T *bias_in, const T *bias, const T *first, const T *cell, T *out, T *kept,
                                T *last, STEP) {
    PLACE
    T x[4];
    for (int k = 0; k < 4; k++)
        x[k] = gates[(t * batch + b) * 4 * size + k * size + j] + part[b * 4 * size + k * size + j] +
            (bias_in ? bias_in[k * size + j] : (T)0) + (bias ? bias[k * size + j] : (T)0);
    const T i = sigmoid(x[0]), f = sigmoid(x[1]), g = tanh(x[2]), o = sigmoid(x[3]);
    const T c = f * (before < 0 ? cell[at] : kept[(before * batch + b) * 5 * size + 4 * size + j]) + i * g;
    T *row = kept + (t * batch + b) * 5 * size + j;
    row[0] = i; row[size] = f; row[2 * size] = g; row[3 * size] = o; row[4 * size] = c;
    last[at] = c;
    out[t * batch * size + at] = o * tanh(c);
}
extern "C" __global__ void gru(const T *gates, const T *part, const T *bias_in, const T *bias, const T *first, const T *cell, T *out, T *kept,
                               T *last, STEP) {
    PLACE
    T x[3], y[3];
    for (int k = 0; k < 3; k++) {
        x[k] = gates[(t * batch + b) * 3 * size + k * size + j] + (bias_in ? bias_in[k * size + j] : (T)0);
        y[k] = part[b * 3 * size + k * size + j] + (bias ? bias[k * size + j] : (T)0);
    }
    const T r = sigmoid(x[0] + y[0]), z = sigmoid(x[1] + y[1]), n = tanh(x[2] + r * y[2]);
    const T h = before < 0 ? first[at] : out[before * batch * size + at];
    T *row = kept + (t * batch + b) * 4 * size + j;
    row[0] = r; row[size] = z; row[2 * size] = n; row[3 * size] = y[2];
    out[t * batch * size + at] = n + z * (h - n);
}
#define SIMPLE(NAME, RESULT, SLOPE) \
extern "C" __global__ void NAME(const T *gates, const T *part, const T *bias_in, const T *bias, const T *first, const T *cell, T *out, T *kept, \
                                T *last, STEP) { \
    PLACE \
    const T x = gates[t * batch * size + at] + part[at] + (bias_in ? bias_in[j] : (T)0) + (bias ? bias[j] : (T)0); \
    out[t * batch * size + at] = RESULT; \
} \
extern "C" __global__ void NAME##_back(const T *later, const T *grad, const T *first, const T *cell, const T *out, const T *kept, T *carried, T *d_in, \
                                       T *d_state, STEP) { \
    PLACE \
    const T h = out[t * batch * size + at]; \
    const T g = later[at] + (grad ? grad[t * batch * size + at] : (T)0); \
    d_in[t * batch * size + at] = SLOPE; \
}
SIMPLE(rnn_tanh, tanh(x), g * ((T)1 - h * h))
SIMPLE(rnn_relu, (x > 0 || x != x ? x : (T)0), h > 0 ? g : (T)0)
extern "C" __global__ void lstm_back(const T *later, const T *grad, const T *first, const T *cell, const T *out, const T *kept, T *carried, T *d_in,
                                     T *d_state, STEP) {
    PLACE
    const T gh = later[at] + (grad ? grad[t * batch * size + at] : (T)0);
    const T *row = kept + (t * batch + b) * 5 * size + j;
    const T i = row[0], f = row[size], g = row[2 * size], o = row[3 * size], top = tanh(row[4 * size]);
    const T c = before < 0 ? cell[at] : kept[(before * batch + b) * 5 * size + 4 * size + j];
    const T gc = carried[at] + gh * o * ((T)1 - top * top);
    T *d = d_in + (t * batch + b) * 4 * size + j;
    d[0] = gc * g * i * ((T)1 - i);
    d[size] = gc * c * f * ((T)1 - f);
    d[2 * size] = gc * i * ((T)1 - g * g);
    d[3 * size] = gh * top * o * ((T)1 - o);
    carried[at] = gc * f;
}
extern "C" __global__ void gru_back(const T *later, const T *grad, const T *first, const T *cell, const T *out, const T *kept, T *carried, T *d_in,
                                    T *d_state, STEP) {
    PLACE
    const T gh = later[at] + carried[at] + (grad ? grad[t * batch * size + at] : (T)0);
    const T *row = kept + (t * batch + b) * 4 * size + j;
    const T r = row[0], z = row[size], n = row[2 * size], m = row[3 * size];
    const T h = before < 0 ? first[at] : out[before * batch * size + at];
    const T d_n = gh * ((T)1 - z) * ((T)1 - n * n), d_z = gh * (h - n) * z * ((T)1 - z), d_r = d_n * m * r * ((T)1 - r);
    T *d = d_in + (t * batch + b) * 3 * size + j, *s = d_state + (t * batch + b) * 3 * size + j;
    d[0] = s[0] = d_r; d[size] = s[size] = d_z; d[2 * size] = d_n; s[2 * size] = d_n * r;
    carried[at] = gh * z;
}
extern "C" __global__ void past(const T *first, const T *out, T *result, i64 each, i64 times, i64 reverse) {
    const i64 at = blockIdx.x * (i64)128 + threadIdx.x;
    if (at >= each * times) return;
    const i64 from = reverse ? at + each : at - each;
    result[at] = from >= 0 && from < each * times ? out[from] : first[at % each];
}
extern "C" __global__ void columns(const T *rows, T *result, T *again, i64 count, i64 width) {
    __shared__ T part[128];
    const i64 j = blockIdx.x * (i64)32 + threadIdx.x % 32;
    T sum = 0;
    for (i64 r = threadIdx.x / 32; r < count && j < width; r += 4) sum += rows[r * width + j];
    part[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x >= 32 || j >= width) return;
    sum = part[threadIdx.x] + part[threadIdx.x + 32] + part[threadIdx.x + 64] + part[threadIdx.x + 96];
    result[j] = sum;
    if (again) again[j] = sum;
}
"""


def _product(m: int, n: int, k: int, a: tuple, b: tuple, c: tuple, kind: int, item: int) -> list[int]:
    """An entry of a plan, row-major. Operands are (slot, element, whether transposed, leading dimension)."""
    sides = [x for slot, at, _, _ in (a, b, c) for x in (slot, at * item, kind)]
    return [1, a[2], b[2], m, n, k, a[3], b[3], c[3], *sides, item, item, item, 0]


class Slots:
    """The table of a plan: addresses by name, then numbers, each once."""

    def __init__(self, *names: str):
        self.places = {name: k for k, name in enumerate(names)}
        self.numbers: list[int] = []

    def __getitem__(self, name: str | int) -> int:
        if name not in self.places:  # type: ignore[comparison-overlap]
            self.places[name] = len(self.places)  # type: ignore[index]
            self.numbers.append(int(name))
        return self.places[name]  # type: ignore[index]

    def launch(self, name: str, grid: int, *arguments: str | int) -> list[int]:
        return [0, NAMES.index(name), grid, THREADS, len(arguments), *[self[a] for a in arguments]]


class Steps:
    """A plan that is ready but for its addresses, which come in the order of the names that slots were made with."""

    def __init__(self, entries: list[list[int]], slots: Slots):
        self.entries = len(entries)
        self.numbers = np.array([x for e in entries for x in (len(e), *e)], np.int64)
        self.constants = np.array(slots.numbers, np.int64).view(np.uint64)
        self.replays = Replays(GRAPHS)

    def run(self, on: Machine, functions: Functions, addresses: list[int]) -> None:
        """All steps, on the stream in use; by a graph, where one was made for these addresses."""
        stream = on.stream()
        if not process.cuda_captures:
            name = (*addresses, stream, process.matmul_precision)
            make = lambda: on.graph_of(stream, lambda side, room: self.launch(on, functions, addresses, side, *room))
            graph = self.replays.find(name, make)
            if graph is not None:
                on.replay(graph)
                return
        self.launch(on, functions, addresses, stream, None, 0)

    def launch(
        self, on: Machine, functions: Functions, addresses: list[int], stream: int, room: int | None, size: int
    ) -> None:
        slots = np.concatenate((np.array(addresses, np.uint64), self.constants))
        wrong = launcher()(
            self.numbers.ctypes.data, self.entries, slots.ctypes.data, functions.table, ctypes.addressof(functions.api), stream,
            on.handle(), process.matmul_precision != "highest", room, size, None,
        )  # fmt: skip
        if wrong:
            raise RuntimeError(f"CUDA error: step {wrong // 100000 - 1} of a recurrent layer gave {wrong % 100000}")


FORWARD = ("x", "w_ih", "w_hh", "b_ih", "b_hh", "first", "cell", "gates", "part", "out", "kept", "last")
BACKWARD = (
    "x", "w_ih", "w_hh", "first", "cell", "out", "kept", "grad", "g_first", "later", "carried", "d_in", "d_state", "past",
    "d_x", "d_w_ih", "d_w_hh", "d_b_ih", "d_b_hh",
)  # fmt: skip


@lru_cache(64)
def _forward_plan(kind: str, times: int, batch: int, size: int, width: int, item: int, reverse: bool) -> Steps:
    s, d, gates = Slots(*FORWARD), 0 if item == 4 else 1, GATES[kind] * size
    rows, each = times * batch, batch * size
    w = lambda name, k: (s[name], 0, 1, k)
    entries = [
        _product(rows, gates, width, (s["x"], 0, 0, width), w("w_ih", width), (s["gates"], 0, 0, gates), d, item)
    ]
    order = list(range(times))[:: -1 if reverse else 1]
    for before, t in zip([-1, *order[:-1]], order, strict=True):
        h = (s["first"], 0, 0, size) if before < 0 else (s["out"], before * each, 0, size)
        entries.append(_product(batch, gates, size, h, w("w_hh", size), (s["part"], 0, 0, gates), d, item))
        given = ("gates", "part", "b_ih", "b_hh", "first", "cell", "out", "kept", "last", t, before, batch, size)
        entries.append(s.launch(kind, -(-each // THREADS), *given))
    return Steps(entries, s)


@lru_cache(64)
def _backward_plan(kind: str, times: int, batch: int, size: int, width: int, item: int, reverse: bool) -> Steps:
    s, d, gates = Slots(*BACKWARD), 0 if item == 4 else 1, GATES[kind] * size
    rows, each = times * batch, batch * size
    order = list(range(times))[:: 1 if reverse else -1]  # the last step that ran comes first
    entries = []
    for k, t in enumerate(order):
        before = order[k + 1] if k + 1 < times else -1
        later = "g_first" if not k else "later"
        given = (later, "grad", "first", "cell", "out", "kept", "carried", "d_in", "d_state", t, before, batch, size)
        entries.append(s.launch(f"{kind}_back", -(-each // THREADS), *given))
        step = (s["d_state"], t * batch * gates, 0, gates)
        entries.append(_product(batch, size, gates, step, (s["w_hh"], 0, 0, size), (s["later"], 0, 0, size), d, item))
    d_in, turned = (s["d_in"], 0, 0, gates), (s["d_in"], 0, 1, gates)
    entries += [
        s.launch("past", -(-rows * size // THREADS), "first", "out", "past", each, times, int(reverse)),
        _product(rows, width, gates, d_in, (s["w_ih"], 0, 0, width), (s["d_x"], 0, 0, width), d, item),
        _product(gates, width, rows, turned, (s["x"], 0, 0, width), (s["d_w_ih"], 0, 0, width), d, item),
        _product(
            gates, size, rows, (s["d_state"], 0, 1, gates), (s["past"], 0, 0, size), (s["d_w_hh"], 0, 0, size), d, item
        ),
    ]
    columns = -(-gates // 32)
    entries.append(s.launch("columns", columns, "d_in", "d_b_ih", "d_b_hh", rows, gates))
    if kind == "gru":
        entries.append(s.launch("columns", columns, "d_state", "d_b_hh", 0, rows, gates))
    return Steps(entries, s)


def _fit(*arrays) -> bool:
    given = [a for a in arrays if a is not None]
    return given[0].dtype in TYPES and all(a.dtype == given[0].dtype and a.size for a in given)


def forward(xp: Any, kind: str, x, state: tuple, cell: tuple, reverse: bool, on: Machine | None = None):
    """(outputs, final state, what each step keeps or None), or None."""
    w_ih, w_hh, b_ih, b_hh = cell[:4]
    if not _fit(x, *state, *cell[:4]):
        return None
    on = on or machine(x.device.id)
    times, batch, width = x.shape
    size, kind_of = w_hh.shape[1], x.dtype
    dense = [None if a is None else xp.ascontiguousarray(a) for a in (x, w_ih, w_hh, b_ih, b_hh, *state)]
    blank = lambda *shape: xp.empty(shape, kind_of)
    gates, part = blank(times, batch, GATES[kind] * size), blank(batch, GATES[kind] * size)
    out, last = blank(times, batch, size), blank(batch, size)
    kept = blank(times, batch, KEPT[kind] * size) if KEPT[kind] else None
    cells = dense[6] if len(dense) > 6 else None
    arrays = (*dense[:6], cells, gates, part, out, kept, last)
    plan = _forward_plan(kind, times, batch, size, width, kind_of.itemsize, bool(reverse))
    plan.run(on, _functions(on, kind_of), [0 if a is None else on.address(a) for a in arrays])
    final = (out[0 if reverse else -1], last) if kind == "lstm" else (out[0 if reverse else -1],)
    return out, tuple([f.copy() if f is not last else f for f in final]), kept


def backward(
    xp: Any, kind: str, g_out, g_state: tuple, x, state: tuple, cell: tuple, reverse: bool, outputs, kept, on: Machine | None = None
):  # fmt: skip
    """Gradients of (x, h, c, w_ih, w_hh, b_ih, b_hh), or None."""
    if not _fit(x, *state, *cell[:2], outputs, kept if KEPT[kind] else None, g_out, *g_state):
        return None
    on = on or machine(x.device.id)
    times, batch, width = x.shape
    size, kind_of = cell[1].shape[1], x.dtype
    x, w_ih, w_hh, h, out = (xp.ascontiguousarray(a) for a in (x, *cell[:2], state[0], outputs))
    c, saved, grad = (
        None if a is None else xp.ascontiguousarray(a) for a in (state[1] if len(state) > 1 else None, kept, g_out)
    )
    blank = lambda *shape: xp.empty(shape, kind_of)
    carried = g_state[1].copy() if len(g_state) > 1 else xp.zeros((batch, size), kind_of)
    d_in = blank(times, batch, GATES[kind] * size)
    d_state = blank(*d_in.shape) if kind == "gru" else d_in
    later, past, d_x = blank(batch, size), blank(times, batch, size), blank(*x.shape)
    results = blank(*w_ih.shape), blank(*w_hh.shape), blank(w_ih.shape[0]), blank(w_ih.shape[0])
    arrays = (
        x, w_ih, w_hh, h, c, out, saved if KEPT[kind] else None, grad, xp.ascontiguousarray(g_state[0]), later, carried, d_in,
        d_state, past, d_x, *results,
    )  # fmt: skip
    plan = _backward_plan(kind, times, batch, size, width, kind_of.itemsize, bool(reverse))
    plan.run(on, _functions(on, kind_of), [0 if a is None else on.address(a) for a in arrays])
    g_h = later + carried if kind == "gru" else later
    return d_x, g_h, carried if len(state) > 1 else None, *results


class Functions:
    """The kernels of one dtype on a device, as the launcher finds them."""

    def __init__(self, found: list, api: Any, owner: Any):
        self.table = (ctypes.c_void_p * len(found))(*found)
        self.api, self.owner = api, owner


_loaded: dict[tuple, Functions] = {}


def _functions(on: Machine, kind: np.dtype) -> Functions:
    key = (id(on), kind)
    if key not in _loaded:
        _loaded[key] = Functions(*on.together(f"typedef {TYPES[kind][0]} T;\n{TEXT}", NAMES))
    return _loaded[key]
