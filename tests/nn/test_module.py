"""Modules: attributes and registration, walking, conversion, copies, printing."""

import copy
import pickle

import pytest

import pullback as torch
from pullback import nn


def test_assignment_registers():
    m = nn.Module()
    m.p = nn.Parameter(torch.ones(2))
    m.b = nn.Buffer(torch.zeros(2), persistent=False)
    m.child = nn.ReLU()
    m.plain = 3
    assert [list(m._parameters), list(m._buffers), list(m._modules)] == [["p"], ["b"], ["child"]]
    assert list(m.state_dict()) == ["p"] and m.plain == 3 and "p" in dir(m)
    m.p = None
    m.b = torch.ones(2)
    del m.child
    assert m.p is None and m.b.sum() == 2 and not hasattr(m, "child")
    m.plain = nn.Linear(1, 1)
    assert "plain" in m._modules and "plain" not in m.__dict__


@pytest.mark.parametrize(
    "act, error, words",
    [
        (
            lambda: setattr(nn.Linear(2, 2), "weight", torch.ones(2, 2)),
            TypeError,
            "cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)",
        ),
        (
            lambda: setattr(nn.BatchNorm1d(2), "running_mean", 3),
            TypeError,
            "cannot assign 'int' as buffer 'running_mean' (torch.nn.Buffer, torch.Tensor or None expected)",
        ),
        (
            lambda: setattr(nn.Sequential(nn.ReLU()), "0", 3),
            TypeError,
            "cannot assign 'int' as child module '0' (torch.nn.Module or None expected)",
        ),
        (lambda: nn.Linear(2, 2).foo, AttributeError, "'Linear' object has no attribute 'foo'"),
        (lambda: nn.Module().register_buffer("a.b", None), KeyError, "'buffer name can\\'t contain \".\"'"),
        (lambda: nn.Linear(2, 2).register_buffer("weight", None), KeyError, "\"attribute 'weight' already exists\""),
        (lambda: nn.Module().add_module("a", 3), TypeError, "int is not a Module subclass"),
        (lambda: nn.Module()(3), NotImplementedError, 'Module [Module] is missing the required "forward" function'),
        (lambda: nn.Module(3), TypeError, "Module.__init__() takes 1 positional argument but 2 were given"),
        (lambda: nn.Linear(2, 2).get_submodule("x.y"), AttributeError, "Linear has no attribute `x`"),
        (lambda: nn.Linear(2, 2).train(3), ValueError, "training mode is expected to be boolean"),
        (
            lambda: nn.Linear(2, 2).to(torch.int64),
            TypeError,
            "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.int64",
        ),
    ],
)
def test_refusals(act, error, words):
    with pytest.raises(error) as raised:
        act()
    assert str(raised.value) == words


def test_a_module_must_be_initialized_before_it_is_filled():
    class Hasty(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="cannot assign module before Module.__init__"):
        Hasty()


def test_walking():
    shared = nn.Linear(2, 2)
    m = nn.Sequential(shared, nn.Sequential(nn.BatchNorm1d(2), shared))
    assert [n for n, _ in m.named_parameters()] == ["0.weight", "0.bias", "1.0.weight", "1.0.bias"]
    assert "1.1.weight" in dict(m.named_parameters(remove_duplicate=False))
    assert [n for n, _ in m.named_modules()] == ["", "0", "1", "1.0"]
    assert [n for n, _ in m.named_buffers()] == ["1.0.running_mean", "1.0.running_var", "1.0.num_batches_tracked"]
    assert m.get_submodule("1.0") is m[1][0] and m.get_parameter("1.1.bias") is shared.bias
    seen = []
    m.apply(lambda x: seen.append(type(x).__name__))
    assert seen == ["Linear", "BatchNorm1d", "Linear", "Sequential", "Sequential"]
    m.eval()
    assert not any(x.training for x in m.modules())
    m.set_submodule("1.0", nn.Identity())
    assert isinstance(m[1][0], nn.Identity)


def test_conversion_keeps_parameters_and_their_gradients():
    m = nn.Linear(3, 4)
    weight = m.weight
    m(torch.ones(1, 3)).sum().backward()
    m.double()
    assert m.weight is weight and weight.dtype is torch.float64 and weight.grad.dtype is torch.float64
    assert isinstance(m.to("meta").weight, nn.Parameter) and m.weight is not weight
    assert m.to_empty(device="cpu").weight.shape == (4, 3)


def test_copies_are_independent_and_keep_what_is_shared():
    layer = nn.Linear(3, 3)
    m = nn.Sequential(layer, layer)
    for inplace in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert inplace[0].weight is inplace[1].weight and inplace[0].weight is not layer.weight
        assert torch.equal(inplace[0].weight, layer.weight) and isinstance(inplace[0].weight, nn.Parameter)


def test_zero_grad():
    m = nn.Linear(2, 1)
    m(torch.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert m.weight.grad.abs().sum() == 0
    m.zero_grad()
    assert m.weight.grad is None


def test_printing():
    m = nn.Sequential(nn.Linear(2, 2), nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()]))
    assert repr(m) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=2, bias=True)\n  (1): ModuleList(\n"
        "    (0-1): 2 x ReLU()\n    (2): Tanh()\n  )\n)"
    )
    assert repr(nn.BatchNorm2d(4)) == (
        "BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"
    )


def test_lazy_modules_learn_their_sizes():
    m = nn.Sequential(nn.LazyConv2d(3, 2), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(5))
    assert m[3].has_uninitialized_params() and repr(m[3].weight) == "<UninitializedParameter>"
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        m[3].weight + 1
    assert m(torch.ones(2, 2, 4, 4)).shape == (2, 5)
    assert [type(x) for x in m] == [nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear]
    assert m[3].in_features == 27


def test_buffers_are_recognized():
    assert isinstance(nn.Buffer(torch.ones(1)), nn.Buffer) and not isinstance(torch.ones(1), nn.Buffer)


@pytest.mark.parametrize("seed, first", [(0, -0.0053), (1, 0.3643)])
def test_one_seed_gives_pytorchs_weights(seed, first):
    torch.manual_seed(seed)
    assert abs(nn.Linear(2, 2).weight[0, 0].item() - first) < 1e-3


def test_function_modes_see_how_the_arguments_of_to_are_read():
    class Mode(torch.overrides.TorchFunctionMode):
        names: list = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Mode():
        nn.Linear(1, 1).to(torch.float64)
    assert "_parse_to" in Mode.names
