"""SciPy under the names of `cupyx`."""
