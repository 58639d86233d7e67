"""Schemas read strictly: what is accepted is printed as PyTorch prints it, the rest is refused in its words."""

import pytest

from pullback.library.declaration import read
from pullback.ops.system.schema import Schema

GOOD = {
    "g(Tensor x) -> Tensor": None,
    "a::g.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)": "g.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    "g(Tensor x, *, *, int y) -> Tensor": "g(Tensor x, *, int y) -> Tensor",
    "g(int? x=None, str y='a,b') -> ()": 'g(int? x=None, str y="a,b") -> ()',
    "g( float[] x=[1.0,2], int z=-1 )->(Tensor a,Tensor b)": "g(float[] x=[1., 2.], int z=-1) -> (Tensor a, Tensor b)",
    "g(float e=1e-5, float f=1) -> ()": "g(float e=1.0000000000000001e-05, float f=1.) -> ()",
    "g(Tensor(a0!)[] y, Tensor?[] z, int[2] k=3) -> Tensor[]": None,
    "g(Tensor x) -> ((Tensor))": None,
    "g(Tensor(a|b -> *) x) -> ()": None,
}
BAD = {
    "g": "only the operator name was given",
    "g(": "expected ident but found 'eof' here:\ng(",
    "g()": "expected arrow but found 'eof' here",
    "g(Tensor) -> Tensor": "expected ident but found ')' here:\ng(Tensor) -> Tensor\n        ~ <--- HERE\n",
    "g(Tensor x -> Tensor": "expected ) but found 'arrow' here:\ng(Tensor x -> Tensor\n           ~~ <--- HERE\n",
    "g(Tensor x) -> Tensr": "unknown type specifier",
    "g(Tensor x) -> Tensor foo bar": "expected eof but found 'ident' here",
    "g(Tensor x y) -> Tensor": "expected ) but found 'ident' here",
    "g(int x=) -> Tensor": "expected number but found ')' here",
    "g(int x=a) -> Tensor": "invalid numeric default value",
    "g(int[] y=3) -> Tensor": "expected [ but found 'number' here",
    "g(Tensor[ x) -> Tensor": "expected number but found 'ident' here",
    "1g(Tensor x) -> Tensor": "expected ident but found 'number' here",
    "g(Tensor x) -> Tensor;": "expected a valid token but found ';' here",
}


@pytest.mark.parametrize("text", GOOD)
def test_accepted(text):
    assert read(text).text == (GOOD[text] or text)


@pytest.mark.parametrize("text", BAD)
def test_refused(text):
    with pytest.raises(RuntimeError) as found:
        read(text)
    assert BAD[text] in str(found.value)


@pytest.mark.parametrize("text", ["g(...) -> ()", "g(Dict(str, int) x) -> ()", "g((int, int) x) -> ()"])
def test_not_supported(text):
    with pytest.raises(NotImplementedError, match="not supported"):
        read(text)


def test_a_tensor_that_is_written_needs_no_letter():
    schema = Schema(read("g(Tensor! x, Tensor!? y) -> ()").text)
    assert [a.writes for a in schema.arguments] == [True, True]
    assert [a.alias_info.before_set for a in schema.arguments] == [{"$0"}, {"$1"}]
    assert schema.arguments[0].alias_info.after_set == set()
