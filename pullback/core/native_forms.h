/* The forms of a convolution: what the template native_convolution.h works on, and how the work is cut into tasks. Read once, for all
 * dtypes and sets of instructions.
 *
 * In: a Windows (see _network.c). Out: a Gather, in which a result, a gradient of an input and a gradient of weights look alike: a source
 * that is read through windows, a matrix that is read where it lies, and what is written.
 */
#define DEPTH 256      /* terms of a sum between two looks at its result */
#define PANELS 5       /* of a block of places */
#define PANEL_ROOM (1 << 20) /* bytes of panels that are worked on together, unless one is more */
#define WEIGHTS_NEAR (4 << 20) /* bytes of weights that threads read again and again */
#define ROWS_AT_MOST 256 /* of a task */
#define ROWS_AT_LEAST 64 /* where threads share them: what is read is laid out for each */
#define FEW 4          /* rows of a group for which panels do not pay */
#define DIRECT_PLACES 1024 /* of a block, where there are no panels */
#define DIRECT_CHANNELS 16 /* worked on together there */
#define NEAR_DEPTH 128 /* terms of a sum whose factors stay near, where vectors are of outputs */
#define PIXELS_AT_ONCE 128 /* of a block there */
#define PIXELS_THAT_PAY 256 /* for which factors are laid out */
#define COLUMNS 6      /* panels of columns of a task, for gradients of weights */

typedef struct {
    i64 row, step, outer, inner;
    const i64 *at; /* where inner numbers lie */
} Walk;

static i64 in_a_row[DEPTH]; /* 0, 1, ...: inner numbers that lie side by side, which are at most DEPTH channels or PANELS panels of places */

typedef struct {
    i64 to, length, from;
} Run;

typedef struct {
    Run *run, *out;
    i64 count, outs;
} Runs;

typedef struct {
    i64 image, images, first, places; /* places of each of the images */
} Block;

/* Places of the result that meet the same taps. */
typedef struct {
    i64 places[3], start;     /* how many, and where the first one lies in the result */
    i64 taps, low[3], high[3]; /* the least and the largest shift */
    i64 *shift;               /* (taps, 3): a tap reads number place * stride + shift of the source */
    i64 *at;                  /* (taps): where its weight lies */
    u64 phases;               /* remainders of columns that are read, the first 64 */
    i64 packed; /* where its panels of factors begin */
    i64 images, piece, blocks; /* of a block: images, or, where it is less than one, places; how many blocks there are */
} Part;

typedef struct {
    const void *source, *a, *bias;
    void *to;
    i64 size[3], step[5], stride[3], to_step[5], bias_step; /* steps: image, channel, depth, height, width */
    i64 reach;                       /* the source ends behind that many numbers */
    i64 images, groups, inner, rows; /* channels of the source and rows of the result of a group */
    i64 row, outer, group;           /* steps of a: between rows, channels, groups (images, for gradients of weights) */
    i64 together;                    /* channels that are worked on together */
    i64 split, columns;              /* rows of a task; columns of a task, for gradients of weights */
    i64 parts, tasks, shared;        /* parts; tasks; parts of a task: all of them where they are alike, or one */
    Part *part;
    void *packed;                    /* factors laid out for all tasks */
    i64 packs;                       /* pieces of that work */
    int in_place, direct, planes, pixels, outputs, failed;
} Gather;

/* Memory of a thread. */
typedef struct {
    void *box, *panels, *tile, *side;
    i64 *taps;
    size_t held[4];
    i64 held_taps, held_runs;
    Runs runs;
    const Part *part; /* what `taps` and `runs` are of */
    Block block;
} Room;

static int widen(void **p, size_t *held, size_t bytes) {
    if (bytes <= *held)
        return 1;
    free(*p);
    *p = aligned_alloc(64, (bytes + 4096) / 64 * 64); /* vectors may be read and written behind the end */
    *held = *p ? bytes : 0;
    return *p != NULL;
}

static int widen_room(Room *r, size_t box, size_t panels, size_t tile, size_t side, i64 taps, i64 runs) {
    int fine = widen(&r->box, &r->held[0], box) && widen(&r->panels, &r->held[1], panels) && widen(&r->tile, &r->held[2], tile) &&
               widen(&r->side, &r->held[3], side);
    if (taps > r->held_taps) {
        free(r->taps);
        r->taps = malloc(sizeof(i64) * (size_t)taps);
        r->held_taps = r->taps ? taps : 0;
        fine = fine && r->taps;
    }
    if (runs > r->held_runs) {
        free(r->runs.run);
        r->runs.run = malloc(2 * sizeof(Run) * (size_t)runs);
        r->held_runs = r->runs.run ? runs : 0;
        fine = fine && r->runs.run;
    }
    r->runs.out = r->runs.run + r->held_runs;
    return fine;
}

/* Whether a block of a part needs other taps and runs than the one before: those of a block say nothing of where its images are. */
static int other_block(Room *r, const Part *p, const Block *k) {
    int other = r->part != p || r->block.images != k->images || r->block.first != k->first || r->block.places != k->places;
    r->part = p;
    r->block = *k;
    return other;
}

static void leave_room(Room *r) {
    free(r->box);
    free(r->panels);
    free(r->tile);
    free(r->side);
    free(r->taps);
    free(r->runs.run);
}

static i64 least(i64 a, i64 b) { return a < b ? a : b; }
static i64 most(i64 a, i64 b) { return a > b ? a : b; }
static i64 parts_of(i64 n, i64 each) { return (n + each - 1) / each; }

/* How many whole images of some places make a block, at most some: so many that threads end at the same time, as far as vectors are full. */
static i64 images_together(i64 images, i64 area, i64 limit, i64 vector, long threads) {
    i64 best = parts_of(images, parts_of(images, limit)), least_time = 0;
    for (i64 each = best; each > 0 && threads > 1; each--) {
        i64 time = parts_of(parts_of(images, each), threads) * (parts_of(each * area, vector) + 1);
        if (each == best || time < least_time) {
            least_time = time;
            best = each;
        }
    }
    return best;
}

/* Blocks of about as many places, none of more than some. */
static void cut_places(const Gather *j, Part *p, i64 limit, i64 multiple, i64 vector, long threads) {
    i64 area = p->places[0] * p->places[1] * p->places[2];
    if (area > limit) {
        i64 pieces = parts_of(area, limit);
        p->piece = parts_of(parts_of(area, pieces), multiple) * multiple;
        p->images = 1;
        p->blocks = j->images * parts_of(area, p->piece);
        return;
    }
    p->piece = 0;
    p->images = images_together(j->images, area, most(1, limit / area), vector, threads);
    p->blocks = parts_of(j->images, p->images);
}

static Block block_at(const Gather *j, const Part *p, i64 number) {
    i64 area = p->places[0] * p->places[1] * p->places[2];
    if (!p->piece)
        return (Block){number * p->images, least(p->images, j->images - number * p->images), 0, area};
    i64 each = parts_of(area, p->piece), first = number % each * p->piece;
    return (Block){number / each, 1, first, least(p->piece, area - first)};
}

/* Which taps of an axis read something inside at some of the places with a remainder; all, where there is none. */
static void tap_range(const Gather *j, const Windows *w, const i64 *remainder, int d, int wanted, i64 places, i64 *first, i64 *many) {
    *first = 0;
    *many = w->kernel[d];
    if (!remainder || wanted)
        return;
    i64 near = remainder[d] + w->padding[d], beyond = near - w->stride[d] * j->size[d]; /* tap * dilation is more than `beyond` */
    *first = beyond < 0 ? 0 : beyond / w->dilation[d] + 1;
    *many = most(0, least(w->kernel[d], (near + w->stride[d] * (places - 1)) / w->dilation[d] + 1) - *first);
}

/* Where a tap stands, of those that a range has: in the order of what they read, which is backwards for gradients of inputs. */
static void tap_at_number(i64 number, const i64 *first, const i64 *many, int backwards, i64 *at) {
    i64 k = backwards ? many[0] * many[1] * many[2] - 1 - number : number;
    at[0] = first[0] + k / (many[1] * many[2]);
    at[1] = first[1] + k / many[2] % many[1];
    at[2] = first[2] + k % many[2];
}

/* The taps that places with some remainders meet; with no remainders, all of them. Those that read nothing but border are left out, unless
 * all are `wanted`. Takes their memory from `numbers`. */
static void find_taps(const Gather *j, const Windows *w, const i64 *remainder, int wanted, Part *p, i64 **numbers) {
    i64 first[3], many[3];
    for (int d = 0; d < 3; d++)
        tap_range(j, w, remainder, d, wanted, p->places[d], &first[d], &many[d]);
    i64 all = many[0] * many[1] * many[2];
    p->shift = *numbers;
    for (int d = 0; d < 3; d++)
        p->low[d] = p->high[d] = 0;
    for (i64 k = 0, shift[3]; k < all; k++) {
        i64 at[3], meets = 1;
        tap_at_number(k, first, many, remainder != NULL, at);
        for (int d = 0; d < 3; d++) {
            shift[d] = at[d] * w->dilation[d] - w->padding[d];
            if (remainder) {
                shift[d] = remainder[d] - shift[d];
                meets = meets && shift[d] % w->stride[d] == 0;
                shift[d] /= w->stride[d];
            }
        }
        for (int d = 0; d < 3 && !wanted; d++)
            meets = meets && shift[d] < j->size[d] && shift[d] + (p->places[d] - 1) * j->stride[d] >= 0;
        if (!meets)
            continue;
        for (int d = 0; d < 3; d++) {
            p->low[d] = p->taps ? least(p->low[d], shift[d]) : shift[d];
            p->high[d] = p->taps ? most(p->high[d], shift[d]) : shift[d];
            p->shift[3 * p->taps + d] = shift[d];
        }
        p->taps++;
    }
    *numbers += 3 * p->taps;
    p->at = *numbers;
    for (i64 n = 0, k = 0; n < all && k < p->taps; n++) { /* the same taps again */
        i64 at[3], same = 1;
        tap_at_number(n, first, many, remainder != NULL, at);
        for (int d = 0; d < 3; d++) {
            i64 shift = at[d] * w->dilation[d] - w->padding[d];
            same = same && (remainder ? p->shift[3 * k + d] * w->stride[d] == remainder[d] - shift : p->shift[3 * k + d] == shift);
        }
        if (same)
            p->at[k++] = at[0] * w->w_step[2] + at[1] * w->w_step[3] + at[2] * w->w_step[4];
    }
    *numbers += p->taps;
}

static void find_phases(const Gather *j, Part *p) {
    p->phases = j->stride[2] == 1; /* also for a part without taps, whose box others read */
    for (i64 t = 0; t < p->taps; t++) {
        i64 phase = (p->shift[3 * t + 2] - p->low[2]) % j->stride[2];
        if (phase < 64)
            p->phases |= 1ULL << phase;
    }
}

static int in_order(const i64 *size, const i64 *step) {
    return (size[2] < 2 || step[4] == 1) && (size[1] < 2 || step[3] == size[2]) && (size[0] < 2 || step[2] == size[1] * size[2]);
}

/* A kernel of one tap that reads every number where it lies: one long row. */
static void make_flat(Gather *j, Part *p) {
    i64 area = j->size[0] * j->size[1] * j->size[2];
    j->size[0] = j->size[1] = p->places[0] = p->places[1] = 1;
    j->size[2] = p->places[2] = area;
    j->step[4] = 1;
    j->to_step[4] = 1;
    j->in_place = 1;
}

/* Places of an input's gradient by which they meet different taps: those of the stride; all, where one place of the result meets them. */
static i64 remainders(const Windows *w, int d) { return w->places[d] == 1 ? w->size[d] : least(w->stride[d], w->size[d]); }

/* Parts that read the same box, if they are of the same places: 1, and they all do. */
static int same_box(Gather *j) {
    Part *first = j->part;
    for (Part *p = first; p < first + j->parts; p++)
        if (memcmp(p->places, first->places, sizeof p->places))
            return 0;
    i64 low[3], high[3], seen = 0;
    for (Part *p = first; p < first + j->parts; p++)
        for (int d = 0; d < 3 && p->taps; d++, seen += d == 3) {
            low[d] = seen ? least(low[d], p->low[d]) : p->low[d];
            high[d] = seen ? most(high[d], p->high[d]) : p->high[d];
        }
    for (Part *p = first; p < first + j->parts && seen; p++) {
        memcpy(p->low, low, sizeof low);
        memcpy(p->high, high, sizeof high);
    }
    return 1;
}

/* Whether each channel is by itself, under a filter without gaps, strides or depth, and lies so that native_planes.h can read and write it. */
static int by_planes(const Gather *j, int what) {
    const Part *p = j->part;
    i64 tall = p->high[1] - p->low[1] + 1, wide = p->high[2] - p->low[2] + 1, width = p->places[2];
    if (j->parts > 1 || j->inner > 1 || j->rows > 1 || j->groups < 2 || j->stride[1] > 1 || j->stride[2] > 1 || width > DIRECT_PLACES)
        return 0;
    if (!p->taps || p->taps != tall * wide || j->size[0] > 1 || p->places[0] > 1)
        return 0;
    if (what == TO_WEIGHT)
        return tall == 3 && wide == 3;
    return tall < 8 && tall != 6 && j->to_step[4] == 1 && (p->places[1] == 1 || j->to_step[3] == width);
}

/* Whether each channel is by itself and channels lie side by side, as native_pixels.h reads and writes them. */
static int by_pixels(const Gather *j, i64 width) { return j->inner == 1 && j->rows == 1 && j->groups >= width && j->step[1] == 1 && j->to_step[1] == 1; }

/* Tasks of some rows of pixels, or, for gradients of weights, of a vector of channels. */
static void cut_pixels(Gather *j, int what, i64 width) {
    j->tasks = 0;
    j->columns = what == TO_WEIGHT;
    for (Part *p = j->part; p < j->part + j->parts; p++) {
        cut_places(j, p, most(p->places[2], DIRECT_PLACES * DIRECT_CHANNELS / j->groups), p->places[2], width, 1);
        j->tasks += what == TO_WEIGHT ? parts_of(j->groups, width) : p->blocks;
    }
}

/* Whether channels lie side by side, as native_outputs.h reads and writes them, and are met by enough pixels. */
static int by_outputs(const Gather *j, const Windows *w, int what, i64 width) {
    const i64 *n = what == FORWARD ? w->places : w->size;
    if (what == TO_WEIGHT || j->step[1] != 1 || j->to_step[1] != 1 || j->rows < width || j->inner < 2 || j->groups * j->inner < 2)
        return 0;
    return j->images * n[0] * n[1] * n[2] >= PIXELS_THAT_PAY;
}

/* Tasks of some pixels, and panels of factors of about as many outputs each. 0 where there is no memory. */
static int cut_outputs(Gather *j, i64 width, i64 itemsize, long threads) {
    i64 vectors = parts_of(j->rows, width), panels = parts_of(vectors, 3), all = 0, deepest = 1;
    j->columns = parts_of(vectors, panels) * width;
    j->packs = parts_of(j->rows, j->columns) * j->groups * j->parts;
    j->tasks = 0;
    for (Part *p = j->part; p < j->part + j->parts; p++) {
        cut_places(j, p, most(p->places[2], PIXELS_AT_ONCE), p->places[2], width, threads);
        j->tasks += p->blocks * j->groups;
        p->packed = all;
        all += p->taps * j->inner * j->groups * vectors * width;
        deepest = most(deepest, p->taps);
    }
    j->together = most(1, NEAR_DEPTH / deepest);
    j->packed = aligned_alloc(64, (size_t)(all * itemsize + 4096) / 64 * 64);
    return j->packed != NULL;
}

static void forget_plan(Gather *j) {
    free(j->part);
    free(j->packed);
}

/* How a form's work is cut: see the head of native_convolution.h. 0 where there is no memory. */
static int plan(const Windows *w, int what, i64 panel, i64 itemsize, long threads, Gather *j) {
    i64 taps = w->kernel[0] * w->kernel[1] * w->kernel[2], channels = w->channels / w->groups, outputs = w->outputs / w->groups;
    const i64 *w_step = w->w_step;
    int back = what == TO_INPUT;
    memset(j, 0, sizeof *j);
    j->images = w->images;
    j->groups = w->groups;
    j->parts = back ? remainders(w, 0) * remainders(w, 1) * remainders(w, 2) : 1;
    j->part = calloc(1, sizeof(Part) * (size_t)j->parts + sizeof(i64) * 4 * (size_t)taps);
    if (!j->part)
        return 0;
    i64 *numbers = (i64 *)(j->part + j->parts);
    j->source = back ? w->y : w->x;
    j->inner = back ? outputs : channels;
    j->rows = back ? channels : outputs;
    for (int d = 0; d < 5; d++) {
        j->step[d] = back ? w->y_step[d] : w->step[d];
        j->to_step[d] = back ? w->step[d] : w->y_step[d]; /* for gradients of weights, those of the result's gradient */
    }
    for (int d = 0; d < 3; d++) {
        j->size[d] = back ? w->places[d] : w->size[d];
        j->stride[d] = back ? 1 : w->stride[d];
        j->to_step[2 + d] *= back ? w->stride[d] : 1;
    }
    j->reach = 1 + most(0, j->step[0]) * (j->images - 1) + most(0, j->step[1]) * (j->groups * j->inner - 1);
    for (int d = 0; d < 3; d++)
        j->reach += most(0, j->step[2 + d]) * (j->size[d] - 1);
    j->to = back ? w->dx : what == FORWARD ? w->y : w->dw;
    j->a = what == TO_WEIGHT ? w->y : w->w;
    j->bias = what == TO_WEIGHT ? NULL : w->bias;
    j->bias_step = w->bias_step;
    j->row = what == TO_WEIGHT ? w->y_step[1] : back ? w_step[1] : w_step[0];
    j->outer = back ? w_step[0] : w_step[1];
    j->group = what == TO_WEIGHT ? w->y_step[0] : back ? outputs * w_step[0] : outputs * w_step[0];
    if (!back) {
        memcpy(j->part->places, w->places, sizeof w->places);
        find_taps(j, w, NULL, what == TO_WEIGHT, j->part, &numbers);
    }
    for (i64 k = 0, kept = 0; back && k < j->parts; k++) {
        i64 rest[3] = {k / (remainders(w, 1) * remainders(w, 2)), k / remainders(w, 2) % remainders(w, 1), k % remainders(w, 2)};
        Part *p = &j->part[kept++];
        for (int d = 0; d < 3; d++) {
            p->places[d] = w->places[d] == 1 ? 1 : parts_of(w->size[d] - rest[d], w->stride[d]);
            p->start += rest[d] * w->step[2 + d];
        }
        find_taps(j, w, rest, 0, p, &numbers);
    }
    i64 deepest = 1;
    for (i64 k = 0; k < j->parts; k++)
        deepest = most(deepest, j->part[k].taps);
    int single = taps == 1;
    for (int d = 0; d < 3; d++)
        single = single && w->stride[d] == 1 && !w->padding[d] && w->places[d] == w->size[d];
    i64 vectors = parts_of(j->part->places[2], panel / 3); /* of a row; full ones need no panels */
    j->direct = what == TO_WEIGHT ? j->rows <= FEW / 2 && channels <= DIRECT_CHANNELS
                                  : j->rows <= FEW || (!single && 15 * vectors * (panel / 3) <= 16 * j->part->places[2]);
    j->pixels = by_pixels(j, panel / 3);
    j->outputs = !j->pixels && by_outputs(j, w, what, panel / 3);
    j->planes = !j->pixels && by_planes(j, what);
    if (j->pixels) {
        cut_pixels(j, what, panel / 3);
        return 1;
    }
    if (j->outputs) {
        if (cut_outputs(j, panel / 3, itemsize, threads))
            return 1;
        free(j->part);
        return 0;
    }
    if (!j->direct && single && in_order(w->size, w->step) && in_order(w->places, w->y_step))
        make_flat(j, j->part);
    j->together = most(1, DEPTH / deepest);
    if (j->direct && what != TO_WEIGHT)
        j->together = least(j->together, DIRECT_CHANNELS);
    i64 limit = j->direct ? (j->rows <= FEW ? DIRECT_PLACES : DIRECT_PLACES / 4) : panel * most(1, least(PANELS, PANEL_ROOM / (panel * itemsize * deepest * j->together)));
    i64 blocks = 0;
    j->split = least(j->rows, ROWS_AT_MOST);
    i64 places = least(limit, j->images * j->part->places[0] * j->part->places[1] * j->part->places[2]);
    j->shared = j->parts > 1 && j->parts * j->split * places * itemsize <= PANEL_ROOM && same_box(j) ? j->parts : 1;
    /* Threads share places: what a block reads is laid out once. Where there are more weights than are kept near, they share rows. */
    int by_rows = what == TO_WEIGHT || (j->rows >= 2 * ROWS_AT_LEAST && j->rows * j->inner * deepest * itemsize > WEIGHTS_NEAR);
    for (i64 k = 0; k < j->parts; k++) {
        i64 width = j->part[k].places[2];
        find_phases(j, &j->part[k]);
        cut_places(j, &j->part[k], limit, j->direct && width <= limit ? width : panel / 3, panel / 3, by_rows ? 1 : threads);
        blocks += k < j->parts / j->shared ? j->part[k].blocks : 0;
    }
    if (what == TO_WEIGHT) {
        i64 pieces = j->direct ? 1 : most(parts_of(channels * taps, COLUMNS * panel), least(4 * threads, parts_of(channels * taps, panel)));
        j->columns = parts_of(parts_of(channels * taps, pieces), panel) * panel;
        blocks = parts_of(channels * taps, j->columns);
    }
    while (blocks * j->groups * parts_of(j->rows, j->split) < threads && j->split >= 2 * ROWS_AT_LEAST)
        j->split = parts_of(j->split, 16) * 8;
    j->tasks = blocks * j->groups * parts_of(j->rows, j->split);
    return 1;
}
