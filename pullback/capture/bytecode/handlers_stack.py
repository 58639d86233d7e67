"""Steps on places: the stack itself, locals, cells, names, attributes and items (see `handlers`)."""

from __future__ import annotations

from types import CellType
from typing import Any

from .frame import NULL, Frame
from .handlers import step


@step("LOAD_CONST")
def load_const(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(arg)


@step("PUSH_NULL")
def push_null(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(NULL)


@step("POP_TOP")
def pop_top(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.pop()


@step("COPY")
def copy(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(frame.stack[-arg])


@step("SWAP")
def swap(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack[-1], stack[-arg] = stack[-arg], stack[-1]


# Locals and cells.


@step("LOAD_FAST")
def load_fast(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(machine.world.load_local(frame, arg))


@step("STORE_FAST")
def store_fast(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    if stack[-1] is NULL:  # a comprehension puts back a local that had no value
        frame.locals.pop(arg, None)
    else:
        machine.world.store_local(frame, arg, stack[-1])
    stack.pop()


@step("DELETE_FAST")
def delete_fast(machine: Any, frame: Frame, arg: Any) -> None:
    machine.world.delete_local(frame, arg)


@step("LOAD_FAST_AND_CLEAR")
def load_fast_and_clear(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(frame.locals.pop(arg, NULL))


@step("LOAD_CLOSURE")
def load_closure(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(frame.cells[arg])


@step("TAKE_CELL")
def take_cell(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(frame.cells.pop(arg, NULL))


@step("PUT_CELL")
def put_cell(machine: Any, frame: Frame, arg: Any) -> None:
    value = frame.stack.pop()
    if value is NULL:
        frame.cells.pop(arg, None)
    else:
        frame.cells[arg] = value


@step("NEW_CELL")
def new_cell(machine: Any, frame: Frame, arg: Any) -> None:
    frame.cells[arg] = CellType()


@step("LOAD_DEREF")
def load_deref(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(machine.world.load_cell(frame, arg))


@step("STORE_DEREF")
def store_deref(machine: Any, frame: Frame, arg: Any) -> None:
    machine.world.store_cell(frame, arg, frame.stack[-1])
    frame.stack.pop()


@step("DELETE_DEREF")
def delete_deref(machine: Any, frame: Frame, arg: Any) -> None:
    machine.world.delete_cell(frame, arg)


# Names.


@step("LOAD_GLOBAL")
def load_global(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(machine.world.load_global(frame, arg))


@step("LOAD_GLOBAL_NULL")
def load_global_null(machine: Any, frame: Frame, arg: Any) -> None:
    value = machine.world.load_global(frame, arg)
    frame.stack += (NULL, value)


@step("STORE_GLOBAL")
def store_global(machine: Any, frame: Frame, arg: Any) -> None:
    machine.world.store_global(frame, arg, frame.stack[-1])
    frame.stack.pop()


@step("DELETE_GLOBAL")
def delete_global(machine: Any, frame: Frame, arg: Any) -> None:
    machine.world.delete_global(frame, arg)


@step("LOAD_NAME")
def load_name(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(machine.world.load_name(frame, arg))


@step("STORE_NAME")
def store_name(machine: Any, frame: Frame, arg: Any) -> None:
    machine.world.store_name(frame, arg, frame.stack[-1])
    frame.stack.pop()


@step("DELETE_NAME")
def delete_name(machine: Any, frame: Frame, arg: Any) -> None:
    machine.world.delete_name(frame, arg)


@step("LOAD_LOCALS")
def load_locals(machine: Any, frame: Frame, arg: Any) -> None:
    frame.stack.append(frame.all_locals())


@step("LOAD_FROM_DICT_OR_DEREF")
def load_from_dict_or_deref(machine: Any, frame: Frame, arg: Any) -> None:
    found = found_in(frame.stack[-1], arg)
    frame.stack[-1] = machine.world.load_cell(frame, arg) if found is NULL else found


@step("LOAD_FROM_DICT_OR_GLOBALS")
def load_from_dict_or_globals(machine: Any, frame: Frame, arg: Any) -> None:
    found = found_in(frame.stack[-1], arg)
    frame.stack[-1] = machine.world.load_global(frame, arg) if found is NULL else found


def found_in(names: Any, name: str) -> Any:
    """What a namespace (any mapping) holds under `name`, or NULL."""
    try:
        return names[name]
    except KeyError:
        return NULL


@step("SETUP_ANNOTATIONS")
def setup_annotations(machine: Any, frame: Frame, arg: Any) -> None:
    names = frame.all_locals()
    if "__annotations__" not in names:
        names["__annotations__"] = {}


# Attributes and items.


@step("LOAD_ATTR")
def load_attr(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack[-1] = machine.world.load_attribute(stack[-1], arg)


@step("LOAD_METHOD")
def load_method(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack[-1:] = (NULL, machine.world.load_method(stack[-1], arg))


@step("STORE_ATTR")
def store_attr(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    machine.world.store_attribute(stack[-1], arg, stack[-2])
    del stack[-2:]


@step("DELETE_ATTR")
def delete_attr(machine: Any, frame: Frame, arg: Any) -> None:
    machine.world.delete_attribute(frame.stack[-1], arg)
    frame.stack.pop()


@step("LOAD_SUPER")
def load_super(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    name, method, two = arg
    kind, cls, obj = stack[-3:]
    if kind is super:
        value = machine.world.load_super(cls, obj, name)
    else:  # a global of that name: what it gives is what the attribute is of
        result = machine.world.call_now(kind, (cls, obj) if two else ())
        value = machine.world.load_attribute(result, name)
    stack[-3:] = (NULL, value) if method else (value,)


@step("BINARY_SUBSCR")
def binary_subscr(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack[-2:] = (machine.world.load_item(stack[-2], stack[-1]),)


@step("STORE_SUBSCR")
def store_subscr(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    machine.world.store_item(stack[-2], stack[-1], stack[-3])
    del stack[-3:]


@step("DELETE_SUBSCR")
def delete_subscr(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    machine.world.delete_item(stack[-2], stack[-1])
    del stack[-2:]


@step("BINARY_SLICE")
def binary_slice(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack[-3:] = (machine.world.load_slice(*stack[-3:]),)


@step("STORE_SLICE")
def store_slice(machine: Any, frame: Frame, arg: Any) -> None:
    stack = frame.stack
    value, obj, start, stop = stack[-4:]
    machine.world.store_slice(obj, start, stop, value)
    del stack[-4:]
