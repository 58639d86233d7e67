"""`ZeroRedundancyOptimizer`: optimizer state in parts, one on each rank.

In: parameters that all ranks have, with the same gradients. Out: the same steps as the optimizer would make on one rank;
each rank keeps the state of some parameters, updates these and gives them to the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...ops.system.operator import public
from ...optim.optimizer import Optimizer
from ..collectives import broadcast
from ..groups import world_or_raise
from ..objects import gather_object
from ..process_group import ProcessGroup


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer whose state is spread over ranks."""

    def __init__(
        self, params: Iterable, optimizer_class: type, process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any,
    ):  # fmt: skip
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp=True; steps begin when gradients are averaged"
            )
        self.group = process_group or world_or_raise()
        self.optim: Optimizer | None = None  # this rank's part
        self._class, self._defaults = optimizer_class, defaults
        self._gathered: list | None = None
        super().__init__(list(params), defaults)
        self._build()

    def _build(self) -> None:
        """Spread the parameters: the next largest goes to the rank that has least."""
        every = sorted((p for g in self.param_groups for p in g["params"]), key=lambda p: -p.numel())
        load = [0] * self.group.size()
        self.owner: dict[Tensor, int] = {}
        for p in every:
            rank = load.index(min(load))
            self.owner[p] = rank
            load[rank] += p.numel()
        mine = [{**{k: v for k, v in g.items() if k != "params"}, "params": self._own(g)} for g in self.param_groups]
        self.optim = (
            self._class([g for g in mine if g["params"]], **self._defaults) if any(g["params"] for g in mine) else None
        )

    def _own(self, group: dict) -> list[Tensor]:
        return [p for p in group["params"] if self.owner[p] == self.group.rank()]

    def add_param_group(self, param_group: dict) -> None:
        if hasattr(self, "owner"):
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: a parameter group that comes after the first ones changes who keeps what"
            )
        super().add_param_group(param_group)

    def step(self, closure: Callable | None = None, **kwargs: Any) -> Any:
        """Update this rank's parameters, and take those of the others."""
        self._share_settings()
        loss = None
        if self.optim is not None:
            loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        elif closure is not None:
            loss = closure()
        self._share_parameters()
        return loss

    def _share_settings(self) -> None:
        """What schedulers change in the groups here (the rate) holds for this rank's part too."""
        if self.optim is None:
            return
        with_mine = [g for g in self.param_groups if self._own(g)]
        for theirs, mine in zip(with_mine, self.optim.param_groups, strict=True):
            mine.update({k: v for k, v in theirs.items() if k != "params"})

    def _share_parameters(self) -> None:
        """One broadcast for each rank and dtype."""
        with no_grad():
            kinds: dict[tuple, list[Tensor]] = {}
            for g in self.param_groups:
                for p in g["params"]:
                    kinds.setdefault((self.owner[p], p.dtype), []).append(p)
            for (owner, _), params in sorted(kinds.items(), key=lambda item: (item[0][0], str(item[0][1]))):
                flat = public("torch", "cat")([p.detach().reshape(-1) for p in params])
                broadcast(flat, group=self.group, group_src=owner)
                if owner != self.group.rank():
                    for p, part in zip(params, flat.split([p.numel() for p in params]), strict=True):
                        p.copy_(part.reshape(p.shape))

    # ---- saving
    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state of all ranks to one, where `state_dict` then gives all of it."""
        number = {p: i for i, p in enumerate(p for g in self.param_groups for p in g["params"])}
        mine = {} if self.optim is None else {number[p]: s for p, s in self.optim.state.items()}
        gathered: list | None = [None] * self.group.size() if self.group.rank() == to else None
        gather_object(mine, gathered, group=self.group, group_dst=to)
        self._gathered = gathered

    def state_dict(self) -> dict:
        """The state of all parameters, on the rank that consolidated it."""
        if self._gathered is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to=rank)` on all "
                "ranks beforehand if you meant to save the global state."
            )
        counts = iter(range(sum(len(g["params"]) for g in self.param_groups)))
        groups = [
            {**{k: v for k, v in g.items() if k != "params"}, "params": [next(counts) for _ in g["params"]]}
            for g in self.param_groups
        ]
        state = {i: s for part in self._gathered for i, s in part.items()}
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict) -> None:
        """Take a whole state; each rank keeps its own part."""
        every = [p for g in self.param_groups for p in g["params"]]
        for mine, given in zip(self.param_groups, state_dict["param_groups"], strict=True):
            mine.update({k: v for k, v in given.items() if k != "params"})
        self._share_settings()
        if self.optim is None:
            return
        place = {p: i for i, p in enumerate(p for g in self.optim.param_groups for p in g["params"])}
        own = {place[every[i]]: s for i, s in state_dict["state"].items() if every[i] in place}
        self.optim.load_state_dict({"state": own, "param_groups": self.optim.state_dict()["param_groups"]})
