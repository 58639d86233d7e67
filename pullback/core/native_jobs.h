/* What a thread does with a range of rows, and how work is cut for threads. A template, read after native_pool.h. */

typedef struct {
    const T *x, *w, *b, *g;
    T *out, *mean, *rstd, *dw, *db;
    Py_ssize_t outer, n, inner, step;
    int kind;
    double eps, momentum;
} N(Job);

static void N(softmax_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(softmax)(j->x + first * j->n * j->inner, j->out + first * j->n * j->inner, last - first, j->n, j->inner, j->kind);
}

static void N(layer_norm_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(layer_norm)(j->x + first * j->n, j->out + first * j->n, j->w, j->b, j->mean + first, j->rstd + first, last - first, j->n, j->eps);
}

static void N(reduce_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(reduce)(j->x + first * j->n * j->inner, j->out + first * j->inner, j->kind, last - first, j->n, j->inner);
}

/* one of several results of a single row of results, each from a range of n */
static void N(partial)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(reduce)(j->x + first * j->inner, j->out + first / j->step * j->inner, j->kind, 1, last - first, j->inner);
}

static void N(softmax_backward_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    Py_ssize_t at = first * j->n * j->inner;
    N(softmax_backward)(j->g + at, j->x + at, j->out + at, last - first, j->n, j->inner, j->kind);
}

static void N(layer_norm_backward_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    Py_ssize_t at = first * j->n;
    N(layer_norm_backward)(j->g + at, j->x + at, j->w, j->mean + first, j->rstd + first, j->out + at, last - first, j->n);
}

static void N(parameter_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(parameter_sums)(j->g, j->x, j->mean, j->rstd, j->dw, j->db, j->outer, j->n, first, last);
}

static void N(blocks_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(parameter_blocks)(j->g, j->x, j->mean, j->rstd, j->dw, j->db, j->outer, j->n, first, last);
}

static void N(cumsum_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    Py_ssize_t at = first * j->n * j->inner;
    N(cumsum)(j->x + at, j->out + at, last - first, j->n, j->inner);
}

static void N(softmax_backward_all)(N(Job) *j, int threads) { share(N(softmax_backward_part), j, j->outer, rows_of(j->n * j->inner), threads); }

/* By blocks of rows, which lie with the threads that wrote them; by columns where that is one block. The sums are the same to the bit. */
static void N(parameters_all)(N(Job) *j, int threads) {
    Py_ssize_t blocks = (j->outer + ROWS - 1) / ROWS;
    T *room = blocks > 1 ? malloc(2 * sizeof(T) * blocks * j->n) : NULL;
    if (!room) {
        share(N(parameter_part), j, j->n, COLUMNS, threads);
        return;
    }
    N(Job) part = *j;
    part.dw = room, part.db = room + blocks * j->n;
    share(N(blocks_part), &part, blocks, rows_of(j->n * ROWS), threads);
    N(total_of_blocks)(part.dw, j->dw, blocks, j->n);
    N(total_of_blocks)(part.db, j->db, blocks, j->n);
    free(room);
}

static void N(layer_norm_backward_all)(N(Job) *j, int threads) {
    if (j->out)
        share(N(layer_norm_backward_part), j, j->outer, rows_of(j->n), threads);
    if (j->dw)
        N(parameters_all)(j, threads);
}

/* channels: w is the weight or scale, b the shift, dw and db the sums; outer, n, inner are (outer, channels, inner) */
static void N(moments_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(channel_moments)(j->x, j->mean, j->rstd, j->outer, j->n, j->inner, first, last);
}

static void N(totals_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(channel_totals)(j->x, j->out, j->outer, j->n, j->inner, first, last);
}

static void N(scale_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(channel_scale)(j->x, j->out, j->mean, j->w, j->b, j->n, j->inner, first, last);
}

static void N(sums_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(channel_sums)(j->g, j->x, j->mean, j->rstd, j->db, j->dw, j->outer, j->n, j->inner, first, last);
}

static void N(gradient_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(channel_gradient)(j->g, j->x, j->out, j->mean, j->rstd, j->w, j->db, j->dw, (double)j->outer * j->inner, j->n, j->inner, first, last);
}

static void N(channel_backward_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(channel_backward)(j->g, j->x, j->out, j->mean, j->rstd, j->w, j->db, j->dw, j->outer, j->n, j->inner, first, last);
}

/* dw and db are the running statistics */
static void N(batch_norm_part)(void *data, Py_ssize_t first, Py_ssize_t last) {
    N(Job) *j = data;
    N(batch_norm)(j->x, j->out, j->w, j->b, j->dw, j->db, j->mean, j->rstd, j->momentum, j->eps, j->outer, j->n, j->inner, first, last);
}

static Py_ssize_t N(channel_step)(const N(Job) *j) { return j->inner > 1 ? rows_of(j->outer * j->inner) : COLUMNS; }

static void N(moments_all)(N(Job) *j, int threads) { share(N(moments_part), j, j->n, N(channel_step)(j), threads); }

static void N(totals_all)(N(Job) *j, int threads) { share(N(totals_part), j, j->n, N(channel_step)(j), threads); }

static void N(scale_all)(N(Job) *j, int threads) {
    int rows = j->inner > 1;
    share(N(scale_part), j, rows ? j->outer * j->n : j->outer, rows_of(rows ? j->inner : j->n), threads);
}

/* How many channels a thread takes at a time: some for each, however small they are. */
static Py_ssize_t N(few_channels)(const N(Job) *j) {
    Py_ssize_t most = rows_of(j->outer * j->inner), few = (j->n + 7) / 8;
    return few < most ? few : most;
}

static void N(batch_norm_all)(N(Job) *j, int threads) { share(N(batch_norm_part), j, j->n, N(few_channels)(j), threads); }

static void N(channels_backward_all)(N(Job) *j, int threads) {
    int rows = j->inner > 1;
    if (rows && j->out) {
        share(N(channel_backward_part), j, j->n, N(few_channels)(j), threads);
        return;
    }
    share(N(sums_part), j, j->n, N(channel_step)(j), threads);
    if (j->out)
        share(N(gradient_part), j, rows ? j->outer * j->n : j->outer, rows_of(rows ? j->inner : j->n), threads);
}

static void N(cumsum_all)(N(Job) *j, int threads) { share(N(cumsum_part), j, j->outer, rows_of(j->n * j->inner), threads); }

static void N(softmax_all)(N(Job) *j, int threads) { share(N(softmax_part), j, j->outer, rows_of(j->n * j->inner), threads); }

static void N(layer_norm_all)(N(Job) *j, int threads) { share(N(layer_norm_part), j, j->outer, rows_of(j->n), threads); }

static void N(reduce_all)(N(Job) *j, int threads) {
    Py_ssize_t step = j->inner >= PART ? 1 : PART / (j->inner > 0 ? j->inner : 1), parts = (j->n + step - 1) / step;
    T *results = j->outer == 1 && parts > 1 ? malloc(sizeof(T) * parts * j->inner) : NULL;
    if (!results) {
        share(N(reduce_part), j, j->outer, rows_of(j->n * j->inner), threads);
        return;
    }
    N(Job) part = *j;
    part.out = results, part.step = step, part.kind = j->kind == MEAN ? SUM : j->kind;
    share(N(partial), &part, j->n, step, threads);
    N(reduce)(results, j->out, part.kind, 1, parts, j->inner);
    for (Py_ssize_t i = 0; j->kind == MEAN && i < j->inner; i++)
        j->out[i] /= (T)j->n;
    free(results);
}
