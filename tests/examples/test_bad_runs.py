"""What goes wrong around training is told: damaged checkpoints, foreign states, dead workers, losses that are not numbers."""

import io
import multiprocessing
import os
import pickle
import signal
import zipfile

import pytest

import pullback as torch
from pullback import nn
from pullback.utils.data import DataLoader, Dataset


def checkpoint() -> bytes:
    net = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
    return file.getvalue()


def test_a_damaged_checkpoint_loads_or_is_refused():
    whole = checkpoint()
    refused = 0
    for at in range(0, len(whole), 37):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        try:
            torch.load(io.BytesIO(damaged), weights_only=True)
        except (RuntimeError, pickle.UnpicklingError):
            refused += 1
    assert refused


def test_a_checkpoint_that_would_run_a_command_is_refused(tmp_path):
    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    file = io.BytesIO()
    torch.save({"model": Hostile()}, file)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(io.BytesIO(file.getvalue()))
    assert not (tmp_path / "made").exists()


def test_an_archive_of_something_else_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("notes.txt", "not a checkpoint")
    with pytest.raises(RuntimeError):
        torch.load(io.BytesIO(file.getvalue()))


def test_a_state_of_other_shapes_names_every_one_and_its_place():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    other = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1)).state_dict()
    with pytest.raises(RuntimeError) as raised:
        net.load_state_dict(other, strict=False)
    for name in ("0.weight", "0.bias", "2.weight"):
        assert f"size mismatch for {name}: copying a param with shape" in str(raised.value)
        assert torch.equal(net.state_dict()[name], before[name])
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'int'>"):
        net.load_state_dict(3)


def test_an_optimizer_state_of_other_groups_is_refused():
    first, second = nn.Linear(2, 2), nn.Linear(2, 2, bias=False)
    state = torch.optim.Adam(first.parameters()).state_dict()
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        torch.optim.Adam(second.parameters()).load_state_dict(state)
    groups = [{"params": [second.weight]}, {"params": list(first.parameters())}]
    with pytest.raises(ValueError, match="different number of parameter groups"):
        torch.optim.Adam(groups).load_state_dict(state)


class DiesLate(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.tensor(index)


def test_a_worker_killed_in_the_middle_ends_the_epoch_and_leaves_no_process():
    seen = []
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid.* is killed by signal|exited unexpectedly"):
        for batch in DataLoader(DiesLate(), batch_size=1, num_workers=2):
            seen.append(batch.item())
    assert seen == list(range(len(seen))) and 5 not in seen
    assert not [child for child in multiprocessing.active_children() if child.is_alive()]


@pytest.mark.parametrize("between", ["batches", "passes"])
def test_a_worker_found_dead_when_it_is_given_work_is_named(between):
    loader = DataLoader(range(64), batch_size=1, num_workers=2, persistent_workers=True)
    batches = iter(loader)
    first = list(batches) if between == "passes" else [next(batches)]
    assert first[0].item() == 0
    for process in batches._workers:
        process.kill()
        process.join()
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid.* is killed by signal"):
        list(loader if between == "passes" else batches)


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in")
def test_a_loss_that_is_no_number_is_traced_under_anomaly_mode():
    net = nn.Linear(2, 1)
    x = torch.full((3, 2), -1e3)

    def loss():
        return torch.sqrt(net(x) - 1e6).mean()

    assert loss().isnan()
    with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"):
        with torch.autograd.set_detect_anomaly(True):
            loss().backward()
    assert all(p.grad is None for p in net.parameters())


def test_gradients_that_are_no_numbers_stop_the_clipping_when_asked():
    net = nn.Linear(2, 1)
    (net(torch.ones(1, 2)).sum() * float("nan")).backward()
    with pytest.raises(RuntimeError, match="non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)
