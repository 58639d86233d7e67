"""einsum against NumPy's, its grammar and its errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as torch
from pullback.autograd import gradcheck

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2, "e": 1}


@st.composite
def equations(draw):
    """An equation over a few labels, and the shapes of its operands; now and then a label is broadcast from size 1."""
    terms = draw(
        st.lists(
            st.text("abcde", min_size=0, max_size=4).map(lambda s: "".join(dict.fromkeys(s))), min_size=1, max_size=3
        )
    )
    used = sorted({c for t in terms for c in t})
    output = "".join(draw(st.permutations(used)))[: draw(st.integers(0, len(used)))]
    return f"{','.join(terms)}->{output}", [tuple(SIZES[c] for c in t) for t in terms]


@given(equations())
def test_any_equation_is_numpys(case):
    equation, shapes = case
    operands = [torch.randn(s, dtype=torch.float64) for s in shapes]
    want = np.einsum(equation, *[t.numpy() for t in operands])
    assert np.allclose(torch.einsum(equation, *operands).numpy(), want)


@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ii", [(3, 3)]),
        ("ii->i", [(3, 3)]),
        ("...ij,...jk->...ik", [(4, 2, 3), (3, 5)]),
        ("i...,j...->ij...", [(4, 2), (3, 2)]),
        ("bA,bC", [(3, 2), (3, 4)]),
        (" i j , j k -> k i ", [(2, 3), (3, 4)]),
        ("ijk,jil,kl->ijl", [(2, 3, 4), (3, 2, 5), (4, 5)]),
        ("iij->j", [(3, 3, 2)]),
        ("ij,ij->ij", [(2, 3), (1, 3)]),
        ("", [()]),
        ("ij,kl->", [(2, 3), (2, 2)]),
        ("iji->j", [(2, 3, 2)]),
    ],
)
def test_values_and_gradients(equation, shapes):
    operands = tuple(torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes)
    want = np.einsum(equation.replace(" ", ""), *[t.detach().numpy() for t in operands])
    assert np.allclose(torch.einsum(equation, *operands).detach().numpy(), want)
    assert gradcheck(lambda *t: torch.einsum(equation, *t), operands)


def test_an_ellipsis_left_out_of_the_result_is_summed():
    a = torch.randn(2, 3)
    assert torch.allclose(torch.einsum("...->", a), a.sum())
    assert torch.allclose(torch.einsum("i...->i", a), a.sum(1))


def test_sublists_and_lists_of_operands():
    a, b = torch.randn(2, 3), torch.randn(3, 4)
    want = a @ b
    assert torch.allclose(torch.einsum(a, [0, 1], b, [1, 2], [0, 2]), want)
    assert torch.allclose(torch.einsum(a, [..., 1], b, [1, 2], [..., 2]), want)
    assert torch.allclose(torch.einsum("ij,jk->ik", [a, b]), want)


def test_a_path_decides_the_order():
    a, b, c = torch.randn(2, 3), torch.randn(3, 4), torch.randn(4, 2)
    operator = torch.ops.aten.einsum.default
    assert torch.allclose(operator("ij,jk,kl->il", [a, b, c], path=[1, 2, 0, 1]), a @ b @ c)


@pytest.mark.parametrize(
    "args, error, words",
    [
        (
            ("ij,jk->ik", (2, 3), (4, 5)),
            RuntimeError,
            "einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3",
        ),
        (
            ("ij->", (2,)),
            RuntimeError,
            "einsum(): the number of subscripts in the equation (2) does not match the number of dimensions (1) for "
            "operand 0 and no ellipsis was given",
        ),
        (
            ("ij->ik", (2, 3)),
            RuntimeError,
            "einsum(): output subscript k does not appear in the equation for any input operand",
        ),
        (("ij->ii", (2, 3)), RuntimeError, "einsum(): output subscript i appears more than once in the output"),
        (("i.j->i", (2, 3)), RuntimeError, "einsum(): found '.' for operand 0 that is not part of any ellipsis"),
        (
            ("i$", (2, 3)),
            RuntimeError,
            "einsum(): invalid subscript given at index 1 in the equation string, subscripts must be in [a-zA-Z]",
        ),
        (("ij,jk->ik", (2, 3)), RuntimeError, "einsum(): fewer operands were provided than specified in the equation"),
        (
            ("ii", (3, 2)),
            RuntimeError,
            "einsum(): subscript i is repeated for operand 0 but the sizes don't match, 2 != 3",
        ),
        (
            ("ij",),
            ValueError,
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list",
        ),
    ],
)
def test_errors(args, error, words):
    with pytest.raises(error) as raised:
        torch.einsum(args[0], *[torch.ones(s) for s in args[1:]])
    assert str(raised.value) == words
