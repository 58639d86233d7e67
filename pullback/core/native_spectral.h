/* Eigenvalues, singular values, ranks and least squares of stacks of matrices: read once, by _linalg.c, which says what goes in and out. */

/* ---- eigenvalues and singular values */
/* Turn the eigenvectors at `vectors` as `signs` says; nothing where there is no choice to remake. `at` holds the matrix, and is used up. */
static void turn(const Array *a, char *at, char *vectors, int lower, char *room) {
    int n = rows_in(a), info = 0, work = BLOCK * n, kept = lower ? 0 : n - 1, size = size_of(a);
    double d[ITERATION_ORDER], e[ITERATION_ORDER] = {0}, z[ITERATION_ORDER] = {0}, most = 0;
    char *diagonal = room, *beside = diagonal + n * size, *tau = beside + n * size, *rest = tau + n * size;
    if (n <= 2 || n > ITERATION_ORDER) return;
    ROUTINE(SYTRD, a)(lower ? "L" : "U", &n, at, &n, diagonal, beside, tau, rest, &work, &info);
    for (int i = 0; i < n; i++) {
        d[i] = size == 4 ? (double)((float *)diagonal)[i] : ((double *)diagonal)[i];
        if (i < n - 1) e[i] = size == 4 ? (double)((float *)beside)[i] : ((double *)beside)[i];
        double larger = fabs(d[i]) > fabs(e[i]) ? fabs(d[i]) : fabs(e[i]);
        most = larger != larger || most != most ? NAN : larger > most ? larger : most;
    }
    if (!(most > 0 && most < INFINITY)) return;
    z[kept] = 1;
    tridiagonal_row(d, e, z, n, size == 4 ? 0x1p-24 : 0x1p-53);
    for (int c = 0; c < n; c++) {
        float *v4 = (float *)vectors + c * n;
        double *v8 = (double *)vectors + c * n, found = size == 4 ? (double)v4[kept] : v8[kept];
        for (int i = 0; z[c] * found < 0 && i < n; i++)
            if (size == 4)
                v4[i] = -v4[i];
            else
                v8[i] = -v8[i];
    }
}

static PyObject *py_eigh(PyObject *self, PyObject *args) { /* A, UPLO, compute_v */
    Array *a = stack_of(argument(args, 0));
    PyObject *side = argument(args, 1);
    NONE_UNLESS(is_ready() && is_square(a) && PyBool_Check(argument(args, 2)) && PyUnicode_Check(side));
    int upper = !PyUnicode_CompareWithASCIIString(side, "U"), n = rows_in(a), size = size_of(a), failed = 0;
    NONE_UNLESS(upper || !PyUnicode_CompareWithASCIIString(side, "L"));
    int work = 1 + 6 * n + 2 * n * n + BLOCK * n, whole = 3 + 5 * n;
    char *room = PyMem_Malloc((size_t)(work + 3 * n + n * n) * 8 + (size_t)whole * sizeof(int));
    if (!room) return PyErr_NoMemory();
    char *spare = room + (size_t)(work + 3 * n) * 8;
    int *integers = (int *)(spare + (size_t)(n * n) * 8);
    const int vectors = argument(args, 2) == Py_True;
    Py_ssize_t none = 0;
    Array *out[2] = {new_rows(a, n, kind(a)), vectors ? new_stack(a, n, n, 1) : new_array(1, &none, kind(a))};
    for (Py_ssize_t i = 0; out[0] && out[1] && i < many_in(a); i++) {
        char *at = vectors ? out[1]->data + i * n * n * size : spare;
        int info = 0;
        load(a, i, at);
        ROUTINE(SYEVD, a)(vectors ? "V" : "N", upper ? "U" : "L", &n, at, &n, out[0]->data + i * n * size, room, &work, integers, &whole, &info);
        failed |= info != 0;
        if (!vectors || many_in(a) > SIGNS_STACK) continue;
        load(a, i, spare);
        turn(a, spare, at, !upper, room);
    }
    PyMem_Free(room);
    return results_of(failed, 2, out);
}

static PyObject *py_eigvalsh(PyObject *self, PyObject *args) { /* A, UPLO */
    PyObject *given = PyTuple_Pack(3, argument(args, 0), argument(args, 1), Py_False), *both = given ? py_eigh(self, given) : NULL;
    Py_XDECREF(given);
    return only(both);
}

static int all_finite(const char *at, Py_ssize_t n, int size) {
    double sum = 0;
    for (Py_ssize_t i = 0; i < n; i++) sum += size == 4 ? (double)((const float *)at)[i] * 0 : ((const double *)at)[i] * 0;
    return sum == 0;
}

/* Eigenvalues and columns of eigenvectors as complex numbers, of which LAPACK has a conjugate pair in two columns of reals. */
#define JOINED(T)                                                                              \
    {                                                                                          \
        const T *re = (const T *)real, *im = re + n, *v = im + n;                              \
        T *to = (T *)values, *out = (T *)vectors;                                              \
        for (int i = 0; i < n; i++) to[2 * i] = re[i], to[2 * i + 1] = im[i];                  \
        for (int c = 0; out && c < n; c++) {                                                   \
            const int pair = im[c] > 0 && c + 1 < n;                                           \
            for (int i = 0; i < n; i++) {                                                      \
                T *at = out + 2 * ((i64)c * n + i), part = pair ? v[(c + 1) * n + i] : 0;      \
                at[0] = v[c * n + i], at[1] = part;                                            \
                if (pair) at[2 * n] = v[c * n + i], at[2 * n + 1] = -part;                     \
            }                                                                                  \
            c += pair;                                                                         \
        }                                                                                      \
    }

static Array *complex_stack(const Array *a, int n) { /* column-major */
    Py_ssize_t shape[MOST_DIMS], strides[MOST_DIMS], size = 2 * size_of(a), step = (Py_ssize_t)n * n * size;
    memcpy(shape, a->shape, sizeof(*shape) * (size_t)a->nd);
    strides[a->nd - 2] = size, strides[a->nd - 1] = n * size;
    for (int d = a->nd - 3; d >= 0; step *= shape[d--]) strides[d] = step;
    return (Array *)array_new(array_type, a->nd, shape, number_of[kind(a) == F32 ? C64 : C128], strides, NULL, 0, 0, NULL);
}

static PyObject *eigenpairs(PyObject *args, int with_vectors) {
    Array *a = stack_of(argument(args, 0));
    NONE_UNLESS(is_ready() && is_square(a));
    int n = rows_in(a), size = size_of(a), work = (n > BLOCK ? 4 + BLOCK : 4) * n, one = 1, failed = 0;
    char *room = PyMem_Malloc((size_t)(2 * n * n + 2 * n + work) * 8);
    if (!room) return PyErr_NoMemory();
    char *real = room + (size_t)(n * n) * 8, *imaginary = real + n * size, *found = imaginary + n * size, *rest = found + n * n * size;
    Array *out[2] = {new_rows(a, n, kind(a) == F32 ? C64 : C128), with_vectors ? complex_stack(a, n) : (Array *)Py_NewRef(a)};
    for (Py_ssize_t i = 0; out[0] && out[1] && !failed && i < many_in(a); i++) {
        int info = 0;
        load(a, i, room);
        failed = !all_finite(room, (Py_ssize_t)n * n, size);
        if (failed) break;
        ROUTINE(GEEV, a)("N", with_vectors ? "V" : "N", &n, room, &n, real, imaginary, NULL, &one, found, &n, rest, &work, &info);
        failed = info != 0;
        char *values = out[0]->data + i * n * 2 * size, *vectors = with_vectors ? out[1]->data + i * n * n * 2 * size : NULL;
        if (size == 4)
            JOINED(float)
        else
            JOINED(double)
    }
    PyMem_Free(room);
    if (with_vectors) return results_of(failed, 2, out);
    Py_XDECREF(out[1]);
    return only(results_of(failed, 1, out));
}

static PyObject *py_eig(PyObject *self, PyObject *args) { return eigenpairs(args, 1); }
static PyObject *py_eigvals(PyObject *self, PyObject *args) { return eigenpairs(args, 0); }

/* ---- least squares: matrices that are not taller than wide, by the driver that is used unless another is asked for */
static PyObject *py_lstsq(PyObject *self, PyObject *args) { /* A, B, rcond, driver */
    Array *a = stack_of(argument(args, 0)), *b = stack_of(argument(args, 1));
    PyObject *driver = argument(args, 3);
    NONE_UNLESS(is_ready() && a && b && same_stack(a, b) && rows_in(a) == rows_in(b) && rows_in(a) <= columns_in(a));
    NONE_UNLESS(driver == Py_None || (PyUnicode_Check(driver) && !PyUnicode_CompareWithASCIIString(driver, "gelsy")));
    int m = rows_in(a), n = columns_in(a), k = columns_in(b), size = size_of(a), failed = 0;
    double limit = (kind(a) == F32 ? 0x1p-23 : 0x1p-52) * n;
    NONE_UNLESS(argument(args, 2) == Py_None || real_of(argument(args, 2), &limit));
    float narrow = (float)limit;
    const int short_side = m, most = short_side + 2 * n + BLOCK * (n + 1), other = 2 * short_side + BLOCK * k;
    int work = most > other ? most : other;
    char *room = PyMem_Malloc((size_t)(m * n + m * k + work) * 8 + (size_t)n * sizeof(int));
    if (!room) return PyErr_NoMemory();
    char *given = room + (size_t)(m * n) * 8, *rest = given + (size_t)(m * k) * 8;
    int *pivots = (int *)(rest + (size_t)work * 8);
    Py_ssize_t none = 0;
    Array *out[4] = {new_stack(a, n, k, 1), new_array(1, &none, kind(a)), new_rows(a, -1, I64), new_array(1, &none, kind(a))};
    for (Py_ssize_t i = 0; out[0] && out[1] && out[2] && out[3] && !failed && i < many_in(a); i++) {
        char *x = out[0]->data + i * n * k * size;
        int info = 0, rank = 0;
        load(a, i, room);
        load(b, i, given);
        memset(x, 0, (size_t)(n * k * size));
        for (int c = 0; c < k; c++) memcpy(x + c * n * size, given + c * m * size, (size_t)(m * size));
        memset(pivots, 0, (size_t)n * sizeof *pivots);
        ROUTINE(GELSY, a)(&m, &n, &k, room, &m, x, &n, pivots, size == 4 ? (void *)&narrow : (void *)&limit, &rank, rest, &work, &info);
        failed = info != 0;
        ((i64 *)out[2]->data)[i] = rank;
    }
    PyMem_Free(room);
    return results_of(failed, 4, out);
}

static PyObject *py_svd(PyObject *self, PyObject *args) { /* A, full_matrices, compute_uv, driver */
    Array *a = stack_of(argument(args, 0));
    NONE_UNLESS(is_ready() && a && argument(args, 3) == Py_None);
    int m = rows_in(a), n = columns_in(a), count = m < n ? m : n, size = size_of(a), failed = 0;
    int full = argument(args, 1) == Py_True, vectors = argument(args, 2) == Py_True, wide = full ? m : count, high = full ? n : count;
    NONE_UNLESS(!vectors || !(n > m && m > 1 && n >= (int)(m * 11.0 / 6))); /* whose vectors are chosen otherwise */
    int most = m > n ? m : n, work = 4 * count * count + 7 * count + 3 * most + BLOCK * (m + n) + 4 * count * most;
    char *room = PyMem_Malloc((size_t)(m * n + work) * 8 + 8 * (size_t)count * sizeof(int));
    if (!room) return PyErr_NoMemory();
    char *rest = room + (size_t)(m * n) * 8;
    int *integers = (int *)(rest + (size_t)work * 8);
    Py_ssize_t none = 0;
    Array *out[3] = {vectors ? new_stack(a, m, wide, 1) : new_array(1, &none, kind(a)), new_rows(a, count, kind(a)),
                     vectors ? new_stack(a, high, n, 1) : new_array(1, &none, kind(a))};
    for (Py_ssize_t i = 0; out[0] && out[1] && out[2] && !failed && i < many_in(a); i++) {
        char *u = vectors ? out[0]->data + i * m * wide * size : room, *vh = vectors ? out[2]->data + i * high * n * size : room;
        int info = 0;
        load(a, i, room);
        failed = !all_finite(room, (Py_ssize_t)m * n, size);
        if (failed) break;
        ROUTINE(GESDD, a)(!vectors ? "N" : full ? "A" : "S", &m, &n, room, &m, out[1]->data + i * count * size, u, &m, vh, &high, rest, &work, integers,
                          &info);
        failed = info != 0;
    }
    PyMem_Free(room);
    return results_of(failed, 3, out);
}

/* How many singular values of each matrix are above the limit that is used where none is given. */
#define COUNT_ABOVE(T)                                                                        \
    for (Py_ssize_t i = 0; i < many; i++) {                                                   \
        const T *v = (const T *)values->data + i * count, limit = (T)default_limit * v[0];    \
        i64 above = 0;                                                                        \
        for (Py_ssize_t j = 0; j < count; j++) above += v[j] > limit;                         \
        ((i64 *)r->data)[i] = above;                                                          \
        finite &= v[0] - v[0] == 0;                                                           \
    }

static PyObject *py_matrix_rank(PyObject *self, PyObject *args) { /* A, atol, rtol, hermitian */
    Array *a = stack_of(argument(args, 0));
    NONE_UNLESS(a && argument(args, 1) == Py_None && argument(args, 2) == Py_None && argument(args, 3) == Py_False);
    PyObject *given = PyTuple_Pack(4, argument(args, 0), Py_False, Py_False, Py_None), *found = given ? py_svd(self, given) : NULL;
    Py_XDECREF(given);
    if (!found || found == Py_None) return found;
    const int longer = rows_in(a) > columns_in(a) ? rows_in(a) : columns_in(a);
    const double default_limit = (kind(a) == F32 ? 0x1p-23 : 0x1p-52) * longer;
    Array *values = array_of(PyTuple_GET_ITEM(found, 1)), *r = new_rows(a, -1, I64);
    const Py_ssize_t many = many_in(a), count = count_of(values) / many;
    int finite = 1;
    if (r && kind(a) == F32) {
        COUNT_ABOVE(float)
    } else if (r) {
        COUNT_ABOVE(double)
    }
    Py_DECREF(found);
    if (r && !finite) {
        Py_DECREF(r);
        Py_RETURN_NONE;
    }
    return tensor_of(r);
}
