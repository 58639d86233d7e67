"""Hooks of modules: who is called around `forward` and `backward`, for one module or for all of them.

A hook is kept in an ordered table under the id of the handle that removes it. Global tables come before a module's own.
Full backward hooks see the gradients of a module's inputs and outputs as a whole: identity nodes around the call carry
them.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable

from ..autograd.function import Function
from ..autograd.methods import Hooks, RemovableHandle
from ..core.modes import is_grad_enabled
from ..core.tensor import Tensor


class GlobalHooks:
    """Hooks on every module of the process."""

    def __init__(self) -> None:
        self.backward_pre: OrderedDict = Hooks()
        self.backward: OrderedDict = Hooks()
        self.is_full_backward: bool | None = None
        self.forward_pre: OrderedDict = Hooks()
        self.forward: OrderedDict = Hooks()
        self.forward_with_kwargs: OrderedDict = Hooks()
        self.forward_always: OrderedDict = Hooks()
        self.buffer: OrderedDict = Hooks()
        self.module: OrderedDict = Hooks()
        self.parameter: OrderedDict = Hooks()
        # those that run when a module is called
        self.tables = (self.backward_pre, self.backward, self.forward_pre, self.forward)

    def around_call(self) -> bool:
        """Whether any global hook runs when a module is called."""
        return any(self.tables)


everywhere = GlobalHooks()


def add(table: OrderedDict, hook: Callable, prepend: bool = False, extra: list | None = None) -> RemovableHandle:
    """Put a hook into a table; removing it removes its marks in the extra tables too."""
    handle = RemovableHandle(table, extra_dict=extra)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """`hook(module, args)` before every module's forward."""
    return add(everywhere.forward_pre, hook)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """`hook(module, args, output)` after every module's forward."""
    handle = add(everywhere.forward, hook, extra=[everywhere.forward_with_kwargs, everywhere.forward_always])
    if with_kwargs:
        everywhere.forward_with_kwargs[handle.id] = True
    if always_call:
        everywhere.forward_always[handle.id] = True
    return handle


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """`hook(module, grad_output)` before every module's backward."""
    return add(everywhere.backward_pre, hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """`hook(module, grad_input, grad_output)` after every module's backward."""
    if everywhere.is_full_backward is False:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    everywhere.is_full_backward = True
    return add(everywhere.backward, hook)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """The older form of a backward hook, on the last node of a module's forward."""
    if everywhere.is_full_backward is True:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    everywhere.is_full_backward = False
    return add(everywhere.backward, hook)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """`hook(module, name, buffer)` whenever a buffer is registered."""
    return add(everywhere.buffer, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """`hook(module, name, submodule)` whenever a submodule is registered."""
    return add(everywhere.module, hook)


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """`hook(module, name, parameter)` whenever a parameter is registered."""
    return add(everywhere.parameter, hook)


class ModuleHooks:
    """The part of `Module` that registers hooks and calls them."""

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """`hook(module, args)` (with kwargs: `hook(module, args, kwargs)`) before forward; what it returns replaces "
        "the arguments."""
        handle = add(self._forward_pre_hooks, hook, prepend, [self._forward_pre_hooks_with_kwargs])
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """`hook(module, args, output)` after forward; what it returns replaces the output."""
        handle = add(
            self._forward_hooks, hook, prepend, [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        )
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_output)` before the gradients of the inputs are computed."""
        return add(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_input, grad_output)` when the gradients of the inputs are known."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = True
        return add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """The older form, on the last node of forward: use `register_full_backward_hook`."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = False
        return add(self._backward_hooks, hook)

    def _get_backward_hooks(self) -> tuple[list, list]:
        """(full hooks, hooks of the older form), global ones first."""
        full: list = []
        older: list = []
        for table, is_full in (
            (everywhere.backward, everywhere.is_full_backward),
            (self._backward_hooks, self._is_full_backward_hook),
        ):
            (full if is_full else older).extend(table.values())
        return full, older

    def _get_backward_pre_hooks(self) -> list:
        return [*everywhere.backward_pre.values(), *self._backward_pre_hooks.values()]

    def _call_with_hooks(self, args: tuple, kwargs: dict, forward: Callable | None = None):
        """Forward with everything that listens; `forward` may stand in for the module's own."""
        called: set = set()
        try:
            return self._hooked_forward(args, kwargs, called, self.forward if forward is None else forward)
        except Exception:
            self._call_remaining(args, kwargs, called)
            raise

    def _hooked_forward(self, args: tuple, kwargs: dict, called: set, forward: Callable):
        full, older = self._get_backward_hooks()
        pre = self._get_backward_pre_hooks()
        args, kwargs = self._run_forward_pre_hooks(args, kwargs)
        around = BackwardHook(self, full, pre) if full or pre else None
        if around is not None:
            args = around.setup_input_hook(args)
        result = forward(*args, **kwargs)
        for key, hook, with_kwargs in self._forward_hook_rows():
            called.add(key)
            output = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            result = result if output is None else output
        if around is not None:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(result)}",
                    stacklevel=3,
                )
            result = around.setup_output_hook(result)
        if older:
            self._hang_older_hooks(older, args, result)
        return result

    def _run_forward_pre_hooks(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        for key, hook in (*everywhere.forward_pre.items(), *self._forward_pre_hooks.items()):
            if key in self._forward_pre_hooks_with_kwargs:
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
            else:
                result = hook(self, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)
        return args, kwargs

    def _forward_hook_rows(self):
        for key, hook in list(everywhere.forward.items()):
            yield ("all", key), hook, key in everywhere.forward_with_kwargs
        for key, hook in list(self._forward_hooks.items()):
            yield ("own", key), hook, key in self._forward_hooks_with_kwargs

    def _call_remaining(self, args: tuple, kwargs: dict, called: set) -> None:
        """After an error, hooks that are always called still run once; their own errors only warn."""
        always = {("all", k) for k in everywhere.forward_always} | {
            ("own", k) for k in self._forward_hooks_always_called
        }
        for key, hook, with_kwargs in self._forward_hook_rows():
            if key not in always or key in called:
                continue
            try:
                result = hook(self, args, kwargs, None) if with_kwargs else hook(self, args, None)
                del result
            except Exception as e:
                where = "global module forward hook" if key[0] == "all" else "module forward hook"
                warnings.warn(
                    f"{where} with ``always_call=True`` raised an exception that was silenced as another error was "
                    f"raised in forward: {e!s}",
                    stacklevel=3,
                )

    def _hang_older_hooks(self, hooks: list, args: tuple, result) -> None:
        var = result
        while not isinstance(var, Tensor):
            var = next(v for v in var.values() if isinstance(v, Tensor)) if isinstance(var, dict) else var[0]
        node = var.grad_fn
        if node is not None:
            for hook in hooks:
                node.register_hook(functools.partial(hook, self))
            self._maybe_warn_non_full_backward_hook(args, result, node)

    def _maybe_warn_non_full_backward_hook(self, inputs, result, grad_fn) -> None:
        result = (result,) if isinstance(result, Tensor) else result
        inputs = (inputs,) if isinstance(inputs, Tensor) else inputs
        why = None
        if not (isinstance(result, tuple) and all(isinstance(r, Tensor) for r in result)):
            why = "on a Module that does not return a single Tensor or a tuple of Tensors", "some of the grad_output"
        elif not (isinstance(inputs, tuple) and all(isinstance(i, Tensor) for i in inputs)):
            why = (
                "on a Module that does not take as input a single Tensor or a tuple of Tensors",
                "some of the grad_input",
            )
        elif len({r.grad_fn for r in result if r.grad_fn is not None}) > 1:
            why = "when outputs are generated by different autograd Nodes", "some grad_output"
        elif {i.grad_fn for i in inputs if i.grad_fn is not None} != {n for n, _ in grad_fn.next_functions}:
            why = "when the forward contains multiple autograd Nodes", "some grad_input"
        if why is not None:
            using = "a non-full backward hook" if why[0].startswith("when") else "non-full backward hooks"
            warnings.warn(
                f"Using {using} {why[0]} is deprecated and will be removed in future versions. This hook will be "
                f"missing {why[1]}. Please use register_full_backward_hook to get the documented behavior.",
                FutureWarning,
                stacklevel=4,
            )


class BackwardHook:
    """Full backward hooks of one call: gradients of the outputs are caught first, those of the inputs later."""

    def __init__(self, module, user_hooks: list, user_pre_hooks: list):
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: tuple | None = None
        self.outputs_at: list[int] | None = None
        self.inputs_at: list[int] | None = None
        self.n_outputs = self.n_inputs = -1

    def setup_input_hook(self, args: tuple) -> tuple:
        """The arguments, with an identity node on those that require grad."""
        result, self.inputs_at = self._through_identity(self._on_inputs, args)
        self.n_inputs = len(args)
        return result

    def setup_output_hook(self, result):
        """The result, likewise."""
        alone = not isinstance(result, tuple)
        values = (result,) if alone else result
        output, self.outputs_at = self._through_identity(self._on_outputs, values)
        self.n_outputs = len(values)
        return output[0] if alone else output

    def _through_identity(self, hang: Callable, values: tuple) -> tuple[tuple, list[int] | None]:
        at = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
        if not at or not is_grad_enabled() or not any(values[i].requires_grad for i in at):
            return values, None
        passed = identity_function().apply(*[values[i] for i in at])
        if isinstance(passed, Tensor):
            passed = (passed,)
        nodes = [
            t.grad_fn for t in passed if t.grad_fn is not None and t.grad_fn.name() == "BackwardHookFunctionBackward"
        ]
        if not nodes:
            raise RuntimeError(
                "Error while setting up backward hooks. Please open an issue with a code sample to reproduce this."
            )
        hang(nodes[0])
        out = list(values)
        for i, t in zip(at, passed, strict=True):
            out[i] = t
        return type(values)(out) if type(values) is tuple or not hasattr(values, "_fields") else type(values)(*out), at

    def _on_inputs(self, node) -> None:
        def hook(grad_input, _grad_output):
            if self.grad_outputs is None:  # nothing that the module returned took part in this backward
                return None
            whole = self._spread(grad_input, self.inputs_at, self.n_inputs)
            result = self._call_user_hooks(whole)
            self.grad_outputs = None
            return tuple(result[i] for i in self.inputs_at)

        node.register_hook(hook)

    def _on_outputs(self, node) -> None:
        def hook(grad_output):
            self.grad_outputs = self._spread(grad_output, self.outputs_at, self.n_outputs)
            for user in self.user_pre_hooks:
                result = user(self.module, self.grad_outputs)
                if result is None:
                    continue
                result = result if isinstance(result, tuple) else (result,)
                if len(result) != len(self.grad_outputs):
                    raise RuntimeError(
                        f"Backward pre hook returned an invalid number of grad_output, got {len(result)}, but expected "
                        f"{len(self.grad_outputs)}"
                    )
                self.grad_outputs = result
            kept = tuple(self.grad_outputs[i] for i in self.outputs_at)
            if self.inputs_at is None:  # no input wants a gradient: this is the only time to call
                if self.user_hooks:
                    warnings.warn(
                        "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                        "inputs require gradients.",
                        stacklevel=5,
                    )
                result = self._call_user_hooks((None,) * self.n_inputs)
                if any(m is not None for m in result):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None "
                        "for all gradients."
                    )
                self.grad_outputs = None
            return kept

        node.register_prehook(hook)

    def _call_user_hooks(self, grad_input: tuple) -> tuple:
        for user in self.user_hooks:
            result = user(self.module, grad_input, self.grad_outputs)
            if result is None:
                continue
            result = result if isinstance(result, tuple) else (result,)
            if len(result) != len(grad_input):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(result)}, but expected "
                    f"{len(grad_input)}"
                )
            grad_input = result
        return grad_input

    @staticmethod
    def _spread(values, at: list[int], n: int) -> tuple:
        out: list = [None] * n
        for i, v in zip(at, values, strict=False):
            out[i] = v
        return tuple(out)


@functools.cache
def identity_function() -> type:
    """The autograd function that marks where a module begins and ends."""

    class BackwardHookFunction(Function):
        @staticmethod
        def forward(ctx, *args):
            ctx.mark_non_differentiable(*[a for a in args if not a.requires_grad])
            return args

        @staticmethod
        def backward(ctx, *args):
            return args

    return BackwardHookFunction
