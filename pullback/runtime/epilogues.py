"""Products of single matrices to whose rows a bias is added before they are rounded, by cuBLASLt.

`biased(library)` is the address of a C function that `launcher` calls: in, the numbers of a plan's entry, addresses, a stream and memory
to work in; out, 0 or cuBLAS's number of an error. What cuBLASLt must be told of a product, and the algorithm it names first, are
worked out once for each thread and product.
"""

from __future__ import annotations

import ctypes
import functools

from .build import NoCompiler, build

FUNCTIONS = (
    "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate", "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulPreferenceDestroy", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul",
)  # fmt: skip

SOURCE = r"""
#include <string.h>
typedef long i64;
struct library {
    int (*describe)(void **, int, int);
    int (*set)(void *, int, const void *, unsigned long);
    int (*layout)(void **, int, unsigned long, unsigned long, i64);
    int (*preference)(void **);
    int (*prefer)(void *, int, const void *, unsigned long);
    int (*forget)(void *);
    int (*choose)(void *, void *, void *, void *, void *, void *, void *, int, void *, int *);
    int (*multiply)(void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *, void *, void *,
        void *, const void *, void *, unsigned long, void *);
} library;
struct choice { unsigned long algorithm[8], workspace; int status; float waves; int reserved[4]; };
enum { NUMBERS = 14, PLACES = 1024, NOT_SUPPORTED = 15 };
struct known { i64 key[NUMBERS]; void *how, *first, *second, *result; struct choice choice; };
static _Thread_local struct known table[PLACES];
enum { SUMS_IN_FLOAT = 68, SUMS_IN_TF32 = 77, FLOAT = 0, TRANSPOSED_FIRST = 3, TRANSPOSED_SECOND = 4, EPILOGUE = 7, BIAS_AT = 8, BIAS = 4 };
enum { MOST_WORKSPACE = 1, ALIGNED_FIRST = 5, ALIGNED = 16 };

/* cuBLAS counts by columns: it is told of the transposed product, c.T = b.T @ a.T, to whose columns a bias is added. */
static int prepare(struct known *k, void *handle, const i64 *e, i64 tf32, unsigned long bytes) {
    const int kind = (int)e[11], tb = (int)e[2], ta = (int)e[1], epilogue = BIAS;
    const i64 m = e[3], n = e[4], inner = e[5];
    const unsigned aligned = ALIGNED;
    void *preference = 0;
    int found = 0, wrong = library.describe(&k->how, kind == FLOAT && tf32 ? SUMS_IN_TF32 : SUMS_IN_FLOAT, FLOAT);
    if (!wrong) wrong = library.set(k->how, TRANSPOSED_FIRST, &tb, sizeof tb);
    if (!wrong) wrong = library.set(k->how, TRANSPOSED_SECOND, &ta, sizeof ta);
    if (!wrong) wrong = library.set(k->how, EPILOGUE, &epilogue, sizeof epilogue);
    if (!wrong) wrong = library.layout(&k->first, kind, (unsigned long)(tb ? inner : n), (unsigned long)(tb ? n : inner), e[7]);
    if (!wrong) wrong = library.layout(&k->second, kind, (unsigned long)(ta ? m : inner), (unsigned long)(ta ? inner : m), e[6]);
    if (!wrong) wrong = library.layout(&k->result, kind, (unsigned long)n, (unsigned long)m, e[8]);
    if (!wrong) wrong = library.preference(&preference);
    if (!wrong) wrong = library.prefer(preference, MOST_WORKSPACE, &bytes, sizeof bytes);
    for (int i = 0; i < 4 && !wrong; i++) wrong = library.prefer(preference, ALIGNED_FIRST + i, &aligned, sizeof aligned);
    if (!wrong) wrong = library.choose(handle, k->how, k->first, k->second, k->result, k->result, preference, 1, &k->choice, &found);
    if (preference) library.forget(preference);
    return wrong ? wrong : found ? k->choice.status : NOT_SUPPORTED;
}

int biased(void *handle, const i64 *e, i64 tf32, const void *a, const void *b, void *c, const void *bias, void *workspace, unsigned long bytes, void *stream) {
    static const float one = 1, zero = 0;
    const i64 key[NUMBERS] = {(i64)handle, e[1] + 1, e[2], e[3], e[4], e[5], e[6], e[7], e[8], e[11], tf32 != 0, (i64)bytes, 0, 0};
    unsigned long place = 1469598103934665603UL;
    for (int i = 0; i < NUMBERS; i++) place = (place ^ (unsigned long)key[i]) * 1099511628211UL;
    struct known *k = table + (place ^ place >> 29) % PLACES;
    if (memcmp(k->key, key, sizeof key)) { /* whatever was here before is given up: there are few products in a program */
        const int wrong = prepare(k, handle, e, tf32, bytes);
        if (wrong) { k->key[1] = 0; return wrong; }
        memcpy(k->key, key, sizeof key);
    }
    const int wrong = library.set(k->how, BIAS_AT, &bias, sizeof bias);
    return wrong ? wrong : library.multiply(handle, k->how, &one, b, k->first, a, k->second, &zero, c, k->result, c, k->result,
        k->choice.algorithm, workspace, k->choice.workspace, stream);
}
"""


@functools.cache
def biased(library: str) -> int:
    """The address of the function; `library` is the file of cuBLASLt."""
    try:
        found = ctypes.CDLL(library)
        addresses = [ctypes.cast(getattr(found, name), ctypes.c_void_p).value for name in FUNCTIONS]
    except (OSError, AttributeError) as error:
        raise NoCompiler(f"cuBLASLt cannot be called: {error}") from error
    built = ctypes.CDLL(str(build(SOURCE)))
    table = (ctypes.c_void_p * len(FUNCTIONS)).in_dll(built, "library")
    for k, address in enumerate(addresses):
        table[k] = address
    return ctypes.cast(built.biased, ctypes.c_void_p).value or 0
