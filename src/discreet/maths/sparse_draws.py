"""Noise on empty cells without touching them all: which become visible, and what they show, exactly in law.

It owns the skipping from one visible cell to the next and the conditional law; which cells are empty is its caller's.

Each of n empty cells shows its noise independently with probability q = (words that lead to a visible value) / 2^128.
The number of invisible cells before the next visible one is geometric, Pr[G >= k] = r^k with r = 1 - q, and its digits
in base 4096 are independent: the digit at 4096^i has Pr[d] proportional to r^(d 4096^i). So a gap is drawn digit by
digit from threshold tables, whatever n is.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, takewhile
from typing import Any

import numpy as np
from flint import arb
from numba import njit
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.maths.balls import UNIT, ball_of, floors
from discreet.maths.exact_draws import BitSource, draw
from discreet.maths.thresholds import ThresholdTable, table_of_thresholds

BASE = 4096
LARGEST_N = 10**15  # five digits and their sums stay far inside 64 bits
GAPS_AT_ONCE = 2**20
LOG_NEGLIGIBLE = -98  # e^-98 < 2^-141: a digit whose tail is below this ends there, within one unit of 2^-128

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Visibility:
    """Which share of empty cells shows its noise, and the law of what it shows."""

    share: Fraction
    values: ThresholdTable | None  # none where nothing is visible


@dataclass(frozen=True, eq=False)
class SparseLaw:
    """What is needed to draw the visible ones among up to ``largest`` empty cells; made once, used for every table."""

    visibility: Visibility
    gaps: tuple[ThresholdTable, ...]  # the digits of a gap; empty where all or no cells are visible
    largest: int

    def draw(self, n: int, bits: BitSource) -> tuple[Integers, Integers]:
        """Draw the positions among n empty cells that become visible, ascending, and their values."""
        if not 0 <= n <= self.largest:
            raise mistake("", "cells", str(n), f"give at most {self.largest} possible cells")
        if self.visibility.values is None or n == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        positions = self._positions(n, bits)
        return positions, draw(self.visibility.values, len(positions), bits).astype(np.int64)

    def distance(self, n: int) -> Fraction:
        """Bound the total-variation distance between a draw for n cells and the table's law of all n cells.

        Each gap and each value that is used can go another way than the law's with its own tables' distance, and
        n q + 1 gaps and n q values are used on average.
        """
        value = Fraction(0) if self.visibility.values is None else self.visibility.values.total_variation()
        gap = sum((table.total_variation() for table in self.gaps), Fraction(0))
        visible = n * self.visibility.share
        return (visible + 1) * gap + visible * value

    def _positions(self, n: int, bits: BitSource) -> Integers:
        if self.visibility.share == 1:
            return np.arange(n, dtype=np.int64)
        found, last = [], -1
        while last < n:
            expected = float((n - 1 - last) * self.visibility.share)
            gaps = draw_gaps(self.gaps, min(int(expected + 4 * expected**0.5) + 16, GAPS_AT_ONCE), bits)
            kept, last = _walk(gaps, last, n)
            found.append(gaps[:kept])
        return np.concatenate(found)


def sparse_law(table: ThresholdTable, least_visible: int | None, largest: int) -> SparseLaw:
    """Prepare the sparse draws of a table for up to so many empty cells."""
    if not 1 <= largest <= LARGEST_N:
        raise mistake("", "cells", str(largest), f"give at most {LARGEST_N} possible cells")
    seen = visibility(table, least_visible)
    return SparseLaw(seen, gap_tables(largest, seen.share) if 0 < seen.share < 1 else (), largest)


def visibility(table: ThresholdTable, least_visible: int | None) -> Visibility:
    """Split a table: visible are the values from least_visible on, or all but 0 where that is not given.

    With a least visible value of 0 or below every table would be dense, so it is refused.
    """
    if least_visible is not None and least_visible < 1:
        raise mistake("", "threshold", str(least_visible), "give a least visible value of at least 1")
    values = range(table.first, table.last + 1)
    kept = [
        number if (value != 0 if least_visible is None else value >= least_visible) else 0
        for value, number in zip(values, table.numbers, strict=True)
    ]
    total = sum(kept)
    if total == 0:
        return Visibility(Fraction(0), None)
    inner = [running * UNIT // total for running in accumulate(kept)]
    end = next(at for at, threshold in enumerate(inner) if threshold == UNIT)
    return Visibility(Fraction(total, UNIT), table_of_thresholds(table.first, inner[:end], cut_tails=0))


def visible_cells(
    n: int, table: ThresholdTable, least_visible: int | None, bits: BitSource
) -> tuple[Integers, Integers]:
    """Draw the positions among n empty cells that become visible, ascending, and their values.

    The law is that of drawing every cell from the table and keeping the visible ones, but for ``SparseLaw.distance``.
    For many tables make the ``sparse_law`` once.
    """
    return sparse_law(table, least_visible, max(n, 1)).draw(n, bits)


def digits_for(n: int) -> int:
    """How many digits in base 4096 the numbers below n have."""
    digits = 1
    while BASE**digits < n:
        digits += 1
    return digits


def gap_tables(n: int, share: Fraction) -> tuple[ThresholdTable, ...]:
    """The tables of a gap's digits from the lowest on, and last of whether it passes beyond all digits, so the end.

    F(d) = (1 - r^((d+1) 4096^i)) / (1 - r^(4096^(i+1))), both parts by expm1, so that no q is too small.
    """
    digits = digits_for(n)
    tables = [table_of_thresholds(0, floors(_Digit(share, BASE**i)), cut_tails=1) for i in range(digits)]
    beyond = floors(_Beyond(share, BASE**digits))
    return (*tables, table_of_thresholds(0, beyond, cut_tails=1))


@dataclass(frozen=True)
class _Digit:
    share: Fraction
    weight: int  # what one unit of the digit counts

    def __call__(self) -> list[arb]:
        """Enclose the cumulative law of the digit at all values but the last one that is not negligible."""
        log_r = (-ball_of(self.share)).log1p() * self.weight
        whole = (log_r * BASE).expm1()
        kept = (d + 1 for d in range(BASE - 1))
        return [(log_r * d).expm1() / whole for d in takewhile(lambda d: log_r * d > LOG_NEGLIGIBLE, kept)]


@dataclass(frozen=True)
class _Beyond:
    share: Fraction
    power: int

    def __call__(self) -> list[arb]:
        """Enclose 1 - r^power, the probability that the digits hold the whole gap; nothing where it is all but 1."""
        log_r = (-ball_of(self.share)).log1p() * self.power
        return [-log_r.expm1()] if log_r > LOG_NEGLIGIBLE else []


def draw_gaps(tables: tuple[ThresholdTable, ...], n: int, bits: BitSource) -> Integers:
    """Draw n gaps; one that passes beyond all digits is as large as what they can count."""
    gaps = np.zeros(n, dtype=np.int64)
    for place, table in enumerate(tables):
        if len(table.hi):  # a digit that is always 0 needs no bits
            gaps += draw(table, n, bits).astype(np.int64) * np.int64(BASE**place)
    return gaps


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _walk(gaps: Any, last: Any, n: Any) -> Any:
    """Turn gaps into positions in place, from the one after ``last`` on, until the cells are passed."""
    for at in range(gaps.size):
        last += gaps[at] + 1
        if last >= n:
            return at, last
        gaps[at] = last
    return gaps.size, last


def place_among_empty(ranks: Integers, occupied: Integers) -> Integers:
    """The positions of the empty cells with these ranks, both ascending, where the occupied positions are left out."""
    positions = np.empty(len(ranks), dtype=np.int64)
    _place(ranks, occupied, positions)
    return positions


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _place(ranks: Any, occupied: Any, positions: Any) -> None:
    passed = 0
    for at in range(ranks.size):
        while passed < occupied.size and occupied[passed] <= ranks[at] + passed:
            passed += 1
        positions[at] = ranks[at] + passed
