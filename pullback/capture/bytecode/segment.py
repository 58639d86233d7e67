"""One segment of a program as a graph: from where the frames stand to where it returns, or to where the graph must end.

`Segment` holds the graphs made so far for one state of the frames (which code, at which steps). An `Entry` is one of
them: a generated function that tests its conditions, runs the compiled graph, makes the program's values and does its
effects. It gives the program's value, or leaves frames that stand before the step that could not be captured.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable
from types import CellType
from typing import NamedTuple

from ...core import modes
from ...core.modes import ambient
from ...core.node import AccumulateGrad, requires_grad
from ...core.tensor import Tensor, stride_of
from ...graph import GraphModule
from ...ops.system.operator import Operator
from ...ops.system.overrides import disable_torch_function
from ..fake.mode import DataDependentOutputException, DynamicOutputShapeException
from ..front.boxing import boxed
from ..front.config import config
from ..front.dynamic import Sizes
from ..front.fakes import NO_FAKES, fake_mode_for
from ..trace.graph_trace import PACKAGE
from ..trace.program import Escaped, RefusedByOperator, Unsupported, written_inputs
from ..trace.promises import assert_promises
from .arrays.traced import TracedArray
from .conditions import MISSING, Conditions, compiled
from .differentiate import history
from .frame import NULL, Frame
from .hooked_later import hooks_later
from .kept import before_use
from .liveness import dead_names
from .lookups import noting
from .machine import HANDLERS, Machine
from .native import CONTEXT_BITS, REFUSED, open_devices
from .rebuild import Rebuild
from .signals import BREAKS, Break, Prepare
from .sources import Source
from .tracing import FrameTrace, Tracing, Unseen
from .warned import leave_all as leave_warnings

MISS, STOP = object(), object()  # what an entry gives: not mine; frames were left
RESTARTS = 20


class Uncapturable(Exception):
    """A segment that cannot be captured: why."""


class Place(NamedTuple):
    """Where a program broke, in words, and what was said of breaks there (`GraphBreaks`)."""

    where: str | None = None
    error: bool | None = None


class Restart(Exception):
    """Capture again, up to this step."""

    def __init__(self, stop_at: int, reason: str, error: Exception | None = None, where: str | None = None):
        self.stop_at, self.reason, self.error = stop_at, reason, error  # error: what the program itself raises
        self.place = Place(where, BREAKS.error)


def spread_call(machine: Machine, frame: Frame, arg) -> int | None:
    """`f(*args, **kwargs)`: what is spread is read."""
    stack, world = frame.stack, machine.world
    at = -1 - arg
    if type(stack[at]) is not tuple or world.outside.is_outside(stack[at]):
        stack[at] = tuple(world.all_of(stack[at]))
    if arg:
        stack[-1] = dict(world.inside(stack[-1]))
    return HANDLERS["CALL_FUNCTION_EX"](machine, frame, arg)


def leave(name: str) -> Callable:
    """A step that leaves a frame: a generator from outside is left by plain Python, since that changes it."""

    def step(machine: Machine, frame: Frame, arg) -> int | None:
        if frame.generator is not None and machine.world.outside.is_outside(frame.generator):
            raise Break("it leaves a generator that was made before the graph")
        return HANDLERS[name](machine, frame, arg)

    return step


class TracingMachine(Machine):
    """A machine that can be told where to stop, and knows where it could have."""

    handlers = {
        **HANDLERS,
        "CALL_FUNCTION_EX": spread_call,
        "YIELD_VALUE": leave("YIELD_VALUE"),
        "RETURN_VALUE": leave("RETURN_VALUE"),
    }
    stop_at = -1
    reason = ""
    created = 0  # how many nodes there were before the step
    was_nested = False  # whether the step that broke had begun to run functions of the program
    bottom = 0  # the last step of the bottom frame
    loops: list[tuple[int, int]] = []  # (first step, last step) of the bottom frame's loops
    headers: frozenset[int] = frozenset()

    def watch(self, frame: Frame, stop_at: int, reason: str) -> None:
        """Note where the bottom frame goes."""
        self.stop_at, self.reason = stop_at, reason
        self.loops = [
            (arg, i)
            for i, (name, arg) in enumerate(frame.steps.code)
            if "JUMP" in name and isinstance(arg, int) and arg <= i
        ]
        self.headers = frozenset(first for first, _ in self.loops)
        self.reached: dict[int, int] = {}  # when a loop was last at its beginning

    def step(self) -> None:
        if self.outer is None:
            if self.count == self.stop_at:
                raise Break(self.reason)
            if len(self.frames) == 1:
                self.bottom = self.count
                index = self.frames[0].index
                if index in self.headers:
                    self.reached[index] = self.count
        self.created = self.world.trace.created
        super().step()

    def unwind(self, exception: BaseException) -> int:
        for frame in reversed(self.frames):
            if frame.steps.handler(frame.index - 1 if frame.waiting else frame.index) is not None:
                break
            if frame.generator is not None and self.world.outside.is_outside(frame.generator):
                self.undo()
                raise Break("an error leaves a generator that was made before the graph")
        return super().unwind(exception)

    def where(self) -> str | None:
        """The user's line that is being executed: the innermost one outside of this package."""
        own = [frame for frame in self.frames if not frame.code.co_filename.startswith(PACKAGE)]
        return (own or self.frames)[-1].where() if self.frames else None

    def undo(self) -> None:
        self.was_nested = self.marked == self.count
        super().undo()

    def is_undone(self) -> bool:
        """Whether the step that broke has left nothing behind: what it did through functions of the program stays in the journal."""
        return not self.was_nested and self.world.trace.created == self.created

    def better_stop(self) -> int:
        """Where to stop rather than here: before the call that the bottom frame is in, at the beginning of its loop."""
        if len(self.frames) > 1 and not config.nested_graph_breaks:
            return self.bottom
        at = self.frames[0].index - (1 if self.frames[0].waiting else 0)
        around = [first for first, last in self.loops if first <= at <= last and self.reached.get(first, 0) > 0]
        return max((self.reached[first] for first in around), default=self.count)


class Entry:
    """A captured segment. `run(frames)` gives a value, `MISS` or `STOP`."""

    def __init__(
        self,
        run: Callable,
        explain: Callable,
        reason: str | None,
        text: str,
        graph: GraphModule | None,
        conditions: list[str],
    ):
        self.run, self.explain, self.reason, self.text, self.graph = run, explain, reason, text, graph
        self.conditions = conditions  # what is tested, in words
        self.is_opened = False  # whether a short way to it was looked for

    def why_not(self, frames: list[Frame]) -> str:
        """What of its conditions these frames do not meet, in words."""
        with disable_torch_function():
            return self.explain(frames)


class Wanted(NamedTuple):
    """What is asked of a graph: lists among the locals of the bottom frame that are its own to empty, and whether it is
    compiled even where it computes nothing; whether who called the frames may hook what they give; and what leaves out
    conditions of it that the user does without."""

    stolen: tuple[str, ...] = ()
    empty: bool = False
    hooked: bool = False
    fewer: Callable[[Conditions], None] | None = None
    whole: bool = False  # whether a graph that ends early is an error


class Left(NamedTuple):
    """What a program leaves behind: whether it records, autocast, and settings."""

    grad: int
    autocast: dict
    settings: dict


class Capture:
    """One attempt: interprets frames in the tracing world, and makes an entry of what it saw."""

    def __init__(
        self, frames: list[Frame], compile: Callable, broke: Callable, sizes: Sizes, wanted: Wanted = Wanted()
    ):
        self.given, self.compile, self.broke, self.sizes = frames, compile, broke, sizes
        self.stolen, self.empty, self.hooked, self.fewer, self.whole = wanted
        self.unprepared: frozenset[int] = frozenset()

    def run(self, stop_at: int, reason: str, place: Place = Place()) -> Entry:
        """Interpret, up to a step (-1: to the end); raises `Restart` where it must be another one. `place`: where the
        program broke, if it stops before that."""
        fake_mode = fake_mode_for(self.sizes.has_symbols())
        self.trace = trace = FrameTrace(fake_mode)
        self.world = world = Tracing(trace, self.sizes)
        world.whole, world.unprepared = self.whole, self.unprepared
        frames = [self._entered(k, f) for k, f in enumerate(self.given)]
        machine = world.top = TracingMachine(world, frames)
        machine.watch(frames[0], stop_at, reason)
        self.ambient_test = world.outside.conditions.ambient_test()
        self.overrides = ambient.function_disabled
        if self.overrides:
            world.outside.test_overrides()
        outside, hooks, self.autocast = ambient.change(modes.SAVED_HOOKS), ambient.saved_hooks, dict(ambient.autocast)
        ambient.saved_hooks = []  # those around the call are for what the graph saves when it runs, not for fakes
        self.start, self.error, self.devices = ambient.mode, BREAKS.error, open_devices()
        value, ended = None, None
        try:
            try:
                with fake_mode, trace, noting(world.outside.lookups):
                    value = machine.run()
            except Break as error:
                ended = error.reason
                if error.stop_at is not None and 0 < error.stop_at < machine.count:
                    raise Restart(error.stop_at, ended, where=machine.where()) from None
                if machine.count != stop_at or machine.better_stop() != machine.count:
                    better = machine.better_stop()
                    if better != machine.count or not machine.is_undone():
                        raise Restart(better, ended, where=machine.where()) from None
            except REFUSED as error:
                own = error if isinstance(error, RefusedByOperator) else None
                raise Restart(machine.bottom, str(error), own) from None
            except Exception as error:
                raise Restart(machine.bottom, f"it raises {type(error).__name__}: {error}", error) from error
            self._check_context(world, ended, machine)
            if ended is not None:
                self.empty = False
                BREAKS.error = BREAKS.error if place.error is None else place.error
                self.broke(ended, place.where or machine.where())
            left = Left(int(ambient.mode) & (modes.GRAD | modes.ASKED), dict(ambient.autocast), modes.settings())
            ambient.set_autocast(self.autocast)
            modes._set_settings(world.first_settings)
            ambient.restore(self.start)
            ambient.function_disabled = max(1, self.overrides)
            return self._entry(machine, value, ended, left)
        except Break as error:  # something that the program holds cannot be made again
            raise Uncapturable(error.reason) from error
        except Escaped as error:
            raise Uncapturable(str(error)) from error
        finally:
            ambient.saved_hooks, BREAKS.error = hooks, self.error
            modes._set_settings(world.first_settings)
            ambient.set_autocast(self.autocast)
            ambient.default_device, ambient.devices_before = self.devices[0], list(self.devices[1:])
            ambient.restore(outside)
            ambient.function_disabled = self.overrides
            leave_warnings(world)
            world.let_generators_go()
            world.journal.take_back()
            world.let_go()
            for frame in frames:  # the machine lives until garbage is collected; the program's tensors must not
                frame.locals.clear()
                frame.stack.clear()

    def _entered(self, k: int, frame: Frame) -> Frame:
        """A frame of the program: nothing of what it holds has been read."""
        outside = self.world.outside
        result = frame.copy()
        result.function = frame.function
        for name, value in frame.locals.items():
            result.locals[name] = Unseen(value, outside.sources.get("local", None, (k, name), f"L{k or ''}[{name!r}]"))
        self._store_at_once(k, result)
        for i, value in enumerate(result.stack):
            if value is not NULL:
                result.stack[i] = outside.enter(value, outside.sources.get("stack", None, (k, i)))
        for name, cell in frame.cells.items():
            if frame.index == 0 and name in frame.code.co_cellvars:
                result.cells[name] = self._own_cell(cell, outside.sources.get("cell", None, (k, name)))
            elif not outside.is_outside(cell):
                outside.enter_table(cell, outside.sources.get("cell", None, (k, name)))
        if frame.generator is not None:
            outside.enter(frame.generator, outside.sources.get("generator", None, k))
        return result

    def _own_cell(self, cell: CellType, source: Source) -> CellType:
        """A cell that a call has just made: nobody else has it, so it is the program's own."""
        try:
            value = cell.cell_contents
        except ValueError:
            return CellType()
        return CellType(self.world.outside.enter(value, self.world.outside.sources.contents(source)))

    def _store_at_once(self, k: int, frame: Frame) -> None:
        """Values on the stack that only wait to be stored are not read: a loop's variable may never be."""
        while frame.stack and frame.steps.code[frame.index][0] == "STORE_FAST" and not frame.waiting:
            value = frame.stack.pop()
            frame.locals[frame.steps.code[frame.index][1]] = Unseen(
                value, self.world.outside.sources.get("stack", None, (k, len(frame.stack)))
            )
            frame.index += 1

    def _check_context(self, world: Tracing, ended: str | None, machine: TracingMachine) -> None:
        """The program must leave the ambient state as it found it, but for recording; or else stop before it changed."""
        is_elsewhere = BREAKS.error is not self.error or open_devices() != self.devices
        is_elsewhere |= ambient.function_disabled != self.overrides or bool(world.warning_blocks)
        is_elsewhere |= ended is not None and modes.settings() != world.first_settings and bool(world.context_changes)
        if (ambient.mode ^ self.start) & CONTEXT_BITS or is_elsewhere:
            where = machine.where()
            raise Restart(world.context_changes[-1] - 1, ended or "a context is open where the graph ends", where=where)

    # ---- the entry
    def _entry(self, machine: TracingMachine, value, ended: str | None, left: Left) -> Entry:
        rebuild = Rebuild(self.world)
        conditions = self.world.outside.conditions
        effects = [rebuild.effect(e) for e in self.world.journal.log]
        before = [rebuild.effect(e) for e in self.world.journal.let_go_first()]
        if ended is None:
            last = [f"return {rebuild.expression(value)}"]
        else:
            self._forget_dead(machine)
            last = [f"frames[:] = [{', '.join(rebuild.frame(f) for f in machine.frames)}]", "return STOP"]
            self.stolen = self._read_no_more("\n".join([*rebuild.lines, *effects, *last]))
        self._check_dropped(rebuild)
        self._check_hooked_later(machine, rebuild, ended)
        self._check_leaves(rebuild)
        records = self._records()
        graph = self._graph(rebuild)
        written = self._written()
        with modes.masked(modes.AUTOCAST, records), disable_torch_function():  # what those do, the graph has
            run = self._compile(graph) if graph is not None else None
            run = None if self.is_dead else run
        modes._set_settings(self.world.first_settings)
        self._sizes_test()
        conditions.sharing_test(self.world.outside.tensors, written)
        self.world.outside.tell_apart()
        lookups = self.world.outside.lookups
        conditions.put_first(lookups.tests(conditions), lookups.classes)
        calls = self._call_lines(rebuild, run, left, records, "\n".join([*rebuild.lines, *effects, *last]))
        if self.fewer is not None:
            self.fewer(conditions)
        prologue = self._prologue()
        body = conditions.body()
        if (
            self.world.outside.overrides
        ):  # what the tests ask of tensors, their classes do not hear: see `ops.system.offers`
            self.ambient_test += f" and ambient.function_disabled == {self.overrides}"
            conditions.namespace["disable_torch_function"] = disable_torch_function
        lines = [*prologue, f"if not ({self.ambient_test}): return MISS"]
        lines += ["try:", *("    " + line for line in body or ["pass"]), "except MISSING: return MISS"]
        made = "|".join(
            [r"r\d+", *re.findall(r"^(\w+)(?: =|,)", "\n".join(rebuild.lines), re.MULTILINE)]
        )  # not there yet
        lines += [line for line in before if not re.search(rf"\b(?:{made})\b", line)]
        lines += [*calls, *rebuild.lines, *effects, *last]
        text = "\n".join(["def entry(frames):", *("    " + line for line in lines)])
        conditions.namespace.update(MISS=MISS, STOP=STOP, run=run, MISSING=MISSING)
        changed = "grad mode, autocast, inference mode, the default dtype or the default device changed"
        first = [*prologue, f"if not ({self.ambient_test}): return {changed!r}"]
        explain = functools.partial(conditions.explain, first)
        return Entry(compiled(text, conditions.namespace, "entry"), explain, ended, text, graph, conditions.words)

    def _forget_dead(self, machine: TracingMachine) -> None:
        """Drop tensors that the program computed and will not read again: the graph need not give them."""
        for frame in machine.frames:
            for name in dead_names(frame):
                value = frame.locals[name]
                is_made = isinstance(value, (Tensor, TracedArray)) and self.world.outside.source_of(value) is None
                if is_made or name in self.stolen and frame is machine.frames[0]:
                    del frame.locals[name]

    def _read_no_more(self, after: str) -> tuple[str, ...]:
        """The stolen lists that nothing reads in what follows the graph: others are left to the next one."""
        variable, source = self.world.outside.conditions.variable, self.world.outside.sources.get
        return tuple(n for n in self.stolen if not _names(variable(source("local", None, (0, n))), after))

    def _check_hooked_later(self, machine: TracingMachine, rebuild: Rebuild, ended: str | None) -> None:
        """A tensor that the program may hook after the graph must be used after it only: what is computed of it in the same
        graph has a gradient that does not pass the tensor outside."""
        results = [t for t in rebuild.results if isinstance(t, Tensor) and requires_grad(t)]
        steps = [step for t in results if (step := before_use(self.world, t)) is not None and 0 < step < machine.count]
        if steps and (self.hooked or any(map(hooks_later, machine.frames))):
            raise Restart(min(steps), ended or "it gives a tensor that its caller may hook", where=machine.where())

    def _check_dropped(self, rebuild: Rebuild) -> None:
        """A generator that is dropped half way leaves its blocks then, and what they do on the way is not captured."""
        for generator in list(self.world.generators):
            if generator.is_inside_block and id(generator) not in rebuild.variables:
                raise Break(f"it drops the generator {generator.__name__} half way, inside of a block")

    def _check_leaves(self, rebuild: Rebuild) -> None:
        """A leaf that the program makes, and of which a result that outlives the graph has its history, must be made outside of it."""
        result = self.world.made_leaves
        bare = result.keys() - self.world.hooked_leaves  # made again without history
        lasting = (
            [t for t in rebuild.results if isinstance(t, Tensor) and requires_grad(t) and id(t) not in bare]
            if result
            else []
        )
        if lasting:
            leaves = {id(n.variable) for n in history(lasting) if isinstance(n, AccumulateGrad)}
            steps = [step for key, (_, step) in result.items() if key in leaves]
            if steps:
                raise Restart(min(steps) - 1, "it makes a tensor that requires grad")

    def _records(self) -> int:
        """Whether the graph is to run with recording on, which a compiler asks for: where the program records later, though it
        does not at first, the graph itself switches recording off."""
        trace, records = self.trace, self.start & modes.GRAD
        if not records and any(n.target is modes._set_grad_enabled for n in trace.graph.nodes):
            records = modes.GRAD
            first = next((n for n in trace.graph.nodes if n.op != "placeholder"), None)
            with trace.graph.inserting_before(first):
                trace.graph.create_node(
                    "call_function", modes._set_grad_enabled, (False,), {}, name="_set_grad_enabled"
                )
        trace.finish_grad_mode(records)
        return records

    def _prologue(self) -> list[str]:
        return [
            f"l{k}, s{k}, e{k} = frames[{k}].locals, frames[{k}].stack, frames[{k}].cells"
            for k in range(len(self.given))
        ]

    def _graph(self, rebuild: Rebuild) -> GraphModule | None:
        """The graph, with the results that the program's values need; None where the program computes nothing. A graph of which
        nothing is needed (`is_dead`) is one that its backend sees, as it sees all that a program computes, and that is not run."""
        trace = self.trace
        if trace.fake_mode.shape_env is not None:
            assert_promises(trace, trace.fake_mode.shape_env, in_words=True)
        trace.graph.output(tuple(rebuild.results_of_graph()))
        calls = [n for n in trace.graph.nodes if n.op not in ("placeholder", "output")]
        self.is_dead = not (rebuild.results or self.empty or any(n.is_impure() for n in calls))
        if not calls and self.is_dead:
            return None
        if not self.is_dead:
            trace.graph.eliminate_dead_code()
        self._drop_unused()
        return GraphModule(dict(trace.constants), trace.graph)

    def _written(self) -> frozenset[int] | None:
        """Which of the tensors that conditions are about may be written by the graph, by their numbers; None where any may be."""
        nodes = written_inputs(self.trace.graph)
        if nodes is None:
            return None
        given = [n for n in self.trace.graph.nodes if n.op == "placeholder"]
        places = self.used if nodes else range(len(given))
        sources = {id(self.trace.inputs[i]) for i, node in zip(places, given, strict=True) if node in nodes}
        return frozenset(i for i, (s, _) in enumerate(self.world.outside.conditions.tensors) if id(s) in sources)

    def _drop_unused(self) -> None:
        """Leave out inputs that nothing is computed of: a backward would otherwise visit what made them."""
        given = [n for n in self.trace.graph.nodes if n.op == "placeholder"]
        self.used = [i for i, node in enumerate(given) if node.users]
        for node in given:
            if not node.users:
                self.trace.graph.erase_node(node)

    def _compile(self, graph: GraphModule) -> Callable:
        examples = [self.trace.examples[i] for i in self.used]
        if self.stolen:
            lists = [self.world.outside.sources.get("local", None, (0, name)) for name in self.stolen]
            self.taken = [i for i in self.used if self.trace.inputs[i].base in lists]
            graph, examples = boxed(graph, [self.used.index(i) for i in self.taken], examples)
        try:
            return self.compile(graph, examples)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            if ambient.mode & modes.ANOMALY:
                raise Uncapturable("anomaly mode looks at the data of each gradient") from error
            raise Uncapturable(f"its gradient depends on the data of a tensor ({error})") from error
        except RefusedByOperator:
            raise
        except Unsupported as error:
            raise Uncapturable(str(error)) from error

    def _call_lines(self, rebuild: Rebuild, run: Callable | None, left: Left, records: int, after: str) -> list[str]:
        """The call of the graph, with recording and without autocast as it was compiled; `after`: what follows it."""
        out = [f"l0[{name!r}].clear()" for name in self.stolen]
        switches_settings = any(n.target is modes._set_settings for n in self.trace.graph.nodes)
        if run is not None:
            arguments, before = self._inputs(after)
            results = "".join(f"r{i}, " for i in range(len(rebuild.results)))
            call = f"{results}= run({arguments})" if results else f"run({arguments})"
            switched = modes.GRAD | modes.AUTOCAST
            own = self.start & ~modes.AUTOCAST | records
            switches = any(n.target is modes._set_grad_enabled for n in self.trace.graph.nodes)
            if self.world.outside.overrides:  # the graph has what they come to
                call = f"with disable_torch_function(): {call}"
            out = [*before, call]
            if switches or (own ^ self.start) & switched:
                around, back = (
                    f"if ambient.mode & {switched} != {wanted}: ambient.change({switched}, {wanted})"
                    for wanted in (own & switched, self.start & switched)
                )
                out = [*before, around, "try:", f"    {call}", "finally:", f"    {back}"]
        if left.grad != self.start & (modes.GRAD | modes.ASKED):
            out.append(f"ambient.change({modes.GRAD | modes.ASKED}, {left.grad})")
        if left.autocast != self.autocast:
            out.append(f"ambient.set_autocast({self.world.outside.conditions.constant(left.autocast)})")
        if left.settings != self.world.first_settings or switches_settings:
            self.world.outside.conditions.namespace["set_settings"] = modes._set_settings
            out.append(f"set_settings({self.world.outside.conditions.constant(left.settings)})")
        return out

    def _inputs(self, after: str) -> tuple[str, list[str]]:
        """(the arguments of the graph, lines before its call): of what is in a stolen list, only the graph's own list is
        left to hold it, unless what follows the call reads it."""
        conditions = self.world.outside.conditions
        names = {i: conditions.variable(self.trace.inputs[i]) for i in self.used}
        if not self.stolen:
            return ", ".join(names.values()), []
        taken = [names[i] for i in self.taken]
        dropped = [name for name in dict.fromkeys(taken) if not _names(name, after)]
        lines = [f"taken = [{', '.join(taken)}]", *(f"l0[{name!r}].clear()" for name in self.stolen)]
        lines += [f"{' = '.join(dropped)} = None"] if dropped else []
        return ", ".join(["taken", *(name for i, name in names.items() if i not in self.taken)]), lines

    def _sizes_test(self) -> None:
        """The conditions on sizes that are symbols; and where tensors begin, if the program counts from there."""
        env, conditions = self.trace.fake_mode.shape_env, self.world.outside.conditions
        variables = [conditions.variable(s) for s in self.trace.inputs]
        rows = list(zip(self.trace.examples, self.trace.inputs, variables, strict=True))
        loose = self.world.outside.loose  # a size of 0 or 1 is no symbol, but was not tested with the tensor
        symbolic = [row for row in rows if _has_symbols(row[0]) or id(row[1]) in loose]
        if env is not None and symbolic:
            check = env.compile_guards([e for e, _, _ in symbolic], [s.name for _, s, _ in symbolic])
            name, given = conditions.constant(check), ", ".join(v for _, _, v in symbolic)
            conditions.test(f"{name}({given})", "; ".join(check.texts), f"{name}.explain({given})")
        operators = [n.target for n in self.trace.graph.nodes if isinstance(n.target, Operator)]
        if any(op.declared.names_memory for op in operators):
            for example, source, v in rows:
                if isinstance(example, Tensor) and isinstance(example._offset, int):
                    conditions.test(
                        f"{v}.storage_offset() == {example._offset}",
                        f"{source.name}.storage_offset() == {example._offset}",
                    )


def _names(variable: str, text: str) -> bool:
    """Whether lines of Python use a variable."""
    return re.search(rf"\b{variable}\b", text) is not None


def _has_symbols(example) -> bool:
    """Whether an input is a symbol, or a tensor with symbols among its sizes."""
    if not isinstance(example, Tensor):
        return True
    return any(type(s) is not int for s in (*example.shape, *stride_of(example), example._offset))


class Segment:
    """The graphs of one state of the frames."""

    def __init__(self, sizes: Sizes, wanted: Wanted = Wanted()):
        self.sizes, self.wanted = sizes, wanted
        self.entries: list[Entry] = []
        self.is_uncaptured = False  # whether nothing can be captured here
        self.is_full = False  # whether the limit of graphs was reached, and said so

    def capture(
        self,
        frames: list[Frame],
        compile: Callable,
        broke: Callable,
        escaped: Callable,
        attempt: type[Capture] = Capture,
    ) -> Entry:
        """Another entry, for frames like these, by attempts of a kind.

        `broke(reason, where)` hears of a graph that ends early, `escaped(error)` of what the program itself raises;
        both may raise.
        """
        stop_at, reason, place, unprepared, attempts = -1, "", Place(), frozenset[int](), 0
        while attempts < RESTARTS:
            attempts += 1
            capture = attempt(frames, compile, broke, self.sizes, self.wanted)
            capture.unprepared = unprepared
            try:
                return capture.run(stop_at, reason, place)
            except Prepare as first:
                unprepared |= {id(first.module)}  # it is tried once: what it raises, the program raises
                with contextlib.suppress(Exception):
                    first.prepare()
                    attempts = 0
            except Restart as again:
                if again.error is not None:
                    escaped(again.error)
                if again.stop_at == stop_at or again.stop_at < 0:
                    raise Uncapturable(again.reason) from again
                stop_at, reason = again.stop_at, again.reason
                place = again.place if place.where is None else place
            except NO_FAKES as error:  # of what the frames hold
                raise Uncapturable(str(error)) from error
        raise Uncapturable(f"it could not be captured in {RESTARTS} attempts: {reason}")
