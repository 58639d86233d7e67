"""Displays in notebooks: well-formed HTML that tells what an object is; an IPython that runs gets them by name."""

import xml.etree.ElementTree as ElementTree

import pytest

import pullback as torch
from pullback import nn
from pullback.surface import tracebacks
from pullback.surface.notebook import NAMES, graph_html, module_html, register, tensor_html


def text_of(page: str) -> str:
    """The words of a piece of HTML; raises where a tag is left open."""
    return "".join(ElementTree.fromstring(page.replace(" open>", ' open="">')).itertext())


def test_a_matrix_is_described_and_drawn():
    x = torch.tensor([[1.0, -2.0], [0.0, 4.0]], requires_grad=True) * 1
    page = tensor_html(x)
    assert "2×2 · float32 · cpu · from MulBackward0 · from -2 to 4 · mean 0.75" in text_of(page)
    assert page.count("<rect") == 4
    assert page.count("#2471a3") == 2  # -2 and 0


def test_large_matrices_are_drawn_in_part():
    assert tensor_html(torch.ones(100, 50)).count("<rect") == 32 * 32


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (torch.tensor(3), "a number · int64 · cpu"),
        (torch.empty(0, 3), "0×3 · float32 · cpu"),
        (torch.tensor([1.0, float("nan"), float("inf")]), "from 1 to 1 · mean 1 · 2 not finite"),
        (torch.ones(2, 2, device="meta"), "2×2 · float32 · meta"),
        (torch.eye(2).to_sparse(), "2×2 · float32 · cpu"),
        (torch.tensor([1j, 2.0]), "2 · complex64 · cpu"),
        (torch.ones(2, requires_grad=True), "requires grad"),
    ],
)
def test_tensors_of_every_kind_have_a_display(tensor, words):
    assert words in text_of(tensor_html(tensor))


def test_a_module_is_a_tree_with_counts():
    words = text_of(module_html(nn.Sequential(nn.Linear(3, 4), nn.ReLU())))
    assert "Sequential() · 16 parameters" in words
    assert "0: Linear(in_features=3, out_features=4, bias=True) · 16 parameters" in words
    assert "weight: 4×3 float32" in words


def test_a_graph_is_a_table():
    words = text_of(graph_html(torch.fx.symbolic_trace(lambda x: torch.relu(x) < 2)))
    assert "4 nodes" in words
    assert "call_function relu" in words
    assert "def forward" in words


class Formatter:
    def __init__(self):
        self.known = {}

    def for_type_by_name(self, module, name, function):
        self.known[module, name] = function


class Shell:
    """What is asked of a running IPython."""

    def __init__(self):
        self.display_formatter = self
        self.formatters = {"text/html": Formatter()}
        self.custom_exceptions = ()
        self.shown = []

    def set_custom_exc(self, kinds, handler):
        self.custom_exceptions, self.handler = kinds, handler

    def showtraceback(self, what, tb_offset=None):
        self.shown.append(what)


def test_the_classes_are_found_by_name():
    shell = Shell()
    register(shell)
    known = shell.formatters["text/html"].known
    for function, cls in ((tensor_html, torch.Tensor), (module_html, nn.Module), (graph_html, torch.fx.GraphModule)):
        assert known[cls.__module__, cls.__name__] is function
    assert len(known) == 2 * len(NAMES)


def test_a_notebook_gets_displays_and_folded_errors(monkeypatch, capsys):
    shell = Shell()
    monkeypatch.setitem(
        tracebacks.sys.modules, "IPython", type("IPython", (), {"get_ipython": staticmethod(lambda: shell)})
    )
    tracebacks.install()
    try:
        torch.ones(2) + torch.ones(3)
    except RuntimeError as error:
        shell.handler(shell, type(error), error, error.__traceback__)
    (_, error, trace), = shell.shown  # fmt: skip
    assert trace.tb_next is None and trace is error.__traceback__
    assert "left out" in capsys.readouterr().err
