"""Schemas that a tag promises something of: those that break the promise are refused, and told how."""

import pytest

import pullback as torch


@pytest.fixture
def library():
    result = torch.library.Library("tagged_tests", "FRAGMENT")
    yield result
    result._destroy()


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("a() -> ()", "at least one positional argument"),
        ("b(Tensor x) -> Tensor", "first positional argument to be mutable"),
        ("c(Tensor(a!)[] x) -> Tensor(a!)[]", "to be a Tensor"),
        ("d(Tensor(a!) x) -> ()", "exactly one value .the first argument.. Got 0 returns"),
        ("e(Tensor(a!) x) -> int", "return must be a Tensor, got type 'int'"),
        ("f(Tensor(a!) x) -> Tensor", "return must alias the first argument"),
        ("g(Tensor(a!) x, Tensor(b!) y) -> Tensor(b!)", "return aliases"),
        ("h(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)", "Found additional mutable args: \\['y'\\]"),
    ],
)
def test_in_place(library, schema, words):
    with pytest.raises(ValueError, match=words):
        library.define(schema, tags=(torch.Tag.inplace,))


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("a(Tensor x) -> Tensor", "at least one mutable argument"),
        ("b(Tensor(a!) x) -> Tensor(a!)", "Found mutable positional args: \\['x'\\]"),
        ("c(Tensor x, *, Tensor(a!)[] out) -> ()", "Found unsupported mutable args: \\['out'\\]"),
        ("d(Tensor x, *, Tensor(a!) out) -> ()", "got 1 mutable args but 0 returns"),
        ("e(Tensor x, *, Tensor(a!) out) -> Tensor", "Return 0 of schema .* must alias mutable arg 'out'"),
        ("f(Tensor x, *, Tensor(a!) o, Tensor(b!) p) -> (Tensor(b!), Tensor(a!))", "return aliases"),
    ],
)
def test_out(library, schema, words):
    with pytest.raises(ValueError, match=words):
        library.define(schema, tags=(torch.Tag.out,))


def test_what_keeps_its_promise_is_defined(library):
    library.define("good_(Tensor(a!) x) -> Tensor(a!)", tags=(torch.Tag.inplace,))
    library.define("good(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", tags=(torch.Tag.out,))
    assert torch.Tag.inplace in torch.ops.tagged_tests.good_.default.tags
