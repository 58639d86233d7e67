"""Algorithms over ranks: joining with fewer inputs, and what may stand in the place of averaging."""
