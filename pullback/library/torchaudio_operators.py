"""torchaudio's operators (`torch.ops.torchaudio.*`), which its wheel has compiled against PyTorch's C++ alone.

torchaudio's Python asks for its shared libraries; here `define()` answers instead. Recursive filters, the transducer loss with
its gradient, and the alignment of labels with frames are recurrences over time, written on arrays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.tensor import Tensor, wrap
from .registration import Library

_libraries: list[Library] = []  # operators live as long as their library


def _array(x: Tensor) -> np.ndarray:
    return x.detach().cpu().numpy()


# -------------------------------------------------------------------------------------------------------------- filters
def _lfilter_core_loop(input_signal_windows: Tensor, a_coeff_flipped: Tensor, padded_output_waveform: Tensor) -> None:
    """y[t] = x[t] - sum_k a[k] y[t - n + k]; the output (batch, channel, time) begins with its first n - 1 past values."""
    signal, factors, out = _array(input_signal_windows), _array(a_coeff_flipped), _array(padded_output_waveform)
    order = factors.shape[1]
    for t in range(signal.shape[2]):
        out[:, :, t + order - 1] = signal[:, :, t] - (out[:, :, t : t + order] * factors).sum(-1)
    padded_output_waveform.copy_(wrap(out))


def _overdrive_core_loop(
    waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output_waveform: Tensor
) -> None:
    """The feedback of the overdrive effect; waveforms are (channel, time)."""
    wave, driven, out = _array(waveform), _array(temp), _array(output_waveform)
    before, echo = _array(last_in), _array(last_out)
    for t in range(wave.shape[-1]):
        echo = driven[:, t] - before + 0.995 * echo
        before = driven[:, t]
        out[:, t] = wave[:, t] * 0.5 + echo * 0.75
    output_waveform.copy_(wrap(out))


# ------------------------------------------------------------------------------------------------------ transducer loss
def _log_softmax(x: np.ndarray) -> np.ndarray:
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def rnnt_loss_forward(
    logits: Tensor, targets: Tensor, logit_lengths: Tensor, target_lengths: Tensor, blank: int, clamp: float,
    fused_log_softmax: bool = True,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(cost of each sequence, its gradient for the logits (batch, time, label, class))."""
    if logits.dim() != 4:
        raise RuntimeError(f"logits must be 4-D (batch, time, target, class), got {tuple(logits.shape)}")
    scores = _array(logits).astype(np.float64)
    costs, gradients = np.zeros(len(scores)), np.zeros_like(scores)
    for i, (frames, labels) in enumerate(zip(_array(logit_lengths), _array(target_lengths), strict=True)):
        part = scores[i, :frames, : labels + 1]
        logs = _log_softmax(part) if fused_log_softmax else part
        costs[i], gradients[i, :frames, : labels + 1] = _transduce(
            logs, _array(targets)[i, :labels], blank, fused_log_softmax
        )
    if clamp > 0:
        gradients = gradients.clip(-clamp, clamp)
    dtype = _array(logits).dtype
    return wrap(costs.astype(dtype)).to(logits.device), wrap(gradients.astype(dtype)).to(logits.device)


def _transduce(logs: np.ndarray, labels: np.ndarray, blank: int, normalised: bool) -> tuple[float, np.ndarray]:
    """The cost of one sequence, and its gradient; `normalised` where `logs` are the log softmax of what is differentiated."""
    frames, places, _ = logs.shape
    skip = logs[:, :, blank]
    emit = np.full((frames, places), -np.inf)
    emit[:, :-1] = logs[:, np.arange(places - 1), labels]
    before, after = np.full((frames, places), -np.inf), np.full((frames + 1, places + 1), -np.inf)
    for t, u in np.ndindex(frames, places):
        came = (
            before[t - 1, u] + skip[t - 1, u] if t else -np.inf,
            before[t, u - 1] + emit[t, u - 1] if u else -np.inf,
        )
        before[t, u] = 0.0 if t == u == 0 else np.logaddexp(*came)
    after[frames, places - 1] = 0.0  # the last blank leaves the lattice
    for t, u in np.ndindex(frames, places):
        t, u = frames - 1 - t, places - 1 - u
        after[t, u] = np.logaddexp(after[t + 1, u] + skip[t, u], after[t, u + 1] + emit[t, u])
    total = after[0, 0]
    gradient = np.zeros_like(logs)
    gradient[:, :, blank] -= np.exp(before + skip + after[1:, :-1] - total)
    gradient[:, np.arange(places - 1), labels] -= np.exp(before + emit + after[:-1, 1:] - total)[:, :-1]
    if normalised:
        gradient += np.exp(logs) * np.exp(before + after[:-1, :-1] - total)[..., None]
    return -total, gradient


# ------------------------------------------------------------------------------------------------------------ alignment
def forced_align(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> tuple[Tensor, Tensor]:
    """The most likely label of each frame, where the labels without repetitions and blanks are the targets."""
    if log_probs.dim() != 3 or log_probs.size(0) != 1:
        raise RuntimeError(
            f"The batch dimension for log_probs must be 1 at the current version, got {tuple(log_probs.shape)}"
        )
    labels = _array(targets)[0]
    if blank in labels:
        raise RuntimeError(f"targets Tensor shouldn't contain blank index. Found {targets}.")
    logs = _array(log_probs)[0].astype(np.float64)
    repeats = int((labels[1:] == labels[:-1]).sum())
    if len(logs) < len(labels) + repeats:
        raise RuntimeError(
            "targets length is too long for CTC. "
            f"Found log_probs length: {len(logs)}, targets length: {len(labels)}, and number of repeats: {repeats}"
        )
    path = _best_path(logs, labels, blank)
    return wrap(path[None].astype(labels.dtype)).to(targets.device), log_probs


def _best_path(logs: np.ndarray, labels: np.ndarray, blank: int) -> np.ndarray:
    states = np.full(2 * len(labels) + 1, blank)
    states[1::2] = labels
    may_jump = np.zeros(len(states), bool)  # from label to label, over the blank between them
    may_jump[3::2] = labels[1:] != labels[:-1]
    best = np.full(len(states), -np.inf)
    best[:2] = logs[0, states[:2]]
    steps = np.zeros((len(logs), len(states)), np.int8)
    for t in range(1, len(logs)):
        one = np.concatenate([[-np.inf], best[:-1]])[: len(states)]
        two = np.where(may_jump, np.concatenate([[-np.inf] * 2, best[:-2]])[: len(states)], -np.inf)
        steps[t] = np.where((two > one) & (two > best), 2, np.where((one > best) & (one > two), 1, 0))
        best = np.choose(steps[t], [best, one, two]) + logs[t, states]
    at = len(states) - 1 if len(states) == 1 or best[-1] > best[-2] else len(states) - 2
    path = np.empty(len(logs), np.int64)
    for t in range(len(logs) - 1, -1, -1):
        path[t] = states[at]
        at -= steps[t, at]
    return path


# -------------------------------------------------------------------------------------------------------- registration
_OPERATORS: dict[str, Callable] = {
    "_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor(a!) padded_output_waveform) -> ()": (
        _lfilter_core_loop
    ),
    "_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor last_in, Tensor last_out, Tensor(a!) output_waveform) -> ()": (
        _overdrive_core_loop
    ),
    "rnnt_loss_forward(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, int blank, float clamp, "
    "bool fused_log_softmax=True) -> (Tensor, Tensor)": rnnt_loss_forward,
    "forced_align(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) -> (Tensor, Tensor)": (
        forced_align
    ),
}
_FACTS: dict[str, Callable] = {"cuda_version() -> int?": lambda: None, "is_align_available() -> bool": lambda: True}


def define() -> None:
    """Register the operators, once."""
    if _libraries:
        return
    for name, operators in (("torchaudio", _OPERATORS), ("_torchaudio", _FACTS)):
        library = Library(name, "DEF")
        _libraries.append(library)
        for schema, function in operators.items():
            library.define(schema)
            library.impl(schema.partition("(")[0], function, "CompositeExplicitAutograd")
