"""Pruning: masks chosen, combined, applied before each forward, saved, and made permanent."""

import pickle

import pytest

import pullback as torch
from pullback import nn
from pullback.nn.utils import prune

# Of PyTorch, from the same seed.
RANDOM_ENTRIES = [[1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]]
RANDOM_COLUMNS = [1, 0, 0, 1]


def _linear():
    m = nn.Linear(4, 3)
    with torch.no_grad():
        m.weight.copy_(torch.tensor([[1.0, -2, 3, -4], [5, -6, 7, -8], [0.5, 0.25, -9, 10]]))
    return m


def test_the_least_entries_are_masked_and_stay_so_while_training():
    m = _linear()
    weight = m.weight
    assert prune.l1_unstructured(m, "weight", amount=3) is m and prune.is_pruned(m)
    assert m.weight_mask.tolist() == [[0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1]]
    assert m.weight_orig is weight and list(m.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    assert not isinstance(m.weight, nn.Parameter) and m.weight.grad_fn is not None
    m(torch.ones(2, 4)).sum().backward()
    assert torch.equal(weight.grad, 2 * m.weight_mask)
    torch.optim.SGD([weight], lr=1.0, weight_decay=0.1).step()
    m(torch.ones(1, 4))
    assert torch.equal(m.weight, weight * m.weight_mask)
    assert prune.remove(m, "weight") is m and m.weight is weight and m.weight.tolist()[2][:2] == [0, 0]
    assert list(m.state_dict()) == ["bias", "weight"] and not prune.is_pruned(m) and not m._forward_pre_hooks


def test_slices_by_norm():
    m = prune.ln_structured(_linear(), "weight", amount=1, n=2, dim=0)
    assert m.weight_mask.tolist() == [[0] * 4, [1] * 4, [1] * 4]
    m = prune.ln_structured(_linear(), "weight", amount=0.5, n=float("inf"), dim=-1)
    assert m.weight_mask[0].tolist() == [0, 0, 1, 1]
    m = prune.ln_structured(
        _linear(), "weight", 1, 1, 0, importance_scores=torch.tensor([[3.0], [1], [2]]).expand(3, 4)
    )
    assert m.weight_mask[:, 0].tolist() == [1, 0, 1]


def test_random_masks_are_those_of_the_same_seed():
    torch.manual_seed(0)
    assert prune.random_unstructured(_linear(), "weight", 0.5).weight_mask.tolist() == RANDOM_ENTRIES
    assert prune.random_structured(_linear(), "weight", 2, dim=1).weight_mask[0].tolist() == RANDOM_COLUMNS
    m, before = _linear(), torch.get_rng_state()
    assert prune.random_structured(m, "weight", 0, dim=1).weight_mask.sum() == 12
    assert prune.random_unstructured(m, "weight", 0.0).weight_mask.sum() == 12
    assert torch.equal(torch.get_rng_state(), before)


def test_a_second_pruning_acts_on_what_is_left():
    m = _linear()
    prune.ln_structured(m, "weight", amount=1, n=2, dim=0)
    prune.l1_unstructured(m, "weight", amount=0.25)
    (hook,) = m._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 2 and isinstance(hook[1], prune.L1Unstructured)
    assert m.weight_mask.tolist() == [[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1]]
    prune.ln_structured(m, "weight", amount=0.5, n=1, dim=1)
    assert m.weight_mask.tolist() == [[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    prune.custom_from_mask(m, "weight", torch.tensor([[1, 1, 1, 0]] * 3))
    assert m.weight_mask.tolist() == [[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]]
    assert (
        next(iter(m._forward_pre_hooks.values())) is hook and [type(x).__name__ for x in hook][-1] == "CustomFromMask"
    )
    m(torch.ones(1, 4))


def test_parameters_ranked_together():
    net = nn.Sequential(_linear(), nn.ReLU(), nn.Linear(3, 2))
    nn.init.constant_(net[2].weight, 2.5)
    where = [(net[0], "weight"), (net[2], "weight")]
    prune.global_unstructured(iter(where), prune.L1Unstructured, amount=4)
    assert net[0].weight_mask.sum() == 8 and net[2].weight_mask.sum() == 6
    scores = {where[1]: torch.zeros(2, 3)}
    prune.global_unstructured(where, prune.L1Unstructured, importance_scores=scores, amount=6)
    assert net[0].weight_mask.sum() == 8 and net[2].weight_mask.sum() == 0
    assert prune.is_pruned(net) and not prune.is_pruned(net[1])


def test_a_tensor_is_pruned_without_a_module():
    t = torch.tensor([[1.0, -2], [3, -4]])
    method = prune.L1Unstructured(amount=2)
    assert method.prune(t).tolist() == [[0, 0], [3, -4]]
    assert method.prune(t, importance_scores=-1 / t).tolist() == [[1, -2], [0, 0]]
    assert method.prune(t.t(), default_mask=torch.tensor([[1.0, 0], [1, 1]])).tolist() == [[0, 0], [0, -4]]
    with pytest.raises(AssertionError, match="importance_scores should have the same shape as tensor t, got"):
        method.prune(t, importance_scores=torch.ones(3))


def test_state_moves_between_pruned_modules_and_through_pickle():
    m = prune.l1_unstructured(_linear(), "weight", amount=3)
    other = prune.identity(nn.Linear(4, 3), "weight")
    other.load_state_dict(m.state_dict())
    x = torch.ones(1, 4)
    assert torch.equal(other(x), m(x))
    inplace = pickle.loads(pickle.dumps(m))
    assert prune.is_pruned(inplace) and torch.equal(inplace(x), m(x))
    lstm = prune.l1_unstructured(nn.LSTM(2, 3), "weight_ih_l0", 0.5)
    lstm(torch.ones(1, 1, 2))[0].sum().backward()
    assert lstm.weight_ih_l0_orig.grad is not None
    assert m.double().weight_mask.dtype == torch.float64 and m(x.double()).dtype == torch.float64


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m: prune.l1_unstructured(m, "weight", "x"), TypeError, "Invalid type for amount: x. Must be int or fl"),
        (lambda m: prune.l1_unstructured(m, "weight", -1), ValueError, r"amount=-1 should either be a float in the ra"),
        (lambda m: prune.random_structured(m, "weight", 1.5, 0), ValueError, r"amount=1.5 should either be a float"),
        (
            lambda m: prune.l1_unstructured(m, "weight", 13),
            ValueError,
            "amount=13 should be smaller than the number of",
        ),
        (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ValueError, r"Found tensor of shape torch.Size\(\[3\]\) w"),
        (lambda m: prune.ln_structured(m, "weight", 1, 2, 5), IndexError, "Invalid index 5 for tensor of size"),
        (lambda m: prune.ln_structured(m, "weight", 1, 2, -5), IndexError, "Invalid index -5 for tensor of size"),
        (lambda m: prune.l1_unstructured(m, "nope", 1), AttributeError, "object has no attribute 'nope'"),
        (lambda m: prune.custom_from_mask(m, "bias", torch.ones(2)), AssertionError, "must match self.mask shape"),
        (
            lambda m: prune.l1_unstructured(m, "bias", 1, importance_scores=torch.ones(2)),
            AssertionError,
            "importance_scores should have the same shape as parameter bias of Linear",
        ),
        (lambda m: prune.remove(m, "weight"), ValueError, "Parameter 'weight' of module .* has to be pruned before"),
        (lambda m: prune.global_unstructured(3, prune.Identity), TypeError, "parameters is not an Iterable"),
        (
            lambda m: prune.global_unstructured([], prune.Identity, 3),
            TypeError,
            "importance_scores must be of type dict",
        ),
        (
            lambda m: prune.global_unstructured([(m, "bias")], prune.LnStructured, n=2, amount=1),
            TypeError,
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method',
        ),
    ],
)
def test_what_cannot_be_pruned_is_said_and_leaves_the_module_alone(call, error, words):
    m = _linear()
    before = dict(m.named_parameters())
    with pytest.raises(error, match=words):
        call(m)
    assert dict(m.named_parameters()) == before and not list(m.buffers()) and not m._forward_pre_hooks
    assert list(before) == [name for name, _ in m.named_parameters()]


def test_an_absent_bias_cannot_be_pruned():
    with pytest.raises(TypeError, match="must be Tensor, not NoneType"):
        prune.identity(nn.Linear(2, 2, bias=False), "bias")


def test_a_failed_second_pruning_keeps_the_first():
    m = prune.l1_unstructured(_linear(), "weight", 3)
    for methods in (1, 2):
        with pytest.raises(ValueError, match="should be smaller than"):
            prune.l1_unstructured(m, "weight", 100)
        (hook,) = m._forward_pre_hooks.values()
        assert m.weight_mask.sum() == 9 and (methods == 1 or len(hook) == methods)
        prune.identity(m, "weight")


def test_containers_take_methods_of_one_parameter():
    a, b = prune.Identity(), prune.L1Unstructured(1)
    a._tensor_name, b._tensor_name = "weight", "bias"
    container = prune.PruningContainer(a)
    with pytest.raises(TypeError, match="is not a BasePruningMethod subclass"):
        container.add_pruning_method(3)
    with pytest.raises(ValueError, match="acting on the parameter named 'weight' to PruningContainer .* Found 'bias'"):
        container.add_pruning_method(b)
    container.add_pruning_method(a)
    assert list(container) == [a, a]
    a.PRUNING_TYPE = "odd"
    with pytest.raises(ValueError, match="Unrecognized PRUNING_TYPE odd"):
        container.compute_mask(torch.ones(2), torch.ones(2))
    a.PRUNING_TYPE = "structured"
    with pytest.raises(AttributeError, match="need to have the attribute `dim` defined"):
        container.compute_mask(torch.ones(2), torch.ones(2))
    a.dim = -3
    with pytest.raises(IndexError, match="Index is out of bounds for tensor with dimensions 2"):
        container.compute_mask(torch.ones(2, 2), torch.ones(2, 2))
    with pytest.raises(TypeError, match="abstract"):
        prune.BasePruningMethod()
