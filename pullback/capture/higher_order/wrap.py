"""Functions that stand in a graph as one call: a function itself, or one under a setting of its own.

Run outside of capture, each is just the call it describes.
"""

from __future__ import annotations

from collections.abc import Callable

from ...amp.autocast import autocast
from ...core.modes import set_grad_enabled
from .base import HigherOrderOperator, distinct
from .region import Region, capturing


class Wrap(HigherOrderOperator):
    """`wrap(f, *args)`: f(*args)."""

    prefixes = ("wrap_body_",)
    takes_programs = True

    def __init__(self) -> None:
        super().__init__("wrap")

    def __call__(self, func: Callable, *args, **kwargs):
        trace = capturing()
        if trace is None:
            return func(*args, **kwargs)
        region = Region(trace, func, args, kwargs)
        region.drop_unused()
        out = distinct(region.run(self, region.operands), region.operands)
        results = region.passed_on(out)
        region.record(self, region.operands, out, self.prefixes[0])
        return region.result.rebuild(results)


class WrapWithSetGradEnabled(HigherOrderOperator):
    """`wrap_with_set_grad_enabled(enabled, f, *args)`: f(*args), with recording on or off."""

    def __init__(self) -> None:
        super().__init__("wrap_with_set_grad_enabled")

    def __call__(self, enable_grad: bool, wrapped_func: Callable, *args, **kwargs):
        with set_grad_enabled.later(enable_grad):
            return wrapped_func(*args, **kwargs)


class WrapWithAutocast(HigherOrderOperator):
    """`wrap_with_autocast(device_type, dtype, enabled, cache_enabled, f, *args)`: f(*args) under autocast."""

    def __init__(self) -> None:
        super().__init__("wrap_with_autocast")

    def __call__(self, device_type: str, dtype, enabled: bool, cache_enabled, wrapped_func: Callable, *args, **kwargs):
        with self.context(device_type, dtype, enabled, cache_enabled):
            return wrapped_func(*args, **kwargs)

    def context(self, device_type: str, dtype, enabled: bool, cache_enabled):
        """The autocast context."""
        return autocast(device_type, dtype, enabled, cache_enabled)


class BypassingWrapper(HigherOrderOperator):
    """`dynamo_bypassing_wrapper(wrapper, f, *args)`: wrapper(f)(*args); capture looks into f alone."""

    def __init__(self) -> None:
        super().__init__("dynamo_bypassing_wrapper")

    def __call__(self, wrapper_fn_or_key, inner_fn, *args, **kwargs):
        wrapper = inner_fn.meta[wrapper_fn_or_key] if isinstance(wrapper_fn_or_key, str) else wrapper_fn_or_key
        return wrapper(inner_fn)(*args, **kwargs)


wrap = Wrap()
wrap_with_set_grad_enabled = WrapWithSetGradEnabled()
wrap_with_autocast = WrapWithAutocast()
dynamo_bypassing_wrapper = BypassingWrapper()
