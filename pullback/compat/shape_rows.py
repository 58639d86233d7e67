"""Where the names of `torch.fx.experimental.symbolic_shapes` and its relatives live here: rows for the table of names."""

from __future__ import annotations

_HOME = "pullback.capture.shapes"

_SHAPES = {
    "ShapeEnv": "environment", "ShapeGuard": "environment", "RuntimeAssert": "environment", "SymNode": "node",
    "SymInt": "numbers", "SymFloat": "numbers", "SymBool": "numbers", "SymTypes": "numbers",
    **dict.fromkeys(("GuardOnDataDependentSymNode", "ConstraintViolationError", "PendingUnbackedSymbolNotFound"), "errors"),
    **dict.fromkeys(
        (
            "DimDynamic", "StrictMinMaxConstraint", "RelaxedUnspecConstraint", "SymbolicContext",
            "StatelessSymbolicContext", "StatefulSymbolicContext", "SubclassSymbolicContext", "SymIntSymbolicContext",
        ),
        "contexts",
    ),
}  # fmt: skip

_FUNCTIONS = {
    "FloorDiv": "floordiv", "Mod": "mod", "PythonMod": "mod", "Max": "maximum", "Min": "minimum", "ToFloat": "to_float",
    "IntTrueDiv": "int_truediv", "FloatTrueDiv": "float_truediv", "PowByNatural": "power", "FloatPow": "float_pow",
    "TruncToInt": "trunc", "FloorToInt": "floor", "CeilToInt": "ceil", "RoundToInt": "round_to_int",
    "RoundDecimal": "round_decimal",
}  # fmt: skip

ROWS: dict[str, dict[str, str]] = {
    "torch.fx.experimental.symbolic_shapes": {
        "*": f"{_HOME}.questions",
        **{name: f"{_HOME}.{file}:{name}" for name, file in _SHAPES.items()},
        **{
            name: f"pullback.capture.trace.placeholders:{name}"
            for name in ("bind_symbols", "eval_guards", "fx_placeholder_targets", "fx_placeholder_vals")
        },
        "ValueRanges": f"{_HOME}.contexts:ValueRanges",
        "_constrain_range_for_size": f"{_HOME}.questions:constrain_range_for_size",
        "_advise_is_size": f"{_HOME}.questions:advise_is_size",
    },
    "torch._dynamo.source": {"*": f"{_HOME}.sources"},
    "torch.fx.experimental.sym_node": {
        "SymNode": f"{_HOME}.node:SymNode",
        **{
            f"sym_{name}": f"pullback.core.symbolic:sym_{name}"
            for name in ("sqrt", "max", "min", "float", "int", "not", "ite")
        },
    },
    "torch.utils._sympy": {
        "functions": "torch.utils._sympy.functions:",
        "value_ranges": "torch.utils._sympy.value_ranges:",
    },
    "torch.utils._sympy.value_ranges": {"ValueRanges": f"{_HOME}.contexts:ValueRanges"},
    "torch.utils._sympy.functions": {name: f"{_HOME}.functions:{ours}" for name, ours in _FUNCTIONS.items()},
}
