"""Every window operator through every rule: metadata, first and second gradients, forward mode, vmap, out=."""

import numpy as np
import pytest

import pullback as torch
from pullback.func import vmap
from pullback.ops.system.dispatch import dispatch
from pullback.ops.system.operator import registry
from tests.ops.checks import CHECKS, rebuild, results, same, tensors_in

rng = np.random.default_rng(7)


def real(*shape):
    """Distinct values, far enough apart that finite differences do not change which is the largest."""
    return torch.tensor(rng.permutation(int(np.prod(shape))).reshape(shape) * 0.37 - 2.0, dtype=torch.float64)


def complex_(*shape):
    return torch.tensor(rng.standard_normal(shape) + 1j * rng.standard_normal(shape), dtype=torch.complex128)


def indices(*shape, below):
    lead, count = int(np.prod(shape[:2])), int(np.prod(shape[2:]))
    picks = np.stack([rng.permutation(below)[:count] for _ in range(lead)])
    return torch.tensor(picks.reshape(shape), dtype=torch.int64)


def conv(x, w, b, stride, padding, dilation, transposed=False, output_padding=None, groups=1):
    return (x, w, b, stride, padding, dilation, transposed, output_padding or (0,) * len(stride), groups)


CONVOLUTIONS = {
    "1d": conv(real(2, 3, 7), real(4, 3, 3), real(4), (2,), (1,), (2,)),
    "2d": conv(real(2, 3, 5, 6), real(4, 3, 3, 2), real(4), (1, 1), (1, 0), (1, 1)),
    "2d strided": conv(real(1, 2, 6, 5), real(2, 2, 3, 3), None, (2, 2), (1, 1), (1, 1)),
    "2d groups": conv(real(2, 4, 5, 5), real(6, 2, 2, 3), real(6), (2, 1), (0, 1), (1, 2), groups=2),
    "2d depthwise": conv(real(2, 3, 5, 5), real(6, 1, 3, 3), real(6), (2, 1), (1, 1), (1, 1), groups=3),
    "2d pointwise": conv(real(2, 4, 3, 3), real(1, 4, 1, 1), None, (1, 1), (0, 0), (1, 1)),
    "2d thin": conv(real(1, 4, 4, 4), real(1, 4, 3, 3), None, (1, 1), (1, 1), (1, 1)),
    "2d complex": conv(complex_(1, 2, 4, 4), complex_(3, 2, 2, 2), complex_(3), (1, 2), (1, 0), (1, 1)),
    "3d": conv(real(1, 2, 4, 3, 4), real(2, 2, 2, 2, 2), real(2), (1, 2, 1), (1, 0, 0), (1, 1, 2)),
    "transposed 1d": conv(real(2, 3, 4), real(3, 2, 3), real(2), (2,), (1,), (1,), True, (1,)),
    "transposed 2d": conv(real(1, 4, 3, 3), real(4, 3, 3, 2), real(6), (2, 1), (1, 0), (1, 2), True, (1, 1), 2),
    "transposed complex": conv(complex_(1, 2, 3, 3), complex_(2, 2, 2, 2), None, (1, 1), (0, 0), (1, 1), True),
}


def conv_backward(args, mask):
    out = registry["convolution.default"](*args)
    g = complex_(*out.shape) if out.dtype.is_complex else real(*out.shape)
    return (g, args[0], args[1], None if args[2] is None else tuple(args[2].shape), *args[3:], mask)


SAMPLES = [("convolution", name, args) for name, args in CONVOLUTIONS.items()]
SAMPLES += [
    ("convolution_backward", name, conv_backward(CONVOLUTIONS[name], mask))
    for name, mask in (
        ("2d", (True, True, True)), ("2d groups", (True, True, False)), ("2d complex", (True, False, False)),
        ("2d depthwise", (False, True, True)), ("transposed 2d", (True, True, True)),
        ("2d strided", (True, True, False)),
    )
]  # fmt: skip
SAMPLES += [
    ("max_pool2d_with_indices", "overlapping", (real(2, 2, 5, 6), (3, 2), (1, 2), (1, 0), (1, 2), False)),
    ("max_pool2d_with_indices", "unbatched", (real(2, 5, 5), (2, 2), (), (0, 0), (1, 1), True)),
    ("max_pool3d_with_indices", "", (real(1, 2, 4, 4, 5), (2, 2, 2), (2, 1, 2), (0, 1, 0), (1, 1, 1), True)),
    ("max_pool2d_with_indices_backward", "",
     (real(1, 2, 2, 2), real(1, 2, 4, 4), (2, 2), (2, 2), (0, 0), (1, 1), False, indices(1, 2, 2, 2, below=16))),
    ("avg_pool2d", "counted", (real(2, 2, 5, 6), (3, 2), (2, 1), (1, 1), True, True, None)),
    ("avg_pool2d", "not counted", (real(2, 5, 6), (3, 2), (), (1, 1), True, False, None)),
    ("avg_pool3d", "divisor", (real(1, 2, 4, 4, 5), (2, 2, 2), (1, 2, 2), (0, 1, 0), False, True, 3)),
    ("avg_pool2d_backward", "", (real(1, 2, 2, 2), real(1, 2, 4, 4), (2, 2), (2, 2), (0, 0), False, True, None)),
    ("adaptive_max_pool2d", "", (real(2, 2, 5, 7), (3, 4))),
    ("adaptive_max_pool3d", "unbatched", (real(2, 4, 5, 3), (2, 2, 2))),
    ("_adaptive_avg_pool2d", "", (real(2, 2, 5, 7), (3, 4))),
    ("_adaptive_avg_pool3d", "", (real(1, 2, 4, 5, 3), (2, 2, 4))),
    ("_adaptive_avg_pool2d_backward", "", (real(1, 2, 2, 3), real(1, 2, 5, 7))),
    ("fractional_max_pool2d", "", (real(1, 2, 6, 6), (2, 2), (3, 3), torch.full((1, 2, 2), 0.3, dtype=torch.float64))),
    ("fractional_max_pool3d", "",
     (real(1, 1, 6, 6, 5), (2, 2, 2), (3, 2, 2), torch.full((1, 1, 3), 0.6, dtype=torch.float64))),
    ("max_unpool2d", "", (real(1, 2, 2, 2), indices(1, 2, 2, 2, below=20), (4, 5))),
    ("max_unpool3d", "", (real(1, 2, 2, 1, 2), indices(1, 2, 2, 1, 2, below=27), (3, 3, 3), (1, 1, 1), (0, 0, 0))),
    ("im2col", "", (real(2, 2, 5, 5), (2, 3), (2, 1), (1, 1), (1, 2))),
    ("col2im", "", (real(2, 8, 9), (4, 4), (2, 2), (1, 1), (0, 0), (1, 1))),
    ("upsample_nearest1d", "", (real(1, 2, 5), (7,), None)),
    ("upsample_nearest2d", "", (real(1, 2, 3, 4), (5, 8), None, None)),
    ("upsample_nearest2d", "scaled", (real(1, 2, 3, 4), (4, 6), 1.5, 1.6)),
    ("_upsample_nearest_exact2d", "", (real(1, 2, 3, 5), (5, 3), None, None)),
    ("upsample_nearest3d", "", (real(1, 1, 2, 3, 4), (3, 3, 6), None, None, None)),
    ("upsample_linear1d", "", (real(1, 2, 5), (8,), False, None)),
    ("upsample_bilinear2d", "", (real(1, 2, 3, 4), (5, 7), False, None, None)),
    ("upsample_bilinear2d", "aligned", (real(1, 2, 3, 4), (2, 7), True, None, None)),
    ("upsample_trilinear3d", "", (real(1, 1, 2, 3, 4), (3, 2, 6), False, None, None, None)),
    ("upsample_bicubic2d", "", (real(1, 2, 3, 4), (5, 3), False, None, None)),
    ("_upsample_bilinear2d_aa", "", (real(1, 2, 6, 7), (3, 4), False, None, None)),
    ("_upsample_bicubic2d_aa", "", (real(1, 2, 6, 7), (3, 9), False, None, None)),
    ("_upsample_lanczos2d_aa", "", (real(1, 1, 8, 7), (3, 4), False, None, None)),
    ("upsample_bilinear2d_backward", "", (real(1, 2, 5, 7), (5, 7), (1, 2, 3, 4), False, None, None)),
    ("constant_pad_nd", "", (real(2, 3, 4), (1, 2, -1, 0), 0.5)),
    ("constant_pad_nd", "complex", (complex_(2, 3), (1, 2, 1, 1), 0)),
    ("reflection_pad1d", "", (real(2, 3, 4), (2, 3))),
    ("reflection_pad2d", "complex", (complex_(2, 4, 3), (1, 2, 3, -1))),
    ("reflection_pad3d", "", (real(1, 2, 3, 3, 3), (1, 2, 1, 1, 2, 0))),
    ("replication_pad1d", "", (real(3, 4), (2, 3))),
    ("replication_pad2d", "", (real(1, 2, 3, 4), (2, -1, 5, 1))),
    ("replication_pad3d", "", (real(1, 2, 3, 2, 3), (1, 2, 0, 1, 2, 1))),
    ("conv_tbc", "", (real(5, 2, 3), real(3, 3, 4), real(4), 1)),
    ("affine_grid_generator", "2d", (real(2, 2, 3), (2, 1, 3, 4), False)),
    ("affine_grid_generator", "3d", (real(1, 3, 4), (1, 2, 2, 1, 3), True)),
    ("affine_grid_generator_backward", "", (real(2, 3, 4, 2), (2, 1, 3, 4), True)),
    ("pixel_shuffle", "", (real(2, 8, 2, 3), 2)),
    ("pixel_unshuffle", "", (real(1, 2, 4, 6), 2)),
    ("channel_shuffle", "", (real(2, 6, 2, 2), 3)),
]  # fmt: skip


def grids(spatial, mode):
    """Points away from where a neighbour changes, so that differences are smooth."""
    size = (4, 5, 3)[:spatial]
    points = rng.uniform(-1.3, 1.3, (2, *(2, 3, 2)[:spatial], spatial))
    x = real(2, 2, *size)
    return [(x, torch.tensor(points), mode, padding, align) for padding in (0, 1, 2) for align in (False, True)]


SAMPLES += [
    (f"grid_sampler_{n}d", f"{m} {i}", a) for n, m in ((2, 0), (2, 2), (3, 0)) for i, a in enumerate(grids(n, m))
]
ONCE = {"grid_sampler_2d", "grid_sampler_3d"}  # differentiable once, as in PyTorch


def check_vmap(op, args):
    """vmap equals a loop over slices that differ, for each tensor alone and for all at once."""
    tensors = tensors_in(args)
    stacks = [torch.stack([t, t * 0.5 + 0.1 if t.dtype.category >= 2 else t], 1 if t.ndim > 1 else 0) for t in tensors]
    at = [1 if t.ndim > 1 else 0 for t in tensors]
    for chosen in [{i} for i in range(len(tensors))] + [set(range(len(tensors)))]:
        dims = tuple(at[i] if i in chosen else None for i in range(len(tensors)))
        values = [stacks[i] if i in chosen else t for i, t in enumerate(tensors)]
        got = vmap(lambda *v: tuple(results(dispatch(op, rebuild(args, v)))), in_dims=dims)(*values)
        for k in range(2):
            slices = [v if d is None else v.select(d, k) for v, d in zip(values, dims)]
            for g, w in zip(got, results(dispatch(op, rebuild(args, slices)))):
                same(g.select(0, k), w, f"vmap over {chosen}", 1e-9)


RULES = {**CHECKS, "vmap": check_vmap}


@pytest.mark.parametrize("check", RULES)
@pytest.mark.parametrize(("name", "case", "args"), SAMPLES, ids=[f"{n} {c}".strip() for n, c, _ in SAMPLES])
def test_rule(name, case, args, check):
    if name in ONCE and check in ("second_gradient", "forward"):
        pytest.skip("differentiable once")
    RULES[check](registry[f"{name}.default"], args)


def test_windows_of_truth_values():
    x = torch.arange(16).reshape(1, 1, 4, 4) % 3 == 0
    columns = torch.nn.functional.unfold(x, 2)
    assert columns.dtype is torch.bool
    assert torch.equal(columns, torch.nn.functional.unfold(x.float(), 2).bool())
    folded = torch.nn.functional.fold(columns, (4, 4), 2)
    assert torch.equal(folded, torch.nn.functional.fold(columns.float(), (4, 4), 2).bool())
