"""Pruning: parts of a parameter are held at zero by a mask.

In comes a module and the name of one of its parameters; out goes the same module, where `name_orig` is the parameter
that trains, `name_mask` the buffer of ones (kept) and zeros (pruned), and `name` their product, made anew before every
forward by a pre-hook. A parameter has at most one such hook: pruned again, its methods stand in one container, and each
acts on what those before it kept. A pruning that fails leaves the module as it found it.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...core.device import contiguous_format
from ...core.tensor import Tensor
from ...ops.system.operator import public
from ..module import Module
from .convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod(ABC):
    """A way to choose what is pruned (`compute_mask`), and the forward pre-hook that applies the choice.

    `PRUNING_TYPE` says how a method meets earlier pruning: "unstructured" sees only the entries that are left,
    "structured" the slices along its `dim` that are left, "global" everything.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for importances `t`, on top of the mask in place."""

    def apply_mask(self, module: Module) -> Tensor:
        """The product of the original parameter and the mask that the module holds."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, f"{self._tensor_name}_mask")
        original = getattr(module, f"{self._tensor_name}_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter by this method; the hook that now stands on it comes back."""
        key, earlier = _only_hook(module, name)
        added = cls(*args, **kwargs)
        added._tensor_name = name
        current = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != current.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {importance_scores.shape} vs {current.shape}"
            )
        with _unchanged_on_failure(module, earlier):
            if earlier is None:
                method, default_mask = added, _first_mask(module, name, current)
            else:
                method = earlier if isinstance(earlier, PruningContainer) else PruningContainer(earlier)
                method.add_pruning_method(added)
                default_mask = getattr(module, f"{name}_mask").detach().clone(memory_format=contiguous_format)
                del module._forward_pre_hooks[key]
            scores = current if importance_scores is None else importance_scores
            module.register_buffer(f"{name}_mask", method.compute_mask(scores, default_mask=default_mask))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A pruned copy of a tensor, no module involved."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        scores = t if importance_scores is None else importance_scores
        default_mask = public("torch", "ones_like")(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned value the parameter: the pruning stays, the mask and the original go."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)  # an optimizer may have stepped since the last forward
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[f"{name}_orig"]
        original.data = weight.data  # the same Parameter object: optimizers hold on to it
        del module._parameters[f"{name}_orig"]
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Pruning methods of one parameter, in the order of their application."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Put a method last."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to "
                f"PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask in place with the last method's added; the earlier methods are in that mask already."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        left = _what_is_left(method, t, mask)
        combined = mask.clone()
        combined[left] = method.compute_mask(t[left], default_mask=mask[left]).to(dtype=combined.dtype)
        return combined


class Identity(BasePruningMethod):
    """Prunes nothing, and sets up mask and hook all the same."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:
        return super().apply(module, name)


class RandomUnstructured(BasePruningMethod):
    """Prunes entries at random: `amount` of them, or that fraction."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _checked_count(self.amount, t.nelement())
        if count == 0:  # no draw: the generator stays where it is
            return _copy(default_mask)
        return _without_entries(default_mask, public("torch", "rand_like")(t), count, largest=True)

    @classmethod
    def apply(cls, module: Module, name: str, amount: float) -> BasePruningMethod:
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """Prunes the entries of least absolute value."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _checked_count(self.amount, t.nelement())
        return _without_entries(default_mask, t.abs(), count, largest=False) if count else _copy(default_mask)

    @classmethod
    def apply(
        cls, module: Module, name: str, amount: float, importance_scores: Tensor | None = None
    ) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(BasePruningMethod):
    """Prunes whole slices along a dimension, at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        slices = t.shape[self.dim]
        count = _checked_count(self.amount, slices)
        if count == 0:
            return default_mask
        drawn = public("torch", "rand")(slices)
        kept = drawn > public("torch", "kthvalue")(drawn, k=count).values
        return _only_slices(t, self.dim, kept.to(t.device)) * default_mask.to(dtype=t.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, amount: float, dim: int = -1) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """Prunes the slices along a dimension whose norm of order `n` is least."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: float | str, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        slices = t.shape[self.dim]
        count = _checked_count(self.amount, slices)
        if count == 0:
            return default_mask
        kept = public("torch", "topk")(_compute_norm(t, self.n, self.dim), k=slices - count, largest=True).indices
        return _only_slices(t, self.dim, kept) * default_mask.to(dtype=t.dtype)

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        amount: float,
        n: float | str,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> BasePruningMethod:
        return super().apply(module, name, mask=mask)


def identity(module: Module, name: str) -> Module:
    """Set up mask and hook, and prune nothing."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune entries of a parameter at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Prune the entries of least absolute value (of the scores, where given)."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices along a dimension at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: float | str, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the slices along a dimension whose norm (of the scores, where given) is least."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune the entries of many parameters, ranked together as one vector."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    listed = [(module, name, getattr(module, name)) for module, name in parameters]
    ones_like = public("torch", "ones_like")
    together = parameters_to_vector([scores.get((module, name), value) for module, name, value in listed])
    masks = parameters_to_vector([getattr(module, f"{name}_mask", ones_like(value)) for module, name, value in listed])
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "temp"  # the vector is no module's parameter; a container asks for a name all the same
    parts = PruningContainer(method).compute_mask(together, masks).split([value.numel() for *_, value in listed])
    for (module, name, value), part in zip(listed, parts, strict=True):
        custom_from_mask(module, name, mask=part.view_as(value))


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter where a mask is zero."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Make the pruned value the parameter, without mask or hook."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether a pruning hook stands on the module or on one inside it."""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, inner in module.named_modules()
        for hook in inner._forward_pre_hooks.values()
    )


def _only_hook(module: Module, name: str) -> tuple[int | None, BasePruningMethod | None]:
    """The pruning hook of a parameter and its key, or nothing."""
    hooks = [
        (key, hook)
        for key, hook in module._forward_pre_hooks.items()
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
    ]
    if len(hooks) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
        )
    return hooks[0] if hooks else (None, None)


@contextmanager
def _unchanged_on_failure(module: Module, earlier: BasePruningMethod | None) -> Iterator[None]:
    """Inside, parameters, buffers, hooks and the earlier container may change; an error puts them back."""
    tables = [module._parameters, module._buffers, module._forward_pre_hooks]
    before = [dict(table) for table in tables]
    methods = earlier._pruning_methods if isinstance(earlier, PruningContainer) else None
    try:
        yield
    except BaseException:
        for table, entries in zip(tables, before, strict=True):
            table.clear()
            table.update(entries)
        if methods is not None:
            earlier._pruning_methods = methods
        raise


def _first_mask(module: Module, name: str, parameter: Tensor) -> Tensor:
    """Rename the parameter to `name_orig`; a mask that keeps everything comes back."""
    if parameter is None:  # a bias that the module was made without
        raise TypeError("ones_like(): argument 'input' (position 1) must be Tensor, not NoneType")
    module.register_parameter(f"{name}_orig", parameter)
    del module._parameters[name]
    return public("torch", "ones_like")(parameter)


def _what_is_left(method: BasePruningMethod, t: Tensor, mask: Tensor):
    """The index of what a further method may look at."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * t.dim()
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
    rank = t.dim()
    dim = method.dim + rank if method.dim < 0 else method.dim
    if not 0 <= dim < rank:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {rank}")
    others = [d for d in range(rank) if d != dim]
    # Without other dimensions each entry is its own slice; an empty list would mean "sum over all".
    kept = mask.sum(dim=others) if others else mask
    return _along(rank, dim, kept != 0)


def _along(rank: int, dim: int, index: Tensor) -> tuple:
    whole: list = [slice(None)] * rank
    whole[dim] = index
    return tuple(whole)


def _copy(mask: Tensor) -> Tensor:
    return mask.clone(memory_format=contiguous_format)


def _without_entries(mask: Tensor, ranks: Tensor, count: int, largest: bool) -> Tensor:
    """A mask less the `count` entries that rank highest (or lowest)."""
    pruned = _copy(mask)
    pruned.view(-1)[public("torch", "topk")(ranks.reshape(-1), k=count, largest=largest).indices] = 0
    return pruned


def _only_slices(t: Tensor, dim: int, kept: Tensor) -> Tensor:
    """A mask in the shape of `t` that keeps the named slices."""
    mask = public("torch", "zeros_like")(t)
    mask[_along(t.dim(), dim, kept)] = 1
    return mask


def _checked_count(amount: float, size: int) -> int:
    """How many of `size` things to prune; an error where there are not so many."""
    count = _compute_nparams_toprune(amount, size)
    _validate_pruning_amount(count, size)
    return count


def _validate_pruning_amount_init(amount: float) -> None:
    """An amount is a count from 0 up, or a fraction from 0 to 1."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: float, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _validate_structured_pruning(t: Tensor) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. "
            f"Found tensor of shape {t.shape} with {t.dim()} dims"
        )


def _compute_nparams_toprune(amount: float, tensor_size: int) -> int:
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Tensor, n: float | str, dim: int) -> Tensor:
    """Norms of the slices along a dimension."""
    others = [d for d in range(t.dim()) if d != dim % t.dim()]
    return public("torch", "norm")(t, p=n, dim=others)
