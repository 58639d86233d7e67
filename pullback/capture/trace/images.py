"""Objects that a captured call is given: what is in them is given to the graph, and each run makes them again.

In: an object whose state is its `__dict__`. Out: an `Image`, a container of that state whose tensors become inputs of the
node. What always holds: the function that is called gets objects, never images; they are of the same class, with equal state,
and nobody else has them.
"""

from __future__ import annotations

from typing import Any

from ...core import tree


class Image:
    """The state of an object, as a nested container."""

    __slots__ = ("kind", "state")

    def __init__(self, kind: type, state: dict):
        self.kind, self.state = kind, state

    def built(self, made: list | None = None) -> Any:
        """An object of this state; `made` gets it, with its state at first."""
        result = object.__new__(self.kind)
        result.__dict__.update(objects(self.state, made))
        if made is not None:
            made.append((Image(self.kind, copied(result.__dict__)), result))
        return result

    def differs(self, built: Any) -> bool:
        """Whether an object that was made of this state has another one by now."""
        return not same(self.state, built.__dict__)


def _flatten(image: Image) -> tuple[list, tuple]:
    return list(image.state.values()), (image.kind, tuple(image.state))


def _unflatten(values: list, context: tuple) -> Image:
    kind, names = context
    return Image(kind, dict(zip(names, values, strict=True)))


_is_known = False


def image_of(kind: type, state: dict) -> Image:
    """An image; containers are taken apart as all are that the package knows."""
    global _is_known
    if not _is_known:
        tree.register(Image, _flatten, _unflatten)
        _is_known = True
    return Image(kind, state)


def copied(value: Any) -> Any:
    """A nested container, with its own lists and dicts."""
    if type(value) is dict:
        return {k: copied(v) for k, v in value.items()}
    return type(value)([copied(v) for v in value]) if type(value) in (list, tuple) else value


def same(a: Any, b: Any) -> bool:
    """Whether two nested containers hold the same objects at the same places."""
    if type(a) is dict and type(b) is dict:
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if type(a) in (list, tuple) and type(a) is type(b):
        return len(a) == len(b) and all(map(same, a, b))
    return a is b


def objects(value: Any, made: list | None = None) -> Any:
    """A nested container with objects in the place of images."""
    if isinstance(value, Image):
        return value.built(made)
    if not _is_known or not holds_images(value):
        return value
    return tree.optree.tree_map(
        lambda v: v.built(made) if isinstance(v, Image) else v, value, is_leaf=lambda v: isinstance(v, Image), none_is_leaf=True,
        namespace="pullback",
    )  # fmt: skip


def holds_images(value: Any) -> bool:
    """Whether there is an image in a nested container."""
    if not _is_known:
        return False
    leaves = tree.optree.tree_leaves(
        value, is_leaf=lambda v: isinstance(v, Image), none_is_leaf=True, namespace="pullback"
    )
    return any(isinstance(v, Image) for v in leaves)
