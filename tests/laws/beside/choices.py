"""Which differences between pullback and PyTorch are ours by choice, or PyTorch's own faults; each with its reason.

What users should know of them stands in docs/moving.md; numbers and facts that differ, in `differences`. EXCLUDED operators
are never drawn; UNDETERMINED ones give results of which only shapes, dtypes and strides are compared; ANSWERED are words of
refusals where pullback has an answer.
"""

from __future__ import annotations

import math
import re

import numpy as np

from tests.laws.beside.differences import DIFFERENT

DEPENDENT = "arguments that no forward call gives are undefined: statistics and results must belong to the data"
APPROXIMATE = "PyTorch's kernel approximates"
EXCLUDED: dict[str, str] = {
    **dict.fromkeys(
        (
            "native_layer_norm_backward", "native_group_norm_backward", "_scaled_dot_product_flash_attention_for_cpu_backward",
            "native_batch_norm_backward", "_softmax_backward_data", "_log_softmax_backward_data", "_cdist_backward", "_pdist_backward",
            "_ctc_loss_backward", "_ctc_loss_backward.Tensor", "slice_inverse", "nll_loss_backward", "nll_loss2d_backward",
            "soft_margin_loss_backward", "_embedding_bag", "_ctc_loss", "_ctc_loss.Tensor", "_masked_softmax",
            "fractional_max_pool2d_backward", "fractional_max_pool3d_backward", "adaptive_max_pool3d_backward",
            "adaptive_max_pool2d_backward", "max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward",
            "embedding_dense_backward", "affine_grid_generator", "cumprod_backward", "cummaxmin_backward",
            "_scaled_dot_product_flash_attention_for_cpu", "_native_batch_norm_legit_functional",
            "multilabel_margin_loss_backward",
        ),
        DEPENDENT,
    ),
    "polar": "PyTorch's gradient takes the sign of negative lengths for an angle",
    **dict.fromkeys(("_dirichlet_grad", "_standard_gamma_grad"), APPROXIMATE),
    **dict.fromkeys(
        ("unsafe_chunk", "unsafe_split.Tensor", "unsafe_split_with_sizes"),
        "copies, where PyTorch gives views that must not be written",
    ),
    "_linalg_det": "which of two layouts a matrix is decomposed in is each library's own, and its factors with it",
    "_linalg_slogdet": "which of two layouts a matrix is decomposed in is each library's own, and its factors with it",
    "silu_backward": "PyTorch's kernel forgets to conjugate",
    "hardsigmoid_backward": "PyTorch's kernel has a sixth of float32",
}  # fmt: skip
UNDETERMINED: dict[str, str] = {
    **dict.fromkeys(
        ("_linalg_svd", "linalg_svd", "svd", "_linalg_eigh", "linalg_eigh", "linalg_eig"),
        "vectors are determined up to a factor of absolute value one",
    ),
}
# Words of the other library's refusals where an answer of ours is a choice (docs/moving.md, "Where PyTorch refuses").
ANSWERED: dict[str, str] = {
    r"not implemented for '": "kernels for dtypes that PyTorch's CPU lacks",
    r"does not support automatic differentiation for outputs with complex dtype": "gradients of complex results that PyTorch lacks",
    r"Could not run 'aten::": "operators that PyTorch has on other devices alone",
    r"derivative for (aten::\w+|'\w+') is not implemented|Trying to use forward AD with": "derivatives that PyTorch lacks",
    r"Unexpected floating ScalarType in at::autocast": "autocast of tensors in the other half precision",
    r"fallback doesn't currently support mutable TensorLists": "lists of conjugate tensors",
    r"Unsupported memory format": "layouts that single kernels of PyTorch do not take",
    r"Double backward is unsupported": "derivatives that PyTorch lacks",
    r"don't yet support saved tensor hooks": "checkpoints inside transforms",
    r"INTERNAL ASSERT|inconsistent range for TensorList|Cannot access data pointer|Cannot set version_counter": "PyTorch's own faults",
    r"unexpected keyword argument 'out'|out=(Tensor|tuple)|[Ee]xpected ((the output|out) (tensor to have |of )dtype|self\.dtype\(\) == output\.dtype\(\))|argument 'out' must be": (
        "out= where PyTorch's functions have none, and of dtypes that they refuse"
    ),
    r"[Bb]atching rule|vmap over torch\.allclose|requires special handling|inplace arithmetic.* is not possible|vmap: ": "examples that PyTorch's vmap does not batch",
    r"Nested forward mode AD is not supported": "tangents inside tangents of linearized functions",
    r"'_scaled_dot_product_flash_attention_for_cpu' is not differentiable with respect to argument 'attn_mask'": (
        "gradients of masks of attention, which PyTorch's fused kernel lacks"
    ),
    r"Found dtype \w+ but expected": "gradients of mixed dtypes",
    r"could not create a primitive|derivative for set_|MKL FFT error|ZeroTensors are immutable|returned an invalid gradient": (
        "PyTorch's own faults"
    ),
    r"A different number of tensors was saved": "checkpoints inside functionalize",
    r"element 0 of tensors does not require grad": "gradients of what no_grad gave",
    r"may not be a boolean|expected out tensor dtype|cannot be broadcast to indexing result": "dtypes and shapes that PyTorch refuses",
    r"takes from 2 to 1 positional|does not support non-boolean outputs|set a forward gradient that has a different|under vmap transform": (
        "PyTorch's own faults"
    ),
    r"is a view and is being modified inplace|A view was created in no_grad": "views that transforms give",
    r"only Tensors of floating point dtype can require": "gradients by complex counts",
    r"backward through the graph a second time": "graphs that nothing was kept for",
    r"only supports bool tensor for result|Expected result to be of dtype|Autograd not support dtype|could not infer output dtype|isFloatingType": (
        "dtypes that PyTorch refuses"
    ),
    r"expected Tensor as element|missing 1 required positional": "forms of calls that PyTorch's parser does not take",
    r"aten::\w+\(\) Expected a value of type 'Tensor'": "numbers in the place of tensors, in calls of torch.ops",
    r"expects a floating point output tensor": "out= of dtypes that PyTorch refuses",
    r"setStorage: sizes|invalid size, possible overflow|std_var_all|SmallVector unable to grow|whose output has alias annotations|^list index out of range$": (
        "PyTorch's own faults"
    ),
    r"functionalization encountered a tensor being mutated that has internal overlap": "windows that functionalize takes for overlapping ones",
    r"got output = \[None\]": "tangents that inference_mode lets pass",
    r"as_strided\(\) is non-compositional|inside of a function being transformed": "calls inside functionalize that PyTorch refuses",
    r"nested_tensorlist": "gradients that are clipped where there are none",
    r"contiguous|mixed dtype|last dimension with stride 1|[Ee]xpected (scalar type|dtype)|doesn't support tensors of type|but found: |must have the same (dtype|scalar type)|can't be cast|data type in FP32": (
        "layouts and dtypes that single kernels of PyTorch do not take"
    ),
}
# Words of ours where the other library answers.
REFUSED: dict[str, str] = {
    r"backward through the graph a second time|modified by an inplace operation": "what an operator keeps for its gradient",
    r"not implemented for 'ComplexHalf'": "complex32 is computed in complex64 everywhere; PyTorch has kernels of it for a few operators",
    r'"histogramdd" not implemented for': "histograms of halves",
    r"the derivative for '[\w: ]+' is not implemented|derivative for aten::grid_sampler": "derivatives that are not built",
    r"single memory location": "writes that meet an element several times, where PyTorch does not look",
    r"Can't detach views in-place": "results of transforms that are views",
    r"can't be cast to the desired output type|item assignment|soft_margin_cpu": "calls that PyTorch takes",
    r"Trying to use forward AD with (geqrf|\w+_ex)": "tangents that are not built",
    r"specified up to multiplication by e": "what depends on a phase is refused in every precision",
    r"numel\(\) == 0": "extremes of no elements",
    r"rrelu_with_noise_out_cpu": "random slopes of halves",
    r"expected scalar type \w+ but found": "products of mixed dtypes",
    r"self and mat2 must have the same dtype": "products of mixed dtypes",
    r"is not implemented for transformed tensors": "losses inside functionalize, inside forward mode",
    r"mixed dtype": "batch norms of mixed dtypes",
    r"index_func_|_slope_cpu": "kernels that PyTorch has for integers",
    r"rsub\(\) takes (2|from 0 to 2) positional": "rsub takes alpha by name",
    r"^vmap: (aten::set_|resize_)|accessing `data` under vmap": "changes of memory that would be those of all examples",
    r"tri[lu]: input tensor must have|integer multiplication overflow": "dimensions of each example",
    r"reaches memory outside of an example": "memory as it lies, inside vmap",
    r"out of bounds for storage of size": "how much memory a result has",
    r"invalid storage offset -": "windows that begin before what a compiled function is given",
    r"not differentiable with respect to argument": "gradients that would be lost are refused in transforms too",
}

# Words of a program that has numbers narrower than double precision, and by how much of the largest its results may differ.
NARROWER = (
    (r"'(float32|complex64)'|torch\.(float32|complex64|nn|rand\w*|arange|blackman|hann|fft)|\.(float|cfloat)\(", 1e-6),
    (r"'float16'|torch\.float16|\.half\(", 1e-3),
    (r"'bfloat16'|torch\.bfloat16|\.bfloat16\(", 8e-3),
)
DTYPES = ("float16", "float32", "float64", "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8")
NAME = r"\b[xfmos]\d+\b"
# Transforms that are of a kind with those that the words above name.
KINDS = {
    "pushed_along(": "pushed(", "dual(": "pushed(", "linearized(": "pushed(", "curved(": "pushed(slope(", "pulled_by(": "pulled(", "valued(": "slope(",
    "aside(": "slope(", "compiled_bent(": "compiled(slope(slope(", "compiled_steep(": "compiled(slope(slope(", "bent(": "slope(slope(", "steep(": "slope(slope(", "chunked(": "batched(", "batched_out(": "batched(", "weighted(": "total(",
}  # fmt: skip


def _of_kinds(text: str) -> str:
    for name, kind in KINDS.items():
        text = text.replace(name, kind)
    return text


def relevant(lines: list[str]) -> list[str]:
    """The statements that the last one depends on: those that make or write what it names, and so on."""
    names: set[str] = set(re.findall(NAME, lines[-1]))
    kept, before = {len(lines) - 1}, 0
    while len(kept) > before:
        before = len(kept)
        for i, line in enumerate(lines):
            found = set(re.findall(NAME, line))
            makes = re.match(rf"(?:with .*:\n\s+|def )?({NAME})(?: = |\()", line)
            called = [t for t in lines if (d := re.match(rf"def ({NAME})", t)) and d[1] in found]
            writes = any(re.search(r"\w_\(|out=|\] = |[+*]= ", t) for t in (line, *called))
            if makes and makes[1] in names or found & names and (not makes or writes):
                kept.add(i)
                names |= found
    return [line for i, line in enumerate(lines) if i in kept]


def answered(
    lines: list[str], ours: Exception | None, theirs: Exception | None, empty: bool, single: bool = False
) -> str | None:
    """Why one library may raise where the other does not, or raise another class; None where it may not. `empty` is whether
    some tensor of the program has no elements, or no dimensions; `single`, whether one has a dimension of one element."""
    if ours is not None and theirs is not None:
        return "which of several mistakes is named"
    if ours is not None:
        if "leaf Variable that requires grad" in str(ours) and any("logical_" in t for t in relevant(lines)):
            return "PyTorch lets logical operators write to leaves"
        if re.search(r"(batched|chunked)\w*\(.*f\d", lines[-1]) and "doesn't match the broadcast shape" in str(ours):
            return "dimensions of each example"
        if "functional(" in lines[-1] and re.search(
            "functions with out=|leaf Variable that requires grad|is a view and is being modified", str(ours)
        ):
            return "writes that autograd refuses, inside functionalize"
        if "is not implemented" in str(ours) and any("compiled(" in t for t in relevant(lines)):
            return "compiled functions with a part that has no derivative"
        if any("packed(" in t for t in lines) and re.search(
            r"[Ee]xpected|dtype|only implemented on integer", str(ours)
        ):
            return "hooks that change what functions save besides numbers"
        if "nference tensor" in str(ours) and any("compiled(" in t and "inferred(" in t for t in relevant(lines)):
            return "which tensors are of inference mode"
        if "storage that is not resizable" in str(ours) and any("_window(" in t for t in relevant(lines)):
            return "PyTorch's windows lie in memory for one element more"
        if "nference tensor" in str(ours) and re.search(r"\.(detach\(\)|data|view\(torch\.\w+\))\W", lines[-1]):
            return "writes to tensors of inference mode, which PyTorch lets pass where they go through detach"
        if re.search(r"batched(_last)?\((.*\()?f", lines[-1]) and re.search(
            r"not implemented for '|Expected object of scalar type|not yet implemented for tensors with different",
            str(ours),
        ):
            return "dtypes that are refused inside vmap too, where PyTorch has other kernels"
        if "derivative for aten::heaviside is" in str(ours) and re.search(
            r"heaviside_\((.|\n)*(grad|backward)\(", "\n".join(relevant(lines))
        ):
            return "derivatives that PyTorch lacks too, and gives as none where a view was written"
        if "cannot be converted to type" in str(ours) and re.fullmatch(
            r"(.*= )?(int|float)\(x\d+\.sum\(\)\)", lines[-1]
        ):
            return "whether the imaginary parts of a sum add up to zero, or to a rounding"
        if empty and "not implemented for '" in str(ours):
            return "kernels that are refused where there is nothing to compute as well"
        return next((reason for words, reason in REFUSED.items() if re.search(words, str(ours))), None)
    if ours is None and theirs is not None:
        nested = lines[-1].endswith(")") and "(f" in lines[-1]
        if "heaviside is not yet implemented for tensors with" in str(theirs) and "out=" in lines[-1]:
            return "out= of dtypes that PyTorch refuses"
        if "single memory location" in str(theirs) and (
            nested or "] = " in lines[-1] or "out=" in lines[-1] or any("(f" in t for t in lines)
        ):
            return "tangents that PyTorch writes in place, and gives as expanded ones"
        if "Can't detach views in-place" in str(theirs) and any("(f" in t for t in relevant(lines)):
            return "results of transforms that are views"
        if "some elements of the input tensor and the written-to" in str(theirs) and re.search(
            r"out=|unsqueeze|\[None\]|expand|broadcast_to|atleast", "\n".join(relevant(lines))
        ):
            return (
                "writes of elements with themselves in other dimensions, and out= over arguments, which is written last"
            )
        if "Can't detach views in-place" in str(theirs) and re.search(
            r"_window|_pool1d|tensordot|repeat_interleave|\bcov\(|inner", "\n".join(relevant(lines))
        ):
            return "results that are views inside PyTorch's composed calls"
        if nested and re.search(
            r"Expected self.dtype to be equal to src.dtype|argument alpha must not be|34359738\d+|must match the existing size|must match the size of tensor|doesn't match the broadcast shape|The shape of the mask|Dimension (is )?out of range|cannot reshape tensor of 0 elements|multiplication overflow",
            str(theirs),
        ):
            return "examples that PyTorch's vmap does not batch"
        if "modified by an inplace" in str(theirs) and any(
            re.search(
                r"[Bb]ilinear|gather|combinations|MultiMargin|PReLU|prelu|fft|linalg_det|cummin|cummax|vander|log_ndtr|cholesky_solve|multilabel_margin|multi_margin|conv_tbc|(cumprod|expm1)_\(",
                line,
            )
            for line in lines
        ):
            return "what an operator keeps for its gradient"
        if "cannot be converted to type" in str(theirs) and re.fullmatch(
            r"(.*= )?(int|float)\(x\d+\.sum\(\)\)", lines[-1]
        ):
            return "whether the imaginary parts of a sum add up to zero, or to a rounding"
        if "a leaf Variable that requires grad is being used" in str(theirs) and re.search(
            r"\(f|detach\(\)", lines[-1]
        ):
            return "writes to what a transform is given"
        if "unresolved conj" in str(theirs) or "conjugate view" in str(theirs) and any("fft" in t for t in lines):
            return "results that PyTorch conjugates when they are read"
        if "CrossMapLRN2d" in "\n".join(relevant(lines)) and re.search(
            "DispatchKey Negative|functions with out=", str(theirs)
        ):
            return "PyTorch's own faults"
        if "only supports boolean masks" in str(theirs) and any("packed(" in line for line in lines):
            return "hooks that change masks"
        if single and "some elements of the input tensor" in str(theirs):
            return "strides of dimensions of one element, which say nothing of memory"
        if "output 0 of LinalgInvEx" in str(theirs):
            return "PyTorch's own faults"
        if nested and "Inplace update to inference tensor" in str(theirs):
            return "writes to what a transform is given"
        if "modified by an inplace" in str(theirs) and not any(
            re.search(r"_\(|\] =|[+*]=|out=", line) for line in relevant(lines)
        ):
            return "PyTorch's own faults"
        if "modified by an inplace" in str(theirs) and any("compiled(" in line for line in lines):
            return "what an operator keeps for its gradient"
        if "view size is not compatible" in str(theirs) and ".view" not in lines[-1]:
            return "views inside PyTorch's kernels"
        return next((reason for words, reason in ANSWERED.items() if re.search(words, str(theirs))), None)
    return None


def _is_rounded_narrowly(text: str, words: str) -> bool:
    """Whether numbers of double precision differ as narrower ones do, of which the program makes them."""
    if not re.match(r".*\((?:float64|complex128)\): ", words):
        return False
    return any(re.search(dtypes, text) and _apart(words) < bound for dtypes, bound in NARROWER)


def _are_bits(text: str, words: str) -> bool:
    """Whether integers differ in their last bits, which are those of rounded numbers."""
    if not re.search(r"\.view\(torch\.u?int", text) or not re.match(r".*\(u?int\d+\): ", words):
        return False
    read = _arrays(words)
    return read is not None and float(np.max(np.abs(read[0] - read[1]), initial=0.0)) <= 16


def _apart(words: str) -> float:
    """How far two arrays in words lie apart, in units of the largest of them, or of one; infinite where that cannot be read."""
    if (read := _arrays(words)) is None:
        return math.inf
    a, b = read
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return math.inf
    a, b = np.where(np.isfinite(a), a, 0), np.where(np.isfinite(b), b, 0)
    return float(np.max(np.abs(a - b), initial=0.0) / max(1.0, np.max(np.abs(a), initial=0.0)))


def _arrays(words: str) -> tuple[np.ndarray, np.ndarray] | None:
    """The two arrays of a difference; None where they are not printed whole."""
    names = {"array": np.array, "nan": np.nan, "inf": np.inf, **{d: d for d in DTYPES}}
    found = re.fullmatch(r"[^\n]*?\): (array\((?:.|\n)*\)) != (array\((?:.|\n)*\))", words)
    if not found or "..." in words:
        return None
    a, b = (np.asarray(eval(text, {"__builtins__": {}}, names), np.float64) for text in found.groups())
    return a, b


def chosen(lines: list[str], words: str) -> str | None:
    """Why numbers or facts may differ, or None."""
    raw = "\n".join(relevant(lines))
    text = _of_kinds(raw)
    if re.search(r"'b?float16'(.|\n)*out=", text) and _apart(words) < 0.01:
        return "results of half precision are rounded to it before they go to a wider out="
    if _is_rounded_narrowly(text, words):
        return "numbers in double precision that are made of narrower ones"
    if _are_bits(text, words):
        return "the bits of rounded numbers"
    found = (why for program, seen, why in DIFFERENT if _is_of(program, raw, text) and re.search(seen, words))
    return next(found, None)


def _is_of(program: str, raw: str, text: str) -> bool:
    return bool(re.search(program, text) or re.search(program, raw))
