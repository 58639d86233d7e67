"""The safe reader of pickles: it makes tensors, plain containers, and what a program has declared safe, and nothing else.

In goes the text of a pickle, which may be hostile; out comes its value, or `UnpicklingError`. No name is imported: a
name is either in the table of `allowed`, or refused. No function is called, no class made and no state set that is not
in that table.
"""

from __future__ import annotations

import io
import pickletools
import struct
import types
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

from ..core.device import device
from ..core.size import Size
from ..core.tensor import Tensor
from . import tensors
from .allowed import by_default, by_user, encode

_BLOCKED = ("sys", "os", "posix", "nt")
_CALLABLE = (
    OrderedDict, Counter, set, bytearray, complex, encode, Size, device, tensors.layout_named,
    tensors.rebuild_from_type, tensors.rebuild_jagged_tensor, *tensors.REBUILDERS.values(),
)  # fmt: skip
_METHODS = (types.MethodType, types.BuiltinMethodType)
_MAKEABLE = (OrderedDict, Counter, tensors.Ignored)


class Refused(UnpicklingError):
    """A pickle asked for something that is not allowed. `remedy`: the program may allow it."""

    remedy = False
    blocked = False


def python3_name(module: str, name: str) -> tuple[str, str]:
    """The name that an old pickle's `__builtin__ set` has today."""
    if (module, name) in NAME_MAPPING:
        return NAME_MAPPING[module, name]
    return IMPORT_MAPPING.get(module, module), name


class _Outside(Exception):
    """Carries an error of the program's own code through the machine, so that it is not taken for a bad pickle."""


def _same_method(value: Any, trusted: Any) -> bool:
    """A method of one object is another object at each look."""
    return type(value) is type(trusted) and isinstance(value, _METHODS) and value == trusted


def _named(function: Any) -> str:
    """A function in words: a method of a class with that class."""
    owner = getattr(function, "__self__", None)
    return (
        f"{function.__name__} of {owner.__module__}.{owner.__qualname__}" if isinstance(owner, type) else f"{function}"
    )


class SafeUnpickler:
    """A machine for pickle's instructions, without those that could run code."""

    def __init__(self, data: io.BufferedIOBase, persistent: Callable[[Any], Any], encoding: str = "bytes"):
        self.data, self.persistent, self.encoding = data, persistent, encoding
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.protocol = 0
        self.user = by_user()

    # ---- reading
    def take(self, n: int) -> bytes:
        got = self.data.read(n)
        if len(got) != n:
            raise EOFError("the pickle ends too early")
        return got

    def number(self, form: str) -> int:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> str:
        got = self.data.readline()
        if not got.endswith(b"\n"):
            raise EOFError("the pickle ends too early")
        return got[:-1].decode("utf-8")

    def load(self) -> Any:
        """The value of the pickle that begins here."""
        while True:
            code = self.data.read(1)
            if not code:
                raise EOFError("the pickle ends too early")
            if code == b".":
                return self.stack.pop()
            act = _INSTRUCTIONS.get(code)
            if act is None:
                raise Refused(f"Unsupported operand {code[0]}")
            act(self)

    # ---- the stack
    def push(self, value: Any) -> None:
        self.stack.append(value)

    def since_mark(self) -> list[Any]:
        items = self.stack
        self.stack = self.marks.pop()
        return items

    def mark(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def remember(self, key: int) -> None:
        if key < 0:
            raise Refused(f"negative memo key {key}")
        self.memo[key] = self.stack[-1]

    # ---- names
    def find(self, module: str, name: str) -> Any:
        """The object for a name in the table; all others are refused."""
        if self.protocol < 3:
            module, name = python3_name(module, name)
        full = f"{module}.{name}"
        if module.partition(".")[0] in _BLOCKED:
            error = Refused(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
            error.blocked = True
            raise error
        for table in (by_default(), self.user):
            if full in table:
                return table[full]
        moved = full.replace("numpy.core.", "numpy._core.", 1)  # NumPy 2 moved what old files name
        if moved in self.user:
            return self.user[moved]
        short = name if module == "builtins" else full
        error = Refused(
            f"Unsupported global: GLOBAL {short} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{short}])` or the `torch.serialization.safe_globals([{short}])` "
            "context manager to allowlist this global if you trust this class/function."
        )
        error.remedy = True
        raise error

    def is_users(self, value: Any) -> bool:
        return any(value is trusted or _same_method(value, trusted) for trusted in self.user.values())

    def stack_global(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if type(name) is not str or type(module) is not str:
            raise Refused("STACK_GLOBAL requires str")
        self.push(self.find(module, name))

    # ---- what makes objects
    def reduce(self) -> None:
        args, function = self.stack.pop(), self.stack[-1]
        if not any(function is known for known in _CALLABLE) and not self.is_users(function):
            raise Refused(f"Trying to call reduce for unrecognized function {_named(function)}")
        if type(args) is not tuple:
            raise Refused(f"REDUCE wants a tuple of arguments, but got {type(args).__name__}")
        if function is tensors.rebuild_from_type and (not args or not self._rebuilds(args[0])):
            raise Refused(f"Trying to call reduce for unrecognized function {args[:1]}")
        self.stack[-1] = self.outside(function, *args) if self.is_users(function) else function(*args)

    def outside(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        """Call what the program gave."""
        try:
            return function(*args, **keywords)
        except _MALFORMED as error:
            raise _Outside from error

    def _rebuilds(self, function: Any) -> bool:
        known = (tensors.rebuild_jagged_tensor, *tensors.REBUILDERS.values())
        return any(function is rebuild for rebuild in known) or self.is_users(function)

    def new_object(self) -> None:
        self._make(self.stack.pop(), {})

    def new_object_with_keywords(self) -> None:
        keywords = self.stack.pop()
        self._make(self.stack.pop(), keywords)

    def _make(self, args: Any, keywords: Any) -> None:
        cls = self.stack.pop()
        if not any(cls is known for known in _MAKEABLE) and not self.is_users(cls):
            raise Refused(f"Trying to create new object for unrecognized class {cls}")
        self.push(self.outside(cls.__new__, cls, *args, **keywords))

    def build(self) -> None:
        state, value = self.stack.pop(), self.stack[-1]
        kind = type(value)
        if isinstance(value, Tensor) and (kind.__name__ == "Parameter" or kind is Tensor):
            tensors._set_state(value, state)
        elif kind is OrderedDict:
            value.__dict__.update(state)
        elif kind is tensors.Ignored:
            value.__setstate__(state)
        elif self.is_users(kind):
            self.outside(_set_state, value, state)
        else:
            raise Refused(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{kind}"
            )

    def persistent_id(self) -> None:
        entry = self.stack.pop()
        if type(entry) is tuple and (not entry or entry[0] != "storage"):
            kind = type(entry[0]) if entry else "nothing"  # what is in a hostile file is not repeated
            raise Refused(f"Only persistent_load of storage is allowed, but got {kind}")
        if type(entry) not in (tuple, int):
            raise Refused(f"persistent_load id must be tuple or int, but got {type(entry)}")
        self.push(self.outside(self.persistent, entry))

    # ---- containers
    def extend(self, items: list[Any], word: str) -> None:
        target = self.stack[-1]
        if type(target) is list:
            target.extend(items)
        elif self.is_users(type(target)):
            for item in items:
                target.append(item)
        else:
            raise Refused(f"Can only {word} lists, but got {type(target)}")

    def set_items(self, items: list[Any], word: str = "SETITEMS") -> None:
        target = self.stack[-1]
        if type(target) not in (dict, OrderedDict, Counter) and not self.is_users(type(target)):
            raise Refused(
                f"Can only {word} for dict, collections.OrderedDict, collections.Counter, but got {type(target)}"
            )
        if len(items) % 2:
            raise Refused("odd number of items for SETITEMS")
        for i in range(0, len(items), 2):
            target[items[i]] = items[i + 1]

    def add_items(self) -> None:
        items = self.since_mark()
        if type(self.stack[-1]) is not set:
            raise Refused(f"Can only add items to sets, but got {type(self.stack[-1])}")
        self.stack[-1].update(items)

    def text(self, raw: bytes) -> Any:
        """A string of Python 2: bytes, unless an encoding is given."""
        return raw if self.encoding == "bytes" else raw.decode(self.encoding)

    def set_protocol(self) -> None:
        self.protocol = self.take(1)[0]
        if self.protocol > 5:
            raise Refused(f"unsupported pickle protocol: {self.protocol}")

    def pop(self) -> None:
        if self.stack:
            self.stack.pop()
        else:
            self.since_mark()


def _set_state(value: Any, state: Any) -> None:
    """Give an object of a trusted class its state."""
    own = getattr(value, "__setstate__", None)
    if own is not None:
        own(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        value.__dict__.update(state)
    for name, item in (slots or {}).items():
        setattr(value, name, item)


def _tuple(n: int) -> Callable[[SafeUnpickler], None]:
    def act(m: SafeUnpickler) -> None:
        if len(m.stack) < n:
            raise Refused("the pickle's stack is too short")
        m.stack[len(m.stack) - n :] = [tuple(m.stack[len(m.stack) - n :])]

    return act


def _two(m: SafeUnpickler) -> list[Any]:
    value, key = m.stack.pop(), m.stack.pop()
    return [key, value]


_INSTRUCTIONS: dict[bytes, Callable[[SafeUnpickler], Any]] = {
    b"\x80": SafeUnpickler.set_protocol,
    b"\x95": lambda m: m.take(8),  # a frame: only a hint for readers
    b"c": lambda m: m.push(m.find(m.line(), m.line())),
    b"\x93": SafeUnpickler.stack_global,
    b"R": SafeUnpickler.reduce,
    b"\x81": SafeUnpickler.new_object,
    b"\x92": SafeUnpickler.new_object_with_keywords,
    b"b": SafeUnpickler.build,
    b"Q": SafeUnpickler.persistent_id,
    b"(": SafeUnpickler.mark,
    b"0": SafeUnpickler.pop,
    b"1": lambda m: m.since_mark(),
    b"2": lambda m: m.push(m.stack[-1]),
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(True),
    b"\x89": lambda m: m.push(False),
    b"J": lambda m: m.push(m.number("<i")),
    b"K": lambda m: m.push(m.number("<B")),
    b"M": lambda m: m.push(m.number("<H")),
    b"\x8a": lambda m: m.push(int.from_bytes(m.take(m.number("<B")), "little", signed=True)),
    b"\x8b": lambda m: m.push(int.from_bytes(m.take(m.number("<I")), "little", signed=True)),
    b"G": lambda m: m.push(m.number(">d")),
    b"X": lambda m: m.push(m.take(m.number("<I")).decode("utf-8", "surrogatepass")),
    b"\x8c": lambda m: m.push(m.take(m.number("<B")).decode("utf-8", "surrogatepass")),
    b"\x8d": lambda m: m.push(m.take(m.number("<Q")).decode("utf-8", "surrogatepass")),
    b"U": lambda m: m.push(m.text(m.take(m.number("<B")))),
    b"T": lambda m: m.push(m.text(m.take(m.number("<I")))),
    b"C": lambda m: m.push(m.take(m.number("<B"))),
    b"B": lambda m: m.push(m.take(m.number("<I"))),
    b"\x8e": lambda m: m.push(m.take(m.number("<Q"))),
    b"\x96": lambda m: m.push(bytearray(m.take(m.number("<Q")))),
    b")": lambda m: m.push(()),
    b"]": lambda m: m.push([]),
    b"}": lambda m: m.push({}),
    b"\x8f": lambda m: m.push(set()),
    b"t": lambda m: m.push(tuple(m.since_mark())),
    b"l": lambda m: m.push(m.since_mark()),
    b"\x85": _tuple(1),
    b"\x86": _tuple(2),
    b"\x87": _tuple(3),
    b"a": lambda m: m.extend([m.stack.pop()], "append to"),
    b"e": lambda m: m.extend(m.since_mark(), "extend"),
    b"s": lambda m: m.set_items(_two(m), "SETITEM"),
    b"u": lambda m: m.set_items(m.since_mark()),
    b"\x90": SafeUnpickler.add_items,
    b"\x91": lambda m: m.push(frozenset(m.since_mark())),
    b"q": lambda m: m.remember(m.number("<B")),
    b"r": lambda m: m.remember(m.number("<I")),
    b"\x94": lambda m: m.remember(len(m.memo)),
    b"h": lambda m: m.push(m.memo[m.number("<B")]),
    b"j": lambda m: m.push(m.memo[m.number("<I")]),
}

_CHANGED = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`. "
    "Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code "
    "execution. Do it only if you got the file from a trusted source."
)
_MORE = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
    "https://pytorch.org/docs/stable/generated/torch.load.html."
)


def explained(error: Exception) -> UnpicklingError:
    """The error that users see, with what they can do."""
    if getattr(error, "blocked", False):
        return UnpicklingError(f"Weights only load failed. {_CHANGED}\n\n\n{error}{_MORE}")
    if getattr(error, "remedy", False):
        return UnpicklingError(
            "Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those steps "
            f"only if you trust the source of the checkpoint\033[0m. \n\t(1) {_CHANGED}\n\t(2) Alternatively, to load with "
            "`weights_only=True` please check the recommended steps in the following error message.\n\tWeightsUnpickler "
            f"error: {error}{_MORE}"
        )
    said = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
    return UnpicklingError(f"Weights only load failed. {_CHANGED}\nWeightsUnpickler error: \n\n{said}{_MORE}")


_MALFORMED = (
    Refused,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    struct.error,
    OverflowError,
)


def load_safe(data: Any, persistent: Callable[[Any], Any], encoding: str = "bytes") -> Any:
    """The value of a pickle that need not be trusted."""
    try:
        return SafeUnpickler(data, persistent, encoding).load()
    except _Outside as carried:
        raise carried.__cause__ from None  # type: ignore[misc]
    except EOFError as error:
        raise RuntimeError(f"unexpected EOF: {error}. The file might be corrupted.") from None
    except _MALFORMED as error:
        raise explained(error) from None


def globals_in(data: bytes) -> set[str]:
    """All names that a pickle mentions; nothing of it is run."""
    found: set[str] = set()
    protocol = 0
    strings: list[str] = []
    for code, arg, _ in pickletools.genops(data):
        if code.name == "PROTO" and isinstance(arg, int):
            protocol = arg
        elif code.name == "GLOBAL" and isinstance(arg, str):
            module, _, name = arg.partition(" ")
            found.add(".".join(python3_name(module, name) if protocol < 3 else (module, name)))
        elif code.name == "STACK_GLOBAL":
            found.add(".".join(strings[-2:]))
        elif isinstance(arg, str):
            strings.append(arg)
    return found
