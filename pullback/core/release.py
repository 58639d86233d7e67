"""The version of PyTorch's interface that is offered here, and those of the packages around it."""

from __future__ import annotations

TORCH = "2.13.0+pullback"


def version_of(package: str) -> str:
    """The version of an installed package, this one among them; sources that were never installed have none."""
    from importlib import metadata  # it takes a moment to load

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
