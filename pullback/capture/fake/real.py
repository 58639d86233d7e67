"""Fakes that carry the real tensors they stand for (`fake.real_tensor`): every operator runs on both.

In: real tensors, of which copies are kept, so that nobody's data is written. Out: what fakes say, and for a number or size that depends on
data what it is in this example (`shape_env.data`). What always holds: an operator without a shape rule, or with one that says what its
kernel does not do, is told to `report`, and the fakes of its results are those of the real ones.
"""

from __future__ import annotations

from typing import Any, Protocol

from ...core import tree
from ...core.size import Size
from ...core.storage import storage_of
from ...core.symbolic import symbolic
from ...core.tensor import DISPATCH_SUBCLASS, FAKE, LAYOUTS, TRANSFORMED, Tensor, stride_of
from ...library.custom import NoFakeRule
from ...ops.make.lifting import lift_fresh
from ...ops.shape.views import as_strided
from ...ops.system.dispatch import dispatch
from ...ops.system.operator import Operator
from ..shapes import ShapeEnv
from ..shapes.relations import Relation, compare, negate
from .conversion import FakeTensorConverter, unobserved
from .errors import MetadataMismatchError, UnsupportedOperatorException
from .mode import FakeTensorMode

BUILT_IN = ("aten", "prims", "prim", "pullback")


class Report(Protocol):
    """Who is told what fakes do not say."""

    def missing(self, op: Operator, args: tuple, results: list[Tensor]) -> None:
        """An operator has no shape rule."""

    def mismatched(self, op: Operator, reason: str, words: str) -> None:
        """A shape rule says something else than the kernel does."""


def assumed(env: ShapeEnv, expr: Any, value: Any) -> Any:
    """What an example says of an expression, which is promised to be so whenever the program runs."""
    if expr.kind is bool:
        env.expect_true(expr if value else negate(expr))
        return bool(value)
    env.expect_true(compare("==", expr, value))
    return value


class AnsweringEnv(ShapeEnv):
    """Symbols of a trace along which the example is computed: it decides what data decides."""

    def without_hint(self, expr: Any, original: Any = None) -> Any:
        try:
            value = self.value_of(expr)
        except LookupError:
            return super().without_hint(expr, original)
        return assumed(self, expr, value)


class Refusing:
    """Takes operators without shape rules, and raises for shape rules that are wrong."""

    def missing(self, op: Operator, args: tuple, results: list[Tensor]) -> None:
        """The results of the example do."""

    def mismatched(self, op: Operator, reason: str, words: str) -> None:
        raise MetadataMismatchError(words)


class CopyingConverter(FakeTensorConverter):
    """Gives each fake a copy of the tensor that it is made of; tensors that share memory have copies that do."""

    def __init__(self, *, export: bool = False):
        super().__init__(export=export)
        self.copies: dict[int, tuple] = {}  # id of a storage -> (it, its copy as a row)

    def remember(self, tensor: Tensor, fake: Tensor) -> None:
        super().remember(tensor, fake)
        if not tensor._keys & (FAKE | LAYOUTS | DISPATCH_SUBCLASS | TRANSFORMED) and tensor.device.type != "meta":
            fake.__dict__["real_tensor"] = self.copy(tensor)

    def copy(self, tensor: Tensor) -> Tensor:
        with unobserved(grad=False):
            shape, stride = tuple(tensor._array.shape), stride_of(tensor)
            storage = storage_of(tensor)
            key = (id(storage), tensor.dtype)
            if key not in self.copies:
                count = storage.length // tensor.dtype.itemsize
                row = dispatch(as_strided, (tensor.detach(), (count,), (1,), 0))
                self.copies[key] = (storage, row.clone())
            return dispatch(as_strided, (self.copies[key][1], shape, stride, tensor._offset))


class RealTensorMode(FakeTensorMode):
    """A fake mode whose fakes carry real tensors."""

    def __init__(self, report: Report | None = None, **options: Any):
        super().__init__(**options)
        self.report = report or Refusing()
        self.fake_tensor_converter = CopyingConverter(export=self.export)
        self.cache_enabled = False

    # ---- running operators
    def run(self, op: Operator, args: tuple, tensors: list) -> Any:
        if op is lift_fresh:
            out = super().run(op, args, tensors)
            if not args[0]._keys & FAKE:
                out.__dict__["real_tensor"] = args[0].detach()
            return out
        reals = self._reals(args)
        if reals is None:
            return super().run(op, args, tensors)
        try:
            out = super().run(op, args, tensors)
        except (UnsupportedOperatorException, NoFakeRule):
            result = self._run_real(op, reals)
            self.report.missing(op, args, [t for t in tree.tree_leaves(result) if isinstance(t, Tensor)])
            return tree.tree_map_only(Tensor, lambda t: self._fake_like(op, t), result)
        return self._joined(op, tensors, reals, out, self._run_real(op, reals))

    def write(self, op: Operator, args: tuple, tensors: list) -> Tensor:
        reals = self._reals(args)
        result = super().write(op, args, tensors)
        if reals is not None:
            self._run_real(op, reals)
            if op.inplace_of.is_view:
                args[0].__dict__["real_tensor"] = reals[0]
        return result

    def _run_real(self, op: Operator, reals: tuple) -> Any:
        tensors = op.tensors(reals)
        before = [t._counter[0] for t in tensors]
        with unobserved(grad=False):
            result = dispatch(op, reals)
        if not op.schema.is_mutable and not op.inplace_of and before != [t._counter[0] for t in tensors]:
            names = [
                a.name
                for a, value in zip(op.schema.arguments, reals, strict=False)
                if self._was_written(value, tensors, before)
            ]
            raise RuntimeError(
                f"for argument {names[0]!r}: the schema of {op} says that the operator does not write to it, and it did: declare it "
                "in mutates_args"
            )
        return result

    @staticmethod
    def _was_written(value: Any, tensors: list, before: list[int]) -> bool:
        written = [t for t, n in zip(tensors, before, strict=True) if t._counter[0] != n]
        return any(v is t for v in tree.tree_leaves(value) for t in written)

    def _reals(self, args: tuple) -> tuple | None:
        """The arguments of the example; None where one of them has no value there."""
        try:
            return tuple([self._real(a) for a in args])
        except LookupError:
            return None

    def _real(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.__dict__["real_tensor"] if value._keys & FAKE else value
        if symbolic(value):
            return self.shape_env.value_of(value.node.expr)
        if isinstance(value, Size) or value.__class__ in (tuple, list):
            kind = tuple if isinstance(value, Size) else type(value)
            return kind([self._real(v) for v in value])
        return value

    # ---- what comes out
    def _joined(self, op: Operator, tensors: list, reals: tuple, out: Any, result: Any) -> Any:
        """The fakes of an operator's results, with what these are in the example."""
        leaves, spec = tree.tree_flatten(out)
        found = tree.tree_leaves(result)
        if len(leaves) != len(found):
            raise MetadataMismatchError(f"{op} gives {len(found)} values, and its shape rule says {len(leaves)}")
        places = ["output" if len(leaves) == 1 else f"output[{i}]" for i in range(len(leaves))]
        joined = [self._join(op, tensors, reals, *each) for each in zip(leaves, found, places, strict=True)]
        return out if all(a is b for a, b in zip(joined, leaves, strict=True)) else tree.tree_unflatten(joined, spec)

    def _join(self, op: Operator, tensors: list, reals: tuple, fake: Any, real: Any, place: str) -> Any:
        if not isinstance(fake, Tensor) or not isinstance(real, Tensor):
            self._bind(fake, real)
            return fake
        wrong = self._mismatch(op, tensors, reals, fake, real, place)
        if wrong is not None:
            self.report.mismatched(op, *wrong)
            return self._fake_like(op, real)
        for size, number in zip(fake._array.shape, real._array.shape, strict=True):
            self._bind(size, number)
        fake.__dict__["real_tensor"] = real
        return fake

    def _mismatch(
        self, op: Operator, tensors: list, reals: tuple, fake: Tensor, real: Tensor, place: str
    ) -> tuple[str, str] | None:
        """In which way a fake is none of a real tensor: the reason, and the words of an error."""
        if op.namespace not in BUILT_IN:
            shared = any(real._memory is not None and real._memory is r._memory or real is r for r in op.tensors(reals))
            if shared != any(fake is t or fake._memory is not None and fake._memory is t._memory for t in tensors):
                return (
                    f"Mismatched aliasing spec between fake kernel and real kernel: {place}",
                    f"Real tensor propagation found an aliasing mismatch between fake {place} {fake} and real {place} {real}, for func: {op}",
                )
        if fake.dtype is not real.dtype or fake._array.ndim != real._array.ndim:
            dtypes = f"Dtypes {real.dtype} and {fake.dtype} are not equal!"
            ranks = (
                f"mismatch between {fake._array.ndim} dimensions of a fake and {real._array.ndim} of the real tensor"
            )
            return (
                dtypes if fake.dtype is not real.dtype else ranks,
                f"Real tensor propagation found a metadata mismatch between fake tensor {fake} and real tensor {real}, at {place}, for func: {op}",
            )
        for d, (size, number) in enumerate(zip(fake._array.shape, real._array.shape, strict=True)):
            if self._value(size, number) != number:
                return (
                    f"mismatch between fake value {size} and real value {number} ",
                    f"Real tensor propagation found an output size mismatch between fake shape {size} and real shape {number}, "
                    f"at {place}.size({d}), for func: {op}",
                )
        return None

    def _value(self, size: Any, otherwise: Any) -> Any:
        """What a size is in the example; a number that nothing is known of is what it is found to be."""
        try:
            return self._real(size)
        except LookupError:
            return otherwise

    def _bind(self, number: Any, value: Any) -> None:
        expr = number.node.expr if symbolic(number) else None
        if isinstance(expr, Relation) and expr.args[1:] == (
            1,
        ):  # a truth that data decides is whether its symbol is one
            expr, value = expr.args[0], int(value)
        if getattr(expr, "is_symbol", False) and expr.is_unbacked:
            self.shape_env.data.setdefault(expr, value)

    def _fake_like(self, op: Operator, real: Tensor) -> Tensor:
        """The fake of a result of which nothing else is known: its sizes may be any."""
        shape, stride = tuple(real._array.shape), stride_of(real)
        order = sorted(range(len(shape)), key=lambda d: (stride[d], -d))
        expected = 1
        for d in order:
            if shape[d] > 1 and stride[d] != expected:
                raise RuntimeError(
                    f"{op} has no fake rule, and none can be told from its results: a return was not dense in memory"
                )
            expected *= max(shape[d], 1)
        if real._offset:
            raise RuntimeError(
                f"{op} has no fake rule, and none can be told from its results: a return has a non-zero storage offset"
            )
        sizes: list[Any] = [self._unknown_size(n) for n in shape]
        strides: list[Any] = [1] * len(shape)
        for before, d in zip(order, order[1:], strict=False):
            strides[d] = strides[before] * sizes[before]
        result = self.make(tuple(sizes), tuple(strides), real.dtype, real.device)
        result.__dict__["real_tensor"] = real
        return result

    def _unknown_size(self, number: int) -> Any:
        if self.shape_env is None:
            return number
        size = self.shape_env.create_unbacked_symint()
        self.shape_env.constrain_for_size(size)
        self._bind(size, number)
        return size
