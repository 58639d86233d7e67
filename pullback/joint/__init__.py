"""From a program to its forward and backward graphs, ahead of time: functionalization, the joint graph, partitioning."""
