"""Open transforms: `no_grad` around them, hooks inside them, writes and inference mode."""

import pytest

import pullback as torch
from pullback.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap


def test_no_grad_around_an_inner_transform_makes_its_result_a_constant():
    def h(x):
        with torch.no_grad():
            s = grad(lambda x: 0.25 * x**4)(x)
        return x**3 - s

    assert grad(h)(torch.tensor(1.5)).item() == 6.75


def test_no_grad_inside_holds_for_every_transform_around():
    def f(x):
        with torch.no_grad():
            c = x**2
        return x * c

    assert grad(f)(torch.tensor(3.0)).item() == 9.0
    assert grad(grad(f))(torch.tensor(3.0)).item() == 0.0


@pytest.mark.parametrize("transform", [grad, lambda f: lambda x: grad_and_value(f)(x)[1], jacrev, jacfwd, hessian])
def test_results_under_no_grad_need_none(transform):
    w = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        assert not transform(lambda x: (x**3 * w).sum())(w).requires_grad


def test_a_jvp_by_transposition_records_nothing_under_no_grad():
    w = torch.eye(2, requires_grad=True)
    with torch.no_grad():
        assert not jvp(torch.linalg.inv, (w,), (torch.ones(2, 2),))[1].requires_grad


def test_the_vjp_of_a_call_under_no_grad_may_be_differentiated():
    x = torch.tensor(3.0, requires_grad=True)
    with torch.no_grad():
        out, pull = vjp(lambda x: x**2, x)
    (y,) = pull(torch.tensor(1.0))
    assert not out.requires_grad and torch.autograd.grad(y, x)[0].item() == 2
    with torch.no_grad():
        assert not pull(torch.tensor(1.0))[0].requires_grad


def test_a_hook_runs_in_the_backward_of_its_own_transform_alone():
    def inner(y):
        z = y * y
        z.register_hook(lambda g: 10 * g)
        z.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
        return z.sin()

    y = torch.tensor(2.0, dtype=torch.float64)
    expected = 20 * (2 * (y * y).cos() - 4 * y * y * (y * y).sin())
    assert torch.allclose(grad(grad(inner))(y), expected)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_hooks_in_compiled_functions_run_in_the_backward_of_their_own_transform_alone(backend, depth):
    def f(v):
        square = v * v
        if square.requires_grad:  # as it does in what is differentiated, captured or not
            square.register_hook(lambda g: g * 2)
        return (square * v).sum()

    def nested(inner, n=depth):
        return grad(inner) if n == 1 else grad(lambda v: nested(inner, n - 1)(v).sum())

    x = torch.tensor([2.0, 3.0])
    want = {1: [20.0, 45.0], 2: [20.0, 30.0], 3: [10.0, 10.0]}[depth]
    compiled = torch.compile(f, backend=backend)
    assert nested(f)(x).tolist() == nested(compiled)(x).tolist() == want
    assert torch.compile(nested(f), backend=backend)(x).tolist() == want
    assert torch.compile(lambda v: nested(compiled)(v) * 1, backend=backend)(x).tolist() == want


@pytest.mark.parametrize("recording", [True, False])
def test_captured_transforms_show_whether_tensors_require_grad_as_they_do_eagerly(recording):
    def f(v, w):
        return (v * w).sum() * (3 if v.requires_grad else 1) * (5 if w.requires_grad else 1)

    def run(v):
        w = torch.ones(2)
        by_vjp = vjp(lambda u: f(u, w), v)
        first = grad(f)(v, w)
        return first, jacrev(f, argnums=1)(v, w), by_vjp[0], by_vjp[1](torch.ones(()))[0], jvp(f, (v, w), (w, w))[1]

    x = torch.tensor([2.0, 3.0])
    with torch.set_grad_enabled(recording):
        want = run(x)
        for have in (torch.compile(run, backend="eager")(x), torch.compile(run, backend="aot_eager")(x)):
            assert [t.tolist() for t in have] == [t.tolist() for t in want]
    assert want[0].tolist() == [3.0, 3.0] and want[1].tolist() == [10.0, 15.0] and want[2].item() == 15


def test_a_hook_of_what_stands_for_a_leaf_in_forward_mode_is_the_leaf_s():
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)

    def f(v):
        with torch.no_grad():
            same = v.view(2)
        same.register_hook(lambda g: g * 100)  # of another leaf
        v.register_hook(lambda g: g * 2)
        return v * v

    jvp(f, (leaf,), (torch.ones(2),))[1].sum().backward()
    assert leaf.grad.tolist() == [4.0, 4.0]


def test_a_hook_inside_vmap_sees_the_gradient_of_one_example():
    def f(y):
        z = y * y
        z.register_hook(lambda g: g * g.shape[0] * g.sum())
        return z.sum()

    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert torch.equal(vmap(grad(f))(x), x * 2 * 9)


def test_a_captured_tensor_that_is_written_keeps_its_value_and_no_history():
    captured, x = torch.zeros(3), torch.tensor([1.0, 2.0, 3.0])

    def f(x):
        captured.copy_(x)
        captured[0] = x[1]
        return (captured * captured).sum()

    assert grad(f)(x).tolist() == [0.0, 8.0, 6.0]
    assert captured.tolist() == [2.0, 2.0, 3.0] and not captured.requires_grad


def test_a_write_inside_stays_connected_to_what_is_differentiated_outside():
    def outer(x):
        captured = torch.zeros(())

        def inner(y):
            captured.copy_(x * y)
            return captured * y

        return grad(inner)(x) * captured

    x = torch.tensor(2.0, dtype=torch.float32)
    assert grad(outer)(x).item() == pytest.approx(8 * 2.0**3)  # outer(x) = 2 x^2 * x^2


def test_transforms_under_inference_mode():
    x = torch.tensor([1.0, 2.0])
    with torch.inference_mode():
        result = torch.tensor([1.0, 2.0])
        assert grad(lambda a: (a**2 * result).sum())(result).tolist() == [2.0, 8.0]
        assert jacrev(grad(lambda a: (a**3).sum()))(x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
        assert jvp(lambda a: a.prod(), (result,), (x,))[1].item() == 4.0
        assert vmap(grad(lambda a: (a**2).sum()))(result).tolist() == [2.0, 4.0]
        assert torch.is_inference_mode_enabled()


@pytest.mark.parametrize("transform", [lambda f: vmap(f), lambda f: grad(f), lambda f: lambda x: jvp(f, (x,), (x,))])
def test_what_a_transformed_function_may_not_ask_of_its_tensors(transform):
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"Tensor.requires_grad_\(\) .*torch.autograd.functional"):
        transform(lambda x: x.requires_grad_().sum())(x)
    with pytest.raises(RuntimeError, match=r"Tensor.requires_grad_\(\)"):
        transform(lambda x: torch.autograd.functional.jacobian(torch.sin, x).sum())(x)


def test_operators_of_functions_have_rules_for_the_transforms_they_meet():
    """The innermost open transform is asked first; inside `lower()` it is not open."""
    from pullback.batching.batched import make_batched
    from pullback.batching.interpreters import TransformType, single_level_functions
    from pullback.capture.higher_order.base import HigherOrderOperator

    asked = []

    class Doubled(HigherOrderOperator):
        def __call__(self, x):
            return super().__call__(x)

    doubled = Doubled("doubled_for_a_test")

    @doubled.py_impl(TransformType.Vmap)
    def batched(interpreter, x):
        asked.append(interpreter.key().name)
        wrapped = x.__dict__["wrapped"]
        with interpreter.lower():
            return make_batched(doubled(wrapped.value), wrapped.dim, interpreter.level())

    @doubled.py_impl(TransformType.Grad)
    def differentiated(interpreter, x):
        asked.append(interpreter.key().name)

        class Rule(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                with interpreter.lower():
                    out = doubled(x)
                assert not torch.is_grad_enabled()
                return out

            @staticmethod
            def backward(ctx, g):
                return g * 20  # not the derivative: this rule is what is asked

        with single_level_functions():
            return Rule.apply(x)

    @doubled.py_impl("AutogradCPU")
    def plain(x):
        return x * 2

    x = torch.ones(3)
    assert doubled(x).tolist() == [2, 2, 2] and not asked
    assert torch.func.grad(lambda x: doubled(x).sum())(x).tolist() == [20, 20, 20] and asked == ["Grad"]
    asked.clear()
    per_example = torch.vmap(torch.func.grad(lambda x: doubled(x).sum()))(torch.ones(2, 3))
    assert per_example.tolist() == [[20] * 3] * 2 and asked == ["Grad", "Vmap"]
    asked.clear()
    whole = torch.func.grad(lambda x: torch.vmap(doubled)(x).sum())(torch.ones(2, 3))
    assert whole.tolist() == [[20] * 3] * 2 and asked == ["Vmap", "Grad"]


@pytest.mark.parametrize("part", [slice(1, None), slice(None, None, 2), 0])
def test_tangents_of_gradients_outlive_writes_to_views(part):
    """The gradient of a base is written where a view of it was: what forward mode knows of it is no part of its history."""

    def f(x):
        y = x.clone()
        v = y[part]
        v.mul_(2)
        return (y**3).sum()

    x, t = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.5, 0.2])
    _, tangent = torch.func.jvp(torch.func.grad(f), (x,), (t,))
    assert torch.allclose(tangent, torch.func.hessian(f)(x) @ t) and tangent.abs().sum() > 0
    _, pull = torch.func.vjp(f, x)
    assert torch.equal(pull(torch.ones(()))[0], torch.func.grad(f)(x))


def test_what_is_detached_in_place_is_a_constant_in_every_transform():
    def argument(v):
        v.detach_()
        return v * 2

    def product(v):
        w = v * 3
        w.detach_()
        return w * v

    x = torch.arange(1.0, 5.0)
    for transform in (jacrev, jacfwd, lambda f: lambda v: vmap(jacrev(f))(v[None])[0]):
        assert not transform(argument)(x.clone()).any()
        assert torch.equal(transform(product)(x), torch.diag(3 * x))
    assert torch.equal(grad(lambda v: argument(v).sum())(x.clone()), torch.zeros(4))
    _, tangent = jvp(product, (x,), (x,))
    assert torch.equal(tangent, 3 * x * x)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x.clone(), x) * 1
        assert torch.autograd.forward_ad.unpack_dual(argument(dual)).tangent is None

    def used_before(v):
        y = v.sin()
        v.detach_()
        return (y * v).sum()

    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        grad(used_before)(x.clone())


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.jacrev, lambda f: lambda x: torch.func.vjp(f, x)])
@pytest.mark.parametrize("write", [lambda v: v.atan2_(v), lambda v: v.add_(1), lambda v: v.view(-1).mul_(3)])
def test_a_write_to_an_argument_is_refused_before_it_is_done(transform, write) -> None:
    x = torch.tensor(2.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"):
        transform(lambda v: (write(v), v * 1)[1])(x)
    assert x.item() == 2 and x._version == 0
