"""Functions behind names of PyTorch that training libraries import: what each does."""

import socket

import pytest

import pullback as torch
from pullback.compat import training_names as names


def test_a_line_search_finds_the_minimum_of_a_parabola():
    def value_and_gradient(x, t, d):
        at = x + t * d
        return float(((at - 3) ** 2).sum()), 2 * (at - 3)

    x, d = torch.zeros(2), torch.ones(2)
    value, gradient = value_and_gradient(x, 0.0, d)
    slope = gradient.dot(d)
    value, gradient, t, evaluations = names.strong_wolfe_search(value_and_gradient, x, 8.0, d, value, gradient, slope)
    assert t == pytest.approx(3.0) and value == pytest.approx(0.0) and evaluations >= 1
    assert names.cubic_interpolate(0.0, 9.0, -6.0, 4.0, 1.0, 2.0) == pytest.approx(3.0)
    with pytest.raises(ValueError, match="expected the constants"):
        names.strong_wolfe_search(value_and_gradient, x, 1.0, d, value, gradient, slope, c1=0.5)


def test_results_are_unpacked_as_arguments_were_written():
    x = torch.ones(1)
    assert names.as_tuple(x) == (False, (x,))
    assert names.as_tuple((x, x), "inputs", "f")[0]
    with pytest.raises(TypeError, match="inputs given to f"):
        names.as_tuple(3, "inputs", "f")
    rows = ((1, 2), (3, 4))
    assert names.unpacked(rows, (True, True)) == rows
    assert names.unpacked(rows, (False, True)) == (1, 2)
    assert names.unpacked(rows, (True, False)) == (1, 3)
    assert names.unpacked(rows, (False, False)) == 1
    assert names.unpacked((5,), False) == 5
    basis = names.standard_basis((torch.ones(1), torch.ones(2)), (1, 2))
    assert torch.equal(torch.cat(basis, 1), torch.eye(3))
    with pytest.raises(AssertionError, match="numbers of elements"):
        names.standard_basis((x,), (2,))


def test_a_scale_grows_after_good_steps_and_shrinks_after_bad_ones():
    scale, tracker, good = torch.tensor(8.0), torch.tensor(0, dtype=torch.int32), torch.tensor(0.0)
    names.update_scale(scale, tracker, good, 2.0, 0.5, 2)
    assert (float(scale), int(tracker)) == (8.0, 1)
    names.update_scale(scale, tracker, good, 2.0, 0.5, 2)
    assert (float(scale), int(tracker)) == (16.0, 0)
    names.update_scale(scale, tracker, torch.tensor(1.0), 2.0, 0.5, 2)
    assert (float(scale), int(tracker)) == (8.0, 0)
    scale.fill_(3e38)
    for _ in range(2):
        names.update_scale(scale, tracker, good, 2.0, 0.5, 2)
    assert float(scale) == pytest.approx(3e38)  # larger than that is not a number to scale by


def test_weights_in_eight_bits():
    x, w, scales = torch.randn(3, 4), torch.randint(-8, 8, (2, 4), dtype=torch.int8), torch.tensor([0.5, 2.0])
    assert torch.allclose(names.int8_matmul(x, w, scales), x @ (w.float() * scales[:, None]).T)
    with pytest.raises(RuntimeError, match="expected a weight of int8"):
        names.int8_matmul(x, w.float(), scales)


def test_small_ones():
    with socket.socket() as s:
        s.bind(("localhost", names.free_port()))
    assert names.fresh_scaler_state()["found_inf_per_device"] == {}
    assert names.set_vital("Dataloader", "enabled", "True") is False
    with pytest.raises(TypeError, match="none can be made"):
        names.ScriptMethod()
    assert "nn" in names.PUBLIC and "Tensor" in names.PUBLIC and not any(n.startswith("_") for n in names.PUBLIC)
    assert all(callable(getattr(torch, name)) for name in names.FUNCTIONAL)


def test_no_module_has_a_composable_state():
    assert names.module_state(torch.nn.Linear(1, 1)) is None
    assert issubclass(names.FlatShardState, names.ModuleState)


def test_named_inputs_in_pieces():
    pieces = torch.nn.parallel.scatter_kwargs((torch.arange(4.0),), {"a": 1}, ["cpu", "cpu"])
    assert [p[0].tolist() for p in pieces[0]] == [[0, 1], [2, 3]] and pieces[1] == ({"a": 1}, {"a": 1})
    assert torch.nn.parallel.scatter_kwargs((), {"a": 1}, ["cpu"]) == (((),), ({"a": 1},))
