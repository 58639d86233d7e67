"""Captured programs that read and write what is outside: containers, cells, globals, attributes, and their aliases."""

import collections
import itertools

import pytest

import pullback as torch
from tests.capture.bytecode.capture_cases import BACKENDS, Cases, x_of

case = Cases()
LEVEL = 1
SEEN: list = []
TABLE: dict = {}


# ---- lists
@case(graphs=1)
def list_append_and_length():
    xs = []

    def f(x):
        xs.append(x * 2)
        return x + 1

    return f, lambda i: (x_of(i),), lambda: xs


@case
def list_append_then_first():
    xs = []

    def f(x):
        xs.append(x)
        return xs[0] + 1

    return f, lambda i: (x_of(i),), lambda: xs


@case
def list_append_then_last():
    xs = [torch.ones(3)]

    def f(x):
        xs.append(x * 2)
        return xs[-1] + len(xs)

    return f, lambda i: (x_of(i),), lambda: xs


@case
def list_extend_by_generator():
    xs = []

    def f(x):
        xs.extend(x * k for k in range(3))
        return xs[-1]

    return f, lambda i: (x_of(i),), lambda: xs


@case
def list_extend_by_range_and_map():
    xs = []

    def f(x):
        xs.extend(range(3))
        xs.extend(map(lambda v: v + 1, [1, 2]))  # noqa: C417
        xs.extend({5: 6})
        return x + xs[1] + xs[4]

    return f, lambda i: (x_of(i),), lambda: xs


@case
def list_iadd_outside():
    xs = [1]
    other = [2, 3]

    def f(x):
        nonlocal xs
        xs += other
        xs += (4,)
        return x * len(xs)

    return f, lambda i: (x_of(i),), lambda: (xs, other)


@case
def list_pop_insert_remove_sort_reverse():
    xs = [5, 3, 8, 1, 9, 7, 4, 2, 6]

    def f(x):
        a = xs.pop()
        b = xs.pop(0)
        xs.insert(1, a)
        xs.remove(8) if 8 in xs else None
        xs.reverse()
        xs.sort(key=lambda v: -v)
        return x * a + b, xs.index(3) if 3 in xs else -1

    return f, lambda i: (x_of(i),), lambda: xs


@case
def list_slices():
    xs = [1, 2, 3, 4, 5, 6, 7, 8]

    def f(x):
        xs[1:3] = [9]
        del xs[0]
        xs[-1] = 11
        return x * xs[0] + sum(xs[::2])

    return f, lambda i: (x_of(i),), lambda: xs


@case
def list_changes_while_iterated():
    xs = [1, 2, 3]

    def f(x):
        for v in xs:
            if v < 6:
                xs.append(v + 3)
            x = x + v
        return x

    return f, lambda i: (x_of(i),), lambda: xs


@case
def lists_that_may_be_one():
    both = [[1], [2]]

    def f(a, b, x):
        a.append(7)
        return x * len(b), a is b

    return f, lambda i: (both[0], both[i % 2 * 0 if i else 1], x_of(i)), lambda: both


@case
def lists_that_may_be_one_by_item():
    one = [1, 2]

    def f(a, b, x):
        a[0] = a[0] + 5
        return x * b[0]

    return f, lambda i: (one, [1, 2] if i == 0 else one, x_of(i)), lambda: one


@case
def dicts_that_may_be_one():
    one = {"k": 1}

    def f(a, b, x):
        a["k"] = 9
        return x * b["k"]

    return f, lambda i: ((d := {"k": 1}), {"k": 1} if i == 0 else d, x_of(i)), lambda: one


@case
def objects_that_may_be_one():
    class Box:
        pass

    def f(a, b, x):
        a.v = a.v + 1
        return x * b.v, a is b, a is not b

    def arguments(i):
        a, b = Box(), Box()
        a.v = b.v = 3
        return (a, b, x_of(i)) if i != 1 else (a, a, x_of(i))

    return f, arguments


@case
def identity_of_arguments():
    def f(a, b, x):
        return x + (1 if a is b else 2)

    shared = [1]
    return f, lambda i: (shared, shared if i else [1], x_of(i))


@case
def identity_of_arguments_first_same():
    def f(a, b, x):
        return x + (1 if a is b else 2)

    shared = [1]
    return f, lambda i: (shared, [1] if i else shared, x_of(i))


@case
def tensors_that_may_be_one():
    def f(a, b):
        a.add_(1)
        return b * 2, a is b

    def arguments(i):
        a = x_of(i)
        return a, (a if i == 1 else x_of(i))

    return f, arguments


@case
def nested_list_alias():
    inner = [1]
    outer = [inner, inner]

    def f(x):
        outer[0].append(2)
        return x * len(outer[1])

    return f, lambda i: (x_of(i),), lambda: outer


@case
def replaced_inner_list():
    outer = [[1], [2]]

    def f(x):
        outer[0] = outer[1]
        outer[0].append(x)
        return x * len(outer[1])

    return f, lambda i: (x_of(i),), lambda: outer


@case
def list_of_lists_swapped():
    xs = [[1], [2, 3]]

    def f(x):
        xs[0], xs[1] = xs[1], xs[0]
        return x * len(xs[0])

    return f, lambda i: (x_of(i),), lambda: xs


@case
def list_of_changing_length():
    def f(ts):
        total = ts[0]
        for t in ts[1:]:
            total = total + t
        return total / len(ts)

    return f, lambda i: ([x_of(k) for k in range(i + 1)],)


@case
def list_kept_in_result():
    xs = [1, 2]

    def f(x):
        return {"xs": xs, "again": xs, "x": x}

    return f, lambda i: (x_of(i),), lambda: xs


@case
def own_list_stored_outside_and_returned():
    keep = []

    def f(x):
        result = [x, x * 2]
        keep.append(result)
        result.append(3)
        return result

    return f, lambda i: (x_of(i),), lambda: keep


@case
def tuple_comparison_of_outside():
    xs = [1, 2]

    def f(x):
        if xs == [1, 2]:
            xs.append(3)
            return x
        if (xs, 1) == ([1, 2, 3], 1):
            xs.append(4)
            return x * 2
        return x * 3

    return f, lambda i: (x_of(i),), lambda: xs


@case
def list_multiplied_in_place():
    xs = [1]

    def f(x):
        nonlocal xs
        xs *= 2
        return x * len(xs)

    return f, lambda i: (x_of(i),), lambda: xs


@case
def truth_of_list_changes():
    xs = []

    def f(x):
        if xs:
            xs.clear()
            return x * 2
        xs.append(1)
        return x

    return f, lambda i: (x_of(i),), lambda: xs


# ---- dicts
@case
def dict_writes():
    d = {"a": 1}

    def f(x):
        d["b"] = x * 2
        d["a"] = d["a"] + 1
        d.setdefault("c", []).append(d["a"])
        return x * d["a"], list(d)

    return f, lambda i: (x_of(i),), lambda: d


@case
def dict_pop_del_popitem_clear():
    d = {"a": 1, "b": 2, "c": 3, "e": 4}

    def f(x):
        v = d.pop("a", 10)
        if "b" in d:
            del d["b"]
        k = d.popitem() if d else None
        missing = d.pop("zz", None)
        if len(d) == 1:
            d.clear()
        return x * v, k, missing

    return f, lambda i: (x_of(i),), lambda: d


@case
def dict_update_of_all_kinds():
    d = {}
    other = {"p": 1}

    def f(x):
        d.update(a=x, b=2)
        d.update({"c": 3})
        d.update([("d", 4), ("e", 5)])
        d.update(other)
        d.update((k, k * 2) for k in (7, 8))
        other["p"] += 1
        return x * d["d"] + d["e"] + d[7] + d["p"]

    return f, lambda i: (x_of(i),), lambda: (d, other)


@case
def dict_ior_and_or():
    d, e = {"a": 1}, {"b": 2}

    def f(x):
        nonlocal d
        both = d | e
        d |= {"n": len(both)}
        return x * sum(both.values())

    return f, lambda i: (x_of(i),), lambda: (d, e)


@case
def dict_iteration_orders():
    d = {"a": 1, "b": 2}

    def f(x):
        for k, v in d.items():
            x = x * v + len(k)
        for v in d.values():
            x = x + v
        for k in d:
            x = x + len(k)
        d[f"k{len(d)}"] = len(d)
        return x, list(d.keys()), sorted(d.values()), d.get("k2"), d.get("zz", 5)

    return f, lambda i: (x_of(i),), lambda: d


@case
def dict_missing_key_error():
    d = {"a": 1}

    def f(x):
        try:
            return x * d["b"]
        except KeyError as error:
            d["b"] = 3
            return x, str(error)

    return f, lambda i: (x_of(i),), lambda: d


@case
def dict_of_tensor_keys():
    a, b = torch.ones(3), torch.zeros(3)
    d = {a: 1, b: 2}

    def f(x):
        d[a] += 1
        return x * d[a] + d[b]

    return f, lambda i: (x_of(i),), lambda: list(d.values())


@case
def dict_keys_one_and_true():
    d = {1: "one"}

    def f(x):
        d[True] = "true"
        d[1.0] = d[1] + "!"
        return x, d

    return f, lambda i: (x_of(i),), lambda: d


@case
def defaultdict_reads_and_writes():
    d = collections.defaultdict(list)

    def f(x, k):
        d[k].append(x)
        return x * len(d[k]), len(d)

    return f, lambda i: (x_of(i), "ab"[i % 2]), lambda: d


@case
def defaultdict_guard_makes_no_key():
    d = collections.defaultdict(int)
    d["a"] = 3

    def f(x):
        return x * d["a"] if "skip" not in d else x

    def arguments(i):
        if i == 1:
            d.clear()
            d["skip"] = 1
        return (x_of(i),)

    return f, arguments, lambda: d


@case
def defaultdict_guard_of_item_alone():
    tables = [collections.defaultdict(int, a=1), collections.defaultdict(int), collections.defaultdict(int, a=1)]

    def f(d, x):
        return x * d["a"]

    return f, lambda i: (tables[i], x_of(i)), lambda: tables


@case
def ordered_dict():
    d = collections.OrderedDict(a=1, b=2, c=3)

    def f(x):
        d.move_to_end("a")
        first = next(iter(d))
        k, v = d.popitem(last=False)
        d[k] = v + 1
        return x * v, first, list(d.items())

    return f, lambda i: (x_of(i),), lambda: d


@case
def counter_updates():
    c = collections.Counter()

    def f(x):
        c["a"] += 1
        c.update(["b", "a"])
        return x * c["a"] + c["zz"], c.most_common(1)

    return f, lambda i: (x_of(i),), lambda: c


@case
def dict_subclass_with_missing():
    class Table(dict):
        asked = 0

        def __missing__(self, key):
            self.asked += 1
            self[key] = len(self)
            return self[key]

    d = Table()

    def f(x, k):
        return x * d[k] + d.asked

    return f, lambda i: (x_of(i), "aba"[i]), lambda: d


@case
def dict_subclass_with_getitem():
    log = []

    class Table(dict):
        def __getitem__(self, key):
            log.append(key)
            return super().__getitem__(key) + 1

        def __setitem__(self, key, value):
            super().__setitem__(key, value * 2)

    d = Table(a=1)

    def f(x):
        d["b"] = d["a"]
        return x * d["b"]

    return f, lambda i: (x_of(i),), lambda: (d, log)


@case
def list_subclass_with_attribute():
    class Rows(list):
        total = 0

        def append(self, v):
            self.total += v
            super().append(v)

    rows = Rows()

    def f(x):
        rows.append(len(rows) + 2)
        return x * rows.total, rows[-1]

    return f, lambda i: (x_of(i),), lambda: rows


# ---- sets, deques
@case
def set_changes():
    s = {1, 2}

    def f(x):
        s.add(len(s) + 1)
        s.discard(1)
        s.update([10, 11])
        return x * len(s), 10 in s, sorted(s)

    return f, lambda i: (x_of(i),), lambda: s


@case
def set_operators():
    s, t = {1, 2, 3}, {2}

    def f(x):
        nonlocal s
        s -= t
        s |= {len(s) + 5}
        t.add(len(t) + 2)
        return x * len(s & t), s ^ t, s >= t

    return f, lambda i: (x_of(i),), lambda: (s, t)


@case
def set_iteration():
    s = {3}

    def f(x):
        for v in s:
            x = x * v
        s.add(max(s) + 1)
        return x

    return f, lambda i: (x_of(i),), lambda: s


@case
def deque_reads():
    d = collections.deque([1, 2, 3], maxlen=3)

    def f(x):
        out = x * d[0] + d[-1] + len(d)
        for v in d:
            out = out + v
        if 2 in d:
            out = out * 2
        return out

    def arguments(i):
        d.append(i * 7)
        return (x_of(i),)

    return f, arguments, lambda: d


@case
def deque_changes():
    d = collections.deque([1, 2])

    def f(x):
        d.append(len(d))
        d.appendleft(x)
        last = d.pop()
        d.rotate(1)
        return x * last, d.popleft()

    return f, lambda i: (x_of(i),), lambda: d


@case
def deque_of_tensors():
    d = collections.deque([torch.ones(3)], maxlen=2)

    def f(x):
        d.append(x)
        return d[0] + d[-1]

    return f, lambda i: (x_of(i),), lambda: d


@case
def deque_truth():
    d = collections.deque()

    def f(x):
        if d:
            d.clear()
            return x
        d.append(1)
        return x * 2

    return f, lambda i: (x_of(i),), lambda: d


@case
def bytearray_changes():
    b = bytearray(b"ab")

    def f(x):
        b.append(len(b))
        return x * b[0], len(b), bytes(b)

    return f, lambda i: (x_of(i),), lambda: bytes(b)


# ---- iterators from outside
@case
def iterator_from_outside():
    it = iter([1, 2, 3, 4, 5, 6])

    def f(x):
        return x * next(it) + next(it)

    return f, lambda i: (x_of(i),)


@case
def count_in_zip():
    c = itertools.count(1)

    def f(x):
        for a, b in zip([10, 20], c):
            x = x * b + a
        return x

    return f, lambda i: (x_of(i),), lambda: c.__reduce__()[1]


@case
def cycle_from_outside():
    c = itertools.cycle([1, 2])

    def f(x):
        return x * next(c), list(itertools.islice(c, 3))

    return f, lambda i: (x_of(i),)


@case
def generator_from_outside():
    def numbers():
        n = 1
        while True:
            n += yield n

    g = numbers()
    next(g)

    def f(x):
        return x * g.send(2)

    return f, lambda i: (x_of(i),)


@case
def generator_argument():
    def f(g):
        total = next(g)
        for t in g:
            total = total + t
        return total

    return f, lambda i: ((x_of(k) for k in range(i + 1)),)


# ---- names
@case
def nonlocal_counter():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    return f, lambda i: (x_of(i),), lambda: n


@case
def global_counter():
    global LEVEL
    LEVEL = 1

    def f(x):
        global LEVEL
        LEVEL += 1
        return x * LEVEL

    return f, lambda i: (x_of(i),), lambda: LEVEL


@case
def global_list():
    SEEN.clear()

    def f(x):
        SEEN.append(len(SEEN))
        TABLE[len(SEEN)] = x
        return x * len(SEEN)

    TABLE.clear()
    return f, lambda i: (x_of(i),), lambda: (SEEN, TABLE)


@case
def global_made_and_deleted():
    globals().pop("MADE", None)

    def f(x):
        global MADE
        MADE = x * 2
        out = MADE + 1
        del MADE
        return out

    return f, lambda i: (x_of(i),), lambda: "MADE" in globals()


@case
def shared_cell():
    n = 1

    def up(k):
        nonlocal n
        n += k

    def read():
        return n

    def f(x):
        up(2)
        return x * read()

    return f, lambda i: (x_of(i),), lambda: n


@case
def tensor_in_cell_replaced():
    state = torch.zeros(3)

    def f(x):
        nonlocal state
        state = state + x
        return state * 2

    return f, lambda i: (x_of(i),), lambda: state


@case
def function_attributes():
    def helper(x):
        helper.calls += 1
        return x * helper.calls

    helper.calls = 0

    def f(x):
        return helper(x) + helper.calls

    return f, lambda i: (x_of(i),), lambda: helper.calls


@case
def mutable_default():
    def helper(x, seen=[]):  # noqa: B006
        seen.append(len(seen))
        return x * len(seen)

    def f(x):
        return helper(x) + helper(x)

    return f, lambda i: (x_of(i),), lambda: helper.__defaults__


@case
def functions_with_other_defaults():
    def make(k):
        def g(x, k=k, *, m=k * 2):
            return x * k + m

        return g

    def f(g, x):
        return g(x)

    return f, lambda i: (make(i + 2), x_of(i))


@case
def functions_with_other_cells():
    def make(k):
        return lambda x: x * k

    def f(g, x):
        return g(x)

    return f, lambda i: (make(i + 2), x_of(i))


@case
def function_replaced_in_list():
    functions = [lambda x: x + 1]

    def f(x):
        return functions[0](x)

    def arguments(i):
        functions[0] = (lambda x: x + 1) if i == 0 else (lambda x: x * 5)
        return (x_of(i),)

    return f, arguments


@case
def defaults_replaced():
    def g(x, k=1):
        return x * k

    def f(x):
        return g(x)

    def arguments(i):
        g.__defaults__ = (i + 1,)
        return (x_of(i),)

    return f, arguments


@case
def list_of_tensors_updated():
    state = [torch.zeros(3), torch.ones(3)]

    def f(x):
        for i in range(len(state)):
            state[i] = state[i] * 2 + x
        return state[0] - state[1]

    return f, lambda i: (x_of(i),), lambda: state


@case
def effects_before_and_after_writes_of_tensors():
    log = []

    def f(x):
        log.append(x)
        x.mul_(2)
        log.append(x + 1)
        x.add_(1)
        log.append(x)
        return log[-1]

    return f, lambda i: (x_of(i),), lambda: log


@case
def effect_then_error():
    log = []

    def f(x):
        log.append(len(log))
        if len(log) == 2:
            raise ValueError(f"at {len(log)}")
        return x * len(log)

    return f, lambda i: (x_of(i),), lambda: log


@case
def effect_then_error_of_operator():
    log = []

    def f(x, y):
        log.append(1)
        out = x @ y
        log.append(2)
        return out

    return f, lambda i: (x_of(i, 2, 3), x_of(i, 3 if i != 1 else 4, 2)), lambda: log


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", case, ids=lambda make: make.__name__)
def test_outside(make, backend: str) -> None:
    case.run(make, backend)


@pytest.mark.parametrize("make", case, ids=lambda make: make.__name__)
def test_outside_with_frames_kept(make) -> None:
    case.run(make, "eager", nested=True)


class Counted:
    def __init__(self, value):
        self.value, self.count = value, 0

    def asked(self, name):
        self.count += 1
        print(name)
        return True

    def __bool__(self):
        self.count += 1
        return bool(self.value.sum() > 0)

    def __eq__(self, other):
        self.count += 1
        return self.asked("equal")

    def __contains__(self, item):
        self.count += 1
        return self.asked("contains")

    __hash__ = None


def test_what_a_method_did_before_its_graph_ended_is_done_once(capsys):
    """Methods that a single step calls (`if obj`, `obj == 3`): the step is taken again, so what it did is not."""

    def f(x, obj):
        if obj:
            x = x + 1
        if obj == 3:
            x = x + 1
        return x + 1 if 4 in obj else x

    obj, compiled = Counted(torch.ones(2)), torch.compile(f, backend="eager")
    for calls in (1, 2):
        assert compiled(torch.ones(1), obj).item() == 4.0
        assert obj.count == 5 * calls
        assert capsys.readouterr().out.split() == ["equal", "contains"]
