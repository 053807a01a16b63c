"""Drawing noise exactly from threshold tables: random words, dense cells, and empty cells without visiting each."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.lazy import lazily, njit
from discreet.maths.cells.keys import derive
from discreet.maths.noise.thresholds import (
    UNIT,
    RowLaw,
    ThresholdTable,
    ball_of,
    floors,
    row_table,
    table_of_thresholds,
)

if TYPE_CHECKING:
    import flint
    from cryptography.hazmat.primitives import ciphers
else:
    ciphers = lazily("cryptography.hazmat.primitives.ciphers")
    flint = lazily("flint")

BLOCK_BYTES = 16
PART_BYTES = 2**30  # the library takes less than 2^31 bytes at a time

Words = NDArray[np.uint64]


def cell_bits(secret: bytes, purpose: str, codes: Words) -> Words:
    """Encrypt each 128-bit code (codes[n, 2]: upper and lower half) by AES-256 under a key for this purpose.

    A block cipher on single blocks is a keyed permutation: different codes get different words, equal codes equal
    ones, and n of them are distinguishable from independent uniform words with an advantage of at most n^2 / 2^129.
    Different purposes (a release, a unit of count) have unrelated keys. The halves are little-endian words on every
    machine.
    """
    encryptor = ciphers.Cipher(
        ciphers.algorithms.AES(derive(secret, f"cell-bits/{purpose}")), ciphers.modes.ECB()
    ).encryptor()
    plain = np.ascontiguousarray(codes, dtype="<u8").view(np.uint8).reshape(-1)
    out = np.empty(
        len(plain) + BLOCK_BYTES - 1, dtype=np.uint8
    )  # the library requires space for one more block
    for start in range(0, len(plain), PART_BYTES):
        encryptor.update_into(plain.data[start : start + PART_BYTES], out.data[start:])
    return out[: len(plain)].view("<u8").astype(np.uint64, copy=False).reshape(codes.shape)


KEY_BYTES = 32
CHUNK = 2**16  # values drawn at a time: their bits and results stay in the cache
BLOCK = 2**20  # bytes of zeros that are encrypted at a time
_ZEROS = memoryview(bytes(BLOCK))


class BitSource:
    """A stream of bits that only its key determines: AES-256 in counter mode from counter zero on.

    One key, one stream: give each thread a source with its own key, and never use a key twice.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes")
        self._stream = ciphers.Cipher(ciphers.algorithms.AES(key), ciphers.modes.CTR(bytes(16))).encryptor()

    def fill(self, out: NDArray[Any]) -> None:
        """Fill an array of unsigned integers with the next bits, little-endian on every machine."""
        view = out.view(np.uint8).data
        for start in range(0, len(view), BLOCK):
            part = view[start : start + BLOCK]
            self._stream.update_into(_ZEROS[: len(part)], part)
        if sys.byteorder == "big":
            out.byteswap(inplace=True)

    def words(self, n: int) -> Words:
        """The next n words of 64 bits."""
        out = np.empty(n, dtype=np.uint64)
        self.fill(out)
        return out


def draw(table: ThresholdTable, n: int, bits: BitSource) -> NDArray[np.int32]:
    """Draw n independent values whose law is exactly the table's numbers / 2^128.

    16 bits choose a slot. Where no threshold falls into it they decide; otherwise 48 more bits are drawn (the rest of
    their word is discarded) and compared with the thresholds' upper halves; on a tie 64 more are drawn, and then all
    128 bits are known and the integer thresholds decide. The integers themselves are the law.
    """
    out = np.empty(n, dtype=np.int32)
    draw_into(out, table, bits)
    return out


def draw_into(out: NDArray[np.int32], table: ThresholdTable, bits: BitSource) -> None:
    """Fill an array as ``draw`` does; fresh memory costs more than noise, so arrays that exist are worth reusing."""
    size = min(len(out), CHUNK)
    unsettled, buffer = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.uint16)
    for start in range(0, len(out), CHUNK):
        part = out[start : start + CHUNK]
        slots = buffer[: len(part)]
        bits.fill(slots)
        left = _by_slot(slots, table.guide, table.first, part, unsettled)
        if left:
            _settle(table, slots, part, unsettled[:left], bits)


def _settle(
    table: ThresholdTable,
    slots: NDArray[np.uint16],
    part: NDArray[np.int32],
    unsettled: NDArray[np.int64],
    bits: BitSource,
) -> None:
    ties = np.empty(len(unsettled), dtype=np.int64)
    upper = bits.words(len(unsettled))
    tied = _by_upper_half(slots, unsettled, upper, table.guide, table.hi, table.first, part, ties)
    if tied:
        at = ties[:tied]
        lower = bits.words(tied)
        _by_both_halves(upper[at], lower, table.guide, table.hi, table.lo, table.first, unsettled[at], part)


def from_words(table: ThresholdTable, words: Words) -> NDArray[np.int32]:
    """The values that given 128-bit words draw: words[n, 2] contains the upper and the lower half of each."""
    out = np.empty(len(words), dtype=np.int32)
    upper, lower = np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])
    _by_both_halves(
        upper, lower, table.guide, table.hi, table.lo, table.first, np.arange(len(words), dtype=np.int64), out
    )
    return out


def draw_published(law: RowLaw, counts: NDArray[np.int64], bits: BitSource) -> NDArray[np.int64]:
    """Draw the published counts of a law that depends on the count, with one table for each different count."""
    different, which = np.unique(counts, return_inverse=True)
    out = np.empty(len(counts), dtype=np.int64)
    for at, count in enumerate(different.tolist()):
        cells = which == at
        out[cells] = draw(row_table(law, count), int(cells.sum()), bits)
    return out


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _by_slot(slots: Any, guide: Any, first: Any, out: Any, unsettled: Any) -> Any:
    left = 0
    for at in range(slots.size):
        entry = guide[slots[at]]
        out[at] = first + (entry >> 1)
        unsettled[left] = at  # overwritten by the next one unless it counts, which spares a branch
        left += entry & 1
    return left


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _by_upper_half(
    slots: Any, unsettled: Any, words: Any, guide: Any, hi: Any, first: Any, out: Any, ties: Any
) -> Any:
    tied = 0
    for at in range(unsettled.size):
        slot = np.uint64(slots[unsettled[at]])
        upper = (slot << np.uint64(48)) | (words[at] >> np.uint64(16))
        words[at] = upper
        k = _first_from(hi, upper, guide, slot)
        if k < hi.size and hi[k] == upper:
            ties[tied] = at
            tied += 1
        out[unsettled[at]] = first + k
    return tied


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _by_both_halves(
    upper: Any, lower: Any, guide: Any, hi: Any, lo: Any, first: Any, places: Any, out: Any
) -> None:
    for at in range(upper.size):
        slot = upper[at] >> np.uint64(48)
        k = np.int64(guide[slot] >> 1)
        if guide[slot] & 1:
            k = _first_from(hi, upper[at], guide, slot)
            while k < hi.size and hi[k] == upper[at] and lo[k] <= lower[at]:
                k += 1
        out[places[at]] = first + k


@njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator]
def _first_from(hi: Any, upper: Any, guide: Any, slot: Any) -> Any:
    """Find the first threshold of a slot whose upper half is not below the given one."""
    low = np.int64(guide[slot] >> 1)
    high = np.int64(guide[slot + np.uint64(1)] >> 1) if slot < np.uint64(65535) else hi.size
    while low < high:
        middle = (low + high) >> 1
        if hi[middle] < upper:
            low = middle + 1
        else:
            high = middle
    return low


BASE = 4096
LARGEST_N = 10**15  # five digits and their sums stay far inside 64 bits
GAPS_AT_ONCE = 2**20
LOG_NEGLIGIBLE = -98  # e^-98 < 2^-141: a digit whose tail is below this ends there, within one unit of 2^-128

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Visibility:
    """The share of empty cells with visible noise, and the law of the visible values."""

    share: Fraction
    values: ThresholdTable | None  # None where nothing is visible


@dataclass(frozen=True, eq=False)
class SparseLaw:
    """The tables that draw the visible ones among up to ``largest`` empty cells; made once, used for every table."""

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

        Each gap and each value that is used can differ from the law's with at most its tables' distance, and n q + 1
        gaps and n q values are used on average.
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
            used, last = _walk(gaps, last, n)
            found.append(gaps[:used])
        return np.concatenate(found)


def sparse_law(table: ThresholdTable, least_visible: int | None, largest: int) -> SparseLaw:
    """Prepare the sparse draws of a table for up to ``largest`` empty cells."""
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
    visible_numbers = [
        number if (value != 0 if least_visible is None else value >= least_visible) else 0
        for value, number in zip(values, table.numbers, strict=True)
    ]
    total = sum(visible_numbers)
    if total == 0:
        return Visibility(Fraction(0), None)
    inner = [running * UNIT // total for running in accumulate(visible_numbers)]
    end = next(at for at, threshold in enumerate(inner) if threshold == UNIT)
    return Visibility(Fraction(total, UNIT), table_of_thresholds(table.first, inner[:end], cut_tails=0))


def visible_cells(
    n: int, table: ThresholdTable, least_visible: int | None, bits: BitSource
) -> tuple[Integers, Integers]:
    """Draw the positions among n empty cells that become visible, ascending, and their values.

    The law is that of drawing every cell from the table and keeping the visible ones, up to ``SparseLaw.distance``.
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
    """The tables of a gap's digits from the lowest on, and last the table of whether it exceeds all digits.

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

    def __call__(self) -> list[flint.arb]:
        """Enclose the cumulative law of the digit at all values but the last one that is not negligible."""
        log_r = (-ball_of(self.share)).log1p() * self.weight
        whole = (log_r * BASE).expm1()
        digits = (d + 1 for d in range(BASE - 1))
        return [(log_r * d).expm1() / whole for d in takewhile(lambda d: log_r * d > LOG_NEGLIGIBLE, digits)]


@dataclass(frozen=True)
class _Beyond:
    share: Fraction
    power: int

    def __call__(self) -> list[flint.arb]:
        """Enclose 1 - r^power, the probability that the gap fits in the digits; empty where that is almost 1."""
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
    """Turn gaps into positions in place, from the one after ``last`` on, until the last cell is passed."""
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
