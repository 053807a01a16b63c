"""Two p-tables under one secret: the same people have two published counts, and their difference shows their noise.

Of a large count n the published ones are n + v and n + w; with d = w - v known, v is guessed as the most probable one.
The guess is right with the probability sum over d of max over v of P(v, d). An attacker who knows both p-tables knows
P: both changes are looked up by the same key. One who knows nothing estimates P from sums: the gap of a total and its
two parts is a sum of three noises, each of which has its own visible d (``estimated_joint``, expectation maximisation).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.noise.law import Floats

Intervals = Sequence[tuple[int, int]]  # (change, number of keys), in the order of the keys
STEPS = 300  # of expectation maximisation
SETTLED = 1e-5  # largest change of a probability in a step at which it ends


def same_key(first: Intervals, second: Intervals) -> dict[tuple[int, int], float]:
    """(change by the first p-table, by the second) -> probability, both looked up by one uniform key."""
    keys = sum(length for _, length in first)
    scale = sum(length for _, length in second)
    found: dict[tuple[int, int], float] = {}
    lower, i, j, ends = 0, 0, 0, [first[0][1] * scale, second[0][1] * keys]
    while i < len(first) and j < len(second):
        upper = min(ends)
        place = (first[i][0], second[j][0])
        found[place] = found.get(place, 0.0) + (upper - lower) / (keys * scale)
        lower = upper
        if upper == ends[0]:
            i += 1
            ends[0] += first[i][1] * scale if i < len(first) else 0
        if upper == ends[1]:
            j += 1
            ends[1] += second[j][1] * keys if j < len(second) else 0
    return {place: p for place, p in found.items() if p > 0}


def unrelated_keys(first: Intervals, second: Intervals) -> dict[tuple[int, int], float]:
    """The same where the two keys are independent."""
    one, other = _law(first), _law(second)
    return {(v, w): p * q for v, p in one.items() for w, q in other.items()}


def _law(row: Intervals) -> dict[int, float]:
    keys = sum(length for _, length in row)
    law: dict[int, float] = {}
    for change, length in row:
        law[change] = law.get(change, 0.0) + length / keys
    return law


def chance_alone(row: Intervals) -> float:
    """The probability that a large count is guessed right from one release."""
    return max(_law(row).values())


def chance_together(joint: Mapping[tuple[int, int], float]) -> float:
    """The probability that it is guessed right from both: sum over d of max over v of P(v, d)."""
    best: dict[int, float] = {}
    for (v, w), p in joint.items():
        best[w - v] = max(best.get(w - v, 0.0), p)
    return sum(best.values())


@dataclass(frozen=True, eq=False)
class NoiseAndDifference:
    """The joint law of the first release's noise and of the visible difference of both."""

    p: Floats  # [noise + reach, difference + span]

    @property
    def reach(self) -> int:
        """The largest noise."""
        return len(self.p) // 2

    @property
    def span(self) -> int:
        """The largest difference."""
        return int(self.p.shape[1]) // 2

    @property
    def alone(self) -> float:
        """The chance of the best guess from the first release only."""
        return float(self.p.sum(axis=1).max())

    @property
    def together(self) -> float:
        """The chance of the best guess from both."""
        return float(self.p.max(axis=0).sum())

    @property
    def guesses(self) -> NDArray[np.int64]:
        """Difference + span -> the most probable noise."""
        found: NDArray[np.int64] = self.p.argmax(axis=0) - self.reach
        return found


def known_joint(joint: Mapping[tuple[int, int], float], span: int) -> NoiseAndDifference:
    """The joint law of both p-tables, by differences up to a span; larger ones are not in it."""
    reach = max(abs(v) for v, _ in joint)
    p = np.zeros((2 * reach + 1, 2 * span + 1))
    for (v, w), share in joint.items():
        if abs(w - v) <= span:
            p[v + reach, w - v + span] += share
    return NoiseAndDifference(p)


def estimated_joint(
    seen: NDArray[np.int64], differences: NDArray[np.int64], reach: int
) -> NoiseAndDifference:
    """The joint law from tuples of two parts, by expectation maximisation; nothing of the noise is known before.

    ``seen`` has a line for each kind of tuple: the differences of both parts and of the total, the first release's gap
    (sum of parts - total), and how many there are. ``differences`` counts all cells by their difference + span. The
    noises of a tuple are taken as independent given their differences.
    """
    span = len(differences) // 2
    shares = differences / max(1, differences.sum())
    variance = max(float((seen[:, 4] @ seen[:, 3] ** 2) / max(1, seen[:, 4].sum())) / 3, 0.25)
    start = np.exp(-0.5 * np.arange(-reach, reach + 1) ** 2 / variance)
    given = np.repeat((start / start.sum())[:, None], 2 * span + 1, axis=1)
    for _ in range(STEPS):
        weights = np.zeros_like(given)
        _expect(seen, given, reach, span, weights)
        totals = weights.sum(axis=0)
        after = np.where(totals > 0, weights / np.maximum(totals, 1e-300), given)
        change = float((np.abs(after - given).max(axis=0) * shares).sum())
        given = after
        if change < SETTLED:
            break
    return NoiseAndDifference(given * shares)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _expect(seen: Any, given: Any, reach: Any, span: Any, weights: Any) -> None:
    """Add how often each noise is expected with each difference, by Bayes' rule in every kind of tuple."""
    for line in range(seen.shape[0]):
        one, two, whole = seen[line, 0] + span, seen[line, 1] + span, seen[line, 2] + span
        gap, many = seen[line, 3], seen[line, 4]
        total = 0.0
        for v in range(-reach, reach + 1):
            for w in range(max(-reach, gap - reach - v), min(reach, gap + reach - v) + 1):
                total += given[v + reach, one] * given[w + reach, two] * given[v + w - gap + reach, whole]
        if total <= 0:
            continue
        for v in range(-reach, reach + 1):
            for w in range(max(-reach, gap - reach - v), min(reach, gap + reach - v) + 1):
                u = v + w - gap
                p = given[v + reach, one] * given[w + reach, two] * given[u + reach, whole] * many / total
                weights[v + reach, one] += p
                weights[w + reach, two] += p
                weights[u + reach, whole] += p


def widest_noise(seen: NDArray[np.int64]) -> int:
    """A bound of the noise for the estimate: six deviations, a third of the gap's variance being that of one noise."""
    variance = float((seen[:, 4] @ seen[:, 3] ** 2) / max(1, seen[:, 4].sum())) / 3
    return max(2, min(15, round(6 * sqrt(variance))))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def pairs_of_tuples(
    shown: Any,
    later: Any,
    parents: Any,
    starts: Any,
    children: Any,
    depths: Any,
    before: Any,
    after: Any,
    fresh: Any,
    least: Any,
    span: Any,
    out: Any,
    number: Any,
) -> Any:
    """Write (difference of both parts, of the total, gap) of chosen tuples of two large parts; return how many.

    Nothing beyond the end of ``out`` is written, and tuples with a difference above the span are left out.
    """
    outer, _, inner = shown.shape
    for o in range(outer):
        for f in range(parents.size):
            if starts[f + 1] - starts[f] != 2:
                continue
            cells = (children[starts[f]], children[starts[f] + 1], parents[f])
            for i in range(inner):
                if number == out.shape[0] or not fresh[before[o], depths[f], after[i]]:
                    continue
                small, wide = False, False
                for cell in cells:
                    one, two = np.int64(shown[o, cell, i]), np.int64(later[o, cell, i])
                    small |= one < least or two < least
                    wide |= abs(two - one) > span
                if small or wide:
                    continue
                for k in range(3):
                    out[number, k] = np.int64(later[o, cells[k], i]) - np.int64(shown[o, cells[k], i])
                gap = -np.int64(shown[o, cells[2], i])
                for k in range(2):
                    gap += shown[o, cells[k], i]
                out[number, 3] = gap
                number += 1
    return number
