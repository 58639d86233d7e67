"""Loops as CUDA C: the printer, the file of a graph, and the plan of its launches.

The same steps, fused by the same rules, as on the CPU; what differs is which threads run which iterations, and that a graph is a
list of launches and products instead of one function.
"""
