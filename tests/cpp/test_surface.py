"""What C++ extensions can call and bind, against the same in Python."""

from __future__ import annotations

import gc

import pytest

import pullback as torch


@pytest.fixture
def surface(build):
    return build("surface")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.float16, torch.bfloat16])  # fmt: skip
def test_kernels_by_element_type(surface, dtype):
    x = torch.tensor([[0.0, 1.0, 2.0], [3.0, 5.0, 7.0]]).to(dtype)
    torch.testing.assert_close(surface.square(x.t()), (x * x).t(), check_stride=False)


def test_small_floats_round_as_python_does(surface):
    x = torch.randn(4000) * torch.logspace(-6, 3, 4000)
    for dtype in (torch.float16, torch.bfloat16):
        assert torch.equal(surface.square(x.to(dtype)), x.to(dtype) * x.to(dtype))


def test_other_element_types_are_refused(surface):
    assert surface.only_floats(torch.ones(2).double()).dtype is torch.float64
    with pytest.raises(NotImplementedError, match="\"only_floats\" not implemented for 'Long'"):
        surface.only_floats(torch.ones(2).long())


def test_facts(surface):
    x = torch.ones(2, 3, requires_grad=True).t()
    assert surface.facts(x) == "[3, 2] [1, 3] 2 6 Float float cpu 0111 24"
    assert surface.facts(torch.tensor(1)) == "[] [] 0 1 Long long int cpu 1001 8"


def test_factories(surface):
    expected = 1 + 2.5 + torch.arange(6.0).view(2, 3) + torch.eye(2, 3) + 2 * torch.tensor([1, 2, 3]) + 0.5 + 1
    torch.testing.assert_close(surface.factories(), expected.double())


def test_indexing(surface):
    x = torch.arange(9.0).view(3, 3)
    y = x.clone()
    y[0] = 7
    y[1, :2] = -1
    y[2][1] = x[0][0] + 100
    torch.testing.assert_close(surface.indexed(x), torch.cat([y[..., 0], y[1:, 1], y[2], y[y > 50]]))


def test_several_results(surface):
    values, places = surface.sorted(torch.tensor([2.0, 9.0, 4.0]))
    assert values.tolist() == [9, 4, 2] and places.tolist() == [1, 2, 0]


def test_arithmetic(surface):
    x, y = torch.randn(4, 3, dtype=torch.float64), torch.rand(4, 3, dtype=torch.float64) + 1
    z = 2 * x - y / 4 + (1 - x) * 3 + 1 / (y + 5) + torch.add(x, y, alpha=10) + torch.sub(x, y, alpha=2) + -x
    z = ((z + 1) * y - x) / 2
    expected = torch.where((x < y) | (x == y) & ~(y > 3), z, -z).clamp_min(-50).sum([0], keepdim=True).softmax(-1)
    torch.testing.assert_close(surface.arithmetic(x, y), expected)


def test_memory_of_others(surface):
    assert surface.blob().tolist() == [[2, 5, 8], [6, 9, 12]]
    before = surface.freed()
    x = surface.owned()
    y = x[1:]
    assert y.tolist() == [2, 3]
    del x
    gc.collect()
    assert surface.freed() == before and y.tolist() == [2, 3]
    del y
    gc.collect()
    assert surface.freed() == before + 1


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        (0, RuntimeError, "^how is 0, not 1$"),
        (1, RuntimeError, "Expected how == 0 to be true, but got false"),
        (2, RuntimeError, "^a plain one$"),
        (3, IndexError, "out of range"),
        (4, ValueError, "a bad value"),
        (5, RuntimeError, "^an old error$"),
        (6, RuntimeError, "mat1 and mat2 shapes cannot be multiplied"),
        (7, RuntimeError, "expected scalar type Double but found Float"),
        (8, RuntimeError, "undefined Tensor"),
        (9, NotImplementedError, "later"),
        (10, RuntimeError, r"sum: \{\} was given before argument 3"),
    ],
)
def test_exceptions(surface, how, error, words):
    with pytest.raises(error, match=words):
        surface.fails(how)


def test_errors_of_operators_can_be_caught(surface):
    assert "cannot be multiplied" in surface.caught()


def test_overloads(surface):
    assert surface.overloaded(3) == "int 3"
    assert surface.overloaded("x") == "str x"
    assert surface.overloaded(torch.ones(1), [1, 2.5]) == "tensor 2"
    with pytest.raises(TypeError, match=r"2\. \(arg0: str\) -> str"):
        surface.overloaded(1.5)


def test_arguments_and_values(surface):
    assert surface.with_rest(1, 2, 3, x=4) == (1, (2, 3), {"x": 4})
    assert surface.mapped({"a": 1.0, "b": 2.0}, lambda v: v * 10) == {"a": 10.0, "b": 20.0}
    assert surface.released(1) == 2 and surface.answer == 42 and surface.inner.one() == 1
    with pytest.raises(ZeroDivisionError):
        surface.mapped({"a": 1.0}, lambda v: v / 0)


def test_hooks_and_guards(surface):
    x = torch.ones(2, requires_grad=True)
    assert not surface.unrecorded(x).requires_grad
    surface.hooked(x)
    x.sum().backward()
    assert x.grad.tolist() == [10, 10]


def test_classes(surface):
    c = surface.Counter("a", start=2)
    assert c.add() == 3 and c.add(n=4) == 7 and c.count == 7 and c.twice == 14 and repr(c) == "<Counter a>"
    c.count = 3
    assert c.scaled(torch.ones(2)).tolist() == [3, 3] and surface.count_of(c) == 3
    assert surface.Counter.make("b").count == 5 and surface.Counter.__doc__ == "counts"
    with pytest.raises(AttributeError):
        c.name = "other"
    with pytest.raises(TypeError, match="incompatible function arguments"):
        surface.count_of("no counter")
    with pytest.raises(TypeError, match=r"1\. surface\.Counter\(name: str, start: int = 0\)\n"):
        surface.Counter()


def test_enumerations(surface):
    assert surface.is_fast(surface.Mode.Fast) and not surface.is_fast(surface.Mode.Slow)
    assert str(surface.Mode.Fast) == "Mode.Fast" and int(surface.Mode.Fast) == 1
    with pytest.raises(TypeError, match=r"is_fast\(\): incompatible function arguments"):
        surface.is_fast(1)
