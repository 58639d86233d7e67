"""An override always wins: whatever a dispatch mode sees of a public call, a kernel registered for it is called there."""

from __future__ import annotations

import warnings

import pytest

import pullback as torch
from pullback.ops.eager import functions
from pullback.ops.eager.direct import MARK
from pullback.ops.system.operator import registry
from tests.ops.eager.reach import reached

F = torch.nn.functional


class Called(BaseException):
    """Raised by the kernels that are registered here; no code under test can catch it by accident."""


def _raise(*args, **kwargs):
    raise Called


def _codes(key: str) -> list:
    return [getattr(f, "__code__", None) for f in functions.functions_past(key)]


def _same_code(before, after) -> bool:
    never_called = before is functions._STUB
    return before is after or never_called or (before.co_code, before.co_names) == (after.co_code, after.co_names)


@pytest.mark.parametrize("part", range(8))
def test_an_override_is_called_by_every_function_that_reaches_the_operator(part: int) -> None:
    missed, kept = [], []
    for key in sorted(reached())[part::8]:
        op = registry[key]
        before = _codes(key)
        library = torch.library.Library("aten", "IMPL")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                library.impl(op.name if op.overload == "default" else f"{op.name}.{op.overload}", _raise, "CPU")
                missed += [(name, key) for name, call in reached()[key] if not _reaches(call)]
        finally:
            library._destroy()
        kept += [key for a, b in zip(before, _codes(key), strict=True) if not _same_code(a, b)]
    assert not missed, f"calls that go past an override: {missed}"
    assert not kept, f"plain cases that are not back: {kept}"


def _reaches(call) -> bool:
    try:
        call()
    except Called:
        return True
    return False


def test_the_calls_reach_every_operator_with_a_plain_case() -> None:
    plain = {key for key in functions.past() if key in registry and _has_plain_case(key)}
    unreached = sorted(plain - reached().keys())
    assert not unreached, f"operators whose plain case no call here tries: {unreached}"


def _has_plain_case(key: str) -> bool:
    """Whether a function that goes past the operator is another one while it is overridden, but for the case that all have."""
    for entry in functions.past()[key]:
        if isinstance(entry, functions.Generated):
            if _without_direct_case(entry.write(True)[0]) != entry.write(False)[0]:
                return True
        else:
            return True
    return False


def _without_direct_case(source: str) -> str:
    """The source of a function less the case that every operator has: that one differs in nothing from one to the next."""
    head, mark, _ = source.partition(f"    {MARK}\n")
    return head + source.splitlines()[-1] if mark else source


def test_an_override_changes_nothing_for_other_operators() -> None:
    torch.mul(torch.ones(2), torch.ones(2))
    before = torch.mul.__code__
    library = torch.library.Library("aten", "IMPL")
    library.impl("sum", lambda self, *, dtype=None: torch.zeros(()), "CPU")
    try:
        assert torch.ones(3).sum().item() == 0
        assert torch.mul.__code__ is before
    finally:
        library._destroy()
    assert torch.ones(3).sum().item() == 3


def test_a_gradient_flows_through_a_function_whose_operator_is_overridden() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    library = torch.library.Library("aten", "IMPL")
    library.impl("mm", lambda a, b: torch.full((2, 2), 7.0), "CPU")
    try:
        out = F.linear(x, torch.ones(2, 3))
        assert out.tolist() == [[7.0, 7.0], [7.0, 7.0]]
        assert type(out.grad_fn).__name__ == "MmBackward0"
    finally:
        library._destroy()
    F.linear(x, torch.ones(2, 3)).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2


def test_a_hand_written_function_takes_a_general_code_of_its_own_module() -> None:
    with pytest.raises(TypeError, match="functions of one module"):
        functions.bypassing("mm.default", otherwise=torch.nn.functional.fold)(_raise)
