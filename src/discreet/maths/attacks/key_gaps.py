"""The gap attack on cell keys: what the gap between a total and its parts shows of the total's noise.

The gap, sum of the published parts - published total, is the noise of the parts less that of the total. If all noises
are independent, it shows a little of the total's; where the key of a total is the plain sum of its parts' keys, it
shows more, by the joint law of ``keyed_joint_law``. The best guess takes, for every gap, the most probable noise: it is
right with the probability sum over gaps of max over v of P(v, gap).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.attacks.tuples import MOST_KEYED, by_gap, keyed_joint_law
from discreet.maths.cells.lookup import Lookup
from discreet.maths.noise.law import Floats, Pmf

FEWEST = 2  # parts of a tuple: a single one has all people of its total, and its noise
WIDEST = 200  # of parts times reach: beyond it a gap shows next to nothing


def most_parts(reach: int) -> int:
    """Up to how many parts a tuple is used; below ``FEWEST`` where the noise is too wide."""
    return min(MOST_KEYED, WIDEST // max(reach, 1))


@dataclass(frozen=True, eq=False)
class GapRule:
    """The joint law of a total's noise and its gap, and the guess that is best by it."""

    joint: Floats  # (noise of the total, gap), both from their least on

    @property
    def guesses(self) -> NDArray[np.int64]:
        """Gap -> the row of the most probable noise."""
        found: NDArray[np.int64] = self.joint.argmax(axis=0)
        return found

    @property
    def chance(self) -> float:
        """The probability that the best guess is right."""
        return float(self.joint.max(axis=0).sum())

    @property
    def gap(self) -> Floats:
        """The law of the gap."""
        found: Floats = self.joint.sum(axis=0)
        return found


def keyed_rule(lookup: Lookup, parts: int) -> GapRule:
    """For plain sums of keys that are looked up in the row of large counts."""
    return GapRule(by_gap(keyed_joint_law(lookup, parts)))


def independent_rule(noise: Pmf, parts: int) -> GapRule:
    """For independent noises: P(v) times the law of the sum of n others."""
    reach = max(-noise.first, noise.last)
    one = np.array([noise.at(change) for change in range(-reach, reach + 1)])
    summed = one
    for _ in range(parts - 1):
        summed = np.convolve(summed, one)
    return GapRule(by_gap(np.outer(one, summed)))


def unaided_chance(noise: Pmf) -> float:
    """The probability of the most probable noise, which is the guess without a gap."""
    return float(noise.p.max())


def right_guesses(rule: GapRule, seen: NDArray[np.int64]) -> int:
    """Of tuples counted by (noise of the total, gap), how many the rule guesses right."""
    return int(seen[rule.guesses, np.arange(seen.shape[1])].sum())


def evidence(first: GapRule, second: GapRule, seen: NDArray[np.int64]) -> float:
    """The log-likelihood ratio of the first law over the second, by how often each gap was seen.

    A gap that a law excludes, as by its rounded bins, has at least the probability 1e-12.
    """
    at = np.flatnonzero(seen)
    ratios = np.log(np.maximum(first.gap[at], 1e-12)) - np.log(np.maximum(second.gap[at], 1e-12))
    return float(seen[at] @ ratios)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def tally(
    shown: Any,
    true: Any,
    parents: Any,
    starts: Any,
    children: Any,
    depths: Any,
    before: Any,
    after: Any,
    fresh: Any,
    least: Any,
    reach: Any,
    seen: Any,
) -> None:
    """Add the chosen tuples of a grid to seen[parts, noise of the total + reach, gap + (parts + 1) reach].

    Only tuples of which every part is published with at least ``least`` records: these have the noise of large counts.
    With the published counts as the true ones all noises are 0.
    """
    outer, _, inner = shown.shape
    for o in range(outer):
        for f in range(parents.size):
            parts = starts[f + 1] - starts[f]
            if parts < FEWEST or parts >= seen.shape[0]:
                continue
            for i in range(inner):
                if not fresh[before[o], depths[f], after[i]]:
                    continue
                total = np.int64(shown[o, parents[f], i])
                gap, large = -total, total >= least
                for k in range(starts[f], starts[f + 1]):
                    part = np.int64(shown[o, children[k], i])
                    gap += part
                    large &= part >= least
                noise = total - true[o, parents[f], i]
                if large and abs(gap) <= (parts + 1) * reach and abs(noise) <= reach:
                    seen[parts, noise + reach, gap + (parts + 1) * reach] += 1
