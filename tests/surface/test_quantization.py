"""Observers, fake quantization and training for it: the modules that PyTorch puts in, and its numbers."""

import copy
import pickle

import pytest

import pullback as torch
from pullback import nn
from pullback.surface import quantization as q
from pullback.surface.quantization import modules, preparation
from pullback.testing import assert_close


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.conv, self.bn = q.QuantStub(), nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4)
        self.relu, self.c2, self.r2, self.ff = nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU(), q.FloatFunctional()
        self.sig, self.drop, self.fc, self.r3 = nn.Sigmoid(), nn.Dropout(0.0), nn.Linear(16, 8), nn.ReLU()
        self.fc2, self.seq = nn.Linear(8, 3), nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
        self.dequant = q.DeQuantStub()

    def forward(self, x):
        x = self.r2(self.c2(self.relu(self.bn(self.conv(self.quant(x))))))
        x = self.drop(self.sig(self.ff.add(x, x).flatten(1)[:, :16]))
        return self.dequant(self.seq(self.fc2(self.r3(self.fc(x)))))


GROUPS = [["conv", "bn", "relu"], ["c2", "r2"], ["fc", "r3"]]


def prepared(backend, version):
    model = Model().train()
    model.qconfig = q.get_default_qat_qconfig(backend, version)
    return q.prepare_qat(q.fuse_modules_qat(model, GROUPS))


def images():
    torch.manual_seed(1)
    return torch.randn(4, 3, 8, 8)


@pytest.mark.parametrize(
    ("backend", "version", "losses"),
    [
        ("x86", 1, [1.2795, 1.2185, 1.1688, 1.1367, 1.1228]),
        ("fbgemm", 0, [1.2751, 1.2193, 1.1644, 1.1454, 1.1271]),
    ],
)
def test_training_as_in_pytorch(backend, version, losses):
    torch.manual_seed(0)
    model = prepared(backend, version)
    optimizer, x, y, seen = torch.optim.SGD(model.parameters(), 0.1), images(), torch.tensor([0, 1, 2, 1]), []
    for step in range(5):
        if step == 3:
            model.apply(q.disable_observer).apply(modules.freeze_bn_stats)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    assert seen == pytest.approx(losses, abs=2e-4)
    other = prepared(backend, version)
    other.load_state_dict(model.state_dict())
    for m in (model, other):
        m.eval().apply(q.disable_observer)
    assert torch.equal(other(x), model(x))
    assert torch.equal(pickle.loads(pickle.dumps(model.fc2))(x[0, 0]), model.fc2(x[0, 0]))
    assert not model.conv.bn.training and model.conv.train().bn.training is False
    assert modules.update_bn_stats(model.conv) is None and model.conv.bn.training


def test_which_modules_are_put_in():
    model = prepared("x86", 1)
    kinds = {name: type(part).__name__ for name, part in model.named_modules()}
    assert [kinds[n] for n in ("conv", "bn", "relu", "c2", "fc", "fc2", "seq.0")] == [
        "ConvBnReLU2d", "Identity", "Identity", "ConvReLU2d", "LinearReLU", "Linear", "Linear",
    ]  # fmt: skip
    assert (
        isinstance(model.fc2, modules.QatLinear) and kinds["fc2.weight_fake_quant"] == "FusedMovingAvgObsFakeQuantize"
    )
    assert kinds["sig.activation_post_process"] == "FixedQParamsFakeQuantize"
    assert "ff.activation_post_process" in kinds and "quant.activation_post_process" in kinds
    assert not {"dequant.activation_post_process", "drop.activation_post_process"} & set(kinds)


def test_calibration_of_a_folded_model():
    torch.manual_seed(0)
    model, x = Model().eval(), images()
    model.qconfig, expected = q.default_qconfig, model(x)
    fused = q.fuse_modules(model, GROUPS)
    assert_close(fused(x), expected, atol=1e-5, rtol=1e-4)
    ready = q.prepare(fused)
    ready(x), ready(x * 2)
    found = {n: m.calculate_qparams() for n, m in ready.named_modules() if isinstance(m, q.ObserverBase)}
    assert [round(found[f"{n}.activation_post_process"][0].item(), 4) for n in ("quant", "conv", "c2", "fc")] == [
        0.1002, 0.0275, 0.0082, 0.0086,
    ]  # fmt: skip
    assert found["seq.1.activation_post_process"][1].item() == 52
    state = q.get_observer_state_dict(ready)
    again = q.prepare(fused)
    q.load_observer_state_dict(again, state)
    assert again.quant.activation_post_process.max_val == ready.quant.activation_post_process.max_val


X = [[-1.0, 0.5, 2.0], [0.25, -0.5, -4.0]]


@pytest.mark.parametrize(
    ("make", "scale", "point"),
    [
        (lambda: q.MinMaxObserver(), [12 / 255], [170]),
        (lambda: q.MinMaxObserver(dtype=torch.qint8), [12 / 255], [42]),
        (lambda: q.MinMaxObserver(reduce_range=True), [12 / 127], [85]),
        (lambda: q.MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric), [8 / 127.5], [0]),
        (lambda: q.MinMaxObserver(qscheme=torch.per_tensor_symmetric), [8 / 127.5], [128]),
        (lambda: q.MovingAverageMinMaxObserver(averaging_constant=0.5), [9 / 255], [170]),
        (lambda: q.PerChannelMinMaxObserver(), [6 / 255, 8.5 / 255], [85, 240]),
        (lambda: q.MovingAveragePerChannelMinMaxObserver(averaging_constant=0.5), [4.5 / 255, 6.375 / 255], [85, 240]),
    ],
)
def test_ranges(make, scale, point):
    observer, x = make(), torch.tensor(X)
    with pytest.warns(UserWarning, match="must run observer"):
        assert observer.calculate_qparams()[0].item() == 1
    assert observer(x) is x
    observer(torch.tensor([[-2.0, 1.0, 4.0], [0.5, -1.0, -8.0]]))
    found = observer.calculate_qparams()
    assert_close(found[0], torch.tensor(scale))
    assert found[1].tolist() == point
    again = make()
    again.load_state_dict(copy.deepcopy(observer.state_dict()))
    assert torch.equal(again.min_val, observer.min_val)
    observer.reset_min_max_vals()
    with pytest.warns(UserWarning, match="must run observer"):
        observer.calculate_qparams()


def test_configurations():
    assert q.qconfig_equals(q.get_default_qat_qconfig(), q.get_default_qat_qconfig())
    assert not q.qconfig_equals(q.default_qconfig, q.default_qat_qconfig) and q.qconfig_equals(None, None)
    late = q.MinMaxObserver.with_args(quant_min=0).with_callable_args(quant_max=lambda: 15)
    assert late().quant_max == 15 and late(quant_max=7).quant_max == 7
    with pytest.raises(ValueError, match="pass observer class instead"):
        q.QConfig(q.MinMaxObserver(), q.default_weight_observer)
    with pytest.raises(AssertionError, match="not supported"):
        q.get_default_qat_qconfig("other")


def test_what_is_refused():
    model = nn.Sequential(nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1), nn.Tanh())
    for call, error, words in (
        (lambda: q.convert(model), NotImplementedError, "not implemented in pullback"),
        (lambda: q.get_default_qconfig().activation(), NotImplementedError, "HistogramObserver"),
        (lambda: q.prepare(model), AssertionError, "qconfig"),
        (lambda: q.prepare_qat(model.eval()), AssertionError, "training mode"),
        (lambda: q.fuse_modules(model.eval(), ["1", "2"]), NotImplementedError, "Cannot fuse"),
        (lambda: q.fuse_modules(model.train(), ["0", "1"]), AssertionError, "fuse_modules_qat"),
        (lambda: q.MinMaxObserver(qscheme=torch.per_channel_affine), NotImplementedError, "qscheme"),
        (lambda: q.MinMaxObserver(quant_min=1, quant_max=3), AssertionError, "must include 0"),
        (lambda: modules.ConvReLU2d(nn.Conv1d(1, 1, 1), nn.ReLU()), AssertionError, "Incorrect types"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_weights_go_back_to_float_modules():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    model.qconfig = q.default_qat_qconfig
    ready = q.prepare_qat(q.fuse_modules_qat(model, ["0", "1"]))
    ready(torch.randn(2, 1, 5, 5))
    plain, x = ready[0].to_float(), torch.randn(1, 1, 5, 5)
    ready.eval().apply(q.disable_fake_quant)
    assert type(plain) is nn.Conv2d
    assert_close(plain(x), ready(x), atol=1e-5, rtol=1e-4)
    bare = nn.Linear(2, 2)
    bare.qconfig = q.default_qat_qconfig
    wrapped = preparation.add_quant_dequant(nn.Sequential(bare))
    assert type(wrapped[0]) is q.QuantWrapper and torch.equal(wrapped(x[0, 0, :2, :2]), bare(x[0, 0, :2, :2]))
    preparation.remove_qconfig(wrapped)
    assert not hasattr(bare, "qconfig")
