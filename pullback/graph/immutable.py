"""Lists and dicts that refuse to change: what the arguments of a node are made of.

In: lists and dicts. Out: equal containers that are still lists and dicts to every reader, can be hashed, and raise on
every way of writing. What always holds: the users of a node are right, because arguments change only by assignment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

_HELP = """\
{name!r} object does not support mutation. If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(_HELP.format(name=type(self).__name__))


class immutable_list(list):
    """A list that refuses to change."""

    __slots__ = ()
    __delitem__ = __iadd__ = __imul__ = __setitem__ = append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self):
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    """A dict that refuses to change."""

    __slots__ = ()
    __delitem__ = __ior__ = __setitem__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return immutable_dict, (tuple(self.items()),)


def _register_containers() -> None:
    """Let nested structures be flattened through these containers as through lists and dicts."""
    import optree

    def dict_parts(value: Any) -> tuple[Iterable, Any, list]:
        keys = list(value)
        return [value[k] for k in keys], keys, keys

    def dict_of(keys: Any, leaves: Iterable) -> immutable_dict:
        return immutable_dict(zip(keys, leaves))

    anywhere = optree.registry.__GLOBAL_NAMESPACE
    optree.register_pytree_node(
        immutable_list, lambda v: (v, None, range(len(v))), lambda _, leaves: immutable_list(leaves), namespace=anywhere
    )
    optree.register_pytree_node(immutable_dict, dict_parts, dict_of, namespace=anywhere)


_register_containers()

__all__ = ["immutable_dict", "immutable_list"]
