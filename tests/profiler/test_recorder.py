"""What a profile sees: operators, nesting, sequence numbers, backward nodes, annotations, memory."""

import threading

import pytest

import pullback as torch
from pullback.autograd.profiler import profile, profiler_enabled, record_function
from pullback.core.modes import PROFILE, ambient


def names(p):
    return [e.name for e in p.function_events]


def events(p, name):
    return [e for e in p.function_events if e.name == name]


def test_operators_are_seen_in_order_and_only_inside():
    x = torch.randn(3)
    x * 2
    with profile() as p:
        assert profiler_enabled()
        x * 2 + 4
    x - 1
    assert not profiler_enabled()
    assert names(p) == ["aten::mul", "aten::add"]


def test_composites_contain_their_parts():
    x, w = torch.randn(2, 3), torch.randn(4, 3)
    with profile(record_shapes=True) as p:
        x.addmm(x[:, :0], x[:0])
        torch.nn.functional.linear(x, w.requires_grad_(), None)
    (linear,) = events(p, "aten::linear")
    assert linear.input_shapes == [[2, 3], [4, 3], []]
    assert linear.cpu_children and all(c.cpu_parent is linear for c in linear.cpu_children)
    inside = sum(c.cpu_time_total for c in linear.cpu_children)
    assert linear.self_cpu_time_total == pytest.approx(linear.cpu_time_total - inside)


def test_forward_and_backward_share_sequence_numbers():
    x = torch.randn(3, requires_grad=True)
    with profile() as p:
        (x * 2).sin().sum().backward()
    for forward, node in (("aten::mul", "MulBackward0"), ("aten::sin", "SinBackward0"), ("aten::sum", "SumBackward0")):
        call = events(p, forward)[0]
        (outer,) = events(p, f"autograd::engine::evaluate_function: {node}")
        (inner,) = events(p, node)
        assert call.sequence_nr == outer.sequence_nr == inner.sequence_nr >= 0
        assert inner.cpu_parent is outer
        assert call.fwd_thread == 0 and inner.fwd_thread == call.thread
    (leaf,) = events(p, "torch::autograd::AccumulateGrad")
    assert leaf.sequence_nr == -1


def test_calls_that_record_nothing_have_no_sequence_number():
    x = torch.randn(3, requires_grad=True)
    y = x * 2
    with profile() as p:
        y.contiguous()
        y.detach()
        with torch.no_grad():
            y + 1
    assert p.function_events and all(e.sequence_nr == -1 for e in p.function_events)


def test_annotations_contain_what_runs_inside():
    x = torch.randn(3)
    with profile() as p, record_function("outer"):
        x * 2
        with record_function("inner"):
            x - 1
    outer, mul, inner, sub = p.function_events
    assert [e.name for e in (outer, mul, inner, sub)] == ["outer", "aten::mul", "inner", "aten::sub"]
    assert outer.cpu_children == [mul, inner] and inner.cpu_children == [sub]
    assert outer.is_user_annotation and outer.scope == 7 and not mul.is_user_annotation


def test_annotation_as_decorator_of_a_recursive_function():
    @record_function("down")
    def down(n):
        return n and down(n - 1)

    with profile() as p:
        down(2)
    assert names(p) == ["down"] * 3


def test_annotations_may_end_in_any_order():
    a, b = record_function("a"), record_function("b")
    a.__enter__()
    a.__exit__(None, None, None)
    with profile() as p:
        a.__enter__()
        b.__enter__()
        a.__exit__(None, None, None)
        b.__exit__(None, None, None)
        torch.ones(2)
    a.__exit__(None, None, None)
    assert names(p) == ["a", "b", "aten::ones"]
    assert all(e.time_range.end >= e.time_range.start for e in p.function_events)


def test_custom_functions_and_optimizers_have_names():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([p], lr=0.1)
    with profile() as prof:
        Double.apply(p).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    (call,), (node,) = events(prof, "Double"), events(prof, "DoubleBackward")
    assert call.sequence_nr == node.sequence_nr >= 0 and [c.name for c in call.cpu_children] == ["aten::mul"]
    assert events(prof, "Optimizer.step#SGD.step")[0].cpu_children
    assert events(prof, "Optimizer.zero_grad#SGD.zero_grad")


def test_operator_form_of_annotations():
    with profile() as p:
        handle = torch.ops.profiler._record_function_enter("bar", None)
        torch.ones(2)
        torch.ops.profiler._record_function_exit(handle)
    assert names(p) == ["bar", "aten::ones"]


def test_errors_close_their_spans_and_the_mode_comes_back():
    p = profile()
    with pytest.raises(RuntimeError), p:
        torch.ones(2) + torch.ones(3)
    assert not ambient.mode & PROFILE and not ambient.recorders
    assert names(p) == ["aten::ones", "aten::ones", "aten::add"]
    assert all(e.time_range.end > 0 for e in p.function_events)


def test_other_threads_are_not_recorded():
    with profile() as p:
        thread = threading.Thread(target=lambda: torch.zeros(3))
        thread.start()
        thread.join()
        torch.ones(3)
    assert names(p) == ["aten::ones"]


def test_memory_is_that_of_new_results():
    x = torch.ones(10, 10)
    with profile(profile_memory=True) as p:
        with record_function("block"):
            y = x * 2
        y.add_(1)
        y.view(100)
    assert events(p, "aten::mul")[0].cpu_memory_usage == 400
    assert events(p, "block")[0].cpu_memory_usage == 400 and events(p, "block")[0].self_cpu_memory_usage == 0
    assert events(p, "aten::add_")[0].cpu_memory_usage == events(p, "aten::view")[0].cpu_memory_usage == 0


def test_flops_of_products_and_convolutions():
    with profile(with_flops=True) as p:
        torch.ones(2, 3) @ torch.ones(3, 4)
        torch.nn.functional.conv2d(torch.ones(1, 2, 5, 5), torch.ones(3, 2, 3, 3))
        torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(4))
    products = {"mm": 0, "addmm": 0, "linear": 0}
    for e in p.function_events:
        products[e.name[6:]] = products.get(e.name[6:], 0) + e.flops
    assert products["mm"] + products["addmm"] + products["linear"] == 2 * (2 * 2 * 3 * 4)
    assert products["convolution"] == 2 * 2 * 9 * 3 * 9


def test_stacks_name_the_callers_line():
    with profile(with_stack=True) as p:
        torch.ones(2)
    assert "test_recorder.py" in p.function_events[0].stack[0]
    assert not any("pullback/ops" in frame for frame in p.function_events[0].stack)


def test_one_profile_at_a_time_and_once():
    p = profile()
    with p, pytest.raises(RuntimeError, match="already enabled"), profile():
        pass
    with pytest.raises(RuntimeError, match="not reentrant"), p:
        pass
    with profile(enabled=False) as nothing:
        assert nothing is None and not profiler_enabled()


def test_a_profile_may_end_inside_a_backward():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    p = profile().__enter__()
    y.register_hook(lambda g: p.__exit__(None, None, None))
    y.sum().backward()
    count = len(p.function_events)
    assert (x + 1).tolist() == [2.0, 2.0] and not profiler_enabled() and len(p.function_events) == count


def test_collection_can_be_paused():
    with profile() as p:
        torch.ones(1)
        p.toggle_collection_dynamic(False)
        torch.zeros(1)
        p.toggle_collection_dynamic(True)
        torch.ones(1)
    assert names(p) == ["aten::ones"] * 2


def test_transforms_show_a_call_and_what_becomes_of_it():
    with profile() as p:
        torch.func.vmap(lambda x: x.sin(), in_dims=1)(torch.ones(3, 4))
    outer, inner = events(p, "aten::sin")
    assert inner.cpu_parent is outer
