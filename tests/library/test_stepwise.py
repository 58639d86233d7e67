"""Custom operators in steps, and gradients by name."""

import pytest

import pullback as torch
from pullback.library import stepwise

Tensor = torch.Tensor
NAME = "t_stepwise::f"


@pytest.fixture(autouse=True)
def clean():
    yield
    for name in [n for n in stepwise.definitions if n.startswith("t_stepwise::")]:
        stepwise.destroy(name)


def defined(schema="(Tensor x, int n) -> Tensor"):
    stepwise.custom_op(NAME, schema)
    return stepwise.get_op(NAME)


def test_kernels_by_device():
    op = defined()
    with pytest.raises(NotImplementedError, match="no cpu impl registered"):
        op(torch.ones(2), 3)
    stepwise.impl(NAME, device_types="cpu", func=lambda x, n: x * n)
    assert op(torch.ones(2), 3).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="already has a cpu impl registered from Python at .*test_stepwise"):
        stepwise.impl(NAME, device_types="cpu", func=lambda x, n: x)
    with pytest.raises(ValueError, match="we only support device_type"):
        stepwise.impl(NAME, device_types="xla", func=lambda x, n: x)


def test_without_a_backward_a_call_that_wants_gradients_raises():
    op = defined()
    stepwise.impl(NAME, func=lambda x, n: x * n)
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Autograd has not been implemented"):
        op(x, 3)
    with torch.no_grad():
        assert op(x, 3).tolist() == [3, 3]


def test_gradients_by_name():
    op = defined("(Tensor x, Tensor[] ys, int n) -> (Tensor, Tensor[])")
    stepwise.impl(NAME, func=lambda x, ys, n: (x * n, [y * 2 for y in ys]))

    @stepwise.impl_save_for_backward(NAME)
    def save(inputs, output):
        return {"n": inputs.n, "first": inputs.ys[0]}

    x, ys = torch.ones(2, requires_grad=True), [torch.tensor([3.0, 4.0], requires_grad=True) for _ in range(2)]
    with pytest.raises(RuntimeError, match="unable to find a 'backward' registration"):
        op(x, ys, 3)

    @stepwise.impl_backward(NAME)
    def backward(ctx, saved, grad, grads):
        return {"x": grad * saved["n"], "ys": [grads[0] * saved["first"], None]}

    out, outs = op(x, ys, 3)
    (out.sum() + outs[0].sum() * 10).backward()
    assert x.grad.tolist() == [3, 3] and ys[0].grad.tolist() == [30, 40] and ys[1].grad is None


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "to be a dict"),
        ({"x": None}, "to have keys"),
        ({"x": 1, "ys": [None]}, "either None or a Tensor"),
        ({"x": None, "ys": None}, "list of gradients but got"),
        ({"x": None, "ys": []}, "1 gradients but got 0"),
        ({"x": None, "ys": [1]}, "None or Tensor gradients"),
    ],
)
def test_gradients_of_another_form(result, words):
    op = defined("(Tensor x, Tensor[] ys) -> Tensor")
    stepwise.impl(NAME, func=lambda x, ys: x * 2)
    stepwise.impl_save_for_backward(NAME, func=lambda inputs, output: [])
    stepwise.impl_backward(NAME, func=lambda ctx, saved, grad: result)
    with pytest.raises(RuntimeError, match=words):
        op(torch.ones(2, requires_grad=True), [torch.ones(2)]).sum().backward()


def test_results_without_gradients():
    op = defined("(Tensor x) -> (Tensor, Tensor)")
    stepwise.impl(NAME, func=lambda x: (x * 2, x * 3))
    stepwise.impl_save_for_backward(NAME, func=lambda inputs, output: [])
    with pytest.raises(RuntimeError, match="output_differentiability"):
        stepwise.impl_backward(NAME, [True], func=lambda ctx, saved, *g: {})
    stepwise.impl_backward(NAME, [False, True], func=lambda ctx, saved, a, b: {"x": b * 3})
    a, b = op(torch.ones(2, requires_grad=True))
    assert not a.requires_grad and b.requires_grad


@pytest.mark.parametrize(
    ("schema", "error", "words"),
    [
        ("(", AssertionError, "Invalid function schema: f"),
        ("(Tensor(a!) x) -> Tensor", ValueError, "only supports functional"),
        ("(Tensor x) -> ()", ValueError, "only supports functional"),
        ("(Tensor self) -> Tensor", ValueError, "named 'self'"),
    ],
)
def test_schemas_that_are_refused(schema, error, words):
    with pytest.raises(error, match=words):
        stepwise.custom_op(NAME, schema)


def test_the_handle_checks_its_function():
    with pytest.raises(ValueError, match="signature to match"):
        stepwise.custom_op_handle(NAME, "(Tensor y) -> Tensor")(_named("f", lambda x: x))
    with pytest.raises(ValueError, match="default arguments"):
        stepwise.custom_op_handle(NAME, "(Tensor x) -> Tensor")(_named("f", lambda x=1: x))
    handle = stepwise.custom_op_handle(NAME, "(Tensor x) -> Tensor")(_named("f", lambda x: x))
    handle.impl("cpu")(lambda x: x + 1)
    handle.impl_abstract()(lambda x: torch.empty_like(x))
    assert handle(torch.ones(1)).tolist() == [2] and handle(torch.ones(2, device="meta")).shape == (2,)


def _named(name, function):
    function.__name__ = name
    return function


def test_names():
    with pytest.raises(ValueError, match="reserved namespace"):
        stepwise.custom_op("aten::f", "(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="overload"):
        stepwise.custom_op("t_stepwise::f.a", "(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="Could not find the operator t_stepwise::none"):
        stepwise.get_op("t_stepwise::none")
