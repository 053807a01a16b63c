"""Composition of several releases in four ways: basic, advanced, as zCDP and by loss distributions.

Each way is valid; they differ in how much they over-count. A way that cannot state a release gives the reason instead
of a number. All numbers are rounded toward privacy (``accounting``, ``loss_distribution``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from discreet.errors import Mistakes, mistake
from discreet.maths.privacy.accounting import (
    EpsilonDelta,
    Neighbours,
    PrivacyLoss,
    PureEpsilon,
    Rho,
    advanced,
    advanced_delta,
    basic,
    delta_of_rho,
    epsilon_of_rho,
    float_above,
)
from discreet.maths.privacy.loss_distribution import (
    POINTS,
    GaussianNoise,
    LaplaceNoise,
    mixed_delta,
    mixed_epsilon,
)

Composable = PureEpsilon | EpsilonDelta | Rho | LaplaceNoise | GaussianNoise
STEPS = 40  # halvings of the logarithm of delta where advanced composition is inverted
LEAST = -300.0  # power of ten of the smallest delta that is searched for


class Way(StrEnum):
    """The ways of composing."""

    BASIC = "basic"
    ADVANCED = "advanced"
    ZCDP = "zcdp"
    LOSS_DISTRIBUTION = "loss_distribution"


class Composition(StrEnum):
    """How the losses of one release's cross-tabulations, or of an account's charges, are composed."""

    BASIC = "basic"
    ADVANCED = "advanced"
    PLD = "pld"


@dataclass(frozen=True)
class Total:
    """The guarantee of all releases together by one way of composing; None, with the reason, where impossible."""

    way: Way
    value: float | None
    reason: str = ""


def stated(release: Composable, neighbours: Neighbours) -> PrivacyLoss:
    """The loss of a release: as it is stated, or of noise once for each cell in which neighbours differ."""
    match release:
        case LaplaceNoise(epsilon):
            return PureEpsilon(epsilon).times(neighbours.cells)
        case GaussianNoise(rho):
            return Rho(rho).times(neighbours.cells)
    return release


def composed_delta(
    losses: Sequence[PureEpsilon | EpsilonDelta],
    composition: Composition,
    epsilon: Fraction,
    points: int = POINTS,
) -> Fraction:
    """The delta of losses that are fixed beforehand, at an epsilon, rounded up, and at most 1.

    ``points``: of the grid of privacy-loss distributions.
    """
    whole = basic(losses, EpsilonDelta)
    if whole.epsilon <= epsilon:
        return whole.delta  # adding up is a composition too, and exact where others round
    match composition:
        case Composition.ADVANCED:
            return min(advanced_delta(losses, epsilon), Fraction(1))
        case Composition.PLD:
            return mixed_delta(losses, Neighbours.ADD_REMOVE, epsilon, points)
    return Fraction(1)


def composed_epsilons(
    releases: Sequence[Composable], neighbours: Neighbours, delta: Fraction
) -> tuple[Total, ...]:
    """The epsilon of all releases together at a delta, in every way."""
    if not 0 < delta < 1:
        raise mistake("", "delta", str(delta), "give a number above 0 and below 1")
    parts = _parted(releases, neighbours)
    return (
        _total(Way.BASIC, lambda: parts.basic_epsilon(delta)),
        _total(Way.ADVANCED, lambda: parts.advanced_epsilon(delta)),
        _total(Way.ZCDP, lambda: epsilon_of_rho(parts.as_rho(), delta)),
        _total(Way.LOSS_DISTRIBUTION, lambda: mixed_epsilon(_with_laws(releases), neighbours, delta)),
    )


def composed_deltas(
    releases: Sequence[Composable], neighbours: Neighbours, epsilon: Fraction
) -> tuple[Total, ...]:
    """The delta of all releases together at an epsilon, in every way."""
    if epsilon < 0:
        raise mistake("", "epsilon", str(epsilon), "give a number of at least 0")
    parts = _parted(releases, neighbours)
    return (
        _total(Way.BASIC, lambda: parts.basic_delta(epsilon)),
        _total(Way.ADVANCED, lambda: parts.advanced_delta(epsilon)),
        _total(Way.ZCDP, lambda: delta_of_rho(parts.as_rho(), epsilon)),
        _total(
            Way.LOSS_DISTRIBUTION, lambda: float_above(mixed_delta(_with_laws(releases), neighbours, epsilon))
        ),
    )


def _total(way: Way, value: Callable[[], float]) -> Total:
    try:
        return Total(way, value())
    except Mistakes as impossible:
        return Total(way, None, "; ".join(f"{one.value}; {one.remedy}" for one in impossible.problems))


@dataclass(frozen=True)
class _Parts:
    """Releases by the kind of their loss: those with an epsilon, and the sum of the others' rho."""

    bounded: tuple[PureEpsilon | EpsilonDelta, ...]
    rho: Fraction

    def basic_epsilon(self, delta: Fraction) -> float:
        """Sum of the epsilons; zCDP losses are converted together, at the delta that the others leave."""
        total = basic(self.bounded, EpsilonDelta)
        left = self._left(delta)
        return float_above(total.epsilon + (Fraction(epsilon_of_rho(self.rho, left)) if self.rho else 0))

    def advanced_epsilon(self, delta: Fraction) -> float:
        """The slack is what the deltas of the losses leave; zCDP losses are one more loss, with half of it as delta."""
        if not self.bounded:
            raise mistake("", "advanced", "no loss has an epsilon", "zCDP composes losses in rho")
        left, losses = self._left(delta), list(self.bounded)
        if self.rho:
            losses.append(EpsilonDelta(Fraction(epsilon_of_rho(self.rho, left / 2)), left / 2))
        deltas = (loss.delta if isinstance(loss, EpsilonDelta) else Fraction(0) for loss in losses)
        slack = 1 - (1 - delta) / math.prod((1 - one for one in deltas), start=Fraction(1))
        if slack <= 0:
            raise _exceeded(delta)
        return float_above(advanced(losses, slack).epsilon)

    def basic_delta(self, epsilon: Fraction) -> float:
        """Sum of the deltas; zCDP losses are converted together, at the epsilon that the others leave."""
        total = basic(self.bounded, EpsilonDelta)
        left = epsilon - total.epsilon
        if left < 0:
            raise mistake("", "epsilon", "the epsilons add up to more", "give a larger epsilon")
        return min(
            float_above(total.delta + (Fraction(delta_of_rho(self.rho, left)) if self.rho else 0)), 1.0
        )

    def advanced_delta(self, epsilon: Fraction) -> float:
        """The smallest delta, within a factor, whose epsilon is at most this: halving its logarithm."""
        own = basic(self.bounded, EpsilonDelta).delta
        low, high = LEAST, math.log10((1 - own) / 2)
        if self.advanced_epsilon(own + Fraction(10**high)) > epsilon:
            raise mistake("", "epsilon", "too small for advanced composition", "give a larger epsilon")
        for _ in range(STEPS):
            middle = (low + high) / 2
            if self.advanced_epsilon(own + Fraction(10**middle)) <= epsilon:
                high = middle
            else:
                low = middle
        return float_above(own + Fraction(10**high))

    def as_rho(self) -> Fraction:
        """The rho of all losses; one with a delta has none."""
        if any(isinstance(loss, EpsilonDelta) and loss.delta for loss in self.bounded):
            raise mistake(
                "", "zcdp", "a loss with a delta has no rho", "state it by epsilon, rho or its noise"
            )
        return self.rho + sum((loss.epsilon**2 / 2 for loss in self.bounded), Fraction(0))

    def _left(self, delta: Fraction) -> Fraction:
        """The part of a delta that the deltas of the losses leave."""
        left = delta - basic(self.bounded, EpsilonDelta).delta
        if left < 0 or (self.rho and not left):
            raise _exceeded(delta)
        return left


def _parted(releases: Sequence[Composable], neighbours: Neighbours) -> _Parts:
    if not releases:
        raise mistake("", "releases", "none", "give at least one loss or noise")
    losses = [stated(release, neighbours) for release in releases]
    bounded = tuple(loss for loss in losses if not isinstance(loss, Rho))
    return _Parts(bounded, sum((loss.rho for loss in losses if isinstance(loss, Rho)), Fraction(0)))


def _with_laws(
    releases: Sequence[Composable],
) -> list[PureEpsilon | EpsilonDelta | LaplaceNoise | GaussianNoise]:
    """Releases that have a privacy-loss distribution: all but a rho whose noise is not known."""
    known = [release for release in releases if not isinstance(release, Rho)]
    if len(known) < len(releases):
        raise mistake(
            "", "rho", "a rho without its noise has no loss distribution", "give the Gaussian noise"
        )
    return known


def _exceeded(delta: Fraction) -> Mistakes:
    return mistake("", "delta", f"the releases' own deltas exceed {float(delta):.3g}", "give a larger delta")
