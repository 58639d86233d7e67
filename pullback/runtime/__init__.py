"""Source to machine: a C compiler, a cache of what it built, the call itself, BLAS and threads."""
