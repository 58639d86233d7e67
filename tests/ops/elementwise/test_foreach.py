"""Operators on lists of tensors: every kind of second operand, in place, gradients, what is refused."""

import pytest

import pullback as torch


def lists(value):
    return [t.tolist() for t in value]


@pytest.fixture
def xs():
    return [torch.tensor([1.0, 4.0]), torch.tensor([9.0])]


def test_second_operands(xs):
    assert lists(torch._foreach_add(xs, 1)) == [[2, 5], [10]]
    assert lists(torch._foreach_add(xs, [1, 2])) == [[2, 5], [11]]
    assert lists(torch._foreach_add(xs, torch.tensor(1.0), alpha=2)) == [[3, 6], [11]]
    assert lists(torch._foreach_sub(xs, xs, alpha=2)) == [[-1, -4], [-9]]
    assert lists(torch._foreach_pow(2, xs)) == [[2, 16], [512]]
    assert lists(torch._foreach_maximum(xs, [2, 10])) == [[2, 4], [10]]
    assert lists(torch._foreach_lerp(xs, [t * 0 for t in xs], 0.5)) == [[0.5, 2], [4.5]]
    assert lists(torch._foreach_addcmul(xs, xs, xs, torch.tensor([1.0, 0.0]))) == [[2, 20], [9]]
    assert lists(torch._foreach_addcdiv(xs, xs, xs, value=2)) == [[3, 6], [11]]
    assert type(torch._foreach_sqrt(xs)) is tuple


def test_in_place_gives_the_list_back(xs):
    assert torch._foreach_sqrt_(xs) is xs and lists(xs) == [[1, 2], [3]]
    assert torch._foreach_mul_(xs, 2) is xs and lists(xs) == [[2, 4], [6]]
    assert torch._foreach_copy_(xs, [torch.zeros(2), torch.ones(1)]) is xs and lists(xs) == [[0, 0], [1]]
    torch._foreach_zero_(xs)
    assert lists(xs) == [[0, 0], [0]]


def test_norms_and_extremes(xs):
    assert lists(torch._foreach_norm(xs, 1)) == [5, 9] and lists(torch._foreach_max(xs)) == [4, 9]
    assert lists(torch._foreach_powsum(xs, 2)) == [17, 81]
    assert torch._foreach_norm(xs, 2, torch.float64)[0].dtype is torch.float64


def test_gradients(xs):
    leaves = [t.requires_grad_() for t in xs]
    out = torch._foreach_mul(leaves, leaves)
    torch.autograd.backward([o.sum() for o in out])
    assert [t.grad.tolist() for t in leaves] == [[2, 8], [18]]


def test_all_names_of_pytorch_are_there():
    for name in ("abs", "acos", "add", "clamp_max", "erf", "lgamma", "lerp", "minimum", "round", "sigmoid", "trunc"):
        assert hasattr(torch, f"_foreach_{name}") and hasattr(torch, f"_foreach_{name}_")


REFUSED = [
    ("torch._foreach_add([], 1)", RuntimeError, "must have at least one tensor"),
    ("torch._foreach_add(xs, [1])", RuntimeError, "same number of elements as scalar list"),
    ("torch._foreach_add(xs, xs[:1])", RuntimeError, "same number of tensors, got 2 and 1"),
    ("torch._foreach_add(xs, torch.ones(2))", RuntimeError, "expected to be 0 dim but it has 1 dimensions"),
    ("torch._foreach_add(xs, 1, alpha=2)", TypeError, "invalid combination of arguments"),
    ("torch._foreach_addcmul(xs, xs, xs, torch.ones(4)[::2])", RuntimeError, "Expected scalars to be contiguous"),
    (
        "torch._foreach_addcdiv(xs, [x.int() for x in xs], [x.int() for x in xs], torch.ones(2))",
        RuntimeError,
        "Integer division with addcdiv",
    ),
    ("torch._foreach_exp(2)", TypeError, "_foreach_exp"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused(xs, call, error, words):
    with pytest.raises(error, match=words):
        eval(call)


def test_a_call_is_recorded_as_one_node():
    xs = [torch.tensor([1.0, -2.0], requires_grad=True), torch.tensor([3.0]), torch.tensor([-1.0], requires_grad=True)]
    result = torch._foreach_maximum(xs, [0.0, 1.0, -2.0])
    node = result[0].grad_fn
    assert node is result[2].grad_fn and result[1].grad_fn is None and len(node.next_functions) == 2
    assert node.name() == "ForeachMaximumBackward1" and node._saved_scalars == (0.0, 1.0, -2.0)
    (result[0].sum() + 3 * result[2].sum()).backward(retain_graph=True)
    assert xs[0].grad.tolist() == [1, 0] and xs[2].grad.tolist() == [3]
    result[2].sum().backward()
    assert xs[0].grad.tolist() == [1, 0] and xs[2].grad.tolist() == [4]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        result[2].sum().backward()


def test_the_gradient_of_the_gradient():
    xs = [torch.tensor(0.3, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    result = torch._foreach_exp(xs)
    assert (
        result[0].grad_fn.name() == "ForeachExpBackward0"
        and torch._foreach_add(xs, 1.0)[0].grad_fn.name() == "ForeachAddBackward1Scalar"
    )
    (first,) = torch.autograd.grad(result[0], xs[0], create_graph=True)
    (second,) = torch.autograd.grad(first, xs[0])
    assert torch.allclose(second, xs[0].exp())


def test_nothing_is_written_where_one_of_the_tensors_may_not_be() -> None:
    x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch._foreach_add_([x, leaf], 1)
    assert x.tolist() == [1, 1] and x._version == 0
    assert torch.ops.aten._foreach_add_.Scalar([x, x.clone()], 1) is None


def test_a_tensor_of_scalars_is_so_many_numbers():
    whole, z = [torch.tensor([1, 2])], [torch.tensor([1 + 1j, 2 - 1j])]
    assert lists(torch._foreach_addcmul(whole, whole, whole, torch.tensor([2.5]))) == [[3, 10]]
    assert str(torch._foreach_addcmul(z, z, z, torch.tensor([float("inf")]))) == str(
        torch._foreach_addcmul(z, z, z, [float("inf")])
    )
    both = torch.compile(lambda t, s: torch._foreach_addcmul(t, t, t, s), backend="eager")
    assert lists(both(whole, torch.tensor([2.5]))) == [[3, 10]]
    traced = torch.compile(lambda z, s: torch._foreach_addcdiv(z, z, z, s), backend="eager")
    assert lists(traced(z, torch.tensor([2.0]))) == [[3 + 1j, 4 - 1j]]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "sqrt", "neg", "abs"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_plain_lists_are_written_as_one_by_one(name, dtype):
    given = [torch.rand(3, 4, dtype=dtype) + 1, torch.rand(5, dtype=dtype) + 1]
    other = [torch.rand(3, 4, dtype=dtype) + 1, torch.rand(5, dtype=dtype) + 1]
    alone = name in ("sqrt", "neg", "abs")
    operands = [()] if alone else [(other,), (1.3,), ([1.3, 2.5],)]
    for operand in operands:
        ours, expected = [t.clone() for t in given], [t.clone() for t in given]
        with torch.no_grad():
            assert getattr(torch, f"_foreach_{name}_")(ours, *operand) is ours
        for k, t in enumerate(expected):
            getattr(t, f"{name}_")(*[o[k] if isinstance(o, list) else o for o in operand])
        assert all(torch.equal(a, b) for a, b in zip(ours, expected, strict=True))
        assert [t._version for t in ours] == [1, 1]


def test_lists_that_take_more_are_left_to_the_rules():
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        torch._foreach_add_([torch.ones(2), leaf], 1.0)
    base = torch.arange(4.0)
    torch._foreach_add_([base[1:]], [base[:-1].clone()])
    assert base.tolist() == [0.0, 1.0, 3.0, 5.0]
    kept = torch.ones(2, requires_grad=True) * 2
    squared = kept.pow(2)
    torch._foreach_mul_([kept], 3.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squared.sum().backward()
    with pytest.raises(RuntimeError):
        torch._foreach_add_([torch.ones(2)], [torch.ones(3)])
    mixed = [torch.ones(2), torch.ones(2, dtype=torch.float64)]
    torch._foreach_add_(mixed, [torch.ones(2), torch.ones(2)])
    assert [t.dtype for t in mixed] == [torch.float32, torch.float64]
