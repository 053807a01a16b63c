"""Maximum entropy p-tables: the parameters, the rows solved together, and the reason when no table exists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InfeasiblePTable, Mistakes, Problem
from discreet.maths.noise.interior_point import Constraints, Linear, NegativeEntropy, minimise
from discreet.maths.noise.ptable import PTable
from discreet.maths.reproducible import dot, in_order, total

Vector = NDArray[np.float64]

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
    def below(self) -> int:
        """The number of changes after which p may not fall."""
        return int((self.v < 0).sum()) if self.monotone and 0 in self.v else 0

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


_Answer = _Found | _Refused


def solve(parameters: PTableParameters) -> PTable:
    """Find the table whose rows have maximum entropy -sum p log p under the constraints (Giessing 2016).

    Row 0 stays zero. A row that no law satisfies raises InfeasiblePTable with the nearest feasible V or D. The last
    tables are remembered: one command asks for the same table several times.
    """
    return _solved(parameters)


@lru_cache(maxsize=64)
def _solved(parameters: PTableParameters) -> PTable:
    if parameters.js > parameters.D:
        raise InfeasiblePTable(
            f"no p-table: D = {parameters.D} cannot take a count of {parameters.js} down to 0, and "
            f"js = {parameters.js} forbids all between; the nearest feasible D is {parameters.js}"
        )
    rows = [parameters.row(i) for i in range(1, parameters.last_row + 1)]
    answers = _solve_rows(rows, parameters)
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


def _solve_rows(rows: Sequence[Row], parameters: PTableParameters) -> list[_Answer]:
    """Solve all rows, and those that miss V again with a lower pstay, if it may be lowered."""
    answers = _solve_as_wanted(rows, parameters.variance)
    trying = [] if parameters.keep_pstay else [at for at, row in enumerate(rows) if row.pstay is not None]
    for attempt in range(PSTAY_TRIES):
        if attempt:
            lowered = [replace(rows[at], pstay=_lowered(rows[at], attempt)) for at in trying]
            for at, answer in zip(trying, _solve_as_wanted(lowered, parameters.variance), strict=True):
                answers[at] = _noting_lowered(answer, rows[at], attempt)
        trying = [
            at for at in trying if _lowered(rows[at], attempt) > 0 and not _meets(answers[at], rows[at])
        ]
    return answers


def _lowered(row: Row, attempt: int) -> float:
    return max((row.pstay or 0.0) - PSTAY_STEP * attempt, 0.0)


def _meets(answer: _Answer, row: Row) -> bool:
    return isinstance(answer, _Found) and abs(row.variance_of(answer.p) - row.V) <= SAME_VARIANCE


def _noting_lowered(answer: _Answer, row: Row, attempt: int) -> _Answer:
    if isinstance(answer, _Refused):
        return answer
    note = (
        f"row {row.i}: pstay lowered from {row.pstay:g} to {_lowered(row, attempt):g} in search of the variance "
        f"{row.V:g}; it is {row.variance_of(answer.p):.4g}"
    )
    return replace(answer, notes=(*answer.notes, note))


def _solve_as_wanted(rows: Sequence[Row], variance: Variance) -> list[_Answer]:
    answers = _solve_exactly(rows)
    if variance is not Variance.EQUAL_WHERE_FEASIBLE:
        return answers
    refused = [at for at, answer in enumerate(answers) if isinstance(answer, _Refused)]
    bounded = _solve_exactly([replace(rows[at], equal=False) for at in refused])
    for at, answer in zip(refused, bounded, strict=True):
        answers[at] = _noting_bounded(answer, rows[at])
    return answers


def _noting_bounded(answer: _Answer, row: Row) -> _Answer:
    if isinstance(answer, _Refused):
        return answer
    note = f"row {row.i}: no law has the variance {row.V:g}; it is {row.variance_of(answer.p):.4g}"
    return replace(answer, notes=(*answer.notes, note))


def _solve_exactly(rows: Sequence[Row]) -> list[_Answer]:
    answers: dict[int, _Answer] = {
        at: _stays(row) for at, row in enumerate(rows) if (row.v >= 0).all() or (row.v <= 0).all()
    }
    both = [at for at in range(len(rows)) if at not in answers]
    laws = dict(zip(both, _inner_laws([rows[at] for at in both]), strict=True))
    answers |= {at: _Found(p) for at, p in laws.items() if p is not None}
    edge = [at for at in both if at not in answers]
    answers |= dict(zip(edge, _at_the_edge([rows[at] for at in edge]), strict=True))
    return [answers[at] for at in range(len(rows))]


def _inner_laws(rows: Sequence[Row]) -> list[Vector | None]:
    """The law of most entropy inside the constraints of each row, or None.

    With many changes monotony, which makes each step take time D^3, is first left out: a law of most entropy without it
    that has it all the same is the law of most entropy with it.
    """
    large = [at for at, row in enumerate(rows) if row.D > FEW_CHANGES and row.below]
    free = _most_entropy([replace(rows[at], monotone=False) for at in large])
    laws = {at: p for at, p in zip(large, free, strict=True) if p is not None and not missed(rows[at], p)}
    rest = [at for at in range(len(rows)) if at not in laws]
    found: dict[int, Vector | None] = dict(zip(rest, _most_entropy([rows[at] for at in rest]), strict=True))
    return [laws[at] if at in laws else found[at] for at in range(len(rows))]


def _most_entropy(rows: Sequence[Row]) -> list[Vector | None]:
    if not rows:
        return []
    solution = minimise(NegativeEntropy(), constraints(rows))
    laws = [p[: len(row.v)] for row, p in zip(rows, solution.p, strict=True)]
    return [
        p / total(p) if converged and not missed(row, p) else None
        for row, p, converged in zip(rows, laws, solution.converged.tolist(), strict=True)
    ]


def constraints(rows: Sequence[Row]) -> Constraints:
    """All constraints of some rows, either all with equal variances or all with bounded ones."""
    sizes = np.array([len(row.v) for row in rows])
    lower = np.zeros((len(rows), sizes.max()))
    moments = np.zeros((len(rows), 3, sizes.max()))
    for at, row in enumerate(rows):
        lower[at, : sizes[at]] = row.lower
        moments[at, :, : sizes[at]] = row.moments
    wanted = np.array([[1.0, 0.0, row.V / row.D**2] for row in rows])
    below = np.array([row.below for row in rows])
    rises = np.arange(below.max()) < below[:, None]
    return Constraints(sizes, lower, moments, wanted, 3 if rows[0].equal else 2, rises)


def _stays(row: Row) -> _Answer:
    """Solve a row whose changes all have one sign: mean zero leaves only no change."""
    if 0 not in row.v:
        return _Refused(row.i, "only changes in one direction are allowed")
    if row.equal:
        return _Refused(row.i, "only changes in one direction are allowed", 0.0, 0.0)
    return _Found(
        (row.v == 0).astype(np.float64), (f"row {row.i}: the count is never changed, D is too small",)
    )


def _at_the_edge(rows: Sequence[Row]) -> list[_Answer]:
    """Solve rows without an inner law: V is out of reach, or only the floor p_min prevents one."""
    answers: dict[int, _Answer] = {}
    extreme: dict[int, tuple[Vector, Vector]] = {}
    laws = zip(rows, _extreme_laws(rows, 1.0), _extreme_laws(rows, -1.0), strict=True)
    for at, (row, least, most) in enumerate(laws):
        if least is None or most is None:
            answers[at] = _Refused(row.i, f"pstay = {row.pstay} leaves no unbiased law")
            continue
        extreme[at] = least, most
        low, high = row.variance_of(least), row.variance_of(most)
        if low - ONLY_LAW > row.V or (row.equal and high + ONLY_LAW < row.V):
            answers[at] = _Refused(row.i, f"V = {row.V:g} is out of reach", low, high)
    for power in range(1, 5):
        rest = [at for at in range(len(rows)) if at not in answers]
        lowered = [replace(rows[at], p_min=rows[at].p_min / 10**power) for at in rest]
        for at, row, p in zip(rest, lowered, _inner_laws(lowered), strict=True):
            if p is not None:
                note = f"row {row.i}: the floor p_min had to be lowered to {row.p_min:.0e}"
                answers[at] = _Found(p, (note,))
    return [answers[at] if at in answers else _only_law(row, *extreme[at]) for at, row in enumerate(rows)]


def _only_law(row: Row, least: Vector, most: Vector) -> _Answer:
    """The law of extreme variance, where V leaves no other."""
    low, high = row.variance_of(least), row.variance_of(most)
    edge = least if not row.equal or row.V - low < high - row.V else most
    if abs(row.V - row.variance_of(edge)) > ONLY_LAW:
        return _Refused(row.i, "the solver did not converge")
    return _Found(edge, (f"row {row.i}: a single law has this variance, without the floor p_min",))


def _extreme_laws(rows: Sequence[Row], sign: float) -> list[Vector | None]:
    """Return the law of least (sign 1) or greatest (sign -1) variance of each row, or None where no law exists."""
    if not rows:
        return []
    bare = [replace(row, p_min=0.0, equal=False, V=np.inf) for row in rows]
    within = constraints(bare)
    free = replace(within, moments=within.moments[:, :2], wanted=within.wanted[:, :2])
    solution = minimise(Linear(sign * within.moments[:, 2]), free)
    laws = [np.where(p < NEGLIGIBLE, 0.0, p)[: len(row.v)] for row, p in zip(bare, solution.p, strict=True)]
    return [None if missed(row, p) else p for row, p in zip(bare, laws, strict=True)]


def missed(row: Row, p: Vector) -> tuple[str, ...]:
    """Name every constraint that a law misses by more than the rounding error; none if it is right."""
    whole, mean, variance = in_order(row.moments * p).tolist()
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
