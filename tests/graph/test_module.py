"""GraphModule: code that runs, copies, submodules, errors."""

import copy
import gc
import linecache
import operator
import pickle
import sys
import weakref

import pytest

import pullback as torch
from pullback import nn
from pullback.graph import Graph, GraphModule, symbolic_trace
from pullback.graph.lazy_module import _LazyGraphModule, _make_graph_module, _use_lazy_graph_module


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(3, 4)
        self.act = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))
        self.w = nn.Parameter(torch.tensor([1.0, 3.0]))
        self.register_buffer("b", torch.zeros(2), persistent=False)
        self.t = torch.ones(2)

    def forward(self, x):
        return torch.softmax(self.act(self.l1(x)) * self.w + self.b, -1) + self.t


@pytest.fixture
def net():
    return symbolic_trace(Net())


X = torch.ones(2, 3)


def test_attributes_are_shared_with_the_root():
    root = Net()
    gm = symbolic_trace(root)
    assert gm.l1 is root.l1 and gm.w is root.w
    assert gm.get_submodule("act.1") is root.act[1] and type(gm).__name__ == "Net"
    assert torch.equal(gm(X), root(X))
    assert "b" not in gm.state_dict() and "t" in dict(gm.named_buffers())


def test_each_instance_has_its_own_class():
    a, b = symbolic_trace(Net()), symbolic_trace(Net())
    assert type(a) is not type(b) and isinstance(a, GraphModule) and type(a).forward is not type(b).forward
    with pytest.raises(RuntimeError, match="Unsupported type 3 passed for root!"):
        GraphModule(3, Graph())
    with pytest.raises(AssertionError, match="Expected a Graph instance"):
        a.graph = 3


def test_code_follows_recompile(net):
    before = net(X)
    for node in net.graph.find_nodes(op="call_function", target=operator.mul):
        node.target = operator.add
    assert torch.equal(net(X), before)
    net.recompile()
    assert not torch.equal(net(X), before) and "act_1 + w" in net.code


def test_code_is_compiled_when_first_called(net):
    state = type(net).__dict__["forward"]
    assert not callable(state)
    net(X)
    assert callable(type(net).__dict__["forward"])


def test_deepcopy(net):
    net.meta["k"] = [1]
    net.extra = {"a": 1}
    other = copy.deepcopy(net)
    assert torch.equal(other(X), net(X)) and other.code == net.code and other.l1.weight is not net.l1.weight
    assert other.meta == {"k": [1]} and other.meta["k"] is not net.meta["k"] and other.extra == {"a": 1}
    assert other.graph.owning_module is other and type(other) is not type(net)
    other.graph.lint()
    shallow = copy.copy(net)
    assert shallow.l1 is net.l1 and torch.equal(shallow(X), net(X))


def test_pickle(net):
    other = pickle.loads(pickle.dumps(net))
    assert other.code == net.code and str(other.graph) == str(net.graph) and torch.equal(other(X), net(X))
    assert type(other).__name__ == "Net"
    other.graph.lint()


def test_submodules(net):
    assert net.add_submodule("x.y.z", nn.ReLU()) and not net.add_submodule("w.q", nn.ReLU())
    assert isinstance(net.get_submodule("x.y.z"), nn.ReLU)
    net.delete_all_unused_submodules()
    assert not hasattr(net, "x") and hasattr(net, "l1")
    assert net.delete_submodule("act.1") and not net.delete_submodule("act.1") and not net.delete_submodule("a.b")


def test_the_failing_line_is_shown(capsys):
    def f(x):
        y = x + 1
        return y @ y

    gm = symbolic_trace(f)
    with pytest.raises(RuntimeError) as caught:
        gm(torch.ones(3, 2))
    shown = capsys.readouterr().err
    assert "Call using an FX-traced Module, line 6 of the traced Module's generated forward function:" in shown
    assert "matmul = add @ add;  add = None\n\n" + "~" * 31 + "~~~ <--- HERE" in shown.replace("    matmul", "matmul")
    frames = [frame for frame in caught.traceback if "eval_with_key" in str(frame.path)]
    assert "matmul = add @ add" in str(frames[-1].statement)


def test_errors_of_called_code_are_not_explained(capsys):
    def user(x):
        raise ValueError("mine")

    g = Graph()
    g.output(g.call_function(user, (g.placeholder("x"),)))
    with pytest.raises(ValueError, match="mine"):
        GraphModule({}, g)(1)
    assert "HERE" not in capsys.readouterr().err


def test_printed_module(net):
    text = str(net)
    assert text.startswith("Net(\n  (l1): Linear(in_features=3, out_features=4, bias=True)")
    assert text.endswith("# To see more debug info, please use `graph_module.print_readable()`")


def test_hooks_see_changes(net):
    seen = []
    net._register_create_node_hook(lambda n: seen.append(("create", n.name)))
    net._register_erase_node_hook(lambda n: seen.append(("erase", n.name)))
    net._register_replace_node_hook(lambda old, new, user: seen.append((old.name, new, user.name)))
    mul = net.graph.find_nodes(op="call_function", target=operator.mul)[0]
    with net.graph.inserting_after(mul):
        new = net.graph.call_function(operator.sub, mul.args)
    mul.replace_all_uses_with(new)
    net.graph.erase_node(mul)
    assert seen == [("create", "sub"), ("mul", "sub", "add"), ("erase", "mul")]


def test_lazy_modules_take_the_graph_as_it_is_when_called():
    with _use_lazy_graph_module(True):
        gm = symbolic_trace(Net())
    assert isinstance(gm, _LazyGraphModule) and "_code" not in gm.__dict__
    gm.graph.find_nodes(op="call_function", target=operator.mul)[0].target = operator.add
    gm.recompile()
    assert "act_1 + w" in gm.code and torch.isfinite(gm(X)).all()
    assert not isinstance(_make_graph_module({}, Graph()), _LazyGraphModule)


def test_to_folder(net, tmp_path, monkeypatch):
    from pullback.compat.torch import install

    install()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(UserWarning, match=r"saved as pickled files instead: \['act'\]"):
        net.to_folder("written", "Written")
    try:
        import written  # type: ignore[import-not-found]

        assert torch.equal(written.Written()(X), net(X))
    finally:
        sys.modules.pop("written", None)
        sys.modules.pop("written.module", None)


def test_a_dropped_module_leaves_nothing_behind():
    def used(x):
        return x

    g = Graph()
    g.output(g.call_function(used, (g.placeholder("x"),)))
    gm = GraphModule({}, g)
    gm(1)
    name, target = type(gm).forward.__code__.co_filename, weakref.ref(used)
    del gm, g, used
    gc.collect()
    assert name not in linecache.cache and target() is None
