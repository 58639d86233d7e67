"""SciPy's, on arrays of the stand-in."""

from cupy import Names
from scipy import fft as _theirs

_names = Names(_theirs)


def __getattr__(name: str):
    return getattr(_names, name)
