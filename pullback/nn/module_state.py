"""`state_dict` and `load_state_dict`: a module's tensors by name, and back.

A state dict is ordered as the module is: own parameters, own buffers (persistent ones), extra state, then children.
Loading checks names and shapes first and reports every problem in one error.
"""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from ..autograd.methods import RemovableHandle
from ..core.modes import no_grad
from ..core.swap import swap_tensors
from ..core.tensor import Tensor
from .conversion_flags import Flags
from .module_hooks import add
from .parameter import Parameter, is_lazy

EXTRA_STATE = "_extra_state"


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What did not match while loading."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"

    __str__ = __repr__


class _BoundHook:
    """A load hook that is called with its module first, if it wants it; the module is held weakly."""

    def __init__(self, hook: Callable, module=None):
        self.hook = hook
        self.module = None if module is None else weakref.ref(module)

    def __call__(self, *args, **kwargs):
        if self.module is None:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        bound = self.module is not None
        return {"hook": self.hook, "with_module": bound, "module": self.module() if bound else None}

    def __setstate__(self, state) -> None:
        self.__init__(state["hook"], state.get("module"))


class ModuleState:
    """The part of `Module` that saves and loads."""

    def get_extra_state(self) -> Any:
        """What a module wants saved beside its tensors; goes with `set_extra_state`."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
        )

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not ModuleState.get_extra_state

    # ---- saving
    def state_dict(self, *args, destination=None, prefix: str = "", keep_vars: bool = False):
        """Names and tensors of the module's whole state; detached unless `keep_vars`."""
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    def _save_to_state_dict(self, destination, prefix: str, keep_vars: bool) -> None:
        """Own tensors into `destination`; overridden by modules that save otherwise."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if self._has_extra_state():
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return add(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """`hook(module, state_dict, prefix, local_metadata)` after saving; it may change the dict in place."""
        hook._from_public_api = True
        return add(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """`hook(module, prefix, keep_vars)` before saving."""
        return add(self._state_dict_pre_hooks, hook)

    # ---- loading
    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> RemovableHandle:
        return add(self._load_state_dict_pre_hooks, _BoundHook(hook, self if with_module else None))

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """`hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)` "
        "before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """`hook(module, incompatible_keys)` after loading; it may change the keys in place."""
        return add(self._load_state_dict_post_hooks, hook)

    def _load_from_state_dict(
        self,
        state_dict,
        prefix: str,
        local_metadata,
        strict: bool,
        missing_keys: list,
        unexpected_keys: list,
        error_msgs: list,
    ) -> None:
        """Own tensors from `state_dict`; overridden by modules whose format has changed over time."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        buffers = ((n, b) for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, own in (*self._parameters.items(), *buffers):
            if own is None:
                continue
            key = prefix + name
            if key in state_dict:
                self._load_tensor(key, name, own, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            self._find_unexpected(state_dict, prefix, unexpected_keys)

    def _load_tensor(self, key: str, name: str, own: Tensor, given, assign: bool, error_msgs: list) -> None:
        if not isinstance(given, Tensor) and not hasattr(type(given), "__torch_function__"):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(given)}"
            )
            return
        lazy = is_lazy(own)
        if lazy and is_lazy(given):
            return  # neither has a shape yet: nothing to take over
        if not lazy and not own.ndim and tuple(given.shape) == (1,):  # written by versions that had no 0-d tensors
            given = given[0]
        if not lazy and given.shape != own.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in "
                f"current model is {own.shape}."
            )
            return
        if own.is_meta and not given.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary "
                "to their corresponding key in the module instead of copying them in place?)",
                stacklevel=4,
            )
        try:
            with no_grad():
                self._take_tensor(name, own, given, assign)
        except Exception as e:
            model = f"whose dimensions in the model are {own.size()}"
            shapes = f"{model} and whose dimensions in the checkpoint are {given.size()}"
            error_msgs.append(f'While copying the parameter named "{key}", {shapes}, an exception occurred : {e.args}.')

    def _take_tensor(self, name: str, own: Tensor, given: Tensor, assign: bool) -> None:
        if Flags.swap:
            loaded = own.module_load(given, assign=assign)
            if isinstance(own, Parameter) and not isinstance(loaded, Parameter):
                loaded = Parameter(loaded, requires_grad=own.requires_grad)
            swap_tensors(own, loaded)
            return
        if not assign:
            own.copy_(given)
            return
        if isinstance(own, Parameter):
            if not isinstance(given, Parameter):
                given = Parameter(given, requires_grad=own.requires_grad)
            else:
                given.requires_grad_(own.requires_grad)
        setattr(self, name, given)

    def _load_extra_state(
        self, state_dict, prefix: str, strict: bool, missing_keys: list, unexpected_keys: list
    ) -> None:
        key = prefix + EXTRA_STATE
        if type(self).set_extra_state is not ModuleState.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _find_unexpected(self, state_dict, prefix: str, unexpected_keys: list) -> None:
        own = {n for n, b in self._buffers.items() if b is not None and n not in self._non_persistent_buffers_set}
        own |= {n for n, p in self._parameters.items() if p is not None}
        for key in state_dict:
            if key.startswith(prefix) and key != prefix + EXTRA_STATE:
                head, _, rest = key[len(prefix) :].partition(".")
                if rest and head not in self._modules or not rest and head not in own:
                    unexpected_keys.append(key)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy tensors from `state_dict` into this module; with `assign`, take the very tensors."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        whole = OrderedDict(state_dict)
        if metadata is not None:
            whole._metadata = metadata

        _load(self, whole, "", metadata, assign, missing, unexpected, errors)
        if strict:
            for what, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    errors.insert(0, f"{what} key(s) in state_dict: {_quoted(keys)}. ")
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return IncompatibleKeys(missing, unexpected)


def _load(module, local, prefix: str, metadata, assign: bool, missing: list, unexpected: list, errors: list) -> None:
    """The tensors of a module and of what is inside it; `local` holds what is under `prefix`."""
    local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = assign
    module._load_from_state_dict(local, prefix, local_metadata, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            inner = f"{prefix}{name}."
            part = OrderedDict((k, v) for k, v in local.items() if k.startswith(inner))
            _load(child, part, inner, metadata, assign, missing, unexpected, errors)
    keys = IncompatibleKeys(missing, unexpected)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are notexpected to return new "
                "values, if incompatible_keys need to be modified,it should be done inplace."
            )


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{k}"' for k in keys)


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix (such as "module.") off the keys of a state dict and of its metadata, in place."""
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})
    for key in [k for k in metadata if k and (k == prefix.rstrip(".") or k.startswith(prefix))]:
        metadata[key[len(prefix) :]] = metadata.pop(key)
