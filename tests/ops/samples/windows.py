"""Samples of what slides over space: convolution, pooling, padding, resampling, shuffles."""

from __future__ import annotations

import pullback as torch

from .make import Make, call


def _convolutions(m: Make) -> dict:
    found: dict = {}
    for n in (1, 2, 3):
        space, kernel, one, zero = (5, 4, 3)[:n], (3, 2, 2)[:n], (1,) * n, (0,) * n
        x, w = (lambda c=4, s=space: m(2, c, *s)), (lambda o, c, k=kernel: m(o, c, *k))
        found[f"conv{n}d"] = [
            call(x(), w(2, 4), m(2)),
            call(x(), w(2, 4), None, 2, 1, 1),
            call(x(), w(4, 2), m(4), 1, 1, 1, 2),
            call(x(), w(4, 1), None, 1, 2, 1, 4),
            call(m(4, *space), w(2, 4)),
        ]
        found[f"conv{n}d.padding"] = [call(x(), w(2, 4), m(2), 1, "same"), call(x(), w(2, 4), None, 1, "valid", 1)]
        key = f"conv_transpose{n}d" + ("" if n == 1 else ".input")
        found[key] = [
            call(x(), w(4, 3), m(3)),
            call(x(), w(4, 2), None, 2, 1, 1, 2, 1),
            call(x(), w(4, 2), None, 1, 0, 0, 1, 2),
        ]
        found.setdefault("convolution", []).extend([
            call(x(), w(2, 4), m(2), (2,) * n, one, one, False, zero, 1), call(x(), w(4, 2), None, one, zero, one, True, zero, 2), call(x(), w(4, 2), m(2), one, zero, one, True, zero, 1),
        ])  # fmt: skip
    plain = (None, (1,), (0,), (1,), False, (0,), 1)
    found["_convolution"] = [call(m(2, 4, 5), m(2, 4, 3), *plain, False, False, False, False)]
    found["convolution_backward"] = [
        call(m(2, 2, 3), m(2, 4, 5), m(2, 4, 3), (2,), *plain[1:], (True, True, True)),
        call(
            m(2, 4, 4, 3),
            m(2, 4, 4, 4),
            m(4, 2, 3, 2),
            None,
            (1, 1),
            (1, 0),
            (1, 1),
            False,
            (0, 0),
            2,
            (True, True, False),
        ),
        call(m(2, 2, 7), m(2, 4, 5), m(4, 2, 3), (2,), (1,), (0,), (1,), True, (0,), 1, (True, True, True)),
    ]
    found["conv_tbc"] = [call(m.real(5, 2, 3), m.real(3, 3, 4), m.real(4), pad) for pad in (1, 2)]
    return found


def _pools(m: Make) -> dict:
    found: dict = {}
    for n in (1, 2, 3):
        space = (5, 4, 4)[:n]
        x, two = (lambda *lead, s=space: m.distinct(*(lead or (2, 2)), *s)), (2,) * n
        pools = [call(x(), two), call(x(2), two, (1,) * n), call(x(), (3,) * n, (2,) * n, (1,) * n)]
        dilated = call(x(), two, (1,) * n, (0,) * n, (2,) * n)
        found[f"max_pool{n}d"] = found[f"max_pool{n}d_with_indices"] = [
            *pools,
            dilated,
            call(x(), two, (1,) * n, (1,) * n, (2,) * n),
            call(x(), two, two, (0,) * n, (1,) * n, True),
        ]
        found[f"avg_pool{n}d"] = [*pools, call(x(), two, two, (1,) * n, True, False)] + (
            [call(x(), two, divisor_override=3)] if n > 1 else []
        )
        found[f"adaptive_max_pool{n}d"] = [call(x(), (3,) * n), call(x(2), (2,) * n)]
        found[f"adaptive_avg_pool{n}d"] = [call(x(), (3,) * n), call(x(2), (1,) * n)]
        if n == 1:
            continue
        found[f"_adaptive_avg_pool{n}d"] = found[f"adaptive_avg_pool{n}d"]
        found[f"_adaptive_avg_pool{n}d_backward"] = [call(m.real(2, 2, *two), x())]
        found[f"avg_pool{n}d_backward"] = [
            call(m.real(2, 2, *(s // 2 for s in space)), x(), two, two, (0,) * n, False, True, None),
            call(m.real(2, *(s // 2 for s in space)), m.real(2, *space), two, two, (0,) * n, False, True, None),
        ]
        found[f"fractional_max_pool{n}d"] = [call(x(), two, two, m.real(2, 2, n, low=0.1, high=0.9))]
        found |= _pool_gradients(m, n, x, two)
    return found


def _pool_gradients(m: Make, n: int, x, two: tuple) -> dict:
    aten = torch.ops.aten
    a = x()
    pooled, at = getattr(aten, f"max_pool{n}d_with_indices")(a, two)
    adaptive, where = getattr(aten, f"adaptive_max_pool{n}d")(a, two)
    fractional, chosen = getattr(aten, f"fractional_max_pool{n}d")(a, two, two, m.real(2, 2, n, low=0.1, high=0.9))
    geometry = (two, two, (0,) * n)
    unpool = call(pooled, at, tuple(a.shape[2:])) if n == 2 else call(pooled, at, tuple(a.shape[2:]), two, (0,) * n)
    return {
        f"max_pool{n}d_with_indices_backward": [call(m.real(*pooled.shape), a, *geometry, (1,) * n, False, at)],
        f"adaptive_max_pool{n}d_backward": [call(m.real(*adaptive.shape), a, where)],
        f"fractional_max_pool{n}d_backward": [call(m.real(*fractional.shape), a, two, two, chosen)],
        f"max_unpool{n}d": [unpool],
    }


def _resampling(m: Make) -> dict:
    found: dict = {}
    kinds = {
        1: ("nearest1d", "nearest_exact1d", "linear1d"),
        2: ("nearest2d", "nearest_exact2d", "bilinear2d", "bicubic2d", "bilinear2d_aa", "bicubic2d_aa", "lanczos2d_aa"),
        3: ("nearest3d", "nearest_exact3d", "trilinear3d"),
    }
    for n, names in kinds.items():
        source = (3, 4, 2)[:n]
        for kind in names:
            name = f"{'_' if 'exact' in kind or kind.endswith('_aa') else ''}upsample_{kind}"
            aligned = [()] if "nearest" in kind else [(False,)] if kind.endswith("_aa") else [(False,), (True,)]
            found[name] = [
                call(m.real(2, 2, *source), size, *a) for size in ((5, 3, 4)[:n], (2, 6, 3)[:n]) for a in aligned
            ]
            found[f"{name}_backward"] = [
                call(m.real(2, 2, *(5, 3, 4)[:n]), (5, 3, 4)[:n], (2, 2, *source), *a) for a in aligned
            ]
            vec = [call(m.real(2, 2, *source), (5, 3, 4)[:n], *a, None) for a in aligned]
            found[f"{name}.vec"] = [*vec, call(m.real(2, 2, *source), None, *aligned[0], (2.0, 1.5, 2.0)[:n])]
    return found


def _grids(m: Make) -> dict:
    found: dict = {"grid_sampler": [call(m.real(2, 2, 4, 3), m.real(2, 3, 2, 2, low=-1.2, high=1.2), 0, 0, False)]}
    for n, modes in ((2, (0, 1, 2)), (3, (0, 1))):
        image, grid = (
            (lambda s=(4, 3, 3)[:n]: m.real(2, 2, *s)),
            (lambda n=n: m.real(2, *(3, 2, 2)[:n], n, low=-1.2, high=1.2)),
        )
        found[f"grid_sampler_{n}d"] = [
            call(image(), grid(), mode, pad, align) for mode in modes for pad in (0, 1, 2) for align in (False, True)
        ]
        found[f"grid_sampler_{n}d_backward"] = [
            call(m.real(2, 2, *(3, 2, 2)[:n]), image(), grid(), mode, 0, False, (True, True)) for mode in modes
        ]
    found["affine_grid_generator"] = [call(m.real(2, 2, 3), (2, 1, 3, 4), a) for a in (False, True)] + [
        call(m.real(2, 3, 4), (2, 1, 2, 3, 2), False)
    ]
    found["affine_grid_generator_backward"] = [call(m.real(2, 3, 4, 2), (2, 1, 3, 4), False)]
    return found


def _pads(m: Make) -> dict:
    found: dict = {"constant_pad_nd": [call(m(2, 3), (1, 2)), call(m(2, 3), (1, 0, 2, 1), 1.5), call(m(3, 4), (-1, 1))]}
    for n in (1, 2, 3):
        space, pad = (4, 3, 3)[:n], (2, 1, 1, 2, 0, 1)[: 2 * n]
        grown = tuple(s + pad[2 * (n - 1 - i)] + pad[2 * (n - 1 - i) + 1] for i, s in enumerate(space))
        for kind in ("reflection", "replication"):
            found[f"{kind}_pad{n}d"] = [call(m(2, 2, *space), pad), call(m(2, *space), pad)]
            found[f"{kind}_pad{n}d_backward"] = [call(m(2, 2, *grown), m(2, 2, *space), pad)]
    found["_pad_circular"] = [call(m(2, 2, 4), (2, 1)), call(m(2, 2, 4, 3), (1, 2, 2, 0))]
    found["pad"] = [call(m(2, 2, 4), (2, 1), mode) for mode in ("constant", "reflect", "replicate", "circular")]
    return found


def _shuffles(m: Make) -> dict:
    cols = ((2, 2), (1, 1), (1, 0), (1, 2))
    return {
        "pixel_shuffle": [call(m(2, 4, 2, 3), 2), call(m(4, 2, 3), 2)], "pixel_unshuffle": [call(m(2, 1, 4, 2), 2)],
        "channel_shuffle": [call(m(2, 4, 2, 3), 2)], "native_channel_shuffle": [call(m(2, 4, 2, 3), 2)],
        "im2col": [call(m(2, 2, 4, 4), *cols), call(m(2, 4, 4), *cols)], "col2im": [call(m(2, 8, 10), (4, 4), *cols), call(m(8, 10), (4, 4), *cols)],
    }  # fmt: skip


def table(m: Make) -> dict:
    return _convolutions(m) | _pools(m) | _resampling(m) | _grids(m) | _pads(m) | _shuffles(m)
