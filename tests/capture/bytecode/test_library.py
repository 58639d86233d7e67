"""The standard library as a test bed: its Python code, interpreted, gives what it gives natively."""

import argparse
import ast
import collections
import configparser
import copy
import csv
import dataclasses
import difflib
import enum
import fractions
import functools
import heapq
import html
import inspect
import io
import json
import json.decoder
import json.encoder
import json.scanner
import pprint
import random
import re
import shlex
import statistics
import string
import textwrap
import tokenize
import typing
import urllib.parse

from pullback.capture.bytecode.machine import interpret
from tests.capture.bytecode.compare import outcome

DATA = {"a": [1, 2.5, None, True, {"b": "text\n\u00e9", "c": []}], "d": {}, "e": -1e30, "f": (1, 2)}
TEXT = "The quick brown fox jumps over the lazy dog. " * 3


class PurePython(json.JSONEncoder):
    """What is asked for an indent is encoded in Python."""

    def iterencode(self, o, _one_shot=False):
        return super().iterencode(o, False)


def dump_json():
    return json.dumps(DATA, indent=2, sort_keys=True, cls=PurePython), json.dumps(DATA, cls=PurePython)


def load_json():
    decoder = json.JSONDecoder()
    decoder.parse_object = json.decoder.JSONObject
    decoder.parse_array = json.decoder.JSONArray
    decoder.parse_string = json.decoder.py_scanstring
    decoder.scan_once = json.scanner.py_make_scanner(decoder)
    return decoder.decode(json.dumps(DATA)), outcome(lambda: decoder.decode('{"a": [1, }'))


def wrap_text():
    return (
        textwrap.fill(TEXT, 30),
        textwrap.dedent("  a\n   b\n"),
        textwrap.shorten(TEXT, 20),
        textwrap.indent("a\nb", "> "),
    )


def fill_template():
    t = string.Template("$who likes ${what} for $$5 and $missing")
    return (
        t.safe_substitute(who="tim", what="kung pao"),
        outcome(lambda: t.substitute(who="x")),
        string.capwords("a bc d"),
    )


def count_fractions():
    a, b = fractions.Fraction(3, 4), fractions.Fraction("0.125")
    return (
        a + b,
        a * b,
        a / b,
        a**2,
        a // b,
        a % b,
        a < b,
        hash(a),
        str(a - b),
        fractions.Fraction(0.1).limit_denominator(100),
    )


def compute_statistics():
    xs = [1, 2.5, 2.5, 4, fractions.Fraction(7, 2)]
    return (
        statistics.mean(xs),
        statistics.median(xs),
        statistics.variance(xs),
        statistics.mode(xs),
        statistics.quantiles(xs),
    )


def parse_arguments():
    p = argparse.ArgumentParser(prog="p", exit_on_error=False)
    p.add_argument("name")
    p.add_argument("-n", "--number", type=int, default=3)
    p.add_argument("--flag", action="store_true")
    sub = p.add_mutually_exclusive_group()
    sub.add_argument("--x", nargs="*")
    sub.add_argument("--y", choices=["a", "b"])
    parsed = vars(p.parse_args(["me", "-n", "5", "--x", "1", "2"]))
    return parsed, p.format_help(), repr(outcome(lambda: p.parse_args(["me", "--y", "c"])))


def make_dataclasses():
    @dataclasses.dataclass(order=True, frozen=True)
    class Item:
        x: int
        y: list = dataclasses.field(default_factory=list, compare=False)
        z: typing.ClassVar[int] = 5

    a = Item(1)
    replaced = dataclasses.replace(a, x=2)
    return (
        repr(a),
        a < replaced,
        dataclasses.asdict(replaced),
        outcome(lambda: setattr(a, "x", 5))[1][0],
        hash(a) == hash(Item(1)),
    )


def make_enums():
    class Color(enum.Enum):
        RED = 1
        GREEN = enum.auto()

        @property
        def lower(self):
            return self.name.lower()

    class Flag(enum.IntFlag):
        A = 1
        B = 2

    return [c.lower for c in Color], Color(1).name, (Flag.A | Flag.B).value, outcome(lambda: Color(9))


def make_namedtuples():
    Pair = collections.namedtuple("Pair", "a b", defaults=[5])

    class Typed(typing.NamedTuple):
        x: int
        y: str = "d"

    return Pair(1), Pair(1)._asdict(), Typed(1)._replace(x=2), collections.Counter("abca").most_common(1)


def caches_and_dispatch():
    @functools.lru_cache
    def f(n):
        return n if n < 2 else f(n - 1) + f(n - 2)

    @functools.singledispatch
    def g(x):
        return "any"

    @g.register
    def _(x: int):
        return "int"

    @functools.total_ordering
    class T:
        def __init__(self, x):
            self.x = x

        def __eq__(self, o):
            return self.x == o.x

        def __lt__(self, o):
            return self.x < o.x

    return f(20), g(1), g(""), T(1) >= T(0), functools.reduce(lambda a, b: a * b, range(1, 6))


def compile_patterns():
    re.purge()
    return (
        re.sub(r"(?P<w>\w+) (\w+)", r"\2 \g<w>", "hello world"),
        re.findall(r"[a-c]{2,}|\d+?", "abc12"),
        outcome(lambda: re.compile("(")),
    )


def parse_configuration():
    c = configparser.ConfigParser()
    c.read_string("[a]\nx = 1\ny = %(x)s2\n[b]\nflag = yes\n")
    return c["a"]["y"], c.getboolean("b", "flag"), c.sections(), outcome(lambda: c.get("a", "none"))


def copies():
    a = [1, {"k": (2, [3])}]
    a.append(a[1])
    b = copy.deepcopy(a)
    return b, b[1] is b[2], copy.copy(a)[1] is a[1]


def differences():
    return list(difflib.unified_diff(["a", "b", "c"], ["a", "x", "c"], lineterm="")), difflib.get_close_matches(
        "appel", ["ape", "apple"]
    )


def texts():
    out = io.StringIO()
    csv.DictWriter(out, ["a", "b"]).writerows([{"a": 1, "b": "x,y"}])
    return (
        out.getvalue(),
        list(csv.DictReader(io.StringIO("a,b\n1,2\n"))),
        shlex.split('a \'b c\' "d\\"e" f\\ g'),
        html.escape("<a>") + html.unescape("&lt;&eacute;"),
        pprint.pformat(DATA, width=20),
        urllib.parse.urlsplit("http://u@h:80/p?q=1#f").port,
        urllib.parse.quote("a b/é"),
        urllib.parse.parse_qs("a=1&a=2&b="),
    )


def source_code():
    tree = ast.parse("def f(x, *, y=1):\n    return [x + y for x in range(3) if x]\n")
    tokens = [t.string for t in tokenize.generate_tokens(io.StringIO("a = (1 +\n b)\n").readline)]
    names = sorted(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    return ast.unparse(tree), tokens, names, str(inspect.signature(parse_arguments)), str(inspect.signature(interpret))


def numbers_at_random():
    r = random.Random(5)
    xs = list(range(8))
    r.shuffle(xs)
    return (
        xs,
        r.sample(xs, 3),
        r.choices(xs, k=2),
        r.gauss(0, 1),
        list(heapq.merge([1, 4], [2, 3])),
        heapq.nsmallest(2, xs),
    )


PROGRAMS = [value for value in list(vars().values()) if inspect.isfunction(value) and value.__module__ == __name__]


def test_the_library_interpreted_is_the_library():
    for function in PROGRAMS:
        expected = outcome(function)
        assert expected[0] == "returned", (function.__name__, expected)
        assert outcome(lambda f=function: interpret(f)) == expected, function.__name__
