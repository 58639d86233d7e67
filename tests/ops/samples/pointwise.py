"""Samples of element-wise operators, made from the schema: a domain for each tensor, a value for each number.

Every operator is called on matrices, on 0-d tensors, on tensors without elements and, with several operands, on
operands that broadcast and on a Python number in the place of the last.
"""

from __future__ import annotations

from pullback.ops.system.operator import Operator

from .make import Make, call

# Where an operator is defined and smooth, if not between -2 and 2: by operator, then by argument ("": any).
DOMAINS: dict[str, dict[str, tuple[float, float]]] = {
    **dict.fromkeys(("log", "log10", "log2", "sqrt", "rsqrt", "digamma", "lgamma", "special_entr"), {"": (0.3, 3)}),
    **dict.fromkeys(("log1p",), {"": (-0.7, 3)}),
    **dict.fromkeys(("asin", "acos", "atanh", "erfinv"), {"": (-0.8, 0.8)}),
    **dict.fromkeys(("acosh", "special_zeta"), {"": (1.3, 3)}),
    **dict.fromkeys(("logit", "special_ndtri"), {"": (0.1, 0.9)}),
    **dict.fromkeys(("reciprocal",), {"": (0.3, 3)}),
    **dict.fromkeys(("igamma", "igammac"), {"": (0.5, 3)}),
    **dict.fromkeys(("pow",), {"self": (0.3, 3), "exponent": (-2, 2)}),
    **dict.fromkeys(("xlogy",), {"self": (-2, 2), "other": (0.3, 3)}),
    **dict.fromkeys(("special_xlog1py",), {"other": (-0.7, 3)}),
    **dict.fromkeys(("div", "floor_divide", "remainder", "fmod"), {"self": (-4, 4), "other": (0.6, 1.9)}),
    "addcdiv": {"tensor2": (0.5, 2)},
    "mvlgamma": {"": (3, 5)},
    "polygamma": {"": (0.5, 3)},
    "polar": {"abs": (0.5, 2)},
    "special_multigammaln": {"": (3, 5)},
    **dict.fromkeys(("special_bessel_y0", "special_bessel_y1", "special_modified_bessel_k0"), {"": (0.5, 3)}),
    **dict.fromkeys(("special_modified_bessel_k1", "special_scaled_modified_bessel_k0"), {"": (0.5, 3)}),
    "special_scaled_modified_bessel_k1": {"": (0.5, 3)},
    **dict.fromkeys(("_binary_cross_entropy_slope",), {"self": (0.1, 0.9), "target": (0.1, 0.9)}),
    "_binary_cross_entropy_with_logits_slope": {"target": (0.1, 0.9), "weight": (0.5, 2), "pos_weight": (0.5, 2)},
}

INTEGERS = ("gcd", "lcm", "bitwise_")  # names that take integers, by how they start
NO_NUMBERS = ("_backward", "_slope", "_kernel", "masked_fill", "igamma", "igammac")  # PyTorch takes tensors alone here
COUNTS = ("special_chebyshev", "special_shifted", "special_hermite", "special_laguerre", "special_legendre")

# Values of arguments that are no tensors and have no default, by operator and argument, or by argument alone.
VALUES: dict[str, object] = {
    "alpha": 2, "weight": 0.3, "exponent": 2.5, "other": 1.3, "min": -0.5, "max": 0.7, "value": 0.4, "decimals": 1,
    "n": 1, "p": 2, "self": 1.7, "threshold": 0.2, "min_val": -0.8, "max_val": 0.9, "lambd": 0.4,
    "negative_slope": 0.1, "self_is_result": False, "scale": 1.1, "input_scale": 0.9, "is_result": False, "beta": 0.7,
    "delta": 0.6, "rounding_mode": None, "lower": 0.1, "upper": 0.3, "atol": 1e-8,
}  # fmt: skip
# Further calls: values that change what the operator computes.
VARIANTS: dict[str, list[dict]] = {
    "div.Tensor_mode": [{"rounding_mode": "floor"}, {"rounding_mode": "trunc"}],
    "add.Tensor": [{"alpha": 1}], "sub.Tensor": [{"alpha": 1}], "rsub.Scalar": [{"alpha": 1}], "rsub.Tensor": [{"alpha": 1}],
    "pow.Tensor_Scalar": [{"exponent": e} for e in (0, 1, 2, 3, 0.5, -1, -2.0)],
    "pow.Scalar": [{"self": 0.5}, {"self": 3}],
    "clamp": [{"min": None}, {"max": None}], "clamp.Tensor": [{"min": None}, {"max": None}],
    "gelu": [{"approximate": "tanh"}], "gelu_backward": [{"approximate": "tanh"}],
    "elu_backward": [{"is_result": True}], "lerp.Scalar": [{"weight": 0.8}],
    "_rrelu_leak": [{"training": True}], "polygamma": [{"n": 0}, {"n": 2}], "logit": [{"eps": 0.2}, {"eps": 0.45}],
    "_binary_cross_entropy_with_logits_slope": [{"weight": None}, {"pos_weight": None}],
    "nan_to_num": [{"nan": 1.0}], "isclose": [{"equal_nan": True}], "softplus": [{"beta": 2, "threshold": 1}],
    "hardtanh": [{"min_val": 0, "max_val": 1}], "celu": [{"alpha": 0.5}], "elu": [{"alpha": 0.5, "scale": 1.5}],
}  # fmt: skip


def samples(op: Operator, make: Make) -> list:
    """The calls of one element-wise operator."""
    tensors = [a.name for a in op.schema.arguments if a.is_tensor]
    n = len(tensors)
    shapes = [[(2, 3)] * n, [()] * n, [(0, 3)] * n]
    if n > 1:
        shapes += [[(2, 3)] + [(3,)] * (n - 1), [(3, 1)] + [(2, 1, 4)] * (n - 1), [(2, 3)] + [()] * (n - 1)]
    if n > 2:
        shapes.append([(3,), (2, 1), (2, 3), (1, 3), (3,)][:n])
    calls = [_call(op, make, dict(zip(tensors, s, strict=True)), {}) for s in shapes]
    key = op.name if op.overload == "default" else f"{op.name}.{op.overload}"
    for values in VARIANTS.get(key, []):
        calls.append(_call(op, make, dict.fromkeys(tensors, (2, 3)), values))
    if n == 2 and op.declared.numbers is None and not op.name.endswith(NO_NUMBERS):
        calls.append(_call(op, make, {tensors[0]: (2, 3)}, {tensors[1]: _number(op, tensors[1])}))
    return calls


def _call(op: Operator, make: Make, shapes: dict, values: dict) -> tuple:
    given = {}
    for a in op.schema.arguments:
        if a.name in values:
            given[a.name] = values[a.name]
        elif a.is_tensor:
            given[a.name] = _tensor(op, a.name, make, shapes[a.name])
        elif a.name in VALUES:
            given[a.name] = _integer(op, VALUES[a.name])
    return call(**given)


def _tensor(op: Operator, name: str, make: Make, shape: tuple):
    if name in ("mask", "condition"):
        return make.mask(*shape)
    if op.name.startswith(INTEGERS):
        return make.ints(6, *shape, low=1)
    if op.name.startswith(COUNTS) and name == "n":
        return make.ints(6, *shape).double()
    if op.name in ("sigmoid_backward", "tanh_backward") and name == "output":
        return make.unit(*shape)
    if op.name == "ldexp" and name == "other" and len(shape) == 1:  # exponents are integers here, fractions elsewhere
        return make.ints(4, *shape, low=-2)
    if op.name == "_rrelu_leak" and name == "noise":
        return make.real(*shape, low=0.1, high=0.3)
    if op.name == "masked_fill" and name == "value":
        return make()
    table = DOMAINS.get(op.name, {})
    return make.between(*table.get(name, table.get("", (-2, 2))), *shape)


def _integer(op: Operator, value):
    return 3 if op.name.startswith("bitwise_") else value


def _number(op: Operator, name: str):
    if op.name.startswith((*INTEGERS, *COUNTS)) or op.name == "ldexp":
        return 3
    table = DOMAINS.get(op.name, {})
    low, high = table.get(name, table.get("", (-2, 2)))
    return 1.5 if low < 1.5 < high else (low + high) / 2
