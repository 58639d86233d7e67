"""Functions of one example as functions of a batch: batched tensors and `vmap`. Derivatives stand above, in `func`."""

from .vmap import chunk_vmap, vmap

__all__ = ["chunk_vmap", "vmap"]
