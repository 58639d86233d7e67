"""Operators that reduce, scan, order or count along dimensions."""
