"""A Python bytecode machine in Python: code objects come in, and a `World` says what every step of them does.

`steps` decodes bytecode of Python 3.11 to 3.13 into one set of steps, `frame` is the state of one running function,
`binding` makes a frame of a call, `machine` runs frames, `generators` are those that pause, and `world` holds the
meaning of every operation (plain Python unless overridden). A world that refuses an operation raises `Break`; the
machine then stands exactly before that step, so that its frames can be kept and run on later.

These modules stand on the standard library alone.
"""
