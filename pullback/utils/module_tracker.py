"""`torch.utils.module_tracker`: which modules are running now, in forward and in backward."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from ..autograd.engine import queue_callback
from ..autograd.graph import register_multi_grad_hook
from ..core.modes import is_grad_enabled
from ..core.tensor import Tensor
from ..core.tree import tree_leaves
from ..nn.module import Module
from ..nn.module_hooks import register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """While it is entered, `parents` has the full names of the modules around the current operator, and "Global".

    A module is named by its class where it is called on its own, and by its place (`Net.block.0`) inside another. In a
    backward a module is entered when gradients of its outputs are there and left when those of its inputs are.
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: WeakKeyDictionary[Module, str] = WeakKeyDictionary()
        self._before_backward: set[str] | None = None

    @property
    def is_bw(self) -> bool:
        """Whether a backward is running."""
        return self._before_backward is not None

    def __enter__(self) -> ModuleTracker:
        self._handles = (
            register_module_forward_pre_hook(self._enter_forward),
            register_module_forward_hook(self._leave_forward, always_call=True),
        )
        return self

    def __exit__(self, *details: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _name(self, module: Module) -> str:
        if module not in self._names:
            name = self._names[module] = type(module).__name__
            for inside, part in module.named_modules():
                if inside:
                    self._names[part] = f"{name}.{inside}"
        return self._names[module]

    def _enter_forward(self, module: Module, args: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        tensors = _differentiable(args)
        if tensors:
            register_multi_grad_hook(tensors, lambda grads: self.parents.discard(name))

    def _leave_forward(self, module: Module, args: Any, output: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        tensors = _differentiable(output)
        if tensors:
            register_multi_grad_hook(tensors, lambda grads: self._enter_backward(name))

    def _enter_backward(self, name: str) -> None:
        if self._before_backward is None:
            self._before_backward = set(self.parents)
            queue_callback(self._leave_backward)
        self.parents.add(name)

    def _leave_backward(self) -> None:
        if self._before_backward is not None:
            self.parents, self._before_backward = self._before_backward, None


def _differentiable(values: Any) -> list[Tensor]:
    if not is_grad_enabled():
        return []
    return [t for t in tree_leaves(values) if isinstance(t, Tensor) and t.requires_grad]
