"""The attack on a whole histogram: all of a group is known but the target's category (after Kazan & Reiter 2022).

The posterior over the categories, the decision and its exact probability of success, for any law. Every category has
its own cell, so that the noise of the cells is independent, also where the same participants have the same noise.

x_c others are in category c, the target is in one of m categories, in c with prior p_c. Published are counts j_c. Then
P[c | j] is proportional to p_c P(j_c | x_c + 1) / P(j_c | x_c): all other cells have the same law whatever c is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import mistake
from discreet.lazy import lazily
from discreet.maths.attacks.bayes import DIGITS, Adversary, LawRows, Odds, odds
from discreet.maths.noise.law import Floats

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")

NODES = 64  # of Gauss and Legendre: exact for ties among up to 127 categories, and to all digits beyond
STEP = 1 / 8  # of the trapezoidal rule in log s; its error falls exponentially in 1/STEP
FADED = 45.0  # e^-45 is negligible compared with 1


@dataclass(frozen=True, eq=False)
class HistogramAdversary:
    """An adversary who knows the counts of all others in each category and has the prior p_c for the target."""

    law: LawRows
    known: tuple[int, ...]  # x_c
    prior: tuple[float, ...]  # p_c, which add up to 1

    def __post_init__(self) -> None:
        """Refuse a prior that is not a probability law."""
        if len(self.prior) != len(self.known) or not self.known:
            value = f"{len(self.prior)} for {len(self.known)} categories"
            raise mistake("", "prior", value, "give one probability for each category")
        if min(self.prior) < 0 or abs(sum(self.prior) - 1) > 1e-9:
            raise mistake(
                "", "prior", f"adds up to {sum(self.prior):g}", "give probabilities that add up to 1"
            )

    def posterior(self, published: Sequence[int]) -> Floats:
        """P[c | j] of every category."""
        if len(published) != len(self.known):
            value = f"{len(published)} for {len(self.known)} categories"
            raise mistake("", "published counts", value, "give one count for each category")
        seen = [self._cells[known].log_factor(j) for known, j in zip(self.known, published, strict=True)]
        weights = _logs(self.prior) + np.array(seen)
        proofs = np.isposinf(weights)
        if proofs.sum() > 1 or np.isneginf(weights).all():
            value = "no category of the target explains them"
            raise mistake("", "published counts", value, "check the known counts and the law")
        if proofs.any():
            weights = np.where(proofs, 0.0, -np.inf)
        found: Floats = np.exp(weights - special.logsumexp(weights))
        return found

    def decision(self, published: Sequence[int]) -> int:
        """The most probable category, the first of several (zero-one loss)."""
        return int(np.argmax(self.posterior(published)))

    def correct(self, category: int) -> float:
        """Pr[the decision is right] where the target is in a category; ties are broken at random.

        The cells are independent, so with F_c and f_c the law of the weight w_c = log p_c + log factor without the
        target, and f that of the target's own, it is sum_w f(w) int_0^1 prod_c (F_c(w-) + f_c(w) u) du: given that c
        others tie, the draw favours the target with probability 1/(c + 1).
        """
        own = self._with(category)
        u, du = np.polynomial.legendre.leggauss(NODES)
        share = np.ones((len(own.atoms), NODES))
        for rival, times in self._rivals(category):
            below, at = _split(rival, own.atoms)
            share *= (below[:, None] + at[:, None] * (u + 1) / 2) ** times
        return self._proof(category) + float(own.p @ share @ du / 2)

    def mean_posterior(self, category: int) -> float:
        """The expected posterior of the target's own category.

        E[A/(A + B)] = int_0^inf E[A e^(-sA)] prod_c E[e^(-s B_c)] ds for independent positive weights A, B_c; with
        s = e^t the trapezoidal rule is exact to all digits that matter.
        """
        own = self._with(category)
        if not len(own.atoms):
            return self._proof(category)
        t = np.arange(-own.atoms.max() - FADED, -own.atoms.min() + np.log(FADED) + STEP, STEP)
        logs = _outer(own.atoms, t)
        value = own.p @ np.exp(logs - np.exp(logs))
        for rival, times in self._rivals(category):
            fading = rival.p @ np.exp(-np.exp(_outer(rival.atoms, t)))
            value = value * (1 - rival.p.sum() + fading) ** times
        return self._proof(category) + float(value.sum() * STEP)

    @property
    def success(self) -> float:
        """Pr[the decision is right] of a target drawn from the prior."""
        first = {kind: c for c, kind in reversed(list(enumerate(zip(self.known, self.prior, strict=True))))}
        parts = (
            times * kind[1] * self.correct(first[kind]) for kind, times in self._kinds.items() if kind[1]
        )
        return float(sum(parts))

    @property
    def baseline(self) -> float:
        """The same without the release: the most probable category of the prior."""
        return max(self.prior)

    @cached_property
    def _cells(self) -> dict[int, Adversary]:
        return {known: Adversary(self.law, known) for known in set(self.known)}

    @cached_property
    def _kinds(self) -> dict[tuple[int, float], int]:
        """How many categories have the same count of others and the same prior."""
        found: dict[tuple[int, float], int] = {}
        for kind in zip(self.known, self.prior, strict=True):
            found[kind] = found.get(kind, 0) + 1
        return found

    def _rivals(self, category: int) -> list[tuple[Odds, int]]:
        """The law of the weights of the other categories, in which the target is not, and how many have it."""
        own = (self.known[category], self.prior[category])
        counts = ((kind, times - (kind == own)) for kind, times in self._kinds.items())
        return [(self._without[kind], times) for kind, times in counts if times and kind[1] > 0]

    def _with(self, category: int) -> Odds:
        """The law of the weight of the target's own category, proofs left out."""
        cell, prior = self._cells[self.known[category]], self.prior[category]
        doubtful = np.isfinite(cell.log_factors)
        factors, p = cell.log_factors[doubtful], cell.with_target.p[doubtful]
        return odds(float(_logs((prior,))[0]) + factors, p) if prior > 0 else odds(factors[:0], p[:0])

    def _proof(self, category: int) -> float:
        """The probability that the target's own cell proves its category: a count that the others could not have."""
        cell = self._cells[self.known[category]]
        proofs = np.isposinf(cell.log_factors)
        return float(cell.with_target.p[proofs].sum()) if self.prior[category] > 0 else 0.0

    @cached_property
    def _without(self) -> dict[tuple[int, float], Odds]:
        """The law of a category's weight where the target is elsewhere; the missing mass belongs to weight 0."""
        found = {}
        for known, prior in self._kinds:
            cell = self._cells[known]
            finite = np.isfinite(cell.log_factors)
            p = cell.with_target.p[finite] * np.exp(-cell.log_factors[finite])  # P0 = P1 / factor
            found[known, prior] = odds(float(_logs((prior,))[0]) + cell.log_factors[finite], p)
        return found


def _split(law: Odds, atoms: Floats) -> tuple[Floats, Floats]:
    """Pr[below] and Pr[equal] for each of some atoms; the missing mass of the law lies below all."""
    sums = np.concatenate([[0.0], np.cumsum(law.p)])
    close = 1.5 * 10.0**-DIGITS
    first = np.searchsorted(law.atoms, atoms - close)
    last = np.searchsorted(law.atoms, atoms + close)
    return 1 - sums[-1] + sums[first], sums[last] - sums[first]


def _outer(atoms: Floats, t: Floats) -> Floats:
    """Sums of every pair, capped where e^e^sum exceeds all doubles."""
    return np.minimum(np.add.outer(atoms, t), 700.0)


def _logs(prior: Sequence[float]) -> Floats:
    with np.errstate(divide="ignore"):
        found: Floats = np.log(np.array(prior))
    return found
