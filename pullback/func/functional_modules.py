"""Modules split into a function and its state, as the `functorch` package names them.

`make_functional(model)` gives (function, parameters); the function takes the parameters as its first argument. With
buffers there are two such arguments. Tied tensors appear once.
"""

from __future__ import annotations

import copy

from ..ops.shape.joining import stack
from .stateless import check_alike, replaced_state


class FunctionalModule:
    """A module as a function of its parameters."""

    def __init__(self, model, parameter_names: tuple[str, ...]):
        self.stateless_model = model
        self.param_names = parameter_names

    def __call__(self, params, *args, **kwargs):
        return self._call(dict(zip(self.param_names, params, strict=True)), args, kwargs)

    def _call(self, state: dict, args: tuple, kwargs: dict):
        with replaced_state(self.stateless_model, state):
            return self.stateless_model(*args, **kwargs)


class FunctionalModuleWithBuffers(FunctionalModule):
    """A module as a function of its parameters and its buffers."""

    def __init__(self, model, parameter_names: tuple[str, ...], buffer_names: tuple[str, ...]):
        super().__init__(model, parameter_names)
        self.buffer_names = buffer_names

    def __call__(self, params, buffers, *args, **kwargs):
        state = dict(zip(self.param_names, params, strict=True)) | dict(zip(self.buffer_names, buffers, strict=True))
        return self._call(state, args, kwargs)


def make_functional(model, disable_autograd_tracking: bool = False):
    """(function, parameters) of a module without buffers."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    function, params, _ = make_functional_with_buffers(model, disable_autograd_tracking)
    return FunctionalModule(function.stateless_model, function.param_names), params


def make_functional_with_buffers(model, disable_autograd_tracking: bool = False):
    """(function, parameters, buffers) of a module."""
    own = copy.deepcopy(model)
    named, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    params = tuple(p.detach() if disable_autograd_tracking else p for p in named.values())
    return FunctionalModuleWithBuffers(own, tuple(named), tuple(buffers)), params, tuple(buffers.values())


def combine_state_for_ensemble(models):
    """(function, parameters, buffers) of several like modules, each tensor stacked along a new first dimension."""
    models = list(models)
    check_alike(models, "combine_state_for_ensemble")
    functions, params, buffers = zip(*[make_functional_with_buffers(m) for m in models], strict=True)
    return functions[0], _stacked(params), _stacked(buffers)


def _stacked(states: tuple) -> tuple:
    return tuple(
        stack([t.detach() for t in each]).requires_grad_(each[0].requires_grad) for each in zip(*states, strict=True)
    )


def functional_init(model_class, ensemble_shape: tuple = (), device="cpu"):
    """A function that makes modules and gives (weights, function of weights and a tuple of arguments, names)."""

    def init(*args, **kwargs):
        function, weights, _, names, _ = _initialised(model_class, ensemble_shape, device, args, kwargs)
        return weights, lambda w, data: function(w, (), *data), names

    return init


def functional_init_with_buffers(model_class, ensemble_shape: tuple = (), device="cpu"):
    """The same with buffers: (weights, buffers, function of weights, buffers and arguments, names, names of buffers)."""

    def init(*args, **kwargs):
        function, weights, buffers, *names = _initialised(model_class, ensemble_shape, device, args, kwargs)
        return weights, buffers, lambda w, b, data: function(w, b, *data), *names

    return init


def _initialised(model_class, ensemble_shape: tuple, device, args: tuple, kwargs: dict):
    if len(ensemble_shape) >= 2:
        raise ValueError("NYI: ensemble_shape with more than 1 element")
    count = ensemble_shape[0] if ensemble_shape else 1
    if count <= 0:
        raise ValueError(f"num_models {count} should be > 0")
    models = [model_class(*args, **kwargs).to(device) for _ in range(count)]
    if ensemble_shape:
        function, weights, buffers = combine_state_for_ensemble(models)
    else:
        function, weights, buffers = make_functional_with_buffers(models[0])
    return function, weights, buffers, function.param_names, function.buffer_names
