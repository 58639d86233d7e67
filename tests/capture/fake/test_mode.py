"""The fake tensor mode: what is made inside it, what refuses, numbers that are known, devices that are not there."""

from __future__ import annotations

import copy
import io
import pickle
import sys

import numpy as np
import pytest

import pullback as torch
from pullback import nn
from pullback.capture.fake.constructors import DEVICE_BY_POSITION, LIKE
from pullback.capture.fake.fast import get_fast_op_impls
from pullback.capture.fake.mode import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorDeviceMismatchError,
    FakeTensorMode,
    UnsupportedOperatorException,
    detect_fake_mode,
    is_fake,
    maybe_get_fake_mode,
    unset_fake_temporarily,
)
from pullback.capture.front.config import ahead
from pullback.ops.family.base import operator
from pullback.ops.system.operator import registry
from pullback.ops.system.overrides import TorchDispatchMode

CONVERT = "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'"


@pytest.fixture
def mode():
    return FakeTensorMode()


@pytest.fixture
def x(mode):
    return mode.from_tensor(torch.ones(2, 3))


# ---- what is made inside
FACTORIES = {
    "empty": lambda: torch.empty(2, 3),
    "zeros on cuda": lambda: torch.zeros(2, 3, device="cuda"),
    "ones of half": lambda: torch.ones(2, 3, dtype=torch.float16),
    "full": lambda: torch.full((2, 3), 7),
    "arange": lambda: torch.arange(6).view(2, 3),
    "linspace": lambda: torch.linspace(0, 1, 6),
    "eye": lambda: torch.eye(3),
    "rand": lambda: torch.rand(2, 3),
    "randint": lambda: torch.randint(0, 5, (2, 3)),
    "randperm": lambda: torch.randperm(6),
    "seeded": lambda: torch.randn(2, 3, generator=torch.Generator().manual_seed(0)),
    "tensor": lambda: torch.tensor([[1.0, 2.0]]),
    "tensor on cuda": lambda: torch.tensor([1, 2], device="cuda"),
    "as_tensor of an array": lambda: torch.as_tensor(np.ones(3)),
    "from_numpy": lambda: torch.from_numpy(np.ones((2, 3), np.int32)),
    "frombuffer": lambda: torch.frombuffer(bytearray(8), dtype=torch.float32),
    "Tensor of sizes": lambda: torch.Tensor(2, 3),
    "Tensor of numbers": lambda: torch.Tensor([2.0, 3.0]),
    "window": lambda: torch.hann_window(5),
    "indices": lambda: torch.tril_indices(3, 3),
    "combinations": lambda: torch.combinations(torch.arange(4)),
    "like": lambda: torch.zeros_like(torch.ones(2, 3, device="cuda")),
    "new": lambda: torch.ones(2, device="cuda").new_empty((3, 4)),
    "parameter": lambda: nn.Linear(2, 3).weight,
}


@pytest.mark.parametrize("name", FACTORIES)
def test_factories_make_fakes(mode, name):
    with mode:
        result = FACTORIES[name]()
    assert isinstance(result, FakeTensor) and result.fake_mode is mode
    if "cuda" not in name and name not in ("like", "new"):
        real = FACTORIES[name]()
        assert (result.shape, result.dtype, result.stride(), result.device, type(result)) == (
            real.shape, real.dtype, real.stride(), real.device, type(real),
        )  # fmt: skip
    else:
        assert result.device == torch.device("cuda", 0)


def test_nothing_is_drawn(mode):
    before = torch.get_rng_state()
    with mode:
        torch.rand(5), torch.empty(3).normal_(), torch.dropout(torch.ones(4), 0.5, True)
    assert torch.equal(torch.get_rng_state(), before)


def test_outside_the_mode_factories_are_real(mode, x):
    with mode:
        pass
    assert not is_fake(torch.ones(2)) and is_fake(x + 1) and is_fake(torch.zeros_like(x)) and is_fake(x.new_ones(3))
    assert is_fake(torch.fft.fft(x, n=7)), "a composite that calls factories"
    with mode, unset_fake_temporarily() as left:
        assert left is mode and not is_fake(torch.ones(2))
    with mode:
        assert is_fake(torch.ones(2))


def test_printing(mode):
    def shown(t):
        return repr(mode.from_tensor(t))

    assert shown(torch.ones(2, 3)) == "FakeTensor(..., size=(2, 3))"
    assert shown(torch.ones((), dtype=torch.int64)) == "FakeTensor(..., size=(), dtype=torch.int64)"
    leaf = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert shown(leaf) == "FakeTensor(..., size=(2,), dtype=torch.float64, requires_grad=True)"
    assert repr(mode.from_tensor(leaf) * 2).endswith("dtype=torch.float64, grad_fn=<MulBackward0>)")
    parameter = nn.Parameter(torch.ones(2))
    assert (
        shown(parameter)
        == str(mode.from_tensor(parameter))
        == "Parameter(FakeTensor(..., size=(2,), requires_grad=True))"
    )
    with mode:
        assert repr(torch.ones(2, device="cuda")) == "FakeTensor(..., device='cuda:0', size=(2,))"
        assert f"{torch.ones(())}" == "FakeTensor(..., size=())"


# ---- writes
def test_writes_are_checked_and_counted(mode, x):
    with mode:
        base = x._version
        x.add_(1), x.copy_(torch.ones(3)), x.fill_(torch.ones(())), x.normal_(), x.zero_()
        assert x._version == base + 5
        with pytest.raises(
            RuntimeError, match=r"output with shape \[2, 3\] doesn't match the broadcast shape \[4, 2, 3\]"
        ):
            x.add_(torch.ones(4, 2, 3))
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            x.copy_(torch.ones(7))
        with pytest.raises(RuntimeError, match="result type Float can't be cast"):
            torch.arange(3).mul_(1.5)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            torch.ones(1).expand(3).add_(1)
        assert x._version == base + 5


def test_indexing(mode, x):
    with mode:
        at = torch.zeros(4, dtype=torch.long)
        assert x[at].shape == (4, 3) and x[:, at].shape == (2, 4) and x[[0, 1, 1]].shape == (3, 3)
        assert x[None, ..., 1].shape == (1, 2) and x[True].shape == (1, 2, 3) and x[torch.tensor(1)]._base is x
        version = x._version
        x[0] = 1.0
        x[at] = torch.ones(3)
        x[x > 0] = 2.0
        x[:, 0] = x[:, 1]
        assert x._version == version + 4
        with pytest.raises(
            RuntimeError, match=r"value tensor of shape \[7\] cannot be broadcast to indexing result of shape \[4, 3\]"
        ):
            x[at] = torch.ones(7)
        with pytest.raises(RuntimeError, match="source and destination dtypes match"):
            x[at] = torch.ones(3, dtype=torch.int32)


def test_out(mode, x):
    with mode:
        out = torch.empty(2, 3)
        assert torch.add(x, x, out=out) is out and out._version == 1
        assert torch.add(x, x, out=torch.empty(0)).shape == (2, 3)
        values, places = torch.empty(0), torch.empty(0, dtype=torch.long)
        torch.sort(x, out=(values, places))
        assert values.shape == places.shape == (2, 3)
    with pytest.raises(AssertionError, match=CONVERT):
        torch.add(x, x, out=torch.ones(2, 3))


def test_memory(mode):
    with mode:
        a = torch.empty(3)
        storage = a.untyped_storage()
        assert a.resize_(10).shape == (10,) and storage.nbytes() == 40
        assert torch.empty(0).set_(storage, 1, (2, 2), (3, 1)).untyped_storage() == storage
        assert a.set_().shape == (0,) and is_fake(a)
        b = torch.empty(3)
        b.data = torch.empty(5, 2)
        assert (
            b.shape == (5, 2)
            and is_fake(b.data)
            and is_fake(b.detach())
            and b.detach().untyped_storage() == b.untyped_storage()
        )
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            torch.empty(0).set_(torch.empty(3).untyped_storage(), 1, (2, 2), (3, 1))
        with pytest.raises(RuntimeError, match="cannot share memory|incompatible"):
            b.set_(unfaked())
        nhwc = torch.empty(2, 4, 5, 5).clone(memory_format=torch.channels_last)
        assert nhwc.stride() == (100, 1, 20, 4)


def unfaked():
    with unset_fake_temporarily():
        return torch.ones(3)


# ---- numbers
def test_numbers_that_were_written_down_are_known(mode):
    with mode:
        assert torch.tensor(3).item() == 3 and int(torch.tensor(3) + 1) == 4 and float(torch.tensor(2.5) * 2) == 5.0
        assert torch.tensor([7]).view(()).item() == 7 and [10, 20][torch.tensor(1)] == 20
        assert torch.arange(torch.tensor(4)).shape == (4,) and torch.tensor(3, device="cuda").mul(2).item() == 6
        known = torch.tensor(2.5)
        assert known.add_(1).item() == 3.5
        alias = known.detach()
        alias.mul_(torch.ones(()))
        for t in (known, alias, torch.rand(()), torch.tensor(1.0) + torch.ones(()), torch.bernoulli(torch.tensor(0.5))):
            with pytest.raises(DataDependentOutputException, match="aten._local_scalar_dense.default"):
                t.item()


READS = {
    "item": lambda t: t.sum().item(),
    "bool": lambda t: bool(t.sum() > 0),
    "int": lambda t: int(t.sum()),
    "float": lambda t: float(t[0, 0]),
    "tolist": lambda t: t.tolist(),
    "index": lambda t: t[t.sum().long()],
    "mask": lambda t: t[t.sum() > 0],
    "equal": lambda t: torch.equal(t, t),
    "allclose": lambda t: torch.allclose(t, t),
    "in": lambda t: 3 in t,
    "one_hot": lambda t: nn.functional.one_hot(t.long()),
    "tensor_split": lambda t: t.tensor_split(t[0].long()),
    "packed": lambda t: nn.utils.rnn.pack_padded_sequence(t[None], t[0, :1].long()),
}
SHAPES = {
    "nonzero": lambda t: t.nonzero(),
    "masked_select": lambda t: t.masked_select(t > 0),
    "index": lambda t: t[t > 0],
    "_unique2": lambda t: t.unique(),
    "unique_dim": lambda t: t.unique(dim=0),
    "unique_consecutive": lambda t: t.unique_consecutive(),
    "repeat_interleave": lambda t: t[0].repeat_interleave(t[0].long()),
    "bincount": lambda t: t[0].long().bincount(),
}


@pytest.mark.parametrize("name", READS)
def test_reading_numbers_raises(mode, x, name):
    for block in (mode, unset_fake_temporarily()):
        with block, pytest.raises(DataDependentOutputException, match="aten._local_scalar_dense.default") as caught:
            READS[name](x)
        assert caught.value.func is registry["_local_scalar_dense.default"]


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_data_decides_raise(mode, x, name):
    for block in (mode, unset_fake_temporarily()):
        with block, pytest.raises(DynamicOutputShapeException, match=f"aten.{name}") as caught:
            SHAPES[name](x)
        assert caught.value.func.name == name
    with mode:
        assert x[0].repeat_interleave(x[0].long(), output_size=9).shape == (9,)


def test_an_operator_without_a_shape_rule_is_named(mode, x):
    op = operator("_no_shape_rule(Tensor self) -> Tensor", kernel=lambda xp, a: a + 1, function=False, method=False)
    try:
        assert op(torch.ones(2)).tolist() == [2, 2]
        with mode, pytest.raises(UnsupportedOperatorException, match="aten._no_shape_rule.default"):
            op(x)
    finally:
        del registry["_no_shape_rule.default"]


def test_data_is_out_of_reach(mode, x):
    with pytest.raises(RuntimeError, match="Cannot access data pointer of Tensor"):
        x.data_ptr()
    for read in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(RuntimeError, match=r"\.numpy\(\) is not supported for tensor subclasses"):
            read()
    with pytest.raises(BufferError, match="Cannot access data pointer"):
        x.__dlpack__()
    with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
        x.untyped_storage().tolist()
    with pytest.raises(TypeError, match="cannot pickle a fake tensor"):
        pickle.dumps(x)
    with pytest.raises(TypeError, match="cannot pickle a fake tensor"):
        torch.save({"x": nn.Parameter(x)}, io.BytesIO())


def test_metadata_as_operators(mode, x):
    with mode:
        facts = [torch.ops.aten.sym_size.int(x, 1), torch.ops.aten.sym_stride.int(x, 0), torch.ops.aten.sym_numel(x)]
    assert facts == [3, 3, 6] and torch.ops.aten.sym_storage_offset(x) == 0


# ---- sizes that data decides, as symbols
class Sizes:
    """What the rules ask of a shape environment."""

    sizes_assumed = False
    allow_scalar_outputs = allow_dynamic_output_shape_ops = True

    def __init__(self):
        self.bounds = []

    def create_unbacked_symint(self):
        return 2

    def constrain_for_size(self, size, low=None, high=None):
        self.bounds.append((low, high))


RESULTS = {
    "nonzero": [(2, 2)],
    "masked_select": [(2,)],
    "index": [(2,)],
    "_unique2": [(2,)],
    "unique_dim": [(2, 3)],
    "unique_consecutive": [(2,)],
    "repeat_interleave": [(2,)],
    "bincount": [(2,)],
}


@pytest.mark.parametrize("name", SHAPES)
def test_unbacked_sizes(name):
    env = Sizes()
    mode = FakeTensorMode(shape_env=env)
    with mode:
        result = SHAPES[name](torch.ones(2, 3))
    assert [tuple(result.shape)] == RESULTS[name] and result.fake_mode is mode
    most = {"unique_dim": 2, "repeat_interleave": None, "bincount": None}.get(name, 6)
    assert env.bounds[0] == (0, most)


def test_unbacked_numbers():
    from pullback.capture.shapes.environment import ShapeEnv
    from pullback.capture.shapes.errors import GuardOnDataDependentSymNode

    with FakeTensorMode(shape_env=ShapeEnv()):
        t = torch.ones(3, dtype=torch.long)
        total = t.sum()
        n = total.item()
        assert str(n) == "u0" and total.item() is n and str(total.add_(1).item()) == "u1"
        assert [str(i) for i in t.tolist()] == ["u2", "u3", "u4"]
        assert (torch.zeros(n, 4) * 2).sum(1).shape[0] is n
        with pytest.raises(GuardOnDataDependentSymNode, match="Could not guard on data-dependent expression"):
            bool(t.sum() > 0)
        rows = torch.ones(5, 4)[torch.ones(5, dtype=torch.bool)]
        assert str(rows.shape) == "torch.Size([u6, 4])" and (rows.exp() @ rows.t()).shape[0] is rows.shape[0]


def test_symbolic_sizes_are_made_of_sources():
    from pullback.capture.shapes.environment import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv(), static_shapes=False)
    fake = mode.from_tensor(torch.ones(4, 5), source="x")
    rows, columns = fake.shape
    assert type(rows) is not int and rows == 4 and columns == 5
    assert mode.from_tensor(torch.ones(4, 5), static_shapes=True).shape == (4, 5)


# ---- mixtures
def test_real_tensors_are_refused(mode, x):
    real = torch.ones(2, 3)
    calls = {
        r"aten.add.Tensor\(FakeTensor\(..., size=\(2, 3\)\), tensor\(\[...\], size=\(2, 3\)\)\)": lambda: x + real,
        r"aten.cat.default\(\[FakeTensor\(..., size=\(2, 3\)\), tensor\(\[...\], size=\(2, 3\)\)\]\)": lambda: torch.cat([x, real]),
        r"aten.add_.Tensor\(tensor\(\[...\], size=\(2, 3\)\), FakeTensor": lambda: real.add_(x),
        r"aten.mul_.Tensor": lambda: x.mul_(real),
    }  # fmt: skip
    for words, call in calls.items():
        for block in (mode, unset_fake_temporarily()):
            with block, pytest.raises(AssertionError, match=f"{CONVERT}. Found in {words}"):
                call()
    with mode, pytest.raises(AssertionError, match=CONVERT):
        real + 1
    assert real.tolist() == [[1.0] * 3] * 2 and real._version == 0


def test_real_tensors_are_converted_where_that_is_allowed():
    mode, real = FakeTensorMode(allow_non_fake_inputs=True), torch.ones(2, 3)
    with mode:
        assert is_fake(real + 1) and is_fake(torch.cat([real, torch.zeros(1, 3)]))
    assert is_fake(mode.from_tensor(real) + real) and not is_fake(real)


def test_two_modes(mode, x):
    other = FakeTensorMode()
    y = other.from_tensor(torch.ones(2, 3))
    for block in (mode, unset_fake_temporarily()):
        with block, pytest.raises(AssertionError, match="Mixing fake modes NYI"):
            x + y
    with mode:
        with other:
            assert torch.ones(2).fake_mode is other
        with mode:
            assert torch.ones(2).fake_mode is mode
        assert torch.ones(2).fake_mode is mode
    assert not is_fake(torch.ones(2)) and other.from_tensor(x).fake_mode is other
    assert detect_fake_mode([1, {"a": x}]) is mode and detect_fake_mode([1]) is None and maybe_get_fake_mode(y) is other
    with pytest.raises(AssertionError, match="doesn't match mode"):
        detect_fake_mode([x, y])


def test_other_modes_come_first(mode):
    """The fake mode is below every other, whichever was entered first."""
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Watch(), mode:
        assert is_fake(torch.ones(2) + 1)
    with mode, Watch():
        assert is_fake(torch.ones(2) + 1)
    assert seen == ["aten.ones.default", "aten.add.Tensor"] * 2
    assert not is_fake(torch.ones(1))


def test_the_mode_is_left_when_a_call_fails(mode):
    with pytest.raises(RuntimeError), mode:
        torch.ones(2) + torch.ones(3)
    assert not is_fake(torch.ones(2))


# ---- devices that are not there
def test_devices(mode):
    with mode:
        a, number = torch.ones(2, 3, device="cuda"), torch.tensor(2.0)
        assert (a + number).device == (number * a).device == a.device == torch.device("cuda:0")
        assert a.to("cuda") is a and a.cpu().device.type == "cpu" and torch.ones(2).cuda().device == a.device
        assert (
            a.to("cuda:1").device == torch.device("cuda:1")
            and a.half().device == a.device
            and a.is_cuda
            and not a.is_meta
        )
        assert a[torch.zeros(2, dtype=torch.long)].device == a.device and a.copy_(torch.ones(2, 3)).device == a.device
        assert nn.Linear(3, 4, device="cuda")(a).device == nn.Linear(3, 4).to("cuda").weight.device == a.device
        assert torch.ones(2, device="meta").is_meta
        for call in (
            lambda: a + torch.ones(2, 3),
            lambda: torch.cat([a, torch.ones(2, 3)]),
            lambda: torch.ones(2, 3).add_(a),
        ):
            with pytest.raises(
                FakeTensorDeviceMismatchError, match="Expected all tensors to be on the same device, but found"
            ):
                call()
        with torch.device("cuda"):
            assert torch.ones(2).device == a.device
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.ones(2, device="cuda")


# ---- copies, derivatives, transforms
def test_copies(mode, x):
    parameter = mode.from_tensor(nn.Parameter(torch.ones(2)))
    parameter.tag = ["user"]
    for block in (mode, unset_fake_temporarily()):
        with block:
            shared, own = copy.copy(x), copy.deepcopy(x)
            assert shared.fake_mode is own.fake_mode is mode
            assert shared.untyped_storage() == x.untyped_storage() != own.untyped_storage()
            inplace, same = copy.deepcopy(parameter), copy.copy(parameter)
            assert type(inplace) is type(same) is nn.Parameter and inplace.requires_grad and is_fake(inplace)
            assert same.tag is parameter.tag and same is not parameter and same.is_leaf
    with mode:
        module = copy.deepcopy(nn.Linear(2, 3))
        assert module.weight.fake_mode is mode and module.load_state_dict(nn.Linear(2, 3).state_dict())


def test_loading(mode):
    file = io.BytesIO()
    base = torch.ones(4)
    torch.save({"a": base, "b": base[1:], "p": nn.Parameter(torch.ones(2))}, file)
    file.seek(0)
    with mode:
        result = torch.load(file, weights_only=True)
    assert all(is_fake(t) for t in result.values()) and type(result["p"]) is nn.Parameter
    assert result["a"].untyped_storage() == result["b"].untyped_storage() and result["b"].storage_offset() == 1


def test_gradients(mode):
    real = torch.ones(2, 3, requires_grad=True)
    leaf = mode.from_tensor(real)
    for block in (mode, unset_fake_temporarily()):
        with block:
            out = (leaf.exp().t() @ leaf).relu().sum()
            (first,) = torch.autograd.grad(out, leaf, create_graph=True)
            (second,) = torch.autograd.grad(first.sum(), leaf, retain_graph=True)
            assert is_fake(second) and second.shape == leaf.shape
            out.backward()
    assert is_fake(leaf.grad) and real.grad is None


def test_transforms(mode, x):
    with mode:
        assert torch.vmap(lambda a: a.sum())(x).shape == (2,)
        assert is_fake(torch.func.grad(lambda a: a.sin().sum())(x))
        assert torch.func.hessian(lambda a: (a**3).sum())(x).shape == (2, 3, 2, 3)
        out, tangent = torch.func.jvp(torch.sin, (x,), (x,))
        assert is_fake(out) and is_fake(tangent)
        checkpointed = torch.utils.checkpoint.checkpoint(torch.sin, x.requires_grad_(), use_reentrant=False)
        checkpointed.sum().backward()
    assert is_fake(x.grad)


def test_lists(mode):
    with mode:
        lists = [torch.ones(2), torch.ones(3)]
        assert [t.shape for t in torch._foreach_add(lists, lists)] == [(2,), (3,)]
        torch._foreach_mul_(lists, 2.0)
        assert [t._version for t in lists] == [1, 1]
        assert all(is_fake(t) for t in torch._foreach_norm(lists))


def test_devices_get_their_number():
    with FakeTensorMode() as mode:
        fake = FakeTensor(mode, torch.empty(2, device="meta"), torch.device("mps"))
        assert fake.device == torch.device("mps:0")
        fake.fake_device = torch.device("cuda")
        assert fake.device == torch.device("cuda:0") == fake.fake_device


def test_indices_on_the_cpu_meet_tables_without_data():
    with FakeTensorMode():
        bag = torch.nn.EmbeddingBag(10, 3, mode="sum", device="meta")
        assert bag(torch.tensor([1, 2, 4]), torch.tensor([0, 2])).device.type == "meta"
        with pytest.raises(RuntimeError, match="two devices"):
            torch.ones(2) + torch.ones(2, device="meta")


def test_writes_of_what_has_no_data_leave_a_tensor_where_it_is():
    with FakeTensorMode():
        here, nowhere = torch.zeros(2), torch.zeros(2, device="meta")
        assert here.add_(nowhere).device.type == "cpu" and nowhere.mul_(here).device.type == "meta"
        with pytest.raises(RuntimeError, match="same device"):
            here + nowhere


def test_what_is_computed_of_numbers_alone_is_known():
    with FakeTensorMode():
        assert torch.div(9, 4, rounding_mode="trunc").item() == 2


def test_tensors_on_storages_are_fakes_inside_the_mode():
    with FakeTensorMode():
        made = torch.ByteTensor(torch.UntypedStorage.from_buffer(b"abcd", dtype=torch.uint8))
        assert isinstance(made, FakeTensor) and made.shape == (4,)


def test_devices_of_other_packages_are_asked(monkeypatch):
    class Served:
        available = False

        def is_available(self) -> bool:
            return self.available

    monkeypatch.setattr("pullback.capture.fake.facts.device_count", lambda: 0)
    assert FakeTensorMode().avoid_device_init
    served = Served()
    monkeypatch.setitem(sys.modules, "torch.privateuseone", served)
    assert FakeTensorMode().avoid_device_init
    served.available = True
    assert not FakeTensorMode().avoid_device_init


def test_fakes_without_data_may_be_refused():
    with ahead.patch(fake_tensor_allow_meta=False):
        mode = FakeTensorMode()
        with mode, pytest.raises(AssertionError, match="must not be 'meta'"):
            torch.ones(2, device="meta")
        assert mode.from_tensor(torch.ones(2)).device.type == "cpu"
    with FakeTensorMode():
        assert torch.ones(2, device="meta").device.type == "meta"


def test_a_view_that_cannot_be_says_of_what(mode):
    with (
        mode,
        pytest.raises(ValueError, match=r"Cannot view a tensor with shape \(12, 7\) and strides \(0, 1\) as a tensor"),
    ):
        torch.arange(7).expand(12, 7).view(-1)
    with pytest.raises(RuntimeError, match="^view size is not compatible"):
        torch.arange(7).expand(12, 7).view(-1)


def test_fast_operators(mode):
    with mode:
        x, y = (torch.empty(2, 2, dtype=torch.int32) for _ in range(2))
    divide = get_fast_op_impls()[torch.ops.aten.div.Tensor]
    assert divide(mode, x, y).dtype is torch.float32 and divide(mode, x, 2).shape == (2, 2)


def test_constructors():
    assert torch.ops.aten.ones_like.default in LIKE and torch.ops.aten.to.device in DEVICE_BY_POSITION
    assert torch.ops.aten.zeros.default not in DEVICE_BY_POSITION
