"""Releases of known noise composed by their privacy-loss distributions, in whole units that are rounded toward privacy.

The loss of an outcome o is log P(o)/P'(o), and delta(epsilon) = E_P (1 - e^(epsilon - loss))_+. Losses of independent
releases add, so that their distributions are convolved (Sommer, Meiser & Mohammadi 2019; Koskela, Jalko & Honkela
2020). delta grows with every probability and every loss; therefore the result is an upper bound where both are only
rounded up. An outcome whose loss lies between two points of the grid is divided over them so that P and P' keep their
masses: merging the two parts gives the outcome back, so that the finer pair is at least as revealing (Doroshenko et al.
2022). Probabilities are whole units of 2^-128, products are exact and rounded up: no float enters a result.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import mistake
from discreet.lazy import lazily
from discreet.maths.noise.additive import discrete_gaussian
from discreet.maths.noise.thresholds import ball_of, threshold_table
from discreet.maths.privacy.accounting import (
    EpsilonDelta,
    Neighbours,
    PureEpsilon,
    exact,
    stated_as,
)

if TYPE_CHECKING:
    import flint
else:
    flint = lazily("flint")

BITS = 128
UNITS = 1 << BITS
PRECISION = 256  # of balls
POINTS = 1 << 15  # about as many points has the grid of all releases together
FEW_POINTS = 1 << 11  # a bound that is some thousandths higher, in a tenth of the time
LOW, HIGH = 1 << (BITS - 64), 1 << (BITS - 100)  # tails that are moved to a higher loss, in units
SMALLEST_DELTA = Fraction(1, 10**25)  # below this the cut tails would show


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


Release = LaplaceNoise | GaussianNoise | DrawnNoise | PureEpsilon | EpsilonDelta


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """masses[k] units have a loss of (first + k) grid, ``infinite`` units an unbounded one; all are upper bounds."""

    grid: Fraction
    first: int
    masses: flint.fmpz_poly
    infinite: int

    def then(self, other: LossDistribution) -> LossDistribution:
        """Both releases together."""
        masses = [(int(mass) + UNITS - 1) >> BITS for mass in (self.masses * other.masses).coeffs()]
        infinite = self.infinite + other.infinite - (self.infinite * other.infinite >> BITS)
        return _cut(self.grid, self.first + other.first, masses, infinite)

    def times(self, count: int) -> LossDistribution:
        """The same release several times, by repeated squaring."""
        power, found = self, None
        while True:
            if count & 1:
                found = power if found is None else found.then(power)
            count >>= 1
            if not count:
                return power if found is None else found
            power = power.then(power)

    def delta(self, epsilon: Fraction) -> Fraction:
        """The delta at an epsilon, rounded up."""
        with flint.ctx.workprec(PRECISION):
            start = max(0, math.floor(epsilon / self.grid) - self.first)
            weight = (ball_of(epsilon - (self.first + start) * self.grid)).exp()
            step, total = (-ball_of(self.grid)).exp(), flint.arb(0)
            for mass in self.masses.coeffs()[start:]:
                if not weight >= 1:
                    total += flint.arb(mass) * (1 - weight)
                weight *= step
            units = int(total.upper().ceil().unique_fmpz()) + self.infinite
        return min(Fraction(units, UNITS), Fraction(1))

    def epsilon(self, delta: Fraction) -> float | None:
        """The smallest epsilon found whose delta is at most this; searched in floats, certified in units."""
        if Fraction(self.infinite, UNITS) >= delta:
            return None
        losses = (self.first + np.arange(len(self.masses.coeffs()))) * float(self.grid)
        shares = np.array([int(mass) / UNITS for mass in self.masses.coeffs()])
        low, high, left = 0.0, max(float(losses[-1]), 0.0), float(delta - Fraction(self.infinite, UNITS))
        for _ in range(60):
            middle = (low + high) / 2
            over = losses > middle
            enough = float(shares[over] @ -np.expm1(middle - losses[over])) <= left
            low, high = (low, middle) if enough else (middle, high)
        while self.delta(Fraction(high)) > delta:
            high = high * (1 + 1e-9) + 1e-9
        return high


def mixed_epsilon(releases: Iterable[Release], neighbours: Neighbours, delta: Fraction) -> float:
    """The epsilon that all releases together guarantee at a delta.

    Noise is charged once for each cell in which neighbours differ: one of a cross-tabulation, or two under
    substitution. PureEpsilon and EpsilonDelta are losses of whole releases, stated for these neighbours.
    """
    if delta < SMALLEST_DELTA:
        raise mistake("", "delta", f"{float(delta):.3g}", "use zCDP or basic composition below 1e-25")
    epsilon = composed(releases, neighbours).epsilon(delta)
    if epsilon is None:
        remedy = "the releases' own deltas already exceed it: give a larger one"
        raise mistake("", "delta", f"no epsilon has a delta of {float(delta):.3g}", remedy)
    return epsilon


def mixed_delta(
    releases: Iterable[Release], neighbours: Neighbours, epsilon: Fraction, points: int = POINTS
) -> Fraction:
    """The delta that all releases together guarantee at an epsilon; releases as in ``mixed_epsilon``."""
    return composed(releases, neighbours, points).delta(epsilon)


def composed(releases: Iterable[Release], neighbours: Neighbours, points: int = POINTS) -> LossDistribution:
    """The privacy-loss distribution of all releases together; any number of points gives upper bounds."""
    counted = Counter(releases)
    grid = _grid(counted, neighbours, points)
    parts = [_one(release, neighbours, grid).times(times) for release, times in counted.items()]
    parts.sort(key=lambda part: part.masses.degree())
    found = parts[0]
    for part in parts[1:]:
        found = found.then(part)
    return found


def _grid(counted: Mapping[Release, int], neighbours: Neighbours, points: int) -> Fraction:
    """Such that the losses of all releases together need about so many points."""
    sizes = [(_size(release), times * neighbours.cells) for release, times in counted.items()]
    squares = sum(size * size * times for size, times in sizes)
    reach = min(sum(size * times for size, times in sizes), squares / 2 + 16 * math.sqrt(squares))
    return Fraction(1, max(1, math.ceil(points / (2 * reach))))


def _size(release: Release) -> float:
    """The usual absolute loss of a release."""
    match release:
        case LaplaceNoise(amount) | PureEpsilon(amount) | EpsilonDelta(amount, _):
            return float(_positive(amount, "epsilon"))
        case GaussianNoise(rho):
            return math.sqrt(2 * float(_positive(rho, "rho")))
    p = np.array([weight / sum(release.weights) for weight in release.weights])
    both = (p[1:] > 0) & (p[:-1] > 0)
    losses = np.log(p[1:][both]) - np.log(p[:-1][both])
    return max(math.sqrt(float(p[1:][both] @ losses**2)), 1e-9)


def _one(release: Release, neighbours: Neighbours, grid: Fraction) -> LossDistribution:
    match release:
        case PureEpsilon() | EpsilonDelta():
            return _stated(stated_as(release, EpsilonDelta), grid)
        case LaplaceNoise(
            epsilon
        ):  # neighbours' ratios are e^epsilon or e^-epsilon: as if only epsilon were known
            one = _stated(EpsilonDelta(epsilon, Fraction(0)), grid)
        case GaussianNoise(rho):
            table = threshold_table(discrete_gaussian(rho))
            one = _drawn(DrawnNoise(table.first, table.numbers), grid)
        case DrawnNoise():
            one = _drawn(release, grid)
    return one.times(neighbours.cells)


def _stated(loss: EpsilonDelta, grid: Fraction) -> LossDistribution:
    """The most revealing pair that is (epsilon, delta)-DP: a leak with delta, else losses of epsilon and -epsilon.

    P(epsilon) = (1 - delta) e^epsilon/(1 + e^epsilon), P(-epsilon) = (1 - delta)/(1 + e^epsilon) (KOV section 3).
    """
    masses: dict[int, int] = {}
    with flint.ctx.workprec(PRECISION):
        e, rest = ball_of(loss.epsilon).exp(), ball_of((1 - loss.delta) * UNITS)
        for sign, share in ((1, e / (1 + e)), (-1, 1 / (1 + e))):
            at = math.floor(sign * loss.epsilon / grid)
            _divide(masses, _above(rest * share), at, (-ball_of(sign * loss.epsilon - at * grid)).exp(), grid)
    return _listed(grid, masses, math.ceil(loss.delta * UNITS))


def _drawn(noise: DrawnNoise, grid: Fraction) -> LossDistribution:
    """Noise for counts that differ by one, the larger of both directions: a cell may gain the record or lose it."""
    total = sum(noise.weights)
    ways: list[tuple[dict[int, int], int]] = []
    with flint.ctx.workprec(PRECISION):
        for here, there in (
            ((*noise.weights, 0), (0, *noise.weights)),
            ((0, *noise.weights), (*noise.weights, 0)),
        ):
            masses: dict[int, int] = {}
            infinite = 0
            for p, q in zip(here, there, strict=True):
                units = -(-p * UNITS // total)
                if p and not q:
                    infinite += units
                elif p:
                    at = math.floor((math.log(p) - math.log(q)) / float(grid))
                    _divide(masses, units, at, ball_of(Fraction(q, p)) * ball_of(at * grid).exp(), grid)
            ways.append((masses, infinite))
    (up, up_infinite), (down, down_infinite) = ways
    either = {at: max(up.get(at, 0), down.get(at, 0)) for at in up.keys() | down.keys()}
    return _listed(grid, either, max(up_infinite, down_infinite))


def _divide(masses: dict[int, int], units: int, at: int, ratio: flint.arb, grid: Fraction) -> None:
    """Divide the mass of a loss l over the points at and at + 1; ratio is e^-(l - at grid).

    P keeps its mass and P' too: the upper part is (1 - ratio)/(1 - e^-grid). If l is below the point, all of it is
    moved up to it; if it is not certainly at most the next point, the next two are taken.
    """
    step = (-ball_of(grid)).exp()
    while not ratio >= step:
        at, ratio = at + 1, ratio / step
        if ratio >= 1:
            break
    upper = min(max(_above(units * (1 - ratio) / (1 - step)), 0), units)
    masses[at + 1] = masses.get(at + 1, 0) + upper
    masses[at] = masses.get(at, 0) + units - upper


def _above(ball: flint.arb) -> int:
    """A whole number that is at least what the ball encloses."""
    return int(ball.upper().ceil().unique_fmpz())


def _listed(grid: Fraction, masses: Mapping[int, int], infinite: int) -> LossDistribution:
    first, last = min(masses, default=0), max(masses, default=0)
    return _cut(grid, first, [masses.get(at, 0) for at in range(first, last + 1)], infinite)


def _cut(grid: Fraction, first: int, masses: list[int], infinite: int) -> LossDistribution:
    """Move improbable tails up: the lower one to its highest point, the upper one to an infinite loss."""
    low, moved = 0, 0
    while low < len(masses) - 1 and moved + masses[low] <= LOW:
        moved, low = moved + masses[low], low + 1
    high, beyond = len(masses), 0
    while high > low + 1 and beyond + masses[high - 1] <= HIGH:
        beyond, high = beyond + masses[high - 1], high - 1
    kept = masses[low:high]
    kept[0] += moved
    return LossDistribution(grid, first + low, flint.fmpz_poly(kept), infinite + beyond)


def _positive(amount: Fraction, name: str) -> Fraction:
    if exact(amount, name) == 0:
        raise mistake("", name, "0", f"give an {name} above 0: without it nothing is published")
    return amount
