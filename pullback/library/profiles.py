"""Fake rules from records: what an operator without a fake rule gave once is what it gives for tensors of the same kind.

In: per operator ("mylib.f.default"), profiles: rank, dtype, device and layout of arguments and results. Out: inside
`unsafe_generate_fake_kernels`, fake rules that look a call up among them; sizes of the results are not known. Profiles are
kept as YAML, and read back by the version that wrote them only.
"""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..core import device as devices
from ..core import dtype as dtypes
from ..core.device import device, layout
from ..core.dtype import dtype
from ..core.release import TORCH
from ..core.tensor import Tensor
from .custom import find_definition
from .fake import get_ctx
from .functions import register_fake
from .registration import Library

_log = logging.getLogger(__name__)


class MissingOpProfile(RuntimeError):
    """No profile fits the arguments of a call."""


@dataclass(frozen=True)
class TensorMetadata:
    """What a profile says of a tensor."""

    rank: int
    dtype: dtype
    device: device
    layout: layout

    @staticmethod
    def maybe_from_tensor(t: Any) -> TensorMetadata | None:
        return TensorMetadata(t.dim(), t.dtype, t.device, t.layout) if isinstance(t, Tensor) else None


@dataclass(frozen=True)
class OpProfile:
    """One kind of call: what went in, None for what was no tensor, and what came out."""

    args_profile: tuple[TensorMetadata | None, ...]
    out_profile: TensorMetadata | tuple[TensorMetadata, ...]


Profiles = dict[str, set[OpProfile]]


def _fake_rule(name: str, profiles: set[OpProfile]) -> Callable:
    def rule(*args, **kwargs):
        kinds = tuple(TensorMetadata.maybe_from_tensor(a) for a in (*args, *kwargs.values()))
        for profile in profiles:
            if kinds == profile.args_profile[: len(kinds)]:
                out = profile.out_profile
                return _unsized(out) if isinstance(out, TensorMetadata) else [_unsized(t) for t in out]
        raise MissingOpProfile(f"no profile of {name} fits the arguments {args}, {kwargs}; there are {len(profiles)}")

    return rule


def _unsized(t: TensorMetadata) -> Tensor:
    """A tensor whose sizes nobody knows."""
    from ..ops.make.factories import empty

    context = get_ctx()
    assert context is not None
    return empty([context.new_dynamic_size() for _ in range(t.rank)], dtype=t.dtype, device=t.device, layout=t.layout)


@contextmanager
def unsafe_generate_fake_kernels(op_profiles: Profiles) -> Iterator[list[Library]]:
    """Inside the block, operators have the fake rules that their profiles say, whatever is registered."""
    libraries: list[Library] = []
    before: list[tuple[Any, Callable | None]] = []
    for full, profiles in op_profiles.items():
        namespace, short = full.split(".")[:2]
        name = f"{namespace}::{short}"
        _log.warning("Registering fake profile for %s. This will override any existing fake kernel registration.", full)
        definition = find_definition(name)
        if definition is not None:
            before.append((definition, definition._abstract_fn))
            definition.register_fake(_fake_rule(name, profiles))
        else:
            libraries.append(Library(namespace, "FRAGMENT"))
            register_fake(name, _fake_rule(name, profiles), lib=libraries[-1])
    try:
        yield libraries
    finally:
        for library in libraries:
            library._destroy()
        for definition, rule in before:
            definition._abstract_fn = rule


# ---- as text
def _version() -> str:
    return ".".join(TORCH.split(".")[:2])


def _row(t: TensorMetadata) -> dict:
    return {"rank": t.rank, "dtype": t.dtype.name, "device": str(t.device), "layout": str(t.layout).rpartition(".")[2]}


def _metadata(row: dict) -> TensorMetadata:
    return TensorMetadata(
        row["rank"], getattr(dtypes, row["dtype"]), device(row["device"]), getattr(devices, row["layout"])
    )


def _profile_row(profile: OpProfile) -> dict:
    out = profile.out_profile
    return {
        "args_profile": [None if t is None else _row(t) for t in profile.args_profile],
        "out_profile": _row(out) if isinstance(out, TensorMetadata) else [_row(t) for t in out],
    }


def _profile(row: dict) -> OpProfile:
    out = row["out_profile"]
    return OpProfile(
        tuple(None if t is None else _metadata(t) for t in row["args_profile"]),
        tuple(map(_metadata, out)) if isinstance(out, list) else _metadata(out),
    )


def generate_yaml_from_profiles(op_profiles: Profiles) -> str:
    """Profiles as YAML."""
    import yaml  # type: ignore[import-untyped]

    operators = {name: [_profile_row(p) for p in profiles] for name, profiles in op_profiles.items()}
    return yaml.dump({"torch_version": _version(), "operators": operators}, sort_keys=False)


def read_profiles_from_yaml(yaml_str: str) -> Profiles:
    """Profiles from YAML."""
    import yaml

    data = yaml.safe_load(yaml_str)
    if data["torch_version"] != _version():
        raise RuntimeError(
            f"Unable to load outdated profile. It was saved with torch version: {data['torch_version']} but the current torch version is: {_version()}"
        )
    return {name: {_profile(row) for row in rows} for name, rows in data["operators"].items()}


def save_op_profiles(op_profiles: Profiles, f: str | os.PathLike | io.BytesIO) -> None:
    """Write profiles to a file."""
    text = generate_yaml_from_profiles(op_profiles)
    if isinstance(f, (str, os.PathLike)):
        with open(os.fspath(f), "w") as file:
            file.write(text)
    elif isinstance(f, io.BytesIO):
        f.write(text.encode("utf-8"))
    else:
        raise ValueError(f"Invalid type of file {f}")


def load_op_profiles(f: str | os.PathLike | io.BytesIO) -> Profiles:
    """Read profiles from a file."""
    if isinstance(f, (str, os.PathLike)):
        with open(os.fspath(f)) as file:
            return read_profiles_from_yaml(file.read())
    if not isinstance(f, io.BytesIO):
        raise ValueError(f"Invalid type of file {f}")
    return read_profiles_from_yaml(f.read().decode("utf-8"))
