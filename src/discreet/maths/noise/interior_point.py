"""An interior point method that finds many laws at once: the least of a convex function under constraints on moments.

Newton's method on the optimality conditions, led to the boundary by Mehrotra's predictor and corrector (Nocedal and
Wright, Numerical Optimization, 2006, chapters 14 and 19). All laws take their steps together, one in each line of the
arrays; the steps of a law do not depend on the others, and its bits are the same on every processor.

That is why no library solves them, although SciPy, Clarabel and OSQP are available: the noise of a release follows
from its p-table, a last bit can move the bound between two changes, and a programme must publish the same bytes on
every machine. Their sums and logarithms are those of BLAS or of the system, which choose by the processor; OSQP
minimises quadratic functions only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.maths.reproducible import in_order, inverses, log, totals

Lines = NDArray[np.float64]  # (law, change), or what else each law has some of
Flags = NDArray[np.bool_]
Whole = NDArray[np.int64]

MAX_STEPS = 100
TO_THE_BOUNDARY = 0.99  # how much of the way to the nearest bound a step may go
SHORT = 0.1  # a step below this length is replaced by a centring one
CENTRED = 1e-15  # average complementarity at which the iteration stops
EXACT = (
    1e-12  # largest residual of the linear constraints, and largest remaining step of p, at which it stops
)


class Objective(Protocol):
    """A convex, separable function of positive arguments, for each law."""

    def gradient(self, p: Lines) -> Lines:
        """Its first derivatives."""
        ...

    def curvature(self, p: Lines) -> Lines:
        """Its second derivatives, the diagonal of the Hessian matrix."""
        ...

    def of(self, laws: Flags) -> Objective:
        """The same for some of the laws."""
        ...


class NegativeEntropy:
    """sum p log p, whose minimum is the law of maximum entropy."""

    def gradient(self, p: Lines) -> Lines:
        """Return log p + 1."""
        return log(p) + 1.0

    def curvature(self, p: Lines) -> Lines:
        """Return 1 / p."""
        return 1.0 / p

    def of(self, laws: Flags) -> Objective:
        """Return the same: it has no parameters."""
        return self


@dataclass(frozen=True, eq=False)
class Linear:
    """cost . p, for finding how small or how large a moment can be."""

    cost: Lines

    def gradient(self, p: Lines) -> Lines:
        """Return the cost, which is the same everywhere."""
        return self.cost + np.zeros_like(p)

    def curvature(self, p: Lines) -> Lines:
        """Return zeros."""
        return np.zeros_like(p)

    def of(self, laws: Flags) -> Objective:
        """Return the costs of some of the laws."""
        return Linear(self.cost[laws])


@dataclass(frozen=True, eq=False)
class Constraints:
    """What each law obeys: p >= lower, M p = wanted or M p <= wanted, and p_k <= p_(k+1) in its beginning.

    The line of a law with fewer changes than the longest ends with zeros.
    """

    sizes: Whole  # (law) -> number of changes
    lower: Lines  # (law, change)
    moments: Lines  # (law, moment, change), the matrix M
    wanted: Lines  # (law, moment)
    equal: int  # so many of the moments must equal what is wanted; the others may not exceed it
    rises: Flags  # (law, change) -> whether p may not fall after it; as many changes as any law needs

    def of(self, laws: Flags) -> Constraints:
        """Those of some of the laws."""
        return Constraints(
            self.sizes[laws],
            self.lower[laws],
            self.moments[laws],
            self.wanted[laws],
            self.equal,
            self.rises[laws],
        )

    @cached_property
    def inside(self) -> Flags:
        """(law, change) -> whether the law has so many changes."""
        found: Flags = np.arange(self.lower.shape[1]) < self.sizes[:, None]
        return found

    @cached_property
    def bounded(self) -> Flags:
        """(law, inequality) -> whether the law has it: those of moments, then those of rising probabilities."""
        moments = np.ones((len(self.rises), self.moments.shape[1] - self.equal), dtype=bool)
        return np.hstack([moments, self.rises])

    @cached_property
    def number(self) -> Whole:
        """(law) -> how many inequalities it has, p >= lower included."""
        found: Whole = self.sizes + self.bounded.sum(axis=1)
        return found

    def falls(self, p: Lines) -> Lines:
        """(law, change) -> p_k - p_(k+1), which may not be positive; 0 where it may be."""
        most = self.rises.shape[1]
        return np.where(self.rises, p[..., :most] - p[..., 1 : most + 1], 0.0)

    def equalities(self, p: Lines) -> Lines:
        """How far each moment is from what it must equal."""
        return in_order(self.moments[:, : self.equal] * p[:, None]) - self.wanted[:, : self.equal]

    def inequalities(self, p: Lines, s: Lines) -> Lines:
        """How far each inequality is from being met with its slack.

        A moment that is the only inequality of its law is NumPy's pairwise sum, whose order is fixed too: published
        p-tables were solved with it.
        """
        terms = self.moments[:, self.equal :] * p[:, None]
        sums = in_order(terms)
        for law in np.flatnonzero(~self.rises.any(axis=1)).tolist() if sums.shape[1] == 1 else ():
            sums[law] = np.add.reduce(terms[law, 0, : self.sizes[law]])
        off = np.hstack([sums, self.falls(p)]) + s
        off[:, : sums.shape[1]] -= self.wanted[:, self.equal :]
        return np.where(self.bounded, off, 0.0)

    def products(self, p: Lines) -> Lines:
        """(law, constraint) -> B p, where B has all moments, and then the falls."""
        return np.hstack([in_order(self.moments * p[:, None]), self.falls(p)])

    def combined(self, first: int, last: int, of_moments: Lines, of_falls: Lines | None = None) -> Lines:
        """(law, change) -> the sum of some moments and of the falls, each times its multiplier."""
        out = np.zeros_like(self.lower)
        for moment in range(first, last):
            out += self.moments[:, moment] * of_moments[:, moment - first, None]
        if of_falls is not None:
            most = of_falls.shape[1]
            out[:, 1 : most + 1] -= of_falls
            out[:, :most] += of_falls
        return out

    def system(self, weight: Lines) -> Lines:
        """(law, constraint, constraint) -> B W B', W having the weights in its diagonal."""
        laws, moments, _ = self.moments.shape
        most = self.rises.shape[1]
        out = np.zeros((laws, moments + most, moments + most))
        weighted = self.moments * weight[:, None]
        out[:, :moments, :moments] = in_order(weighted[:, :, None] * self.moments[:, None])
        for moment in range(moments):
            across = self.falls(weighted[:, moment])
            out[:, moment, moments:] = out[:, moments:, moment] = across
        at = np.arange(moments, moments + most)
        out[:, at, at] = np.where(self.rises, weight[:, :most] + weight[:, 1 : most + 1], 0.0)
        beside = np.where(self.rises[:, 1:], -weight[:, 1:most], 0.0)
        out[:, at[:-1], at[1:]] = out[:, at[1:], at[:-1]] = beside
        return out


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the iteration of each law stopped, whether it met its own criteria there, and after how many steps."""

    p: Lines
    converged: Flags
    steps: Whole


@dataclass(frozen=True, eq=False)
class _Point:
    q: Lines  # p - lower, stored separately because it becomes too small to be a difference
    w: Lines  # multiplier of p >= lower
    y: Lines  # multiplier of the equalities
    s: Lines  # slack of the inequalities
    z: Lines  # their multiplier

    @property
    def parts(self) -> tuple[Lines, ...]:
        return self.q, self.w, self.y, self.s, self.z

    def moved(self, step: _Point, length: Lines) -> _Point:
        return _Point(
            *(part + length[:, None] * change for part, change in zip(self.parts, step.parts, strict=True))
        )

    def of(self, laws: Flags) -> _Point:
        return _Point(*(part[laws] for part in self.parts))

    def instead(self, of: _Point, where: Flags) -> _Point:
        pairs = zip(self.parts, of.parts, strict=True)
        return _Point(*(np.where(where[:, None], own, other) for own, other in pairs))


@dataclass(frozen=True, eq=False)
class _Complementarity:
    """What is left of (p - lower) w = 0 and s z = 0; 0 beyond the end of a law."""

    bounds: Lines
    rows: Lines

    def mean(self, within: Constraints) -> Lines:
        return (totals(self.bounds) + totals(self.rows)) / within.number


def minimise(objective: Objective, within: Constraints) -> Solution:
    """Minimise a convex function under the constraints of each law; any start is allowed, feasible or not.

    With G p <= h the inequalities, G p + s = h, and A p = b the equalities, these are Newton's steps to
    f'(p) + A'y + G'z = w, (p - lower) w = mu and s z = mu, with mu led to zero.
    """
    with np.errstate(
        divide="ignore", over="ignore", invalid="ignore"
    ):  # where no law exists; finite is checked
        return _iterate(objective, within)


def _iterate(objective: Objective, within: Constraints) -> Solution:
    laws = np.arange(len(within.sizes))  # whose iteration goes on
    found = Solution(within.lower.copy(), np.zeros(len(laws), dtype=bool), np.full(len(laws), MAX_STEPS))
    at = _start(within)
    for count in range(MAX_STEPS):
        step, sound = _Newton(objective, within, at).step()
        after = at.moved(step, np.minimum(1.0, TO_THE_BOUNDARY * _longest(within, at, step)))
        at = after.instead(at, sound)
        settled = sound & _settled(within, at, step)
        done = settled | ~sound
        found.p[laws] = within.lower + at.q
        found.steps[laws[done]] = count + settled[done]
        found.converged[laws[settled]] = True
        if done.all():
            break
        if done.any():
            laws, at, within, objective = laws[~done], at.of(~done), within.of(~done), objective.of(~done)
    return found


def _start(within: Constraints) -> _Point:
    q = np.where(within.inside, 1.0 / within.sizes[:, None], 1.0)
    w = np.where(within.inside, 0.1 / q, 0.0)
    off = within.inequalities(within.lower + q, np.zeros(within.bounded.shape))
    s = np.where(within.bounded, np.maximum(-off, 1e-2), 1.0)
    z = np.where(within.bounded, 0.1 / s, 1.0)
    return _Point(q, w, np.zeros((len(q), within.equal)), s, z)


def _settled(within: Constraints, at: _Point, step: _Point) -> Flags:
    p = within.lower + at.q
    settled: Flags = (
        (_left(within, at).mean(within) < CENTRED)
        & (np.abs(step.q).max(axis=1) < EXACT)
        & (np.abs(within.equalities(p)).max(axis=1) < EXACT)
        & (np.abs(within.inequalities(p, at.s)).max(axis=1, initial=0.0) < EXACT)
    )
    return settled


def _left(within: Constraints, at: _Point) -> _Complementarity:
    return _Complementarity(at.q * at.w, np.where(within.bounded, at.s * at.z, 0.0))


def _longest(within: Constraints, at: _Point, step: _Point) -> Lines:
    """Return the longest step of each law, at most 2, that keeps q, w, s, z positive and each p above its tenth."""
    length = np.fmin(2.0, _shortest(0.9 * (within.lower + at.q), step.q))
    for value, change in ((at.q, step.q), (at.w, step.w), (at.s, step.s), (at.z, step.z)):
        length = np.fmin(length, _shortest(value, change))
    return length


def _shortest(value: Lines, change: Lines) -> Lines:
    """The length at which the first falling value of a line is zero; NaN if one of them has no such length."""
    found: Lines = np.where(change < 0.0, -value / change, np.inf).min(axis=1, initial=np.inf)
    return found


class _Newton:
    """The linear system of each law at one point: its inverse is shared by the predictor and the corrector."""

    def __init__(self, objective: Objective, within: Constraints, at: _Point) -> None:
        self.within, self.at = within, at
        p = within.lower + at.q
        k, moments = within.equal, within.moments.shape[1]
        z = np.where(within.bounded, at.z, 0.0)
        self.weight = np.where(within.inside, 1.0 / (objective.curvature(p) + at.w / at.q), 0.0)
        self.gradient = (
            objective.gradient(p)
            + within.combined(0, k, at.y)
            + within.combined(k, moments, z, z[:, moments - k :])
            - at.w
        )
        self.equal = within.equalities(p)
        self.below = within.inequalities(p, at.s)

    def _inverse(self) -> tuple[Lines, Flags]:
        """Invert B W B' + diag(0, s/z), scaled to a unit diagonal so that tiny slacks do no harm; whether it exists."""
        system = self.within.system(self.weight)
        at = np.arange(system.shape[1])
        system[:, at[self.within.equal :], at[self.within.equal :]] += self.at.s / self.at.z
        scale = 1.0 / np.sqrt(system[:, at, at])
        found, regular = inverses(system * scale[:, None] * scale[:, :, None])
        return np.where(regular[:, None, None], found * scale[:, None] * scale[:, :, None], 0.0), regular

    def step(self) -> tuple[_Point, Flags]:
        """Return the corrected steps, and for which laws the arithmetic has not broken down."""
        within = self.within
        known, regular = self._inverse()
        left = _left(within, self.at)
        mean = left.mean(within)
        predictor = self.direction(known, left)
        nearer = self.at.moved(predictor, np.minimum(1.0, _longest(within, self.at, predictor)))
        ratio = np.fmin(1.0, _left(within, nearer).mean(within) / mean)
        target = mean * ratio * ratio * ratio
        target = np.where(target < CENTRED / 10, CENTRED / 10, target)[:, None]
        corrector = self.direction(
            known,
            _Complementarity(
                left.bounds + predictor.q * predictor.w - target,
                left.rows + predictor.s * predictor.z - target,
            ),
        )
        # far from the path the second-order term misleads: centre instead
        short = _longest(within, self.at, corrector) < SHORT
        if short.any():
            centring = _Complementarity(left.bounds - mean[:, None], left.rows - mean[:, None])
            corrector = self.direction(known, centring).instead(corrector, short)
        return corrector, regular & np.isfinite(corrector.q).all(axis=1)

    def direction(self, known: Lines, left: _Complementarity) -> _Point:
        """Return the steps that would remove all residuals and this much complementarity; the inverses are known."""
        at, within, k = self.at, self.within, self.within.equal
        bounds, rows = np.where(within.inside, left.bounds, 0.0), np.where(within.bounded, left.rows, 0.0)
        first = -self.gradient - bounds / at.q
        second = np.hstack([-self.equal, rows / at.z - self.below])
        u = in_order(known * (within.products(self.weight * first) - second)[:, None])
        moments = within.moments.shape[1]
        q = self.weight * (first - within.combined(0, moments, u, u[:, moments:]))
        y, z = u[:, :k], u[:, k:]
        return _Point(q, -(bounds + at.w * q) / at.q, y, -(rows + at.s * z) / at.z, z)
