"""Memory that a compiled function takes away from its inputs, and gives them (`resize_storage_bytes_`)."""

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.joint.aot import aot_function

resize = torch.ops.inductor.resize_storage_bytes_


def given(a):
    resize(a, 32)
    with torch.no_grad():
        a.copy_(torch.arange(8.0))
    return a * a


def taken(a):
    out = a.sin()
    resize(a, 0)
    return out


def given_and_taken(a):
    resize(a, 32)
    with torch.no_grad():
        a.copy_(torch.arange(8.0))
    out = a * 2
    resize(a[2:4], 0)
    return out


def exchanged(a):
    with torch.no_grad():
        resize(a, 0)
        a.set_(torch.ones(2))


def read_when_gone(a):
    resize(a, 0)
    return a + 1


def of_an_intermediate(a):
    resize(a + 1, 0)
    return a + 1


COMPILED = {
    "aot": lambda f: aot_function(f, lambda gm, _: gm),
    "native": torch.compile,
}


@pytest.mark.parametrize("how", COMPILED)
@pytest.mark.parametrize("f, empty", [(given, True), (taken, False), (given_and_taken, True), (exchanged, False)])
def test_inputs_have_the_memory_that_the_function_leaves_them(f, empty: bool, how: str) -> None:
    def run(f):
        a = torch.arange(8.0).requires_grad_()
        if empty:
            a.untyped_storage().resize_(0)
        out = f(a)
        held = a.tolist() if a.untyped_storage().nbytes() else None
        return a, (out, held, a.untyped_storage().nbytes(), a.shape, a._version, a.requires_grad)

    (_, plain), (a, compiled) = run(f), run(COMPILED[how](f))
    assert compiled[1:] == plain[1:]
    if plain[0] is not None:
        torch.testing.assert_close(compiled[0], plain[0])
    if f is taken:  # what the backward reads was kept, where the memory of the input is gone
        compiled[0].sum().backward()
        torch.testing.assert_close(a.grad, torch.arange(8.0).cos())


def test_memory_that_is_gone_is_not_read() -> None:
    with pytest.raises(RuntimeError, match="its data is not allocated"):
        aot_function(read_when_gone, lambda gm, _: gm)(torch.ones(8))
    with pytest.raises(NotImplementedError, match="no input of a compiled function"):
        aot_function(of_an_intermediate, lambda gm, _: gm)(torch.ones(8))


def test_a_trace_keeps_the_call() -> None:
    module = make_fx(lambda x: (taken(x), None)[0])(torch.arange(2.0))
    assert [str(n.target) for n in module.graph.nodes if n.op == "call_function"] == [
        "aten.sin.default",
        "inductor.resize_storage_bytes_.default",
    ]
    x = torch.arange(2.0)
    module(x)
    assert x.untyped_storage().nbytes() == 0
