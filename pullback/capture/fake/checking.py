"""Modes that put fakes beside real tensors, or in their place.

In: a program on real tensors. `CrossRefFakeMode` runs every operator a second time on fakes, and raises where the shape rule
says something else than the kernel did. `FakeCopyMode` makes deep copies inside it fakes, so that a model is copied without
its memory. `try_convert_fake_to_real` goes the other way: the tensors that fakes were made of.
"""

from __future__ import annotations

from ...core import tree
from ...core.storage import storage_of
from ...core.tensor import FAKE, LAYOUTS, Tensor
from ...ops.system.overrides import DisableTorchFunctionSubclass, TorchDispatchMode, TorchFunctionMode
from .comparison import compare_metadata
from .errors import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    MetadataMismatchError,
    UnsupportedFakeTensorException,
)
from .mode import FakeTensorMode

_NO_OPINION = (  # fakes cannot say anything of such calls
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
)


class CrossRefFakeMode(TorchDispatchMode):
    """Inside, what every operator gives is compared with what it gives on fakes of its arguments."""

    def __init__(self, ignore_op_fn=None, *, check_strides: bool = True, check_aliasing: bool = True):
        super().__init__()
        self.ignore_op_fn = ignore_op_fn or (lambda op: False)
        self.check_strides = check_strides
        self.check_aliasing = check_aliasing

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        expected = None if self.ignore_op_fn(func) else self._on_fakes(func, args, kwargs)
        result = func(*args, **kwargs)
        if expected is not None:
            self._compare(func, (args, kwargs), result, *expected)
        return result

    def _on_fakes(self, func, args, kwargs) -> tuple | None:
        """(fake arguments, fake results); None where fakes cannot tell."""
        mode = FakeTensorMode()
        try:
            fakes = tree.tree_map_only(Tensor, mode.from_tensor, (args, kwargs))
            with mode:
                return fakes, func(*fakes[0], **fakes[1])
        except _NO_OPINION:
            return None

    def _compare(self, func, arguments, result, fake_arguments, fake_result) -> None:
        real, fake = _tensors(result), _tensors(fake_result)
        if len(real) != len(fake):
            raise MetadataMismatchError(f"{func}: {len(real)} tensors, but {len(fake)} of fake arguments")
        for ours, theirs in zip(real, fake, strict=True):
            try:
                compare_metadata(ours, theirs, check_strides=self.check_strides)
            except RuntimeError as reason:
                raise MetadataMismatchError(f"{func}: its result and the fake one differ: {reason}") from reason
        if self.check_aliasing:
            shares, says = _sharing(real, arguments), _sharing(fake, fake_arguments)
            if shares != says:
                raise MetadataMismatchError(f"{func}: results share memory with arguments {shares}, fake ones {says}")


def _tensors(values) -> list[Tensor]:
    return [t for t in tree.tree_leaves(values) if isinstance(t, Tensor)]


def _sharing(results: list[Tensor], arguments) -> list[list[int]]:
    """For each result, the numbers of the arguments on whose memory it lives."""
    storages = [None if t._keys & LAYOUTS else storage_of(t) for t in _tensors(arguments)]
    return [
        [] if t._keys & LAYOUTS else [i for i, s in enumerate(storages) if s is not None and s is storage_of(t)]
        for t in results
    ]


class FakeCopyMode(TorchFunctionMode):
    """Inside, `copy.deepcopy` of a tensor (and so of a module) gives a fake of `fake_mode`."""

    def __init__(self, fake_mode: FakeTensorMode):
        self.fake_mode = fake_mode

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is Tensor.clone:  # which copies parameters
            args = (self.fake_mode.from_tensor(args[0], static_shapes=True), *args[1:])
        if func is not Tensor.__deepcopy__:
            with DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        tensor, memo = args
        if id(tensor) not in memo:
            memo[id(tensor)] = self.fake_mode.from_tensor(tensor, static_shapes=True)
        return memo[id(tensor)]


def try_convert_fake_to_real(values: list) -> list:
    """The values with real tensors in the place of fakes that were made of them; unchanged where a fake was not."""
    result = []
    for value in values:
        if isinstance(value, Tensor) and value._keys & FAKE:
            value = value.__dict__["fake_mode"].fake_tensor_converter.real_of(value)
            if value is None:
                return values
        result.append(value)
    return result
