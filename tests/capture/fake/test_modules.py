"""Modules and optimizers on fake tensors: forward, backward and steps say of their results what real ones are.

Comes in: an expression that makes a module, and the shapes of its inputs. Always holds: made and run inside the mode,
everything is fake; shapes, strides and dtypes of results and gradients are those of a real run; so are those of a real
module whose parameters were converted.
"""

from __future__ import annotations

import pytest

import pullback as torch
from pullback import nn, optim
from pullback.capture.fake.mode import DataDependentOutputException, FakeTensorMode
from pullback.core.tensor import FAKE
from pullback.func import functional_call
from tests.ops.checks import tensors_in

X, IMAGE, VOLUME, LINE = (4, 6), (2, 4, 8, 8), (2, 4, 6, 6, 6), (2, 4, 8)
LABELS, BITS = ("int", (4,), 6), ("bits", (4, 6))
POINTWISE = (
    "CELU ELU GELU SELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish PReLU ReLU ReLU6 RReLU Sigmoid SiLU "
    "Softplus Softshrink Softsign Tanh Tanhshrink Dropout AlphaDropout FeatureAlphaDropout Identity Flatten"
).split()
CASES: list[tuple[str, tuple]] = [
    *((f"{name}()", (X,)) for name in POINTWISE),
    ("GLU()", (X,)), ("LogSoftmax(1)", (X,)), ("Softmax(1)", (X,)), ("Softmin(1)", (X,)), ("Softmax2d()", (IMAGE,)),
    ("Threshold(0.1, 20)", (X,)), ("Linear(6, 3)", (X,)), ("Bilinear(6, 6, 3)", (X, X)), ("LazyLinear(3)", (X,)),
    ("LayerNorm(6)", (X,)), ("RMSNorm(6)", (X,)), ("GroupNorm(2, 4)", (IMAGE,)), ("LocalResponseNorm(2)", (IMAGE,)),
    ("CrossMapLRN2d(2)", (IMAGE,)), ("BatchNorm1d(6)", (X,)), ("BatchNorm2d(4)", (IMAGE,)), ("BatchNorm3d(4)", (VOLUME,)),
    ("LazyBatchNorm2d()", (IMAGE,)), ("InstanceNorm1d(4, affine=True)", (LINE,)), ("InstanceNorm2d(4)", (IMAGE,)),
    ("InstanceNorm3d(4)", (VOLUME,)), ("Conv1d(4, 3, 3, padding=1)", (LINE,)), ("Conv2d(4, 6, 3, stride=2, groups=2)", (IMAGE,)),
    ("Conv3d(4, 3, 2)", (VOLUME,)), ("ConvTranspose1d(4, 3, 3)", (LINE,)), ("ConvTranspose2d(4, 3, 3, stride=2)", (IMAGE,)),
    ("ConvTranspose3d(4, 3, 2)", (VOLUME,)), ("LazyConv2d(3, 3)", (IMAGE,)), ("Conv2d(4, 4, 3, padding_mode='circular', padding=1)", (IMAGE,)),
    ("Dropout1d()", (LINE,)), ("Dropout2d()", (IMAGE,)), ("Dropout3d()", (VOLUME,)),
    ("Embedding(6, 3)", (LABELS,)), ("EmbeddingBag(6, 3)", (("int", (2, 4), 6),)),
    *((f"{kind}Pad1d(1)", (LINE,)) for kind in ("Circular", "Reflection", "Replication", "Zero")),
    *((f"{kind}Pad2d(1)", (IMAGE,)) for kind in ("Circular", "Reflection", "Replication", "Zero")),
    *((f"{kind}Pad3d(1)", (VOLUME,)) for kind in ("Circular", "Reflection", "Replication", "Zero")),
    ("ConstantPad2d((1, 2, 0, 1), 3.0)", (IMAGE,)), ("AdaptiveAvgPool1d(3)", (LINE,)), ("AdaptiveAvgPool2d((3, None))", (IMAGE,)),
    ("AdaptiveAvgPool3d(2)", (VOLUME,)), ("AdaptiveMaxPool1d(3)", (LINE,)), ("AdaptiveMaxPool2d(3)", (IMAGE,)),
    ("AdaptiveMaxPool3d(2)", (VOLUME,)), ("AvgPool1d(2)", (LINE,)), ("AvgPool2d(3, 2, 1)", (IMAGE,)), ("AvgPool3d(2)", (VOLUME,)),
    ("FractionalMaxPool2d(2, output_size=3)", (IMAGE,)), ("FractionalMaxPool3d(2, output_size=3)", (VOLUME,)), ("LPPool1d(2, 2)", (LINE,)),
    ("LPPool2d(2, 2)", (IMAGE,)), ("LPPool3d(2, 2)", (VOLUME,)), ("MaxPool1d(2)", (LINE,)), ("MaxPool2d(3, 2, return_indices=True)", (IMAGE,)),
    ("MaxPool3d(2)", (VOLUME,)), ("MaxUnpool1d(2)", (LINE, ("int", LINE, 8))), ("MaxUnpool2d(2)", (IMAGE, ("int", IMAGE, 8))),
    ("MaxUnpool3d(2)", (VOLUME, ("int", VOLUME, 8))), ("ChannelShuffle(2)", (IMAGE,)), ("Fold((4, 4), 2)", ((2, 8, 9),)),
    ("Unfold(3)", (IMAGE,)), ("PixelShuffle(2)", (IMAGE,)), ("PixelUnshuffle(2)", (IMAGE,)), ("Unflatten(1, (2, 3))", (X,)),
    ("Upsample(scale_factor=2)", (IMAGE,)), ("UpsamplingBilinear2d(scale_factor=2)", (IMAGE,)), ("UpsamplingNearest2d(12)", (IMAGE,)),
    ("Upsample(size=5, mode='linear')", (LINE,)), ("Upsample(scale_factor=2, mode='bicubic')", (IMAGE,)),
    ("CosineSimilarity()", (X, X)), ("PairwiseDistance()", (X, X)),
    ("GRU(6, 5, 2, bidirectional=True)", ((3, 4, 6),)), ("LSTM(6, 5, batch_first=True)", ((3, 4, 6),)), ("LSTM(6, 5, proj_size=2)", ((3, 4, 6),)),
    ("RNN(6, 5)", ((3, 4, 6),)), ("GRUCell(6, 5)", (X,)), ("LSTMCell(6, 5)", (X,)), ("RNNCell(6, 5)", (X,)),
    ("MultiheadAttention(6, 2)", ((5, 2, 6), (5, 2, 6), (5, 2, 6))), ("Transformer(6, 2, 1, 1, 8)", ((5, 2, 6), (4, 2, 6))),
    ("TransformerEncoderLayer(6, 2, 8, batch_first=True)", ((2, 5, 6),)), ("TransformerDecoderLayer(6, 2, 8)", ((5, 2, 6), (4, 2, 6))),
    ("Sequential(nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 2))", (X,)),
    ("BCELoss()", (BITS, BITS)), ("BCEWithLogitsLoss()", (X, BITS)), ("CosineEmbeddingLoss()", (X, X, ("bits", (4,)))),
    ("CrossEntropyLoss(label_smoothing=0.1)", (X, LABELS)), ("CrossEntropyLoss()", (X, BITS)), ("NLLLoss()", (X, LABELS)),
    ("CTCLoss()", ((5, 2, 4), ("int", (2, 3), 4), ("five", (2,)), ("two", (2,)))), ("GaussianNLLLoss()", (X, X, BITS)),
    ("HingeEmbeddingLoss()", (X, BITS)), ("HuberLoss()", (X, X)), ("KLDivLoss()", (X, X)), ("L1Loss()", (X, X)),
    ("MarginRankingLoss()", (X, X, BITS)), ("MSELoss(reduction='sum')", (X, X)), ("MultiLabelMarginLoss()", (X, ("int", (4, 6), 6))),
    ("MultiLabelSoftMarginLoss()", (X, BITS)), ("MultiMarginLoss()", (X, LABELS)), ("PoissonNLLLoss()", (X, X)), ("SmoothL1Loss()", (X, X)),
    ("SoftMarginLoss()", (X, BITS)), ("TripletMarginLoss()", (X, X, X)), ("TripletMarginWithDistanceLoss()", (X, X, X)),
    ("AdaptiveLogSoftmaxWithLoss(6, 9, [3])", (X, LABELS)),
]  # fmt: skip
BY_DATA = {"AdaptiveLogSoftmaxWithLoss(6, 9, [3])"}  # it sorts rows into clusters by their labels


def given(spec):
    """An input: floats of a shape, or what a tuple names."""
    if isinstance(spec[0], str):
        kind, shape, *limit = spec
        if kind == "int":
            return torch.randint(0, limit[0], shape)
        if kind == "bits":
            return torch.rand(shape)
        return torch.full(shape, {"five": 5, "two": 2}[kind])
    return torch.randn(spec, requires_grad=True)


def outcome(module, inputs) -> list:
    """What comes out of forward and backward: (shape, stride, dtype, whether it needs grad) of each tensor."""
    out = tensors_in(module(*inputs))
    loss = sum(o.sum() for o in out if o.requires_grad)
    if isinstance(loss, torch.Tensor):
        loss.backward()
    grads = [t.grad for t in (*inputs, *module.parameters())]
    return [described(t) for t in (*out, *grads)]


def described(t):
    return None if t is None else (tuple(t.shape), t.stride(), t.dtype, t.requires_grad)


@pytest.mark.parametrize(("text", "inputs"), CASES, ids=[c[0] for c in CASES])
@pytest.mark.filterwarnings("ignore")
def test_module(text: str, inputs: tuple) -> None:
    make = eval(f"lambda: nn.{text}", {"nn": nn})
    if text in BY_DATA:
        with FakeTensorMode(), pytest.raises(DataDependentOutputException):
            outcome(make(), [given(i) for i in inputs])
        return
    real_module, real_inputs = make(), [given(i) for i in inputs]
    real = outcome(real_module, real_inputs)
    mode = FakeTensorMode()
    with mode:
        module, fakes = make(), [given(i) for i in inputs]
        result = outcome(module, fakes)
    assert result == real
    assert all(t._keys & FAKE for t in (*module.parameters(), *module.buffers()))
    converted = {n: mode.from_tensor(t) for n, t in (*real_module.named_parameters(), *real_module.named_buffers())}
    with mode:
        again = functional_call(real_module, converted, tuple(mode.from_tensor(t) for t in real_inputs))
    assert [described(t) for t in tensors_in(again)] == real[: len(tensors_in(again))]


OPTIMIZERS = {
    "Adadelta": {}, "Adagrad": {}, "Adam": {"amsgrad": True}, "Adamax": {}, "AdamW": {}, "ASGD": {}, "Muon": {}, "NAdam": {},
    "RAdam": {}, "RMSprop": {"momentum": 0.9, "centered": True}, "Rprop": {}, "SGD": {"momentum": 0.9, "nesterov": True},
}  # fmt: skip


def train(name: str, **options) -> tuple:
    """The weights and states after three steps."""
    weights = [nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.randn(5, 2))]
    optimizer = getattr(optim, name)(weights, lr=0.1, **options)
    for _ in range(3):
        optimizer.zero_grad()
        sum((w * w).sum() for w in weights).backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
    return weights, tensors_in([tuple(optimizer.state[w].values()) for w in weights])


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("foreach", [False, True])
def test_optimizer(name: str, foreach: bool) -> None:
    options = OPTIMIZERS[name] | ({"foreach": True} if foreach and name != "Muon" else {})
    real_weights, real_state = train(name, **options)
    with FakeTensorMode() as mode:
        weights, state = train(name, **options)
    assert all(t._keys & FAKE and t.fake_mode is mode for t in weights + state)
    assert [(described(t), t._version) for t in weights] == [(described(t), t._version) for t in real_weights]
    assert [described(t) for t in state] == [described(t) for t in real_state]


def test_an_optimizer_that_reads_numbers_says_so() -> None:
    with FakeTensorMode(), pytest.raises(DataDependentOutputException, match="aten._local_scalar_dense.default"):
        train("Adafactor")


def test_a_step_of_a_model_too_large_to_hold() -> None:
    """A trillion parameters, forward, backward and step."""
    with FakeTensorMode():
        model = nn.Sequential(*[nn.TransformerEncoderLayer(65536, 64, 262144, device="cuda") for _ in range(20)])
        assert sum(p.numel() for p in model.parameters()) > 10**12
        optimizer = optim.AdamW(model.parameters())
        model(torch.randn(128, 8, 65536, device="cuda")).sum().backward()
        optimizer.step()
    assert all(p.grad.device == torch.device("cuda", 0) for p in model.parameters())
