"""`torch.utils.flop_counter` and `module_tracker`: counts as PyTorch's."""

import pytest

import pullback as torch
from pullback.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula, sdpa_flop_count
from pullback.utils.module_tracker import ModuleTracker


def by_name(counter: FlopCounterMode) -> dict:
    return {name: {str(op): n for op, n in counts.items()} for name, counts in counter.get_flop_counts().items()}


def test_modules_in_forward_and_backward():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 5))
    with FlopCounterMode(display=False) as counter:
        model(torch.randn(2, 3, 8, 8)).sum().backward()
    convolutions = {"aten.convolution": 15552, "aten.convolution_backward": 15552}
    products = {"aten.addmm": 2880, "aten.mm": 5760}
    assert counter.get_total_flops() == 39744
    assert by_name(counter) == {
        "Global": convolutions | products,
        "Sequential": convolutions | products,
        "Sequential.0": convolutions,
        "Sequential.2": products,
    }


@pytest.mark.parametrize(
    ("function", "x", "w", "groups", "expected"),
    [("conv_transpose2d", (2, 4, 5, 5), (4, 3, 3, 3), 1, 32400), ("conv2d", (2, 4, 5, 5), (6, 2, 3, 3), 2, 15552)],
)
def test_convolutions(function, x, w, groups, expected):
    x, w = torch.randn(x, requires_grad=True), torch.randn(w, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        getattr(torch.nn.functional, function)(x, w, groups=groups).sum().backward()
    assert counter.get_total_flops() == expected


def test_products_in_batches():
    with FlopCounterMode(display=False) as counter:
        torch.einsum("bij,bjk->bik", torch.randn(2, 3, 4), torch.randn(2, 4, 5))
    assert counter.get_total_flops() == 240


def test_own_formulas():
    own = {torch.ops.aten.relu: lambda shape, out_shape=None: shape[0] * out_shape[0]}
    with FlopCounterMode(display=False, custom_mapping=own) as counter:
        torch.relu(torch.randn(3))
    assert counter.get_total_flops() == 9
    with pytest.raises(RuntimeError, match="duplicate registrations for aten.mm"):
        register_flop_formula(torch.ops.aten.mm)(lambda *shapes, **kwargs: 0)
    assert torch.ops.aten.relu not in flop_registry


def test_a_table_is_printed(capsys):
    with FlopCounterMode(depth=1):
        torch.nn.Sequential(torch.nn.Linear(10, 100))(torch.randn(3, 10))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[2:4]] == [
        ["Global", "6000.000", "100.00%"],
        ["-", "aten.addmm", "6000.000", "100.00%"],
    ]
    assert not any("Sequential.0" in line for line in lines)


def test_parents_of_a_backward_end_with_it():
    seen = []

    class Spy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append((set(tracker.parents), tracker.is_bw))
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append((set(tracker.parents), tracker.is_bw))
            return grad

    class Inner(torch.nn.Module):
        def forward(self, x):
            return Spy.apply(x)

    with ModuleTracker() as tracker:
        torch.nn.Sequential(Inner())(torch.ones(2, requires_grad=True)).sum().backward()
        assert (tracker.parents, tracker.is_bw) == ({"Global"}, False)
    inside = {"Global", "Sequential", "Sequential.0"}
    assert seen == [(inside, False), (inside, True)]


def test_modules_in_containers_have_their_place_in_the_name():
    seen = []

    class Inner(torch.nn.Module):
        def forward(self, x):
            seen.append(set(tracker.parents))
            return x * 2

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([Inner()])

        def forward(self, x):
            return self.layers[0](x)

    with ModuleTracker() as tracker:
        Net()(torch.ones(2))
    assert seen == [{"Global", "Net", "Net.layers.0"}]


def test_heads_that_share_keys_and_what_is_refused():
    q = (2, 32, 8, 4)
    assert sdpa_flop_count(q, (2, 8, 6, 4), (2, 8, 6, 5)) == sdpa_flop_count(q, (2, 32, 6, 4), (2, 32, 6, 5))
    with pytest.raises(AssertionError, match="must be a multiple"):
        sdpa_flop_count(q, (2, 5, 6, 4), (2, 5, 6, 4))
    for k, v in (((1, 8, 6, 4), (1, 8, 6, 4)), ((2, 8, 6, 4), (2, 8, 7, 4)), ((2, 8, 6, 3), (2, 8, 6, 4))):
        with pytest.raises(AssertionError, match="incompatible"):
            sdpa_flop_count(q, k, v)
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        register_flop_formula(torch.ops.aten.sin.default)(len)
    with pytest.warns(UserWarning, match="not needed"):
        FlopCounterMode(torch.nn.Linear(2, 2))
