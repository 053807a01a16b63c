"""Siblings fitted together: non-negative, within bounds, and adding up to their parent.

    minimise 1/2 sum_c (x_c - m_c)' W_c (x_c - m_c)
    subject to sum_c x_c = parent, x_c >= 0, lower <= sums of x_c over groups of cells <= upper,

by the alternating direction method of multipliers (Boyd et al. 2011, with over-relaxation): x is the unbounded solution
with the sum, in closed form; z is the nearest point within the bounds. Measurements of the total make W far steeper
along it than along single cells, so that distances are measured by R = r I + t 1 1', and the nearest point is found
with one more unknown (``project``). It ends when x and z agree, z no longer moves, and z moved to meet its sums fits
almost as well as x. Two forms of the same iteration: ``fit_support`` for children that share W, on the cells that are
not zero in the parent; ``fit_blocks`` for any children, on all cells in the blocks of ``marginals``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.maths.tree.least_squares import inverse, symmetric
from discreet.maths.tree.marginals import Basis, Blocks, applied, apply_means, by_means
from discreet.maths.tree.rounding import meeting_sums

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]

TOLERANCE = 0.01  # in standard deviations of the noise
LARGEST_TOLERANCE = 0.03  # in counts: far below what rounding to whole numbers moves
RELAXATION = 1.6
GAP = 0.003  # what the sum of squares of z, its sums met, may exceed that of x by, relatively
STEPS = 20  # between two looks at the penalty
MOST_LOOKS = 60
TOTAL_TOLERANCE = 5.0  # times as much for a child's total
STEEPEST = 1e4  # a total is at most this much steeper than a cell; known totals are infinitely so
UNBALANCED = 4.0  # ratio of the two residuals that changes the penalty


@dataclass(frozen=True, eq=False)
class Groups:
    """Cells by group: ``order`` lists the cells that may be above zero, group after group."""

    order: Integers
    starts: Integers  # group -> its first place in ``order``; one more at the end

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.starts) - 1

    def met(self, z: Floats, parent: Floats, lower: Floats, upper: Floats) -> Floats:
        """Z moved to meet its sums exactly, as it is before it is rounded."""
        group = np.repeat(np.arange(self.count), np.diff(self.starts))
        found = np.zeros_like(z)
        cells = np.ascontiguousarray(z[:, self.order])
        found[:, self.order] = meeting_sums(cells, parent[self.order].astype(np.int64), group, lower, upper)
        return found


def groups_of(group: Integers, count: int, free: NDArray[np.bool_] | None = None) -> Groups:
    """Sort cells by their group, those left out that are zero anyway."""
    chosen = np.arange(len(group)) if free is None else np.flatnonzero(free)
    order = chosen[np.argsort(group[chosen], kind="stable")]
    return Groups(order, np.searchsorted(group[order], np.arange(count + 1)))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit within the bounds, (child, cell); how far it was from ending, 1 or less where it ended."""

    values: Floats
    residual: float


def fit_support(
    weights: Floats,
    information: Floats,
    parent: Floats,
    groups: Groups,
    lower: Floats,
    upper: Floats,
    totals: Floats | None = None,
) -> Fitted:
    """Children with the same W on the parent's k cells above zero; ``information`` is W_c m_c, (child, k).

    With A = (W + R)^-1 the x-step is A (W m + R (z - u)), moved by the same vector for all children to meet their sum,
    and along A 1 to meet totals that are known.
    """
    k = information.shape[1]
    typical = float(np.trace(weights)) / k
    steep = max(float(weights.sum()) / k - typical, 0.0) / k if totals is None else 0.0
    tolerance = _tolerance(typical)
    penalty = 1.0
    centre = np.linalg.solve(weights, information.T).T
    z = _first_guess(centre, parent)
    u = np.zeros_like(z)
    exact = np.zeros(0) if totals is None else totals
    residual = np.inf
    for _ in range(MOST_LOOKS):
        solver = np.linalg.inv(weights + penalty * (typical * np.eye(k) + steep))
        primal, dual, x = _support_steps(
            solver,
            information,
            parent,
            groups.order,
            groups.starts,
            lower,
            upper,
            exact,
            penalty * typical,
            penalty * steep,
            tolerance,
            tolerance * typical,
            z,
            u,
        )
        residual = max(primal, dual / typical) / tolerance
        if residual <= 1:
            met = groups.met(z, parent, lower, upper)
            gap = _squares(met - centre, weights) / _squares(x - centre, weights) - 1
            if gap <= GAP:
                break
            residual, tolerance = gap / GAP, tolerance / 3
        penalty = _balanced(penalty, primal, dual / typical, u)
    return Fitted(z, residual)


def _squares(x: Floats, weights: Floats) -> float:
    return max(float(np.sum((x @ weights) * x)), 1e-300)


def _first_guess(centre: Floats, parent: Floats) -> Floats:
    """The parent's counts in proportion to the children's estimates, cut off at zero."""
    positive = np.maximum(centre, 0.0) + 1e-3
    found: Floats = positive * (parent / positive.sum(axis=0))
    return found


def _tolerance(typical: float) -> float:
    """How near x and z must be, for cells of this precision."""
    return min(TOLERANCE / float(np.sqrt(typical)), LARGEST_TOLERANCE)


def _balanced(penalty: float, primal: float, dual: float, u: Floats) -> float:
    """A larger penalty where x and z disagree, a smaller one where z still moves; u is scaled with it."""
    ratio = primal / max(dual, 1e-12)
    if 1 / UNBALANCED < ratio < UNBALANCED:
        return penalty
    factor = float(np.clip(np.sqrt(ratio), 0.2, 5.0))
    u /= factor
    return penalty * factor


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _support_steps(  # noqa: C901
    solver: Any,
    information: Any,
    parent: Any,
    order: Any,
    starts: Any,
    lower: Any,
    upper: Any,
    totals: Any,
    penalty: Any,
    steep: Any,
    tolerance: Any,
    dual_tolerance: Any,
    z: Any,
    u: Any,
) -> Any:
    n, k = information.shape
    along = solver.sum(axis=1)
    whole = along.sum()
    v = np.empty((n, k))
    moved = np.empty(k)
    primal, dual = np.inf, np.inf
    for _ in range(STEPS):
        for c in range(n):
            away = 0.0
            for j in range(k):
                away += z[c, j] - u[c, j]
            for j in range(k):
                v[c, j] = information[c, j] + penalty * (z[c, j] - u[c, j]) + steep * away
        x = np.dot(v, solver)
        for j in range(k):
            missing = parent[j]
            for c in range(n):
                missing -= x[c, j]
            missing /= n
            for c in range(n):
                x[c, j] += missing
        if totals.size:
            for c in range(n):
                step = (totals[c] - x[c].sum()) / whole
                for j in range(k):
                    x[c, j] += step * along[j]
        primal, dual = 0.0, 0.0
        for c in range(n):
            for j in range(k):
                v[c, j] = RELAXATION * x[c, j] + (1 - RELAXATION) * z[c, j] + u[c, j]
            project(v[c], order, starts, lower[c], upper[c], steep / penalty, moved)
            apart, moving = 0.0, 0.0
            for j in range(k):
                apart += x[c, j] - moved[j]
                moving += moved[j] - z[c, j]
            primal = max(primal, abs(apart) / TOTAL_TOLERANCE)
            for j in range(k):
                dual = max(dual, abs(penalty * (moved[j] - z[c, j]) + steep * moving))
                primal = max(primal, abs(x[c, j] - moved[j]))
                u[c, j] = v[c, j] - moved[j]
                z[c, j] = moved[j]
        if primal <= tolerance and dual <= dual_tolerance:
            break
    return primal, dual, x


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def project(v: Any, order: Any, starts: Any, lower: Any, upper: Any, steepness: Any, out: Any) -> None:
    """Set out to the point within the bounds nearest to v: least |out - v|^2 + steepness (sum of out - v)^2.

    Cells not in ``order`` are zero. The solution is the nearest point to v + s without steepness, with
    s = -steepness (sum of out - v): one increasing equation, by Newton's steps within a bracket.
    """
    total = 0.0
    for j in range(v.size):
        total += v[j]
    shift, low, high = 0.0, -np.inf, np.inf
    for _ in range(60):
        found, slope = _nearest(v, order, starts, lower, upper, shift, out)
        gap = shift + steepness * (found - total)
        if abs(gap) <= 1e-9 * (1.0 + abs(shift)):
            break
        if gap > 0:
            high = shift
        else:
            low = shift
        shift -= gap / (1.0 + steepness * slope)
        if not low < shift < high:
            shift = 0.5 * (low + high)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _nearest(v: Any, order: Any, starts: Any, lower: Any, upper: Any, shift: Any, out: Any) -> Any:  # noqa: C901
    """Set out to the nearest point to v + shift; return its sum and how fast it grows with the shift.

    Where the clipped sum of a group is outside of its bounds, all its cells move by one number t with
    sum max(v + t, 0) = bound; Newton's steps from the right never pass it and reach it.
    """
    out[:] = 0.0
    found, slope = 0.0, 0.0
    for g in range(starts.size - 1):
        first, last = starts[g], starts[g + 1]
        if last == first or upper[g] <= 0.0:
            continue
        clipped, plain, positive = 0.0, 0.0, 0
        for at in range(first, last):
            value = v[order[at]] + shift
            plain += value
            if value > 0.0:
                clipped += value
                positive += 1
        move = shift
        if clipped < lower[g]:
            bound = lower[g]
            move += (bound - plain) / (last - first)
        elif clipped > upper[g]:
            bound = upper[g]
        else:
            for at in range(first, last):
                out[order[at]] = max(v[order[at]] + shift, 0.0)
            found += clipped
            slope += positive
            continue
        for _ in range(last - first + 2):
            total, active = 0.0, 0
            for at in range(first, last):
                value = v[order[at]] + move
                if value > 0.0:
                    total += value
                    active += 1
            if active == 0 or abs(total - bound) <= 1e-9 * (1.0 + bound):
                break
            move -= (total - bound) / active
        for at in range(first, last):
            out[order[at]] = max(v[order[at]] + move, 0.0)
        found += bound
    return found, slope


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def support_weights(means: Any, places: Any, widths: Any, cells: Any) -> Any:
    """W of some cells, flat places (a, r): the sum of N_T[a, a'] / summed size over the T on which r and r' agree."""
    k, width = cells.size, places.shape[1]
    found = np.zeros((k, k))
    for i in range(k):
        a, r = cells[i] // width, cells[i] % width
        for j in range(i, k):
            b, t = cells[j] // width, cells[j] % width
            value = 0.0
            for subset in range(widths.size):
                if places[subset, r] == places[subset, t]:
                    value += means[subset, a, b] * (widths[subset] / width)
            found[i, j] = value
            found[j, i] = value
    return found


def fit_blocks(
    basis: Basis,
    estimates: Floats,
    forms: Sequence[Blocks],
    form_of: Integers,
    parent: Floats | None,
    groups: Groups,
    lower: Floats,
    upper: Floats,
    *,
    totals_known: bool,
) -> Fitted:
    """Children with estimates m_c (child, d, width) of covariance C_c = forms[form_of[c]]; without a parent, the root.

    The x-step moves within the range of C_c, so that totals that C_c has as known stay as they are in m_c:
    x_c = m_c + A_c R (z - u - m_c) + A_c (sum_b A_b)^-1 (what the sum lacks), A = (I + C R)^-1 C.
    """
    n = len(estimates)
    covariance = np.stack(forms)
    number = np.bincount(form_of, minlength=len(forms)).astype(np.float64)
    typical = 1 / float(np.mean(np.trace(covariance[:, -1], axis1=-2, axis2=-1)) / basis.d)
    along = float(number @ covariance[:, 0].sum(axis=(-1, -2))) / n / basis.d  # of the total, per cell
    steep = (min(1 / max(along, 1e-300), STEEPEST * typical) - typical) / basis.cells
    weights = [_precision(one) for one in covariance]
    metric = np.tile(typical * np.eye(basis.d), (basis.subsets, 1, 1))
    metric[0] += steep * basis.width
    tolerance = _tolerance(typical)
    penalty = 1.0
    flat = np.ascontiguousarray(estimates.reshape(n, basis.cells))
    z = np.maximum(flat, 0.0) if parent is None else _first_guess(flat, parent)
    closed = np.ones(basis.cells, dtype=bool)
    closed[groups.order] = False
    z[:, closed] = 0.0
    u = np.zeros_like(z)
    whole = np.zeros(0) if parent is None else parent
    residual = np.inf
    for _ in range(MOST_LOOKS):
        solver = symmetric(np.linalg.solve(np.eye(basis.d) + penalty * covariance @ metric, covariance))
        shared = solver
        if parent is not None:
            total = np.einsum("f,fsab->sab", number, solver)
            shared = solver @ inverse(total, total_known=totals_known)
        primal, dual, x = _block_steps(
            by_means(basis, penalty * solver @ metric),
            by_means(basis, shared),
            basis.places,
            basis.widths,
            flat,
            form_of,
            whole,
            groups.order,
            groups.starts,
            lower,
            upper,
            penalty * typical,
            penalty * steep,
            tolerance,
            tolerance * typical,
            z,
            u,
        )
        residual = max(primal, dual / typical) / tolerance
        if residual <= 1:
            met = z if parent is None else groups.met(z, parent, lower, upper)
            squares = _block_squares(basis, met - flat, weights, form_of)
            gap = squares / _block_squares(basis, x - flat, weights, form_of) - 1
            if gap <= GAP:
                break
            residual, tolerance = gap / GAP, tolerance / 3
        penalty = _balanced(penalty, primal, dual / typical, u)
    return Fitted(z, residual)


def _precision(covariance: Blocks) -> Blocks:
    """W = C^-1, without the direction of a total that is known."""
    known = covariance[0].sum() <= 1e-9 * np.trace(covariance[0])
    return inverse(covariance, total_known=bool(known))


def _block_squares(basis: Basis, x: Floats, weights: Sequence[Blocks], form_of: Integers) -> float:
    found = 0.0
    for form, one in enumerate(weights):
        mine = x[form_of == form].reshape(-1, basis.d, basis.width)
        found += float(np.sum(applied(basis, one, mine) * mine))
    return max(found, 1e-300)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _block_steps(  # noqa: C901
    own: Any,
    shared: Any,
    places: Any,
    widths: Any,
    estimates: Any,
    form_of: Any,
    parent: Any,
    order: Any,
    starts: Any,
    lower: Any,
    upper: Any,
    penalty: Any,
    steep: Any,
    tolerance: Any,
    dual_tolerance: Any,
    z: Any,
    u: Any,
) -> Any:
    n, cells = estimates.shape
    d = own.shape[2]
    width = cells // d
    x = np.empty((n, cells))
    v, moved = np.empty(cells), np.empty(cells)
    out = np.empty((d, width))
    moves = np.empty((own.shape[0], cells))
    primal, dual = np.inf, np.inf
    for _ in range(STEPS):
        missing = parent.copy()
        for c in range(n):
            for j in range(cells):
                v[j] = z[c, j] - u[c, j] - estimates[c, j]
            apply_means(own[form_of[c]], places, widths, v.reshape(d, width), out)
            flat = out.reshape(cells)
            for j in range(cells):
                x[c, j] = estimates[c, j] + flat[j]
            if missing.size:
                missing -= x[c]
        if missing.size:
            for form in range(own.shape[0]):
                apply_means(shared[form], places, widths, missing.reshape(d, width), out)
                moves[form] = out.reshape(cells)
            for c in range(n):
                x[c] += moves[form_of[c]]
        primal, dual = 0.0, 0.0
        for c in range(n):
            for j in range(cells):
                v[j] = RELAXATION * x[c, j] + (1 - RELAXATION) * z[c, j] + u[c, j]
            project(v, order, starts, lower[c], upper[c], steep / penalty, moved)
            apart, moving = 0.0, 0.0
            for j in range(cells):
                apart += x[c, j] - moved[j]
                moving += moved[j] - z[c, j]
            primal = max(primal, abs(apart) / TOTAL_TOLERANCE)
            for j in range(cells):
                dual = max(dual, abs(penalty * (moved[j] - z[c, j]) + steep * moving))
                primal = max(primal, abs(x[c, j] - moved[j]))
                u[c, j] = v[j] - moved[j]
                z[c, j] = moved[j]
        if primal <= tolerance and dual <= dual_tolerance:
            break
    return primal, dual, x
