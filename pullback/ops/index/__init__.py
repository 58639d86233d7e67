"""Operators that pick and put elements by index or mask."""
