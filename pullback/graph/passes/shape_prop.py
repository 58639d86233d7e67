"""Shapes and dtypes on nodes, from a run on example inputs.

In: a graph module and example inputs. Out: `meta["tensor_meta"]` and `meta["type"]` on every node. What always holds:
the graph itself does not change.
"""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ..arguments import map_aggregate
from ..interpreter import Interpreter
from ..metadata import TensorMetadata, tensor_metadata
from ..node import Node

_extract_tensor_metadata = tensor_metadata


class ShapeProp(Interpreter):
    """Runs a graph and notes the metadata of every result on its node."""

    def __init__(self, gm: Any, fake_mode: Any = None):
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        try:
            if self.fake_mode is not None:
                with self.fake_mode:
                    result = super().run_node(n)
            else:
                result = super().run_node(n)
        except Exception as e:
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from e
        found = False

        def extract(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            return tensor_metadata(value)

        meta = map_aggregate(result, extract)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run on example inputs; the result."""
        if self.fake_mode is not None:
            args = tuple(self.fake_mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args)
        return super().run(*args)


__all__ = ["TensorMetadata", "ShapeProp"]
