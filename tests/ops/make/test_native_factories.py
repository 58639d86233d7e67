"""Public factories in C: what they give is what the functions behind them give; what they do not read, they leave to those."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import pullback as torch
from pullback.core import small

if not small.fronts:
    pytest.skip("the extensions are not built", allow_module_level=True)

x32, x64 = torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.float64)
DTYPES = (
    torch.float32,
    torch.float64,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
    torch.complex64,
)
SIZED = [
    ((2, 3), {}),
    (((2, 3),), {}),
    (([4],), {}),
    (((),), {}),
    ((0, 3), {}),
    ((torch.Size([2, 1]),), {}),
    ((), {"size": (2, 5)}),
]
TYPED = [((2, 3), {"dtype": d}) for d in DTYPES]
PLAIN = [
    ((5,), {"device": None, "layout": None, "requires_grad": False, "pin_memory": False, "out": None}),
    ((5,), {"device": torch.device("cpu")}),
]
OF_TENSOR = [((x, *a), k) for x in (x32, x64, torch.zeros(1, dtype=torch.bool)) for a, k in (*SIZED, *TYPED)]
SIZES = ((7,), (2, 8), (3, 11), (70, 3))
CALLS = {
    "torch.zeros": [*SIZED, *TYPED, *PLAIN],
    "torch.ones": [*SIZED, *TYPED, *PLAIN],
    "Tensor.new_zeros": OF_TENSOR,
    "Tensor.new_ones": OF_TENSOR,
    "torch.full": [(((2, 3), v), k) for v in (1, 2.5, float("nan")) for k in ({}, {"dtype": torch.float64})]
    + [(((2,), 7), {"dtype": d}) for d in DTYPES[:7]]
    + [(((2,), True), {})],
    "Tensor.new_full": [((x, (2, 3), 2), {}) for x in (x32, x64, x32.to(torch.int8))],
    "torch.arange": [((5,), {}), ((1, 9, 2), {}), ((9, 1, -3), {}), ((0.5, 2, 0.25), {}), ((3, 3), {}), ((7,), {"dtype": torch.float64})],
    "torch.linspace": [((0, 1, n), {}) for n in (0, 1, 2, 5, 64)] + [((3.0, -1, 6), {"dtype": torch.float64})],
    "torch.logspace": [((0, 1, n), {}) for n in (0, 1, 2, 5)] + [((1, 2, 4, 2.0), {"dtype": torch.float64})],
    "torch.eye": [((3,), {}), ((2, 4), {}), ((4, 2), {"dtype": torch.bool}), ((0,), {})],
    "torch.tril_indices": [((3, 4), {}), ((4, 3, -1), {}), ((4, 4, 2), {}), ((2, 2, 9), {}), ((2, 2, -9), {}), ((0, 3), {})],
    "torch.triu_indices": [((3, 4), {}), ((4, 3, -1), {}), ((4, 4, 2), {}), ((2, 2, 9), {}), ((2, 2, -9), {})],
    "torch.rand": [(s, {"dtype": d}) for s in SIZES for d in (torch.float32, torch.float64)] + [((4,), {})],
    "torch.randn": [(s, {"dtype": d}) for s in SIZES for d in (torch.float32, torch.float64)] + [((4,), {})],
    "torch.rand_like": [((x,), {}) for x in (x32, x64)] + [((x32.long(),), {"dtype": torch.float32})],
    "torch.randn_like": [((x,), {}) for x in (x32, x64)],
    "torch.randint": [((9, (3, 4)), {}), ((-3, 4, (5,)), {}), ((1 << 40, (3,)), {}), ((5,), {"size": [2]}), ((0, 5, (3,)), {"dtype": torch.float32})],
    "torch.randperm": [((n,), {}) for n in (2, 9, 40, 3000)],
}  # fmt: skip
LEFT = {  # calls that take more than the functions read
    "torch.zeros": [((2,), {"requires_grad": True}), ((2,), {"device": "meta"}), ((2,), {"dtype": torch.bfloat16}), ((-1,), {}), ((True,), {}), ((2,), {"out": torch.zeros(2)}), ((2,), {"names": ("a",)})],
    "torch.full": [(((2,), 1 << 40), {"dtype": torch.int32}), (((2,), 1.5), {"dtype": torch.int64}), (((2,), 1e300), {"dtype": torch.float32}), ((2, 1.0), {}), (((2,), 1), {"dtype": torch.bool})],
    "Tensor.new_zeros": [((torch.nn.Parameter(x32), 2), {}), ((x32,), {})],
    "torch.arange": [((5, 1), {}), ((1, 5, 0), {}), ((float("inf"),), {}), ((1.5,), {"dtype": torch.int64}), ((1 << 29,), {})],
    "torch.rand": [((2,), {"dtype": torch.float16}), ((2,), {"dtype": torch.int64}), ((0,), {}), ((), {})],
    "torch.rand_like": [((x32[:, ::2],), {}), ((x32.to(torch.bfloat16),), {})],
    "torch.randint": [((5, 5, (2,)), {}), ((300, (2,)), {"dtype": torch.uint8}), ((2.0, (2,)), {}), ((5,), {})],
    "torch.randperm": [((-1,), {}), ((5,), {"dtype": torch.int32}), ((2.0,), {})],
}  # fmt: skip


def public(key: str):
    space, _, name = key.partition(".")
    return getattr(torch.Tensor if space == "Tensor" else torch, name)


@pytest.mark.parametrize("key", sorted(CALLS))
def test_results_are_those_of_the_function_behind(key: str):
    for args, kwargs in CALLS[key]:
        torch.manual_seed(3)
        found, state = small.fronts[key](args, kwargs), torch.get_rng_state()
        torch.manual_seed(3)
        expected = public(key).__wrapped__(*args, **kwargs)
        if expected.numel() == 0 and found is None:
            continue
        assert found is not None, (key, args, kwargs)
        assert (found.dtype, found.shape, found.stride()) == (expected.dtype, expected.shape, expected.stride()), (
            args,
            kwargs,
        )
        np.testing.assert_array_equal(found.numpy(), expected.numpy(), err_msg=f"{key}{args}{kwargs}")
        assert torch.equal(state, torch.get_rng_state()) and not found.requires_grad and found._version == 0


@pytest.mark.parametrize("key", sorted(LEFT))
def test_calls_that_take_more_are_left(key: str):
    for args, kwargs in LEFT[key]:
        assert small.fronts[key](args, kwargs) is None, (args, kwargs)


def test_pairs_of_normal_numbers_wait_for_the_next_call():
    torch.manual_seed(1)
    several = [torch.randn(n) for n in (3, 1, 2)]
    torch.manual_seed(1)
    expected = [torch.randn.__wrapped__(n) for n in (3, 1, 2)]
    assert all(map(torch.equal, several, expected))


def test_numbers_are_drawn_from_the_generator_that_is_named():
    g = torch.Generator().manual_seed(5)
    before = torch.get_rng_state()
    a = torch.rand(20, generator=g)
    assert torch.equal(a, torch.rand.__wrapped__(20, generator=torch.Generator().manual_seed(5)))
    assert torch.equal(before, torch.get_rng_state())
    with pytest.raises(TypeError):
        torch.rand(3, generator="none")


def test_a_generator_that_draws_elsewhere_is_waited_for():
    done = []
    worker = threading.Thread(target=lambda: done.append(torch.rand(4)))
    with torch.default_generator.lock:
        worker.start()
        worker.join(0.05)
        assert not done
    worker.join()
    assert len(done) == 1


def test_default_dtype_and_device_are_read_at_the_call():
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.zeros(2).dtype is torch.rand(2).dtype is torch.linspace(0, 1, 3).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        assert torch.zeros(2).device.type == torch.rand(2).device.type == "meta"


def test_modes_and_transforms_see_the_call():
    class Names(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return function(*args, **(kwargs or {}))

    seen: list = []
    with Names():
        torch.zeros(2), torch.randperm(3)
    assert seen == ["zeros", "randperm"]
    with pytest.raises(RuntimeError, match="randomness"):
        torch.vmap(lambda x: x + torch.rand(2))(torch.zeros(3, 2))


@pytest.mark.parametrize(
    "name, key", [("zeros", "zeros"), ("rand", "rand"), ("new_full", "full"), ("arange", "arange.start_step")]
)
def test_an_override_wins(name: str, key: str):
    call = {
        "zeros": lambda: torch.zeros(2),
        "rand": lambda: torch.rand(2),
        "new_full": lambda: x32.new_full((2,), 1),
        "arange": lambda: torch.arange(2),
    }[name]
    library = torch.library.Library("aten", "IMPL")
    library.impl(key, lambda *args, **kwargs: "overridden", "CPU")
    try:
        assert call() == "overridden"
    finally:
        library._destroy()
    assert isinstance(call(), torch.Tensor)
