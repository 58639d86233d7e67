"""Tensors made: from sizes, data, randomness and other tensors; and turned into Python values."""
