"""The Bayesian adversary of a group inside a larger one (Kazan & Reiter 2022, section 3.2), by exact sums.

A single group is in ``bayes``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from discreet.errors import mistake
from discreet.maths.attacks.averaging import LONGEST_SUM
from discreet.maths.attacks.bayes import Adversary, logit, probabilities
from discreet.maths.noise.additive import AdditiveLaw, LawKind, discrete_gaussian
from discreet.maths.noise.law import Floats, Pmf

Ints = NDArray[np.int64]

NORMAL_UP_TO = 0.5  # rho above which a sum of discrete Gaussians differs from one in the digits that matter
TAIL = 1e-13  # of published counts that are left out of the probability of a decision
LARGEST_GRID = 2**24
LEAST = 1e-300  # replaces probabilities too small for a double


class Chain(StrEnum):
    """Whether X1 <= X2 holds throughout, or is dropped where X1 is drawn, as in the paper's printed numbers."""

    EXACT = "exact"
    PAPER = "paper"


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A group inside a larger one that has d further groups; all their counts are published, with additive noise.

    The adversary knows only x0 of the group. The prior of the larger count X2 given X1 is uniform on X1, X1 + 1, ..
    """

    lower: AdditiveLaw
    upper: AdditiveLaw
    groups: int  # d
    known: int = 0  # x0
    prior: float = 0.5

    @cached_property
    def others(self) -> Pmf:
        """The law of the summed noise of the other groups."""
        return others_noise(self.lower, self.groups)

    def log_odds(self, x1: int, x2: int, y1: int) -> float:
        """logit p + log P1(x1)/P0(x1) + log S(x0 + 1) - log S(x0), of the published counts x1, x2, y1 (the others').

        S(k) = sum_{k2 >= k} q2(x2 - k2) qd(y1 - k2 + k), for Gaussian noise
        sum_{k2 >= k} exp{-rho2 (x2 - k2)^2 - (rho1/d) (y1 - k2 + k)^2}: an exact sum in place of Gibbs sampling.
        """
        before, after = (logsumexp(self._terms(self.known + one, x2, y1)[1]) for one in (0, 1))
        return self._own_odds(x1) + float(after - before)

    def posterior(self, x1: int, x2: int, y1: int, chain: Chain = Chain.EXACT) -> float:
        """P[X1 = x0 + 1 | published counts]."""
        if chain is Chain.PAPER:
            return self._stationary(x1, x2, y1)
        return float(expit(self.log_odds(x1, x2, y1)))

    def correct(self, x2: int) -> float:
        """The probability of deciding for a target who is there, when the larger group has x2 such persons."""
        return float(self.decided(np.array([x2]), self.known + 1)[0])

    def decided(self, x2: Ints, own: int) -> Floats:
        """The probabilities of deciding that the target is there, for larger groups of x2 such persons, ``own`` of them
        in the group: x0 + 1 with the target, x0 without. The prior is that of the adversary, not of these cases.
        """
        upper, others = _trimmed(self.upper.pmf), _trimmed(self.others)
        # further above the group the bound X1 <= X2 is beyond all noise, and the decisions are the same
        larger = np.minimum(x2, own + 2 * max(-upper.first, upper.last) + 1)
        least, most = int(larger.min()), int(larger.max())
        shift = self._shifts(
            np.arange(least + upper.first, most + upper.last + 1),
            np.arange(least - own + others.first, most - own + others.last + 1),
        )
        chance = self._exceeding(shift, own)
        found = np.empty(len(larger))
        for at in np.unique(larger):
            row, column = int(at) - least, int(at) - least
            part = chance[row : row + len(upper.p), column : column + len(others.p)]
            found[larger == at] = upper.p @ part @ others.p
        return found

    def log_odds_of(self, x1: Ints, x2: Ints, y1: Ints) -> Floats:
        """The log odds of many published counts; NaN where they are too far out for the sums of a double."""
        rows, row = np.unique(x2, return_inverse=True)
        columns, column = np.unique(y1, return_inverse=True)
        shift = self._shifts(rows, columns, nothing=np.nan)[row, column]
        counts, at = np.unique(x1, return_inverse=True)
        return np.array([self._own_odds(count) for count in counts.tolist()])[at] + shift

    def _exceeding(self, shift: Floats, own: int) -> Floats:
        """The probability that the group's own count, of ``own`` persons, and a shift make the log odds positive."""
        adversary = Adversary(self.lower, self.known, self.prior)
        needed = -(logit(self.prior) + adversary.log_factors)
        law = adversary.with_target if own > self.known else adversary.without
        order = np.argsort(needed, kind="stable")
        p = probabilities(law, adversary.with_target.values)[order]
        below = np.concatenate([np.zeros(1), np.cumsum(p)])
        return below[np.searchsorted(needed[order], shift, side="left")]

    def _shifts(self, x2: Ints, y1: Ints, nothing: float = 0.0) -> Floats:
        """(x2, y1) -> log S(x0 + 1) - log S(x0); ``nothing`` where either is too small for a double."""
        if len(x2) * len(y1) > LARGEST_GRID:
            raise mistake(
                "", "noise", f"{len(x2)} x {len(y1)} likely counts", "take less noise, or fewer groups"
            )
        sums = []
        for least in (self.known, self.known + 1):
            k2 = np.arange(least, max(int(x2.max()) - self.upper.pmf.first, least) + 1, dtype=np.int64)
            upper = probabilities(self.upper.pmf, x2[:, None] - k2)  # (x2, k2)
            sums.append(upper @ probabilities(self.others, y1[None, :] - k2[:, None] + least))
        some = (sums[0] > 0) & (sums[1] > 0)
        found = np.log(np.where(some, sums[1], 1.0)) - np.log(np.where(some, sums[0], 1.0))
        return np.where(some, found, nothing)

    def _own_odds(self, x1: int) -> float:
        """The log odds from the group's own count."""
        return logit(self.prior) + Adversary(self.lower, self.known).log_factor(x1)

    def _terms(self, k1: int, x2: int, y1: int) -> tuple[Ints, Floats]:
        """The possible counts k2 >= k1, and the logs of the terms of S(k1)."""
        k2 = np.arange(k1, max(x2 - self.upper.pmf.first, k1) + 1, dtype=np.int64)
        with np.errstate(divide="ignore"):
            logs = np.log(probabilities(self.upper.pmf, x2 - k2)) + np.log(
                probabilities(self.others, y1 - k2 + k1)
            )
        if not np.isfinite(logs).any():
            remedy = "give counts that the noise can lead to"
            raise mistake("", "published counts", f"{x2} for the larger group, {y1} for the others", remedy)
        return k2, logs

    def _stationary(self, x1: int, x2: int, y1: int) -> float:
        """The share of X1 = x0 + 1 in the chain (3.8), (3.9) when X1 is drawn without regard to X1 <= X2."""
        own = self._own_odds(x1)
        to_target = []
        for k1 in (self.known, self.known + 1):
            k2, logs = self._terms(k1, x2, y1)
            likely = np.isfinite(logs)
            apart = [probabilities(self.others, y1 - k2[likely] + self.known + one) for one in (0, 1)]
            odds = own + np.log(np.maximum(apart[1], LEAST)) - np.log(np.maximum(apart[0], LEAST))
            to_target.append(float(np.exp(logs - logsumexp(logs))[likely] @ expit(odds)))
        return to_target[0] / (to_target[0] + 1 - to_target[1])


def others_noise(law: AdditiveLaw, groups: int) -> Pmf:
    """The law of the summed noise of some groups: the paper's Gaussian (3.7) up to rho 1/2, else exact."""
    rho = law.rho_parameter
    if law.kind is LawKind.DISCRETE_GAUSSIAN and rho is not None and rho <= NORMAL_UP_TO:
        return discrete_gaussian(rho / groups).pmf
    return summed(law.pmf, groups)


def summed(noise: Pmf, times: int) -> Pmf:
    """The law of a sum of independent noises, by convolutions of positive terms; tails below 1e-30 are cut first."""
    trimmed = _trimmed(noise, 1e-30)
    if times * len(trimmed.p) > LONGEST_SUM // 64:
        raise mistake("", "groups", str(times), "take fewer groups, or less noise")
    total, power = Pmf(0, np.ones(1)), trimmed
    while times:
        if times % 2:
            total = Pmf(total.first + power.first, np.convolve(total.p, power.p))
        power = Pmf(2 * power.first, np.convolve(power.p, power.p))
        times //= 2
    return total


def _trimmed(law: Pmf, tail: float = TAIL) -> Pmf:
    """The law without tails of at most this probability on either side."""
    low = law.first + int(np.searchsorted(np.cumsum(law.p), tail))
    high = law.last - int(np.searchsorted(np.cumsum(law.p[::-1]), tail))
    return Pmf(low, law.p[low - law.first : high + 1 - law.first].copy())
