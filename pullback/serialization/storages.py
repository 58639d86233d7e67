"""Storages in files: where they lived, and where they are to live when loaded.

A storage is tagged with a location ("cpu", "cuda:0", "meta") when it is saved. Loading makes it in CPU memory first and
then lets `map_location` (a function, a device, a dict from tag to tag, or None) say where it goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import device as devices
from ..core.storage import Storage, UntypedStorage
from ..ops.make.construct import TYPED
from ..ops.make.storages import TypedStorage


def read_entry(entry: Any) -> tuple[Any, str, str, int]:
    """Type, key, location and number of elements from what stands for a storage in a pickle, once they are sound."""
    if not isinstance(entry, tuple) or len(entry) < 5 or entry[0] != "storage":
        raise RuntimeError(f"Unknown typename for persistent_load, expected 'storage' but got {entry!r}")
    kind, key, location, count = entry[1:5]
    location = location.decode("ascii", "replace") if isinstance(location, bytes) else location  # Python 2 wrote bytes
    key = key.decode("ascii", "replace") if isinstance(key, bytes) else key
    if not isinstance(key, (str, int)) or not isinstance(location, str) or type(count) is not int or count < 0:
        raise RuntimeError(f"a storage in the file is described by {entry[2:5]!r}; corrupt file?")
    return kind, str(key), location, count


# ---- locations
_packages: list[tuple[int, Callable, Callable]] = []


def register_package(priority: int, tagger: Callable, deserializer: Callable) -> None:
    """Let `tagger(storage)` name locations and `deserializer(storage, location)` restore them; lower priority first."""
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda row: row[0])


def location_tag(storage: Any) -> str:
    """Where a storage lives, as files say it."""
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag:
            return tag
    raise RuntimeError(f"don't know how to determine data location of {_type_name(storage)}")


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage, moved to where its tag says."""
    for _, _, deserializer in _packages:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(f"don't know how to restore data location of {_type_name(storage)} (tagged with {location})")


def _type_name(storage: Any) -> str:
    return f"torch.storage.{type(storage).__name__}"


def validate_cuda_device(location: Any) -> int:
    """The index of a CUDA device that exists, or PyTorch's errors."""
    from .. import cuda

    device = devices.device(location)
    if not cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running "
            "on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to "
            "the CPU."
        )
    index = device.index or 0
    if index >= cuda.device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is "
            f"{cuda.device_count()}. Please use torch.load with map_location to map your storages to an existing device."
        )
    return index


def validate_hpu_device(location: Any) -> int:
    raise RuntimeError(f"Attempting to deserialize object on {location!r}, a device that this build does not have")


def _restore_cpu(storage, location: str):
    return storage if location == "cpu" else None


def _restore_meta(storage, location: str):
    if location != "meta":
        return None
    return UntypedStorage.of(Storage(None, storage.nbytes(), devices.meta))


def _restore_cuda(storage, location: str):
    if location.partition(":")[0] != "cuda":
        return None
    return storage.cuda(validate_cuda_device(location))


register_package(10, lambda s: "cpu" if s.device.type == "cpu" else None, _restore_cpu)
register_package(20, lambda s: str(s.device) if s.device.type == "cuda" else None, _restore_cuda)
register_package(22, lambda s: "meta" if s.device.type == "meta" else None, _restore_meta)


def restorer(map_location: Any) -> Callable[[Any, str], Any]:
    """`restore(storage, location)` as `map_location` wants it."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes, devices.device)):
        target = map_location.decode() if isinstance(map_location, bytes) else str(map_location)
        return lambda storage, location: default_restore_location(storage, target)

    def restore(storage, location: str):
        result = map_location(storage, location)
        return default_restore_location(storage, location) if result is None else result

    return restore


def goes_to_meta(map_location: Any) -> bool:
    """Whether everything goes to device `meta`, so that no data need be read."""
    return isinstance(map_location, (str, devices.device)) and str(map_location) == "meta"


def untyped(storage: Any) -> UntypedStorage:
    """The untyped face of a storage of either kind."""
    return storage.untyped() if isinstance(storage, TypedStorage) else storage


def normalize_storage_type(storage_type: Any) -> Any:
    """The public type of a storage's type."""
    return storage_type


def storage_to_tensor_type(storage: Any) -> type:
    """The typed tensor class for a typed storage."""
    return TYPED[f"{storage.dtype.scalar_name}Tensor"]
