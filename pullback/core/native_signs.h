/* Which of the two directions an eigenvector has: what `pullback.ops.linalg.signs` says, for real symmetric matrices. Read by _linalg.c.
 *
 * `tridiagonal_row` follows the implicit QL iteration on a tridiagonal matrix with one row of the eigenvectors, in the rotations that
 * PyTorch's LAPACK takes. All arithmetic is in double precision, as it is there.
 */
enum { ITERATION_ORDER = 25, SWEEPS = 30 };

typedef struct {
    double *d, *e, *z;
    double epsilon;
    int flipped;
} Iteration;

/* c, s, r with r >= 0, except that c > 0 where |f| > |g|. */
static void rotation(double f, double g, double *c, double *s, double *r) {
    if (g == 0) {
        *c = 1, *s = 0, *r = f;
        return;
    }
    if (f == 0) {
        *c = 0, *s = 1, *r = g;
        return;
    }
    *r = hypot(f, g);
    if (f < 0 && -f > fabs(g)) *r = -*r;
    *c = f / *r, *s = g / *r;
}

/* One QL sweep with Wilkinson's shift, from `last` up to `first`. */
static void sweep(Iteration *t, int first, int last) {
    double *d = t->d, *e = t->e, *z = t->z, g = (d[first + 1] - d[first]) / (2 * e[first]), s = 1, c = 1, p = 0, r;
    g = d[last] - d[first] + e[first] / (g + copysign(hypot(g, 1), g));
    for (int i = last - 1; i >= first; i--) {
        double f = s * e[i], b = c * e[i];
        rotation(g, f, &c, &s, &r);
        if (i != last - 1) e[i + 1] = r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        double low = c * z[i] - s * z[i + 1], high = c * z[i + 1] + s * z[i];
        z[i] = low, z[i + 1] = high;
    }
    d[first] -= p;
    e[first] = g;
}

/* Diagonalize the 2 by 2 block at `i`: the eigenvalue of larger magnitude comes first, in unflipped order. */
static void pair(Iteration *t, int i) {
    int at = t->flipped ? i + 1 : i, other = t->flipped ? i : i + 1;
    double a = t->d[at], b = t->e[i], c = t->d[other], total = a + c, gap = a - c, twice = b + b, root = hypot(gap, twice);
    double most = fabs(a) > fabs(c) ? a : c, least = fabs(a) > fabs(c) ? c : a;
    double large = total != 0 ? 0.5 * (total + copysign(root, total)) : 0.5 * root;
    double small = total != 0 ? (most / large) * least - (b / large) * b : -0.5 * root;
    double turn = gap + (gap >= 0 ? root : -root), u, v, slope;
    if (fabs(turn) > fabs(twice)) {
        slope = -twice / turn;
        v = 1 / sqrt(1 + slope * slope);
        u = slope * v;
    } else {
        slope = -turn / twice;
        u = 1 / sqrt(1 + slope * slope);
        v = slope * u;
    }
    double cosine = (total >= 0) == (gap >= 0) ? -v : u, sine = (total >= 0) == (gap >= 0) ? u : v;
    t->d[at] = large, t->d[other] = small, t->e[i] = 0;
    double first = sine * t->z[other] + cosine * t->z[at], second = cosine * t->z[other] - sine * t->z[at];
    t->z[at] = first, t->z[other] = second;
}

/* Implicit QL on one unreduced block, until it is diagonal. A flipped block is the QR iteration, read backwards. */
static void iterate(Iteration *t, int n) {
    int first = 0, last = n - 1;
    for (int left = SWEEPS * n; left && first < last; left--) {
        int split = first;
        while (split < last && t->e[split] * t->e[split] > t->epsilon * t->epsilon * fabs(t->d[split]) * fabs(t->d[split + 1]) + 0x1p-1022) split++;
        if (split < last) t->e[split] = 0;
        if (split == first)
            first++;
        else if (split == first + 1) {
            pair(t, first);
            first += 2;
        } else
            sweep(t, first, split);
    }
}

/* `z` times the eigenvectors of the tridiagonal matrix (d, e), in ascending order of the eigenvalues; d and e are used up. */
static void tridiagonal_row(double *d, double *e, double *z, int n, double epsilon) {
    double part[3][ITERATION_ORDER], row[ITERATION_ORDER];
    for (int start = 0, end; start < n; start = end + 1) {
        for (end = start; end < n - 1 && fabs(e[end]) > sqrt(fabs(d[end])) * sqrt(fabs(d[end + 1])) * epsilon;) end++;
        int many = end - start + 1, flipped = fabs(d[end]) < fabs(d[start]);
        for (int i = 0; i < many; i++) {
            int at = flipped ? end - i : start + i;
            part[0][i] = d[at], part[2][i] = z[at];
            if (i < many - 1) part[1][i] = e[flipped ? end - 1 - i : start + i];
        }
        Iteration t = {part[0], part[1], part[2], epsilon, flipped};
        iterate(&t, many);
        for (int i = 0; i < many; i++) d[flipped ? end - i : start + i] = part[0][i], z[flipped ? end - i : start + i] = part[2][i];
    }
    for (int i = 0; i < n; i++) { /* the place of each in order; equal ones stay in theirs */
        int place = 0;
        for (int k = 0; k < n; k++) place += d[k] < d[i] || (d[k] == d[i] && k < i);
        row[place] = z[i];
    }
    memcpy(z, row, sizeof(*z) * (size_t)n);
}
