"""Class bodies, construction, metaclasses, super, descriptors."""

# ruff: noqa

from collections import namedtuple
from dataclasses import dataclass

from .table import program


@program
def classes():
    class Base:
        kind = "base"
        values = [i for i in range(3)]

        def __init__(self, x=0):
            self.x = x

        def __repr__(self):
            return f"{type(self).__name__}({self.x})"

        def describe(self):
            return self.kind, self.x

        @classmethod
        def make(cls, x):
            return cls(x)

        @staticmethod
        def plain(x):
            return x + 1

        def __call__(self, y):
            return self.x + y

        def __getitem__(self, key):
            return key, self.x

        def __add__(self, other):
            return type(self)(self.x + other.x)

        def __eq__(self, other):
            return self.x == other.x

        def __len__(self):
            return self.x

    class Derived(Base):
        kind = "derived"

        def __init__(self, x):
            super().__init__(x * 2)
            self.own = __class__.__name__

        def describe(self):
            return ("more", *super().describe())

    d = Derived.make(4)
    return (
        repr(d),
        d.describe(),
        d.own,
        Base.plain(1),
        d(1),
        d[1:2],
        repr(d + Base(1)),
        Base(1) == Base(1),
        bool(Base(0)),
        Base.values,
    )


@program
def construction():
    out = []

    class New:
        def __new__(cls, *args):
            out.append(("new", args))
            return super().__new__(cls)

        def __init__(self, *args):
            out.append(("init", args))

    class Other:
        def __new__(cls):
            return 5

        def __init__(self):
            out.append("never")

    class Meta(type):
        def __call__(cls, *args):
            out.append("meta")
            return super().__call__(*args)

        def __new__(meta, name, bases, names, **kw):
            out.append(sorted(kw))
            return super().__new__(meta, name, bases, names)

        def __init__(cls, name, bases, names, **kw):
            super().__init__(name, bases, names)

    class Made(metaclass=Meta, flag=1):
        def __init__(self, x):
            self.x = x

    class Bad:
        def __init__(self):
            return 3

    try:
        Bad()
    except TypeError as error:
        out.append(str(error))
    try:
        Made()
    except TypeError as error:
        out.append(str(error))
    return type(New(1, 2)).__name__, Other(), Made(7).x, out


@program
def class_bodies():
    x = "function"
    v = "free"

    class A:
        y = v
        x = "class"
        z = x
        for i in range(3):
            pass
        del i
        w: int = 5
        if y:
            extra = [y]

        def get(self):
            return x

    class B(A, list):
        def __init_subclass__(cls, **kw):
            cls.kw = kw

    class C(B, mode="m"):
        pass

    try:

        class D(A):
            raise KeyError("inside")

    except KeyError as error:
        words = error.args
    try:

        class E:
            late = later
            later = 1

    except NameError as error:
        words += error.args
    return A.y, A.x, A.z, A.__annotations__, A.extra, A().get(), C.kw, C.__mro__[1] is B, A.__qualname__, words


@program
def class_with_generic_base():
    from typing import Generic, TypeVar

    T = TypeVar("T")

    class Box(Generic[T]):
        def __init__(self, x: T):
            self.x = x

    return Box[int](3).x, len(Box.__orig_bases__)


@program
def data_classes():
    @dataclass
    class Point:
        x: int
        y: int = 2

        def __post_init__(self):
            self.z = self.x + self.y

    Pair = namedtuple("Pair", "a b")
    return repr(Point(1)), Point(1) == Point(1, 2), Point(3).z, Pair(1, b=2)


@program
def super_forms():
    class A:
        value = 1

        def f(self):
            return "A"

        @classmethod
        def c(cls):
            return cls.__name__

    class B(A):
        def f(self):
            return super().f() + super().f() + str(super().value)

        @classmethod
        def c(cls):
            return super().c()

        def g(self):
            def inner():
                return super(B, self).f()

            return inner()

        def h(self):
            s = super()
            return s.f()

        def bad(self):
            return super().nothing

    try:
        B().bad()
    except AttributeError as error:
        words = str(error)
    return B().f(), B.c(), B().g(), B().h(), words


@program
def descriptors():
    class Typed:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, obj, owner=None):
            return self if obj is None else getattr(obj, self.name)

        def __set__(self, obj, value):
            setattr(obj, self.name, int(value))

    class Use:
        a = Typed()

        def __getattr__(self, name):
            return "made " + name

    u = Use()
    u.a = "5"
    return u.a, u.b, isinstance(Use.a, Typed)
