"""Settings of a part of the system: named values with defaults, changed by assignment or for a block.

config = Settings("torch._functorch.config", double_backward=True, inert=dict(debug_assert=True))
config.double_backward = False
with config.patch(double_backward=True): ...

What always holds: a setting that is accepted in silence is one that somebody reads. One that has no effect here (`inert`,
whose default says what is done here, and the names that only PyTorch knows) says so, once, when it is set to another value;
a name that nobody knows raises. Settings of a group are reached through it (`config.cpp.threads`), or as `"cpp.threads"`.
"""

from __future__ import annotations

import copy
import difflib
import functools
import pickle
import warnings
from collections.abc import Mapping
from typing import Any

MISSING = object()


class Settings:
    """The settings of one place: `where` is the name that users know it by."""

    def __init__(self, where: str, /, *, inert: Mapping[str, Any] | None = None, **defaults: Any):
        inert = dict(inert or {})
        self.__dict__.update(_where=where, _defaults={**defaults, **inert}, _inert=frozenset(inert), _warned=set())
        self.__dict__.update(self._defaults)

    # ---- one setting
    def __setattr__(self, name: str, value: Any) -> None:
        self._find(name)
        if name not in self._defaults or name in self._inert and value != self._defaults[name]:
            self._say_inert(name)
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python asks any object for
            raise AttributeError(name)
        if name in _known_groups(self._where):
            self.__dict__[name] = result = Settings(f"{self._where}.{name}")
            return result
        raise AttributeError(self._unknown(name))

    def __delattr__(self, name: str) -> None:
        self._find(name)
        if name in self._defaults:
            self.__dict__[name] = self._defaults[name]
        else:
            self.__dict__.pop(name, None)

    def _find(self, name: str) -> None:
        """Raise where nobody knows a setting of this name."""
        if name not in self._defaults and name not in _known_names(self._where):
            raise AttributeError(self._unknown(name))

    def _unknown(self, name: str) -> str:
        words = f"{self._where} has no setting {name!r}"
        if name in _known_names(self._where):
            return f"{words}: PyTorch has, but here it has no effect and no value"
        near = difflib.get_close_matches(name, [*self._defaults, *_known_names(self._where)], 1)
        return f"{words}; did you mean {near[0]!r}?" if near else words

    def _say_inert(self, name: str) -> None:
        if name not in self._warned:
            self._warned.add(name)
            warnings.warn(f"{self._where}.{name} has no effect here", UserWarning, stacklevel=_users_frame())

    # ---- many
    def patch(self, changes: Any = None, value: Any = None, /, **named: Any) -> _Patch:
        """Settings changed for a block, or for a function it decorates: `patch(name=value)`, `patch("name", value)`, `patch({...})`."""
        if isinstance(changes, str):
            named = {changes: value}
        elif changes is not None:
            named = {**changes, **named}
        for name in named:
            place, own = self._place(name)
            place._find(own)
        return _Patch(self, named)

    def _place(self, name: str) -> tuple[Settings, str]:
        """(the group, the name in it) of a setting such as `cpp.threads`."""
        place: Settings = self
        *groups, own = name.split(".")
        for group in groups:
            place = getattr(place, group)
        return place, own

    def to_dict(self) -> dict[str, Any]:
        """All settings that have a value, those of groups as `group.name`."""
        out: dict[str, Any] = {}
        for name, value in self.__dict__.items():
            if isinstance(value, Settings):
                out.update({f"{name}.{inner}": v for inner, v in value.to_dict().items()})
            elif not name.startswith("_"):
                out[name] = value
        return out

    shallow_copy_dict = save_config_portable = to_dict

    def get_config_copy(self) -> dict[str, Any]:
        """As `to_dict`, of copies."""
        return copy.deepcopy(self.to_dict())

    def save_config(self) -> bytes:
        """All settings, for `load_config`."""
        return pickle.dumps(self.to_dict())

    def load_config(self, saved: bytes | Mapping[str, Any]) -> None:
        """Set what `save_config` or `to_dict` gave."""
        values = pickle.loads(saved) if isinstance(saved, bytes) else saved
        for name, value in values.items():
            place, own = self._place(name)
            if place.__dict__.get(own, MISSING) != value:
                setattr(place, own, value)


def _known_names(where: str) -> frozenset[str]:
    """Names that PyTorch has there; looked up only where a name is not ours."""
    from .known_settings import names_of

    return names_of(where)


def _known_groups(where: str) -> frozenset[str]:
    from .known_settings import groups_of

    return groups_of(where)


def _users_frame() -> int:
    """How far up the stack the line is that set a setting."""
    import sys

    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        depth, frame = depth + 1, frame.f_back
    return depth


class _Patch:
    def __init__(self, settings: Settings, changes: dict[str, Any]):
        self.settings, self.changes = settings, changes
        self.before: list[list[tuple[Settings, str, Any]]] = []

    def __enter__(self) -> None:
        places = [self.settings._place(name) for name in self.changes]
        self.before.append([(place, name, place.__dict__.get(name, MISSING)) for place, name in places])
        for (place, name), value in zip(places, self.changes.values(), strict=True):
            setattr(place, name, value)

    def __exit__(self, *exc: object) -> None:
        for place, name, value in self.before.pop():
            if value is MISSING:
                place.__dict__.pop(name, None)
            else:
                place.__dict__[name] = value

    def __call__(self, function):
        if isinstance(function, type):
            return self._on_class(function)

        @functools.wraps(function)
        def patched(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return patched

    def _on_class(self, cls: type) -> type:
        """A test case whose tests all run with the settings."""
        for name, member in list(vars(cls).items()):
            if name.startswith("test") and callable(member):
                setattr(cls, name, self(member))
        return cls
