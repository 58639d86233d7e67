"""Generated code: the text that PyTorch generates."""

import enum
import operator
import typing
from collections import namedtuple

import pytest

import pullback as torch
from pullback.graph import Graph, GraphModule, symbolic_trace
from pullback.graph.codegen import stack_summary
from pullback.graph.graph import _BoxedCodeGen

Point = namedtuple("Point", "x y")


class Color(enum.Enum):
    RED = 1


def code(build):
    g = Graph()
    g.output(build(g))
    return GraphModule({}, g).code


def test_code():
    def build(g):
        x, y = g.placeholder("x"), g.placeholder("input")
        a = g.call_function(operator.add, (x, 1))
        b = g.call_function(torch.ops.aten.sum.dim_IntList, (a, [0], True), {"dtype": torch.float64})
        c = g.call_function(torch.nn.functional.relu, (b,), {"inplace": False})
        return (c, [a, None], {"k": y})

    assert code(build) == (
        "\n\n\ndef forward(self, x, input):\n    input_1 = input\n    add = x + 1;  x = None\n"
        "    sum_dim_int_list = torch.ops.aten.sum.dim_IntList(add, [0], True, dtype = torch.float64)\n"
        "    relu = torch.nn.functional.relu(sum_dim_int_list, inplace = False);  sum_dim_int_list = None\n"
        "    return (relu, [add, None], {'k': input_1})\n    "
    )


def test_operators_and_inplace_operators():
    def build(g):
        x = g.placeholder("x")
        i = g.call_function(operator.getitem, (x, (slice(1, x), ..., None)))
        g.call_function(operator.iadd, (x, 1))
        g.call_function(operator.setitem, (x, 0, 5))
        return g.call_function(operator.invert, (i,))

    lines = [line.strip() for line in code(build).splitlines()]
    assert "getitem = x[(slice(1, x, None), Ellipsis, None)]" in lines
    assert "x += 1;  iadd = x;  iadd = None" in lines
    assert "x[0] = 5;  setitem = x;  x = setitem = None" in lines
    assert "invert = ~getitem;  getitem = None" in lines


def local_function(x, *args, **kwargs):
    return x


def test_foreign_functions_become_globals():
    def invoke(x):
        return x

    invoke.__module__, invoke.__qualname__ = "torch._dynamo.wrapped", "self_invoke"
    invoke.__name__ = "self_invoke"

    def build(g):
        x = g.placeholder("x")
        y = g.call_function(local_function, (x, Color.RED), {"p": Point(x, 2)})
        return g.call_function(invoke, (y,))

    text = code(build)
    here = __name__.replace(".", "_")
    assert f"local_function = {here}_local_function(x, Color.RED, p = {here}_Point(x, 2));  x = None" in text
    assert "self_invoke = torch__dynamo_wrapped_self_invoke(local_function);  local_function = None" in text


def test_annotations():
    def f(x: torch.Tensor, y: typing.List[int], z: list[int], o: typing.Optional[torch.Tensor] = None) -> torch.Tensor:  # noqa: UP006, UP045
        return x

    text = symbolic_trace(f).code
    assert (
        "def forward(self, x : torch.Tensor, y : typing_List[int], z : list[int], "
        "o : typing_Union[torch.Tensor,NoneType] = None) -> torch.Tensor:" in text
    )


READABLE = """\
class Hello(torch.nn.Module):
    def forward(self, x: "f32[2]", y):
        # No stacktrace found for following nodes
        add: "f32[2, 3]" = x + y;  x = y = None

        # File: /a/b.py:12 in forward, code: return x * y
        mul = torch.ops.aten.mul.Tensor(add, 2.5);  add = None
        return mul
"""


@pytest.fixture
def hello():
    g = Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    a = g.call_function(operator.add, (x, y))
    b = g.create_node("call_function", torch.ops.aten.mul.Tensor, (a, 2.5), name="mul")
    g.output(b)
    x.meta["val"], a.meta["val"] = torch.ones(2), torch.ones(2, 3)
    b.stack_trace = '  File "/a/b.py", line 12, in forward\n    return x * y\n'
    return GraphModule({}, g, "Hello")


def test_readable(hello, capsys):
    assert hello.print_readable() == READABLE
    assert capsys.readouterr().out == READABLE + "\n"


def test_readable_options(hello):
    text = hello.print_readable(print_output=False, include_stride=True, include_device=True)
    assert 'add: "f32[2, 3][3, 1]cpu" = x + y' in text
    text = hello.print_readable(print_output=False, colored=True)
    assert 'x: "\x1b[31mf32\x1b[0m\x1b[34m[2]\x1b[0m\x1b[2m\x1b[34m\x1b[0m\x1b[2m\x1b[32m\x1b[0m"' in text
    assert "\x1b[34m2.5\x1b[0m" in text
    text = hello.print_readable(print_output=False, expanded_def=True)
    assert 'def forward(\n        self,\n        x: "f32[2]",\n        y,\n    ):' in text
    for node in hello.graph.nodes:
        node.meta["seq_nr"], node.meta["custom"] = 3, {"k": "v"}
    text = hello.print_readable(print_output=False, additional_meta=["seq_nr"])
    assert "# seq_nr: 3 # Annotation: {'k': 'v'} File: /a/b.py:12 in forward, code: return x * y" in text


def test_readable_submodules(hello):
    g = Graph()
    g.output(g.create_node("call_module", "sub", (g.placeholder("x"), 1)))
    text = GraphModule({"sub": hello}, g).print_readable(print_output=False)
    assert "        return sub\n\n    class sub(torch.nn.Module):\n        def forward(self, x:" in text


def test_stack_summary_takes_the_innermost_frame():
    stack = 'File "a.py", line 1, in f\n    g()\nFile "b.py", line 2, in g\n    h()\n'
    assert stack_summary(stack) == "File: b.py:2 in g, code: h()"
    assert stack_summary(None) is None and stack_summary("no frames") is None


def test_body_transformers():
    gm = symbolic_trace(lambda_free)
    gm.graph.on_generate_code(lambda before: lambda body: ["y = 5\n", *(before(body) if before else body)])
    gm.recompile()
    assert "y = 5\n    add = x + 1" in gm.code and gm(1) == 2
    with gm.graph.on_generate_code(lambda before: lambda body: ["z = 6\n", *before(body)]):
        assert "z = 6\n    y = 5" in gm.recompile().src
    assert "z = 6" not in gm.recompile().src


def lambda_free(x):
    return x + 1


def test_boxed_code_empties_its_list():
    gm = symbolic_trace(lambda_free)
    gm.graph.set_codegen(_BoxedCodeGen())
    gm.recompile()
    args = [3]
    assert gm(args) == 4 and args == [] and gm._boxed_call


def test_line_numbers_lead_to_nodes(hello):
    result = hello.graph.python_code("self")
    lines = result.src.splitlines()
    nodes = list(hello.graph.nodes)
    found = {lines[result._prologue_start - 1 + at].strip(): nodes[i].name for at, i in result._lineno_map.items()}
    assert found["add = x + y;  x = y = None"] == "add" and found["return mul"] == "output"


def test_lines_are_counted_in_code_that_was_changed():
    made = symbolic_trace(lambda a, b: torch.sin(a) + torch.cos(b))
    before = dict(made._lineno_map)
    made.graph.on_generate_code(lambda _: lambda code: ["first = 1\n", *code, "# last\n"])
    made.recompile()
    assert {line + 1: node for line, node in before.items()}.items() <= made._lineno_map.items()
