"""What Python code can read, one row for each kind: a compiled function tests it, or its graph ends; it never keeps it.

Each row compiles a function, calls it, changes what it reads, and calls it again. What it gives must be what the function
itself gives.
"""

from __future__ import annotations

import abc
import builtins
import collections
import contextvars
import decimal
import enum
import functools
import gc
import io
import itertools
import locale
import logging
import math
import os
import random
import sys
import threading
import time
import types
import weakref

import numpy as np
import pytest

import pullback as torch
from pullback.utils.pytree import tree_map

ROWS = {}


def row(f):
    ROWS[f.__name__] = f
    return f


x = torch.ones(3)
PLACE = ""  # a folder for files
G = 1.0


def go(compiled, f, changes, undo=None, args=(x,)):
    """What a function gives at first, and after each change."""
    f = compiled(f)
    out = [f(*args).tolist()]
    try:
        for change in changes:
            change()
            out.append(f(*args).tolist())
    finally:
        if undo is not None:
            undo()
    return out


def go_on(f, changes):
    """What a function gives after each change."""
    out = []
    for change in changes:
        change()
        out.append(f(x).tolist())
    return out


@row
def environ(c):
    os.environ.pop("ZZ", None)
    return go(
        c,
        lambda x: x * float(os.environ.get("ZZ", "1")),
        [lambda: os.environ.__setitem__("ZZ", "5")],
        lambda: os.environ.pop("ZZ"),
    )


@row
def getenv(c):
    os.environ.pop("ZZ", None)
    return go(
        c,
        lambda x: x * float(os.getenv("ZZ", "1")),
        [lambda: os.environ.__setitem__("ZZ", "5")],
        lambda: os.environ.pop("ZZ"),
    )


@row
def num_threads(c):
    n = torch.get_num_threads()
    return go(
        c,
        lambda x: x * torch.get_num_threads(),
        [lambda: torch.set_num_threads(n + 3)],
        lambda: torch.set_num_threads(n),
    )


@row
def anomaly(c):
    return go(
        c,
        lambda x: x * (2 if torch.is_anomaly_enabled() else 1),
        [lambda: torch.autograd.set_detect_anomaly(True)],
        lambda: torch.autograd.set_detect_anomaly(False),
    )


@row
def anomaly_checknan(c):
    return go(
        c,
        lambda x: x * (2 if torch.is_anomaly_check_nan_enabled() else 1),
        [lambda: torch.autograd.set_detect_anomaly(True, check_nan=False)],
        lambda: torch.autograd.set_detect_anomaly(False),
    )


@row
def autocast_dtype(c):
    d = torch.get_autocast_dtype("cpu")
    return go(
        c,
        lambda x: x * (2 if torch.get_autocast_dtype("cpu") is torch.float16 else 1),
        [lambda: torch.set_autocast_dtype("cpu", torch.float16)],
        lambda: torch.set_autocast_dtype("cpu", d),
    )


@row
def autocast_cache(c):
    return go(
        c,
        lambda x: x * (2 if torch.is_autocast_cache_enabled() else 1),
        [lambda: torch.set_autocast_cache_enabled(False)],
        lambda: torch.set_autocast_cache_enabled(True),
    )


@row
def autocast_on(c):
    return go(
        c,
        lambda x: x * (2 if torch.is_autocast_enabled("cpu") else 1),
        [lambda: torch.set_autocast_enabled("cpu", True)],
        lambda: torch.set_autocast_enabled("cpu", False),
    )


@row
def matmul_precision(c):
    p = torch.get_float32_matmul_precision()
    return go(
        c,
        lambda x: x * (2 if torch.get_float32_matmul_precision() == "high" else 1),
        [lambda: torch.set_float32_matmul_precision("high")],
        lambda: torch.set_float32_matmul_precision(p),
    )


@row
def backends_cudnn(c):
    b = torch.backends.cudnn.benchmark
    return go(
        c,
        lambda x: x * (2 if torch.backends.cudnn.benchmark else 1),
        [lambda: setattr(torch.backends.cudnn, "benchmark", not b)],
        lambda: setattr(torch.backends.cudnn, "benchmark", b),
    )


@row
def backends_tf32(c):
    b = torch.backends.cuda.matmul.allow_tf32
    return go(
        c,
        lambda x: x * (2 if torch.backends.cuda.matmul.allow_tf32 else 1),
        [lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", not b)],
        lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", b),
    )


@row
def backends_mkldnn(c):
    b = torch.backends.mkldnn.enabled
    return go(
        c,
        lambda x: x * (2 if torch.backends.mkldnn.enabled else 1),
        [lambda: setattr(torch.backends.mkldnn, "enabled", not b)],
        lambda: setattr(torch.backends.mkldnn, "enabled", b),
    )


@row
def backends_sdp(c):
    return go(
        c,
        lambda x: x * (2 if torch.backends.cuda.flash_sdp_enabled() else 1),
        [lambda: torch.backends.cuda.enable_flash_sdp(not torch.backends.cuda.flash_sdp_enabled())],
        lambda: torch.backends.cuda.enable_flash_sdp(True),
    )


@row
def globals_(c):
    global G
    G = 1.0
    return go(c, lambda x: x * globals()["G"], [lambda: globals().__setitem__("G", 5.0)])


@row
def globals_get(c):
    global G
    G = 1.0
    return go(c, lambda x: x * globals().get("G"), [lambda: globals().__setitem__("G", 5.0)])


@row
def sys_modules_attr(c):
    global G
    G = 1.0
    return go(c, lambda x: x * sys.modules[__name__].G, [lambda: globals().__setitem__("G", 5.0)])


@row
def storage_offset(c):
    b = torch.ones(6)
    f = c(lambda x: x * (1 + x.storage_offset()))
    return [f(b[:3]).tolist(), f(b[3:]).tolist(), f(b[1:4]).tolist()]


@row
def version(c):
    f = c(lambda x: x * (1 + x._version))
    y = torch.ones(3)
    o = [f(y).tolist()]
    y.mul_(1)
    o.append(f(y).tolist())
    return o


@row
def data_ptr(c):
    f = c(lambda x, k: x * (2 if x.data_ptr() == k else 1))
    y = torch.ones(3)
    z = torch.ones(3)
    return [f(y, y.data_ptr()).tolist(), f(z, y.data_ptr()).tolist()]


@row
def is_view(c):
    f = c(lambda x: x * (2 if x._is_view() else 1))
    y = torch.ones(3)
    z = torch.ones(1, 3)[0]
    return [f(y).tolist(), f(z).tolist(), f(y).tolist()]


@row
def base_(c):
    f = c(lambda x: x * (2 if x._base is not None else 1))
    y = torch.ones(3)
    z = torch.ones(1, 3)[0]
    return [f(y).tolist(), f(z).tolist(), f(y).tolist()]


@row
def is_contig(c):
    f = c(lambda x: x * (2 if x.is_contiguous() else 1))
    y = torch.ones(3)
    z = torch.ones(3, 2)[:, 0]
    return [f(y).tolist(), f(z).tolist()]


@row
def grad_attr(c):
    f = c(lambda x: x.detach() * (2 if x.grad is not None else 1))
    y = torch.ones(3, requires_grad=True)
    o = [f(y).tolist()]
    y.grad = torch.ones(3)
    o.append(f(y).tolist())
    return o


@row
def class_attr_later(c):
    class D:
        pass

    d = D()
    f = c(lambda x: x * getattr(d, "v", 1.0))
    o = [f(x).tolist()]
    D.v = 4.0
    o.append(f(x).tolist())
    D.v = 6.0
    o.append(f(x).tolist())
    return o


@row
def class_hasattr_later(c):
    class D:
        pass

    d = D()
    f = c(lambda x: x * (2 if hasattr(d, "v") else 1))
    o = [f(x).tolist()]
    D.v = 4.0
    o.append(f(x).tolist())
    return o


@row
def class_prop_later(c):
    class D:
        def __init__(s):
            s.v = 1.0

    d = D()
    f = c(lambda x: x * d.v)
    o = [f(x).tolist()]
    D.v = property(lambda s: 7.0)
    o.append(f(x).tolist())
    return o


@row
def class_getattr_later(c):
    class D:
        pass

    d = D()
    f = c(lambda x: x * getattr(d, "v", 1.0))
    o = [f(x).tolist()]
    D.__getattr__ = lambda s, n: 9.0
    o.append(f(x).tolist())
    return o


@row
def class_method_later(c):
    class D:
        def m(s):
            return 1.0

    d = D()
    f = c(lambda x: x * d.m())
    o = [f(x).tolist()]
    D.m = lambda s: 7.0
    o.append(f(x).tolist())
    return o


@row
def base_method_later(c):
    class B:
        def m(s):
            return 1.0

    class D(B):
        pass

    d = D()
    f = c(lambda x: x * d.m())
    o = [f(x).tolist()]
    D.m = lambda s: 7.0
    o.append(f(x).tolist())
    return o


@row
def super_method_later(c):
    class B:
        def m(s):
            return 1.0

    class D(B):
        def m(s):
            return super().m() * 2

    d = D()
    f = c(lambda x: x * d.m())
    o = [f(x).tolist()]
    B.m = lambda s: 7.0
    o.append(f(x).tolist())
    return o


@row
def init_later(c):
    class D:
        def __init__(s):
            s.v = 1.0

    def mk(x):
        return x * D().v

    f = c(mk)
    o = [f(x).tolist()]

    def init(s):
        s.v = 8.0

    D.__init__ = init
    o.append(f(x).tolist())
    return o


@row
def add_later(c):
    class D:
        def __add__(s, o):
            return o * 2

    d = D()
    f = c(lambda x: d + x)
    o = [f(x).tolist()]
    D.__add__ = lambda s, o: o * 8
    o.append(f(x).tolist())
    return o


@row
def radd_later(c):
    class D:
        def __radd__(s, o):
            return o * 2

    d = D()
    f = c(lambda x: 1.0 + d and x * (2.0 + d))
    o = [f(x).tolist()]
    D.__radd__ = lambda s, o: o * 8
    o.append(f(x).tolist())
    return o


@row
def eq_later(c):
    class D:
        pass

    d = D()
    f = c(lambda x: x * (2 if d == 3 else 1))
    o = [f(x).tolist()]
    D.__eq__ = lambda s, o: True
    o.append(f(x).tolist())
    return o


@row
def getitem_later(c):
    class D:
        def __getitem__(s, k):
            return 1.0

    d = D()
    f = c(lambda x: x * d[0])
    o = [f(x).tolist()]
    D.__getitem__ = lambda s, k: 5.0
    o.append(f(x).tolist())
    return o


@row
def contains_later(c):
    class D:
        def __contains__(s, k):
            return True

    d = D()
    f = c(lambda x: x * (2 if 1 in d else 1))
    o = [f(x).tolist()]
    D.__contains__ = lambda s, k: False
    o.append(f(x).tolist())
    return o


@row
def iter_later(c):
    class D:
        def __iter__(s):
            return iter([1.0])

    d = D()
    f = c(lambda x: x * sum(d))
    o = [f(x).tolist()]
    D.__iter__ = lambda s: iter([5.0])
    o.append(f(x).tolist())
    return o


@row
def bool_later(c):
    class D:
        pass

    d = D()
    f = c(lambda x: x * (2 if d else 1))
    o = [f(x).tolist()]
    D.__bool__ = lambda s: False
    o.append(f(x).tolist())
    return o


@row
def len_subclass(c):
    class L(list):
        def __len__(s):
            return 7

    l = L([1, 2])
    f = c(lambda x: x * len(l))
    o = [f(x).tolist()]
    L.__len__ = lambda s: 9
    o.append(f(x).tolist())
    return o


@row
def len_later(c):
    class L(list):
        pass

    l = L([1, 2])
    f = c(lambda x: x * len(l))
    o = [f(x).tolist()]
    L.__len__ = lambda s: 9
    o.append(f(x).tolist())
    return o


@row
def enter_later(c):
    class D:
        def __enter__(s):
            return 1.0

        def __exit__(s, *a):
            pass

    d = D()

    def g(x):
        with d as k:
            return x * k

    f = c(g)
    o = [f(x).tolist()]
    D.__enter__ = lambda s: 6.0
    o.append(f(x).tolist())
    return o


@row
def call_later(c):
    class D:
        def __call__(s, x):
            return x * 2

    d = D()
    f = c(lambda x: d(x))
    o = [f(x).tolist()]
    D.__call__ = lambda s, x: x * 8
    o.append(f(x).tolist())
    return o


@row
def module_call(c):
    class M(torch.nn.Module):
        def forward(s, x):
            return x * 2

    m = M()
    f = c(lambda x: m(x))
    o = [f(x).tolist()]
    M.__call__ = lambda s, x: x * 8
    o.append(f(x).tolist())
    return o


@row
def module_forward_patch(c):
    class M(torch.nn.Module):
        def forward(s, x):
            return x * 2

    m = M()
    f = c(lambda x: m(x))
    o = [f(x).tolist()]
    M.forward = lambda s, x: x * 8
    o.append(f(x).tolist())
    m.forward = lambda x: x * 9
    o.append(f(x).tolist())
    return o


@row
def tensor_method_patch(c):
    old = torch.Tensor.sin
    return go(
        c,
        lambda x: x.sin(),
        [lambda: setattr(torch.Tensor, "sin", lambda self: self * 9)],
        lambda: setattr(torch.Tensor, "sin", old),
    )


@row
def own_module_patch(c):
    old, layer = torch.nn.ReLU.forward, torch.nn.ReLU()
    return go(
        c,
        lambda x: layer(x),
        [lambda: setattr(torch.nn.ReLU, "forward", lambda self, x: x * 9)],
        lambda: setattr(torch.nn.ReLU, "forward", old),
    )


@row
def math_patch(c):
    old = math.sqrt
    return go(
        c,
        lambda x: x * math.sqrt(4.0),
        [lambda: setattr(math, "sqrt", lambda v: 9.0)],
        lambda: setattr(math, "sqrt", old),
    )


@row
def math_const(c):
    old = math.pi
    return go(c, lambda x: x * math.pi, [lambda: setattr(math, "pi", 3.0)], lambda: setattr(math, "pi", old))


@row
def torch_patch(c):
    old = torch.sin
    return go(
        c, lambda x: torch.sin(x), [lambda: setattr(torch, "sin", lambda v: v * 9)], lambda: setattr(torch, "sin", old)
    )


@row
def functional_patch(c):
    F = torch.nn.functional
    old = F.relu
    return go(c, lambda x: F.relu(x), [lambda: setattr(F, "relu", lambda v: v * 9)], lambda: setattr(F, "relu", old))


@row
def default_dtype(c):
    return go(
        c,
        lambda x: x * torch.tensor(1.5).dtype.itemsize,
        [lambda: torch.set_default_dtype(torch.float64)],
        lambda: torch.set_default_dtype(torch.float32),
    )


@row
def default_device(c):
    return go(
        c,
        lambda x: x * (2 if torch.get_default_device().type == "meta" else 1),
        [lambda: torch.set_default_device("meta")],
        lambda: torch.set_default_device(None),
    )


@row
def grad_enabled(c):
    return go(
        c,
        lambda x: x * (2 if torch.is_grad_enabled() else 1),
        [lambda: torch.set_grad_enabled(False)],
        lambda: torch.set_grad_enabled(True),
    )


@row
def deterministic(c):
    return go(
        c,
        lambda x: x * (2 if torch.are_deterministic_algorithms_enabled() else 1),
        [lambda: torch.use_deterministic_algorithms(True)],
        lambda: torch.use_deterministic_algorithms(False),
    )


@row
def deterministic_warn(c):
    return go(
        c,
        lambda x: x * (2 if torch.is_deterministic_algorithms_warn_only_enabled() else 1),
        [lambda: torch.use_deterministic_algorithms(True, warn_only=True)],
        lambda: torch.use_deterministic_algorithms(False),
    )


@row
def deterministic_fill(c):
    d = torch.utils.deterministic
    b = d.fill_uninitialized_memory
    return go(
        c,
        lambda x: x * (2 if torch.utils.deterministic.fill_uninitialized_memory else 1),
        [lambda: setattr(d, "fill_uninitialized_memory", not b)],
        lambda: setattr(d, "fill_uninitialized_memory", b),
    )


@row
def rng_state(c):
    torch.manual_seed(0)
    return go(c, lambda x: x * torch.get_rng_state().sum(), [lambda: torch.manual_seed(5)])


@row
def warn_always(c):
    return go(
        c,
        lambda x: x * (2 if torch.is_warn_always_enabled() else 1),
        [lambda: torch.set_warn_always(True)],
        lambda: torch.set_warn_always(False),
    )


@row
def time_(c):
    t = [0.0]
    old = time.time
    time.time = lambda: t[0]
    try:
        return go(c, lambda x: x * (1 + time.time()), [lambda: t.__setitem__(0, 5.0)])
    finally:
        time.time = old


@row
def perf(c):
    f = c(lambda x: x * 0 + time.perf_counter())
    a = f(x.double()).tolist()[0]
    b = f(x.double()).tolist()[0]
    return b > a


@row
def random_(c):
    random.seed(0)
    f = c(lambda x: x * random.random())
    return [f(x).tolist() for _ in range(3)]


@row
def file_(c):
    p = PLACE + "/a"
    open(p, "w").write("1")
    return go(c, lambda x: x * float(open(p).read()), [lambda: open(p, "w").close() or open(p, "w").write("5")])


@row
def path_exists(c):
    p = PLACE + "/b"
    open(p, "w").close()
    return go(c, lambda x: x * (2 if os.path.exists(p) else 1), [lambda: os.remove(p)])


@row
def cwd(c):
    d = os.getcwd()
    return go(c, lambda x: x * len(os.getcwd()), [lambda: os.chdir("/")], lambda: os.chdir(d))


@row
def id_(c):
    class D:
        pass

    a, b = D(), D()
    f = c(lambda x, d, k: x * (2 if id(d) == k else 1))
    k = id(a)
    return [f(x, a, k).tolist(), f(x, b, k).tolist()]


@row
def hash_(c):
    class D:
        pass

    a, b = D(), D()
    f = c(lambda x, d, k: x * (2 if hash(d) == k else 1))
    k = hash(a)
    return [f(x, a, k).tolist(), f(x, b, k).tolist()]


@row
def hash_later(c):
    class D:
        pass

    a = D()
    f = c(lambda x: x * (2 if hash(a) == 5 else 1))
    o = [f(x).tolist()]
    D.__hash__ = lambda s: 5
    o.append(f(x).tolist())
    return o


@row
def reclimit(c):
    n = sys.getrecursionlimit()
    return go(
        c,
        lambda x: x * (sys.getrecursionlimit() % 7),
        [lambda: sys.setrecursionlimit(n + 1)],
        lambda: sys.setrecursionlimit(n),
    )


@row
def sys_argv(c):
    n = list(sys.argv)
    return go(
        c, lambda x: x * len(sys.argv), [lambda: sys.argv.append("z")], lambda: sys.argv.__setitem__(slice(None), n)
    )


@row
def sys_flags_attr(c):
    return go(c, lambda x: x * getattr(sys, "zz", 1), [lambda: setattr(sys, "zz", 4)], lambda: delattr(sys, "zz"))


@row
def sys_modules(c):
    return go(
        c,
        lambda x: x * (2 if "zzmod" in sys.modules else 1),
        [lambda: sys.modules.__setitem__("zzmod", math)],
        lambda: sys.modules.pop("zzmod"),
    )


@row
def refcount(c):
    class D:
        pass

    a = D()
    keep = []
    return go(c, lambda x: x * (2 if sys.getrefcount(a) > 5 else 1), [lambda: keep.extend([a] * 10)])


@row
def ctxvar(c):
    v = contextvars.ContextVar("v", default=1.0)
    return go(c, lambda x: x * v.get(), [lambda: v.set(5.0)])


@row
def threadlocal(c):
    t = threading.local()
    t.v = 1.0
    return go(c, lambda x: x * t.v, [lambda: setattr(t, "v", 5.0)])


@row
def thread_ident(c):
    f = c(lambda x: x * (threading.get_ident() % 1000))
    o = [f(x).tolist()[0] == float(threading.get_ident() % 1000)]
    th = threading.Thread(target=lambda: o.append(f(x).tolist()[0] == float(threading.get_ident() % 1000)))
    th.start()
    th.join()
    return o


@row
def weakref_(c):
    class D:
        v = 2.0

    h = [D()]
    r = weakref.ref(h[0])
    return go(c, lambda x: x * (r().v if r() is not None else 1.0), [lambda: h.clear()])


@row
def weakdict(c):
    class D:
        pass

    k = D()
    w = weakref.WeakKeyDictionary()
    w[k] = 2.0
    return go(c, lambda x: x * w.get(k, 1.0), [lambda: w.clear()])


@row
def gc_(c):
    return go(c, lambda x: x * (2 if gc.isenabled() else 1), [lambda: gc.disable()], lambda: gc.enable())


@row
def frames(c):
    def g(x):
        return x * sys._getframe().f_back.f_lineno * 0 + x * (2 if sys._getframe(0).f_code.co_name == "g" else 1)

    return go(c, g, [])


@row
def locale_(c):
    return go(c, lambda x: x * len(locale.setlocale(locale.LC_ALL)), [])


@row
def decimal_(c):
    p = decimal.getcontext().prec
    return go(
        c,
        lambda x: x * decimal.getcontext().prec,
        [lambda: setattr(decimal.getcontext(), "prec", 5)],
        lambda: setattr(decimal.getcontext(), "prec", p),
    )


@row
def logging_(c):
    l = logging.getLogger("zz")
    return go(
        c,
        lambda x: x * (2 if l.isEnabledFor(logging.DEBUG) else 1),
        [lambda: l.setLevel(logging.DEBUG)],
        lambda: l.setLevel(logging.WARNING),
    )


@row
def log_level(c):
    l = logging.getLogger("zz")
    return go(
        c,
        lambda x: x * (2 if l.level == 10 else 1),
        [lambda: l.setLevel(logging.DEBUG)],
        lambda: l.setLevel(logging.WARNING),
    )


@row
def func_attr(c):
    def h():
        return 1.0

    h.k = 1.0
    return go(c, lambda x: x * h.k, [lambda: setattr(h, "k", 5.0)])


@row
def func_code(c):
    def h():
        return 1.0

    def h2():
        return 5.0

    return go(c, lambda x: x * h(), [lambda: setattr(h, "__code__", h2.__code__)])


@row
def func_defaults(c):
    def h(k=1.0):
        return k

    return go(c, lambda x: x * h(), [lambda: setattr(h, "__defaults__", (5.0,))])


@row
def func_kwdefaults(c):
    def h(*, k=1.0):
        return k

    return go(c, lambda x: x * h(), [lambda: h.__kwdefaults__.__setitem__("k", 5.0)])


@row
def own_code(c):
    def h(x):
        return x * 1

    def h2(x):
        return x * 5

    return go(c, h, [lambda: setattr(h, "__code__", h2.__code__)])


@row
def own_defaults(c):
    def h(x, k=1.0):
        return x * k

    return go(c, h, [lambda: setattr(h, "__defaults__", (5.0,))])


@row
def closure_cell(c):
    k = 1.0

    def h(x):
        return x * k

    def ch():
        nonlocal k
        k = 5.0

    return go(c, h, [ch])


@row
def partial_kw(c):
    p = functools.partial(lambda x, k: x * k, k=1.0)
    return go(c, lambda x: p(x), [lambda: p.keywords.__setitem__("k", 5.0)])


@row
def enum_val(c):
    class E(enum.Enum):
        A = 1.0

    return go(c, lambda x: x * E.A.value, [lambda: setattr(E.A, "_value_", 5.0)])


@row
def class_dict(c):
    class D:
        v = 1.0

    return go(c, lambda x: x * vars(D)["v"], [lambda: setattr(D, "v", 5.0)])


@row
def class_attr(c):
    class D:
        v = 1.0

    return go(c, lambda x: x * D.v, [lambda: setattr(D, "v", 5.0)])


@row
def class_list(c):
    class D:
        v = [1.0]

    return go(c, lambda x: x * D.v[0], [lambda: D.v.__setitem__(0, 5.0)])


@row
def metaclass_attr(c):
    class Mt(type):
        pass

    class D(metaclass=Mt):
        pass

    Mt.v = 1.0
    return go(c, lambda x: x * D.v, [lambda: setattr(Mt, "v", 5.0)])


@row
def instance_class(c):
    class A:
        v = 1.0

    class B:
        v = 5.0

    a = A()
    return go(c, lambda x: x * a.v, [lambda: setattr(a, "__class__", B)])


@row
def bases(c):
    class A:
        v = 1.0

    class B:
        v = 5.0

    class D(A):
        pass

    d = D()
    return go(c, lambda x: x * d.v, [lambda: setattr(D, "__bases__", (B,))])


@row
def isinst_abc(c):
    class A(abc.ABC):  # noqa: B024 - classes are registered with it
        pass

    class B:
        pass

    b = B()
    return go(c, lambda x: x * (2 if isinstance(b, A) else 1), [lambda: A.register(B)])


@row
def instancecheck_later(c):
    class Mt(type):
        pass

    class A(metaclass=Mt):
        pass

    b = object()
    return go(
        c, lambda x: x * (2 if isinstance(b, A) else 1), [lambda: setattr(Mt, "__instancecheck__", lambda c, o: True)]
    )


@row
def modattr(c):
    m = types.ModuleType("m")
    m.v = 1.0
    return go(c, lambda x: x * m.v, [lambda: setattr(m, "v", 5.0)])


@row
def modfunc(c):
    m = types.ModuleType("m")
    m.f = lambda: 1.0
    return go(c, lambda x: x * m.f(), [lambda: setattr(m, "f", lambda: 5.0)])


@row
def modclass(c):
    class A:
        v = 1.0

    class B:
        v = 5.0

    m = types.ModuleType("m")
    m.f = A
    return go(c, lambda x: x * m.f.v, [lambda: setattr(m, "f", B)])


@row
def modbuiltin(c):
    m = types.ModuleType("m")
    m.f = math.sqrt
    return go(c, lambda x: x * m.f(4.0), [lambda: setattr(m, "f", math.exp)])


@row
def module_getattr(c):
    m = types.ModuleType("m")
    v = [1.0]
    m.__getattr__ = lambda n: v[0]
    return go(c, lambda x: x * m.zz, [lambda: v.__setitem__(0, 5.0)])


@row
def imported(c):
    def g(x):
        from math import sqrt

        return x * sqrt(4.0)

    old = math.sqrt
    return go(c, g, [lambda: setattr(math, "sqrt", lambda v: 9.0)], lambda: setattr(math, "sqrt", old))


@row
def bytearray_(c):
    b = bytearray(b"a")
    return go(c, lambda x: x * b[0], [lambda: b.__setitem__(0, 5)])


@row
def memview(c):
    b = bytearray(b"a")
    m = memoryview(b)
    return go(c, lambda x: x * m[0], [lambda: b.__setitem__(0, 5)])


@row
def ndarray(c):
    a = np.ones(1)
    return go(c, lambda x: x * float(a[0]), [lambda: a.__setitem__(0, 5)])


@row
def ndarray_t(c):
    a = np.ones(3, dtype="float32")
    return go(c, lambda x: x * torch.from_numpy(a), [lambda: a.__setitem__(0, 5)])


@row
def iterator(c):
    it = iter([1.0, 2.0, 3.0])
    f = c(lambda x: x * next(it))
    return [f(x).tolist() for _ in range(3)]


@row
def itcount(c):
    it = itertools.count()
    f = c(lambda x: x * next(it))
    return [f(x).tolist() for _ in range(3)]


@row
def generator(c):
    def gen():
        n = 0
        while True:
            n += 1
            yield n

    it = gen()
    f = c(lambda x: x * next(it))
    return [f(x).tolist() for _ in range(3)]


@row
def lru(c):
    k = [1.0]

    @functools.lru_cache
    def h():
        return k[0]

    f = c(lambda x: x * h())
    o = [f(x).tolist()]
    k[0] = 5.0
    o.append(f(x).tolist())
    return o


@row
def cached_prop(c):
    class D:
        k = 1.0

        @functools.cached_property
        def p(s):
            return s.k

    d = D()
    f = c(lambda x: x * d.p)
    o = [f(x).tolist()]
    D.k = 5.0
    o.append(f(x).tolist())
    o.append("p" in d.__dict__)
    return o


@row
def slots(c):
    class D:
        __slots__ = ("v",)

    d = D()
    d.v = 1.0
    return go(c, lambda x: x * d.v, [lambda: setattr(d, "v", 5.0)])


@row
def mappingproxy(c):
    b = {"v": 1.0}
    m = types.MappingProxyType(b)
    return go(c, lambda x: x * m["v"], [lambda: b.__setitem__("v", 5.0)])


@row
def chainmap(c):
    b = {"v": 1.0}
    m = collections.ChainMap({}, b)
    return go(c, lambda x: x * m["v"], [lambda: b.__setitem__("v", 5.0)])


@row
def simplens(c):
    b = types.SimpleNamespace(v=1.0)
    return go(c, lambda x: x * b.v, [lambda: setattr(b, "v", 5.0)])


@row
def dictview(c):
    b = {"v": 1.0}
    v = b.values()
    return go(c, lambda x: x * sum(v), [lambda: b.__setitem__("v", 5.0)])


@row
def counter(c):
    b = collections.Counter("aab")
    return go(c, lambda x: x * b.most_common(1)[0][1], [lambda: b.update("aaa")])


@row
def training(c):
    m = torch.nn.Linear(3, 3)
    return go(c, lambda x: x * (2 if m.training else 1), [lambda: m.eval()])


@row
def modparams(c):
    m = torch.nn.Linear(3, 3, bias=False)
    return go(
        c, lambda x: x * len(list(m.parameters())), [lambda: setattr(m, "bias", torch.nn.Parameter(torch.ones(3)))]
    )


@row
def modulehooks(c):
    m = torch.nn.Identity()
    return go(c, lambda x: m(x), [lambda: m.register_forward_hook(lambda m, i, o: o * 5)])


@row
def inference(c):
    f = c(lambda x: x * (2 if torch.is_inference_mode_enabled() else 1))
    o = [f(x).tolist()]
    with torch.inference_mode():
        o.append(f(x).tolist())
    return o


@row
def is_inference(c):
    with torch.inference_mode():
        z = torch.ones(3)
    f = c(lambda x: x * (2 if x.is_inference() else 1))
    return [f(x).tolist(), f(z).tolist()]


@row
def str_subclass(c):
    class S(str):
        pass

    s = S("a")
    s.k = 1.0
    return go(c, lambda x: x * s.k, [lambda: setattr(s, "k", 5.0)])


@row
def int_subclass(c):
    class Int(int):
        def __mul__(s, o):
            return 1.0

    i = Int(3)
    f = c(lambda x: x * (i * 2))
    o = [f(x).tolist()]
    Int.__mul__ = lambda s, o: 7.0
    o.append(f(x).tolist())
    return o


@row
def tensor_attr(c):
    y = torch.ones(3)
    y.k = 1.0
    return go(c, lambda x: x * x.k, [lambda: setattr(y, "k", 5.0)], args=(y,))


@row
def tensor_hooks(c):
    y = torch.ones(3, requires_grad=True)
    return go(
        c, lambda x: x.detach() * (2 if x._backward_hooks else 1), [lambda: y.register_hook(lambda g: g)], args=(y,)
    )


@row
def retains(c):
    y = torch.ones(3, requires_grad=True) * 1
    return go(c, lambda x: x.detach() * (2 if x.retains_grad else 1), [lambda: y.retain_grad()], args=(y,))


@row
def dtype_default_tensor(c):
    return go(
        c,
        lambda x: x * torch.ones(1).dtype.itemsize,
        [lambda: torch.set_default_dtype(torch.float64)],
        lambda: torch.set_default_dtype(torch.float32),
    )


@row
def exc_info(c):
    def g(x):
        return x * (2 if sys.exc_info()[0] is not None else 1)

    f = c(g)
    o = [f(x).tolist()]
    try:
        raise ValueError
    except ValueError:
        o.append(f(x).tolist())
    return o


@row
def stdout_(c):
    old = sys.stdout
    s = io.StringIO()
    return go(
        c,
        lambda x: x * (2 if sys.stdout is s else 1),
        [lambda: setattr(sys, "stdout", s)],
        lambda: setattr(sys, "stdout", old),
    )


@row
def gettrace(c):
    return go(
        c,
        lambda x: x * (2 if sys.getswitchinterval() > 1 else 1),
        [lambda: sys.setswitchinterval(2)],
        lambda: sys.setswitchinterval(0.005),
    )


@row
def complexdict(c):
    d = {"a": {"b": [1.0]}}
    return go(c, lambda x: x * d["a"]["b"][-1], [lambda: d["a"]["b"].append(5.0)])


@row
def setmember(c):
    s = {1}
    return go(c, lambda x: x * (2 if 5 in s else 1), [lambda: s.add(5)])


@row
def setlen(c):
    s = {1}
    return go(c, lambda x: x * len(s), [lambda: s.add(5)])


@row
def strformat(c):
    class D:
        def __str__(s):
            return "a"

    d = D()
    f = c(lambda x: x * len(f"{d}"))
    o = [f(x).tolist()]
    D.__str__ = lambda s: "abc"
    o.append(f(x).tolist())
    return o


@row
def tracker(c):
    class D:
        def __init__(s):
            s.n = 0

        def __getattr__(s, k):
            s.n += 1
            return 1.0

    d = D()
    f = c(lambda x: x * d.zz)
    o = [f(x).tolist() for _ in range(3)]
    return o, d.n


@row
def setattr_eff(c):
    class D:
        def __init__(s):
            s.__dict__["n"] = 0

        def __setattr__(s, k, v):
            s.__dict__["n"] += 1
            s.__dict__[k] = v

    d = D()

    def g(x):
        d.v = 3
        return x * d.v

    f = c(g)
    o = [f(x).tolist() for _ in range(3)]
    return o, d.n


@row
def value_of_an_int_subclass(c):
    class Int(int):
        pass

    f = c(lambda x, n: x * n)
    return [f(x, Int(n)).tolist() for n in (3, 4, 5)]


@row
def value_of_a_str_subclass(c):
    class Str(str):
        pass

    f = c(lambda x, s: x * len(s) * (2 if s == "ab" else 1))
    return [f(x, Str(s)).tolist() for s in ("a", "ab", "cd")]


@row
def value_of_a_numpy_number(c):
    f = c(lambda x, n: x * float(n))
    return [f(x, np.float64(n)).tolist() for n in (3, 4, 5)]


@row
def patched_builtin(c):
    old = builtins.abs
    return go(
        c,
        lambda x: x * abs(-2.0),
        [lambda: setattr(builtins, "abs", lambda v: 9.0)],
        lambda: setattr(builtins, "abs", old),
    )


@row
def value_of_a_base_class(c):
    class A:
        a = 4.0

    class B(A):
        pass

    class C(B):
        def f(self, x):
            return super().a * x

    f = c(C().f)
    return go_on(
        f, [lambda: None, lambda: setattr(A, "a", 5.0), lambda: setattr(B, "a", 7.0), lambda: setattr(C, "a", 9.0)]
    )


@row
def what_a_metaclass_says(c):
    class Meta(type):
        def __instancecheck__(cls, obj):
            return obj.tag == "yes"

    class Kind(metaclass=Meta):
        pass

    class Thing:
        tag = "no"

    thing = Thing()

    def f(x):
        match thing:
            case Kind():
                x = x + 10
        return x * (2 if isinstance(thing, (int, Kind)) else 1)

    return go_on(c(f), [lambda: None, lambda: setattr(thing, "tag", "yes"), lambda: setattr(thing, "tag", "no")])


@row
def descriptor_that_is_only_set(c):
    class Field:
        def __set__(self, obj, value):
            obj.__dict__["field"] = value

    class Owner:
        field = Field()

    owner = Owner()
    owner.field = 2.0
    return go_on(c(lambda x: x * owner.field), [lambda: None, lambda: setattr(owner, "field", 3.0)])


@row
def new_that_makes_another_class(c):
    class Meta(type):
        def __instancecheck__(cls, obj):
            return True

    class Base:
        def __init__(self, tag="initialised again"):
            self.tag = tag

    class Child(Base, metaclass=Meta):
        def __new__(cls):
            return Base("made")

    return c(lambda x: (x + 1, Child().tag))(x)[1]


@row
def autocast_dtype_around(c):
    f, out = c(lambda x: (x[None] @ x[:, None]).dtype), []
    for dtype in (torch.bfloat16, torch.float16, torch.bfloat16):
        with torch.autocast("cpu", dtype=dtype):
            out.append(f(torch.ones(2)))
    return out


@row
def function_that_remembers(c):
    @functools.lru_cache
    def mask(n):
        return torch.ones(n)

    f = c(lambda x: (x + mask(3), mask(3)))
    first = f(x)
    mask(3).add_(1)
    second = f(x)
    mask.cache_clear()
    return first, second, f(x), f(x)[1] is mask(3)


@row
def division_by_numbers_that_change(c):
    def g(x, n):
        try:
            return x * (6 // n) + 6 % n + 1 / n
        except ZeroDivisionError as error:
            return x, str(error)

    f = c(g)
    return [str(f(x, n)) for n in (3, 2, 0, 1, -1, 0, 1.5, 0.0, -0.0, 2.5, 0)]


@row
def list_of_a_class_of_its_own(c):
    class Own(list):
        pass

    def g(x, tree):
        found = tree_map(lambda leaf: Own([v * 2 for v in leaf] + [leaf.tag]) if isinstance(leaf, Own) else leaf, tree)
        return x, found, tree_map(lambda leaf: leaf, tree)

    own, f = Own([1, 2]), c(g)
    out = []
    for tag in (3, 4):
        own.tag = tag
        own.append(tag)
        _, found, same = f(x, {"a": own, "b": [4]})
        out.append((type(found["a"]).__name__, found, same["a"] is own))
    return out


@row
def gradient_by_its_other_name(c):
    y = torch.ones(3, requires_grad=True)
    f = c(lambda x: x if y._grad is None else x * y._grad)
    return go_on(f, [lambda: None, lambda: (y * 3).sum().backward(), lambda: setattr(y, "grad", None)])


@row
def generator_of_tensors_to_differentiate(c):
    y = torch.ones(3, requires_grad=True)
    f = c(lambda x: torch.autograd.grad((x * y).sum(), (t for t in [y])))
    return [f(torch.full((3,), k)) for k in (1.0, 2.0)]


@row
def products_in_tf32(c):
    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32
    changes = [lambda: setattr(settings, "allow_tf32", True), lambda: setattr(settings, "allow_tf32", False)]
    return go(
        c, lambda x: x * (2 if settings.allow_tf32 else 1), changes, lambda: setattr(settings, "allow_tf32", before)
    )


def through_view(kind):
    def in_view(c):
        table = {"a": 1.0, "b": 2.0}
        view = getattr(table, kind)()
        changes = [
            lambda: table.__setitem__("a", 5.0),
            lambda: table.__setitem__("ccc", 7.0),
            lambda: table.pop("a"),
            lambda: table.update(a=2.0),
        ]
        return go(c, lambda x: x * sum(i * len(str(v)) + hash(v) % 7 for i, v in enumerate(view, 1)), changes)

    return in_view


for kind in ("keys", "values", "items"):
    ROWS[f"iteration over a view: {kind}"] = through_view(kind)


@row
def cached_property_that_is_taken_away(c):
    class D:
        k = 2.0

        @functools.cached_property
        def p(self):
            return self.k * 3

    d = D()
    return go(c, lambda x: x * d.p, [lambda: setattr(d, "k", 7.0), lambda: d.__dict__.pop("p", None)])


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore")
def test_as_it_is_now(name, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PLACE", str(tmp_path))
    row = ROWS[name]
    assert str(row(lambda f: torch.compile(f, backend="eager"))) == str(row(lambda f: f))


def test_a_module_that_makes_names_as_they_are_asked_for(recwarn):
    lazy = types.ModuleType("lazy")

    def made(name):
        if name != "scale":
            raise AttributeError(name)
        lazy.scale = 3.0
        return 3.0

    lazy.__getattr__ = made
    run = torch.compile(lambda x: x * lazy.scale, backend="eager", fullgraph=True)
    x = torch.ones(2)
    assert [run(x).tolist(), run(x).tolist()] == [[3.0, 3.0]] * 2
    lazy.scale = 4.0
    assert run(x).tolist() == [4.0, 4.0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * (2 if torch.backends.cuda.matmul.allow_tf32 else 1),
        lambda x: x * sum(VIEWS[0]) + sum(len(k) for k in VIEWS[1]) + sum(v for _, v in VIEWS[2]),
        lambda x: x * Cached().p,
        lambda x: x * sum(VIEWS[0]) + TABLE["a"] + sum(PROXY.values()),
        lambda x: x + PROXY["a"] + TABLE["b"],
    ],
)
def test_what_is_read_with_a_test_is_in_one_graph(f):
    assert torch.compile(f, backend="eager", fullgraph=True)(x).tolist() == f(x).tolist()


TABLE = {"a": 1.0, "b": 2.0}
VIEWS = (TABLE.values(), TABLE.keys(), TABLE.items())
PROXY = types.MappingProxyType(TABLE)


class Cached:
    @functools.cached_property
    def p(self):
        return 3.0
