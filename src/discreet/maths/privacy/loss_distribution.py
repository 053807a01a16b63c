"""Mixed releases of known noise, composed by their privacy-loss distributions.

The loss of an outcome o is log P(o)/P'(o). Losses of independent releases add, so that their distributions are
convolved (Sommer, Meiser & Mohammadi 2019; Koskela, Jalko & Honkela 2020). The convolution is dp-accounting's,
pessimistic: losses are rounded up to a grid and cut tails count as infinite losses. It works in floats; for their
rounding two allowances are charged, chosen well above what tests against exact compositions show, not proven.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld

from discreet.errors import mistake
from discreet.maths.privacy.accounting import (
    EpsilonDelta,
    Neighbours,
    PureEpsilon,
    exact,
    exp_below,
    float_above,
)

GRID = 1e-4  # losses are rounded up to multiples of this
DELTA_ALLOWANCE = 1e-12  # what rounding in the convolutions may hide of delta
EPSILON_ALLOWANCE = 1e-9  # what rounding in the logarithms may hide of epsilon
SMALLEST_DELTA = Fraction(1, 10**11)  # below this floats are too imprecise


@dataclass(frozen=True)
class LaplaceNoise:
    """Discrete Laplace noise, p(v) proportional to exp(-epsilon abs(v)), in the cells of one cross-tabulation."""

    epsilon: Fraction


@dataclass(frozen=True)
class GaussianNoise:
    """Discrete Gaussian noise, p(v) proportional to exp(-rho v^2), in the cells of one cross-tabulation."""

    rho: Fraction


@dataclass(frozen=True)
class DrawnNoise:
    """Noise drawn by integer thresholds in the cells of one cross-tabulation: value first + k has weights[k] draws."""

    first: int
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if not any(self.weights) or min(self.weights) < 0:
            raise mistake(
                "", "weights", "no law", "give whole numbers of draws, none negative, some positive"
            )

    def logs(self, shift: int) -> dict[int, float]:
        """log p of each value that can happen, moved by a shift."""
        total = math.log(sum(self.weights))
        start = self.first + shift
        return {start + k: math.log(weight) - total for k, weight in enumerate(self.weights) if weight}


Release = LaplaceNoise | GaussianNoise | DrawnNoise | PureEpsilon | EpsilonDelta


def certified(noise: DrawnNoise, epsilon: Fraction) -> EpsilonDelta:
    """The certified guarantee of the noise in one cell for counts that differ by 1, at a given epsilon.

    delta = max over both directions of sum (p(v) - e^epsilon p(v -+ 1))_+, in integers but for a bound on e^epsilon.
    """
    factor, weights = exp_below(epsilon), (0, *noise.weights, 0)
    upward = sum(max(p - factor * q, Fraction(0)) for q, p in pairwise(weights))
    downward = sum(max(p - factor * q, Fraction(0)) for p, q in pairwise(weights))
    return EpsilonDelta(epsilon, Fraction(max(upward, downward)) / sum(noise.weights))


def mixed_epsilon(
    releases: Iterable[Release], neighbours: Neighbours, delta: Fraction, grid: float = GRID
) -> float:
    """The epsilon that all releases together guarantee at a delta.

    Noise is charged once for each cell in which neighbours differ: one of a cross-tabulation, or two under
    substitution. PureEpsilon and EpsilonDelta are losses of whole releases, stated for these neighbours.
    """
    if delta < SMALLEST_DELTA:
        raise mistake("", "delta", f"{float(delta):.3g}", "use zCDP or basic composition below 1e-11")
    composed = _composed(releases, neighbours, grid)
    epsilon = float(composed.get_epsilon_for_delta(float(delta) - DELTA_ALLOWANCE))
    if math.isinf(epsilon):
        remedy = "the releases' own deltas already exceed it: give a larger one"
        raise mistake("", "delta", f"no epsilon has a delta of {float(delta):.3g}", remedy)
    return math.nextafter(epsilon + EPSILON_ALLOWANCE, math.inf)


def mixed_delta(
    releases: Iterable[Release], neighbours: Neighbours, epsilon: Fraction, grid: float = GRID
) -> float:
    """The delta that all releases together guarantee at an epsilon; releases as in ``mixed_epsilon``."""
    composed = _composed(releases, neighbours, grid)
    least = float(epsilon) - EPSILON_ALLOWANCE
    return min(float(composed.get_delta_for_epsilon(least)) + DELTA_ALLOWANCE, 1.0)


def _composed(
    releases: Iterable[Release], neighbours: Neighbours, grid: float
) -> pld.PrivacyLossDistribution:
    composed = pld.identity(value_discretization_interval=grid)
    for release, times in Counter(releases).items():
        composed = composed.compose(_one(release, neighbours, grid).self_compose(times))
    return composed


def _one(release: Release, neighbours: Neighbours, grid: float) -> pld.PrivacyLossDistribution:
    match release:
        case PureEpsilon(epsilon):
            return _stated(EpsilonDelta(epsilon, Fraction(0)), grid)
        case EpsilonDelta():
            return _stated(release, grid)
        case LaplaceNoise(epsilon):
            parameter = float_above(_positive(epsilon, "epsilon"))
            one = pld.from_discrete_laplace_mechanism(
                parameter, value_discretization_interval=grid, use_connect_dots=True
            )
        case GaussianNoise(rho):
            sigma = math.nextafter(math.sqrt(1 / (2 * float_above(_positive(rho, "rho")))), 0)
            one = pld.from_discrete_gaussian_mechanism(
                sigma, value_discretization_interval=grid, use_connect_dots=True
            )
        case DrawnNoise():
            return _drawn(release, neighbours, grid)
    return one.self_compose(neighbours.cells)


def _stated(loss: EpsilonDelta, grid: float) -> pld.PrivacyLossDistribution:
    stated = common.DifferentialPrivacyParameters(float_above(loss.epsilon), float_above(loss.delta))
    return pld.from_privacy_parameters(stated, value_discretization_interval=grid)


def _drawn(noise: DrawnNoise, neighbours: Neighbours, grid: float) -> pld.PrivacyLossDistribution:
    here, above = noise.logs(0), noise.logs(1)
    if neighbours is Neighbours.ADD_REMOVE:
        return pld.from_two_probability_mass_functions(
            here, above, value_discretization_interval=grid, symmetric=False
        )
    # one cell loses the record and another gains it, so that both directions happen at once
    loses = pld.from_two_probability_mass_functions(here, above, value_discretization_interval=grid)
    gains = pld.from_two_probability_mass_functions(above, here, value_discretization_interval=grid)
    return loses.compose(gains)


def _positive(amount: Fraction, name: str) -> Fraction:
    if exact(amount, name) == 0:
        raise mistake("", name, "0", f"give an {name} above 0: without it nothing is published")
    return amount
