"""Names of values: valid, unique, and those that PyTorch gives."""

import pytest

from pullback.graph.graph import Graph
from pullback.graph.naming import Namespace, is_base, snake_case

# What PyTorch 2.13 answers when these are wished for, one after the other, in one graph.
WISHED = [
    ("x", "x"), ("x", "x_1"), ("x_1", "x_2"), ("x_1", "x_3"), ("if", "if_1"), ("int", "int_1"), ("input", "input_1"),
    ("1a", "_1a"), ("a.b", "a_b"), ("", "_unnamed"), ("torch", "torch_1"), ("inf", "inf_1"), ("self", "self"),
    ("add_5", "add_5"), ("add", "add"), ("add", "add_6"), ("BatchNorm", "BatchNorm"),
]  # fmt: skip


def test_names_are_those_of_pytorch():
    g = Graph()
    assert [g.create_node("placeholder", "p", name=n).name for n, _ in WISHED] == [result for _, result in WISHED]


@pytest.mark.parametrize(
    ("target", "name"),
    [("MyMod.sub", "my_mod_sub"), ("aB", "a_b"), ("__add__", "add"), ("layer.0.weight", "layer_0_weight")],
)
def test_names_from_targets(target, name):
    g = Graph()
    assert g.call_method(target, (g.placeholder("p"),)).name == name


def test_snake_case():
    assert snake_case("BatchNorm2d") == "batch_norm2d" and snake_case("ALL_CAPS") == "all_caps"


def test_the_quick_way_gives_the_same_names():
    slow, quick = Namespace(), Namespace()
    for wish in ("mul", "add", "mul", "mul", "add", "mul"):
        name = quick.numbered(wish)
        quick.used.add(name)
        assert name == slow.create_name(wish)
    assert is_base("mul") and not is_base("mul_1") and not is_base("sum") and not is_base("a.b")


def test_an_object_keeps_its_name():
    names, thing = Namespace(), object()
    assert names.create_name("a", thing) == names.create_name("b", thing) == "a"
    with pytest.raises(AssertionError, match="already associated"):
        names.associate_name_with_obj("c", thing)
