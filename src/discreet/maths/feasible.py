"""Which noise parameters keep both risk and error within limits (Bach 2020, section 5 and Figures 1, 2, 5 and 6).

The constraints on the V x D plane of the cell key method and on the line of a law with one parameter; the caller
states what a programme exposes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from discreet.lazy import lazily
from discreet.maths.attacks.averaging import contour, success
from discreet.maths.attacks.bounds import (
    SEXES,
    epsilon_of_reconstruction,
    exceeds_geometric,
    maximum_entropy_laws,
    squared_values,
    tuples_needed,
)
from discreet.maths.attacks.tuples import MOST_PARTS, Expected, Groups, expected
from discreet.maths.noise.law import Floats, Pmf
from discreet.maths.noise.ptable_solver import PTableParameters, solve

if TYPE_CHECKING:
    from scipy import optimize
else:
    optimize = lazily("scipy.optimize")

Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]
SMALLEST_PARAMETER, LARGEST_PARAMETER = 1e-9, 60.0  # of an epsilon or rho that is searched for
FIRST_ROW_D, FIRST_ROW_V = 3, 1.2  # a table whose first row has its largest possible variance
SPREAD = 12  # standard deviations of a Gaussian that are summed


class Constraint(StrEnum):
    """What a choice of parameters must obey."""

    PTABLE = "p-table"  # such a table exists and has this variance
    AVERAGING = "averaging"  # the riskiest statistic cannot be averaged to the truth
    UNIQUES = "uniques"  # a count of 1 is often enough not published as 1
    BOUND = "bound"  # the tuples of the programme do not reveal the largest change
    LARGEST = "largest-change"  # the largest change is acceptable
    DISTORTION = "distortion"  # a small count is seldom far off
    AREAS = "areas"  # no area's total is far off
    RECONSTRUCTION = "reconstruction"  # the records cannot be reconstructed
    BUDGET = "budget"  # the whole programme costs no more than is allowed


UTILITY = (Constraint.LARGEST, Constraint.DISTORTION, Constraint.AREAS)


@dataclass(frozen=True)
class RiskLimits:
    """The limits of an office. Confidences, largest change and the areas' 20 are the paper's, the rest ours."""

    averaging: float = 0.68  # averaging must succeed with a smaller probability
    revealed: float = 0.68  # the largest change must be revealed with a smaller probability
    uniques: float = 0.5  # the largest probability that a count of 1 is published unchanged
    largest_change: int = 10  # the paper's "E of at most about 10"
    size: int = 20  # a count of this size ..
    relative: float = 0.2  # .. may be off by more than this share of it (the least of Figure 4) ..
    share: float = 0.05  # .. with at most this probability
    area_change: int = 20  # no area's total may be off by more than this ..
    area_confidence: float = 0.68  # .. with this confidence, all areas together (eq. 16)

    @property
    def change(self) -> int:
        """The largest change of a small count that is not a distortion."""
        return math.floor(self.relative * self.size + 1e-9)

    def inside(self, margin: float) -> RiskLimits:
        """Stricter limits: every one is tightened by this share of itself.

        A probability p becomes (1 - margin) p, a largest change (1 - margin) E rounded down, and of a confidence that
        something holds the probability that it does not.
        """
        left = 1 - margin
        return replace(
            self,
            averaging=left * self.averaging,
            revealed=left * self.revealed,
            uniques=left * self.uniques,
            largest_change=max(1, math.floor(left * self.largest_change + 1e-9)),
            share=left * self.share,
            area_change=max(1, math.floor(left * self.area_change + 1e-9)),
            area_confidence=1 - left * (1 - self.area_confidence),
        )


@dataclass(frozen=True)
class ProgrammeExposure:
    """What a programme offers an attacker: the smallest k/t^2 of any statistic, and its tuples of parts and total."""

    ratio: float
    tuples: Groups


@dataclass(frozen=True, eq=False)
class Plane:
    """Every measure and constraint over a grid, all [D, V]."""

    V: Floats
    D: Integers
    variance: Floats  # of the law of maximum entropy: at most D(D+1)/3
    success: Floats  # of averaging the riskiest statistic
    revealed: Floats  # probability that the tuples reveal D
    stays: Floats  # probability that a count of 1 is published unchanged
    needed: Floats  # tuples {F, M, T} that would reveal D, m of eq. 11
    distorted: Floats  # share of small counts that are off by more than the limit
    holds: Mapping[Constraint, Bools]

    @property
    def feasible(self) -> Bools:
        """Where every constraint holds."""
        together: Bools = np.logical_and.reduce(list(self.holds.values()))
        return together

    @property
    def smallest(self) -> tuple[float, int] | None:
        """The smallest V that is feasible with any D, and the smallest such D; None where nothing is feasible."""
        columns = np.flatnonzero(self.feasible.any(axis=0))
        if not len(columns):
            return None
        return float(self.V[columns[0]]), int(self.D[self.feasible[:, columns[0]]][0])

    def without(self, constraint: Constraint) -> tuple[float, int] | None:
        """The smallest choice if one constraint were dropped."""
        others = {name: met for name, met in self.holds.items() if name is not constraint}
        return Plane(**{**vars(self), "holds": others}).smallest


def plane(V: Floats, D: Integers, exposed: ProgrammeExposure, limits: RiskLimits, js: int = 0) -> Plane:
    """Judge every pair of a grid; counts 1..js are never published."""
    laws = [maximum_entropy_laws(tuple(V.tolist()), d) for d in D.tolist()]
    variance = np.array(
        [(law * squared_values(d)).sum(axis=1) for law, d in zip(laws, D.tolist(), strict=True)]
    )
    averaged = _each(partial(success, ratio=exposed.ratio), variance)
    tuples = frozenset(exposed.tuples.items())
    revealed = np.array([_revealed(tuple(V.tolist()), d, tuples) for d in D.tolist()])
    shown = np.array([_within(law, SEXES)[:, SEXES] for law in laws]) * 2  # p1 of ``bounds.reveals``
    needed = _each(partial(tuples_needed, confidence=limits.revealed), shown)
    tails = [law[:, : max(0, d - limits.change)] for law, d in zip(laws, D.tolist(), strict=True)]
    distorted = np.array([2 * tail.sum(axis=1) for tail in tails])
    stays: Floats = np.broadcast_to([one_stays(float(v), js) for v in V], variance.shape)
    holds = {
        Constraint.PTABLE: _has_ptable(V, D, js),
        Constraint.AVERAGING: averaged < limits.averaging,
        Constraint.UNIQUES: stays <= limits.uniques,
        Constraint.BOUND: revealed < limits.revealed,
        Constraint.LARGEST: np.broadcast_to((limits.largest_change >= D)[:, None], variance.shape),
        Constraint.DISTORTION: distorted <= limits.share,
    }
    return Plane(V, D, variance, averaged, revealed, stays, needed, distorted, holds)


def _each(measure: Callable[[float], float], values: Floats) -> Floats:
    return np.array(list(map(measure, values.ravel().tolist())), dtype=np.float64).reshape(values.shape)


@lru_cache(maxsize=256)
def _revealed(
    variances: tuple[float, ...], bound: int, tuples: frozenset[tuple[tuple[int, int], int]]
) -> Floats:
    found = revealed_by(maximum_entropy_laws(variances, bound), tuples)
    found.setflags(write=False)
    return found


def revealed_by(laws: Floats, tuples: Iterable[tuple[tuple[int, int], int]]) -> Floats:
    """The probability that tuples reveal the bound E of each of some symmetric laws: as ``reveal``, all at once.

    laws[law, E + v] is the probability of v. A gap of n parts and their total above (n + 1)(E - 1) is one whose n + 1
    noises lack together at most n of their largest sum (n + 1) E. So only the first n + 1 coefficients of the power
    q(z)^(n + 1) are needed, where q(z) is the sum of p(E - d) z^d.
    """
    bound, unseen = laws.shape[1] // 2, np.zeros(len(laws))
    lacking: dict[int, Counter[int]] = {}  # noisy parts -> what may be lacking of a negative gap -> tuples
    for (parts, positive), number in tuples:
        if positive > 1:
            noisy = min(positive, MOST_PARTS)
            at_most = max(noisy - (parts - positive) * (bound - 1), -1)
            lacking.setdefault(noisy, Counter())[at_most] += number
    most = max(lacking, default=0)
    for noisy, within in _powers(laws, most):
        for at_most, number in sorted(lacking.get(noisy, {}).items()):
            shows = within[:, noisy] + (within[:, at_most] if at_most >= 0 else 0.0)
            with np.errstate(divide="ignore"):
                unseen += number * np.log1p(-np.minimum(shows, 1.0))
    found: Floats = -np.expm1(unseen)
    return found


def _within(laws: Floats, parts: int) -> Floats:
    """[law, d] The probability that n + 1 noises together lack at most d <= n of their largest sum."""
    *_, (_, found) = _powers(laws, parts)
    return found


def _powers(laws: Floats, most: int) -> Iterator[tuple[int, Floats]]:
    """The same of 1, 2, .. up to most parts."""
    q = laws[:, ::-1][:, : most + 1]
    power = np.zeros(
        (len(laws), q.shape[1] - 1 + most + 1)
    )  # zeros, then the coefficients up to that of z^most
    here = power[:, q.shape[1] - 1 :]
    here[:, : q.shape[1]] = q
    windows = sliding_window_view(power, q.shape[1], axis=1)  # (law, coefficient, d counted backward)
    backward = np.ascontiguousarray(q[:, ::-1])
    for noisy in range(1, most + 1):
        here[:] = np.einsum("lcd,ld->lc", windows, backward)
        yield noisy, np.cumsum(here, axis=1)


def _has_ptable(V: Floats, D: Integers, js: int) -> Bools:
    """A table exists iff D >= js and V >= i(js+1-i) for all i <= js; it has V where that is at most D(D+1)/3."""
    least = max((i * (js + 1 - i) for i in range(1, js + 1)), default=0)
    most: Floats = D * (D + 1) / 3
    return (max(js, 1) <= D)[:, None] & (least <= V)[None] & (V[None] <= most[:, None] + 1e-9)


def one_stays(V: float, js: int = 0) -> float:
    """p(1 -> 1) of a p-table; row 1 is nearly the same for all D, and constant for V above its largest variance."""
    return 0.0 if js else _first_row_stays(min(V, FIRST_ROW_V))


@cache
def _first_row_stays(V: float) -> float:
    table = solve(PTableParameters(FIRST_ROW_D, V))
    return float(table.probabilities[1][table.targets[1] == 1].sum())


def reveal(law: Pmf, tuples: Groups) -> Expected:
    """What the tuples of a programme reveal about bounded noise; the noises of a tuple are independent."""
    return expected(_Gaps(law), law.last, tuples, same_noise=True)


@dataclass
class _Gaps:
    """The gaps of n parts and their total, each computed from the one before."""

    noise: Pmf
    sums: list[Pmf] = field(default_factory=list)

    def __call__(self, parts: int) -> Pmf:
        if not self.sums:
            self.sums.append(Pmf(-self.noise.last, self.noise.p[::-1].copy()))
        while len(self.sums) <= parts:
            last = self.sums[-1]
            self.sums.append(Pmf(last.first + self.noise.first, np.convolve(last.p, self.noise.p)))
        return self.sums[parts]


def beyond(law: Pmf, change: int) -> float:
    """Pr[abs(v) > change]."""
    return law.cdf(-change - 1) + law.tail(change + 1)


@dataclass(frozen=True)
class OneParameter:
    """A law with one parameter that makes it narrower as it grows: an epsilon, or a rho."""

    name: str
    variance: Callable[[float], float]
    exceeds: Callable[[float, int], float]  # Pr[abs(v) > change]

    def at_least_variance(self, variance: float) -> float:
        """The largest parameter at which the noise still has this variance."""
        return self._crossing(lambda parameter: self.variance(parameter) - variance)

    def at_most_beyond(self, change: int, share: float) -> float:
        """The smallest parameter at which the noise exceeds a change with at most this probability."""
        return self._crossing(lambda parameter: self.exceeds(parameter, change) - share)

    def at_least_beyond(self, change: int, share: float) -> float:
        """The largest parameter at which the noise exceeds a change with at least this probability."""
        return self.at_most_beyond(change, share)

    @staticmethod
    def _crossing(falling: Callable[[float], float]) -> float:
        if falling(SMALLEST_PARAMETER) <= 0:
            return SMALLEST_PARAMETER
        if falling(LARGEST_PARAMETER) >= 0:
            return LARGEST_PARAMETER
        by_logarithm = partial(_at_exponent, falling)
        ends = math.log(SMALLEST_PARAMETER), math.log(LARGEST_PARAMETER)
        return math.exp(optimize.brentq(by_logarithm, *ends, xtol=1e-12))


def _at_exponent(function: Callable[[float], float], exponent: float) -> float:
    return function(math.exp(exponent))


def geometric_variance(epsilon: float) -> float:
    """1 / (2 sinh^2(epsilon/2)) of two-sided geometric noise; averaging.geometric_epsilon is its inverse."""
    return 1 / (2 * math.sinh(epsilon / 2) ** 2)


def gaussian_variance(rho: float) -> float:
    """The variance of the discrete Gaussian, exp(-rho v^2): 1/(2 rho) where it is wide, less where it is narrow."""
    if rho < 1e-3:
        return 1 / (2 * rho)
    v = np.arange(1, _reach(rho) + 1, dtype=np.float64)
    weights = np.exp(-rho * v * v)
    return float(2 * (weights @ v**2) / (1 + 2 * weights.sum()))


def exceeds_gaussian(rho: float, change: int) -> float:
    """Pr[abs(v) > change] of the discrete Gaussian; of the normal law where it is very wide."""
    if rho < 1e-6:
        return math.erfc((change + 0.5) * math.sqrt(rho))
    v = np.arange(1, max(_reach(rho), change + 1) + 1, dtype=np.float64)
    weights = np.exp(-rho * v * v)
    return float(2 * weights[change:].sum() / (1 + 2 * weights.sum()))


def _reach(rho: float) -> int:
    return math.ceil(SPREAD / math.sqrt(2 * rho)) + 1


GEOMETRIC = OneParameter("epsilon", geometric_variance, exceeds_geometric)
GAUSSIAN = OneParameter("rho", gaussian_variance, exceeds_gaussian)


@dataclass(frozen=True)
class LineLimit:
    """One end of the allowed range: a lower limit (utility) or an upper limit (risk)."""

    constraint: Constraint
    value: float

    @property
    def is_least(self) -> bool:
        """Whether smaller parameters are excluded."""
        return self.constraint in UTILITY


@dataclass(frozen=True)
class Line:
    """The limits on the parameter of one count's noise."""

    law: OneParameter
    limits: tuple[LineLimit, ...]

    @property
    def least(self) -> LineLimit | None:
        """The utility limit that excludes most; None where none is known."""
        return max((one for one in self.limits if one.is_least), key=lambda one: one.value, default=None)

    @property
    def most(self) -> LineLimit | None:
        """The risk limit that excludes most."""
        return min((one for one in self.limits if not one.is_least), key=lambda one: one.value, default=None)

    @property
    def is_feasible(self) -> bool:
        """Whether anything is left."""
        least, most = self.least, self.most
        return least is None or most is None or least.value <= most.value


@dataclass(frozen=True)
class LineFacts:
    """The facts of a programme that limit the line: k/t^2, areas with totals, records, cells, cost of a count."""

    ratio: float
    areas: int | None = None
    records: int | None = None
    cells: int = 0
    spread: float = 1.0  # the largest share of a budget that a count gets, by the smallest
    price: float = 1.0  # what the whole programme costs where the count with the smallest share gets one
    budget: float | None = None  # the most that the whole programme may cost


def line(law: OneParameter, facts: LineFacts, limits: RiskLimits) -> Line:
    """All limits that follow from the facts, on the parameter of the counts with the most noise."""
    found = {
        Constraint.AVERAGING: law.at_least_variance(contour(limits.averaging) / facts.ratio) / facts.spread,
        Constraint.UNIQUES: law.at_least_beyond(0, 1 - limits.uniques) / facts.spread,
        Constraint.DISTORTION: law.at_most_beyond(limits.change, limits.share),
    }
    if facts.areas:
        share = (1 - limits.area_confidence) / facts.areas
        found[Constraint.AREAS] = law.at_most_beyond(limits.area_change, share)
    if facts.records and can_reconstruct(facts.records, facts.cells) and law is GEOMETRIC:
        found[Constraint.RECONSTRUCTION] = (
            epsilon_of_reconstruction(facts.records, limits.averaging) / facts.spread
        )
    if facts.budget is not None:
        found[Constraint.BUDGET] = facts.budget / facts.price
    return Line(law, tuple(LineLimit(name, value) for name, value in found.items()))


def can_reconstruct(records: int, cells: int) -> bool:
    """Whether there are the n log^2 n counts that the reconstruction theorem requires."""
    return cells >= records * math.log(max(records, 2)) ** 2


def three_tuples(tuples: Groups) -> int:
    """How many tuples {F, M, T} there are."""
    return sum(number for (parts, _), number in tuples.items() if parts == SEXES)
