"""Settings of a part of the system: named values with defaults, changed by assignment or for a block.

config = Settings("joint", double_backward=True)
config.double_backward = False
with config.patch(double_backward=True): ...
"""

from __future__ import annotations

import functools
from typing import Any


class Settings:
    """A fixed set of names; assigning an unknown one raises, so that a misspelt setting is no silent no-op."""

    def __init__(self, where: str, **defaults: Any):
        self.__dict__.update(_where=where, _defaults=dict(defaults), **defaults)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._defaults:
            known = ", ".join(sorted(self._defaults))
            raise AttributeError(f"{self._where}.config has no setting {name!r}; it has {known}")
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.__dict__['_where']}.config has no setting {name!r}")

    def __delattr__(self, name: str) -> None:
        setattr(self, name, self._defaults[name])

    def patch(self, changes: Any = None, value: Any = None, /, **named: Any) -> _Patch:
        """Settings changed for a block, or for a function it decorates: `patch(name=value)`, `patch("name", value)`, `patch({...})`."""
        if isinstance(changes, str):
            named = {changes: value}
        elif changes is not None:
            named = {**changes, **named}
        unknown = sorted(set(named) - set(self._defaults))
        if unknown:
            raise AttributeError(f"{self._where}.config has no setting {unknown[0]!r}")
        return _Patch(self, named)

    def save_config_portable(self) -> dict:
        return {name: self.__dict__[name] for name in self._defaults}


class _Patch:
    def __init__(self, settings: Settings, changes: dict):
        self.settings, self.changes, self.before = settings, changes, []

    def __enter__(self) -> None:
        self.before.append({name: self.settings.__dict__[name] for name in self.changes})
        self.settings.__dict__.update(self.changes)

    def __exit__(self, *exc) -> None:
        self.settings.__dict__.update(self.before.pop())

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
