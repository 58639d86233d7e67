"""A tensor's own slots stay out of the way of names that programs use: PyTorch's tensors have no such attributes."""

import pytest

import pullback as torch

NAMES = ("array", "keys", "autograd", "counter", "memory", "offset", "view_info", "version")


class Labelled:
    offset = 7

    def keys(self):
        return ["a"]


class Image(Labelled, torch.Tensor):
    @property
    def array(self):
        return self.detach().as_subclass(torch.Tensor).tolist()

    @array.setter
    def array(self, value):
        self.copy_(torch.tensor(value))


class Inherited(Image):
    pass


def test_every_slot_is_private():
    assert all(name.startswith("_") for name in torch.Tensor.__slots__)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_free(name):
    x = torch.arange(4.0, requires_grad=True)
    assert not hasattr(x, name)
    setattr(x, name, "mine")
    (x[1:] * 2).sum().backward()
    assert getattr(x, name) == "mine" and x.grad.tolist() == [0.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize(("name", "value"), [("dtype", torch.float64), ("device", torch.device("meta"))])
def test_what_a_tensor_is_cannot_be_assigned(name, value):
    x = torch.ones(2)
    before = getattr(x, name)
    with pytest.raises(AttributeError):
        setattr(x, name, value)
    with pytest.raises(AttributeError):
        delattr(x, name)
    assert getattr(x, name) == before


def test_a_subclass_means_its_own():
    for cls in (Image, Inherited):
        x = torch.arange(4.0).as_subclass(cls)
        assert x.array == [0.0, 1.0, 2.0, 3.0] and x.keys() == ["a"] and x.offset == 7
        x.array = [4.0, 5.0, 6.0, 7.0]
        assert (x[1:] * 2).array == [10.0, 12.0, 14.0] and type(x[1:] * 2) is cls
        x.offset = 9
        assert x.offset == 9 and x[1:].sum().item() == 18.0


def test_gradients_flow_through_such_a_class():
    x = torch.ones(3, requires_grad=True)
    (x.as_subclass(Image) * torch.arange(3.0)).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 2.0]
