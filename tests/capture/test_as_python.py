"""Programs that a compiler gets wrong in silence, or that make it fail, each as plain Python has it."""

import pytest

import pullback as torch

BACKENDS = ["eager", "aot_eager", "inductor"]


def both(f, backend, make):
    """What a program gives, and the gradient of its argument: compiled and not."""
    seen = []
    for run in (f, torch.compile(f, backend=backend)):
        x = make()
        out = run(x)
        out.sum().backward()
        seen.append((out.tolist(), x.grad.tolist()))
    return seen


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_dead_value_before_a_break_has_no_gradient(backend: str) -> None:
    """Where it got zeros, they were multiplied by an infinite derivative: NaN."""

    def f(x):
        dead = x.sqrt()  # noqa: F841
        alive = x * 2
        print(end="")
        return alive + 1

    want, got = both(f, backend, lambda: torch.zeros(3, requires_grad=True))
    assert got == want and want[1] == [2.0] * 3


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_numbers_beside_half_precision_are_what_they_are_in_eager(dtype, backend: str) -> None:
    def f(x):
        return x == 3.14, x * 3.14, x + 0.1, x < 1 / 3, torch.where(x > 3.14, x, 2.7), x / 3, x.clamp(0.1, 3.14)

    x = torch.tensor([3.14, 0.1, 1 / 3, 100.0, -2.7]).to(dtype)
    for want, got in zip(f(x), torch.compile(f, backend=backend)(x), strict=True):
        assert got.dtype == want.dtype and got.tolist() == want.tolist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_attention_and_then_a_derivative(backend: str) -> None:
    def loss(q):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q).pow(2).sum()

    def f(q):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q) + torch.func.grad(loss)(q)

    q = torch.randn(1, 2, 3, 4)
    torch.testing.assert_close(torch.compile(f, backend=backend)(q), f(q))


class GivesAnObject(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, kind):
        return x * 2, kind

    @staticmethod
    def backward(ctx, g, _):
        return g * 3, None


class Kind:
    factor = 5.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_custom_function_that_gives_a_plain_object(backend: str) -> None:
    kind = Kind()

    def f(x):
        y, same = GivesAnObject.apply(x, kind)
        assert same is kind
        return y * same.factor

    want, got = both(f, backend, lambda: torch.ones(2, requires_grad=True))
    assert got == want == ([10.0, 10.0], [15.0, 15.0])


def raises(x):
    raise ValueError("here")


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_traceback_of_an_error_that_is_caught(backend: str) -> None:
    def f(x):
        try:
            raises(x)
        except ValueError as error:
            at, names = error.__traceback__, []
            while at is not None:
                names.append(at.tb_frame.f_code.co_name)
                at = at.tb_next
            return x * len(names), names

    want, got = f(torch.ones(2)), torch.compile(f, backend=backend)(torch.ones(2))
    assert got[1][-2:] == want[1][-2:] == ["f", "raises"] and got[0].tolist() == want[0].tolist()
