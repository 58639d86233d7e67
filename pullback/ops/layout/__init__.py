"""Tensors that are not plain dense arrays: sparse, nested, opaque, and those with named dimensions."""
