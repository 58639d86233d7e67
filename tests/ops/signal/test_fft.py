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
