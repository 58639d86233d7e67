"""Numbers that only a run of the graph decides: how often a loop runs, which branch is taken, what a step makes of a number.

In: a fake mode. Out: symbols of its environment that stand for nothing known; where it has none and may not have one, an error.
"""

from __future__ import annotations

from ..fake.mode import FakeTensorMode


def fresh_number(mode: FakeTensorMode, refused: Exception):
    """A new symbol; without symbolic sizes `refused` is raised."""
    if mode.shape_env is None:
        if not mode.symbols_on_demand:
            raise refused
        from ..shapes import ShapeEnv

        mode.shape_env = ShapeEnv(allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False)
    return mode.shape_env.create_unbacked_symint()


def fresh_size(mode: FakeTensorMode, refused: Exception):
    """A new symbol that is known to be a size."""
    number = fresh_number(mode, refused)
    mode.shape_env.constrain_for_size(number)
    return number
