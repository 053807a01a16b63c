"""Shares, differences and ratios of two published counts, with where the true ones are by the law of the noise.

Where each of two counts is in its range with probability (1 + level) / 2 at least, both are with probability ``level``
at least (Bonferroni), whether or not their noise is independent. So a - b is from low_a - high_b to high_a - low_b, and
a / b from low_a / high_b to high_a / low_b: the exact ranges of the counts carry over, and no prior is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


class Comparison(StrEnum):
    """What is computed from two published counts."""

    SHARE = "share"  # of a total that contains the count: 0 to 1
    DIFFERENCE = "difference"
    RATIO = "ratio"
    INDEX = "index"  # the count that is compared with is 100
    RATE = "rate"  # per 1,000

    @property
    def factor(self) -> float:
        """What a ratio is multiplied by."""
        return {Comparison.INDEX: 100.0, Comparison.RATE: 1000.0}.get(self, 1.0)


@dataclass(frozen=True, eq=False)
class Ranges:
    """Lows and highs of true counts; nan where nothing is known."""

    low: Numbers
    high: Numbers


def level_of_each(level: float) -> float:
    """The level of each of two ranges that hold together at a level."""
    return (1 + level) / 2


def compared(kind: Comparison, counts: Numbers, bases: Numbers) -> Numbers:
    """The comparison of published counts; nan where a count is (withheld), or where a ratio is to 0."""
    if kind is Comparison.DIFFERENCE:
        return counts - bases
    return kind.factor * counts / np.where(bases == 0, np.nan, bases)


def compared_ranges(kind: Comparison, counts: Ranges, bases: Ranges, is_same: NDArray[np.bool_]) -> Ranges:
    """Where the true comparison is, from ranges at ``level_of_each``; a high is inf where the base may be 0.

    Cells that are compared with themselves have no noise: their difference is 0, and their ratio 1.
    """
    if kind is Comparison.DIFFERENCE:
        low, high = counts.low - bases.high, counts.high - bases.low
        return Ranges(np.where(is_same, 0.0, low), np.where(is_same, 0.0, high))
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(bases.high > 0, counts.low / bases.high, 0.0)
        high = np.where(bases.low > 0, counts.high / bases.low, np.inf)
    low, high = (
        np.where(np.isnan(counts.low + bases.high), np.nan, low),
        np.where(np.isnan(counts.high + bases.low), np.nan, high),
    )
    if kind is Comparison.SHARE:
        low, high = np.minimum(low, 1.0), np.minimum(high, 1.0)
    return Ranges(
        np.where(is_same, kind.factor, kind.factor * low), np.where(is_same, kind.factor, kind.factor * high)
    )
