"""Metadata that goes from traced code to nodes."""

import operator

import pullback as torch
from pullback.graph import Transformer, symbolic_trace, traceback
from pullback.graph.source import NodeSource, NodeSourceAction


def f(x):
    return x + 1


def test_annotations_nest():
    with traceback.preserve_node_meta():
        with traceback.annotate({"a": 1}), traceback.annotate({"b": 2}):
            gm = symbolic_trace(f)
            assert traceback.get_current_meta()["custom"] == {"a": 1, "b": 2}
        assert "custom" not in traceback.current_meta
        plain = symbolic_trace(f)
    add = gm.graph.find_nodes(op="call_function", target=operator.add)[0]
    assert add.meta["custom"] == {"a": 1, "b": 2}
    assert "custom" not in plain.graph.find_nodes(op="call_function", target=operator.add)[0].meta


def test_nothing_is_kept_unless_asked_for():
    traceback.set_stack_trace(["a"])
    assert traceback.current_meta == {} and not traceback.has_preserved_node_meta()
    assert any("test_traceback" in line for line in traceback.format_stack())
    with traceback.preserve_node_meta():
        traceback.set_stack_trace(["x\n", "y"])
        assert traceback.format_stack() == ["x\ny"]
        gm = symbolic_trace(f)
    assert traceback.current_meta == {} and gm.graph.output_node().stack_trace == "x\ny"


def test_a_transformed_graph_knows_where_it_came_from():
    gm = symbolic_trace(f)
    old = gm.graph.find_nodes(op="call_function", target=operator.add)[0]
    old.meta.update(stack_trace="here", seq_nr=7, val=torch.ones(1))
    new = Transformer(gm).transform().graph.find_nodes(op="call_function", target=operator.add)[0]
    assert new.stack_trace == "here" and new.meta["seq_nr"] == 7 and "val" not in new.meta
    (source,) = new.meta["from_node"]
    assert source.name == "add" and source.pass_name == "Interpreter_Transformer" and "CREATE" in str(source.action)
    assert traceback.get_graph_provenance_json(new.graph)["add"][0]["name"] == "add"


def test_replayed_nodes():
    old = symbolic_trace(f).graph.find_nodes(op="call_function", target=operator.add)[0]
    old.meta.update(stack_trace="old", custom={"k": 1})
    with traceback.preserve_node_meta(), traceback.set_current_replay_node(old):
        assert traceback.get_current_replay_node() is old
        new = symbolic_trace(f).graph.find_nodes(op="call_function", target=operator.add)[0]
    assert new.meta["is_functional_regenerated"] and new.stack_trace == "old" and new.meta["custom"] == {"k": 1}


def test_backward_numbers_are_a_stack():
    with traceback.preserve_node_meta():
        traceback.set_grad_fn_seq_nr(3)
        traceback.set_grad_fn_seq_nr(4)
        node = symbolic_trace(f).graph.find_nodes(op="call_function", target=operator.add)[0]
        assert node.meta["seq_nr"] == 4 and traceback.current_meta["in_grad_fn"] == 2
        traceback.reset_grad_fn_seq_nr()
        assert traceback.current_meta["grad_fn_seq_nr"] == [3]
        traceback.reset_grad_fn_seq_nr()
        assert "in_grad_fn" not in traceback.current_meta and "grad_fn_seq_nr" not in traceback.current_meta


def test_sources_compare_and_print():
    node = next(iter(symbolic_trace(f).graph.nodes))
    a, b = NodeSource(node, "p", NodeSourceAction.CREATE), NodeSource(node, "p", [NodeSourceAction.CREATE])
    assert a == b and hash(a) == hash(b) and a != NodeSource(node, "q")
    assert a.print_readable().startswith("(name=x, pass_name=p, action=create, graph_id=")
