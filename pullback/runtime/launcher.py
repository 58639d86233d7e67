"""A list of kernel launches and matrix products, run by one call.

`Plan` is the list, in numbers: the same bytes are read by `run`, a function in C that is built once for all plans. It calls the
driver and cuBLAS by the addresses in `Api`, whatever they are: a test hands it functions that run on the CPU.

An entry is its length and then `0, function, grid, block, count, slots...`; `1` and a product, row-major `c = a @ b`:
`transposed a, transposed b, m, n, k, leading dimensions of a, b, c`, (slot, offset in bytes, kind) of each, their item sizes, and a
count of (size, strides of a, b, c) of batches; or `2` and a convolution by cuDNN: its number among the program's (see `cudnn`), then
(slot, offset in bytes) of both operands and of the result; or `3` and a product of single matrices as in `1`, up to the item sizes,
then (slot, offset in bytes) of a row that is added to each of the result's (see `epilogues`). A slot is a place in the table of addresses: see `codegen/cuda/source`.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np

from .build import build

SOURCE = r"""
typedef long i64; typedef unsigned int u32;
typedef int (*launch_t)(void *, u32, u32, u32, u32, u32, u32, u32, void *, void **, void **);
typedef int (*gemm_t)(void *, int, int, int, int, int, const void *, const void *, int, int, long long, const void *, int, int,
    long long, const void *, void *, int, int, long long, int, int, int);
typedef int (*use_stream_t)(void *, void *);
typedef int (*use_workspace_t)(void *, void *, unsigned long);
typedef int (*biased_t)(void *, const i64 *, i64, const void *, const void *, void *, const void *, void *, unsigned long, void *);
struct api { launch_t launch; gemm_t gemm; use_stream_t use_stream; use_workspace_t use_workspace; biased_t biased; };
typedef int (*conv_t)(void *, const void *, void *, const void *, void *, const void *, void *, int, void *, unsigned long, const void *, void *, void *);
struct conv { void *first, *second, *how, *result; int algorithm, form, twice, unused; unsigned long workspace; };
struct dnn { void *handle; use_stream_t use_stream; conv_t forms[3]; const struct conv *table; void *workspace; };
enum { SUMS_IN_FLOAT = 68, SUMS_IN_DOUBLE = 70, SUMS_IN_TF32 = 77, ANY_ALGORITHM = -1, FLOAT = 0, DOUBLE = 1, MOST = 512 };

static int product(const i64 *e, char **slots, const struct api *api, void *handle, i64 tf32) {
    static const float one = 1, zero = 0;
    static const double one_double = 1, zero_double = 0;
    const i64 ta = e[1], tb = e[2], m = e[3], n = e[4], k = e[5], lda = e[6], ldb = e[7], ldc = e[8], rank = e[21];
    char *a = slots[e[9]] + e[10], *b = slots[e[12]] + e[13], *c = slots[e[15]] + e[16];
    const i64 kind_a = e[11], kind_b = e[14], kind_c = e[17], size_a = e[18], size_b = e[19], size_c = e[20];
    const int twice = kind_c == DOUBLE, how = twice ? SUMS_IN_DOUBLE : kind_a == FLOAT && tf32 ? SUMS_IN_TF32 : SUMS_IN_FLOAT;
    const void *alpha = twice ? (const void *)&one_double : &one, *beta = twice ? (const void *)&zero_double : &zero;
    const i64 *rows = e + 22, *last = rows + 4 * (rank - 1);
    i64 outer = 1;
    for (i64 d = 0; d + 1 < rank; d++) outer *= rows[4 * d];
    for (i64 t = 0; t < outer; t++) {
        i64 r = t, x = 0, y = 0, z = 0;
        for (i64 d = rank - 2; d >= 0; d--) {
            const i64 i = r % rows[4 * d]; r /= rows[4 * d];
            x += i * rows[4 * d + 1]; y += i * rows[4 * d + 2]; z += i * rows[4 * d + 3];
        }
        /* cuBLAS counts by columns: it is given the transposed product, c.T = b.T @ a.T */
        const int wrong = api->gemm(handle, (int)tb, (int)ta, (int)n, (int)m, (int)k, alpha,
            b + y * size_b, (int)kind_b, (int)ldb, rank ? last[2] : 0, a + x * size_a, (int)kind_a, (int)lda, rank ? last[1] : 0,
            beta, c + z * size_c, (int)kind_c, (int)ldc, rank ? last[3] : 0, rank ? (int)last[0] : 1, how, ANY_ALGORITHM);
        if (wrong) return wrong;
    }
    return 0;
}

static int biased(const i64 *e, char **slots, const struct api *api, void *handle, i64 tf32, void *workspace, i64 bytes, void *stream) {
    return api->biased(handle, e, tf32, slots[e[9]] + e[10], slots[e[12]] + e[13], slots[e[15]] + e[16], slots[e[21]] + e[22],
        workspace, (unsigned long)bytes, stream);
}

static int convolution(const i64 *e, char **slots, const struct dnn *dnn) {
    static const float one = 1, zero = 0;
    static const double one_double = 1, zero_double = 0;
    const struct conv *c = dnn->table + e[1];
    return dnn->forms[c->form](dnn->handle, c->twice ? (const void *)&one_double : &one, c->first, slots[e[2]] + e[3], c->second,
        slots[e[4]] + e[5], c->how, c->algorithm, dnn->workspace, c->workspace, c->twice ? (const void *)&zero_double : &zero,
        c->result, slots[e[6]] + e[7]);
}

/* 0, or (entry + 1) * 100000 + the driver's or cuBLAS's number of an error. */
long run(const i64 *plan, i64 entries, char **slots, void *const *functions, const struct api *api, void *stream, void *handle, i64 tf32,
         void *workspace, i64 bytes, const struct dnn *dnn) {
    int streamed = 0, dnn_streamed = 0;
    for (i64 n = 0; n < entries; n++, plan += plan[0] + 1) {
        const i64 *e = plan + 1;
        int wrong = 0;
        if (e[0] == 1) {
            if (!streamed) wrong = api->use_stream(handle, stream);
            if (!streamed && !wrong && workspace) wrong = api->use_workspace(handle, workspace, (unsigned long)bytes);
            streamed = 1;
            if (!wrong) wrong = product(e, slots, api, handle, tf32);
        } else if (e[0] == 2) {
            if (!dnn_streamed) wrong = dnn->use_stream(dnn->handle, stream);
            dnn_streamed = 1;
            if (!wrong) wrong = convolution(e, slots, dnn);
        } else if (e[0] == 3) {
            wrong = biased(e, slots, api, handle, tf32, workspace, bytes, stream);
        } else {
            void *arguments[MOST];
            for (i64 k = 0; k < e[4]; k++) arguments[k] = slots + e[5 + k];
            wrong = api->launch(functions[e[1]], (u32)e[2], 1, 1, (u32)e[3], 1, 1, 0, stream, arguments, 0);
        }
        if (wrong) return (n + 1) * 100000L + wrong;
    }
    return 0;
}
"""
MOST_ARGUMENTS = 512  # of a kernel: `MOST` of the source, and what 4 KiB of parameters hold


class Api(ctypes.Structure):
    """Addresses: `cuLaunchKernel`, `cublasGemmStridedBatchedEx`, `cublasSetStream_v2`, `cublasSetWorkspace_v2`, the product of
    `epilogues`, or functions that take the same."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("launch", "gemm", "use_stream", "use_workspace", "biased")]


@dataclass
class Plan:
    """See the module's docstring. `offsets` are places in the arena, in bytes, of the slots after inputs, outputs and the flag. The
    arena may be several, of the sizes `arenas`, which parts of the run need: the second part begins at entry `cuts[0]`, when the inputs
    `dead[0]` are not needed any more, and with it the outputs `born[1]`. `stays`: the first and the last part that need each arena."""

    entries: list[list[int]]
    inputs: int
    outputs: int
    offsets: list[int]
    arena: int

    convolutions: list = field(default_factory=list)  # of `cudnn.Convolution`
    arenas: tuple[int, ...] = ()
    stays: tuple[tuple[int, int], ...] = ()
    cuts: tuple[int, ...] = ()
    dead: tuple[tuple[int, ...], ...] = ()
    born: tuple[tuple[int, ...], ...] = ()
    reused: tuple[int, ...] = ()  # the inputs whose memory is written over

    def __post_init__(self) -> None:
        self.numbers = np.array([x for e in self.entries for x in (len(e), *e)] or [0], np.int64)
        self.places = np.array(self.offsets, np.uint64)
        self.starts = np.array([0, *accumulate(self.arenas[:-1])], np.uint64)
        self.part = np.searchsorted(self.starts, self.places, side="right") - 1  # the arena of each place

    def parts(self) -> list[Plan]:
        """The entries between cuts, as plans to launch."""
        ends = [0, *self.cuts, len(self.entries)]
        return [Plan(self.entries[a:b], 0, 0, [], 0) for a, b in pairwise(ends)]

    @property
    def uses_products(self) -> bool:
        return any(e[0] in (1, 3) for e in self.entries)

    def slots(self, addresses: list[int], flag: int, *arenas: int) -> np.ndarray:
        """The table of addresses, of inputs and outputs in order, the flag, and places in the arena, or in as many of its parts as
        are told: places in others are not to be used."""
        known = len(addresses) + 1
        result = np.empty(known + len(self.offsets), np.uint64)
        result[: known - 1] = addresses
        result[known - 1] = flag
        if len(arenas) == 1:
            np.add(self.places, np.uint64(arenas[0]), out=result[known:])
        else:
            bases = np.zeros(len(self.starts), np.uint64)
            bases[: len(arenas)] = arenas
            result[known:] = bases[self.part] + (self.places - self.starts[self.part])
        return result


@functools.cache
def launcher() -> Callable[..., int]:
    """The function that runs plans."""
    function = ctypes.CDLL(str(build(SOURCE))).run
    pointer, number = ctypes.c_void_p, ctypes.c_long
    function.argtypes = [pointer, number, pointer, pointer, pointer, pointer, pointer, number, pointer, number, pointer]
    function.restype = number
    return function
