"""Types in schemas: texts such as `Tensor?` and `int[2]`, which can be asked what they are made of.

In: the text of a type. Out: the same text, with the questions of PyTorch's type objects (`isSubtypeOf`, `containedTypes`).
"""

from __future__ import annotations

Text = str  # which is a method below
_IN_PROGRAMS = {
    "ScalarType": "int", "Layout": "int", "MemoryFormat": "int", "SymInt": "int", "SymFloat": "float", "SymBool": "bool",
}  # fmt: skip


class TypeName(str):
    """The text of a type in a schema."""

    __slots__ = ()

    def containedTypes(self) -> list[TypeName]:
        """The type that an optional or a list is made of."""
        if self.endswith("?"):
            return [TypeName(self[:-1])]
        return [TypeName(self[: self.rindex("[")])] if self.endswith("]") else []

    def str(self) -> Text:
        """The type that values of it have in programs: dtypes, layouts, formats and symbolic numbers are numbers there."""
        if self.endswith(("?", "]")):
            return self.containedTypes()[0].str() + ("?" if self.endswith("?") else "[]")
        return _IN_PROGRAMS.get(self, self[:])

    def isSubtypeOf(self, other: Text) -> bool:
        """Whether every value of this type is one of the other: a type is one of its optional."""
        return self == other or other == "Any" or other.endswith("?") and self.removesuffix("?") == other[:-1]

    @property
    def annotation_str(self) -> Text:
        """How Python writes it."""
        if self.endswith("?"):
            return f"Optional[{self.containedTypes()[0].annotation_str}]"
        return f"List[{self.containedTypes()[0].annotation_str}]" if self.endswith("]") else str(self)


class RealTypeName(TypeName):
    """A type as the schema writes it."""

    __slots__ = ()

    def str(self) -> Text:
        return self[:]


class TensorType(TypeName):
    """The type of tensors."""

    @staticmethod
    def get() -> TypeName:
        return TypeName("Tensor")


class DeviceObjType(TypeName):
    """The type of devices."""

    @staticmethod
    def get() -> TypeName:
        return TypeName("Device")


class OptionalType(TypeName):
    """A type, or nothing."""

    def __new__(cls, of: str) -> TypeName:  # type: ignore[misc]
        return TypeName(f"{of}?")
