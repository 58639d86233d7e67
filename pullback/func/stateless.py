"""Modules as functions of their parameters: `functional_call`, `stack_module_state`, batch norms without state."""

from __future__ import annotations

from contextlib import contextmanager


@contextmanager
def replaced_state(module, values: dict, tie_weights: bool = True, strict: bool = False):
    """Inside the block, the module's parameters and buffers are the tensors given; afterwards its own again."""
    named = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    unknown = [k for k in values if k not in named]
    if strict and (unknown or set(named) - set(values)):
        raise RuntimeError(
            f"functional_call: unexpected keys {unknown}, missing keys {sorted(set(named) - set(values))}"
        )
    if tie_weights:
        by_tensor = {id(named[k]): v for k, v in values.items() if k in named}
        values = {**{k: by_tensor[id(t)] for k, t in named.items() if id(t) in by_tensor}, **values}
    saved = []
    try:
        for name, value in values.items():
            path, _, leaf = name.rpartition(".")
            owner = module.get_submodule(path) if path else module
            for table in (owner._parameters, owner._buffers):
                if leaf in table:
                    saved.append((table, leaf, table[leaf]))
                    table[leaf] = value
                    break
            else:
                raise KeyError(f"functional_call: the module has no parameter or buffer {name!r}")
        yield module
    finally:
        for table, leaf, value in reversed(saved):
            table[leaf] = value


def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights: bool = True, strict: bool = False
):
    """Call a module with other tensors in the place of its parameters and buffers."""
    dicts = (
        [parameter_and_buffer_dicts]
        if isinstance(parameter_and_buffer_dicts, dict)
        else list(parameter_and_buffer_dicts)
    )
    values: dict = {}
    for d in dicts:
        repeated = set(values) & set(d)
        if repeated:
            raise ValueError(
                f"{sorted(repeated)[0]} appears in multiple dictionaries; behavior of functional call is ambiguous"
            )
        values.update(d)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with replaced_state(module, values, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def stack_module_state(models):
    """(parameters, buffers) of several like modules, each stacked along a new first dimension."""
    from ..ops.shape.joining import stack

    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(named, leaf: bool):
        tables = [dict(getattr(m, named)()) for m in models]
        made = {}
        for k in tables[0]:
            t = stack([table[k].detach() if leaf else table[k] for table in tables])
            made[k] = t.requires_grad_(tables[0][k].requires_grad) if leaf else t
        return made

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
