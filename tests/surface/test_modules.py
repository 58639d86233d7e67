"""Small public modules: devices and libraries that are absent say so, names are where programs look for them."""

import pickle
import subprocess
import sys
import threading
import zipfile

import pytest

import pullback as torch


def test_cuda_answers_and_refuses():
    cuda = torch.cuda
    assert not cuda.is_available() and cuda.device_count() == 0 and not cuda.is_bf16_supported()
    assert cuda.memory_allocated() == 0 and cuda.get_rng_state_all() == []
    cuda.manual_seed_all(0)
    cuda.empty_cache()
    cuda.set_device(-1)
    calls = (cuda.current_device, cuda.synchronize, cuda.get_rng_state, lambda: cuda.set_device(0), cuda.mem_get_info)
    for call in calls:
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            call()
    for kind in (cuda.Stream, cuda.Event, cuda.CUDAGraph):
        with pytest.raises(RuntimeError, match="requires CUDA support"):
            kind()
    with pytest.raises(TypeError, match="type torch.cuda.FloatTensor not available"):
        cuda.FloatTensor(2)
    assert not isinstance(torch.ones(2), cuda.FloatTensor)
    with pytest.raises(RuntimeError, match="NVTX"), cuda.nvtx.range("x"):
        pass
    with cuda.device(-1), cuda.stream(None), cuda.device_of(torch.ones(1)):
        pass


def test_amp_under_device_names():
    with torch.cpu.amp.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
    with (
        pytest.warns(UserWarning, match="CUDA is not available"),
        pytest.warns(FutureWarning, match="cuda.amp.GradScaler"),
    ):
        assert not torch.cuda.amp.GradScaler().is_enabled()
    with pytest.warns(FutureWarning, match=r"`torch.cpu.amp.GradScaler\(args...\)` is deprecated"):
        assert torch.cpu.amp.GradScaler().is_enabled()


def test_cpu():
    assert torch.cpu.is_available() and torch.cpu.device_count() == 1 and torch.cpu.current_device() == "cpu"
    stream = torch.cpu.Stream()
    with torch.cpu.stream(stream):
        assert torch.cpu.current_stream() is stream
    assert torch.cpu.current_stream() is not stream
    assert torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    assert torch.get_device_module("cpu") is torch.cpu and torch.get_device_module("cuda") is torch.cuda


def test_streams():
    stream = torch.Stream()
    assert stream.query() and stream == torch.Stream("cpu") and torch.Event().query()
    with pytest.raises(RuntimeError, match="cpu backend doesn't support events."):
        stream.record_event()
    with pytest.raises(AssertionError, match="CUDA"):
        torch.Stream("cuda")


def test_backends():
    libraries = torch.backends
    for name in ("cudnn", "mkl", "openmp", "mps", "nnpack", "opt_einsum", "cusparselt"):
        assert getattr(libraries, name).is_available() is False
    assert libraries.mkldnn.is_available() is True  # its layout: `Tensor.to_mkldnn()`
    with libraries.cudnn.flags(enabled=False, deterministic=True):
        assert not libraries.cudnn.enabled and libraries.cudnn.deterministic
    assert libraries.cudnn.enabled and not libraries.cudnn.deterministic
    assert libraries.cudnn.set_flags(_benchmark=True)[1] is False and libraries.cudnn.benchmark
    libraries.cudnn.benchmark = False
    with libraries.miopen.flags(immediate=True):
        assert libraries.miopen.immediate
    assert libraries.miopen.set_flags(_immediate=None) == (False,) and not libraries.miopen.immediate
    libraries.cuda.matmul.allow_tf32 = True
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    assert not libraries.cuda.matmul.allow_tf32
    with libraries.cuda.sdp_kernel(enable_flash=False):
        assert not libraries.cuda.flash_sdp_enabled()
    assert libraries.cuda.flash_sdp_enabled()
    with pytest.raises(ValueError, match="opt_einsum is not available"):
        libraries.opt_einsum.set_flags(True)


def test_frozen_flags():
    code = (
        "import pullback as torch\n"
        "torch.backends.disable_global_flags()\n"
        "try: torch.backends.cudnn.benchmark = True\n"
        "except RuntimeError as e: print(e)\n"
        "with torch.backends.cudnn.flags(benchmark=True): print(torch.backends.cudnn.benchmark)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "not allowed to set torch.backends.cudnn flags after disable_global_flags" in out and out.endswith("True\n")


def test_hub(tmp_path):
    (tmp_path / "hubconf.py").write_text('dependencies = []\ndef twice(x):\n    """Doubles."""\n    return 2 * x\n')
    assert torch.hub.load(str(tmp_path), "twice", 4, source="local") == 8
    assert torch.hub.list(str(tmp_path)) == ["twice"] and torch.hub.help(str(tmp_path), "twice") == "Doubles."
    with pytest.raises(RuntimeError, match="Cannot find callable once in hubconf"):
        torch.hub.load(str(tmp_path), "once", source="local")
    with pytest.raises(RuntimeError, match="would have to be downloaded"):
        torch.hub.load("pytorch/vision", "resnet18")
    with pytest.raises(ValueError, match="Unknown source"):
        torch.hub.load("x", "y", source="web")


def test_futures():
    future = torch.futures.Future()
    after = future.then(lambda f: f.wait() + 1)
    thread = threading.Thread(target=future.set_result, args=(1,))
    thread.start()
    assert after.wait() == 2 and torch.futures.wait_all([future, after]) == [1, 2]
    thread.join()
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        future.set_result(2)
    failed = torch.Future()
    chained = failed.then(lambda f: f.value())
    failed.set_exception(ValueError("no"))
    with pytest.raises(
        RuntimeError, match="Got the following error when running the callback: ValueError: no"
    ) as error:
        chained.wait()
    assert isinstance(error.value.__cause__, ValueError)
    with pytest.raises(RuntimeError, match="Future can't be None"):
        torch.futures.wait_all([None])
    with pytest.raises(RuntimeError, match="Future can't be None"):
        torch.jit.wait(None)
    with pytest.raises(RuntimeError, match="Can not pickle torch.futures.Future"):
        pickle.dumps(future)


def test_the_error_of_a_callback_reaches_nobody_who_completes_a_future(caplog):
    future = torch.Future()
    future.add_done_callback(lambda f: 1 // 0)
    future.set_result(3)
    assert future.wait() == 3 and "ZeroDivisionError" in caplog.text


def test_names():
    assert torch.version.cuda is None and torch.version.__version__ == torch.__version__
    assert torch.Tag.nondeterministic_seeded in torch.ops.aten.rand.default.tags
    assert issubclass(torch.OutOfMemoryError, RuntimeError) and torch.GradScaler is torch.amp.GradScaler
    assert not torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    assert not torch.accelerator.is_available() and torch.accelerator.current_accelerator() is None

    class Shape:
        @torch.classproperty
        def title(cls):
            return cls.__name__

    assert Shape.title == "Shape"
    with pytest.raises(AttributeError):
        torch.no_such_name


def test_rare_modules_are_not_loaded_by_import():
    code = "import sys, pullback; print([m for m in sys.modules if m[:9] == 'pullback.' and m.split('.')[1] in %r])"
    rare = ("profiler", "cuda", "cpu", "backends", "hub", "futures", "streams", "names")
    out = subprocess.run([sys.executable, "-c", code % (rare,)], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_archives_that_lead_out_of_their_folder_are_not_unpacked(tmp_path):
    for name, words in {
        "../outside": "directory traversal", "sub/../../outside": "directory traversal",
        "..\\outside": "directory traversal", "/outside": "absolute path", "C:\\outside": "absolute path",
    }.items():  # fmt: skip
        with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
            archive.writestr("fine", "")
            archive.writestr(name, "")
        with zipfile.ZipFile(tmp_path / "bad.zip") as archive, pytest.raises(ValueError, match=words):
            torch.hub._safe_extract_zip(archive, str(tmp_path / "models"))
    assert not (tmp_path / "models").exists() and not (tmp_path / "outside").exists()
    torch.save({"w": torch.ones(2)}, tmp_path / "weights.pt")
    with zipfile.ZipFile(tmp_path / "good.zip", "w") as archive:
        archive.write(tmp_path / "weights.pt", "inner.pt")
    assert torch.hub._legacy_zip_load(str(tmp_path / "good.zip"), str(tmp_path / "models"))["w"].tolist() == [1, 1]


def test_references_to_storages_keep_none():
    x = torch.ones(3)
    ref = torch.multiprocessing.reductions.StorageWeakRef(x.untyped_storage())
    same = torch.multiprocessing.reductions.StorageWeakRef(x[1:].untyped_storage())
    assert ref == same and hash(ref) == hash(same) and not ref.expired()
    assert ref != torch.multiprocessing.reductions.StorageWeakRef(torch.ones(3).untyped_storage())
    del x
    assert ref.expired()
