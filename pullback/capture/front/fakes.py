"""Fakes in a capture: with which sizes they are made, what holds them, and what a graph gives in their place."""

from __future__ import annotations

import types

from ...core.tensor import FAKE, Tensor
from ...ops.system.operator import NoShapeRule
from ..fake.mode import FakeTensorMode, UnsupportedFakeTensorException, UnsupportedOperatorException
from ..trace.program import Unsupported
from ..trace.subclasses import in_class
from .config import config
from .guards import SIMPLE

NO_FAKES = (UnsupportedFakeTensorException, UnsupportedOperatorException, NoShapeRule)  # layouts and operators without
DEPTH, LEAVES = 3, 256  # how deep, and into how many values, containers and objects are looked into


def as_given(result, cls: type | None):
    """A result of a graph in the class that it has in the program."""
    return result if cls is None or not isinstance(result, Tensor) else in_class(result, cls)


def refuse_hidden(value) -> None:
    """Refuse an output that is no tensor, number or container of them, but holds tensors of the trace."""
    if not isinstance(value, SIMPLE) and holds_fakes(value, DEPTH):
        raise Unsupported(
            f"it returns a {type(value).__name__} that holds tensors: return tensors in tuples, lists or dicts"
        )


def holds_fakes(value, depth: int) -> bool:
    if isinstance(value, Tensor):
        return bool(value._keys & FAKE)
    if depth == 0:
        return False
    inner = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, (list, tuple, set))
        else vars(value).values()
        if hasattr(value, "__dict__")
        else ()
    )
    if isinstance(value, types.GeneratorType):
        return True
    return any(holds_fakes(v, depth - 1) for v in list(inner)[:LEAVES])


def number(env, value: int | float, source: str):
    """A number from outside as a symbol; 0 and 1 stay what they are."""
    from ..shapes.contexts import DimDynamic

    symbol = env.create_symbol(value, source, DimDynamic.DUCK, positive=None)
    return env.create_symintnode(symbol, hint=value, source=source)


def any_number(env, value: int | float, source: str):
    """A number from outside as a symbol of its own, whatever it is: it shares none with a size that happens to be equal."""
    from ..shapes.contexts import DimDynamic

    symbol = env.create_unspecified_symbol(value, source, DimDynamic.DYNAMIC)
    return env.create_symintnode(symbol, hint=value, source=source)


def fake_mode_for(symbolic) -> FakeTensorMode:
    """Fakes with symbolic sizes where some are wanted, or where numbers that depend on data may be symbols."""
    if not (symbolic or config.capture_scalar_outputs or config.capture_dynamic_output_shape_ops):
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        mode.symbols_on_demand = True
        return mode
    from ..shapes import ShapeEnv
    from ..shapes.config import config as shapes

    env = ShapeEnv(
        duck_shape=shapes.use_duck_shape,
        allow_scalar_outputs=config.capture_scalar_outputs,
        allow_dynamic_output_shape_ops=config.capture_dynamic_output_shape_ops,
    )
    return FakeTensorMode(allow_non_fake_inputs=True, shape_env=env, static_shapes=False)
