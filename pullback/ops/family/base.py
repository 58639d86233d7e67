"""The family of operators that fit none: each states its own rules. Other families inherit what they do not derive.

A family says, for its operators: how the kernel is run (`execute`), what comes out (`meta`), the plain case of the public
function (`plain_lines`, `plain_names`), the vmap rule and the jvp rule. `operator(...)` declares an operator of this family;
`@composite(...)` one whose body is written in other operators, from which every other rule follows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...core import device as devices
from ...core import small
from ...core.arrays import library
from ...core.calls import arrays_of
from ...core.dtype import by_numpy
from ...core.objects import make_tensor
from ...core.tensor import Tensor, wrap, wrap_meta
from ..eager.text import Call
from ..system.calls import default_names, export_operator
from ..system.declaration import Declaration
from ..system.operator import NoShapeRule, Operator, key_of
from ..system.return_types import pack_results
from .formats import place_results, place_specs


class Family:
    """Rules shared by a kind of operator."""

    declares = Declaration
    is_view = False
    retypes = False  # whether the elements of a view are others than those of what it shows
    direct: str | None = (
        None  # plain calls go past the dispatcher to `execute` ("family"), or to the kernel itself ("kernel")
    )
    computes_in_dtype_of_out = False  # whether `out=` decides about an argument `dtype` that is left open
    takes_numbers = False  # whether `execute` takes Python numbers in the place of tensors
    takes_copies = True  # whether results follow from the values of tensors, wherever these lie
    takes_layouts = False  # whether `execute` is given sparse and nested tensors as they are
    makes_fakes = False  # whether `run_meta` on fake tensors gives fakes, on devices of its own choice
    write = (
        None  # write(op, target, args) -> bool: put the result of a functional call straight into `target`, if it can
    )

    write_plain: Callable | None = None  # write_plain(op, args) -> bool: a plain call of it in place, if it can

    def execute(self, op: Operator, args: tuple):
        """Run the kernel on the arrays of the arguments and wrap what comes out."""
        check = op.declared.check
        if check is not None:
            check(*args)
        device = device_of(op, args)
        result = self.wrap_outputs(op, op.kernel(library(device), *[array_of(a) for a in args]), device)
        return result if op.declared.strides is None else place_results(op, result, args)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "execute" in cls.__dict__ and "execute_plain" not in cls.__dict__:  # one says what the other comes to
            cls.execute_plain = Family.execute_plain  # type: ignore[method-assign]

    def execute_plain(self, op: Operator, args: tuple):
        """`execute` where every tensor is a plain one of the CPU."""
        return self.execute(op, args)

    def wrap_outputs(self, op: Operator, result, device):
        wrapped = wrap_array if op.declared.strides is None else wrap_in_any_order  # which will be placed
        if isinstance(result, (tuple, list)):
            tensors = [wrapped(m, device) for m in result]
            return tensors if op.schema.returns[0][0].endswith("[]") else pack_results(op, tensors)
        return wrapped(result, device)

    def native_of(self, op: Operator) -> Callable | None:
        """The function in C for small plain calls, where there is one. It gets row-major copies of tensors that lie otherwise, where nothing
        but their values can matter."""
        if self.is_view:
            return small.view_of(key_of(op), op)
        function, declared = small.table.get(key_of(op)), op.declared
        by_place = declared.names_memory or declared.reads_shape_only or declared.warns_of_order
        draws = declared.samples or "nondeterministic_seeded" in (declared.tags or ())  # in the order of memory
        by_values = self.takes_copies and not (by_place or declared.writes_unseen or draws)
        if function is not None and declared.moves:
            function = small.through_bits(function)
        if function is None or not by_values or "!" in op.text or "(a" in op.text:
            return function
        return small.through_rows(function, self.place_of(op))

    def place_of(self, op: Operator) -> Callable | int | None:
        """`place(results, args)`: row-major results in the order of memory that arguments ask for; None where they stay row-major, a number
        where that is known of those of so many dimensions at most, -1 - i - 100 r where images, of r dimensions unless that is 0, lie as the argument i does."""
        if op.declared.strides is not None:
            images = getattr(op.declared.strides, "images", None)
            return partial(_placed_results, op) if images is None else -1 - images[0] - 100 * images[1]
        return 1 if op.body is not None else 3  # more may lie as images do

    def meta(self, op: Operator, args: tuple):
        """`Spec`(s) of the results, by the operator's meta rule."""
        check = op.declared.check
        if check is not None:
            check(*args)
        if op.meta_rule is None:
            raise NoShapeRule(f"{op.qualified_name}: no shape rule: it cannot run on tensors without data")
        specs = op.meta_rule(*args)
        return specs if op.declared.strides is None else place_specs(op, specs, args)

    reads_as_it_writes = False  # whether an element of the result may be written before all arguments are read

    def checks_examples(self, op: Operator) -> bool:
        """Whether the shape rule must see examples before a batched rule runs, which would take other ranks as well."""
        return op.vmap is not None

    def check_example(self, op: Operator, args: tuple) -> None:
        """Raise for one example of a batch what the operator's check and its shape rule have against it."""
        if (check := op.declared.check) is not None:
            check(*args)
        op.meta_rule(*args)

    def run_meta(self, op: Operator, args: tuple):
        """The results as tensors without data."""
        spec = self.meta(op, args)
        if isinstance(spec, (tuple, list)):
            tensors = [None if s is None else wrap_meta(s.shape, s.dtype, s.stride) for s in spec]
            return tensors if op.schema.returns[0][0].endswith("[]") else pack_results(op, tensors)
        return wrap_meta(spec.shape, spec.dtype, spec.stride)

    def plain_lines(self, call: Call) -> list[str]:
        """The plain case of the public function: what the declaration names (`plain=`), one after the other."""
        return [] if call.inplace else [line for case in call.op.declared.plain_cases for line in case.lines(call)]

    def choice_lines(self, call: Call) -> list[str]:
        """Lines after the plain case that hand a call to another overload of the name."""
        return []

    def plain_names(self, op: Operator) -> dict:
        """What those lines name."""
        names = default_names(op) | {"kernel": op.kernel, "wrap_array": wrap_array}
        for case in op.declared.plain_cases:
            names |= case.names(op)
        return names

    # vmap and jvp: None means that the transform derives a rule (decompose, or loop; from the vjp)
    def vmap(self, op: Operator, args: tuple, dims: tuple, size: int):
        return None


def _placed_results(op: Operator, results, args: tuple):
    if isinstance(results, Tensor):
        return place_results(op, results, args)
    return tuple([t if t is None else place_results(op, t, args) for t in results])


class KernelFamily(Family):
    """The family of operators that fit none."""

    direct = "kernel"

    def execute_plain(self, op: Operator, args: tuple):
        check = op.declared.check
        if check is not None:
            check(*args)
        result = self.wrap_outputs(op, op.kernel(np, *arrays_of(args)), devices.cpu)
        return result if op.declared.strides is None else place_results(op, result, args)


PLAIN_FAMILY = KernelFamily()


def operator(schema: str, **rules) -> Operator:
    """Declare an operator that states its own rules."""
    return export_operator(Operator(schema, PLAIN_FAMILY, **rules))


def composite(schema: str, **options):
    """Declare an operator by a body written in other operators."""

    def decorate(body) -> Operator:
        return export_operator(Operator(schema, PLAIN_FAMILY, body=body, **options))

    return decorate


def array_of(value):
    """Arrays for tensors (also inside lists), anything else as it is."""
    if isinstance(value, Tensor):
        return value._array
    if isinstance(value, (tuple, list)) and value and any(isinstance(v, Tensor) for v in value):
        return tuple(v._array if isinstance(v, Tensor) else v for v in value)
    return value


def wrap_in_any_order(array, device):
    """A tensor around a kernel's result, in the order of dimensions that it has where its memory is its own."""
    if array.__class__ is np.ndarray and array.base is None and not device.keys:
        return make_tensor(array, by_numpy[array.dtype])
    return wrap_array(array, device)


def wrap_array(array, device):
    """A tensor around a kernel's result: an array of its own, with elements in row-major order."""
    if array.__class__ is np.ndarray and array.base is None and array.flags.c_contiguous and not device.keys:
        return make_tensor(array, by_numpy[array.dtype])
    if array is None:
        return None
    if device.keys and (
        isinstance(array, np.ndarray) or not hasattr(array, "strides") or isinstance(array, np.generic)
    ):
        array = library(device).asarray(array)
    if not isinstance(array, np.ndarray):
        if device.keys:
            array = array if array.base is None and array.flags.c_contiguous else array.copy(order="C")
        elif np.isscalar(array) or np.ndim(array) == 0:
            array = np.asarray(array)
    elif array.base is not None or not array.flags.c_contiguous:
        array = array.copy() if array.base is not None else np.ascontiguousarray(array)
    return wrap(array, by_numpy[array.dtype], device)


def device_of(op: Operator, args: tuple):
    """The one device of the arguments; raises PyTorch's error where there are two."""
    found = scalar = None
    for t in op.tensors(args):
        if not t._array.ndim:
            scalar = scalar or t.device
        elif found is None:
            found = t.device
        elif t.device is not found:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {found} and {t.device}!"
            )
    return found or scalar or devices.cpu
