"""A declaration is a type: unknown, contradictory and missing keys raise where the operator is declared."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.ops.eager.elementwise import KernelCase
from pullback.ops.eager.straight import FunctionCase
from pullback.ops.family.along import along
from pullback.ops.family.base import composite, operator
from pullback.ops.family.contraction import contraction
from pullback.ops.family.factory import factory
from pullback.ops.family.pointwise import pointwise
from pullback.ops.family.reduction import reduction
from pullback.ops.family.view import view
from pullback.ops.system.declaration import NONDIFFERENTIABLE, REQUIRED, Declaration
from pullback.ops.system.operator import registry, rule_of

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
    yield
    assert not {"misspelt.default", "odd.default"} & registry.keys()


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
    "declare, options",
    [
        (pointwise, {"kernel": len, "plain": FunctionCase(len)}),
        (operator, {"kernel": len, "plain": KernelCase()}),
        (operator, {"kernel": len, "plain": (FunctionCase(len), len)}),
        (operator, {"kernel": len, "plain": True}),
    ],
)
def test_plain_cases_of_another_family_are_refused(declare, options):
    with pytest.raises(TypeError, match="^odd: 'plain' of .* is a .*Case"):
        declare("odd(Tensor self) -> Tensor", **options)


@pytest.mark.parametrize(
    "declare, options, needed",
    [
        (operator, {"kernel": len, "vjp": len, "inplace_node": "OddBackward1"}, "inplace"),
        (operator, {"kernel": len, "reads_first": True}, "inplace"),
        (pointwise, {"kernel": len, "constant": 0}, "ufunc"),
        (pointwise, {"ufunc": "add", "plain": KernelCase()}, "kernel"),
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


def test_every_option_is_given_by_some_operator():
    unused = {field: cls for op in registry.values() for cls in [type(op.declared)] for field in cls.defaults}
    for op in registry.values():
        declared = op.declared
        for field in unused.keys() & type(declared).defaults.keys():
            if getattr(declared, field) != type(declared).defaults[field]:
                del unused[field]
    assert not unused


def test_a_declaration_is_slotted():
    declared = registry["sin.default"].declared
    assert not hasattr(declared, "__dict__")
    with pytest.raises(AttributeError):
        declared.kernell = len


@pytest.mark.parametrize("key, value", [("cost", "free"), ("autocast_cpu", "float16"), ("inplace", "hiden")])
def test_words_that_an_option_may_be(key, value):
    with pytest.raises(TypeError, match=f"^odd: '{key}' is one of .*, but got '{value}'$"):
        operator("odd(Tensor self) -> Tensor", kernel=len, **{key: value})


# ---- what stages ask
COSTS = {
    "view": "view.default transpose.int select.int slice.Tensor expand.default detach.default view_as_real.default",
    "cheap": "add.Tensor exp.default where.self sum.dim_IntList mean.dim full.default clone.default _to_copy.default "
    "index.Tensor gather.default var_mean.correction constant_pad_nd.default stack.default",
    "passes": "_softmax.default _log_softmax.default native_layer_norm.default embedding.default cat.default "
    "max_pool2d_with_indices.default scatter_add.default",
    "compute": "mm.default addmm.default bmm.default convolution.default convolution_backward.default cumsum.default "
    "sort.default topk.default linalg_qr.default _fft_c2c.default upsample_bilinear2d.default grid_sampler_2d.default "
    "_scaled_dot_product_flash_attention_for_cpu_backward.default nonzero.default searchsorted.Tensor",
}


@pytest.mark.parametrize("cost", COSTS)
def test_costs(cost):
    assert {key: registry[key].declared.cost for key in COSTS[cost].split()} == dict.fromkeys(COSTS[cost].split(), cost)


VIEWS = {
    "alias.default": (), "view.default": ((8, 3),), "squeeze.default": (), "squeeze.dim": (1,), "squeeze.dims": ((1,),),
    "transpose.int": (0, 2), "permute.default": ((2, 0, 3, 1),), "unsqueeze.default": (2,), "select.int": (2, 1),
    "slice.Tensor": (2, 0, 4, 2), "diagonal.default": (1, 0, 2), "unbind.int": (2,), "split.Tensor": (2, 2),
    "split_with_sizes.default": ((1, 3), 2), "expand.default": ((2, 1, 4, 3),), "detach.default": (),
    "lift_fresh.default": (),
}  # fmt: skip


@pytest.mark.parametrize("key", VIEWS)
def test_the_inverse_of_a_view_writes_what_the_view_shows(key):
    """The value that an inverse gives is what a write through the view leaves in what was viewed."""
    op, args = registry[key], VIEWS[key]
    base = torch.arange(24.0).reshape(2, 1, 4, 3)
    several = isinstance(op(base, *args), (tuple, list))
    for index in range(len(op(base, *args)) if several else 1):
        written = base.clone()
        part = op(written, *args)[index] if several else op(written, *args)
        new = -1 - part.clone()
        part.copy_(new)
        result = op.declared.inverse(base, new, args, index)
        assert result.shape == base.shape and torch.equal(result, written)


def test_inverses_of_views_of_other_elements():
    z = torch.complex(torch.arange(3.0), torch.ones(3))
    pairs = {
        "view_as_real.default": torch.view_as_real(z),
        "_conj.default": z.conj().resolve_conj(),
        "_neg_view.default": -z,
    }
    for key, part in pairs.items():
        assert torch.equal(registry[key].declared.inverse(z, part.clone(), (), 0), z), key
    real = torch.view_as_real(z)
    assert torch.equal(registry["view_as_complex.default"].declared.inverse(real, z.clone(), (), 0), real)
    bits = torch.arange(4.0)
    result = registry["view.dtype"].declared.inverse(bits, bits.view(torch.int32).clone(), (torch.int32,), 0)
    assert torch.equal(result, bits)


def test_every_view_but_windows_on_memory_has_an_inverse():
    without = {
        key
        for key, op in registry.items()
        if op.is_view and op.inplace_of is None and op.declared.inverse is None and not op.family.takes_layouts
    }
    assert without == {"unfold.default", "as_strided.default"}


def test_flops_count_multiplications_and_additions():
    a, b = torch.ones(2, 3), torch.ones(3, 5)
    assert registry["mm.default"].declared.flops(a, b) == 2 * 2 * 3 * 5
    assert registry["addmm.default"].declared.flops(torch.ones(5), a, b, 1, 1) == 2 * 2 * 3 * 5
    assert registry["mul.Tensor"].declared.flops(a, 2) == 6
    image, weight = torch.ones(1, 2, 5, 5), torch.ones(4, 2, 3, 3)
    flops = registry["convolution.default"].declared.flops
    assert flops(image, weight, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1) == 2 * (4 * 3 * 3) * (2 * 3 * 3)


def test_a_rule_of_a_layout_goes_to_operators_that_exist_and_have_none():
    with pytest.raises(ValueError, match="a sparse rule for 'cumsumm', which is no operator; did you mean 'cumsum'"):
        rule_of("sparse", "cumsumm")(len)
    with pytest.raises(ValueError, match="the sparse rule of mm.default is declared twice"):
        rule_of("sparse", "mm")(len)
