"""Plans of tensor parallelism: how a module's parameters are cut, how its inputs come and its outputs go.

`parallelize_module(model, mesh, {"mlp.up": ColwiseParallel(), "mlp.down": RowwiseParallel()})`: a column-wise product
gives each rank some features; a row-wise one takes them and gives sums, which are reduced once.
"""

from __future__ import annotations

import fnmatch
from typing import Any

from ....core.tensor import Tensor
from ....nn.embedding import Embedding
from ....nn.linear import Linear
from ....nn.module import Module
from ....nn.parameter import Parameter
from ...device_mesh import DeviceMesh
from ..dtensor import DTensor, distribute_tensor
from ..factories import distribute_module
from ..placements import Placement, Replicate, Shard


class ParallelStyle:
    """A way to make a module parallel."""

    src_data_rank: int | None = 0

    def _apply(self, module: Module, mesh: DeviceMesh) -> Module:
        raise NotImplementedError


def _first(inputs: Any, mesh: DeviceMesh, given: Placement, wanted: Placement) -> Any:
    """A module's inputs, the first of them distributed as wanted; a plain tensor lies as `given` says."""
    x, *rest = inputs
    if isinstance(x, Tensor) and not isinstance(x, DTensor):
        x = DTensor.from_local(x, mesh, [given])
    if isinstance(x, DTensor) and x.placements != (wanted,):
        x = x.redistribute(placements=[wanted])
    return (x, *rest)


def _out(value: Any, wanted: Placement, use_local: bool) -> Any:
    if not isinstance(value, DTensor):
        return value
    placed = (wanted,) if not (isinstance(wanted, Shard) and wanted.dim < 0) else (Shard(wanted.dim + value.dim()),)
    value = value if value.placements == placed else value.redistribute(placements=placed)
    return value.to_local() if use_local else value


class _Product(ParallelStyle):
    """A linear layer or an embedding, cut along one of its dimensions."""

    input_layouts: Placement
    wanted: Placement
    output_layouts: Placement
    use_local_output: bool
    cuts: dict[type, dict[str, Placement]]

    def _apply(self, module: Module, mesh: DeviceMesh) -> Module:
        kind = next((k for k in self.cuts if isinstance(module, k)), None)
        if kind is None:
            raise NotImplementedError(
                f"{type(self).__name__} currently only support nn.Linear and nn.Embedding, got {type(module).__name__}"
            )

        def partition(name: str, m: Module, mesh: DeviceMesh) -> None:
            for p_name, p in m._parameters.items():
                if p is not None:
                    placed = [self.cuts[kind].get(p_name, Replicate())]
                    m.register_parameter(
                        p_name, Parameter(distribute_tensor(p.detach(), mesh, placed), p.requires_grad)
                    )

        wanted = Replicate() if kind is Embedding else self.wanted
        return distribute_module(
            module, mesh, partition,
            lambda m, inputs, mesh: _first(inputs, mesh, self.input_layouts if kind is not Embedding else Replicate(), wanted),
            lambda m, out, mesh: _out(out, self.output_layouts, self.use_local_output),
        )  # fmt: skip


class ColwiseParallel(_Product):
    """Each rank computes some of the outputs."""

    cuts = {Linear: {"weight": Shard(0), "bias": Shard(0)}, Embedding: {"weight": Shard(1)}}

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ):
        self.input_layouts = input_layouts or Replicate()
        self.wanted = Replicate()
        self.output_layouts = output_layouts or Shard(-1)
        self.use_local_output = use_local_output


class RowwiseParallel(_Product):
    """Each rank takes some of the inputs; its sums are reduced."""

    cuts = {Linear: {"weight": Shard(1), "bias": Replicate()}, Embedding: {"weight": Shard(0)}}

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ):
        self.input_layouts = input_layouts or Shard(-1)
        self.wanted = Shard(-1)
        self.output_layouts = output_layouts or Replicate()
        self.use_local_output = use_local_output


class SequenceParallel(ParallelStyle):
    """Norms and dropout on sequences that are cut; parameters are whole on every rank."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False):
        self.sequence_dim, self.use_local_output = sequence_dim, use_local_output

    def _apply(self, module: Module, mesh: DeviceMesh) -> Module:
        cut = Shard(self.sequence_dim)
        return distribute_module(
            module,
            mesh,
            None,
            lambda m, inputs, mesh: _first(inputs, mesh, cut, cut),
            lambda m, out, mesh: _out(out, cut, self.use_local_output),
        )


class PrepareModuleInput(ParallelStyle):
    """Inputs that come in one way and are wanted in another."""

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        use_local_output: bool = False,
        **others: Any,
    ):
        if others:
            raise NotImplementedError(f"PrepareModuleInput: {', '.join(others)}")
        listed = lambda v: v if isinstance(v, tuple) else (v,)
        self.given, self.wanted, self.use_local_output = (
            listed(input_layouts),
            listed(desired_input_layouts),
            use_local_output,
        )

    def _apply(self, module: Module, mesh: DeviceMesh) -> Module:
        def prepare(m: Module, inputs: tuple) -> tuple:
            if len(inputs) != len(self.given):
                raise ValueError(
                    f"module inputs and input_layouts should have same length! Found {len(inputs)} and {len(self.given)}"
                )
            result = []
            for x, given, wanted in zip(inputs, self.given, self.wanted, strict=True):
                if given is not None:
                    (x,) = _first((x,), mesh, given, wanted)
                    x = x.to_local() if self.use_local_output else x
                result.append(x)
            return tuple(result)

        module.register_forward_pre_hook(prepare)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Outputs that come out one way and are wanted in another."""

    def __init__(self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True):
        self.given, self.wanted, self.use_local_output = output_layouts, desired_output_layouts, use_local_output

    def _apply(self, module: Module, mesh: DeviceMesh) -> Module:
        def prepare(m: Module, inputs: tuple, out: Any) -> Any:
            (result,) = _first((out,), mesh, self.given, self.wanted)
            return result.to_local() if self.use_local_output else result

        module.register_forward_hook(prepare)
        return module


def parallelize_module(
    module: Module, device_mesh: DeviceMesh, parallelize_plan: Any = None, *, src_data_rank: int | None = 0
) -> Module:
    """Apply a style to a module, or styles to its children by name; `*` in a name stands for any."""
    if device_mesh.ndim != 1:
        raise ValueError(
            f"parallelize_module: expected a mesh of one dimension, got {device_mesh}; take one by its name"
        )
    if isinstance(parallelize_plan, ParallelStyle):
        return parallelize_plan._apply(module, device_mesh)
    for pattern, style in (parallelize_plan or {}).items():
        found = [m for name, m in module.named_modules() if _matches(name, pattern)]
        if not found:
            raise ValueError(f"parallelize_plan: no module is named {pattern!r}")
        for m in found:
            style._apply(m, device_mesh)
    return module


def _matches(name: str, pattern: str) -> bool:
    parts, patterns = name.split("."), pattern.split(".")
    return len(parts) == len(patterns) and all(map(fnmatch.fnmatchcase, parts, patterns))
