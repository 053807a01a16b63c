"""Successive removal of noise: counts that are nearly certain sharpen the sums they belong to (Bach 2020, annex B.4).

"A systematic attack could first remove the noise from the most vulnerable [statistics] and then use those to
successively reduce the noise on subsequent averages." Here are the beliefs about one count, the evidence of a sum and
the posterior of both; the release and its tables are in ``discreet.audit.removal``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes
from discreet.lazy import njit
from discreet.maths.attacks.disclosure import mixture
from discreet.maths.noise.law import Floats
from discreet.maths.noise.publishing import PublishedLaw

Integers = NDArray[np.int64]
Marks = NDArray[np.bool_]

LARGE = 1000  # a count that has the noise of large counts
TAIL = 1e-9  # changes beyond are not considered
MOST_REACH = 200  # a law that spreads further is too wide for any count to become certain
ENOUGH = 500  # cells from which the frequencies of small counts are estimated; below, all counts are equally likely
DOUBTED = 100.0  # cells with about the same value that outweigh the equal likelihood of all counts
ROUNDS = 200  # of the estimation
CLEAR = 4.0  # 1/W of a sum whose other members are all but known
SPREAD = 0.125  # variance added to that of a sum, since whole numbers are described by a normal law


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What each published value reveals of its own count: p[row, reach + c] = Pr[count = value + c | value].

    Row r is that of the value first + r; the last row serves all larger values. A row of zeros is a value that
    the law cannot lead to.
    """

    first: int
    p: Floats

    @property
    def reach(self) -> int:
        """The largest difference of a count and its published value."""
        return int(self.p.shape[1]) // 2

    @cached_property
    def offsets(self) -> Floats:
        """The differences, ascending."""
        return np.arange(-self.reach, self.reach + 1, dtype=np.float64)

    @cached_property
    def means(self) -> Floats:
        """Row -> expected count less the published value."""
        return self.p @ self.offsets

    @cached_property
    def variances(self) -> Floats:
        """Row -> variance of the count; infinite where no count leads to the value."""
        found: Floats = self.p @ self.offsets**2 - self.means**2
        found[self.p.sum(axis=1) == 0] = np.inf
        return found

    def rows(self, values: NDArray[Any]) -> Integers:
        """The row of each value."""
        found: Integers = np.clip(values.astype(np.int64) - self.first, 0, len(self.p) - 1)
        return found


def beliefs(law: PublishedLaw, values: Integers, cells: int) -> Beliefs | None:
    """The beliefs about the cells of one cross-tabulation, by its listed values and its number of cells.

    Pr[i | j] is proportional to f(i) P(j | i). The frequencies f of small counts are estimated from all published
    values by EM where there are enough cells; otherwise, and for large counts, all counts are equally likely.
    None where the noise spreads too far.
    """
    large = law.law.row(LARGE).shifted(-LARGE)
    least, most = _quantiles(large.first, large.p)
    rule = law.publishing
    reach = max(-least, most, max(-law.span[0], law.span[1]) if law.law.settled > 1 else 0)
    reach += rule.rounding - 1 + rule.threshold
    if reach > MOST_REACH:
        return None
    first = min(int(values.min(initial=0)), 0)
    last = law.law.settled + 3 * reach + 1
    p = np.zeros((last - first + 2, 2 * reach + 1))
    for value in range(first, last + 1):
        p[value - first] = _flat(law, value, reach)
    step = rule.rounding
    p[-1] = _flat(law, (LARGE + last) // step * step, reach)
    if cells >= ENOUGH:
        _estimated(law, values, cells, first, p[:-1])
    return Beliefs(first, p)


def _quantiles(first: int, p: Floats) -> tuple[int, int]:
    """The changes that all but a negligible part of the law lies between."""
    low = int(np.searchsorted(np.cumsum(p), TAIL))
    high = int(np.searchsorted(np.cumsum(p[::-1]), TAIL))
    return first + low, first + len(p) - 1 - high


@lru_cache(maxsize=1 << 12)  # thousands of cross-tabulations have the same law
def _flat(law: PublishedLaw, value: int, reach: int) -> Floats:
    """The belief about a value where all counts are equally likely."""
    row = np.zeros(2 * reach + 1)
    try:
        column = law.column(value)
    except Mistakes:  # nothing leads to it
        return row
    for count in range(max(column.first, value - reach), min(column.last, value + reach) + 1):
        row[count - value + reach] = column.p[count - column.first]
    total = row.sum()
    return row / total if total > 0 else row


def _estimated(law: PublishedLaw, values: Integers, cells: int, first: int, p: Floats) -> None:
    """Replace the beliefs about small values by those with estimated frequencies, in place."""
    reach, width = p.shape[1] // 2, len(p)
    inside = values[values < first + width]
    seen = np.bincount(inside - first, minlength=width)
    seen[-first] += cells - len(values)  # cells that are not listed are zero
    laws = [(count, law.row(count)) for count in range(first + width + reach)]
    found = mixture(laws, first, seen.tolist(), ROUNDS)
    counts = np.array(found.counts)
    around = np.convolve(seen, np.ones(2 * reach + 1), mode="same")
    for row in range(width - reach):  # what is larger may come from counts beyond the window
        weights = found.joint[:, row]
        near = np.abs(counts - (first + row)) <= reach
        total = weights[near].sum()
        if total > 0:
            trust = around[row] / (around[row] + DOUBTED)
            p[row] *= 1 - trust
            p[row, counts[near] - (first + row) + reach] += trust * weights[near] / total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_evidence(
    shown: Any,
    offset: Any,
    variance: Any,
    parents: Any,
    starts: Any,
    children: Any,
    depths: Any,
    before: Any,
    after: Any,
    fresh: Any,
    same: Any,
    few: Any,
    precision: Any,
    weighted: Any,
) -> None:
    """Add what each chosen family of a grid (before, node, after) reveals of each of its members by the others.

    With beliefs of mean shown + offset, total = sum of parts means that a member's offset is its own plus or minus
    R = total - sum of parts, with the variance W of all others. Families of one cell have no other cell in common, so
    that their evidence adds up by inverse variance: ``precision`` and ``weighted`` are sums of 1/W and M/W. Where the
    same participants have the same noise (``same``), a part published like its total may be the whole of it, with the
    same noise: such a family is no evidence. Cells of a small count in different families are often the same group,
    too, so that up to ``few`` persons only the sharpest evidence is used; and the key of a total of two parts is the
    sum of theirs, so that its noise is no independent evidence unless the others are known.
    """
    outer, _, inner = shown.shape
    for o in range(outer):
        for f in range(parents.size):
            for i in range(inner):
                if not fresh[before[o], depths[f], after[i]]:
                    continue
                parent = parents[f]
                whole = np.float64(variance[o, parent, i])
                gap = np.int64(shown[o, parent, i])
                drift = np.float64(offset[o, parent, i])
                twin, filled = False, 0
                for k in range(starts[f], starts[f + 1]):
                    child = children[k]
                    whole += variance[o, child, i]
                    gap -= shown[o, child, i]
                    drift -= offset[o, child, i]
                    twin |= shown[o, child, i] == shown[o, parent, i]
                    filled += shown[o, child, i] > 0
                if not whole < np.inf or (same and twin):
                    continue
                apart = gap + drift
                for k in range(starts[f] - 1, starts[f + 1]):
                    member = parent if k < starts[f] else children[k]
                    towards = -apart if k < starts[f] else apart
                    w = 1.0 / (max(whole - variance[o, member, i], 0.0) + SPREAD)
                    m = offset[o, member, i] + towards
                    if not same or shown[o, member, i] > few:
                        precision[o, member, i] += w
                        weighted[o, member, i] += w * m
                    elif w > precision[o, member, i] and (filled > 2 or w > CLEAR):
                        precision[o, member, i] = w
                        weighted[o, member, i] = w * m


@dataclass(frozen=True, eq=False)
class Posterior:
    """The likeliest counts of some cells after the evidence of sums."""

    best: Integers  # less the published value
    p: Floats  # of the likeliest; 0 where the evidence contradicts the value
    variance: Floats  # expected squared distance from the likeliest


def posterior(known: Beliefs, rows: Integers, precision: Floats, weighted: Floats) -> Posterior:
    """Combine each cell's own belief with normal evidence of mean weighted/precision and variance 1/precision."""
    own = known.p[rows]
    safe = np.where(precision > 0, precision, 1.0)
    squares = (known.offsets[None, :] - (weighted / safe)[:, None]) ** 2
    with np.errstate(divide="ignore"):
        logs = np.log(own) - 0.5 * precision[:, None] * squares
    highest = logs.max(axis=1)
    possible = np.isfinite(highest)
    p = np.exp(logs - np.where(possible, highest, 0.0)[:, None])
    total = p.sum(axis=1)
    p /= np.where(total > 0, total, 1.0)[:, None]
    best = p.argmax(axis=1)
    offsets = known.offsets[best]
    variance = (p * (known.offsets[None, :] - offsets[:, None]) ** 2).sum(axis=1)
    likeliest = np.where(possible, p[np.arange(len(p)), best], 0.0)
    return Posterior(offsets.astype(np.int64), likeliest, variance)
