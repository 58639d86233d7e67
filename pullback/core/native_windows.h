/* Pooling of one dtype, for one set of instructions. A template: see _network.c. */
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
