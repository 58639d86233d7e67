"""Which modules of a tree are to be wrapped (sharded, checkpointed), and wrapping them.

A policy is a function `(module, recurse, nonwrapped_numel) -> bool`: asked with `recurse=True` whether to look at a module's
children, and with `recurse=False`, after those, whether to wrap the module itself, of which `nonwrapped_numel` elements of
parameters are not yet in a wrapper. `ModuleWrapPolicy` and `CustomPolicy` are objects that are such functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...nn.attention_module import MultiheadAttention
from ...nn.containers import ModuleDict, ModuleList
from ...nn.module import Module

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip

Policy = Callable[..., bool]
_DEFAULT_SIZE = 100_000_000


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module."""
    return True


class ModuleWrapPolicy:
    """Modules of some classes."""

    def __init__(self, module_classes: Iterable[type[Module]]):
        self._module_classes = set(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"ModuleWrapPolicy({self._module_classes})"


class CustomPolicy:
    """Modules for which a function says True, or a dict of keywords for the wrapper."""

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]):
        self._lambda_fn = lambda_fn

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or bool(self._lambda_fn(module))


def lambda_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable) -> bool:
    """Modules for which a function says True."""
    return recurse or bool(lambda_fn(module))


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[Module]]
) -> bool:
    """Modules of some classes: the layers of a transformer."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Policy]) -> bool:
    """Modules that one of several policies wants."""
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = _DEFAULT_SIZE,
    force_leaf_modules: set[type[Module]] | None = None,
    exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:
    """Modules with enough elements; containers never, and nothing inside a `force_leaf_modules`."""
    leaves = {MultiheadAttention} if force_leaf_modules is None else force_leaf_modules
    excluded = {ModuleList, ModuleDict} if exclude_wrap_modules is None else exclude_wrap_modules
    if nonwrapped_numel < min_num_params:
        return False
    return not isinstance(module, tuple(leaves if recurse else excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {ModuleList, ModuleDict}  # type: ignore[attr-defined]
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {MultiheadAttention}  # type: ignore[attr-defined]


def wrap_children(
    module: Module, policy: Policy, wrapper: Callable[[Module], Module], ignored: frozenset = frozenset()
) -> int:
    """Wrap what a policy wants below a module, innermost first; how many elements of parameters were wrapped."""
    wrapped_elements = 0
    for name, child in list(module.named_children()):
        if child not in ignored:
            new, count = _wrapped(child, policy, wrapper, ignored)
            setattr(module, name, new)
            wrapped_elements += count
    return wrapped_elements


def _wrapped(module: Module, policy: Policy, wrapper, ignored: frozenset) -> tuple[Module, int]:
    elements = sum(p.numel() for p in module.parameters())
    if not policy(module=module, recurse=True, nonwrapped_numel=elements):
        return module, 0
    below = wrap_children(module, policy, wrapper, ignored)
    if policy(module=module, recurse=False, nonwrapped_numel=elements - below):
        return wrapper(module), elements
    return module, below


_wrapper: list[tuple[Any, dict[str, Any]]] = []


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Inside the block, `wrap(module)` is `wrapper_cls(module, **wrapper_kwargs)`."""
    _wrapper.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _wrapper.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """A module in the wrapper of the enclosing `enable_wrap`; outside of one, the module itself."""
    if not _wrapper:
        return module
    cls, options = _wrapper[-1]
    return cls(module, **{**options, **wrap_overrides})
