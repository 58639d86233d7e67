"""Data pipes: datasets that are built by chaining, `pipe.map(f).batch(8)`.

`functional_datapipe("name")` makes a pipe class a method of all pipes of its kind. The decorators about determinism and
types say what a pipe promises; determinism is checked when `guaranteed_datapipes_determinism` is on, types where a pipe
asks for it.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import pickle
import typing
from collections.abc import Callable

from .dataset import Dataset, IterableDataset


class _Chaining:
    """Functions registered for a kind of pipe are its methods."""

    functions: dict[str, Callable]

    def __getattr__(self, name: str):
        if name in type(self).functions:
            return functools.partial(type(self).functions[name], self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}")

    @classmethod
    def register_function(cls, function_name: str, function: Callable) -> None:
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False
    ) -> None:
        """Make a pipe class a method of pipes."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")  # noqa: TRY002

        @functools.wraps(cls_to_register.__init__)
        def chained(source, *args, **kwargs):
            return cls_to_register(source, *args, **kwargs)

        cls.functions[function_name] = chained


class IterDataPipe(_Chaining, IterableDataset):
    """A pipe of examples one after the other."""

    functions: dict[str, Callable] = {}

    def __repr__(self) -> str:
        return type(self).__qualname__


class DFIterDataPipe(IterDataPipe):
    """A pipe of data frames."""


class MapDataPipe(_Chaining, Dataset):
    """A pipe of examples by index."""

    functions: dict[str, Callable] = {}

    def __repr__(self) -> str:
        return type(self).__qualname__


class _Sent:
    """A pipe on its way to another process: pickled, or by the package `dill` where it holds what pickle refuses."""

    def __init__(self, datapipe) -> None:
        self._datapipe = datapipe

    def __getstate__(self) -> tuple[bytes, str]:
        try:
            return pickle.dumps(self._datapipe), "pickle"
        except Exception:
            if importlib.util.find_spec("dill") is None:
                raise
        return importlib.import_module("dill").dumps(self._datapipe), "dill"

    def __setstate__(self, state: tuple[bytes, str]) -> None:
        data, by = state
        self._datapipe = importlib.import_module(by).loads(data)

    def __len__(self) -> int:
        return len(self._datapipe)


class SentIterDataPipe(_Sent, IterDataPipe):
    def __iter__(self):
        return iter(self._datapipe)


class SentMapDataPipe(_Sent, MapDataPipe):
    def __getitem__(self, index):
        return self._datapipe[index]


class DataChunk(list):
    """A list of examples that travels as one."""

    def __init__(self, items) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """Its members, in brackets."""
        return indent + "[" + ", ".join(str(i) for i in iter(self)) + "]"

    def raw_iterator(self):
        """The members as they are."""
        yield from self.items


class functional_datapipe:  # noqa: N801 - the decorator's public name
    """A class decorator: the pipe becomes a method, under the given name, of all pipes of its kind."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name, self.enable_df_api_tracing = name, enable_df_api_tracing

    def __call__(self, cls: type) -> type:
        kinds = [k for k in (IterDataPipe, MapDataPipe) if isinstance(cls, type) and issubclass(cls, k)]
        home = kinds[0] if kinds else None
        if home is None:
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        home.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
        return cls


# ---- determinism
_determinism = False


class guaranteed_datapipes_determinism:  # noqa: N801
    """While it is on, making a pipe that is not deterministic raises."""

    def __init__(self) -> None:
        global _determinism
        self.prev, _determinism = _determinism, True

    def __enter__(self) -> None:
        """It is on since it was made."""

    def __exit__(self, *exc: object) -> None:
        global _determinism
        _determinism = self.prev


class non_deterministic:  # noqa: N801
    """A class decorator: the pipe is not deterministic, or not if a function of its arguments says so."""

    def __init__(self, arg: type | Callable[..., bool]) -> None:
        self.cls = arg if isinstance(arg, type) else None
        self.condition = None if isinstance(arg, type) else arg
        if self.cls is not None and not issubclass(self.cls, IterDataPipe):
            raise TypeError(
                f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {arg.__name__} is found"
            )

    def __call__(self, *args, **kwargs):
        if self.cls is not None:
            if _determinism:
                raise TypeError(
                    f"{self.cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'. You "
                    "can turn off determinism for this DataPipe if that is acceptable for your application"
                )
            return self.cls(*args, **kwargs)
        (self.cls,) = args
        result = self.cls

        @functools.wraps(result, updated=())
        def conditional(*inner, **options):
            if self.condition(*inner, **options) and _determinism:
                raise TypeError(
                    f"{result.__name__} is non-deterministic with the inputs, but you set "
                    "'guaranteed_datapipes_determinism'. You can turn off determinism for this DataPipe if that is "
                    "acceptable for your application"
                )
            return result(*inner, **options)

        return conditional


# ---- types
_validation = True


class runtime_validation_disabled:  # noqa: N801
    """While it is on, types are not checked."""

    def __init__(self) -> None:
        global _validation
        self.prev, _validation = _validation, False

    def __enter__(self) -> None:
        """It is on since it was made."""

    def __exit__(self, *exc: object) -> None:
        global _validation
        _validation = self.prev


def argument_validation(f: Callable) -> Callable:
    """A decorator: arguments annotated as pipes of a type must be pipes."""
    signature, hints = inspect.signature(f), typing.get_type_hints(f)

    @functools.wraps(f)
    def checked(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            origin = typing.get_origin(hints.get(name)) or hints.get(name)
            if isinstance(origin, type) and issubclass(origin, IterDataPipe) and not isinstance(value, IterDataPipe):
                raise TypeError(f"Expected argument '{name}' as a IterDataPipe, but found {type(value)}")
        return f(*args, **kwargs)

    return checked


def runtime_validation(f: Callable) -> Callable:
    """A decorator of `__iter__`: what it yields must be of the type that its annotation names."""
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")
    wanted = typing.get_args(typing.get_type_hints(f).get("return"))

    @functools.wraps(f)
    def checked(self):
        for value in f(self):
            plain = wanted and isinstance(wanted[0], type)
            if _validation and plain and not isinstance(value, wanted[0]):
                raise RuntimeError(f"Expected an instance as subtype of {wanted[0]}, but found {value}({type(value)})")
            yield value

    return checked
