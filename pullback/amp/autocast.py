"""`autocast`: arguments are cast by the class of the operator that takes them.

While it is on, `dispatch` asks `cast_arguments` first. An operator's declaration says what it takes on CPUs and on CUDA
devices: floating arguments in the chosen precision (`"lower"`: matrix products, convolutions, attention), in float32
(losses, reductions that need range), or in the widest of their precisions. Casts are recorded like any other call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..core import dtype as dtypes
from ..core import modes
from ..core.device import device as parsed_device
from ..core.dtype import dtype as dtype_type
from ..core.layers import above
from ..core.modes import AutocastState, ambient
from ..core.tensor import Tensor
from ..ops.system.operator import Operator

OURS = ("aten", "pullback")  # namespaces whose operators declare what autocast does
SPACES = ("fft", "linalg")  # namespaces whose operators take float32 on CPUs, unless they say otherwise


def state_of(device: str) -> AutocastState:
    """Autocast of a type of device, as it is now."""
    return ambient.autocast.get(device) or AutocastState(False, dtypes.float16)


def switched(device: str, enabled: bool, dtype: dtype_type) -> AutocastState:
    """Switch autocast of a type of device; gives the state before."""
    before = state_of(device)
    ambient.set_autocast({**ambient.autocast, device: AutocastState(enabled, dtype)})
    return before


def cast_arguments(op: Operator, args: tuple) -> tuple | None:
    """The arguments as autocast wants them; None where it has no say in the operator."""
    kind = next((t.device.type for t in op.tensors(args) if t.device.type != "cpu"), "cpu")
    state = state_of(kind)
    if not state.enabled:
        return None
    target = None
    policy = policy_of(op, kind)
    if op.namespace not in OURS:
        target = op.autocasts.get(kind)
    elif policy == "lower":
        target = state.dtype
    elif policy == "float32":
        target = dtypes.float32
    elif policy == "widest":
        floating = [t.dtype for t in op.tensors(args) if t.dtype.is_floating_point]
        target = max(floating, key=lambda d: (d.itemsize, d is dtypes.float16), default=None)
    if target is None:
        return None
    with modes.masked(modes.AUTOCAST):
        return tuple(_cast(a, target) for a in args)


def policy_of(op: Operator, kind: str) -> str | None:
    """What an operator's arguments are cast to on a type of device: "lower", "float32", "widest", or None."""
    declared = op.declared
    if op.autocasts and op.namespace in OURS:  # a library registered that autocast passes it by
        return None if kind in op.autocasts else declared.autocast_cuda if kind == "cuda" else declared.autocast_cpu
    if kind == "cuda":
        return declared.autocast_cuda
    return declared.autocast_cpu or ("float32" if op.space in SPACES else None)


def _cast(value, target: dtype_type):
    if isinstance(value, Tensor):
        castable = value.dtype.is_floating_point and value.dtype is not dtypes.float64 and value.dtype is not target
        return value.to(target) if castable else value
    if isinstance(value, tuple) and any(isinstance(v, Tensor) for v in value):
        return tuple(_cast(v, target) for v in value)
    return value


above.autocast = cast_arguments


class casting:
    """A block in which autocast is what some states say (`dict(ambient.autocast)`)."""

    def __init__(self, states: dict):
        self.states = states

    def __enter__(self) -> None:
        self.before = ambient.autocast, ambient.mode & modes.AUTOCAST
        ambient.set_autocast(self.states)

    def __exit__(self, *exc) -> None:
        ambient.set_autocast(self.before[0])
        ambient.switch(modes.AUTOCAST, self.before[1])


class autocast:
    """`with autocast("cpu", dtype=torch.bfloat16): ...`; also a decorator.

    >>> with torch.autocast("cpu", dtype=torch.bfloat16):
    ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    torch.bfloat16
    """

    def __init__(
        self,
        device_type: str = "cpu",
        dtype: dtype_type | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = dtype or state_of(device_type).dtype
        self.enabled = enabled
        if device_type == "cpu" and self.fast_dtype not in (dtypes.bfloat16, dtypes.float16, dtypes.float32):
            import warnings

            warnings.warn(
                f"In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only supports dtype of bfloat16, float16 currently, got {self.fast_dtype}.",
                stacklevel=2,
            )
            self.enabled = False
        self.before: list = []

    def __enter__(self) -> autocast:
        self.before.append(switched(self.device, self.enabled, self.fast_dtype))
        return self

    def __exit__(self, *exc) -> None:
        before = self.before.pop()
        switched(self.device, before.enabled, before.dtype)

    def __call__(self, func):
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n        output = model(input)"
            )

        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            with type(self)(self.device, self.fast_dtype, self.enabled):
                return func(*args, **kwargs)

        return wrapped


def enter_autocast(*given) -> autocast:
    """Turn autocast on, with the arguments of `autocast`; what it gives is for `exit_autocast`."""
    result = autocast(*given)
    result.__enter__()
    return result


def exit_autocast(mode: autocast) -> None:
    """Turn off what `enter_autocast` turned on."""
    mode.__exit__(None, None, None)


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for a kind of device."""
    return parsed_device(device_type).type in ("cpu", "cuda")


def custom_fwd(fwd=None, *, device_type: str = "cpu", cast_inputs: dtype_type | None = None):
    """A decorator for `Function.forward`: runs it with autocast as it is (or off, on inputs cast to `cast_inputs`)."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def wrapped(ctx, *args, **kwargs):
        state = state_of(device_type)
        ctx._dtype, ctx._fwd_used_autocast = state.dtype, state.enabled and cast_inputs is None
        if cast_inputs is None or not state.enabled:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                ctx, *[_cast(a, cast_inputs) for a in args], **{k: _cast(v, cast_inputs) for k, v in kwargs.items()}
            )

    return wrapped


def custom_bwd(bwd=None, *, device_type: str = "cpu"):
    """A decorator for `Function.backward`: runs it under the autocast state of its forward."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def wrapped(ctx, *args, **kwargs):
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return wrapped


# ---- the functions behind the context manager, by PyTorch's names
public: dict = {}


def _public(function):
    public[function.__name__] = function
    return function


@_public
def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is active, on a kind of device.

    >>> torch.is_autocast_enabled("cpu")
    False
    """
    return state_of(device_type).enabled


@_public
def set_autocast_enabled(device_type, enabled: bool | None = None) -> None:
    """Turns autocast on or off on a kind of device; the context manager `autocast` is the one to use.

    >>> torch.set_autocast_enabled("cpu", False)
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type
    switched(device_type, bool(enabled), state_of(device_type).dtype)


@_public
def get_autocast_dtype(device_type: str) -> dtype_type:
    """The dtype to which autocast casts on a kind of device.

    >>> torch.get_autocast_dtype("cpu")
    torch.bfloat16
    """
    return state_of(device_type).dtype


@_public
def set_autocast_dtype(device_type: str, dtype: dtype_type) -> None:
    """Says to which dtype autocast casts on a kind of device.

    >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    switched(device_type, state_of(device_type).enabled, dtype)


def _old_name(function: Callable, name: str, device: str) -> None:
    """A function of before all kinds of device had one: the argument is in its name."""
    public[name] = old = functools.partial(function, device)
    example = (
        f">>> before = torch.g{name[1:]}()\n>>> torch.{name}(before)" if "set" in name else f">>> was = torch.{name}()"
    )
    if name.endswith("enabled"):
        example = example.replace("torch.get", "torch.is")
    old.__doc__ = f"Old name of `{function.__name__}({device!r}, ...)`.\n\n{example}"


for _device, _name in (("cpu", "cpu"), ("cuda", "gpu"), ("ipu", "ipu"), ("xla", "xla")):
    _old_name(get_autocast_dtype, f"get_autocast_{_name}_dtype", _device)
    _old_name(set_autocast_dtype, f"set_autocast_{_name}_dtype", _device)
    if _device != "cuda":
        _old_name(is_autocast_enabled, f"is_autocast_{_name}_enabled", _device)
        _old_name(set_autocast_enabled, f"set_autocast_{_name}_enabled", _device)

_nesting = [0]
_cache = [True]


@_public
def autocast_increment_nesting() -> int:
    """One block of autocast more; gives how many there are.

    >>> torch.autocast_increment_nesting()
    1
    >>> depth = torch.autocast_decrement_nesting()
    """
    _nesting[0] += 1
    return _nesting[0]


@_public
def autocast_decrement_nesting() -> int:
    """One block of autocast fewer; gives how many are left.

    >>> depth = torch.autocast_increment_nesting()
    >>> torch.autocast_decrement_nesting()
    0
    """
    _nesting[0] -= 1
    return _nesting[0]


@_public
def clear_autocast_cache() -> None:
    """Casts are not cached here, so there is nothing to clear.

    >>> torch.clear_autocast_cache()
    """


@_public
def is_autocast_cache_enabled() -> bool:
    """Whether weights that autocast has cast are kept for the rest of the block.

    >>> torch.is_autocast_cache_enabled()
    True
    """
    return _cache[0]


@_public
def set_autocast_cache_enabled(enabled: bool) -> None:
    """Says whether weights that autocast has cast are kept for the rest of the block.

    >>> torch.set_autocast_cache_enabled(True)
    """
    _cache[0] = bool(enabled)
