"""A graph as a picture: SVG, laid out here.

In: a graph. Out: SVG text, inputs on top, each node below what it uses. What always holds: nodes of a layer do not
overlap, and edges run downwards through places reserved in the layers between; only edges over very many layers are
drawn straight and faint.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from .annotations import annotation, value_of
from .names import pretty_target
from .node import Node

COLORS = {
    "placeholder": "#d9ead3", "get_attr": "#fff2cc", "call_function": "#cfe2f3", "call_method": "#d0e0e3",
    "call_module": "#d9d2e9", "output": "#f4cccc",
}  # fmt: skip
_HEIGHT, _GAP_X, _GAP_Y, _MARGIN, _CHARACTER = 40, 24, 46, 16, 6.7
_SWEEPS = 6  # of the ordering: more change little
_LONG = 12  # layers: an edge over more of them reserves no places


class _Box:
    """A node in the picture, or the place where a long edge crosses a layer."""

    __slots__ = ("node", "layer", "width", "x", "above", "below", "far", "lines", "title")

    def __init__(self, node: Node | None, layer: int):
        self.node = node
        self.title = str(node.format_node()) if node is not None else ""
        self.layer = layer
        self.above: list[_Box] = []
        self.below: list[_Box] = []
        self.far: list[_Box] = []  # the ends of its long edges
        self.lines = _label(node) if node is not None else []
        self.width = max((len(line) for line in self.lines), default=0) * _CHARACTER + 16 if node is not None else 8.0
        self.x = 0.0  # of the middle


def _label(node: Node) -> list[str]:
    target = node.op if node.op in ("placeholder", "output") else pretty_target(node.target)
    shape = annotation(value_of(node))
    return [f"{node.name}  {shape}" if shape else node.name, target if len(target) < 40 else "…" + target[-38:]]


def svg(graph: Any, color: Callable[[Node], str] | None = None) -> str:
    """The picture of a graph; each node in the color of its kind, or in the one that `color` gives it."""
    color = color or (lambda node: COLORS[node.op])
    layers, boxes = _layered(list(graph.nodes))
    _order(layers)
    _place(layers)
    width = max((b.x + b.width / 2 for layer in layers for b in layer), default=0) + _MARGIN
    height = len(layers) * (_HEIGHT + _GAP_Y) - _GAP_Y + 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{max(height, 0):.0f}" '
        'font-family="Menlo, Consolas, monospace" font-size="11">',
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
        *[edge for box in boxes.values() for edge in _edges(box)],
        *[_drawn(box, color(node)) for node, box in boxes.items()],
        "</svg>",
    ]
    return "\n".join(parts)


def _layered(nodes: list[Node]) -> tuple[list[list[_Box]], dict[Node, _Box]]:
    """Layers of boxes: each node one below its lowest input; long edges get a box in every layer they cross."""
    boxes: dict[Node, _Box] = {}
    layers: list[list[_Box]] = []
    for node in nodes:
        layer = max((boxes[used].layer + 1 for used in node._input_nodes), default=0)
        box = boxes[node] = _Box(node, layer)
        while len(layers) <= layer:
            layers.append([])
        layers[layer].append(box)
        for used in node._input_nodes:
            above = boxes[used]
            if layer - above.layer > _LONG:
                above.far.append(box)
                continue
            for between in range(above.layer + 1, layer):
                crossing = _Box(None, between)
                layers[between].append(crossing)
                _connect(above, crossing)
                above = crossing
            _connect(above, box)
    return layers, boxes


def _connect(above: _Box, below: _Box) -> None:
    above.below.append(below)
    below.above.append(above)


def _order(layers: list[list[_Box]]) -> None:
    """Reorder each layer by the middle of its neighbours, down and up, so that few edges cross."""
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        place: dict[int, int] = {}  # of the boxes in the layer just ordered
        for layer in layers if down else reversed(layers):
            keys = {}
            for i, box in enumerate(layer):
                near = box.above if down else box.below
                keys[id(box)] = sum(place[id(n)] for n in near) / len(near) if near else float(i)
            layer.sort(key=lambda b: keys[id(b)])
            place = {id(box): i for i, box in enumerate(layer)}


def _place(layers: list[list[_Box]]) -> None:
    """Give each box its x: as near to the middle of its neighbours as the boxes to its left allow."""
    for layer in layers:
        left = float(_MARGIN)
        for box in layer:
            wish = sum(n.x for n in box.above) / len(box.above) if box.above else 0.0
            box.x = max(left + box.width / 2, wish)
            left = box.x + box.width / 2 + _GAP_X
    for layer in reversed(layers):  # and back up, moving right only
        right = float("inf")
        for box in reversed(layer):
            if box.below:
                wish = sum(n.x for n in box.below) / len(box.below)
                box.x = max(box.x, min(wish, right - box.width / 2))
            right = box.x - box.width / 2 - _GAP_X


def _top(layer: int) -> float:
    return _MARGIN + layer * (_HEIGHT + _GAP_Y)


def _edges(box: _Box) -> list[str]:
    """The edges that leave a node, each a smooth path to the node it ends in."""
    found = []
    for below in box.far:
        start, end = _top(box.layer) + _HEIGHT, _top(below.layer)
        path = f"M{box.x:.0f},{start:.0f} L{below.x:.0f},{end:.0f}"
        found.append(f'<path d="{path}" stroke="#bbb" stroke-dasharray="4 4" marker-end="url(#arrow)"/>')
    for below in box.below:
        points = [(box.x, _top(box.layer) + _HEIGHT)]
        while below.node is None:
            points += [(below.x, _top(below.layer)), (below.x, _top(below.layer) + _HEIGHT)]
            below = below.below[0]
        points.append((below.x, _top(below.layer)))
        path = f"M{points[0][0]:.0f},{points[0][1]:.0f}"
        for (x0, y0), (x1, y1) in zip(points, points[1:]):
            middle = (y0 + y1) / 2
            path += f" C{x0:.0f},{middle:.0f} {x1:.0f},{middle:.0f} {x1:.0f},{y1:.0f}"
        found.append(f'<path d="{path}" fill="none" stroke="#555" marker-end="url(#arrow)"/>')
    return found


def _drawn(box: _Box, color: str) -> str:
    left, top = box.x - box.width / 2, _top(box.layer)
    first, second = (escape(line) for line in box.lines)
    return (
        f'<g><title>{escape(box.title)}</title><rect x="{left:.0f}" y="{top:.0f}" '
        f'width="{box.width:.0f}" height="{_HEIGHT}" rx="5" fill="{color}" stroke="#777"/>'
        f'<text x="{box.x:.0f}" y="{top + 16:.0f}" text-anchor="middle" font-weight="bold">{first}</text>'
        f'<text x="{box.x:.0f}" y="{top + 31:.0f}" text-anchor="middle" fill="#444">{second}</text></g>'
    )
