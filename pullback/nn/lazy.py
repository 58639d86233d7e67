"""Lazy modules: shapes of parameters are learnt from the first input.

A lazy module holds uninitialized tensors until its first call; then `initialize_parameters` gives them shapes, and the
module becomes an ordinary one of class `cls_to_become`.
"""

from __future__ import annotations

from ..core.modes import no_grad
from ..ops.system.operator import public
from .parameter import is_lazy


def empty(size, device=None, dtype=None):
    """Memory for a parameter."""
    return public("torch", "empty")(size, device=device, dtype=dtype)


class LazyModuleMixin:
    """What lazy modules share; stands before the module class among the bases."""

    cls_to_become: type | None = None

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination, prefix: str, keep_vars: bool) -> None:
        """Uninitialized tensors are saved as they are: detaching would need a shape."""
        buffers = ((n, b) for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set)
        for name, t in (*self._parameters.items(), *buffers):
            if t is not None:
                destination[prefix + name] = t if is_lazy(t) or keep_vars else t.detach()

    def _lazy_load_hook(self, state_dict, prefix: str, *rest) -> None:
        """An initialized tensor in the state dict gives its shape to the uninitialized one here."""
        for name, t in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if t is not None and given is not None and is_lazy(t) and not is_lazy(given):
                with no_grad():
                    t.materialize(given.shape)

    def initialize_parameters(self, *args, **kwargs) -> None:
        """Give shapes to all uninitialized tensors, from the arguments of the first call."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether some tensor is still without a shape."""
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module, args, kwargs=None) -> None:
        """The hook before the first forward."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {type(self).__name__} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly initialize the modules"
        )
