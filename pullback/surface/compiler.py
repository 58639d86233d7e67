"""`torch.compiler`: the public switches of compilation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..capture.bytecode.calls import substitutes, whole_functions
from ..capture.front import backends
from ..capture.front import compile as _compile
from ..capture.front.backends import list_backends
from ..capture.front.compile import compile
from ..capture.front.config import config
from ..capture.front.dynamic import forget_moving
from ..capture.front.guard_filter import (  # noqa: F401
    keep_tensor_guards_unsafe,
    skip_all_guards_unsafe,
    skip_guard_on_all_nn_modules_unsafe,
    skip_guard_on_globals_unsafe,
    skip_guard_on_inbuilt_nn_modules_unsafe,
)
from ..capture.front.stance import disabled, state
from ..core import modes, tree
from ..core.modes import ambient
from ..core.tensor import Tensor
from ..graph.traceback import annotate
from ..ops.system.operator import public
from .compiler_decorators import error_on_graph_break, nonstrict_trace, set_stance  # noqa: F401


def reset() -> None:
    """Forget all compiled graphs."""
    for fn in list(state.functions):
        fn.forget()
    forget_moving()
    for forget in state.on_reset:
        forget()


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None):
    """A function that is never captured: calling it from a compiled function makes that one run uncompiled."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)

    @functools.wraps(fn)
    def uncompiled(*args, **kwargs):
        if is_exporting():  # a program is exported by calling it: no bytecode is captured
            marks = {"_torchdynamo_disable": True, "_torchdynamo_disable_recursive": recursive, "_torchdynamo_disable_method": fn.__name__}  # fmt: skip
            with annotate(marks):
                return fn(*args, **kwargs)
        if (
            ambient.captures and ambient.mode & modes.CAPTURE
        ):  # not in a class's own rule for an operator, which is no part of the program
            raise _compile.Unsupported(
                f"it calls {fn.__name__}, for which compilation is disabled" + (f": {reason}" if reason else "")
            )
        with disabled():
            return fn(*args, **kwargs)

    uncompiled._torchdynamo_disable = True  # type: ignore[attr-defined]
    uncompiled._torchdynamo_disable_msg = reason  # type: ignore[attr-defined]
    return uncompiled


def graph_break(msg: str = "") -> None:
    """Where the graph of a program that is being captured must end; elsewhere it does nothing."""
    if ambient.captures and not is_exporting():
        raise _compile.Unsupported(
            "Call to `torch._dynamo.graph_break()` (User-inserted graph break)" + (f": {msg}" if msg else "")
        )


def is_compiling() -> bool:
    """Whether the code that asks is being captured."""
    return bool(ambient.captures)


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Whether the code that asks is being exported."""
    return any(getattr(trace.fake_mode, "export", False) for trace in ambient.captures)


def allow_in_graph(fn):
    """A function that graphs call as it is: it is one node, whatever it does."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(f) for f in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    whole_functions.add(fn)
    return fn


def assume_constant_result(fn: Callable) -> Callable:
    """A function whose result does not change: it is called once, while capturing."""
    fn._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return fn


def substitute_in_graph(
    original_fn: Callable, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
):
    """Another function to capture in the place of one that cannot be."""

    def decorate(fn: Callable) -> Callable:
        if not callable(original_fn) or not callable(fn):
            raise TypeError("substitute_in_graph expects a function but got " + type(original_fn).__name__)
        if not skip_signature_check:
            _check_same_parameters(original_fn, fn)
        substitutes[original_fn] = fn
        return fn

    return decorate


def _check_same_parameters(original: Callable, other: Callable) -> None:
    try:
        wanted, given = (list(inspect.signature(f).parameters) for f in (original, other))
    except (TypeError, ValueError):  # a built-in function without a signature
        return
    if wanted != given:
        raise TypeError(
            f"Signature mismatch between {original} and {other}: {wanted} != {given}; pass skip_signature_check=True to "
            "substitute it all the same"
        )


def nested_compile_region(fn: Callable | None = None):
    """A region that is compiled once and used in several places; it is inlined at each."""
    return nested_compile_region if fn is None else fn


def get_default_backend() -> str:
    """The backend that `compile` uses when none is named."""
    return backends.default_backend


def set_default_backend(backend: str) -> None:
    """Choose the backend that `compile` uses when none is named."""
    backends.lookup_backend(backend)
    backends.default_backend = backend


def cudagraph_mark_step_begin() -> None:
    """No effect: no CUDA graphs are recorded here."""


def wrap_numpy(fn: Callable) -> Callable:
    """A function of NumPy arrays as one of tensors."""
    from_numpy = public("torch", "from_numpy")

    @functools.wraps(fn)
    def on_tensors(*args, **kwargs):
        import numpy as np

        args, kwargs = tree.tree_map(lambda v: v.numpy() if isinstance(v, Tensor) else v, (args, kwargs))
        return tree.tree_map(lambda v: from_numpy(v) if isinstance(v, np.ndarray) else v, fn(*args, **kwargs))

    return on_tensors


def _keep(guard_entries) -> list[bool]:
    return [True for _ in guard_entries]


def _absent(name: str) -> Callable:
    def absent(*args: Any, **kwargs: Any):
        raise NotImplementedError(
            f"compiler.{name} is not implemented here: guards are not taken apart, and graphs are not stored"
        )

    absent.__name__ = name
    return absent


keep_portable_guards_unsafe = _keep
set_enable_guard_collectives = _absent("set_enable_guard_collectives")
load_cache_artifacts = _absent("load_cache_artifacts")
save_cache_artifacts = _absent("save_cache_artifacts")
load_compiled_function = _absent("load_compiled_function")

__all__ = ["compile", "config", "disable", "is_compiling", "list_backends", "reset", "set_stance"]
