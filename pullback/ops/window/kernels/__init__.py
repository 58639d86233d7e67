"""Array kernels of the window operators: plain functions `kernel(xp, arrays..., attributes...)`.

Comes in: arrays of one library (`xp` is that library), already checked, batched as (N, C, spatial...), and attributes
as tuples of Python ints with one entry per spatial axis. Goes out: new arrays of the same dtype. Half precision is
computed in float32; nothing here knows about tensors, autograd or tracing.
"""
