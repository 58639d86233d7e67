"""`assert_close`, `make_tensor`, `FileCheck`: what they accept, and the words for what they do not."""

import numpy as np
import pytest

import pullback as torch
from pullback.testing import FileCheck, assert_allclose, assert_close, make_tensor
from pullback.testing.comparison import same

T = torch.tensor


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (T([1.0, 2.0]), T([1.0, 2.0 + 1e-6]), {}),
        (1.0, 1.0 + 1e-9, {}),
        (np.array([1.0]), np.array([1.0]), {}),
        ([T(1), {"a": (None, True)}], [T(1), {"a": (None, True)}], {}),
        (T([float("nan")]), T([float("nan")]), dict(equal_nan=True)),
        (T([1, 2]), T([1.0, 2.0]), dict(check_dtype=False)),
        (T([1.0]), T([1.5]), dict(rtol=0, atol=0.5)),
    ],
)
def test_close(actual, expected, options):
    assert_close(actual, expected, **options)


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        (
            T([1.0, 2.0, 3.0]), T([1.0, 2.0, 4.0]),
            "Tensor-likes are not close!\n\nMismatched elements: 1 / 3 (33.3%)\nGreatest absolute difference: 1.0 at index "
            "(2,) (up to 1e-05 allowed)\nGreatest relative difference: 0.25 at index (2,) (up to 1.3e-06 allowed)",
        ),
        (
            T([1, 2]), T([1, 3]),
            "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\nGreatest absolute difference: 1 at index "
            "(1,)\nGreatest relative difference: 0.3333333432674408 at index (1,)",
        ),
        (
            1.0, 2.0,
            "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0 (up to 1e-07 allowed)\n"
            "Relative difference: 0.5 (up to 1e-07 allowed)",
        ),
        (T([1.0]), T([1.0, 2.0]), "The values for attribute 'shape' do not match: torch.Size([1]) != torch.Size([2])."),
        (T([1.0]), T([1]), "The values for attribute 'dtype' do not match: torch.float32 != torch.int64."),
        ([1, 2], [1], "The length of the sequences mismatch: 2 != 1"),
        ({"a": 1}, {"b": 1}, "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\n"
                             "Additional keys in the actual mapping: ['a']"),
        (None, 1, "None mismatch: None is not 1"),
        (True, False, "Booleans mismatch: True is not False"),
        ([{"k": [1]}], [{"k": [2]}],
            "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5\n\n"
            "The failure occurred for item [0]['k'][0]"),
    ],
)  # fmt: skip
def test_not_close(actual, expected, words):
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected)
    assert str(caught.value) == words


def test_messages_and_misuse():
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match="^Note: Scalars"):
        assert_close(1, 2, msg=lambda words: f"Note: {words}")
    with pytest.raises(ValueError, match="Both 'rtol' and 'atol'"):
        assert_close(1, 2, rtol=1)
    with pytest.raises(TypeError, match="No comparison pair was able to handle"):
        assert_close("a", "b")
    with pytest.warns(FutureWarning), pytest.raises(AssertionError):
        assert_allclose(T([1.0]), [1.1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64])  # fmt: skip
def test_make_tensor(dtype):
    result = make_tensor(3, 4, dtype=dtype, device="cpu", low=0, high=2)
    assert result.shape == (3, 4) and result.dtype is dtype
    real = torch.view_as_real(result) if dtype.is_complex else result
    assert real.double().min() >= 0 and real.double().max() <= 2
    apart = make_tensor((2, 3), dtype=dtype, device="cpu", noncontiguous=True)
    assert not apart.is_contiguous() and apart.shape == (2, 3)
    assert not (make_tensor(50, dtype=dtype, device="cpu", low=0, high=2, exclude_zero=True) == 0).any()


def test_make_tensor_refusals():
    with pytest.raises(ValueError, match="`low` must be less than `high`"):
        make_tensor(1, dtype=torch.float32, device="cpu", low=2, high=1)
    with pytest.raises(ValueError, match="only supports"):
        make_tensor(1, dtype=torch.uint8, device="cpu", low=-3, high=-1)
    with pytest.raises(ValueError, match="not supported for boolean and integral"):
        make_tensor(1, dtype=torch.int64, device="cpu", requires_grad=True)


def test_filecheck():
    FileCheck().check("a").check_not("x").check("c").check_next("d").run("a b c\nd")
    FileCheck().check_dag("b").check_dag("a").check_count("c", 2, exactly=True).check_regex("d+e").run("a b c c dde")
    with pytest.raises(RuntimeError, match='Expected to find "z" but did not find it'):
        FileCheck().check("z").run("abc")
    with pytest.raises(RuntimeError, match='Expected to not find "b" but found it'):
        FileCheck().check("a").check_not("b").check("c").run("abc")
    with pytest.raises(RuntimeError, match='Expected to not find "a" but found it'):
        FileCheck().check_count("a", 2, exactly=True).run("aaa")


def test_same_compares_structure_kind_and_value() -> None:
    class Box:
        def __init__(self, value) -> None:
            self.value = value

    ref = {"a": [torch.ones(2), 3, None], "b": Box(torch.zeros(1))}
    assert same(ref, {"a": [torch.ones(2) + 1e-6, 3, None], "b": Box(torch.zeros(1))})
    assert not same(ref, {"a": [torch.ones(2), 3, None], "b": Box(torch.ones(1))})
    assert not same(torch.ones(2), torch.ones(2, dtype=torch.float64))
    assert same(torch.ones(2), torch.ones(2, dtype=torch.float64), exact_dtype=False)
    assert not same([1, 2], [1]) and not same(torch.ones(2), torch.ones(3)) and not same({"a": 1}, {"b": 1})
    assert not same(float("nan"), float("nan")) and same(float("nan"), float("nan"), equal_nan=True)
