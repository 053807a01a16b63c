"""The strongest linear adversary: least squares over all published cells and every sum that connects them.

The unknowns are the true counts c of the published cells, not those of a common refinement, which need not exist. With
published values y, independent noise of variance V_i in each cell and the equations total = sum of parts (B c = 0),

    minimise sum_i (c_i - y_i)^2 / V_i  subject to  B c = 0,   low <= c <= high,

whose solution without bounds is c = y - V B' l with (B V B') l = B y. It is unbiased, and no linear unbiased estimate
has a smaller variance (Aitken 1935): that of cell i is [V - V B' (B V B')^+ B V]_ii. The multipliers l are found by
conjugate gradients (Hestenes & Stiefel 1952), preconditioned by a sweep over all equations in order and one back, which
make one sum after the other hold (Björck & Elfving 1979), for the cost of two products (Eisenstat 1981). All families
of all axes are used, though many follow from others: the equations of one axis are orthogonal projections that commute
with those of the other axes, so that the eigenvalues of a full table of d axes lie between 1 and d. What a step gains
is the squared distance it moves the estimates, in standard deviations: steps end where that is small. Bounds are met by
Newton's method on the dual, whose gradient is B c(l) with c(l) cut off at the bounds (Qi & Sun 1993).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.cells.keys import hash_words

Integers = NDArray[np.int64]
Cells = NDArray[np.int32]
Singles = NDArray[np.float32]
Floats = NDArray[np.float64]

TOLERANCE = 0.03  # how far the last four steps moved the estimates, relative to all steps: see solve
LAST_STEPS = 4
EXACTLY = 0.01  # the tolerance of a variance, which may be a small part of what the steps move
ROUNDING = 1e-10  # of the square of the first residual: what single precision leaves of it
MOST_STEPS = 100  # of one solution
MOST_SWEEPS = 20  # over all equations
MOST_EXCHANGES = 15  # of the cells that are held at their bounds
HALVINGS = 8
ROUGHLY = 0.3  # the tolerance of a step towards the bounds ..
FEW_STEPS = 6  # .. which has at most so many of its own
NEAR_ENOUGH = 0.02  # of all that the exchanges moved the estimates by, what the last one did
MARKS = np.array(
    [0x9E3779B97F4A7C15, 0], dtype=np.uint64
)  # key of the numbers by which equations are compared
HELD = 0.3  # of the variance of a cell at its bound, so that a step stays finite


@dataclass(frozen=True, eq=False)
class Sums:
    """Equations: cell ``totals[f]`` is the sum of the cells ``parts[starts[f]:starts[f + 1]]``, plus what is hidden.

    What no cell shows of a family is taken as a number of mean ``hidden`` and variance ``doubt``; zero where all parts
    are known.
    """

    cells: int
    totals: Cells
    starts: Integers
    parts: Cells
    hidden: Singles
    doubt: Singles

    def __len__(self) -> int:
        return len(self.totals)

    def gaps(self, values: NDArray[Any]) -> Floats:
        """Total less the sum of its parts and of what is hidden, for each column of values (cell, column)."""
        found = np.zeros((len(self), values.shape[1]))
        _gaps(values, self.totals, self.starts, self.parts, found)
        return found - self.hidden[:, None]

    def distinct(self) -> Sums:
        """Every equation once: tables that show the same groups of records repeat them.

        Equations are compared by sums of 64 random bits for each cell: different ones are taken for equal, and left
        out, with a negligible probability.
        """
        marks = hash_words(MARKS, np.arange(self.cells))
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(marks[self.parts], dtype=np.uint64)])
        of_parts = sums[self.starts[1:]] - sums[self.starts[:-1]]
        _, first = np.unique(of_parts + (marks[self.totals] ^ MARKS[0]), return_index=True)
        kept = np.sort(first)
        sizes = np.diff(self.starts)[kept]
        inside = np.zeros(len(self), dtype=bool)
        inside[kept] = True
        return Sums(
            self.cells,
            self.totals[kept],
            np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
            self.parts[np.repeat(inside, np.diff(self.starts))],
            self.hidden[kept],
            self.doubt[kept],
        )

    @cached_property
    def uses(self) -> Integers:
        """Cell -> how many equations it is in."""
        found: Integers = np.bincount(self.totals, minlength=self.cells)
        return found + np.bincount(self.parts, minlength=self.cells)


@dataclass(frozen=True, eq=False)
class Families:
    """Parts of totals, sorted by total: one entry for each part, with what is hidden of its family."""

    which: Integers  # part -> its family: equal for the parts of one total
    totals: Integers  # part -> the cell of its total
    parts: Integers
    hidden: Floats
    doubt: Floats


def equations_of(cells: int, every: Iterable[Families]) -> Sums:
    """All families as equations; one part that is the total itself adds nothing and is left out."""
    totals, starts, parts = [np.empty(0, np.int32)], [np.zeros(1, np.int64)], [np.empty(0, np.int32)]
    hidden, doubt = [np.empty(0, np.float32)], [np.empty(0, np.float32)]
    used = 0
    for one in every:
        if not len(one.which):
            continue
        first = np.flatnonzero(np.r_[True, one.which[1:] != one.which[:-1]])
        sizes = np.diff(np.r_[first, len(one.which)])
        telling = (sizes > 1) | (one.totals[first] != one.parts[first])
        kept = np.repeat(telling, sizes)
        totals.append(one.totals[first][telling].astype(np.int32))
        parts.append(one.parts[kept].astype(np.int32))
        starts.append(used + np.cumsum(sizes[telling]))
        hidden.append(one.hidden[first][telling].astype(np.float32))
        doubt.append(one.doubt[first][telling].astype(np.float32))
        used += int(kept.sum())
    return Sums(
        cells,
        np.concatenate(totals),
        np.concatenate(starts),
        np.concatenate(parts),
        np.concatenate(hidden),
        np.concatenate(doubt),
    )


@dataclass(frozen=True, eq=False)
class Solution:
    """What the values must change by so that all sums hold, (cell, column), and how many steps it took."""

    change: Singles
    multipliers: Singles
    steps: int


def solve(
    equations: Sums, variances: Singles, gaps: Floats, tolerance: float = TOLERANCE, most: int = MOST_STEPS
) -> Solution:
    """V B' l with (B V B') l = gaps, for each column: subtract it from the values and all sums hold.

    What a step moves is the sum of (change of estimate)^2 / V over all cells; it adds up over the steps of conjugate
    gradients. They end when the last four moved less than tolerance^2, relative to all steps and per cell.
    """
    rows, columns = gaps.shape
    change = np.zeros((equations.cells, columns), np.float32)
    multipliers = np.zeros((rows, columns), np.float32)
    if not rows:
        return Solution(change, multipliers, 0)
    scale = _scale(equations, variances)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    system = (variances, inverse, *_arrays(equations), change)
    solved, residual = np.zeros_like(multipliers), np.zeros_like(multipliers)
    gap, curvature, square = np.empty(columns, np.float32), np.empty(columns), np.empty(columns)
    _upward(gaps.astype(np.float32), solved, scale, *system, gap, residual, curvature)
    direction, ahead = residual * scale[:, None], np.zeros_like(residual)
    _squares(residual, scale, square)
    noise = ROUNDING * square
    gains: list[Floats] = []
    while len(gains) < most and not _settled(gains, tolerance, equations.cells):
        _downward(direction, *system, gap, solved)
        _upward(direction, solved, scale, *system, gap, ahead, curvature)
        going = (curvature > 0) & (square > noise)  # a singular system magnifies rounding errors
        step = np.divide(square, curvature, out=np.zeros_like(square), where=going)
        gains.append(step * square)
        before = square.copy()
        _advance(multipliers, residual, solved, ahead, scale, step, square)
        turn = np.divide(square, before, out=np.zeros_like(square), where=before > 0)
        _turn(direction, residual, scale, turn.astype(np.float32))
    change[:] = 0
    _spread(multipliers, *_arrays(equations), change)
    change *= variances[:, None]
    return Solution(change, multipliers, len(gains))


def _settled(gains: list[Floats], tolerance: float, cells: int) -> bool:
    """Whether the last steps moved the estimates of every column little enough; at once where all sums hold."""
    if len(gains) <= LAST_STEPS:
        return bool(gains) and not gains[-1].any()
    last, every = np.sum(gains[-LAST_STEPS:], axis=0), np.sum(gains, axis=0)
    return bool((last <= tolerance**2 * np.minimum(every, cells)).all())


def _scale(equations: Sums, variances: Singles) -> Singles:
    """The variance of each gap: the diagonal of B V B' and the doubt."""
    found = np.zeros(len(equations), np.float32)
    _diagonal(variances, *_arrays(equations), np.zeros(equations.cells, np.float32), found)
    return found + equations.doubt


def project(equations: Sums, variances: Singles, values: NDArray[Any]) -> Floats:
    """The best linear unbiased estimates of all cells, for each column of values."""
    return values - solve(equations, variances, equations.gaps(values)).change


def errors(
    equations: Sums, variances: Singles, noise: NDArray[Any], surprise: NDArray[Any] | float = 0.0
) -> Floats:
    """The errors of these estimates where the noise of each cell is this, and what is hidden differs so from its mean.

    One column for each noise; ``surprise`` by equation and column.
    """
    gaps = equations.gaps(noise) + equations.hidden[:, None] + surprise
    return noise - solve(equations, variances, gaps).change


def exact_variances(equations: Sums, variances: Singles, cells: Integers, at_once: int = 8) -> Floats:
    """The variance of the estimate of some cells: V_i - (V B' (B V B')^+ B V)_ii, one solution each."""
    found = np.zeros(len(cells))
    for first in range(0, len(cells), at_once):
        here = cells[first : first + at_once]
        columns = np.arange(len(here))
        noise = np.zeros((equations.cells, len(here)), np.float32)
        noise[here, columns] = variances[here]
        gaps = equations.gaps(noise) + equations.hidden[:, None]
        change = solve(equations, variances, gaps, EXACTLY).change
        found[first : first + len(here)] = (noise - change)[here, columns]
    return np.maximum(found, 0.0)


def attained_variances(equations: Sums, variances: Singles, cells: Integers, at_once: int = 8) -> Floats:
    """The variance of an explicit combination y_i - m' B y for each of some cells, where all parts are known.

    It is unbiased for every m, because B c = 0: the variance is attained, whatever the solution for m left open, and
    the least one is that of ``exact_variances``.
    """
    if equations.doubt.any() or equations.hidden.any():
        raise ValueError("a sum with hidden parts is not unbiased")
    found = np.zeros(len(cells))
    exact = variances.astype(np.float64)
    for first in range(0, len(cells), at_once):
        here = cells[first : first + at_once]
        columns = np.arange(len(here))
        noise = np.zeros((equations.cells, len(here)), np.float32)
        noise[here, columns] = variances[here]
        multipliers = solve(equations, variances, equations.gaps(noise), EXACTLY).multipliers
        weights = np.zeros((equations.cells, len(here)))
        _spread(-multipliers.astype(np.float64), *_arrays(equations), weights)
        weights[here, columns] += 1
        found[first : first + len(here)] = exact @ weights**2
    return found


def bounded(
    equations: Sums, variances: Singles, values: NDArray[Any], low: NDArray[Any], high: NDArray[Any]
) -> Floats:
    """The least squares estimates within bounds: values, low and high by cell.

    Where the bounds and the sums contradict each other, as near as the steps come.
    """
    multipliers = np.zeros((len(equations), 1), np.float32)
    y = values.astype(np.float64)
    found, gaps, worth = _dual(equations, variances, y, low, high, multipliers)
    first = worth
    for _ in range(MOST_EXCHANGES if len(equations) else 0):
        free = np.where((found > low) & (found < high), variances, HELD * variances).astype(np.float32)
        step = solve(equations, free, gaps, ROUGHLY, FEW_STEPS).multipliers
        for halving in range(HALVINGS):
            tried = multipliers + step / np.float32(2**halving)
            ahead = _dual(equations, variances, y, low, high, tried)
            if ahead[2] > worth:
                break
        else:
            break
        gain = ahead[2] - worth
        multipliers, (found, gaps, worth) = tried, ahead
        if gain <= NEAR_ENOUGH**2 * (worth - first):
            break
    return found


def _dual(
    equations: Sums,
    variances: Singles,
    y: Floats,
    low: NDArray[Any],
    high: NDArray[Any],
    multipliers: Singles,
) -> tuple[Floats, Floats, float]:
    """The cells that these multipliers lead to, the gaps that are left, and the dual function there."""
    change = np.zeros((equations.cells, 1), np.float32)
    _spread(multipliers, *_arrays(equations), change)
    found = np.clip(y - variances * change[:, 0].astype(np.float64), low, high)
    gaps = equations.gaps(found[:, None]) - equations.doubt[:, None] * multipliers
    spread = np.divide((found - y) ** 2, 2 * variances, out=np.zeros_like(y), where=variances > 0)
    squares = equations.doubt * multipliers[:, 0].astype(np.float64) ** 2
    worth = float(spread.sum() + multipliers[:, 0].astype(np.float64) @ gaps[:, 0] + squares.sum() / 2)
    return found, gaps, worth


def tighten(equations: Sums, low: Integers, high: Integers) -> int:
    """Tighten whole-number bounds of the cells by every sum without hidden parts, in place; how often that was done.

    total <= sum of the parts' upper bounds, part >= total's lower bound less the upper bounds of the others, and so on.
    """
    sweeps = 0
    while sweeps < MOST_SWEEPS and _tighten(low, high, equations.doubt, *_arrays(equations)):
        sweeps += 1
    return sweeps


def _arrays(equations: Sums) -> tuple[Cells, Integers, Cells]:
    return equations.totals, equations.starts, equations.parts


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _tighten(low: Any, high: Any, doubt: Any, totals: Any, starts: Any, parts: Any) -> bool:
    changed = False
    for f in range(totals.size):
        if doubt[f] > 0:
            continue
        total, lowest, highest = totals[f], 0, 0
        for k in range(starts[f], starts[f + 1]):
            lowest += low[parts[k]]
            highest += high[parts[k]]
        if lowest > low[total] or highest < high[total]:
            low[total], high[total] = max(low[total], lowest), min(high[total], highest)
            changed = True
        for k in range(starts[f], starts[f + 1]):
            part = parts[k]
            least = low[total] - (highest - high[part])
            most = high[total] - (lowest - low[part])
            if least > low[part] or most < high[part]:
                lowest += max(0, least - low[part])
                highest -= max(0, high[part] - most)
                low[part], high[part] = max(low[part], least), min(high[part], most)
                changed = True
    return changed


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _gaps(values: Any, totals: Any, starts: Any, parts: Any, found: Any) -> None:
    for f in range(totals.size):
        for r in range(found.shape[1]):
            found[f, r] = values[totals[f], r]
        for k in range(starts[f], starts[f + 1]):
            for r in range(found.shape[1]):
                found[f, r] -= values[parts[k], r]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _diagonal(variances: Any, totals: Any, starts: Any, parts: Any, work: Any, found: Any) -> None:
    """The diagonal of B V B', also where a cell is several parts of one sum; ``work`` is zero for each cell."""
    for f in range(totals.size):
        total = totals[f]
        work[total] += 1
        for k in range(starts[f], starts[f + 1]):
            work[parts[k]] -= 1
        whole = np.float64(variances[total]) * work[total] ** 2
        work[total] = 0
        for k in range(starts[f], starts[f + 1]):
            whole += variances[parts[k]] * work[parts[k]] ** 2
            work[parts[k]] = 0
        found[f] = whole


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _spread(multipliers: Any, totals: Any, starts: Any, parts: Any, found: Any) -> None:
    """Add B' l."""
    for f in range(totals.size):
        for r in range(found.shape[1]):
            found[totals[f], r] += multipliers[f, r]
        for k in range(starts[f], starts[f + 1]):
            for r in range(found.shape[1]):
                found[parts[k], r] -= multipliers[f, r]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _upward(
    direction: Any,
    solved: Any,
    scale: Any,
    variances: Any,
    inverse: Any,
    totals: Any,
    starts: Any,
    parts: Any,
    work: Any,
    gap: Any,
    found: Any,
    product: Any,
) -> None:
    """solved + (S + L)^-1 (direction - S solved) where B V B' + doubt = L + S + L', and its product with the direction.

    Equations in order; ``work`` holds V B' of what is found so far, with one row for each cell, ``gap`` that of one
    equation. The rows are named so that loops over their columns vectorise.
    """
    columns = direction.shape[1]
    work[:] = 0
    product[:] = 0
    for f in range(totals.size):
        given, solution, result, whole = direction[f], solved[f], found[f], work[totals[f]]
        weight, share, variance = scale[f], inverse[f], variances[totals[f]]
        for r in range(columns):
            gap[r] = given[r] - weight * solution[r] - whole[r]
        for k in range(starts[f], starts[f + 1]):
            part = work[parts[k]]
            for r in range(columns):
                gap[r] += part[r]
        for r in range(columns):
            gap[r] *= share
            whole[r] += variance * gap[r]
            result[r] = solution[r] + gap[r]
        for r in range(columns):
            product[r] += np.float64(given[r]) * result[r]
        for k in range(starts[f], starts[f + 1]):
            part, variance = work[parts[k]], variances[parts[k]]
            for r in range(columns):
                part[r] -= variance * gap[r]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _downward(
    direction: Any,
    variances: Any,
    inverse: Any,
    totals: Any,
    starts: Any,
    parts: Any,
    work: Any,
    gap: Any,
    found: Any,
) -> None:
    """(S + L')^-1 direction: the equations from the last to the first."""
    columns = direction.shape[1]
    work[:] = 0
    for f in range(totals.size - 1, -1, -1):
        given, result, whole = direction[f], found[f], work[totals[f]]
        share, variance = inverse[f], variances[totals[f]]
        for r in range(columns):
            gap[r] = given[r] - whole[r]
        for k in range(starts[f], starts[f + 1]):
            part = work[parts[k]]
            for r in range(columns):
                gap[r] += part[r]
        for r in range(columns):
            gap[r] *= share
            whole[r] += variance * gap[r]
            result[r] = gap[r]
        for k in range(starts[f], starts[f + 1]):
            part, variance = work[parts[k]], variances[parts[k]]
            for r in range(columns):
                part[r] -= variance * gap[r]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _squares(residual: Any, scale: Any, found: Any) -> None:
    """The weighted sum of squares of each column, in double precision."""
    found[:] = 0
    for f in range(residual.shape[0]):
        for r in range(residual.shape[1]):
            found[r] += np.float64(scale[f]) * residual[f, r] * residual[f, r]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _advance(
    multipliers: Any, residual: Any, solved: Any, ahead: Any, scale: Any, step: Any, found: Any
) -> None:
    """One step, in place; the weighted sum of squares of what is left."""
    found[:] = 0
    for f in range(residual.shape[0]):
        for r in range(residual.shape[1]):
            multipliers[f, r] += step[r] * solved[f, r]
            residual[f, r] -= step[r] * ahead[f, r]
            found[r] += np.float64(scale[f]) * residual[f, r] * residual[f, r]


@njit(cache=True, nogil=True, standalone=True)  # type: ignore[untyped-decorator]
def _turn(direction: Any, residual: Any, scale: Any, turn: Any) -> None:
    for f in range(residual.shape[0]):
        for r in range(residual.shape[1]):
            direction[f, r] = scale[f] * residual[f, r] + turn[r] * direction[f, r]
