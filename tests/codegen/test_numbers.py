"""Numbers that change from call to call are read by native code: they are no reason for another program, and round as constants do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
from pullback.codegen import Native
from pullback.runtime.build import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)


def agree(f, calls: list[tuple], exactly: bool = False) -> None:
    compiled = torch.compile(f)
    for arguments in calls:
        got, want = compiled(*arguments), f(*arguments)
        if exactly:
            assert torch.equal(got, want), arguments[1:]
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.1, amsgrad=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.5, centered=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "Adadelta": lambda p: torch.optim.Adadelta(p),
    "Adamax": lambda p: torch.optim.Adamax(p),
    "Rprop": lambda p: torch.optim.Rprop(p),
}


def trained(name: str, whole: bool, made: list[Native]) -> tuple[list, list[int]]:
    """What some steps give and leave behind, and how many programs there were after each."""
    torch.manual_seed(0)
    model = torch.nn.Linear(5, 3, dtype=torch.float64)
    data = torch.randn(6, 4, 5, dtype=torch.float64)
    optimizer = OPTIMIZERS[name](model.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)

    def step(k: int):
        optimizer.zero_grad()
        loss = model(data[k % 6]).square().sum() * (k + 1)
        loss.backward()
        optimizer.step()
        return loss

    run = torch.compile(step) if whole else step
    losses, programs = [], []
    for k in range(16):
        losses.append(run(k).detach())
        schedule.step()
        programs.append(len(made))
    return [torch.stack(losses), *[p.detach() for p in model.parameters()]], programs


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_another_learning_rate_is_no_other_program(made: list[Native], name: str) -> None:
    want, _ = trained(name, False, made)
    got, programs = trained(name, True, made)
    torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-12)
    assert programs[3] == programs[-1] <= 3


numbers = st.floats(-3, 3, allow_nan=False) | st.sampled_from([1e-30, 1e30, 0.1, 1.0, 0.0])
FUNCTIONS = {
    "factor": lambda x, n: x * n + 1,
    "alpha": lambda x, n: x.add(x, alpha=n),
    "value": lambda x, n: x.addcmul(x, x, value=n).addcdiv(x, x * x + 1, value=-n),
    "arithmetic": lambda x, n: x * (1 - n) + n / 2,
    "both sides": lambda x, n: n - (n * 0.5) * x,
    "masks": lambda x, n: torch.where(x > n, x, n) + x.masked_fill(x < n, n),
    "bounds": lambda x, n: x.clamp(max=n),
    "told apart": lambda x, n: x.lerp(x * 2, n),
    "beside numbers of its kind": lambda x, n: (x.sum() * n) + x.mean() / (n + 7),
}


@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=4)
@given(ns=st.lists(numbers, min_size=3, max_size=5, unique=True))
def test_a_number_rounds_as_a_constant_does(name: str, kind: str, ns: list[float]) -> None:
    torch.manual_seed(0)
    x = torch.randn(7, dtype=getattr(torch, kind))
    f = FUNCTIONS[name]
    torch.use_deterministic_algorithms(True)
    try:
        compiled = torch.compile(lambda x, n: f(x, n))
        for n in ns:
            try:
                want = f(x, n)
            except RuntimeError as error:  # a number that the dtype does not hold
                with pytest.raises(RuntimeError, match=str(error)):
                    compiled(x, n)
                continue
            got = compiled(x, n)
            assert got.dtype is want.dtype
            assert torch.equal(got.nan_to_num(7), want.nan_to_num(7)), n
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8", "bool", "float32", "float16", "complex64"])
def test_integers_take_the_dtype_of_what_they_meet(kind: str) -> None:
    x = torch.tensor([0, 1, 3, 100]).to(getattr(torch, kind))
    calls = [(x, n) for n in (2, 3, 5, -7, 200, 2**40, 0)]
    if kind == "uint8":
        calls = [(x, n) for n in (2, 3, 5, 7)]
    compiled = torch.compile(lambda x, n: (x * n + 1, x + n / 4))
    for x, n in calls:
        for got, want in zip(compiled(x, n), (x * n + 1, x + n / 4), strict=True):
            assert got.dtype is want.dtype
            torch.testing.assert_close(got, want)


def test_integers_beyond_64_bits_are_what_they_are_eagerly() -> None:
    f = torch.compile(lambda x, n: x * n)
    x = torch.ones(3)
    for n in (2, 3, 4, 2**70):
        assert f(x, n).tolist() == [float(n)] * 3


def test_a_number_that_an_operator_tells_apart_is_a_constant(made: list[Native]) -> None:
    agree(lambda x, n: x.lerp(x.flip(0), n), [(torch.randn(5), n) for n in (0.1, 0.2, 0.7, 0.9)])
    assert all(p.native for p in made)


def test_places_that_numbers_say_are_views(made: list[Native]) -> None:
    data = torch.randn(9, 4, 3)
    agree(lambda x, k: x[k % 9].sin().sum() + (x.select(1, k % 4) * k).sum(), [(data, k) for k in range(12)])
    assert len(made) <= 3


def test_what_is_picked_from_an_argument_that_is_written_is_the_old_value() -> None:
    def f(x, k, n):
        picked = x[k % 3]
        x.mul_(n)
        return picked * 1 + x[(k + 1) % 3]

    here, there = torch.randn(3, 4), torch.zeros(3, 4)
    there.copy_(here)
    compiled = torch.compile(f)
    for k in range(6):
        torch.testing.assert_close(compiled(there, k, 0.5 + k), f(here, k, 0.5 + k))
        torch.testing.assert_close(there, here)


def test_numbers_beside_operators_without_loops(made: list[Native]) -> None:
    agree(lambda x, n: (x * n).topk(2)[0] * (n + 1), [(torch.randn(6), n) for n in (0.5, 1.5, 2.5, 3.5)])
    assert len(made) <= 3


def test_numbers_beside_sizes(made: list[Native]) -> None:
    torch.manual_seed(0)
    agree(lambda x, n: (x * n).sum(0) / x.shape[0], [(torch.randn(2 + k % 3, 4), 0.5 + k) for k in range(9)])
    assert len(made) <= 5


def test_numbers_come_out_as_numbers() -> None:
    f = torch.compile(lambda x, n: (x * n, n * 2))
    for n in (0.5, 1.5, 2.5):
        got, number = f(torch.ones(2), n)
        assert got.tolist() == [n, n] and type(number) is float and number == 2 * n


def test_gradients_pass_numbers() -> None:
    f = torch.compile(lambda x, n: (x * x * n).sum())
    for n in (0.5, 1.5, 2.5, 3.5):
        x = torch.ones(3, requires_grad=True)
        f(x, n).backward()
        assert x.grad.tolist() == [2 * n] * 3
