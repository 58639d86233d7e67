"""Fourier transforms, windows, and the short-time transform: NumPy's values, inverses, gradients."""

import numpy as np
import pytest

import pullback as torch
from pullback.ops.system.operator import registry
from tests.ops.checks import CHECKS, compare_gradient, to_numpy

rng = np.random.default_rng(5)


def signal(*shape, dtype=torch.float64):
    values = rng.standard_normal(shape)
    if dtype.is_complex:
        values = values + 1j * rng.standard_normal(shape)
    return torch.tensor(values).to(dtype)


ONE_DIM = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
REAL_ONLY = ("rfft", "ihfft")


@pytest.mark.parametrize("norm", [None, "ortho", "forward", "backward"])
@pytest.mark.parametrize("name", ONE_DIM)
def test_one_dimension(name, norm):
    for dtype in (torch.float64,) if name in REAL_ONLY else (torch.float64, torch.complex128):
        x = signal(3, 6, dtype=dtype)
        for n, dim in ((None, -1), (4, -1), (9, -1), (5, 0)):
            got = getattr(torch.fft, name)(x, n, dim, norm)
            np.testing.assert_allclose(to_numpy(got), getattr(np.fft, name)(to_numpy(x), n, dim, norm), atol=1e-12)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_several_dimensions(name):
    x = signal(3, 4, 5)
    for s, dim in ((None, None), ((4, 7), (0, 2)), ((2, 3), None), (None, (1,))):
        axes = dim if dim is not None or s is None else (1, 2)
        want = getattr(np.fft, name + "n")(to_numpy(x), s, axes)
        np.testing.assert_allclose(to_numpy(getattr(torch.fft, name + "n")(x, s, dim)), want, atol=1e-12)
    want = getattr(np.fft, name + "2")(to_numpy(x))
    np.testing.assert_allclose(to_numpy(getattr(torch.fft, name + "2")(x)), want, atol=1e-12)


def test_hermitian_transforms_are_inverse():
    x = signal(4, 6)
    back = torch.fft.hfftn(torch.fft.ihfftn(x), s=(4, 6))
    np.testing.assert_allclose(to_numpy(back), to_numpy(x), atol=1e-12)


def test_precision_is_kept():
    x = signal(8, dtype=torch.float32)
    assert torch.fft.fft(x).dtype is torch.complex64
    assert torch.fft.irfft(torch.fft.rfft(x)).dtype is torch.float32
    assert torch.fft.fft(torch.tensor([1, 2])).dtype is torch.complex64
    with pytest.raises(RuntimeError, match="Unsupported dtype Half"):
        torch.fft.fft(x.to(torch.float16))


GRADIENTS = {
    "fft real": (lambda x: torch.fft.fft(x, 7), torch.float64),
    "ifft": (lambda x: torch.fft.ifft(x, 4, norm="ortho"), torch.complex128),
    "rfft even": (lambda x: torch.fft.rfft(x, 8, 0), torch.float64),
    "irfft odd": (lambda x: torch.fft.irfft(x, 7), torch.complex128),
    "irfft even": (lambda x: torch.fft.irfft(x), torch.complex128),
    "irfftn": (lambda x: torch.fft.irfftn(x, (4, 9)), torch.complex128),
    "hfft2": (lambda x: torch.fft.hfft2(x), torch.complex128),
    "fftshift": (lambda x: torch.fft.fftshift(x), torch.float64),
    "stft": (lambda x: torch.stft(x, 4, window=torch.ones(4), return_complex=True), torch.float64),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    function, dtype = GRADIENTS[name]
    compare_gradient(lambda x: (function(x),), [signal(3, 6, dtype=dtype)], 1, name)


SAMPLES = {
    "_fft_c2c": (signal(2, 3, 4, dtype=torch.complex128), (1, 2), 1, False),
    "_fft_r2c": (signal(2, 3, 5), (0, 2), 0, True),
    "_fft_c2r": (signal(2, 3, 4, dtype=torch.complex128), (1, 2), 2, 7),
}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", SAMPLES)
def test_rule(name, check):
    CHECKS[check](registry[f"{name}.default"], SAMPLES[name])


def test_frequencies_and_shifts():
    for n in (5, 8):
        np.testing.assert_allclose(to_numpy(torch.fft.fftfreq(n, 0.5)), np.fft.fftfreq(n, 0.5), rtol=1e-6)
        np.testing.assert_allclose(to_numpy(torch.fft.rfftfreq(n)), np.fft.rfftfreq(n), rtol=1e-6)
    x = signal(4, 5)
    np.testing.assert_array_equal(to_numpy(torch.fft.ifftshift(torch.fft.fftshift(x), dim=(0, 1))), to_numpy(x))


def test_errors():
    x = torch.zeros(3, 3)
    for words, call in {
        r"Invalid number of data points \(0\) specified": lambda: torch.fft.fft(x, 0),
        'Invalid normalization mode: "foo"': lambda: torch.fft.fft(x, norm="foo"),
        "FFT dims must be unique": lambda: torch.fft.fftn(x, dim=(0, 0)),
        "must have the same length": lambda: torch.fft.fft2(x, s=(1,)),
        "rfft expects a real input tensor, but got ComplexFloat": lambda: torch.fft.rfft(x.to(torch.complex64)),
        "irfftn must transform at least one axis": lambda: torch.fft.irfftn(x, dim=()),
        "stft requires the return_complex parameter": lambda: torch.stft(x, 2),
    }.items():
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(IndexError, match="tensor has no dimensions"):
        torch.fft.fft(torch.tensor(1.0))


# ---- windows
def test_windows():
    for n in (1, 2, 5, 8):
        for name in ("bartlett", "blackman", "hamming"):
            want = getattr(np, name)(n)
            got = getattr(torch, f"{name}_window")(n, False, dtype=torch.float64)
            np.testing.assert_allclose(to_numpy(got), want, atol=1e-12)
            got = getattr(torch.signal.windows, name)(n, dtype=torch.float64)
            np.testing.assert_allclose(to_numpy(got), want, atol=1e-12)
        np.testing.assert_allclose(to_numpy(torch.kaiser_window(n, False, 6.0)), np.kaiser(n, 6), atol=1e-5)
        periodic = torch.hann_window(n, dtype=torch.float64)
        same = torch.hann_window(n + 1, False, dtype=torch.float64)[:n] if n > 1 else torch.ones(1)
        np.testing.assert_allclose(to_numpy(periodic), to_numpy(same), atol=1e-12)
    assert torch.signal.windows.gaussian(5, std=2.0)[2].item() == 1.0
    with pytest.raises(RuntimeError, match="requires non-negative window_length"):
        torch.hann_window(-1)
    with pytest.raises(ValueError, match="Coefficients cannot be empty"):
        torch.signal.windows.general_cosine(3, a=[])


# ---- the short-time transform
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("onesided", [True, False])
def test_the_inverse_gives_the_signal_back(normalized, onesided):
    x, window = signal(2, 40), torch.hann_window(8, dtype=torch.float64)
    options = {"window": window, "normalized": normalized, "onesided": onesided}
    frames = torch.stft(x, 8, 2, return_complex=True, **options)
    assert frames.shape == (2, 5 if onesided else 8, 21)
    back = torch.istft(frames, 8, 2, length=40, **options)
    np.testing.assert_allclose(to_numpy(back), to_numpy(x), atol=1e-10)


def test_frames_of_a_short_window_lie_in_the_middle():
    x = torch.arange(1.0, 21.0)
    ones = torch.ones(4)
    plain = torch.stft(x, 8, 3, 4, ones, center=False, return_complex=True)
    aligned = torch.stft(x, 8, 3, 4, ones, center=False, return_complex=True, align_to_window=True)
    assert plain[0].real.tolist() == [18, 30, 42, 54, 66]
    assert aligned[0].real.tolist() == [10, 22, 34, 46, 58, 70]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 12, 16, 31, 32, 48, 64, 256, 512, 1024])
def test_lengths_in_c(n, dtype):
    """Any number of rows, whole blocks of lanes or not, against NumPy in double precision."""
    size = max(1, n) ** 0.5 * (1e-6 if dtype is torch.float32 else 1e-14)
    for rows in (1, 3, 16, 17, 33):
        x, z = signal(rows, n, dtype=torch.float64), signal(rows, n, dtype=torch.complex128)
        real, whole = x.to(dtype), z.to(dtype.to_complex())
        for name in ("fft", "rfft", "ihfft", "ifft"):
            expected = getattr(np.fft, name)(to_numpy(real).astype(np.float64))
            np.testing.assert_allclose(to_numpy(getattr(torch.fft, name)(real)), expected, atol=8 * size)
        for name in ("fft", "ifft"):
            expected = getattr(np.fft, name)(to_numpy(whole).astype(np.complex128))
            np.testing.assert_allclose(to_numpy(getattr(torch.fft, name)(whole)), expected, atol=8 * size)
        half = whole[:, : n // 2 + 1].contiguous()
        for name in ("irfft", "hfft"):
            expected = getattr(np.fft, name)(to_numpy(half).astype(np.complex128), n)
            np.testing.assert_allclose(to_numpy(getattr(torch.fft, name)(half, n)), expected, atol=8 * size)


def test_dimensions_side_by_side_in_c():
    for shape in ((4, 32, 64), (2, 16, 20), (3, 64, 5), (128, 128)):
        x, z = signal(*shape), signal(*shape, dtype=torch.complex128)
        for name, t in (("fftn", x), ("fftn", z), ("ifftn", z), ("rfftn", x), ("irfftn", z), ("fft2", z), ("rfft2", x)):
            expected = getattr(np.fft, name)(to_numpy(t))
            np.testing.assert_allclose(to_numpy(getattr(torch.fft, name)(t)), expected, atol=1e-11)


def test_rows_know_nothing_of_each_other():
    """What is no number in a row, or very large, is not seen in the rows beside it."""
    x = signal(40, 64)
    expected = torch.fft.rfft(x)
    back = torch.fft.irfft(expected)
    for value in (np.nan, np.inf, 1e300):
        odd = x.clone()
        odd[::3, 5] = value
        kept = [i for i in range(40) if i % 3]
        assert torch.equal(torch.fft.rfft(odd)[kept], expected[kept])
        assert torch.equal(torch.fft.fft(odd)[kept], torch.fft.fft(x)[kept])
        spectrum = expected.clone()
        spectrum[::3, 5] = value
        assert torch.equal(torch.fft.irfft(spectrum)[kept], back[kept])
    edges = expected.clone()
    edges[:, 0] += complex(0, np.inf)  # the imaginary part of a point that must be real is not looked at
    assert torch.equal(torch.fft.irfft(edges.real + 1j * edges.imag.nan_to_num(0)), back)


def test_halves_change_places():
    for shape in ((1,), (2,), (7,), (4, 5), (3, 1, 6), (2, 3, 4, 5)):
        x = signal(*shape)
        for dim in (None, 0, (-1,), tuple(range(len(shape)))):
            for name in ("fftshift", "ifftshift"):
                expected = getattr(np.fft, name)(to_numpy(x), dim)
                assert np.array_equal(to_numpy(getattr(torch.fft, name)(x, dim)), expected)
                assert np.array_equal(
                    to_numpy(getattr(torch.fft, name)(x.to(torch.int32), dim)), expected.astype(np.int32)
                )


def test_pieces_are_added_up_where_they_lie():
    for length, size, step in ((9, 3, 1), (9, 3, 2), (10, 4, 3), (5, 5, 1), (30, 4, 7), (12, 8, 2)):
        x = signal(3, length)
        pieces = x.unfold(1, size, step)
        g = signal(*pieces.shape)
        found = torch.ops.aten.unfold_backward(g, x.shape, 1, size, step)
        expected = np.zeros((3, length))
        for i in range(pieces.shape[1]):
            expected[:, i * step : i * step + size] += to_numpy(g)[:, i]
        np.testing.assert_allclose(to_numpy(found), expected, atol=1e-14)
        assert torch.equal(torch.ops.aten.unfold_backward(g[1], (length,), 0, size, step), found[1])
        wide = g[0, :1].expand(pieces.shape[1], size)
        whole = torch.ops.aten.unfold_backward(wide.contiguous(), (length,), -1, size, step)
        assert torch.equal(torch.ops.aten.unfold_backward(wide, (length,), 0, size, step), whole)


def test_a_missing_window_is_warned_of_once():
    x = torch.rand(100)
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="A window was not provided.* spectral leakage"):
            y = x.stft(10, return_complex=True)
        with pytest.warns(UserWarning, match="A window was not provided.* lossless"):
            torch.istft(y, 10)
    finally:
        torch.set_warn_always(False)


@pytest.mark.parametrize("n", [3, 53, 127, 251])
def test_lengths_of_odd_primes_and_their_doubles(n):
    rng = np.random.default_rng(n)
    for points in (n, 2 * n):
        x = rng.standard_normal((19, points)) + 1j * rng.standard_normal((19, points))
        half = np.fft.rfft(x.real)
        for given, name in ((x, "fft"), (x, "ifft"), (x.real, "rfft"), (half, "irfft"), (half, "hfft")):
            if points % 2 and name in ("irfft", "hfft"):
                given, sizes = half, (points,)
            else:
                sizes = ()
            expected = getattr(np.fft, name)(given, *sizes)
            found = getattr(torch.fft, name)(torch.tensor(given), *sizes).numpy()
            assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()
            single = getattr(torch.fft, name)(
                torch.tensor(given.astype("F" if given.dtype.kind == "c" else "f")), *sizes
            )
            assert np.abs(single.numpy() - expected).max() < 2e-6 * np.abs(expected).max()
