"""A Bayesian adversary who knows everyone in a group but one person (Kazan & Reiter 2022): one count, or several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.lazy import lazily
from discreet.maths.cells.alignment import distinct_numbers
from discreet.maths.noise.additive import AdditiveLaw
from discreet.maths.noise.law import Floats, Pmf
from discreet.maths.noise.publishing import PublishedLaw

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")


class LawRows(Protocol):
    """The law of the published count for each true count: all that an adversary needs."""

    def row(self, count: int) -> Pmf:
        """The law of the published count j for a true count i."""
        ...


@dataclass(frozen=True, eq=False)
class Adversary:
    """An adversary who knows x0 = ``known`` others in a cell protected by a law, and has the prior probability p."""

    law: LawRows
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
        found: Floats = special.expit(logit(self.prior) + self.log_factors)
        return found

    def log_factor(self, published: int) -> float:
        """log P1(j)/P0(j) of one published count, however far it is from the true count; -inf where P1 is 0."""
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
        return float(special.expit(logit(self.prior) + self.log_factor(published)))

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
        """Pr1[posterior > gate]: the probability that a target who is there is disclosed at a gate."""
        return float(self.with_target.p[self.posteriors > gate].sum())

    def exceeds_falsely(self, gate: float) -> float:
        """Pr0[posterior > gate]: the probability that a person who is not there is accused."""
        chosen = self.with_target.values[self.posteriors > gate]
        return float(probabilities(self.without, chosen).sum())


def logit(prior: float) -> float:
    """log(p / (1 - p))."""
    return math.log(prior) - math.log1p(-prior)


def probabilities(law: Pmf, values: NDArray[np.int64]) -> Floats:
    """The probability of each of some values."""
    inside = (values >= law.first) & (values <= law.last)
    return np.where(inside, law.p[np.clip(values - law.first, 0, len(law.p) - 1)], 0.0)


MOST_KEPT = 64  # pairs of rows that are kept to be looked up again


class BayesFactors:
    """The Bayes factors of published counts: how much likelier a value is with the target than without."""

    def __init__(self, law: PublishedLaw) -> None:
        self.law = law
        self._found: dict[tuple[int, int, bool], float] = {}
        self._beside: dict[int, Adversary] = {}

    def log_factors(self, known: NDArray[np.int64], published: NDArray[np.int64]) -> Floats:
        """log P(j | x0 + 1)/P(j | x0) of pairs; inf where only the target explains j, -inf where it cannot.

        What differs in x0 and j alike has the same factor, so that few different pairs are worked out.
        """
        if not len(known):
            return np.zeros(0)
        base, hidden = np.minimum(known, self.law.settled), published == 0
        change = published - (known - base)
        lowest, width = int(change.min()), int(change.max() - change.min()) + 1
        number = (base * width + change - lowest) * 2 + hidden
        pairs, where, _ = distinct_numbers(number, (int(base.max()) + 1) * width * 2)
        found = [
            self._factor(pair // 2 // width, pair // 2 % width + lowest, bool(pair % 2))
            for pair in pairs.tolist()
        ]
        return np.array(found)[where]

    def _factor(self, known: int, value: int, hidden: bool) -> float:
        """The log factor of a published value, worked out once; a hidden one is 0, shifted with the known count."""
        pair = (known, value, hidden)
        if pair not in self._found:
            self._found[pair] = self._worked_out(known, value, hidden)
        return self._found[pair]

    def _worked_out(self, known: int, value: int, hidden: bool) -> float:
        adversary = self._adversary(known)
        low, high = self._sources(value, hidden)
        if known == 0 and self.law.keeps_zeros:
            here = _mass(adversary.with_target, low, high)
            return (math.log(here) if here > 0 else -math.inf) if hidden else math.inf
        here, away = (_mass(law, low, high) for law in (adversary.with_target, adversary.without))
        if low == high or (here == 0 and away == 0):
            return adversary.log_factor(high)
        if away == 0:
            return math.inf
        return math.log(here) - math.log(away) if here > 0 else -math.inf

    def _adversary(self, known: int) -> Adversary:
        """The rows of the noise with this many others; a few are cached, because pairs come in order."""
        if known not in self._beside:
            if len(self._beside) >= MOST_KEPT:
                self._beside.clear()
            self._beside[known] = Adversary(self.law.law, known)
        return self._beside[known]

    def _sources(self, value: int, hidden: bool) -> tuple[int | None, int]:
        """The noisy counts that are published as the value, all shifted alike."""
        rule = self.law.publishing
        nothing = rule.sources(0) if hidden else None
        if nothing is None:
            return rule.rounded_from(value)
        first, last = nothing
        return (None if first is None else first + value), last + value


def _mass(law: Pmf, low: int | None, high: int) -> float:
    if low is None:
        return law.cdf(high)
    return float(probabilities(law, np.arange(low, high + 1)).sum())


def posterior_of(prior: float, log_factors: Iterable[float]) -> float:
    """The posterior after several levels, or releases, in which all but the target are known: log odds add up."""
    return float(special.expit(logit(prior) + math.fsum(log_factors)))


DIGITS = 9  # log odds that agree in this many decimals are one atom
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
    """Make the law of some atoms: equal ones are added up, negligible ones left out."""
    likely = p > LEAST
    found, where = np.unique(np.round(atoms[likely], DIGITS), return_inverse=True)
    sums = np.zeros(len(found))
    np.add.at(sums, where, p[likely])
    return Odds(found, sums)


@dataclass(frozen=True, eq=False)
class Together:
    """Observations of one target, each with independent noise; the adversaries' own priors are ignored."""

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
        return float(self.with_target.p @ special.expit(logit(self.prior) + self.with_target.atoms))

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
