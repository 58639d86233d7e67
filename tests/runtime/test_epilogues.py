"""Products with a bias: what cuBLASLt is told, by a library in C that computes what it is told and notes how often it is asked."""

from __future__ import annotations

import ctypes
import shutil

import numpy as np
import pytest

from pullback.runtime import epilogues
from pullback.runtime.build import NoCompiler, build

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None and shutil.which("cc") is None, reason="needs a C compiler")

LIBRARY = r"""
#include <stdlib.h>
#include <string.h>
struct description { int sums, first, second, epilogue; const float *bias; };
struct matrix { int kind; long rows, columns, apart; };
int asked, alive, refuses;
int cublasLtMatmulDescCreate(void **d, int sums, int scale) { struct description *x = calloc(1, sizeof *x); x->sums = sums; *d = x; return scale; }
int cublasLtMatmulDescSetAttribute(void *d, int which, const void *value, unsigned long size) {
    struct description *x = d;
    switch (which) {
    case 3: x->first = *(const int *)value; return size != 4;
    case 4: x->second = *(const int *)value; return size != 4;
    case 7: x->epilogue = *(const int *)value; return size != 4;
    case 8: x->bias = *(const float *const *)value; return size != 8;
    }
    return 7;
}
int cublasLtMatrixLayoutCreate(void **l, int kind, unsigned long rows, unsigned long columns, long apart) {
    struct matrix *x = malloc(sizeof *x); *x = (struct matrix){kind, (long)rows, (long)columns, apart}; *l = x; return apart < (long)rows;
}
int cublasLtMatmulPreferenceCreate(void **p) { *p = malloc(1); alive++; return 0; }
int cublasLtMatmulPreferenceSetAttribute(void *p, int which, const void *value, unsigned long size) { return which == 1 ? size != 8 : which < 5 || which > 8; }
int cublasLtMatmulPreferenceDestroy(void *p) { free(p); alive--; return 0; }
int cublasLtMatmulAlgoGetHeuristic(void *h, void *d, void *a, void *b, void *c, void *e, void *p, int most, unsigned long *choice, int *found) {
    asked++; choice[8] = 32; ((int *)(choice + 9))[0] = 0; *found = !refuses; return 0;
}
static float at(const struct matrix *m, const float *x, int turned, long r, long c) { return turned ? x[r * m->apart + c] : x[c * m->apart + r]; }
int cublasLtMatmul(void *h, void *d, const void *alpha, const float *a, const struct matrix *la, const float *b, const struct matrix *lb, const void *beta,
    const float *c, const void *lc, float *result, const struct matrix *lr, const void *algorithm, void *room, unsigned long bytes, void *stream) {
    const struct description *x = d;
    if (x->epilogue != 4 || bytes != 32) return 14;
    const long inner = x->first ? la->rows : la->columns;
    for (long i = 0; i < lr->rows; i++) for (long j = 0; j < lr->columns; j++) {
        float sum = x->bias[i];
        for (long k = 0; k < inner; k++) sum += at(la, a, x->first, i, k) * at(lb, b, x->second, k, j);
        result[j * lr->apart + i] = sum;
    }
    return 0;
}
"""
POINTER, NUMBER = ctypes.c_void_p, ctypes.c_long
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER, NUMBER, *[POINTER] * 5, ctypes.c_ulong, POINTER)


@pytest.fixture(scope="module")
def library():
    return ctypes.CDLL(str(build(LIBRARY)))


@pytest.fixture
def biased(library):
    return FUNCTION(epilogues.biased(library._name))


def call(function, a, b, bias, ta, tb, m, n, k):
    c = np.full((m, n), 7, np.float32)
    entry = np.array(
        [3, ta, tb, m, n, k, a.shape[1], b.shape[1], n, 0, 0, 0, 1, 0, 0, 2, 0, 0, 4, 4, 4, 3, 0], np.int64
    )
    places = [x.ctypes.data for x in (a, b, c, bias)]
    return function(1, entry.ctypes.data, 0, *places, None, 32, None), c


@pytest.mark.parametrize("ta", [0, 1])
@pytest.mark.parametrize("tb", [0, 1])
def test_layouts(library, biased, ta, tb):
    random = np.random.default_rng(0).standard_normal
    m, n, k = 8, 16, 24
    a, b = (random(s).astype(np.float32) for s in ((k, m) if ta else (m, k), (n, k) if tb else (k, n)))
    bias = random(n).astype(np.float32)
    wrong, c = call(biased, a, b, bias, ta, tb, m, n, k)
    want = (a.T if ta else a) @ (b.T if tb else b) + bias
    assert not wrong and np.allclose(c, want, atol=1e-4)
    before = ctypes.c_int.in_dll(library, "asked").value
    again = call(biased, a, b, bias + 1, ta, tb, m, n, k)[1]  # the same product: nothing is worked out again
    assert np.allclose(again, want + 1, atol=1e-4) and ctypes.c_int.in_dll(library, "asked").value == before
    assert ctypes.c_int.in_dll(library, "alive").value == 0


def test_what_has_no_algorithm_is_an_error_each_time(library, biased):
    x, refuses = np.ones((40, 40), np.float32), ctypes.c_int.in_dll(library, "refuses")
    refuses.value = 1
    assert [call(biased, x, x, x[0], 0, 0, 40, 40, 40)[0] for _ in range(2)] == [15, 15]
    refuses.value = 0
    assert call(biased, x, x, x[0], 0, 0, 40, 40, 40)[0] == 0


def test_a_library_without_the_functions_is_named(tmp_path):
    with pytest.raises(NoCompiler, match="cuBLASLt cannot be called"):
        epilogues.biased(str(tmp_path / "nothing.so"))
    with pytest.raises(NoCompiler, match="cublasLtMatmulDescCreate"):
        epilogues.biased(str(build("int nothing;")))
