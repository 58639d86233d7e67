"""What is known of a traced function: its inputs, its outputs, and how the graph's results become both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..graph import GraphModule


@dataclass
class Input:
    """One input tensor, and what the function does to it."""

    requires_grad: bool
    is_leaf: bool
    written: bool = False  # its memory gets a new value
    visible: bool = False  # and autograd saw that: the new value has a history
    geometry: tuple | None = None  # shape, stride and how far the beginning moved, where the function changed them
    recorded: bool = False  # autograd saw a change, of the value or of the shape
    row: int | None = None  # the new value is that of so many elements in a row, from where the input begins
    bumped: bool = False  # its version goes up
    switched_on: bool = False  # it requires grad when the function is over, and did not before
    nbytes: int | None = None  # its memory has so many bytes when the function is over
    viewed: bool = False  # it is a view that requires grad, whose history a change of its shape is part of, seen or not


@dataclass
class Output:
    """Where one output comes from.

    "fresh" and "base": result number `index` of the graph. "input": input `index` itself. "input view": a view of that
    input, made again by `calls`; "moved view": of one that was given other memory, when it has that. "view": a view of the graph's result `index`, made again by `calls`. "same": output
    `index` again. "constant": `value`, as it is. "number": a symbolic number among the graph's results.
    """

    kind: str
    index: int = 0
    calls: tuple = ()
    requires_grad: bool = False
    value: Any = None
    is_leaf: bool = False
    is_alias: bool = False  # "fresh", and yet on the memory of something else: its history is a custom function's


@dataclass
class Joint:
    """A traced function. The graph's results: `results` of them for outputs, new values of written inputs, bases of views;
    then one gradient (or None) for each input, then new values of inputs that the backward writes. With `wrapping`, each of these may come down to several
    values of the graph, and `primals` and `tangents` are fakes of those."""

    inputs: list[Input | None]
    outputs: list[Output]
    results: int  # how many results of the graph are the forward's
    written: list[int]  # inputs whose new values follow the outputs' results
    first_written: int  # place of the first of them among the results
    differentiable: list[int] = field(default_factory=list)  # results that have a gradient, in the tangents' order
    tangents: list = field(default_factory=list)  # fake tensors of what the tangents are
    gradients: list[int] = field(default_factory=list)  # inputs that the graph gives gradients of, in their order
    branches: list[tuple[int, ...]] | None = None  # by tangent, the gradients to which it leads; None: each to all
    primals: list = field(default_factory=list)  # the fakes of the inputs
    backward_written: list[int] = field(
        default_factory=list
    )  # inputs that the backward writes: new values follow gradients
    offsets_matter: bool = False  # whether the graph is right only for inputs that begin where these did
    backward_error: Exception | None = None  # what any backward raises
    cut: bool = (
        False  # whether the function computes with recording off, of what has a history: its graph does not say so
    )
    data_sizes: dict = field(default_factory=dict)  # symbols that only data tells, of the sizes of views: their results
    moved: list[int] = field(default_factory=list)  # inputs that are given the memory of the last outputs, one each
    records: bool = False  # whether results have a history though the function is called with recording off
    number: int = -1  # of the compilation
    out_spec: Any = None
    fake_mode: Any = None
    graph_module: GraphModule | None = None  # set when the trace is complete
    wrapping: Any = None  # how inputs and results are built of plain tensors (`Wrapping`), where some are wrappers

    @property
    def module(self) -> GraphModule:
        assert self.graph_module is not None, "the trace is not complete"
        return self.graph_module

    @module.setter
    def module(self, module: GraphModule) -> None:
        self.graph_module = module

    def replaced(self) -> dict[int, int]:
        """{place among the results: input whose new value it is and nothing more}: what may be written over the old one at once."""
        if self.wrapping is not None:
            return {}
        facts = [(self.first_written + k, i, self.tensor_input(i)) for k, i in enumerate(self.written)]
        return {
            place: i
            for place, i, f in facts
            if not f.visible and f.geometry is None and f.row is None and f.nbytes is None
        }

    def tensor_input(self, i: int) -> Input:
        """What is known of an input that is a tensor."""
        fact = self.inputs[i]
        assert fact is not None, f"input {i} is no tensor"
        return fact
