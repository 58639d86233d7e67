"""Steps on values: operators, containers, strings and patterns (see `handlers`)."""

from __future__ import annotations

from typing import Any

from .frame import NULL, Frame
from .handlers import HANDLERS, step


@step("UNARY")
def unary(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    if arg == "not":
        stack[-1] = not machine.world.truth(stack[-1])
    else:
        stack[-1] = machine.world.unary(arg, stack[-1])


@step("BINARY")
def binary(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    value = machine.world.binary(arg[0], stack[-2], stack[-1], arg[1])
    del stack[-1]
    stack[-1] = value


@step("COMPARE")
def compare(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    value = machine.world.compare(arg, stack[-2], stack[-1])
    del stack[-1]
    stack[-1] = value


@step("CONTAINS")
def contains(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack[-2:] = (machine.world.contains(stack[-1], stack[-2], arg),)


@step("IS")
def is_same(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack[-2:] = (machine.world.is_same(stack[-2], stack[-1], arg),)


@step("TO_BOOL")
def to_bool(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack[-1] = machine.world.truth(stack[-1])


# Containers and strings.


def builds(name: str, kind: str, per_item: int = 1) -> None:
    def build(machine: Any, frame: Frame, arg: Any) -> None:
        stack = frame.stack
        first = len(stack) - arg * per_item
        stack[first:] = (machine.world.build(kind, stack[first:]),)

    HANDLERS[name] = build


for _name, _kind, _per_item in (
    ("BUILD_LIST", "list", 1),
    ("BUILD_TUPLE", "tuple", 1),
    ("BUILD_SET", "set", 1),
    ("BUILD_STRING", "string", 1),
    ("BUILD_SLICE", "slice", 1),
    ("BUILD_MAP", "map", 2),
):
    builds(_name, _kind, _per_item)


@step("BUILD_CONST_KEY_MAP")
def build_const_key_map(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    first = len(stack) - arg - 1
    items = [part for pair in zip(stack[-1], stack[first:]) for part in pair]
    stack[first:] = (machine.world.build("map", items),)


def extends(name: str, kind: str) -> None:
    def extend(machine: Any, frame: Frame, arg: Any) -> None:
        stack = frame.stack
        machine.world.extend(kind, stack[-1 - arg], stack[-1])
        stack.pop()

    HANDLERS[name] = extend


for _name, _kind in (
    ("LIST_APPEND", "append"),
    ("LIST_EXTEND", "extend"),
    ("SET_ADD", "add"),
    ("SET_UPDATE", "update"),
    ("DICT_UPDATE", "dict_update"),
):
    extends(_name, _kind)


@step("MAP_ADD")
def map_add(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    machine.world.extend("item", stack[-2 - arg], (stack[-2], stack[-1]))
    del stack[-2:]


@step("DICT_MERGE")
def dict_merge(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    first, second = stack[-4 - arg], stack[-3 - arg]  # the two slots of the callable, below the positional arguments
    machine.world.merge(second if first is NULL else first, stack[-1 - arg], stack[-1])
    stack.pop()


@step("LIST_TO_TUPLE")
def list_to_tuple(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack[-1] = machine.world.build("tuple", frame.stack[-1])


@step("UNPACK_SEQUENCE")
def unpack_sequence(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack[-1:] = machine.world.unpack(frame.stack[-1], arg)[::-1]


@step("UNPACK_EX")
def unpack_ex(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack[-1:] = machine.world.unpack(frame.stack[-1], *arg)[::-1]


@step("FORMAT")
def format_value(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    conversion, with_spec = arg
    if with_spec:
        stack[-2:] = (machine.world.format_value(stack[-2], conversion, stack[-1]),)
    else:
        stack[-1] = machine.world.format_value(stack[-1], conversion, "")


@step("CONVERT")
def convert(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack[-1] = machine.world.convert(frame.stack[-1], arg)


# Patterns.


@step("GET_LEN")
def get_len(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(machine.world.length(frame.stack[-1]))


@step("MATCH_CLASS")
def match_class(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    subject, cls, names = stack[-3:]
    stack[-3:] = (machine.world.match_class(subject, cls, arg, names),)


@step("MATCH_MAPPING")
def match_mapping(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(machine.world.match_mapping(frame.stack[-1]))


@step("MATCH_SEQUENCE")
def match_sequence(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(machine.world.match_sequence(frame.stack[-1]))


@step("MATCH_KEYS")
def match_keys(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack.append(machine.world.match_keys(stack[-2], stack[-1]))
