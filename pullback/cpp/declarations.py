"""Headers that follow from the operators there are: `at::` functions and `Tensor` methods, one line each.

In: the registry of operators, the public functions and methods. Out: text of two headers. Every function takes `Arg`s, as
many as the longest of its overloads; what fits is decided when it is called. So importing a new operator is enough for
C++ to have it.
"""

from __future__ import annotations

import types

from ..core.layers import above
from ..core.tensor import Tensor
from ..ops.system.operator import packets

# Written by hand in the headers, with types of their own.
BY_HAND = frozenset(
    "empty zeros ones rand randn full randint empty_strided tensor from_blob max min median nanmedian scalar_tensor "
    "result_type promote_types manual_seed".split()
)
METHODS_BY_HAND = frozenset(
    "defined reset sizes strides size stride dim ndimension numel storage_offset is_contiguous dtype scalar_type device layout "
    "options type element_size itemsize nbytes is_cpu is_cuda is_meta is_sparse is_quantized is_floating_point is_complex "
    "is_signed is_conj is_neg is_pinned get_device name data_ptr data const_data_ptr item requires_grad requires_grad_ is_leaf "
    "retain_grad grad grad_fn output_nr backward register_hook contiguous cpu cuda index index_put_ max min median nanmedian "
    "is_non_overlapping_and_dense sym_size sym_numel sym_stride sym_storage_offset print accessor call object".split()
)
# C++ calls these otherwise, or not at all.
KEYWORDS = frozenset(
    "and or not xor new delete default union register auto float double int long short char bool void class struct "
    "static const volatile if else for while do switch case return break continue template this operator".split()
)
# Public functions that are no operators, or are several that give different things, and what they give.
TENSORS = (
    "absolute arccos arccosh arcsin arcsinh arctan arctan2 arctanh atleast_1d atleast_2d atleast_3d block_diag cartesian_prod "
    "cdist clip concat concatenate divide embedding_bag empty_permuted fix float_power greater greater_equal imag istft less "
    "less_equal moveaxis movedim multiply negative not_equal pdist real resize_as_ row_stack rrelu stft subtract "
    "take_along_dim true_divide cross_entropy normalize one_hot softsign tanhshrink interpolate grid_sample affine_grid "
    "where"
).split()
LISTS = "broadcast_tensors dsplit hsplit meshgrid tensor_split vsplit align_tensors".split()
TRUTHS = "allclose equal is_nonzero is_same_size".split()
METHODS = (
    "to view_as type_as to_dense to_sparse new_tensor coalesce indices values new_empty new_zeros new_ones new_full"
).split()
PROPERTIES = ("H", "mH", "mT", "T")
LONGEST = 8  # arguments of what has no schema
RESULTS = {"Tensor": "Tensor", "Tensor[]": "std::vector<Tensor>", "Scalar": "Scalar", "SymInt": "SymInt", "bool": "bool", "int": "int64_t"}  # fmt: skip


def result_type(name: str) -> str | None:
    """The C++ type of what an operator gives; None where C++ has none for it."""
    kinds = {tuple(r[0] for r in op.schema.returns) for op in packets[name].values()}
    if len(kinds) != 1:
        return None
    (kinds_of_one,) = kinds
    found = [RESULTS.get(k) for k in kinds_of_one]
    if None in found:
        return None
    return "void" if not found else found[0] if len(found) == 1 else f"std::tuple<{', '.join(found)}>"


def longest(name: str) -> int:
    """How many arguments the longest overload has."""
    return max(len(op.schema.arguments) for op in packets[name].values())


def can_be_named(name: str) -> bool:
    return name.isidentifier() and "__" not in name and name not in KEYWORDS


def functions() -> dict[str, tuple[str, int]]:
    """Name -> (result, number of arguments) of all free functions."""
    found = {n: (result_type(n), longest(n)) for n in sorted(packets) if "::" not in n}
    found |= dict.fromkeys(TENSORS, ("Tensor", LONGEST))
    found |= dict.fromkeys(LISTS, ("std::vector<Tensor>", LONGEST))
    found |= dict.fromkeys(TRUTHS, ("bool", LONGEST))
    return {n: (r, k) for n, (r, k) in found.items() if r is not None and can_be_named(n) and n not in BY_HAND}


def parameters(first: int, count: int) -> str:
    """`const Arg& a1 = {}, ...`; the first of a free function has to be given."""
    return ", ".join(f"const Arg& a{i}" + (" = {}" if i else "") for i in range(first, count))


def bare(first: int, count: int) -> str:
    return ", ".join(f"const Arg& a{i}" for i in range(first, count))


def call(name: str, count: int, result: str) -> str:
    """The body of a function: its operator is called with what was given."""
    places = ", ".join(f"&a{i}" for i in range(count))
    output = f'PULLBACK_MADE("{name}", {places}); '
    return output if result == "void" else f"{output}return pullback::Cast<{result}>::from(made.get()); "


def function_lines() -> list[str]:
    lines = []
    for name, (result, count) in functions().items():
        if count:
            lines.append(f"inline {result} {name}({parameters(0, count)}) {{ {call(name, count, result)}}}")
        else:
            lines.append(f'inline {result} {name}() {{ return call<{result}>("{name}"); }}')
    for name in writing():
        if name in vars(above.package()):
            names = ", ".join(f"a{i}" for i in range(1, LONGEST))
            lines.append(
                f"inline Tensor& {name}(Tensor& self, {parameters(1, LONGEST)}) {{ return self.{name}({names}); }}"
            )
    return lines


def of_tensors(name: str) -> bool:
    """Whether an operator is one of a tensor: C++ has more of those as methods than Python."""
    firsts = (op.schema.arguments[:1] for op in packets.get(name, {}).values())
    return not name.startswith("_") and any(a.name == "self" and a.type == "Tensor" for first in firsts for a in first)


def writing() -> list[str]:
    """Methods that write."""
    found = (n for n in dir(Tensor) if n.endswith("_") and not n.startswith("_") and n not in METHODS_BY_HAND)
    return sorted(n for n in found if isinstance(getattr(Tensor, n), types.FunctionType) and can_be_named(n))


def methods() -> dict[str, tuple[str, int]]:
    """Name -> (result, number of arguments, the tensor itself included) of all methods."""
    free = functions()
    found = {n: free.get(n, ("Tensor", LONGEST)) for n in (*free, *METHODS) if hasattr(Tensor, n) or of_tensors(n)}
    found |= dict.fromkeys(writing(), ("Tensor&", LONGEST))
    return {n: f for n, f in sorted(found.items()) if n not in METHODS_BY_HAND and f[1]}


def method_lines() -> list[str]:
    """Declarations inside the class."""
    lines = [f"{result} {name}({parameters(1, count)}) const;" for name, (result, count) in methods().items()]
    lines += [f'Tensor {name}() const {{ return Tensor(object().attr("{name}")); }}' for name in PROPERTIES]
    for name in ("max", "min", "median", "nanmedian"):
        lines.append(f"Tensor {name}() const;")
        lines.append(f"std::tuple<Tensor, Tensor> {name}(int64_t dim, bool keepdim = false) const;")
    return lines + [f"Tensor {name}(const Tensor& other) const;" for name in ("max", "min")]


def definition_lines() -> list[str]:
    """Their definitions, which need all of the class."""
    lines = []
    for name, (result, count) in methods().items():
        if result == "Tensor&":  # what writes gives the tensor itself
            body = call(name, count, "void") + "return const_cast<Tensor&>(*this); "
        else:
            body = call(name, count, result)
        lines.append(f"inline {result} Tensor::{name}({bare(1, count)}) const {{ const Arg a0(*this); {body}}}")
    return lines


def headers() -> dict[str, str]:
    """File name -> text."""
    lead = "// Written from the operators there are; see cpp/declarations.py.\n"
    return {
        "declared_methods.h": lead + "\n".join(method_lines()) + "\n",
        "declared_functions.h": lead + "\n".join([*function_lines(), *definition_lines()]) + "\n",
    }
