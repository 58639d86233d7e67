"""Pictures of graph modules.

In: a graph module. Out: SVG text, or the text of a DOT file for graphviz, which is not needed for the first and not
called for the second. What always holds: submodules that are graph modules get pictures of their own.
"""

from __future__ import annotations

from typing import Any

from ..annotations import annotation, value_of
from ..draw import COLORS, svg
from ..module import GraphModule
from ..names import pretty_target


class DotText(str):
    """The text of a DOT file, with the methods that programs call on a graphviz object."""

    picture = ""  # the same graph as SVG

    def to_string(self) -> str:
        return str(self)

    def write_dot(self, path: str) -> None:
        self._write(path, self)

    write_raw = write_dot

    def write_svg(self, path: str) -> None:
        self._write(path, self.picture)

    def create_svg(self) -> bytes:
        return self.picture.encode()

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("write_", "create_")):
            raise NotImplementedError(
                f"{name}: graphviz is not used here; there is DOT text (write_dot) and SVG (write_svg)"
            )
        raise AttributeError(name)

    @staticmethod
    def _write(path: str, text: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


class FxGraphDrawer:
    """Draws a graph module and its submodules."""

    def __init__(self, graph_module: GraphModule, name: str, *args: Any, **kwargs: Any):
        self._name = name
        self._drawings = {name: draw_dot(graph_module, name)}
        for path, module in graph_module.named_modules():
            if path and isinstance(module, GraphModule):
                self._drawings[f"{name}_{path}"] = draw_dot(module, f"{name}_{path}")

    def get_dot_graph(self, submod_name: str | None = None) -> DotText:
        return self._drawings[self._name if submod_name is None else f"{self._name}_{submod_name}"]

    def get_main_dot_graph(self) -> DotText:
        return self._drawings[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> DotText:
        return self._drawings[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, DotText]:
        return self._drawings

    def get_svg(self, submod_name: str | None = None) -> str:
        """The picture itself."""
        return self.get_dot_graph(submod_name).picture


def draw_dot(module: GraphModule, name: str) -> DotText:
    """A module's graph as DOT text."""
    lines = [
        f'digraph "{name}" {{',
        "rankdir=TB;",
        'node [shape=record, style="filled,rounded", fontname="Helvetica"];',
    ]
    for node in module.graph.nodes:
        parts = [f"name=%{node.name}", f"op_code={node.op}", f"target={pretty_target(node.target)}"]
        shape = annotation(value_of(node))
        parts += [shape] if shape else []
        label = "|".join(_escaped(part) for part in parts)
        lines.append(f'{node.name} [label="{{{label}}}", fillcolor="{COLORS[node.op]}"];')
        lines += [f"{used.name} -> {node.name};" for used in node.all_input_nodes]
    result = DotText("\n".join([*lines, "}"]))
    result.picture = svg(module.graph)
    return result


def _escaped(text: str) -> str:
    for c in '\\"{}|<>':
        text = text.replace(c, "\\" + c)
    return text
