"""Tensors that are zero for ever: what they give, and that nobody writes them."""

import pytest

import pullback as torch
from pullback.capture.fake.mode import FakeTensorMode

zeros = torch._efficientzerotensor


def test_what_is_computed_of_one_is_an_ordinary_tensor() -> None:
    z, x = zeros(2, 3), torch.ones(2, 3, requires_grad=True)
    assert z._is_zerotensor() and z.view(6)._is_zerotensor() and z.stride() == (3, 1)
    for t in (z + 1, z.clone(), x * z, torch.stack([z, z])):
        assert not t._is_zerotensor()
    (x * z + z).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3] * 2
    assert z.clone().add_(1).tolist() == [[1.0] * 3] * 2
    assert torch.compile(lambda x, z: x + z)(x, z).tolist() == x.tolist()


@pytest.mark.parametrize(
    "write",
    [
        lambda z: z.add_(1),
        lambda z: torch.add(z, 1, out=z),
        lambda z: z[0].fill_(3),
        lambda z: z.view(6).zero_(),
        lambda z: z.copy_(z + 1),
        lambda z: z.__setitem__(0, 1),
    ],
)
def test_nobody_writes_one(write) -> None:
    z = zeros(2, 3)
    with pytest.raises(RuntimeError, match="ZeroTensors are immutable"):
        write(z)
    assert z.tolist() == [[0.0] * 3] * 2


def test_fakes_of_them_go_past_the_cache() -> None:
    with FakeTensorMode():
        FakeTensorMode.cache_clear()
        z = zeros(3)
        assert z._is_zerotensor() and not (z + 1)._is_zerotensor()
        assert FakeTensorMode.cache_info().bypasses == {"dispatch_key_set mismatch": 1}
