"""The tracing world: what each step of a captured program means.

Tensors are fakes in a trace, everything else is the real object. What comes from outside is entered (`outside.py`) when
it is read; what is changed outside goes through the journal; Python methods of the user's classes are interpreted.
A step that cannot be captured raises `Break`, and the graph ends before it.
"""

from __future__ import annotations

import itertools
import types
import weakref
from typing import Any

from ...autograd import calls as autograd_calls
from ...autograd.methods import set_data
from ...core import modes
from ...core.modes import ambient
from ...core.size import Size
from ...core.tensor import Tensor
from ...ops.system.overrides import disable_torch_function
from ..fake.mode import FakeTensorMode
from ..front.fakes import any_number
from ..trace.graph_trace import PACKAGE, _line
from ..trace.program import ProgramTrace, stepped_aside
from . import custom_functions, differentiate, iterators, kept, warned
from .arrays.traced import TracedArray
from .builtin_calls import GROWING
from .frame import Frame
from .generators import Generator
from .journal import Journal
from .lookups import ABSENT, class_attribute
from .module_stack import module_stack
from .operations import Operations
from .outside import CONSTANTS, CONTAINERS, ITERATORS, KEYS, VALUES, VIEWS, Outside, stays
from .picturing import Images
from .polyfills import sequence
from .signals import Break
from .sources import Source

MANY = 100_000  # values of an iterator that are read in one step: there may be no end to them
EXTENDS = {"dict_update": "update"}


class Unseen:
    """A value that a frame was entered with and that nothing has read yet."""

    __slots__ = ("source", "value")

    def __init__(self, value, source: Source):
        self.value, self.source = value, source


class FrameTrace(ProgramTrace):
    """A trace whose inputs have sources."""

    body_names = {
        "true_graph_": "cond_true_", "false_graph_": "cond_false_", "checkpointed_": "wrap_body_", "body_graph_": "map_body_",
        "scan_combine_graph_": "scan_combine_fn_", "while_loop_cond_graph_": "cond_fn_", "while_loop_body_graph_": "body_fn_",
        "associative_scan_combine_graph_": "associative_scan_combine_fn_",
    }  # fmt: skip

    world: Tracing
    interprets = True

    def answer(self, o, call: tuple):
        """What `o.__torch_function__(*call)` gives; what the capture itself asks of a tensor is not for the program's ears."""
        world, (function, _, args, kwargs) = self.world, call
        if not world.calling:
            with disable_torch_function():
                return function(*args, **kwargs)
        world.outside.test_overrides()
        world.calling = False
        try:
            return world.call_now(world.load_attribute(o, "__torch_function__"), call)
        finally:
            world.calling = True

    def count_effects(self) -> int:
        return self.world.journal.count

    def spoil(self) -> None:
        self.created += 1  # the step has left something behind

    def __init__(self, fake_mode: FakeTensorMode):
        super().__init__(fake_mode)
        self.inputs: list[Source] = []  # one per placeholder
        self.names: set[str] = set()  # of the inputs
        self.created = 0  # how many nodes were made
        self.moved: dict[int, Tensor] = {}  # inputs that want gradients and were given other memory
        self.steps: dict[Any, int] = {}  # nodes, with how many steps of the program there were when they were made

    def create_node(self, target, args: tuple, kwargs: dict, name: str | None = None):
        self.created += 1
        node = super().create_node(target, args, kwargs, name)
        self.steps[node] = self.world.top.count if self.world.top is not None else 0
        stack = module_stack(self.world.machine, self._found_at)
        if stack:
            node.meta["nn_module_stack"] = stack
        node.meta["source_fn_stack"] = [(node.name, target)]
        return node

    def move(self, t: Tensor, alias: Tensor) -> None:
        """An input is from here on another tensor of the graph; of one that wants a gradient, none would be found any more."""
        with stepped_aside(self):
            set_data(t, alias)
        self.track(t, self.node_of(alias))
        if t.requires_grad:
            self.moved[id(t)] = t

    def node_of(self, t: Tensor):
        if self.moved and id(t) in self.moved and ambient.mode & modes.GRAD:
            raise Break("it differentiates a tensor to which it has given other memory")
        return super().node_of(t)

    def _found_at(self, value) -> tuple[Any, Source | None]:
        """What a local variable holds, and where that was found."""
        if type(value) is Unseen:
            return value.value, value.source
        return value, self.world.outside.source_of(value)

    def given(self, t: Tensor, source: Source, context) -> Tensor:
        """A tensor from outside as an input."""
        fake = self.stand_ins[id(t)] = self.input(t, self.input_name(source), source.name, context)
        if t.__dict__:
            self.last_input.meta["tensor_dict"] = dict(t.__dict__)  # the attributes that a user gave it
        self.inputs.append(source)
        return fake

    def given_number(self, value: int | float, source: Source):
        """A number from outside as a symbol; itself where it must be what it is."""
        result = any_number(self.fake_mode.shape_env, value, source.name)
        if type(result) is type(value):
            return value
        self.input(result, self.input_name(source))
        self.inputs.append(source)
        return result

    def input_name(self, source: Source) -> str:
        """A name for an input, of the letters and digits of its source."""
        text = source.name.replace("']", "_").replace("['", "_")
        stem = name = "".join(c if c.isalnum() else "_" for c in text).replace("__", "_")
        count = 0
        while name in self.names:
            count += 1
            name = f"{stem}_{count}"
        self.names.add(name)
        return name

    def lift(self, t: Tensor) -> Tensor:
        """A tensor that native code reached: it is always the same one."""
        known = self.stand_ins.get(id(t))
        return (
            known
            if known is not None
            else self.world.outside.enter(t, self.world.outside.sources.constant(t, "a tensor"))
        )

    def place(self) -> str | None:
        machine: Any = self.world.machine
        while machine is not None:
            for frame in reversed(machine.frames):
                if not frame.code.co_filename.startswith(PACKAGE):
                    return _line(frame.code.co_filename, frame.line or 0, frame.code.co_name)
            machine = machine.outer
        return None


class Items:
    """An iterator over a list or tuple from outside: what it reads is entered, its end tests the length."""

    def __init__(self, world: Tracing, container, index: int = 0):
        self.world, self.container, self.index = world, container, index

    def __iter__(self):
        return self

    def __next__(self):
        if self.index >= len(self.container):
            self.world.outside.length(self.container)
            raise StopIteration
        self.index += 1
        return self.world.outside.item(self.container, self.index - 1)


class Tracing(Operations):
    """See the module's docstring."""

    def __init__(self, trace: FrameTrace, sizes):
        self.trace, self.journal = trace, Journal()
        trace.world = self
        self.outside = Outside(trace, self.journal, sizes)
        self.own_cells: dict[int, types.CellType] = {}
        self.made_functions: dict[int, types.FunctionType] = {}
        self.default_values: dict[int, object] = {}
        self.spent: dict[int, object] = {}  # history that a backward has walked and freed, by the id of its nodes
        self.autocast_test = self.outside.conditions.autocast_test()
        self.iterators: dict[int, iterators.Advanced] = {}  # those from outside that the program advanced, by id
        self.context_changes: list[int] = []  # at which steps the ambient state changed
        self.made_leaves: dict[
            int, tuple[Tensor, int]
        ] = {}  # tensors that the program made and asked gradients of, and where
        self.warning_blocks: list[warned.Open] = []  # those of the program that are open
        self.hooked_leaves: set[int] = set()  # ids of tensors that the program made and hooked
        self.copiers: dict[
            int, Any
        ] = {}  # copies that are being made, by the id of what `__deepcopy__` methods hand on
        self.listening: list[kept.PendingHandle] = []  # hooks that are registered when the graph has run
        self.top: Any = None  # the outermost machine
        self.remembered: dict[
            tuple, tuple
        ] = {}  # what functions that remember gave, with what keeps the ids of the key
        self.generators: weakref.WeakSet[Generator] = weakref.WeakSet()  # that the program made
        self.first_settings = modes.settings()  # when the graph is entered
        self.whole = False  # whether a graph that ends early is an error
        self.unprepared: frozenset[int] = frozenset()  # ids of lazy modules that were tried to be initialized

    # ---- names
    def load_local(self, frame: Frame, name: str):
        value = frame.locals.get(name, ABSENT)
        if type(value) is Unseen:
            value = frame.locals[name] = self.outside.enter(value.value, value.source)
        elif value is ABSENT:
            return super().load_local(frame, name)
        elif self.default_values and id(value) in self.default_values:
            return self.default_values[id(value)]
        return value

    def load_global(self, frame: Frame, name: str):
        table = frame.globals
        if self.journal.is_touched(table, name):
            return self.outside.settled(super().load_global(frame, name))
        ours = self.is_ours(table.get("__name__"))
        home = self.outside.sources.constant(table, "G")
        if name in table:
            value = table[name]
            if ours and (callable(value) or isinstance(value, types.ModuleType) or stays(name, value)):
                return self.outside.constant(value)
            return self.outside.enter(value, self.outside.sources.item(home, name))
        value = super().load_global(frame, name)
        if not ours:
            self.outside.conditions.has_key(home, name, False)
            table = self.outside.sources.constant(frame.builtins, "builtins")
            self.outside.conditions.is_object(self.outside.sources.item(table, name), value)
        return self.outside.constant(value)

    def store_global(self, frame: Frame, name: str, value) -> None:
        self.outside.enter_table(frame.globals, self.outside.sources.constant(frame.globals, "G"))
        self.journal.set_item(frame.globals, name, value)

    def globals_of(self, frame: Frame) -> dict:
        self.outside.enter_table(frame.globals, self.outside.sources.constant(frame.globals, "G"))
        return frame.globals

    def locals_of(self, frame: Frame) -> dict:
        raise Break("it asks for its local variables")

    def delete_global(self, frame: Frame, name: str) -> None:
        raise Break(f"it deletes the global {name!r}")

    def load_cell(self, frame: Frame, name: str):
        cell = frame.cells[name]
        source = self.outside.source_of(cell)
        if source is None or self.journal.is_touched(cell, None):
            return super().load_cell(frame, name)
        try:
            value = cell.cell_contents
        except ValueError:
            raise Break(f"it reads the variable {name!r}, which has no value") from None
        return self.outside.enter(value, self.outside.sources.contents(source))

    def store_cell(self, frame: Frame, name: str, value) -> None:
        cell = frame.cells[name]
        if self.outside.is_outside(cell):
            self.journal.set_cell(cell, value)
        else:
            cell.cell_contents = value

    def delete_cell(self, frame: Frame, name: str) -> None:
        if self.outside.is_outside(frame.cells[name]):
            raise Break(f"it deletes the variable {name!r}")
        super().delete_cell(frame, name)

    def is_made_inside(self, function) -> bool:
        return id(function) in self.made_functions

    def make_function(self, frame: Frame, code, attributes: dict):
        result = super().make_function(frame, code, attributes)
        self.made_functions[id(result)] = result
        for cell in result.__closure__ or ():
            self.own_cells[id(cell)] = cell
        return result

    def build_class(self, function, name: str, bases: tuple, kwargs: dict):
        raise Break(f"it defines the class {name}")

    # ---- iteration
    def iterate(self, value):
        value = self.outside.proxied(value)
        if isinstance(value, Tensor):
            return self.native_call(iter, (value,), {})
        method = class_attribute(type(value), "__iter__")
        if isinstance(method, types.FunctionType) and not isinstance(value, (Generator, Items)):
            return self.call_now(method, (value,), {}) if self.enters(method) else self._ours(method, iter, (value,))
        if method is ABSENT and isinstance(class_attribute(type(value), "__getitem__"), types.FunctionType):
            inner = self.machine.nested()
            inner.frames.append(self.entered(sequence, (value,), {}).frame())
            return inner.run()
        if not self.outside.is_outside(value):
            return self.refusing(iter, (value,), {})
        if isinstance(value, (list, tuple)):
            return Items(self, value)
        if isinstance(value, CONTAINERS):
            return iter(self.outside.keys(value) if isinstance(value, dict) else self.outside.copy(value))
        if isinstance(value, VIEWS) and (behind := self.outside.viewed(value)) is not None:
            return iter(self._items_of_view(value, behind))
        if isinstance(value, ITERATORS) or class_attribute(type(value), "__next__") is not ABSENT:
            raise Break("it reads from an iterator that was made outside")
        raise Break(f"it iterates over a {type(value).__name__} from outside")

    def _items_of_view(self, view, behind: dict) -> list:
        """What a view of a dict from outside gives."""
        keys = self.outside.keys(behind)
        if isinstance(view, KEYS):
            return keys
        values = [self.load_item(behind, key) for key in keys]
        return values if isinstance(view, VALUES) else list(zip(keys, values, strict=True))

    def as_iterator(self, value):
        """An iterator that native code may advance."""
        result = self.iterate(value)
        method = class_attribute(type(result), "__next__")
        return (
            result
            if not (isinstance(method, types.FunctionType) and self.enters(method))
            or isinstance(result, (Items, Generator))
            else UserIterator(self, result)
        )

    def all_of(self, value) -> list:
        """Everything that iterating gives."""
        if type(value) in CONTAINERS and self.outside.is_outside(value):
            result = self.outside.copy(value)
            return list(result)
        if type(value) in iterators.KINDS and self.outside.is_outside(value) and iterators.can_advance(value):
            return self._rest_of(value)
        found = list(itertools.islice(self.as_iterator(value), MANY))
        if len(found) == MANY:
            raise Break(f"it reads more than {MANY} values of an iterator at once: of an infinite generator, say")
        return found

    def _rest_of(self, iterator) -> list:
        """All that an iterator from outside has left."""
        found: list = []
        while len(found) < MANY:
            try:
                found.append(self.advance_now(iterator))
            except StopIteration:
                return found
        raise Break(f"it reads more than {MANY} values of an iterator at once")

    def advance(self, iterator):
        if self.outside.is_outside(iterator):
            raise Break("it reads from an iterator that was made outside")
        method = class_attribute(type(iterator), "__next__")
        if isinstance(method, types.FunctionType) and not isinstance(iterator, (Items, Generator, UserIterator)):
            return self.call_now(method, (iterator,), {})
        if isinstance(iterator, types.GeneratorType):  # of ours, a context manager's for one
            return self.refusing(super().advance, (iterator,), {})
        return super().advance(iterator)

    def advance_now(self, iterator):
        """The next value, run to its end where the machine runs it."""
        if self.outside.is_outside(iterator) and iterators.can_advance(iterator):
            return iterators.advance(self, iterator)
        if isinstance(iterator, Generator) and not self.outside.is_outside(iterator):
            return next(iterator)
        return self.advance(iterator)

    def made_generator(self, generator: Generator) -> None:
        self.generators.add(generator)

    def let_go(self) -> None:
        """The capture is over: the world lives until garbage is collected, what it saw must not."""
        self.outside.let_go()
        self.journal.let_go()
        own = (self.own_cells, self.made_functions, self.default_values, self.made_leaves, self.iterators, self.spent)
        for table in (*own, self.remembered):
            table.clear()

    def let_generators_go(self) -> None:
        """The capture is over: what is left of its generators is dropped, and nothing in them runs on."""
        for generator in list(self.generators):
            generator.finish()

    def advanced(self, iterator) -> iterators.Advanced:
        """How far the program has come with an iterator from outside."""
        found = self.iterators.get(id(iterator))
        if found is None:
            found = self.iterators[id(iterator)] = iterators.Advanced(self, iterator)
        return found

    def send(self, receiver, value):
        if self.outside.is_outside(receiver):
            raise Break("it reads from an iterator that was made outside")
        return super().send(receiver, value)

    def unpack(self, value, before: int, after: int | None = None) -> list:
        if isinstance(value, Tensor):
            value = list(self.native_call(iter, (value,), {}))
        elif isinstance(value, CONTAINERS) and self.outside.is_outside(value):
            value = (
                self._unread(value)
                if after is None and len(value) == before and self._only_stores(before)
                else self.all_of(value)
            )
        return super().unpack(value, before, after)

    def _only_stores(self, count: int) -> bool:
        """Whether the next steps store what the step being executed gives."""
        frame = self.machine.frames[-1]
        return all(name == "STORE_FAST" for name, _ in frame.steps.code[frame.index + 1 : frame.index + 1 + count])

    def _unread(self, value) -> list:
        """The items of a tuple or list from outside, to be read when they are used."""
        if not isinstance(value, (list, tuple)) or self.journal.touched.get(id(value)):
            return self.all_of(value)
        source = self.outside.source_of(value)
        self.outside.length(value)
        return [Unseen(item, self.outside.sources.item(source, i)) for i, item in enumerate(value)]

    def extend(self, kind: str, target, value) -> None:
        if kind in ("extend", "update", "dict_update"):
            value = (
                self.inside(value)
                if isinstance(value, CONTAINERS)
                else self.all_of(value)
                if kind != "dict_update"
                else value
            )
        if self.outside.is_outside(target):  # being built when the graph was entered
            name, args = ("__setitem__", value) if kind == "item" else (EXTENDS.get(kind, kind), (value,))
            self.journal.call(getattr(target, name), args, {}, GROWING[name](target, *args))
        else:
            super().extend(kind, target, value)

    def merge(self, function, target: dict, value) -> None:
        super().merge(function, target, self.inside(value))

    def call(self, function, args: tuple, kwargs: dict):
        if isinstance(function, types.MethodType) and isinstance(function.__self__, Generator):
            if self.outside.is_outside(function.__self__):
                raise Break("it reads from an iterator that was made outside")
            return self.call_generator(function, args, kwargs)
        if function is Tensor.requires_grad_ and args and id(args[0]) in self.outside.reals:
            wanted = kwargs.get("requires_grad", args[1] if len(args) > 1 else True)
            if args[0].requires_grad is not wanted:
                raise Break("it changes whether a tensor from outside requires grad")
        if function is Tensor.backward or function is autograd_calls.backward:
            if args and kept.overrides_calls(args[0]):
                raise Break(f"it differentiates a {type(args[0]).__name__}, whose __torch_function__ hears of that")
            if self.is_listening():
                raise Break("it differentiates what it has registered hooks for")
            given = differentiate.backward_of_tensor if function is Tensor.backward else differentiate.backward
            return given(self, *args, **kwargs)
        if function is custom_functions.APPLY:
            kept.check_custom_function(self, args[0], args[1:], kwargs)
            images = Images(self)
            args, kwargs = (args[0], *map(images.of, args[1:])), {k: images.of(v) for k, v in kwargs.items()}
        return super().call(function, args, kwargs)

    def is_listening(self) -> bool:
        """Whether hooks are registered when the graph has run."""
        return any(not handle.is_removed for handle in self.listening)

    def enter_context(self, manager):
        for name in ("__enter__", "__exit__"):
            class_attribute(type(manager), name)
        return super().enter_context(manager)

    # ---- patterns
    def match_class(self, subject, cls, count: int, names: tuple[str, ...]) -> tuple | None:
        if not isinstance(cls, type) or count and cls.__flags__ & MATCH_SELF or isinstance(subject, Tensor):
            return super().match_class(subject, cls, count, names)
        if not self.call_now(isinstance, (subject, cls)):
            return None
        places = getattr(cls, "__match_args__", ())
        wanted = (*places[:count], *names)
        if count > len(places) or len(set(wanted)) < len(wanted):
            return super().match_class(subject, cls, count, names)  # which says what is wrong
        try:
            return tuple([self.load_attribute(subject, name) for name in wanted])
        except AttributeError:
            return None

    def match_keys(self, subject, keys: tuple) -> tuple | None:
        if not all(self.contains(subject, key, False) for key in keys):
            return None
        return tuple([self.load_item(subject, key) for key in keys])

    # ---- text, imports, blocks
    def format_value(self, value, conversion, spec: str) -> str:
        if self.holds_tensors(value):
            raise Break("it makes text of a tensor")
        value = self.concrete(value)
        if isinstance(value, (*CONSTANTS, Size)):
            return super().format_value(value, conversion, spec)
        methods = [class_attribute(type(value), name) for name in ("__format__", "__str__", "__repr__")]
        if any(isinstance(m, types.FunctionType) for m in methods) or methods[-1] is object.__repr__:
            raise Break(f"it makes text of a {type(value).__name__}")
        return super().format_value(self.deep(value), conversion, spec)

    def import_name(self, frame: Frame, name: str, fromlist, level: int):
        return self.outside.constant(super().import_name(frame, name, fromlist, level))

    def import_from(self, module, name: str):
        return (
            self.load_attribute(module, name)
            if isinstance(module, types.ModuleType) and hasattr(module, name)
            else super().import_from(module, name)
        )

    def holds_tensors(self, value, depth: int = 3) -> bool:
        """Whether a value is, or a container holds, a tensor of the trace."""
        if isinstance(value, (Tensor, TracedArray)):
            return True
        if depth and isinstance(value, CONTAINERS):
            return any(self.holds_tensors(v, depth - 1) for v in (value.values() if isinstance(value, dict) else value))
        return False

    def deep(self, value, depth: int = 6):
        """A value with containers from outside, at any depth, replaced by copies."""
        if not isinstance(value, CONTAINERS) or depth == 0:
            return value
        value = self.inside(value)
        if isinstance(value, dict):
            inner = {k: self.deep(v, depth - 1) for k, v in value.items()}
            return value if all(inner[k] is value[k] for k in value) else inner
        if type(value) in (list, tuple):
            items = [self.deep(v, depth - 1) for v in value]
            return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
        return value


class UserIterator:
    """An iterator of a class of the user's as native code gets it."""

    def __init__(self, world: Tracing, iterator):
        self.world, self.iterator = world, iterator

    def __iter__(self):
        return self

    def __next__(self):
        return self.world.call_now(class_attribute(type(self.iterator), "__next__"), (self.iterator,), {})


MATCH_SELF = 1 << 22  # the flag of classes whose one positional pattern is the subject itself
