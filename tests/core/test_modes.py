"""Ambient state: blocks and decorators set it and give it back, on every way out and in every thread."""

from __future__ import annotations

import ast
import threading
from pathlib import Path

import pytest

import pullback as torch
from pullback.core import modes


@pytest.mark.parametrize(
    ("block", "inside"), [(torch.no_grad, False), (torch.enable_grad, True), (torch.inference_mode, False)]
)
def test_blocks_give_the_mode_back(block, inside) -> None:
    assert torch.is_grad_enabled()
    with block():
        assert torch.is_grad_enabled() is inside
    assert torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), block():
        1 / 0
    assert torch.is_grad_enabled()


def test_decorators_and_generators() -> None:
    @torch.no_grad()
    def function():
        return torch.is_grad_enabled()

    @torch.no_grad()
    def generator():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    assert function() is False
    seen = []
    for value in generator():
        seen.append((value, torch.is_grad_enabled()))
    assert seen == [(False, True)] * 2


def test_set_grad_enabled_works_as_a_call_and_as_a_block() -> None:
    torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled()
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_each_thread_has_its_own() -> None:
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_nothing_is_recorded_without_grad() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        y = x * 2
    assert y.is_inference() and not y.requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        (x * y).sum().backward()


def test_only_what_is_kept_for_a_gradient_must_not_be_of_inference_mode() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        y = torch.full((2,), 3.0)
    for result in (x + y, torch.add(y, x, alpha=2), torch.lerp(x, y, 0.5), torch.where(y > 0, x, y), torch.cat([x, y])):
        result.sum().backward()
    assert x.grad.tolist() == [5.5] * 2
    assert (x * 1).add_(y).tolist() == [4.0] * 2
    z = x * 1
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        z.mul_(y)
    assert z.tolist() == [1.0] * 2


def writes_of_mode(path):
    """Lines of a file that assign to `.mode` of the ambient state."""
    for node in ast.walk(ast.parse(path.read_text())):
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        parts = [p for t in targets for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
        for part in parts if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) else []:
            if isinstance(part, ast.Attribute) and part.attr == "mode" and ast.unparse(part.value).endswith("ambient"):
                yield f"{path.name}:{node.lineno}"


def test_the_mode_is_written_in_one_place():
    package = Path(modes.__file__).parent.parent
    found = [line for path in package.rglob("*.py") for line in writes_of_mode(path) if path != Path(modes.__file__)]
    assert found == []
    assert list(writes_of_mode(Path(modes.__file__)))  # and the test sees such writes


def test_change_and_restore():
    before = modes.ambient.change(modes.GRAD, modes.ANOMALY)
    try:
        assert modes.ambient.mode & modes.ANOMALY and not modes.ambient.mode & modes.GRAD
    finally:
        modes.ambient.restore(before)
    assert modes.ambient.mode == before


def test_listeners_are_others_for_a_block():
    class levels(modes.other_stack):
        name, bit = "forward_levels", modes.FORWARD

        def __enter__(self):
            self.replace((7,))

    before = modes.ambient.mode
    with pytest.raises(KeyError), levels():
        assert modes.ambient.forward_levels == (7,) and modes.ambient.mode & modes.FORWARD
        raise KeyError
    assert modes.ambient.forward_levels == () and modes.ambient.mode == before
