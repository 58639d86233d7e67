"""What can be done with a tensor: every operator, defined once, in families.

Importing this package declares all operators and hangs their methods on `Tensor`. `public(namespace, name)` finds a
public function, e.g. `public("torch", "sin")`.
"""

from __future__ import annotations

import importlib

from ..core.tensor import Tensor
from . import dunders
from .operator import exports

MODULES = (
    "factories", "construct", "conversion", "filling", "lifting", "python_values", "memory",
    "arithmetic", "division", "exponential", "power", "trigonometric", "comparison", "selection", "bitwise", "rounding", "complex", "activations", "smooth_activations", "activation_functions", "pointwise_losses", "loss_functions",
    "reductions", "scans", "sorting", "searching", "histograms", "statistics", "distances", "softmaxes", "normalization", "batch_normalization", "group_normalization", "batch_statistics", "class_losses", "ctc", "segments",
    "views", "shapes", "complex_views", "view_metadata", "joining", "splitting", "indexing", "gather_scatter", "index_along", "elements",
    "view_scatter", "rearranging", "view_copies",
    "contraction", "tensor_products", "einsum", "grouped", "attention", "multihead", "embedding", "recurrent",
    "special", "special_bessel", "special_polynomials", "fft", "signal", "signal_windows", "linalg", "window", "random", "random_factories", "dropout", "foreach", "layouts", "names",
)  # fmt: skip

for _module in MODULES:
    importlib.import_module(f"{__name__}.{_module}")

for _name, _function in exports["Tensor"].items():
    if _name not in Tensor.__dict__:
        setattr(Tensor, _name, _function)

dunders.install()


def public(namespace: str, name: str):
    """A public function by its namespace ("torch", "linalg", "nn.functional") and name."""
    return exports[namespace][name]
