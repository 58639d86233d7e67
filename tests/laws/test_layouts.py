"""Laws of memory: what a call computes does not depend on where its arguments and results lie, nor on there being numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as torch
import pullback.nn.functional as F
from pullback.capture.fake.mode import FakeTensorMode
from tests.laws.programs import LAYOUTS, bounded, inputs, numbers

UNARY = ("sin", "exp", "neg", "tanh", "square", "sigmoid", "sign", "trunc", "relu")
BINARY = ("add", "sub", "mul", "maximum", "atan2", "fmod")
WITH_OUT = {
    **{n: (lambda x, y, n=n, **k: getattr(torch, n)(x, **k)) for n in UNARY if n != "relu"},
    **{n: (lambda x, y, n=n, **k: getattr(torch, n)(x, y, **k)) for n in BINARY},
    "cumsum": lambda x, y, **k: torch.cumsum(x, -1, **k),
    "sum": lambda x, y, **k: torch.sum(x, -1, **k),
    "matmul": lambda x, y, **k: torch.matmul(x, y.transpose(-1, -2), **k),
    "where": lambda x, y, **k: torch.where(x > 0, x, y, **k),
    "cat": lambda x, y, **k: torch.cat([x, y], **k),
}


@bounded
@given(st.sampled_from(sorted(WITH_OUT)), inputs, st.sampled_from(sorted(LAYOUTS)))
def test_out_is_what_the_call_gives(name, drawn, layout):
    shape, seed, own = drawn
    if name in ("cumsum", "sum", "cat") and not shape or name == "matmul" and len(shape) < 2:
        shape = (2, 3)
    x, y = numbers(shape, seed, own), numbers(shape, seed + 9)
    expected = WITH_OUT[name](x, y)
    out = LAYOUTS[layout](torch.full_like(expected, 7.0))
    stride = out.stride()
    assert WITH_OUT[name](x, y, out=out) is out
    assert torch.equal(out, expected) and out.stride() == stride


@bounded
@given(
    st.sampled_from([n for n in UNARY + BINARY if n != "maximum"]),
    inputs,
    st.sampled_from(["float64", "float32", "float16"]),
)
def test_in_place_is_out_of_place(name, drawn, dtype):
    x, y = numbers(*drawn).to(getattr(torch, dtype)), numbers(drawn[0], 9).to(getattr(torch, dtype))
    rest = (y,) if name in BINARY else ()
    expected = getattr(torch, name)(x, *rest)
    x = LAYOUTS[drawn[2]](x)
    stride, version = x.stride(), x._version
    assert getattr(x, name + "_")(*rest) is x
    assert torch.equal(x, expected) and x.stride() == stride and x._version == version + 1


@bounded
@given(st.sampled_from(UNARY + BINARY), inputs)
def test_half_precision_rounds_once(name, drawn):
    x, y = numbers(*drawn).half(), numbers(drawn[0], 9).half()
    rest, wide = ((y,), (y.float(),)) if name in BINARY else ((), ())
    assert torch.equal(getattr(torch, name)(x, *rest), getattr(torch, name)(x.float(), *wide).half())


CALLS = {
    **{n: (lambda x, n=n: getattr(torch, n)(x)) for n in UNARY},
    "broadcast": lambda x: x + x.new_ones(x.shape[-1:]),
    "sum": lambda x: x.sum(-1),
    "keepdim": lambda x: x.mean(0, keepdim=True),
    "softmax": lambda x: x.softmax(-1),
    "cumsum": lambda x: x.cumsum(0),
    "flip": lambda x: x.flip(-1),
    "cat": lambda x: torch.cat([x, x]),
    "stack": lambda x: torch.stack([x, x], 1),
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.contiguous(),
    "like": torch.zeros_like,
    "permute": lambda x: x.permute(*range(x.ndim - 1, -1, -1)) * 2,
    "slice": lambda x: x[..., 1:],
    "index": lambda x: x[:, [0]] if x.ndim > 1 and x.shape[1] else x,
    "pad": lambda x: F.pad(x, (1, 0)),
    "where": lambda x: torch.where(x > 0, x, -x),
    "repeat": lambda x: x.repeat(*[2] * x.ndim),
    "expand": lambda x: x.unsqueeze(0).expand(2, *x.shape).clone(),
    "half": lambda x: x.half(),
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x,
}


@bounded
@given(st.sampled_from(sorted(CALLS)), inputs)
def test_fakes_lie_as_real_tensors_do(name, drawn):
    x = numbers(*drawn)
    x = x if x.ndim else x.reshape(1)
    real = CALLS[name](x)
    with FakeTensorMode() as mode:
        fake = CALLS[name](mode.from_tensor(x))
    assert (fake.shape, fake.dtype, fake.stride()) == (real.shape, real.dtype, real.stride())


VIEWS = {
    "slice": lambda t, d, n: t[(slice(None),) * d + (slice(n, None, 2),)],
    "rows": lambda t, d, n: t[n:],
    "narrow": lambda t, d, n: t.narrow(d, min(n, t.shape[d]), max(t.shape[d] - n, 0)),
    "select": lambda t, d, n: t.select(d, n) if n < t.shape[d] else t,
    "index": lambda t, d, n: t[n] if n < t.shape[0] else t,
    "split": lambda t, d, n: t.split(n + 1, d)[-1],
    "unbind": lambda t, d, n: t.unbind(d)[-1] if t.shape[d] else t,
    "chunk": lambda t, d, n: t.chunk(n + 1, d)[0],
    "transpose": lambda t, d, n: t.transpose(d, 0),
    "unsqueeze": lambda t, d, n: t.unsqueeze(d),
    "squeeze": lambda t, d, n: t.squeeze(d),
    "unfold": lambda t, d, n: t.unfold(d, min(n, t.shape[d]), 1),
    "diagonal": lambda t, d, n: t.diagonal(n - 1, 0, 1) if t.ndim > 1 else t,
}
sizes = st.lists(st.sampled_from((0, 1, 2, 3)), min_size=1, max_size=4)
chains = st.lists(
    st.tuples(st.sampled_from(sorted(VIEWS)), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=4
)


@bounded
@given(sizes, chains)
def test_views_lie_as_views_of_fakes_do_elements_or_none(shape, chain):
    real, mode = torch.zeros(shape), FakeTensorMode()
    fake = mode.from_tensor(real)
    for name, d, n in chain:
        if not real.ndim:
            break
        with mode:
            fake = VIEWS[name](fake, d % real.ndim, n)
        real = VIEWS[name](real, d % real.ndim, n)
    assert (fake.shape, fake.stride(), fake.storage_offset()) == (real.shape, real.stride(), real.storage_offset())


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_a_layout_changes_no_number(layout):
    x = torch.arange(16.0, dtype=torch.float64).reshape(1, 2, 2, 4)
    assert torch.equal(LAYOUTS[layout](x), x)
