"""Numbers beside tensors of integers: which wrap and which are refused, wherever a call is run."""

from __future__ import annotations

import math
import warnings

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.ops.family.operands import operand_mask
from pullback.ops.system.dispatch import dispatch
from tests.ops.checks import results
from tests.ops.test_dtypes import PARTS, REFUSALS, first_sample
from tests.ops.test_table import TABLE

WORDS = {
    torch.uint8: "uint8_t",
    torch.int8: "int8_t",
    torch.int16: "int16_t",
    torch.int32: "int",
    torch.int64: "int64_t",
}
BEYOND = {
    torch.uint8: (256, -256),
    torch.int8: (300, -129),
    torch.int16: (2**40,),
    torch.int32: (2**31, -(2**40)),
    torch.int64: (2**63,),
}
FACTORS = {  # of products, and numbers that take the place of elements
    "add": lambda x, v: torch.add(x, x, alpha=v),
    "sub": lambda x, v: torch.sub(x, x, alpha=-v),
    "rsub": lambda x, v: torch.rsub(x, x, alpha=-v),
    "addcmul": lambda x, v: torch.addcmul(x, x, x, value=v),
    "index_add": lambda x, v: x.index_add(0, torch.tensor([0]), x[:1], alpha=v),
    "where": lambda x, v: torch.where(x > 0, x, v),
    "where, the other": lambda x, v: torch.where(x > 0, v, x),
    "threshold": lambda x, v: F.threshold(x, 0, v),
    "threshold, its place": lambda x, v: F.threshold(x, v, 0),
    "fill": torch.fill,
    "pad": lambda x, v: torch.constant_pad_nd(x, (1, 1), v),
}
WRITTEN = {
    "add": lambda x, v: x.add_(x, alpha=v),
    "addcmul": lambda x, v: x.addcmul_(x, x, value=v),
    "index_add": lambda x, v: x.index_add_(0, torch.tensor([0]), x[:1].clone(), alpha=v),
    "threshold": lambda x, v: F.threshold_(x, 0, v),
    "pow": lambda x, v: x.pow_(abs(v)),
    "add into": lambda x, v: torch.add(x, x, alpha=v, out=torch.empty_like(x)),
    "where into": lambda x, v: torch.where(x > 0, x, v, out=torch.empty_like(x)),
}


def refusal(d) -> str:
    return f"value cannot be converted to type {WORDS[d]} without overflow"


@pytest.mark.parametrize("d", WORDS, ids=lambda d: str(d).removeprefix("torch."))
@pytest.mark.parametrize("name", [*FACTORS, *(f"{n} in place" for n in WRITTEN)])
def test_numbers_that_do_not_fit_are_refused_and_write_nothing(name, d):
    f = FACTORS.get(name) or WRITTEN[name.removesuffix(" in place")]
    for v in BEYOND[d]:
        x = torch.tensor([3, 2, 0]).to(d)
        if v == 2**63 and name in ("sub", "rsub"):
            continue  # the negative number fits
        with pytest.raises(RuntimeError, match=refusal(d)):
            f(x, v)
        assert x.tolist() == [3, 2, 0]


@pytest.mark.parametrize("name", FACTORS)
def test_batches_programs_and_tensors_without_data_refuse_them_too(name):
    f, x = FACTORS[name], torch.tensor([3, -3, 0], dtype=torch.int8)
    with pytest.raises(RuntimeError, match=refusal(torch.int8)):
        torch.func.vmap(lambda t: f(t, 300))(x[None])
    with pytest.raises(RuntimeError, match=refusal(torch.int8)):
        torch.compile(lambda t: f(t, 300))(x)
    if name != "index_add":  # whose index has data
        with pytest.raises(RuntimeError, match=refusal(torch.int8)):
            f(x.to("meta"), 300)


def test_what_fits_is_taken_and_negative_integers_wrap_in_unsigned_types():
    x, short = torch.tensor([3, 2, 0], dtype=torch.uint8), torch.tensor([1, -1], dtype=torch.int8)
    assert torch.add(x, x, alpha=255).tolist() == [0, 0, 0]
    assert torch.add(x, x, alpha=-255).tolist() == [6, 4, 0]
    assert torch.sub(short, short, alpha=128).tolist() == [-127, 127]  # as -128 does
    assert torch.fill(x, -1).tolist() == [255, 255, 255]
    assert torch.constant_pad_nd(x, (1, 0), -129).tolist() == [127, 3, 2, 0]
    assert torch.where(x > 0, x, -1).tolist() == [3, 2, 255]
    assert torch.linspace(-1, 3, 3, dtype=torch.uint8).tolist() == [255, 129, 3]
    assert torch.add(x > 0, x > 0, alpha=300).tolist() == [True, True, False]


def test_floats_never_wrap():
    x = torch.tensor([3, 2, 0], dtype=torch.uint8)
    for v in (-1.0, -0.5, 300.7, math.inf, math.nan):
        for f in (torch.fill, torch.full_like, lambda t, v: t.fill_(v), lambda t, v: F.pad(t, (1, 0), value=v)):
            with pytest.raises(RuntimeError, match=refusal(torch.uint8)):
                f(x, v)
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8 without overflow"):
            torch.tensor([2.0, v], dtype=torch.uint8)
    with pytest.raises(RuntimeError, match=refusal(torch.uint8)):
        F.pad(x, (1, 0), value=-1)  # a float by its schema
    with pytest.raises(RuntimeError, match="type int64 without overflow"):
        torch.tensor([math.nan], dtype=torch.int64)
    assert torch.tensor([2.7, -2.7], dtype=torch.int8).tolist() == [2, -2]


UNREAD = ("_segment_reduce_backward", "rrelu_with_noise_backward")  # backwards of functions that integers do not have
LISTS = (
    "_foreach_add.Scalar",
    "_foreach_sub.Scalar",
    "_foreach_mul.Scalar",
    "_foreach_pow.ScalarAndTensor",
)  # operands


def _outcome(op, args, at: int, value):
    args = list(args)
    args[at] = value
    try:
        return results(dispatch(op, tuple(args)))
    except REFUSALS as error:
        return f"{type(error).__name__}: {error}"


def wraps(op, at: int) -> bool:
    """Whether a number is an operand as a tensor is, which wraps, and no factor or limit."""
    if op in [TABLE[key] for key in LISTS]:
        return True
    declared = op.declared
    mask = operand_mask(op) if hasattr(declared, "operands") else ()
    return bool(mask) and mask[at] and op.schema.arguments[at].name not in declared.fitting


@pytest.mark.parametrize("d", [torch.int8, torch.int32], ids=str)
def test_every_number_of_the_table_is_refused_or_wraps_as_operands_do(d):
    value, wrapped = (300, 44) if d is torch.int8 else (2**40 + 7, 7)
    wrong, seen = [], 0
    for key, op in sorted((k, op) for k, op in TABLE.items() if k not in (*PARTS, *UNREAD)):
        args = first_sample(key, d)
        for at, argument in enumerate(op.schema.arguments if args else ()):
            if str(argument.type).removesuffix("?") != "Scalar" or isinstance(_outcome(op, args, at, 1), str):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found, expected = _outcome(op, args, at, value), _outcome(op, args, at, wrapped)
            seen += 1
            if isinstance(found, str) or isinstance(expected, str):
                fine = found == expected or not wraps(op, at) and "without overflow" in found
            else:
                floats = all(t.dtype.is_floating_point for t in found)
                same = all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
                fine = floats or same and wraps(op, at)
            if not fine:
                wrong.append(f"{key}, {argument.name}: {found}, wrapped {expected}")
    assert seen > 30 and not wrong, "\n".join(wrong)
