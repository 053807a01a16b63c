"""The laws that depend on the count they perturb: Hellinger-type noise and the rows of a p-table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from discreet.errors import mistake
from discreet.maths.noise.additive import Number, positive
from discreet.maths.noise.law import UNSETTLED, Pmf, checked_support
from discreet.maths.noise.ptable import PTable
from discreet.maths.privacy.divergence import PrivacyLoss, both_ways, largest_delta, smallest_epsilon

HELLINGER_BITS = 100  # rows are reported down to a tail of 2^-100: their tails are long


@dataclass(frozen=True)
class HellingerLaw:
    """Rinott et al. 2018, (5.4): p(i -> j) proportional to exp(-epsilon abs(sqrt j - sqrt i) / 2), j >= 0.

    The exponential mechanism with the sensitivity 1 of the square root and epsilon/2, hence epsilon-DP; for large
    counts it perturbs far more than necessary, so it is included for comparison only.
    """

    epsilon_parameter: Fraction

    @property
    def settled(self) -> int:
        """Every count has a law of its own."""
        return UNSETTLED

    @property
    def parameter(self) -> Fraction:
        """Its epsilon."""
        return self.epsilon_parameter

    def row(self, count: int) -> Pmf:
        """The law of the published count."""
        return self._row(count, self.last_target(count, HELLINGER_BITS))

    def _row(self, count: int, last: int) -> Pmf:
        j = np.arange(last + 1, dtype=np.float64)
        weights = np.exp(-float(self.epsilon_parameter) / 2 * np.abs(np.sqrt(j) - math.sqrt(count)))
        return Pmf(0, weights / math.fsum(weights), 2.0**-HELLINGER_BITS)

    def last_target(self, count: int, bits: int) -> int:
        """A target beyond which lies at most 2^-bits of the row, as ``tail_bound`` shows."""
        c, low = float(self.epsilon_parameter) / 2, math.sqrt(count)
        beyond = low + bits * math.log(2) / c
        while tail_bound(c, low, beyond) > 2.0**-bits:
            beyond += 1 / c
        return checked_support(math.ceil(beyond**2) + 1) - 1

    def delta(self, epsilon: float) -> float:
        """The largest over the counts that can be the worst ones."""
        return largest_delta(self._losses, epsilon)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at this delta."""
        return smallest_epsilon(self._losses, delta)

    @property
    def rho(self) -> float:
        """epsilon^2/2, as of any pure epsilon-DP law (Bun & Steinke 2016)."""
        return float(self.epsilon_parameter**2 / 2)

    @cached_property
    def neighbours(self) -> range:
        """The counts i whose neighbour i + 1 can be the worst; there are few.

        Both the exponents and the sums of rows i and i + 1 differ by at most c (sqrt(i+1) - sqrt i) <= c / (2 sqrt i)
        in logarithm, so epsilon is at most c / sqrt i there, which falls below the epsilon of the first neighbours.
        """
        worst = max(loss.largest for loss in self._pairs(range(1)))
        if not worst > 0:
            value = f"{float(self.epsilon_parameter):g} leaves no noise that can be measured"
            raise mistake("", "epsilon", value, "give a smaller one")
        return range(math.ceil((float(self.epsilon_parameter) / 2 / worst) ** 2) + 1)

    @cached_property
    def _losses(self) -> tuple[PrivacyLoss, ...]:
        return tuple(self._pairs(self.neighbours))

    def _pairs(self, counts: range) -> list[PrivacyLoss]:
        """The losses between each count and the next, on common targets: a cut that differs would look like a leak."""
        last = self.last_target(counts.stop, HELLINGER_BITS)
        return both_ways((self._row(i, last), self._row(i + 1, last)) for i in counts)


def hellinger(epsilon: Number) -> HellingerLaw:
    """Make the Hellinger-type law of an epsilon."""
    law = HellingerLaw(positive("epsilon", epsilon))
    law.last_target(0, HELLINGER_BITS)
    return law


def tail_bound(c: float, low: float, beyond: float) -> float:
    """Bound the tail of e^(-c(sqrt j - low)), j > ceil(beyond^2), by 2 (beyond/c + 1/c^2) e^(-c(beyond - low)).

    That is the integral from beyond^2 on; a sum from j = beyond^2 rounded up on can exceed it by part of a term.
    The row's own sum is at least 1, so this bounds the share of the row as well.
    """
    return 2 * (beyond / c + 1 / c**2) * math.exp(-c * (beyond - low))


@dataclass(frozen=True, eq=False)
class PTableLaw:
    """The rows of a p-table of the cell key method; the last one serves all larger counts."""

    ptable: PTable

    @property
    def settled(self) -> int:
        """The last row serves all larger counts."""
        return self.ptable.last_row

    @property
    def parameter(self) -> None:
        """None: it guarantees nothing."""
        return

    def row(self, count: int) -> Pmf:
        """The law of the published count."""
        served = self.ptable.row_of(count)
        targets, p = self.ptable.targets[served], self.ptable.probabilities[served]
        dense = np.zeros(int(targets[-1] - targets[0]) + 1)
        dense[targets - targets[0]] = p
        return Pmf(int(targets[0]) + count - served, dense)

    def delta(self, epsilon: float) -> float:
        """The largest over all rows: at least 1 - p(1 -> 0) for every epsilon, because zeros stay zero."""
        return largest_delta(self._losses, epsilon)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at this delta; inf for every delta small enough to be acceptable."""
        return smallest_epsilon(self._losses, delta)

    @property
    def rho(self) -> None:
        """None: no zCDP guarantee exists, because a bounded change rules neighbours out."""
        return

    @cached_property
    def _losses(self) -> tuple[PrivacyLoss, ...]:
        rows = [self.row(count) for count in range(self.ptable.last_row + 2)]
        return tuple(both_ways(pairwise(rows)))
