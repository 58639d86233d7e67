"""What can be done with a tensor: every operator, defined once, in families.

Importing this package declares all operators and hangs their methods on `Tensor`. `public(namespace, name)` finds a
public function, e.g. `public("torch", "sin")`.
"""

from __future__ import annotations

import importlib

from ..core.tensor import Tensor
from . import texts
from .system import dunders
from .system import offers as offers
from .system.operator import exports

MODULES = (
    "make.factories", "make.ranges", "make.like", "make.construct", "make.dlpack", "make.conversion", "make.conversion_operators", "make.filling", "make.lifting",
    "make.assertions", "make.python_values",
    "make.memory", "make.storage_sizes", "make.zero_tensors", "elementwise.arithmetic", "elementwise.division", "elementwise.exponential",
    "elementwise.power", "elementwise.trigonometric", "elementwise.comparison", "elementwise.selection",
    "elementwise.bitwise", "elementwise.rounding", "elementwise.complex_numbers", "elementwise.activations",
    "elementwise.smooth_activations", "elementwise.activation_functions", "elementwise.random_leak", "network.pointwise_losses",
    "network.loss_functions", "network.margin_losses", "reduce.reductions", "reduce.scans", "reduce.sorting", "reduce.searching",
    "reduce.histograms", "reduce.statistics", "reduce.distances", "reduce.softmaxes", "network.normalization",
    "network.batch_normalization", "network.group_normalization", "network.batch_statistics",
    "network.class_losses", "network.ctc", "reduce.segments", "shape.views", "shape.shapes",
    "shape.complex_views", "shape.view_metadata", "shape.joining", "shape.splitting", "index.indexing",
    "index.gather_scatter", "index.index_along", "index.masked_elements", "shape.view_scatter",
    "shape.rearranging", "shape.view_copies", "linalg.contraction", "linalg.tensor_products", "linalg.einsum",
    "linalg.grouped", "linalg.scaled", "linalg.integer_products", "linalg.packed_weights", "layout.oneapi", "system.plain_classes", "system.policies", "network.attention", "network.multihead",
    "network.embedding", "network.recurrent",
    "elementwise.special", "elementwise.special_bessel", "elementwise.special_polynomials", "signal.fft",
    "signal.short_time", "signal.windows", "linalg.cholesky", "linalg.determinant", "linalg.ldl",
    "linalg.lowrank", "linalg.lu", "linalg.norms", "linalg.matrix_functions", "linalg.pseudoinverse",
    "linalg.qr", "linalg.removed", "linalg.solve", "linalg.spectral", "window", "make.random",
    "make.random_factories", "network.dropout", "network.fake_quantize", "elementwise.foreach", "layout.entry", "layout.named",
)  # fmt: skip

for _module in MODULES:
    importlib.import_module(f"{__name__}.{_module}")

texts.attach(exports, vars(Tensor))
for _name, _function in exports["Tensor"].items():
    if _name not in Tensor.__dict__:
        setattr(Tensor, _name, _function)

dunders.install()
