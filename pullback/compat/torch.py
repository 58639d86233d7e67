"""`torch` as an alias of pullback.

`install()` makes `import torch` and every `torch.x` mean pullback's. Public modules are found by their own names;
`PRIVATE` is the table of names that programs reach for inside PyTorch, and where they live here.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types

# "module": {name: "home:attribute"}
PRIVATE: dict[str, dict[str, str]] = {}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Serves `torch.x` from `pullback.x`, or from the table."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        if self._home(fullname) is None and fullname not in PRIVATE:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def _home(self, fullname: str) -> str | None:
        name = "pullback" + fullname[len("torch") :]
        if name in sys.modules:
            return name
        try:
            return name if importlib.util.find_spec(name) is not None else None
        except ModuleNotFoundError:
            return None

    def create_module(self, spec):
        home = self._home(spec.name)
        return importlib.import_module(home) if home is not None else _Private(spec.name)

    def exec_module(self, module) -> None:
        """Nothing to run: the module is already whole."""

    def load_module(self, fullname):
        home = self._home(fullname)
        module = sys.modules[fullname] = importlib.import_module(home) if home is not None else _Private(fullname)
        return module


class _Private(types.ModuleType):
    """A module of the table: each name is fetched from its home when asked for."""

    __path__: list = []

    def __getattr__(self, name: str):
        home = PRIVATE.get(self.__name__, {}).get(name)
        if home is None:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}' here")
        module, _, attribute = home.partition(":")
        value = importlib.import_module(module)
        for part in attribute.split(".") if attribute else ():
            value = getattr(value, part)
        setattr(self, name, value)
        return value


def install() -> None:
    """Make `torch` mean pullback in this process."""
    import pullback

    if not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    sys.modules["torch"] = pullback
    pullback.torch = pullback  # `torch.torch`, as PyTorch has it
    for name in [m for m in sys.modules if m.startswith("pullback.")]:
        sys.modules.setdefault("torch" + name[len("pullback") :], sys.modules[name])
