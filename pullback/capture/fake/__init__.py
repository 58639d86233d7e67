"""Fake tensors: everything of a tensor but its data."""
