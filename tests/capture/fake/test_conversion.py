"""From real tensors to fakes: identity, memory, views, leaves, parameters, wrappers."""

from __future__ import annotations

import gc
import weakref

import pytest

import pullback as torch
from pullback import nn
from pullback.batching.inspection import is_batchedtensor
from pullback.capture.fake.mode import (
    FakeTensorConverter,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    is_fake,
)


@pytest.fixture
def mode():
    return FakeTensorMode()


def test_one_tensor_has_one_fake(mode):
    a, b = torch.ones(2, 3), torch.ones(2, 3)
    assert mode.from_tensor(a) is mode.from_tensor(a) is not mode.from_tensor(b)
    fake = mode.from_tensor(a)
    assert mode.from_tensor(fake) is fake


def test_real_tensors_are_not_kept_alive(mode):
    a = torch.ones(1000)
    view = a[1:]
    fakes = mode.from_tensor(a), mode.from_tensor(view)
    watched = weakref.ref(a)
    del a, view
    gc.collect()
    assert watched() is None and not mode.fake_tensor_converter.fakes and fakes[0].shape == (1000,)


def test_strides_offsets_and_bits(mode):
    base = torch.ones(4, 6, dtype=torch.complex64)
    for real in (base.t(), base[1:, ::2], base.conj(), base.conj().imag, torch.ones(3).expand(2, 3), base[0, 0]):
        fake = mode.from_tensor(real)
        assert (fake.shape, fake.stride(), fake.storage_offset()) == (real.shape, real.stride(), real.storage_offset())
        assert (fake.is_conj(), fake.is_neg(), fake.dtype) == (real.is_conj(), real.is_neg(), real.dtype)


def test_shared_memory_stays_shared(mode):
    a = torch.ones(4, 6)
    early = mode.from_tensor(a)
    view, alias = mode.from_tensor(a[1:]), mode.from_tensor(a.detach())
    assert early.untyped_storage() == view.untyped_storage() == alias.untyped_storage()
    assert view._base is early and view._is_view() and not alias._is_view()
    view.add_(1)
    assert early._version == alias._version == 1
    late = torch.ones(4, 6)
    part = late[2]
    fake_part = mode.from_tensor(part)  # the view first: its base is converted with it
    assert fake_part._base is mode.from_tensor(late)


def test_history(mode):
    leaf = torch.ones(3, requires_grad=True)
    result, view = leaf * 2, (leaf * 2)[1:]
    fake = mode.from_tensor(leaf)
    assert fake.requires_grad and fake.is_leaf
    assert mode.from_tensor(result).requires_grad and not mode.from_tensor(result).is_leaf
    fake_view = mode.from_tensor(view)
    assert fake_view.requires_grad and not fake_view.is_leaf and fake_view._is_view()
    with torch.no_grad():
        blind = leaf[1:]
    fake_blind = mode.from_tensor(blind)
    assert fake_blind._base is fake and fake_blind.is_leaf and fake_blind.requires_grad == blind.requires_grad
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        fake.add_(1)
    (leaf * 2).sum().backward()
    other = FakeTensorMode().from_tensor(leaf)
    assert is_fake(other.grad) and other.grad.shape == (3,)


def test_conversion_is_not_seen_by_modes(mode):
    """Making a fake of a result or a view, inside the mode and without grad, records what outside it would be."""
    leaf = torch.ones(3, requires_grad=True)
    result = leaf * 2
    view = result[1:]
    with mode, torch.no_grad():
        assert not mode.from_tensor(view).is_leaf and not mode.from_tensor(result).is_leaf


def test_parameters(mode):
    real = nn.Parameter(torch.ones(2, 3), requires_grad=False)
    real.tag = "mine"
    fake = mode.from_tensor(real)
    assert type(fake) is nn.Parameter and fake.tag == "mine" and not fake.requires_grad
    module = nn.Linear(2, 3)
    for name, parameter in module.named_parameters():
        setattr(module, name, mode.from_tensor(parameter))
    assert all(is_fake(p) for p in module.parameters()) and is_fake(module(mode.from_tensor(torch.ones(4, 2))))


def test_nested_tensors_are_refused(mode):
    real = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with pytest.raises(UnsupportedFakeTensorException, match="fake tensors of layout"):
        mode.from_tensor(real)


class Pair(torch.Tensor):
    """Two tensors behind one face."""

    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype, device=a.device)

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __tensor_flatten__(self):
        return ["a", "b"], "context"

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        assert context == "context"
        return Pair(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def part(name):
            return [getattr(a, name) if isinstance(a, Pair) else a for a in args]

        return Pair(func(*part("a")), func(*part("b")) + torch.ones(()))


def test_wrappers_hold_fakes(mode):
    real = Pair(torch.ones(2), torch.ones(2))
    fake = mode.from_tensor(real)
    assert type(fake) is Pair and is_fake(fake) and fake.a.fake_mode is mode and mode.from_tensor(real) is fake
    with mode:
        result = fake * 2
        assert type(result) is Pair and is_fake(result.b)


def test_converter():
    mode, converter = FakeTensorMode(), FakeTensorConverter()
    real = torch.tensor(3)
    fake = converter.from_real_tensor(mode, real, make_constant=True)
    assert fake.fake_mode is mode and fake.item() == 3 and converter.from_real_tensor(mode, real) is fake
    moved = converter.from_meta_and_device(mode, torch.ones(2, device="meta"), torch.device("cuda:0"))
    assert is_fake(moved) and moved.device == torch.device("cuda:0")


def test_batched_tensors_have_batched_fakes(mode):
    seen = []

    def f(x):
        fake = mode.from_tensor(x)
        seen.append((fake.shape, fake.stride(), is_batchedtensor(fake)))
        return x

    torch.vmap(f)(torch.ones(3, 4, 5))
    assert seen == [((4, 5), (5, 1), True)]


def test_fakes_of_one_environment_keep_their_symbols():
    from pullback.capture.shapes.environment import ShapeEnv

    env = ShapeEnv()
    first, second = (FakeTensorMode(shape_env=env) for _ in range(2))
    one = first.from_tensor(torch.ones(10, 3))
    two = second.from_tensor(one)
    assert two is not one and two.fake_mode is second and [str(n) for n in two.shape] == [str(n) for n in one.shape]


def test_real_of(mode):
    real = torch.ones(2)
    assert mode.fake_tensor_converter.real_of(mode.from_tensor(real)) is real
    assert mode.fake_tensor_converter.real_of(mode.from_tensor(real) + 1) is None


def test_what_is_remembered_goes_with_the_tensors(mode):
    converter = mode.fake_tensor_converter
    x = torch.ones(2, 2)
    y = torch.ones(4)
    y.set_(x.untyped_storage(), 0, (4,), (1,))
    fakes = [converter.from_real_tensor(mode, t) for t in (x, y)]
    assert x not in converter.tensor_memo and fakes[0].untyped_storage() is fakes[1].untyped_storage()
    assert len(converter.tensor_memo) == 2 and len(converter.meta_converter.storage_memo) == 1
    del x
    assert len(converter.tensor_memo) == 1 and len(converter.meta_converter.storage_memo) == 1
    del y
    assert not converter.tensor_memo and not converter.meta_converter.storage_memo


def test_neither_a_tensor_nor_its_mode_keeps_a_fake_alive() -> None:
    x = torch.rand(4)
    mode = FakeTensorMode()
    fake = mode.from_tensor(x)
    assert mode.from_tensor(x) is fake and len(mode.fake_tensor_converter.tensor_memo) == 1
    alive = weakref.ref(mode), weakref.ref(fake)
    del fake
    assert not mode.fake_tensor_converter.tensor_memo and mode.from_tensor(x).shape == (4,)
    del mode
    assert [ref() for ref in alive] == [None, None]
