"""One call of every operator, as text, and the names that the text uses, at three sizes.

In: a library (`t`) and a size. Out: `CALLS`, pairs (name, statement), and `names(library, size)`, the arguments, from NumPy's generator: the
same numbers for both libraries. A statement takes what fits its operator: `x`, `y` are matrices of a side, `flat` one long row, `image` and
`volume` what windows go over, `square` what linear algebra factors.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

# side of a matrix; (channels, side) of images and volumes; side of matrices that are factored
SIZES = {
    "small": {"side": 8, "image": (4, 8), "volume": (2, 4), "square": 4},
    "medium": {"side": 128, "image": (8, 32), "volume": (4, 12), "square": 32},
    "large": {"side": 1024, "image": (16, 128), "volume": (8, 32), "square": 160},
}

UNARY = """abs acos:u acosh:above angle asin:u asinh atan atanh:u bitwise_not:i ceil clone conj conj_physical:z cos cosh deg2rad digamma:p
erf erfc erfinv:u exp exp2 expm1 floor frac frexp i0 isfinite isinf isnan isneginf isposinf isreal lgamma:p log:p log10:p log1p:p log2:p
logical_not logit:u nan_to_num neg positive rad2deg real:z imag:z reciprocal round rsqrt:p sgn sigmoid sign signbit sin sinc sinh sqrt:p square
tan tanh trunc resolve_conj resolve_neg zeros_like ones_like"""
SPECIAL = """airy_ai bessel_j0 bessel_j1 bessel_y0:p bessel_y1:p entr:p erfcx i0e i1 i1e log_ndtr modified_bessel_i0 modified_bessel_i1
modified_bessel_k0:p modified_bessel_k1:p ndtr ndtri:v scaled_modified_bessel_k0:p scaled_modified_bessel_k1:p spherical_bessel_j0"""
POLYNOMIALS = """chebyshev_polynomial_t chebyshev_polynomial_u hermite_polynomial_h hermite_polynomial_he
laguerre_polynomial_l legendre_polynomial_p"""
ACTIVATIONS = """celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu silu softplus softshrink
softsign tanhshrink"""
BINARY = """add atan2 bitwise_and:i,j bitwise_left_shift:i,few bitwise_or:i,j bitwise_right_shift:i,few bitwise_xor:i,j complex copysign
div eq float_power:p,y floor_divide fmax fmin fmod gcd:i,j ge gt heaviside hypot igamma:p,p igammac:p,p isclose lcm:i,j ldexp:x,few le
logaddexp logaddexp2 logical_and logical_or logical_xor lt max maximum min minimum mul ne nextafter polar:p,y pow:p,y remainder rsub sub
true_divide xlogy:x,p dist inner"""
REDUCED = """all amax amin aminmax any argmax argmin count_nonzero max mean median min nanmean nanmedian nansum norm prod std sum var"""
ALONG = """amax amin argmax argmin argsort cummax cummin cumprod cumsum logcumsumexp logsumexp max mean median min mode nanmedian prod sort
std std_mean sum var var_mean all any count_nonzero softmax log_softmax kthvalue:7 topk:7 diff quantile:.3 renorm"""
LINALG = """linalg.cholesky:spd linalg.cond:square linalg.det:square linalg.eig:square linalg.eigh:spd linalg.eigvals:square
linalg.eigvalsh:spd linalg.inv:square linalg.lu:square linalg.lu_factor:square linalg.matrix_norm:square linalg.matrix_rank:square
linalg.norm:square linalg.pinv:square linalg.qr:square linalg.slogdet:square linalg.svd:square linalg.svdvals:square linalg.vector_norm:x
linalg.ldl_factor:spd linalg.householder_product:square,square[0] logdet:spd cholesky_inverse:spd matrix_exp:square trace:x geqrf:square"""
FFT = """fft.fft fft.fft2 fft.fftn fft.fftshift fft.hfft fft.ifft:z fft.ifft2:z fft.ifftn:z fft.ihfft fft.irfft:z fft.irfft2:z fft.irfftn:z
fft.rfft fft.rfft2 fft.rfftn"""
WINDOWS = "bartlett blackman cosine gaussian:std=7. general_hamming hamming hann kaiser nuttall"

OTHERS = """
add of a number | x + 1
add a row | x + row
add a column | x + column
addbmm | t.addbmm(x[:8, :8], batch, batch2)
addcdiv | t.addcdiv(x, y, p)
addcmul | t.addcmul(x, y, p)
addmm | t.addmm(x, x, y)
addmv | t.addmv(row, x, row)
addr | t.addr(x, row, row)
arange | t.arange(n)
argwhere | t.argwhere(b)
as_strided | t.as_strided(x, (2, 2), (1, 2))
as_strided_scatter | t.as_strided_scatter(x, x[:2, :2], (2, 2), (1, 2))
baddbmm | t.baddbmm(batch[:, :, :8], batch, batch2)
bincount | t.bincount(index)
block_diag | t.block_diag(x, x)
bmm | t.bmm(batch, batch2)
bmm, bfloat16 | t.bmm(half_batch, half_batch)
broadcast_tensors | t.broadcast_tensors(row, column)
broadcast_to | t.broadcast_to(row, (side, side))
bucketize | t.bucketize(x, sorted_row)
byte | p.byte()
cartesian_prod | t.cartesian_prod(row[:64], row[:64])
cat | t.cat([x, y])
cat, last | t.cat([x, y], -1)
cdist | t.cdist(x[:, :64], y[:, :64])
cholesky_solve | t.cholesky_solve(square, lower)
chunk | x.chunk(4)
clamp | x.clamp(-1, 1)
clamp, tensors | t.clamp(x, u, p)
clamp_max | t.clamp_max(x, 1)
clamp_min | t.clamp_min(x, 1)
column_stack | t.column_stack([row, row])
combinations | t.combinations(row[:64])
constant_pad_nd | F.pad(x, (1, 2, 3, 4))
contiguous of a transpose | x.t().contiguous()
corrcoef | t.corrcoef(x)
cov | t.cov(x)
cross | t.linalg.cross(x[:, :3], y[:, :3])
cumulative_trapezoid | t.cumulative_trapezoid(x)
diag | t.diag(row)
diag_embed | t.diag_embed(row)
diagonal | x.diagonal()
diagonal_scatter | t.diagonal_scatter(x, row)
div, floor | t.div(x, y, rounding_mode='floor')
div, trunc | t.div(x, y, rounding_mode='trunc')
dot | t.dot(row, row)
einsum | t.einsum('ij,kj->ik', x, y)
expand | row.expand(4, side)
eye | t.eye(side)
fill | t.full_like(x, 2)
fill_ | x2.fill_(2)
zero_ | x2.zero_()
add_ | x2.add_(y)
mul_ of a number | x2.mul_(.5)
copy_ | x2.copy_(y)
copy_ of a transpose | x2.copy_(y.t())
masked_fill_ | x2.masked_fill_(b, 0)
flatten | x.flatten()
flip | x.flip(0)
fliplr | x.fliplr()
gather | x.gather(1, places)
gather, rows | x.gather(0, places)
getitem, an index | x[1]
getitem, a slice | x[1:5, 2:]
getitem, a list of places | x[index]
getitem, columns | x[:, index]
getitem, a mask | x[b]
setitem, a slice | x2.__setitem__((slice(1, 5), slice(2, None)), 1.)
setitem, places | x2.__setitem__(index, 1.)
setitem, a mask | x2.__setitem__(b, 1.)
gradient | t.gradient(x)
histc | t.histc(x)
histogram | t.histogram(x, 32)
hstack | t.hstack([x, y])
index_add | t.index_add(x, 0, index, y)
index_add, columns | t.index_add(x, 1, index, y)
index_copy | t.index_copy(x, 0, permutation, y)
index_fill | t.index_fill(x, 0, index, 2.)
index_put | t.index_put(x, (index,), y)
index_put, added | t.index_put(x, (index,), y, accumulate=True)
index_reduce amax | t.index_reduce(x, 0, index, y, 'amax')
index_select | t.index_select(x, 0, index)
index_select, columns | t.index_select(x, 1, index)
isin | t.isin(i, index)
istft | t.istft(spectrum, 16, hop_length=4, window=window)
kron | t.kron(x[:16, :16], y[:16, :16])
lerp | t.lerp(x, y, .3)
lerp, tensor | t.lerp(x, y, u)
linspace | t.linspace(0, 1, n)
linalg.lstsq | t.linalg.lstsq(square, square)
linalg.lu_solve | t.linalg.lu_solve(*factored, square)
linalg.matrix_power | t.linalg.matrix_power(square, 3)
linalg.multi_dot | t.linalg.multi_dot([square, square, square])
linalg.solve | t.linalg.solve(square, square)
linalg.solve, batch | t.linalg.solve(batch_square, batch_square)
linalg.inv, batch | t.linalg.inv(batch_square)
linalg.solve_triangular | t.linalg.solve_triangular(lower, square, upper=False)
linalg.tensorinv | t.linalg.tensorinv(square.view(2, -1, square.shape[0]), 2)
linalg.vander | t.linalg.vander(row[:64])
linalg.vecdot | t.linalg.vecdot(x, y)
linalg.norm, rows | t.linalg.norm(x, dim=1)
logspace | t.logspace(0, 1, n)
lu_unpack | t.lu_unpack(*factored)
masked_fill | x.masked_fill(b, 0)
masked_scatter | x.masked_scatter(b, y)
masked_select | x.masked_select(b)
matmul | x @ y
matmul, a transpose | x @ y.t()
matmul, float64 | d @ d
matmul, bfloat16 | half @ half
meshgrid | t.meshgrid(row, row, indexing='ij')
movedim | x.movedim(0, 1)
msort | t.msort(x)
mul of a number | x * 2
mul, float64 | d * d
mul, bfloat16 | half * half
mul, int64 | i * j
add, complex | z + z
mul, complex | z * z
exp, float64 | d.exp()
exp, bfloat16 | half.exp()
exp, complex | z.exp()
sum, bfloat16 | half.sum()
sum, int64 | i.sum()
sum, bool | b.sum()
sum of a transpose | x.t().sum(1)
softmax, bfloat16 | t.softmax(half, -1)
layer_norm, bfloat16 | F.layer_norm(half, (side,))
mv | t.mv(x, row)
mvlgamma | t.mvlgamma(p + 2, 3)
nanquantile | t.nanquantile(x, .3)
narrow | x.narrow(0, 1, 2)
batch_norm, train | F.batch_norm(image, None, None, training=True)
batch_norm, eval | F.batch_norm(image, zeros, ones, weight=ones, bias=zeros)
batch_norm, rows | F.batch_norm(x, None, None, training=True)
group_norm | F.group_norm(image, 2)
layer_norm | F.layer_norm(x, (side,))
layer_norm, weights | F.layer_norm(x, (side,), row, row)
rms_norm | F.rms_norm(x, (side,))
instance_norm | F.instance_norm(image)
local_response_norm | F.local_response_norm(image, 2)
new_full | x.new_full((side, side), 2)
new_zeros | x.new_zeros((side, side))
adaptive_avg_pool1d | F.adaptive_avg_pool1d(image[0], 5)
adaptive_avg_pool2d | F.adaptive_avg_pool2d(image, 5)
adaptive_avg_pool2d, one | F.adaptive_avg_pool2d(image, 1)
adaptive_avg_pool3d | F.adaptive_avg_pool3d(volume, 3)
adaptive_max_pool1d | F.adaptive_max_pool1d(image[0], 5)
adaptive_max_pool2d | F.adaptive_max_pool2d(image, 5)
adaptive_max_pool3d | F.adaptive_max_pool3d(volume, 3)
avg_pool1d | F.avg_pool1d(image[0], 2)
avg_pool2d | F.avg_pool2d(image, 2)
avg_pool2d, overlapping | F.avg_pool2d(image, 3, 1, 1)
avg_pool3d | F.avg_pool3d(volume, 2)
max_pool1d | F.max_pool1d(image[0], 2)
max_pool2d | F.max_pool2d(image, 2)
max_pool2d, overlapping | F.max_pool2d(image, 3, 2, 1)
max_pool3d | F.max_pool3d(volume, 2)
max_unpool2d | F.max_unpool2d(*pooled, 2)
bilinear | F.bilinear(x[:, :8], y[:, :8], eights)
binary_cross_entropy | F.binary_cross_entropy(v, v2)
binary_cross_entropy_with_logits | F.binary_cross_entropy_with_logits(x, v)
channel_shuffle | F.channel_shuffle(image, 2)
conv1d | F.conv1d(image[:, :, 0], filters[..., 0], padding=1)
conv2d | F.conv2d(image, filters, padding=1)
conv2d, bias | F.conv2d(image, filters, row[:filters.shape[0]], padding=1)
conv2d, 1x1 | F.conv2d(image, filters[:, :, :1, :1])
conv2d, stride | F.conv2d(image, filters, stride=2, padding=1)
conv2d, depthwise | F.conv2d(image, filters[:, :1], padding=1, groups=image.shape[1])
conv2d, groups | F.conv2d(image, filters[:, :2], padding=1, groups=image.shape[1] // 2)
conv2d, dilated | F.conv2d(image, filters, padding=2, dilation=2)
conv3d | F.conv3d(volume, filters3, padding=1)
conv_transpose1d | F.conv_transpose1d(image[:, :, 0], filters[..., 0])
conv_transpose2d | F.conv_transpose2d(image, filters, stride=2)
conv_transpose3d | F.conv_transpose3d(volume, filters3)
cosine_embedding_loss | F.cosine_embedding_loss(x, y, x[:, 0].sign())
cosine_similarity | F.cosine_similarity(x, y)
cross_entropy | F.cross_entropy(x, classes)
ctc_loss | F.ctc_loss(logs, texts, lengths, shorter)
dropout | F.dropout(x)
embedding | F.embedding(places, x)
embedding_bag | F.embedding_bag(places, x[:, :16].contiguous())
embedding_bag, mean | F.embedding_bag(index, x, offsets, mode='mean')
embedding_bag, max | F.embedding_bag(index, x, offsets, mode='max')
gaussian_nll_loss | F.gaussian_nll_loss(x, y, p)
glu | F.glu(x)
grid_sample | F.grid_sample(image, grid, align_corners=False)
grid_sample, nearest | F.grid_sample(image, grid, mode='nearest', align_corners=False)
grid_sample, bicubic | F.grid_sample(image, grid, mode='bicubic', align_corners=False)
grid_sample, volume | F.grid_sample(volume, grid3, align_corners=False)
affine_grid | F.affine_grid(affine, image.shape, align_corners=False)
hinge_embedding_loss | F.hinge_embedding_loss(x, y.sign())
huber_loss | F.huber_loss(x, y)
interpolate, area | F.interpolate(image, scale_factor=.5, mode='area')
interpolate, bicubic | F.interpolate(image, scale_factor=2, mode='bicubic')
interpolate, bilinear | F.interpolate(image, scale_factor=2, mode='bilinear')
interpolate, bilinear, smaller | F.interpolate(image, scale_factor=.4, mode='bilinear', antialias=True)
interpolate, linear | F.interpolate(image[0], scale_factor=2, mode='linear')
interpolate, nearest | F.interpolate(image, scale_factor=2)
interpolate, nearest-exact | F.interpolate(image, scale_factor=2, mode='nearest-exact')
interpolate, trilinear | F.interpolate(volume, scale_factor=2, mode='trilinear')
kl_div | F.kl_div(x, v, reduction='batchmean')
l1_loss | F.l1_loss(x, y)
linear | F.linear(x, y, row)
lstm | recurrent(steps)
gru | gated(steps)
margin_ranking_loss | F.margin_ranking_loss(x, y, y.sign())
mse_loss | F.mse_loss(x, y)
multi_head_attention | attention(steps, steps, steps)
multi_margin_loss | F.multi_margin_loss(x, classes)
multilabel_margin_loss | F.multilabel_margin_loss(x, labels)
multilabel_soft_margin_loss | F.multilabel_soft_margin_loss(x, v)
nll_loss | F.nll_loss(x, classes)
one_hot | F.one_hot(classes, side)
normalize | F.normalize(x)
pad, circular | F.pad(image, (1, 2, 2, 1), mode='circular')
pad, reflect | F.pad(image, (1, 2, 2, 1), mode='reflect')
pad, replicate | F.pad(image, (1, 2, 2, 1), mode='replicate')
pairwise_distance | F.pairwise_distance(x, y)
pdist | F.pdist(x[:128])
pixel_shuffle | F.pixel_shuffle(image, 2)
pixel_unshuffle | F.pixel_unshuffle(image, 2)
poisson_nll_loss | F.poisson_nll_loss(x, p)
prelu | F.prelu(x, row)
scaled_dot_product_attention | F.scaled_dot_product_attention(heads, heads, heads)
scaled_dot_product_attention, causal | F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
smooth_l1_loss | F.smooth_l1_loss(x, y)
soft_margin_loss | F.soft_margin_loss(x, y.sign())
softmax, columns | t.softmax(x, 0)
softmin | F.softmin(x, -1)
threshold | F.threshold(x, .1, 20)
triplet_margin_loss | F.triplet_margin_loss(x, y, p)
unfold, images | F.unfold(image, 3)
fold | F.fold(columns, image.shape[2:], 2, stride=2)
nonzero | b.nonzero()
nonzero_static | t.nonzero_static(b, size=4)
norm, inf | t.norm(x, float('inf'))
norm, nuclear | t.norm(square, 'nuc')
ones | t.ones(side, side)
outer | t.outer(row, row)
permute | x.permute(1, 0)
pow of two | x ** 2
pow of three | x ** 3
pow of a half | p ** .5
put | t.put(x, index, row)
quantile | t.quantile(x, .3)
randn | t.randn(side, side)
rand | t.rand(side, side)
randint | t.randint(0, 10, (side, side))
randperm | t.randperm(side)
bernoulli | t.bernoulli(v)
multinomial | t.multinomial(v, 4)
normal_ | x2.normal_()
repeat | row.repeat(4, 2)
repeat_interleave | x.repeat_interleave(2, 0)
repeat_interleave, counts | x.repeat_interleave(index, 0)
reshape | x.reshape(-1)
roll | x.roll(3, 0)
rot90 | x.rot90()
round, decimals | t.round(x, decimals=3)
scatter | x.scatter(1, places, y)
scatter, rows | x.scatter(0, places, y)
scatter_add | x.scatter_add(1, places, y)
scatter_add, rows | x.scatter_add(0, places, y)
scatter_reduce amax | x.scatter_reduce(1, places, y, 'amax')
scatter_reduce mean | x.scatter_reduce(1, places, y, 'mean')
scatter_reduce prod | x.scatter_reduce(1, places, y, 'prod')
searchsorted | t.searchsorted(sorted_rows, x)
select | x.select(0, 1)
select_scatter | t.select_scatter(x, row, 0, 1)
slice_scatter | t.slice_scatter(x, y[:2], 0, 1, 3)
sort, flat | flat.sort()
sort, int64 | i.sort()
argsort, stable | x.argsort(stable=True)
split | x.split(3)
squeeze | x[None].squeeze(0)
stack | t.stack([x, y])
stack, last | t.stack([x, y], -1)
stft | t.stft(flat[:65536], 16, hop_length=4, window=window, return_complex=True)
sum_to_size | x.sum_to_size(1, side)
sum, both | x.sum((0, 1))
mean, images | image.mean((2, 3))
var, images | image.var((0, 2, 3))
amax, images | image.amax((1, 2))
t | x.t()
take | t.take(x, places)
take_along_dim | t.take_along_dim(x, places, 1)
tensor_split | x.tensor_split(3)
tensordot | t.tensordot(x, y, 1)
tile | row.tile(2, 2)
to, float64 | x.to(t.float64)
to, bfloat16 | x.to(t.bfloat16)
to, float32 of bfloat16 | half.to(t.float32)
to, int64 | x.to(t.int64)
to, float32 of int64 | i.to(t.float32)
to, bool | x.to(t.bool)
trapezoid | t.trapezoid(x)
tril | t.tril(x)
triu | t.triu(x)
tril_indices | t.tril_indices(side, side)
unbind | x[:4].unbind()
unflatten | x.unflatten(1, (2, -1))
unfold | x.unfold(1, 3, 1)
unique | t.unique(i)
unique, inverse | t.unique(i, return_inverse=True)
unique_consecutive | t.unique_consecutive(i)
unravel_index | t.unravel_index(index, (4, side))
unsqueeze | x.unsqueeze(0)
vdot | t.vdot(row, row)
view | x.view(-1)
view_as_complex | t.view_as_complex(x.view(-1, 2))
view_as_real | t.view_as_real(z)
vstack | t.vstack([x, y])
where | t.where(b, x, y)
where, a number | t.where(b, x, 0.)
where, places | t.where(b)
zeros | t.zeros(side, side)
item | one.item()
tolist | row[:8].tolist()
tensor of a list | t.tensor([1., 2., 3.])
xlog1py | t.special.xlog1py(x, p)
zeta | t.special.zeta(p + 1, p)
add of float64 to float32 | x + d
add of int64 to float32 | x + i
add of float32 to bfloat16 | half + x
add of float64 in place | x2.add_(d)
add_ of a row, alpha | x2.add_(row, alpha=1e-9)
add, float16 | f16 + f16
mul of a number, float16 | f16 * 3
maximum, float16 | t.maximum(f16, f16)
floor, float16 | f16.floor()
sqrt, bfloat16 | half.sqrt()
tanh, bfloat16 | half.tanh()
sigmoid, float16 | f16.sigmoid()
silu, bfloat16 | F.silu(half)
gelu, float64 | F.gelu(d)
softmax, float16 | t.softmax(f16, -1)
sum, float16 | f16.sum()
clamp, int64 | i.clamp(2, 50)
clamp, bfloat16 | half.clamp(-1, 1)
sin, int64 | i.sin()
sign, int64 | i.sign()
isnan, int64 | i.isnan()
remainder, int64 | i % j
floor_divide, int64, a number | i // 3
pow of four | x ** 4
lerp, a row | t.lerp(x, row, .3)
where, rows | t.where(b, x, row)
xlogy, a row | t.xlogy(x, row)
nan_to_num, complex | t.nan_to_num(z)
abs, complex | z.abs()
sum, complex | z.sum()
equal | t.equal(x, x)
equal, int64 | t.equal(i, i)
allclose | t.allclose(x, x)
gather, float16 | f16.gather(1, places)
scatter, bfloat16 | half.scatter(1, places, half)
stack, complex | t.stack([z, z])
flip, bfloat16 | half.flip(1)
tril, complex | z.tril()
to, float32 of float16 | f16.to(t.float32)
to, float16 | x.to(t.float16)
to, float64 of a transpose | x.t().to(t.float64)
exp of a transpose | x.t().exp()
exp of a part | x[:, 1:].exp()
softmax of a transpose | x.t().softmax(-1)
sum of pixels | pixels.sum()
mean of pixels | pixels.mean((2, 3))
add of pixels | pixels + pixels
contiguous of pixels | pixels.contiguous()
cat of pixels | t.cat([pixels, pixels], 1)
max_pool2d of pixels | F.max_pool2d(pixels, 2)
avg_pool2d of pixels | F.avg_pool2d(pixels, 2)
batch_norm of pixels, eval | F.batch_norm(pixels, zeros, ones, weight=ones, bias=zeros)
interpolate of pixels, bilinear | F.interpolate(pixels, scale_factor=2, mode='bilinear')
getitem, pairs of places | x[index, index]
setitem, pairs of places | x2.__setitem__((index, index), 0.)
copy_ of float64 | x2.copy_(d)
exp, out= | t.exp(x, out=x2)
"""


def _spread(text: str, template: str, default: str = "x") -> list[tuple[str, str]]:
    """`name:arguments` for each word, put into a template."""
    parts = [word.partition(":") for word in text.split()]
    return [(name, template.format(name=name, args=args or default)) for name, _, args in parts]


def _along() -> list[tuple[str, str]]:
    found = []
    for word in ALONG.split():
        name, _, extra = word.partition(":")
        for dim, label in ((1, "rows"), (0, "columns")):
            before = f"{extra}, " if extra else ""
            call = f"t.renorm(x, 2, {dim}, 1)" if name == "renorm" else f"t.{name}(x, {before}dim={dim})"
            found.append((f"{name}, {label}", call))
    return found


def _others() -> list[tuple[str, str]]:
    lines = [line for line in OTHERS.splitlines() if line]
    return [(name, statement) for name, _, statement in (line.partition(" | ") for line in lines)]


CALLS: list[tuple[str, str]] = [
    *_spread(UNARY, "t.{name}({args})"),
    *_spread(SPECIAL, "t.special.{name}({args})"),
    *_spread(POLYNOMIALS, "t.special.{name}({args}, few)", "u"),
    *_spread(ACTIVATIONS, "F.{name}({args})"),
    *_spread(BINARY, "t.{name}({args})", "x, y"),
    *_spread(REDUCED, "t.{name}({args})"),
    *_along(),
    *_spread(LINALG, "t.{name}({args})"),
    *_spread(FFT, "t.{name}({args})"),
    *_spread(WINDOWS, "t.signal.windows.{name}(side, {args})", ""),
    *_others(),
]  # fmt: skip


# -------------------------------------------------------------------------------------------------------- the arguments
def _matrices(t: ModuleType, rng: Any, side: int) -> dict[str, Any]:
    import numpy as np

    def real(*shape: int) -> Any:
        return t.from_numpy(rng.standard_normal(shape, np.float32))

    def whole(low: int, high: int, *shape: int) -> Any:
        return t.from_numpy(rng.integers(low, high, shape))

    x = real(side, side)
    return {
        "x": x, "y": real(side, side), "x2": x.clone(), "p": real(side, side).abs() + 0.1, "above": real(side, side).abs() + 1,
        "u": t.from_numpy(rng.uniform(0.01, 0.99, (side, side)).astype(np.float32)),
        "v": t.from_numpy(rng.uniform(0.01, 0.99, (side, side)).astype(np.float32)),
        "v2": t.from_numpy(rng.uniform(0.01, 0.99, (side, side)).astype(np.float32)),
        "i": whole(1, 100, side, side), "j": whole(1, 100, side, side), "few": whole(0, 5, side, side), "b": x > 0.5, "d": x.to(t.float64),
        "half": x.to(t.bfloat16), "f16": x.to(t.float16), "z": t.complex(x, x), "row": real(side), "column": real(side, 1), "flat": real(side * side),
        "sorted_row": real(side).sort()[0], "sorted_rows": real(side, side).sort(-1)[0], "index": whole(0, side, side),
        "permutation": t.from_numpy(rng.permutation(side)), "places": whole(0, side, side, side), "classes": whole(0, side, side),
        "labels": t.from_numpy(np.tile(np.concatenate([rng.permutation(side)[:4], -np.ones(side - 4, np.int64)]), (side, 1))),
        "offsets": t.arange(0, side, 4), "one": real(1), "eights": real(4, 8, 8),
    }  # fmt: skip


def _layers(t: ModuleType, rng: Any, channels: int, width: int, deep: int, depth: int) -> dict[str, Any]:
    import numpy as np

    def real(*shape: int) -> Any:
        return t.from_numpy(rng.standard_normal(shape, np.float32))

    image, volume = real(2, channels, width, width), real(2, deep, depth, depth, depth)
    features = 8 * channels
    texts = t.from_numpy(rng.integers(1, 8, (2, 4)))
    return {
        "image": image, "pixels": image.to(memory_format=t.channels_last), "volume": volume, "filters": real(channels, channels, 3, 3), "filters3": real(deep, deep, 3, 3, 3),
        "zeros": t.zeros(channels), "ones": t.ones(channels), "grid": real(2, width, width, 2), "grid3": real(2, depth, depth, depth, 3),
        "affine": real(2, 2, 3), "pooled": t.nn.functional.max_pool2d(image, 2, return_indices=True), "window": t.hann_window(16),
        "columns": t.nn.functional.unfold(image, 2, stride=2), "batch": real(8, 8, width), "batch2": real(8, width, 8),
        "half_batch": real(8, width, width).to(t.bfloat16), "heads": real(2, 4, width, 16), "steps": real(2, width, features),
        "recurrent": t.nn.LSTM(features, features), "gated": t.nn.GRU(features, features),
        "attention": t.nn.MultiheadAttention(features, 4), "texts": texts, "logs": real(12, 2, 8).log_softmax(-1),
        "lengths": t.tensor([12, 12]), "shorter": t.tensor([4, 3]), "spectrum": t.stft(
            real(16 * width), 16, hop_length=4, window=t.hann_window(16), return_complex=True),
    }  # fmt: skip


def _factored(t: ModuleType, rng: Any, side: int) -> dict[str, Any]:
    import numpy as np

    square = t.from_numpy(rng.standard_normal((side, side), np.float32)) + side * t.eye(side)
    spd = square @ square.t() / side
    batch = t.from_numpy(rng.standard_normal((16, 4, 4), np.float32)) + 4 * t.eye(4)
    return {
        "square": square, "spd": spd, "lower": t.linalg.cholesky(spd), "factored": t.linalg.lu_factor(square), "batch_square": batch,
    }  # fmt: skip


def names(t: ModuleType, size: str) -> dict[str, Any]:
    """What statements may use, in one library."""
    import numpy as np

    rng, sizes = np.random.default_rng(0), SIZES[size]
    side = int(sizes["side"])
    shared = {"t": t, "F": t.nn.functional, "side": side, "n": side * side}
    return {
        **shared, **_matrices(t, rng, side), **_layers(t, rng, *sizes["image"], *sizes["volume"]), **_factored(t, rng, sizes["square"]),
    }  # fmt: skip
