"""Fake rules: what an operator gives for tensors without data.

A rule runs on meta tensors or on fake tensors. On fakes it runs inside their mode, so that the factories it calls make
fakes too, and `get_ctx()` gives it a `FakeImplCtx`, from which it may ask for sizes that depend on data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from ..core.tensor import FAKE, Tensor
from ..ops.system.operator import DataDependent


class FakeImplCtx:
    """What a fake rule may ask for."""

    def __init__(self, _fake_mode: Any, _op: Any):
        self._fake_mode = _fake_mode
        self._shape_env = _fake_mode.shape_env
        self._op = _op

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None):
        """A size that depends on data: a symbolic number between `min` and `max`."""
        env = self._shape_env
        if env is None or not env.allow_dynamic_output_shape_ops:
            raise DataDependent(str(self._op))
        if getattr(min, "is_symbolic", False) or getattr(max, "is_symbolic", False):
            raise ValueError(
                f"ctx.new_dynamic_size(min={min}, max={max}): expected min and max to be statically known ints but got SymInt. This is not supported."
            )
        if min < 0:
            raise ValueError(
                f"ctx.new_dynamic_size(min={min}, ...): expected min to be greater than or equal to 0: this API can only create non-negative sizes."
            )
        return unbacked_size(env, min, max)

    def create_unbacked_symint(self, *, min: int = 2, max: int | None = None):
        warnings.warn(
            "`create_unbacked_symint` is deprecated, please use `new_dynamic_size` instead", FutureWarning, stacklevel=2
        )
        return self.new_dynamic_size(min=min, max=max)


def unbacked_size(env, least: int, most: int | None):
    """A new size of a shape environment, of which only the bounds are known."""
    size = env.create_unbacked_symint()
    env.constrain_for_size(size, least, most)
    return size


_getter: ContextVar[Callable[[], FakeImplCtx | None]] = ContextVar("fake rule context", default=lambda: None)


def get_ctx() -> FakeImplCtx | None:
    """The context of the fake rule that is running."""
    return _getter.get()()


@contextmanager
def set_ctx_getter(getter: Callable) -> Iterator[None]:
    """Answer `get_ctx()` by `getter()` inside a block."""
    token = _getter.set(getter)
    try:
        yield
    finally:
        _getter.reset(token)


def _no_context(name: str, source: str) -> Callable:
    def raise_meta():
        raise RuntimeError(
            f"{name} ({source}): You're trying to run this operator with meta Tensors (as opposed to FakeTensors), but this operator may return "
            "an output Tensor with data-dependent shape. Meta Tensors don't support operators with outputs that have data-dependent shapes but "
            "FakeTensors do. If your operator does not return an output with data-dependent shape, make sure the FakeTensor and/or meta kernel "
            "does not call torch.library.get_ctx(). Otherwise, please use FakeTensors."
        )

    return raise_meta


@contextmanager
def inside(op, source: str, tensors: list[Tensor]) -> Iterator[None]:
    """What a fake rule runs in: the mode of the fakes among its arguments, and a context."""
    mode = next((t.__dict__["fake_mode"] for t in tensors if t._keys & FAKE), None)
    getter = _no_context(op.qualified_name, source) if mode is None else lambda: FakeImplCtx(mode, op)
    with set_ctx_getter(getter), mode if mode is not None else nullcontext():
        yield
