"""Operators that give the same elements another shape: views, joins, splits, rearrangements."""
