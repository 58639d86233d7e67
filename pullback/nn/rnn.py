"""Recurrent modules: RNN, LSTM, GRU over sequences, and their cells, which make one step.

Weights are named and ordered as in PyTorch: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_hr_l0, then the
reverse direction, then the next layer.
"""

from __future__ import annotations

import math
import numbers
import warnings

from ..core.modes import AUTOCAST, ambient
from ..core.tensor import Tensor
from ..ops.system.operator import public
from . import init
from .lazy import empty
from .module import Module
from .parameter import Parameter
from .utils.rnn import PackedSequence

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Sequences in another order."""
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """What RNN, LSTM and GRU share.

    >>> isinstance(torch.nn.LSTM(3, 4), torch.nn.RNNBase)
    True
    """

    __constants__ = [
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
        "proj_size",
    ]  # fmt: skip
    __jit_unused_properties__ = ["all_weights"]

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device=None,
        dtype=None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_settings(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self._directions()]:
                self._add_cell(layer, suffix, device, dtype)
        self.reset_parameters()

    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _state_size(self) -> int:
        return self.proj_size or self.hidden_size

    def _add_cell(self, layer: int, suffix: str, device, dtype) -> None:
        gates = _GATES[self.mode] * self.hidden_size
        inputs = self.input_size if layer == 0 else self._state_size() * self._directions()
        shapes = {"weight_ih": (gates, inputs), "weight_hh": (gates, self._state_size())}
        if self.bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = [f"{name}_l{layer}{suffix}" for name in shapes]
        for name, shape in zip(names, shapes.values(), strict=True):
            setattr(self, name, Parameter(empty(shape, device, dtype)))
        self._all_weights.append(names)

    def __getstate__(self) -> dict:
        """PyTorch's files keep the flat lists too; here they follow from the names."""
        return super().__getstate__() | {
            "_flat_weights_names": self._flat_weights_names,
            "_flat_weights": self._flat_weights,
        }

    def __setstate__(self, state: dict) -> None:
        derived = ("_flat_weights_names", "_flat_weights", "_flat_weight_refs")
        super().__setstate__({name: value for name, value in state.items() if name not in derived})

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list:
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """Weights of each cell."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Weights need no common memory here."""

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # ---- checks
    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        weight = self._flat_weights[0]
        if input.dtype is not weight.dtype and not ambient.mode & AUTOCAST:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _batch_size(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.size(0) if self.batch_first else input.size(1)

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        return self.num_layers * self._directions(), self._batch_size(input, batch_sizes), self._state_size()

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple, msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation: Tensor | None):
        return hx if permutation is None else apply_permutation(hx, permutation)

    # ---- the call
    def _initial_state(self, input: Tensor, batch_sizes: Tensor | None):
        return input.new_zeros(self.get_expected_hidden_size(input, batch_sizes))

    def _batched_state(self, hx, is_batched: bool):
        """A given state, with a batch dimension where the input has none."""
        wanted = 3 if is_batched else 2
        if hx.dim() != wanted:
            kind = "batched" if is_batched else "unbatched"
            raise RuntimeError(f"For {kind} {wanted}-D input, hx should also be {wanted}-D but got {hx.dim()}-D tensor")
        return hx if is_batched else hx.unsqueeze(1)

    def _layer(self, *args) -> tuple:
        """(output, *states) from the operator."""
        return public("torch", self.mode.lower())(*args)

    def _rank_error(self, input: Tensor) -> str:
        return f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead"

    def _pack_state(self, states: tuple):
        return states[0]

    def _squeeze_state(self, state):
        return state.squeeze(1)

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(self._rank_error(input))
        is_batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        x = input if is_batched else input.unsqueeze(batch_dim)
        hx = self._initial_state(x, None) if hx is None else self._batched_state(hx, is_batched)
        self.check_forward_args(x, hx, None)
        out, *states = self._layer(
            x,
            hx,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
        state = self._pack_state(tuple(states))
        if is_batched:
            return out, state
        return out.squeeze(batch_dim), self._squeeze_state(state)

    def _forward_packed(self, packed: PackedSequence, hx):
        data, batch_sizes, order, back = packed
        hx = self._initial_state(data, batch_sizes) if hx is None else self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, batch_sizes)
        out, *states = self._layer(
            data,
            batch_sizes,
            hx,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        state = self.permute_hidden(self._pack_state(tuple(states)), back)
        return PackedSequence(out, batch_sizes, order, back), state

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, default in defaults.items():
            if getattr(self, name) != default:
                s += f", {name}={getattr(self, name)}"
        return s


def _check_settings(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size) -> None:
    if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
    for name, value, kind in (
        ("bias", bias, bool), ("batch_first", batch_first, bool), ("input_size", input_size, int),
        ("hidden_size", hidden_size, int),
    ):  # fmt: skip
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        if kind is int and value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if mode not in _GATES:
        raise ValueError("Unrecognized RNN mode: " + mode)


def _refuse_projection(kwargs: dict) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """h' = tanh(W x + b + U h + c), or relu.

    >>> out, hidden = torch.nn.RNN(3, 4, batch_first=True)(torch.ones(2, 5, 3))
    >>> out.shape, hidden.shape
    (torch.Size([2, 5, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args, **kwargs) -> None:
        _refuse_projection(kwargs)
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        modes = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}
        if nonlinearity not in modes:
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(modes[nonlinearity], *args, **kwargs)
        self.nonlinearity = nonlinearity

    def _rank_error(self, input: Tensor) -> str:
        return f"RNN: Expected input to be 2D or 3D, got {input.dim()}D tensor instead"


class LSTM(RNNBase):
    """Long short-term memory.

    >>> out, (hidden, cell) = torch.nn.LSTM(3, 4, batch_first=True)(torch.ones(2, 5, 3))
    >>> out.shape, hidden.shape
    (torch.Size([2, 5, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        return self.num_layers * self._directions(), self._batch_size(input, batch_sizes), self.hidden_size

    def check_forward_args(self, input: Tensor, hidden, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        sizes = (self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes))
        for i, size in enumerate(sizes):
            self.check_hidden_size(hidden[i], size, f"Expected hidden[{i}] size {{}}, got {{}}")

    def permute_hidden(self, hx, permutation: Tensor | None):
        return hx if permutation is None else tuple(apply_permutation(h, permutation) for h in hx)

    def _initial_state(self, input: Tensor, batch_sizes: Tensor | None):
        hidden = input.new_zeros(self.get_expected_hidden_size(input, batch_sizes))
        return hidden, input.new_zeros(self.get_expected_cell_size(input, batch_sizes))

    def _batched_state(self, hx, is_batched: bool):
        wanted = 3 if is_batched else 2
        if hx[0].dim() != wanted or hx[1].dim() != wanted:
            kind = "batched" if is_batched else "unbatched"
            got = f"({hx[0].dim()}-D, {hx[1].dim()}-D)"
            raise RuntimeError(
                f"For {kind} {wanted}-D input, hx and cx should also be {wanted}-D but got {got} tensors"
            )
        return tuple(hx) if is_batched else tuple(h.unsqueeze(1) for h in hx)

    def _pack_state(self, states: tuple):
        return states

    def _squeeze_state(self, state):
        return tuple(s.squeeze(1) for s in state)


class GRU(RNNBase):
    """Gated recurrent units.

    >>> out, hidden = torch.nn.GRU(3, 4, batch_first=True)(torch.ones(2, 5, 3))
    >>> out.shape, hidden.shape
    (torch.Size([2, 5, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args, **kwargs) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """What the three cells share.

    >>> isinstance(torch.nn.LSTMCell(3, 4), torch.nn.RNNCellBase)
    True
    """

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device=None, dtype=None) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = Parameter(empty((gates, input_size), device, dtype))
        self.weight_hh = Parameter(empty((gates, hidden_size), device, dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(gates, device, dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if self.__dict__.get("nonlinearity", "tanh") != "tanh":
            s += f", nonlinearity={self.nonlinearity}"
        return s

    def _check_ranks(self, input: Tensor, hx: Tensor | None) -> None:
        kind = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{kind}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if hx is not None and hx.dim() not in (1, 2):
            raise ValueError(f"{kind}: Expected hidden to be 1D or 2D, got {hx.dim()}D instead")

    def _step(self, function: str, input: Tensor, hx: Tensor | None) -> Tensor:
        self._check_ranks(input, hx)
        alone = input.dim() == 1
        x = input.unsqueeze(0) if alone else input
        if hx is None:
            state = x.new_zeros((x.size(0), self.hidden_size))
        else:
            state = hx.unsqueeze(0) if alone else hx
        result = public("torch", function)(x, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result.squeeze(0) if alone else result


class RNNCell(RNNCellBase):
    """One step of an RNN.

    >>> torch.nn.RNNCell(3, 4)(torch.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device=None, dtype=None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"rnn_{self.nonlinearity}_cell", input, hx)


class GRUCell(RNNCellBase):
    """One step of a GRU.

    >>> torch.nn.GRUCell(3, 4)(torch.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("gru_cell", input, hx)


class LSTMCell(RNNCellBase):
    """One step of an LSTM.

    >>> hidden, cell = torch.nn.LSTMCell(3, 4)(torch.ones(2, 3))
    >>> hidden.shape
    torch.Size([2, 4])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check_ranks(input, None)
        for i, value in enumerate(hx or ()):
            if value.dim() not in (1, 2):
                raise ValueError(f"LSTMCell: Expected hx[{i}] to be 1D or 2D, got {value.dim()}D instead")
        alone = input.dim() == 1
        x = input.unsqueeze(0) if alone else input
        if hx is None:
            zeros = x.new_zeros((x.size(0), self.hidden_size))
            state = (zeros, zeros)
        else:
            state = tuple(h.unsqueeze(0) for h in hx) if alone else tuple(hx)
        result = public("torch", "lstm_cell")(x, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return tuple(m.squeeze(0) for m in result) if alone else tuple(result)
