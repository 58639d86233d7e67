"""NumPy in captured programs: an array is a tensor of the graph with NumPy's rules (`traced.py`), the functions that are known
are operators of the graph (`ufuncs.py`, `functions.py`), and the world is told of them (`world.py`)."""
