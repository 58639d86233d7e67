"""Linear algebra: factors multiply back, gradients agree with differences, errors say what was wrong."""

import numpy as np
import pytest

import pullback as torch
from pullback.ops.linalg import signs
from pullback.ops.system.operator import registry
from tests.ops.checks import CHECKS, compare_gradient, to_numpy

rng = np.random.default_rng(3)
L = torch.linalg
DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
SHAPES = ((3, 3), (4, 2), (2, 4), (2, 5), (2, 3, 3), (2, 1, 3, 2), (0, 3, 3), (2, 0, 3), (3, 0))


def matrix(*shape, dtype=torch.float64):
    values = rng.standard_normal(shape)
    if dtype.is_complex:
        values = values + 1j * rng.standard_normal(shape)
    return torch.tensor(values).to(dtype)


def regular(*shape, dtype=torch.float64):
    """Square matrices far from singular."""
    return matrix(*shape, dtype=dtype) + 3 * torch.eye(shape[-1], dtype=dtype)


def positive(*shape, dtype=torch.float64):
    a = matrix(*shape, dtype=dtype)
    return a @ a.mH + torch.eye(shape[-1], dtype=dtype)


def close(a, b, dtype):
    tol = 2e-4 if dtype in (torch.float32, torch.complex64) else 1e-10
    assert a.dtype is b.dtype and a.shape == b.shape
    np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=tol, atol=tol)


# ---- factors multiply back
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors_multiply_back(shape, dtype):
    a = matrix(*shape, dtype=dtype)
    p, lower, upper = L.lu(a)
    close(p @ lower @ upper, a, dtype)
    q, r = L.qr(a)
    close(q @ r, a, dtype)
    close(q.mH @ q, torch.eye(q.shape[-1], dtype=dtype).expand(*shape[:-2], q.shape[-1], q.shape[-1]), dtype)
    u, s, vh = L.svd(a, full_matrices=False)
    close(u * s.unsqueeze(-2) @ vh, a, dtype)
    u, s, vh = L.svd(a)
    close(vh @ vh.mH, torch.eye(shape[-1], dtype=dtype).expand(*shape[:-2], shape[-1], shape[-1]), dtype)
    close(L.pinv(a), L.pinv(a) @ a @ L.pinv(a), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 3), (30, 30), (0, 2, 2), (2, 0, 0)], ids=str)
def test_square_factors(shape, dtype):
    h = positive(*shape, dtype=dtype)
    lower = L.cholesky(h)
    close(lower @ lower.mH, h, dtype)
    close(L.cholesky(h, upper=True), lower.mH, dtype)
    values, vectors = L.eigh(h)
    close(vectors * values.unsqueeze(-2) @ vectors.mH, h, dtype)
    a = regular(*shape, dtype=dtype)
    values, vectors = L.eig(a)
    close(a.to(values.dtype) @ vectors, vectors * values.unsqueeze(-2), dtype)
    b = matrix(*shape[:-1], 2, dtype=dtype)
    close(a @ L.solve(a, b), b, dtype)
    close(L.lu_solve(*L.lu_factor(a), b), L.solve(a, b), dtype)
    close(h @ torch.cholesky_solve(b, lower), b, dtype)
    close(L.ldl_solve(*L.ldl_factor(h, hermitian=True), b, hermitian=True), L.solve(h, b), dtype)
    close(a @ L.inv(a), torch.eye(shape[-1], dtype=dtype).expand(*shape), dtype)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 3)], ids=str)
def test_least_squares(driver, shape):
    a, b = matrix(*shape), matrix(*shape[:-1], 2)
    result = L.lstsq(a, b, driver=driver)
    close(result.solution, L.pinv(a) @ b, torch.float64)
    if driver == "gelsd":
        close(result.singular_values, L.svdvals(a), torch.float64)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 3), (2, 0, 5, 3)], ids=str)
def test_least_squares_lie_where_the_right_hand_side_was(shape):
    """Column by column, in the room of the longer of the two; so does what a graph believes of them."""
    arguments = torch.ones(shape), torch.ones(*shape[:-1], 2)
    solution, tall = L.lstsq(*arguments).solution, max(shape[-2:])
    assert solution.stride()[-2:] == (1, tall)
    assert solution.stride()[:-2] == torch.empty(*shape[:-2], tall, 2).stride()[:-2]
    assert L.lstsq(*[x.to("meta") for x in arguments]).solution.stride() == solution.stride()


def test_vectors_as_right_hand_sides():
    a = regular(2, 3, 3)
    assert L.solve(a, matrix(2, 3)).shape == (2, 3)
    assert L.solve(a[0], matrix(3)).shape == (3,)
    assert L.solve(a, matrix(3)).shape == (2, 3)
    assert L.lstsq(a[0], matrix(3)).solution.shape == (3,)


def test_householder_products():
    a = matrix(2, 4, 3)
    packed, tau = torch.geqrf(a)
    q = L.householder_product(packed, tau)
    close(q, L.qr(a)[0], torch.float64)
    c = matrix(2, 4, 2)
    full = L.qr(a, mode="complete")[0]
    close(torch.ormqr(packed, tau, c), full @ c, torch.float64)
    close(torch.ormqr(packed, tau, c.mT, left=False, transpose=True), c.mT @ full.mT, torch.float64)


# ---- signs are PyTorch's; these decompositions were taken from it
def test_signs_of_eigenvectors_follow_the_reference():
    a = torch.tensor([[2.0, 1, 0, 3], [1, -1, 2, 0], [0, 2, 1, -2], [3, 0, -2, 0]], dtype=torch.float64)
    first = L.eigh(a, UPLO="L").eigenvectors[0]
    np.testing.assert_allclose(to_numpy(first), [0.34815531, 0.44139647, 0.41831275, -0.71342237], atol=1e-7)


@pytest.mark.parametrize("rows", [2, 3, 6])
def test_the_svd_of_a_very_wide_matrix_is_one(rows):
    a = rng.standard_normal((rows, 3 * rows))
    u, s, vh = signs.wide_svd(np, a, True)
    np.testing.assert_allclose((u * s) @ vh[:rows], a, atol=1e-12)
    np.testing.assert_allclose(vh @ vh.T, np.eye(3 * rows), atol=1e-12)
    zero = signs.wide_svd(np, np.zeros((rows, 3 * rows)), False)
    np.testing.assert_allclose(zero[0] @ zero[0].T, np.eye(rows), atol=1e-12)


# ---- gradients
def hermitian(a):
    return a + a.mH


def projectors(vectors):
    """A function of vectors that does not change with their phases."""
    return vectors.unsqueeze(-2) * vectors.conj().unsqueeze(-3)


def svd_parts(a, full=False):
    u, s, vh = L.svd(a, full_matrices=full)
    k = s.shape[-1]
    return s, projectors(u[..., :k]), projectors(vh[..., :k, :].mH), u[..., :k] @ vh[..., :k, :]


GRADIENTS = {
    "cholesky": (lambda a: L.cholesky(hermitian(a)), [positive]),
    "cholesky upper": (lambda a: L.cholesky(hermitian(a), upper=True), [positive]),
    "cholesky_inverse": (lambda a: torch.cholesky_inverse(a.tril(-1) + 2 * torch.eye(3)), [regular]),
    "cholesky_solve": (lambda b, a: torch.cholesky_solve(b, a.tril()), [matrix, regular]),
    "inv": (L.inv, [regular]),
    "solve": (L.solve, [regular, matrix]),
    "solve right": (lambda a, b: L.solve(a, b, left=False), [regular, matrix]),
    "solve_triangular": (lambda a, b: L.solve_triangular(a, b, upper=True), [regular, matrix]),
    "solve_triangular unit": (
        lambda a, b: L.solve_triangular(a, b, upper=False, left=False, unitriangular=True), [regular, matrix],
    ),
    "triangular_solve": (lambda b, a: tuple(torch.triangular_solve(b, a, transpose=True)), [matrix, regular]),
    "det": (L.det, [regular]),
    "slogdet": (lambda a: L.slogdet(a).logabsdet, [regular]),
    "logdet": (torch.logdet, [positive]),
    "lu": (lambda a: tuple(L.lu(a))[1:], [regular]),
    "lu_factor": (lambda a: L.lu_factor(a).LU, [regular]),
    "lu_solve": (lambda a, b: L.lu_solve(a, PIVOTS, b, adjoint=True), [regular, matrix]),
    "lu_solve right": (lambda a, b: L.lu_solve(a, PIVOTS, b, left=False), [regular, matrix]),
    "qr": (lambda a: tuple(L.qr(a)), [regular]),
    "eigh": (lambda a: (L.eigh(hermitian(a)).eigenvalues, projectors(L.eigh(hermitian(a)).eigenvectors)), [matrix]),
    "eigvalsh": (lambda a: L.eigvalsh(hermitian(a)), [matrix]),
    "eigvals": (L.eigvals, [regular]),
    "eig": (lambda a: L.eig(a).eigenvectors.abs(), [regular]),
    "svd": (svd_parts, [matrix]),
    "svdvals": (L.svdvals, [matrix]),
    "pinv": (L.pinv, [matrix]),
    "matrix_exp": (L.matrix_exp, [matrix]),
    "matrix_power": (lambda a: L.matrix_power(a, -3), [regular]),
    "householder_product": (lambda a, t: L.householder_product(a, t[..., 0]), [matrix, matrix]),
    "ormqr": (lambda a, t, c: torch.ormqr(a, t[..., 0], c, transpose=True), [matrix, matrix, matrix]),
    "ormqr right": (lambda a, t, c: torch.ormqr(a, t[..., 0], c, left=False), [matrix, matrix, matrix]),
    "lstsq": (lambda a, b: L.lstsq(a, b).solution, [regular, matrix]),
    "cross": (L.cross, [matrix, matrix]),
    "norm 2": (lambda a: L.matrix_norm(a, 2), [matrix]),
    "norm nuc": (lambda a: L.matrix_norm(a, "nuc"), [matrix]),
    "vector_norm": (lambda a: tuple(L.vector_norm(a, p, -1) for p in (0.5, 1, 1.5, 2, 3, float("inf"))), [matrix]),
    "cond": (L.cond, [regular]),
    "vander": (lambda a: L.vander(a, N=4), [matrix]),
    "multi_dot": (lambda *a: L.multi_dot(a), [matrix, matrix, matrix]),
}  # fmt: skip
PIVOTS = torch.tensor([2, 3, 3], dtype=torch.int32)
# Differences of differences lose too many digits, or the function is not smooth enough.
FIRST_ONLY = {"norm 2", "vector_norm", "svd", "eig", "eigh", "cond"}


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name, dtype):
    function, makers = GRADIENTS[name]
    inputs = [make(3, 3, dtype=dtype) for make in makers]

    def outputs(*values):
        out = function(*values)
        return out if isinstance(out, tuple) else (out,)

    compare_gradient(outputs, inputs, 5, name)
    if name not in FIRST_ONLY:
        compare_gradient(lambda *v: first_gradient(outputs, v), inputs, 6, f"{name}, second", 1e-4)


def first_gradient(function, values):
    with torch.enable_grad():
        leaves = [v if v.requires_grad else v.detach().requires_grad_() for v in values]
        outs = function(*leaves)
        total = sum((o.real if o.dtype.is_complex else o).sum() for o in outs)
        return tuple(
            g for g in torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True) if g is not None
        )


@pytest.mark.parametrize("shape", [(4, 2), (2, 4)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_gradients_of_rectangular_matrices(shape, dtype):
    a = matrix(*shape, dtype=dtype)
    compare_gradient(lambda x: tuple(L.lu(x))[1:], [a], 7, "lu")
    compare_gradient(lambda x: tuple(L.qr(x)), [a], 7, "qr")
    compare_gradient(svd_parts, [a], 7, "svd")
    compare_gradient(lambda x: svd_parts(x, True), [a], 7, "full svd")
    compare_gradient(lambda x: (L.pinv(x),), [a], 7, "pinv")
    b = matrix(shape[0], 2, dtype=dtype)
    compare_gradient(lambda x, y: tuple(L.lstsq(x, y, driver="gelsd"))[:2], [a, b], 7, "lstsq")


def test_the_determinant_has_a_gradient_at_singular_matrices():
    a = torch.tensor([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]], dtype=torch.float64, requires_grad=True)
    (plain,) = torch.autograd.grad(L.det(a), a)
    (again,) = torch.autograd.grad(L.det(a), a, create_graph=True)
    rows = to_numpy(a)
    cofactors = [
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(rows, i, 0), j, 1)) for j in range(3)] for i in range(3)
    ]
    np.testing.assert_allclose(to_numpy(plain), cofactors, atol=1e-8)
    np.testing.assert_allclose(to_numpy(again), cofactors, atol=1e-8)


def test_a_phase_dependent_function_of_complex_eigenvectors_is_refused():
    a = positive(3, 3, dtype=torch.complex128).requires_grad_()
    with pytest.raises(RuntimeError, match="specified up to multiplication by e"):
        (L.eigh(a).eigenvectors.imag.sum() * 5).backward()


# ---- every operator through the rules of the table
OPERATORS = {
    "linalg_cholesky_ex": (positive(2, 3, 3), False, False),
    "cholesky": (positive(3, 3), True),
    "cholesky_inverse": (regular(2, 3, 3).tril(), False),
    "cholesky_solve": (matrix(2, 3, 2), regular(3, 3).tril(), False),
    "linalg_inv_ex": (regular(2, 3, 3), False),
    "_linalg_solve_ex": (regular(2, 3, 3), matrix(2, 3, 2), True, False),
    "linalg_solve_triangular": (regular(2, 3, 3), matrix(3, 2), True, True, False),
    "linalg_lstsq": (matrix(2, 4, 3), matrix(2, 4, 2), None, "gelsd"),
    "linalg_lu_factor_ex": (matrix(2, 4, 3), True, False),
    "linalg_lu": (matrix(2, 2, 4), True),
    "lu_unpack": (*L.lu_factor(regular(2, 3, 3)), True, True),
    "linalg_lu_solve": (*L.lu_factor(regular(2, 3, 3)), matrix(3, 2), True, True),
    "linalg_qr": (matrix(2, 4, 3), "reduced"),
    "geqrf": (matrix(2, 4, 3),),
    "linalg_householder_product": (matrix(2, 4, 3), matrix(2, 3)),
    "ormqr": (matrix(2, 4, 3), matrix(2, 3), matrix(2, 4, 2), True, False),
    "linalg_ldl_factor_ex": (positive(2, 3, 3), False, False),
    "linalg_ldl_solve": (*L.ldl_factor(positive(2, 3, 3)), matrix(2, 3, 2), False),
    "_linalg_svd": (matrix(2, 3, 4), True, True, None),
    "_linalg_eigh": (positive(2, 3, 3), "L", True),
    "linalg_eig": (regular(2, 3, 3),),
    "_linalg_eigvals": (regular(3, 3),),
    "_linalg_det": (regular(2, 3, 3),),
    "_linalg_slogdet": (regular(2, 3, 3),),
    "linalg_matrix_exp": (matrix(2, 3, 3),),
    "linalg_cross": (matrix(2, 3), matrix(1, 3), -1),
    "linalg_vector_norm": (matrix(2, 3, 4), 3.0, (0, 2), True, None),
}


@pytest.mark.parametrize("check", ["meta", "vmap", "out"])
@pytest.mark.parametrize("name", OPERATORS)
def test_rule(name, check):
    CHECKS[check](registry[f"{name}.default"], OPERATORS[name])


def test_vmap_of_systems():
    a, b = regular(4, 3, 3), matrix(4, 3)
    both = torch.func.vmap(L.solve)(a, b)
    close(both, torch.stack([L.solve(x, y) for x, y in zip(a, b)]), torch.float64)
    shared = torch.func.vmap(L.solve, in_dims=(None, 0))(a[0], b)
    close(shared, torch.stack([L.solve(a[0], y) for y in b]), torch.float64)
    stacks = torch.func.vmap(L.solve, in_dims=(None, 1))(a, matrix(3, 2))
    assert stacks.shape == (2, 4, 3)
    close(torch.func.vmap(L.pinv)(a), L.inv(a), torch.float64)


FORWARD = ("linalg_inv_ex", "linalg_solve_triangular", "_linalg_det", "linalg_matrix_exp", "linalg_cross", "linalg_qr")


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode(name):
    CHECKS["forward"](registry[f"{name}.default"], OPERATORS[name])


# ---- errors
singular = torch.zeros(2, 2)
ERRORS = {
    "linalg.inv: The diagonal element 1 is zero": (L.LinAlgError, lambda: L.inv(singular)),
    "torch.linalg.solve: The solver failed": (L.LinAlgError, lambda: L.solve(singular, singular)),
    r"linalg.cholesky: \(Batch element 1\): The factorization could not be completed": (
        L.LinAlgError, lambda: L.cholesky(torch.stack([torch.eye(2), -torch.eye(2)])),
    ),
    r"torch.linalg.lu_factor: U\[1,1\] is zero": (RuntimeError, lambda: L.lu_factor(singular)),
    "A must be batches of square matrices, but they are 2 by 3": (RuntimeError, lambda: L.det(torch.zeros(2, 3))),
    "must have at least 2 dimensions": (RuntimeError, lambda: L.qr(torch.zeros(3))),
    "Expected a floating point or complex tensor as input. Got Long": (
        RuntimeError, lambda: L.inv(torch.zeros(2, 2, dtype=torch.int64)),
    ),
    "Low precision dtypes not supported. Got Half": (RuntimeError, lambda: L.inv(torch.eye(2, dtype=torch.float16))),
    r"Incompatible shapes of A and B for the equation AX = B \(3x3 and 2x2\)": (
        RuntimeError, lambda: L.solve(torch.eye(3), torch.zeros(2, 2)),
    ),
    "contained non-finite values": (L.LinAlgError, lambda: L.svd(torch.full((2, 2), float("nan")))),
    "should not contain infs or NaNs": (RuntimeError, lambda: L.eig(torch.full((2, 2), float("nan")))),
    "Order foo not supported": (RuntimeError, lambda: L.matrix_norm(torch.eye(2), "foo")),
    "cannot compute the inf norm on an empty tensor": (
        RuntimeError, lambda: L.vector_norm(torch.zeros(0), float("inf")),
    ),
    "expected at least 2 tensors but got 1": (RuntimeError, lambda: L.multi_dot([torch.eye(2)])),
    "is now removed": (RuntimeError, lambda: torch.symeig(torch.eye(2))),
}  # fmt: skip


@pytest.mark.parametrize("words", ERRORS)
def test_errors(words):
    kind, call = ERRORS[words]
    with pytest.raises(kind, match=words):
        call()


# ---- what does not fit above
def test_norms_and_ranks():
    a = matrix(2, 3, 4)
    for order in (1, -1, 2, -2, float("inf"), "fro", "nuc"):
        close(L.matrix_norm(a, order)[1], torch.tensor(np.linalg.norm(to_numpy(a)[1], order)), torch.float64)
    assert L.matrix_norm(a, 2, dim=(0, 2), keepdim=True).shape == (1, 3, 1)
    assert L.matrix_rank(a @ a.mT).tolist() == [3, 3]
    assert L.matrix_rank(torch.tensor([[3.0, 0.0], [0.0, 1e-9]]), tol=1e-3).item() == 1
    assert L.cond(torch.zeros(2, 2), "fro").item() == float("inf")


def test_low_rank():
    left, right = matrix(9, 2), matrix(2, 7)
    u, s, v = torch.svd_lowrank(left @ right, q=3)
    close(u * s @ v.mT, left @ right, torch.float64)
    h = positive(12, 12)
    values, vectors = torch.lobpcg(h, k=2, tol=1e-12)
    close(values, L.eigvalsh(h).flip(0)[:2], torch.float32)
    np.testing.assert_allclose(to_numpy(h @ vectors), to_numpy(vectors * values), atol=1e-4)


def test_matrix_exp_and_powers():
    a = matrix(2, 3, 3)
    series = sum((L.matrix_power(a * 0.1, n) / float(np.prod(range(1, n + 1))) for n in range(1, 12)), torch.eye(3))
    close(L.matrix_exp(a * 0.1), series, torch.float64)
    assert L.matrix_power(torch.tensor([[1, 1], [1, 0]]), 10).tolist() == [[89, 55], [55, 34]]


def test_the_gradient_of_a_determinant_at_a_singular_matrix_is_its_adjugate():
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    for differentiable in (False, True):
        (g,) = torch.autograd.grad(3 * torch.linalg.det(a), a, create_graph=differentiable)
        assert torch.allclose(g, torch.tensor([[12.0, -6.0], [-6.0, 3.0]], dtype=torch.float64))


def test_norm_understands_numpys_names():
    x = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
    assert torch.linalg.norm(x, axis=1).tolist() == [5.0, 10.0]
    assert torch.linalg.norm(x, dim=1, keepdims=True).tolist() == [[5.0], [10.0]]


def test_overloads_are_not_chosen_by_arguments_that_go_by_name() -> None:
    x = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64)
    assert torch.ops.aten.linalg_matrix_rank(x, 1e-8).item() == 1
    expected = torch.linalg.pinv(x, rcond=1e-10)
    assert torch.allclose(torch.func.vmap(lambda v: torch.ops.aten.linalg_pinv(v, 1e-10))(x[None])[0], expected)


def test_slopes_of_small_norms_are_finite_in_half_precision():
    x = torch.full((3,), 1e-6, dtype=torch.float16, requires_grad=True)
    (slope,) = torch.autograd.grad(L.vector_norm(x), x)
    np.testing.assert_allclose(slope.tolist(), [3**-0.5] * 3, rtol=0.2)
    x = torch.ones(2, 3, dtype=torch.float16, requires_grad=True)
    (slope,) = torch.autograd.grad(torch.pairwise_distance(x, x).sum(), x)
    assert slope.tolist() == [[0.0] * 3] * 2


def test_the_gradient_of_a_trace_is_zero_beside_the_diagonal_whatever_it_is():
    x = torch.randn(2, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(x.trace(), x, torch.tensor(float("inf")))
    assert slope.tolist() == [[float("inf"), 0, 0], [0, float("inf"), 0]]


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_principal_components_of_a_sparse_matrix_are_those_of_the_dense_one(layout):
    dense = torch.rand(20, 10, dtype=torch.float64) * (torch.rand(20, 10) > 0.5)
    parts = []
    for matrix in (dense, dense.to_sparse(layout=getattr(torch, layout))):
        torch.manual_seed(1)
        u, s, v = torch.pca_lowrank(matrix, q=10)
        parts.append((u * s) @ v.T)
    torch.testing.assert_close(parts[1], dense - dense.mean(0))
    torch.testing.assert_close(*parts)
    with pytest.raises(ValueError, match="2-dimensional"):
        torch.pca_lowrank(torch.ones(2, 3, 3).to_sparse(), q=2)


@pytest.mark.parametrize("own, given", [(torch.bfloat16, torch.float16), (torch.float16, torch.bfloat16)])
def test_halves_are_not_read_as_each_other(own, given):
    x = torch.ones(3, dtype=own)
    with pytest.raises(RuntimeError, match="should be convertible without narrowing to the specified dtype"):
        torch.linalg.vector_norm(x, dtype=given)
    assert torch.linalg.vector_norm(x, dtype=own).dtype is own
