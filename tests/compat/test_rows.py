"""The table of private names: every row leads to something that is there."""

import subprocess
import sys

CODE = """
import importlib
from pullback.compat import torch as table
table.install()
lost = []
for module, rows in table.PRIVATE.items():
    for name, home in rows.items():
        if name == "*":
            continue
        try:
            table._resolve(home)
            getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            if "needs the package" not in str(error):  # tensorboard's, where that is not installed
                lost.append(f"{module}.{name} -> {home}: {error}")
for module, home in table.RENAMED.items():
    try:
        importlib.import_module(module)
    except ImportError as error:
        if "needs the package" not in str(error):
            lost.append(f"{module} -> {home}: {error}")
print(*lost, sep="\\n", end="")
"""


def test_every_row_leads_somewhere():
    result = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""


def ask(code: str) -> str:
    """What a program prints that runs under the alias."""
    start = "from pullback.compat.torch import install; install(); import torch\n"
    result = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_a_row_wins_over_a_module_of_the_same_name():
    assert ask("print(torch.nn.modules.utils._pair(3))") == "(3, 3)"


def test_metaclass_of_tensors():
    code = """
class Meta(torch._C._TensorMeta):
    def __instancecheck__(cls, value):
        return True
class Mine(torch.Tensor, metaclass=Meta):
    pass
print(isinstance(3, Mine), isinstance(torch.Tensor, torch._C._TensorMeta), isinstance(int, torch._C._TensorMeta))
"""
    assert ask(code) == "True True False"


def test_containers_are_batched_by_functions_put_into_vmap():
    """What tensordict does: its own ways in and out of a level, which know its container."""
    code = """
import torch._functorch.vmap as source
class Pair:
    def __init__(self, a, b): self.a, self.b = a, b
taking, wrapping, unwrapping = source._process_batched_inputs, source._create_batched_inputs, source._unwrap_batched
def process(in_dims, args, func):
    if isinstance(args[0], Pair):
        return args[0].a.shape[0], [0], [args[0]], None
    return taking(in_dims, args, func)
def create(dims, flat, level, spec):
    if isinstance(flat[0], Pair):
        return (Pair(*(source._add_batch_dim(t, 0, level) for t in (flat[0].a, flat[0].b))),)
    return wrapping(dims, flat, level, spec)
def unwrap(out, dims, level, size, func):
    if isinstance(out, Pair):
        return Pair(*(source._maybe_remove_batch_dim("f", t, level, size, 0) for t in (out.a, out.b)))
    return unwrapping(out, dims, level, size, func)
source._process_batched_inputs, source._create_batched_inputs, source._unwrap_batched = process, create, unwrap
made = torch.vmap(lambda p: Pair(p.a.sum(), torch.ones(2)))(Pair(torch.arange(6.).reshape(2, 3), torch.zeros(2)))
print(made.a.tolist(), made.b.tolist(), torch.vmap(torch.sin)(torch.zeros(2)).tolist())
"""
    assert ask(code) == "[3.0, 12.0] [[1.0, 1.0], [1.0, 1.0]] [0.0, 0.0]"


def test_functions_that_torch_does_not_document():
    code = """
print(torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2]), 4).tolist())
print(torch._convert_indices_from_csr_to_coo(torch.tensor([0, 2, 3]), torch.tensor([1, 2, 0])).tolist())
print(torch._shape_as_tensor(torch.ones(2, 3)).tolist(), torch._cast_Long(torch.tensor([1.5])).tolist())
try:
    torch._assert_async(torch.tensor(False), "no")
except RuntimeError as error:
    print(error)
"""
    assert ask(code).splitlines() == ["[0, 2, 2, 3, 3]", "[[0, 0, 1], [1, 2, 0]]", "[2, 3] [1]", "no"]


def test_lists_of_tensors_by_device_and_dtype():
    code = """
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype as group
a, b, c = torch.ones(1), torch.ones(1).double(), torch.ones(2)
for (device, dtype), (lists, places) in group([[a, b, c], [None, b, c]], with_indices=True).items():
    print(device, dtype, [[t is not None for t in part] for part in lists], places)
"""
    assert ask(code).splitlines() == [
        "cpu torch.float32 [[True, True], [False, True]] [0, 2]",
        "cpu torch.float64 [[True], [True]] [1]",
    ]


def test_the_interface_of_a_device_is_found_by_its_type():
    code = """
from torch._dynamo.device_interface import get_interface_for_device
print(get_interface_for_device("cuda:0").device_count() == torch.cuda.device_count())
try:
    get_interface_for_device("meta")
except NotImplementedError as error:
    print(error)
"""
    assert ask(code) == "True\nNo interface for device meta"


def test_a_variable_that_is_patched_gets_its_value_back():
    program = """
from pullback.compat import torch as table
table.install()
import torch._functorch.aot_autograd as aot
from unittest import mock
from pullback.joint import aot as home
before = home.AOT_COUNTER
with mock.patch("torch._functorch.aot_autograd.AOT_COUNTER", new=7):
    assert aot.AOT_COUNTER == home.AOT_COUNTER == 7
assert aot.AOT_COUNTER is home.AOT_COUNTER is before
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_classes_of_packages_that_are_loaded_later_have_their_names():
    code = """
import pickle
print(torch.optim.Adam.__module__, torch.optim.lr_scheduler.StepLR.__module__, torch.utils.data.DataLoader.__module__)
import torch.distributions as d
print(d.Normal, type(pickle.loads(pickle.dumps(d.Normal(0.0, 1.0)))) is d.Normal)
"""
    assert ask(code).splitlines() == [
        "torch.optim.adam torch.optim.lr_scheduler torch.utils.data.dataloader",
        "<class 'torch.distributions.normal.Normal'> True",
    ]


def test_an_object_stands_for_a_module_of_settings():
    assert ask("import torch._dynamo.config as c, pullback; print(c is torch._dynamo.config)") == "True"


def test_the_vmap_that_was_before_says_which_is_now():
    code = """
import warnings
from torch._vmap_internals import vmap
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    doubled = vmap(lambda x: x * 2)
print(doubled(torch.ones(3)).tolist(), said[0].category.__name__, "torch.vmap" in str(said[0].message))
"""
    assert ask(code) == "[2.0, 2.0, 2.0] FutureWarning True"


def test_fakes_are_there_without_an_import_of_their_own():
    assert ask("print(torch._subclasses.fake_tensor.FakeTensorMode is torch._subclasses.FakeTensorMode)") == "True"
