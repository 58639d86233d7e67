"""`export`: a module, called once on fakes, as a graph of operators with all state as inputs.

In: a module and example arguments. Out: an `ExportedProgram`. The graph is taken above autograd, so that it can be
differentiated by whoever runs it: composite operators stay whole, writes stay writes
(`ExportedProgram.run_decompositions` makes it functional). What always holds: the module is afterwards as it was.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable
from typing import Any

from ..capture.fake.mode import DataDependentOutputException, DynamicOutputShapeException
from ..capture.front.compile import CompiledFunction, UserError
from ..capture.front.config import config
from ..capture.front.fakes import any_number, refuse_hidden
from ..capture.trace.program import ProgramTrace
from ..capture.trace.promises import assert_promises
from ..core import modes, tree
from ..core.modes import ambient
from ..core.tensor import Tensor
from ..func.stateless import replaced_state
from ..graph import GraphModule, Node, traceback
from ..joint.config import config as joint
from ..nn.module import Module
from .along import AlongEnv
from .config import config as settings
from .constraints import ExportEnv, Links, conditions_of, context_of, ranges_of, specs_of
from .conversions import OPERATORS, KeptConversions
from .exported_program import ExportedProgram
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    ModuleCallEntry,
    ModuleCallSignature,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from .inputs import argument_names, leaf_names, leaf_places
from .leaks import warn_of_leaks
from .modules import ModuleStack, attribute, changed_attributes, restored, snapshot
from .numbers import fill_numbers, symbolic_builtins

SIMPLE = (int, float, bool, str, complex, type(None))


def export(
    mod: Module,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The program that a module is, for arguments like these. With `strict`, its bytecode must be capturable whole, too."""
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    for name in preserve_module_call_signature:
        mod.get_submodule(name)  # raises for one that there is not
    env = AlongEnv() if joint.fake_tensor_propagate_real_tensors else None
    if strict and env is None:
        refuse_breaks(mod, args, kwargs or {})
    preserved = tuple(preserve_module_call_signature)
    deferred = prefer_deferred_runtime_asserts_over_guards
    args = tuple(args)  # a named tuple is spread as any other
    return Export(mod, args, dict(sorted((kwargs or {}).items())), dynamic_shapes, preserved, deferred, env).run()


def export_at(
    mod: Module, args: tuple, kwargs: dict[str, Any] | None = None, dynamic_shapes: Any = None, *, pre_dispatch: bool = False, **options: Any,
) -> ExportedProgram:  # fmt: skip
    """`export`, above autograd (`pre_dispatch`) or, as a functional graph, below."""
    program = export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, **options)
    return program if pre_dispatch else program.run_decompositions({})


class Export:
    """One call of `export`."""

    def __init__(
        self,
        mod: Module,
        args: tuple,
        kwargs: dict,
        dynamic_shapes: Any,
        preserved: tuple[str, ...] = (),
        deferred: bool = False,
        env: ExportEnv | None = None,
    ):
        self.mod, self.args, self.kwargs = mod, args, kwargs
        self.specs = specs_of(mod, args, kwargs, dynamic_shapes)
        self.names = leaf_names(mod, args, kwargs)
        self.flat, self.in_spec = tree.tree_flatten((args, kwargs))
        self.places = [
            re.sub(r"^\w+", lambda m: f"L['{m.group()}']", place)
            for place in leaf_places(argument_names(mod, args, kwargs), self.in_spec)
        ]
        self.env = env or ExportEnv()
        self.env.prefer_deferred_runtime_asserts_over_guards = deferred
        self.fake_mode = self.env.fake_mode(allow_non_fake_inputs=True, static_shapes=False, export=True)
        self.trace = ProgramTrace(self.fake_mode)
        self.trace.apart = OPERATORS
        self.links = Links(self.env)
        self.inputs: list[InputSpec] = []
        self.constants: dict[str, Any] = {}
        self.modules = ModuleStack(mod, preserved, self.trace.outside)
        self.replaced: dict[Node, Node] = {}  # nodes of constants that became inputs
        self.kept: list[Tensor] = []  # arguments that stand for others, so that no other tensor gets their identity

    def run(self) -> ExportedProgram:
        at_start = ambient.mode & modes.GRAD
        self.state = self._state()
        given = self._user_inputs()
        self.first_user = self._placeholders()[len(self.state)] if self.flat else None
        out = self._call(*tree.tree_unflatten(given, self.in_spec))
        self.trace.finish_grad_mode(at_start)
        outputs, out_spec = self._outputs(out)
        self.trace.stacks = False
        self._note_requires_grad()
        assert_promises(self.trace, self.env)
        self.trace.graph.output(tuple(outputs))
        fill_numbers(self.trace.graph, self.fake_mode)
        self._drop_dead_code()
        constants = self._lift_constants()
        self.links.check()
        self.env.traced = True
        result = self._program(constants, out_spec)
        result._recording = bool(at_start)
        if settings.detect_non_strict_fake_tensor_leaks:
            del out, outputs, given
            warn_of_leaks(self.fake_mode, self.trace, list(self.state.values()))
        result._module_aliases = {n: names[0] for names in self.modules.names.known.values() for n in names[1:]}
        return result

    def _note_requires_grad(self) -> None:
        """What stands on inputs wants gradients where they do."""
        values = [*self.state.values(), *self.flat]
        for node, value in zip(self._placeholders(), values, strict=False):
            if isinstance(value, Tensor) and value.requires_grad and isinstance(node.meta.get("val"), Tensor):
                node.meta["val"] = node.meta["val"].detach().requires_grad_()

    def _placeholders(self) -> list[Node]:
        return self.trace.graph.find_nodes(op="placeholder")

    # ---- what goes in
    def _state(self) -> dict[str, Tensor]:
        """Fakes of parameters and buffers, which are the first inputs."""
        temporary = {
            f"{prefix}.{name}" if prefix else name
            for prefix, module in self.mod.named_modules()
            for name in module._non_persistent_buffers_set
        }
        result = {}
        for name, p in self.mod.named_parameters():
            result[name] = self.trace.input(p, "p_" + name.replace(".", "_"), f"self.{name}")
            self._describe(InputKind.PARAMETER, name)
        for name, b in self.mod.named_buffers():
            result[name] = self.trace.input(b, "b_" + name.replace(".", "_"), f"self.{name}")
            self._describe(InputKind.BUFFER, name, name not in temporary)
            if name in temporary:
                self.constants[name] = b
        return result

    def _describe(self, kind: InputKind, target: str, persistent: bool | None = None) -> None:
        self.inputs.append(InputSpec(kind, TensorArgument(self.trace.last_input.name), target, persistent))

    def _user_inputs(self) -> list:
        """Fakes of the arguments; what is no tensor stands for itself, unless it was asked to be a symbol."""
        given, self.user_specs, sizes, known = [], [], [], {}
        for name, place, value, spec in zip(self.names, self.places, self.flat, self.specs, strict=True):
            if isinstance(value, Tensor):
                if id(value) in known:  # each argument is an input of its own, whatever the example shares
                    value = value.detach().requires_grad_(value.requires_grad)
                    self.kept.append(value)
                known[id(value)] = value
                result = self.trace.input(value, name, place, context_of(value, spec))
                sizes += [(f"{place}.size()[{d}]", result.shape[d], dim) for d, dim in spec.items() if dim is not None]
                arg: Any = TensorArgument(self.trace.last_input.name)
            elif spec is not None:
                symbol = any_number(self.env, value, place)
                result = self.trace.input(symbol, name)
                arg = SymIntArgument(self.trace.last_input.name)
            else:
                self._refuse_input(name, value)
                result = self.trace.input(value, name)
                arg = ConstantArgument(self.trace.last_input.name, value)
            given.append(result)
            self.user_specs.append(InputSpec(InputKind.USER_INPUT, arg, None))
        self.links.link(sizes)
        return given

    def _refuse_input(self, name: str, value: Any) -> None:
        if not isinstance(value, SIMPLE):
            raise UserError(
                f"Unsupported input type {type(value)} for input {name}. Export only supports pytree containers of basic types (Tensor, int, float, ...) as input. To register a custom dataclass, use torch.export.register_dataclass."
            )

    # ---- the call
    def _call(self, args: tuple, kwargs: dict) -> Any:
        before = snapshot(self.mod)
        try:
            with (
                replaced_state(self.mod, self.state), self.modules, symbolic_builtins(), self.fake_mode, self.trace,
                KeptConversions(),
            ):  # fmt: skip
                out = self.mod(*args, **kwargs)
                self._write_assigned_buffers()
                changed = changed_attributes(self.mod, before)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise UserError(f"it depends on the data of a tensor ({error}){self._line(error)}") from error
        finally:
            restored(self.mod, before)
        for name, value in changed:
            if isinstance(old := attribute(before, name), Tensor) and old is not value:
                raise ValueError(
                    f"The tensor attribute self.{name} was assigned during export. Such attributes must be registered as buffers using the `register_buffer` API (https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer)."
                )
            if isinstance(value, Tensor):
                warnings.warn(
                    f"The tensor attribute self.{name} was assigned during export. Such attributes must be registered as buffers using the "
                    "`register_buffer` API: the assignment is not part of the exported program", stacklevel=5,
                )  # fmt: skip
                continue
            warnings.warn(f"export: the assignment to self.{name} is not part of the exported program", stacklevel=5)
        return out

    def _line(self, error: BaseException) -> str:
        import traceback as tracebacks

        own = __file__.rsplit("/", 2)[0]
        lines = [f for f in tracebacks.extract_tb(error.__traceback__) if not f.filename.startswith((own, "<"))]
        return f'\nThe following call raised this error:\n  File "{lines[-1].filename}", line {lines[-1].lineno}, in {lines[-1].name}\n    {lines[-1].line}' if lines else ""  # fmt: skip

    def _write_assigned_buffers(self) -> None:
        """A buffer that the module assigned to gets the new value."""
        for name, fake in self.state.items():
            path, _, leaf = name.rpartition(".")
            owner = self.mod.get_submodule(path)
            now = owner._buffers.get(leaf, owner._parameters.get(leaf))
            if now is not fake and isinstance(now, Tensor):
                if leaf in owner._parameters:
                    raise ValueError(f"export: the parameter {name} was assigned during export")
                result = self.trace.node_of(now).meta.get("stack_trace")
                traceback.current_meta = {**traceback.current_meta, **({"stack_trace": result} if result else {})}
                with modes.masked(modes.GRAD if now.requires_grad else 0):
                    fake.copy_(now)

    # ---- what comes out
    def _outputs(self, out: Any) -> tuple[list, Any]:
        leaves, spec = tree.tree_flatten(out)
        result = []
        for leaf in leaves:
            if isinstance(leaf, Tensor) or getattr(leaf, "is_symbolic", False):
                result.append(self.trace.outside(leaf))
            else:
                refuse_hidden(leaf)
                if not isinstance(leaf, SIMPLE):
                    raise UserError(f"Unsupported output type {type(leaf)}. Export only supports pytree containers of basic types (Tensor, int, float, ...) as output.")  # fmt: skip
                result.append(leaf)
        return result, spec

    def _lift_constants(self) -> list[InputSpec]:
        """Tensors that the program reached become inputs, before the user's."""
        graph, attributes, aliases = self.trace.graph, tensors_of(self.mod), names_of_tensors(self.mod)
        lifted = self._placeholders()[len(self.state) + len(self.flat) :]
        reached = list(zip(lifted, self.trace.lifted_tensors, strict=True))
        reached += [(n, self.trace.constants[n.target]) for n in graph.find_nodes(op="get_attr")
                    if isinstance(self.trace.constants.get(n.target), Tensor)]  # fmt: skip
        specs, first = [], self.first_user or next(iter(n for n in graph.nodes if n.op != "placeholder"))
        for node, t in reached:
            target = (
                attributes.get(id(t)) or f"lifted_tensor_{sum(k.startswith('lifted_tensor_') for k in self.constants)}"
            )
            with graph.inserting_before(first):
                result = graph.placeholder("c_" + target.replace(".", "_"))
            result.meta = node.meta
            node.replace_all_uses_with(result)
            graph.erase_node(node)
            self.replaced[node] = result
            for name in aliases.get(id(t), (target,)):
                self.constants[name] = (
                    t.detach() if t.requires_grad else t
                )  # a program has no leaves but its parameters
            specs.append(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(result.name), target))
        return specs

    def _drop_dead_code(self) -> None:
        """Drop what no result and no preserved signature speaks of."""
        graph = self.trace.graph
        out = graph.output_node()
        results = out.args
        spoken = [v for _, (given, _), (result, _), _, _ in self.modules.signatures.values() for v in (*given, *result)]
        out.args = (*results, [v for v in spoken if isinstance(v, Node)])
        graph.eliminate_dead_code()
        out.args = results

    def _call_graph(self, out_spec: Any) -> list[ModuleCallEntry]:
        """Every submodule, with the signatures that are to be preserved; further calls of a submodule at the end."""
        own = ModuleCallSignature([], [], self.in_spec, out_spec, argument_names(self.mod, self.args, self.kwargs))
        found = {"": own}
        for name, (module, (given, in_spec), (results, spec), args, kwargs) in self.modules.signatures.items():
            inputs, outputs = ([argument_of(self.replaced.get(v, v)) if isinstance(v, Node) else argument_of(v) for v in part]
                               for part in (given, results))  # fmt: skip
            names = argument_names(module, args, kwargs)
            found[name] = ModuleCallSignature(inputs, outputs, in_spec, spec, names)
        entries = [
            ModuleCallEntry(name, found.pop(name, None)) for name, _ in self.mod.named_modules(remove_duplicate=False)
        ]
        return [*entries, *[ModuleCallEntry(name, signature) for name, signature in found.items()]]

    def _stored(self) -> dict[str, Any]:
        """The module's state, parameters first."""
        found = self.mod.state_dict(keep_vars=True)
        own = {
            **dict(self.mod.named_parameters(remove_duplicate=False)),
            **dict(self.mod.named_buffers(remove_duplicate=False)),
        }
        renamed = {s.target for s in self.inputs if s.kind is InputKind.PARAMETER or s.persistent} - set(found)
        found.update({n: own[n] for n in own if n in renamed})  # hooks of the module gave them other names
        return {**{n: found[n] for n in self.state if n in found}, **found}

    def _program(self, constants: list[InputSpec], out_spec: Any) -> ExportedProgram:
        graph = self.trace.graph
        results = graph.output_node().args[0]
        out = [OutputSpec(OutputKind.USER_OUTPUT, argument_of(r), None) for r in results]
        signature = ExportGraphSignature([*self.inputs, *constants, *self.user_specs], out)
        root = {k: v for k, v in self.trace.constants.items() if not isinstance(v, Tensor)}
        module = GraphModule(root, graph)
        module.shape_env = self.env
        user = self._placeholders()[len(self.state) + len(constants) :]
        values = [n.meta["val"] for n in user]
        return ExportedProgram(
            module, graph, signature, self._stored(), ranges_of(self.env, values),
            self._call_graph(out_spec),
            example_inputs=(self.args, self.kwargs), constants=self.constants,
            guards=conditions_of(self.env, list(zip([n.name for n in user], values, strict=True))),
        )  # fmt: skip


LOGGING = {
    getattr(logging.Logger, name) for name in ("log", "debug", "info", "warning", "error", "critical", "exception")
}


class Whole(Exception):
    """The bytecode of a program gave one graph."""

    is_expected = True


def refuse_breaks(mod: Module, args: tuple, kwargs: dict) -> None:
    """Raise where the bytecode of a module does not give one graph. Nothing is run."""

    def stop(graph: GraphModule, examples: list) -> Callable:
        raise Whole

    options = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
    with config.patch(**options, ignore_logging_functions=config.ignore_logging_functions | LOGGING):
        try:
            CompiledFunction(mod, stop, fullgraph=True)(*args, **kwargs)
        except Whole:
            pass


def argument_of(result: Any) -> Any:
    """How a signature speaks of a result."""
    if not isinstance(result, Node):
        return ConstantArgument("", result)
    return TensorArgument(result.name) if isinstance(result.meta.get("val"), Tensor) else SymIntArgument(result.name)


def tensors_of(mod: Module) -> dict[int, str]:
    """The tensors that are plain attributes of modules, by identity: their first names."""
    return {key: names[0] for key, names in names_of_tensors(mod).items()}


def names_of_tensors(mod: Module) -> dict[int, list[str]]:
    """All names of the tensors that are plain attributes of modules, by identity."""
    found: dict[int, list[str]] = {}
    for prefix, module in mod.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                found.setdefault(id(value), []).append(f"{prefix}.{name}" if prefix else name)
    return found


export_for_training: Callable = export
__all__ = ["export", "export_for_training"]
