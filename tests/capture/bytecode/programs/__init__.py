"""Small programs, one for every construct of the language: each is run by Python and by the machine, and compared.

A program takes no arguments, depends on nothing that another changes, and returns (or raises) something comparable.
"""

from . import classes, exceptions, expressions, functions, generators, newer  # noqa: F401  (they fill the table)
from .table import PROGRAMS

__all__ = ["PROGRAMS"]
