"""Runs as graphs to read: which operators are nodes, what their values say, in whose scope they ran."""

import pullback as torch
from pullback import nn
from pullback.compat.private_names import get_tracing_state
from pullback.surface.jit import _get_trace_graph


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(144, 2)

    def forward(self, x):
        return self.fc(torch.cat([self.bn(self.conv(x)).relu_().flatten(1)]))


def operators(graph):
    return [node for node in graph.nodes() if not node.kind().startswith("prim::")]


def test_operators_are_whole_and_in_order():
    model, x = Net().eval(), torch.randn(1, 3, 8, 8)
    graph, result = _get_trace_graph(model, (x,))
    assert torch.equal(result, model(x)) and get_tracing_state() is None
    assert [n.kind() for n in operators(graph)] == [
        "aten::_convolution", "aten::batch_norm", "aten::relu_", "aten::flatten", "aten::cat", "aten::linear",
    ]  # fmt: skip
    conv, *_, joined, linear = operators(graph)
    inputs = list(conv.inputs())
    assert len(inputs) == conv.inputsSize() == 13 and inputs[6].toIValue() is False
    assert (
        inputs[0].type().sizes() == [1, 3, 8, 8] and inputs[1].isCompleteTensor() and not inputs[3].isCompleteTensor()
    )
    assert conv.output().type().scalarType() == "Float" and conv.output().type().kind() == "TensorType"
    parts = next(joined.inputs()).node()
    assert parts.kind() == "prim::ListConstruct" and [v.type().dim() for v in parts.inputs()] == [2]
    assert next(linear.inputs()).debugName() == joined.output().debugName()
    assert [v.debugName() for v in graph.outputs()] == [linear.output().debugName()]
    assert next(graph.inputs()).type().sizes() == [1, 3, 8, 8]
    assert "aten::linear" in repr(graph)


def test_constants_have_attributes():
    graph, _ = _get_trace_graph(lambda x: x.sum(1, keepdim=True), torch.ones(2, 3))
    constants = [n for n in graph.nodes() if n.attributeNames()]
    read = [getattr(n, n.kindOf("value"))("value") for n in constants]
    assert 1 in read and True in read


def test_hooks_say_in_whose_call_an_operator_ran():
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    for name, part in model.named_modules():
        part.register_forward_pre_hook(lambda m, i, name=name: get_tracing_state().push_scope(name))
        part.register_forward_hook(lambda m, i, o: get_tracing_state().pop_scope())
    graph, _ = _get_trace_graph(model, (torch.ones(1, 2),))
    assert [(n.kind(), n.scopeName()) for n in operators(graph)] == [("aten::linear", "/0"), ("aten::tanh", "/1")]


def test_custom_functions_are_nodes_with_their_python_name():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    graph, _ = _get_trace_graph(lambda x: Twice.apply(x) + 1, torch.ones(1, requires_grad=True))
    assert [(n.kind(), n.pyname()) for n in graph.nodes() if n.kind() in ("prim::PythonOp", "aten::add")] == [
        ("prim::PythonOp", "Twice"), ("aten::add", ""),
    ]  # fmt: skip
