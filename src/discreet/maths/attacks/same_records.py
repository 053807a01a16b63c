"""Cells that contain the same records, as far as published tables show: a cell and the only listed one below it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit

Integers = NDArray[np.int64]
Places = NDArray[np.int32]


def find_rows(
    codes: Places, other: Places, columns: Integers, of_other: Integers, sizes: Integers
) -> Integers:
    """The row of another table with the same codes as each row of one, -1 where no row has them.

    ``columns`` are compared with those ``of_other``, -1 where that has none and the code must be 0; a code of column k
    is below ``sizes[k]``. The other's rows should ascend in the order of the columns: they are sorted otherwise.
    """
    wanted, there = (np.empty(len(one), dtype=np.int64) for one in (codes, other))
    _number_rows(codes, columns, sizes, wanted)
    ascending = _number_rows(other, of_other, sizes, there)
    found = np.empty(len(wanted), dtype=np.int64)
    if ascending:
        _look_up(wanted, there, found)
        return found
    order = np.argsort(there, kind="stable")
    _look_up(wanted, there[order], found)
    return np.where(found >= 0, order[found], -1)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _number_rows(codes: Any, columns: Any, sizes: Any, numbers: Any) -> Any:
    """One number for the codes of each row, the first column most significant; returns whether they ascend.

    A column of -1 has zeros only.
    """
    ascending = True
    for i in range(codes.shape[0]):
        number = np.int64(0)
        for k in range(columns.size):
            number = number * sizes[k] + (codes[i, columns[k]] if columns[k] >= 0 else 0)
        numbers[i] = number
        ascending &= i == 0 or numbers[i - 1] < number
    return ascending


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _look_up(wanted: Any, there: Any, found: Any) -> None:
    """Where each number is among ascending ones, -1 where it is not: those that are looked up ascend in long runs."""
    at = 0
    for i in range(wanted.size):
        number, low, high, step = wanted[i], at, at, 1
        if low < there.size and there[low] < number:
            while high < there.size and there[high] < number:
                low, high, step = high, high + step, 2 * step
            high = min(high, there.size)
        else:
            while low > 0 and there[low - 1] >= number:
                high, low, step = low, max(0, low - step), 2 * step
        while low < high:
            middle = (low + high) // 2
            if there[middle] < number:
                low = middle + 1
            else:
                high = middle
        at = low
        found[i] = low if low < there.size and there[low] == number else -1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def root(parents: Any, node: Any) -> Any:
    """The first of the nodes that are joined with this one; the path to it is shortened."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def join_same(parents: Any, cells: Any, others: Any) -> None:
    """Join cells that are the same one."""
    for c in range(cells.size):
        one, two = root(parents, cells[c]), root(parents, others[c])
        parents[max(one, two)] = min(one, two)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def join_only_children(
    parents: Any, children: Any, below: Any, child_values: Any, values: Any, first: Any
) -> None:
    """Join a cell with the cell below it where that is the only visible one and has the same value.

    ``below[c]`` is the cell above child c, numbered from ``first`` on; negative where it is not visible.
    """
    count = np.zeros(values.size, dtype=np.int32)
    for c in range(below.size):
        if below[c] >= 0:
            count[below[c]] += 1
    for c in range(below.size):
        above = below[c]
        if above >= 0 and count[above] == 1 and values[above] == child_values[c]:
            one, two = root(parents, first + above), root(parents, children + c)
            parents[max(one, two)] = min(one, two)
