"""What only Python 3.12 and later can compile."""

import sys

from .table import program

NEWER = """
@program
def generic_functions():
    def first[T](xs: list[T]) -> T:
        return xs[0]

    class Box[T: (int, str), *Ts, **P]:
        def __init__(self, x: T):
            self.x = x

    type Pair[A] = tuple[A, Later]
    type Loop = list[Loop]
    Later = int
    bound = (lambda f: f.__type_params__[0].__bound__)

    def g[U: Later](u: U): return u
    return (first([1, 2]), Box(3).x, [str(p) for p in Box.__type_params__], str(Pair.__value__), Pair.__name__,
            Loop.__value__.__args__[0] is Loop, bound(g), g(5), first.__type_params__[0].__name__)

@program
def nested_quotes():
    d = {"a": 1}
    return f"{d["a"]} {f"{1 + 1}"}"
"""
if sys.version_info >= (3, 12):
    exec(compile(NEWER, __file__, "exec"), {"program": program, "__name__": __name__})
