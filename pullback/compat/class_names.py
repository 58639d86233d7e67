"""What classes say of themselves under the alias: `torch.Tensor`, `torch.nn.modules.linear.Linear`.

Programs compare `type(x).__module__` and `repr(type(x))` with PyTorch's names, and pickles are written with them. The
names are those that `serialization` writes into files, so a pickle finds its classes again.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

# Classes of the core, whose module is not the one their file has in PyTorch either.
_CORE = {
    "torch": (
        "Tensor", "Size", "dtype", "device", "layout", "memory_format", "Generator", "finfo", "iinfo", "qscheme", "SymInt",
        "SymFloat", "SymBool", "Stream", "Event",
    ),
    "torch.nn.parameter": ("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer"),
    "torch.storage": ("UntypedStorage", "TypedStorage"),
}  # fmt: skip

# Packages that are loaded later, whose classes are named when they are.
_waiting = {
    f"pullback.{name}" for name in ("distributions", "optim", "optim.lr_scheduler", "optim.swa_utils", "utils.data")
}


def name_later(module: ModuleType) -> None:
    """Name the classes of a package that was just loaded, and of those that it loaded, where they are among those."""
    home = vars(module).get("__name__") if isinstance(module, ModuleType) else None
    if home not in _waiting:
        return
    loaded = [name for name in sorted(_waiting) if name.startswith(home) and name in sys.modules]
    _waiting.difference_update(loaded)  # naming imports the modules that the names lie in
    for name in loaded:
        name_classes(sys.modules[name])


def take_names() -> None:
    """Give the public classes that are loaded by now PyTorch's names, and `torch.nn` with them; the package its own."""
    import pullback
    from pullback import nn

    for module, names in _CORE.items():
        for name in names:
            found = getattr(pullback, name, None) or getattr(nn, name, None) or getattr(nn.parameter, name, None)
            if isinstance(found, type):
                _rename(found, module)
    name_classes(nn)
    pullback.__name__ = "torch"


def name_classes(package: ModuleType) -> None:
    """Name the classes that a public package offers as PyTorch's files name them."""
    from pullback.serialization.names import name_of

    for value in list(vars(package).values()):
        if isinstance(value, type) and value.__module__.startswith("pullback."):
            known = name_of(value)
            if known is not None:
                _rename(value, known[0])


def _rename(cls: type, module: str) -> None:
    try:
        importlib.import_module(module)  # annotations of the class are looked up there
    except ModuleNotFoundError:
        return  # PyTorch has no such module, or none that is here
    try:
        cls.__module__ = module
    except TypeError:  # a class of C: its name is fixed
        pass
