"""Calls recorded into graphs, below autograd (`make_fx`) and above it (`ProgramTrace`)."""
