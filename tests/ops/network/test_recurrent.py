"""Recurrent layers: the fused operator against its decomposition, packed against padded, gradients of both orders."""

import pytest

import pullback as torch
from pullback.autograd import gradgradcheck
from pullback.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from pullback.ops.network import recurrent

KINDS = {"RNN": {}, "ReLU": {"nonlinearity": "relu"}, "LSTM": {}, "GRU": {}}


def _layer(kind, *args, **kwargs):
    make = getattr(torch.nn, {"ReLU": "RNN"}.get(kind, kind))
    return make(*args, **KINDS[kind], **kwargs).double()


def _flat(out):
    return [out] if isinstance(out, torch.Tensor) else [t for o in out for t in _flat(o)]


def _results(layer, x):
    out = _flat(layer(x))
    loss = sum((t * torch.arange(t.numel(), dtype=t.dtype).reshape(t.shape)).sum() for t in out)
    return out, torch.autograd.grad(loss, [x, *layer.parameters()])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "settings", [{}, {"bias": False}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True}]
)
def test_fused_is_decomposed(kind, settings, monkeypatch):
    layer = _layer(kind, 3, 4, **settings)
    x = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    fused = _results(layer, x)
    monkeypatch.setattr(recurrent, "_fusable", lambda *tensors: False)
    for got, want in zip(fused, _results(layer, x), strict=True):
        for a, b in zip(got, want, strict=True):
            assert torch.allclose(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_double_backward(kind):
    layer = _layer(kind, 2, 2)
    x = torch.randn(3, 1, 2, dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(lambda x, *p: layer(x)[0], (x, *layer.parameters()))


@pytest.mark.parametrize("kind", KINDS)
def test_packed_is_padded_sequence_by_sequence(kind):
    layer = _layer(kind, 3, 4, num_layers=2, bidirectional=True)
    x, lengths = torch.randn(5, 3, 3, dtype=torch.float64), [3, 5, 1]
    out, state = layer(pack_padded_sequence(x, lengths, enforce_sorted=False))
    padded, got = pad_packed_sequence(out)
    assert got.tolist() == lengths
    for i, n in enumerate(lengths):
        alone, final = layer(x[:n, i : i + 1])
        assert torch.allclose(padded[:n, i], alone[:, 0])
        for a, b in zip(_flat(state), _flat(final), strict=True):
            assert torch.allclose(a[:, i], b[:, 0])


def test_an_lstm_may_project_its_state():
    layer = torch.nn.LSTM(3, 4, proj_size=2)
    out, (h, c) = layer(torch.randn(5, 2, 3))
    assert out.shape == (5, 2, 2) and h.shape == (1, 2, 2) and c.shape == (1, 2, 4)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_cell_is_one_step_of_a_layer(kind):
    layer = _layer(kind, 3, 4)
    cell = getattr(torch.nn, f"{kind}Cell")(3, 4).double()
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
    x = torch.randn(2, 3, dtype=torch.float64)
    for a, b in zip(_flat(cell(x)), _flat(layer(x.unsqueeze(0))[1]), strict=True):
        assert torch.allclose(a, b.squeeze(0))


def test_an_unbatched_sequence():
    layer = torch.nn.GRU(3, 4, bidirectional=True)
    x = torch.randn(5, 3)
    out, h = layer(x)
    both, final = layer(x.unsqueeze(1))
    assert torch.allclose(out, both.squeeze(1)) and torch.allclose(h, final.squeeze(1))


@pytest.mark.parametrize(
    "call, error, words",
    [
        (
            lambda nn, o: nn.LSTM(3, 4)(o(2, 2, 5)),
            RuntimeError,
            "input.size(-1) must be equal to input_size. Expected 3, got 5",
        ),
        (
            lambda nn, o: nn.LSTM(3, 4)(o(2, 2, 3), (o(1, 2, 5), o(1, 2, 4))),
            RuntimeError,
            "Expected hidden[0] size (1, 2, 4), got [1, 2, 5]",
        ),
        (
            lambda nn, o: nn.GRU(3, 4, proj_size=2),
            ValueError,
            "proj_size argument is only supported for LSTM, not RNN or GRU",
        ),
        (lambda nn, o: nn.RNNCell(3, 4)(o(2, 5)), RuntimeError, "input has inconsistent input_size: got 5 expected 3"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error) as raised:
        call(torch.nn, torch.ones)
    assert str(raised.value) == words


def test_cells_name_the_weight_that_has_the_wrong_number_of_rows():
    x, h = torch.rand(4, 8), torch.rand(4, 16)
    with pytest.raises(RuntimeError, match=r"weight_ih first dim must be 4 \* hidden_size = 64, but got 65"):
        torch.lstm_cell(x, (h, h), torch.rand(65, 8), torch.rand(64, 16))
    with pytest.raises(RuntimeError, match=r"weight_hh first dim must be 3 \* hidden_size = 48, but got 47"):
        torch.gru_cell(x, h, torch.rand(48, 8), torch.rand(47, 16))


@pytest.mark.parametrize("kind", [torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU])
def test_batches_of_nothing(kind):
    layer = kind(3, 4, bidirectional=True)
    out = layer(torch.zeros(5, 0, 3))[0]
    assert out.shape == (5, 0, 8)
    out.sum().backward()
    assert layer.weight_ih_l0.grad.abs().sum() == 0
