"""Compiled autograd: the backward that the engine is about to run, as one graph, made at run time, hooks included."""
