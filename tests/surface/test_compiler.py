"""The switches of torch.compiler."""

import pytest

import pullback as torch
from pullback.capture.front.compile import RecompileError, Unsupported
from pullback.surface import compiler
from pullback.surface.compiler_decorators import run


class Counter:
    count = 0

    def __call__(self, module, inputs):
        self.count += 1
        return module


def test_is_compiling_is_true_only_while_capturing() -> None:
    inside, _ = torch.compile(lambda x: (compiler.is_compiling(), x + 1), backend="eager", fullgraph=True)(
        torch.ones(1)
    )
    assert inside
    assert not compiler.is_compiling()


def test_reset_forgets_graphs() -> None:
    count = Counter()
    f = torch.compile(lambda x: x + 1, backend=count)
    f(torch.ones(1))
    compiler.reset()
    f(torch.ones(1))
    assert count.count == 2


def test_disabled_functions_are_not_captured() -> None:
    @compiler.disable(reason="it prints")
    def inner(x):
        return x + 1

    with pytest.raises(Unsupported, match="compilation is disabled: it prints"):
        torch.compile(lambda x: inner(x), fullgraph=True)(torch.ones(1))
    torch.testing.assert_close(inner(torch.ones(1)), torch.full((1,), 2.0))


def test_stances() -> None:
    count = Counter()
    f = torch.compile(lambda x: x + 1, backend=count)
    with compiler.set_stance("force_eager"):
        f(torch.ones(1))
    assert count.count == 0
    f(torch.ones(1))
    with compiler.set_stance("eager_on_recompile"):
        f(torch.ones(2))
    with compiler.set_stance("fail_on_recompile"), pytest.raises(RecompileError, match="size mismatch"):
        f(torch.ones(2))
    assert count.count == 1
    with pytest.raises(RuntimeError, match="invalid torch.compile stance 'fast'"), compiler.set_stance("fast"):
        pass


def test_default_backend() -> None:
    before = compiler.get_default_backend()
    try:
        compiler.set_default_backend("eager")
        assert compiler.get_default_backend() == "eager"
    finally:
        compiler.set_default_backend(before)
    with pytest.raises(ValueError, match="Invalid backend"):
        compiler.set_default_backend("quick")
    assert {"eager", "aot_eager", "inductor"} <= set(compiler.list_backends())


def test_wrap_numpy() -> None:
    torch.testing.assert_close(compiler.wrap_numpy(lambda a: a * 2)(torch.ones(2)), torch.full((2,), 2.0))


def test_is_exporting_is_true_only_while_exporting() -> None:
    class Asks(torch.nn.Module):
        def forward(self, x):
            return x + 1 if compiler.is_exporting() else x - 1

    asks, x = Asks(), torch.ones(2)
    assert torch.export.export(asks, (x,)).module()(x).tolist() == [2.0, 2.0]
    assert asks(x).tolist() == torch.compile(asks, backend="eager")(x).tolist() == [0.0, 0.0]


def test_run_makes_no_new_graphs():
    graphs = []

    def noting(graph, examples):
        graphs.append(graph)
        return graph

    f = torch.compile(lambda x: x.sin() + 1, backend=noting)
    f(torch.ones(2))
    x = torch.ones(2, dtype=torch.float64)
    assert torch.equal(run(f)(x), x.sin() + 1) and len(graphs) == 1
    f(x)
    assert len(graphs) == 2

    @run()
    def inner(x):
        return x.cos()

    assert torch.equal(torch.compile(lambda x: inner(x) * 2, backend=noting, fullgraph=True)(x), x.cos() * 2)
