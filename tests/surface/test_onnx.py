"""Models written in ONNX compute what they computed (with the packages installed), and what ONNX lacks is taken apart rightly."""

import importlib.util
import sys

import pytest

import pullback as torch
from pullback import nn
from pullback.compat.torch import install
from pullback.core.tree import tree_leaves
from pullback.surface import onnx
from pullback.surface.onnx.decompositions import _rules

aten = torch.ops.aten
needs_onnx = pytest.mark.skipif(
    any(importlib.util.find_spec(p) is None for p in ("onnx", "onnxscript", "onnxruntime")), reason="needs onnxscript"
)


@pytest.fixture(autouse=True)
def named_torch():
    """`onnxscript` imports PyTorch by its name."""
    install()


@needs_onnx
def test_without_the_name_torch_export_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # as if nothing had the name
    with pytest.raises(onnx.OnnxExporterError, match="call pullback.compat.torch.install"):
        onnx.export(nn.Linear(2, 2), (torch.ones(1, 2),))


@pytest.mark.skipif(importlib.util.find_spec("onnxscript") is not None, reason="the packages are installed")
def test_without_the_packages_export_says_which():
    with pytest.raises(onnx.OnnxExporterError, match="pip install onnx onnxscript"):
        onnx.export(nn.Linear(2, 2), (torch.ones(1, 2),))


X, Y = torch.tensor([[0.5, -1.5, 2.0], [0.25, 3.0, -0.75]]), torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
P = torch.tensor([[0.5, 0.1, 0.9], [0.25, 0.75, 0.4]])
BAD = torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])
CALLS = {
    aten.var.correction: [(X, [1]), (X,)],
    aten.var_mean.correction: [(X, [0])],
    aten.std.correction: [(X, [1]), (X,)],
    aten.std_mean.correction: [(X, [1])],
    aten.squeeze.dims: [(X.reshape(1, 2, 1, 3), [0, 2]), (X.reshape(1, 2, 1, 3), [0, 1])],
    aten.rsub.Tensor: [(X, Y)],
    aten.rsub.Scalar: [(X, 2, 3)],
    aten.huber_loss.default: [(X, Y), (X, Y, 2, 0.3)],
    aten.smooth_l1_loss.default: [(X, Y), (X, Y, 0, 0.0)],
    aten.binary_cross_entropy.default: [(P, Y), (P, Y, P, 2)],
    aten.binary_cross_entropy_with_logits.default: [(X, Y), (X, Y, P, P, 0)],
    aten.soft_margin_loss.default: [(X, Y)],
    aten.nan_to_num.default: [(BAD,), (BAD, 2.0, 3.0, 4.0)],
    aten.nansum.default: [(BAD[:2],)],
    aten.aminmax.default: [(X,)],
    aten.argsort.default: [(X, 1, True)],
    aten.count_nonzero.dim_IntList: [(Y, [0])],
    aten.trace.default: [(X,)],
    aten.eye.m: [(2, 3)],
    aten.hypot.default: [(X, Y)],
    aten.sgn.default: [(X,)],
    aten.threshold.default: [(X, 0.3, 9.0)],
    aten.hardshrink.default: [(X, 0.6)],
    aten.softshrink.default: [(X, 0.6)],
    aten.ldexp.Tensor: [(X, torch.tensor([1, 2, 3]))],
    aten.special_ndtr.default: [(X,)],
    aten.take.default: [(X, torch.tensor([0, 5]))],
}
STABLE = [aten.argsort.stable, aten.sort.stable]  # the same with a keyword
UNTESTED = {aten.lift_fresh.default}  # gives its argument


@pytest.mark.parametrize("op", CALLS, ids=str)
def test_what_onnx_has_no_words_for_is_taken_apart(op):
    for args in CALLS[op]:
        torch.testing.assert_close(_rules()[op](*args), op(*args))


def test_stable_sorts_are_taken_apart():
    for op in STABLE:
        got, want = _rules()[op](X, stable=True, dim=1, descending=True), op(X, stable=True, dim=1, descending=True)
        torch.testing.assert_close(tuple(got) if isinstance(want, tuple) else got, want)


def test_every_rule_is_tested():
    assert set(_rules()) == {*CALLS, *STABLE, *UNTESTED}


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)

    def forward(self, ids):
        return self.layer(self.table(ids)).mean(1)


class Kinds(nn.Module):
    """Promotion of dtypes, division of integers, results of several kinds."""

    def forward(self, x, n):
        return {"half": n / 2, "whole": n // 3 + 1.5, "both": (x * n, x.topk(2)[1], x.std(-1), n == 2, x[:, 1:])}


def networks():
    convolution = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return {
        "mlp": (nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 2)), (torch.randn(3, 4),)),
        "convolution": (convolution, (torch.randn(2, 3, 6, 6),)),
        "attention": (Attention(), (torch.tensor([[1, 2, 3], [4, 5, 6]]),)),
        "kinds": (Kinds(), (torch.randn(2, 3), torch.tensor([1, 2, 7]))),
    }


@needs_onnx
@pytest.mark.parametrize("name", ["mlp", "convolution", "attention", "kinds"])
def test_exported_models_compute_the_same(name):
    model, args = networks()[name]
    want = tree_leaves(model.eval()(*args))
    program = onnx.export(model, args, verify=True)
    got = program(*args)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w)


@needs_onnx
def test_axes_stay_open_under_their_names(tmp_path):
    model = Attention().eval()
    names = {"input_names": ["ids"], "output_names": ["mean"]}
    file = tmp_path / "model.onnx"
    program = onnx.export(
        model, (torch.tensor([[1, 2, 3]] * 2),), str(file), dynamic_axes={"ids": {0: "batch", 1: "length"}}, **names
    )
    assert [str(i.shape) for i in program.model.graph.inputs] == ["[batch,length]"]
    longer = torch.arange(15).reshape(3, 5)
    torch.testing.assert_close(program(longer)[0], model(longer))
    import onnxruntime

    session = onnxruntime.InferenceSession(str(file))
    (result,) = session.run(["mean"], {"ids": longer.numpy()})
    torch.testing.assert_close(torch.from_numpy(result), model(longer))


@needs_onnx
def test_an_operator_without_words_is_named():
    class Lgamma(nn.Module):
        def forward(self, x):
            return torch.lgamma(x)

    with pytest.raises(onnx.OnnxExporterError, match="No ONNX function found for aten.lgamma.default"):
        onnx.export(Lgamma(), (torch.ones(2),))


@needs_onnx
def test_a_custom_translation_is_used():
    from onnxscript import opset18

    class Lgamma(nn.Module):
        def forward(self, x):
            return torch.lgamma(x) + 1

    program = onnx.export(
        Lgamma(), (torch.ones(2),), custom_translation_table={torch.ops.aten.lgamma.default: lambda x: opset18.Neg(x)}
    )
    torch.testing.assert_close(program(torch.tensor([2.0, 3.0]))[0], torch.tensor([-1.0, -2.0]))
