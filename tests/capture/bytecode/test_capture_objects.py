"""Captured programs that use objects: attributes, descriptors, special methods, classes of all kinds."""

import collections
import dataclasses
import enum
import functools
import types

import pytest

import pullback as torch
from tests.capture.bytecode.capture_cases import BACKENDS, Cases, x_of

case = Cases()


@torch.compiler.disable
def note(log, value):
    log.append(value)


class Box:
    kind = "box"

    def __init__(self, v):
        self.v = v


@case
def attributes_read_and_written():
    b = Box(1)

    def f(x):
        b.v += 1
        b.new = x * b.v
        return b.new + 1

    return f, lambda i: (x_of(i),), lambda: b


@case
def attribute_deleted():
    b = Box(1)

    def f(x):
        b.t = x
        if hasattr(b, "v"):
            del b.v
            return x
        b.v = 3
        return x * b.v, getattr(b, "none", 7)

    return f, lambda i: (x_of(i),), lambda: b


@case
def attribute_error_words():
    class S:
        __slots__ = ("a",)

    s, b = S(), Box(1)

    def f(x):
        words = []
        for g in (
            lambda: b.none,
            lambda: s.a,
            lambda: setattr(s, "zz", 1),
            lambda: delattr(b, "no"),
            lambda: Box.nothing,
        ):
            try:
                g()
            except AttributeError as error:
                words.append(str(error))
        return x, words

    return f, lambda i: (x_of(i),)


@case
def object_argument_changes():
    def f(b, x):
        return x * b.v

    return f, lambda i: (Box(i + 2), x_of(i))


@case
def object_changes_class():
    class A:
        def go(self, x):
            return x + 1

    class B(A):
        def go(self, x):
            return x * 5

    a = A()

    def f(x):
        return a.go(x)

    def arguments(i):
        a.__class__ = [A, B, A][i]
        return (x_of(i),)

    return f, arguments


@case
def method_replaced_on_class():
    class A:
        def go(self, x):
            return x + 1

    first = A.go
    a = A()

    def f(x):
        return a.go(x)

    def arguments(i):
        A.go = first if i != 1 else (lambda self, x: x * 7)
        return (x_of(i),)

    return f, arguments


@case
def method_replaced_on_instance():
    class A:
        def go(self, x):
            return x + 1

    a = A()

    def f(x):
        return a.go(x)

    def arguments(i):
        if i == 1:
            a.go = lambda x: x * 7
        elif i == 2:
            del a.go
        return (x_of(i),)

    return f, arguments


@case
def class_attribute_changes():
    class A:
        k = 1

    a = A()

    def f(x):
        return x * a.k + A.k

    def arguments(i):
        A.k = i + 1
        return (x_of(i),)

    return f, arguments


@case
def class_attribute_written():
    class A:
        count = 0
        items = []

    def f(x):
        A.count += 1
        A.items.append(A.count)
        return x * A.count

    return f, lambda i: (x_of(i),), lambda: (A.count, A.items)


@case
def class_attribute_shadowed():
    class A:
        k = 3

    a = A()

    def f(x):
        y = x * a.k
        a.k = a.k + 1
        return y * a.k, A.k

    return f, lambda i: (x_of(i),), lambda: a


@case
def class_attribute_counted_in_init():
    class A:
        count = 0

        def __init__(self, x):
            type(self).count += 1
            self.x = x

    def f(x):
        return A(x).x * A(x).count

    return f, lambda i: (x_of(i),), lambda: A.count


@case
def properties():
    class A:
        def __init__(self):
            self._v = 2

        @property
        def v(self):
            self.reads = getattr(self, "reads", 0) + 1
            return self._v

        @v.setter
        def v(self, value):
            self._v = value * 2

        @v.deleter
        def v(self):
            self._v = 0

    a = A()

    def f(x):
        a.v = a.v + 1
        y = x * a.v
        del a.v
        a.v = 4
        return y

    return f, lambda i: (x_of(i),), lambda: a


@case
def descriptors():
    class Field:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, obj, owner=None):
            return self if obj is None else getattr(obj, self.name, 1)

        def __set__(self, obj, value):
            setattr(obj, self.name, value + 1)

    class A:
        a = Field()

    one = A()

    def f(x):
        one.a = one.a * 2
        return x * one.a, A.a.name

    return f, lambda i: (x_of(i),), lambda: one


@case
def cached_property():
    log = []

    class A:
        @functools.cached_property
        def v(self):
            log.append("computed")
            return 3

    kept = A()

    def f(x):
        new = A()
        return x * kept.v + kept.v + new.v + new.v

    return f, lambda i: (x_of(i),), lambda: (log, kept)


@case
def getattr_fallback():
    class A:
        def __init__(self):
            self.table = {"a": 2}

        def __getattr__(self, name):
            if name in self.table:
                return self.table[name]
            raise AttributeError(f"no {name}")

    a = A()

    def f(x):
        a.table["b"] = a.table.get("b", 0) + 1
        try:
            return x * a.a + a.b, a.c
        except AttributeError as error:
            return x * a.b, str(error), hasattr(a, "zz")

    return f, lambda i: (x_of(i),), lambda: a


@case
def getattribute_and_setattr():
    log = []

    class A:
        def __getattribute__(self, name):
            if name == "v":
                log.append(name)
            return super().__getattribute__(name)

        def __setattr__(self, name, value):
            log.append(("set", name))
            super().__setattr__(name, value)

    a = A()
    a.v = 2

    def f(x):
        a.v = a.v + 1
        return x * a.v

    return f, lambda i: (x_of(i),), lambda: list(log)


@case
def object_setattr_and_getattribute():
    class A:
        def __setattr__(self, name, value):
            object.__setattr__(self, name, value * 2)

    a = A()
    a.v = 1

    def f(x):
        a.v = object.__getattribute__(a, "v") + 1
        return x * a.v

    return f, lambda i: (x_of(i),), lambda: a.__dict__


@case
def slots():
    class S:
        __slots__ = ("a", "b")

        def __init__(self, a):
            self.a = a

    s = S(1)

    def f(x):
        s.a = s.a + 1
        s.b = x * s.a
        result = S(x)
        return result, s.b, hasattr(result, "b")

    return f, lambda i: (x_of(i),), lambda: s


@case
def dict_of_object_used():
    b = Box(1)

    def f(x):
        b.__dict__["w"] = b.__dict__["v"] + 1
        vars(b).update(q=5)
        b.v += 1
        return x * b.w, sorted(vars(b)), len(b.__dict__)

    return f, lambda i: (x_of(i),), lambda: b


@case
def vars_iterated():
    b = Box(1)

    def f(x):
        for name, value in vars(b).items():
            x = x * value + len(name)
        return x

    def arguments(i):
        setattr(b, f"n{i}", i)
        return (x_of(i),)

    return f, arguments


# ---- special methods
class Vec:
    def __init__(self, *v):
        self.v = list(v)

    def __add__(self, other):
        return Vec(*(a + b for a, b in zip(self.v, other.v)))

    def __radd__(self, other):
        return Vec(*(other + a for a in self.v))

    def __iadd__(self, other):
        self.v.append(other)
        return self

    def __mul__(self, k):
        return NotImplemented if isinstance(k, str) else Vec(*(a * k for a in self.v))

    __rmul__ = __mul__

    def __neg__(self):
        return Vec(*(-a for a in self.v))

    def __eq__(self, other):
        return isinstance(other, Vec) and self.v == other.v

    def __lt__(self, other):
        return len(self.v) < len(other.v)

    def __hash__(self):
        return len(self.v)

    def __len__(self):
        return len(self.v)

    def __bool__(self):
        return len(self.v) > 1

    def __getitem__(self, k):
        return self.v[k]

    def __setitem__(self, k, value):
        self.v[k] = value

    def __delitem__(self, k):
        del self.v[k]

    def __contains__(self, k):
        return k in self.v

    def __iter__(self):
        return iter(self.v)

    def __call__(self, x):
        return x * self.v[0]

    def __matmul__(self, other):
        return sum(a * b for a, b in zip(self.v, other.v))

    def __abs__(self):
        return 5

    def __int__(self):
        return len(self.v)

    __index__ = __int__


@case
def operators():
    v = Vec(1, 2)

    def f(x):
        w = v + Vec(3, 4)
        w += 5
        u = 2 * w
        try:
            v * "s"
        except TypeError as error:
            words = str(error)
        return (-u).v, (10 + v).v, v @ v, x * u[0], words, v == Vec(1, 2), v != Vec(1), abs(v), int(v)

    return f, lambda i: (x_of(i),), lambda: v


@case
def special_methods_of_outside_object():
    v = Vec(1, 2)

    def f(x):
        v[0] = v[0] + 1
        nonlocal_v = v
        nonlocal_v += 7
        n = len(v)
        if v:
            x = x * n
        if 2 in v:
            x = x + 1
        for k in v:
            x = x + k
        if n > 3:
            del v[1]
        a, b, *c = v
        return v(x), a, b, c

    return f, lambda i: (x_of(i),), lambda: v


@case
def ordering_of_outside_objects():
    vs = [Vec(1, 2), Vec(1), Vec(1, 2, 3)]

    def f(x):
        vs[1].v.extend([1, 1])
        return x, [len(v) for v in sorted(vs)], len(max(vs)), len(min(vs, key=lambda v: -len(v))), vs.index(vs[2])

    return f, lambda i: (x_of(i),), lambda: vs


@case
def user_keys():
    d = {Vec(1): "one"}
    probe = Vec(1)

    def f(x):
        found = d.get(probe)
        own = {Vec(3): 3}
        d[Vec(1, 1)] = x
        probe.v.append(1)
        return x, found, own[Vec(3)], Vec(4) in own, Vec(1) in d

    return f, lambda i: (x_of(i),), lambda: list(d.values())


@case
def objects_as_keys_by_identity():
    class K:
        pass

    a, b = K(), K()
    d = {a: 2, b: 3}

    def f(k, x):
        own = {a: 10, k: 20}
        return x * d[k] + own[a], len(own), k in d

    return f, lambda i: ((a, b, a)[i], x_of(i))


@case
def tensors_as_keys():
    a, b = torch.ones(2), torch.ones(2)
    d = {a: 2, b: 3}

    def f(t, x):
        own = {t: 1}
        own[x] = 4
        return x * d[t] + own[x] + own[t], t in d, (t, 1) in {(t, 1): 2}

    return f, lambda i: ((a, b, a)[i], x_of(i))


@case
def tuple_keys_from_outside():
    d = {(1, "a"): 2, (2, "a"): 3}

    def f(k, x):
        return x * d[k]

    return f, lambda i: ((1 + i % 2, "a"), x_of(i))


@case
def iterator_class():
    class Count:
        def __init__(self, n):
            self.n, self.k = n, 0

        def __iter__(self):
            return self

        def __next__(self):
            if self.k >= self.n:
                raise StopIteration
            self.k += 1
            return self.k

    kept = Count(100)

    def f(x):
        for k in Count(3):
            x = x + k
        a, b, c = Count(3)
        pairs = list(zip(Count(2), [x, x]))
        return x * next(kept), a, b, c, pairs, sum(Count(4)), max(Count(3)), list(map(str, Count(2)))

    return f, lambda i: (x_of(i),), lambda: kept


@case
def old_sequence_protocol():
    class Seq:
        def __init__(self, v):
            self.v = v

        def __getitem__(self, k):
            if k >= len(self.v):
                raise IndexError
            return self.v[k]

    s = Seq([1, 2])

    def f(x):
        total = x
        for k in s:
            total = total * k
        s.v.append(3)
        return total, list(s), 3 in s

    return f, lambda i: (x_of(i),), lambda: s


@case
def callable_objects():
    class Scale:
        def __init__(self, k):
            self.k = k
            self.calls = 0

        def __call__(self, x, *, by=1):
            self.calls += 1
            return x * self.k * by

    s = Scale(3)

    def f(x):
        return s(x) + s(x, by=2) + sum(map(s, [x, x]))

    return f, lambda i: (x_of(i),), lambda: s


@case
def length_and_truth_of_container_subclass():
    class L(list):
        def __len__(self):
            return 7

        def __contains__(self, v):
            return v == "yes"

        def __iter__(self):
            return iter([10, 20])

    s = L([1])

    def f(x):
        return x * len(s) + (1 if "yes" in s else 2), list(s), bool(s), sum(s), s[0]

    return f, lambda i: (x_of(i),)


# ---- classes
@case
def inheritance_and_super():
    class A:
        def __init__(self, k):
            self.k = k

        def go(self, x):
            return x * self.k

    class M:
        def go(self, x):
            return super().go(x) + 100

    class B(M, A):
        def __init__(self, k):
            super().__init__(k + 1)
            self.extra = 1

        def go(self, x):
            return super().go(x) + super(M, self).go(x) + self.extra

    kept = B(2)

    def f(x):
        return kept.go(x) + B(5).go(x)

    return f, lambda i: (x_of(i),)


@case
def super_in_compiled_method():
    class A:
        def go(self, x):
            return x * 2

    class B(A):
        def go(self, x):
            return super().go(x) + 1

    return B().go, lambda i: (x_of(i),)


@case
def class_and_static_methods():
    class A:
        k = 3

        @classmethod
        def make(cls, v):
            result = cls()
            result.v = v
            return result

        @staticmethod
        def double(x):
            return x * 2

        def both(self):
            return self.double(self.v) * self.k

    class B(A):
        k = 5

    def f(x):
        return A.make(x).both() + B.make(x).both() + A.double(x)

    return f, lambda i: (x_of(i),)


@case
def metaclass():
    class Meta(type):
        result = 0

        def __call__(cls, *args):
            out = super().__call__(*args)
            out.tag = cls.__name__
            return out

        @property
        def size(cls):
            return 4

    class A(metaclass=Meta):
        def __init__(self, v):
            self.v = v

    def f(x):
        a = A(x)
        return a.v * A.size, a.tag

    return f, lambda i: (x_of(i),)


@case
def new_and_init():
    class A:
        def __new__(cls, v):
            self = super().__new__(cls)
            self.from_new = v
            return self

        def __init__(self, v):
            self.from_init = v * 2

    class Known(tuple):
        def __new__(cls, a, b):
            return super().__new__(cls, (a, b))

        @property
        def total(self):
            return self[0] + self[1]

    def f(x):
        a = A(x)
        return a.from_new + a.from_init, Known(x, x).total, Known(1, x)

    return f, lambda i: (x_of(i),)


@dataclasses.dataclass
class Point:
    a: object
    b: object = 2
    c: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.c.append(1)


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class Frozen:
    k: int
    name: str = "n"


@case
def dataclasses_made_and_changed():
    kept = Point(1)

    def f(x):
        p = Point(x)
        p.b = 5
        kept.c.append(len(kept.c))
        kept.a = x
        q = dataclasses.replace(p, b=7)
        return p, q, p == Point(x, 5), x * kept.b, dataclasses.astuple(Frozen(1))

    return f, lambda i: (x_of(i),), lambda: kept


@case
def frozen_dataclass_keys():
    d = {Frozen(1): 2, Frozen(2): 3}

    def f(key, x):
        try:
            key.k = 5
        except dataclasses.FrozenInstanceError as error:
            words = str(error)
        return x * d[key], words, Frozen(1) < Frozen(2), Frozen(1) in d, hash(Frozen(3)) == hash(Frozen(3))

    return f, lambda i: (Frozen(1 + i % 2), x_of(i))


@case
def named_tuples():
    Pair = collections.namedtuple("Pair", "a b", defaults=[5])

    def f(p, x):
        q = Pair(x)
        return p.a * x + p.b, q, q._replace(b=2), p._asdict(), Pair._fields

    return f, lambda i: (Pair(i, x_of(i)), x_of(i))


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    def scaled(self, x):
        return x * self.value


class Flag(enum.IntFlag):
    A = 1
    B = 2


@case
def enums():
    def f(c, x):
        y = c.scaled(x)
        if c is Color.RED:
            y = y + 1
        return y, c.name, Color(2), Color["RED"], [m.value for m in Color], Flag.A | Flag.B, x * Flag.B, c == Color.BLUE

    return f, lambda i: ((Color.RED, Color.BLUE, Color.RED)[i], x_of(i))


@case
def simple_namespace():
    n = types.SimpleNamespace(a=1)

    def f(x):
        n.a += 1
        n.t = x
        return types.SimpleNamespace(x=x, k=n.a).x * n.a

    return f, lambda i: (x_of(i),), lambda: vars(n)


@case
def methods_kept():
    class A:
        def __init__(self):
            self.n = 0

        def go(self, x):
            self.n += 1
            return x * self.n

    a = A()
    go = a.go

    def f(x):
        bound = a.go
        return go(x) + bound(x), bound == a.go, bound, A.go(a, x)

    return f, lambda i: (x_of(i),), lambda: a


@case
def objects_made_and_shared():
    keep = []

    def f(x):
        b = Box(x)
        b.me = b
        c = Box(b)
        keep.append(c)
        return [b, c, {"b": b}]

    return f, lambda i: (x_of(i),), lambda: len(keep)


@case
def outside_list_in_own_containers():
    xs = [1]

    def f(x):
        own = []
        own.append(xs)
        table = {}
        table.setdefault("k", xs).append(2)
        own[0].append(3)
        return own[0] is xs, table["k"] is xs, x * len(xs), own, table.get("no", xs) is xs

    return f, lambda i: (x_of(i),), lambda: xs


@case
def isinstance_and_types():
    class A:
        pass

    class B(A):
        pass

    def f(v, x):
        if isinstance(v, (A, int)):
            return x * 2, type(v) is B, issubclass(type(v), A), type(v).__name__, isinstance(x, torch.Tensor)
        return x * 3, callable(v), type(x)

    return f, lambda i: ((B(), A(), 3)[i], x_of(i))


@case
def abstract_and_protocol_classes():
    import abc
    from typing import Protocol, runtime_checkable

    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

    @runtime_checkable
    class Has(Protocol):
        def area(self): ...

    class Square(Shape):
        def __init__(self, s):
            self.s = s

        def area(self):
            return self.s * self.s

    def f(x):
        s = Square(x)
        try:
            Shape()
        except TypeError as error:
            words = str(error)[:30]
        return s.area(), isinstance(s, Shape), isinstance(s, Has), words

    return f, lambda i: (x_of(i),)


@case
def singledispatch_function():
    @functools.singledispatch
    def g(v, x):
        return x

    @g.register
    def _(v: int, x):
        return x * v

    def f(v, x):
        return g(v, x)

    return f, lambda i: ((2, "s", 3)[i], x_of(i))


@case
def object_with_break_between():
    log = []

    def f(x):
        b = Box(x * 2)
        b.log = [b]
        note(log, 1)
        b.v = b.v + 1
        note(log, 2)
        return b.v, b.log[0] is b

    return f, lambda i: (x_of(i),), lambda: log


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", case, ids=lambda make: make.__name__)
def test_objects(make, backend: str) -> None:
    case.run(make, backend)


@pytest.mark.parametrize("make", case, ids=lambda make: make.__name__)
def test_objects_with_frames_kept(make) -> None:
    case.run(make, "eager", nested=True)


def test_subclasses_that_come_later():
    class Base: ...

    class First(Base): ...

    def f(x):
        return x * len(Base.__subclasses__())

    compiled = torch.compile(f, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [1, 1]

    class Second(Base): ...

    assert compiled(torch.ones(2)).tolist() == [2, 2]


def test_descriptors_that_are_called():
    def f(descriptor, x):
        return x * descriptor.__get__(x)[0]

    compiled = torch.compile(f, backend="eager", fullgraph=True)
    for n in (2, 3):
        assert compiled(torch.Tensor.shape, torch.ones(n, 2)).tolist() == [[n, n]] * n


def test_vars_of_what_has_none():
    def f(x):
        try:
            vars(42)
        except TypeError as error:
            return x + len(str(error))

    assert torch.compile(f, backend="eager", fullgraph=True)(torch.zeros(1)).tolist() == f(torch.zeros(1)).tolist()
