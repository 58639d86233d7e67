"""Which modules are wrapped, by policies, and modules that checkpoint themselves."""

from functools import partial

import pytest

import pullback as torch
from pullback.distributed import fsdp, rpc
from pullback.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    CheckpointWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)
from pullback.distributed.fsdp import wrap

nn = torch.nn


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.ModuleList([nn.Linear(4, 4)]), nn.Linear(4, 2))


class Boxed(nn.Module):
    def __init__(self, inside, tag=None):
        super().__init__()
        self.inside, self.tag = inside, tag


@pytest.mark.parametrize(
    ("policy", "wrapped", "elements"),
    [
        (wrap.ModuleWrapPolicy({nn.Linear}), ["0.0", "1.0", "2"], 46),
        (partial(wrap.transformer_auto_wrap_policy, transformer_layer_cls={nn.Tanh}), ["0.1"], 0),
        (partial(wrap.lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.Sequential)), ["0"], 16),
        (partial(wrap.size_based_auto_wrap_policy, min_num_params=16), ["0.0", "1.0"], 36),
        (wrap.CustomPolicy(lambda m: isinstance(m, nn.ModuleList)), ["1"], 20),
    ],
)
def test_policies(policy, wrapped, elements):
    net = model()
    names = {id(m): name for name, m in net.named_modules()}
    assert wrap.wrap_children(net, policy, Boxed) == elements
    assert [names[id(m.inside)] for m in net.modules() if isinstance(m, Boxed)] == wrapped


def test_a_wrapper_for_a_block():
    assert type(wrap.wrap(nn.Tanh())) is nn.Tanh
    with wrap.enable_wrap(wrapper_cls=Boxed, tag=1):
        assert (wrap.wrap(nn.Tanh()).tag, wrap.wrap(nn.Tanh(), tag=2).tag) == (1, 2)


@pytest.mark.parametrize("kind", CheckpointImpl)
def test_checkpointed_modules_compute_the_same(kind):
    plain = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    wrapped = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    calls = []
    wrapped[1].register_forward_pre_hook(lambda *args: calls.append(1))
    apply_activation_checkpointing(
        wrapped, partial(checkpoint_wrapper, checkpoint_impl=kind), lambda m: isinstance(m, nn.Tanh)
    )
    assert isinstance(wrapped[1], CheckpointWrapper) and not isinstance(wrapped[0], CheckpointWrapper)
    assert list(wrapped.state_dict()) == list(plain.state_dict())
    wrapped.load_state_dict(plain.state_dict())
    x = torch.randn(5, 3, requires_grad=True)
    for net in (plain, wrapped):
        net(x).square().sum().backward()
    assert calls == [1, 1]  # once more in backward
    for p, q in zip(plain.parameters(), wrapped.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)


def test_a_wrapped_module_goes_by_its_names():
    inside = nn.Sequential(nn.Linear(3, 4))
    for wrapper in (checkpoint_wrapper(inside), offload_wrapper(inside)):
        assert [n for n, _ in wrapper.named_parameters()] == ["0.weight", "0.bias"] == list(wrapper.state_dict())
        assert wrapper[0] is inside[0]
        wrapper.load_state_dict({k: torch.ones_like(v) for k, v in wrapper.state_dict().items()})
        assert wrapper(torch.ones(1, 3)).tolist() == [[4.0] * 4]


def test_what_is_not_built_says_so():
    assert not isinstance(nn.Linear(2, 2), fsdp.FullyShardedDataParallel)
    with pytest.raises(NotImplementedError, match="use torch.distributed.fsdp.fully_shard"):
        fsdp.FullyShardedDataParallel(nn.Linear(2, 2))
    assert not rpc.is_available()
    with pytest.raises(RuntimeError, match="remote procedure calls are not implemented"):
        rpc.init_rpc("worker0")
    with pytest.raises(RuntimeError, match="distributed.autograd.context: remote procedure calls"):
        torch.distributed.autograd.context()


def test_records_have_defaults():
    assert fsdp.MixedPrecision(param_dtype=torch.bfloat16).cast_root_forward_inputs
    assert fsdp.FullStateDictConfig(rank0_only=True).offload_to_cpu is False
    assert fsdp.ShardingStrategy.FULL_SHARD.value == 1


def test_scaling_on_one_rank():
    from pullback.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    p = torch.nn.Parameter(torch.ones(2))
    optimizer, scaler = torch.optim.SGD([p], lr=1.0), ShardedGradScaler("cpu", init_scale=8.0)
    scaler.scale((p * 3).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [-2.0, -2.0]
