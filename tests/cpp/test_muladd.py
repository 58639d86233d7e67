"""Operators and kernels that TORCH_LIBRARY blocks register."""

from __future__ import annotations

import pytest

import pullback as torch


@pytest.fixture
def ops(build):
    build("muladd", is_python_module=False)
    return torch.ops.example_cpp


def test_kernel_reads_memory(ops):
    a, b = torch.randn(3, 4), torch.randn(4, 3).t()
    torch.testing.assert_close(ops.muladd(a, b, 0.5), a * b + 0.5)
    assert str(ops.muladd.default.schema) == "example_cpp::muladd(Tensor a, Tensor b, float c) -> Tensor"


def test_words_of_checks(ops):
    with pytest.raises(RuntimeError, match=r"sizes differ: \[2\] and \[3\]"):
        ops.muladd(torch.ones(2), torch.ones(3), 1.0)
    with pytest.raises(RuntimeError, match="Expected a.dtype\\(\\) == at::kFloat to be true, but got false"):
        ops.muladd(torch.ones(2).double(), torch.ones(2).double(), 1.0)


def test_gradients_and_fakes_from_python(ops):
    @torch.library.register_fake("example_cpp::muladd")
    def fake(a, b, c):
        return torch.empty_like(a)

    torch.library.register_autograd(
        "example_cpp::muladd",
        lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0], None),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs[:2]),
    )
    a, b = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    ops.muladd(a, b, 2.0).sum().backward()
    torch.testing.assert_close((a.grad, b.grad), (b.detach(), a.detach()))
    compiled = torch.compile(lambda x, y: torch.ops.example_cpp.muladd(x, y, 1.0).sin(), fullgraph=True)
    torch.testing.assert_close(compiled(a.detach(), b.detach()), (a * b + 1).sin().detach())


def test_writing_counts_as_a_version(ops):
    out = torch.zeros(3)
    before = out._version
    assert ops.add_out(torch.ones(3), torch.arange(3.0), out) is None
    assert out.tolist() == [1, 2, 3] and out._version == before + 1


def test_defaults_and_kinds_of_arguments(ops):
    x = torch.arange(6.0).view(2, 3)
    assert ops.scaled(x).item() == 15
    assert ops.scaled(x, torch.tensor(1.0), [0], twice=True).tolist() == [8, 12, 16]
    assert ops.scaled(x, dims=[1], how="add", by=2, dtype=torch.int64).tolist() == [5, 14]
    with pytest.raises(ValueError, match="how must be 'mul' or 'add', got 'div'"):
        ops.scaled(x, how="div")


def test_schema_from_the_signature(ops):
    assert str(ops.counted.default.schema) == "example_cpp::counted(Tensor[] _0) -> (Tensor _0, int _1)"
    stacked, count = ops.counted([torch.ones(2), torch.zeros(2)])
    assert stacked.shape == (2, 2) and count == 2


def test_gradients_flow_through_what_has_no_kernel_of_its_own(ops):
    x = torch.ones(2, 2, requires_grad=True)
    ops.scaled(x, by=3).backward()
    assert x.grad.tolist() == [[3, 3], [3, 3]]


def test_loaded_libraries(ops):
    assert any(path.endswith("muladd.so") for path in torch.ops.loaded_libraries)
    with pytest.raises(OSError, match="Could not load this library"):
        torch.ops.load_library("/nowhere/lib.so")
