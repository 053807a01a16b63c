"""The Bayesian adversary of a group inside a larger one (Kazan & Reiter 2022, section 3.2), by exact sums.

A single group is in ``bayes``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.lazy import lazily, njit
from discreet.maths.attacks.averaging import LONGEST_SUM
from discreet.maths.attacks.bayes import Adversary, logit, probabilities
from discreet.maths.noise.additive import AdditiveLaw, LawKind, discrete_gaussian
from discreet.maths.noise.law import Floats, Pmf

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")

Ints = NDArray[np.int64]

NORMAL_UP_TO = 0.5  # rho above which a sum of discrete Gaussians differs from one in the digits that matter
TAIL = 1e-13  # of published counts that are left out of the probability of a decision
PAPER_TAIL = 1e-7  # the same for the paper's chain, which is worked out count by count
TIE = 1e-9  # log odds so near 0 are even, whatever rounding made of them: a coin decides
LARGEST_GRID = 2**24
FINEST = 40  # points in a standard deviation of the others' noise: a sum of smooth terms needs no more
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
        before, after = (
            special.logsumexp(self._terms(self.known + one, x2, np.array([y1]))[1]) for one in (0, 1)
        )
        return self._own_odds(x1) + float(after - before)

    def posterior(self, x1: int, x2: int, y1: int, chain: Chain = Chain.EXACT) -> float:
        """P[X1 = x0 + 1 | published counts]."""
        if chain is Chain.PAPER:
            return float(self._stationary(self._own_odds_of(np.array([x1])), x2, np.array([y1]))[0, 0])
        return float(special.expit(self.log_odds(x1, x2, y1)))

    def larger(self, x1: int, x2: int, y1: int, chain: Chain = Chain.EXACT) -> Pmf:
        """The law of X2 given the published counts: those given X1 = x0 and X1 = x0 + 1, mixed by the posterior."""
        target = self.posterior(x1, x2, y1, chain)
        parts = [self._terms(self.known + one, x2, np.array([y1])) for one in (0, 1)]
        first, last = self.known, max(int(k2[-1]) for k2, _ in parts)
        found = np.zeros(last - first + 1)
        for weight, (k2, logs) in zip((1 - target, target), parts, strict=True):
            found[k2 - first] += weight * np.exp(logs[0] - special.logsumexp(logs))
        return Pmf(first, found)

    def correct(self, x2: int, chain: Chain = Chain.EXACT) -> float:
        """The probability of deciding for a target who is there, when the larger group has x2 such persons."""
        if chain is Chain.PAPER:
            return self._correct_of_paper(x2)
        return float(self.decided(np.array([x2]), self.known + 1)[0])

    def _correct_of_paper(self, x2: int) -> float:
        """The same by the other chain, of all likely published triples."""
        own = _trimmed(Adversary(self.lower, self.known).with_target, PAPER_TAIL)
        odds = self._own_odds_of(own.values)
        upper, others = _trimmed(self.upper.pmf, PAPER_TAIL), _trimmed(self.others, PAPER_TAIL)
        rest = others.values + x2 - self.known - 1
        return math.fsum(
            chance * float(own.p @ decisions(special.logit(self._stationary(odds, x2 + at, rest))) @ others.p)
            for at, chance in zip(upper.values.tolist(), upper.p.tolist(), strict=True)
        )

    def decided(self, x2: Ints, own: int) -> Floats:
        """The probabilities of deciding that the target is there, for larger groups of x2 such persons, ``own`` of them
        in the group: x0 + 1 with the target, x0 without. The prior is that of the adversary, not of these cases.
        """
        upper, others = _trimmed(self.upper.pmf), _trimmed(self.others)
        # further above the group the bound X1 <= X2 is beyond all noise, and the decisions are the same
        larger = np.minimum(x2, own + 2 * max(-upper.first, upper.last) + 1)
        least, most = int(larger.min()), int(larger.max())
        step = max(int(others.variance**0.5 / FINEST), 1)
        shift = self._shifts(
            (least + upper.first, most + upper.last),
            (least - own + others.first, most - own + others.last),
            step,
        )
        chance = self._exceeding(shift, own)
        found = np.empty(len(larger))
        for at in np.unique(larger):
            row, column = int(at) - least, -(-(int(at) - least) // step)
            weight = others.p[column * step - (int(at) - least) :: step]
            part = chance[row : row + len(upper.p), column : column + len(weight)]
            found[larger == at] = upper.p @ part @ weight / weight.sum()
        return found

    def log_odds_of(self, x1: Ints, x2: Ints, y1: Ints, chain: Chain = Chain.EXACT) -> Floats:
        """The log odds of many published counts; NaN where they are too far out for the sums of a double."""
        if chain is Chain.PAPER:
            found = np.empty(len(x1))
            for larger in np.unique(x2).tolist():
                here = x2 == larger
                (counts, one), (others, two) = (
                    np.unique(some[here], return_inverse=True) for some in (x1, y1)
                )
                found[here] = special.logit(self._stationary(self._own_odds_of(counts), larger, others))[
                    one, two
                ]
            return found
        (rows, columns), at = np.unique(np.stack([x2, y1]), axis=1, return_inverse=True)
        laws = self.upper.pmf.p, self.upper.pmf.first, self.others.p, self.others.first
        # S(x0 + 1) of x2 and y1 is S(x0) of x2 - 1 and y1
        before, after = (_sums_at(rows - self.known - one, columns, *laws) for one in (0, 1))
        shift = _log_ratio(after, before, np.nan)[at.reshape(-1)]
        return self._own_odds_of(x1) + shift

    def _exceeding(self, shift: Floats, own: int) -> Floats:
        """The probability that the group's own count, of ``own`` persons, and a shift make the log odds positive."""
        adversary = Adversary(self.lower, self.known, self.prior)
        needed = -(logit(self.prior) + adversary.log_factors)
        law = adversary.with_target if own > self.known else adversary.without
        order = np.argsort(needed, kind="stable")
        p = probabilities(law, adversary.with_target.values)[order]
        below = np.concatenate([np.zeros(1), np.cumsum(p)])
        sure, tied = (np.searchsorted(needed[order], shift + side * TIE, side="left") for side in (-1, 1))
        found: Floats = (below[sure] + below[tied]) / 2
        return found

    def _shifts(self, x2: tuple[int, int], y1: tuple[int, int], step: int) -> Floats:
        """(x2, y1) -> log S(x0 + 1) - log S(x0), of counts from the first to the last, every ``step``-th y1.

        It is 0 where there is no sum.
        """
        rows, columns = x2[1] - x2[0] + 1, y1[1] - y1[0] + 1
        if rows * columns > LARGEST_GRID * step:
            raise mistake(
                "", "noise", f"{rows} x {columns} likely counts", "take less noise, or fewer groups"
            )
        upper, others = self.upper.pmf, self.others
        laws = upper.p, upper.first, others.p, others.first
        sums = _sums_of_grid(x2[0] - self.known - 1, rows + 1, y1[0], columns, step, *laws)
        return _log_ratio(sums[:-1], sums[1:], 0.0)

    def _own_odds(self, x1: int) -> float:
        """The log odds from the group's own count."""
        return logit(self.prior) + Adversary(self.lower, self.known).log_factor(x1)

    def _own_odds_of(self, x1: Ints) -> Floats:
        counts, at = np.unique(x1, return_inverse=True)
        return np.array([self._own_odds(count) for count in counts.tolist()])[at]

    def _terms(self, k1: int, x2: int, y1: Ints) -> tuple[Ints, Floats]:
        """The possible counts k2 >= k1, and the logs of the terms of S(k1), (y1, k2)."""
        k2 = np.arange(k1, max(x2 - self.upper.pmf.first, k1) + 1, dtype=np.int64)
        with np.errstate(divide="ignore"):
            logs = np.log(probabilities(self.upper.pmf, x2 - k2)) + np.log(
                probabilities(self.others, y1[:, None] - k2 + k1)
            )
        if not np.isfinite(logs).any(axis=1).all():
            worst = int(y1[~np.isfinite(logs).any(axis=1)][0])
            remedy = "give counts that the noise can lead to"
            raise mistake(
                "", "published counts", f"{x2} for the larger group, {worst} for the others", remedy
            )
        return k2, logs

    def _stationary(self, own: Floats, x2: int, y1: Ints) -> Floats:
        """The share of X1 = x0 + 1 in the chain (3.8), (3.9) when X1 is drawn without regard to X1 <= X2.

        (own, y1): of groups with these log odds from their own counts, and these sums of the others.
        """
        to_target = []
        for k1 in (self.known, self.known + 1):
            k2, logs = self._terms(k1, x2, y1)
            apart = [probabilities(self.others, y1[:, None] - k2 + self.known + one) for one in (0, 1)]
            moved = np.log(np.maximum(apart[1], LEAST)) - np.log(np.maximum(apart[0], LEAST))
            weight = np.exp(logs - special.logsumexp(logs, axis=1, keepdims=True))
            to_target.append((special.expit(own[:, None, None] + moved) * weight).sum(axis=2))
        found: Floats = to_target[0] / (to_target[0] + 1 - to_target[1])
        return found


def _log_ratio(after: Floats, before: Floats, nothing: float) -> Floats:
    """log(after / before); ``nothing`` where either is too small for a double."""
    some = (before > 0) & (after > 0)
    found = np.log(np.where(some, after, 1.0)) - np.log(np.where(some, before, 1.0))
    return np.where(some, found, nothing)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _sums_at(x2: Any, y1: Any, upper: Any, upper_first: Any, others: Any, others_first: Any) -> Any:
    """S = sum_{j >= 0} q2(x2 - j) qd(y1 - j) of pairs of counts, less x0."""
    found = np.zeros(x2.size)
    for i in range(x2.size):
        # places of x2 - j in q2 go down from the first one, those of y1 - j in qd with them
        apart = (y1[i] - others_first) - (x2[i] - upper_first)
        top = min(x2[i] - upper_first, upper.size - 1, others.size - 1 - apart)
        for at in range(max(-apart, 0), top + 1):
            found[i] += upper[at] * others[at + apart]
    return found


@njit(cache=True)  # type: ignore[untyped-decorator]
def _sums_of_grid(
    x2: Any,
    rows: Any,
    y1: Any,
    columns: Any,
    step: Any,
    upper: Any,
    upper_first: Any,
    others: Any,
    others_first: Any,
) -> Any:
    """The same for all counts from x2 on and every ``step``-th from y1 on, (x2, y1).

    S(x2, y1) = q2(x2) qd(y1) + S(x2 - 1, y1 - 1).
    """
    found = np.zeros((rows, (columns + step - 1) // step))
    first = min(upper_first, x2)  # below it there is nothing to sum
    further = x2 + rows - 1 - first
    line, law = np.zeros(columns + further), np.zeros(columns + further)
    for at in range(line.size):
        place = y1 - further + at - others_first
        if 0 <= place < others.size:
            law[at] = others[place]
    for row in range(further + 1):
        place = first + row - upper_first
        here = upper[place] if 0 <= place < upper.size else 0.0
        for at in range(line.size - 1, 0, -1):
            line[at] = line[at - 1] + here * law[at]
        line[0] = here * law[0]
        if first + row >= x2:
            found[first + row - x2] = line[further::step]
    return found


def decisions(log_odds: Floats) -> Floats:
    """How probably each target is decided to be there: 1 where the odds are above 1, a half where they are even."""
    return np.where(np.abs(log_odds) <= TIE, 0.5, log_odds > 0)


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
