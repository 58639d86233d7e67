"""Dynamic shapes as plain data."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.export import Dim
from pullback.export.written_shapes import DynamicShapesSpec, RootDim, dump_dynamic_shapes, load_dynamic_shapes


def test_there_and_back() -> None:
    dz = Dim("dz", min=4, max=16)
    shapes = {"a": [(2 * dz, 4), (2 * dz + 1, 4)], "b": {"k": (Dim.AUTO,)}, "c": None, "d": None}
    inputs = ([torch.ones(8, 4), torch.ones(9, 4)], {"k": torch.ones(4)}, torch.ones(2), "word")
    spec = dump_dynamic_shapes(shapes, inputs)
    assert spec == DynamicShapesSpec(
        ([["2*dz", 4], ["2*dz + 1", 4]], {"k": ["_DimHint.AUTO"]}, ["_DimHint.STATIC"], None),
        {"dz": RootDim(4, 16, ["2*dz", "2*dz + 1"])},
    )
    for again in (
        load_dynamic_shapes(spec),
        load_dynamic_shapes(dump_dynamic_shapes(shapes, inputs, to_dict=True), True),
    ):
        (a, _), (b, _) = again[0]
        assert a.root is b.root and (a.min, b.max) == (8, 33)
        assert again[1]["k"][0].type.name == "AUTO" and again[3] is None


def test_what_is_refused() -> None:
    with pytest.raises(RuntimeError, match="expected `spec` to be a dict"):
        load_dynamic_shapes(DynamicShapesSpec([], {}), from_dict=True)
    with pytest.raises(RuntimeError, match="to be a DynamicShapesSpec"):
        load_dynamic_shapes({})
    with pytest.raises(RuntimeError, match="got dx which is not in"):
        load_dynamic_shapes(DynamicShapesSpec([["dx"]], {}))
    with pytest.raises(RuntimeError, match="map `min` to an int, got dx: None"):
        load_dynamic_shapes({"dynamic_shapes": [["dx"]], "dims": {"dx": {"min": None}}}, from_dict=True)
