"""Test cases that compare tensors, and tests with parameters."""

import unittest

import numpy as np
import pytest

import pullback as torch
from pullback.compat import unittest_cases as cases


class _Case(cases.TestCase):
    __test__ = False  # for pytest, which would run it too

    def runTest(self):
        pass


@pytest.mark.parametrize(
    "x, y",
    [
        (torch.ones(2), torch.ones(2) + 1e-7),
        (torch.ones(2), np.ones(2, np.float32)),
        (torch.tensor(2.0), 2),
        ([1.0, {"a": torch.ones(1)}], [1.0 + 1e-9, {"a": torch.ones(1)}]),
        (float("nan"), float("nan")),
        ("a", "a"),
        (True, True),
        (torch.float32, torch.float32),
    ],
)
def test_equal_values(x, y):
    _Case().assertEqual(x, y)
    with pytest.raises(AssertionError):
        _Case().assertNotEqual(x, y)


@pytest.mark.parametrize(
    "x, y",
    [
        (torch.ones(2), torch.ones(2) + 1e-3),
        (torch.ones(2), torch.ones(2, dtype=torch.float64)),
        (torch.ones(2), torch.ones(3)),
        (torch.ones(2), "a"),
        ([1, 2], [1, 2, 3]),
        ({"a": 1}, {"b": 1}),
        ({"a": torch.ones(1)}, {"a": torch.zeros(1)}),
        (1.0, 1.1),
        (True, False),
        ("a", "b"),
    ],
)
def test_values_that_differ(x, y):
    with pytest.raises(AssertionError, match="said by the test"):
        _Case().assertEqual(x, y, "said by the test")
    _Case().assertNotEqual(x, y)


def test_tolerances_and_dtypes_are_the_callers():
    _Case().assertEqual(torch.ones(2), torch.ones(2) + 0.1, atol=0.2, rtol=0)
    _Case().assertEqual(torch.ones(2), torch.ones(2, dtype=torch.float64), exact_dtype=False)
    with pytest.raises(AssertionError):
        _Case().assertEqual(torch.tensor(float("nan")), torch.tensor(float("nan")), equal_nan=False)
    with pytest.raises(AssertionError):
        _Case().assertEqual(torch.ones(2, 3), torch.ones(3, 2).T, exact_stride=True)


@cases.instantiate_parametrized_tests
class _Parametrized(cases.CompiledTestCase):
    __test__ = False
    seen: list = []

    @cases.parametrize("a, b", [(1, 2), cases.subtest((3, 4), name="large", decorators=[unittest.skip("too large")])])
    @cases.parametrize("dtype", [torch.float32, torch.int64], name_fn=lambda d: f"of_{d.itemsize}_bytes")
    def test_sums(self, a, b, dtype):
        self.seen.append(torch.full((1,), a, dtype=dtype).item() + b)


def test_a_test_for_each_choice_of_parameters():
    result = unittest.TestResult()
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(_Parametrized)
    names = sorted(test.id().rpartition(".")[2] for test in suite)
    assert names == [f"test_sums_{ab}_of_{n}_bytes" for ab in ("a_1_b_2", "large") for n in (4, 8)]
    suite.run(result)
    assert result.wasSuccessful() and len(result.skipped) == 2 and _Parametrized.seen == [3, 3]


def test_wrong_parameters():
    with pytest.raises(RuntimeError, match="got: 3 values and 2 names"):
        cases.parametrize("a,b", [(1, 2, 3)])
    with pytest.raises(ValueError, match="names no argument"):
        cases.parametrize("", [1])


def test_states_are_put_back():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    with cases.freeze_rng_state():
        torch.rand(5)
    assert torch.equal(torch.rand(3), expected)
    with cases.default_dtype(torch.float64):
        assert torch.ones(1).dtype is torch.float64
    assert torch.ones(1).dtype is torch.float32


def test_tensors_with_gaps():
    x = torch.rand(2, 3, requires_grad=True)
    y = cases.noncontiguous_like(x)
    assert torch.equal(x, y) and not y.is_contiguous() and y.requires_grad and y.is_leaf
    assert cases.noncontiguous_like(y) is y


def test_tests_that_need_what_is_not_installed(capsys):
    cases.run_compiled_tests(needs="no_such_package")
    assert "not installed: no_such_package" in capsys.readouterr().err
