/* Convolution with few rows in a group, of one dtype, for one set of instructions: a template, see _network.c and native_convolution.h.
 *
 * Panels would cost more than the few products of each of their numbers. Tiles read the box itself: some stretches of places, each in one
 * row of the result and no longer than a vector. What a vector holds behind the end of its stretch is not used.
 */
#define WIDTH ((i64)(VECTOR / sizeof(T)))
#define MOST_ROWS (VECTOR == 64 ? 8 : 4)

/* ---- results and gradients of inputs: c (ROWS, stretches, WIDTH) */
#define DIRECT(ROWS, MANY)                                                                                                                  \
    static void N(direct##ROWS)(const Walk *w, const i64 *taps, i64 channel, const T *a, const T *box, const Run *run, i64 runs, int adds, \
                                T *c, i64 ldc) {                                                                                            \
        for (i64 k = 0; k < runs; k += MANY) {                                                                                              \
            N(Vector) s[ROWS][MANY];                                                                                                        \
            const T *from[MANY];                                                                                                            \
            for (int v = 0; v < MANY; v++) {                                                                                                \
                i64 at = k + v < runs ? k + v : runs - 1;                                                                                   \
                from[v] = box + run[at].from;                                                                                               \
                for (int r = 0; r < ROWS; r++)                                                                                              \
                    s[r][v] = adds ? *(const N(Vector) *)(c + r * ldc + at * WIDTH) : (N(Vector)){0};                                       \
            }                                                                                                                               \
            for (i64 o = 0; o < w->outer; o++)                                                                                              \
                for (i64 i = 0; i < w->inner; i++) {                                                                                        \
                    const T *f = a + o * w->step + w->at[i];                                                                                \
                    const i64 at = o * channel + taps[i];                                                                                   \
                    N(Vector) x[MANY];                                                                                                      \
                    for (int v = 0; v < MANY; v++)                                                                                          \
                        x[v] = *(const N(Vector) *)(from[v] + at);                                                                          \
                    for (int r = 0; r < ROWS; r++) {                                                                                        \
                        const T factor = f[r * w->row];                                                                                     \
                        for (int v = 0; v < MANY; v++)                                                                                      \
                            s[r][v] += factor * x[v];                                                                                       \
                    }                                                                                                                       \
                }                                                                                                                           \
            for (int v = 0; v < MANY && k + v < runs; v++)                                                                                  \
                for (int r = 0; r < ROWS; r++)                                                                                              \
                    *(N(Vector) *)(c + r * ldc + (k + v) * WIDTH) = s[r][v];                                                                \
        }                                                                                                                                   \
    }
DIRECT(1, 8)
DIRECT(2, (VECTOR == 64 ? 8 : 4))
DIRECT(4, (VECTOR == 64 ? 6 : 2))
DIRECT(8, 3)
#undef DIRECT

/* The places of a block, no more than a vector of one row at a time: where each stretch lies in the box, and in the result. Where they may
 * meet, the last one of a row is whole too, and begins before the end of the one before. */
static void N(find_stretches)(const Gather *j, const Part *p, const Block *k, const N(Box) *box, int meet, Runs *runs) {
    i64 width = p->places[2], count = 0;
    for (i64 n = 0; n < k->images; n++)
        for (i64 q = k->first, end = k->first + k->places; q < end;) {
            i64 left = least(width - q % width, end - q), many = least(left, WIDTH);
            if (meet && left < WIDTH && left < q - k->first + left && q % width + left >= WIDTH && q - k->first + left >= WIDTH) {
                q -= WIDTH - left;
                many = WIDTH;
            }
            i64 x = q % width, y = q / width % p->places[1], z = q / width / p->places[1];
            Run *run = &runs->run[count], *out = &runs->out[count++];
            run->length = out->length = many;
            run->from = N(place_in_box)(j, box, n, z, y, x);
            out->from = n * j->to_step[0] + z * j->to_step[2] + y * j->to_step[3] + x * j->to_step[4];
            run->to = n * k->places + q - k->first; /* of the block */
            q += many;
        }
    runs->count = count;
}

static void N(direct_rows)(const Gather *j, const Part *p, const N(Box) *box, const Runs *runs, const i64 *taps, i64 channels, const T *a, i64 rows,
                           int adds, T *c) {
    Walk walk = {.row = j->row, .step = j->outer, .outer = channels, .inner = p->taps, .at = p->at};
    i64 each = runs->count * WIDTH;
    for (i64 m = 0, many; m < rows; m += many) {
        many = rows - m >= MOST_ROWS ? MOST_ROWS : rows - m >= 4 ? 4 : rows - m >= 2 ? 2 : 1;
        (many == 8 ? N(direct8) : many == 4 ? N(direct4) : many == 2 ? N(direct2) : N(direct1))(
            &walk, taps, box->channel, a + m * j->row, box->p, runs->run, runs->count, adds, c + m * each, each);
    }
}

static void N(direct_block)(Gather *j, const Part *part, const Block *k, i64 group, i64 first, i64 rows, Room *room) {
    N(Box) box;
    const Part *end = part + j->shared;
    i64 all = k->images * k->places, taps = 0;
    for (const Part *p = part; p < end; p++)
        taps += p->taps;
    i64 inner = taps ? j->inner : 1, together = least(j->together, inner);
    N(shape_box)(j, part, k, &box);
    if (!widen_room(room, sizeof(T) * (size_t)(taps ? box.channel * together : 0), 0, sizeof(T) * (size_t)(j->shared * all * WIDTH * rows), 0, taps, all)) {
        j->failed = 1;
        return;
    }
    T *c = room->tile;
    for (i64 start = 0; start < inner; start += together) {
        i64 channels = least(inner - start, together);
        if (taps)
            N(open_box)(j, part, k, group * j->inner + start, channels, room->box, &box);
        if (!start && other_block(room, part, k)) {
            N(find_stretches)(j, part, k, &box, 1, &room->runs);
            N(find_tap_places)(j, part, &box, room->taps);
        }
        const i64 *at = room->taps;
        const T *a = X(a) + group * j->group + first * j->row + start * j->outer;
        for (const Part *p = part; p < end; at += p->taps, p++)
            N(direct_rows)(j, p, &box, &room->runs, at, channels, a, rows, start > 0, c + (p - part) * rows * room->runs.count * WIDTH);
    }
    const Run *out = room->runs.out, *last = out + room->runs.count;
    for (const Part *p = part; p < end; p++) {
        i64 m = 0, each = room->runs.count * WIDTH;
        T *to = X(to) + p->start + k->image * j->to_step[0];
        for (; N(row_vector)(j, m, rows); m += WIDTH, c += WIDTH * each) {
            i64 row = group * j->rows + first + m;
            const N(Vector) b = N(biases)(j, row);
            for (i64 r = 0; r < room->runs.count; r++)
                N(put_together)(j, to + row + out[r].from, b, c + r * WIDTH, each, out[r].length);
        }
        for (; m < rows; m++, c += each) {
            i64 row = group * j->rows + first + m;
            N(put)(j, to + row * j->to_step[1], j->bias ? X(bias)[row * j->bias_step] : 0, out, last, c, WIDTH);
        }
    }
}

/* ---- gradients of weights: all columns of a group for some rows, each a sum in every place of a vector */
#define DOT(MANY)                                                                                                                    \
    static void N(dot##MANY)(const T *g, const Run *run, const Run *end, const T *box, const i64 *taps, i64 left, int adds, T *sum) { \
        N(Vector) s[MANY];                                                                                                           \
        const T *from[MANY];                                                                                                         \
        for (int v = 0; v < MANY; v++) {                                                                                             \
            i64 at = v < left ? v : 0;                                                                                               \
            s[v] = adds ? *(N(Vector) *)(sum + at * WIDTH) : (N(Vector)){0};                                                         \
            from[v] = box + taps[at];                                                                                                \
        }                                                                                                                            \
        for (; run < end; run++, g += WIDTH) {                                                                                       \
            const N(Vector) y = *(const N(Vector) *)g;                                                                               \
            if (run->length == WIDTH)                                                                                                \
                for (int v = 0; v < MANY; v++)                                                                                       \
                    s[v] += y * *(const N(Vector) *)(from[v] + run->from);                                                           \
            else {                                                                                                                   \
                N(Bits) seen; /* what lies behind the stretch may not be finite */                                                   \
                for (int i = 0; i < WIDTH; i++)                                                                                      \
                    seen[i] = i;                                                                                                     \
                seen = seen < (SAME_SIZE)run->length;                                                                                \
                for (int v = 0; v < MANY; v++)                                                                                       \
                    s[v] += y * (N(Vector))((N(Bits))*(const N(Vector) *)(from[v] + run->from) & seen);                              \
            }                                                                                                                        \
        }                                                                                                                            \
        for (int v = 0; v < MANY && v < left; v++)                                                                                   \
            *(N(Vector) *)(sum + v * WIDTH) = s[v];                                                                                  \
    }
DOT(5)
DOT(8)
#undef DOT

static void N(direct_weight_block)(Gather *j, const Block *k, i64 group, i64 first, i64 rows, int adds, T *sums, Room *room) {
    N(Box) box;
    const Part *p = j->part;
    i64 all = k->images * k->places, columns = j->inner * p->taps;
    N(shape_box)(j, p, k, &box);
    if (!widen_room(room, sizeof(T) * (size_t)(box.channel * j->inner), 0, sizeof(T) * (size_t)(all * WIDTH), 0, columns, all)) {
        j->failed = 1;
        return;
    }
    N(open_box)(j, p, k, group * j->inner, j->inner, room->box, &box);
    if (other_block(room, p, k)) {
        N(find_stretches)(j, p, k, &box, 0, &room->runs);
        for (i64 q = 0; q < columns; q++)
            room->taps[q] = q / p->taps * box.channel + N(tap_at)(j, p, &box, q % p->taps);
    }
    const Run *run = room->runs.run, *end = run + room->runs.count;
    T *g = room->tile;
    for (i64 m = 0; m < rows; m++) {
        const T *from = X(a) + k->image * j->group + (group * j->rows + first + m) * j->row + k->first;
        for (i64 r = 0, n = 0, last = k->places; run + r < end; r++) { /* stretches with zeros behind */
            for (; run[r].to >= last; last += k->places)
                n++;
            const T *at = from + n * j->group + run[r].to - n * k->places;
            N(zeros)(g + r * WIDTH, WIDTH);
            for (i64 q = 0; q < run[r].length; q++)
                g[r * WIDTH + q] = at[q];
        }
        for (i64 q = 0, many; q < columns; q += many) {
            i64 left = columns - q;
            many = left > 10 || (left > 5 && left < 9) ? 8 : 5;
            (many == 8 ? N(dot8) : N(dot5))(g, run, end, box.p, room->taps + q, left, adds, sums + (m * columns + q) * WIDTH);
        }
    }
}

static void N(direct_weights)(Gather *j, i64 group, i64 first, i64 rows, Room *room) {
    i64 columns = j->inner * j->part->taps;
    if (!widen(&room->side, &room->held[3], sizeof(T) * (size_t)(rows * columns * WIDTH)))
        j->failed = 1;
    for (i64 b = 0; b < j->part->blocks && !j->failed; b++) {
        Block block = block_at(j, j->part, b);
        N(direct_weight_block)(j, &block, group, first, rows, b > 0, room->side, room);
    }
    for (i64 q = 0; q < rows * columns && !j->failed; q++) {
        const T *sum = (T *)room->side + q * WIDTH;
        T total = 0;
        for (i64 i = 0; i < WIDTH; i++)
            total += sum[i];
        X(to)[(group * j->rows + first) * columns + q] = total;
    }
}
#undef WIDTH
#undef MOST_ROWS
