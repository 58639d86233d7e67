/* Convolution and pooling of one dtype, for one set of instructions. A template: see _network.c. */
#define X(field) ((T *)j->field)
/* ---- windows: x is (images, channels, height, width) with any strides; y is (images, outputs, rows * columns), contiguous */

/* columns of a block: (channels of the group * kernel, images * rows * columns) */
static void N(to_columns)(const Windows *j, i64 image, i64 images, i64 row, i64 rows, i64 group, T *columns) {
    i64 width = j->places[1], each = rows * width, all = images * each, c_count = j->channels / j->groups;
    for (i64 c = 0; c < c_count; c++)
        for (i64 kh = 0; kh < j->kernel[0]; kh++)
            for (i64 kw = 0; kw < j->kernel[1]; kw++, columns += all)
                for (i64 n = 0; n < images; n++) {
                    const T *plane = X(x) + (image + n) * j->step[0] + (group * c_count + c) * j->step[1];
                    for (i64 r = 0; r < rows; r++) {
                        T *to = columns + n * each + r * width;
                        i64 y = (row + r) * j->stride[0] - j->padding[0] + kh * j->dilation[0];
                        i64 first = kw * j->dilation[1] - j->padding[1], s = j->stride[1];
                        if (y < 0 || y >= j->size[0]) {
                            memset(to, 0, sizeof(T) * (size_t)width);
                            continue;
                        }
                        i64 low = first < 0 ? (-first + s - 1) / s : 0, high = j->size[1] > first ? (j->size[1] - first + s - 1) / s : 0;
                        low = low < width ? low : width;
                        high = high < width ? high : width;
                        const T *from = plane + y * j->step[2] + first * j->step[3];
                        for (i64 q = 0; q < low; q++)
                            to[q] = 0;
                        if (s * j->step[3] == 1)
                            for (i64 q = low; q < high; q++)
                                to[q] = from[q];
                        else
                            for (i64 q = low; q < high; q++)
                                to[q] = from[q * s * j->step[3]];
                        for (i64 q = high > low ? high : low; q < width; q++)
                            to[q] = 0;
                    }
                }
}

/* the reverse: columns added to where they came from; dx is contiguous */
static void N(from_columns)(const Windows *j, i64 image, i64 images, i64 row, i64 rows, i64 group, const T *columns) {
    i64 width = j->places[1], each = rows * width, all = images * each, c_count = j->channels / j->groups, area = j->size[0] * j->size[1];
    for (i64 c = 0; c < c_count; c++)
        for (i64 kh = 0; kh < j->kernel[0]; kh++)
            for (i64 kw = 0; kw < j->kernel[1]; kw++, columns += all)
                for (i64 n = 0; n < images; n++) {
                    T *plane = X(dx) + ((image + n) * j->channels + group * c_count + c) * area;
                    for (i64 r = 0; r < rows; r++) {
                        const T *from = columns + n * each + r * width;
                        i64 y = (row + r) * j->stride[0] - j->padding[0] + kh * j->dilation[0];
                        i64 first = kw * j->dilation[1] - j->padding[1], s = j->stride[1];
                        if (y < 0 || y >= j->size[0])
                            continue;
                        i64 low = first < 0 ? (-first + s - 1) / s : 0, high = j->size[1] > first ? (j->size[1] - first + s - 1) / s : 0;
                        high = high < width ? high : width;
                        T *to = plane + y * j->size[1] + first;
                        if (s == 1)
                            for (i64 q = low; q < high; q++)
                                to[q] += from[q];
                        else
                            for (i64 q = low; q < high; q++)
                                to[q * s] += from[q];
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
    i64 c_count = j->channels / j->groups, o_count = j->outputs / j->groups, taps = j->kernel[0] * j->kernel[1], k = c_count * taps;
    i64 height = j->places[0], width = j->places[1], area = height * width;
    i64 per = j->by_rows ? (height + j->block - 1) / j->block : 1, most = j->by_rows ? j->block * width : j->block * area;
    i64 pointwise = taps == 1 && j->stride[0] == 1 && j->stride[1] == 1 && !j->padding[0] && !j->padding[1] && j->step[3] == 1 &&
                    j->step[2] == j->size[1] && (j->by_rows || j->block == 1);
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
