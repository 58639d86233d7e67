"""`AdaptiveLogSoftmaxWithLoss`: a softmax over many classes, most of them rare and in clusters of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.tensor import Tensor
from ..ops.system.operator import public
from . import functional as F
from .containers import ModuleList, Sequential
from .linear import Linear
from .module import Module


class ASMoutput(NamedTuple):
    """Log-probabilities of the targets, and the loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The head knows the frequent classes and the clusters; each cluster knows its classes.

    >>> head = torch.nn.AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[5])
    >>> head(torch.ones(3, 4), torch.tensor([0, 5, 9])).output.shape
    torch.Size([3])
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device=None, dtype=None,
    ) -> None:  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        increasing = cutoffs == sorted(set(cutoffs))
        if not increasing or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 or any(int(c) != c for c in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            first = Linear(in_features, hidden, False, device, dtype)
            self.tail.append(Sequential(first, Linear(hidden, size, False, device, dtype)))

    def reset_parameters(self) -> None:
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> ASMoutput:
        self._check(input_, target_)
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        head = F.log_softmax(self.head(input), dim=1)
        output = input.new_zeros(target.size(0))
        column = target.clone()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if not rows.numel():
                continue
            inside = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            wanted = target.index_select(0, rows) - low
            output = output.index_copy(0, rows, inside.gather(1, wanted.unsqueeze(1)).squeeze(1))
            column = column.index_fill(0, rows, self.shortlist_size + i)
        output = output + head.gather(1, column.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return ASMoutput(output if batched else output.squeeze(0), loss)

    def _check(self, input: Tensor, target: Tensor) -> None:
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.dim() == 1 and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != target.dim() + 1:
            raise RuntimeError(
                f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with size "
                f"{input.size()}"
            )
        if target.numel() and (target.min() < 0 or target.max() >= self.n_classes):
            found = f"[{target.min().item()}, {target.max().item()}]"
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range {found} were found. "
            )

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes."""
        return self._all_classes(input, self.head(input))

    def _all_classes(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            inside = F.log_softmax(cluster(input), dim=1)
            parts.append(inside + head[:, self.shortlist_size + i].unsqueeze(1))
        return public("torch", "cat")(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each example; clusters are looked into only where the head points at one."""
        head_output = self.head(input)
        best = head_output.argmax(dim=1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if not rows.numel():
            return best
        inside = self._all_classes(input.index_select(0, rows), head_output.index_select(0, rows))
        return best.index_copy(0, rows, inside.argmax(dim=1))
