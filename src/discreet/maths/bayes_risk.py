"""A Bayesian adversary who knows everyone in a group but one person (Kazan & Reiter 2022): posterior, risk, decisions.

It owns the formulas of one group; a group inside another is bayes_hierarchy's, and the cells at risk are the audit's.

The adversary knows that x0 others of the group have the target's characteristics, so that the true count is x0 or
x0 + 1, and believes x0 + 1 with probability p. The published count j has the law P0 or P1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from discreet.maths.laws import AdditiveLaw
from discreet.maths.pmf import Floats, Pmf


class Rows(Protocol):
    """The law of the published count for each true count; more an adversary need not know."""

    def row(self, count: int) -> Pmf:
        """The law of the published count j for a true count i."""
        ...


@dataclass(frozen=True, eq=False)
class Adversary:
    """One who knows x0 = ``known`` others in a cell that a law protects, and has the prior probability p."""

    law: Rows
    known: int = 0
    prior: float = 0.5

    @cached_property
    def without(self) -> Pmf:
        """P0, the law of the published count without the target."""
        return self.law.row(self.known)

    @cached_property
    def with_target(self) -> Pmf:
        """P1, the law of the published count with the target."""
        return self.law.row(self.known + 1)

    @cached_property
    def log_factors(self) -> Floats:
        """log P1(j)/P0(j) for the values j of P1; inf where only the target explains j, -inf where P1 is 0."""
        if isinstance(self.law, AdditiveLaw):
            return self.law.exponents.log_ratio(
                self.with_target.first - self.known - 1, len(self.with_target.p), -1
            )
        other = probabilities(self.without, self.with_target.values)
        factors = np.full(len(other), np.inf)
        both = (self.with_target.p > 0) & (other > 0)
        factors[both] = np.log(self.with_target.p[both]) - np.log(other[both])
        factors[self.with_target.p == 0] = -np.inf
        return factors

    @cached_property
    def posteriors(self) -> Floats:
        """P[x0 + 1 | j] = p P1(j) / (p P1(j) + (1 - p) P0(j)), for the values j of P1 (3.1)."""
        found: Floats = expit(logit(self.prior) + self.log_factors)
        return found

    def log_factor(self, published: int) -> float:
        """log P1(j)/P0(j) of one published count, however far it is from the truth; -inf where P1 is 0."""
        at = published - self.with_target.first
        if 0 <= at < len(self.log_factors):
            return float(self.log_factors[at])
        if (
            isinstance(self.law, AdditiveLaw) and self.law.pmf.omitted
        ):  # the reported law is cut, the noise is not
            return float(self.law.exponents.log_ratio(published - self.known - 1, 1, -1)[0])
        return -math.inf

    def posterior(self, published: int) -> float:
        """The posterior of one published count; 0 where the target would not have led to it."""
        return float(expit(logit(self.prior) + self.log_factor(published)))

    def ratio(self, published: int) -> float:
        """R'(j) = posterior / p (3.2)."""
        return self.posterior(published) / self.prior

    @property
    def mean_posterior(self) -> float:
        """The expected posterior where the target is there: sum P1(j) P[x0 + 1 | j] (3.3)."""
        return float(self.with_target.p @ self.posteriors)

    @property
    def risk(self) -> float:
        """R = mean posterior / p = 1 + chi2(P1 || p P1 + (1-p) P0) <= min(1/p, e^(2 rho)) (3.4)."""
        return self.mean_posterior / self.prior

    @property
    def correct(self) -> float:
        """The probability of deciding for a target who is there: Pr1[posterior > 1/2] (3.6)."""
        return self.exceeds(0.5)

    @property
    def mistaken(self) -> float:
        """The probability of deciding for a target who is not there: Pr0[posterior > 1/2]."""
        return self.exceeds_falsely(0.5)

    def exceeds(self, gate: float) -> float:
        """Pr1[posterior > gate]: how probably a target who is there is given away at a gate."""
        return float(self.with_target.p[self.posteriors > gate].sum())

    def exceeds_falsely(self, gate: float) -> float:
        """Pr0[posterior > gate]: how probably somebody who is not there is accused."""
        chosen = self.with_target.values[self.posteriors > gate]
        return float(probabilities(self.without, chosen).sum())


def logit(prior: float) -> float:
    """log(p / (1 - p))."""
    return math.log(prior) - math.log1p(-prior)


def probabilities(law: Pmf, values: NDArray[np.int64]) -> Floats:
    """The probability of each of some values."""
    inside = (values >= law.first) & (values <= law.last)
    return np.where(inside, law.p[np.clip(values - law.first, 0, len(law.p) - 1)], 0.0)


def posterior_of(prior: float, log_factors: Iterable[float]) -> float:
    """The posterior after several levels, or releases, in which all but the target are known: log odds add up."""
    return float(expit(logit(prior) + math.fsum(log_factors)))
