"""Samples of contractions, linear algebra, distances, norms and Fourier transforms."""

from __future__ import annotations

import pullback as torch

from .make import Make, call


def _contractions(m: Make) -> dict:
    return {
        "mm": [call(m(2, 3), m(3, 4)), call(m(2, 0), m(0, 3))], "bmm": [call(m(2, 3, 4), m(2, 4, 2))],
        "addmm": [call(m(2, 4), m(2, 3), m(3, 4)), call(m(4), m(2, 3), m(3, 4), beta=2, alpha=0.5), call(m(2, 4), m(2, 3), m(3, 4), beta=0), call(m(4), m(2, 3), m(3, 4), alpha=0.5), call(m(4), m(2, 3), m(3, 4), beta=2, alpha=2)],
        "_addmm_activation": [call(m(2, 4), m(2, 3), m(3, 4)), call(m(4), m(2, 3), m(3, 4), beta=2, alpha=0.5, use_gelu=True)],
        "_native_multi_head_attention": [call(m(2, 3, 4), m(2, 3, 4), m(2, 3, 4), 4, 2, m(12, 4), m(12), m(4, 4), m(4)), call(m(2, 3, 4), m(2, 3, 4), m(2, 3, 4), 4, 2, m(12, 4), m(12), m(4, 4), m(4), average_attn_weights=False)],
        "baddbmm": [call(m(2, 3, 2), m(2, 3, 4), m(2, 4, 2), beta=2, alpha=3), call(m(1, 2), m(2, 3, 4), m(2, 4, 2))],
        "addbmm": [call(m(3, 2), m(2, 3, 4), m(2, 4, 2), beta=2, alpha=3)],
        "mv": [call(m(2, 3), m(3))], "addmv": [call(m(2), m(2, 3), m(3), beta=2, alpha=3), call(m(), m(2, 3), m(3))],
        "dot": [call(m(3), m(3))], "vdot": [call(m(3), m(3))], "addr": [call(m(2, 3), m(2), m(3), beta=2, alpha=3), call(m(2, 3), m(2), m(3), beta=0.5, alpha=1.5)],
        "matmul": [call(m(2, 3), m(3, 4)), call(m(3), m(3)), call(m(2, 3), m(3)), call(m(3), m(3, 2)), call(m(2, 1, 2, 3), m(3, 3, 2)), call(m(2, 2, 3), m(3))],
        "linear": [call(m(2, 3), m(4, 3)), call(m(2, 3), m(4, 3), m(4)), call(m(2, 2, 3), m(4, 3), m(4)), call(m(3), m(4, 3), m(4)), call(m(3), m(3))],
        "outer": [call(m(2), m(3))], "ger": [call(m(2), m(3))], "kron": [call(m(2, 3), m(3, 2)), call(m(2), m(2, 3))],
        "_kron_matrices": [call(m(2, 3), m(3, 2)), call(m(1, 2), m(2, 1))],
        "inner": [call(m(2, 3), m(4, 3)), call(m(3), m(3)), call(m(), m(2))], "cross": [call(m(2, 3), m(2, 3)), call(m(3, 2), m(3, 2))],
        "tensordot": [call(m(2, 3, 4), m(4, 3, 2), (1, 2), (1, 0)), call(m(2, 3), m(3, 2), (1,), (0,))],
        "einsum": [call("ij,jk->ik", (m(2, 3), m(3, 4))), call("bij,bjk,k", (m(2, 3, 2), m(2, 2, 4), m(4))), call("ii->i", (m(3, 3),)), call("...i,i->...", (m(2, 3), m(3)))],
        "bilinear": [call(m(2, 3), m(2, 4), m(5, 3, 4), m(5)), call(m(2, 3), m(2, 4), m(5, 3, 4))],
        "linalg_vecdot": [call(m(2, 3), m(2, 3)), call(m(2, 3), m(2, 3), dim=0)], "linalg_matmul": [call(m(2, 3), m(3, 2))],
        "linalg_multi_dot": [call((m(2, 3), m(3, 4), m(4, 2))), call((m(3), m(3, 4), m(4)))],
        "linalg_cross": [call(m(2, 3), m(2, 3)), call(m(3, 2), m(3, 1), dim=0)], "trace": [call(m(3, 4)), call(m(3, 2))],
        "linalg_vander": [call(m(3)), call(m(2, 3), N=4)],
    }  # fmt: skip


def _solvers(m: Make) -> dict:
    lu = lambda: torch.linalg.lu_factor(m.square(3))
    chol = lambda upper=False: torch.linalg.cholesky(m.definite(3), upper=upper).detach()
    tri = lambda: m.square(3).tril()
    ldl = lambda hermitian: torch.linalg.ldl_factor(
        m.definite(3) if hermitian else (lambda a: a + a.mT)(m.square(3)), hermitian=hermitian
    )
    return {
        "linalg_solve_triangular": [call(tri(), m(3, 2), upper=False), call(tri().mT, m(3, 2), upper=True), call(tri(), m(2, 3), upper=False, left=False), call(tri(), m(3, 2), upper=False, unitriangular=True), call(m.square(2, 3).tril(), m(3, 2), upper=False)],
        "triangular_solve": [call(m(3, 2), tri().mT), call(m(3, 2), tri(), False, True)],
        **{n: [call(m.square(3), m(3, 2)), call(m.square(3), m(2, 3), left=False), call(m.square(2, 3), m(2, 3))] for n in ("_linalg_solve_ex", "linalg_solve_ex", "linalg_solve")},
        **{n: [call(m.square(3)), call(m.square(2, 3))] for n in ("linalg_inv_ex", "linalg_inv", "inverse", "linalg_det", "det", "_linalg_det", "_det_slope")},
        **{n: [call(m.square(3)), call(m.square(2, 3))] for n in ("_linalg_slogdet", "linalg_slogdet", "slogdet", "linalg_matrix_exp", "matrix_exp")},
        "logdet": [call(m.definite(3))],
        "linalg_lstsq": [
            call(m(4, 2), m(4, 3)), call(m(2, 4, 2), m(2, 4, 3)), call(m(4, 2), m(4, 3), driver="gels"),
        ],
        **{n: [call(m.definite(3)), call(m.definite(2, 3), upper=True)] for n in ("linalg_cholesky_ex", "cholesky", "linalg_cholesky")},
        "cholesky_inverse": [call(chol()), call(chol(True), True)], "cholesky_solve": [call(m(3, 2), chol()), call(m(3, 2), chol(True), True)],
        **{n: [call(m.square(3)), call(m.square(2, 3)), call(m(4, 2)), call(m(2, 4))] for n in ("linalg_lu_factor_ex", "linalg_lu_factor", "linalg_lu", "_lu_with_info")},
        "lu_unpack": [call(*lu()), call(*torch.linalg.lu_factor(m(4, 2))), call(*torch.linalg.lu_factor(m(2, 4)))],
        "linalg_lu_solve": [call(*lu(), m(3, 2)), call(*lu(), m(2, 3), left=False), call(*lu(), m(3, 2), adjoint=True)],
        "lu_solve": [call(m(3, 2), *lu())],
        "linalg_ldl_factor_ex": [call(m.definite(3), hermitian=True)], "linalg_ldl_factor": [call(m.definite(3), hermitian=True)],
        "linalg_ldl_solve": [call(*ldl(True), m(3, 2), hermitian=True), call(*ldl(False), m(3, 2))],
        "linalg_tensorinv": [call(m.square(6).reshape(2, 3, 6), 2)], "linalg_tensorsolve": [call(m.square(6).reshape(2, 3, 6), m(2, 3))],
        "linalg_matrix_power": [call(m.square(3), n) for n in (0, 1, 3, -2)], "matrix_power": [call(m.square(3), 2)],
        "linalg_pinv.atol_rtol_tensor": [
            call(m(4, 2)), call(m(2, 4)), call(m.definite(3), hermitian=True),
            call(m(4, 2), atol=torch.tensor(1e-10, dtype=torch.float64)),
        ],
        "linalg_pinv.atol_rtol_float": [call(m(4, 2)), call(m(2, 4), rtol=1e-10)],
        "linalg_pinv": [call(m(4, 2), 1e-10)], "linalg_pinv.rcond_tensor": [call(m(4, 2), torch.tensor(1e-10, dtype=torch.float64))], "pinverse": [call(m(4, 2))],
        "linalg_matrix_rank.atol_rtol_tensor": [call(m(4, 2))], "linalg_matrix_rank.atol_rtol_float": [call(m(4, 2)), call(m.definite(3), hermitian=True)],
        "linalg_matrix_rank": [call(m(4, 2), 1e-8)], "linalg_matrix_rank.tol_tensor": [call(m(4, 2), torch.tensor(1e-8, dtype=torch.float64))],
    }  # fmt: skip


def _spectra(m: Make) -> dict:
    reflectors = lambda: torch.geqrf(m(4, 3))
    return {
        "_linalg_svd": [call(m(4, 2)), call(m(2, 4)), call(m(2, 3, 3))],
        "linalg_svd": [call(m(4, 2), False), call(m(2, 3, 3))], "linalg_svdvals": [call(m(4, 2)), call(m(2, 3, 3))], "svd": [call(m(4, 2))],
        **{n: [call(m.spread(3)), call(m.spread(2, 3), "U")] for n in ("_linalg_eigh", "linalg_eigh", "linalg_eigvalsh")},
        **{n: [call(m.spread(3) + 0.2 * m(3, 3)), call(m.spread(2, 3))] for n in ("linalg_eig", "linalg_eigvals", "_linalg_eigvals")},
        "linalg_qr": [call(m(4, 2)), call(m(3, 3)), call(m(2, 4)), call(m(2, 3, 2)), call(m(3, 3), "complete")], "qr": [call(m(4, 2))],
        "geqrf": [call(m(4, 3))], "linalg_householder_product": [call(*reflectors()), call(m(2, 4, 2), m(2, 2))], "orgqr": [call(*reflectors())],
        "ormqr": [call(*reflectors(), m(4, 2)), call(*reflectors(), m(2, 4), False, True)],
    }  # fmt: skip


def _norms(m: Make) -> dict:
    orders = (2, 1, 3, 0, float("inf"), float("-inf"), 0.5)
    return {
        "linalg_vector_norm": [call(m(2, 3), o) for o in orders] + [call(m(2, 3, 4), 2, (0, 2)), call(m(2, 3), 3, (1,), True), call(m(), 2), call(m(2, 3), 1, (0,))],
        "linalg_matrix_norm": [call(m(3, 4), o) for o in (1, -1, 2, -2, float("inf"), float("-inf"))] + [call(m(2, 3, 4), 1, (0, 2), True)],
        "linalg_matrix_norm.str_ord": [call(m(3, 4)), call(m(3, 4), "nuc"), call(m(2, 3, 4), "fro", (0, 1), True)],
        "linalg_norm": [call(m(3, 4)), call(m(3, 4), 2), call(m(5), 3), call(m(3, 4), 1, (1,))], "linalg_norm.ord_str": [call(m(3, 4), "nuc"), call(m(3, 4), "fro")],
        "linalg_cond": [call(m.square(3)), call(m.square(3), 1), call(m.square(3), -2)], "linalg_cond.p_str": [call(m.square(3), "fro"), call(m.square(3), "nuc")],
        "norm.Scalar": [call(m(2, 3)), call(m(2, 3), 1)], "norm.ScalarOpt_dim": [call(m(2, 3), 2, (1,)), call(m(2, 3), 3, (0,), True)],
        "norm.ScalarOpt_dim_dtype": [call(m.real(2, 3).float(), 2, (1,), False, dtype=torch.float64)], "norm.ScalarOpt_dtype": [call(m.real(2, 3).float(), 2, dtype=torch.float64)],
        "native_norm": [call(m(2, 3))], "native_norm.ScalarOpt_dim_dtype": [call(m(2, 3), 2, (1,), False, None)],
        "frobenius_norm.dim": [call(m(2, 3), (0, 1)), call(m(2, 3), (1,), True)], "nuclear_norm": [call(m(2, 3))], "nuclear_norm.dim": [call(m(2, 3, 4), (0, 2))],
        "norm_except_dim": [call(m(2, 3, 4)), call(m(2, 3), 2, 1)], "renorm": [call(m(3, 4), 2, 0, 1.0), call(m(3, 4), 1, 1, 0.5), call(m(3, 4), 2, 0, 100.0)],
        "dist": [call(m(2, 3), m(2, 3)), call(m(2, 3), m(3), 1), call(m(2, 3), m(2, 3), 3)],
        "pairwise_distance": [call(m.real(2, 3), m.real(2, 3)), call(m.real(2, 3), m.real(2, 3), 1.0, 1e-6, True)],
        "cosine_similarity": [call(m.real(2, 3), m.real(2, 3)), call(m.real(2, 3), m.real(2, 3), 0)],
        "_cdist_forward": [call(m.real(3, 2), m.real(4, 2), p, c) for p, c in ((2.0, None), (1.0, None), (3.0, None), (0.5, None), (float("inf"), None), (2.0, 1), (2.0, 2))] + [call(m.real(2, 3, 2), m.real(4, 2), 2.0, None)],
        "_pdist_forward": [call(m.real(4, 3), p) for p in (2.0, 1.0, 3.0, float("inf"))],
        "_cdist_backward": [call(m.real(3, 4), a := m.real(3, 2), b := m.real(4, 2), p, torch.cdist(a, b, p)) for p in (2.0, 1.0)],
        "_pdist_backward": [call(m.real(6), a := m.real(4, 3), 2.0, torch.pdist(a, 2.0))],
    }  # fmt: skip


def _fourier(m: Make) -> dict:
    z = lambda *s: torch.complex(m.real(*s), m.real(*s))
    one, many, two = {}, {}, {}
    for n in ("fft", "ifft", "rfft", "ihfft", "irfft", "hfft"):
        x = z if n in ("irfft", "hfft") else m.real
        one[f"fft_{n}"] = [
            call(x(5)),
            call(x(2, 4), 3),
            call(x(4, 2), 6, 0),
            call(x(2, 5), None, -1, "ortho"),
            call(x(2, 4), None, 1, "forward"),
        ]
    for n in ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"):
        x = z if n in ("irfftn", "hfftn") else m.real
        many[f"fft_{n}"] = [call(x(3, 4)), call(x(2, 3, 4), (3, 5), (0, 2)), call(x(3, 4), None, (1,), "ortho")]
        two[f"fft_{n[:-1]}2"] = [call(x(3, 4)), call(x(2, 3, 4), (4, 3))]
    for n in ("fft_fft", "fft_ifft", "fft_fftn", "fft_ifftn"):
        (one if n in one else many)[n].append(call(z(3, 4)))
    return one | many | two | {
        "fft_fftshift": [call(m(3, 4)), call(m(3, 4), (1,))], "fft_ifftshift": [call(m(3, 4)), call(m(3, 4), (1,))],
        "_fft_c2c": [call(z(3, 4), (1,), 0, True), call(z(3, 4), (0, 1), 2, False)],
        "_fft_r2c": [call(m.real(3, 4), (1,), 0, True), call(m.real(3, 5), (0, 1), 1, True), call(m.real(3, 4), (1,), 0, False)],
        "_fft_c2r": [call(z(3, 3), (1,), 0, 4), call(z(3, 3), (0, 1), 2, 5)],
    }  # fmt: skip


def table(m: Make) -> dict:
    return _contractions(m) | _solvers(m) | _spectra(m) | _norms(m) | _fourier(m)
