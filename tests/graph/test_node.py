"""Nodes: arguments, users, order, text."""

import operator
import pickle
from typing import NamedTuple

import pytest

import pullback as torch
from pullback.graph import Graph, has_side_effect, map_arg
from pullback.graph.immutable import immutable_dict, immutable_list
from pullback.graph.names import format_arg
from pullback.graph.node import map_aggregate


@pytest.fixture
def chain():
    g = Graph()
    x = g.placeholder("x")
    y = g.call_function(operator.neg, (x,))
    z = g.call_function(operator.add, (y, [x, {"k": y}]), {"alpha": x})
    g.output(z)
    return g, x, y, z


def test_users_follow_arguments(chain):
    g, x, y, z = chain
    assert list(x.users) == [y, z] and list(y.users) == [z] and z.all_input_nodes == [y, x]
    z.args = (y, 1)
    assert list(x.users) == [y, z]  # by keyword still
    z.kwargs = {}
    assert list(x.users) == [y]
    z.update_arg(1, x)
    z.insert_arg(0, x)
    z.update_kwarg("k", y)
    assert z.args == (x, y, x) and z.kwargs == {"k": y} and z.all_input_nodes == [x, y]
    z.replace_input_with(x, y)
    assert z.args == (y, y, y) and list(x.users) == [y]


def test_replace_all_uses_with(chain):
    g, x, y, z = chain
    assert x.replace_all_uses_with(y, delete_user_cb=lambda user: user is z) == [z]
    assert z.args == (y, [y, {"k": y}]) and list(x.users) == [y]
    x.meta["val"] = 1
    with g.inserting_after(x):
        w = g.call_function(operator.pos, (1,))
    x.replace_all_uses_with(w, propagate_meta=True)
    assert w.meta == {"val": 1} and y.args == (w,)
    with pytest.raises(AssertionError, match="already has .meta keys"):
        x.replace_all_uses_with(w, propagate_meta=True)


def test_arguments_are_immutable(chain):
    *_, z = chain
    words = "object does not support mutation. If you are attempting to modify the kwargs or args of a torch.fx.Node"
    for write in (
        lambda: z.args[1].append(1),
        lambda: z.args[1].__setitem__(0, 1),
        lambda: z.kwargs.update(a=1),
        lambda: z.args[1][1].pop("k"),
    ):
        with pytest.raises(TypeError, match=words):
            write()
    assert hash(immutable_list([1, 2])) == hash((1, 2)) and hash(immutable_dict(a=1)) == hash(immutable_dict(a=1))


def test_immutable_containers_are_trees_of_values(chain):
    *_, z = chain
    leaves, spec = torch.core.tree.tree_flatten(z.args)
    assert len(leaves) == 3 and torch.core.tree.tree_unflatten(leaves, spec) == z.args


def test_order(chain):
    g, x, y, z = chain
    assert x < y < z and z > x and x <= x and not y < x
    assert x.next is y and z.prev is y and x.prev is g._root
    x.append(z)
    assert [n.name for n in g.nodes] == ["x", "add", "neg", "output"] and z < y


def test_order_survives_many_insertions_at_one_place(chain):
    g, x, y, z = chain
    with g.inserting_before(z):
        result = [g.call_function(operator.pos, (y,)) for _ in range(200)]
    nodes = list(g.nodes)
    assert nodes == sorted(nodes, key=lambda n: n._sort_key) and len({n._sort_key for n in nodes}) == len(nodes)
    assert result == sorted(result)


def test_format_node(chain):
    *_, y, z = chain
    assert y.format_node() == "%neg : [num_users=1] = call_function[target=operator.neg](args = (%x,), kwargs = {})"
    assert z.format_node().endswith("(args = (%neg, [%x, {k: %neg}]), kwargs = {alpha: %x})")
    y.meta["val"] = torch.ones(2, 3)
    assert 'Tensor "f32[2, 3][3, 1]cpu"' in y.format_node(include_tensor_metadata=True)


def test_illegal_nodes():
    g = Graph()
    with pytest.raises(ValueError, match="but a Callable is expected"):
        g.create_node("call_function", "f", ())
    with pytest.raises(ValueError, match="but a str is expected"):
        g.create_node("call_method", len, ())
    with pytest.raises(AssertionError, match="is not in _legal_ops"):
        g.create_node("nonsense", "f", ())
    with pytest.raises(AssertionError, match="args must be a tuple"):
        g.create_node("call_method", "f", [1])


def test_impure():
    g = Graph()
    x = g.placeholder("x")
    aten = torch.ops.aten
    assert x.is_impure() and g.call_function(operator.setitem, (x, 0, 1)).is_impure()
    assert g.call_function(aten.add_.Tensor, (x, 1)).is_impure()
    assert not g.call_function(aten.add.Tensor, (x, 1)).is_impure()
    random = g.call_function(aten.bernoulli.default, (x,))
    assert random.is_impure() and not random.is_impure(impure_random=False)

    @has_side_effect
    def shout(x):
        return x

    assert g.call_function(shout, (x,)).is_impure()


def test_map_arg_and_map_aggregate(chain):
    _, x, y, z = chain
    assert map_arg(z.args, lambda n: n.name) == ("neg", ["x", {"k": "neg"}])
    assert map_aggregate((1, [2], slice(3, None)), lambda v: v and v + 1) == (2, [3], slice(4, None, None))


def test_renaming_and_retargeting(chain):
    g, x, y, z = chain
    y._rename("x")
    assert y.name == "x_1"
    y.target = operator.pos
    assert g.find_nodes(op="call_function", target=operator.pos) == [y]
    assert g.find_nodes(op="call_function", target=operator.neg) == []
    y.op, y.target = "call_method", "neg"
    assert g.find_nodes(op="call_method") == [y]
    g.lint()


def test_a_node_is_pickled_with_its_graph():
    graph = Graph()
    x = graph.placeholder("x")
    x.type = torch.Tensor
    y = graph.call_function(torch.sin, (x,))
    again = pickle.loads(pickle.dumps(y))
    assert again.name == y.name and again.target is torch.sin and again.graph is not graph
    assert again.args[0].type is torch.Tensor and again.args[0].graph is again.graph


def test_named_tuples_are_shown_with_their_names():
    class Pair(NamedTuple):
        x: object
        y: object

    graph = Graph()
    node = graph.placeholder("inp")
    assert format_arg(Pair(node, (1.5, node))) == "Pair(x=%inp, y=(1.5, %inp))"


def test_ranges_of_the_profiler_are_not_dead_code():
    graph = Graph()
    import pullback.profiler  # noqa: F401 - declares the two

    handle = graph.call_function(torch.ops.profiler._record_function_enter_new, ("range",))
    graph.call_function(torch.ops.profiler._record_function_exit, (handle,))
    graph.call_function(torch.sin, (1.0,))
    graph.output(None)
    graph.eliminate_dead_code()
    assert [n.target for n in graph.nodes if n.op == "call_function"] == [
        torch.ops.profiler._record_function_enter_new,
        torch.ops.profiler._record_function_exit,
    ]
