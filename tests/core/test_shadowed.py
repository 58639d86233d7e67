"""Subclasses of tensors that use the names of our slots for themselves."""

import pullback as torch


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


def test_the_class_and_the_engine_each_mean_their_own():
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


def test_other_classes_are_as_they_were():
    class Plain(torch.Tensor):
        pass

    assert "array" not in vars(Plain) and torch.ones(2).as_subclass(Plain).sum().item() == 2.0
