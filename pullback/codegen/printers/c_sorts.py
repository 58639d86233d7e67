"""Sorting in C: the order of each row, or a part of it, as places.

An element becomes an unsigned number in the order of the elements (its rank: NaN highest, zeros of both signs equal), and ranks
are sorted by digits of a byte, the lowest first: each pass keeps the order of equals, so the whole does. Short rows are sorted
by insertion and merging. Where only some ranks are asked for, the key of the last of them is found byte by byte, the highest first,
and only what comes before it is sorted. What is not used is not in a program.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.dtype import dtype
from .c_scalars import C_TYPES

COMMON = r"""
void *malloc(unsigned long); void free(void *);
typedef struct { u64 key; i64 at; } ranked;
static void insert_sort(ranked *p, i64 n) {
    for (i64 i = 1; i < n; i++) { ranked x = p[i]; i64 j = i; for (; j > 0 && p[j - 1].key > x.key; j--) p[j] = p[j - 1]; p[j] = x; }
}
/* Runs of 12, merged. As below, the sorted row is in `p` or `q`: it is returned. */
static ranked *merge_sort(ranked *p, ranked *q, i64 n) {
    for (i64 i = 0; i < n; i += 12) insert_sort(p + i, n - i < 12 ? n - i : 12);
    for (i64 w = 12; w < n; w *= 2) {
        for (i64 i = 0; i < n; i += 2 * w) {
            i64 m = i + w < n ? i + w : n, e = m + w < n ? m + w : n, l = i, r = m;
            for (i64 k = i; k < e; k++) { i64 low = l < m && (r >= e || p[l].key <= p[r].key); q[k] = low ? p[l] : p[r]; l += low; r += !low; }
        }
        ranked *t = p; p = q; q = t;
    }
    return p;
}
/* By bytes of the key. */
static ranked *digit_sort(ranked *p, ranked *q, i64 n, i64 bytes) {
    if (n <= 256) return merge_sort(p, q, n);
    for (i64 b = 0; b < bytes; b++) {
        i64 count[257] = {0};
        for (i64 i = 0; i < n; i++) count[(p[i].key >> 8 * b & 255) + 1]++;
        if (count[(p[0].key >> 8 * b & 255) + 1] == n) continue;
        for (i64 d = 0; d < 256; d++) count[d + 1] += count[d];
        for (i64 i = 0; i < n; i++) q[count[p[i].key >> 8 * b & 255]++] = p[i];
        ranked *t = p; p = q; q = t;
    }
    return p;
}
/* The key of rank k, from 0, byte by byte from the top; k becomes its number among the equals. */
static u64 key_of_rank(const ranked *p, i64 n, i64 bytes, i64 *k) {
    u64 key = 0;
    for (i64 b = bytes - 1; b >= 0; b--) {
        i64 count[256] = {0}, d = 0;
        const u64 above = b == 7 ? 0 : ~0UL << 8 * (b + 1);
        for (i64 i = 0; i < n; i++) count[p[i].key >> 8 * b & 255] += (p[i].key & above) == key;
        while (*k >= count[d]) *k -= count[d++];
        key |= (u64)d << 8 * b;
    }
    return key;
}
/* The places of ranks `first` to `last`, without sorting what comes after. */
static void pick(ranked *p, ranked *q, i64 n, i64 bytes, i64 first, i64 last, i64 *out) {
    i64 equals = last - 1, m = 0;
    const u64 top = key_of_rank(p, n, bytes, &equals);
    if (last - first == 1) { for (i64 i = 0; i < n; i++) if (p[i].key == top && !equals--) { *out = p[i].at; return; } }
    for (i64 i = 0; i < n; i++) if (p[i].key < top || (p[i].key == top && equals-- >= 0)) q[m++] = p[i];
    const ranked *r = digit_sort(q, p, m, bytes);
    for (i64 k = first; k < last; k++) out[k - first] = r[k].at;
}
INLINE u64 f32_rank(f32 x) { u32 b = f32_bits(x + 0.f); return x != x ? 0xffffffffUL : (u32)(b >> 31 ? ~b : b | 0x80000000u); }
INLINE u64 f64_rank(f64 x) { u64 b = f64_bits(x + 0.); return x != x ? ~0UL : b >> 63 ? ~b : b | 1UL << 63; }
#define SORT(T, BYTES, RANK) static void T##_sort(i64 begin, i64 end, void *const *a) { \
    i64 *out = a[0]; const T *x = a[1]; const i64 *s = a[3], n = s[0], first = s[2], last = s[3], m = last - first; \
    const u64 mask = BYTES == 8 ? ~0UL : (1UL << 8 * (BYTES & 7)) - 1, turn = s[1] ? mask : 0; \
    ranked *p = malloc(2 * n * sizeof(ranked)); if (!p) { *(i32 *)a[2] = 1; return; } \
    for (i64 t = begin; t < end; t++) { \
        for (i64 k = 0; k < n; k++) { const T v = x[t * n + k]; p[k].key = (RANK) ^ turn; p[k].at = k; } \
        if (m < n) { pick(p, p + n, n, BYTES, first, last, out + t * m); continue; } \
        const ranked *r = digit_sort(p, p + n, n, BYTES); \
        for (i64 k = 0; k < n; k++) out[t * n + k] = r[k].at; } \
    free(p); }
"""


def sort_routines(used: set[dtype]) -> str:
    """The C text that sorts rows of these dtypes."""
    if not used:
        return ""
    return COMMON + "".join(f"SORT({C_TYPES[d]}, {d.itemsize}, {_rank(d)})\n" for d in _one_of_each_type(used))


def _one_of_each_type(used: set[dtype]) -> list[dtype]:
    """Booleans and bytes are one type of C."""
    return sorted({C_TYPES[d]: d for d in sorted(used, key=lambda d: d.name)}.values(), key=lambda d: d.name)


def _rank(d: dtype) -> str:
    if d.is_floating_point:
        return f"{C_TYPES[d]}_rank(v)"
    if d is dtypes.bool or not d.is_signed:
        return "(u64)v"
    return f"((u64)(u{8 * d.itemsize})v ^ 1UL << {8 * d.itemsize - 1})"
