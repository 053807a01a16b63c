"""The true counts behind many published ones, as far as the noise law lets them be told apart.

It owns the estimate of their distribution and the chance that a published value is the true one; it knows no cells.

Published values j of a window W are drawn from the mixture sum_i w_i q(j|i), q(j|i) = p(i -> j) / p(i -> W), of the
laws of true counts i. The weights w are estimated by maximum likelihood with the EM algorithm (Richardson 1972, Lucy
1974); the start is even on the logarithm of the count, as counts of small areas are. Cells that were published outside
the window play no part: with zeros kept it begins at 1, so that nobody need know how many cells are truly empty. With
zeros perturbed it must begin at 0, since geometric noise above 1 looks the same from 0 and from 1, and every cell that
is published as zero must be one that could have been perturbed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.maths.pmf import Floats, Pmf

ROUNDS = 400


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights of the true counts among the cells published in the window, and what they say of each value."""

    counts: tuple[int, ...]
    first: int  # the smallest published value of the window
    joint: Floats  # [count, value - first]: probability of both, within the window

    def chance_true(self, value: int) -> float | None:
        """Pr[true count = value | published value]; None where no such value can be published."""
        column = self.joint[:, value - self.first] if value >= self.first else np.zeros(1)
        total = float(column.sum())
        if not total:
            return None
        return float(column[self.counts.index(value)]) / total if value in self.counts else 0.0


def mixture(
    laws: Sequence[tuple[int, Pmf]], first: int, seen: Sequence[int], rounds: int = ROUNDS
) -> Mixture:
    """Estimate the weights from the numbers of cells published as first, first + 1, ..

    ``laws`` are true counts with the laws of their published values.
    """
    counts, q = _windowed(laws, first, len(seen))
    shares = np.asarray(seen, dtype=np.float64) / max(1, sum(seen))
    weights = 1 / (1 + np.array(counts, dtype=np.float64))
    weights /= weights.sum()
    for _ in range(rounds):
        expected = weights @ q
        ratio = np.divide(shares, expected, out=np.zeros_like(shares), where=expected > 0)
        weights = weights * (q @ ratio)
    return Mixture(counts, first, weights[:, None] * q)


def _windowed(laws: Sequence[tuple[int, Pmf]], first: int, width: int) -> tuple[tuple[int, ...], Floats]:
    """The counts that can be published in the window, and their laws within it."""
    counts, rows = [], []
    for count, law in laws:
        row = np.zeros(width)
        low, high = max(first, law.first), min(first + width, law.last + 1)
        if low < high:
            row[low - first : high - first] = law.p[low - law.first : high - law.first]
        if row.sum() > 0:
            counts.append(count)
            rows.append(row / row.sum())
    return tuple(counts), np.array(rows).reshape(len(counts), width)
