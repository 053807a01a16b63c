"""A primal-dual interior point method for small convex programmes with linear constraints.

It owns the Newton iteration; it knows nothing of p-tables and does not judge whether an answer is good.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

MAX_STEPS = 100
TO_THE_BOUNDARY = 0.99  # how much of the way to the nearest bound a step may go
SHORT = 0.1  # a step below this length is replaced by a centring one
CENTRED = 1e-15  # average complementarity at which the iteration stops
EXACT = (
    1e-12  # largest residual of the linear constraints, and largest remaining step of p, at which it stops
)


class Objective(Protocol):
    """A convex, separable function of positive arguments."""

    def gradient(self, p: Vector) -> Vector:
        """Its first derivatives."""
        ...

    def curvature(self, p: Vector) -> Vector:
        """Its second derivatives, the diagonal of the Hessian matrix."""
        ...


class NegativeEntropy:
    """sum p log p, whose minimum is the law of maximum entropy."""

    def gradient(self, p: Vector) -> Vector:
        """Return log p + 1."""
        return np.asarray(np.log(p) + 1.0)

    def curvature(self, p: Vector) -> Vector:
        """Return 1 / p."""
        return 1.0 / p


@dataclass(frozen=True, eq=False)
class Linear:
    """cost . p, for finding how small or how large a moment can be."""

    cost: Vector

    def gradient(self, p: Vector) -> Vector:
        """Return the cost, which is the same everywhere."""
        return self.cost + np.zeros_like(p)

    def curvature(self, p: Vector) -> Vector:
        """Return zeros."""
        return np.zeros_like(p)


@dataclass(frozen=True, eq=False)
class Constraints:
    """p >= lower, A p = b and G p <= h."""

    lower: Vector
    A: Matrix
    b: Vector
    G: Matrix
    h: Vector


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the iteration stopped, and whether it met its own criteria there."""

    p: Vector
    converged: bool
    steps: int


@dataclass(frozen=True, eq=False)
class _Point:
    q: Vector  # p - lower, kept apart because it becomes too small to be a difference
    w: Vector  # multiplier of p >= lower
    y: Vector  # multiplier of A p = b
    s: Vector  # slack of G p <= h
    z: Vector  # multiplier of G p + s = h

    def moved(self, step: _Point, length: float) -> _Point:
        return _Point(*(getattr(self, f.name) + length * getattr(step, f.name) for f in fields(self)))


@dataclass(frozen=True, eq=False)
class _Complementarity:
    """What is left of (p - lower) w = 0 and s z = 0."""

    bounds: Vector
    rows: Vector

    @property
    def mean(self) -> float:
        return float(self.bounds.sum() + self.rows.sum()) / (len(self.bounds) + len(self.rows))


def minimise(objective: Objective, within: Constraints) -> Solution:
    """Minimise a convex function under linear constraints; any start will do, feasible or not.

    Newton's method on the optimality conditions f'(p) + A'y + G'z = w, A p = b, G p + s = h,
    (p - lower) w = mu and s z = mu, with mu led to zero by Mehrotra's predictor and corrector (Nocedal and
    Wright, Numerical Optimization, 2006, chapters 14 and 19).
    """
    with np.errstate(
        divide="ignore", over="ignore", invalid="ignore"
    ):  # where no law exists; finite is checked
        return _iterate(objective, within)


def _iterate(objective: Objective, within: Constraints) -> Solution:
    at = _start(within)
    for count in range(MAX_STEPS):
        step = _Newton(objective, within, at).step()
        if step is None:
            return Solution(within.lower + at.q, False, count)
        at = at.moved(step, min(1.0, TO_THE_BOUNDARY * _longest(within, at, step)))
        if _settled(within, at, step):
            return Solution(within.lower + at.q, True, count + 1)
    return Solution(within.lower + at.q, False, MAX_STEPS)


def _start(within: Constraints) -> _Point:
    q = np.full(len(within.lower), 1.0 / len(within.lower))
    s = np.maximum(within.h - within.G @ (within.lower + q), 1e-2)
    return _Point(q, 0.1 / q, np.zeros(len(within.b)), s, 0.1 / s)


def _settled(within: Constraints, at: _Point, step: _Point) -> bool:
    p = within.lower + at.q
    return (
        _left(at).mean < CENTRED
        and float(np.abs(step.q).max()) < EXACT
        and float(np.abs(within.A @ p - within.b).max()) < EXACT
        and float(np.abs(within.G @ p + at.s - within.h).max(initial=0.0)) < EXACT
    )


def _left(at: _Point) -> _Complementarity:
    return _Complementarity(at.q * at.w, at.s * at.z)


def _longest(within: Constraints, at: _Point, step: _Point) -> float:
    """Return the longest step, at most 2, that keeps q, w, s, z positive and each p above its tenth."""
    length = 2.0
    pairs = (
        (0.9 * (within.lower + at.q), step.q),
        (at.q, step.q),
        (at.w, step.w),
        (at.s, step.s),
        (at.z, step.z),
    )
    for value, change in pairs:
        falling = change < 0
        if falling.any():
            length = min(length, float((-value[falling] / change[falling]).min()))
    return length


class _Newton:
    """The linear system at one point: its factor is shared by the predictor and the corrector."""

    def __init__(self, objective: Objective, within: Constraints, at: _Point) -> None:
        self.within, self.at = within, at
        p = within.lower + at.q
        self.B = np.vstack([within.A, within.G])
        self.weight = 1.0 / (objective.curvature(p) + at.w / at.q)
        self.gradient = objective.gradient(p) + within.A.T @ at.y + within.G.T @ at.z - at.w
        self.equal = within.A @ p - within.b
        self.below = within.G @ p + at.s - within.h
        self.inverse = self._inverse()

    def _inverse(self) -> Matrix | None:
        """Invert B W B' + diag(0, s/z), scaled to a unit diagonal so that tiny slacks do no harm."""
        system = (self.B * self.weight) @ self.B.T
        system[np.diag_indices_from(system)] += np.concatenate(
            [np.zeros_like(self.equal), self.at.s / self.at.z]
        )
        scale = 1.0 / np.sqrt(np.diag(system))
        try:
            return np.asarray(np.linalg.inv(system * scale * scale[:, None]) * scale * scale[:, None])
        except np.linalg.LinAlgError:
            return None

    def step(self) -> _Point | None:
        """Return the corrected step, or none where the arithmetic has broken down."""
        if self.inverse is None:
            return None
        left = _left(self.at)
        predictor = self.direction(left)
        ahead = _left(self.at.moved(predictor, min(1.0, _longest(self.within, self.at, predictor))))
        target = max(left.mean * min(1.0, ahead.mean / left.mean) ** 3, CENTRED / 10)
        corrector = self.direction(
            _Complementarity(
                left.bounds + predictor.q * predictor.w - target,
                left.rows + predictor.s * predictor.z - target,
            )
        )
        # far from the path the second-order term misleads: centre instead
        if _longest(self.within, self.at, corrector) < SHORT:
            corrector = self.direction(_Complementarity(left.bounds - left.mean, left.rows - left.mean))
        return corrector if bool(np.isfinite(corrector.q).all()) else None

    def direction(self, left: _Complementarity) -> _Point:
        """Return the step that would remove all residuals and this much complementarity."""
        at, k = self.at, len(self.equal)
        first = -self.gradient - left.bounds / at.q
        second = np.concatenate([-self.equal, left.rows / at.z - self.below])
        u = self.inverse @ (self.B @ (self.weight * first) - second)
        q = self.weight * (first - self.B.T @ u)
        y, z = u[:k], u[k:]
        return _Point(q, -(left.bounds + at.w * q) / at.q, y, -(left.rows + at.s * z) / at.z, z)
