"""What stands around modules: clipping, vectors, parametrizations, norms, packed sequences, fusion."""

import copy
import pickle

import pytest

import pullback as torch
from pullback import nn
from pullback.nn import utils
from pullback.nn.utils import parametrizations, parametrize
from pullback.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence


def _with_grads(*values):
    result = [nn.Parameter(torch.zeros(len(v))) for v in values]
    for p, v in zip(result, values, strict=True):
        p.grad = torch.tensor(v)
    return result


def test_clipping_by_norm_and_by_value():
    ps = _with_grads([3.0, 0.0], [4.0])
    assert utils.clip_grad_norm_(ps, 1.0).item() == 5
    assert abs(utils.get_total_norm([p.grad for p in ps]).item() - 1) < 1e-5
    assert utils.clip_grad_norm_(ps, 10.0, norm_type=float("inf")).item() == pytest.approx(0.8)
    utils.clip_grad_value_(ps, 0.5)
    assert ps[1].grad.item() == 0.5
    assert repr(utils.clip_grad_norm_([], 1.0)) == "tensor(0.)"
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        utils.clip_grad_norm_(_with_grads([float("nan")]), 1.0, error_if_nonfinite=True)


def test_parameters_as_a_vector():
    m = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(m.parameters())
    utils.vector_to_parameters(vector * 2, m.parameters())
    assert torch.allclose(utils.parameters_to_vector(m.parameters()), vector * 2) and m.weight.requires_grad


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).t()

    def right_inverse(self, a):
        return a.triu()


def test_a_parametrized_weight_is_computed_and_assigned():
    m = nn.Linear(3, 3)
    parametrize.register_parametrization(m, "weight", Symmetric())
    assert type(m).__name__ == "ParametrizedLinear" and torch.equal(m.weight, m.weight.t())
    m(torch.ones(1, 3)).sum().backward()
    assert m.parametrizations.weight.original.grad is not None
    value = torch.arange(9.0).reshape(3, 3)
    m.weight = value + value.t()
    assert torch.equal(m.weight, value + value.t())
    with parametrize.cached():
        assert m.weight is m.weight
    inplace = copy.deepcopy(m)
    assert torch.equal(inplace.weight, m.weight)
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(m)
    parametrize.remove_parametrizations(m, "weight")
    assert type(m) is nn.Linear and list(m.state_dict()) == ["bias", "weight"]


def test_a_parametrization_keeps_the_shape():
    class Cut(nn.Module):
        def forward(self, x):
            return x[:1]

    with pytest.raises(ValueError, match="may not change the shape of the tensor"):
        parametrize.register_parametrization(nn.Linear(2, 2), "weight", Cut())
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized element"):
        parametrize.register_parametrization(nn.Linear(2, 2), "foo", Cut())


@pytest.mark.parametrize("make", [parametrizations.weight_norm, utils.weight_norm])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_weight_norm_splits_size_and_direction(make):
    m = nn.Linear(3, 4)
    before = m.weight.detach().clone()
    m = make(m)
    assert torch.allclose(m.weight, before)
    m(torch.ones(2, 3)).sum().backward()
    assert len(list(m.parameters())) == 3 and all(p.grad is not None for p in m.parameters())


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_weight_norm_takes_the_state_of_its_older_form():
    older, newer = utils.weight_norm(nn.Linear(3, 4)), parametrizations.weight_norm(nn.Linear(3, 4))
    newer.load_state_dict(older.state_dict())
    assert torch.allclose(older.weight, newer.weight)
    utils.remove_weight_norm(older)
    assert isinstance(older.weight, nn.Parameter)


@pytest.mark.parametrize("make", [parametrizations.spectral_norm, utils.spectral_norm])
def test_spectral_norm_keeps_the_largest_singular_value_at_one(make):
    m = make(nn.Linear(6, 5), n_power_iterations=30)
    m(torch.ones(1, 6))
    assert abs(torch.linalg.matrix_norm(m.weight.detach(), 2).item() - 1) < 1e-3


@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivialized", [True, False])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_orthogonal_stays_orthogonal(how, trivialized, shape):
    m = parametrizations.orthogonal(nn.Linear(*shape).double(), orthogonal_map=how, use_trivialization=trivialized)
    w = m.weight
    small = w @ w.t() if w.shape[0] < w.shape[1] else w.t() @ w
    assert torch.allclose(small, torch.eye(small.shape[0], dtype=torch.float64))


def test_packing_is_undone_by_padding():
    x = torch.arange(24.0).reshape(4, 3, 2).requires_grad_()
    packed = pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
    assert isinstance(packed, PackedSequence) and packed.batch_sizes.tolist() == [3, 2, 1, 1]
    padded, lengths = pad_packed_sequence(packed, batch_first=True, padding_value=-1.0, total_length=5)
    assert lengths.tolist() == [2, 4, 1] and padded.shape == (3, 5, 2) and padded[2, 1, 0] == -1
    padded.sum().backward()
    assert x.grad[:, :, 0].t().tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]]
    with pytest.raises(RuntimeError, match="must be sorted in decreasing order"):
        pack_sequence([torch.ones(1), torch.ones(2)])


def test_padding_sequences():
    result = pad_sequence([torch.ones(1), torch.ones(3)], batch_first=True, padding_value=7, padding_side="left")
    assert result.tolist() == [[7, 7, 1], [1, 1, 1]]
    with pytest.raises(RuntimeError, match="received an empty list of sequences"):
        pad_sequence([])


def test_a_fused_layer_does_what_the_two_did():
    conv, norm = nn.Conv2d(2, 3, 2).eval(), nn.BatchNorm2d(3).eval()
    norm.running_mean.uniform_()
    norm.running_var.uniform_(1, 2)
    x = torch.randn(1, 2, 4, 4)
    assert torch.allclose(utils.fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)), atol=1e-6)


def test_skip_init_makes_memory_only():
    m = utils.skip_init(nn.Linear, 3, 4)
    assert m.weight.shape == (4, 3) and m.weight.device.type == "cpu"


def test_nothing_is_not_packed():
    rnn = torch.nn.utils.rnn
    with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
        rnn.pack_padded_sequence(torch.rand(0, 0), [])
    empty = rnn.PackedSequence(torch.rand(0, 5), torch.tensor([], dtype=torch.int64))
    with pytest.raises(RuntimeError, match="batch_sizes are empty"):
        rnn.pad_packed_sequence(empty)


def test_states_of_the_first_spectral_norm_are_loaded():
    """They have the weight itself, and the left vector alone."""
    layer = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 5))
    layer(torch.rand(2, 3))
    state = layer.state_dict()
    expected = layer.eval()(torch.ones(1, 3))
    del state._metadata[""]["spectral_norm"]
    v = state.pop("weight_v")
    state["weight"] = layer.weight.detach().clone()
    fresh = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 5))
    fresh.load_state_dict(state)
    torch.testing.assert_close(fresh.eval()(torch.ones(1, 3)), expected)
    torch.testing.assert_close(fresh.weight_v, v, rtol=1e-3, atol=1e-4)
    del state["weight_u"]
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: .*"weight_u"'):
        fresh.load_state_dict(state)
    assert not torch.nn.utils.remove_spectral_norm(fresh)._load_state_dict_pre_hooks
