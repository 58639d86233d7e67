"""`torch.distributed.rpc`: calls from one process into another. There are none here: `is_available()` is False.

PyTorch can be built without it too, so programs ask first. Using one of its names raises and says so.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, NoReturn, TypeVar

T = TypeVar("T")
UNSET_RPC_TIMEOUT = -1.0  # seconds: the default of the calls that could be made


def is_available() -> bool:
    """Whether remote procedure calls can be made: no."""
    return False


def is_current_rpc_agent_set() -> bool:
    """Whether `init_rpc` has been called: never."""
    return False


def _absent(name: str) -> NoReturn:
    raise RuntimeError(
        f"torch.distributed.rpc.{name}: remote procedure calls are not implemented (torch.distributed.rpc.is_available() is "
        "False); collectives and torch.distributed.send/recv are"
    )


def _require_initialized(function: Callable) -> Callable:
    """A function that may be called once `init_rpc` was: never here, so a call says that."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        _absent(function.__name__)

    return call


def init_rpc(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    _absent("init_rpc")


def shutdown(graceful: bool = True, timeout: float = 0) -> NoReturn:
    _absent("shutdown")


def get_worker_info(worker_name: str | None = None) -> NoReturn:
    _absent("get_worker_info")


def rpc_sync(to: Any, func: Any, *args: Any, **kwargs: Any) -> NoReturn:
    _absent("rpc_sync")


def rpc_async(to: Any, func: Any, *args: Any, **kwargs: Any) -> NoReturn:
    _absent("rpc_async")


def remote(to: Any, func: Any, *args: Any, **kwargs: Any) -> NoReturn:
    _absent("remote")


class RRef(Generic[T]):
    """A value in another process; there are none."""

    def __init__(self, *args: Any, **kwargs: Any):
        _absent("RRef")


class RpcBackendOptions:
    """How calls would be sent."""

    def __init__(self, *args: Any, **kwargs: Any):
        _absent(type(self).__name__)


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """The same, by the one backend that PyTorch has."""


class BackendType(Enum):
    """The ways of sending: none."""
