"""Maximum entropy p-tables: the parameters, the convex solver, and the reason when no table exists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InfeasiblePTable, Mistakes, Problem
from discreet.lazy import njit
from discreet.maths.noise.ptable import PTable
from discreet.maths.reproducible import dot, few, inverse, log, product, total

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
        return log(p) + 1.0

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
    q: Vector  # p - lower, stored separately because it becomes too small to be a difference
    w: Vector  # multiplier of p >= lower
    y: Vector  # multiplier of A p = b
    s: Vector  # slack of G p <= h
    z: Vector  # multiplier of G p + s = h

    def moved(self, step: _Point, length: float) -> _Point:
        return _Point(
            self.q + length * step.q,
            self.w + length * step.w,
            self.y + length * step.y,
            self.s + length * step.s,
            self.z + length * step.z,
        )


@dataclass(frozen=True, eq=False)
class _Complementarity:
    """What is left of (p - lower) w = 0 and s z = 0."""

    bounds: Vector
    rows: Vector

    @property
    def mean(self) -> float:
        return (total(self.bounds) + total(self.rows)) / (len(self.bounds) + len(self.rows))


def minimise(objective: Objective, within: Constraints) -> Solution:
    """Minimise a convex function under linear constraints; any start is allowed, feasible or not.

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
    s = np.maximum(within.h - product(within.G, within.lower + q), 1e-2)
    return _Point(q, 0.1 / q, np.zeros(len(within.b)), s, 0.1 / s)


def _settled(within: Constraints, at: _Point, step: _Point) -> bool:
    p = within.lower + at.q
    return (
        _left(at).mean < CENTRED
        and float(np.abs(step.q).max()) < EXACT
        and float(np.abs(product(within.A, p) - within.b).max()) < EXACT
        and float(np.abs(product(within.G, p) + at.s - within.h).max(initial=0.0)) < EXACT
    )


def _left(at: _Point) -> _Complementarity:
    return _Complementarity(at.q * at.w, at.s * at.z)


def _longest(within: Constraints, at: _Point, step: _Point) -> float:
    """Return the longest step, at most 2, that keeps q, w, s, z positive and each p above its tenth."""
    shortest = _shortest_of_few if few(len(at.q)) else _shortest
    length: float = min(2.0, shortest(0.9 * (within.lower + at.q), step.q))
    for value, change in ((at.q, step.q), (at.w, step.w), (at.s, step.s), (at.z, step.z)):
        length = min(length, shortest(value, change))
    return length


def _shortest_of_few(value: Vector, change: Vector) -> float:
    """What ``_shortest`` finds, without a kernel."""
    falling = change < 0.0
    return float((-value[falling] / change[falling]).min(initial=np.inf))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _shortest(value: Any, change: Any) -> Any:
    """The length at which the first falling value is zero; NaN if one of them has no such length."""
    length = np.inf
    for at in range(len(value)):
        if change[at] < 0.0:
            reached = -value[at] / change[at]
            if np.isnan(reached):
                return reached
            length = min(length, reached)
    return length


class _Newton:
    """The linear system at one point: its factor is shared by the predictor and the corrector."""

    def __init__(self, objective: Objective, within: Constraints, at: _Point) -> None:
        self.within, self.at = within, at
        p = within.lower + at.q
        self.B = np.vstack([within.A, within.G])
        self.weight = 1.0 / (objective.curvature(p) + at.w / at.q)
        self.gradient = objective.gradient(p) + product(within.A.T, at.y) + product(within.G.T, at.z) - at.w
        self.equal = product(within.A, p) - within.b
        self.below = product(within.G, p) + at.s - within.h

    def _inverse(self) -> Matrix | None:
        """Invert B W B' + diag(0, s/z), scaled to a unit diagonal so that tiny slacks do no harm."""
        system = product(self.B * self.weight, self.B.T)
        diagonal = system.ravel()[:: len(system) + 1]
        diagonal[len(self.equal) :] += self.at.s / self.at.z
        scale = 1.0 / np.sqrt(diagonal)
        found = inverse(system * scale * scale[:, None])
        return None if found is None else found * scale * scale[:, None]

    def step(self) -> _Point | None:
        """Return the corrected step, or None where the arithmetic has broken down."""
        known = self._inverse()
        if known is None:
            return None
        left = _left(self.at)
        predictor = self.direction(known, left)
        ahead = _left(self.at.moved(predictor, min(1.0, _longest(self.within, self.at, predictor))))
        ratio = min(1.0, ahead.mean / left.mean)
        target = max(left.mean * ratio * ratio * ratio, CENTRED / 10)
        corrector = self.direction(
            known,
            _Complementarity(
                left.bounds + predictor.q * predictor.w - target,
                left.rows + predictor.s * predictor.z - target,
            ),
        )
        # far from the path the second-order term misleads: centre instead
        if _longest(self.within, self.at, corrector) < SHORT:
            centring = _Complementarity(left.bounds - left.mean, left.rows - left.mean)
            corrector = self.direction(known, centring)
        return corrector if bool(np.isfinite(corrector.q).all()) else None

    def direction(self, known: Matrix, left: _Complementarity) -> _Point:
        """Return the step that would remove all residuals and this much complementarity; the inverse is known."""
        at, k = self.at, len(self.equal)
        first = -self.gradient - left.bounds / at.q
        second = np.concatenate([-self.equal, left.rows / at.z - self.below])
        u = product(known, product(self.B, self.weight * first) - second)
        q = self.weight * (first - product(self.B.T, u))
        y, z = u[:k], u[k:]
        return _Point(q, -(left.bounds + at.w * q) / at.q, y, -(left.rows + at.s * z) / at.z, z)


T = TypeVar("T")

MOST_D = 100  # solved in about half a second of one core
FEW_CHANGES = 25  # up to this D monotony is among the constraints from the beginning
MET = 1e-9  # how far a constraint may be missed, after scaling changes by D
NEGLIGIBLE = 1e-10  # a probability below this in a law of extreme variance is a zero
ONLY_LAW = 1e-6  # a variance this near to an extreme one leaves a single law, which is then used
PSTAY_STEP, PSTAY_TRIES = 0.05, 20
SAME_VARIANCE = 5e-4  # R compares variances after rounding them to three digits


class Variance(StrEnum):
    """What V means: a bound, the value itself, or the value where some law has it and a bound elsewhere."""

    AT_MOST = "at-most"
    EQUAL = "equal"
    EQUAL_WHERE_FEASIBLE = "equal-where-feasible"


@dataclass(frozen=True)
class PTableParameters:
    """The requested table. Sequences give one value for each of the rows 1..last_row.

    D: largest change; V: variance; js: counts 1..js are never published; pstay: least probability of no
    change (none: no such bound); monotony: p never falls from the lowest target up to v = 0; p_min: least
    probability of any allowed target. Where a row misses V, its pstay is lowered by 0.05 up to 20 times, as
    R's ptable does, and the table's notes report it; keep_pstay switches that off.
    """

    D: int
    V: float | tuple[float, ...]
    js: int = 0
    pstay: float | tuple[float | None, ...] | None = None
    monotony: bool | tuple[bool, ...] = True
    variance: Variance = Variance.AT_MOST
    p_min: float = 1e-8
    keep_pstay: bool = False

    def __post_init__(self) -> None:
        problems = tuple(_parameter_problems(self))
        if problems:
            raise Mistakes(problems)

    @property
    def last_row(self) -> int:
        """The first row whose law is symmetric, so that it can serve all larger counts."""
        return self.D if self.js == 0 else self.D + self.js + 1

    def row(self, i: int) -> Row:
        """The problem of one row, i from 1."""
        j = np.arange(max(0, i - self.D), i + self.D + 1)
        v = (j - i)[(j == 0) | (j > self.js)]
        pstay = _of_row(self.pstay, i)
        return Row(
            i,
            self.D,
            v,
            V=float(_of_row(self.V, i)),
            pstay=pstay if pstay is not None and 0 in v else None,
            monotone=bool(_of_row(self.monotony, i)),
            equal=self.variance is not Variance.AT_MOST,
            p_min=self.p_min,
        )


@dataclass(frozen=True, eq=False)
class Row:
    """The constraints of one row: which changes v are allowed and what their probabilities must obey."""

    i: int
    D: int
    v: NDArray[np.int64]
    V: float
    pstay: float | None
    monotone: bool
    equal: bool
    p_min: float

    @property
    def lower(self) -> Vector:
        """The least probability of each change."""
        return np.where(self.v == 0, max(self.p_min, self.pstay or 0.0), self.p_min)

    @property
    def moments(self) -> Vector:
        """(1, v, v^2) per change, with v scaled by D so that all constraints have similar magnitude."""
        scaled = self.v / self.D
        return np.stack([np.ones(len(self.v)), scaled, scaled**2])

    @property
    def steps(self) -> Vector:
        """The monotony constraints p_k - p_(k+1) <= 0 up to v = 0, one per line."""
        return np.eye(self.below, len(self.v)) - np.eye(self.below, len(self.v), k=1)

    @property
    def below(self) -> int:
        """The number of changes after which p may not fall."""
        return int((self.v < 0).sum()) if self.monotone and 0 in self.v else 0

    def constraints(self) -> Constraints:
        """All constraints, in the form that the interior point method takes."""
        moments, steps, wanted = self.moments, self.steps, self.V / self.D**2
        if self.equal:
            return Constraints(self.lower, moments, np.array([1.0, 0.0, wanted]), steps, np.zeros(len(steps)))
        h = np.concatenate([[wanted], np.zeros(len(steps))])
        return Constraints(self.lower, moments[:2], np.array([1.0, 0.0]), np.vstack([moments[2:], steps]), h)

    def without_variance(self) -> Constraints:
        """All constraints but that on the variance."""
        steps = self.steps
        return Constraints(self.lower, self.moments[:2], np.array([1.0, 0.0]), steps, np.zeros(len(steps)))

    def variance_of(self, p: Vector) -> float:
        """sum v^2 p."""
        return dot(self.v**2, p)


@dataclass(frozen=True, eq=False)
class _Found:
    p: Vector
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Refused:
    row: int
    why: str
    least: float | None = None  # the variances that the row can have, where it can have any
    most: float | None = None


def solve(parameters: PTableParameters) -> PTable:
    """Find the table whose rows have maximum entropy -sum p log p under the constraints (Giessing 2016).

    Row 0 stays zero. A row that no law satisfies raises InfeasiblePTable with the nearest feasible V or D.
    """
    if parameters.js > parameters.D:
        raise InfeasiblePTable(
            f"no p-table: D = {parameters.D} cannot take a count of {parameters.js} down to 0, and "
            f"js = {parameters.js} forbids all between; the nearest feasible D is {parameters.js}"
        )
    rows = [parameters.row(i) for i in range(1, parameters.last_row + 1)]
    answers = [_solve_row(row, parameters) for row in rows]
    refused = [answer for answer in answers if isinstance(answer, _Refused)]
    if refused:
        raise InfeasiblePTable(_explain(refused, parameters))
    found = [answer for answer in answers if isinstance(answer, _Found)]
    return PTable(
        (np.zeros(1, dtype=np.int64), *(row.v + row.i for row in rows)),
        (np.ones(1), *(answer.p for answer in found)),
        D=parameters.D,
        V=tuple(max(row.V, row.variance_of(answer.p)) for row, answer in zip(rows, found, strict=True)),
        js=parameters.js,
        tolerance=MET * parameters.D**2,
        notes=tuple(note for answer in found for note in answer.notes),
    )


def _solve_row(row: Row, parameters: PTableParameters) -> _Found | _Refused:
    if row.pstay is None or parameters.keep_pstay:
        return _solve_as_wanted(row, parameters.variance)
    answer: _Found | _Refused = _Refused(row.i, "no law")
    for attempt in range(PSTAY_TRIES):
        pstay = max(row.pstay - PSTAY_STEP * attempt, 0.0)
        answer = _solve_as_wanted(replace(row, pstay=pstay), parameters.variance)
        met = isinstance(answer, _Found) and abs(row.variance_of(answer.p) - row.V) <= SAME_VARIANCE
        if met or pstay == 0.0:
            return _noting_lowered(answer, row, pstay) if attempt else answer
    return _noting_lowered(answer, row, pstay)


def _noting_lowered(answer: _Found | _Refused, row: Row, pstay: float) -> _Found | _Refused:
    if isinstance(answer, _Refused):
        return answer
    note = (
        f"row {row.i}: pstay lowered from {row.pstay:g} to {pstay:g} in search of the variance {row.V:g}; "
        f"it is {row.variance_of(answer.p):.4g}"
    )
    return replace(answer, notes=(*answer.notes, note))


def _solve_as_wanted(row: Row, variance: Variance) -> _Found | _Refused:
    answer = _solve_exactly(row)
    if isinstance(answer, _Found) or variance is not Variance.EQUAL_WHERE_FEASIBLE:
        return answer
    bounded = _solve_exactly(replace(row, equal=False))
    if isinstance(bounded, _Refused):
        return bounded
    note = f"row {row.i}: no law has the variance {row.V:g}; it is {row.variance_of(bounded.p):.4g}"
    return replace(bounded, notes=(*bounded.notes, note))


def _solve_exactly(row: Row) -> _Found | _Refused:
    if (row.v >= 0).all() or (row.v <= 0).all():
        return _stays(row)
    p = _inner_law(row)
    return _at_the_edge(row) if p is None else _Found(p)


def _inner_law(row: Row) -> Vector | None:
    """The law of most entropy inside the constraints, or None.

    With many changes monotony, which makes each step take time D^3, is first left out: a law of most entropy without it
    that has it all the same is the law of most entropy with it.
    """
    if row.D > FEW_CHANGES and row.below:
        free = _inner_law(replace(row, monotone=False))
        if free is not None and not missed(row, free):
            return free
    solution = minimise(NegativeEntropy(), row.constraints())
    return solution.p / total(solution.p) if solution.converged and not missed(row, solution.p) else None


def _stays(row: Row) -> _Found | _Refused:
    """Solve a row whose changes all have one sign: mean zero leaves only no change."""
    if 0 not in row.v:
        return _Refused(row.i, "only changes in one direction are allowed")
    if row.equal:
        return _Refused(row.i, "only changes in one direction are allowed", 0.0, 0.0)
    return _Found(
        (row.v == 0).astype(np.float64), (f"row {row.i}: the count is never changed, D is too small",)
    )


def _at_the_edge(row: Row) -> _Found | _Refused:
    """Solve a row without an inner law: V is out of reach, or only the floor p_min prevents one."""
    bare = replace(row, p_min=0.0)
    least, most = _extreme_law(bare, 1.0), _extreme_law(bare, -1.0)
    if least is None or most is None:
        return _Refused(row.i, f"pstay = {row.pstay} leaves no unbiased law")
    low, high = row.variance_of(least), row.variance_of(most)
    if low - ONLY_LAW > row.V or (row.equal and high + ONLY_LAW < row.V):
        return _Refused(row.i, f"V = {row.V:g} is out of reach", low, high)
    for floor in (row.p_min / 10**power for power in range(1, 5)):
        p = _inner_law(replace(row, p_min=floor))
        if p is not None:
            return _Found(p, (f"row {row.i}: the floor p_min had to be lowered to {floor:.0e}",))
    edge = least if not row.equal or row.V - low < high - row.V else most
    if abs(row.V - row.variance_of(edge)) > ONLY_LAW:
        return _Refused(row.i, "the solver did not converge")
    return _Found(edge, (f"row {row.i}: a single law has this variance, without the floor p_min",))


def _extreme_law(row: Row, sign: float) -> Vector | None:
    """Return the law of least (sign 1) or greatest (sign -1) variance, or None where no law exists."""
    solution = minimise(Linear(sign * row.moments[2]), row.without_variance())
    p = np.where(solution.p < NEGLIGIBLE, 0.0, solution.p)
    bare = replace(row, equal=False, V=np.inf)
    return p if not missed(bare, p) else None


def missed(row: Row, p: Vector) -> tuple[str, ...]:
    """Name every constraint that a law misses by more than the rounding error; none if it is right."""
    whole, mean, variance = product(row.moments, p).tolist()
    wanted = row.V / row.D**2
    checks = {
        "sum": abs(whole - 1.0) <= MET,
        "mean": abs(mean) <= MET,
        "variance": variance <= wanted + MET and (not row.equal or variance >= wanted - MET),
        "p_min": bool((p >= row.lower - MET).all()) and bool((p >= 0).all()),
        "monotony": bool((p[: row.below] - p[1 : row.below + 1] <= MET).all()),
    }
    return tuple(name for name, holds in checks.items() if not holds)


def _explain(refused: Sequence[_Refused], parameters: PTableParameters) -> str:
    for answer in refused:
        if answer.least is None or answer.most is None:
            return f"no p-table: row {answer.row}: {answer.why}; lower pstay or raise D"
    small = {a.row: a.least for a in refused if a.least and float(_of_row(parameters.V, a.row)) < a.least}
    if small:
        nearest = np.ceil(max(small.values()) * 1e6 - 1e-3) / 1e6
        return f"no p-table: V is too small in row {_listed(small)}; the nearest feasible V is {nearest:.6g}"
    large = {a.row: a.most for a in refused if a.most is not None}
    nearest = np.floor(min(large.values()) * 1e6 + 1e-3) / 1e6
    return (
        f"no p-table: V cannot be reached in row {_listed(large)}; the nearest feasible V is {nearest:.6g}, "
        f"or take the variance as {Variance.AT_MOST} or {Variance.EQUAL_WHERE_FEASIBLE}"
    )


def _listed(rows: Iterable[int]) -> str:
    return ", ".join(str(row) for row in rows)


def _of_row(value: T | tuple[T, ...], i: int) -> T:
    return value[i - 1] if isinstance(value, tuple) else value


def _parameter_problems(parameters: PTableParameters) -> Iterator[Problem]:
    if parameters.D < 1:
        yield Problem("", "D", str(parameters.D), "give the largest change, 1 or more")
    if parameters.D > MOST_D:
        yield Problem("", "D", str(parameters.D), f"give at most {MOST_D}, or a p-table file")
    if parameters.js < 0:
        yield Problem("", "js", str(parameters.js), "give 0 or the largest count that must not be published")
    if parameters.js > MOST_D:  # D is at least as large
        yield Problem("", "js", str(parameters.js), f"give at most {MOST_D}, or a p-table file")
    if not 0.0 < parameters.p_min <= 0.01:
        yield Problem(
            "", "p_min", f"{parameters.p_min:g}", "give a small positive probability, for instance 1e-8"
        )
    for key, value in (("V", parameters.V), ("pstay", parameters.pstay), ("monotony", parameters.monotony)):
        if isinstance(value, tuple) and len(value) != parameters.last_row:
            yield Problem(
                "",
                key,
                f"{len(value)} values",
                f"give one value, or one for each row 1..{parameters.last_row}",
            )
    if any(not 0.0 < value < np.inf for value in _each(parameters.V)):
        yield Problem("", "V", str(parameters.V), "give positive variances")
    if any(value is not None and not 0.0 <= value < 1.0 for value in _each(parameters.pstay)):
        yield Problem("", "pstay", str(parameters.pstay), "give probabilities from 0 to below 1")


def _each(value: T | tuple[T, ...]) -> tuple[T, ...]:
    return value if isinstance(value, tuple) else (value,)
