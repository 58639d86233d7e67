"""Settings, overrides and downloads as users reach them: what each answers, and what it refuses."""

import hashlib

import pytest

import pullback as torch
from pullback.surface import compiler_decorators, hub, overrides, settings


@pytest.fixture
def defaults():
    before = torch.get_default_dtype(), torch.get_num_threads(), torch.get_deterministic_debug_mode()
    yield
    torch.set_default_dtype(before[0])
    torch.set_num_threads(before[1])
    torch.set_deterministic_debug_mode(before[2])


def test_the_default_dtype(defaults):
    with pytest.raises(TypeError, match="only floating-point types are supported"):
        torch.set_default_dtype(torch.int32)
    with pytest.raises(TypeError, match="only floating-point types are supported|invalid dtype object"):
        torch.set_default_dtype("float32")
    with pytest.warns(UserWarning, match="deprecated"):
        torch.set_default_tensor_type("torch.DoubleTensor")
    assert torch.get_default_dtype() is torch.float64


def test_threads(defaults):
    with pytest.raises(TypeError, match="set_num_threads expects an int, but got str"):
        torch.set_num_threads("2")
    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1 and torch.get_num_interop_threads() >= 1
    with pytest.raises(RuntimeError, match="expects a positive integer"):
        torch.set_num_interop_threads(0)


def test_deterministic_modes(defaults):
    for mode, level in (("warn", 1), ("error", 2), (0, 0)):
        torch.set_deterministic_debug_mode(mode)
        assert torch.get_deterministic_debug_mode() == level
    with pytest.raises(TypeError, match="debug_mode must be str or int"):
        torch.set_deterministic_debug_mode(1.5)
    with pytest.raises(RuntimeError):
        torch.set_deterministic_debug_mode("sometimes")


def test_numbers_and_names():
    with pytest.raises(RuntimeError, match="is not one of 'highest', 'high', or 'medium'"):
        torch.set_float32_matmul_precision("low")
    with pytest.warns(UserWarning, match="denormal numbers are kept"):
        assert torch.set_flush_denormal(True) is False
    assert torch.is_storage(torch.ones(1).untyped_storage()) and not torch.is_storage(torch.ones(1))
    assert torch.typename(torch.ones(1)) == "torch.FloatTensor" and torch.typename(3) == "int"
    assert torch.ones(2).is_same_size(torch.zeros(2)) and not torch.ones(2).is_same_size(torch.zeros(3))
    with pytest.raises(RuntimeError, match="Device module 'nothing' is not available|nothing"):
        torch.get_device_module("nothing")
    assert settings.public


def test_what_can_be_overridden():
    functions = overrides.get_overridable_functions()
    assert torch.mul in functions[torch] and any(f.__name__ == "softmax" for fs in functions.values() for f in fs)
    assert overrides.resolve_name(torch.mul) == "torch.mul" and overrides.resolve_name(len) is None
    assert overrides.is_tensor_method_or_property(torch.Tensor.add)
    assert not overrides.is_tensor_method_or_property(len)

    @overrides.wrap_torch_function(lambda x: (x,))
    def mine(x):
        return "plain"

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return "overridden"

    assert mine(torch.ones(1)) == "plain" and mine(torch.ones(1).as_subclass(Sub)) == "overridden"


def test_downloads(tmp_path, monkeypatch):
    source = tmp_path / "weights.bin"
    source.write_bytes(b"numbers")
    digest = hashlib.sha256(b"numbers").hexdigest()
    target = tmp_path / "cache" / "copy.bin"
    hub.download_url_to_file(source.as_uri(), str(target), digest[:8], progress=False)
    assert target.read_bytes() == b"numbers"
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.download_url_to_file(source.as_uri(), str(tmp_path / "other"), "0" * 8, progress=False)
    assert not (tmp_path / "other").exists() and [p.name for p in target.parent.iterdir()] == ["copy.bin"]
    saved = tmp_path / "state.pt"
    torch.save({"w": torch.ones(2)}, saved)
    loaded = hub.load_state_dict_from_url(saved.as_uri(), model_dir=str(tmp_path / "models"), progress=False)
    assert loaded["w"].tolist() == [1.0, 1.0]
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(hub, "_dir", None)
    assert hub.get_dir() == str(tmp_path / "home" / "hub")
    hub.set_dir(str(tmp_path / "set"))
    assert hub.get_dir() == str(tmp_path / "set")


def test_a_folder_without_a_list_of_models(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no hubconf.py"):
        hub.load(str(tmp_path), "model", source="local")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package']\ndef model(): return 1\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        hub.load(str(tmp_path), "model", source="local")


def test_decorators_of_the_compiler():
    @compiler_decorators.set_stance("force_eager")
    def eager(x):
        return torch.compile(lambda x: x + 1)(x)

    assert eager(torch.ones(1)).item() == 2.0
    with pytest.raises(RuntimeError, match="force_backend cannot be used together"):
        compiler_decorators.set_stance("force_eager", force_backend="eager")
    with pytest.raises(AssertionError, match="expects a callable"):
        compiler_decorators.nonstrict_trace(3)
    traced = compiler_decorators.nonstrict_trace(lambda x: x * 2)
    assert torch.compile(lambda x: traced(x) + 1, backend="eager")(torch.ones(1)).item() == 3.0
    assert compiler_decorators.dont_skip_tracing() is compiler_decorators.dont_skip_tracing
    with compiler_decorators.patch_dynamo_config(cache_size_limit=3):
        pass


def test_substitutes_in_graphs():
    def original(x):
        return x

    with pytest.raises(TypeError):
        torch.compiler.substitute_in_graph(original)(lambda y: y)
    with pytest.raises(TypeError, match="expects a function but got"):
        torch.compiler.substitute_in_graph(3)(original)
    with pytest.raises(AssertionError, match="allow_in_graph expects a callable"):
        torch.compiler.allow_in_graph(3)


def test_attention_switches_of_cuda():
    cuda = torch.backends.cuda
    for name in ("mem_efficient", "math", "cudnn", "flash"):
        before = getattr(cuda, f"{name}_sdp_enabled")()
        getattr(cuda, f"enable_{name}_sdp")(not before)
        assert getattr(cuda, f"{name}_sdp_enabled")() is not before
        getattr(cuda, f"enable_{name}_sdp")(before)
    assert cuda.is_built() is torch.cuda.is_available()


def test_switches_of_scripts():
    jit = torch.jit
    with pytest.raises(TypeError, match="script\\(\\) expects a function, a class or a module"):
        jit.script(3)
    with pytest.raises(TypeError, match="example_inputs"):
        jit.trace(lambda x: x)
    with jit.fuser("fuser1"):
        pass
    with pytest.raises(Exception, match="unrecognized fuser option"), jit.fuser("other"):
        pass
    before = jit.set_fusion_strategy([("STATIC", 2)])
    assert jit.set_fusion_strategy(before) == [("STATIC", 2)]
    jit.enable_onednn_fusion(True)
    assert jit.onednn_fusion_enabled()
    jit.enable_onednn_fusion(False)
    assert jit.script_if_tracing(lambda x: x * 2)(torch.ones(1)).item() == 2.0

    class Net(torch.nn.Module):
        def forward(self, x):
            return x * 2

        def other(self, x):
            return x * 3

    traced = jit.trace_module(Net(), {"forward": torch.ones(1), "other": torch.ones(1)})
    assert traced(torch.ones(1)).item() == 2.0
    with pytest.raises(AttributeError, match="expected torch.nn.Module"):
        jit.trace_module(3, {})


def test_functions_that_no_override_is_asked_about():
    ignored = overrides.get_ignored_functions()
    for f in (
        torch.ones,
        torch.is_grad_enabled,
        torch.manual_seed,
        torch.load,
        torch.Tensor.new_ones,
        torch.nn.init.normal,
    ):
        assert f in ignored
    assert torch.add not in ignored and torch.Tensor.add not in ignored
    assert not any(f in ignored for functions in overrides.get_overridable_functions().values() for f in functions)
