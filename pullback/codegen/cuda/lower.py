"""A graph on a CUDA device, lowered to loops: what differs there from the CPU.

Products of float16 and bfloat16 read their operands as they are and sum in float32. What has no kernel here (sorts of long rows, complex
numbers, places that are set by the last of several writers) is refused with the reason, and runs as an operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...capture.front.config import native as settings
from ...core import dtype as dtypes
from ...core.cupy_library import device_count
from ...core.dtype import dtype
from ...core.geometry import channels_last_strides, contiguous_strides
from ...core.modes import process
from ...core.tensor import Tensor, stride_of
from ...graph.node import Node
from ...ops.lowering import NotLowerable
from ...ops.lowering.builder import Place
from ...ops.lowering.elements import Element, Unlowerable, number
from ...ops.lowering.expressions import loads
from ...ops.lowering.loops import Call, Compute, Convolved, Product, Value
from ...runtime import cudnn
from ...runtime.cuda import machine
from ..lower import SUPPORTED, Lowering
from . import attention, attention_single, sorting
from .groups import KEPT, LARGEST, UNROLLED, WARP

FULL = 264  # groups of threads that keep a device busy
ALONG, ACROSS = 1 << 13, 1 << 9  # elements that are enough for one group, where memory runs along rows and across them
ENOUGH = 2  # how many times fewer groups still keep it busy


MATRIX_UNITS = 80  # the architecture from which on devices have those that attention is written for
ATTENTION_PARTS, FEWEST_QUERIES = 2, 64  # of causal attention by products; queries that are enough for one
WITH_BIAS = (dtypes.float32, dtypes.float16, dtypes.bfloat16)  # dtypes of products that cuBLASLt adds a row to
EVEN, MUCH = 8, 1 << 30  # what sides are rounded up to, and multiplications from which on that is worth the copies
FEW_CALLS = 2  # of the library for one product of batches; where there would be more, operands are copied


def calls_of(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many calls multiply a batch of matrices that lie at these strides: one for each run at even distances."""
    dims = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    inner = len(dims) - 1
    while inner > 0 and dims[inner - 1][1] == dims[inner][1] * dims[inner][0]:
        inner -= 1
    return math.prod(n for n, _ in dims[: max(inner, 0)])


def is_hosted(t: Any, device: str = "cuda") -> bool:
    """Whether a value is a tensor without dimensions on the CPU, in a graph of a device: a counter of an optimizer, say."""
    return device == "cuda" and isinstance(t, Tensor) and t.device.type == "cpu" and not t._array.shape


def _is_channels_last(v: Value) -> bool:
    return len(v.shape) in (4, 5) and v.strides == tuple(channels_last_strides(v.shape)) and not v.is_contiguous


class CudaLowering(Lowering):
    """See the module's docstring."""

    device = "cuda"
    reads_beside_borders = True
    evened: dict[tuple, Value]  # matrices with zeros around them, by what they are of
    supported = frozenset(d for d in SUPPORTED if not d.is_complex)

    def __init__(self) -> None:
        super().__init__()
        self.evened = {}

    def input(self, node: Node) -> Value | NotLowerable:
        """Also a number that lies on the host, which each run takes along (see `hosted`)."""
        t: Any = node.meta.get("val")
        if not is_hosted(t, self.device) or t.dtype not in self.supported:
            return super().input(node)
        result = self.values[node] = Value(self.buffer(t.dtype, 1, "input"), (), ())
        return result

    def operand(self, d: dtype) -> dtype:
        return d

    def operands_of(self, x: Value, y: Value) -> dtype | None:
        return x.dtype if x.dtype is y.dtype else None

    def product(self, x: Value, y: Value, result: Tensor | None = None) -> Value:
        self.operands = self.operands_of(x, y)
        if self.on_tensor_units(self.operands) and len(x.shape) == len(y.shape) == 2:
            sides = (*x.shape, y.shape[1])
            if any(n % EVEN for n in sides) and math.prod(sides) >= MUCH:
                return self.even_product(x, y, result)
        if result is not None and calls_of(result._array.shape[:-2], stride_of(result)[:-2]) > FEW_CALLS:
            result = None
        return super().product(self.run_on(x), self.run_on(y), result)

    def product_into(self, target: Value, x: Value, y: Value) -> None:
        few = calls_of(target.shape[:-2], target.strides[:-2]) <= FEW_CALLS
        self.operands = self.operands_of(x, y)
        if not few or target.strides[-1] != 1 or not self.rounds_products(target.dtype) or not x.shape[-1]:
            super().product_into(target, x, y)
            return
        d = self.wide(x.dtype)
        self.emit(Product(target, self.for_blas(self.run_on(x), d), self.for_blas(self.run_on(y), d)))

    def queries_together(self, length: int) -> int:
        """Parts, so that products leave out most of the keys that are not seen."""
        part = length // ATTENTION_PARTS
        if part < FEWEST_QUERIES or length % ATTENTION_PARTS or self.on_tensor_units(self._tensor().dtype):
            return length
        return part

    def on_tensor_units(self, d: dtype | None) -> bool:
        """Whether products of a dtype run, or may run, on units that want their operands' rows to begin at even places."""
        return d in dtypes.reduced_precision or d is dtypes.float32 and process.matmul_precision != "highest"

    def biased_product(self, x: Value, y: Value, bias: Value) -> Value | None:
        """Of two matrices, by cuBLASLt, where all sides are even: for others it has no such call for certain."""
        if len(x.shape) != 2:
            return None
        (m, k), n, t = x.shape, y.shape[-1], self.spec()
        if not x.dtype is y.dtype is bias.dtype is t.dtype or x.dtype not in WITH_BIAS:
            return None
        if not min(m, k, n) or any(side % EVEN for side in (m, k, n)):
            return None
        if bias.numel != n or bias.shape[-1] != n or bias.strides[-1] != 1 or bias.offset % EVEN:
            return None
        if any(v.offset % EVEN or any(s % EVEN for s in v.strides if s != 1) for v in (x, y)):
            return None
        self.operands = x.dtype
        out = self.blank((m, n), x.dtype)
        self.emit(Product(out, self.for_blas(x, x.dtype), self.for_blas(y, x.dtype), bias))
        return out

    def has_matrix_units(self) -> bool:
        """Whether the device multiplies small matrices of half precision."""
        if self.device != "cuda" or not device_count():
            return False
        return int(machine(self._tensor().device.index or 0).architecture[3:]) >= MATRIX_UNITS

    def attention(self, q: Value, k: Value, v: Value, causal: bool, scale: float) -> tuple[Value, Value] | None:
        how: Any = None
        if attention_single.fits(q, k, v) and not self.on_tensor_units(q.dtype):
            how = attention_single
        elif attention.fits(q, k, v) and self.has_matrix_units():
            how = attention
        if how is None:
            return None
        out, lse = self.blank(q.shape, q.dtype, stride_of(self.spec(0))), self.result(1)
        if not how.readable(out):
            out = self.blank(q.shape, q.dtype)
        q, k, v = (x if how.readable(x) else self.copy(x) for x in (q, k, v))
        self.emit(how.forward(out, lse, q, k, v, causal, scale))
        return self.returned(out, 0), lse

    def attention_backward(self, g: Value, q, k, v, out: Value, lse: Value, causal: bool, scale: float) -> tuple | None:
        if not attention.fits(q, k, v, g, out) or not self.has_matrix_units():
            return None
        dots = self.reduce("sum", [g, out], lambda x, y: x * y, [3], dtypes.float32, keepdim=False)
        g, q, k, v = (x if attention.readable(x) else self.copy(x) for x in (g, q, k, v))
        targets = [self.result(n) for n in range(3)]
        if not all(attention.readable(t) for t in targets):
            targets = [self.blank(t.shape, t.dtype) for t in targets]
        for step in attention.backward(targets, g, q, k, v, self.contiguous(lse), dots, causal, scale):
            self.emit(step)
        return tuple([self.returned(t, n) for n, t in enumerate(targets)])

    def convolved(
        self, form: int, target: Value, x: Value, w: Value, y: Value, settings: tuple, bias: Value | None = None
    ) -> Value | None:
        """By cuDNN, all three row-major or all channels-last; a bias by the loops that follow."""
        if bias is not None:
            plain = self.convolved(form, target, x, w, y, settings)
            row = bias.window((bias.shape[0], *[1] * (len(x.shape) - 2)), (bias.strides[0], *[0] * (len(x.shape) - 2)))
            return None if plain is None else self.pointwise(lambda e, t: e + t, plain, row)
        if self.device != "cuda" or not x.dtype is w.dtype is y.dtype:
            return None
        first, second = ((x, w), (w, y), (x, y))[form]
        ordered = channels_last_strides if _is_channels_last(x) else contiguous_strides
        if form == cudnn.TO_WEIGHT and target.strides != tuple(ordered(target.shape)):  # small: turned when it is there
            there = self.blank(target.shape, target.dtype, ordered(target.shape))
            return None if self.convolved(form, there, x, there, y, settings) is None else self.store(target, there)
        if target.strides != tuple(ordered(target.shape)):
            ordered = contiguous_strides
        if target.strides != tuple(ordered(target.shape)):
            return None
        sides = tuple([(v.shape, ordered(v.shape)) for v in (x, w, y)])
        found = cudnn.geometry(sides, x.dtype.numpy, *settings)
        index = self._tensor().device.index or 0
        prepared = None if found is None else cudnn.prepared(form, found, index)
        if prepared is None:
            return None
        work = 2 * math.prod(y.shape) * math.prod(w.shape[1:])
        self.emit(Convolved(target, self._ordered(first, ordered), self._ordered(second, ordered), prepared, work))
        return target

    def _ordered(self, v: Value, ordered: Callable) -> Value:
        """A value with strides of that order: itself, or a copy of its dtype."""
        if v.strides == tuple(ordered(v.shape)):
            return v
        return self.store(self.blank(v.shape, v.dtype, ordered(v.shape)), v)

    def _tensor(self) -> Tensor:
        """One of the results, as a tensor without data."""
        found = self.outputs if isinstance(self.outputs, (tuple, list)) else (self.outputs,)
        return next(t for t in found if t is not None)

    def even_product(self, x: Value, y: Value, result: Tensor | None) -> Value:
        """A product with its sides rounded up: half precision has fast kernels for those alone. The result is a window."""
        (m, k), n = x.shape, y.shape[1]
        rows, inner, columns = (-(-side // EVEN) * EVEN for side in (m, k, n))
        narrow = result is not None and self.rounds_products(result.dtype)
        out = self.blank((rows, columns), result.dtype if result is not None and narrow else self.wide(x.dtype))
        self.emit(Product(out, self.for_blas(self.even(x, rows, inner), x.dtype), self.even(y, inner, columns)))
        return out.window((m, n), out.strides)

    def even(self, v: Value, rows: int, columns: int) -> Value:
        """A matrix with zeros around it, in the order in which it lies in memory; made once for all products."""
        if v.shape == (rows, columns):
            return self.for_blas(v, v.dtype)
        if v.strides[0] == 1 and v.strides[1] != 1:
            turned = self.even(v.window(v.shape[::-1], v.strides[::-1]), columns, rows)
            return turned.window((rows, columns), turned.strides[::-1])
        key = (v.buffer, v.offset, tuple(v.shape), tuple(v.strides), len(v.buffer.writers))
        if key not in self.evened:
            (m, n), out = v.shape, self.blank((rows, columns), v.dtype)
            self.store(out.window((m, n), out.strides), v)
            if columns > n:
                self.fill(out.window((rows, columns - n), out.strides, out.offset + n), number(0, v.dtype))
            if rows > m:
                self.fill(out.window((rows - m, n), out.strides, out.offset + m * columns), number(0, v.dtype))
            self.evened[key] = out
        return self.evened[key]

    def run_on(self, v: Value) -> Value:
        """A batch of matrices at even distances, which one call multiplies: a copy where it is not."""
        if calls_of(v.shape[:-2], v.strides[:-2]) <= FEW_CALLS:
            return v
        if v.strides[-2] != 1 or v.strides[-1] == 1:
            return self.copy(v)
        order = [*range(len(v.shape) - 2), len(v.shape) - 1, len(v.shape) - 2]  # copied as it lies in memory
        turned = self.copy(v.window([v.shape[d] for d in order], [v.strides[d] for d in order]))
        return turned.window(v.shape, [turned.strides[d] for d in order])

    def scatter(
        self,
        target: Value,
        dims: Sequence[int],
        value: Element,
        strides: Sequence[int],
        places: Sequence[Place],
        how="sum",
    ) -> None:
        if how == "set":
            raise Unlowerable("places that are set by the last of several writers")
        if target.dtype in dtypes.reduced_precision:
            raise Unlowerable(f"atomic updates of {target.dtype}")
        strict = settings.deterministic or getattr(process, "deterministic", False)
        if strict and how in ("sum", "prod") and target.dtype.is_floating_point:
            raise Unlowerable("floats that are added in no fixed order")
        super().scatter(target, dims, value, strides, places, how)

    def sorting(self, target: Value, source: Value, descending: bool, first: int) -> Call:
        if not sorting.fits(source):
            raise Unlowerable(f"sorting rows of {source.shape[-1]}: they do not fit into the memory of a block")
        return sorting.sorted_places(target, source, descending, first)

    def moments(self, x: Value, axes: Sequence[int], rooted: bool = False) -> tuple[Value, Value]:
        """In one pass where a row does not fit into registers: of differences from its first element, added up in float64."""
        length = math.prod(x.shape[k] for k in axes)
        along = any(x.strides[k] == 1 for k in axes)
        if self.wide(x.dtype) is not dtypes.float32 or length <= (KEPT * LARGEST if along else UNROLLED * WARP):
            return super().moments(x, axes, rooted)
        o, wide = self.o, dtypes.float64
        shape = [1 if k in axes else n for k, n in enumerate(x.shape)]
        first = x.window(shape, x.strides)
        apart = lambda e, f: (e - f).astype(wide.numpy)
        total = self.reduce("sum", [x, first], apart, axes, wide)
        squares = self.reduce("sum", [x, first], lambda e, f: apart(e, f) * apart(e, f), axes, wide)
        mean = self.pointwise(lambda f, t: f.astype(wide.numpy) + t / float(length), first, total, dtype=dtypes.float32)
        kept = wide if rooted else dtypes.float32
        around = self.pointwise(lambda t, s: o.maximum(s - t * t / float(length), 0.0), total, squares, dtype=kept)
        return mean, around

    def _reduce(self, step: Compute, results: int) -> None:
        """A reduction; where its results keep too few threads busy, in two steps."""
        k, pieces = self._split(step, results)
        if pieces == 1:
            self.emit(step)
        else:
            self.emit_split(step, k, pieces, results)

    def _split(self, step: Compute, results: int) -> tuple[int, int]:
        """(loop, pieces) in which a reduction is made: of the outermost loop where that gives about enough, since what is left
        of a row is then one run of memory; else of the longest."""
        found = [(k, self._pieces(step, results, k)) for k in sorted(step.reduced) if step.dims[k] > 1]
        most = max([pieces for _, pieces in found], default=1)
        longest = max(found, key=lambda f: step.dims[f[0]], default=(0, 1))
        if longest[1] == 1:
            return longest
        return next((f for f in found if f[1] * ENOUGH >= most), longest)

    def _pieces(self, step: Compute, results: int, k: int) -> int:
        kept = [d for d in range(len(step.dims)) if d not in step.reduced and step.dims[d] > 1]
        read = [e.args[2] for e in loads(step.expr) if not kept or any(e.args[2][d] for d in kept)]
        along = any(strides[d] == 1 for strides in read for d in step.reduced)
        groups, enough = (results, ALONG) if along else (-(-results // 32), ACROSS)
        length = math.prod(step.dims[d] for d in step.reduced)
        most = min(FULL // max(groups, 1), length // enough, step.dims[k])
        return next((p for p in range(most, 1, -1) if step.dims[k] % p == 0), 1)
