"""The Bayesian adversary of a group inside larger and larger ones, who knows all but n of its members, by exact sums.

Kazan & Reiter (2022) have two levels, one unknown member and a uniform prior of the larger count (section 3.2), and
leave the rest to "future research" (section 5): bounded and informative priors, more levels, invariants, all but n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.lazy import lazily
from discreet.maths.attacks.bayes import LawRows, logit, probabilities
from discreet.maths.attacks.bayes_hierarchy import others_noise
from discreet.maths.noise.additive import AdditiveLaw
from discreet.maths.noise.law import Floats, Pmf

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")

Ints = NDArray[np.int64]

NOTHING = Pmf(0, np.ones(1))
LARGEST_GRID = 2**24
MOST_UNKNOWN = 10_000


def unknown_members(prior: Sequence[float]) -> Pmf:
    """The law of how many members that the adversary does not know have the characteristics; one probability each.

    They are independent of each other: a binomial law where all have the same probability.
    """
    if len(prior) > MOST_UNKNOWN or not all(0 <= p <= 1 for p in prior):
        raise mistake(
            "", "unknown members", f"{len(prior)}", f"give up to {MOST_UNKNOWN} probabilities from 0 to 1"
        )
    p = np.ones(1)
    for one in prior:
        p = np.convolve(p, [1 - one, one])
    return Pmf(0, p)


@dataclass(frozen=True, eq=False)
class WithUnknown:
    """The law of a published count for an adversary who does not know some other members: a mixture of rows.

    row(x0) = sum_b P(b) row(x0 + b). With it, ``Adversary`` is one who knows all but n.
    """

    law: LawRows
    unknown: Pmf

    def row(self, count: int) -> Pmf:
        """The law of the published count with ``count`` known and some unknown members."""
        rows = [self.law.row(count + int(more)) for more in self.unknown.values]
        first, last = min(row.first for row in rows), max(row.last for row in rows)
        p = np.zeros(last - first + 1)
        for row, weight in zip(rows, self.unknown.p, strict=True):
            p[row.first - first : row.last + 1 - first] += weight * row.p
        return Pmf(first, p, max(row.omitted for row in rows))


@dataclass(frozen=True, eq=False)
class LargerPrior:
    """The prior of a larger count X2 given the smaller X1 = k1: proportional to a law, restricted to k1 <= k2 <= most.

    Without a law all counts are equally likely, without ``most`` up to infinity (the paper's choice).
    """

    law: Pmf | None = None
    most: int | None = None

    def logs(self, smaller: Ints, larger: Ints) -> Floats:
        """(k1, k2) -> log P(k2 | k1); -inf where k2 is impossible."""
        possible = larger[None, :] >= smaller[:, None]
        if self.most is not None:
            possible &= larger[None, :] <= self.most
        with np.errstate(divide="ignore"):
            if self.law is None:
                logs = np.zeros((len(smaller), len(larger)))
                if self.most is not None:
                    logs -= np.log(np.maximum(self.most - smaller + 1, 1))[:, None]
            else:
                weights = np.log(probabilities(self.law, larger))
                logs = weights[None, :] - np.log(self._beyond(smaller))[:, None]
        found: Floats = np.where(possible & np.isfinite(logs), logs, -np.inf)
        return found

    def _beyond(self, smaller: Ints) -> Floats:
        """The mass of the law from each smaller count up to ``most``; 1 where it is 0, and nothing is possible."""
        assert self.law is not None
        law = self.law
        top = law.last if self.most is None else min(law.last, self.most)
        mass = np.array([law.p[max(k - law.first, 0) : max(top + 1 - law.first, 0)].sum() for k in smaller])
        return np.where(mass > 0, mass, 1.0)


def poisson(mean: float) -> Pmf:
    """A Poisson law without negligible tails: what a larger group is expected to have."""
    if not 0 < mean <= 10**6:
        raise mistake("", "mean", f"{mean:g}", "give a number above 0, at most 1000000")
    reach = 12 * math.sqrt(mean) + 40
    values = np.arange(max(0, math.floor(mean - reach)), math.ceil(mean + reach) + 1)
    p = np.exp(values * math.log(mean) - mean - special.gammaln(values + 1))
    return Pmf(int(values[0]), p / p.sum())


@dataclass(frozen=True, eq=False)
class NestedLevel:
    """A larger group: the noise of its count, None for an invariant, how many other groups it has, and the prior."""

    law: AdditiveLaw | None
    groups: int = 0  # of the level below, besides the target's own
    prior: LargerPrior = LargerPrior()


@dataclass(frozen=True)
class Seen:
    """What is published of a larger group: its count, and the sum of its other groups at the level below."""

    count: int
    others: int | None = None  # None where the other groups are not published


@dataclass(frozen=True, eq=False)
class Nested:
    """A group inside larger and larger ones; the adversary knows x0 members with the characteristics, not n others.

    The members that are not known are the target, with probability p, and ``unknown``, a law of the others' number.
    """

    law: AdditiveLaw | None
    levels: tuple[NestedLevel, ...]
    known: int = 0
    prior: float = 0.5
    unknown: Pmf = NOTHING

    def posterior(self, published: int, seen: Sequence[Seen]) -> float:
        """P[the target is there | all published counts]."""
        return float(special.expit(self.log_odds(published, seen)))

    def log_odds(self, published: int, seen: Sequence[Seen]) -> float:
        """logit p + log sum_b P(b) L(x0 + 1 + b) - log sum_b P(b) L(x0 + b).

        L(k) = q1(x1 - k) S1(k), and with the counts x and the sums y of the other groups that are published
        S_l(k) = sum_{k' >= k} P(k' | k) q_{l+1}(x_{l+1} - k') r_l(y_l - k' + k) S_{l+1}(k'), S = 1 at the top.
        """
        counts = np.arange(self.known, self.known + self.unknown.last + 2, dtype=np.int64)
        logs = _log(_noise(self.law), published - counts) + self._above(counts, seen)
        with np.errstate(divide="ignore"):
            weights = np.log(probabilities(self.unknown, np.arange(self.unknown.last + 1)))
        without, with_target = (
            special.logsumexp(weights + logs[one : len(logs) - 1 + one]) for one in (0, 1)
        )
        if not (np.isfinite(without) or np.isfinite(with_target)):
            raise _impossible(published, seen)
        return logit(self.prior) + float(with_target - without)

    def _above(self, counts: Ints, seen: Sequence[Seen]) -> Floats:
        """log S1 for each count of the group."""
        if len(seen) != len(self.levels):
            value = f"{len(seen)} for {len(self.levels)} larger groups"
            raise mistake("", "published counts", value, "give one for each")
        grids = [counts, *(self._grid(level, one) for level, one in zip(self.levels, seen, strict=True))]
        found = np.zeros(len(grids[-1]))
        for at in range(len(self.levels) - 1, -1, -1):
            smaller, larger = grids[at], grids[at + 1]
            if len(smaller) * len(larger) > LARGEST_GRID:
                value = f"{len(smaller)} x {len(larger)} possible counts"
                raise mistake("", "noise", value, "take less noise, or fewer levels")
            logs = self.levels[at].prior.logs(smaller, larger) + found
            logs += _log(_noise(self.levels[at].law), seen[at].count - larger)
            others = seen[at].others
            if others is not None:
                logs += _log(self._others[at], others - larger[None, :] + smaller[:, None])
            found = special.logsumexp(logs, axis=1)
        return found

    @cached_property
    def _others(self) -> tuple[Pmf, ...]:
        """The summed noise of the other groups inside each larger group, which is that of the level below."""
        below = (self.law, *(level.law for level in self.levels[:-1]))
        return tuple(
            NOTHING if law is None or not level.groups else others_noise(law, level.groups)
            for law, level in zip(below, self.levels, strict=True)
        )

    def others_law(self, level: int) -> Pmf:
        """The law of the summed noise of the other groups inside a larger group, the smallest being 0."""
        return self._others[level]

    def _grid(self, level: NestedLevel, seen: Seen) -> Ints:
        """The counts of a larger group that its published one allows."""
        noise = _noise(level.law)
        low, high = max(seen.count - noise.last, self.known), seen.count - noise.first
        return np.arange(low, max(high, low) + 1, dtype=np.int64)

    def correct(
        self, true: Sequence[int], draws: int, generator: np.random.Generator, gate: float = 0.5
    ) -> tuple[float, float]:
        """The share of simulated releases in which the posterior exceeds a gate, and its standard error.

        ``true`` are the counts of the group and of each larger one. Floating-point draws: for study, not for release.
        """
        if len(true) != len(self.levels) + 1 or any(a > b for a, b in pairwise(true)):
            value = ",".join(map(str, true))
            raise mistake(
                "", "true counts", value, "give one for each level, from the smallest to the largest"
            )
        above = 0
        for _ in range(draws):
            own = true[0] + _draw(_noise(self.law), generator)
            seen = [
                Seen(
                    true[at + 1] + _draw(_noise(level.law), generator),
                    true[at + 1] - true[at] + _draw(self._others[at], generator) if level.groups else None,
                )
                for at, level in enumerate(self.levels)
            ]
            above += self.posterior(own, seen) > gate
        share = above / draws
        return share, math.sqrt(share * (1 - share) / draws)


def _noise(law: AdditiveLaw | None) -> Pmf:
    return NOTHING if law is None else law.pmf


def _log(noise: Pmf, changes: Ints) -> Floats:
    with np.errstate(divide="ignore"):
        found: Floats = np.log(probabilities(noise, changes))
    return found


def _draw(noise: Pmf, generator: np.random.Generator) -> int:
    return int(generator.choice(noise.values, p=noise.p / noise.p.sum()))


def _impossible(published: int, seen: Sequence[Seen]) -> Exception:
    counts = ", ".join(str(one.count) for one in seen)
    remedy = "give counts that the noise and the priors can lead to"
    return mistake("", "published counts", f"{published} within {counts}", remedy)
