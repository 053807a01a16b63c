"""A Bayesian adversary who sees one target several times: at several levels, or in releases one after another.

It owns what independent observations tell together; one of them by itself is bayes_risk's. Bayes factors multiply, so
log odds add up (Kazan & Reiter 2022, sections 5 and S5), and the law of their sum is a convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from discreet.errors import mistake
from discreet.maths.bayes_risk import Adversary, logit, posterior_of
from discreet.maths.pmf import Floats

DIGITS = 9  # log odds that agree in so many decimals are one atom
LEAST = 1e-18  # atoms that are less probable are left out
MOST_ATOMS = 2**20


@dataclass(frozen=True, eq=False)
class Odds:
    """A law of log odds: atoms, ascending, and their probabilities."""

    atoms: Floats
    p: Floats

    def plus(self, other: Odds) -> Odds:
        """The law of the sum of two independent ones."""
        if len(self.atoms) * len(other.atoms) > MOST_ATOMS:
            value = f"{len(self.atoms)} x {len(other.atoms)} likely log odds"
            raise mistake("", "observations", value, "take fewer levels or releases, or less noise")
        return odds(np.add.outer(self.atoms, other.atoms).ravel(), np.outer(self.p, other.p).ravel())


def odds(atoms: Floats, p: Floats) -> Odds:
    """Make the law of some atoms: equal ones are added up, all but impossible ones left out."""
    likely = p > LEAST
    found, where = np.unique(np.round(atoms[likely], DIGITS), return_inverse=True)
    sums = np.zeros(len(found))
    np.add.at(sums, where, p[likely])
    return Odds(found, sums)


@dataclass(frozen=True, eq=False)
class Together:
    """Observations of one target, each with independent noise; the adversaries' own priors do not count."""

    parts: tuple[Adversary, ...]
    prior: float = 0.5

    def posterior(self, published: Sequence[int]) -> float:
        """The posterior of one published count for each observation."""
        if len(published) != len(self.parts):
            value = f"{len(published)} counts for {len(self.parts)} observations"
            raise mistake("", "published counts", value, "give one count for each")
        factors = [part.log_factor(count) for part, count in zip(self.parts, published, strict=True)]
        if np.inf in factors and -np.inf in factors:
            value = "one proves that the target is there, another that it is not"
            raise mistake("", "published counts", value, "check the known counts and the laws")
        return posterior_of(self.prior, factors)

    @cached_property
    def with_target(self) -> Odds:
        """The law of the summed log Bayes factors where the target is there."""
        return _summed([odds(part.log_factors, part.with_target.p) for part in self.parts])

    @property
    def mean_posterior(self) -> float:
        """The expected posterior where the target is there."""
        return float(self.with_target.p @ expit(logit(self.prior) + self.with_target.atoms))

    @property
    def risk(self) -> float:
        """The expected posterior over the prior."""
        return self.mean_posterior / self.prior

    @property
    def correct(self) -> float:
        """The probability of deciding for a target who is there."""
        return self.exceeds(0.5)

    @property
    def mistaken(self) -> float:
        """The probability of deciding for a target who is not there."""
        return self.exceeds_falsely(0.5)

    def exceeds(self, gate: float) -> float:
        """Pr1[posterior > gate]; odds within the rounding of the atoms count as equal."""
        return float(self.with_target.p[self._above(gate)].sum())

    def exceeds_falsely(self, gate: float) -> float:
        """Pr0[posterior > gate] = sum of Pr1 / Bayes factor over the atoms above."""
        chosen = self._above(gate)
        return float(self.with_target.p[chosen] @ np.exp(-self.with_target.atoms[chosen]))

    def _above(self, gate: float) -> NDArray[np.bool_]:
        above: NDArray[np.bool_] = self.with_target.atoms > logit(gate) - logit(self.prior) + 10.0**-DIGITS
        return above


def _summed(laws: Sequence[Odds]) -> Odds:
    total = Odds(np.zeros(1), np.ones(1))
    for law in laws:
        total = total.plus(law)
    return total
