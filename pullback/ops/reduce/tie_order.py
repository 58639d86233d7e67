"""Which of equal elements is picked: PyTorch's choice, where the choice is free.

`topk`, `kthvalue` and `mode` return the place of an element, and among equal ones any will do. PyTorch's choice
follows from its selection algorithms (introselect and introsort as the C++ library has them, quickselect by median of
three). They are retraced here on Python lists, for rows that are small and have ties; elsewhere the earliest is picked.
`less(i, j)` compares the elements at two places.
"""

from __future__ import annotations

from collections.abc import Callable

SMALL = 2048  # elements of an input whose ties are worth retracing
_RUN = 16  # below this, sorting is by insertion

Less = Callable[[int, int], bool]


def _median_to_front(at: list[int], front: int, a: int, b: int, c: int, less: Less) -> None:
    if less(at[a], at[b]):
        pick = b if less(at[b], at[c]) else c if less(at[a], at[c]) else a
    else:
        pick = a if less(at[a], at[c]) else c if less(at[b], at[c]) else b
    at[front], at[pick] = at[pick], at[front]


def _partition(at: list[int], first: int, last: int, less: Less) -> int:
    """Split around the median of three, which is moved to `first`; the start of the upper part."""
    _median_to_front(at, first, first + 1, first + (last - first) // 2, last - 1, less)
    pivot = at[first]
    low, high = first + 1, last
    while True:
        while less(at[low], pivot):
            low += 1
        high -= 1
        while less(pivot, at[high]):
            high -= 1
        if low >= high:
            return low
        at[low], at[high] = at[high], at[low]
        low += 1


def _insertion_sort(at: list[int], first: int, last: int, less: Less) -> None:
    for i in range(first + 1, last):
        value, j = at[i], i
        if less(value, at[first]):
            at[first + 1 : i + 1] = at[first:i]
            at[first] = value
            continue
        while less(value, at[j - 1]):
            at[j] = at[j - 1]
            j -= 1
        at[j] = value


def nth_element(at: list[int], n: int, less: Less) -> None:
    """Rearrange so that the n-th place holds what sorting would put there."""
    first, last = 0, len(at)
    while last - first > 3:
        cut = _partition(at, first, last, less)
        first, last = (cut, last) if cut <= n else (first, cut)
    _insertion_sort(at, first, last, less)


def sort(at: list[int], end: int, less: Less) -> None:
    """Sort the first `end` places."""
    parts = [(0, end)]
    while parts:
        first, last = parts.pop()
        while last - first > _RUN:
            cut = _partition(at, first, last, less)
            parts.append((first, cut))
            first = cut
    _insertion_sort(at, 0, end, less)


def top(n: int, k: int, less: Less) -> list[int]:
    """Places of the first k in order."""
    at = list(range(n))
    nth_element(at, k - 1, less)
    sort(at, k - 1, less)
    return at[:k]


def sorted_places(n: int, less: Less) -> list[int]:
    """All places in order."""
    at = list(range(n))
    sort(at, n, less)
    return at


def kth(n: int, k: int, greater: Less) -> int:
    """The place of the k-th (from 0), by quickselect."""
    at = list(range(n))

    def swap_if(a: int, b: int) -> None:
        if greater(at[a], at[b]):
            at[a], at[b] = at[b], at[a]

    low, high = 0, n - 1
    while high > low + 1:
        middle = low + (high - low) // 2
        at[middle], at[low + 1] = at[low + 1], at[middle]
        swap_if(low + 1, high)
        swap_if(low, high)
        swap_if(low + 1, low)
        i, j, pivot = low + 1, high, at[low]
        while True:
            i += 1
            while greater(pivot, at[i]):
                i += 1
            j -= 1
            while greater(at[j], pivot):
                j -= 1
            if j < i:
                break
            at[i], at[j] = at[j], at[i]
        at[low], at[j] = at[j], at[low]
        low, high = i if j <= k else low, j - 1 if j >= k else high
    if high == low + 1:
        swap_if(low, high)
    return at[k]
