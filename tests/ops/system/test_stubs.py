"""The committed stubs are what the declarations say now, and say what the functions take."""

import ast
import inspect
import subprocess
import sys
import textwrap

import pytest

import pullback
from pullback.ops.system import stubs
from pullback.ops.system.calls import wrapper_source
from pullback.ops.system.operator import exports
from pullback.ops.system.schema import Schema
from pullback.ops.system.signatures import annotation_text, argument_type, signatures


@pytest.fixture(scope="module")
def files():
    return stubs.stub_files()


def test_the_committed_stubs_are_up_to_date():
    # In a fresh interpreter: modules that other tests have imported are attributes of the package here.
    done = subprocess.run(
        [sys.executable, "-m", "pullback.ops.system.stubs", "--check"],
        capture_output=True,
        text=True,
        cwd=stubs.ROOT.parent,
    )
    assert done.returncode == 0, f"run `python -m pullback.ops.system.stubs`:\n{done.stdout}{done.stderr}"


def test_every_stub_is_python(files):
    for text in files.values():
        ast.parse(text)


def test_every_public_function_is_there(files):
    top = ast.parse(files[stubs.ROOT / "__init__.pyi"])
    declared = {node.name for node in top.body if isinstance(node, ast.FunctionDef)}
    functions = {name: value for name, value in exports["torch"].items() if inspect.isfunction(value)}
    assert {name for name, value in functions.items() if getattr(pullback, name, None) is value} <= declared


def test_every_method_is_there(files):
    top = ast.parse(files[stubs.ROOT / "core" / "methods.pyi"])
    body = next(node.body for node in top.body if getattr(node, "name", "") == "TensorMethods")
    declared = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    hung = {name for name, function in exports["Tensor"].items() if vars(pullback.Tensor).get(name) is function}
    assert {name for name in hung if inspect.isfunction(exports["Tensor"][name])} <= declared


def test_a_stub_names_the_parameters_of_its_function():
    line = stubs.function_text("torch", "add", exports["torch"]["add"], {})
    stub = ast.parse(line).body[0].args
    real = ast.parse(wrapper_source("add", exports["torch"]["add"].operator, stated=True)).body[0].args
    assert [a.arg for a in stub.args] == [a.arg for a in real.args]
    assert [a.arg for a in stub.kwonlyargs] == [a.arg for a in real.kwonlyargs]


@pytest.mark.parametrize(
    "argument, expected",
    [
        ("Tensor self", "_Tensor"),
        ("Tensor? weight=None", "_Tensor | None"),
        ("Tensor[] tensors", "_Sequence[_Tensor]"),
        ("Tensor?[] indices", "_Sequence[_Tensor | None]"),
        ("int[1]? dim=None", "_int | _Ints | None"),
        ("SymInt[] size", "_Ints"),
        ("Scalar alpha=1", "_Number | _Tensor"),
        ("ScalarType? dtype=None", "_dtype | None"),
        ("Device? device=None", "_DeviceLike | None"),
        ("float[]? scales", "_Sequence[_float] | None"),
        ("str mode='mean'", "_str"),
    ],
)
def test_types_of_arguments(argument, expected):
    assert argument_type(Schema(f"f({argument}) -> Tensor").arguments[0]) == expected


@pytest.mark.parametrize(
    "annotation, expected",
    [
        ("int | None", "_int | None"),
        ("Sequence[Tensor]", "_Sequence[_Tensor]"),
        ("np.ndarray", "_Any"),
        (float, "_float"),
    ],
)
def test_annotations_the_stub_cannot_spell_are_any(annotation, expected):
    assert annotation_text(annotation) == expected


def test_a_required_dim_goes_by_one_of_its_names():
    both = signatures("torch", "gather", exports["torch"]["gather"], {})
    assert len(both) == 2
    assert both[0].startswith("(input: _Tensor, dim: _int, index: _Tensor, *, ")
    assert both[1].startswith("(input: _Tensor, *, axis: _int, index: _Tensor, ")


def test_several_operators_are_overloads():
    results = {}
    text = stubs.function_text("Tensor", "max", exports["Tensor"]["max"], results)
    assert text.count("@_overload") == len(signatures("Tensor", "max", exports["Tensor"]["max"], {})) > 2
    assert results == {"max_result": ["values: _Tensor", "indices: _Tensor"]}


def test_namespaces_do_not_depend_on_the_alias():
    """Under `torch` the package answers to another name, and modules of the alias hang on it."""
    script = """
        from pullback.compat.torch import install
        from pullback.ops.system import stubs
        before = dict(stubs.namespaces())
        install()
        import torch.storage
        assert torch.storage.__name__ == "torch.storage"
        assert dict(stubs.namespaces()).keys() == before.keys()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_that_are_loaded_later_are_in_the_stub():
    """Editors know `torch.compile` and `torch.optim`, which importing the package does not load."""
    text = (stubs.ROOT / "__init__.pyi").read_text()
    for line in (
        "from pullback.capture.front.compile import compile as compile",
        "from pullback import optim as optim",
        "from pullback import graph as fx",
    ):
        assert f"\n{line}\n" in text
