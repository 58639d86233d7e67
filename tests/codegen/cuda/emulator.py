"""Generated CUDA on the CPU: the text is compiled as C++, threads are fibers that meet at barriers and shuffles.

`EmulatedSegment` in the place of `CudaSegment` runs graphs of CPU tensors: same loops, same text, same plan, run by the real launcher,
which is handed a launch and a product that work on the memory of this process. A barrier that not all threads of a block reach, and a shuffle that
not all of a warp reach, end the process with a message.
"""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from sys import getrefcount
from types import SimpleNamespace

import numpy as np

from pullback.codegen.cuda.attention import UNITS
from pullback.codegen.cuda.lower import CudaLowering
from pullback.codegen.cuda.prelude import HALF
from pullback.codegen.cuda.segment import CudaSegment
from pullback.core.device import device
from pullback.runtime.build import CompileFailed
from pullback.runtime.cache import cached
from pullback.runtime.cuda import Machine, Program
from pullback.runtime.launcher import Api, Plan, launcher

SHIM = r"""
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>
#include <ucontext.h>
#include <vector>
#undef NAN
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(n)
#define __shared__ static
struct place { unsigned x, y, z; };
static place threadIdx, blockIdx, blockDim, gridDim;
struct fiber { ucontext_t context; jmp_buf at; unsigned id; int waits; bool begun, over; long turn; char value[2][8]; std::vector<char> stack; };
static std::vector<fiber> fibers; static jmp_buf scheduler; static fiber *now;
static void (*body)(void **); static void **arguments;
static void wait(int kind) { fiber *me = now; me->waits = kind; if (!_setjmp(me->at)) _longjmp(scheduler, 1); threadIdx.x = me->id; }
static void __syncthreads() { wait(1); }
template <typename T> static T exchanged(T x, unsigned from) {
    fiber *me = now; const int side = me->turn++ & 1;
    memcpy(me->value[side], &x, sizeof x); wait(2);
    T y; memcpy(&y, fibers[from].value[side], sizeof y); return y;
}
template <typename T> static T __shfl_xor_sync(unsigned, T x, int step) { return exchanged(x, threadIdx.x ^ step); }
template <typename T> static T __shfl_sync(unsigned, T x, int lane) { return exchanged(x, threadIdx.x / 32 * 32 + lane); }
template <typename T> static T __shfl_up_sync(unsigned, T x, int by) { return exchanged(x, threadIdx.x % 32 >= (unsigned)by ? threadIdx.x - by : threadIdx.x); }
static unsigned __ballot_sync(unsigned, bool yes) {
    fiber *me = now; const int side = me->turn++ & 1;
    me->value[side][0] = yes; wait(2);
    unsigned all = 0;
    for (unsigned lane = 0; lane < 32; lane++) all |= (unsigned)fibers[threadIdx.x / 32 * 32 + lane].value[side][0] << lane;
    return all;
}
static void __syncwarp() { wait(2); }
static int __popc(unsigned x) { return __builtin_popcount(x); }
template <typename T> static T atomicAdd(T *at, T x) { T old = *at; *at += x; return old; }
template <typename T> static T atomicCAS(T *at, T expected, T x) { T old = *at; if (old == expected) *at = x; return old; }
static float __int_as_float(int x) { float y; memcpy(&y, &x, 4); return y; }
static void enter() { body(arguments); now->over = true; _longjmp(scheduler, 1); }
static void resume() {  /* without asking the system for anything: there are millions */
    if (_setjmp(scheduler)) return;
    if (now->begun) _longjmp(now->at, 1);
    now->begun = true; setcontext(&now->context);
}
static void run_block(bool meets) {
    const unsigned n = blockDim.x;
    if (!meets) { for (threadIdx.x = 0; threadIdx.x < n; threadIdx.x++) body(arguments); return; }
    if (fibers.size() < n) { fibers.clear(); fibers.resize(n); for (auto &f : fibers) f.stack.resize(1 << 16); }
    for (unsigned t = 0; t < n; t++) {
        fiber &f = fibers[t]; f.id = t; f.begun = f.over = false; f.turn = 0; getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.data(); f.context.uc_stack.ss_size = f.stack.size(); f.context.uc_link = nullptr;
        makecontext(&f.context, enter, 0);
    }
    for (bool alive = true; alive;) {
        unsigned ended = 0, barriers = 0;
        for (unsigned t = 0; t < n; t++) { now = &fibers[t]; if (!now->over) { threadIdx.x = t; resume(); } }
        for (unsigned t = 0; t < n; t++) { ended += fibers[t].over; barriers += !fibers[t].over && fibers[t].waits == 1; }
        for (unsigned t = 0; t < n; t++) {
            const fiber &f = fibers[t], &g = fibers[t / 32 * 32];
            if (barriers && barriers != n || f.over != g.over || !f.over && f.waits != g.waits) { fprintf(stderr, "threads do not meet\n"); abort(); }
        }
        alive = ended < n;
    }
}
template <typename... A, size_t... I> static void unpack(void (*f)(A...), void **a, std::index_sequence<I...>) { f(*(A *)a[I]...); }
template <typename... A> static void call(void (*f)(A...), void **a) { unpack(f, a, std::index_sequence_for<A...>()); }
struct kernel { void (*body)(void **); int meets; };
extern "C" int emulated_launch(void *f, unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, unsigned, void *, void **a, void **) {
    body = ((kernel *)f)->body; arguments = a; gridDim = {gx, 1, 1}; blockDim = {bx, 1, 1};
    for (blockIdx.x = 0; blockIdx.x < gx; blockIdx.x++) run_block(((kernel *)f)->meets);
    return 0;
}
extern "C" int emulated_stream(void *, void *) { return 0; }
extern "C" int emulated_workspace(void *, void *, unsigned long) { return 0; }
static double element(const char *p, long i, int kind) {
    if (kind == 0) return ((const float *)p)[i];
    if (kind == 1) return ((const double *)p)[i];
    if (kind == 2) return (double)((const _Float16 *)p)[i];
    unsigned b = (unsigned)((const unsigned short *)p)[i] << 16; float x; memcpy(&x, &b, 4); return x;
}
static void stored(char *p, long i, int kind, double x) {
    const float y = (float)x; unsigned b; memcpy(&b, &y, 4);
    if (kind == 0) ((float *)p)[i] = y;
    else if (kind == 1) ((double *)p)[i] = x;
    else if (kind == 2) ((_Float16 *)p)[i] = (_Float16)y;
    else ((unsigned short *)p)[i] = (unsigned short)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}
static int width(int kind) { return kind == 0 ? 4 : kind == 1 ? 8 : 2; }
extern "C" int emulated_gemm(void *, int ta, int tb, int m, int n, int k, const void *alpha, const char *a, int ka, int lda, long long sa, const char *b, int kb,
    int ldb, long long sb, const void *beta, char *c, int kc, int ldc, long long sc, int count, int how, int) {
    if ((kc == 1) != (how == 70)) return 7;
    for (int t = 0; t < count; t++) for (int j = 0; j < n; j++) for (int i = 0; i < m; i++) {
        double s = 0;
        for (int p = 0; p < k; p++) s += element(a + t * sa * width(ka), ta ? (long)i * lda + p : (long)p * lda + i, ka)
            * element(b + t * sb * width(kb), tb ? (long)p * ldb + j : (long)j * ldb + p, kb);
        stored(c, t * sc + (long)j * ldc + i, kc, s);
    }
    return 0;
}
extern "C" int emulated_biased(void *, const long *e, long, const char *a, const char *b, char *c, const char *bias, void *, unsigned long, void *) {
    const int kind = e[11];
    for (long i = 0; i < e[3]; i++) for (long j = 0; j < e[4]; j++) {
        double s = element(bias, j, kind);
        for (long p = 0; p < e[5]; p++) s += element(a, e[1] ? p * e[6] + i : i * e[6] + p, kind) * element(b, e[2] ? j * e[7] + p : p * e[7] + j, kind);
        stored(c, i * e[8] + j, kind, s);
    }
    return 0;
}
"""
FLAGS = (
    "-std=c++17",
    "-O1",
    "-w",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-Wl,--exclude-libs,ALL",
    "-U_FORTIFY_SOURCE",
)
STAND_INS = ("emulated_launch", "emulated_gemm", "emulated_stream", "emulated_workspace", "emulated_biased")
# A warp's products: every lane shows its part of the operands, and reads those of others once all have.
EMULATED_UNITS = r"""
#define SHARED alignas(16) static
static u32 parts[2][1024][8];
static f32 half_of(u32 both, int high, bool brain) { u32 kind = brain ? 14 : 2; return (f32)element((const char *)&both, high, kind); }
static void all_here() { exchanged(0, threadIdx.x); }
template <bool BRAIN> struct Unit {
    static void multiply(f32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
        const unsigned me = threadIdx.x, warp = me / 32 * 32, g = me % 32 / 4, t = me % 4;
        const int side = now->turn & 1;
        u32 *mine = parts[side][me];
        memcpy(mine, a, 16); mine[4] = b0; mine[5] = b1;
        all_here();
        for (int i = 0; i < 4; i++) {
            const unsigned row = g + i / 2 * 8, column = 2 * t + i % 2;
            for (unsigned k = 0; k < 16; k++)
                c[i] += half_of(parts[side][warp + row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], k % 2, BRAIN)
                    * half_of(parts[side][warp + column * 4 + k % 8 / 2][4 + k / 8], k % 2, BRAIN);
        }
    }
    static u32 pair(f32 low, f32 high) { u32 r; stored((char *)&r, 0, BRAIN ? 14 : 2, low); stored((char *)&r, 1, BRAIN ? 14 : 2, high); return r; }
};
typedef Unit<true> Brain;
typedef Unit<false> Half;
static const u16 *rows_of[2][1024];
template <bool TURNED> static void read_matrices(u32 (&r)[4], const u16 *row) {
    const unsigned me = threadIdx.x, warp = me / 32 * 32, g = me % 32 / 4, t = me % 4;
    const int side = now->turn & 1;
    if ((u64)row % 16) { fprintf(stderr, "a row between vectors\n"); abort(); }
    rows_of[side][me] = row;
    all_here();
    for (unsigned i = 0; i < 4; i++) {
        const u16 *const *rows = rows_of[side] + warp + 8 * i;
        r[i] = TURNED ? rows[2 * t][g] | (u32)rows[2 * t + 1][g] << 16 : rows[g][2 * t] | (u32)rows[g][2 * t + 1] << 16;
    }
}
static void matrices(u32 (&r)[4], const u16 *row) { read_matrices<false>(r, row); }
static void turned_matrices(u32 (&r)[4], const u16 *row) { read_matrices<true>(r, row); }
static f32 power_of_two(f32 x) { return exp2f(x); }
"""
MEETING = (
    "attention_",
    "sorted_places",
    "over_lanes",
    "over_block",
    "over_warps",
    "running",
    "from_last",
    "__syncthreads",
)


def build_host(text: str) -> Path:
    """The shared library of CUDA text, as C++."""

    def make(folder: Path, target: Path) -> None:
        (folder / "kernels.cpp").write_text(text, encoding="utf-8")
        done = subprocess.run(
            ["g++", *FLAGS, "-o", str(target), str(folder / "kernels.cpp")], capture_output=True, text=True
        )
        if done.returncode:
            raise CompileFailed(done.stderr[:4000])

    return cached("emulated\0" + text + "\0".join(FLAGS), make)


class EmulatedMachine(Machine):
    """The CPU in the place of a device."""

    as_strided = staticmethod(np.lib.stride_tricks.as_strided)

    def __init__(self) -> None:
        self.flag = np.zeros(1, np.int32)
        self.flag_address = self.flag.ctypes.data
        self.handle = lambda: 0
        self.kernels = {}

    def in_use(self):
        return contextlib.nullcontext()

    def begin(self, source, flags: tuple[str, ...]) -> Callable[[], None]:
        return lambda: None

    def load(self, source, flags: tuple[str, ...] = ()) -> Program:
        kernels = [
            f"static void call_{n}(void **a) {{ call({n}, a); }}\n"
            f'extern "C" kernel of_{n} = {{call_{n}, {int(any(word in f for word in MEETING))}}};'
            for n, f in zip(source.names, source.functions, strict=True)
        ]
        text = source.text.replace(HALF, "typedef _Float16 f16;\n").replace(UNITS, EMULATED_UNITS)
        text = SHIM + text + "\n".join(kernels)
        library = ctypes.CDLL(str(build_host(text)))
        places = {
            name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            for name in (*[f"of_{n}" for n in source.names], *STAND_INS)
        }
        api = Api(*[places[name] for name in STAND_INS])
        return Program(source.plan, [places[f"of_{n}"] for n in source.names], api, library)

    def together(self, text: str, names: tuple[str, ...]) -> tuple:
        loaded = self.load(
            SimpleNamespace(text=text, names=list(names), functions=[text] * len(names), plan=Plan([], 0, 0, [], 0))
        )
        return list(loaded.functions), loaded.api, loaded

    def stream(self) -> int:
        return 0

    def graph_of(self, stream: int, launch) -> None:
        raise RuntimeError("there are no graphs here")

    def function(self, text: str, name: str) -> SimpleNamespace:
        """One kernel, with its address."""
        loaded = self.load(
            SimpleNamespace(text=text, names=[name], functions=[text.split("extern")[-1]], plan=Plan([], 0, 0, [], 0))
        )
        return SimpleNamespace(ptr=loaded.functions[0], launch=loaded.api.launch, owner=loaded)

    def start(self, function: SimpleNamespace, grid: int, block: int, arguments: bytes) -> None:
        pointer, count = ctypes.c_void_p, ctypes.c_uint
        launch = ctypes.CFUNCTYPE(ctypes.c_int, pointer, *[count] * 7, pointer, pointer, pointer)(function.launch)
        launch(
            function.ptr, grid, 1, 1, block, 1, 1, 0, None, ctypes.cast((ctypes.c_char_p * 1)(arguments), pointer), None
        )

    def blank(self, shape: tuple, dtype: np.dtype) -> np.ndarray:
        return np.full(shape, 77, dtype)

    def memory(self, size: int) -> SimpleNamespace:
        room = np.full(size + 64, 0x55, np.uint8)
        return SimpleNamespace(ptr=room.ctypes.data + -room.ctypes.data % 64, room=room)

    def blanks(self, kinds: list[tuple[tuple, np.dtype]]) -> list[np.ndarray]:
        return [np.empty(shape, dtype) for shape, dtype in kinds]

    @staticmethod
    def address(array: np.ndarray) -> int:
        return array.ctypes.data

    @staticmethod
    def is_alone(tensors: list, k: int) -> bool:
        return getrefcount(tensors[k]) == 2 and getrefcount(tensors[k]._array) == 2 and tensors[k]._array.base is None

    def run(self, program: Program, addresses: list[int], tf32: bool, begin=None) -> None:
        self.check()
        given = program.plan
        parted = begin is not None
        sizes, stays = (given.arenas, given.stays) if parted else ((given.arena,), ((0, 0),))
        arenas: list[np.ndarray | None] = [None] * len(sizes)
        for k, plan in enumerate(given.parts() if parted else (given,)):
            arenas = [a if k <= last else None for a, (_, last) in zip(arenas, stays, strict=True)]
            if parted:
                begin(k)
            for n, (first, _) in enumerate(stays):
                arenas[n] = np.full(sizes[n] + 64, 0x55, np.uint8) if first == k else arenas[n]
            bases = [0 if a is None else a.ctypes.data + -a.ctypes.data % 64 for a in arenas]
            slots = program.plan.slots(addresses, self.flag.ctypes.data, *bases)
            wrong = launcher()(
                plan.numbers.ctypes.data, len(plan.entries), slots.ctypes.data, program.functions,
                ctypes.addressof(program.api), None, None, tf32, None, 0, None,
            )  # fmt: skip
            assert not wrong, wrong


class OnHost(CudaLowering):
    """Loops for a CUDA device, over tensors of the CPU."""

    device = "cpu"

    def has_matrix_units(self) -> bool:
        return True


class EmulatedSegment(CudaSegment):
    """Nodes that are launches on the emulated device."""

    lowering = OnHost
    keys = 0
    on_host = EmulatedMachine()

    def where(self):
        return device("cpu")

    def is_hosted(self, node) -> bool:
        return False

    def machine(self) -> EmulatedMachine:
        return self.on_host
