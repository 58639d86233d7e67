"""Backends that count and keep graphs, and classes of tests made with other settings."""

import unittest

import pytest

import pullback as torch
from pullback.capture.front.config import config
from pullback.compat import recording_backends as recording


def test_counters_count_graphs_and_calls():
    counter = recording.CompileCounter()
    compiled = torch.compile(lambda x: x.sin() + 1, backend=counter)
    for size in (2, 2, 3):
        compiled(torch.ones(size))
    assert (counter.frame_count, counter.op_count) == (2, 4)
    counter.clear()
    assert (counter.frame_count, counter.op_count) == (0, 0)


def test_a_counter_runs_what_another_backend_made_and_keeps_the_graphs():
    counter = recording.CompileCounterWithBackend("aot_eager")
    x = torch.ones(3, requires_grad=True)
    torch.compile(lambda x: (x * x).sum(), backend=counter)(x).backward()
    assert (counter.frame_count, counter.op_count, len(counter.graphs)) == (1, 2, 1)
    assert x.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("kind", [recording.AotEagerAndRecordGraphs, recording.InductorAndRecordGraphs])
def test_graphs_of_forward_and_backward_are_kept(kind):
    backend, x = kind(), torch.ones(3, requires_grad=True)
    torch.compile(lambda x: x.exp().sum(), backend=backend)(x).backward()
    assert [len(kept) for kept in (backend.graphs, backend.fw_graphs, backend.bw_graphs)] == [1, 1, 1]
    assert any("exp" in str(node.target) for node in backend.fw_graphs[0].graph.nodes)
    torch.testing.assert_close(x.grad, torch.full((3,), 2.718281828))


def test_texts_of_graphs_without_what_changes():
    assert recording.normalize_gm("a = 1  # /home/x.py:3\n\n\nb = 2   \n") == "a = 1\nb = 2\n"


def test_random_tensors_lie_as_asked():
    x = recording.rand_strided((2, 3), (1, 4), torch.int32, extra_size=5)
    assert x.shape == (2, 3) and x.stride() == (1, 4) and x.dtype is torch.int32
    assert x.untyped_storage().nbytes() == 4 * (1 + 1 + 8 + 5)
    assert recording.rand_strided((0, 3), (3, 1)).numel() == 0
    assert recording.rand_strided((2,), (1,), torch.float8_e4m3fn).dtype is torch.float8_e4m3fn
    with pytest.raises(NotImplementedError, match="XLA"):
        recording.reset_rng_state(use_xla=True)


def test_what_a_training_step_leaves():
    model, x = torch.nn.Linear(2, 1), torch.ones(1, 2, requires_grad=True)
    out = {"a": model(x)}
    loss = recording.reduce_to_scalar_loss(out)
    assert recording.requires_bwd_pass(out) and not recording.requires_bwd_pass([torch.ones(1)])
    loss.backward()
    results = recording.collect_results(model, out, loss, [x])
    assert results[0] is out and results[1] is loss
    assert (
        set(results[2]) == {"weight.grad", "bias.grad"} and set(results[3]) == {"weight", "bias"} and results[4] == {}
    )
    assert torch.equal(results[5], model.weight)
    with pytest.raises(NotImplementedError, match="reduce <class 'str'>"):
        recording.reduce_to_scalar_loss("a")


class _Cases(unittest.TestCase):
    __test__ = False  # for pytest, which would run it too
    seen: list = []

    def setUp(self):
        super().setUp()
        self.ready = True

    def test_sizes(self):
        self.seen.append((self.ready, config.assume_static_by_default))

    @recording.expectedFailureDynamic
    def test_that_fails_with_dynamic_sizes(self):
        self.assertTrue(config.assume_static_by_default)


def test_classes_of_tests_run_again_with_other_settings():
    patch = (config, "assume_static_by_default", False)
    made = recording.make_test_cls_with_patches(
        _Cases, "Dynamic", "_dynamic", patch, xfail_prop="_expected_failure_dynamic"
    )
    _Cases.seen.clear()
    result = unittest.TestResult()
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(made)
    tests.run(result)
    assert made.__name__ == "Dynamic_Cases" and tests.countTestCases() == 2
    assert result.wasSuccessful() and len(result.expectedFailures) == 1
    assert _Cases.seen == [(True, False)] and config.assume_static_by_default


def test_a_function_is_held_to_its_calls():
    case = unittest.TestCase()
    recording.standard_test(case, lambda a, b: a.sin() + b, 2, expected_ops=2)
    with pytest.raises(AssertionError):
        recording.standard_test(case, lambda a: a.sin() + 1, 1, expected_ops=1)
