"""Backends that count and keep what `torch.compile` captured, and what goes with them in tests of compiled functions
(`torch._dynamo.testing`).

    >>> import pullback as torch
    >>> from pullback.compat.recording_backends import CompileCounter
    >>> counter = CompileCounter()
    >>> torch.compile(lambda x: x.sin() + 1, backend=counter)(torch.zeros(2))
    tensor([1., 1.])
    >>> counter.frame_count, counter.op_count
    (1, 2)
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any
from unittest import TestCase, expectedFailure, mock

import numpy as np

from .. import as_strided, empty, manual_seed, randint, randn
from ..capture.front.backends import lookup_backend
from ..capture.front.compile import compile
from ..capture.front.config import config
from ..core import dtype as dtypes
from ..core import tree
from ..core.device import device as Device
from ..core.tensor import Tensor
from ..graph import GraphModule
from ..joint.aot import aot_module_simplified, make_boxed_func
from ..joint.compilers import native
from ..joint.partition import min_cut_rematerialization_partition
from ..nn.module import Module
from ..surface.compiler import reset
from ..testing.comparison import same  # noqa: F401


class CompileCounter:
    """A backend that runs graphs as they are, and counts them (`frame_count`) and the calls in them (`op_count`)."""

    def __init__(self) -> None:
        self.clear()

    def __call__(self, module: GraphModule, example_inputs: list) -> Callable:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in module.graph.nodes)
        return module.forward

    def clear(self) -> None:
        self.frame_count = self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """As `CompileCounter`, for graphs that the backend of this name compiles; `graphs` keeps them."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        super().__init__()

    def __call__(self, module: GraphModule, example_inputs: list) -> Callable:
        super().__call__(module, example_inputs)
        self.graphs.append(module)
        return lookup_backend(self.backend)(module, example_inputs)

    def clear(self) -> None:
        super().clear()
        self.graphs: list[GraphModule] = []


class EagerAndRecordGraphs:
    """A backend that runs graphs as they are, and keeps them in `graphs`."""

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []

    def __call__(self, module: GraphModule, example_inputs: list) -> Callable:
        self.graphs.append(module)
        return module.forward


class AotEagerAndRecordGraphs(EagerAndRecordGraphs):
    """A backend that runs forward and backward graphs operator by operator, and keeps them in `fw_graphs`, `bw_graphs`."""

    compiler: Callable = staticmethod(lambda module, inputs: module.forward)

    def __init__(self) -> None:
        super().__init__()
        self.fw_graphs: list[GraphModule] = []
        self.bw_graphs: list[GraphModule] = []

    def __call__(self, module: GraphModule, example_inputs: list) -> Callable:
        self.graphs.append(module)
        return aot_module_simplified(
            module, example_inputs, fw_compiler=self._keeping(self.fw_graphs), bw_compiler=self._keeping(self.bw_graphs),
            partition_fn=min_cut_rematerialization_partition,
        )  # fmt: skip

    def _keeping(self, graphs: list[GraphModule]) -> Callable:
        def compiler(module: GraphModule, inputs: list) -> Callable:
            graphs.append(module)
            return make_boxed_func(self.compiler(module, inputs))

        return compiler


class InductorAndRecordGraphs(AotEagerAndRecordGraphs):
    """A backend that makes native code, and keeps what was captured (`graphs`) and what it was made of."""

    compiler: Callable = staticmethod(native)

    @property
    def inductor_graphs(self) -> list[GraphModule]:
        """The graphs that became native code, forward and backward."""
        return [*self.fw_graphs, *self.bw_graphs]


def standard_test(
    self: TestCase, fn: Callable, nargs: int, expected_ops: int | None = None, expected_ops_dynamic: int | None = None,
    expected_frame_count: int = 1,
) -> None:  # fmt: skip
    """Assert that a function of `nargs` tensors gives the same compiled, by so many graphs with so many calls."""
    reset()
    inputs = [[randn(10, 10) for _ in range(nargs)] for _ in range(2)]
    counter = CompileCounter()
    compiled = compile(fn, backend=counter, fullgraph=True)
    for given in (*inputs, *inputs):
        self.assertTrue(same(fn(*given), compiled(*given)))
    self.assertEqual(counter.frame_count, expected_frame_count)
    wanted = expected_ops if config.assume_static_by_default or expected_ops_dynamic is None else expected_ops_dynamic
    if wanted is not None:
        self.assertEqual(counter.op_count, wanted)


def strip_comment(code: str) -> str:
    """A text without the comments at the ends of its lines."""
    return re.sub(r"(?m) *#.*$", "", str(code))


def remove_trailing_space(code: str) -> str:
    """A text without spaces at the ends of its lines."""
    return "\n".join(line.rstrip() for line in str(code).split("\n"))


def empty_line_normalizer(code: str) -> str:
    """A text without empty lines."""
    return re.sub(r"[\r\n]+", "\n", str(code))


def normalize_gm(gm_str: str) -> str:
    """The printed code of a graph without what changes from run to run: comments, spaces at ends, empty lines."""
    return empty_line_normalizer(remove_trailing_space(strip_comment(gm_str)))


def rand_strided(
    size: Sequence[int], stride: Sequence[int], dtype: dtypes.dtype = dtypes.float32, device: str | Device = "cpu",
    extra_size: int = 0,
) -> Tensor:  # fmt: skip
    """A tensor of random values that lies in memory as said, on a storage with `extra_size` further elements."""
    needed = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else 0
    count = needed + extra_size
    if dtype.is_floating_point or dtype.is_complex:
        memory = (
            randn(count, dtype=dtypes.float16, device=device).to(dtype)
            if dtype.itemsize == 1
            else randn(count, dtype=dtype, device=device)
        )
    elif dtype is dtypes.bool:
        memory = randint(0, 2, (count,), dtype=dtype, device=device)
    else:
        memory = randint(0, 100, (count,), dtype=dtype, device=device)
    return as_strided(memory if count else empty(0, dtype=dtype, device=device), tuple(size), tuple(stride))


def reset_rng_state(use_xla: bool = False) -> None:
    """Start all streams of random numbers (ours, Python's, NumPy's) at one seed."""
    if use_xla:
        raise NotImplementedError("reset_rng_state: use_xla: there are no XLA devices here")
    manual_seed(1337)
    random.seed(1337)
    np.random.seed(1337)


def reduce_to_scalar_loss(out: Any) -> Any:
    """One number of whatever a model gives: the mean of means, to be differentiated."""
    if isinstance(out, Tensor):
        return out.sum() / out.numel()  # type: ignore[attr-defined]
    if isinstance(out, dict):
        out = list(out.values())
    elif hasattr(out, "to_tuple"):
        out = out.to_tuple()
    if isinstance(out, (list, tuple)):
        if not out:
            raise ValueError("reduce_to_scalar_loss: there is nothing to reduce: the output is empty")
        return sum(reduce_to_scalar_loss(value) for value in out) / len(out)
    raise NotImplementedError(f"Don't know how to reduce {type(out)}")


def requires_bwd_pass(out: Any) -> bool:
    """Whether anything in an output can be differentiated."""
    return any(leaf.requires_grad for leaf in tree.tree_leaves(out) if isinstance(leaf, Tensor))  # type: ignore[attr-defined]


def collect_results(model: Module, prediction: Any, loss: Any, example_inputs: Any) -> list:
    """What a training step leaves: output, loss, and copies of the parameters' gradients, parameters, buffers and inputs' gradients."""
    copied = lambda t: t.detach().clone() if isinstance(t, Tensor) else t
    gradients = {f"{name}.grad": copied(p.grad) for name, p in model.named_parameters()}
    parameters = {name: copied(p) for name, p in model.named_parameters()}
    buffers = {name: copied(b) for name, b in model.named_buffers()}
    inputs = [copied(leaf.grad) for leaf in tree.tree_leaves(example_inputs) if isinstance(leaf, Tensor)]  # type: ignore[attr-defined]
    return [prediction, loss, gradients, parameters, buffers, *inputs]


def check_dynamic_shape_capture() -> bool:
    """Whether sizes are symbols from the start."""
    return not config.assume_static_by_default


def expectedFailureDynamic(fn: Callable) -> Callable:
    """A test that is expected to fail where `make_test_cls_with_patches` makes one with dynamic sizes of it."""
    fn._expected_failure_dynamic = True  # type: ignore[attr-defined]
    return fn


def expectedFailureDynamicWrapper(fn: Callable) -> Callable:
    """A test that is expected to fail where the wrapper's code is made with dynamic sizes."""
    fn._expected_failure_dynamic_wrapper = True  # type: ignore[attr-defined]
    return fn


def make_test_cls_with_patches(
    cls: type, cls_prefix: str, fn_suffix: str, *patches: tuple, xfail_prop: str | None = None,
    decorator: Callable = lambda x: x,
) -> type:  # fmt: skip
    """A class of tests whose tests are those of another, run with settings changed: each patch is (settings, name, value)."""
    members: dict[str, Any] = {"__doc__": cls.__doc__, "__module__": cls.__module__}
    for name in dir(cls):
        test = getattr(cls, name)
        if not name.startswith("test_") or not callable(test):
            continue
        patched = _with_patches(test, patches)
        if xfail_prop is not None and hasattr(test, xfail_prop):
            patched = expectedFailure(patched)
        members.setdefault(name, None)  # those of the other class run in it alone
        members[name + fn_suffix] = decorator(patched)
    return type(f"{cls_prefix}{cls.__name__}", (cls,), members)


def _with_patches(test: Callable, patches: tuple) -> Callable:
    @functools.wraps(test)
    def patched(*args: Any, **kwargs: Any) -> Any:
        with _all_of(patches):
            return test(*args, **kwargs)

    return patched


def _all_of(patches: tuple) -> ExitStack:
    stack = ExitStack()
    for settings, name, value in patches:
        patch = (
            settings.patch({name: value}) if hasattr(settings, "patch") else mock.patch.object(settings, name, value)
        )
        stack.enter_context(patch)
    return stack
