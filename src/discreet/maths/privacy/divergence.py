"""The exact delta(epsilon) and epsilon(delta) between neighbouring laws.

delta(epsilon) of P against Q is the hockey-stick divergence sum (P - e^epsilon Q)_+, the smallest delta for which
P(S) <= e^epsilon Q(S) + delta holds for all sets S.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.maths.noise.law import Floats, Pmf

STEPS = 200  # halvings of the interval that contains epsilon; doubles run out of digits before


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """The privacy loss of one law against a neighbour: the values' probabilities and log(P/Q), inf where Q is 0."""

    p: Floats
    log_ratio: Floats

    def delta(self, epsilon: float) -> float:
        """Sum p (1 - e^(epsilon - log ratio)) over the values whose log ratio exceeds epsilon: positive terms only."""
        over = self.log_ratio > epsilon
        return abs(float(self.p[over] @ np.expm1(epsilon - self.log_ratio[over])))

    @property
    def largest(self) -> float:
        """The largest finite log ratio; 0 where none is positive."""
        finite = self.log_ratio[np.isfinite(self.log_ratio) & (self.p > 0)]
        return float(finite.max(initial=0.0))


def loss_between(p: Pmf, q: Pmf) -> PrivacyLoss:
    """The privacy loss of p against q, for laws of published values."""
    other = np.zeros(len(p.p))
    low, high = max(p.first, q.first), min(p.last, q.last)
    if low <= high:
        other[low - p.first : high + 1 - p.first] = q.p[low - q.first : high + 1 - q.first]
    some = p.p > 0
    ratio = np.full(int(some.sum()), np.inf)
    common = other[some] > 0
    ratio[common] = np.log(p.p[some][common]) - np.log(other[some][common])
    return PrivacyLoss(p.p[some], ratio)


def both_ways(rows: Iterable[tuple[Pmf, Pmf]]) -> list[PrivacyLoss]:
    """The losses of each pair of neighbouring laws, in both directions."""
    return [loss for p, q in rows for loss in (loss_between(p, q), loss_between(q, p))]


def largest_delta(losses: Sequence[PrivacyLoss], epsilon: float) -> float:
    """The largest delta of several neighbours, which is valid for all of them."""
    return max(loss.delta(epsilon) for loss in losses)


def smallest_epsilon(losses: Sequence[PrivacyLoss], delta: float) -> float:
    """The smallest epsilon whose delta is at most the given one, rounded up; inf where no epsilon has it."""
    high = max(loss.largest for loss in losses)
    return bisect_down(lambda epsilon: largest_delta(losses, epsilon) <= delta, high)


def bisect_down(holds: Callable[[float], bool], high: float) -> float:
    """The smallest number in [0, high] at which a monotone condition holds, rounded up; inf if not even at high."""
    if not holds(high):
        return math.inf
    low = 0.0
    if holds(low):
        return low
    for _ in range(STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
