/* Convolution where channels lie side by side, of one dtype, for one set of instructions: a template, see _network.c and native_convolution.h.
 *
 * Results and gradients of inputs, as products whose vectors are of channels of the result: factors are laid out in panels of as many of
 * those as a tile has columns, once for all tasks, and a tile has some pixels of a row, read a number at a time where they lie, or, where taps
 * look outside, from a copy of what a block reads with zeros around it. Terms are added in the order in which panels of places add them.
 */
#define WIDTH ((i64)(VECTOR / sizeof(T)))

/* ---- panels of factors: (channels, taps, columns) */
static i64 N(columns_of)(const Gather *j, i64 panel) { return least(j->columns, parts_of(j->rows, WIDTH) * WIDTH - panel * j->columns); }

static T *N(panel_of)(const Gather *j, const Part *p, i64 group, i64 panel) {
    i64 rows = parts_of(j->rows, WIDTH) * WIDTH;
    return (T *)j->packed + p->packed + (group * rows + panel * j->columns) * j->inner * p->taps;
}

/* One vector of outputs of a panel: `a` is what the first of them meets first. */
static void N(lay_out)(const Gather *j, const Part *p, const T *a, i64 rows, i64 columns, T *to) {
    const i64 taps = p->taps, many = least(rows, WIDTH);
    for (i64 t = 0; t < taps; t++) {
        i64 c = 0;
        if (j->outer == 1)
            for (; c + WIDTH <= j->inner; c += WIDTH)
                N(turn_block)(a + p->at[t] + c, j->row, many, to + (c * taps + t) * columns, taps * columns);
        else if (j->row == 1 && many == WIDTH)
            for (; c < j->inner; c++)
                *(N(Vector) *)(to + (c * taps + t) * columns) = *(const N(Vector) *)(a + p->at[t] + c * j->outer);
        for (; c < j->inner; c++)
            for (i64 r = 0; r < WIDTH; r++)
                to[(c * taps + t) * columns + r] = r < many ? a[p->at[t] + c * j->outer + r * j->row] : 0;
    }
}

static void N(pack_part)(long begin, long end, void *const *given) {
    const Gather *j = given[0];
    const i64 panels = parts_of(j->rows, j->columns);
    for (long t = begin; t < end; t++) {
        const i64 panel = t % panels, group = t / panels % j->groups, columns = N(columns_of)(j, panel);
        const Part *p = j->part + t / panels / j->groups;
        for (i64 q = 0; q < columns; q += WIDTH) {
            i64 row = panel * j->columns + q;
            N(lay_out)(j, p, X(a) + group * j->group + row * j->row, j->rows - row, columns, N(panel_of)(j, p, group, panel) + q);
        }
    }
}

/* ---- what a block reads, with zeros where taps look outside */
static void N(copy_pixels)(const Gather *j, const N(Box) *box, const T *from, i64 y_inside, T *to) {
    const i64 low = least(most(-box->from[2], 0), box->size[2]), high = most(least(j->size[2] - box->from[2], box->size[2]), low), each = j->inner;
    if (!y_inside || low == high) {
        memset(to, 0, sizeof(T) * (size_t)(box->size[2] * each));
        return;
    }
    memset(to, 0, sizeof(T) * (size_t)(low * each));
    from += (box->from[2] + low) * j->step[4];
    if (j->step[4] == each)
        memcpy(to + low * each, from, sizeof(T) * (size_t)((high - low) * each));
    else
        for (i64 x = low; x < high; x++, from += j->step[4])
            memcpy(to + x * each, from, sizeof(T) * (size_t)each);
    memset(to + high * each, 0, sizeof(T) * (size_t)((box->size[2] - high) * each));
}

static void N(copy_region)(const Gather *j, const Block *k, const N(Box) *box, i64 group, T *to) {
    for (i64 n = k->image; n < k->image + k->images; n++)
        for (i64 z = box->from[0]; z < box->from[0] + box->size[0]; z++)
            for (i64 y = box->from[1]; y < box->from[1] + box->size[1]; y++, to += box->size[2] * j->inner)
                N(copy_pixels)(j, box, X(source) + n * j->step[0] + group * j->inner + z * j->step[2] + y * j->step[3],
                               z >= 0 && z < j->size[0] && y >= 0 && y < j->size[1], to);
}

/* ---- tiles: as many pixels of a row as rows of a tile, or the largest power of two below; the last of a row may meet the one before */
static void N(find_tiles)(const Gather *j, const Part *p, const Block *k, const N(Box) *box, const i64 *step, Runs *runs) {
    const i64 width = p->places[2];
    i64 many = AT_ONCE, count = 0;
    while (many > width)
        many /= 2;
    for (i64 n = 0; n < k->images; n++)
        for (i64 q = k->first / width; q * width < k->first + k->places; q++)
            for (i64 x = 0, z = q / p->places[1], y = q % p->places[1]; x < width; x += many) {
                x = least(x, width - many);
                Run *run = &runs->run[count], *out = &runs->out[count++];
                run->length = many;
                run->from = n * step[0] + (z - box->at[0]) * j->stride[0] * step[2] + (y - box->at[1]) * j->stride[1] * step[3] + x * j->stride[2] * step[4];
                out->from = n * j->to_step[0] + z * j->to_step[2] + y * j->to_step[3] + x * j->to_step[4];
            }
    runs->count = count;
}

/* Pixels of a tile, of the columns of a panel that are rows of the result. */
static void N(put_pixels)(const Gather *j, const T *c, i64 columns, i64 row, i64 many, T *to) {
    const i64 rows = least(columns, j->rows - row % j->rows), bias = j->bias != NULL;
    for (i64 q = 0; q < rows; q += WIDTH) {
        const int whole = q + WIDTH <= rows;
        N(Vector) b = {0};
        for (i64 r = 0; r < least(WIDTH, rows - q) && bias; r++)
            b[r] = X(bias)[(row + q + r) * j->bias_step];
        for (i64 m = 0; m < many; m++) {
            const N(Vector) found = *(const N(Vector) *)(c + m * columns + q) + b;
            T *into = to + m * j->to_step[4] + row + q;
            if (whole)
                *(N(Vector) *)into = found;
            else
                for (i64 r = 0; r < rows - q; r++)
                    into[r] = found[r];
        }
    }
}

/* A panel of outputs: its channels a few at a time, whose factors stay near while all tiles meet them. */
static void N(meet_panel)(const Gather *j, const Part *p, i64 group, i64 panel, const T *from, const i64 *taps, const Runs *runs, i64 apart, T *c, T *to) {
    const i64 columns = N(columns_of)(j, panel), row = group * j->rows + panel * j->columns;
    const T *b = N(panel_of)(j, p, group, panel);
    for (i64 start = 0, channels; start < j->inner; start += channels, b += channels * p->taps * columns) {
        channels = least(j->together, j->inner - start);
        Walk walk = {.row = apart, .step = 1, .outer = channels, .inner = p->taps, .at = taps};
        const T *a = from + start;
        if (p->taps == 1) { /* one stretch */
            walk = (Walk){.row = apart, .step = 0, .outer = 1, .inner = channels, .at = in_a_row};
            a += taps[0];
        }
        for (i64 t = 0; t < runs->count; t++)
            N(by_panel)(&walk, runs->run[t].length, columns / WIDTH, a + runs->run[t].from, b, start > 0, c + t * AT_ONCE * columns, columns);
    }
    for (i64 t = 0; t < runs->count; t++)
        N(put_pixels)(j, c + t * AT_ONCE * columns, columns, row, runs->run[t].length, to + runs->out[t].from);
}

static void N(output_block)(Gather *j, const Part *p, const Block *k, i64 group, Room *room) {
    N(Box) box;
    int inside = 1;
    for (int d = 0; d < 3; d++)
        inside = inside && p->low[d] >= 0 && (p->places[d] - 1) * j->stride[d] + p->high[d] < j->size[d];
    N(shape_box)(j, p, k, &box);
    i64 step[5] = {0, 1, 0, box.size[2] * j->inner, j->inner}, all = k->images * k->places;
    step[2] = step[3] * box.size[1];
    step[0] = step[2] * box.size[0];
    if (inside)
        memcpy(step, j->step, sizeof step);
    if (!widen_room(room, inside ? 0 : sizeof(T) * (size_t)(step[0] * k->images), 0, sizeof(T) * (size_t)(all * AT_ONCE * j->columns), 0, p->taps, all)) {
        j->failed = 1;
        return;
    }
    if (other_block(room, p, k)) {
        N(find_tiles)(j, p, k, &box, step, &room->runs);
        for (i64 t = 0; t < p->taps; t++) {
            room->taps[t] = 0;
            for (int d = 0; d < 3; d++)
                room->taps[t] += (p->shift[3 * t + d] - p->low[d]) * step[2 + d];
        }
    }
    const T *from = room->box;
    if (inside)
        from = X(source) + k->image * j->step[0] + group * j->inner + box.from[0] * step[2] + box.from[1] * step[3] + box.from[2] * step[4];
    else
        N(copy_region)(j, k, &box, group, room->box);
    for (i64 panel = 0; panel * j->columns < j->rows; panel++)
        N(meet_panel)(j, p, group, panel, from, room->taps, &room->runs, j->stride[2] * step[4], room->tile,
                      X(to) + p->start + k->image * j->to_step[0]);
}

static void N(output_part)(long begin, long end, Gather *j) {
    Room room = {0};
    for (long t = begin; t < end && !j->failed; t++) {
        i64 group = t % j->groups, number = t / j->groups;
        const Part *p = j->part;
        for (; number >= p->blocks; p++)
            number -= p->blocks;
        Block block = block_at(j, p, number);
        N(output_block)(j, p, &block, group, &room);
    }
    leave_room(&room);
}
#undef WIDTH
