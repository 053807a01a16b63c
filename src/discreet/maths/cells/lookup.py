"""From a cell key to the change of a count: whole numbers of keys per change, thresholds and a guide table."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import count, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import Mistakes, Problem, UncoveredCount
from discreet.lazy import njit
from discreet.maths.noise.ptable import PTable, ptable_of_rows
from discreet.maths.reproducible import few


def apportion(p: Sequence[float], v: Sequence[int], modulus: int) -> list[int]:
    """Give each change v its number of keys, near p * modulus, so that sum n = modulus and the mean is preserved.

    The rounding error of the law is first removed (sum 1, mean 0), then it is rounded by largest remainders, then
    single keys move between changes until no move brings sum v n nearer to zero. A law too biased to be corrected
    keeps its own mean instead.
    """
    numbers, whole = _unbiased(p, v)
    keys = [modulus * number // whole for number in numbers]
    left = [modulus * number % whole for number in numbers]
    for at in sorted(range(len(keys)), key=lambda at: (-left[at], at))[: modulus - sum(keys)]:
        keys[at] += 1
    wanted = np.array([modulus * number / whole for number in numbers])
    mean = sum(number * change for number, change in zip(numbers, v, strict=True))
    bias = sum(change * number for change, number in zip(v, keys, strict=True)) - round(
        Fraction(modulus * mean, whole)
    )
    moved = np.array(keys, dtype=np.int64)
    centre = _centre.interpreted if few(len(v)) else _centre
    centre(moved, wanted, np.array(v, dtype=np.int64), bias)
    return [int(number) for number in moved]


def _unbiased(p: Sequence[float], v: Sequence[int]) -> tuple[list[int], int]:
    """Tilt a law to p (a + b v), with a and b such that it sums to 1 and has mean 0 exactly: numerators, denominator.

    With A, F and S the sums of p, p v and p v^2 it is p (S - F v) / (A S - F^2).
    """
    exact = [Fraction(value) for value in p]
    common = math.lcm(*(share.denominator for share in exact))
    shares = [share.numerator * (common // share.denominator) for share in exact]
    total = sum(shares)
    first = sum(share * change for share, change in zip(shares, v, strict=True))
    second = sum(share * change**2 for share, change in zip(shares, v, strict=True))
    spread = total * second - first**2
    if spread == 0:
        return shares, total
    tilted = [share * (second - first * change) for share, change in zip(shares, v, strict=True)]
    return (tilted, spread) if min(tilted) >= 0 else (shares, total)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _centre(keys: Any, wanted: Any, v: Any, bias: Any) -> None:
    """Move single keys between changes, the least harmful first, while that brings the mean nearer to the law's.

    The harm of a key more or less is what it adds to (n - wanted)^2 / wanted, per unit of bias removed.
    """
    less, more = np.empty(len(keys)), np.empty(len(keys))
    for at in range(len(keys)):
        less[at], more[at] = _harm(keys[at], wanted[at], -1.0), _harm(keys[at], wanted[at], 1.0)
    while bias != 0:
        giver, taker = _best_move(keys, wanted, v, bias, less, more)
        if giver < 0:
            return
        keys[giver] -= 1
        keys[taker] += 1
        bias += v[taker] - v[giver]
        for at in (giver, taker):
            less[at], more[at] = _harm(keys[at], wanted[at], -1.0), _harm(keys[at], wanted[at], 1.0)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _best_move(keys: Any, wanted: Any, v: Any, bias: Any, less: Any, more: Any) -> Any:
    """The first of the moves that harm least, or -1, -1 where none brings the mean nearer."""
    best, giver, taker = np.inf, -1, -1
    for one in range(len(keys)):
        if keys[one] <= 0:
            continue
        for other in range(len(keys)):
            removed = abs(bias) - abs(bias + v[other] - v[one])
            if removed <= 0 or wanted[other] == 0.0:
                continue
            harm = (less[one] + more[other]) / removed
            if giver < 0 or harm < best:
                best, giver, taker = harm, one, other
    return giver, taker


@njit(cache=True)  # type: ignore[untyped-decorator]
def _harm(keys: Any, wanted: Any, step: Any) -> Any:
    off = keys - wanted
    return ((off + step) * (off + step) - off * off) / max(wanted, 1e-9)


KEYS = 2**32  # cell keys are sums modulo this
SHUFFLE_KEY_BYTES = 32
SHARE_DIGITS = 9
GUIDE = 256  # entries of the guide table per row
SPLIT_PARTS = 5  # a split interval has at most 1/5 of the keys, the default threshold 0.2 of R's ptable

MOST_CHANGE = 1_000_000  # of any count; more is a mistake in a file
UNCOVERED = -(2**31)  # what the kernel returns for a negative count; no change is that large


class Order(StrEnum):
    """The order of the intervals of a row: by ascending change, split and shuffled, or shuffled whole."""

    PLAIN = "plain"
    SPLIT = "split"
    SHUFFLED = "shuffled"


@dataclass(frozen=True, eq=False)
class Lookup:
    """Which change each (count, cell key) gets; the key is reduced modulo ``modulus`` first.

    Row r has the intervals offsets[r] .. offsets[r+1]-1; interval k has the keys from the upper bound of the one
    before (0 for the first) to below upper[k], and the last bound of each row is the modulus. A count above the
    last row has row wrap_from + (count - wrap_from) mod wrap_length; wrap_length 1 makes that the last row for
    all. So every count has a row, and every key of a row a change, by construction.
    """

    modulus: int
    offsets: NDArray[np.int32]  # row -> first interval, one more at the end
    upper: NDArray[np.uint64]  # interval -> first key beyond it
    change: NDArray[np.int32]  # interval -> change
    wrap_from: int
    wrap_length: int
    guide: NDArray[np.int32]  # row * 256 + (key >> guide_shift) -> first interval that can contain the key
    guide_shift: int

    @property
    def last_row(self) -> int:
        """The last row with its own intervals."""
        return len(self.offsets) - 2

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arguments of ``change_of`` after count and key."""
        return (
            self.upper,
            self.change,
            self.guide,
            np.uint64(self.guide_shift),
            np.int64(self.last_row),
            np.int64(self.wrap_from),
            np.int64(self.wrap_length),
        )

    def lengths(self, row: int) -> dict[int, int]:
        """How many keys lead to each change in a row: the law, as whole numbers."""
        lengths: dict[int, int] = {}
        lower = 0
        for at in range(self.offsets[row], self.offsets[row + 1]):
            change, upper = int(self.change[at]), int(self.upper[at])
            lengths[change] = lengths.get(change, 0) + upper - lower
            lower = upper
        return dict(sorted(lengths.items()))


def build(ptable: PTable, order: Order, shuffle_key: bytes | None = None, modulus: int = KEYS) -> Lookup:
    """Cut the keys of each row into intervals whose lengths are the probabilities, exactly summing to the modulus.

    PLAIN: by ascending change. SHUFFLED: each row's intervals permuted by a keyed shuffle. SPLIT: intervals above
    a fifth of the keys are first cut into equal parts, then all parts are permuted (what modify_cnt_ptable of R's
    ptable does with a seed). Both hide from an outsider which keys lead to which change; the law stays the same.
    """
    if (shuffle_key is None) != (order is Order.PLAIN) or len(shuffle_key or bytes(32)) != SHUFFLE_KEY_BYTES:
        raise Mistakes(
            [
                Problem(
                    "",
                    "order",
                    order.value,
                    "give a shuffle key of 32 bytes for split and shuffled, none for plain",
                )
            ]
        )
    if problems := [*_rule_problems(ptable.last_row, modulus, ptable.last_row, 1)]:
        raise Mistakes(problems)
    rows = []
    for row, p in enumerate(ptable.probabilities):
        changes = [int(change) for change in ptable.changes(row)]
        # nine digits: the remaining error of the solver must not reach the thresholds
        shares = [round(share, SHARE_DIGITS) for share in p.tolist()]
        pieces = list(zip(changes, apportion(shares, changes, modulus), strict=True))
        if order is Order.SPLIT:
            pieces = [piece for whole in pieces for piece in _split(*whole, -(-modulus // SPLIT_PARTS))]
        if shuffle_key is not None:
            pieces = [pieces[at] for at in keyed_permutation(len(pieces), shuffle_key, row)]
        rows.append(pieces)
    return lookup_of_rows(rows, modulus, wrap_from=ptable.last_row, wrap_length=1)


def lookup_of_rows(
    rows: list[list[tuple[int, int]]], modulus: int, wrap_from: int, wrap_length: int
) -> Lookup:
    """Make a lookup from the (change, number of keys) intervals of each row, in the order of the keys."""
    problems = [*_rule_problems(len(rows) - 1, modulus, wrap_from, wrap_length)]
    problems += [
        problem for row, pieces in enumerate(rows) for problem in _row_problems(row, pieces, modulus)
    ]
    if problems:
        raise Mistakes(problems)
    nonempty = [[(change, length) for change, length in pieces if length] for pieces in rows]
    offsets = np.cumsum([0, *(len(pieces) for pieces in nonempty)]).astype(np.int32)
    upper = np.concatenate(
        [np.cumsum([length for _, length in pieces], dtype=np.uint64) for pieces in nonempty]
    )
    change = np.array([change for pieces in nonempty for change, _ in pieces], dtype=np.int32)
    shift = max(0, modulus.bit_length() - 1 - (GUIDE.bit_length() - 1))
    guide = _guide(offsets, upper, shift)
    for array in (offsets, upper, change, guide):
        array.setflags(write=False)
    return Lookup(modulus, offsets, upper, change, wrap_from, wrap_length, guide, shift)


def lookup_of_matrix(changes: NDArray[np.int64], wrap_from: int, wrap_length: int) -> Lookup:
    """Make a lookup from an explicit matrix (row, key) -> change; equal neighbours become one interval."""
    rows = []
    for row in changes:
        starts = np.concatenate([[0], np.flatnonzero(np.diff(row)) + 1])
        lengths = np.diff(np.concatenate([starts, [len(row)]]))
        rows.append(list(zip(row[starts].tolist(), lengths.tolist(), strict=True)))
    return lookup_of_rows(rows, changes.shape[1], wrap_from, wrap_length)


def matrix_of(lookup: Lookup) -> NDArray[np.int64]:
    """Return the explicit matrix (row, key) -> change, for moduli small enough to be written out."""
    lower = np.concatenate([np.zeros(1, dtype=np.uint64), lookup.upper[:-1]])
    lower[lookup.offsets[:-1]] = 0
    spelled = np.repeat(lookup.change.astype(np.int64), (lookup.upper - lower).astype(np.int64))
    return spelled.reshape(len(lookup.offsets) - 1, lookup.modulus)


def law_of(lookup: Lookup, tolerance: float, js: int | None = None) -> PTable:
    """Return the p-table behind a lookup: p = share of the keys; trailing rows with the same law are one."""
    laws = [lookup.lengths(row) for row in range(lookup.last_row + 1)]
    while len(laws) > 2 and laws[-1] == laws[-2]:
        laws.pop()
    if lookup.wrap_length > 1 and len(laws) - 1 > lookup.wrap_from:
        remedy = (
            "give the rows that larger counts share one law; a p-table has a single row for all larger counts"
        )
        raise Mistakes(
            [Problem("", f"row {len(laws) - 1}", f"another law than row {lookup.wrap_from}", remedy)]
        )
    rows = [
        ([row + change for change in law], [length / lookup.modulus for length in law.values()])
        for row, law in enumerate(laws)
    ]
    return ptable_of_rows(rows, js=js, tolerance=tolerance)


def change(lookup: Lookup, counts: ArrayLike, keys: ArrayLike) -> NDArray[np.int64]:
    """Look up the change of each count; a count that the table does not cover raises UncoveredCount."""
    counts = np.ascontiguousarray(counts, dtype=np.int64)
    keys = np.ascontiguousarray(keys, dtype=np.uint32)
    if counts.shape != keys.shape:
        raise UncoveredCount("each count needs one cell key")
    out = np.empty(counts.size, dtype=np.int64)
    if not _changes(counts.ravel(), keys.ravel(), out, *lookup.arrays):
        raise UncoveredCount("a p-table has no row for negative counts; give counts of 0 or more")
    return out.reshape(counts.shape)


@njit(inline="always")  # type: ignore[untyped-decorator]
def change_of(
    count: Any,
    key: Any,
    upper: Any,
    change: Any,
    guide: Any,
    guide_shift: Any,
    last_row: Any,
    wrap_from: Any,
    wrap_length: Any,
) -> Any:
    """Look up one change: (int64 count, uint32 key, *lookup.arrays) -> int64, for use inside other kernels.

    upper uint64[n], change int32[n], guide int32[rows * 256], guide_shift uint64,
    last_row, wrap_from and wrap_length int64. Returns UNCOVERED for a negative count, which a caller that can
    have one must turn into UncoveredCount. (Raising here would make the kernel eight times slower.)
    """
    if count < 0:
        return np.int64(UNCOVERED)
    row = min(count, last_row)
    if wrap_length > 1 and count > last_row:  # for one row the minimum is enough, without a branch
        row = wrap_from + (count - wrap_from) % wrap_length
    # the last bound of all is the modulus, a power of two
    reduced = np.uint64(key) & (upper[upper.size - 1] - np.uint64(1))
    # unsigned, because Numba asks of every signed index whether it counts from the end
    at = np.uint64(guide[np.uint64(row) * np.uint64(GUIDE) + (reduced >> guide_shift)])
    while reduced >= upper[at]:
        at += np.uint64(1)
    return np.int64(change[at])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _changes(
    counts: Any,
    keys: Any,
    out: Any,
    upper: Any,
    change: Any,
    guide: Any,
    guide_shift: Any,
    last_row: Any,
    wrap_from: Any,
    wrap_length: Any,
) -> Any:
    covered = True
    for cell in range(counts.size):
        drawn = change_of(
            counts[cell], keys[cell], upper, change, guide, guide_shift, last_row, wrap_from, wrap_length
        )
        covered &= drawn != UNCOVERED
        out[cell] = drawn
    return covered


def keyed_permutation(n: int, key: bytes, row: int) -> list[int]:
    """Shuffle 0..n-1 by Fisher and Yates with the bits of a keyed BLAKE2b stream; the same on every platform."""
    order = list(range(n))
    words = _words(key, row)
    for last in range(n - 1, 0, -1):
        other = _below(last + 1, words)
        order[last], order[other] = order[other], order[last]
    return order


def _words(key: bytes, row: int) -> Iterator[int]:
    """Yield 64-bit words that only the key determines, a separate stream for each row."""
    for block in count():
        data = row.to_bytes(8, "little") + block.to_bytes(8, "little")
        digest = hashlib.blake2b(data, key=key, person=b"discreet.lookup").digest()
        yield from (int.from_bytes(digest[at : at + 8], "little") for at in range(0, len(digest), 8))


def _below(bound: int, words: Iterator[int]) -> int:
    """Draw a number below the bound, uniformly: words beyond the last whole multiple are rejected."""
    limit = 2**64 - 2**64 % bound
    return next(word for word in words if word < limit) % bound


def _split(change: int, length: int, longest: int) -> list[tuple[int, int]]:
    """Cut an interval into the fewest equal parts (to one key) that are not longer than the longest allowed."""
    parts = max(1, -(-length // longest))
    return [(change, length * (at + 1) // parts - length * at // parts) for at in range(parts)]


def _guide(offsets: NDArray[np.int32], upper: NDArray[np.uint64], shift: int) -> NDArray[np.int32]:
    first_keys = np.arange(GUIDE, dtype=np.uint64) << np.uint64(shift)
    guide = np.empty((len(offsets) - 1, GUIDE), dtype=np.int32)
    for row, (first, end) in enumerate(pairwise(offsets.tolist())):
        # entries beyond a modulus below 256 are never read; they stay inside the row
        guide[row] = np.minimum(first + np.searchsorted(upper[first:end], first_keys, side="right"), end - 1)
    return guide.ravel()


def _rule_problems(last_row: int, modulus: int, wrap_from: int, wrap_length: int) -> Iterator[Problem]:
    if modulus < 1 or KEYS % modulus:
        yield Problem("", "modulus", str(modulus), "give a power of two up to 2^32, such as 256 or 4096")
    if wrap_length < 1 or wrap_from < 0 or wrap_from + wrap_length - 1 != last_row:
        yield Problem(
            "",
            "wrap rule",
            f"from row {wrap_from}, {wrap_length} rows, in a table that ends with row {last_row}",
            "the rows that larger counts share must be the last ones of the table",
        )


def _row_problems(row: int, pieces: list[tuple[int, int]], modulus: int) -> Iterator[Problem]:
    if sum(length for _, length in pieces) != modulus or any(length < 0 for _, length in pieces):
        yield Problem(
            "", f"row {row}", "the intervals do not cover every key once", f"cover 0..{modulus - 1}"
        )
    if any(abs(change) > MOST_CHANGE for change, _ in pieces):
        largest = max((abs(change) for change, _ in pieces))
        yield Problem("", f"row {row}", f"a change of {largest:.3g}", f"keep changes within {MOST_CHANGE:,}")
    if any(length and row + change < 0 for change, length in pieces):
        yield Problem(
            "", f"row {row}", "a change below minus the count", "no published count may be negative"
        )
