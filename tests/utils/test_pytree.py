"""Trees: every container comes back as it was; structures compare, print and travel."""

import enum
import json
import time
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as torch
from pullback.core import tree as core_tree
from pullback.utils import pytree

Point = namedtuple("Point", "x y")
leaves = st.integers() | st.none() | st.text(max_size=3)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.dictionaries(st.text(max_size=2), inner, max_size=3).map(OrderedDict),
        st.dictionaries(st.text(max_size=2), inner, max_size=3).map(lambda d: defaultdict(int, d)),
        st.tuples(inner, inner).map(lambda p: Point(*p)),
        st.lists(inner, max_size=3).map(lambda x: deque(x, maxlen=5)),
    ),
    max_leaves=12,
)


@given(trees)
def test_a_tree_comes_back(tree):
    found, spec = pytree.tree_flatten(tree)
    again = pytree.tree_unflatten(found, spec)
    assert again == tree and type(again) is type(tree) and spec.num_leaves == len(found)
    assert pytree.tree_structure(again) == spec and hash(pytree.tree_structure(again)) == hash(spec)
    assert [pytree.key_get(tree, path) for path, _ in pytree.tree_leaves_with_path(tree)] == found
    assert pytree.tree_map(lambda x: (x,), tree) == pytree.tree_unflatten([(x,) for x in found], spec)


def test_dicts_keep_the_order_of_their_keys():
    assert pytree.tree_leaves({"b": 1, "a": 2}) == [1, 2]
    assert pytree.tree_map(lambda x, y: (x, y), {"b": 1, "a": 2}, {"a": 20, "b": 10}) == {"b": (1, 10), "a": (2, 20)}


def test_words_of_refusals():
    spec = pytree.tree_structure([1, 2])
    with pytest.raises(ValueError, match="`leaves` has length 1 but the spec refers to a pytree that holds 2 items"):
        pytree.tree_unflatten([1], spec)
    with pytest.raises(ValueError, match="Node arity mismatch; expected 2, but got 3"):
        spec.flatten_up_to([1, 2, 3])
    with pytest.raises(ValueError, match="Type mismatch"):
        spec.flatten_up_to((1, 2))
    with pytest.raises(TypeError, match="Expected `treespec` to be instance of TreeSpec"):
        pytree.tree_unflatten([1], "no spec")


def test_printing():
    assert str(pytree.tree_structure([1, {"a": (2,)}])) == (
        "TreeSpec(list, None, [*,\n  TreeSpec(dict, ['a'], [TreeSpec(tuple, None, [*])])])"
    )
    assert pytree.keystr(pytree.tree_leaves_with_path([{"a": Point(1, 2)}])[1][0]) == "[0]['a'].y"
    assert pytree.treespec_pprint(pytree.tree_structure({"a": [1, 2]})) == "{'a': [*, *]}"


def test_registered_classes_are_nodes_everywhere():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))
    try:
        with pytest.raises(ValueError, match="already registered"):
            pytree.register_pytree_node(Pair, None, None)
        doubled = pytree.tree_map(lambda x: 2 * x, [Pair(1, 2)])
        assert (doubled[0].a, doubled[0].b) == (2, 4)
        assert core_tree.tree_flatten([Pair(3, 4)])[0] == [3, 4]
        with pytest.raises(ValueError, match="flatten_with_keys_fn"):
            pytree.tree_leaves_with_path(Pair(1, 2))
    finally:
        pytree._deregister_pytree_node(Pair)
    assert len(pytree.tree_leaves([Pair(1, 2)])) == 1


def test_dataclasses_and_constants():
    @dataclass
    class Config:
        x: int
        y: int | None = None

    @dataclass(frozen=True)
    class Name:
        text: str

    pytree.register_dataclass(Config)
    pytree.register_constant(Name)
    try:
        assert pytree.tree_map(lambda x: x + 1, Config(1)) == Config(2, None)
        assert pytree.tree_leaves([Name("a"), 1]) == [1]
        assert pytree.tree_structure(Name("a")) != pytree.tree_structure(Name("b"))
    finally:
        pytree._deregister_pytree_node(Config)
        pytree._deregister_pytree_node(Name)


def test_structures_travel_as_text():
    spec = pytree.tree_structure([1, {"a": (2, [3])}, OrderedDict(b=4)])
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    with pytest.raises(ValueError, match="Unknown protocol"):
        pytree.treespec_dumps(spec, 7)


def test_one_value_for_a_whole_part():
    spec = pytree.tree_structure([1, (2, 3)])
    assert pytree._broadcast_to_and_flatten([0, 5], spec) == [0, 5, 5]
    assert pytree._broadcast_to_and_flatten([0, (1, 2, 3)], spec) is None


def test_named_results_are_inner_nodes():
    found = torch.max(torch.tensor([[1.0, 2.0], [4.0, 3.0]]), 1)
    leaves, spec = pytree.tree_flatten(found)
    assert [leaf.tolist() for leaf in leaves] == [[2.0, 4.0], [1, 0]]
    again = pytree.tree_unflatten(leaves, spec)
    assert type(again) is type(found) and again.values is leaves[0]


class Colour(enum.Enum):
    RED = 1


def test_text_is_in_the_form_of_pytorch():
    written = pytree.treespec_dumps(pytree.tree_structure({Colour.RED: (1,)}))
    leaf = {"type": None, "context": None, "children_spec": []}
    one = {"type": "builtins.tuple", "context": "null", "children_spec": [leaf]}
    member = [{"__enum__": True, "fqn": f"{__name__}:Colour", "name": "RED"}]
    assert json.loads(written) == [1, {"type": "builtins.dict", "context": json.dumps(member), "children_spec": [one]}]


@pytest.mark.parametrize(
    "tree",
    [
        {Colour.RED: 1},
        defaultdict(list, a=[1]),
        defaultdict(None, a=1),
        deque([1], 3),
        torch.Size((1, 2)),
        {1: 2, "a": ()},
    ],
    ids=repr,
)
def test_contexts_travel(tree):
    spec = pytree.tree_structure(tree)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


def test_structures_that_cannot_be_written():
    with pytest.raises(TypeError, match="Please make the context json dump-able"):
        pytree.treespec_dumps(pytree.tree_structure({b"a": 1}))
    for factory in (lambda: 0, Colour):
        text = pytree.treespec_dumps(pytree.tree_structure(defaultdict(factory, a=1)))
        text = text.replace(__name__, "a_module_that_is_not_loaded")
        with pytest.raises(NotImplementedError, match="is not loaded"):
            pytree.treespec_loads(text)


def test_named_tuples_are_written_under_the_name_they_are_given():
    Place = namedtuple("Place", "x y")
    spec = pytree.tree_structure(Place(1, 2))
    with pytest.raises(NotImplementedError, match="Please register using `_register_namedtuple`"):
        pytree.treespec_dumps(spec)
    pytree._register_namedtuple(Place, serialized_type_name="tests.Place")
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    with pytest.warns(UserWarning, match="already registered"):
        pytree._register_namedtuple(Place, serialized_type_name="tests.Place")
    with pytest.raises(TypeError, match="class of a named tuple"):
        pytree._register_namedtuple(tuple, serialized_type_name="tests.tuple")
    with pytest.raises(NotImplementedError, match="couldn't find"):
        pytree.treespec_loads(pytree.treespec_dumps(spec).replace("tests.Place", "tests.Other"))


def test_fields_that_are_children():
    @dataclass
    class Data:
        a: int
        b: int = 2
        c: int = field(init=False, default=0)

    for names, words in ((["a"], "Missing fields"), (["a", "b", "c"], "Unexpected fields")):
        with pytest.raises(ValueError, match=words):
            pytree.register_dataclass(Data, field_names=names)
    pytree.register_dataclass(Data, field_names=["a"], drop_field_names=["b"])
    assert pytree.tree_map(lambda x: x + 1, Data(1, 5)) == Data(2, 2)
    pytree._deregister_pytree_node(Data)
    with pytest.raises(ValueError, match="field_names must be specified"):
        pytree.register_dataclass(object)


def test_the_former_name_takes_the_place_of_what_was_registered():
    class Box:
        def __init__(self, x):
            self.x = x

    def register(step):
        pytree._register_pytree_node(Box, lambda b: ([b.x], None), lambda values, _: Box(values[0] + step))

    with pytest.warns(FutureWarning, match="is deprecated"):
        register(0)
    with pytest.warns((FutureWarning, UserWarning)) as seen:
        register(1)
    assert any("already registered" in str(w.message) for w in seen)
    assert pytree.tree_map(lambda x: x, Box(1)).x == 2 and core_tree.tree_map(lambda x: x, Box(1)).x == 2
    pytree._deregister_pytree_node(Box)


def test_named_tuples_of_c():
    class Like(tuple):
        n_fields = n_sequence_fields = 2
        n_unnamed_fields = 0

    assert pytree.is_structseq(time.gmtime()) and pytree.is_structseq_class(torch.return_types.max)
    assert not pytree.is_structseq(Like((1, 2))) and not pytree.is_structseq_class((1, 2))


def test_the_containers_of_nodes_are_taken_apart():
    from pullback.graph.immutable import immutable_dict, immutable_list

    given = immutable_dict(b=immutable_list([1, (2, immutable_list())]), a=3)
    leaves, spec = pytree.tree_flatten(given)
    assert leaves == [1, 2, 3]
    again = pytree.tree_unflatten(leaves, spec)
    assert again == given and type(again) is immutable_dict and type(again["b"]) is immutable_list
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
