"""Numbers drawn by trial and error in C are those of the rules in Python, to the last bit, and leave the generator where those leave it."""

import numpy as np
import pytest

import pullback as torch
from pullback.core import random_rejection as rules
from pullback.core import small

SAMPLERS = {
    "poisson": ("poisson.default", rules.poisson, lambda a: (a * 20,)),
    "poisson, few": ("poisson.default", rules.poisson, lambda a: (a,)),
    "gamma": ("_standard_gamma.default", rules.standard_gamma, lambda a: (a,)),
    "dirichlet": ("_sample_dirichlet.default", rules.dirichlet, lambda a: (a + 0.01,)),
    "binomial": ("binomial.default", rules.binomial, lambda a: ((a * 100).floor(), a / 3)),
    "binomial, few": ("binomial.default", rules.binomial, lambda a: ((a * 3).floor(), a / 3)),
    "binomial, many": ("binomial.default", rules.binomial, lambda a: (a * 1e7, a / 3)),
}
ODD = [0.0, float("nan"), float("inf"), 1e-40, 1e30]


def both(name, *parameters, seed=5):
    """(values, state) by C and by the rules; a normal number waits at the beginning."""
    key, rule, _ = SAMPLERS[name]
    found = []
    for draw in (lambda g: small.table[key]((*parameters, g)), lambda g: rule(g, *(p._array for p in parameters))):
        generator = torch.Generator().manual_seed(seed)
        torch.randn(3, generator=generator)
        values = draw(generator)
        found.append((values, generator.get_state()))
    (ours, state), (expected, expected_state) = found
    assert ours is not None, "C does not take the call"
    return ours, torch.from_numpy(np.asarray(expected)), state, expected_state


@pytest.mark.skipif("poisson.default" not in small.table, reason="without the extensions there is nothing to compare")
class TestRules:
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("shape", [(), (7,), (2, 300), (4, 17)], ids=str)
    @pytest.mark.parametrize("name", SAMPLERS)
    def test_numbers_and_state_are_those_of_the_rules(self, name, shape, dtype):
        a = torch.rand(shape, dtype=getattr(torch, dtype)) * 3
        ours, expected, state, expected_state = both(name, *SAMPLERS[name][2](a))
        assert ours.dtype == expected.dtype
        assert ours.shape == expected.shape
        assert torch.equal(ours, expected)
        assert torch.equal(state, expected_state)

    @pytest.mark.parametrize("value", ODD)
    @pytest.mark.parametrize("name", ["gamma", "dirichlet", "binomial"])
    def test_parameters_without_a_distribution(self, name, value):
        a = torch.tensor([value, 1.0, value])
        parameters = (a, torch.tensor([0.3, 1.0, 2.0])) if name == "binomial" else (a,)
        ours, expected, state, expected_state = both(name, *parameters)
        np.testing.assert_array_equal(ours.numpy(), expected.numpy())
        assert torch.equal(state, expected_state)

    def test_parameters_in_any_order_of_memory(self):
        a = torch.rand(3, 5).t()
        ours, expected, *_ = both("dirichlet", a)
        assert torch.equal(ours, expected)
        b = torch.rand(1).expand(6)
        ours, expected, *_ = both("gamma", b)
        assert torch.equal(ours, expected)

    def test_nothing_drawn_leaves_the_generator_fresh(self):
        generator = torch.Generator().manual_seed(1)
        before = generator.get_state()
        torch.poisson(torch.zeros(3), generator=generator)
        assert torch.equal(generator.get_state(), before)


def test_rates_that_are_refused():
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        torch.poisson(torch.tensor([1.0, -1.0]))
