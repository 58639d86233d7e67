"""What a declaration of an operator may say, as a type.

Comes in: the keyword arguments of `operator(...)`, `@composite(...)`, `pointwise(...)`, `reduction(...)`, `along(...)`,
`view(...)`, `factory(...)`, `contraction(...)` and their like. Goes out: `op.declared`, one slotted object whose fields
are these options, with their defaults filled in. A stage that must know something of an operator asks this object; none
keeps a list of names.

Always holds: an unknown key, a contradiction or a missing part raises where the operator is declared, that is at import,
and the message names the operator and the nearest key. Each family has a subclass of `Declaration` beside it, which adds
what only this family knows, or changes a default. The string under a field says what it means: the table of options in
docs/architecture.md is made of these strings.

A vjp rule is a function whose *parameter names* say what it needs, and what is saved: `g` the gradient of the (first)
output, `gs` the tuple of all of them, an argument's name, a result's name (`out`, or the schema's result names),
`X_shape` / `X_dtype` / `X_info` of tensor argument X (saves no tensor), `mask` which targets are wanted (for a rule under
a tuple of names, which returns a tuple).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..eager.straight import CheckedKernelCase, FunctionCase
from ..eager.text import PlainCase
from ..eager.views import ViewCase


class Marker:
    """A rule that is a word."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Missing(Marker):
    """A gradient that exists and is not written: the call is recorded, and backward raises."""


NONDIFFERENTIABLE = Marker("NONDIFFERENTIABLE")  # integer results, comparisons: gradients never flow
NOT_IMPLEMENTED = Missing("NOT_IMPLEMENTED")
LINEAR = Marker("LINEAR")  # the jvp is the operator itself
ELEMENTWISE = Marker("ELEMENTWISE")  # the jvp is the vjp's rule, conjugated
REQUIRED = Marker("REQUIRED")  # the default of a field that has none
TABLES = ("contradictions", "conditions", "choices", "kinds")  # of a family, added to those of all operators
OF_GRADIENTS = ("jvp", "node", "number", "inplace_node", "nondifferentiable")  # mean nothing where none flow


class Fields(type):
    """Makes the annotated names of a class its slots, and their values the defaults of its instances."""

    defaults: dict[str, Any]
    required: tuple[str, ...]
    fillers: tuple[Callable[[Any], None], ...]  # each sets the defaults of one class, in order of inheritance
    watched: frozenset[str]  # fields that may be wrong beside another

    def __new__(mcs, name: str, bases: tuple, body: dict):
        own = {field: body.pop(field, REQUIRED) for field in body.get("__annotations__", ())}
        inherited, fillers = (bases[0].defaults, bases[0].fillers) if bases else ({}, ())
        slots = tuple(field for field in own if field not in inherited)
        tables = {table: getattr(bases[0], table) | body.get(table, {}) for table in TABLES} if bases else {}
        result = super().__new__(mcs, name, bases, {**body, **tables, "__slots__": slots})
        result.defaults = {**inherited, **own}
        result.required = tuple(field for field, value in result.defaults.items() if value is REQUIRED)
        result.fillers = (*fillers, _filler(own)) if own else fillers
        result.watched = frozenset(
            (*result.contradictions, *result.conditions, *result.choices, *result.kinds, *OF_GRADIENTS)
        )
        return result


def _filler(own: dict[str, Any]) -> Callable[[Any], None]:
    """A function that sets defaults one after the other: thousands of operators are declared, and a loop is far slower."""
    names = dict(own)
    exec("def fill(self):\n" + "".join(f"    self.{field} = {field}\n" for field in own), names)
    return names["fill"]


class Declaration(metaclass=Fields):
    """What an operator of any family may declare."""

    kind = "an operator"  # what messages call an operator of this family
    contradictions = {  # options that cannot be given beside others, and why
        "body": {
            "kernel": "a body is written in other operators and has no kernel of its own",
            "meta": "the shape of what a body gives follows from its operators",
        },
        "strict": {"wraps_numbers": "no number is taken for a tensor"},
        "node": {"number": "a node that is named whole has no number"},
    }
    conditions = {
        "inplace_node": "inplace",
        "inplace_words": "inplace",
        "reads_first": "inplace",
        "expanded": "inplace",
        "scatters": "inplace",
        "out_apart": "out",
    }  # nothing without another
    choices = {  # the words that an option may be
        "cost": ("view", "cheap", "passes", "compute"),
        "autocast_cpu": (None, "lower", "float32", "widest", "kept"),
        "autocast_cuda": (None, "lower", "float32", "widest"),
        "opaque": (None, "all", "pair", "mixed"),
        "inplace": (False, True, "function", "hidden"),
        "out_apart": (None, "others", "all"),
    }
    kinds = {"plain": (FunctionCase, CheckedKernelCase, ViewCase)}  # the classes that an option may be of

    # ---- what it computes
    kernel: Callable | None = None
    """`kernel(xp, *args)`: arrays in, new array(s) out; `xp` is the array library. Families say what else it is given."""
    body: Callable | None = None
    """A function over tensors, written in other operators, from which every rule follows (`@composite`)."""
    meta: Callable | None = None
    """`meta(*args)`: tensors in, of which only metadata may be read, `Spec`(s) out: the one source of shape, dtype and strides."""
    strides: Callable | None = None
    """`strides(shape, *args)`: how results of a shape are laid out (`family.formats`), None for row-major; without it, all are."""
    check: Callable | None = None
    """`check(*args)`: raises for arguments that the operator refuses, before kernel and shape rule."""

    # ---- derivatives and transforms
    vjp: Any = None
    """`{argument: rule}`, or one rule for the first argument, or a marker. A rule's parameter names say what is saved."""
    jvp: Any = None
    """`{argument: rule}` with `t` for the tangent, or `LINEAR`, or `ELEMENTWISE`; without it, derived from `vjp`."""
    vmap: Callable | None = None
    """`vmap(args, dims, size)`: the batched call and its batch dimension, or None to loop; without it, the family's rule."""
    nondifferentiable: tuple[int, ...] = ()
    """Which of several results gradients never flow from."""
    node: str | None = None
    """The name of the node class, where it is not the operator's with `Backward` and a number."""
    number: int = 0
    """The number at the end of the node's name, which tells overloads apart."""
    inplace_node: str | None = None
    """The name of the node class of the in-place form, where it has one of its own."""

    # ---- compilation
    lower: Any = None
    """The lowering rule: how the operator becomes loops; without it, compiled code calls the operator."""
    tags: tuple[str, ...] = ()
    """PyTorch's tags of the overload, such as `nondeterministic_seeded`."""
    reads_shape_only: bool = False
    """Whether nothing of the first argument is looked at but its shape and dtype, so that a call need not wait for it."""
    samples: bool = False
    """Whether its tensors are parameters of what it draws, so that the examples of a batch cannot share one draw."""
    writes_unseen: bool = False
    """Whether a call may write an argument that its schema does not mark, as batch norm writes running statistics."""
    names_memory: bool = False
    """Whether arguments name places in the memory under a tensor, and not in the tensor: `as_strided` and its kin."""
    moves: bool = False
    """Whether results are elements of arguments, or zeros, in other places, whatever the elements are."""
    warns_of_order: bool = False
    """Whether a call warns of tensors that are not row-major, so that it cannot be given copies that are."""
    cost: str = "passes"
    """What computing it again takes: nothing (`"view"`), a part of a loop that runs anyway (`"cheap"`), a few passes over \
memory (`"passes"`), or more (`"compute"`: products, convolutions, sorts, scans, decompositions)."""
    fuses_operands: bool = False
    """Whether compiled code computes the operands in their places in the result, though they are loops of their own."""
    inverse: Callable | None = None
    """Of a view, `inverse(whole, part, args, index)`: the new value of what was viewed, from the new value of the view."""
    flops: Callable | None = None
    """`flops(*args)`: floating-point operations of a call; a multiplication and an addition are two."""

    # ---- precisions, devices and layouts
    autocast_cpu: str | None = None
    """What autocast casts floating arguments to on CPUs: its precision (`"lower"`), `"float32"`, the `"widest"` among \
them, or nothing (`"kept"`, where their namespace says float32)."""
    autocast_cuda: str | None = None
    """The same on CUDA devices."""
    over_cpu: bool = False
    """Whether a call on a CUDA device is computed on the CPU, since the array library there has no kernel for it."""
    cross_device: bool = False
    """Whether the tensors of a call may be on several devices."""
    indices_anywhere: bool = False
    """Whether the second argument, of indices, may be on the CPU in a call on another device."""
    sparse: Callable | None = None
    """`sparse(op, *args)`: the call with a sparse argument. The layout's own files set it (`@sparse_rule`)."""
    nested: Callable | None = None
    """`nested(op, *args)`: the call with a nested argument. The layout's own files set it (`@nested_rule`)."""
    dim_names: Callable | None = None
    """`dim_names(op, args)`: the names of the result's dimensions, where the family has no rule. Set by `layout.named`."""
    opaque: str | None = None
    """Whether it takes opaque (MKL-DNN) tensors: all of them (`"all"`), two of them and no number (`"pair"`), or dense ones \
beside (`"mixed"`)."""

    # ---- names
    library: str = "aten"
    """The namespace under `ops`."""
    public: str | None = None
    """The full name of the public function (`nn.functional.softshrink`), where it does not follow from the operator's."""
    function: bool = True
    """Whether there is a public function."""
    method: bool | None = None
    """Whether there is a method of `Tensor`; without it, where the function is in `torch`."""
    aliases: tuple[str, ...] = ()
    """Further names of function and method."""
    named: bool = True
    """Whether several results come as a named tuple."""

    # ---- calls
    out: bool = True
    """Whether the public function takes `out=`."""
    variadic: str | None = None
    """The argument that may be given as several: `x.view(2, 3)`."""
    strict: bool = False
    """Whether `Tensor` means a tensor, and no Python number is made one."""
    wraps_numbers: bool = False
    """Whether a Python number in the place of a tensor becomes one without dimensions before the call is dispatched."""
    lazy_bits: bool = False
    """Whether the operator takes tensors with a conjugate or negative bit as they are."""
    check_out: Callable | tuple[Callable, ...] | None = None
    """`check_out(result, out)`: raises for an `out=` that PyTorch refuses for this operator alone. A tuple: one for each result."""
    out_apart: str | None = None
    """Whether `out=` is refused where it shares memory with an argument: with another than itself (`"others"`), or with `"all"`."""

    # ---- writes
    inplace: bool | str = False
    """Whether there is an in-place form: a method, also a function (`"function"`), or an overload alone (`"hidden"`)."""
    inplace_words: Callable | None = None
    """`inplace_words(shape, result shape)`: the error where the result does not fit the written tensor."""
    write: Callable | None = None
    """`write(*args)`: the in-place form, straight into the first argument, without a result that is computed apart."""
    reads_first: bool = False
    """Whether operands of one element are read before anything is written, so that they may be elements of the target."""
    expanded: Callable | None = None
    """`expanded(*args)`: the in-place form on a tensor whose elements share memory; without it, writing to one is refused."""
    scatters: bool | str = False
    """Whether operands of the in-place form may not lie on what is written, not even where they are the same view of it; or the first alone,
    the `"indices"`."""

    # ---- plain calls, past the dispatcher
    plain: PlainCase | tuple[PlainCase, ...] | None = None
    """How plain calls go past the dispatcher, a `PlainCase`, or several that are tried in order; the last table has the kinds."""

    def __init__(self, name: str, given: Mapping[str, Any]):
        defaults = type(self).defaults
        if not given.keys() <= defaults.keys():
            raise TypeError(self._unknown(name, next(key for key in given if key not in defaults)))
        for fill in type(self).fillers:
            fill(self)
        for field, value in given.items():
            setattr(self, field, value)
        for field in type(self).required:
            if field not in given:
                raise TypeError(f"{name}: {self.kind} needs {field!r}")
        watched = type(self).watched
        for field in given:
            if field in watched:
                self._check(name, field, given)

    def _check(self, name: str, field: str, given: Mapping[str, Any]) -> None:
        """Refuse an option that contradicts another, means nothing here, or is no word of those it may be."""
        words = self.choices.get(field)
        if words is not None and given[field] not in words:
            known = ", ".join(repr(word) for word in words if word is not None)
            raise TypeError(f"{name}: {field!r} is one of {known}, but got {given[field]!r}")
        if not self._says(field):
            return
        kinds = self.kinds.get(field)
        if kinds is not None and not all(isinstance(v, kinds) for v in _several(given[field])):
            known = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"{name}: {field!r} of {self.kind} is a {known}, but got {given[field]!r}")
        for other, why in self.contradictions.get(field, {}).items():
            if other in given and self._says(other):
                raise TypeError(f"{name}: {field!r} contradicts {other!r}: {why}")
        needed = self.conditions.get(field)
        if needed is not None and not self._says(needed):
            raise TypeError(f"{name}: {field!r} means nothing without {needed!r}")
        if field in OF_GRADIENTS and (self.vjp is NONDIFFERENTIABLE or self.vjp is None and self.body is None):
            raise TypeError(f"{name}: {field!r} means nothing where gradients never flow (vjp={self.vjp})")

    @property
    def plain_cases(self) -> tuple[PlainCase, ...]:
        return _several(self.plain) if self.plain is not None else ()

    def _says(self, field: str) -> bool:
        """Whether a field has a value that means something."""
        value = getattr(self, field)
        return value is not None and value is not False and value != ()

    def _unknown(self, name: str, key: str) -> str:
        return f"{name}: {key!r} is no option of {self.kind}{nearest(key, type(self).defaults)}"


def _several(value: Any) -> tuple:
    return value if isinstance(value, tuple) else (value,)


def nearest(word: str, known: Iterable[str]) -> str:
    """What to say after "there is no such word": the nearest that there is."""
    from difflib import get_close_matches  # takes longer to import than all declarations to make

    near = get_close_matches(word, known, 1, 0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
