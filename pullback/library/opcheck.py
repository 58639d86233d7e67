"""`opcheck`: does an operator keep what it promises?

In: an operator and example arguments. Out: per test "SUCCESS", or the exception, or why the test was skipped; by default
the first failure raises. The tests: the schema (what is written and shared is declared), the place of the autograd
kernel, the fake rule against the real result, and the operator under ahead-of-time autograd. The last two need layers
that stand above this one; they are loaded by name when such a test runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.layers import above
from ..core.node import requires_grad
from ..core.tensor import Tensor, stride_of
from ..core.tree import tree_leaves, tree_map
from ..ops.system.operator import Operator
from ..ops.system.packet import OpOverloadPacket
from .autograd import get_fallback_mode, set_fallback_mode
from .custom import CustomOpDef
from .keys import COMPOSITE_IMPLICIT, backend_of
from .operator import LibraryOperator
from .schema_check import SchemaCheckMode

_DEFAULT = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
_NO_AUTOGRAD = (
    "{}: at least one output of this operator has requires_grad=True but the operator does not have an autograd kernel defined at an "
    "autograd key (e.g. DispatchKey::Autograd). This could mean that you have incorrectly registered an autograd kernel to a "
    "non-Autograd DispatchKey, which may lead to silently incorrect results. If your operator consists of regular PyTorch operations, "
    "consider not using an operator at all or registering your operator as CompositeImplicitAutograd. If you have an autograd.Function "
    "registered to a backend (CPU/CUDA/XPU) key, the correct location for it is the Autograd key."
)
_DIFFERENT = (
    "{} of the operator are different in eager-mode PyTorch vs AOTDispatcher tracing. This means the operator will have incorrect {} "
    "underneath torch.compile. This could be because the operator's {}."
)


class OpCheckError(Exception):
    """A test of `opcheck` failed."""


class Skipped(Exception):
    """A test that cannot run here, and why."""


def opcheck(
    op: Operator | OpOverloadPacket | CustomOpDef,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = _DEFAULT,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Test an operator on example arguments; gives the outcome of each test by name."""
    operator = _operator(op)
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(names) <= set(_TESTS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={test_utils}), expected test_utils to be subset of {tuple(_TESTS)} but it was not"
        )
    case = _Case(operator, tuple(args), kwargs or {}, {"atol": atol, "rtol": rtol})
    outcome: dict[str, Any] = {}
    for name in names:
        try:
            _TESTS[name](case)
            outcome[name] = "SUCCESS"
        except Skipped as reason:
            outcome[name] = f"SKIPPED: {reason}"
        except Exception as e:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {e} (scroll up for stack trace)") from e
            outcome[name] = e
    return outcome


def _operator(op) -> Operator:
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, OpOverloadPacket):
        return op.default
    if not isinstance(op, Operator):
        raise ValueError(
            f"opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got {type(op)}"
        )
    return op


class _Case:
    """An operator with example arguments, of which each test takes copies."""

    def __init__(self, op: Operator, args: tuple, kwargs: dict, tolerance: dict):
        self.op, self.args, self.kwargs, self.tolerance = op, args, kwargs, tolerance

    def copies(self) -> tuple[tuple, dict]:
        return tree_map(_copied, self.args), tree_map(_copied, self.kwargs)

    def wants_gradient(self) -> bool:
        return any(isinstance(t, Tensor) and requires_grad(t) for t in tree_leaves((self.args, self.kwargs)))


def _copied(value):
    if not isinstance(value, Tensor):
        return value
    result = value.detach().clone()
    return result.requires_grad_() if value.requires_grad else result


# ---- the schema
def _test_schema(case: _Case) -> None:
    """What the call writes and shares must be what the schema says."""
    args, kwargs = case.copies()
    with SchemaCheckMode():
        case.op(*args, **kwargs)


# ---- autograd
def autograd_registration_check(op: Operator, args: tuple, kwargs: dict[str, Any]) -> None:
    """Results that carry gradients must come from an autograd kernel, not from what a backend kernel happened to do."""
    tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
    if not any(requires_grad(t) for t in tensors):
        raise RuntimeError(
            "autograd_registration_check: no inputs have requires_grad=True so we are unable to actually perform this test. Please pass inputs "
            "that do require grad."
        )
    if not isinstance(op, LibraryOperator):
        return
    table = op.table
    if table.autograd(backend_of(tensors, 0)) is not None or table.find(COMPOSITE_IMPLICIT) is not None:
        return
    before = get_fallback_mode()
    set_fallback_mode("nothing")
    try:
        out = op(*args, **kwargs)
    finally:
        set_fallback_mode(before)
    given = {id(t) for t in tensors}
    if any(isinstance(t, Tensor) and t.requires_grad and id(t) not in given for t in tree_leaves(out)):
        raise AssertionError(_NO_AUTOGRAD.format(op.qualified_name))


def _test_autograd_registration(case: _Case) -> None:
    if case.wants_gradient():
        autograd_registration_check(case.op, *case.copies())


# ---- by layers above this one
def fake_check(op: Operator, args: tuple, kwargs: dict[str, Any]) -> None:
    """The fake rule must say what the kernel does."""
    mode = above.fake_mode(False, unknown_sizes=True)
    fake_args, fake_kwargs = tree_map(lambda v: mode.from_tensor(v) if isinstance(v, Tensor) else v, (args, kwargs))
    with mode:
        fake_out = op(*fake_args, **fake_kwargs)
    real_out = op(*args, **kwargs)
    real, fake = tree_leaves(real_out), tree_leaves(fake_out)
    if len(real) != len(fake):
        raise RuntimeError(f"{op}: the operator gives {len(real)} results, its fake impl {len(fake)}")
    for r, f in zip(real, fake, strict=True):
        _compare(op, r, f)


def _test_faketensor(case: _Case) -> None:
    fake_check(case.op, *case.copies())


def _compare(op: Operator, real, fake) -> None:
    if not isinstance(real, Tensor):
        if isinstance(fake, Tensor) or (real is None) != (fake is None):
            raise RuntimeError(f"{op}: the operator gives {real}, its fake impl {fake}")
        return
    if not isinstance(fake, Tensor):
        raise RuntimeError(f"{op}: the operator gives a Tensor, its fake impl {fake}")
    for what, a, b in (("Dtypes", real.dtype, fake.dtype), ("Devices", real.device, fake.device)):
        if a != b:
            raise RuntimeError(f"{op}: {what} {a} and {b} are not equal!")
    if real.ndim != fake.ndim or any(not _agree(a, b) for a, b in zip(real.shape, fake.shape, strict=True)):
        raise RuntimeError(f"{op}: Shapes {tuple(real.shape)} and {tuple(fake.shape)} are not equal!")
    ours, theirs = stride_of(real), stride_of(fake)
    if any(not _agree(a, b) for a, b, n in zip(ours, theirs, real.shape, strict=True) if n > 1) and real.numel():
        raise RuntimeError(
            f"{op}: Stride mismatch! Strides are {ours} and {theirs} (for a tensor of shape {real.shape})"
        )


def _agree(real: int, fake: Any) -> bool:
    """Whether a fake number may be what the kernel made of it; one that depends on data may be anything."""
    return not isinstance(fake, int) or real == fake


def _test_aot(dynamic: bool) -> Callable[[_Case], None]:
    def test(case: _Case) -> None:
        from ..testing import assert_close as compare

        tolerance = {k: v for k, v in case.tolerance.items() if v is not None}
        eager, traced = case.copies(), case.copies()
        compiled = above.differentiated_ahead(lambda args, kwargs: case.op(*args, **kwargs), dynamic)
        out, other = case.op(*eager[0], **eager[1]), compiled(*traced)
        words = _DIFFERENT.format("Outputs", "output", "implementation not traceable")
        compare(_data(other), _data(out), msg=words, **tolerance)
        if not case.wants_gradient():
            return
        words = _DIFFERENT.format("Gradients", "gradients", "backward not traceable")
        compare(_gradients(other, traced), _gradients(out, eager), msg=words, **tolerance)

    return test


def _data(out) -> list:
    return [t.detach() for t in tree_leaves(out) if isinstance(t, Tensor)]


def _gradients(out, inputs) -> list:
    """The gradients of all inputs from the sum of all results."""
    for t in [t for t in tree_leaves(out) if isinstance(t, Tensor) and t.requires_grad]:
        t.abs().sum().backward(retain_graph=True)
    leaves = [t for t in tree_leaves(inputs) if isinstance(t, Tensor) and t.requires_grad]
    return [t.grad for t in leaves if t.grad is not None]


_TESTS: dict[str, Callable[[_Case], None]] = {
    "test_schema": _test_schema,
    "test_autograd_registration": _test_autograd_registration,
    "test_faketensor": _test_faketensor,
    "test_aot_dispatch_static": _test_aot(dynamic=False),
    "test_aot_dispatch_dynamic": _test_aot(dynamic=True),
}
