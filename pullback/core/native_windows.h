/* Convolution and pooling of one dtype, for one set of instructions. A template: see _network.c. */
#define X(field) ((T *)j->field)
/* ---- windows: x is (images, channels, height, width) with any strides; y is (images, outputs, rows * columns), contiguous */

/* Where row `row` of the places (depth and height counted as one) reads from, for a tap: its depth and height; 0 if that is outside. */
INLINE int N(row_at)(const Windows *j, i64 row, i64 kd, i64 kh, i64 *z, i64 *y) {
    *z = row / j->places[1] * j->stride[0] - j->padding[0] + kd * j->dilation[0];
    *y = row % j->places[1] * j->stride[1] - j->padding[1] + kh * j->dilation[1];
    return *z >= 0 && *z < j->size[0] && *y >= 0 && *y < j->size[1];
}

/* Which columns of a row a tap reads inside the image: low <= q < high, from first + q * stride. */
INLINE void N(columns_at)(const Windows *j, i64 kw, i64 *first, i64 *low, i64 *high) {
    i64 s = j->stride[2], width = j->places[2];
    *first = kw * j->dilation[2] - j->padding[2];
    *low = *first < 0 ? (-*first + s - 1) / s : 0;
    *low = *low < width ? *low : width;
    *high = j->size[2] > *first ? (j->size[2] - *first + s - 1) / s : 0;
    *high = *high < width ? *high : width;
    *high = *high > *low ? *high : *low;
}

/* columns of a block: (channels of the group * kernel, images * rows * columns) */
static void N(to_columns)(const Windows *j, i64 image, i64 images, i64 row, i64 rows, i64 group, T *columns) {
    i64 width = j->places[2], each = rows * width, all = images * each, c_count = j->channels / j->groups, s = j->stride[2] * j->step[4];
    i64 taps = j->kernel[0] * j->kernel[1] * j->kernel[2], first, low, high, z, y;
    for (i64 c = 0; c < c_count; c++)
        for (i64 tap = 0; tap < taps; tap++, columns += all) {
            i64 kd = tap / (j->kernel[1] * j->kernel[2]), kh = tap / j->kernel[2] % j->kernel[1];
            N(columns_at)(j, tap % j->kernel[2], &first, &low, &high);
            for (i64 n = 0; n < images; n++) {
                const T *plane = X(x) + (image + n) * j->step[0] + (group * c_count + c) * j->step[1];
                for (i64 r = 0; r < rows; r++) {
                    T *to = columns + n * each + r * width;
                    if (!N(row_at)(j, row + r, kd, kh, &z, &y)) {
                        memset(to, 0, sizeof(T) * (size_t)width);
                        continue;
                    }
                    const T *from = plane + z * j->step[2] + y * j->step[3] + first * j->step[4];
                    for (i64 q = 0; q < low; q++)
                        to[q] = 0;
                    if (s == 1)
                        for (i64 q = low; q < high; q++)
                            to[q] = from[q];
                    else
                        for (i64 q = low; q < high; q++)
                            to[q] = from[q * s];
                    for (i64 q = high; q < width; q++)
                        to[q] = 0;
                }
            }
        }
}

/* the reverse: columns added to where they came from; dx is contiguous */
static void N(from_columns)(const Windows *j, i64 image, i64 images, i64 row, i64 rows, i64 group, const T *columns) {
    i64 width = j->places[2], each = rows * width, all = images * each, c_count = j->channels / j->groups, s = j->stride[2];
    i64 taps = j->kernel[0] * j->kernel[1] * j->kernel[2], area = j->size[0] * j->size[1] * j->size[2], first, low, high, z, y;
    for (i64 c = 0; c < c_count; c++)
        for (i64 tap = 0; tap < taps; tap++, columns += all) {
            i64 kd = tap / (j->kernel[1] * j->kernel[2]), kh = tap / j->kernel[2] % j->kernel[1];
            N(columns_at)(j, tap % j->kernel[2], &first, &low, &high);
            for (i64 n = 0; n < images; n++) {
                T *plane = X(dx) + ((image + n) * j->channels + group * c_count + c) * area;
                for (i64 r = 0; r < rows; r++) {
                    const T *from = columns + n * each + r * width;
                    if (!N(row_at)(j, row + r, kd, kh, &z, &y))
                        continue;
                    T *to = plane + (z * j->size[1] + y) * j->size[2] + first;
                    if (s == 1)
                        for (i64 q = low; q < high; q++)
                            to[q] += from[q];
                    else
                        for (i64 q = low; q < high; q++)
                            to[q * s] += from[q];
                }
            }
        }
}

/* (outputs, images, places) and (images, outputs, places): a block of several images is one product */
INLINE void N(regroup)(const Windows *j, T *y, T *rows, i64 image, i64 images, i64 first_output, i64 outputs, i64 each, int back) {
    for (i64 o = 0; o < outputs; o++)
        for (i64 n = 0; n < images; n++) {
            T *in_y = y + ((image + n) * j->outputs + first_output + o) * each, *in_rows = rows + (o * images + n) * each;
            memcpy(back ? in_rows : in_y, back ? in_y : in_rows, sizeof(T) * (size_t)each);
        }
}

static void N(convolve_part)(Windows *j, int what, long begin, long end, T *dw) {
    i64 c_count = j->channels / j->groups, o_count = j->outputs / j->groups, taps = j->kernel[0] * j->kernel[1] * j->kernel[2];
    i64 k = c_count * taps, height = j->places[0] * j->places[1], width = j->places[2], area = height * width;
    i64 per = j->by_rows ? (height + j->block - 1) / j->block : 1, most = j->by_rows ? j->block * width : j->block * area;
    i64 pointwise = taps == 1 && j->step[4] == 1 && j->step[3] == j->size[2] && j->step[2] == j->size[1] * j->size[2] && (j->by_rows || j->block == 1);
    for (int d = 0; d < 3; d++)
        pointwise = pointwise && j->stride[d] == 1 && !j->padding[d];
    T *columns = malloc(sizeof(T) * (size_t)(k * most)), *side = !j->by_rows && j->block > 1 ? malloc(sizeof(T) * (size_t)(o_count * most)) : NULL;
    if (!columns || (!j->by_rows && j->block > 1 && !side))
        j->failed = 1;
    for (long t = begin; t < end && !j->failed; t++) {
        i64 image = j->by_rows ? t / per : t * j->block, row = j->by_rows ? t % per * j->block : 0;
        i64 images = j->by_rows ? 1 : j->images - image < j->block ? j->images - image : j->block;
        i64 rows = j->by_rows ? (height - row < j->block ? height - row : j->block) : height, n = images * rows * width;
        for (i64 g = 0; g < j->groups; g++) {
            const T *w = X(w) ? X(w) + g * o_count * k : NULL;
            T *y = X(y) + (image * j->outputs + g * o_count) * area + row * width;
            i64 ldy = images > 1 ? n : area;
            T *yy = images > 1 ? side : y;
            if (images > 1 && what != FORWARD)
                N(regroup)(j, X(y), side, image, images, g * o_count, o_count, area, 1);
            const T *matrix = columns;
            i64 ldm = n;
            if (pointwise && what != TO_INPUT) {
                matrix = X(x) + image * j->step[0] + g * c_count * j->step[1] + row * width;
                ldm = j->step[1];
            } else if (what != TO_INPUT)
                N(to_columns)(j, image, images, row, rows, g, columns);
            if (what == FORWARD) {
                N(gemm)(0, 0, o_count, n, k, 1, w, k, matrix, ldm, 0, yy, ldy);
                if (images > 1)
                    N(regroup)(j, X(y), side, image, images, g * o_count, o_count, area, 0);
            } else if (what == TO_WEIGHT)
                N(gemm)(0, 1, o_count, k, n, 1, yy, ldy, matrix, ldm, 1, dw + g * o_count * k, k);
            else if (pointwise)
                N(gemm)(1, 0, k, n, o_count, 1, w, k, yy, ldy, 0, X(dx) + (image * j->channels + g * c_count) * area + row * width, area);
            else {
                N(gemm)(1, 0, k, n, o_count, 1, w, k, yy, ldy, 0, columns, n);
                N(from_columns)(j, image, images, row, rows, g, columns);
            }
        }
    }
    free(columns);
    free(side);
}

static void N(forward_part)(long begin, long end, void *const *given) { N(convolve_part)(given[0], FORWARD, begin, end, NULL); }
static void N(input_part)(long begin, long end, void *const *given) { N(convolve_part)(given[0], TO_INPUT, begin, end, NULL); }
static void N(weight_part)(long begin, long end, void *const *given) {
    Windows *j = given[0];
    N(convolve_part)(j, TO_WEIGHT, begin, end, X(dw));
}

/* ---- convolution of each channel by itself: a group has one channel, and one or more outputs; a task is a plane of y */
static void N(depthwise_part)(Windows *j, int what, long begin, long end) {
    i64 height = j->places[0] * j->places[1], width = j->places[2], area = height * width, s = j->stride[2], each = j->outputs / j->groups;
    i64 taps = j->kernel[0] * j->kernel[1] * j->kernel[2], plane = j->size[0] * j->size[1] * j->size[2], first, low, high, z, y;
    for (long t = begin; t < end; t++) {
        i64 n = t / j->outputs, o = t % j->outputs, c = o / each;
        const T *x = what == TO_INPUT ? NULL : X(x) + n * j->step[0] + c * j->step[1];
        T *to = X(y) + t * area, *dx = what == TO_INPUT ? X(dx) + (n * j->channels + c) * plane : NULL;
        if (what == FORWARD)
            memset(to, 0, sizeof(T) * (size_t)area);
        for (i64 tap = 0; tap < taps; tap++) {
            i64 kd = tap / (j->kernel[1] * j->kernel[2]), kh = tap / j->kernel[2] % j->kernel[1];
            T w = what == TO_WEIGHT ? 0 : X(w)[o * taps + tap], total = 0;
            N(columns_at)(j, tap % j->kernel[2], &first, &low, &high);
            for (i64 r = 0; r < height; r++) {
                if (!N(row_at)(j, r, kd, kh, &z, &y))
                    continue;
                T *row = to + r * width;
                if (what == TO_INPUT) {
                    T *into = dx + (z * j->size[1] + y) * j->size[2] + first;
                    if (s == 1)
                        for (i64 q = low; q < high; q++)
                            into[q] += w * row[q];
                    else
                        for (i64 q = low; q < high; q++)
                            into[q * s] += w * row[q];
                    continue;
                }
                i64 stride = s * j->step[4];
                const T *from = x + z * j->step[2] + y * j->step[3] + first * j->step[4];
                if (what == FORWARD && stride == 1)
                    for (i64 q = low; q < high; q++)
                        row[q] += w * from[q];
                else if (what == FORWARD)
                    for (i64 q = low; q < high; q++)
                        row[q] += w * from[q * stride];
                else if (stride == 1) {
                    T part = 0;
                    SIMD_SUM(part)
                    for (i64 q = low; q < high; q++)
                        part += row[q] * from[q];
                    total += part;
                } else
                    for (i64 q = low; q < high; q++)
                        total += row[q] * from[q * stride];
            }
            if (what == TO_WEIGHT)
                X(dw)[o * taps + tap] += total;
        }
    }
}

static void N(depthwise_forward_part)(long begin, long end, void *const *given) { N(depthwise_part)(given[0], FORWARD, begin, end); }
static void N(depthwise_input_part)(long begin, long end, void *const *given) { N(depthwise_part)(given[0], TO_INPUT, begin, end); }
static void N(depthwise_weight_part)(long begin, long end, void *const *given) { N(depthwise_part)(given[0], TO_WEIGHT, begin, end); }

/* ---- pooling: planes (outer, height, width), contiguous */

static void N(max_pool_part)(long begin, long end, void *const *given) {
    Pool *j = given[0];
    i64 area = j->places[0] * j->places[1];
    for (long p = begin; p < end; p++) {
        const T *x = X(x) + p * j->size[0] * j->size[1];
        T *y = X(y) + p * area;
        i64 *at = j->at + p * area;
        for (i64 r = 0; r < j->places[0]; r++)
            for (i64 c = 0; c < j->places[1]; c++) {
                i64 top = r * j->stride[0] - j->padding[0], left = c * j->stride[1] - j->padding[1], dh = j->dilation[0], dw = j->dilation[1];
                i64 bottom = top + (j->kernel[0] - 1) * dh + 1, right = left + (j->kernel[1] - 1) * dw + 1;
                while (top < 0)
                    top += dh;
                while (left < 0)
                    left += dw;
                bottom = bottom < j->size[0] ? bottom : j->size[0];
                right = right < j->size[1] ? right : j->size[1];
                T best = -INF;
                i64 where = top * j->size[1] + left;
                for (i64 h = top; h < bottom; h += dh)
                    for (i64 w = left; w < right; w += dw) {
                        T v = x[h * j->size[1] + w];
                        int better = v > best || v != v;
                        best = better ? v : best;
                        where = better ? h * j->size[1] + w : where;
                    }
                y[r * j->places[1] + c] = best;
                at[r * j->places[1] + c] = where;
            }
    }
}

static void N(scatter_part)(long begin, long end, void *const *given) {
    Pool *j = given[0];
    i64 many = j->places[0], area = j->size[0];
    for (long p = begin; p < end; p++) {
        T *y = X(y) + p * area;
        const T *x = X(x) + p * many;
        const i64 *from = j->from + p * many;
        if (j->sets)
            for (i64 k = 0; k < many; k++)
                y[from[k]] = x[k];
        else
            for (i64 k = 0; k < many; k++)
                y[from[k]] += x[k];
    }
}
#undef X
