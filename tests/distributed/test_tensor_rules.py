"""How results of operators lie, in a world of one rank; that they are right on several: `programs/sharding.py`."""

import pytest

import pullback as torch
import pullback.distributed as dist
from pullback import nn
from pullback.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh
from pullback.distributed.tensor.experimental import implicit_replication
from pullback.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

F = nn.functional
VALUES = torch.arange(16.0).reshape(4, 4)


@pytest.fixture(autouse=True)
def mesh():
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


@pytest.fixture
def rows(mesh):
    return distribute_tensor(VALUES, mesh, [Shard(0)])


@pytest.fixture
def total(mesh):
    return DTensor.from_local(VALUES.clone(), mesh, [Partial()])


def test_views_take_their_cut_along(rows):
    for function, dim in (
        (lambda t: t.t(), 1),
        (lambda t: torch.permute(t, dims=(1, 0)), 1),
        (lambda t: t.transpose(-1, 0), 1),
        (lambda t: t.unsqueeze(0), 1),
        (lambda t: t.unsqueeze(-1), 0),
        (lambda t: t.view(2, 2, 4), 0),
        (lambda t: t.view(1, 16), 1),
        (lambda t: t[:, 1], 0),
        (lambda t: t.t()[1], 0),
        (lambda t: t.split(2, 1)[1], 0),
        (lambda t: t.unbind(1)[2], 0),
        (lambda t: t.unsqueeze(0).expand(3, 4, 4), 1),
        (lambda t: torch.zeros_like(t), 0),
        (lambda t: F.layer_norm(t, (4,)), 0),
    ):
        result = function(rows)
        assert result.placements == (Shard(dim),) and torch.equal(result.full_tensor(), function(VALUES))
    table = distribute_tensor(VALUES, rows.device_mesh, [Replicate()])
    result = F.embedding((rows[:, 0] / 4).long(), table)
    assert result.placements == (Shard(0),) and torch.equal(result.full_tensor(), VALUES)


def test_what_needs_the_whole_gathers_it(rows):
    for function in (
        lambda t: t.split(3)[0],
        lambda t: t[1],
        lambda t: t[:1].expand(3, 4),
        lambda t: t.softmax(0),
        lambda t: t.sort(1).values,
        lambda t: torch.frexp(t).mantissa,
        lambda t: F.layer_norm(t, (4, 4)),
        lambda t: torch.linalg.vector_norm(t, 0),
        lambda t: torch.linalg.vector_norm(t, 2, 0),
        lambda t: F.embedding(t[0].long(), t),
    ):
        result = function(rows)
        assert result.placements == (Replicate(),) and torch.equal(result.full_tensor(), function(VALUES))


def test_sums_stay_apart_where_that_is_right(total):
    apart, one = (Partial(),), (Replicate(),)
    for result, places in (
        (total * 2, apart),
        (total / 2, apart),
        (total + total, apart),
        (-total, apart),
        (total.t(), apart),
        (total.to(torch.float64), apart),
        (total.mean(), apart),
        (total + 1, one),
        (total * total, one),
        (total / total, one),
        (2 / total, one),
        (torch.div(total, 2, rounding_mode="floor"), one),
        (total.to(torch.int64), one),
        (total.to(torch.int64).to(torch.bool), one),
        (total.abs(), one),
        (torch.zeros_like(total), one),
    ):
        assert result.placements == places


def test_products(rows, total, mesh):
    columns = distribute_tensor(VALUES, mesh, [Shard(1)])
    whole = distribute_tensor(VALUES, mesh, [Replicate()])
    for a, b, place in (
        (rows, whole, Shard(0)),
        (whole, columns, Shard(1)),
        (columns, rows, Partial()),
        (rows, columns, Shard(0)),
        (total, whole, Partial()),
        (whole, total, Partial()),
        (whole, whole, Replicate()),
        (total, total, Replicate()),
    ):
        result = a @ b
        assert result.placements == (place,) and torch.equal(result.full_tensor(), VALUES @ VALUES)
    several = distribute_tensor(VALUES.expand(2, 4, 4), mesh, [Shard(0)])
    assert torch.bmm(several, several).placements == (Shard(0),)
    result = torch.addmm(whole, rows, whole, beta=3, alpha=2)
    assert torch.equal(result.full_tensor(), VALUES * 3 + VALUES @ VALUES * 2)


def test_writes_go_to_parts(rows, total):
    rows.add_(1)
    assert torch.equal(rows.to_local(), VALUES + 1)
    rows.cumsum_(0)  # this looks at more than single elements
    assert torch.equal(rows.full_tensor(), (VALUES + 1).cumsum(0)) and rows.placements == (Shard(0),)
    torch.add(total, total, out=rows)
    assert torch.equal(rows.full_tensor(), VALUES * 2) and rows.placements == (Shard(0),)
    with pytest.raises(RuntimeError, match="a tensor of partial values cannot be written"):
        total.add_(1)
    for write in (lambda: VALUES.clone().add_(rows), lambda: torch.add(rows, rows, out=torch.empty(4, 4))):
        with pytest.raises(RuntimeError, match="a plain tensor cannot take a distributed result"):
            write()


def test_values_are_those_of_the_whole(rows, total):
    assert rows[1, 2].item() == 6 and torch.equal(rows, total) and not torch.equal(rows, total * 2)


def test_plain_tensors_count_as_replicated_where_that_is_said(rows):
    with implicit_replication():
        assert torch.equal((rows + VALUES).full_tensor(), VALUES * 2)
    with pytest.raises(RuntimeError, match="got mixed torch.Tensor and DTensor"):
        rows + VALUES


def test_meshes_must_be_one(rows):
    other = init_device_mesh("cpu", (1, 1))
    with pytest.raises(RuntimeError, match="its arguments are on different meshes"):
        rows + distribute_tensor(VALUES, other, [Replicate(), Replicate()])


# ---- plans
def test_styles(mesh):
    linear, x = nn.Linear(4, 4), torch.ones(2, 4)
    expected = linear(x)
    for style, place in ((ColwiseParallel(), Shard(0)), (RowwiseParallel(), Shard(1))):
        module = parallelize_module(nn.Linear(4, 4), mesh, style)
        module.load_state_dict({k: distribute_tensor(v, mesh, [Replicate()]) for k, v in linear.state_dict().items()})
        assert module.weight.placements == (place,) and torch.equal(module(x), expected)
    embedding = parallelize_module(nn.Embedding(3, 4), mesh, ColwiseParallel(use_local_output=False))
    result = embedding(torch.tensor([0, 2]))
    assert embedding.weight.placements == (Shard(1),) and result.placements == (Shard(1),)
    assert torch.equal(result.full_tensor(), embedding.weight.full_tensor()[[0, 2]])
    with pytest.raises(NotImplementedError, match="only support nn.Linear and nn.Embedding, got ReLU"):
        parallelize_module(nn.ReLU(), mesh, ColwiseParallel())
    norm = parallelize_module(nn.LayerNorm(4), mesh, SequenceParallel())
    assert norm(torch.ones(2, 3, 4)).placements == (Shard(1),)


def test_inputs_and_outputs_are_prepared(mesh):
    seen = []

    class Pair(nn.Module):
        def forward(self, a, b):
            seen.append((a, b))
            return a * 2

    style = PrepareModuleInput(input_layouts=(Shard(0), None), desired_input_layouts=(Replicate(), None))
    pair = parallelize_module(Pair(), mesh, style)
    parallelize_module(pair, mesh, PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Shard(0)))
    result = pair(torch.ones(2), "b")
    assert seen[0][0].placements == (Replicate(),) and seen[0][1] == "b"
    assert not isinstance(result, DTensor) and result.tolist() == [2, 2]
    with pytest.raises(ValueError, match="should have same length! Found 1 and 2"):
        pair(torch.ones(2))
    with pytest.raises(NotImplementedError, match="input_kwarg_layouts"):
        PrepareModuleInput(input_kwarg_layouts={})


def test_plans_that_do_not_fit(mesh):
    with pytest.raises(ValueError, match="no module is named 'up'"):
        parallelize_module(nn.Sequential(nn.Linear(2, 2)), mesh, {"up": ColwiseParallel()})
    with pytest.raises(ValueError, match="expected a mesh of one dimension"):
        parallelize_module(nn.Linear(2, 2), init_device_mesh("cpu", (1, 1)), ColwiseParallel())
