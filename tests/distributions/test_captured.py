"""Distributions inside captured programs: what is validated is asserted by their graphs."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.distributions import Normal


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_validation_is_part_of_the_graph(backend: str) -> None:
    def f(x, scale):
        return Normal(x, scale).log_prob(x + 1)

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    x, scale = torch.ones(3), torch.ones(3)
    torch.testing.assert_close(compiled(x, scale), f(x, scale))
    with pytest.raises(RuntimeError, match="Expected parameter scale(.|\n)*to satisfy the constraint"):
        compiled(x, -scale)
    with pytest.raises(RuntimeError, match="Expected value argument(.|\n)*to be within the support"):
        torch.compile(lambda x: Normal(torch.zeros(3), 1.0).log_prob(x), backend=backend, fullgraph=True)(
            x * float("nan")
        )
