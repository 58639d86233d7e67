"""torchaudio's operators: filters and alignments whose results are known, the transducer loss against all its paths."""

import itertools
import math

import pytest

import pullback as torch
from pullback.library import torchaudio_operators


@pytest.fixture(scope="module", autouse=True)
def defined():
    torchaudio_operators.define()


def test_a_recursive_filter_remembers_what_it_gave():
    out = torch.zeros(1, 1, 5)
    torch.ops.torchaudio._lfilter_core_loop(torch.tensor([[[1.0, 0.0, 0.0, 2.0]]]), torch.tensor([[-0.5, 1.0]]), out)
    assert out.tolist() == [[[0.0, 1.0, 0.5, 0.25, 2.125]]]


def test_overdrive_feeds_back():
    wave, out = torch.tensor([[1.0, 1.0, 0.0]]), torch.zeros(1, 3)
    torch.ops.torchaudio._overdrive_core_loop(wave, wave, torch.zeros(1), torch.zeros(1), out)
    echo = [1.0, 0.995, 0.995 * 0.995 - 1]
    torch.testing.assert_close(out, torch.tensor([[0.5 * w + 0.75 * e for w, e in zip([1, 1, 0], echo, strict=True)]]))


def by_paths(logits, labels, blank):
    """The probability of the labels, summed over all orders of blanks and labels."""
    logs = torch.log_softmax(logits, -1)
    frames, total = len(logits), 0.0
    for places in itertools.combinations(range(frames + len(labels) - 1), len(labels)):
        t = u = 0
        path = logs.new_zeros(())
        for step in range(frames + len(labels)):
            if step in places:
                path, u = path + logs[t, u, labels[u]], u + 1
            else:
                path, t = path + logs[t, u, blank], t + 1
        total = total + path.exp()
    return -total.log()


@pytest.mark.parametrize("fused", [True, False])
def test_transducer_loss_sums_all_paths(fused):
    logits = torch.randn(2, 3, 3, 4, dtype=torch.float64, requires_grad=True)
    targets, frames, lengths = torch.tensor([[1, 2], [3, 0]]), torch.tensor([3, 2]), torch.tensor([2, 1])
    given = logits.detach() if fused else torch.log_softmax(logits.detach(), -1)
    costs, gradient = torch.ops.torchaudio.rnnt_loss_forward(given, targets, frames, lengths, 0, -1.0, fused)
    want = torch.stack([by_paths(logits[0], [1, 2], 0), by_paths(logits[1, :2, :2], [3], 0)])
    torch.testing.assert_close(costs, want.detach())
    if fused:
        want.sum().backward()
        torch.testing.assert_close(gradient, logits.grad)
        clamped = torch.ops.torchaudio.rnnt_loss_forward(given, targets, frames, lengths, 0, 0.1, True)[1]
        torch.testing.assert_close(clamped, gradient.clamp(-0.1, 0.1))


def test_forced_alignment_is_the_best_path():
    logs = torch.log_softmax(torch.randn(1, 5, 3), -1)
    paths, scores = torch.ops.torchaudio.forced_align(
        logs, torch.tensor([[1, 1]]), torch.tensor([5]), torch.tensor([2]), 0
    )
    assert scores is logs or torch.equal(scores, logs)
    spoken = lambda path: [k for k, _ in itertools.groupby(path) if k]
    best = max(
        (p for p in itertools.product(range(3), repeat=5) if spoken(p) == [1, 1]),
        key=lambda p: math.fsum(float(logs[0, t, k]) for t, k in enumerate(p)),
    )
    assert paths[0].tolist() == list(best)
    with pytest.raises(RuntimeError, match="too long for CTC"):
        torch.ops.torchaudio.forced_align(logs[:, :2], torch.tensor([[1, 1]]), torch.tensor([2]), torch.tensor([2]), 0)
    with pytest.raises(RuntimeError, match="blank index"):
        torch.ops.torchaudio.forced_align(logs, torch.tensor([[0, 1]]), torch.tensor([5]), torch.tensor([2]), 0)
