"""Ahead-of-time autograd: a function and its gradient as compiled graphs.

`compile_flat(f, args, ...)` is the stage itself: trace the joint graph, partition it, hand both halves to the compilers,
and give a `Compiled` that behaves like `f`. Inputs given twice are traced once; inputs that show one memory in
different ways, when it is written, are traced as views of one base. The public functions wrap it for functions with
nested arguments and for modules; each kind of arguments (shapes, dtypes, aliasing, `requires_grad`) is compiled once.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from ..capture.fake.mode import FakeTensorMode, fake_mode_of
from ..capture.front.boxing import takes_lists, unboxed
from ..capture.front.compile import counters
from ..capture.shapes import ShapeEnv
from ..capture.trace.make_fx import by_operator
from ..capture.trace.program import WholeCall
from ..capture.trace.subclasses import is_wrapper
from ..core import modes, tree
from ..core.events import publish, stage
from ..core.logs import artifacts, logger
from ..core.modes import ambient
from ..core.node import requires_grad
from ..core.start_up import searched_later
from ..core.tensor import FAKE, Tensor
from ..func.stateless import functional_call
from ..graph import GraphModule
from ..nn.module import Module
from ..runtime.build import together
from .again import Again, differentiable_gradients
from .bases import OTHER_BASES, Place, base_of
from .callables import Later, callable_of, giving_written, placeholder_values, takes_symbols, with_writes
from .config import config
from .context import compiling
from .facts import Joint
from .functionalize import geometry
from .partition import default_partition
from .runtime import Compiled, FlatCall
from .specialise import Specialised, begins_there, offsets
from .subclasses import given_classes, in_their_classes
from .trace import AliasedWrite, JointTrace

AOT_COUNTER = itertools.count()


@dataclass
class Compilers:
    """What turns graphs into callables, and how the joint graph is cut."""

    forward: Callable
    backward: Callable
    inference: Callable
    partition: Callable = default_partition
    decompositions: dict = field(default_factory=dict)
    dynamic: bool = False
    lazy: bool = True  # whether a backward is compiled when it first runs
    writes: bool = False  # whether graphs without a backward write the inputs that the function writes


def compilers(
    fw_compiler,
    bw_compiler=None,
    inference_compiler=None,
    partition_fn=None,
    decompositions=None,
    dynamic=False,
    lazy=True,
    writes=False,
) -> Compilers:
    return Compilers(
        fw_compiler,
        bw_compiler or fw_compiler,
        inference_compiler or fw_compiler,
        partition_fn or default_partition,
        by_operator(decompositions or {}),
        dynamic,
        lazy,
        writes,
    )


# ---- the stage
def compile_flat(f: Callable, args: list, using: Compilers) -> FlatCall:
    """A callable that takes arguments like `args` and gives `f`'s flat outputs."""
    f, classes = in_their_classes(f, args)
    with searched_later():
        result = given_classes(compile_distinct(f, args, using), classes)
    result.offsets = offsets(args) if result.joint.offsets_matter else None
    return result


def compile_distinct(f: Callable, args: list, using: Compilers) -> FlatCall:
    """As `compile_flat`; a tensor given twice is an input once."""
    unique, places = without_duplicates(args)
    if len(unique) != len(args):

        def once(*given):
            return f(*[given[p] for p in places])

        inner = compile_unique(once, unique, using)
        firsts = [places.index(k) for k in range(len(unique))]
        twice = [(i, firsts[p]) for i, p in enumerate(places) if firsts[p] != i] if config.debug_assert else []

        def call(given: list):
            for i, first in twice:
                if given[i] is not given[first]:
                    raise AssertionError(assumed(inner.joint, i, f"be a duplicate of input {first}"))
            return inner([given[i] for i in firsts])

        return inner.called_by(call)
    return compile_unique(f, args, using)


def assumed(joint: Joint, i: int, what: str) -> str:
    """The words for an argument that is not as it was when the function was compiled."""
    return (
        f"At compilation time, graph {joint.number} was compiled under the assumption that input {i} would {what}, but at "
        "runtime this was not the case.  This indicates a guard bug in AOTAutograd or Dynamo, please file a bug to PyTorch."
    )


def without_duplicates(args: list) -> tuple[list, list[int]]:
    """Each tensor once, and for each argument which of those it is."""
    unique: list = []
    seen: dict[int, int] = {}
    places = []
    for a in args:
        if isinstance(a, Tensor):
            if id(a) not in seen:
                seen[id(a)] = len(unique)
                unique.append(a)
            places.append(seen[id(a)])
        else:
            places.append(len(unique))
            unique.append(a)
    return unique, places


SHARED_BY_SUBCLASS = """\
Encountered aliased inputs that are mutated in the graph, but
at least one input/output to the graph is a tensor subclass. This is not supported today: give the function a copy of one of them."""


def compile_unique(f: Callable, args: list, using: Compilers) -> FlatCall:
    """As `compile_flat`, for arguments that are all different tensors."""
    try:
        again = Again(f)
        compiled = compile_traced(trace_joint(f, args, using), using, again)
    except AliasedWrite as clash:
        if any(args[i]._keys & FAKE for i in clash.inputs):  # fakes do not know what they are views of
            raise
        if any(is_wrapper(args[i]) for i in clash.inputs):
            raise RuntimeError(SHARED_BY_SUBCLASS) from clash
        return compile_over_bases(f, args, using, clash.inputs)
    if not config.debug_assert:
        return FlatCall(compiled, compiled)
    plain = [i for i, a in enumerate(args) if isinstance(a, Tensor) and not requires_grad(a)]

    def call(given: list):
        for i in plain:
            if requires_grad(given[i]):
                raise AssertionError(assumed(compiled.joint, i, "not require grad"))
        return compiled(given)

    return FlatCall(call, compiled)


def compile_over_bases(f: Callable, args: list, using: Compilers, shared: list[int]) -> FlatCall:
    """Inputs that share memory become views of one base, which is the graph's first input in their place."""
    others = [i for i in range(len(args)) if i not in shared]
    views = {i: Place(args[i]) for i in shared}
    returned: dict[int, int] = {}  # output -> the input that it is
    reshaped: dict[int, tuple] = {}  # input -> the geometry that the function gives it

    def change(given: list) -> list:
        return [base_of([given[i] for i in shared]), *[given[i] for i in others]]

    def over_base(base, *rest):
        rebuilt = dict(zip(others, rest, strict=True))
        rebuilt |= {i: base if i in whole else place.of(base) for i, place in views.items()}
        leaves, spec = tree.tree_flatten(f(*[rebuilt[i] for i in range(len(rebuilt))]))
        for i, place in views.items():
            if rebuilt[i]._memory is not base._memory:
                raise NotImplementedError(
                    f"set_() or an assignment to .data that gives input {i} other memory, where it shares its memory with other inputs, is "
                    "not implemented"
                )
            if rebuilt[i] is not base and geometry(rebuilt[i]) != place.geometry:
                reshaped[i] = geometry(rebuilt[i])
        returned.update({n: i for n, leaf in enumerate(leaves) for i in shared if leaf is rebuilt[i]})
        return tree.tree_unflatten([0 if n in returned else leaf for n, leaf in enumerate(leaves)], spec)

    bases = change(args)
    whole = {i for i in shared if args[i] is bases[0]}
    is_one = all(t is bases[0] or t._base is bases[0] for t in (args[i] for i in shared))
    try:
        inner = compile_unique(over_base, bases, using)
    except RuntimeError as error:
        if is_one or isinstance(error, NotImplementedError):
            raise
        raise RuntimeError(
            OTHER_BASES
        ) from error  # as views of one base they have a history that they do not have apart
    if inner.joint.tensor_input(0).visible and not is_one:
        raise RuntimeError(OTHER_BASES)

    def call(given: list):
        inputs = change(given)
        for i, (shape, stride, offset) in reshaped.items():
            with modes.masked(modes.GRAD):  # its history is made of the base's again
                given[i].as_strided_(shape, stride, given[i]._offset + offset - views[i].geometry[2])
        outs = list(inner(inputs))
        for n, i in returned.items():
            outs[n] = given[i]
        return outs

    return inner.called_by(call)


def trace_joint(f: Callable, args: list, using: Compilers) -> Joint:
    """The joint graph of a function; without a backward where nothing requires grad, or grad mode is off."""
    given = fake_mode_of(args)
    fake_mode = given or fresh_fake_mode(using.dynamic)
    wanted = any(isinstance(a, Tensor) and requires_grad(a) for a in args)
    recording = bool(ambient.mode & modes.GRAD)

    def traced(backward: bool) -> Joint:
        with modes.masked(0):  # the function may switch recording, and be left by an exception
            return JointTrace(
                f, args, fake_mode=fake_mode, decompositions=using.decompositions, backward=backward
            ).run()

    with stage("joint"):
        joint = traced(wanted and recording)
        if recording and not wanted and any(fact is not None and fact.switched_on for fact in joint.inputs):
            joint = traced(True)
        if wanted and not recording and records_itself(joint):
            joint = traced(True)
            joint.records = True
        return joint


def records_itself(joint: Joint) -> bool:
    """Whether a function that was called with recording off switches it on, and gives results with a history."""
    written = any(joint.tensor_input(i).visible for i in joint.written)
    return written or any(o.kind == "fresh" and o.requires_grad and not o.is_leaf for o in joint.outputs)


def fresh_fake_mode(dynamic: bool) -> FakeTensorMode:
    if not dynamic:
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        mode.symbols_on_demand = True
        return mode
    return FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(), static_shapes=False)


def compile_traced(joint: Joint, using: Compilers, again: Again) -> Compiled:
    """Cut the joint graph and compile both halves."""
    number = joint.number = next(AOT_COUNTER)
    if not joint.differentiable:
        forward_only(joint)
        module, kept = (joint.module, {}) if not using.writes else with_writes(joint)
        module.meta["written"] = {} if kept else joint.replaced()
        _log("aot_graphs", "forward graph", module)
        with compiling(number, "inference"):
            forward = callable_of(using.inference(module, list(joint.primals)))
        if kept:
            forward = giving_written(forward, kept)
        return Compiled(joint, forward if joint.wrapping is None else joint.wrapping.around_forward(forward), None)
    inputs = (list(joint.primals), list(joint.tangents))
    _log("aot_joint_graph", "joint graph", joint.module)
    with stage("partition"):
        forward_module, backward_module = using.partition(joint.module, inputs, num_fwd_outputs=graph_results(joint))
    publish("cut", joint=joint.module, forward=forward_module, backward=backward_module)
    _log("aot_graphs", "forward graph", forward_module)
    _log("aot_graphs", "backward graph", backward_module)
    if joint.backward_error is not None:  # nothing is computed of old values when this has run
        forward_module.meta["written"] = joint.replaced()
    compile_backward = functools.partial(compiled_backward, using, number)
    with together():  # C compilers work on the forward while loops of the backward are made
        with compiling(number, "forward"):
            forward = callable_of(using.forward(forward_module, list(joint.primals)))
        at_once = not using.lazy or config.force_non_lazy_backward_lowering or takes_symbols(backward_module)
        backward = compile_backward(backward_module) if at_once else Later(compile_backward, backward_module)
    around = joint.wrapping
    if around is None:
        differentiable = functools.partial(differentiable_joint, joint, using, again)
        compiled = Compiled(joint, forward, backward, differentiable(joint.module))
        compiled.again = again
        compiled.compile_backward, compiled.differentiable = compile_backward, differentiable
    else:
        compiled = Compiled(joint, around.around_forward(forward), around.around_backward(backward))
    compiled.backward_module = backward_module
    return compiled


def _log(artifact: str, what: str, module: GraphModule) -> None:
    if artifacts[artifact]:
        logger(artifact).debug("%s\n%s", what, module.print_readable(False))


def compiled_backward(using: Compilers, number: int, module: GraphModule) -> Callable:
    with compiling(number, "backward"):
        return callable_of(using.backward(module, placeholder_values(module)))


def forward_only(joint: Joint) -> None:
    """Drop gradients (there are none) from the results of the graph."""
    graph = joint.module.graph
    node = graph.output_node()
    results = node.args[0]
    if len(results) > graph_results(joint):
        node.args = (tuple(results[: graph_results(joint)]),)
        graph.eliminate_dead_code()
        joint.module.recompile()


def graph_results(joint: Joint) -> int:
    """How many results of the graph are the forward's."""
    return joint.results if joint.wrapping is None else joint.wrapping.flat_results


def differentiable_joint(
    joint: Joint, using: Compilers, again: Again, module: GraphModule, absent: tuple[int, ...] = ()
) -> Callable:
    """Gradients as a function of arguments and tangents that can be differentiated, compiled in its turn: of the function called
    again, or the joint graph (`module`), where that knows all histories."""
    gradients = differentiable_gradients(again, joint, module, absent)
    specialised = Specialised(functools.partial(compile_flat, gradients, using=using), using.dynamic)

    def differentiate(primals: list, tangents: list) -> tuple:
        return specialised([*primals, *tangents])

    return differentiate


# ---- public functions
def aot_function(
    fn: Callable,
    fw_compiler: Callable,
    bw_compiler: Callable | None = None,
    partition_fn: Callable = default_partition,
    decompositions: dict | None = None,
    num_params_buffers: int = 0,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Callable | None = None,
    *,
    dynamic: bool = False,
    enable_log: bool = True,
    disable_functionalization: bool = False,
) -> Callable:
    """`fn`, compiled ahead of time at its first call with each kind of arguments."""
    using = compilers(
        fw_compiler,
        bw_compiler,
        inference_compiler,
        partition_fn,
        decompositions,
        dynamic,
        writes=keep_inference_input_mutations,
    )
    known: dict = {}  # structure of the arguments -> what is compiled for it

    @functools.wraps(fn)
    def compiled(*args, **kwargs):
        if ambient.mode & (modes.TRANSFORM | modes.FORWARD):  # vmap and forward mode see the function's own operators
            return fn(*args, **kwargs)
        flat, spec = tree.tree_flatten((args, kwargs))
        if spec not in known:

            def flat_fn(*given):
                inner_args, inner_kwargs = tree.tree_unflatten(given, spec)
                return fn(*inner_args, **inner_kwargs)

            known[spec] = Specialised(functools.partial(compile_flat, flat_fn, using=using), dynamic)
        result = known[spec].made_for(flat)
        return tree.tree_unflatten(result(flat), result.joint.out_spec)

    return compiled


def aot_module(mod: Module, *args, **kwargs) -> Module:
    """A module whose forward (with its parameters and buffers as inputs) is compiled ahead of time."""

    def run(state, args, kwargs):
        return functional_call(mod, state, args, kwargs)

    compiled = aot_function(run, *args, **kwargs)

    class AOTModule(Module):
        def __init__(self):
            super().__init__()
            self.orig_module = mod

        def forward(self, *args, **kwargs):
            state = {**dict(mod.named_parameters()), **dict(mod.named_buffers())}
            return compiled(state, args, kwargs)

    return AOTModule()


def aot_module_simplified(
    mod: Module,
    args,
    fw_compiler: Callable,
    bw_compiler: Callable | None = None,
    partition_fn: Callable = default_partition,
    decompositions: dict | None = None,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Callable | None = None,
    *,
    lazy_backward: bool = True,
    **options,
) -> Callable:
    """A flat module (a captured graph) compiled at once for the example arguments, its backward when it first runs (`lazy_backward`);
    parameters become inputs. Whoever calls the result sees to it that the arguments are of that kind."""
    if any(type(a) is list for a in args):
        if not isinstance(mod, GraphModule):
            raise TypeError(f"aot_module_simplified: only a captured graph takes lists, got {type(mod).__name__}")
        flat = [v for a in args for v in (a if type(a) is list else (a,))]
        return takes_lists(
            aot_module_simplified(
                unboxed(mod, list(args)), flat, fw_compiler, bw_compiler, partition_fn, decompositions,
                keep_inference_input_mutations, inference_compiler, lazy_backward=lazy_backward, **options,
            )
        )  # fmt: skip
    using = compilers(
        fw_compiler,
        bw_compiler,
        inference_compiler,
        partition_fn,
        decompositions,
        lazy=lazy_backward,
        writes=keep_inference_input_mutations,
    )
    names = [*_parameters(mod), *_buffers(mod)]

    def flat_fn(*given):
        return functional_call(mod, dict(zip(names, given, strict=False)), tuple(given[len(names) :]))

    homes = _homes(mod)
    counters["aot_autograd"]["total"] += 1
    known: list[FlatCall] = []  # several only where it matters at which offset inputs begin
    with contextlib.suppress(AliasedWrite):  # it is compiled when it is first called, on tensors that know their bases
        known.append(compile_flat(flat_fn, [*_state(mod), *args], using))

    def found(flat: list) -> FlatCall:
        for result in known:
            if begins_there(result, flat):
                return result
        known.append(compile_flat(flat_fn, flat, using))
        return known[-1]

    def forward(*runtime_args):
        flat = [*[table[name] for table, name in homes], *runtime_args]
        result = found(flat)
        return tree.tree_unflatten(result(flat), result.joint.out_spec)

    def consume(runtime_args: list):
        flat = [*[table[name] for table, name in homes], *runtime_args]
        runtime_args.clear()
        result = found(flat)
        return tree.tree_unflatten(result.consume(flat), result.joint.out_spec)

    forward.consume = consume  # type: ignore[attr-defined]
    if isinstance(mod, GraphModule) and _has_hooks(mod):
        return _by_operators_in_transforms(mod, forward)
    return forward if homes or not known else _direct(known[0]) or forward


def _has_hooks(mod: GraphModule) -> bool:
    """Whether a captured program registers hooks of tensors or nodes."""
    return any(
        isinstance(n.target, WholeCall) and "hook" in n.target.__name__
        for g in mod.modules()
        if isinstance(g, GraphModule)
        for n in g.graph.nodes
    )


def _by_operators_in_transforms(mod: GraphModule, forward: Callable) -> Callable:
    """The compiled function of a program with hooks. Inside `func.grad` a hook belongs to the backward of the innermost level alone,
    which a compiled gradient, differentiated again, does not tell from the others: there, the program runs as operators."""

    def run(*args):
        return mod(*args) if ambient.reverse_levels else forward(*args)

    return run


def _direct(result: FlatCall) -> Callable | None:
    """The shortest way to a compiled function that gives a tuple, from positional arguments; None where there is none."""
    if (
        result.offsets is not None
        or result.call is not result.compiled
        or not tree.is_flat_tuple(result.joint.out_spec)
    ):
        return None
    return result.compiled.direct()


def _parameters(mod: Module) -> dict:
    return dict(mod.named_parameters(remove_duplicate=False))


def _buffers(mod: Module) -> dict:
    return dict(mod.named_buffers(remove_duplicate=False))


def _state(mod: Module) -> list:
    return [*_parameters(mod).values(), *_buffers(mod).values()]


def _homes(mod: Module) -> list[tuple[dict, str]]:
    """Where a module keeps what `_state` lists: (table, name)."""
    homes = []
    for path, kind in [*[(p, "_parameters") for p in _parameters(mod)], *[(p, "_buffers") for p in _buffers(mod)]]:
        owner, _, name = path.rpartition(".")
        homes.append((getattr(mod.get_submodule(owner), kind), name))
    return homes


def nop(module: GraphModule, inputs: list) -> GraphModule:
    """The compiler that changes nothing."""
    return module


def make_boxed_func(f: Callable) -> Callable:
    """A function of positional arguments as one that takes them in a list, and empties it."""

    def boxed(args: list):
        return f(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


compiled_function, compiled_module = aot_function, aot_module
