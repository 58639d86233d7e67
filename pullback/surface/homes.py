"""Public modules that live elsewhere: `pullback.sparse`, `pullback.backends.cuda`, `pullback.fx`, ...

The folders here are named by what they do; users import the names that PyTorch has. `HOMES` says which module answers
to which public name, and `install` teaches it to the import system. A module has one object and one spec, whatever it
was imported as.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys

HOMES: dict[str, str] = {
    "sparse": "ops.layout.sparse",
    "nested": "ops.layout.nested",
    "fx": "graph",
    "__future__": "nn.conversion_flags",
    **{
        name: f"surface.{name}"
        for name in (
            "accelerator", "backends", "compiler", "cpu", "futures", "hub", "jit", "monitor", "multiprocessing", "overrides", "version", "xpu",
        )
    },
}  # fmt: skip


def home_of(package: str, fullname: str) -> str | None:
    """The module that answers to a public name, e.g. "pullback.surface.hub" to "pullback.hub"; None for other names."""
    if not fullname.startswith(f"{package}."):
        return None
    first, dot, rest = fullname[len(package) + 1 :].partition(".")
    return f"{package}.{HOMES[first]}{dot}{rest}" if first in HOMES else None


class Aliased:
    """Finds and loads modules under names that are not their own; a subclass says where (`home`).

    It has what the import system asks for, and no base: `importlib.abc` would load a dozen modules at start-up.
    """

    def home(self, fullname: str) -> str | None:
        raise NotImplementedError

    def find_spec(self, fullname, path=None, target=None):
        home = self.home(fullname)
        if home is None or not exists(home):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        module = importlib.import_module(self.home(spec.name))
        spec.loader_state = module.__spec__  # the import system is about to replace it
        return module

    def exec_module(self, module) -> None:
        """Nothing to run: the module is already whole. It keeps its own spec, by which its relative imports go."""
        own = getattr(getattr(module, "__spec__", None), "loader_state", None)
        if own is not None:
            module.__spec__ = own


class PublicNames(Aliased):
    """Serves the public names of `package` that `HOMES` lists."""

    def __init__(self, package: str):
        self.package = package

    def home(self, fullname: str) -> str | None:
        return home_of(self.package, fullname)


def exists(name: str) -> bool:
    """Whether a module can be imported, without importing it."""
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def install(package: str) -> None:
    sys.meta_path.insert(0, PublicNames(package))
