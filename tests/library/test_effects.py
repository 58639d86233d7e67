"""Custom operators with effects that no argument shows."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.library.effects import EffectType, register_effectful_op

calls = []


@torch.library.custom_op("effects_test::count", mutates_args=())
def count(x: torch.Tensor) -> torch.Tensor:
    calls.append(x.tolist())
    return x.clone()


@count.register_fake
def _(x):
    return torch.empty_like(x)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_calls_stay_though_nothing_uses_their_results(backend):
    def f(x):
        count(x)
        return x * 2

    handle = register_effectful_op(count, EffectType.ORDERED)
    try:
        compiled = torch.compile(f, backend=backend)
        calls.clear()
        for k in range(2):
            compiled(torch.full((2,), float(k)))
        assert calls == [[0, 0], [1, 1]]
    finally:
        handle.destroy()
    assert not count._opoverload.has_effects


def test_only_custom_operators():
    with pytest.raises(TypeError, match="expected a custom operator"):
        register_effectful_op(torch.ops.aten.sin.default, EffectType.ORDERED)
