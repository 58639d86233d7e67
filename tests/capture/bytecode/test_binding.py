"""Binding is Python's own: what a call with these arguments would see, or the words with which it would refuse."""

import itertools

from pullback.capture.bytecode.binding import bind, frame_of


def plain(a, b):
    return dict(locals())


def defaulted(a, b=2, *, c=3):
    return dict(locals())


def everything(a, /, b, c=3, *args, d, e=5, **kwargs):
    return dict(locals())


def only_keywords(*, a, b=1):
    return dict(locals())


def only_positional(a, b=1, /):
    return dict(locals())


def collecting(*args, **kwargs):
    return dict(locals())


FUNCTIONS = (plain, defaulted, everything, only_keywords, only_positional, collecting, lambda: dict(locals()))
KEYWORDS = (
    {},
    {"a": 10},
    {"b": 11, "d": 12},
    {"a": 10, "b": 11},
    {"c": 1, "d": 2, "z": 3},
    {"args": 4, "kwargs": 5, "d": 1},
)


def attempt(call):
    try:
        return call()
    except TypeError as error:
        return str(error)


def test_binding_is_that_of_a_call():
    for function, count, kwargs in itertools.product(FUNCTIONS, range(5), KEYWORDS):
        args = tuple(range(count))
        native = attempt(lambda: function(*args, **kwargs))  # noqa: B023
        assert attempt(lambda: bind(function, args, kwargs)[0]) == native, (function, args, kwargs)  # noqa: B023


def test_shared_arguments_are_in_cells():
    free = "free"

    def f(x, *rest, y=2):
        def g():
            return x, y, z, free

        z = 1
        return g

    locals, cells = bind(f, (1, 7), {})
    assert locals == {"rest": (7,)}
    assert (cells["x"].cell_contents, cells["y"].cell_contents, cells["free"].cell_contents) == (1, 2, "free")
    assert cells["free"] is f.__closure__[0]
    assert attempt_contents(cells["z"]) is None


def attempt_contents(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return None


def test_changed_defaults_and_names_are_seen():
    def f(a=1, *, b=2):
        pass

    f.__defaults__, f.__kwdefaults__, f.__qualname__ = (5,), {"b": 6}, "renamed"
    assert bind(f, (), {})[0] == {"a": 5, "b": 6}
    assert attempt(lambda: bind(f, (1, 2), {})).startswith("renamed() takes from 0 to 1")


def test_many_parameters():
    names = [f"p{i}" for i in range(300)]
    space = {}
    exec(f"def f({', '.join(names)}): pass", space)
    assert bind(space["f"], tuple(range(300)), {})[0] == dict(zip(names, range(300)))


def test_a_frame_starts_before_its_first_step():
    frame = frame_of(plain, (1, 2), {})
    assert (frame.index, frame.stack, frame.function, frame.globals) == (0, [], plain, globals())
    assert frame.builtins["len"] is len
