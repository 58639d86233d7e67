"""What users say about sizes, and what happens where it does not fit."""

from __future__ import annotations

import dataclasses
import operator

import pytest

import pullback as torch
from pullback import nn
from pullback.capture.front.config import config as compiling
from pullback.capture.shapes.config import config
from pullback.capture.shapes.questions import sym_and
from pullback.export import AdditionalInputs, Dim, ShapesCollection, dims, export, register_dataclass

from .models import Add

ONES = (torch.ones(3, 4), torch.ones(3, 4))
B, C = dims("b", "c")


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (({0: B}, {0: C}), r"Constraints violated \(c\)(.|\n)*c = L\['y'\].size\(\)\[0\] and b = L\['x'\](.|\n)*c = b"),
        (({0: B}, None), r"Constraints violated \(b\)(.|\n)*specialized it to be a constant \(3\)(.|\n)*b = 3"),
        (({0: B},), "`inputs` has 2 elements, but `dynamic_shapes` has 1 elements"),
        ({"x": {0: B}}, r"must be the arg names \['x', 'y'\] of `inputs`, but here they are \['x'\]"),
        (({2: B}, None), r"index 2 at `dynamic_shapes\['x'\]`"),
        (({0: "q"}, None), r"at `dynamic_shapes\['x'\]` \(expected None, an int, a Dim(.|\n)*but got 'q' instead"),
        (({0: 4}, None), "Static shape constraint of 4 does not match input size of 3"),
        (((B,), None), r"same length as the actual tensor shape \(3, 4\)"),
        (
            ({0: Dim("b", min=5)}, None),
            r"3 not in range \[5, inf\]: inputs\[.x.\].shape\[0\] was said to be Dim\(.b., min=5\)",
        ),
        (({0: 2 * B}, None), r"= 3 of input Tensor to be of the form 2\*b"),
        (({0: Dim("b", max=9)}, {0: B}), "Found different definitions"),
        (({0: Dim.DYNAMIC}, None), "marked(.|\n)*as dynamic but your code specialized it"),
    ],
)
def test_errors_name_the_argument(shapes, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        export(Add(), ONES, dynamic_shapes=shapes)


def test_a_size_of_one_cannot_be_dynamic() -> None:
    with pytest.raises(RuntimeError, match=r"constant \(1\)"):
        export(Add(), (torch.ones(1, 4), torch.ones(1, 4)), dynamic_shapes=({0: B}, {0: B}))


@pytest.mark.parametrize("rows", [0, 1, 2, 7])
def test_a_named_size(rows: int) -> None:
    program = export(Add(), ONES, dynamic_shapes=({0: B}, {0: B}))
    assert program.module()(torch.ones(rows, 4), torch.ones(rows, 4)).shape == (rows, 4)
    assert str(program.range_constraints) == "{s17: VR[0, int_oo]}"


def test_hints() -> None:
    program = export(Add(), ONES, dynamic_shapes=({0: Dim.AUTO}, None))  # the program needs a 3
    assert program.range_constraints == {}
    program = export(Add(), ONES, dynamic_shapes=({0: Dim.DYNAMIC(max=8)}, (Dim.DYNAMIC, Dim.STATIC)))
    with pytest.raises(AssertionError, match="<= 8"):
        program.module()(torch.ones(9, 4), torch.ones(9, 4))
    assert repr(Dim.DYNAMIC(max=8)) == "DimHint(DYNAMIC, max=8)"


class Cat(nn.Module):
    def forward(self, x, y):
        return torch.cat([x, y]).sum()


def test_derived_sizes() -> None:
    program = export(Cat(), (torch.ones(3), torch.ones(7)), dynamic_shapes=({0: B}, {0: 2 * B + 1}))
    run = program.module()
    assert run(torch.ones(4), torch.ones(9)).item() == 13
    with pytest.raises(AssertionError, match=r"y.size\(\)\[0\] == 2\*x.size\(\)\[0\] \+ 1 \(it is 8\)"):
        run(torch.ones(4), torch.ones(8))


def test_a_size_derived_of_one_that_no_input_shows() -> None:
    run = export(Cat(), (torch.ones(4), torch.ones(2)), dynamic_shapes=({0: 2 * B}, None)).module()
    assert run(torch.ones(6), torch.ones(2)).item() == 8
    with pytest.raises(AssertionError, match="Guard failed"):
        run(torch.ones(5), torch.ones(2))


def test_conditions_of_the_program() -> None:
    class Small(nn.Module):
        def forward(self, x):
            return x * 2 if x.shape[0] < 6 else x

    with pytest.raises(RuntimeError, match=r"Not all values of(.|\n)*x"):
        export(Small(), (torch.ones(3),), dynamic_shapes=({0: B},))
    run = export(Small(), (torch.ones(3),), dynamic_shapes=({0: Dim("b", max=5)},)).module()
    assert run(torch.ones(5)).tolist() == [2] * 5
    run = export(Small(), (torch.ones(3),), dynamic_shapes=({0: Dim.AUTO},)).module()
    with pytest.raises(AssertionError, match=r"x.size\(\)\[0\] <= 5"):
        run(torch.ones(6))


def test_dims() -> None:
    assert repr(Dim("q", min=3, max=5)) == "Dim('q', min=3, max=5)" and repr(2 * (B + 1)) == "2*b + 2"
    with pytest.raises(AssertionError, match="inconsistent min=5, max=4"):
        Dim("x", min=5, max=4)
    with pytest.raises(AssertionError, match="valid identifier, got 1x"):
        Dim("1x")
    with pytest.raises(AssertionError, match=r"Expected derived min value of b - 1 to be >= 0"):
        B - 1
    with pytest.raises(NotImplementedError, match="increasing linear"):
        -1 * B
    with pytest.raises(NotImplementedError, match="negate"):
        1 - B
    with pytest.raises(NotImplementedError, match="integer was expected"):
        B * 0.5


def test_collections() -> None:
    x, y = torch.ones(3, 4), torch.ones(3, 4)
    shapes = ShapesCollection()
    shapes[x] = {0: B}
    shapes[y] = {0: B}
    assert len(shapes) == 2
    assert export(Add(), (x, y), dynamic_shapes=shapes).module()(torch.ones(2, 4), torch.ones(2, 4)).shape == (2, 4)
    with pytest.raises(ValueError, match="were not found in args"):
        export(Add(), ONES, dynamic_shapes=shapes)
    with pytest.raises(AssertionError, match="non-tensor"):
        shapes["x"] = {}


def test_additional_inputs() -> None:
    more = AdditionalInputs()
    more.add((torch.ones(5, 4), torch.ones(5, 4)))
    program = export(Add(), ONES, dynamic_shapes=more)
    more.verify(program)
    assert program.module()(torch.ones(9, 4), torch.ones(9, 4)).shape == (9, 4)
    more.add((torch.ones(5, 7), torch.ones(5, 7)))
    with pytest.raises(AssertionError, match="Guard failed"):
        more.verify(program)


def test_what_operators_ask_about_strides_is_no_condition() -> None:
    class Causal(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", torch.tril(torch.ones(8, 8)))

        def forward(self, x):
            t = x.shape[1]
            scores = (x @ x.transpose(1, 2)).masked_fill(self.mask[:t, :t] == 0, float("-inf"))
            return scores.softmax(-1) @ x, torch.arange(t) + 1

    net = Causal()
    program = export(net, (torch.randn(2, 5, 4),), dynamic_shapes=({0: B, 1: Dim("t", max=8)},))
    for rows, t in ((2, 8), (8, 8), (1, 3)):
        x = torch.randn(rows, t, 4)
        for p in (program, program.run_decompositions()):
            torch.testing.assert_close(p.module()(x), net(x))
    with pytest.raises(AssertionError, match=r"x.size\(\)\[1\] <= 8"):
        program.module()(torch.randn(2, 9, 4))


def test_suggested_fixes_can_be_applied() -> None:
    from pullback.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes

    class Uneven(nn.Module):
        def forward(self, x, y, z):
            if x.shape[0] <= 36 and y.shape[0] % 3 == 0:
                return x + y[1:] + z[3:]
            return x

    inputs = torch.ones(11), torch.ones(12), torch.ones(14)
    shapes = {"x": (Dim("dx"),), "y": (Dim("dy"),), "z": (Dim("dz"),)}
    with pytest.raises(RuntimeError) as caught:
        export(Uneven(), inputs, dynamic_shapes=shapes)
    assert "_dx = Dim('_dx', min=1, max=12)" in str(caught.value) and "dy = 3*_dx" in str(caught.value)
    better = refine_dynamic_shapes_from_suggested_fixes(str(caught.value), shapes)
    run = export(Uneven(), inputs, dynamic_shapes=better).module()
    assert run(torch.ones(5), torch.ones(6), torch.ones(8)).shape == (5,)


def test_bounds_of_hints_are_joined_with_what_is_inferred() -> None:
    class Add(nn.Module):
        def forward(self, x, y):
            return x + y

    x = torch.ones(6, 4)
    shapes = {"x": (Dim.AUTO(min=4), Dim.AUTO), "y": (Dim.DYNAMIC(max=16), None)}
    run = export(Add(), (x, x), dynamic_shapes=shapes).module()
    assert run(torch.ones(8, 4), torch.ones(8, 4)).shape == (8, 4)
    for rows, words in ((3, "x.size.*0. >= 4"), (17, "x.size.*0. <= 16")):
        with pytest.raises(AssertionError, match=words):
            run(torch.ones(rows, 4), torch.ones(rows, 4))
    with pytest.raises(
        ValueError, match=r"range of \[7, None\], conflicting with the inferred min/max range of \[6, 6\]"
    ):
        export(Add(), (x, x), dynamic_shapes={"x": (Dim.STATIC(min=7), None), "y": None})


class Compares(nn.Module):
    """Its results hang on two sizes."""

    def forward(self, x, y):
        return (x * 2, y) if x.shape[0] ** 2 == y.shape[0] * 3 else (x, y)


def test_a_relation_of_several_named_sizes_is_checked_when_the_program_runs() -> None:
    shapes = ({0: Dim("dx")}, {0: Dim("dy")})
    run = export(Compares(), (torch.ones(6), torch.ones(12)), dynamic_shapes=shapes).module()
    assert run(torch.ones(9), torch.ones(27))[0].tolist() == [2] * 9
    with pytest.raises(AssertionError, match="Guard failed"):
        run(torch.ones(9), torch.ones(9))


def test_relations_as_assertions_of_the_graph() -> None:
    def program():
        return export(
            Compares(), (torch.ones(6), torch.ones(12)), dynamic_shapes=({0: Dim("dx")}, {0: Dim("dy")}),
            prefer_deferred_runtime_asserts_over_guards=True,
        )  # fmt: skip

    run = program().module()
    assert run(torch.ones(9), torch.ones(27))[0].tolist() == [2] * 9
    with pytest.raises(RuntimeError, match=r"Runtime assertion failed for expression Eq\(s77\*\*2, 3\*s17\)"):
        run(torch.ones(9), torch.ones(9))
    targets = [n.target for n in program().graph.nodes]
    assert targets.count(operator.pow) == 1 and targets.count(torch.ops.aten._assert_scalar.default) == 1
    with compiling.patch(do_not_emit_runtime_asserts=True):
        assert torch.ops.aten._assert_scalar.default not in [n.target for n in program().graph.nodes]


def test_the_largest_end_of_a_slice_is_no_condition() -> None:
    class Slice(nn.Module):
        def forward(self, x):
            return torch.ops.aten.slice.Tensor(x, 0, 0, 2**63 - 1)

    program = export(Slice(), (torch.ones(10),), dynamic_shapes=({0: Dim("rows")},))
    assert program.module()(torch.ones(3)).shape == (3,)


def test_sizes_of_one_where_no_size_is_special() -> None:
    with config.patch(backed_size_oblivious=True):
        program = export(Add(), (torch.ones(1, 4), torch.ones(1, 4)), dynamic_shapes=({0: B}, {0: B}))
    for rows in (1, 5):
        assert program.module()(torch.ones(rows, 4), torch.ones(rows, 4)).shape == (rows, 4)


def test_bounds_that_leave_one_value() -> None:
    class Bounded(nn.Module):
        def forward(self, x):
            assert x.shape[0] <= 32
            return x + 2

    with pytest.raises(ValueError, match="tracing inferred a static shape of 32 for dimension inputs"):
        export(Bounded(), (torch.ones(32),), dynamic_shapes=({0: Dim.DYNAMIC(min=32)},))


def test_examples_of_registered_objects() -> None:
    class Sums(nn.Module):
        def forward(self, d):
            return d.n + d.t

    Given = register_new_dataclass()
    examples = AdditionalInputs()
    examples.add((Given(4, torch.ones(4)),))
    assert examples.dynamic_shapes(Sums(), (Given(3, torch.ones(3)),)) == {"d": [Dim.DYNAMIC, (Dim.DYNAMIC,)]}
    with pytest.raises(ValueError, match=r"differing types, so they cannot be marked as dynamic: \(True, 4\)"):
        examples.dynamic_shapes(Sums(), (Given(True, torch.ones(3)),))


def register_new_dataclass() -> type:
    @dataclasses.dataclass
    class Given:
        n: int
        t: torch.Tensor

    register_dataclass(Given)
    return Given


def test_promises_that_hold_together_are_asserted_one_by_one() -> None:
    class Promises(nn.Module):
        def forward(self, x):
            n = x.item()
            torch._check(sym_and(n >= 4, n <= 8))
            return torch.ones(n)

    run = export(Promises(), (torch.tensor(5),)).module()
    assert run(torch.tensor(8)).shape == (8,)
    with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0 <= 8"):
        run(torch.tensor(9))
