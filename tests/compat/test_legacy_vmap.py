"""The vmap that was before `torch.vmap`: what it takes, and what it refuses that the newer one takes."""

import pytest

import pullback as torch
from pullback.compat.legacy_vmap import vmap
from pullback.compat.legacy_vmap import vmap_without_warning as plain

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def test_it_says_which_is_now():
    with pytest.warns(FutureWarning, match=r"torch\.vmap"):
        doubled = vmap(lambda x: x * 2)
    assert doubled(X).tolist() == (X * 2).tolist()


@pytest.mark.parametrize(("at", "to"), [(0, 0), (1, 0), (0, 1), (1, (1,)), (1, -1)])
def test_one_output(at, to):
    expected = torch.vmap(lambda x: x.exp(), at, to[0] if isinstance(to, tuple) else to)(X)
    assert torch.equal(plain(lambda x: x.exp(), at, to)(X), expected)


def test_several_outputs_have_a_dimension_each():
    first, second = plain(lambda x: (x, x * 2), 0, (0, 1))(X)
    assert torch.equal(first, X) and torch.equal(second, X.t() * 2)


def test_none_passes_where_it_is_asked_for():
    both = plain(lambda x: (x, None), 0, 0, allow_none_pass_through=True)(X)
    assert torch.equal(both[0], X) and both[1] is None
    with pytest.raises(ValueError, match="must only return Tensors, got type <class 'NoneType'> for return 1"):
        plain(lambda x: (x, None))(X)


@pytest.mark.parametrize("out_dims", ["all", ("all",), None, (None,), [0]])
def test_out_dims_are_numbers(out_dims):
    with pytest.raises(ValueError, match="`out_dims` must be an int or a tuple of int"):
        plain(lambda x: x, 0, out_dims)(X)


@pytest.mark.parametrize(("function", "out_dims"), [(lambda x: x, (0, 0)), (lambda x: (x, x), (0,))])
def test_out_dims_are_as_many_as_outputs(function, out_dims):
    with pytest.raises(ValueError, match="`out_dims` must have one dim per output"):
        plain(function, 0, out_dims)(X)


@pytest.mark.parametrize(("output", "kind"), [(lambda x: [x], "list"), (lambda x: 3.0, "float"), (dict, "dict")])
def test_outputs_are_tensors_or_tuples_of_them(output, kind):
    with pytest.raises(ValueError, match=f"must only return Tensors, got type <class '{kind}'> as the return"):
        plain(lambda x: output({"x": x}) if output is dict else output(x))(X)


@pytest.mark.parametrize(("at", "x"), [(-1, X), ((-1,), X), (2, X), (0, torch.tensor(1.0))])
def test_input_dimensions_count_from_the_front(at, x):
    with pytest.raises(
        ValueError, match=r"Got in_dim=-?\d for some input, but that input is a Tensor of dimensionality"
    ):
        plain(lambda x: x, at)(x)
