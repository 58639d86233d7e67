"""Corners of the surface: what is absent says so, what can be asked is answered, and processes that fail are reported."""

import importlib
import os
import pickle
import signal
import sys
import time

import pullback.multiprocessing as mp
import pytest

import pullback as torch
from pullback import nn
from pullback.surface import build_config, collect_env, compiler, mps, quantization, types, xpu
from pullback.surface.backends import cuda as cuda_flags
from pullback.surface.backends import mkldnn, opt_einsum
from pullback.surface.jit import annotations

spawn = importlib.import_module("pullback.surface.multiprocessing.spawn")  # a function has the name of its module


def refused(*table):
    for call, error, words in table:
        with pytest.raises(error, match=words):
            call()


# ---- processes
def _leave(index, code):
    os._exit(code)


def _die(index):
    os.kill(os.getpid(), signal.SIGTERM)


def _stay(index):
    if index == 1:
        raise ValueError("the second fails")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)


def _interrupted(index):
    raise KeyboardInterrupt


def test_processes_that_end_early_are_named():
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 3") as caught:
        mp.start_processes(_leave, (3,), start_method="fork")
    assert caught.value.exit_code == 3 and caught.value.signal_name is None
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.exit_code == 3 and str(again) == str(caught.value) and again.pid == caught.value.pid
    with pytest.raises(mp.ProcessExitedException, match="terminated with signal SIGTERM") as caught:
        mp.start_processes(_die, start_method="fork")
    assert caught.value.signal_name == "SIGTERM"
    assert mp.start_processes(_interrupted, start_method="fork") is None  # the parent was interrupted too


def test_a_failure_ends_the_others():
    started = mp.start_processes(_stay, nprocs=2, join=False, start_method="fork")
    assert len(started.pids()) == 2
    with pytest.warns(UserWarning, match="did not end when asked to"):
        with pytest.raises(mp.ProcessRaisedException, match="the second fails") as caught:
            started.join(timeout=30, grace_period=0.3)
    assert caught.value.error_index == 1 and not any(p.is_alive() for p in started.processes)
    assert pickle.loads(pickle.dumps(caught.value)).error_index == 1
    for file in started.error_files:
        os.unlink(file)
    assert spawn.ProcessContext([], []).join()


def test_a_process_leaves_its_traceback(tmp_path, monkeypatch):
    def fail(index):
        raise ValueError(f"no room for {index}")

    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    with pytest.raises(SystemExit):
        spawn._run(fail, 4, (), str(tmp_path / "error"))
    assert "ValueError: no room for 4" in pickle.loads((tmp_path / "error").read_bytes())


def test_only_one_way_of_starting(monkeypatch):
    asked = []
    monkeypatch.setattr(spawn, "start_processes", lambda *args, **kwargs: asked.append(kwargs))
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        spawn.spawn(print, start_method="fork")
    assert asked == [{"start_method": "spawn"}]


# ---- devices that are not there
def test_other_devices():
    assert not xpu.is_available() and not xpu.is_initialized() and xpu.device_count() == 0
    assert not mps.is_available() and mps.device_count() == 0
    refused(
        (xpu.current_device, AssertionError, "not compiled with XPU"),
        (mps.synchronize, RuntimeError, "MPS backend is not available"),
        (lambda: torch.Stream("xpu"), RuntimeError, ""),
        (lambda: torch.Stream("cpu").wait_event(None), RuntimeError, "cpu"),
        (lambda: torch.Stream("cpu").record_event(), RuntimeError, "cpu"),
        (lambda: torch.Event().record(), RuntimeError, "cpu"),
        (lambda: torch.Event().elapsed_time(torch.Event()), RuntimeError, "cpu"),
    )
    stream = torch.Stream("cpu")
    assert stream == torch.Stream("cpu") and len({stream, torch.Stream("cpu")}) == 1
    assert repr(stream) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0"
    assert repr(torch.Event()) == "torch.Event device_type=cpu, device_index=-1, event_flag=0, event_id=0"


def test_switches():
    assert mkldnn.is_available() and not mkldnn.is_acl_available()
    with mkldnn.verbose(mkldnn.VERBOSE_OFF), mkldnn.flags(enabled=True, allow_tf32=False):
        assert mkldnn.enabled
    assert not mkldnn.enabled
    before = mkldnn.set_flags(_deterministic=True)
    assert mkldnn.deterministic and before[1] is False
    mkldnn.set_flags(_deterministic=False)
    assert not opt_einsum.is_available() and opt_einsum.get_opt_einsum() is None
    assert opt_einsum.set_flags(False) == (False, None)
    with cuda_flags.sdp_kernel(enable_flash=False):
        assert not cuda_flags.flash_sdp_enabled()
    assert cuda_flags.flash_sdp_enabled() and not cuda_flags.is_flash_attention_available()
    assert not cuda_flags.is_ck_sdpa_available()
    refused(
        (mkldnn.verbose(1).__enter__, RuntimeError, "Failed to set MKLDNN into verbose mode"),
        (lambda: opt_einsum.set_flags(True), ValueError, "opt_einsum"),
        (lambda: cuda_flags.cufft_plan_cache.size, AssertionError, "not compiled with CUDA"),
        (lambda: cuda_flags.cufft_plan_cache[0], RuntimeError, "device with index 0"),
        (cuda_flags.preferred_linalg_library, AssertionError, "not compiled with CUDA"),
    )


def test_settings():
    refused(
        (lambda: torch.set_num_threads("2"), TypeError, "expects an int, but got str"),
        (lambda: torch.set_num_threads(0), RuntimeError, "positive integer, but got 0"),
        (lambda: torch.set_num_interop_threads(0), RuntimeError, "positive integer, but got 0"),
        (lambda: torch.use_deterministic_algorithms(1), TypeError, "must be bool, not int"),
        (lambda: torch.is_complex(3), TypeError, "must be Tensor, not int"),
        (
            lambda: torch.is_same_size(torch.ones(1), torch.nested.nested_tensor([torch.ones(1)])),
            RuntimeError,
            "nested",
        ),
        (lambda: torch.get_device_module("ipu"), RuntimeError, "Device module 'ipu' is not available"),
    )
    with pytest.warns(UserWarning, match="denormal numbers are kept"):
        assert torch.set_flush_denormal(True) is False
    a, b = (torch.nested.nested_tensor([torch.ones(n), torch.ones(2)]) for n in (1, 3))
    assert torch.is_same_size(a, a) and not torch.is_same_size(a, b)
    assert torch.get_device_module() is torch.cpu


# ---- reports
def test_reports_for_people(capsys):
    collect_env.main()
    shown = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert shown["Python"].startswith(sys.version.split()[0]) and shown["numpy"][0].isdigit()
    assert shown["PyTorch interface"] == torch.__version__ and set(shown) >= {"pullback", "OS", "CPU", "scipy"}
    assert "NumPy" in build_config.show() and "BLAS" in build_config.show()
    assert f"get_num_threads() : {torch.get_num_threads()}" in build_config.parallel_info()


def test_names_of_types():
    assert isinstance(torch.float32, types._dtype) and isinstance(torch.Size([1]), types.Size)
    assert not isinstance(True, types.py_sym_types) and isinstance(1.5, types._Number)


# ---- models in floats
def test_models_that_could_be_quantized_run_in_floats():
    f, a, b = quantization.FloatFunctional(), torch.tensor([1.0, -3.0]), torch.tensor([2.0, 1.0])
    assert f.add(a, b).tolist() == [3, -2] and f.add_relu(a, b).tolist() == [3, 0] and f.mul(a, b).tolist() == [2, -3]
    assert f.add_scalar(a, 1).tolist() == [2, -2] and f.mul_scalar(a, 2).tolist() == [2, -6]
    assert f.cat([a, b]).tolist() == [1, -3, 2, 1] and f.matmul(a, b).item() == -1
    stub = quantization.QuantStub("config")
    assert stub.qconfig == "config" and quantization.DeQuantStub()(stub(a)) is a
    refused(
        (lambda: f(a), RuntimeError, "not intended to use the 'forward'"),
        (lambda: quantization.quantize_dynamic(nn.Linear(1, 1)), NotImplementedError, "fake quantization"),
    )


# ---- marks of functions
def test_marks_for_compilers():
    def function(x: int) -> int:
        return x

    assert annotations.export(function) is annotations.unused(function) is annotations.ignore(function) is function
    assert annotations.ignore()(function) is function and annotations.copy_to_script_wrapper(function)(2) == 2
    with pytest.warns(FutureWarning, match="drop_on_export"):
        assert annotations.ignore(drop_on_export=True)(function) is function
    refused(
        (lambda: annotations.ignore(drop="x"), RuntimeError, "must be a bool or a function but got x"),
        (lambda: annotations.interface(3), RuntimeError, "must be applied to a class"),
        (lambda: compiler.allow_in_graph(3), AssertionError, "expects a callable"),
        (lambda: compiler.substitute_in_graph(len)(3), TypeError, "expects a function"),
        (lambda: compiler.substitute_in_graph(function)(lambda y: y), TypeError, "Signature mismatch"),
    )
    assert annotations.interface(nn.Identity)._is_interface
    del nn.Identity._is_interface
    is_of = annotations.isinstance_of
    assert is_of([1], list[int]) and not is_of(["a"], list[int]) and is_of({"a": 1}, dict[str, int])
    assert is_of((1, "a"), tuple[int, str]) and not is_of((1,), tuple[int, str]) and is_of((1, 2), tuple[int, ...])
    assert is_of(None, int | None) and is_of(3, (str, int)) and is_of(None, None) and not is_of(3, list[int])
    assert annotations.BroadcastingList2[int] == list[int] and annotations.overload(function) is function
    assert compiler.nested_compile_region()(function) is function and not compiler.is_exporting()
    assert compiler.allow_in_graph([function]) == [function]
    compiler.whole_functions.discard(function)
    compiler.graph_break("outside it does nothing")
    assert compiler.disable(reason="why")(function)._torchdynamo_disable_msg == "why"
