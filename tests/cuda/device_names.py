"""What `torch.cuda` answers where there are two devices: run by `test_stand_in`, whose stand-in has them."""

import cupy
import pytest

import pullback as torch


def test_facts_of_devices():
    assert (torch.cuda.device_count(), torch.cuda.is_initialized(), torch.cuda.current_device()) == (2, True, 0)
    assert torch.cuda.get_arch_list() == ["sm_90", "sm_91"]
    assert torch.cuda.get_gencode_flags().startswith("-gencode compute=compute_90,code=sm_90 ")
    assert torch.cuda.is_bf16_supported(including_emulation=False) and torch.cuda.is_tf32_supported()
    assert torch.cuda.can_device_access_peer(0, 1) and not torch.cuda.can_device_access_peer(0, 0)
    with pytest.raises(AssertionError, match="Invalid device id"):
        torch.cuda.get_device_name(7)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        torch.cuda.synchronize("cpu")
    assert torch.cuda.init() is None and len(torch.cuda.default_generators) == 2
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        torch.cuda.nothing


def test_the_device_in_use():
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1 and torch.ones(1, device="cuda").device.index == 1
        with torch.cuda.device(None), torch.cuda.device_of(torch.ones(1)):
            assert torch.cuda.current_device() == 1
        with torch.cuda.device_of(torch.ones(1, device="cuda:0")):
            assert torch.cuda.current_device() == 0
    assert torch.cuda.current_device() == 0
    torch.cuda.set_device(-1)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        torch.cuda.device("cpu")
    assert torch.cuda.device("cuda").idx == 0


def test_streams():
    here, side = torch.cuda.current_stream(), torch.cuda.Stream(priority=-1)
    assert here == torch.cuda.default_stream() and side != here and hash(side) == hash(side)
    assert here.cuda_stream == 0 and side.priority == -1 and side.device_index == 0 and "0x" in repr(side)
    event = side.record_event()
    here.wait_event(event)
    side.synchronize()
    assert here.queue.waited[-1] is event.mark and side.queue.waited == ["all"] and side.query()
    torch.cuda.set_stream(side)
    assert torch.cuda.current_stream() == side
    torch.cuda.set_stream(None)
    torch.cuda.set_stream(here)
    with torch.cuda.stream(None):
        assert torch.cuda.current_stream() == here
    assert torch.cuda.ExternalStream(0x77).cuda_stream == 0x77


def test_events():
    quick, timed = torch.cuda.Event(), torch.cuda.Event(enable_timing=True)
    assert quick.query()
    with pytest.raises(ValueError, match="enable_timing=True"):
        timed.elapsed_time(quick)
    later = torch.cuda.Event(enable_timing=True)
    with pytest.raises(ValueError, match="must be recorded"):
        timed.elapsed_time(later)
    timed.record()
    later.record()
    later.wait()
    later.synchronize()
    assert timed.elapsed_time(later) >= 0 and later.query()


def test_memory():
    torch.cuda.empty_cache()
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()  # counted from here on
    x = torch.zeros(1000, device="cuda")
    at_most = torch.cuda.max_memory_allocated()
    assert torch.cuda.memory_allocated() >= 4000
    del x
    assert torch.cuda.max_memory_allocated() == at_most > torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    stats = torch.cuda.memory_stats()
    assert stats["allocated_bytes.all.peak"] == stats["allocated_bytes.all.current"]
    assert torch.cuda.memory_stats_as_nested_dict()["reserved_bytes"]["all"]["peak"] == torch.cuda.max_memory_reserved()
    assert "CUDA memory of device 0" in torch.cuda.memory_summary()
    torch.cuda.set_per_process_memory_fraction(0.5)
    assert cupy.get_default_memory_pool().limit == 0.5
    with pytest.raises(ValueError, match="Invalid fraction value: 2"):
        torch.cuda.set_per_process_memory_fraction(2)
    torch.cuda.ipc_collect()


def test_seeds_and_states():
    torch.cuda.manual_seed(5)
    assert torch.cuda.initial_seed() == 5
    states = torch.cuda.get_rng_state_all()
    torch.cuda.seed()
    torch.cuda.seed_all()
    assert torch.cuda.initial_seed() != 5
    torch.cuda.set_rng_state_all(states)
    assert torch.cuda.initial_seed() == 5 and len(states) == 2


def test_what_is_not_there_says_so():
    for name in ("cudart", "utilization", "temperature", "memory_snapshot", "current_blas_handle"):
        with pytest.raises(NotImplementedError, match=f"torch.cuda.{name}\\(\\) is not supported"):
            getattr(torch.cuda, name)()
    with pytest.raises(NotImplementedError, match="torch.cuda.MemPool is not supported"):
        torch.cuda.MemPool()
    with pytest.raises(RuntimeError, match="NVTX functions not installed"):
        torch.cuda.nvtx.range_push("x")
    with pytest.raises(RuntimeError, match="NVTX functions not installed"), torch.cuda.nvtx.range("x"):
        pass


def test_typed_tensors():
    t = torch.cuda.FloatTensor([1.0, 2.0])
    assert t.is_cuda and isinstance(t, torch.cuda.FloatTensor) and not isinstance(t, torch.cuda.LongTensor)
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)


def test_captures_refuse_what_they_cannot_do(monkeypatch):
    graph = torch.cuda.CUDAGraph()
    for call, words in (
        (graph.replay, "without a preceding successful capture"),
        (graph.pool, "without a preceding successful capture"),
        (graph.capture_end, "no capture has begun"),
        (lambda: graph.capture_begin(capture_error_mode="loud"), "Unknown capture error mode"),
        (graph.capture_begin, "non-default stream"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    monkeypatch.setattr(cupy.cuda.runtime, "refuses_capture", True)
    with pytest.raises(RuntimeError, match="Unsupported"), torch.cuda.graph(graph):
        pass
    monkeypatch.setattr(cupy.cuda.runtime, "refuses_capture", False)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    with torch.cuda.graph(graph, pool=torch.cuda.graph_pool_handle()):
        assert torch.cuda.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match="already owns a captured graph"), torch.cuda.graph(graph):
        pass
    assert graph.pool()[0] == 0
    graph.replay()
    graph.reset()
    with pytest.raises(RuntimeError, match="without a preceding"):
        graph.replay()


def test_mixed_precision_of_cuda():
    @torch.cuda.amp.autocast()
    def product(a):
        return a @ a

    assert torch.cuda.amp.autocast(dtype=torch.bfloat16).fast_dtype is torch.bfloat16
    assert product(torch.ones(2, 2)).dtype is torch.float32
    with pytest.warns(FutureWarning, match="deprecated"):
        assert torch.cuda.amp.GradScaler().is_enabled()
