/* Convolution of one dtype, for one set of instructions. A template: see _network.c.
 *
 * Each form is a product of matrices whose left factor is read where it lies, a number at a time, and whose right factor is laid out in
 * panels: for each step of the sum, as many numbers as a tile of the result has columns (up to PANEL). No matrix of all windows exists.
 *
 * Results and gradients of inputs ("gathered"): result[row, place] is the sum over channels and taps of a[row, channel, tap] times what the
 * tap reads at that place. A block of places (whole images, or a piece of one) is one task, or, where there are few, several tasks of some
 * rows each. What a block reads is first copied into a box, with zeros where a tap looks outside, and the columns apart that a stride
 * sends to different taps: a tap then reads whole stretches of it. The gradient of an input under a stride is one such sum for each
 * remainder of its places (a Part): each meets only the taps that reach it.
 *
 * Gradients of weights: dw[row, column] is the sum over places of g[row, place] times what the column (a channel and tap) reads there. A
 * task has some columns and rows for all places.
 *
 * The order in which an element's terms are added follows from the sizes alone: not from the number of threads.
 */
typedef T N(Half) __attribute__((vector_size(VECTOR / 2), aligned(sizeof(T)), may_alias));
typedef T N(Quarter) __attribute__((vector_size(VECTOR / 4 < 8 ? 8 : VECTOR / 4), aligned(sizeof(T)), may_alias));
typedef SAME_SIZE N(Places) __attribute__((vector_size(VECTOR), aligned(sizeof(T)), may_alias));
#define WIDTH ((i64)(VECTOR / sizeof(T)))
#define QUARTER ((i64)(sizeof(N(Quarter)) / sizeof(T)))
#define PANEL (3 * WIDTH)
#define AT_ONCE (VECTOR == 64 ? 8 : 4) /* rows of a tile: with three vectors each, they and the factors fit the registers */

/* ---- tiles: c (ROWS, VECTORS * WIDTH) = or += a b, where b is a panel, and a is read at a + row * r + step * outer + at[inner] */
#define TILE(ROWS, VECTORS)                                                                                 \
    static void N(tile##ROWS##VECTORS)(const Walk *w, const T *a, const T *b, int adds, T *c, i64 ldc) {    \
        N(Vector) s[ROWS][VECTORS];                                                                         \
        const i64 row = w->row, inner = w->inner, *const at = w->at;                                        \
        if (adds)                                                                                           \
            for (int r = 0; r < ROWS; r++)                                                                  \
                for (int v = 0; v < VECTORS; v++)                                                           \
                    s[r][v] = *(const N(Vector) *)(c + r * ldc + v * WIDTH);                                \
        else                                                                                                \
            for (int r = 0; r < ROWS; r++)                                                                  \
                for (int v = 0; v < VECTORS; v++)                                                           \
                    s[r][v] = (N(Vector)){0};                                                               \
        i64 o = w->outer;                                                                                   \
        do {                                                                                                \
            i64 i = 0;                                                                                      \
            do {                                                                                            \
                const T *from = a + at[i];                                                                  \
                N(Vector) x[VECTORS];                                                                       \
                for (int v = 0; v < VECTORS; v++)                                                           \
                    x[v] = *(const N(Vector) *)(b + v * WIDTH);                                             \
                b += VECTORS * WIDTH;                                                                       \
                for (int r = 0; r < ROWS; r++) {                                                            \
                    const T f = from[r * row];                                                              \
                    for (int v = 0; v < VECTORS; v++)                                                       \
                        s[r][v] += f * x[v];                                                                \
                }                                                                                           \
            } while (++i < inner);                                                                          \
            a += w->step;                                                                                   \
        } while (--o > 0);                                                                                  \
        for (int r = 0; r < ROWS; r++)                                                                      \
            for (int v = 0; v < VECTORS; v++)                                                               \
                *(N(Vector) *)(c + r * ldc + v * WIDTH) = s[r][v];                                          \
    }
#define TILES(ROWS) TILE(ROWS, 1) TILE(ROWS, 2) TILE(ROWS, 3)
TILES(1)
TILES(2)
TILES(4)
#if VECTOR == 64
TILES(8)
#endif
#undef TILES
#undef TILE
#define TILES(ROWS) {N(tile##ROWS##1), N(tile##ROWS##2), N(tile##ROWS##3)}
static void (*const N(tiles)[4][3])(const Walk *, const T *, const T *, int, T *, i64) = {
    TILES(1), TILES(2), TILES(4),
#if VECTOR == 64
    TILES(8)
#endif
};
#undef TILES

/* All rows by one panel. */
static void N(by_panel)(const Walk *w, i64 rows, i64 vectors, const T *a, const T *b, int adds, T *c, i64 ldc) {
    int size = AT_ONCE == 8 ? 3 : 2;
    for (i64 r = 0; r < rows && !w->inner; r++) /* no terms */
        for (i64 q = 0; q < vectors * WIDTH; q++)
            c[r * ldc + q] = 0;
    if (!w->inner)
        return;
    for (i64 r = 0; r < rows; r += 1 << size) {
        while (rows - r < 1 << size)
            size--;
        N(tiles)[size][vectors - 1](w, a + r * w->row, b, adds, c + r * ldc, ldc);
    }
}

/* ---- boxes: what a block reads, with its border */
typedef struct {
    const T *p;           /* the number that the first tap reads at the first place, of the first channel */
    i64 channel, image, row[2]; /* steps: between channels, images, slices and rows */
    i64 phase;            /* between columns that a stride keeps apart */
    i64 size[3], from[3]; /* in numbers of the source: how much there is, and where it begins */
    i64 at[3];            /* the first place of the block */
    int exact;            /* whether nothing may be read behind the end of a stretch */
} N(Box);

static void N(shape_box)(const Gather *j, const Part *p, const Block *k, N(Box) *box) {
    i64 first = k->first, last = k->first + k->places - 1, count[3];
    int whole = k->images > 1;
    for (int d = 0; d < 3; d++) {
        i64 each = d == 0 ? p->places[1] * p->places[2] : d == 1 ? p->places[2] : 1;
        i64 low = first / each, high = last / each;
        box->at[d] = whole ? 0 : low;
        count[d] = whole ? p->places[d] : high - low + 1;
        whole = whole || high > low;
        first %= each;
        last %= each;
        box->from[d] = box->at[d] * j->stride[d] + p->low[d];
        box->size[d] = (count[d] - 1) * j->stride[d] + p->high[d] - p->low[d] + 1;
    }
    box->phase = (box->size[2] + j->stride[2] - 1) / j->stride[2];
    box->row[1] = box->phase * j->stride[2];
    box->row[0] = box->row[1] * box->size[1];
    box->image = box->row[0] * box->size[0];
    box->channel = box->image * k->images;
    box->exact = 0;
}

/* Whole vectors, also behind the end: what comes there is written later. */
INLINE void N(zeros)(T *to, i64 n) {
    for (i64 q = 0; q < n; q += WIDTH)
        *(N(Vector) *)(to + q) = (N(Vector)){0};
}

INLINE void N(copy)(T *to, const T *from, i64 n) {
    for (i64 q = 0; q < n; q += WIDTH)
        *(N(Vector) *)(to + q) = *(const N(Vector) *)(from + q);
}

/* Every other number. */
INLINE void N(copy_apart)(T *to, const T *from, i64 n) {
    N(Bits) even;
    for (int q = 0; q < WIDTH; q++)
        even[q] = 2 * q;
    for (i64 q = 0; q < n; q += WIDTH) {
        const N(Vector) a = *(const N(Vector) *)(from + 2 * q), b = *(const N(Vector) *)(from + 2 * q + WIDTH);
#ifdef __clang__
        for (int k = 0; k < WIDTH; k++)
            to[q + k] = 2 * k < WIDTH ? a[2 * k] : b[2 * k - WIDTH];
#else
        *(N(Vector) *)(to + q) = __builtin_shuffle(a, b, even);
#endif
    }
}

/* One row under a stride of two: even columns, then odd ones. */
INLINE void N(fill_pairs)(const Gather *j, const Part *p, const N(Box) *box, const T *from, T *to) {
    const i64 width = box->phase;
    for (i64 r = 0; r < 2; r++, to += width) {
        if (!(p->phases >> r & 1))
            continue;
        i64 x = box->from[2] + r, low = least(x < 0 ? (1 - x) / 2 : 0, width), high = most(low, least(j->size[2] > x ? (j->size[2] - x + 1) / 2 : 0, width));
        N(zeros)(to, low);
        if (from + x + 2 * (high + WIDTH) <= X(source) + j->reach)
            N(copy_apart)(to + low, from + x + 2 * low, high - low);
        else
            for (i64 q = low; q < high; q++)
                to[q] = from[x + 2 * q];
        N(zeros)(to + high, width - high);
    }
}

/* One row: zeros, numbers of the source, zeros; columns by their remainders. */
INLINE void N(fill_row)(const Gather *j, const Part *p, const N(Box) *box, const T *from, T *to) {
    i64 s = j->stride[2], step = j->step[4] * s;
    if (step == 1) {
        i64 x = box->from[2], width = box->phase, low = least(most(-x, 0), width), high = most(least(j->size[2] - x, width), low);
        N(zeros)(to, low);
        if (from + x + high + WIDTH <= X(source) + j->reach)
            N(copy)(to + low, from + x + low, high - low);
        else
            for (i64 q = low; q < high; q++)
                to[q] = from[x + q];
        N(zeros)(to + high, width - high);
        return;
    }
    if (step == 2 && s == 2) {
        N(fill_pairs)(j, p, box, from, to);
        return;
    }
    for (i64 r = 0; r < s; r++, to += box->phase) {
        if (r < 64 && !(p->phases >> r & 1))
            continue;
        i64 x = box->from[2] + r; /* column q is number x + q * s of the source */
        i64 low = x < 0 ? (-x + s - 1) / s : 0, high = j->size[2] > x ? (j->size[2] - x + s - 1) / s : 0, width = box->phase;
        low = low < width ? low : width;
        high = high < width ? high : width;
        high = high > low ? high : low;
        for (i64 q = 0; q < low; q++)
            to[q] = 0;
        const T *at = from + x * j->step[4];
        for (i64 q = low; q < high; q++)
            to[q] = at[q * step];
        for (i64 q = high; q < width; q++)
            to[q] = 0;
    }
}

/* The same row of as many channels as a vector holds, which lie side by side in the source. */
static void N(fill_rows)(const Gather *j, const Part *p, const N(Box) *box, const T *from, T *to) {
    T turned[VECTOR / sizeof(T) * (VECTOR / sizeof(T))];
    i64 s = j->stride[2], step = j->step[4] * s, width = box->phase;
    for (i64 r = 0; r < s; r++, to += width) {
        if (r < 64 && !(p->phases >> r & 1))
            continue;
        i64 x = box->from[2] + r, low = least(x < 0 ? parts_of(-x, s) : 0, width);
        i64 high = most(low, least(j->size[2] > x ? parts_of(j->size[2] - x, s) : 0, width));
        const T *at = from + x * j->step[4];
        for (i64 c = 0; c < WIDTH; c++) {
            for (i64 q = 0; q < low; q++)
                to[c * box->channel + q] = 0;
            for (i64 q = high; q < width; q++)
                to[c * box->channel + q] = 0;
        }
        i64 q = low;
        for (; q + WIDTH <= high; q += WIDTH)
            N(turn_block)(at + q * step, step, WIDTH, to + q, box->channel);
        for (i64 k = q; k < high; k++) {
            const N(Vector) pixel = *(const N(Vector) *)(at + k * step);
            for (i64 c = 0; c < WIDTH; c++)
                turned[c * WIDTH + k - q] = pixel[c];
        }
        for (i64 c = 0; c < WIDTH && q < high; c++)
            for (i64 k = q; k < high; k++)
                to[c * box->channel + k] = turned[c * WIDTH + k - q];
    }
}

/* Boxes of as many channels as vectors hold; how many that are. */
static i64 N(fill_together)(const Gather *j, const Part *p, const Block *k, const N(Box) *box, i64 first, i64 channels, T *to) {
    if (j->step[1] != 1 || j->step[4] == 1)
        return 0;
    i64 c = 0;
    for (; c + WIDTH <= channels; c += WIDTH, to += (WIDTH - 1) * box->channel)
        for (i64 n = k->image; n < k->image + k->images; n++)
            for (i64 z = box->from[0]; z < box->from[0] + box->size[0]; z++)
                for (i64 y = box->from[1]; y < box->from[1] + box->size[1]; y++, to += box->row[1]) {
                    if (z >= 0 && z < j->size[0] && y >= 0 && y < j->size[1])
                        N(fill_rows)(j, p, box, X(source) + n * j->step[0] + first + c + z * j->step[2] + y * j->step[3], to);
                    else
                        for (i64 m = 0; m < WIDTH; m++)
                            memset(to + m * box->channel, 0, sizeof(T) * (size_t)box->row[1]);
                }
    return c;
}

static void N(fill_box)(const Gather *j, const Part *p, const Block *k, const N(Box) *box, i64 first, i64 channels, T *to) {
    i64 done = N(fill_together)(j, p, k, box, first, channels, to);
    to += done * box->channel;
    for (i64 c = first + done; c < first + channels; c++)
        for (i64 n = k->image; n < k->image + k->images; n++)
            for (i64 z = box->from[0]; z < box->from[0] + box->size[0]; z++)
                for (i64 y = box->from[1]; y < box->from[1] + box->size[1]; y++, to += box->row[1]) {
                    if (z < 0 || z >= j->size[0] || y < 0 || y >= j->size[1])
                        N(zeros)(to, box->row[1]);
                    else
                        N(fill_row)(j, p, box, X(source) + n * j->step[0] + c * j->step[1] + z * j->step[2] + y * j->step[3], to);
                }
}

/* What a block reads, of some channels; where single taps read all there is in a row, as it lies. */
INLINE void N(open_box)(const Gather *j, const Part *p, const Block *k, i64 first, i64 channels, T *room, N(Box) *box) {
    if (j->in_place) {
        box->p = X(source) + k->image * j->step[0] + first * j->step[1] + box->from[2];
        box->channel = j->step[1];
        box->image = j->step[0];
        box->exact = 1;
        return;
    }
    N(fill_box)(j, p, k, box, first, channels, room);
    box->p = room;
}

INLINE i64 N(tap_at)(const Gather *j, const Part *p, const N(Box) *box, i64 tap) {
    const i64 *shift = p->shift + 3 * tap;
    i64 x = shift[2] - p->low[2];
    return (shift[0] - p->low[0]) * box->row[0] + (shift[1] - p->low[1]) * box->row[1] + x % j->stride[2] * box->phase + x / j->stride[2];
}

INLINE i64 N(place_in_box)(const Gather *j, const N(Box) *box, i64 image, i64 z, i64 y, i64 x) {
    return image * box->image + (z - box->at[0]) * j->stride[0] * box->row[0] + (y - box->at[1]) * j->stride[1] * box->row[1] + x - box->at[2];
}

/* Stretches of a block's places that lie side by side in the box, cut where a panel ends; and in the result, from the part's first place on. */
static void N(find_runs)(const Gather *j, const Part *p, const Block *k, const N(Box) *box, i64 panel, Runs *runs) {
    i64 width = p->places[2], at = 0;
    runs->count = runs->outs = 0;
    for (i64 n = 0; n < k->images; n++)
        for (i64 q = k->first, end = k->first + k->places; q < end;) {
            i64 x = q % width, y = q / width % p->places[1], z = q / width / p->places[1], many = width - x;
            many = many < end - q ? many : end - q;
            many = many < panel - at % panel ? many : panel - at % panel;
            Run *run = &runs->run[runs->count++];
            run->to = at;
            run->length = many;
            run->from = N(place_in_box)(j, box, n, z, y, x);
            i64 into = n * j->to_step[0] + z * j->to_step[2] + y * j->to_step[3] + x * j->to_step[4];
            Run *out = &runs->out[runs->outs - 1];
            if (runs->outs && j->to_step[4] == 1 && out->from + out->length == into && at % panel)
                out->length += many;
            else
                runs->out[runs->outs++] = (Run){.to = at, .length = many, .from = into};
            at += many;
            q += many;
        }
}

/* Copy stretches side by side. What is written behind the end of one is written again by the next. */
INLINE void N(pick)(const Run *run, const Run *end, i64 start, i64 longest, int exact, const T *from, T *to) {
    to -= start;
    if (exact)
        for (; run < end; run++) {
            i64 q = 0;
            for (; q + WIDTH <= run->length; q += WIDTH)
                *(N(Vector) *)(to + run->to + q) = *(const N(Vector) *)(from + run->from + q);
            for (; q < run->length; q++)
                to[run->to + q] = from[run->from + q];
        }
    else if (longest <= QUARTER)
        for (; run < end; run++)
            *(N(Quarter) *)(to + run->to) = *(const N(Quarter) *)(from + run->from);
    else if (longest <= WIDTH / 2)
        for (; run < end; run++)
            *(N(Half) *)(to + run->to) = *(const N(Half) *)(from + run->from);
    else if (longest <= WIDTH)
        for (; run < end; run++)
            *(N(Vector) *)(to + run->to) = *(const N(Vector) *)(from + run->from);
    else
        for (; run < end; run++)
            for (i64 q = 0; q < run->length; q += WIDTH)
                *(N(Vector) *)(to + run->to + q) = *(const N(Vector) *)(from + run->from + q);
}

INLINE i64 N(longest)(const Run *run, const Run *end) {
    i64 most = 0;
    for (; run < end; run++)
        most = run->length > most ? run->length : most;
    return most;
}

/* Where taps of the parts of a task read, one part's behind the other's. */
INLINE void N(find_tap_places)(const Gather *j, const Part *p, const N(Box) *box, i64 *taps) {
    for (const Part *end = p + j->shared; p < end; p++)
        for (i64 t = 0; t < p->taps; t++)
            *taps++ = N(tap_at)(j, p, box, t);
}

/* Stretches of a row of the result, from those of a tile that lie `apart`, or one behind the other (0). */
INLINE void N(put)(const Gather *j, T *to, T bias, const Run *run, const Run *end, const T *from, i64 apart) {
    i64 s = j->to_step[4];
    for (; run < end; run++, from += apart) {
        const T *c = apart ? from : from + run->to;
        T *into = to + run->from;
        if (s == 1) {
            i64 q = 0;
            for (; q + WIDTH <= run->length; q += WIDTH)
                *(N(Vector) *)(into + q) = *(const N(Vector) *)(c + q) + bias;
            if (run->length - q >= WIDTH / 2 && WIDTH > 2) {
                *(N(Half) *)(into + q) = *(const N(Half) *)(c + q) + bias;
                q += WIDTH / 2;
            }
            for (; q < run->length; q++)
                into[q] = c[q] + bias;
        } else
            for (i64 q = 0; q < run->length; q++)
                into[q * s] = c[q] + bias;
    }
}

/* Some places of as many rows of the result as a vector holds, which lie side by side there; rows of a tile are `apart`. */
INLINE void N(put_together)(const Gather *j, T *to, const N(Vector) bias, const T *from, i64 apart, i64 n) {
    T turned[VECTOR / sizeof(T) * (VECTOR / sizeof(T))];
    for (i64 q = 0; q < n; q += WIDTH) {
        N(turn_block)(from + q, apart, WIDTH, turned, WIDTH);
        for (i64 k = 0; k < least(n - q, WIDTH); k++)
            *(N(Vector) *)(to + (q + k) * j->to_step[4]) = *(const N(Vector) *)(turned + k * WIDTH) + bias;
    }
}

INLINE N(Vector) N(biases)(const Gather *j, i64 row) {
    N(Vector) found = {0};
    for (i64 q = 0; q < WIDTH && j->bias; q++)
        found[q] = X(bias)[(row + q) * j->bias_step];
    return found;
}

/* Whether rows of the result lie side by side, from one on as many as a vector holds. */
INLINE int N(row_vector)(const Gather *j, i64 m, i64 rows) { return j->to_step[1] == 1 && j->to_step[4] != 1 && m + WIDTH <= rows; }

#include "native_direct.h"
#include "native_planes.h"
#include "native_pixels.h"
#include "native_outputs.h"
#define WIDTH ((i64)(VECTOR / sizeof(T)))

/* ---- results and gradients of inputs */
static void N(emit)(const Gather *j, const Runs *runs, T *to, i64 group, i64 first, i64 rows, const T *c) {
    i64 m = 0;
    for (; N(row_vector)(j, m, rows); m += WIDTH) {
        i64 row = group * j->rows + first + m;
        const N(Vector) b = N(biases)(j, row);
        for (const Run *run = runs->out; run < runs->out + runs->outs; run++)
            N(put_together)(j, to + row + run->from, b, c + (run->to / PANEL * rows + m) * PANEL + run->to % PANEL, PANEL, run->length);
    }
    for (; m < rows; m++) {
        i64 row = group * j->rows + first + m;
        T b = j->bias ? X(bias)[row * j->bias_step] : 0;
        for (const Run *run = runs->out, *end = run, *last = run + runs->outs; run < last; run = end) {
            i64 panel = run->to / PANEL;
            while (end < last && end->to / PANEL == panel)
                end++;
            N(put)(j, to + row * j->to_step[1], b, run, end, c + (panel * rows + m - panel) * PANEL, 0);
        }
    }
}

/* The panels of some channels and all taps. */
static void N(fill_panels)(const Part *p, const N(Box) *box, const Runs *runs, i64 all, i64 channels, const i64 *taps, T *panels) {
    const Run *run = runs->run, *last = run + runs->count;
    for (i64 n = 0; n * PANEL < all; n++) {
        i64 width = parts_of(least(all - n * PANEL, PANEL), WIDTH) * WIDTH;
        const Run *end = run;
        while (end < last && end->to < (n + 1) * PANEL)
            end++;
        i64 longest = N(longest)(run, end);
        T *to = panels + n * PANEL * channels * p->taps;
        for (i64 ch = 0; ch < channels; ch++)
            for (i64 t = 0; t < p->taps; t++, to += width)
                N(pick)(run, end, n * PANEL, longest, box->exact, box->p + ch * box->channel + taps[t], to);
        run = end;
    }
}

static void N(gather_block)(Gather *j, const Part *part, const Block *k, i64 group, i64 first, i64 rows, Room *room) {
    N(Box) box;
    const Part *end = part + j->shared;
    i64 all = k->images * k->places, count = parts_of(all, PANEL), deepest = 0, taps = 0;
    for (const Part *p = part; p < end; p++) {
        deepest = most(deepest, p->taps);
        taps += p->taps;
    }
    i64 inner = taps ? j->inner : 1, together = least(j->together, inner);
    N(shape_box)(j, part, k, &box);
    if (!widen_room(room, sizeof(T) * (size_t)(j->in_place || !taps ? 0 : box.channel * together), sizeof(T) * (size_t)(count * PANEL * together * deepest),
                    sizeof(T) * (size_t)(j->shared * count * PANEL * rows), 0, taps, all)) {
        j->failed = 1;
        return;
    }
    T *panels = room->panels, *c = room->tile;
    for (i64 start = 0; start < inner; start += together) {
        i64 channels = least(inner - start, together);
        if (taps)
            N(open_box)(j, part, k, group * j->inner + start, channels, room->box, &box);
        if (!start && other_block(room, part, k)) {
            N(find_runs)(j, part, k, &box, PANEL, &room->runs);
            N(find_tap_places)(j, part, &box, room->taps);
        }
        const i64 *at = room->taps;
        for (const Part *p = part; p < end; at += p->taps, p++) {
            N(fill_panels)(p, &box, &room->runs, all, channels, at, panels);
            Walk walk = {.row = j->row, .step = j->outer, .outer = channels, .inner = p->taps, .at = p->at};
            const T *a = X(a) + group * j->group + first * j->row + start * j->outer;
            if (p->taps == 1 && j->outer == 1) { /* one stretch */
                walk = (Walk){.row = j->row, .step = 0, .outer = 1, .inner = channels, .at = in_a_row};
                a += p->at[0];
            }
            for (i64 m = 0; m < rows; m += AT_ONCE)
                for (i64 n = 0; n < count; n++)
                    N(by_panel)(&walk, least(rows - m, AT_ONCE), parts_of(least(all - n * PANEL, PANEL), WIDTH), a + m * j->row,
                                panels + n * PANEL * channels * p->taps, start > 0, c + (((p - part) * count + n) * rows + m) * PANEL, PANEL);
        }
    }
    for (const Part *p = part; p < end; p++)
        N(emit)(j, &room->runs, X(to) + p->start + k->image * j->to_step[0], group, first, rows, c + (p - part) * count * rows * PANEL);
}

static void N(gather_part)(long begin, long end, void *const *given) {
    Gather *j = given[0];
    if (j->pixels || j->outputs) {
        (j->pixels ? N(pixel_part) : N(output_part))(begin, end, j);
        return;
    }
    Room room = {0};
    i64 splits = parts_of(j->rows, j->split);
    for (long t = begin; t < end && !j->failed; t++) {
        i64 first = t % splits * j->split, rest = t / splits, group = rest % j->groups, number = rest / j->groups;
        const Part *p = j->part;
        for (; number >= p->blocks; p++)
            number -= p->blocks;
        Block block = block_at(j, p, number);
        if (j->planes)
            N(plane_block)(j, p, &block, group, &room);
        else
            (j->direct ? N(direct_block) : N(gather_block))(j, p, &block, group, first, least(j->split, j->rows - first), &room);
    }
    leave_room(&room);
}

/* ---- gradients of weights */
/* Columns of a panel from stretches of whole vectors in the box: no copy of them in between. */
static void N(turn_stretches)(const T *const *from, const Run *run, const Run *end, T *to, i64 ldt) {
    for (; run < end; run++)
        for (i64 q = 0; q < run->length; q += WIDTH) {
            N(Vector) v[VECTOR / sizeof(T)];
            for (int r = 0; r < WIDTH; r++)
                v[r] = *(const N(Vector) *)(from[r] + run->from + q);
            N(turn_vectors)(v);
            for (int r = 0; r < WIDTH; r++)
                *(N(Vector) *)(to + (run->to + q + r) * ldt) = v[r];
        }
}

INLINE int N(all_whole)(const Run *run, const Run *end) {
    for (; run < end; run++)
        if (run->length % WIDTH)
            return 0;
    return 1;
}

static void N(weight_block)(Gather *j, const Block *k, i64 group, i64 column, i64 columns, i64 first, i64 rows, int adds, Room *room) {
    N(Box) box;
    const Part *p = j->part;
    i64 all = k->images * k->places, count = parts_of(columns, PANEL), deep = parts_of(all, WIDTH) * WIDTH, wide = parts_of(columns, WIDTH) * WIDTH;
    i64 channel = column / p->taps, channels = (column + columns - 1) / p->taps + 1 - channel;
    N(shape_box)(j, p, k, &box);
    if (!widen_room(room, sizeof(T) * (size_t)(j->in_place ? 0 : box.channel * channels), sizeof(T) * (size_t)(wide * deep),
                    sizeof(T) * (size_t)(rows * PANEL), sizeof(T) * (size_t)(wide * deep), p->taps, all)) {
        j->failed = 1;
        return;
    }
    N(open_box)(j, p, k, group * j->inner + channel, channels, room->box, &box);
    if (other_block(room, p, k)) {
        N(find_runs)(j, p, k, &box, all, &room->runs);
        for (i64 t = 0; t < p->taps; t++)
            room->taps[t] = N(tap_at)(j, p, &box, t);
    }
    const Run *run = room->runs.run, *end = run + room->runs.count;
    i64 longest = N(longest)(run, end);
    int whole = N(all_whole)(run, end);
    T *side = room->side, *panels = room->panels, *tile = room->tile;
    for (i64 q = 0; q < columns && !whole; q++) {
        i64 ch = (column + q) / p->taps - channel, tap = (column + q) % p->taps;
        N(pick)(run, end, 0, longest, box.exact, box.p + ch * box.channel + room->taps[tap], side + q * deep);
    }
    Walk walk = {.row = j->row, .step = j->group, .outer = k->images, .inner = k->places, .at = in_a_row};
    const T *a = X(a) + k->image * j->group + (group * j->rows + first) * j->row + k->first;
    i64 ldw = j->inner * p->taps;
    for (i64 n = 0; n < count; n++) {
        i64 real = least(columns - n * PANEL, PANEL), vectors = parts_of(real, WIDTH);
        T *to = panels + n * PANEL * deep, *c = X(to) + (group * j->rows + first) * ldw + column + n * PANEL;
        for (i64 q = 0; q < vectors && whole; q++) {
            const T *from[VECTOR / sizeof(T)];
            for (i64 r = 0; r < WIDTH; r++) {
                i64 at = column + least(n * PANEL + q * WIDTH + r, columns - 1);
                from[r] = box.p + (at / p->taps - channel) * box.channel + room->taps[at % p->taps];
            }
            N(turn_stretches)(from, run, end, to + q * WIDTH, vectors * WIDTH);
        }
        for (i64 q = 0; q < vectors && !whole; q++)
            for (i64 r = 0; r < deep; r += WIDTH)
                N(turn_block)(side + (n * PANEL + q * WIDTH) * deep + r, deep, WIDTH, to + r * vectors * WIDTH + q * WIDTH, vectors * WIDTH);
        if (real == vectors * WIDTH) {
            N(by_panel)(&walk, rows, vectors, a, to, adds, c, ldw);
            continue;
        }
        N(by_panel)(&walk, rows, vectors, a, to, 0, tile, PANEL);
        for (i64 m = 0; m < rows; m++)
            for (i64 q = 0; q < real; q++)
                c[m * ldw + q] = (adds ? c[m * ldw + q] : 0) + tile[m * PANEL + q];
    }
}

static void N(weight_part)(long begin, long end, void *const *given) {
    Gather *j = given[0];
    if (j->pixels) {
        N(pixel_part)(begin, end, j);
        return;
    }
    Room room = {0};
    i64 splits = parts_of(j->rows, j->split), all = j->inner * j->part->taps, pieces = parts_of(all, j->columns);
    for (long t = begin; t < end; t++) {
        i64 first = t % splits * j->split, column = t / splits % pieces * j->columns, group = t / splits / pieces;
        if (j->planes) {
            N(plane_weights)(j, group, &room);
            continue;
        }
        if (j->direct) {
            N(direct_weights)(j, group, first, least(j->split, j->rows - first), &room);
            continue;
        }
        for (i64 b = 0; b < j->part->blocks && !j->failed; b++) {
            Block block = block_at(j, j->part, b);
            N(weight_block)(j, &block, group, column, least(j->columns, all - column), first, least(j->split, j->rows - first), b > 0, &room);
        }
    }
    leave_room(&room);
}
#undef WIDTH
#undef QUARTER
#undef PANEL
#undef AT_ONCE
