"""Whether new memory is filled while deterministic algorithms are asked for."""

fill_uninitialized_memory = True
