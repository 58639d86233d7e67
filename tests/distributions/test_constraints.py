"""Constraints: what they take in, in which shape they answer, and how they show themselves."""

import math

import pytest

import pullback as torch
from pullback.distributions import Normal, Uniform, constraints
from pullback.distributions.parameters import broadcast_all, lazy_property, tril_matrix_to_vec, vec_to_tril_matrix


def t(value):
    return torch.tensor(value)


@pytest.mark.parametrize(
    "region, value, expected",
    [
        (constraints.boolean, [0.0, 1.0, 0.5], [True, True, False]),
        (constraints.integer_interval(0, 2), [0.0, 2.0, 3.0, 0.5], [True, True, False, False]),
        (constraints.nonnegative_integer, [0.0, -1.0, 0.5], [True, False, False]),
        (constraints.real, [0.0, math.inf, math.nan], [True, True, False]),
        (constraints.positive, [0.0, 1.0], [False, True]),
        (constraints.nonnegative, [0.0, -1.0], [True, False]),
        (constraints.less_than(1.0), [0.0, 1.0], [True, False]),
        (constraints.unit_interval, [0.0, 1.0, 1.1], [True, True, False]),
        (constraints.half_open_interval(0.0, 1.0), [0.0, 1.0], [True, False]),
        (constraints.simplex, [[0.2, 0.8], [0.2, 0.7], [-0.2, 1.2]], [True, False, False]),
        (constraints.one_hot, [[0.0, 1.0], [1.0, 1.0]], [True, False]),
        (constraints.multinomial(3), [[1.0, 2.0], [2.0, 2.0], [-1.0, 2.0]], [True, False, False]),
        (constraints.lower_triangular, [[[1.0, 0.0], [2.0, -1.0]], [[1.0, 1.0], [0.0, 1.0]]], [True, False]),
        (constraints.lower_cholesky, [[[1.0, 0.0], [2.0, 1.0]], [[1.0, 0.0], [2.0, -1.0]]], [True, False]),
        (constraints.corr_cholesky, [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.9]]], [True, False]),
        (constraints.square, [[[1.0, 0.0, 1.0], [0.6, 0.8, 0.0]]], [False]),
        (constraints.symmetric, [[[1.0, 0.5], [0.5, 1.0]]], [True]),
        (constraints.positive_definite, [[[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]], [True, False]),
        (constraints.positive_semidefinite, [[[1.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]]], [True, False]),
        (constraints.independent(constraints.positive, 1), [[1.0, 2.0], [1.0, -2.0]], [True, False]),
        (constraints.cat([constraints.positive, constraints.real], 0), [1.0, -1.0], [True, True]),
        (constraints.stack([constraints.positive, constraints.positive], 0), [1.0, -1.0], [True, False]),
    ],
    ids=lambda v: repr(v) if isinstance(v, constraints.Constraint) else "",
)
def test_checks(region, value, expected):
    assert region.check(t(value)).tolist() == expected


def test_reprs():
    assert repr(constraints.interval(0, 1)) == "Interval(lower_bound=0, upper_bound=1)"
    assert repr(constraints.real_vector) == "IndependentConstraint(Real(), 1)"
    assert repr(constraints.MixtureSameFamilyConstraint(constraints.real)) == "MixtureSameFamilyConstraint(Real())"
    assert repr(Uniform(1.0, 2.0).support) == "Interval(lower_bound=1.0, upper_bound=2.0)"
    assert repr(Uniform.support) == "DependentProperty()" and repr(Normal.support) == "Real()"


def test_dependent_constraints_tell_what_is_known():
    assert constraints.is_dependent(Uniform.support) and not constraints.is_dependent(Normal.support)
    assert Uniform.support.event_dim == 0 and Uniform.support.is_discrete is False
    known = constraints.dependent(event_dim=2)
    assert known.event_dim == 2
    with pytest.raises(NotImplementedError, match=".is_discrete cannot be determined statically"):
        known.is_discrete
    with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
        known.check(t(1.0))


def test_too_few_dimensions():
    with pytest.raises(ValueError, match=r"Expected value.dim\(\) >= 1 but got 0"):
        constraints.real_vector.check(t(1.0))
    with pytest.raises(AssertionError, match="dim 1 out of range for value with 1 dimensions"):
        constraints.stack([constraints.real], 1).check(t([1.0]))


def test_numbers_follow_the_tensors_beside_them():
    a, b = broadcast_all(torch.zeros(2, dtype=torch.float64), 1)
    assert b.dtype is torch.float64 and b.shape == (2,)
    assert broadcast_all(1, 2)[0].dtype is torch.get_default_dtype()


def test_triangles():
    vec = torch.arange(1.0, 7.0)
    matrix = vec_to_tril_matrix(vec)
    assert matrix.tolist() == [[1, 0, 0], [2, 3, 0], [4, 5, 6]]
    assert tril_matrix_to_vec(matrix).tolist() == vec.tolist()
    assert tril_matrix_to_vec(matrix, diag=-1).tolist() == [2, 4, 5]
    with pytest.raises(ValueError, match=r"diag \(4\) provided is outside \[-3, 2\]."):
        tril_matrix_to_vec(matrix, diag=4)
    with pytest.raises(ValueError, match="The size of last dimension is 5 which cannot be expressed"):
        vec_to_tril_matrix(torch.zeros(5))


def test_lazy_values_are_computed_once_and_recorded():
    class Holder:
        calls = 0

        @lazy_property
        def value(self):
            self.calls += 1
            return torch.ones(1, requires_grad=True) * 2

    holder = Holder()
    with torch.no_grad():
        assert holder.value.requires_grad
    assert holder.value is holder.value and holder.calls == 1
    assert isinstance(Holder.value, lazy_property)
