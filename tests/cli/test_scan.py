"""Names of torch are found through every kind of import, and only those that are not here are listed."""

from pullback.cli.scan import missing_names, scan

PROGRAM = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, NoSuchLoader as Loader
import torch.nosuchmodule

x = torch.no_such_function(1)
y = nn.Linear(2, 3), nn.NoSuchLayer()
z = F.relu(x), F.no_such_activation(x)
torch.Tensor.no_such_method
torch.ops.aten.add.Tensor
try:
    from torch import may_be_absent
except ImportError:
    may_be_absent = None
if hasattr(torch, "other"):
    torch.other()
"""


def test_missing_names(tmp_path, capsys):
    (tmp_path / "program.py").write_text(PROGRAM)
    found = {use.name: use for use in missing_names([str(tmp_path)])}
    assert {name for name, use in found.items() if not use.guarded} == {
        "torch.utils.data.NoSuchLoader", "torch.nosuchmodule", "torch.no_such_function", "torch.nn.NoSuchLayer",
        "torch.nn.functional.no_such_activation", "torch.Tensor.no_such_method",
    }  # fmt: skip
    assert {name for name, use in found.items() if use.guarded} == {"torch.may_be_absent", "torch.other"}
    assert found["torch.no_such_function"].places == [f"{tmp_path}/program.py:8"]
    assert scan([str(tmp_path)]) == 1 and "6 names of torch are used and missing" in capsys.readouterr().out


def test_a_name_that_a_handler_binds_again_keeps_its_first_meaning(tmp_path):
    text = (
        "try:\n    import torch.fx as fx\nexcept ImportError:\n    import torch.elsewhere as fx\nfx.no_such_function\n"
    )
    (tmp_path / "program.py").write_text(text)
    found = {use.name: use.guarded for use in missing_names([str(tmp_path)])}
    assert found == {"torch.elsewhere": True, "torch.fx.no_such_function": False}


def test_a_program_that_lacks_nothing(tmp_path, capsys):
    (tmp_path / "fine.py").write_text("import torch\nprint(torch.ones(2), torch.nn.Linear)\n")
    assert scan([str(tmp_path / "fine.py")]) == 0
    assert scan(["no_such_package_anywhere"]) == 2 and "neither a file" in capsys.readouterr().err
