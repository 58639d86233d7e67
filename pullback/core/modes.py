"""Ambient state: the one home of everything that changes what a call means without being an argument.

`ambient` is per thread. `ambient.mode` is one int that every call reads first: bit `GRAD` alone (0 or 1) is the plain
case, in which generated wrappers run straight to the kernel; any higher bit means that something listens (a mode, a
transform, a trace, autocast, ...) and the call takes the general path. The stacks behind the bits live here too.
Nothing but this module writes `mode`: others call `ambient.switch`, `change` and `restore`, or enter `masked` and
`other_stack`, which restore it on error.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import device as devices
from . import dtype as dtypes
from .records import Record

GRAD = 1
LISTENING = 2  # a mode of at least this: something other than recording looks at calls
FUNCTION = 2  # a TorchFunctionMode is active
DISPATCH = 4  # a TorchDispatchMode is active
TRANSFORM = 8  # a function transform (vmap, grad, jvp, functionalize) is active
FORWARD = 16  # a forward-mode level is open
AUTOCAST = 32
INFERENCE = 64
ANOMALY = 128
PROFILE = 256
SAVED_HOOKS = 512  # default saved-tensor hooks are set
BELOW_AUTOGRAD = 1024  # inside a kernel's own calls: nothing is recorded
DEFAULT_DEVICE = 2048  # a default device other than the CPU: factories look
CAPTURE = 4096  # calls are being captured into a graph, above autograd
UNNAMED = 8192  # names of dimensions are left alone
ASKED = 16384  # recording is asked for in inference mode, which records nothing all the same


_RECORDING = GRAD | ASKED | INFERENCE


class _Process:
    """What is shared by all threads."""

    default_dtype = dtypes.float32
    deterministic = False
    deterministic_warn_only = False
    fill_uninitialized_memory = True  # while deterministic algorithms are asked for
    threads: int | None = None
    warn_always = False
    matmul_precision = "highest"
    cuda_captures = 0  # CUDA graphs that are being captured
    cudnn: Any = SimpleNamespace(enabled=True, allow_tf32=True, benchmark=False, deterministic=False)  # its switches
    attention_backends: frozenset | None = None  # which implementations of attention may run; None: any


process = _Process()


class AutocastState(Record):
    """Autocast of one type of device in one thread. States are replaced, never changed: who keeps one keeps its value."""

    enabled: bool
    dtype: dtypes.dtype


class Ambient(threading.local):
    """Per-thread state. Reading `mode` is the only cost that a plain call pays."""

    def __init__(self) -> None:
        self.mode = GRAD
        self.function_modes: list = []
        self.dispatch_modes: list = []
        self.transforms: list = []
        self.captures: list = []
        self.dispatch_disabled = False  # whether dispatch modes and dispatching subclasses are passed by
        self.function_disabled = 0  # 1: subclasses' overrides are off, 2: modes' too
        self.forward_levels: tuple = ()
        self.recorded_levels: frozenset = (
            frozenset()
        )  # those of them of which the tangents are recorded under no_grad too
        self.forward_off = False  # whether forward mode was switched off, whatever levels of it are open
        self.reverse_levels: tuple = ()  # open reverse-mode transforms, innermost last
        self.function_levels = 0  # how many function transforms of any kind are open
        self.autocast = {"cpu": AutocastState(False, dtypes.bfloat16), "cuda": AutocastState(False, dtypes.float16)}
        self.saved_hooks: list = []
        self.saved_hooks_disabled: str | None = None
        self.anomaly_check_nan = True
        self.recorders: list = []
        self.multithreading = True
        self.view_replay = False
        self.backward_compiler: Any = None  # what compiles backwards, where compiled autograd is on
        self.tasks: list = []  # backwards that run on this thread, innermost last
        self._default_device = devices.cpu
        self.devices_before: list = []  # the default device before each block `with device(...)` that is open
        # Infinities and NaNs are results here, not accidents to warn of; NumPy keeps this setting per thread.
        np.seterr(all="ignore")

    @property
    def default_dtype(self) -> dtypes.dtype:
        return process.default_dtype

    @default_dtype.setter
    def default_dtype(self, value: dtypes.dtype) -> None:
        process.default_dtype = value

    @property
    def default_device(self) -> devices.device:
        return self._default_device

    @default_device.setter
    def default_device(self, value) -> None:
        self._default_device = value = devices.device(value) if value is not None else devices.cpu
        self.switch(DEFAULT_DEVICE, value is not devices.cpu)

    def switch(self, bit: int, on) -> None:
        """Turn one bit of `mode` on or off."""
        self.mode = self.mode | bit if on else self.mode & ~bit

    def set_autocast(self, states: dict[str, AutocastState]) -> None:
        """Make autocast what it was when `dict(ambient.autocast)` gave these states."""
        self.autocast = dict(states)
        self.switch(AUTOCAST, any(state.enabled for state in states.values()))

    def change(self, clear: int, set: int = 0) -> int:
        """Clear some bits of `mode`, then set others; gives the mode before, for `restore`."""
        before = self.mode
        self.mode = before & ~clear | set
        return before

    def enter_backward(self, task: Any, recording: bool) -> tuple[int, int]:
        """Make a backward the innermost of its thread, recording or not, with what users override passed by; gives the mode
        and `function_disabled` before, for `leave_backward`."""
        own = self.__dict__  # of this thread: looked up once
        before = own["mode"], own["function_disabled"]
        own["mode"] = before[0] & ~(GRAD | FUNCTION) | (GRAD if recording else 0)
        own["function_disabled"] = 2
        own["tasks"].append(task)
        return before

    def leave_backward(self, mode: int, function_disabled: int) -> None:
        own = self.__dict__
        own["tasks"].pop()
        own["mode"], own["function_disabled"] = mode, function_disabled

    def restore(self, before: int) -> None:
        """Put a mode back that `change` or a read of `mode` gave."""
        self.mode = before


ambient = Ambient()


def outside_graphs(why: str):
    """Wrap a function that a program being captured may not call."""
    import functools

    def decorate(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            if ambient.mode & CAPTURE:
                ambient.captures[-1].refuse(why)
            return function(*args, **kwargs)

        return call

    return decorate


def whole_in_graphs(function):
    """Wrap a function that changes what Python knows of a tensor: a program being captured keeps the call as one node."""
    import functools

    @functools.wraps(function)
    def call(*args, **kwargs):
        if ambient.mode & CAPTURE:
            return ambient.captures[-1].call(call, args, kwargs)
        return function(*args, **kwargs)

    call.keeps_functions = True  # type: ignore[attr-defined]
    return call


def outside_transforms(call: str, instead: str) -> None:
    """Refuse a call inside of a function that is being transformed."""
    if ambient.function_levels:
        raise RuntimeError(
            f"You are attempting to call {call} inside of a function being transformed by a functorch transform. "
            f"This is unsupported, please {instead}"
        )


class masked:
    """Run a block with some bits of the mode cleared and others set; the old mode comes back on any exit."""

    __slots__ = ("clear", "set", "before")

    def __init__(self, clear: int, set: int = 0):
        self.clear, self.set = clear, set

    def __enter__(self) -> None:
        self.before = ambient.change(self.clear, self.set)

    def __exit__(self, *exc) -> None:
        ambient.mode = self.before


class other_stack:
    """Listeners of one kind are others for a block: subclasses say of which kind, and `replace` them when they are
    entered. The old ones come back with the old mode on any exit."""

    name: str  # of the stack
    bit: int  # of the mode, on where the stack is not empty

    def replace(self, stack: list | tuple) -> None:
        self.before = getattr(ambient, self.name), ambient.mode
        setattr(ambient, self.name, stack)
        ambient.switch(self.bit, stack)

    def __exit__(self, *exc) -> None:
        stack, mode = self.before
        setattr(ambient, self.name, stack)
        ambient.mode = mode


def _set_grad_enabled(value: bool) -> None:
    """Set recording at once: what captured graphs call where a program entered or left `no_grad`."""
    ambient.switch(ASKED if ambient.mode & INFERENCE else GRAD, value)


SETTINGS = ("deterministic", "deterministic_warn_only", "matmul_precision", "attention_backends")


def settings() -> dict[str, Any]:
    """The settings that a program may change in the middle of a graph."""
    return {**{name: getattr(process, name) for name in SETTINGS}, "saved_hooks_disabled": ambient.saved_hooks_disabled}


def _set_settings(values: dict[str, Any]) -> None:
    """Change settings at once: what captured graphs call where a program does. Sets may be given as tuples of numbers."""
    for name, value in values.items():
        value = frozenset(value) if isinstance(value, tuple) else value
        setattr(ambient if name == "saved_hooks_disabled" else process, name, value)


def is_grad_enabled() -> bool:
    """Whether operations are recorded for backward.

    >>> torch.is_grad_enabled()
    True
    """
    return bool(ambient.mode & (ASKED if ambient.mode & INFERENCE else GRAD))


class _GradMode:
    """Shared by `no_grad`, `enable_grad` and `set_grad_enabled`: a context manager and a decorator."""

    value = True
    entered: list  # what was before each block that was entered

    def __new__(cls, function=None):
        self = object.__new__(cls)
        self.entered = []
        return self(function) if function is not None else self

    def __enter__(self) -> None:
        self.entered.append(is_grad_enabled())
        _set_grad_enabled(self.value)

    def __exit__(self, *exc) -> None:
        _set_grad_enabled(self.entered.pop())

    def clone(self):
        return type(self)()

    def __call__(self, function):
        return decorate(self.clone, function)


class no_grad(_GradMode):
    """Disable recording in a block or a function.

    >>> w = torch.ones(1, requires_grad=True)
    >>> with torch.no_grad():
    ...     (w * 2).requires_grad
    False
    """

    value = False


class enable_grad(_GradMode):
    """Enable recording in a block or a function.

    >>> w = torch.ones(1, requires_grad=True)
    >>> with torch.no_grad(), torch.enable_grad():
    ...     (w * 2).requires_grad
    True
    """


class set_grad_enabled(_GradMode):
    """Set recording at once; as a context manager, until the block ends.

    >>> with torch.set_grad_enabled(False):
    ...     torch.is_grad_enabled()
    False
    """

    def __new__(cls, mode: bool):
        if not isinstance(mode, (bool, np.bool_)):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self = object.__new__(cls)
        self.value = bool(mode)
        self.entered = [is_grad_enabled()]
        _set_grad_enabled(self.value)
        return self

    def __enter__(self) -> None:
        _set_grad_enabled(self.value)

    def __exit__(self, *exc) -> None:
        _set_grad_enabled(self.entered[-1])

    def clone(self):
        return set_grad_enabled.later(self.value)

    @classmethod
    def later(cls, value: bool):
        self = object.__new__(cls)
        self.value = value
        self.entered = []
        self.__class__ = _SetLater
        return self

    def __call__(self, function):
        _set_grad_enabled(self.entered[-1])  # as a decorator it changes nothing until the call
        return decorate(self.clone, function)

    def __repr__(self) -> str:
        return f"set_grad_enabled(mode={self.value})"


class _SetLater(set_grad_enabled):
    __enter__ = _GradMode.__enter__
    __exit__ = _GradMode.__exit__


class inference_mode(_GradMode):
    """No recording, no version counting; tensors made inside can never be recorded.

    >>> w = torch.ones(1, requires_grad=True)
    >>> with torch.inference_mode():
    ...     (w * 2).is_inference()
    True
    """

    def __new__(cls, mode=True):
        self = object.__new__(cls)
        self.entered = []
        self.value = True if callable(mode) else bool(mode)
        return self(mode) if callable(mode) else self

    def __enter__(self) -> None:
        self.entered.append(ambient.mode)
        ambient.change(_RECORDING, INFERENCE if self.value else GRAD)

    def __exit__(self, *exc) -> None:
        before = self.entered.pop()
        ambient.change(_RECORDING, before & _RECORDING)

    def clone(self):
        return type(self)(self.value)


def is_inference_mode_enabled() -> bool:
    """Whether a block of `inference_mode` is active.

    >>> torch.is_inference_mode_enabled()
    False
    """
    return bool(ambient.mode & INFERENCE)


class DecoratorContextManager:
    """A context manager that decorates functions too: each call enters a fresh one (`clone`)."""

    def __call__(self, function):
        return decorate(self.clone, function)

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, *exc):
        raise NotImplementedError

    def clone(self):
        return type(self)()


def decorate(make_context, function):
    """Wrap a function, a generator function or a class so that it runs inside a fresh context each time."""
    import functools
    import inspect

    if inspect.isclass(function):
        import warnings

        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods. To preserve the "
            "current behavior of class decoration, you can directly decorate the `__init__` method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )
        function.__init__ = decorate(make_context, function.__init__)
        return function
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*args, **kwargs):
            run = function(*args, **kwargs)
            action, payload = run.send, None
            try:
                while True:
                    with make_context():
                        response = action(payload)
                    try:
                        payload = yield response
                        action = run.send
                    except GeneratorExit:
                        with make_context():
                            run.close()
                        raise
                    except BaseException as e:  # noqa: BLE001 - handed on to the generator, whatever it is
                        action, payload = run.throw, e
            except StopIteration as e:
                return e.value

        return generator

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with make_context():
            return function(*args, **kwargs)

    return wrapped
