"""Modules as functions of their parameters: `functional_call`, `stack_module_state`, batch norms without state."""

from __future__ import annotations

from contextlib import contextmanager

from ..core.tensor import Tensor
from ..ops.shape.joining import stack

_ABSENT = object()


def named_tensors(module) -> dict:
    """All parameters and buffers by name, tied ones under each of theirs."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


@contextmanager
def replaced_state(module, values: dict, tie_weights: bool = True, strict: bool = False):
    """Inside the block, the module's parameters and buffers are the tensors given; afterwards its own again.

    What the module assigned meanwhile is left in `values`. Names it does not have are attributes for the time being.
    """
    named = named_tensors(module) if tie_weights or strict else {}
    every = _tied(named, values) if tie_weights else dict(values)
    if strict:
        _check_keys(module, named, every)
    saved = []
    try:
        for name, value in every.items():
            path, _, leaf = name.rpartition(".")
            owner = module.get_submodule(path) if path else module
            saved.append((owner, leaf, _swap(owner, leaf, value)))
        yield module
    finally:
        after = {}
        for name, (owner, leaf, value) in reversed(list(zip(every, saved, strict=False))):
            after[name] = _swap(owner, leaf, value)
        for name, value in after.items():
            if name in values and value is not values[name] and value is not _ABSENT:
                values[name] = value


def swap_tensor(module, name: str, tensor: Tensor | None, allow_missing: bool = False) -> Tensor | None:
    """Put a tensor where a module keeps one of that name, and give back what was there."""
    if not name or "." in name:
        raise KeyError(f"swap_tensor: the name of one attribute was expected, got {name!r}")
    if not allow_missing and not hasattr(module, name):
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    return _swap(module, name, tensor)


def _swap(owner, leaf: str, value):
    """Put a tensor where a module keeps one of that name, and give back what was there."""
    if value is not _ABSENT and value is not None and not isinstance(value, Tensor):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    for table in (owner._parameters, owner._buffers):
        if leaf in table:
            before = table[leaf]
            if value is _ABSENT:
                del table[leaf]  # a parameter under a name of its own, for the time of the call
            else:
                table[leaf] = value
            return before
    before = getattr(owner, leaf, _ABSENT)
    if before is not _ABSENT and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{leaf}`: {before} is not an instance of torch.Tensor")
    if value is _ABSENT:
        delattr(owner, leaf)
    else:
        setattr(owner, leaf, value)
    return before


def _tied(named: dict, values: dict) -> dict:
    """`values` with what is given for one name of a tied tensor under its other names too."""
    names: dict[int, list] = {}
    for name, t in named.items():
        names.setdefault(id(t), []).append(name)
    every = dict(values)
    for tied in names.values():
        given = [n for n in tied if n in values]
        if len(tied) < 2 or not given:
            continue
        if any(values[n] is not values[given[0]] for n in given):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using tie_weights=False"
            )
        every.update(dict.fromkeys(tied, values[given[0]]))
    return every


def _check_keys(module, named: dict, values: dict) -> None:
    wrong = (
        ("Unexpected", sorted(set(values) - set(named))),
        ("Missing", sorted(set(named) - set(values))),
    )
    lines = [f"{kind} key(s): {', '.join(map(repr, keys))}." for kind, keys in wrong if keys]
    if lines:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(lines))


def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights: bool = True, strict: bool = False
):
    """Call a module with other tensors in the place of its parameters and buffers."""
    values = _merged(parameter_and_buffer_dicts)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with replaced_state(module, values, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def _merged(dicts) -> dict:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, (list, tuple)):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [k for d in dicts for k in d]
    repeated = [k for k in dict.fromkeys(names) if names.count(k) > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {k: v for d in dicts for k, v in d.items()}


def check_alike(models: list, name: str) -> None:
    """Refuse modules that cannot be run as one."""
    if not models:
        raise RuntimeError(f"{name}: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(f"{name}: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError(f"{name}: Expected all models to be of the same class.")


def stack_module_state(models):
    """(parameters, buffers) of several like modules, each stacked along a new first dimension."""
    models = list(models)
    check_alike(models, "stack_module_state")

    def stacked(named, leaf: bool):
        tables = [dict(getattr(m, named)()) for m in models]
        result = {}
        for k in tables[0]:
            if len({table[k].requires_grad for table in tables}) > 1:
                raise RuntimeError(f"Expected {k} from each model to have the same .requires_grad")
            t = stack([table[k].detach() if leaf else table[k] for table in tables])
            result[k] = t.requires_grad_(tables[0][k].requires_grad) if leaf else t
        return result

    return stacked("named_parameters", True), stacked("named_buffers", False)


def replace_all_batch_norm_modules_(root):
    """Make every batch norm in `root` use the statistics of its batch alone: it then writes nothing, and batches."""
    for module in root.modules():
        if module_kind(module, "_BatchNorm") and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def module_kind(module, name: str) -> bool:
    """Whether a class of that name is among the module's. Modules stand above this layer: their classes go by name."""
    return any(kind.__name__ == name for kind in type(module).__mro__)
