"""Texts of steps that take any tensor: `{x}` is one that the program holds, `{y}` another."""

from __future__ import annotations

_UNARY = (
    "sin", "exp", "neg", "abs", "sqrt", "tanh", "sigmoid", "relu", "square", "sign", "floor", "round", "reciprocal", "log1p", "isnan",
    "isfinite", "logical_not", "cos", "erf", "trunc", "frac", "rsqrt", "sgn", "conj", "angle", "expm1", "positive", "signbit", "isinf",
)  # fmt: skip
ANY: tuple[str, ...] = (
    *(f"torch.{n}({{x}})" for n in _UNARY),
    *(f"{{x}}.{n}()" for n in (
        "clone", "detach", "contiguous", "t", "sum", "mean", "prod", "max", "min", "argmax", "argmin", "any", "all", "flatten", "ravel",
        "squeeze", "half", "float", "double", "bfloat16", "int", "long", "bool", "nonzero", "unique", "std", "var", "median", "mode",
        "numel", "dim", "size", "stride", "storage_offset", "is_contiguous", "element_size", "tolist", "item", "conj", "real.clone",
        "view_as_real", "nansum", "cfloat", "msort", "logsumexp", "diag", "tril", "triu", "trace", "argsort", "count_nonzero", "norm",
    )),
    *(f"{{x}}.{n}" for n in ("data", "T", "mT", "H", "real", "imag", "grad_fn is None", "shape", "dtype", "is_leaf", "requires_grad")),
    *(f"{{x}}.{n}({{d}})".replace("{d}", d) for n in (
        "sum", "mean", "prod", "max", "min", "argmax", "argmin", "any", "all", "cumsum", "cumprod", "sort", "softmax", "log_softmax",
        "logsumexp", "amax", "amin", "unsqueeze", "squeeze", "flip", "median", "mode", "cummax", "argsort", "var", "std", "norm",
        "unbind", "nansum", "count_nonzero", "logcumsumexp", "diff", "nanmean", "aminmax",
    ) for d in ("0", "-1")),
    "{x}[0]", "{x}[..., 0]", "{x}[..., ::2]", "{x}[1:]", "{x}[None]", "{x}[-1:]", "{x}[{x} > 0]", "{x}[[0]]", "{x}[torch.tensor([0, 0])]",
    "{x}[..., None, :]", "{x}[:0]", "{x}[True]", "{x}[..., torch.tensor([0])]",
    "{x}.view(-1)", "{x}.reshape(-1)", "{x}.reshape(-1, 1)", "{x}.view({x}.shape)", "{x}.expand(2, *{x}.shape)", "{x}.movedim(0, -1)",
    "{x}.permute(*range({x}.dim() - 1, -1, -1))", "{x}.transpose(0, -1)", "{x}.narrow(0, 0, 1)", "{x}.select(-1, 0)", "{x}.chunk(2)",
    "{x}.split(1)", "{x}.diagonal()", "{x}.unfold(-1, 2, 1)", "{x}.repeat(2, *[1] * {x}.dim())", "{x}.tile(2)", "{x}.roll(1)",
    "{x}.to(torch.float64)", "{x}.to(torch.int32)", "{x}.to(torch.complex64)", "{x}.type(torch.float32)", "{x}.to(torch.uint8)",
    "{x}.new_zeros(2)", "{x}.new_full((2, 1), 3)", "torch.zeros_like({x})", "torch.ones_like({x}, dtype=torch.float32)",
    "torch.full_like({x}, 2.5)", "torch.cat([{x}, {x}])", "torch.stack([{x}, {x}], -1)", "torch.where({x} > 0, {x}, 0)",
    "{x} + 1", "{x} * 2.5", "1 - {x}", "{x} / 3", "{x} // 2", "{x} % 3", "{x} ** 2", "2 ** {x}", "-{x}", "~{x}", "abs({x})", "{x} == 0",
    "{x} > 0.5", "{x} * 1j", "{x} & 1", "{x} << 1", "{x}.clamp(-1, 1)", "{x}.clamp(min=0.5)", "{x}.pow(3)", "{x}.masked_fill({x} > 0, 0)",
    "{x}.topk(1)", "{x}.kthvalue(1)", "{x}.quantile(0.5)", "{x}.var_mean(-1)", "torch.var_mean({x}, -1)", "{x}.std(0, keepdim=True)",
    "{x}.sum(dtype=torch.float64)", "{x}.mean(dtype=torch.float32)", "{x}.cumsum(-1, dtype=torch.float64)", "{x}.all(-1)",
    "{x}.contiguous(memory_format=torch.channels_last)", "{x}.clone(memory_format=torch.contiguous_format)", "{x}.sum(())",
    "F.relu({x})", "F.gelu({x})", "F.softmax({x}, -1)", "F.pad({x}, (1, 2))", "F.layer_norm({x}, {x}.shape[-1:])", "F.normalize({x}, dim=0)",
    "F.silu({x})", "F.softplus({x})", "F.leaky_relu({x})", "F.one_hot({x}.long().abs() % 3, 3)", "F.dropout({x}, 0.5, False)", "F.glu({x})",
    "{x}.unsqueeze(0) @ {x}.unsqueeze(-1)", "torch.einsum('...i,...i->...', {x}, {x})", "torch.linalg.vector_norm({x})",
    "torch.atleast_2d({x})", "torch.block_diag({x})", "torch.broadcast_to({x}, (2, *{x}.shape))", "torch.meshgrid({x}.flatten(), indexing='ij')",
    "torch.bincount({x}.flatten().long().abs() % 9)", "torch.histc({x}, 4)", "torch.fft.fft({x})", "torch.special.expit({x})", "torch.linalg.norm({x})",
    "{x}.requires_grad_()", "{x}.detach().requires_grad_()", "{x}.index_select(0, torch.tensor([0]))", "{x}.gather(0, torch.zeros_like({x}, dtype=torch.int64))",
    "{x}.scatter(0, torch.zeros_like({x}, dtype=torch.int64), 1)", "torch.frexp({x})", "torch.nan_to_num({x})", "torch.cov({x})",
    "{x}.as_strided((2,), (1,))", "{x}.unflatten(-1, (1, -1))", "{x}.swapaxes(0, -1)", "{x}.sum_to_size(1)", "{x}.rot90()", "{x}.fill_diagonal_(1)",
    "torch.tensor({x}.tolist())", "torch.as_tensor({x})", "torch.asarray({x}, dtype=torch.float32)", "{x}.is_same_size({x})", "torch.numel({x})",
    "torch.unique({x}, return_counts=True)", "torch.unique_consecutive({x})", "{x}.type_as(torch.ones(1))", "str({x})", "repr({x}.shape)",
    "torch.result_type({x}, 1.5)", "torch.can_cast({x}.dtype, torch.int64)", "bool({x}.sum() > 0)", "len({x})", "float({x}.sum())", "int({x}.sum())",
)  # fmt: skip
BETWEEN: tuple[str, ...] = (
    *(f"{{x}} {o} {{y}}" for o in ("+", "-", "*", "/", "**", "@", "<", "==", "//", "%", "&", "|", "^", ">>")),
    *(f"torch.{n}({{x}}, {{y}})" for n in (
        "maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "logaddexp", "copysign", "fmod", "remainder", "xlogy", "lerp", "mul",
        "heaviside", "nextafter", "ldexp", "true_divide", "logical_and", "logical_xor", "ne", "allclose", "equal", "isclose", "dist", "outer",
        "dot", "matmul", "kron", "inner", "result_type", "gcd", "bitwise_or", "float_power", "floor_divide", "complex", "isin", "sub",
    )),
    "torch.add({x}, {y}, alpha=2)", "torch.where({x} > {y}, {x}, {y})", "torch.cat([{x}, {y}])", "torch.stack([{x}, {y}])",
    "torch.addcmul({x}, {x}, {y})", "torch.addcdiv({x}, {y}, {x}, value=2)", "torch.lerp({x}, {y}, 0.3)", "torch.clamp({x}, {y}, {y})",
    "torch.broadcast_tensors({x}, {y})", "F.mse_loss({x}, {y})", "F.cosine_similarity({x}, {y}, 0)", "F.linear({x}, {y})", "{x}.to({y})",
    "{x}.expand_as({y})", "{x}.view_as({y})", "torch.tensordot({x}, {y}, 1)", "torch.einsum('...i,...i', {x}, {y})", "{x}.masked_select({y} > 0)",
    "{x}[{y} > 0]", "{x}[{y}]", "torch.searchsorted({x}.flatten().sort()[0], {y})", "torch.cdist({x}, {y})", "torch.add({x}, {y}, out={x})",
    "torch.mul({x}, 2, out={y})", "torch.neg({x}, out={y})",
)  # fmt: skip
WRITES: tuple[str, ...] = (
    *(f"{{x}}.{n}_()" for n in (
        "zero", "sin", "neg", "abs", "relu", "floor", "sigmoid", "square", "logical_not", "requires_grad", "t", "squeeze", "detach", "exp",
        "conj_physical", "tril", "round", "sgn",
    )),
    *(f"{{x}}.{n}_({{y}})" for n in (
        "add", "mul", "sub", "div", "copy", "maximum", "fmod", "pow", "bitwise_xor", "lt", "eq", "logical_or", "atan2", "copysign",
        "floor_divide", "remainder", "hypot", "xlogy", "resize_as",
    ) if n not in ("maximum", "resize_as")),
    "{x}.add_(1)", "{x}.mul_(0.5)", "{x}.div_(2)", "{x}.fill_(1.5)", "{x}.clamp_(-1, 1)", "{x}.pow_(2)", "{x}.masked_fill_({x} > 0, 2)",
    "{x}[0] = 1", "{x}[..., 0] = 2.5", "{x}[...] = {y}", "{x}[{x} > 0] = 0", "{x}[torch.tensor([0])] = 3", "{x}[:1] = {y}", "{x}[0] = {y}",
    "{x}[..., ::2].mul_(2)", "{x}.view(-1)[:1].add_(1)", "{x}.t().zero_()", "{x}.select(0, 0).copy_({y})", "{x} += {y}", "{x} *= 2",
    "{x}.diagonal().fill_(1)", "{x}.unsqueeze(0).add_(1)", "{x}.detach().mul_(2)", "{x}.data.add_(1)",
    "{x}.index_fill_(0, torch.tensor([0]), 1)", "{x}.index_add_(0, torch.tensor([0]), {y})", "{x}.scatter_(0, torch.zeros_like({x}, dtype=torch.int64), 2)",
    "{x}.addcmul_({y}, {y})", "{x}.lerp_({y}, 0.5)", "{x}.cumsum_(0)", "{x}.transpose_(0, -1)", "{x}.unsqueeze_(0)", "{x}.expand(2, *{x}.shape).add_(1)",
    "{x}.register_hook(noted('hook {x}'))", "{x}.retain_grad()", "{x}.register_post_accumulate_grad_hook(noting('{x}'))", "{x}.grad = {y}",
    "{x}.grad = None", "{x}.requires_grad_(False)", "{x}.requires_grad = True", "{x}.swapaxes_(0, -1)", "{x}.sin_().mul_({y})",
    "{x}.grad = torch.ones_like({x})", "{x}.real.zero_()", "{x}.imag.fill_(1)", "F.relu({x}, inplace=True)", "{x}.unbind()[0].zero_()",
    "torch.nn.init.constant_({x}, 2)", "{x}.put_(torch.tensor([0]), {y})", "{x}.where({x} > 0, {y}).zero_()", "{x}.as_strided((1,), (1,)).zero_()",
    "torch._foreach_add_([{x}, {y}], 1)", "{x}.chunk(2)[0].mul_(3)", "{x}.split(1)[0].add_({y})", "{x}.masked_scatter_({x} > 0, {y}.clone())",
)  # fmt: skip
RANDOM: tuple[str, ...] = (
    "torch.rand({x}.shape)", "torch.randn({x}.shape, dtype=torch.float64)", "torch.randn_like({x})", "torch.rand_like({x})", "torch.randperm(7)",
    "torch.randint(-3, 9, {x}.shape)", "torch.randint_like({x}, 5)", "torch.bernoulli({x}.sigmoid())", "torch.multinomial({x}.exp(), 1)",
    "F.dropout({x}, 0.4)", "F.alpha_dropout({x}, 0.4)", "F.feature_alpha_dropout({x}, 0.4, True)", "F.dropout1d({x}, 0.5)", "torch.normal({x}, 1.0)",
    "{x}.detach().clone().uniform_(-1, 2)", "{x}.detach().clone().normal_()", "{x}.detach().clone().exponential_()", "{x}.detach().clone().random_(9)",
    "{x}.detach().clone().cauchy_()", "{x}.detach().clone().geometric_(0.3)", "{x}.detach().clone().log_normal_()", "{x}.detach().clone().bernoulli_(0.3)",
    "torch.poisson({x}.abs())", "F.rrelu({x}, training=True)", "F.gumbel_softmax({x})", "torch.native_dropout({x}, 0.3, True)", "{x}.random_()",
    "torch.binomial({x}.abs().ceil(), {x}.sigmoid())", "{x}.uniform_()", "{x}.normal_(1, 2)", "torch.randn(20).to({x}.dtype)", "torch.rand(17)[::2]",
)  # fmt: skip
CONTEXTS: tuple[str, ...] = (
    "torch.no_grad()", "torch.no_grad()", "torch.inference_mode()", "torch.enable_grad()", "torch.set_grad_enabled(False)",
    "torch.autocast('cpu', dtype=torch.bfloat16)", "torch.autograd.graph.save_on_cpu()", "torch.inference_mode(False)",
    "torch.autograd.set_detect_anomaly(True)", "torch.autograd.forward_ad.dual_level()", "torch.device('cpu')",
)  # fmt: skip
# Names of `namespace` that make of a function of one tensor another.
NESTED: tuple[str, ...] = (
    "slope", "slope", "pulled", "pushed", "pushed", "batched", "batched", "batched_last", "rows", "columns", "functional", "untracked",
    "inferred", "recomputed", "compiled", "compiled", "pulled_by", "pushed_along", "dual", "packed", "linearized", "chunked", "batched_out",
    "curved", "valued", "aside", "bent", "steep", "compiled_bent", "compiled_steep",
)  # fmt: skip
