"""Random programs of views and in-place writes, against the same programs written without either.

The model of a tensor's memory is a flat tensor that is never written; a view is an array of positions in it. Reading a
view picks those positions, writing one makes a new memory out of place. Values and gradients must be the same; only where a
rule reads its own result may a later write make backward refuse.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import pullback as torch

SHAPE = (2, 3, 4)
START = torch.linspace(-1.2, 1.3, 24, dtype=torch.float64)

VIEWS = {  # of a tensor and of a NumPy array of positions alike
    "first": lambda v: v[0] if v.ndim else v,
    "last, kept": lambda v: v[-1:] if v.ndim else v,
    "every other": lambda v: v[..., ::2] if v.ndim else v,
    "all but one": lambda v: v[1:] if v.ndim and v.shape[0] > 1 else v,
    "new axis": lambda v: v[None] if v.ndim < 4 else v,
    "swapped": lambda v: v.swapaxes(0, -1) if v.ndim else v,
    "flat": lambda v: v.reshape(-1) if _is_row_major(v) else v,
    "diagonal": lambda v: v.diagonal() if v.ndim == 2 else v,
}
WRITES = {  # (in place, the new values); `w` is another tensor, of one element
    "mul_": (lambda v, w: v.mul_(w), lambda v, w: v * w),
    "add_": (lambda v, w: v.add_(w, alpha=2), lambda v, w: v + 2 * w),
    "copy_": (lambda v, w: v.copy_(w), lambda v, w: w.expand(v.shape)),
    "tanh_": (lambda v, w: v.tanh_(), lambda v, w: v.tanh()),
    "relu_": (lambda v, w: v.relu_(), lambda v, w: v.relu()),
    "square_": (lambda v, w: v.square_(), lambda v, w: v * v),
    "clamp_": (lambda v, w: v.clamp_(-0.5, 0.7), lambda v, w: v.clamp(-0.5, 0.7)),
    "masked_fill_": (lambda v, w: v.masked_fill_(v.detach() > 0, 0.25), lambda v, w: torch.where(v > 0, 0.25, v)),
    "setitem": (lambda v, w: v.__setitem__(..., w.sin()), lambda v, w: w.sin().expand(v.shape)),
    "zero_": (lambda v, w: v.zero_(), lambda v, w: v * 0),
}


def _is_row_major(v) -> bool:
    return v.is_contiguous() if isinstance(v, torch.Tensor) else v.flags.c_contiguous


steps = st.lists(
    st.one_of(
        st.tuples(st.just("view"), st.integers(0, 5), st.sampled_from(sorted(VIEWS))),
        st.tuples(st.just("write"), st.integers(0, 5), st.sampled_from(sorted(WRITES))),
    ),
    max_size=8,
)


def in_place(program, x):
    views = [(x * 1).view(SHAPE)]
    w = x.mean()
    for kind, which, name in program:
        v = views[which % len(views)]
        views.append(VIEWS[name](v)) if kind == "view" else WRITES[name][0](v, w)
    return views


def functional(program, x):
    memory, w = x * 1, x.mean()
    places = [np.arange(24).reshape(SHAPE)]
    for kind, which, name in program:
        at = places[which % len(places)]
        if kind == "view":
            places.append(VIEWS[name](at))
            continue
        index = torch.tensor(at.tolist())
        memory = memory.index_put((index,), WRITES[name][1](memory[index], w))
    return [memory[torch.tensor(at.tolist())] for at in places]


@contextmanager
def refusal_allowed(program):
    """Rules that read their result raise where it was written since."""
    try:
        yield
    except RuntimeError as error:
        if "modified by an inplace operation" not in str(error) or not {"tanh_", "relu_"} & {s[2] for s in program}:
            raise
        reject()


def loss(views):
    return sum(((v * (i + 1)).sin() * v).sum() for i, v in enumerate(views))


@settings(max_examples=120, derandomize=True, deadline=None)
@given(steps)
def test_views_and_writes_are_what_they_are_without_memory(program) -> None:
    results = []
    for run in (in_place, functional):
        x = START.clone().requires_grad_()
        views = run(program, x)
        with refusal_allowed(program):
            (g,) = torch.autograd.grad(loss(views), x, create_graph=True)
            (h,) = torch.autograd.grad((g * START).sum(), x)
        results.append([*views, g, h])
    for ours, plain in zip(*results, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), plain.detach().numpy(), rtol=1e-9, atol=1e-12)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(steps)
def test_forward_mode_agrees_over_the_same_programs(program) -> None:
    tangent = START.cos()

    def slope(run, x):
        return torch.func.jvp(lambda x: loss(run(program, x)), (x,), (tangent,))[1]

    with refusal_allowed(program):
        ours, plain = (torch.func.grad(lambda x, run=run: slope(run, x))(START) for run in (in_place, functional))
    np.testing.assert_allclose(ours.numpy(), plain.numpy(), rtol=1e-9, atol=1e-11)
