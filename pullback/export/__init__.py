"""Programs for others to keep (`torch.export`): modules as graphs of operators, with their state beside them."""

from __future__ import annotations

from .archive import load, save
from .decompositions import CustomDecompTable, default_decompositions
from .draft import draft_export
from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from .exported_program import ExportedProgram
from .graph_signature import (
    ExportBackwardSignature,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    ModuleCallEntry,
    ModuleCallSignature,
    OutputKind,
    OutputSpec,
)
from .structures import register_dataclass
from .trace import export, export_for_training
from .unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs", "Constraint", "CustomDecompTable", "Dim", "ExportBackwardSignature", "ExportGraphSignature",
    "ExportedProgram", "FlatArgsAdapter", "InputKind", "InputSpec", "ModuleCallEntry", "ModuleCallSignature", "OutputKind",
    "OutputSpec", "ShapesCollection", "UnflattenedModule", "default_decompositions", "dims", "draft_export", "export",
    "export_for_training", "load", "register_dataclass", "save", "unflatten",
]  # fmt: skip
