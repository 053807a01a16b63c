"""The kernels behind disclosures in a table: loops over its sorted sparse cells that mark and tally.

What counts as a disclosure, and in which order these are called, is ``disclosure``'s; here are bits and sums alone.
"""

from __future__ import annotations

from typing import Any

from numba import njit

PUBLISHED, ORIGINAL, COUNTED = 0, 1, 2  # columns of the values: as published; before and after swapping
FULL, NEAR, ALL_BUT_ONE = 1, 8, 64  # marks of a category's cell in column 0; << v in column v


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def tally_small(values: Any, crosstab: Any, own: Any, tallies: Any) -> None:
    """Tally the cells by their counts, up to the largest kind there is."""
    below = tallies.shape[1]
    for i in range(crosstab.size):
        c, x = crosstab[i], values[i, PUBLISHED]
        for v in range(values.shape[1] if own[i] else 0):
            y = values[i, v]
            if y <= 0:
                continue
            tallies[c, 0, v] += 1
            tallies[c, 0, 2 + v] += v > 0 and x > 0
            if y < below:
                tallies[c, y, v] += 1
                tallies[c, y, 2 + v] += v > 0 and y == x


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def tally_values(values: Any, crosstab: Any, own: Any, found: Any) -> None:
    """Count the cells by their published values."""
    for i in range(crosstab.size):
        x = values[i, PUBLISHED]
        if own[i] and 0 <= x < found.shape[1]:
            found[crosstab[i], x] += 1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def gather(
    values: Any, along: Any, line: Any, inside: Any, top: Any, where: Any, held: Any, crossed: Any
) -> None:
    """Of each row: its largest category, that one's cell, how many are held, lost and made."""
    columns = values.shape[1]
    for i in range(along.size):
        if not inside[along[i]] or line[i] < 0:
            continue
        row, x = line[i], values[i, PUBLISHED]
        for v in range(columns):
            y = values[i, v]
            if y > 0:
                held[row, v] += 1
                if y > top[row, v]:
                    top[row, v], where[row, v] = y, i
            if v and y > 0 and x <= 0:
                crossed[row, v - 1] += 1  # seen empty, and is not
        if columns > 1 and x > 0 and values[i, ORIGINAL] == 0:
            crossed[row, 2] += 1  # empty, and is not seen so


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def mark_rows(
    values: Any, along: Any, heads: Any, tells: Any, top: Any, where: Any, held: Any, allowed: Any, marks: Any
) -> None:
    """Bits of the largest category's cell for column v of its row: FULL, NEAR (or full) and ALL_BUT_ONE << v."""
    numerator, denominator, same_noise = allowed
    for row in range(heads.size):
        for v in range(values.shape[1]):
            i, n, c = where[row, v], values[heads[row], v], top[row, v]
            if i < 0 or n <= 0 or not tells[along[i]]:
                continue
            agrees = c == n or v != PUBLISHED or same_noise == 0
            if held[row, v] == 1 and agrees:
                marks[i] |= (FULL | NEAR) << v
            elif c * denominator >= numerator * n:
                marks[i] |= NEAR << v
            if n >= 2 and c == n - 1:
                marks[i] |= ALL_BUT_ONE << v


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _follows(wider: Any, others: Any, marks: Any, i: Any, bit: Any) -> bool:
    for a in others:
        j = wider[a, i]
        if j >= 0 and marks[j] & bit:
            return True
    return False


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _kind(i: Any, v: Any, n: Any, wider: Any, others: Any, marks: Any) -> int:
    """The RowKind of a row of n whose largest category stands at i; 0 for a plain one."""
    if marks[i] & (FULL << v):
        if _follows(wider, others, marks, i, FULL << v):
            return 3
        return 1 if n == 1 else 2
    if marks[i] & (NEAR << v) and not _follows(wider, others, marks, i, NEAR << v):
        return 4
    return 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _count(tallies: Any, kind: Any, v: Any, columns: Any, mark: Any, bit: Any) -> None:
    """One row of a kind in column v, and whether it is so in the same category of the others."""
    tallies[kind, v] += 1
    if v == PUBLISHED:
        for w in range(1, columns):
            tallies[kind, 2 + w] += (mark & (bit << w)) != 0
    elif v == ORIGINAL:
        tallies[kind, 5] += (mark & bit) != 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def tally_rows(
    values: Any,
    crosstab: Any,
    own: Any,
    wider: Any,
    heads: Any,
    areas: Any,
    others: Any,
    marks: Any,
    where: Any,
    tallies: Any,
    examples: Any,
    by_area: Any,
) -> None:
    """Tally the rows by their kinds and keep some as examples."""
    columns = values.shape[1]
    for row in range(heads.size):
        head = heads[row]
        c = crosstab[row]
        if not own[row]:
            continue
        for v in range(columns):
            i, n = where[row, v], values[head, v]
            if i < 0 or n <= 0:
                continue
            mark = marks[i]
            kind = _kind(i, v, n, wider, others, marks)
            if kind > 0:
                _count(tallies[c], kind, v, columns, mark, NEAR if kind == 4 else FULL)
            if mark & (ALL_BUT_ONE << v):
                _count(tallies[c], 5, v, columns, mark, ALL_BUT_ONE)
            if v == PUBLISHED and 0 < kind < 3:
                true = (mark & (FULL << ORIGINAL)) != 0
                by_area[areas[row], 0] += 1
                by_area[areas[row], 1] += true
                if true or columns == 1:
                    _note(examples[c], i)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def tally_empty(
    values: Any,
    crosstab: Any,
    own: Any,
    heads: Any,
    held: Any,
    crossed: Any,
    categories: Any,
    tallies: Any,
) -> None:
    """All groups with somebody in them (kind 0), and their empty categories (kind 6)."""
    columns = values.shape[1]
    for row in range(heads.size):
        c, n = crosstab[row], values[heads[row]]
        if not own[row]:
            continue
        for v in range(columns):
            if n[v] > 0:
                tallies[c, 0, v] += 1
                tallies[c, 6, v] += categories - held[row, v]
        for w in range(1, columns):
            if n[PUBLISHED] > 0:
                tallies[c, 0, 2 + w] += n[w] > 0
                tallies[c, 6, 2 + w] += categories - held[row, PUBLISHED] - crossed[row, w - 1]
        if columns > 1 and n[ORIGINAL] > 0:
            tallies[c, 0, 5] += n[PUBLISHED] > 0
            tallies[c, 6, 5] += categories - held[row, ORIGINAL] - crossed[row, 2]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _note(examples: Any, i: Any) -> None:
    for k in range(examples.size):
        if examples[k] < 0:
            examples[k] = i
            return
