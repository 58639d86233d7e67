"""`torch` as an alias of pullback.

`install()` makes `import torch` and every `torch.x` mean pullback's. Public modules are found by their own names;
`PRIVATE` is the table of names that programs reach for inside PyTorch, and where they live here.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
import types

from ..surface.homes import Aliased, exists
from . import children
from .base_rows import ROWS as BASE_ROWS
from .class_names import name_later, take_names
from .compile_rows import OBJECTS as COMPILE_OBJECTS
from .compile_rows import ROWS as COMPILE_ROWS
from .compile_rows import VARIABLES
from .export_rows import OBJECTS as EXPORT_OBJECTS
from .export_rows import ROWS as EXPORT_ROWS
from .fake_rows import ROWS as FAKE_ROWS
from .fx_rows import RENAMED
from .fx_rows import ROWS as FX_ROWS
from .higher_order_rows import ROWS as HIGHER_ORDER_ROWS
from .library_rows import ROWS as LIBRARY_ROWS
from .nn_rows import ROWS as NN_ROWS
from .package_rows import ROWS as PACKAGE_ROWS
from .shape_rows import ROWS as SHAPE_ROWS

# "module": {name: "home:attribute"}. Rows of a module that exists here are set on it; other modules are made of rows.
PRIVATE: dict[str, dict[str, str]] = {
    **BASE_ROWS,
    **NN_ROWS,
    **LIBRARY_ROWS,
    **FX_ROWS,
    **HIGHER_ORDER_ROWS,
    **SHAPE_ROWS,
    **FAKE_ROWS,
    **COMPILE_ROWS,
    **EXPORT_ROWS,
}
OBJECTS = {**COMPILE_OBJECTS, **EXPORT_OBJECTS}
for _name, _rows in PACKAGE_ROWS.items():
    PRIVATE[_name] = {**PRIVATE.get(_name, {}), **_rows}
# Packages that have modules of the table below them, and the names of these.
INSIDE: dict[str, set[str]] = {}
for _name in (*PRIVATE, *OBJECTS, *RENAMED):
    while "." in _name:
        _parent, _, _last = _name.rpartition(".")
        INSIDE.setdefault(_parent, set()).add(_last)
        _name = _parent


# Modules that PyTorch's own import, so that programs find them where they name none of them.
ALONG = {"torch._dynamo": ("unittest.mock",)}


class _Finder(Aliased):
    """Serves `torch.x` from `pullback.x`, or from the table."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "torch" and not fullname.startswith("torch.") and fullname not in PRIVATE:
            return None
        if self.home(fullname) is None and not any(fullname in table for table in (PRIVATE, OBJECTS, INSIDE)):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=self.is_package(fullname))

    def is_package(self, fullname: str) -> bool:
        """Whether there are modules below one; those without can be run by `-m`."""
        home = self.home(fullname)
        if home is None or fullname in INSIDE:
            return True
        spec = importlib.util.find_spec(home)
        return spec is None or spec.submodule_search_locations is not None

    def get_code(self, fullname: str):
        """The code of a module that is run by `-m`: that of its home."""
        home = self.home(fullname)
        spec = importlib.util.find_spec(home) if home is not None else None
        read = getattr(spec.loader, "get_code", None) if spec is not None else None
        return read(home) if read is not None else None

    def home(self, fullname: str) -> str | None:
        name = _own_name(fullname)
        return name if exists(name) else None

    def create_module(self, spec):
        if spec.name in OBJECTS:
            return _resolve(OBJECTS[spec.name])
        if self.home(spec.name) is None:
            return _made_of_rows(spec.name)
        module = super().create_module(spec)
        _answer_private_names(module, spec.name)
        return module

    def exec_module(self, module) -> None:
        super().exec_module(module)
        name_later(module)


def _own_name(fullname: str) -> str:
    """The module here that answers to a module of `torch`; it need not exist."""
    head, tail = fullname, ""
    while head:
        if head in RENAMED:
            return RENAMED[head] + tail
        head, dot, part = head.rpartition(".")
        tail = dot + part + tail
    return "pullback" + fullname[len("torch") :]


class _Private(types.ModuleType):
    """A module of the table: each name is fetched from its home when asked for."""

    __path__: list = []

    def __getattr__(self, name: str):
        rows = PRIVATE.get(self.__name__, {})
        home = rows.get(name)
        if home is None and name in INSIDE.get(self.__name__, ()):
            home = f"{self.__name__}.{name}:"
        if home is None and "*" in rows and not name.startswith("__"):
            home = f"{rows['*']}:{name}"
        if home is None:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}' here")
        value = _resolve(home)
        if name not in VARIABLES.get(self.__name__, ()):
            setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value) -> None:
        if name in VARIABLES.get(self.__name__, ()):
            home, _, attribute = PRIVATE[self.__name__][name].partition(":")
            module = importlib.import_module(home)
            vars(self).setdefault("_before", {})[name] = getattr(module, attribute)
            setattr(module, attribute, value)
        elif isinstance(value, _Private) and not PRIVATE.get(self.__name__, {}).get(name, ":").endswith(":"):
            pass  # importing a module of the name of a function hides no function
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        """Of a variable: what was assigned is taken back (`unittest.mock.patch` ends so)."""
        before = vars(self).get("_before", {})
        if name in before:
            setattr(self, name, before[name])
            del before[name]
        else:
            super().__delattr__(name)


def _made_of_rows(name: str) -> _Private:
    """A module of the table. One that stands for a whole module here has its globals, in which annotations are looked up."""
    module = _Private(name)
    for other in ALONG.get(name, ()):
        importlib.import_module(other)
    rows = PRIVATE.get(name, {})
    home = rows.get("*")
    if home is not None and home != "pullback":
        names = vars(importlib.import_module(home)).items()
        vars(module).update({key: value for key, value in names if not key.startswith("__") and key not in rows})
    return module


def _resolve(home: str):
    """The object at "module:attribute"."""
    module, _, attribute = home.partition(":")
    value = importlib.import_module(module)
    for part in attribute.split(".") if attribute else ():
        value = getattr(value, part)
    return value


def _answer_private_names(module: types.ModuleType, name: str) -> None:
    """Let a public module also answer the names of its rows, and those of the modules below it, before they are imported."""
    rows, inside = PRIVATE.get(name, {}), INSIDE.get(name, ())
    before = vars(module).get("__getattr__")
    if getattr(before, "answers", None) == name:
        return

    def answer(attribute: str):
        if attribute in rows:
            return _resolve(rows[attribute])
        try:
            value = before(attribute) if before is not None else None
        except AttributeError:
            value = None
        if isinstance(value, types.ModuleType):
            _answer_private_names(value, f"{name}.{attribute}")
            name_later(value)
        elif value is None and (
            attribute in inside or not attribute.startswith("__") and exists(_own_name(f"{name}.{attribute}"))
        ):
            value = importlib.import_module(f"{name}.{attribute}")
        if value is None:
            raise AttributeError(f"module '{name}' has no attribute '{attribute}'")
        return value

    answer.answers = name  # type: ignore[attr-defined]
    module.__getattr__ = answer  # type: ignore[method-assign]


def take_over(name: str) -> None:
    """Let a module that is being imported from a file be the one that the table describes."""
    module = _Private(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, _Finder(), is_package=True)
    sys.modules[name] = module


def install() -> None:
    """Make `torch` mean pullback in this process."""
    import pullback

    if not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    sys.modules["torch"] = pullback
    pullback.torch = pullback  # `torch.torch`, as PyTorch has it
    take_names()
    for name in [m for m in sys.modules if m.startswith("pullback.")]:
        sys.modules.setdefault("torch" + name[len("pullback") :], sys.modules[name])
    for name in {*PRIVATE, *INSIDE}:
        home = sys.modules.get(_own_name(name))
        if home is not None:
            _answer_private_names(home, name)
    children.follow()
