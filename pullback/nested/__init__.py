"""Nested tensors (being built)."""
def values_of_nested(t): raise NotImplementedError
