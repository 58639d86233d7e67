"""What programs and tests import of PyTorch's private modules around `compile`, and that has no other home here."""

from __future__ import annotations

import copy
import os
import pathlib
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import cuda, full
from ..capture.bytecode.outside import is_compiled
from ..capture.front.compile import MODES
from ..capture.front.config import config
from ..capture.front.stance import state
from ..core import modes, tree
from ..core.device import device as Device
from ..core.modes import ambient
from ..core.node import requires_grad
from ..core.tensor import Tensor
from ..nn.module import Module
from ..surface.compiler import disable
from ..testing.comparison import same

range_iterator: Any = type(iter(range(0)))


def istype(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """Whether a value is of exactly one of these types."""
    return type(value) in (kinds if isinstance(kinds, (tuple, list, set)) else (kinds,))


def ifdynstaticdefault(static: Any, dynamic: Any) -> Any:
    """The first where sizes are numbers until they change, the second where they are symbols from the start."""
    return static if config.assume_static_by_default else dynamic


def innermost_fn(fn: Callable) -> Callable:
    """The function that a compiled or decorated one was made of."""
    while is_compiled(fn):
        fn = fn._torchdynamo_orig_callable
    return fn


def is_any_autocast_enabled() -> bool:
    """Whether autocast is on for some device."""
    return bool(ambient.mode & modes.AUTOCAST)


def get_interface_for_device(device: str | Device) -> Any:
    """What can be asked of devices of a type, by the names of `torch.cuda`: that module."""
    if Device(device).type == "cuda":
        return cuda
    raise NotImplementedError(f"No interface for device {device}")


@contextmanager
def disable_cache_limit() -> Iterator[None]:
    """A block in which a function is compiled again as often as its arguments ask for."""
    with config.patch(recompile_limit=sys.maxsize, accumulated_recompile_limit=sys.maxsize):
        yield


def clone_inputs(example_inputs: Any) -> Any:
    """Inputs with copies of their tensors, which want gradients where the originals do; a mapping is of the same class."""
    if isinstance(example_inputs, dict):
        result = copy.copy(example_inputs)
        for key, value in result.items():
            result[key] = clone_input(value) if isinstance(value, Tensor) else clone_inputs(value)
        return result
    if isinstance(example_inputs, (list, tuple)):
        return [clone_input(v) if isinstance(v, Tensor) else v for v in example_inputs]
    return example_inputs


def clone_input(t: Tensor) -> Tensor:
    """A copy of a tensor and of its gradient, which wants a gradient where the original does."""
    result = t.detach().clone().requires_grad_(t.requires_grad)
    if t.grad is not None:  # type: ignore[attr-defined]
        result.grad = clone_input(t.grad)  # type: ignore[attr-defined]
    return result


def same_two_models(
    gm: Callable, opt_gm: Callable, example_inputs: Any, only_fwd: bool = False, *, require_fp64: bool = False, ignore_non_fp: bool = False,
) -> bool:  # fmt: skip
    """Whether two modules give the same, and the same gradients, for copies of the same inputs."""
    runs = [_run_forward_and_backward(m, clone_inputs(example_inputs), only_fwd) for m in (gm, opt_gm)]
    return same(*runs, equal_nan=True)


def _run_forward_and_backward(module: Callable, inputs: Any, only_forward: bool) -> list:
    module = copy.deepcopy(module)
    out = module(**inputs) if isinstance(inputs, dict) else module(*inputs)
    leaves = [v for v in tree.tree_leaves(out) if isinstance(v, Tensor)]
    if not only_forward and any(requires_grad(v) for v in leaves):
        sum((v.float().sum() for v in leaves if requires_grad(v)), full((), 0.0)).backward()  # type: ignore[attr-defined]
    wanted = [*(module.parameters() if isinstance(module, Module) else ()), *tree.tree_leaves(inputs)]
    return [*leaves, *[t.grad for t in wanted if isinstance(t, Tensor) and t.grad is not None]]  # type: ignore[attr-defined]


@contextmanager
def fresh_cache(cache_entries: dict | None = None, dir: str | None = None, delete: bool = True) -> Iterator[None]:
    """A block in which native code is made anew, in a folder of its own; `cache_entries` gets the sizes of its files."""
    with tempfile.TemporaryDirectory(dir=dir) as folder:
        before = os.environ.get("PULLBACK_CACHE")
        os.environ["PULLBACK_CACHE"] = folder
        try:
            yield
            if isinstance(cache_entries, dict):
                cache_entries.update({p.name: p.stat().st_size for p in pathlib.Path(folder).rglob("*") if p.is_file()})
        finally:
            os.environ.pop("PULLBACK_CACHE") if before is None else os.environ.update(PULLBACK_CACHE=before)


def _debug_get_cache_entry_list(code: Any) -> list:
    """The entries (conditions with a graph each) that compiled functions of some code have."""
    code = getattr(code, "__code__", code)
    if not isinstance(code, types.CodeType):
        raise TypeError("expected a code object!")
    found = [f for f in state.functions if getattr(innermost_fn(f.fn), "__code__", None) is code]
    return [entry for f in found for entry in f.front.entries()]


@disable
def unsupported(first: Any, second: Any) -> Any:
    """The second argument; graphs end before the call."""
    return second


def device_from_inputs(example_inputs: Any) -> Device:
    """The device of the first tensor among the inputs of a graph; RuntimeError where there is none."""
    return _first_tensor(example_inputs).device


def dtype_from_inputs(example_inputs: Any) -> Any:
    """The dtype of the first tensor among the inputs of a graph; RuntimeError where there is none."""
    return _first_tensor(example_inputs).dtype


def _first_tensor(example_inputs: Any) -> Tensor:
    for value in example_inputs:
        if isinstance(value, Tensor):
            return value
    raise RuntimeError("the graph has no tensor among its inputs")


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict:
    """The settings that a mode of `compile` stands for; without a mode, those of all, by name."""
    table = {name: dict(options) for name, options in MODES.items()}
    return table[mode] if mode else table
