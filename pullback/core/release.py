"""The version of PyTorch's interface that is offered here."""

TORCH = "2.13.0+pullback"
