"""Seams are declared as they are used, set once, and independent of the order of imports."""

import dataclasses
import importlib
import importlib.util
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from pullback.core.layers import EXTENSIONS, Seams, above, declarations, extend
from pullback.core.node import Node
from pullback.core.random import Generator
from pullback.core.storage import UntypedStorage
from pullback.core.tensor import Tensor

SOURCE = Path(__file__).resolve().parents[2] / ".ci" / "layers.py"


@pytest.fixture(scope="module")
def source():
    """The tool that reads the source of the package."""
    spec = importlib.util.spec_from_file_location("layers", SOURCE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["layers"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["layers"]


# ---- one object
def test_a_seam_is_set_once():
    fresh = Seams()
    fresh.note_creation = print
    assert fresh.note_creation is print
    with pytest.raises(RuntimeError, match="'note_creation' is set already, by autograd.anomaly_mode"):
        fresh.note_creation = repr


def test_a_seam_must_be_declared():
    with pytest.raises(AttributeError, match="there is no seam 'autocasts'; did you mean 'autocast'?"):
        Seams().autocasts = print


def test_a_seam_is_a_function():
    with pytest.raises(TypeError, match="'run_body' must be a function, not int"):
        Seams().run_body = 3


def test_until_a_layer_is_there_its_seams_say_so():
    class sin:
        display = "sin"

    fresh = Seams()
    with pytest.raises(RuntimeError, match="forward mode is not loaded"):
        fresh.forward_layer(sin, (), 0, False)
    with pytest.raises(NotImplementedError, match=r"sin\(\) is not implemented for fake tensors"):
        fresh.execute_fake(sin, ())
    assert fresh.autocast(sin, (1, 2)) is None
    assert fresh.run_compiled([], [], False, False, None, False) is None


# ---- as declared
def test_seams_are_asked_and_set_where_they_say(source):
    asked, result = defaultdict(set), defaultdict(set)
    for module, name, stores in source.uses():
        (result if stores else asked)[name].add(module.removeprefix("pullback."))
    for d in declarations():
        assert asked.pop(d.name) == set(d.asked_by), d.name
        assert result.pop(d.name) == {d.set_by}, d.name
    assert not asked and not result


@pytest.mark.parametrize("said", declarations(), ids=lambda d: d.name)
def test_importing_a_layer_sets_its_seams(said):
    importlib.import_module(f"pullback.{said.set_by}")
    unset = next(f.default for f in dataclasses.fields(Seams) if f.name == said.name)
    assert getattr(above, said.name) is not unset


def test_only_the_declarations_name_types_from_above(source):
    above_them = source.upward(i for i in source.imports() if i.for_types)
    assert {i.source for i in above_them} == {"pullback.core.layers"}


# ---- imports
LONGEST_CYCLE = 5  # modules that import one another when deferred imports are counted; may only fall


def test_no_import_points_upward_deferred_or_not(source):
    assert [] == source.upward(i for i in source.imports() if not i.for_types)


def test_every_module_has_a_layer(source):
    assert {source.layer_of(module) for module in source.module_files()} <= set(source.contract())


def test_no_cycle_leaves_its_layer(source):
    groups = source.cycles((i.source, i.target) for i in source.imports() if not i.for_types)
    assert all(len({source.layer_of(m) for m in group}) == 1 for group in groups)
    assert max(map(len, groups), default=0) <= LONGEST_CYCLE


def test_the_tool_sees_imports_in_functions_and_in_strings(source, tmp_path):
    path = tmp_path / "sample.py"
    path.write_text("def f():\n    from .layers import above\n    import_module('pullback.ops.system')\n")
    reader = source._Reader("pullback.core.sample", path, ("pullback.core.layers", "pullback.ops.system"))
    reader.visit(source.ast.parse(path.read_text()))
    assert [(i.target, i.line, i.deferred) for i in reader.found] == [
        ("pullback.core.layers", 2, True),
        ("pullback.ops.system", 3, True),
    ]
    assert [i.target for i in source.upward(reader.found)] == ["pullback.ops.system"]


# ---- members of classes
CLASSES = {"Tensor": Tensor, "Node": Node, "Generator": Generator, "UntypedStorage": UntypedStorage}


def test_layers_add_to_classes_what_they_declare():
    for name, by_module in EXTENSIONS.items():
        for module, members in by_module.items():
            importlib.import_module(f"pullback.{module}")
            assert all(m in vars(CLASSES[name]) for m in members.split()), (name, module)


def test_a_member_is_added_once():
    with pytest.raises(RuntimeError, match="Generator.get_state is there already; ops.make.random may not replace it"):
        extend(Generator, "pullback.ops.make.random", get_state=print, set_state=print)


def test_a_member_must_be_declared():
    with pytest.raises(
        RuntimeError, match=r"ops.layout.named adds \['name', 'names'\] to Tensor, and declares \['names'\]"
    ):
        extend(Tensor, "pullback.ops.layout.named", names=print, name=print)


def test_nobody_hangs_members_on_these_classes_otherwise(source):
    assert list(source.hung(CLASSES)) == []


def test_the_table_in_the_docs_is_up_to_date(source):
    page = source.PAGE.read_text()
    assert source.with_tables(page) == page, "run .ci/layers.py --write"


FIRST = ("serialization", "capture.fake.mode", "amp", "autograd.profiler", "ops.layout.named", "backward.compiled")


def test_layers_may_be_imported_in_any_order():
    """Each first, and what is computed is the same."""
    program = (
        "import sys, importlib; importlib.import_module('pullback.' + sys.argv[1]); import pullback as torch\n"
        "x = torch.ones(2, requires_grad=True); (x * x).sum().backward(); print(x.grad.tolist())"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, first], stdout=subprocess.PIPE, text=True) for first in FIRST
    ]
    assert [p.communicate()[0] for p in running] == ["[2.0, 2.0]\n"] * len(FIRST)
