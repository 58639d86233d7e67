/* Losses over classes, for one type of elements: read by _losses.c after native_losses.h, with the same names defined. */

/* Minus the scores of the wanted classes of (samples, classes, n), by weight: into `losses`, or (NULL) their sum and that of the weights. */
static void NAME(likelihoods)(const T *x, const i64 *wanted, i64 samples, i64 classes, i64 n, const T *weight, i64 ignored, T *losses, double *sum,
                              double *total) {
    double loss = 0, share = 0;
    for (i64 s = 0; s < samples; s++, x += classes * n, wanted += n)
        for (i64 k = 0; k < n; k++) {
            const i64 at = wanted[k];
            const int counts = at != ignored;
            const T w = !counts ? 0 : weight ? weight[at] : 1, found = counts ? -x[at * n + k] * w : 0;
            loss += (double)found;
            share += (double)w;
            if (losses) losses[s * n + k] = found;
        }
    *sum = loss;
    *total = share;
}

/* The gradient of that: `g` is one number, or one for each of the losses (`each`), divided by `total`. */
static void NAME(likelihood_slopes)(const T *g, int each, const i64 *wanted, i64 samples, i64 classes, i64 n, const T *weight, i64 ignored, int by_total,
                                    T total, T *y) {
    memset(y, 0, (size_t)(samples * classes * n) * sizeof(T));
    for (i64 s = 0; s < samples; s++, y += classes * n, wanted += n)
        for (i64 k = 0; k < n; k++) {
            const i64 at = wanted[k];
            if (at == ignored) continue;
            T slope = -(each ? g[s * n + k] : g[0]);
            if (weight) slope *= weight[at];
            y[at * n + k] = by_total ? slope / total : slope;
        }
}

/* ---- connectionist temporal classification
 * A sample has 2 length + 1 states: labels with blanks between, before and after. `room` holds five rows of states with two places beside. */
typedef struct {
    const T *x; /* log probabilities at the first time */
    i64 step, length, time, states;
    const i64 *labels;
    i64 blank;
    T *alpha; /* (time, count) */
    i64 count;
} NAME(Alignment);

static NAME(Alignment) NAME(alignment_of)(const Sequences *q, i64 i, T *alpha) {
    const T *x = (const T *)q->scores->data + i * q->classes;
    const i64 length = ((const i64 *)q->lengths->data)[i], time = ((const i64 *)q->steps->data)[i];
    return (NAME(Alignment)){x, q->samples * q->classes, length, time, 2 * length + 1, (const i64 *)q->labels->data + i * q->width, q->blank,
                             alpha + i * q->time * q->count, q->count};
}

static inline i64 NAME(label_of)(const NAME(Alignment) *a, i64 s) { return s % 2 ? a->labels[s / 2] : a->blank; }

/* Nothing where the state before last may be skipped to state s, minus infinity where not. */
static void NAME(skips)(const NAME(Alignment) *a, T *skip) {
    for (i64 s = 0; s < a->states; s++) {
        const int may = s > 1 && s % 2 && a->labels[s / 2] != a->labels[s / 2 - 1];
        skip[s] = may ? 0 : (T)-INFINITY;
    }
}

/* The logarithm of all ways of one step to each state: from itself (one), the next (two), and the one after where nothing forbids it. */
CLONED_WIDE static void NAME(reached)(const T *one, const T *two, const T *three, const T *skip, const T *emitted, T *y, i64 n) {
    for (i64 s = 0; s < n; s++) {
        const T a = one[s], b = two[s], c = three[s] + skip[s];
        T top = a > b ? a : b;
        top = c > top ? c : top;
        const T base = top > (T)-INFINITY ? top : 0;
        y[s] = base + LOGS(EXP(a - base) + EXP(b - base) + EXP(c - base)) + emitted[s];
    }
}

static void NAME(emissions)(const NAME(Alignment) *a, i64 t, T *emitted) {
    for (i64 s = 0; s < a->states; s++) emitted[s] = a->x[t * a->step + NAME(label_of)(a, s)];
}

/* Minus the log likelihood of one sample's labels, and the logarithms of all ways to each state at each time. */
static T NAME(likelihood)(const NAME(Alignment) *a, i64 all_time, T *room) {
    const i64 n = a->states, wide = n + 2;
    T *skip = room, *emitted = skip + wide, *now = emitted + wide, *next = now + wide;
    for (i64 k = 0; k < all_time * a->count; k++) a->alpha[k] = (T)-INFINITY;
    for (i64 k = 0; k < 2 * wide; k++) now[k] = (T)-INFINITY;
    NAME(skips)(a, skip);
    for (i64 t = 0; t < a->time; t++) {
        NAME(emissions)(a, t, emitted);
        if (t == 0)
            for (i64 s = 0; s < n && s < 2; s++) next[2 + s] = emitted[s];
        else
            NAME(reached)(now + 2, now + 1, now, skip, emitted, next + 2, n);
        memcpy(a->alpha + t * a->count, next + 2, (size_t)n * sizeof(T));
        T *last = now;
        now = next;
        next = last;
    }
    const double p = (double)now[n + 1], q = n > 1 ? (double)now[n] : -INFINITY, top = p > q ? p : q;
    return (T)(top == -INFINITY ? INFINITY : -(top + log(exp(p - top) + exp(q - top))));
}

/* The share of all ways that go through each state. */
CLONED_WIDE static void NAME(way_shares)(const T *alpha, const T *beta, const T *emitted, T loss, T *y, i64 n) {
    for (i64 s = 0; s < n; s++) {
        const T share = EXP(alpha[s] + beta[s] - emitted[s] + loss);
        y[s] = share - share == 0 ? share : 0;
    }
}

CLONED_WIDE static void NAME(exponentials)(const T *x, T *y, i64 n) {
    for (i64 k = 0; k < n; k++) y[k] = EXP(x[k]);
}

/* The gradient by log probabilities that are results of log_softmax: `loss` as above, `g` that of the loss. */
static void NAME(alignment_slopes)(const NAME(Alignment) *a, i64 all_time, i64 classes, T loss, T g, int forgives, T *y, T *room) {
    const i64 n = a->states, wide = n + 2;
    T *skip = room, *emitted = skip + wide, *now = emitted + wide, *next = now + wide, *ways = next + wide;
    for (i64 t = 0; t < all_time; t++) memset(y + t * a->step, 0, (size_t)classes * sizeof(T));
    if (loss == (T)INFINITY) {
        for (i64 t = 0; t < a->time && !forgives; t++)
            for (i64 c = 0; c < classes; c++) y[t * a->step + c] = (T)NAN;
        return;
    }
    for (i64 k = 0; k < 2 * wide; k++) now[k] = (T)-INFINITY;
    NAME(skips)(a, skip);
    for (i64 s = 0; s + 2 < n; s++) skip[s] = skip[s + 2];
    for (i64 s = n > 2 ? n - 2 : 0; s < n; s++) skip[s] = (T)-INFINITY;
    for (i64 t = a->time - 1; t >= 0; t--) {
        T *row = y + t * a->step;
        NAME(emissions)(a, t, emitted);
        if (t == a->time - 1)
            for (i64 s = n > 1 ? n - 2 : 0; s < n; s++) next[s] = emitted[s];
        else
            NAME(reached)(now, now + 1, now + 2, skip, emitted, next, n);
        NAME(way_shares)(a->alpha + t * a->count, next, emitted, loss, ways, n);
        NAME(exponentials)(a->x + t * a->step, row, classes);
        for (i64 s = 0; s < n; s++) row[NAME(label_of)(a, s)] -= ways[s];
        for (i64 c = 0; c < classes; c++) row[c] *= g;
        T *last = now;
        now = next;
        next = last;
    }
}

static void NAME(alignments)(const Sequences *q, T *losses, T *alpha, T *room) {
    for (i64 i = 0; i < q->samples; i++) {
        const NAME(Alignment) a = NAME(alignment_of)(q, i, alpha);
        losses[i] = NAME(likelihood)(&a, q->time, room);
    }
}

static void NAME(all_alignment_slopes)(const Sequences *q, const T *losses, T *alpha, const T *g, int forgives, T *y, T *room) {
    for (i64 i = 0; i < q->samples; i++) {
        const NAME(Alignment) a = NAME(alignment_of)(q, i, alpha);
        NAME(alignment_slopes)(&a, q->time, q->classes, losses[i], g[i], forgives, y + i * q->classes, room);
    }
}

#undef T
#undef NAME
#undef EXP
#undef LOG
#undef LOGS
#undef LOG1P
#undef POW
