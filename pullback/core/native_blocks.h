/* Windows added up, powers in columns, for one type of elements: read by _blocks.c with T and NAME defined. */

/* Columns (channels, kernel, positions) added to planes of `size`, where windows take them from. */
static void NAME(add_columns)(const T *x, T *y, i64 channels, const i64 *size, const i64 *kernel, const i64 *dilation, const i64 *padding,
                              const i64 *stride, const i64 *out) {
    for (i64 c = 0; c < channels; c++, y += size[0] * size[1])
        for (i64 i = 0; i < kernel[0]; i++)
            for (i64 j = 0; j < kernel[1]; j++)
                for (i64 h = 0; h < out[0]; h++, x += out[1]) {
                    const i64 row = h * stride[0] + i * dilation[0] - padding[0], first = j * dilation[1] - padding[1];
                    if (row < 0 || row >= size[0]) continue;
                    T *to = y + row * size[1] + first;
                    i64 from = first < 0 ? (-first + stride[1] - 1) / stride[1] : 0, last = (size[1] - first + stride[1] - 1) / stride[1];
                    last = size[1] <= first ? 0 : last < out[1] ? last : out[1];
                    for (i64 w = from; w < last; w++) to[w * stride[1]] += x[w];
                }
}

/* Powers 0 .. columns - 1 of each element, one after the other. */
static void NAME(powers)(const T *x, T *y, i64 n, i64 columns) {
    for (i64 i = 0; i < n; i++) {
        T v = 1;
        *y++ = v;
        for (i64 k = 1; k < columns; k++) *y++ = v = k == 1 ? x[i] : v * x[i];
    }
}

#undef T
#undef NAME
