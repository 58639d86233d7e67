"""Spectral norm by a hook: a weight is divided by its largest singular value before every forward.

The form that came before parametrizations; `parametrizations.spectral_norm` is the one to use. The singular vectors are
buffers and are improved by some power iterations at every forward in training.
"""

from __future__ import annotations

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...ops.system.operator import public
from .. import functional as F
from ..conv import _ConvTransposeNd
from ..module import Module
from ..parameter import Parameter, is_lazy


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight as a matrix whose rows are its slices along a dimension."""
    if dim != 0:
        weight = weight.permute(dim, *(d for d in range(weight.dim()) if d != dim))
    return weight.reshape(weight.size(0), -1)


def output_dim(module: Module, dim: int | None) -> int:
    """The dimension of the outputs: the first, and for transposed convolutions the second."""
    return dim if dim is not None else 1 if isinstance(module, _ConvTransposeNd) else 0


def power_iterations(matrix: Tensor, u: Tensor, v: Tensor, n: int, eps: float, v_first: bool) -> None:
    """Improve singular vectors in place."""
    with no_grad():
        for _ in range(n):
            if v_first:
                v.copy_(F.normalize(public("torch", "mv")(matrix.mH, u), dim=0, eps=eps))
                u.copy_(F.normalize(public("torch", "mv")(matrix, v), dim=0, eps=eps))
            else:
                u.copy_(F.normalize(public("torch", "mv")(matrix, v), dim=0, eps=eps))
                v.copy_(F.normalize(public("torch", "mv")(matrix.mH, u), dim=0, eps=eps))


class SpectralNorm:
    """The hook: sets `module.name` from `name_orig`, with vectors `name_u` and `name_v`."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            power_iterations(matrix, u, v, self.n_power_iterations, self.eps, v_first=True)
            if self.n_power_iterations > 0:  # two forwards may be differentiated: each keeps its own vectors
                u, v = u.clone(), v.clone()
        return weight / public("torch", "dot")(u, public("torch", "mv")(matrix, v))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying spectral normalization"
            )
        with no_grad():
            rows, columns = as_matrix(weight, dim).size()
            u = F.normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
        del module._parameters[name]
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.data)  # no parameter: it is computed before every forward
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(_VersionMark(hook))
        module._register_load_state_dict_pre_hook(_OlderStates(hook))
        return hook

    def remove(self, module: Module) -> None:
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("u", "v", "orig"):
            delattr(module, f"{self.name}_{suffix}")
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


class _VersionMark:
    """Writes into a state dict's metadata which version of the hook made it."""

    def __init__(self, hook: SpectralNorm) -> None:
        self.hook = hook

    def __call__(self, module: Module, state_dict, prefix: str, local_metadata: dict) -> None:
        marks = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.hook.name}.version"
        if key in marks:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        marks[key] = self.hook._version


class _OlderStates:
    """Brings a state that the first version of the hook wrote to what is loaded now: it kept the weight, and no `name_v`."""

    def __init__(self, hook: SpectralNorm) -> None:
        self.hook = hook

    def __call__(self, state_dict, prefix: str, local_metadata: dict, strict: bool, missing: list, *rest) -> None:
        version = local_metadata.get("spectral_norm", {}).get(f"{self.hook.name}.version")
        key = prefix + self.hook.name
        current = key not in state_dict and all(f"{key}_{part}" in state_dict for part in ("orig", "u", "v"))
        if version is not None and version >= 1 or current:
            return
        needed = (f"{key}_orig", key, f"{key}_u")
        absent = [k for k in needed if k not in state_dict]
        if absent:
            if strict:
                missing.extend(absent)
            return
        with no_grad():
            original, weight, u = state_dict[needed[0]], state_dict.pop(key), state_dict[needed[2]]
            matrix = as_matrix(original, self.hook.dim)
            state_dict[f"{key}_v"] = _right_vector(matrix, u, (original / weight).mean())


def _right_vector(matrix: Tensor, u: Tensor, sigma: Tensor) -> Tensor:
    """The vector v for which u is along `matrix @ v`, as long as makes u . (matrix @ v) equal `sigma`."""
    pinverse = public("linalg", "pinv")
    v = pinverse(matrix.t().mm(matrix)).matmul(matrix.t().mm(u.unsqueeze(1))).squeeze(1)
    return v.mul(sigma / public("torch", "dot")(u, public("torch", "mv")(matrix, v)))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Keep the largest singular value of a weight at 1.

    >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 3))
    >>> layer(torch.ones(1, 2)).shape
    torch.Size([1, 3])
    """
    SpectralNorm.apply(module, name, n_power_iterations, output_dim(module, dim), eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight an ordinary parameter again.

    >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 3))
    >>> [name for name, _ in torch.nn.utils.remove_spectral_norm(layer).named_parameters()]
    ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for key, mark in list(module._state_dict_hooks.items()):
        if isinstance(mark, _VersionMark) and mark.hook.name == name:
            del module._state_dict_hooks[key]
    for key, bound in list(module._load_state_dict_pre_hooks.items()):
        older = getattr(bound, "hook", bound)
        if isinstance(older, _OlderStates) and older.hook.name == name:
            del module._load_state_dict_pre_hooks[key]
    return module
