"""Signal processing: window functions, the short-time Fourier transform and its inverse.

In: for windows a number of points and the options of a factory; for the transforms a signal (time) or its frames.
Out: a window of float dtype; a spectrogram (batch?, frequency, frame) or a signal (batch?, time).
Always: a window of one point is one. A periodic window is the symmetric one of one more point, without its last.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ...core import device as devices
from ...core import dtype as dtypes
from ...core.errors import warn_once
from ...core.modes import ambient
from ...core.tensor import Tensor
from ..elementwise.special import library
from ..family.factory import factory
from ..make.factories import finish
from ..shape.view_backward import unfold_backward
from ..system.calls import front
from ..system.concrete import concrete
from ..system.operator import Spec, exports
from .fft import c2c, c2r, r2c

Array = Any
_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


# ---- torch.hann_window and its kin
def _window_spec(name: str) -> Callable[..., Spec]:
    def shape(window_length: int, *rest: Any) -> Spec:
        dtype, layout = rest[-4] or ambient.default_dtype, rest[-3]
        if layout not in (None, devices.strided):
            raise RuntimeError(f"{name} is not implemented for sparse types, got: {layout}")
        if not dtype.is_floating_point and not dtype.is_complex:
            raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
        if window_length < 0:
            raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
        return Spec((window_length,), dtype)

    return shape


def _window_kernel(formula: Callable[..., Array]) -> Callable[..., Array]:
    """The kernel of a window from its symmetric formula; worked out in the window's own precision, as PyTorch's is."""

    def kernel(xp: Any, spec: Spec, length: int, periodic: bool, *rest: Any) -> Array:
        final = spec.dtype.numpy
        if length < 2:
            return xp.ones(length, final)
        points = length + 1 if periodic else length
        working = xp.float64 if spec.dtype in (dtypes.float64, dtypes.complex128) else xp.float32
        return formula(xp, xp.arange(points, dtype=working), working, *rest[:-4])[:length].astype(final)

    return kernel


def _bartlett(xp: Any, index: Array, working: Any) -> Array:
    rising = index * working(2 / (len(index) - 1))
    half = ((len(index) - 1) >> 1) + 1
    rising[half:] = rising[half:] * -1 + 2
    return rising


def _blackman(xp: Any, index: Array, working: Any) -> Array:
    angle = index * working(math.pi / (len(index) - 1))
    return xp.cos(angle * 4) * working(0.08) - xp.cos(angle * 2) * working(0.5) + working(0.42)


def _hamming(xp: Any, index: Array, working: Any, alpha: float = 0.5, beta: float = 0.5) -> Array:
    angle = index * working(2 * math.pi / (len(index) - 1))
    return xp.cos(angle) * working(-beta) + working(alpha)


def _kaiser(xp: Any, index: Array, working: Any, beta: float) -> Array:
    from_middle = index * working(2 / (len(index) - 1)) - 1
    bessel = library(xp).i0
    return bessel(working(beta) * xp.sqrt(xp.maximum(1 - from_middle**2, 0))) / bessel(working(beta))


def _window_operator(overload: str, parameters: str, formula: Callable[..., Array]) -> Any:
    name = overload.partition(".")[0]
    schema = f"{overload}(int window_length, bool periodic{parameters}, {_OPTIONS}) -> Tensor"
    return factory(schema, shape=_window_spec(name), kernel=_window_kernel(formula))


bartlett_op = _window_operator("bartlett_window.periodic", "", _bartlett)
blackman_op = _window_operator("blackman_window.periodic", "", _blackman)
hann_op = _window_operator("hann_window.periodic", "", _hamming)
hamming_op = _window_operator("hamming_window.periodic_alpha_beta", ", float alpha, float beta", _hamming)
kaiser_op = _window_operator("kaiser_window.beta", ", float beta", _kaiser)


def _finished(op: Any, args: tuple, options: dict[str, Any]) -> Tensor:
    """Call a window's operator with the options that every factory takes."""
    requires_grad, out = options.pop("requires_grad", False), options.pop("out", None)
    if out is not None and options.get("dtype") is None:
        options["dtype"] = out.dtype
    return finish(op(*args, **options), requires_grad, out)


@front("torch.bartlett_window")
def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A triangle from zero to one and back."""
    return _finished(bartlett_op, (window_length, periodic), options)


@front("torch.blackman_window")
def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Blackman's window."""
    return _finished(blackman_op, (window_length, periodic), options)


@front("torch.hann_window")
def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Hann's window: one period of a raised cosine."""
    return _finished(hann_op, (window_length, periodic), options)


@front("torch.hamming_window")
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """Hamming's window: alpha - beta cos."""
    return _finished(hamming_op, (window_length, periodic, alpha, beta), options)


@front("torch.kaiser_window")
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """Kaiser's window, of the modified Bessel function."""
    return _finished(kaiser_op, (window_length, periodic, beta), options)


# ---- torch.stft and torch.istft
Call = Callable[[], str]  # a call in the words of PyTorch's messages


def _described(**arguments: Any) -> str:
    """The arguments of a call in those words."""
    window = arguments.get("window")
    if window is not None:
        arguments["window"] = f"torch.{window.dtype.scalar_name}Tensor{{{list(window.shape)}}}"
    return ", ".join(f"{k}={int(v) if isinstance(v, bool) else v}" for k, v in arguments.items())


def _refuse(call: Call, problem: str) -> None:
    raise RuntimeError(f"{call()} : {problem}")


def _check_frames(call: Call, x: Tensor, n_fft: int, hop: int, win: int, window: Tensor | None) -> None:
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        _refuse(call, "expected a tensor of floating point or complex values")
    if x.ndim not in (1, 2):
        _refuse(call, "expected a 1D or 2D tensor")
    if not 0 < n_fft <= x.shape[-1]:
        _refuse(call, f"expected 0 < n_fft < {x.shape[-1]}, but got n_fft={n_fft}")
    if hop <= 0:
        _refuse(call, f"expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win <= n_fft:
        _refuse(call, f"expected 0 < win_length <= n_fft, but got win_length={win}")
    if window is not None and (window.ndim != 1 or window.shape[0] != win):
        _refuse(
            call,
            f"expected a 1D window tensor of size equal to win_length={win}, "
            f"but got window with size {list(window.shape)}",
        )


def _padded(x: Tensor, before: int, after: int) -> Tensor:
    """Zeros around the last dim."""
    lead = tuple(x.shape[:-1])
    parts = [x.new_zeros((*lead, before)), x, x.new_zeros((*lead, after))]
    return exports["torch"]["cat"](parts, -1) if before or after else x


def _centered(x: Tensor, n_fft: int, pad_mode: str) -> Tensor:
    wide = x.reshape((1,) * (3 - x.ndim) + tuple(x.shape)) if x.ndim < 3 else x
    padded = exports["nn.functional"]["pad"](wide, (n_fft // 2, n_fft // 2), pad_mode)
    return padded.reshape(tuple(padded.shape[3 - x.ndim :])) if x.ndim < 3 else padded


def _frames(x: Tensor, n_fft: int, hop: int, win: int, window: Tensor | None, align: bool) -> Tensor:
    """(batch, frame, n_fft): the signal cut into overlapping pieces and weighted."""
    left = (n_fft - win) // 2
    if align:
        pieces = x.unfold(-1, win, hop)
        return _padded(pieces if window is None else pieces * window, left, n_fft - win - left)
    pieces = x.unfold(-1, n_fft, hop)
    if window is None and win == n_fft:
        return pieces
    window = x.new_ones(win) if window is None else window
    return pieces * _padded(window, left, n_fft - win - left)


_RECTANGULAR = "A window was not provided. A rectangular window will be applied,{} To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
_LEAKS = " which is known to cause spectral leakage. Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage."
_LOSES = " please provide the same window used by stft to make the inversion lossless."


@front("torch.stft", "Tensor.stft")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The Fourier transforms of overlapping, windowed pieces of a signal."""
    if window is None:
        warn_once(_RECTANGULAR.format(_LEAKS), 3)
    if center:
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        input = _centered(input, n_fft, pad_mode)
    hop = n_fft >> 2 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    given = return_complex

    def call() -> str:
        described = _described(
            n_fft=n_fft, hop_length=hop, win_length=win, window=window, normalized=normalized, onesided=onesided,
            return_complex=given, align_to_window=align_to_window,
        )  # fmt: skip
        return f"stft(torch.{input.dtype.scalar_name}Tensor{list(input.shape)}, {described})"

    is_complex = input.dtype.is_complex or window is not None and window.dtype.is_complex
    if return_complex is None:
        if not is_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    _check_frames(call, input, n_fft, hop, win, window)
    if onesided is None:
        onesided = not is_complex
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    frames = _frames(input, n_fft, hop, win, window, bool(align_to_window))
    last, how = frames.ndim - 1, int(normalized)
    result = c2c(frames, (last,), how, True) if is_complex else r2c(frames, (last,), how, onesided)
    result = result.transpose(-2, -1)
    return result if return_complex else exports["torch"]["view_as_real"](result)


def _overlap_add(pieces: Tensor, hop: int, length: int) -> Tensor:
    """(batch, length): pieces (batch, frame, n_fft) added up where they lie `hop` apart."""
    return unfold_backward(pieces, (pieces.shape[0], length), 1, pieces.shape[2], hop)


def _check_spectrum(call: Call, x: Tensor, n_fft: int, hop: int, win: int, onesided: bool) -> None:
    if not x.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if x.ndim not in (2, 3):
        _refuse(call, f"expected a tensor with 2 or 3 dimensions, but got {x.ndim}")
    if not x.numel():
        _refuse(call, "input tensor cannot be empty.")
    want, how = (
        (n_fft // 2 + 1, "n_fft / 2 + 1 when onesided=True") if onesided else (n_fft, "n_fft when onesided=False")
    )
    if x.shape[-2] != want:
        _refuse(
            call,
            "expected the frequency dimension (3rd to the last) of the input tensor to match "
            f"{how}, but got {x.shape[-2]}",
        )
    if not 0 < hop <= win:
        _refuse(call, "expected 0 < hop_length <= win_length")
    if not 0 < win <= n_fft:
        _refuse(call, "expected 0 < win_length <= n_fft")


@front("torch.istft", "Tensor.istft")
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose short-time Fourier transform is closest to the input, in the sense of least squares."""
    if window is None:
        warn_once(_RECTANGULAR.format(_LOSES), 3)
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length

    def call() -> str:
        described = _described(
            n_fft=n_fft, hop_length=hop, win_length=win, window=window, center=center, normalized=normalized,
            onesided=onesided, length=length, return_complex=return_complex,
        )  # fmt: skip
        return f"istft(CPU{input.dtype.scalar_name}Type{list(input.shape)}, {described})"

    half = input.shape[-2] != n_fft if onesided is None else onesided
    _check_spectrum(call, input, n_fft, hop, win, half)
    if window is not None and (window.ndim != 1 or window.shape[0] != win):
        _refuse(call, f"Invalid window shape. window has to be 1D and length of `win_length`, got {list(window.shape)}")
    if return_complex and half:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    frames = _frames_of(input if input.ndim == 3 else input.unsqueeze(0), n_fft, normalized, half, return_complex)
    weights = window if window is not None else frames.new_ones(win, dtype=input.dtype.to_real())
    left = (n_fft - win) // 2
    weights = _padded(weights, left, n_fft - win - left)
    signal = _normalized_signal(call, frames, weights, n_fft, hop, center, length)
    return signal if input.ndim == 3 else signal.squeeze(0)


def _frames_of(x: Tensor, n_fft: int, normalized: bool, half: bool, return_complex: bool) -> Tensor:
    """(batch, frame, n_fft): each frame's spectrum turned back into points."""
    x, how = x.transpose(1, 2), 1 if normalized else 2
    if return_complex:
        return c2c(x, (2,), how, False)
    # A real signal's spectrum is symmetric, so that its first half is enough.
    return c2r(x if half else x.narrow(2, 0, n_fft // 2 + 1), (2,), how, n_fft)


def _normalized_signal(
    call: Call, frames: Tensor, weights: Tensor, n_fft: int, hop: int, center: bool, length: int | None
) -> Tensor:
    """Add the weighted frames up and divide by what the squared window adds up to."""
    total = n_fft + hop * (frames.shape[1] - 1)
    signal = _overlap_add(frames * weights, hop, total)
    squares = (weights * weights).expand((1, frames.shape[1], n_fft))
    envelope = _overlap_add(squares, hop, total)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    kept = min(end, total) - start
    signal, envelope = signal.narrow(1, start, kept), envelope.narrow(1, start, kept)
    if concrete(envelope) and envelope.abs().min().item() < 1e-11:
        raise RuntimeError(f"{call()} window overlap add min: 1")
    signal = signal / envelope
    if end > total:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings.",
            stacklevel=4,
        )
        signal = _padded(signal, 0, end - total)
    return signal
