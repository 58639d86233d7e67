"""Functions over nested arguments: their generated code flattens what comes in and rebuilds what goes out.

In: the structure of a function's arguments and result. Out: a `CodeGen` whose function has the user's signature around a
graph that sees leaves only. What always holds: inputs of another structure than the traced one are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core import tree
from .codegen import CodeGen, _described


class _PyTreeInfo(NamedTuple):
    """The names of the function's parameters, and the structures of its arguments and result."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class _PyTreeCodeGen(CodeGen):
    """A function that takes and gives nested structures."""

    def __init__(self, pytree_info: _PyTreeInfo):
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return tree.tree_leaves(inputs)

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        return tree.tree_unflatten(out if isinstance(out, (list, tuple)) else [out], self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        names = self.pytree_info.orig_args
        if names and names[0] == "self":
            free_vars.insert(0, "self")
        text = super().gen_fn_def(names[:], maybe_return_annotation, expanded_def=expanded_def)
        return text + self._bindings(names, free_vars, expanded_def) if free_vars else text

    def _bindings(self, names: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """The lines that name the leaves of the arguments."""
        annotated = [v for v in free_vars if ":" in v]
        head = ""
        if annotated:
            head = "\n    " + (
                "\n    ".join(annotated) if expanded_def else "".join(v + "; " for v in annotated) + "\n"
            )
        leaves = ", ".join(v.split(":")[0].split("#")[0].strip() for v in free_vars)
        return f"{head}\n    {leaves}, = fx_pytree.tree_flatten_spec({self._call_structure(names)}, self._in_spec)"

    def _call_structure(self, names: list[str]) -> str:
        """The arguments put together again in the structure that was traced."""
        spec = self.pytree_info.in_spec
        children = spec.children()
        if spec.type is tuple and len(children) == 2 and children[0].type is tuple and children[1].type is dict:
            count = children[0].num_children
            keywords = ", ".join(f"'{k}':{v}" for k, v in zip(children[1].entries(), names[count:]))
            return f"([{', '.join(names[:count])}], {{{keywords}}})"
        return f"[{', '.join(names)}]"

    def generate_output(
        self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] = repr
    ) -> str:
        if not (self.pytree_info and self.pytree_info.out_spec):
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        if descs is not None and isinstance(output_args, (list, tuple)):
            return _described("return pytree.tree_unflatten(", output_args, descs, repr_fn) + ", self._out_spec)"
        return f"return pytree.tree_unflatten({repr_fn(output_args)}, self._out_spec)"


class _BoxedCodeGen(CodeGen):
    """A function that takes one list and empties it, so that inputs can be freed early."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        text = f"def {self._func_name}(self, args_list){maybe_return_annotation}:"
        names = [v.split(":")[0].split("=")[0].strip() for v in free_vars if v != "self"]
        if not names:
            return text
        taken = "".join(f"\n    {name} = next(args_iter)" for name in names)
        return f"{text}\n    args_iter = iter(args_list){taken}\n    args_list.clear()"
