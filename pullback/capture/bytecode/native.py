"""Native code in a captured program: what it is given, and what it may do.

Functions of this package, and built-in ones that only compute, run as they are. They get fakes, copies of containers from
outside (so that what they read is tested when the graph is entered) and functions that come back to the machine. What
they would read or change unseen ends the graph.
"""

from __future__ import annotations

import collections
import enum
import functools
import types

from ...autograd import calls as autograd_calls
from ...autograd.forward_ad import exit_dual_level
from ...autograd.leaf_rules import LeafRule
from ...autograd.methods import RemovableHandle, add_hook
from ...core import modes, tree
from ...core.device import device
from ...core.dtype import dtype
from ...core.modes import ambient
from ...core.node import Node
from ...core.random import Generator as RandomGenerator
from ...core.size import Size
from ...core.tensor import FAKE, NoData, Tensor
from ...graph import map_arg
from ...nn.module import Module
from ...ops.system import offers
from ...ops.system.overrides import disable_torch_function
from ..fake.mode import DataDependentOutputException, DynamicOutputShapeException
from ..front.fakes import NO_FAKES, holds_fakes
from ..shapes.errors import GuardOnDataDependentSymNode
from ..trace.graph_trace import marks_of
from ..trace.program import RefusedByOperator, Unsupported
from ..trace.subclasses import is_wrapper
from . import kept
from .arrays.traced import TracedArray
from .arrays.world import refuse_arrays
from .attributes import Attributes
from .lookups import ABSENT, HEAP_TYPE, by_class, class_attribute
from .outside import CONSTANTS, CONTAINERS, _slots, is_symbol, module_of
from .signals import BREAKS, Break

REFUSED = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    *NO_FAKES,
    GuardOnDataDependentSymNode,
    NoData,
    Unsupported,
)
CONTEXT_BITS = modes.SAVED_HOOKS | modes.INFERENCE | modes.ANOMALY | modes.PROFILE | modes.DEFAULT_DEVICE
ALIEN_BITS = modes.FUNCTION | modes.DISPATCH | modes.TRANSFORM | modes.FORWARD
# Hooks have numbers, and handles that must find them again: those of each run are its own.
COMPILER = "pullback.capture.front.compile"
HOOKING = (add_hook, RemovableHandle, RemovableHandle.remove, RemovableHandle.__exit__)
VALUE_CLASSES = ("pullback.core.", "pullback.ops.", "pullback.library.", "pullback.distributions.", "pullback.graph.")
SETTINGS = (bool, int, float, str, dtype, device)
# Those of which a capture follows what they set, and those that say nothing to other calls.
KNOWN_SETTERS = (
    "set_grad_enabled", "enable_grad", "set_detect_anomaly", "set_stance", "set_autocast_enabled", "set_autocast_dtype",
    "use_deterministic_algorithms", "set_deterministic_debug_mode", "disable_saved_tensors_hooks",
    "set_float32_matmul_precision",
)  # fmt: skip
ARRAYS = __name__.rpartition(".")[0] + ".arrays."  # our own code that computes with arrays
RANDOM_STATE = ("get_rng_state", "initial_seed", "default_generator")
ABOUT_CAPTURE = ("is_compiling", "is_dynamo_compiling", "is_exporting", "is_tracing")  # true of a capture, not of a run
FOLLOWED = (
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_autocast_enabled",
    "is_autocast_cpu_enabled",
    "is_any_autocast_enabled",
    "get_autocast_dtype",
    "switched",
    "set_autocast_enabled",
    "set_autocast_dtype",
)  # tested for every graph; the program may have switched it since
DEEP = 100  # as deep as containers go
VALUES = (type({}.values()), type(collections.OrderedDict().values()))  # live, though they have a hash
LOOKED_AT = (
    "__next__", "__eq__", "__lt__", "__gt__", "__le__", "__ge__", "__hash__", "__len__", "__bool__", "__iter__", "__getitem__", "__contains__",
    "__int__", "__float__", "__complex__", "__index__", "__abs__", "__round__", "__floor__", "__ceil__", "__trunc__", "__neg__",
    "__add__", "__radd__", "__mul__", "__rmul__", "__divmod__", "__pow__", "__str__", "__repr__", "__format__",
)  # fmt: skip


def runs_python(cls: type) -> bool:
    """Whether built-in functions that look into instances of a class run Python code of it."""
    if issubclass(cls, (Tensor, enum.Enum, type)) or not cls.__flags__ & HEAP_TYPE:
        return False
    return any(isinstance(class_attribute(cls, name), types.FunctionType) for name in LOOKED_AT)


def is_mutable_in_c(value) -> bool:
    """Whether an object keeps something that may change where this package does not see it: an array, say."""
    cls = type(value)
    return (cls.__hash__ is None or cls in VALUES) and not (
        isinstance(value, CONTAINERS) or hasattr(value, "__dict__") or _slots(cls)
    )


def changes_settings(name: str) -> bool:
    """Whether a function, by its name, sets something for the whole thread or process; or reads random state."""
    return (
        name.startswith(("set_", "use_", "enable_", "disable_")) and name not in KNOWN_SETTERS or name in RANDOM_STATE
    )


def takes_programs(function) -> bool:
    """Whether a function is an operator that makes graphs of functions which it is given."""
    return getattr(type(function), "takes_programs", False) or getattr(function, "differentiates", False)


def computed(node, values: dict, constants: dict) -> Tensor:
    """The value of a node of a trace, of values of its inputs, which stay as they are."""
    if node in values:
        return values[node].clone() if isinstance(values[node], Tensor) else values[node]
    if node.op == "get_attr":
        return constants[node.target]
    args, kwargs = map_arg((node.args, dict(node.kwargs)), lambda n: computed(n, values, constants))
    return node.target(*args, **kwargs)


@by_class
def has_state(cls: type) -> bool:
    """Whether objects of a class of ours are more than values: methods of theirs, run as they are, may change them."""
    return issubclass(cls, Node) or not cls.__module__.startswith(VALUE_CLASSES)


PLAIN = frozenset((int, float, bool, str, type(None), Tensor))  # of these native code takes each as it is


def open_devices() -> tuple:
    """The default device, and those before each block with another that is open."""
    return (ambient.default_device, *ambient.devices_before)


def open_modes() -> tuple[int, int]:
    """How many function and dispatch modes are open."""
    return len(ambient.function_modes), len(ambient.dispatch_modes)


def leave_modes(depths: tuple[int, int]) -> None:
    """Take back that further modes were entered, without their own code."""
    del ambient.function_modes[depths[0] :], ambient.dispatch_modes[depths[1] :]


def is_leaf_that_requires_grad(t: Tensor) -> bool:
    own = t._autograd
    return own is not None and own.requires_grad and own.edge is None


def contents(cell: types.CellType):
    """What a cell holds; None where nothing."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


class Callback:
    """A function of the program as native code gets it: calling it goes back to the machine."""

    __slots__ = ("__dict__", "function", "world")  # so that who wraps it takes over names alone

    def __init__(self, world: Native, function):
        self.world, self.function = world, function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args, **kwargs):
        if self.world.machine is None:  # native code kept it until after the capture
            return self.function(*args, **kwargs)
        return self.world.call_now(self.function, args, kwargs)

    def __get__(self, obj, cls=None):
        return self if obj is None else types.MethodType(self, obj)


class Answer:
    """Says what a method of an object gave that was interpreted: built-in functions ask it again, and refuse what they would."""

    def __new__(cls, obj, name: str, value):
        return object.__new__(type(type(obj).__name__, (), {name: lambda self, *args: value}))


class Native(Attributes):
    """The part of the tracing world that runs native code."""

    def _pure(self, function, args: tuple, kwargs: dict, depth: int = DEEP):
        """A built-in that only computes: of what `depth` says that it reads."""
        args = tuple([self.for_native(a, depth) for a in args])
        return self.refusing(function, args, {k: self.for_native(v, depth) for k, v in kwargs.items()})

    def _hold(self, function, args: tuple, kwargs: dict):
        """A method of a container of the program's own that keeps or looks up what it is given."""
        if isinstance(function.__self__, (dict, set)) and args:
            self.outside.key(args[0])
        return self.refusing(function, args, kwargs)

    def _is_own(self, function, value) -> bool:
        """Whether a function is a method of a value whose class is this package's, too."""
        cls = type(value)
        return self.is_ours(cls.__module__) and class_attribute(cls, getattr(function, "__name__", "")) is function

    def refuse_instances(self, values, depth: int = 2) -> None:
        """Built-in functions would run Python code of these objects' classes: the graph ends instead."""
        for value in values:
            if isinstance(value, CONTAINERS) and depth:
                self.refuse_instances(value.values() if isinstance(value, dict) else value, depth - 1)
            elif runs_python(type(value)) and not self.is_ours(type(value).__module__):
                raise Break(f"a built-in function looks into a {type(value).__name__}")
            else:
                self.refuse_mutable(value)

    def _refuse_iterators(self, values) -> None:
        """An iterator from outside that is read on stays where it was put: that is no work of a graph."""
        if any(self.outside.is_outside(v) and class_attribute(type(v), "__next__") is not ABSENT for v in values):
            raise Break("it reads from an iterator that was made outside")

    def refuse_mutable(self, value) -> None:
        """What is in an object from outside that this package does not know is not tested: the graph ends."""
        if self.outside.is_outside(value) and is_mutable_in_c(value):
            raise Break(f"it looks into a {type(value).__name__} from outside")

    def _ours(self, method: types.FunctionType, function, args: tuple):
        """Run a method that the machine does not interpret, which must be one of ours."""
        if not self.is_ours(module_of(method)):
            raise Break(f"it calls {module_of(method)}.{method.__qualname__}")
        return self.native_call(function, args, {})

    def _refuse(self, function):
        raise Break(f"it calls {getattr(function, '__qualname__', function)}")

    def inside(self, value):
        """A value with containers from outside replaced by the program's own copies."""
        value = self.outside.proxied(value)
        return self.outside.copy(value) if isinstance(value, CONTAINERS) and self.outside.is_outside(value) else value

    def concrete(self, value):
        """A value of which text is made: containers from outside are read, and a symbol is the number that it stands for."""
        if is_symbol(value):
            return value.symbolic_type(value)
        if not isinstance(value, CONTAINERS):
            return value
        value = self.inside(value)
        if type(value) in (list, tuple, Size):
            return type(value)([self.concrete(v) for v in value])
        return {self.concrete(k): self.concrete(v) for k, v in value.items()} if type(value) is dict else value

    def for_native(self, value, depth: int = DEEP):
        """An argument as native code takes it: with what it holds entered, and functions that come back here."""
        if value.__class__ in PLAIN:
            return value
        if isinstance(value, CONTAINERS):
            value = self.inside(value)
            if depth == 1:
                return value
            if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
                inner = [self.for_native(v) for v in value]
                return value if all(a is b for a, b in zip(inner, value, strict=True)) else type(value)(inner)
            if type(value) is dict:
                inner = {k: self.for_native(v) for k, v in value.items()}
                return value if all(inner[k] is value[k] for k in value) else inner
            return value
        if isinstance(value, (types.FunctionType, types.MethodType)):
            function = value.__func__ if isinstance(value, types.MethodType) else value
            return (
                Callback(self, value) if isinstance(function, types.FunctionType) and self.enters(function) else value
            )
        is_called = isinstance(class_attribute(type(value), "__call__"), types.FunctionType)
        if (
            isinstance(value, functools.partial)
            or is_called
            and not self.is_ours(type(value).__module__)
            and not isinstance(value, Module)
        ):
            return Callback(self, value)
        self.refuse_mutable(value)
        return value

    def called_back(self, function):
        """A function that a built-in one calls: whatever it is, the machine does."""
        return function if function is None or isinstance(function, Callback) else Callback(self, function)

    def native_call(self, function, args: tuple, kwargs: dict):
        """Call a function of this package on fakes."""
        if any(function is one for one in HOOKING):
            raise Break("it adds or removes a hook")
        if module_of(function) == COMPILER and function.__name__ == "compile" and (args or "model" in kwargs):
            return self._compiled(function, args, kwargs)
        if function is autograd_calls.grad and self.is_listening():
            raise Break("it differentiates what it has registered hooks for")
        if self.is_ours(module_of(function)) and not module_of(function).startswith(ARRAYS):
            refuse_arrays(function, (*args, *kwargs.values()))
        for value in (*args, *kwargs.values()):
            self._same_object(function, value)
        self._refuse_iterators((*args, *kwargs.values()))
        self._refuse_state(function, args)
        if args and isinstance(args[0], Tensor):
            self.check_method(args[0], getattr(function, "__name__", ""))
        if args and isinstance(args[0], Module) and not self._is_own(function, args[0]):
            # a function of parameters, to be called: `vmap(model)`, `checkpoint(model, x)`
            args = (Callback(self, args[0]), *args[1:])
        if getattr(function, "keeps_functions", False):  # it runs again with each run of the graph, by itself
            if any(function is one for one in kept.LISTENING):
                handle = kept.listen(self, function, args, kwargs)
                if handle is not None:
                    return handle
            args, kwargs = tree.tree_map(self.inside, args), tree.tree_map(self.inside, kwargs)
            return self.refusing(function, args, kwargs, may_hook=True)
        given = (*args, *kwargs.values())
        is_plain = isinstance(function, (types.FunctionType, type)) and all(isinstance(v, CONSTANTS) for v in given)
        # The block that one opens is a generator of ours, which cannot be made again should the graph end inside of it.
        opens_block = is_plain and function.__name__ == "disable_saved_tensors_hooks" and not self.whole
        if opens_block or is_plain and changes_settings(function.__name__):
            what = "reads the state of random numbers" if function.__name__ in RANDOM_STATE else "changes settings"
            raise Break(f"it {what} ({function.__name__})")
        if is_plain and "autocast" in (function.__module__ or ""):
            self.outside.conditions.test(self.autocast_test, "autocast is as it was")
        out = self._program(function, args, kwargs) if takes_programs(function) else self._pure(function, args, kwargs)
        if is_plain and isinstance(out, SETTINGS) and function.__name__ not in (*ABOUT_CAPTURE, *FOLLOWED):
            self._still_gives(function, args, kwargs, out)
        return out

    def _compiled(self, function, args: tuple, kwargs: dict):
        """`compile(f)` of the program's: f itself, which is captured where it is called, once the arguments are known to be right."""
        model = args[0] if args else kwargs["model"]
        if not isinstance(model, (types.FunctionType, types.MethodType)):
            raise Break("it compiles something else than a function")
        self._pure(function, args, kwargs)
        return model

    def _program(self, function, args: tuple, kwargs: dict):
        """An operator that makes a graph of a function of the program's: what else the function does is not in it."""
        before, cells = list(self.journal.log), [(c, contents(c)) for c in self.own_cells.values()]
        out = self._pure(function, args, kwargs)
        log, changed = self.journal.log, [(c, old) for c, old in cells if contents(c) is not old]
        for cell, old in changed:
            cell.cell_contents = old
        made = [e for e in log if not any(e is b for b in before)]
        if (
            changed
            or made
            and (getattr(type(function), "takes_programs", False) or holds_fakes([e.value for e in made], 4))
        ):
            raise Break(
                f"HOP: Unsafe side effect: a function given to {function.__name__} changes what is outside of it"
            )
        return out

    def concretely(self, function, args: tuple, kwargs: dict):
        """Call a function on real values, outside of the program."""
        args, kwargs = self.real(args), self.real(kwargs)
        with modes.masked(modes.CAPTURE | modes.DISPATCH):
            return function(*args, **kwargs)

    def real(self, value):
        """A value with the tensors that its fakes stand for in this call: those of the program's are computed of its inputs."""
        return tree.tree_map_only(Tensor, self._real_tensor, tree.tree_map(self.inside, value))

    def _real_tensor(self, t: Tensor) -> Tensor:
        known = self.outside.reals.get(id(t))
        if known is not None and isinstance(known.value, Tensor):
            return known.value
        node = marks_of(t).get(self.trace)
        if node is None:
            return t
        inputs = {id(known.source): known.value for known in self.outside.known.values()}
        values = dict(
            zip(
                self.trace.graph.find_nodes(op="placeholder"),
                [inputs.get(id(s)) for s in self.trace.inputs],
                strict=True,
            )
        )
        with modes.masked(modes.CAPTURE | modes.DISPATCH | modes.GRAD):
            return computed(node, values, self.trace.constants)

    def _still_gives(self, function, args: tuple, kwargs: dict, out) -> None:
        """A function that is given no tensors, and says something: it may be about a setting, so it is asked again."""
        conditions = self.outside.conditions
        if modes.settings() != self.first_settings:  # the program has changed some: what counts is what it found
            now = modes.settings()
            modes._set_settings(self.first_settings)
            out = function(*args, **kwargs)
            modes._set_settings(now)
        given = [conditions.literal(a) for a in args] + [f"{k}={conditions.literal(v)}" for k, v in kwargs.items()]
        code = f"{conditions.constant(function)}({', '.join(given)}) == {conditions.literal(out)}"
        conditions.test(code, f"{function.__name__}({', '.join(map(repr, args))}) == {out!r}")

    def _refuse_state(self, function, args: tuple) -> None:
        """A method of an object from outside that may change it, where the journal does not see it."""
        if not args or isinstance(args[0], (*CONSTANTS, *CONTAINERS, Tensor, Module, type)) or is_symbol(args[0]):
            return
        if callable(args[0]) and not isinstance(args[0], Node) or isinstance(args[0], LeafRule):  # it changes nothing
            return
        cls = type(args[0])
        if self.is_ours(cls.__module__) and has_state(cls) and self.outside.is_outside(args[0]):
            raise Break(f"it calls {getattr(function, '__name__', function)} of a {cls.__name__} from outside")

    def _same_object(self, function, value) -> None:
        """An object of this package from outside, into which its own code looks: it must be the same one."""
        if not self.is_ours(type(value).__module__) or isinstance(
            value, (*CONSTANTS, *CONTAINERS, Tensor, Module, TracedArray, type)
        ):
            return
        if is_symbol(value):
            return
        source = self.outside.source_of(value)
        if source is None or callable(value) and not hasattr(type(value), "__enter__"):
            return
        if getattr(function, "__name__", "") in ("__enter__", "__exit__"):
            raise Break(f"it enters or leaves a {type(value).__name__} that was made before the graph")
        if isinstance(value, RandomGenerator):
            raise Break("it uses a random generator from outside, whose state no graph keeps")
        if source.kind != "constant":
            self.outside.conditions.is_object(source, value)

    def refusing(self, function, args: tuple, kwargs: dict, may_hook: bool = False):
        """Call; what shows that it cannot be captured ends the graph."""
        before, hooks, error, places = ambient.mode, RemovableHandle.next_id, BREAKS.error, open_devices()
        settings, overrides, depths = modes.settings(), ambient.function_disabled, open_modes()
        calling, self.calling = self.calling, True
        try:
            out = function(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise Break(f"it depends on the data of a tensor ({error})") from error
        except RefusedByOperator:
            raise
        except REFUSED as error:
            raise Break(str(error)) from error
        finally:
            self.calling = calling
        if RemovableHandle.next_id != hooks and not may_hook:
            raise Break("it adds a hook to what the graph computes")
        if open_modes() != depths:
            leave_modes(depths)
            ambient.restore(before)
            raise Break("it enters a mode that looks at all calls")
        is_elsewhere = BREAKS.error is not error or open_devices() != places or ambient.function_disabled != overrides
        if is_elsewhere or modes.settings() != settings:
            self.context_changes.append(self.top.count)
        if ambient.mode != before:
            if ambient.mode & ~before & modes.SAVED_HOOKS:
                ambient.saved_hooks.pop()
                ambient.restore(before)
                raise Break("it enters hooks for saved tensors, which see what is saved when the graph runs")
            if ambient.mode & ~before & modes.FORWARD:
                exit_dual_level()
                ambient.restore(before)
                raise Break("it opens a level of forward mode")
            if (ambient.mode ^ before) & ALIEN_BITS:
                ambient.restore(before)
                raise Break("it enters a mode that looks at all calls")
            if (ambient.mode ^ before) & CONTEXT_BITS:
                self.context_changes.append(self.top.count)
        is_leaf = isinstance(out, Tensor) and is_leaf_that_requires_grad(out) and out._view_info is None
        if is_leaf and id(out) not in self.outside.reals:
            if id(out) not in self.made_leaves and function is not Tensor.requires_grad_:
                out._autograd = None  # a factory was asked for it, which the graph's call of it does not say
                with disable_torch_function():
                    Tensor.requires_grad_(out)
            self.made_leaves.setdefault(id(out), (out, self.top.count))
        if not ambient.mode & (modes.TRANSFORM | modes.FORWARD):
            for value in out if type(out) is tuple else (out,):
                self._check_made(value)
        return self.outside.settled(out)

    def _check_made(self, value) -> None:
        """What native code gives must be what a graph can give: a tensor that it computes, and no function around one."""
        if isinstance(value, Tensor):
            if (
                value._keys & FAKE
                and not is_wrapper(value)
                and marks_of(value).get(ambient.captures[-1] if ambient.captures else self.trace) is None
            ):
                raise Break("it computes a tensor in a way that the graph does not see")
        elif isinstance(value, types.FunctionType) and value.__closure__ and id(value) not in self.made_functions:
            if not self.outside.is_outside(value) and holds_fakes([contents(cell) for cell in value.__closure__], 4):
                raise Break(f"it makes a function ({value.__qualname__}) around tensors of the graph")


offers.for_programs.add(Native.refusing.__code__)
