"""Rich displays in notebooks: tensors, modules and graphs as HTML.

In: an object that a notebook shows. Out: a piece of HTML with no script and nothing fetched. The functions are registered with
IPython by name (`register`), so that the classes know nothing of notebooks and a display costs nothing until it is asked for.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..core.tensor import Tensor
    from ..graph import GraphModule
    from ..nn.module import Module

CELLS = 32  # of a matrix that are drawn, each way
_MONO = "font-family:monospace;white-space:pre"


def tensor_html(t: Tensor) -> str:
    """What a tensor is, what its numbers are like, and a matrix of few numbers as a picture."""
    words = ["×".join(map(str, t.shape)) or "a number", str(t.dtype).partition(".")[2], str(t.device)]
    if t.grad_fn is not None:
        words.append(f"from {t.grad_fn.name()}")
    elif t.requires_grad:
        words.append("requires grad")
    return (
        f"<div><b>Tensor</b> {html.escape(' · '.join(words + _statistics(t)))}{_picture(t)}"
        f'<div style="{_MONO}">{html.escape(repr(t))}</div></div>'
    )


def _numbers(t: Tensor) -> Any:
    """The numbers of a tensor as an array of floats; None where there are none to show."""
    import numpy as np

    if t.numel() == 0 or t.device.type == "meta" or t.is_sparse or t.dtype.is_complex:
        return None
    try:
        return t.detach().cpu().double().numpy()
    except (RuntimeError, NotImplementedError, TypeError, np.exceptions.DTypePromotionError):
        return None  # wrappers, fake tensors: they have no numbers


def _statistics(t: Tensor) -> list[str]:
    import numpy as np

    values = _numbers(t)
    if values is None or values.size < 2:
        return []
    finite = values[np.isfinite(values)]
    words = [f"from {finite.min():.4g} to {finite.max():.4g}", f"mean {finite.mean():.4g}"] if finite.size else []
    odd = values.size - finite.size
    return [*words, f"{odd} not finite"] if odd else words


def _picture(t: Tensor) -> str:
    """A matrix as squares: blue below zero, red above, stronger for larger numbers; nothing for other shapes."""
    import numpy as np

    if t.ndim != 2 or (values := _numbers(t)) is None:
        return ""
    shown = np.nan_to_num(values[:CELLS, :CELLS], nan=0.0, posinf=0.0, neginf=0.0)
    largest = float(np.abs(shown).max()) or 1.0
    cells = "".join(
        f'<rect x="{8 * column}" y="{8 * row}" width="8" height="8" fill="{"#c0392b" if value > 0 else "#2471a3"}" '
        f'fill-opacity="{abs(value) / largest:.2f}"/>'
        for (row, column), value in np.ndenumerate(shown)
    )
    rows, columns = shown.shape
    return f'<svg width="{8 * columns}" height="{8 * rows}" style="display:block;border:1px solid #999">{cells}</svg>'


def module_html(module: Module) -> str:
    """A module as a tree that folds, with the parameters of each part."""
    return f"<div>{_branch('', module)}</div>"


def _branch(name: str, module: Module) -> str:
    count = sum(p.numel() for p in module.parameters())
    said = f"{type(module).__name__}({module.extra_repr()})"
    title = f"{html.escape(f'{name}: ' if name else '')}<b>{html.escape(said)}</b> · {count:,} parameters"
    own = "".join(
        f"<div>{html.escape(key)}: {'×'.join(map(str, p.shape))} {str(p.dtype).partition('.')[2]}</div>"
        for key, p in module.named_parameters(recurse=False)
    )
    inner = own + "".join(_branch(key, child) for key, child in module.named_children())
    if not inner:
        return f'<div style="margin-left:1.2em">{title}</div>'
    return f'<details style="margin-left:1.2em"{" open" * (not name)}><summary>{title}</summary><div style="margin-left:1.2em">{inner}</div></details>'


def graph_html(module: GraphModule) -> str:
    """A graph as a table of its nodes, and its code, folded."""
    head = "<tr><th>node</th><th>is</th><th>of</th><th>shape</th></tr>"
    rows = []
    for node in module.graph.nodes:
        value = node.meta.get("val", node.meta.get("example_value"))
        shape = "×".join(map(str, getattr(value, "shape", ())))
        target = getattr(node.target, "__name__", None) or str(node.target)
        arguments = ", ".join(map(str, node.args))
        cells = (node.name, f"{node.op} {target}", arguments, shape)
        rows.append(f"<tr>{''.join(f'<td>{html.escape(str(c))}</td>' for c in cells)}</tr>")
    return (
        f"<div><b>{html.escape(type(module).__name__)}</b> · {len(rows)} nodes<table>{head}{''.join(rows)}</table>"
        f'<details><summary>code</summary><div style="{_MONO}">{html.escape(module.code)}</div></details></div>'
    )


NAMES = (  # as the classes are called here, and where `torch` means this package
    (tensor_html, "Tensor", ("pullback.core.tensor", "torch")),
    (module_html, "Module", ("pullback.nn.module", "torch.nn.modules.module")),
    (graph_html, "GraphModule", ("pullback.graph.module", "torch.fx.graph_module")),
)


def register(shell: Any) -> None:
    """Let a running IPython display our objects so."""
    formatter = shell.display_formatter.formatters["text/html"]
    for function, name, homes in NAMES:
        for home in homes:
            formatter.for_type_by_name(home, name, function)
