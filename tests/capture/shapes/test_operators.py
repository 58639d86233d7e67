"""Every operator's shape rule on symbolic sizes: evaluated at the example, the shape is the real one, forward and backward.

Comes in: the operators and samples of the operator table; sizes, strides and the size arguments of a sample become symbols. Always
holds: results have the shape, strides and dtype that the kernels produce; no size is fixed to a number, but by the operators of
FIXES, each with the reason in words.
"""

from __future__ import annotations

import warnings

import pytest

import pullback as torch
from pullback.capture.shapes import ShapeEnv, SymInt
from pullback.capture.shapes.questions import hint_int
from pullback.core.tensor import wrap_meta
from pullback.ops.system.dispatch import dispatch
from tests.ops.checks import differentiable_inputs, rebuild, results, tensors_in
from tests.ops.samples import samples_of
from tests.ops.test_table import TABLE, XFAIL, applies
from tests.ops.xfail import COUNTS

_STEPS = "one step of work per element of the sequence"
_COUNT = "there are as many results as the size says"
_RANK = "the size says how many coordinates a point has"
_PAIR = "one entry of a Python list for each"
_ASKED = "the gradient has the size that was asked for, a plain number"
FIXES = {
    "unbind.int": _COUNT,
    "unbind_copy.int": _COUNT,
    "vander": "one column of work per element",
    "_native_multi_head_attention": "the size of an embedding is an argument, a plain number",
    "combinations": "how many picks there are is counted in Python",
    "_histogramdd_from_bin_tensors": _RANK,
    "_histogramdd_bin_edges": _RANK,
    "_histogramdd_from_bin_cts": _RANK,
    "grid_sampler": _RANK,
    "grid_sampler_2d": _RANK,
    "grid_sampler_3d": _RANK,
    "cross": "the size must be 3",
    "linalg_cross": "the size must be 3",
    "view_as_complex": "the size must be 2",
    "view_as_complex_copy": "the size must be 2",
    "_ctc_loss": _PAIR,
    "ctc_loss.IntList": _PAIR,
    "_foreach_addcmul.Tensor": _PAIR,
    "_foreach_addcdiv.Tensor": _PAIR,
    "rnn_tanh.input": _STEPS,
    "rnn_relu.input": _STEPS,
    "lstm.input": _STEPS,
    "gru.input": _STEPS,
    "_pdist_backward": "the indices of pairs are made as data",
    "fractional_max_pool2d_backward": _ASKED,
    "fractional_max_pool3d_backward": _ASKED,
}
# What only the gradient fixes.
GRADIENT_FIXES = {
    "prod.dim_int": "whether a part of it has one element decides how its gradient is laid out",
    "_pdist_forward": FIXES["_pdist_backward"],
    "unfold_backward": "the last size is the window's, a plain number",
    "_chunk_cat": "the pieces of the sample have size 1, which is always fixed",
    "affine_grid_generator": "the size of a matrix is that of its transformation",
    "affine_grid_generator_backward": "the size of a matrix is that of its transformation",
    "linalg_householder_product": "one step of work per reflector",
    "orgqr": "one step of work per reflector",
    "ormqr": "one step of work per reflector",
}
# Gradients that need data even where sizes are plain numbers.
BY_DATA = {
    "_linalg_det", "det", "linalg_det", "index_put", "masked_scatter", "index_fill.int_Tensor", "embedding_dense_backward",
}  # fmt: skip

OPERATORS = {k: op for k, op in TABLE.items() if (k, "meta") not in XFAIL and op.tensor_positions}


def symbolic_arguments(env: ShapeEnv, op, args: tuple) -> tuple:
    """The sample with symbols for sizes: of its tensors, and in its arguments of type SymInt."""
    fakes = []
    for i, t in enumerate(tensors_in(args)):
        shape, stride, _ = env.create_symbolic_sizes_strides_storage_offset(t, f"L['a{i}']")
        fakes.append(wrap_meta(shape, t.dtype, stride))

    def number(value, name: str):
        plain = type(value) is not int or value < 2
        return value if plain else env.create_symintnode(env.create_symbol(value, name))

    out = []
    for argument, value in zip(op.schema.arguments, rebuild(args, fakes), strict=True):
        if argument.base == "SymInt" and isinstance(value, tuple):
            value = tuple(number(v, f"L['{argument.name}'][{i}]") for i, v in enumerate(value))
        elif argument.base == "SymInt":
            value = number(value, f"L['{argument.name}']")
        out.append(value)
    return tuple(out)


def fixed(env: ShapeEnv) -> list[str]:
    return [f"{s} == {e} by {env.guards}" for s, e in env.replacements.items() if isinstance(e, int)]


def same_metadata(real, fake) -> None:
    assert fake.dtype is real.dtype
    shape = tuple(map(hint_int, fake.shape))
    assert shape == tuple(real.shape), f"{fake.shape} is {shape}, the real shape is {tuple(real.shape)}"
    if real.numel() > 1:
        steps = [(hint_int(a), b) for a, b, s in zip(fake.stride(), real.stride(), real.shape, strict=True) if s != 1]
        assert all(a == b for a, b in steps), f"strides {fake.stride()}, the real ones are {real.stride()}"


@pytest.mark.parametrize("key", OPERATORS)
def test_shape_rule(key: str) -> None:
    op, fixes = OPERATORS[key], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args, _ in samples_of(op):
            real = results(dispatch(op, args))
            env = ShapeEnv()
            fake = results(dispatch(op, symbolic_arguments(env, op, args)))
            assert len(fake) == len(real)
            for r, f in zip(real, fake, strict=True):
                same_metadata(r, f)
            fixes += fixed(env)
    assert bool(fixes) == (key in FIXES), fixes or f"{key} fixes no size any more: take it off the list"


def gradients(op, args: tuple, wanted: list[int]) -> list:
    inputs = [t.requires_grad_() for i, t in enumerate(tensors_in(args)) if i in wanted]
    out = [o for o in results(dispatch(op, args)) if o.requires_grad]
    if not out:
        return []
    return torch.autograd.grad(out, inputs, [torch.empty_like(o) for o in out], allow_unused=True)


DIFFERENTIABLE = [
    k
    for k, op in OPERATORS.items()
    if k not in BY_DATA and applies(op, "gradient") and XFAIL.get((k, "gradient")) is not COUNTS
]


@pytest.mark.parametrize("key", DIFFERENTIABLE)
def test_gradient_rule(key: str) -> None:
    op, fixes = OPERATORS[key], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args, _ in samples_of(op):
            inputs = differentiable_inputs(op, args)
            wanted = [i for i, t in enumerate(tensors_in(args)) if any(t is d for d in inputs)]
            if not wanted:
                continue
            env = ShapeEnv(duck_shape=False)  # a size that happens to be an argument's number is not fixed to it
            for i, g in zip(wanted, gradients(op, symbolic_arguments(env, op, args), wanted), strict=False):
                if g is not None:
                    real = tensors_in(args)[i]
                    assert tuple(map(hint_int, g.shape)) == tuple(real.shape), f"gradient {g.shape} of {real.shape}"
            fixes += fixed(env)
    allowed = FIXES | GRADIENT_FIXES
    assert not fixes or key in allowed, fixes


def test_a_wrong_shape_is_found() -> None:
    with pytest.raises(AssertionError, match="the real shape is"):
        same_metadata(torch.zeros(2, 3), wrap_meta((2, 4), torch.float32))


def test_lone_symbolic_sizes_are_sizes() -> None:
    env = ShapeEnv()
    (n, m), stride, _ = env.create_symbolic_sizes_strides_storage_offset(torch.zeros(6, 4), "L['x']")
    x = wrap_meta((n, m), torch.float32, stride)
    assert isinstance(n, SymInt)
    assert (
        str(x.view(n * m).shape) == "torch.Size([s27*s77])" and str(x.repeat(n, 1).shape) == "torch.Size([s77**2, s27])"
    )
    assert str(x[: n // 2].shape) == "torch.Size([(s77//2), s27])" and str(x[1:].shape) == "torch.Size([s77 - 1, s27])"
    assert str(x.new_zeros(n).shape) == "torch.Size([s77])"
    assert str(torch.arange(1, n, 2, device="meta").shape) == "torch.Size([(s77//2)])"
    assert str(torch.arange(n, 0, -1, device="meta").shape) == "torch.Size([s77])"
    assert torch.arange(n, device="meta").dtype is torch.int64
    assert not env.guards


def test_a_number_of_data_is_fixed() -> None:
    env = ShapeEnv()
    n = env.create_symintnode(env.create_symbol(6, "L['n']"))
    assert (torch.ones(2) * n).tolist() == [6.0, 6.0] and [str(g.expr) for g in env.guards] == ["Eq(s86, 6)"]
    assert torch.tensor([n, 1]).tolist() == [6, 1]


@pytest.fixture
def picked():
    """Rows that data picks: (u0, s27), of a tensor (s77, s27)."""
    env = ShapeEnv()
    (n, m), _, _ = env.create_symbolic_sizes_strides_storage_offset(torch.zeros(6, 4), "L['x']")
    u = env.create_unbacked_symint()
    env.constrain_for_size(u)
    return env, wrap_meta((u, m), torch.float32), wrap_meta((n, m), torch.float32)


def test_sizes_from_data_pass_through_shape_rules(picked) -> None:
    env, x, whole = picked
    row = wrap_meta((whole.shape[1],), torch.float32)
    shapes = {
        "[u0, s27]": (x.relu(), x + row, x.contiguous(), x.softmax(-1), x.t().contiguous().t(), x[:, :], x.clone()),
        "[s27*u0]": (x.view(-1), x.reshape(-1)),
        "[u0]": (x.sum(1), x[:, 0]),
        "[u0, s77]": (x @ whole.t(),),
        "[s77 + u0, s27]": (torch.cat([x, whole]),),
        "[2, u0, s27]": (torch.stack([x, x]),),
    }
    for text, result in shapes.items():
        assert [str(t.shape) for t in result] == [f"torch.Size({text})"] * len(result)
    assert not env.guards and not env.deferred_runtime_asserts


def test_what_only_data_can_tell_is_checked_later(picked) -> None:
    env, x, whole = picked
    assert str(x.view(-1, 4).shape) == "torch.Size([((s27*u0)//4), 4])"
    assert str((x + whole).shape) == "torch.Size([s77, s27])"
    assert [str(a.expr) for found in env.deferred_runtime_asserts.values() for a in found] == [
        "Eq(Mod(s27*u0, 4), 0)",
        "Eq(s77, u0)",
    ]
    assert not env.guards


def test_the_users_own_question_of_data_is_refused(picked) -> None:
    _, x, _ = picked
    with pytest.raises(RuntimeError, match="Could not guard on data-dependent expression"):
        bool(x.shape[0] == 1)
