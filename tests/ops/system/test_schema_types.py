"""Types in schemas: what they are made of, and which values of one are values of another."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.ops.system.schema_types import DeviceObjType, OptionalType, TensorType, TypeName


@pytest.mark.parametrize(
    "text, parts, python",
    [
        ("Tensor", [], "Tensor"), ("Tensor?", ["Tensor"], "Optional[Tensor]"), ("int[2]", ["int"], "List[int]"),
        ("Tensor?[]", ["Tensor?"], "List[Optional[Tensor]]"), ("int[]?", ["int[]"], "Optional[List[int]]"),
    ],
)  # fmt: skip
def test_parts(text, parts, python):
    assert TypeName(text).containedTypes() == parts and TypeName(text).annotation_str == python


def test_subtypes():
    tensor, optional = TensorType.get(), OptionalType(DeviceObjType.get())
    assert tensor.isSubtypeOf(TypeName("Tensor?")) and tensor.isSubtypeOf(TypeName("Any"))
    assert not TypeName("Tensor?").isSubtypeOf(tensor) and not tensor.isSubtypeOf(optional)


def test_schemas_have_them():
    schema = torch.ops.aten.zeros_like.default._schema
    kinds = {a.name: a.type for a in schema.arguments}
    assert kinds["self"].isSubtypeOf(TensorType.get()) and kinds["device"].isSubtypeOf(
        OptionalType(DeviceObjType.get())
    )
    assert schema.returns[0].type.isSubtypeOf(TensorType.get())
