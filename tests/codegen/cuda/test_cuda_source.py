"""The text of CUDA kernels, the plan of a graph, and what is kept on disk: nothing here runs a kernel."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.capture.fake.mode import FakeTensorMode
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import Native, stages
from pullback.codegen.cuda.segment import CudaSegment
from pullback.runtime import cuda as runtime
from pullback.runtime.launcher import Plan


@pytest.fixture
def graph_of():
    """The compiled graph of `f` on tensors that are said to be on a CUDA device; it cannot be called here."""

    def compile(f, *shapes, dtype=torch.float32):
        with FakeTensorMode():
            args = [torch.empty(s, dtype=dtype, device="cuda") for s in shapes]
            return Native(make_fx(f)(*args))

    return compile


def test_tensors_of_a_cuda_device_get_segments_of_it(graph_of):
    result = graph_of(lambda x: (x * 2).sum(), (8, 8))
    assert result.native and [type(s) for s in result.segments] == [CudaSegment]
    assert result.segments[0].where() == torch.device("cuda", 0)


def test_without_the_setting_they_run_as_operators(monkeypatch):
    from pullback.capture.front.config import native

    monkeypatch.setattr(native.cuda, "native", False)
    with FakeTensorMode():
        graph = make_fx(lambda x: x * 2)(torch.empty(8, device="cuda"))
    assert stages.segment_kind(graph.graph) is not CudaSegment
    assert not Native(graph).segments


def test_element_wise_chains_are_one_kernel_of_vectors(graph_of):
    (text,) = graph_of(lambda x, b: torch.relu(x * 2 + b), (100, 60), (60,)).functions
    assert "const f32 *__restrict__ p0, const f32 *__restrict__ p1, f32 *__restrict__ p2" in text
    assert text.count("*(const pack<f32, 4, 16> *)") == 2 and text.count("*(pack<f32, 4, 16> *)") == 1
    (narrow,) = graph_of(lambda x: x + 1, (64,), dtype=torch.bfloat16).functions
    assert "pack<bf16, 8, 16>" in narrow and "to_bf16" in narrow
    (odd,) = graph_of(lambda x: x + 1, (7, 9)).functions
    assert "pack<" not in odd


def test_short_rows_stay_in_registers(graph_of):
    (text,) = graph_of(lambda x: F.softmax(x * 0.5, -1), (100, 256)).functions
    assert text.count("over_lanes<32, ") == 2 and "f32 row" in text and "__syncthreads" not in text
    (long,) = graph_of(lambda x: F.softmax(x * 0.5, -1), (100, 50257)).functions
    assert long.count("over_block<32, ") == 2 and "f32 row" not in long and long.count("__restrict__") == 2


def test_columns_are_summed_by_threads_side_by_side(graph_of):
    (text,) = graph_of(lambda x: x.sum(0), (100, 60)).functions
    assert "over_warps<" in text and "threadIdx.x % 32" in text


def test_every_function_that_expressions_name_is_in_the_prelude():
    from pullback.codegen.cuda.prelude import PRELUDE
    from pullback.codegen.printers import c_scalars

    names = {f"{kind}_{name}" for name in c_scalars.PAIRS.values() for kind in "fd"}
    names |= {f"f_{name}" for name in c_scalars.OURS} | {f"d_{name}" for name in (*c_scalars.OURS_DOUBLE, "sigmoid")}
    made = {
        f"{kind}_{name}" for name in ("max", "min", "fmax", "fmin", "remainder", "floor_divide") for kind in "fd"
    }  # by macros
    missing = {n for n in names - made if f" {n}(" not in PRELUDE}
    assert not missing and all(f"MAXIMUM(f{bits}, {k})" in PRELUDE for bits, k in ((32, "f"), (64, "d")))


def test_equal_kernels_are_one_function(graph_of):
    result = graph_of(lambda x, y, w: (F.gelu(x @ w) @ w, F.gelu(y @ w) @ w), (8, 8), (8, 8), (8, 8))
    launches = [e for e in result.segments[0].source.plan.entries if e[0] == 0]
    assert len(launches) == 2 and len(result.functions) == 1


def test_products_of_narrow_floats_read_them_as_they_are(graph_of):
    def kinds(f):
        result = graph_of(f, (8, 8), (8, 8), dtype=torch.bfloat16)
        product = next(e for e in result.segments[0].source.plan.entries if e[0] == 1)
        return product[11], product[14], product[17]

    assert kinds(lambda x, w: torch.addmm(w, x, w)) == (14, 14, 0)  # bfloat16 twice, into float32, to which w is added
    assert kinds(lambda x, w: (x @ w).relu()) == (14, 14, 14)  # which is rounded before anything else


def test_rows_are_added_by_the_product_where_sides_are_even(graph_of):
    def entries(*shapes):
        result = graph_of(lambda x, w, b: F.linear(x, w, b), *shapes, dtype=torch.bfloat16)
        return [e[0] for e in result.segments[0].source.plan.entries], result.segments[0].source.text_of(0)

    assert entries((16, 32), (24, 32), (24,)) == ([3], "cublasLtMatmul: b3 = b0 [16, 32] @ b1 [32, 24] + b2")
    assert entries((16, 32), (20, 32), (20,))[0] == [1, 0]


def test_sides_are_rounded_up_for_tf32(graph_of, monkeypatch):
    from pullback.core.modes import process

    def product():
        result = graph_of(lambda x, w: x @ w, (2048, 1024), (1024, 1001))
        return next(e for e in result.segments[0].source.plan.entries if e[0] == 1)[3:6]

    assert product() == [2048, 1001, 1024]
    monkeypatch.setattr(process, "matmul_precision", "high")
    assert product() == [2048, 1008, 1024]


def test_what_has_no_kernel_says_why(graph_of):
    reasons = graph_of(lambda x: (x.sort()[0] + 1) * 2, (5000,)).reasons
    assert reasons["sort"] == "sorting rows of 5000: they do not fit into the memory of a block"


def test_places_in_the_arena_do_not_meet(graph_of):
    result = graph_of(lambda x, w: (((x @ w).sin() @ w).cos() @ w)[:, :4] + 1, (8, 8), (8, 8))
    plan = result.segments[0].source.plan
    assert plan.arena == 2 * 8 * 8 * 4 and set(plan.offsets) == {0, 256}
    table = plan.slots([10, 20, 30], 40, 1000)
    assert table.tolist() == [10, 20, 30, 40, *[1000 + o for o in plan.offsets]]


def test_arenas_of_parts_lie_where_they_are_said_to():
    plan = Plan([[0, 0, 1, 32, 0]] * 3, 1, 0, [0, 64, 128, 192], 256, [], (128, 128), ((0, 1), (1, 1)), (2,), ((0,),))
    assert plan.slots([10], 40, 1000).tolist() == [10, 40, 1000, 1064, 1128, 1192]
    assert plan.slots([10], 40, 1000, 5000).tolist() == [10, 40, 1000, 1064, 5000, 5064]
    assert [len(part.entries) for part in plan.parts()] == [2, 1]


def test_a_plan_is_lengths_and_entries():
    plan = Plan([[0, 3, 1, 32, 2, 0, 1], [0, 4, 1, 32, 0]], 1, 1, [], 0)
    assert plan.numbers.tolist() == [7, 0, 3, 1, 32, 2, 0, 1, 5, 0, 4, 1, 32, 0] and not plan.uses_products
    assert plan.numbers.dtype == np.int64


def test_machine_code_is_kept_by_text_architecture_and_version(monkeypatch, tmp_path):
    import sys
    import types

    built = []

    class Nvrtc(types.ModuleType):
        version = (13, 0)

        def getVersion(self):
            return self.version

    nvrtc = Nvrtc("nvrtc")
    for name in ("cupy_backends", "cupy_backends.cuda", "cupy_backends.cuda.libs"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["cupy_backends.cuda.libs"].nvrtc = nvrtc
    monkeypatch.setenv("PULLBACK_CACHE", str(tmp_path))
    monkeypatch.setattr(runtime, "_compiled", lambda _, text, options: built.append((text, options)) or text.encode())
    assert runtime.cubin("a", "sm_90") == b"a" == runtime.cubin("a", "sm_90")
    assert len(built) == 1 and "--gpu-architecture=sm_90" in built[0][1]
    runtime.cubin("a", "sm_80")
    runtime.cubin("a", "sm_90", ("--fmad=false",))
    nvrtc.version = (13, 1)
    runtime.cubin("a", "sm_90")
    assert len(built) == 4


@pytest.mark.parametrize("error", [runtime.NoCompiler("no driver"), runtime.CompileFailed("NVRTC: no")])
def test_where_nothing_can_be_built_graphs_run_as_operators(monkeypatch, error):
    from pullback.codegen import compile_graph, program

    def machine(self):
        raise error

    monkeypatch.setattr(CudaSegment, "machine", machine)
    monkeypatch.setattr(program, "_warned", False)
    with FakeTensorMode():
        graph = make_fx(lambda x: x * 2)(torch.empty(8, device="cuda"))
        with pytest.warns(RuntimeWarning, match="operator by operator"):
            assert compile_graph(graph) is graph


def test_large_files_are_compiled_in_parts_and_functions_keep_their_order(monkeypatch):
    names = [f"kernel{k}" for k in range(2 * runtime.TOGETHER + 3)]
    source = SimpleNamespace(
        prelude="// types", names=names, functions=[f"void {n}();" for n in names], plan=Plan([], 0, 0, [], 0)
    )
    machine = runtime.Machine.__new__(runtime.Machine)
    machine.index, machine.architecture, machine.api = 0, "sm_90", None
    machine.cupy = SimpleNamespace(cuda=SimpleNamespace(Device=lambda index: contextlib.nullcontext()))
    texts = []
    monkeypatch.setattr(runtime, "cubin", lambda text, architecture, flags: texts.append(text) or text.encode())

    def loaded(code):
        def get_function(name):
            assert f"void {name}();" in code.decode()
            return SimpleNamespace(ptr=100 + names.index(name))

        return SimpleNamespace(get_function=get_function)

    machine.loaded = loaded
    program = machine.load(source, ())
    assert len(texts) == 3 and all(t.startswith("// types") for t in texts)
    assert list(program.functions) == [100 + k for k in range(len(names))]


def test_what_a_kernel_found_is_raised_before_the_host_sees_numbers(monkeypatch):
    from pullback.core import arrays

    machine = runtime.Machine.__new__(runtime.Machine)
    machine.flag = np.ones(1, np.int32)
    monkeypatch.setattr(arrays, "device_checks", [machine.check])

    class OnDevice:
        def get(self):
            return np.ones(3)

    with pytest.raises(RuntimeError, match="device-side assert triggered"):
        arrays.to_host(OnDevice())
    assert arrays.to_host(OnDevice()).sum() == 3  # raised once


def test_nvrtc_takes_the_text(graph_of):
    """Where NVRTC is installed; it needs no device."""
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc", exc_type=ImportError)
    result = graph_of(
        lambda x, w, i: (F.softmax(x @ w, -1).half().sum(0), x.cumsum(1), x.sum(), torch.zeros(8, device="cuda").index_add(0, i.long()[0], w[0])),
        (9, 8), (8, 8), (1, 8),
    )  # fmt: skip
    for architecture in ("sm_80", "sm_90"):
        code = runtime._compiled(nvrtc, result.source, (f"--gpu-architecture={architecture}", *runtime.OPTIONS))
        assert code[:4] == b"\x7fELF"


def test_small_outputs_are_those_of_a_call_before_where_nobody_has_them(monkeypatch):
    class Pointer:
        def __init__(self, mem):
            self.mem = mem

    class Array:
        def __init__(self, shape, dtype):
            self.data = Pointer(SimpleNamespace())

    machine = runtime.Machine.__new__(runtime.Machine)
    machine.cupy = SimpleNamespace(ndarray=Array)
    monkeypatch.setattr(runtime.Machine, "in_use", lambda self: contextlib.nullcontext())
    kept: list = []
    first = id(machine.blank_again(kept, (2,), np.dtype("f4")))
    assert id(machine.blank_again(kept, (2,), np.dtype("f4"))) == first
    held = kept[0]
    assert machine.blank_again(kept, (2,), np.dtype("f4")) is not held  # somebody has the array
    pointer = held.data
    del held
    assert id(machine.blank_again(kept[:1], (2,), np.dtype("f4"))) != first  # a view that shares the pointer
    view = Pointer(pointer.mem)
    del pointer
    assert id(machine.blank_again(kept[:1], (2,), np.dtype("f4"))) != first  # a view from another place on
    del view
    assert len(kept) == 2 <= runtime.MOST_KEPT


def test_every_function_that_is_written_out_has_a_body_for_devices():
    from pullback.codegen.cuda import prelude
    from pullback.codegen.printers.c_scalars import OURS

    text = "".join(value for value in vars(prelude).values() if isinstance(value, str))
    assert [name for name in sorted(OURS) if f" f_{name}(f32" not in text] == []


def test_arenas_are_kept_where_graphs_were_asked_for(monkeypatch):
    """By stream; not while a user captures, whose graph may run beside others."""
    from pullback.core.modes import process

    taken = []
    cupy = SimpleNamespace(cuda=SimpleNamespace(alloc=lambda size: taken.append(size) or object()))
    on = object.__new__(runtime.Machine)
    on.cupy = cupy
    program = runtime.Program(Plan([], 0, 0, [0], 96), [], runtime.Api())
    assert on.arena_of(program, 1) is not on.arena_of(program, 1)
    program.arenas = {}
    first = on.arena_of(program, 1)
    assert on.arena_of(program, 1) is first and on.arena_of(program, 2) is not first
    monkeypatch.setattr(process, "cuda_captures", 1)
    assert on.arena_of(program, 1) is not first
    assert taken == [96] * 5
