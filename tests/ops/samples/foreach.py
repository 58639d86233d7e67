"""Samples of the operators over lists of tensors, made from the schema; for their in-place forms too."""

from __future__ import annotations

import pullback as torch
from pullback.ops.system.operator import Operator

from .make import Make, call


def samples(op: Operator, make: Make) -> list:
    """Two tensors in each list, between 0.1 and 0.9, where every one of them is defined."""
    square = op.name == "_foreach_mm"
    given = {}
    for a in op.schema.arguments:
        if a.is_tensor:
            given[a.name] = (make.unit(2, 2), make.unit(2, 2) if square else make.unit(3)) if a.is_list else make.unit()
            if a.name == "scalars":
                given[a.name] = torch.tensor([1.5, 0.5], dtype=torch.float64)
        elif a.base == "Scalar" and a.is_list:
            given[a.name] = (1.5, 0.5)
        elif a.base == "Scalar" and not a.has_default:
            given[a.name] = 1.5
    return [call(**given)]
