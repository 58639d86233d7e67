"""`infer_schema`: schemas read off annotations."""

import typing
from collections.abc import Sequence
from typing import List, Optional, Tuple, Union  # noqa: UP035

import pytest

import pullback as torch
from pullback.library import infer_schema

Tensor = torch.Tensor


def everything(
    x: Tensor,
    y: Optional[Tensor],  # noqa: UP045
    z: Sequence[int],
    w: list[float],
    v: Optional[List[int]],  # noqa: UP006, UP045
    s: str = "a",
    d: torch.dtype = torch.float32,
    dev: torch.device = torch.device("cpu"),
    b: bool = True,
    n: Union[int, float, bool] = 3,  # noqa: UP007
    f: float = 1.0,
    o: Optional[int] = None,  # noqa: UP045
    xs: typing.Sequence[Optional[Tensor]] = None,  # noqa: UP006, UP045
    *,
    kk: int = 1,
) -> Tensor: ...


def test_every_type():
    assert infer_schema(everything, mutates_args=()) == (
        '(Tensor x, Tensor? y, SymInt[] z, float[] w, SymInt[]? v, str s="a", ScalarType d=float32, Device dev="cpu", bool b=True, '
        "Scalar n=3, float f=1.0, SymInt? o=None, Tensor?[] xs=None, *, SymInt kk=1) -> Tensor"
    )


def test_results():
    def one(x: Tensor | None, y: list[int] | None = None) -> tuple[Tensor, int]: ...
    def nothing(x: Tensor) -> None: ...
    def single(x: Tensor) -> Tuple[Tensor]: ...  # noqa: UP006
    def text(x: "Tensor", n: "int" = 3) -> "List[Tensor]": ...  # noqa: UP037, UP006

    assert infer_schema(one, mutates_args=()) == "(Tensor? x, SymInt[]? y=None) -> (Tensor, SymInt)"
    assert infer_schema(nothing, mutates_args=["x"], op_name="f") == "f(Tensor(a0!) x) -> ()"
    assert infer_schema(nothing, mutates_args="unknown") == "(Tensor(a0!) x) -> ()"
    assert infer_schema(single, mutates_args=()) == "(Tensor x) -> ((Tensor))"
    assert infer_schema(text, mutates_args=()) == "(Tensor x, SymInt n=3) -> Tensor[]"


def test_tags():
    def write(x: Tensor, n: int) -> Tensor: ...
    def fill(x: Tensor, *, out: Tensor) -> Tensor: ...

    inplace, out = (torch.Tag.inplace,), torch.Tag.out
    assert infer_schema(write, mutates_args=("x",), tags=inplace) == "(Tensor(a0!) x, SymInt n) -> Tensor(a0!)"
    assert infer_schema(fill, mutates_args=("out",), tags=out) == "(Tensor x, *, Tensor(a1!) out) -> Tensor(a1!)"
    with pytest.raises(ValueError, match="contain exactly the first positional argument"):
        infer_schema(write, mutates_args=(), tags=inplace)
    with pytest.raises(ValueError, match="requires mutable arguments to be keyword-only"):
        infer_schema(write, mutates_args=("x",), tags=out)


def _refused() -> list:
    def untyped(x) -> Tensor: ...
    def no_return(x: Tensor): ...
    def a_dict(x: dict) -> Tensor: ...
    def a_tuple(x: Tuple[int, int]) -> Tensor: ...  # noqa: UP006
    def returns_dict(x: Tensor) -> dict: ...
    def starred(*x: Tensor) -> Tensor: ...
    def positional(x: Tensor, /) -> Tensor: ...
    def unknown(x: "Nope") -> Tensor: ...  # noqa: F821, UP037
    def listed(x: List[int] = [1]) -> Tensor: ...  # noqa: B006, UP006

    return [
        (untyped, r"Parameter x must have a type annotation. Got func with signature \(x\)"),
        (no_return, "No return type annotation was provided"),
        (a_dict, "Parameter x has unsupported type <class 'dict'>. The valid types are"),
        (a_tuple, r"We do not support Tuple inputs in schema.*For example, list\[int\]"),
        (returns_dict, "Return has unsupported type <class 'dict'>"),
        (starred, "We do not support positional-only args, varargs, or varkwargs"),
        (positional, "We do not support positional-only args, varargs, or varkwargs"),
        (unknown, "Unsupported type annotation Nope. It is not a type"),
        (listed, "unsupported default value type <class 'list'>"),
    ]


@pytest.mark.parametrize(("function", "words"), _refused(), ids=lambda v: getattr(v, "__name__", ""))
def test_refused(function, words):
    with pytest.raises(ValueError, match=words):
        infer_schema(function, mutates_args=())


def test_mutates_args_are_checked():
    def f(x: Tensor, n: int) -> None: ...

    with pytest.raises(ValueError, match="only Tensors or collections of Tensors can be mutated"):
        infer_schema(f, mutates_args=("n",))
    with pytest.raises(ValueError, match=r"\{'q'\} in mutates_args were not found"):
        infer_schema(f, mutates_args=("q",))
    with pytest.raises(ValueError, match="or the string 'unknown'"):
        infer_schema(f, mutates_args="foo")
