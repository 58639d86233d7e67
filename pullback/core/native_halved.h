/* Ufuncs of bfloat16 and float16: a loop of single precision, of ours or of the array library's, over elements that are widened before it and
 * rounded after it, a piece that stays near at a time. Read by _elements.c.
 */
#define NPY_BOOL 0
#define NPY_FLOAT 11
#define NPY_HALF 23

typedef struct {
    const Kernel *kernel; /* NULL: the array library's loop */
    UfuncLoop loop;
    void *data;
    int inputs, numbers, is_half, is_condition; /* numbers come last of the inputs, in single precision */
} Halved;

typedef struct {
    const Halved *halved;
    char *const *at;
    const Py_ssize_t *steps;
    i64 n;
} HalvedJob;

/* The fields of a ufunc of the array library's that every version has. */
typedef struct {
    PyObject_HEAD
    int nin, nout, nargs, identity;
    UfuncLoop *functions;
    void *const *data;
    int ntypes, reserved;
    const char *name, *types;
} Ufunc;

/* `count` elements of an operand, in single precision: one for all where they do not step. */
static void widened_to(const Halved *h, int o, char *to, const char *from, Py_ssize_t step, i64 count) {
    u16 bits[BUFFER];
    if (o >= h->inputs - h->numbers) {
        gather(to, from, step, 4, count);
        return;
    }
    if (step != 2)
        for (i64 i = 0; i < count; i++) memcpy(bits + i, from + i * step, 2);
    char *pair[2] = {step == 2 ? (char *)from : (char *)bits, to};
    widen[h->is_half](count, pair);
}

static void rounded_from(const Halved *h, const char *from, char *to, Py_ssize_t step, i64 count) {
    u16 bits[BUFFER];
    if (h->is_condition) {
        for (i64 i = 0; i < count; i++) to[i * step] = from[i];
        return;
    }
    char *pair[2] = {(char *)from, step == 2 ? to : (char *)bits};
    narrow[h->is_half](count, pair);
    if (step != 2)
        for (i64 i = 0; i < count; i++) memcpy(to + i * step, bits + i, 2);
}

/* Numbers that do not step stay one number; of the array library's loops, all such operands do. */
static void halved_loop(const Halved *h, char *const *at, const Py_ssize_t *steps, i64 n) {
    char room[MOST_OPERANDS][BUFFER * 4] __attribute__((aligned(64))), *p[MOST_OPERANDS];
    Py_ssize_t given[MOST_OPERANDS];
    const Kernel *k = h->kernel;
    for (int o = 0; o <= h->inputs; o++) {
        p[o] = room[o];
        given[o] = o == h->inputs && h->is_condition ? 1 : 4;
        if (o == h->inputs || steps[o]) continue;
        const int one = !k || o >= k->arrays;
        widened_to(h, o, p[o], at[o], 0, one ? 1 : BUFFER);
        given[o] = one ? 0 : 4;
    }
    for (i64 first = 0; first < n; first += BUFFER) {
        const i64 count = n - first < BUFFER ? n - first : BUFFER, whole = (count + WHOLE - 1) / WHOLE * WHOLE;
        for (int o = 0; o < h->inputs; o++) {
            if (!steps[o]) continue;
            widened_to(h, o, p[o], at[o] + first * steps[o], steps[o], count);
            if (k) memset(p[o] + count * 4, 0, (size_t)(whole - count) * 4);
        }
        if (k)
            k->loop(whole, p);
        else {
            const Py_ssize_t dims[1] = {count};
            char *pointers[MOST_OPERANDS]; /* which the array library's loops may move on */
            memcpy(pointers, p, sizeof pointers);
            h->loop(pointers, dims, given, h->data);
        }
        rounded_from(h, p[h->inputs], at[h->inputs] + first * steps[h->inputs], steps[h->inputs], count);
    }
}

static void halved_part(long first, long last, void *const *arguments) {
    const HalvedJob *j = arguments[0];
    const i64 from = (i64)first * PIECE, until = (i64)last * PIECE < j->n ? (i64)last * PIECE : j->n;
    char *at[MOST_OPERANDS];
    for (int o = 0; o <= j->halved->inputs; o++) at[o] = j->at[o] + from * j->steps[o];
    halved_loop(j->halved, at, j->steps, until - from);
}

/* an inner loop of NumPy's */
static void halved_inner(char **at, const Py_ssize_t *dims, const Py_ssize_t *steps, void *data) {
    const Halved *h = data;
    HalvedJob job = {h, at, steps, dims[0]};
    int sizes[MOST_OPERANDS];
    for (int o = 0; o <= h->inputs; o++) sizes[o] = o == h->inputs ? 2 - h->is_condition : o >= h->inputs - h->numbers ? 4 : 2;
    /* numbers of ours that step from element to element: one at a time */
    for (int o = h->inputs - h->numbers; h->kernel && o < h->inputs; o++)
        if (steps[o] && job.n > 1) {
            for (i64 i = 0; i < job.n; i++) {
                char *each[MOST_OPERANDS];
                Py_ssize_t still[MOST_OPERANDS] = {0};
                for (int q = 0; q <= h->inputs; q++) each[q] = at[q] + i * steps[q];
                still[h->inputs] = sizes[h->inputs];
                halved_loop(h, each, still, 1);
            }
            return;
        }
    if (job.n < SHARED || !pool || threads_for_large < 2 || !stand_apart(h->inputs, h->inputs + 1, sizes, at, steps, job.n)) {
        halved_loop(h, at, steps, job.n);
        return;
    }
    void *const arguments[] = {&job};
    pool(halved_part, 0, (long)((job.n + PIECE - 1) / PIECE), QUIET / PIECE, arguments, threads_for_large);
}

/* The loop of single precision that an array library's ufunc has; 0 where it has none. */
static int single_loop(const Ufunc *u, Halved *h) {
    for (int t = 0; t < u->ntypes; t++) {
        const char *types = u->types + t * u->nargs;
        int fits = u->nout == 1 && u->nin < MOST_OPERANDS && (types[u->nin] == NPY_FLOAT || types[u->nin] == NPY_BOOL);
        for (int o = 0; o < u->nin; o++) fits = fits && types[o] == NPY_FLOAT;
        if (!fits) continue;
        *h = (Halved){NULL, u->functions[t], u->data ? u->data[t] : NULL, u->nin, 0, 0, types[u->nin] == NPY_BOOL};
        return h->loop != NULL;
    }
    return 0;
}

/* halved(a ufunc of the array library or the name of a loop, numbers, number of bfloat16): the ufunc of bfloat16 and float16, or None where
 * there is no such loop. The last `numbers` operands stay in single precision: those that the loop has are known. */
static PyObject *py_halved(PyObject *self, PyObject *args) {
    PyObject *source;
    int numbers, bfloat16;
    MakeUfunc make = (MakeUfunc)ufunc_function(1);
    RegisterLoop add = (RegisterLoop)ufunc_function(2);
    if (!PyArg_ParseTuple(args, "Oii", &source, &numbers, &bfloat16)) return NULL;
    Halved h;
    if (PyUnicode_Check(source)) {
        const Kernel *k = find(PyUnicode_AsUTF8(source), 'f');
        if (!k || k->results != 1 || strspn(k->types, "f") != strlen(k->types)) Py_RETURN_NONE;
        h = (Halved){k, NULL, NULL, k->arrays + k->numbers, k->numbers, 0, 0};
    } else if (!single_loop((const Ufunc *)source, &h))
        Py_RETURN_NONE;
    else
        h.numbers = numbers;
    if (!make || !add || h.numbers >= h.inputs) Py_RETURN_NONE;
    /* NumPy keeps these as long as the ufunc, which is never let go */
    Halved *both = malloc(2 * sizeof *both);
    char *types = malloc((size_t)h.inputs + 1);
    static UfuncLoop loops[1] = {halved_inner};
    void **data = malloc(sizeof *data);
    if (!both || !types || !data) return PyErr_NoMemory();
    int wanted[MOST_OPERANDS];
    for (int half = 0; half < 2; half++) both[half] = h, both[half].is_half = half;
    for (int o = 0; o <= h.inputs; o++) {
        const int is_number = o < h.inputs && o >= h.inputs - h.numbers;
        types[o] = is_number ? NPY_FLOAT : o == h.inputs && h.is_condition ? NPY_BOOL : NPY_HALF;
        wanted[o] = types[o] == NPY_HALF ? bfloat16 : types[o];
    }
    data[0] = &both[1];
    const char *name = h.kernel ? h.kernel->name : ((const Ufunc *)source)->name;
    PyObject *ufunc = make(loops, data, types, 1, h.inputs, 1, -1, name, "An element-wise operator in half precision.", 0);
    if (ufunc && add(ufunc, bfloat16, halved_inner, wanted, &both[0]) < 0) Py_CLEAR(ufunc);
    return ufunc;
}
