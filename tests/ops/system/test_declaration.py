"""A declaration is a type: unknown, contradictory and missing keys raise where the operator is declared."""

from __future__ import annotations

import pytest

from pullback.ops.family.along import along
from pullback.ops.family.base import composite, operator
from pullback.ops.family.contraction import contraction
from pullback.ops.family.factory import factory
from pullback.ops.family.pointwise import pointwise
from pullback.ops.family.reduction import reduction
from pullback.ops.family.view import view
from pullback.ops.system.declaration import NONDIFFERENTIABLE, REQUIRED, Declaration
from pullback.ops.system.operator import registry

FAMILIES = {
    operator: "an operator",
    pointwise: "a pointwise operator",
    reduction: "a reduction",
    along: "an operator along a dimension",
    view: "a view",
    factory: "a factory",
    contraction: "a contraction",
}


@pytest.fixture(autouse=True)
def nothing_declared():
    """A declaration that is refused leaves nothing behind."""
    before = set(registry)
    yield
    assert set(registry) == before


@pytest.mark.parametrize("declare", FAMILIES, ids=lambda f: f.__name__)
def test_a_misspelt_key_names_the_nearest(declare):
    message = f"^misspelt: 'kernell' is no option of {FAMILIES[declare]}; did you mean 'kernel'\\?$"
    with pytest.raises(TypeError, match=message):
        declare("misspelt(Tensor self) -> Tensor", kernell=lambda xp, x: x)


def test_a_misspelt_key_of_a_composite_names_the_nearest():
    with pytest.raises(TypeError, match="'functoin' is no option of an operator; did you mean 'function'"):
        composite("misspelt(Tensor self) -> Tensor", functoin=False)(lambda self: self)


@pytest.mark.parametrize(
    "declare, key, near",
    [(pointwise, "promotes", "promote"), (along, "keep_strides", "keeps_strides"), (view, "dim", "dims")],
)
def test_keys_of_a_family(declare, key, near):
    with pytest.raises(TypeError, match=f"{key!r} is no option of .*; did you mean {near!r}"):
        declare("misspelt(Tensor self) -> Tensor", **{key: True})


def test_a_key_like_no_other_is_refused_without_a_hint():
    with pytest.raises(TypeError, match="^odd: 'zzz' is no option of an operator$"):
        operator("odd(Tensor self) -> Tensor", zzz=1)


def test_a_key_of_another_family_is_refused():
    with pytest.raises(TypeError, match="'geometry' is no option of a reduction"):
        reduction("odd(Tensor self) -> Tensor", kernel=len, geometry=len)


@pytest.mark.parametrize("declare, key", [(view, "geometry"), (factory, "shape")])
def test_a_missing_part(declare, key):
    with pytest.raises(TypeError, match=f"needs '{key}'"):
        declare("odd(Tensor self) -> Tensor", vjp=NONDIFFERENTIABLE)


@pytest.mark.parametrize(
    "declare, options",
    [
        (operator, {"body": len, "kernel": len}),
        (operator, {"kernel": len, "meta": len, "vjp": len, "node": "OddBackward0", "number": 1}),
        (operator, {"kernel": len, "meta": len, "straight": True, "shortcut": len}),
        (pointwise, {"kernel": len, "meta": len}),
        (view, {"geometry": len, "kernel": len}),
        (view, {"geometry": len, "dims": ("dim",), "vmap": len}),
        (along, {"kernel": len, "reduces": True, "length": len}),
    ],
)
def test_contradictions(declare, options):
    with pytest.raises(TypeError, match="^odd: '.*' contradicts '.*': "):
        declare("odd(Tensor self) -> Tensor", **options)


@pytest.mark.parametrize(
    "declare, options, needed",
    [
        (operator, {"kernel": len, "vjp": len, "inplace_node": "OddBackward1"}, "inplace"),
        (operator, {"kernel": len, "reads_first": True}, "write"),
        (pointwise, {"kernel": len, "constant": 0}, "ufunc"),
        (pointwise, {"ufunc": "add", "fast": True}, "kernel"),
        (view, {"geometry": len, "added": 1}, "dims"),
    ],
)
def test_keys_that_mean_nothing_alone(declare, options, needed):
    with pytest.raises(TypeError, match=f"means nothing without '{needed}'"):
        declare("odd(Tensor self) -> Tensor", **options)


@pytest.mark.parametrize("key, value", [("jvp", {"self": len}), ("node", "OddBackward0"), ("nondifferentiable", (1,))])
def test_rules_of_gradients_that_never_flow(key, value):
    with pytest.raises(TypeError, match=f"'{key}' means nothing where gradients never flow"):
        operator("odd(Tensor self) -> Tensor", kernel=len, vjp=NONDIFFERENTIABLE, **{key: value})


def test_every_declaration_is_of_its_familys_type():
    for key, op in registry.items():
        declared = op.declared
        assert type(declared) is op.family.declares, key
        assert isinstance(declared, Declaration), key
        assert not any(getattr(declared, field) is REQUIRED for field in type(declared).defaults), key


def test_a_declaration_is_slotted():
    declared = registry["sin.default"].declared
    assert not hasattr(declared, "__dict__")
    with pytest.raises(AttributeError):
        declared.kernell = len
