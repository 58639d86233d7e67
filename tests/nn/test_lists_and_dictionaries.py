"""Containers as the lists and dictionaries they are, parametrizations, packed sequences; texts and errors of layers."""

import copy
from collections import namedtuple

import pytest

import pullback as torch
from pullback.nn import parallel
from pullback.nn.utils import parametrize, rnn

nn = torch.nn


def test_sequential_is_a_list():
    a, b, c = nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1)
    seq = nn.Sequential(a, b)
    assert list(seq + nn.Sequential(c)) == [a, b, c] and len(seq * 2) == 4 and len(2 * seq) == 4
    seq += nn.Sequential(c)
    assert list(seq) == [a, b, c] and "0" not in dir(seq)
    del seq[1:]
    assert list(seq) == [a]
    seq *= 3
    assert len(seq) == 3
    seq.insert(1, b)
    assert seq[1] is b
    for act, kind in (
        (lambda: seq + [a], ValueError),
        (lambda: seq.__iadd__([a]), ValueError),
        (lambda: seq * "2", TypeError),
        (lambda: seq * 0, ValueError),
        (lambda: seq.insert(0, 3), AssertionError),
        (lambda: seq.insert(9, a), IndexError),
    ):
        with pytest.raises(kind):
            act()


def test_module_lists_and_dictionaries():
    a, b = nn.Linear(1, 1), nn.ReLU()
    modules = nn.ModuleList([a])
    assert list(modules + [b]) == [a, b] and "0" not in dir(modules)
    modules[0] = b
    assert modules.pop(0) is b and len(modules) == 0 and repr(nn.ModuleList()) == "ModuleList()"
    with pytest.raises(TypeError, match="called with an iterable"):
        modules.extend(3)
    table = nn.ModuleDict({"x": a})
    assert list(table.keys()) == ["x"]
    for wrong in (3, [3], [("x", a, b)]):
        with pytest.raises((TypeError, ValueError)):
            table.update(wrong)
    table.clear()
    assert len(table) == 0


def test_parameter_lists():
    values = nn.ParameterList([torch.ones(1), torch.zeros(2), torch.ones(3)])
    part = values[1:]
    assert isinstance(part, nn.ParameterList) and [len(p) for p in part] == [2, 3]
    assert "Parameter containing" in repr(values) and "0" not in dir(values)
    with pytest.raises(TypeError):
        values.extend(3)
    with pytest.raises(RuntimeError, match="should not be called"):
        values(1)


def test_parameter_dictionaries():
    table = nn.ParameterDict({"a": torch.ones(1), "b": torch.zeros(2)})
    assert list(reversed(table)) == ["b", "a"] and "a" in table and table.get("z") is None
    assert table.setdefault("c", torch.ones(3)).shape == (3,) and [len(v) for v in table.values()] == [1, 2, 3]
    assert table.pop("b").shape == (2,) and table.popitem()[0] == "c"
    more = table | nn.ParameterDict({"d": torch.ones(4)})
    table |= {"e": torch.ones(5)}
    assert set(more.keys()) == {"a", "d"} and set(table.keys()) == {"a", "e"}
    assert set(table.fromkeys(["x", "y"], torch.ones(1)).keys()) == {"x", "y"}
    with pytest.raises(RuntimeError, match="should not be called"):
        table(1)
    table.clear()
    assert len(table) == 0


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


class Summed(nn.Module):
    def forward(self, a, b):
        return a + b

    def right_inverse(self, x):
        return x / 4, 3 * x / 4


def test_parametrizations_are_chained_set_and_moved():
    layer = nn.Linear(2, 2)
    start = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Doubled())
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert torch.allclose(layer.weight, 2 * start)  # the second one is put on top
    layer.weight = torch.ones(2, 2)
    assert layer.parametrizations.weight.original.tolist() == [[0.25, 0.25], [0.25, 0.25]]
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    other = parametrize.transfer_parametrizations_and_params(layer, nn.Linear(2, 2))
    assert torch.equal(other.weight, layer.weight) and copy.deepcopy(layer).weight.tolist() == layer.weight.tolist()
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(layer, "weight")


def test_a_parametrization_of_several_tensors():
    layer = nn.Linear(2, 2, bias=False)
    parametrize.register_parametrization(layer, "weight", Summed())
    layer.weight = torch.full((2, 2), 4.0)
    entry = layer.parametrizations.weight
    assert entry.original0.tolist() == [[1.0, 1.0], [1.0, 1.0]] and entry.original1.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    with pytest.raises(ValueError, match="leave_parametrized"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)


@pytest.mark.parametrize("result", [lambda x: 3, lambda x: x.double(), lambda x: x[:1]], ids=["type", "dtype", "shape"])
def test_a_parametrization_that_changes_what_it_must_keep(result):
    class Wrong(nn.Module):
        def forward(self, x):
            return result(x)

    for layer in (nn.Linear(2, 2), nn.Linear(2, 2)):
        if layer is not None:
            with pytest.raises(ValueError):
                parametrize.register_parametrization(layer, "weight", Wrong())
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Doubled())
    with pytest.raises(ValueError):
        parametrize.register_parametrization(layer, "weight", Wrong())


def test_pieces_for_devices_and_back():
    Pair = namedtuple("Pair", "x y")
    x = torch.arange(4.0)
    pieces = parallel.scatter({"a": [x], "b": Pair(x, 3)}, ["cpu", "cpu"])
    assert [p["a"][0].tolist() for p in pieces] == [[0.0, 1.0], [2.0, 3.0]] and pieces[1]["b"].y == 3
    whole = parallel.gather([{"a": p["a"], "b": Pair(p["b"].x, None)} for p in pieces], "cpu")
    assert whole["a"][0].tolist() == x.tolist() and whole["b"].x.tolist() == x.tolist() and whole["b"].y is None
    assert parallel.gather([torch.tensor(1.0), torch.tensor(2.0)], "cpu").tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="same number of keys"):
        parallel.gather([{"a": x}, {}], "cpu")
    model = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
    copies = parallel.replicate(model, ["cpu", "cpu"])
    out = parallel.parallel_apply(copies, [(torch.ones(2, 1),), (torch.ones(2, 1),)])
    assert torch.allclose(out[0], out[1], atol=1e-5)
    with pytest.raises(AssertionError, match="number of modules 2 is not equal"):
        parallel.parallel_apply(copies, [(torch.ones(2, 1),)])


def test_packed_sequences():
    a, b = torch.arange(3.0).reshape(3, 1), torch.ones(2, 1)
    packed = rnn.pack_sequence([a, b])
    assert packed.double().data.dtype is torch.float64 and packed.float() is packed and packed.cpu() is packed
    for name, d in (
        ("half", "float16"),
        ("long", "int64"),
        ("int", "int32"),
        ("short", "int16"),
        ("char", "int8"),
        ("byte", "uint8"),
    ):
        assert getattr(packed, name)().data.dtype is getattr(torch, d)
    assert not packed.is_cuda and not packed.is_pinned()
    again = rnn.unpack_sequence(packed)
    assert [t.tolist() for t in again] == [a.tolist(), b.tolist()]
    padded, lengths = rnn.pad_packed_sequence(packed)
    assert [t.shape[0] for t in rnn.unpad_sequence(padded, lengths)] == [3, 2]
    with pytest.raises(RuntimeError, match="padding_side"):
        rnn.pad_sequence([a, b], padding_side="up")
    with pytest.raises(RuntimeError):
        rnn.pack_sequence([b, a])


def test_texts_of_layers():
    assert repr(nn.Conv2d(2, 4, 3, padding=1, dilation=2, groups=2, bias=False, padding_mode="reflect")) == (
        "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), dilation=(2, 2), groups=2, bias=False, "
        "padding_mode=reflect)"
    )
    assert "output_padding=(1,)" in repr(nn.ConvTranspose1d(1, 1, 3, stride=2, output_padding=1))
    assert repr(nn.LSTM(2, 3, num_layers=2, batch_first=True)) == "LSTM(2, 3, num_layers=2, batch_first=True)"
    assert repr(nn.RNNCell(2, 3, bias=False, nonlinearity="relu")) == "RNNCell(2, 3, bias=False, nonlinearity=relu)"


def test_what_layers_refuse():
    for make, words in (
        (lambda: nn.Conv1d(3, 4, 1, groups=2), "in_channels must be divisible by groups"),
        (lambda: nn.Conv1d(2, 3, 1, groups=2), "out_channels must be divisible by groups"),
        (lambda: nn.Conv1d(2, 2, 1, groups=0), "groups must be a positive integer"),
        (lambda: nn.Conv1d(1, 1, 1, padding="all"), "Invalid padding string"),
        (lambda: nn.Conv1d(1, 1, 1, stride=2, padding="same"), "not supported for strided"),
        (lambda: nn.Conv1d(1, 1, 1, padding_mode="odd"), "padding_mode must be one of"),
        (lambda: nn.ConvTranspose1d(1, 1, 1, padding_mode="reflect"), 'Only "zeros" padding mode'),
        (lambda: nn.ConvTranspose1d(1, 1, 3, stride=2)(torch.ones(1, 1, 4), output_size=[99]), "output"),
        (lambda: nn.GRU(2, 0), "hidden_size must be greater than zero"),
        (lambda: nn.GRU(2, 2, num_layers=0), "num_layers must be greater than zero"),
        (lambda: nn.LSTM(2, 2, proj_size=2), "proj_size has to be smaller"),
        (lambda: nn.LSTM(2, 2, proj_size=-1), "proj_size should be a positive integer"),
        (lambda: nn.RNN(2, 2, nonlinearity="sine"), "Unknown nonlinearity 'sine'"),
        (lambda: nn.GRU(2, 2)(torch.ones(2)), "Expected input to be 2D or 3D"),
        (lambda: nn.LSTMCell(2, 2)(torch.ones(1, 1, 2)), "1D or 2D"),
        (lambda: nn.GRUCell(2, 2)(torch.ones(2), torch.ones(1, 1, 2)), "hidden to be 1D or 2D"),
        (lambda: nn.MultiMarginLoss(p=3), "only p == 1 and p == 2"),
        (lambda: nn.init.eye_(torch.ones(2)), "2 dimensions"),
        (lambda: nn.init.dirac_(torch.ones(2)), "3, 4, or 5 dimensions"),
        (lambda: nn.init.dirac_(torch.ones(3, 1, 1), groups=2), "divisible by groups"),
        (lambda: nn.init.orthogonal_(torch.ones(2)), "2 or more dimensions"),
        (lambda: nn.init.sparse_(torch.ones(2), 0.5), "2 dimensions"),
        (lambda: nn.init.kaiming_uniform_(torch.ones(2, 2), mode="both"), "not supported"),
        (lambda: nn.init.calculate_gain("leaky_relu", "x"), "not a valid number"),
    ):
        with pytest.raises(ValueError, match=words):
            make()
    with pytest.raises(RuntimeError, match="hx should also be 2-D"):
        nn.GRU(2, 2)(torch.ones(3, 2), torch.ones(1, 1, 2))
    with pytest.raises(RuntimeError):
        nn.LSTM(2, 2)(torch.ones(3, 2), (torch.ones(1, 1, 2), torch.ones(1, 1, 2)))
    with pytest.raises(TypeError, match="should be of type int"):
        nn.GRU(2, 2.5)


def test_cells_on_one_example():
    x = torch.ones(2)
    for cell in (nn.RNNCell(2, 3), nn.GRUCell(2, 3)):
        assert cell(x, torch.zeros(3)).shape == (3,)
    h, c = nn.LSTMCell(2, 3)(x, (torch.zeros(3), torch.zeros(3)))
    assert h.shape == c.shape == (3,)
    out, (h, c) = nn.LSTM(2, 3)(torch.ones(4, 2), (torch.zeros(1, 3), torch.zeros(1, 3)))
    assert out.shape == (4, 3) and h.shape == (1, 3)
    out = nn.ConvTranspose2d(1, 1, 3, stride=2)(torch.ones(1, 1, 4, 4), output_size=[1, 1, 10, 10])
    assert out.shape == (1, 1, 10, 10)


def test_draws_within_bounds():
    drawn = nn.init.trunc_normal_(torch.empty(1000), std=2.0, a=-1.0, b=1.0)
    assert drawn.abs().max() <= 1.0 and drawn.std() > 0.4
    assert nn.init.kaiming_normal_(torch.empty(64, 64)).std().item() == pytest.approx((2 / 64) ** 0.5, rel=0.1)
