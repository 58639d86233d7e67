"""Recurrent layers in C: what the steps give on arrays, for any sizes and orders of memory, and the same bits by any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.core.threads import set_thread_count, thread_count
from pullback.ops.network import recurrent_steps as steps
from pullback.runtime import recurrent_cpu

pytestmark = pytest.mark.skipif(recurrent_cpu.kernels() is None, reason="the extension is not built")
SIZES = (1, 2, 5, 6, 7, 13, 16, 17, 33)


class Layer:
    """A direction of a layer with numbers in it, and what reaches it backwards."""

    def __init__(self, kind, time, batch, features, size, *, dtype=np.float32, biases=True, batch_first=False, seed=0):
        rng = np.random.default_rng(seed)
        self.numbers = lambda *shape: (rng.standard_normal(shape) * 0.5).astype(dtype)
        rows = steps.GATES[kind] * size
        self.kind = kind
        self.x, self.g = (self._lying(time, batch, n, batch_first) for n in (features, size))
        self.state = tuple(self.numbers(batch, size) for _ in range(2 if kind == "lstm" else 1))
        self.g_state = tuple(self.numbers(batch, size) for _ in self.state)
        self.cell = steps.Cell(
            self.numbers(rows, features), self.numbers(rows, size), *[self.numbers(rows) for _ in range(2) if biases]
        )

    def _lying(self, time, batch, n, batch_first):
        return self.numbers(batch, time, n).swapaxes(0, 1) if batch_first else self.numbers(time, batch, n)

    def run(self, reverse=False, g=True, wanted=(True,) * 7):
        lib = steps.Arrays(np)
        out, final, kept = steps.forward(lib, self.kind, self.x, self.state, self.cell, reverse, keep=True)
        given = (self.g_state, self.x, self.state, self.cell, reverse, out, kept)
        return out, *final, kept, *steps.backward(lib, self.kind, self.g if g else None, *given, wanted)

    def by_steps(self, monkeypatch, **how):
        with monkeypatch.context() as patched:
            patched.setattr(recurrent_cpu, "kernels", lambda: None)
            return self.run(**how)


def agree(got, want):
    for a, b in zip(got, want, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.shape == b.shape and a.dtype == b.dtype
            scale = np.abs(b).max(initial=0) + 1
            np.testing.assert_allclose(a, b, rtol=0, atol=scale * (3e-5 if a.dtype == np.float32 else 1e-12))


def same(got, want):
    assert all(a is b is None or (a == b).all() for a, b in zip(got, want, strict=True))


@pytest.fixture(params=range(3))
def level(request):
    own = recurrent_cpu.kernels()
    before = own.instructions(request.param)
    if own.instructions(-1) != request.param:
        pytest.skip("this machine has no such instructions")
    yield request.param
    own.instructions(before)


@pytest.mark.parametrize("kind", steps.STEPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_what_the_steps_give(monkeypatch, level, kind, dtype, biases, reverse):
    layer = Layer(kind, 7, 10, 19, 18, dtype=dtype, biases=biases)
    for g in (True, False):
        agree(layer.run(reverse, g), layer.by_steps(monkeypatch, reverse=reverse, g=g))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_sizes(data):
    sizes = st.sampled_from(SIZES)
    time, batch, features, size = (data.draw(sizes) for _ in range(4))
    kind, reverse = data.draw(st.sampled_from(tuple(steps.STEPS))), data.draw(st.booleans())
    batch = data.draw(st.sampled_from((batch, 300)))
    layer = Layer(kind, time, batch, features, size, batch_first=data.draw(st.booleans()))
    with pytest.MonkeyPatch.context() as patch:
        agree(layer.run(reverse), layer.by_steps(patch, reverse=reverse))


@pytest.mark.parametrize("kind", steps.STEPS)
def test_bits_do_not_depend_on_threads_or_other_rows(kind):
    layer, threads = Layer(kind, 20, 24, 70, 65), thread_count()
    try:
        set_thread_count(1)
        want = layer.run()
        for count in (2, 3):
            set_thread_count(count)
            same(layer.run(), want)
    finally:
        set_thread_count(threads)
    layer.x, layer.state = layer.x[:, 5:9], tuple(s[5:9] for s in layer.state)
    layer.g, layer.g_state = layer.g[:, 5:9], tuple(s[5:9] for s in layer.g_state)
    some = layer.run()
    assert (some[0] == want[0][:, 5:9]).all()
    grads = len(layer.state) + 2
    assert (some[grads] == want[grads][:, 5:9]).all() and (some[grads + 1] == want[grads + 1][5:9]).all()


@pytest.mark.parametrize("kind", steps.STEPS)
def test_only_what_is_wanted(monkeypatch, kind):
    layer = Layer(kind, 4, 6, 9, 8)
    whole = layer.run()[-7:]
    for at in range(7):
        wanted = tuple(k == at for k in range(7))
        for got in (layer.run(wanted=wanted)[-7:], layer.by_steps(monkeypatch, wanted=wanted)[-7:]):
            assert all(g is None for k, g in enumerate(got) if k not in (1, 2, at))
            agree(got[at : at + 1], whole[at : at + 1])


@pytest.mark.parametrize("kind", steps.STEPS)
def test_values_that_are_not_finite(monkeypatch, kind):
    layer = Layer(kind, 5, 9, 6, 7)
    layer.x[1, 2, 3], layer.x[0, 4, 0], layer.g[3, 5, 1] = np.nan, np.inf, -np.inf
    for a, b in zip(layer.run(), layer.by_steps(monkeypatch), strict=True):
        assert a is b is None or (np.isfinite(a) == np.isfinite(b)).all()


def test_calls_that_are_not_for_it():
    layer = Layer("lstm", 3, 2, 4, 5)
    cell, state = tuple(layer.cell), layer.state
    integers = layer.x.astype(np.int64)
    assert recurrent_cpu.forward("lstm", integers, state, cell, False) is None
    assert recurrent_cpu.forward("lstm", layer.x[:0], state, cell, False) is None
    assert recurrent_cpu.forward("lstm", layer.x[:, :0], tuple(s[:0] for s in state), cell, False) is None
    assert recurrent_cpu.forward("lstm", layer.x.astype(np.float64), state, cell, False) is None
    wide = Layer("lstm", 1, 1, 300, 300)  # more is laid out than multiplied
    assert recurrent_cpu.forward("lstm", wide.x, wide.state, tuple(wide.cell), False) is None
    with pytest.raises(ValueError, match="unknown kind"):
        recurrent_cpu.kernels().run(7, False, False, ())
    assert recurrent_cpu.kernels().run(2, False, False, (layer.x,)) is False
