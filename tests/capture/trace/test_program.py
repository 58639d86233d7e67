"""Programs captured above autograd: operators that write, and give back what they were given."""

import pytest

import pullback as torch


@pytest.fixture
def operators():
    lib = torch.library.Library("test_program", "FRAGMENT")
    lib.define("given_back(Tensor(a!) x) -> Tensor")  # a schema that does not say what the kernel does
    lib.define("doubled(Tensor(a!) x) -> ()")
    lib.impl("given_back", lambda x: x.add_(5), "CPU")
    lib.impl("given_back", lambda x: x, "Meta")
    lib.impl("doubled", lambda x: (x.mul_(2), None)[1], "CPU")
    lib.impl("doubled", lambda x: None, "Meta")
    yield torch.ops.test_program
    lib._destroy()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.filterwarnings("ignore:.*autograd kernel was not registered")
def test_history_of_an_argument_that_a_kernel_gives_back(operators, backend):
    def program(x):
        y = x @ x
        operators.given_back(y)
        return y @ y

    grads = []
    for fn in (program, torch.compile(program, backend=backend, fullgraph=True)):
        torch.manual_seed(0)
        x = torch.randn(2, 2, requires_grad=True)
        fn(x).sum().backward()
        grads.append(x.grad)
    assert grads[1] is not None
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_writes_of_an_operator_without_results(operators, backend):
    def program(x):
        y = x.clone()
        operators.doubled(y)
        return y.add_(1) * 2

    assert torch.compile(program, backend=backend, fullgraph=True)(torch.ones(2)).tolist() == [6.0, 6.0]
