"""Siblings fitted together: non-negative, within bounds, and adding up to their parent.

    minimise 1/2 sum_c (x_c - m_c)' W_c (x_c - m_c)
    subject to sum_c x_c = parent, x_c >= 0, lower <= sums of x_c over groups of cells <= upper,

by the alternating direction method of multipliers (Boyd et al. 2011, with over-relaxation): x is the unbounded solution
with the sum, in closed form; z is the nearest point within the bounds (``projection``). Measurements of the total make
W far steeper along it than along single cells, so that distances are measured by R = r I + t 1 1'. It ends when x and z
agree, z no longer moves, and z moved to meet its sums is proven to be near the optimum. Two forms of one iteration:
``fit_support`` for children that share W, on the cells that are not zero in the parent; ``fit_blocks`` for any
children, on all cells in the blocks of ``marginals``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import njit
from discreet.maths.tree import matrices
from discreet.maths.tree.least_squares import inverse, symmetric
from discreet.maths.tree.marginals import Basis, Blocks, applied, apply_sums, by_sums
from discreet.maths.tree.matrices import multiply, product, solved, total_of
from discreet.maths.tree.projection import project
from discreet.maths.tree.rounding import meeting_sums

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]

TOLERANCE = 0.03  # in standard deviations of the noise
LARGEST_TOLERANCE = 0.1  # in counts: far below what rounding to whole numbers moves
RELAXATION = 1.6
GAP = 0.004  # what the sum of squares of z, its sums met, may be above the smallest possible, relatively
EXACT_GAP = 0.001  # the same where totals are known, which z meets only when sums are divided
NEGLIGIBLE = 1e-6  # of a sum of squares, whose terms are near 1
STEPS = 20  # between two looks at the penalty
CHECKED = 4  # steps between two looks at the residuals
MOST_LOOKS = 60
TOTAL_TOLERANCE = 5.0  # times as much for a child's total, unless it is known
STEEPEST = 1e4  # a total is at most this much steeper than a cell; known totals are infinitely so
EMPTY = 1e-9  # of a trace: the variance of a total that is known, as floats compute it
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


def groups_of(group: Integers, count: int, free: NDArray[np.bool_] | None = None) -> Groups:
    """Sort cells by their group, those left out that are zero anyway."""
    chosen = np.arange(len(group)) if free is None else np.flatnonzero(free)
    order = chosen[np.argsort(group[chosen], kind="stable")]
    return Groups(order, np.searchsorted(group[order], np.arange(count + 1)))


@dataclass(frozen=True, eq=False)
class Within:
    """What the children of one parent may be: their groups of cells with bounds, and the parent; none for a root."""

    groups: Groups
    lower: Floats  # (child, group)
    upper: Floats  # (child, group)
    parent: Floats | None  # (cell,)

    def met(self, z: Floats) -> Floats:
        """Z moved to meet its sums exactly, as it is before it is rounded."""
        if self.parent is None:
            return z
        groups, found = self.groups, np.zeros_like(z)
        group = np.repeat(np.arange(groups.count), np.diff(groups.starts))
        whole = self.parent[groups.order].astype(np.int64)
        cells = np.ascontiguousarray(z[:, groups.order])
        found[:, groups.order] = meeting_sums(cells, whole, group, self.lower, self.upper)
        return found

    def first_guess(self, centre: Floats) -> Floats:
        """The parent's counts in proportion to the children's estimates, cut off at zero."""
        found = np.zeros_like(centre)
        order = self.groups.order
        positive = np.maximum(centre[:, order], 0.0)
        if self.parent is None:
            found[:, order] = positive
        else:
            positive += 1e-3
            found[:, order] = positive * (self.parent[order] / positive.sum(axis=0))
        return found


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit within the bounds, (child, cell); how far it was from ending, 1 or less where it ended."""

    values: Floats
    residual: float


@dataclass(frozen=True, eq=False)
class _State:
    """Where an iteration is; its arrays change."""

    x: Floats  # (child, cell)
    z: Floats
    u: Floats
    shifts: Floats  # child -> the shift of its last projection


class _Form(Protocol):
    """One way to write the weights W of siblings."""

    @property
    def typical(self) -> float:
        """The precision of a typical cell: r of the metric R."""

    @property
    def steep(self) -> float:
        """How much steeper a total is than a cell: t of the metric R."""

    @property
    def exact(self) -> bool:
        """Whether the totals of some children are known."""

    @property
    def centre(self) -> Floats:
        """The estimates m, (child, cell)."""

    def prepared(self, penalty: float) -> object:
        """What the x-steps with this penalty need."""

    def steps(self, prepared: Any, penalty: float, tolerance: float, state: _State) -> tuple[float, float]:
        """Some steps; the residuals of the last one, in cells and in cells times precision."""

    def squares(self, away: Floats) -> float:
        """sum_c a_c' W_c a_c."""

    def unbounded(self, y: Floats) -> Floats:
        """The x with the parent's sum, and the totals that are known, of least 1/2 squares of x - m, plus y' x."""


def _fitted(form: _Form, within: Within) -> Fitted:
    """Take steps until both residuals and the gap are small; the penalty follows the residuals."""
    z = within.first_guess(form.centre)
    state = _State(np.empty_like(z), z, np.zeros_like(z), np.zeros(len(z)))
    tolerance = min(TOLERANCE / float(np.sqrt(form.typical)), LARGEST_TOLERANCE)
    penalty, residual, close = 1.0, np.inf, False
    prepared = form.prepared(penalty)
    for _ in range(MOST_LOOKS):
        primal, dual = form.steps(prepared, penalty, 0.0 if close else tolerance, state)
        dual /= form.typical
        residual = max(primal, dual) / tolerance
        close = close or residual <= 1
        if close:
            least = _least_squares(form, penalty, state)
            # x meets known totals and z the bounds: where totals are known, both must be near
            ends = (within.met(z), state.x) if form.exact else (within.met(z),)
            gap = max(abs(form.squares(end - form.centre) - least) for end in ends)
            residual = gap / ((EXACT_GAP if form.exact else GAP) * max(least, 0.0) + NEGLIGIBLE)
            if residual <= 1:
                break
        factor = _balance(primal, dual)
        if factor != 1:
            penalty *= factor
            state.u[:] /= factor
            state.shifts[:] /= factor
            prepared = form.prepared(penalty)
    return Fitted(z, residual)


def _least_squares(form: _Form, penalty: float, state: _State) -> float:
    """A sum of squares that no children within the bounds are below (Lagrange duality).

    y = penalty R u is normal to the bounds at z, so that for all that sum to the parent and are within the bounds
    (x - m)' W (x - m) >= min over x of (x - m)' W (x - m) + 2 y' (x - z), x unbounded.
    """
    y = penalty * (form.typical * state.u + form.steep * state.u.sum(axis=1)[:, None])
    x = form.unbounded(y)
    return form.squares(x - form.centre) + 2 * float((y * (x - state.z)).sum())


def _numbers(form: _Form, penalty: float, tolerance: float) -> tuple[float, float, float, float, float]:
    """What steps need: the metric, both tolerances, and how many times as much a child's total may be off."""
    loose = 1.0 if form.exact else TOTAL_TOLERANCE
    return penalty * form.typical, penalty * form.steep, tolerance, tolerance * form.typical, loose


def _balance(primal: float, dual: float) -> float:
    """What the penalty is multiplied by: more where x and z disagree, less where z still moves."""
    ratio = primal / max(dual, 1e-12)
    return 1.0 if 1 / UNBALANCED < ratio < UNBALANCED else float(np.clip(np.sqrt(ratio), 0.2, 5.0))


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

    Children whose bounds leave nothing are empty, and not among the variables.
    """
    some = np.flatnonzero(upper.max(axis=1) > 0)
    within = Within(groups, lower[some], upper[some], parent)
    exact = np.zeros(0) if totals is None else totals[some]
    found = _fitted(_Support(weights, information[some], within, exact), within)
    values = np.zeros_like(information)
    values[some] = found.values
    return Fitted(values, found.residual)


class _Support:
    """One W for all children.

    With A = (W + R)^-1 the x-step is A (W m + R (z - u)), moved by the same vector for all children to meet their sum,
    and along A 1 to meet totals that are known.
    """

    def __init__(self, weights: Floats, information: Floats, within: Within, totals: Floats) -> None:
        self._weights, self._information, self._within, self._totals = weights, information, within, totals
        k = len(weights)
        self.exact = totals.size > 0
        self.typical = float(np.trace(weights)) / k
        self.steep = 0.0 if self.exact else max(float(weights.sum()) / k - self.typical, 0.0) / k
        self._covariance = matrices.inverse(weights)
        self.centre = product(information, self._covariance)

    def prepared(self, penalty: float) -> Floats:
        k = len(self._weights)
        return matrices.inverse(self._weights + penalty * (self.typical * np.eye(k) + self.steep))

    def steps(self, prepared: Floats, penalty: float, tolerance: float, state: _State) -> tuple[float, float]:
        groups = self._within.groups
        found: tuple[float, float] = _support_steps(
            prepared,
            self._information,
            self._within.parent,
            self._totals,
            (groups.order, groups.starts, self._within.lower, self._within.upper),
            _numbers(self, penalty, tolerance),
            (state.x, state.z, state.u, state.shifts),
        )
        return found

    def squares(self, away: Floats) -> float:
        return float(np.sum(product(away, self._weights) * away))

    def unbounded(self, y: Floats) -> Floats:
        x = self.centre - product(y, self._covariance)
        if self._within.parent is not None:
            x += (self._within.parent - x.sum(axis=0)) / len(x)
        if self._totals.size:
            along = self._covariance.sum(axis=1)
            x += ((self._totals - x.sum(axis=1)) / along.sum())[:, None] * along
        return x


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _support_steps(
    solver: Any, information: Any, parent: Any, totals: Any, bounds: Any, numbers: Any, state: Any
) -> Any:
    """Up to ``STEPS`` steps of children that share W."""
    penalty, steep, tolerance, dual_tolerance, loose = numbers
    x, z, u, _ = state
    n, k = x.shape
    v, along = np.empty((n, k)), np.empty(k)
    for j in range(k):
        along[j] = total_of(solver[j], 0, k)
    whole = total_of(along, 0, k)
    near = np.empty(k), np.empty(k)
    primal, dual = np.inf, np.inf
    for step in range(STEPS):
        for c in range(n):
            away = steep * (total_of(z[c], 0, k) - total_of(u[c], 0, k))
            for j in range(k):
                v[c, j] = information[c, j] + penalty * (z[c, j] - u[c, j]) + away
        multiply(v, solver, x)
        _meet_parent(x, parent, near[0])
        for c in range(totals.size):
            lacking = (totals[c] - total_of(x[c], 0, k)) / whole
            for j in range(k):
                x[c, j] += lacking * along[j]
        checked = step % CHECKED == CHECKED - 1
        primal, dual = _settle(bounds, penalty, steep, state, near, loose, checked)
        if checked and primal <= tolerance and dual <= dual_tolerance:
            break
    return primal, dual


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _meet_parent(x: Any, parent: Any, missing: Any) -> None:
    """Move all children by the same vector so that they sum to the parent."""
    n, k = x.shape
    for j in range(k):
        missing[j] = parent[j]
    for c in range(n):
        for j in range(k):
            missing[j] -= x[c, j]
    for j in range(k):
        missing[j] /= n
    for c in range(n):
        for j in range(k):
            x[c, j] += missing[j]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _settle(bounds: Any, penalty: Any, steep: Any, state: Any, near: Any, loose: Any, checked: Any) -> Any:
    """The z- and u-steps of all children; both residuals where they are checked."""
    order, starts, lower, upper = bounds
    x, z, u, shifts = state
    n, k = x.shape
    v, moved = near
    primal, dual = 0.0, 0.0
    for c in range(n):
        mine, own = u[c], z[c]
        for j in range(k):
            mine[j] += RELAXATION * x[c, j] + (1 - RELAXATION) * own[j]
        for at in range(order.size):
            v[at] = mine[order[at]]
        whole = total_of(mine, 0, k)
        shifts[c] = project(v, whole, starts, lower, upper, c, steep / penalty, shifts[c], moved)
        if checked:
            moving = total_of(moved, 0, order.size) - total_of(own, 0, k)
            dual = max(dual, abs(steep * moving))
            for at in range(order.size):
                dual = max(dual, abs(penalty * (moved[at] - own[order[at]]) + steep * moving))
        for at in range(order.size):
            own[order[at]] = moved[at]
            mine[order[at]] -= moved[at]
        if checked:
            primal = max(primal, abs(total_of(x[c], 0, k) - total_of(own, 0, k)) / loose)
            for j in range(k):
                primal = max(primal, abs(x[c, j] - own[j]))
    return primal, dual


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def support_weights(blocks: Any, places: Any, cells: Any) -> Any:
    """W of some cells, flat places (a, r): the sum of N_T[a, a'] over the T on which r and r' agree (``by_sums``)."""
    k, width = cells.size, places.shape[1]
    found = np.zeros((k, k))
    for i in range(k):
        a, r = cells[i] // width, cells[i] % width
        for j in range(i, k):
            b, t = cells[j] // width, cells[j] % width
            value = 0.0
            for subset in range(places.shape[0]):
                if places[subset, r] == places[subset, t]:
                    value += blocks[subset, a, b]
            found[i, j] = value
            found[j, i] = value
    return found


def fit_blocks(
    basis: Basis,
    estimates: Floats,
    forms: Sequence[Blocks],
    form_of: Integers,
    within: Within,
    *,
    totals_known: bool,
) -> Fitted:
    """Children with estimates m_c (child, d, width) of covariance C_c = forms[form_of[c]]; the root has no parent."""
    return _fitted(_InBlocks(basis, estimates, np.stack(forms), form_of, within, totals_known), within)


class _InBlocks:
    """Each child with its own W = C^-1, in blocks.

    The x-step moves within the range of C_c, so that totals that C_c has as known stay as they are in m_c:
    x_c = m_c + A_c R (z - u - m_c) + A_c (sum_b A_b)^-1 (what the sum lacks), A = (I + C R)^-1 C.
    """

    def __init__(
        self,
        basis: Basis,
        estimates: Floats,
        covariance: Floats,
        form_of: Integers,
        within: Within,
        totals_known: bool,
    ) -> None:
        self._basis, self._covariance, self._form_of = basis, covariance, form_of
        self._within, self._totals_known = within, totals_known
        n = len(estimates)
        self.centre = np.ascontiguousarray(estimates.reshape(n, basis.cells))
        self._number = np.bincount(form_of, minlength=len(covariance)).astype(np.float64)
        self.typical = 1 / float(np.mean(np.trace(covariance[:, -1], axis1=-2, axis2=-1)) / basis.d)
        totals = covariance[:, 0].sum(axis=(-1, -2))
        along = float((self._number * totals).sum()) / n / basis.d  # of the total, per cell
        self.steep = (min(1 / max(along, 1e-300), STEEPEST * self.typical) - self.typical) / basis.cells
        self._metric = np.tile(self.typical * np.eye(basis.d), (basis.subsets, 1, 1))
        self._metric[0] += self.steep * basis.width
        known = [bool(one[0].sum() <= EMPTY * np.trace(one[0])) for one in covariance]
        self.exact = any(known)
        self._weights = [
            inverse(one, total_known=exact) for one, exact in zip(covariance, known, strict=True)
        ]

    def prepared(self, penalty: float) -> tuple[Blocks, Blocks]:
        """A R and A (sum_b A_b)^-1 of each form."""
        basis = self._basis
        unit = np.eye(basis.d) + penalty * product(self._covariance, self._metric)
        solver = symmetric(solved(unit, self._covariance))
        shared = solver
        if self._within.parent is not None:
            total = (self._number[:, None, None, None] * solver).sum(axis=0)
            shared = product(solver, inverse(total, total_known=self._totals_known))
        return by_sums(basis, penalty * product(solver, self._metric)), by_sums(basis, shared)

    def steps(
        self, prepared: tuple[Blocks, Blocks], penalty: float, tolerance: float, state: _State
    ) -> tuple[float, float]:
        within, basis = self._within, self._basis
        groups = within.groups
        found: tuple[float, float] = _block_steps(
            *prepared,
            (basis.sums, basis.widths),
            self.centre,
            self._form_of,
            np.zeros(0) if within.parent is None else within.parent,
            (groups.order, groups.starts, within.lower, within.upper),
            _numbers(self, penalty, tolerance),
            (state.x, state.z, state.u, state.shifts),
        )
        return found

    def squares(self, away: Floats) -> float:
        found = 0.0
        for form, one in enumerate(self._weights):
            mine = away[self._form_of == form].reshape(-1, self._basis.d, self._basis.width)
            found += float(np.sum(applied(self._basis, one, mine) * mine))
        return found

    def unbounded(self, y: Floats) -> Floats:
        x = self.centre - self._moved(y)
        if self._within.parent is not None:
            total = (self._number[:, None, None, None] * self._covariance).sum(axis=0)
            spread = inverse(total, total_known=self._totals_known)
            missing = (self._within.parent - x.sum(axis=0)).reshape(self._basis.d, self._basis.width)
            pulled = applied(self._basis, spread, missing).reshape(1, -1)
            x += self._moved(np.repeat(pulled, len(x), axis=0))
        return x

    def _moved(self, y: Floats) -> Floats:
        """C_c y_c."""
        found = np.empty_like(y)
        for form, one in enumerate(self._covariance):
            mine = self._form_of == form
            shaped = y[mine].reshape(-1, self._basis.d, self._basis.width)
            found[mine] = applied(self._basis, one, shaped).reshape(len(shaped), -1)
        return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _block_steps(
    own: Any,
    shared: Any,
    shape: Any,
    estimates: Any,
    form_of: Any,
    parent: Any,
    bounds: Any,
    numbers: Any,
    state: Any,
) -> Any:
    """Up to ``STEPS`` steps of children with weights in blocks."""
    penalty, steep, tolerance, dual_tolerance, loose = numbers
    sums, widths = shape
    x, z, u, _ = state
    n, cells = x.shape
    d = own.shape[2]
    width = cells // d
    near = np.empty(cells), np.empty(cells)
    work, v, out = np.empty((2, d * widths.sum())), np.empty(cells), np.empty(cells)
    primal, dual = np.inf, np.inf
    for step in range(STEPS):
        missing = parent.copy()
        for c in range(n):
            for j in range(cells):
                v[j] = z[c, j] - u[c, j] - estimates[c, j]
            mine = x[c]
            apply_sums(own[form_of[c]], sums, widths, v.reshape(d, width), mine.reshape(d, width), work)
            mine += estimates[c]
            if missing.size:
                missing -= mine
        for form in range(own.shape[0]):
            if missing.size:
                apply_sums(shared[form], sums, widths, missing.reshape(d, width), out.reshape(d, width), work)
                for c in range(n):
                    if form_of[c] == form:
                        x[c] += out
        checked = step % CHECKED == CHECKED - 1
        primal, dual = _settle(bounds, penalty, steep, state, near, loose, checked)
        if checked and primal <= tolerance and dual <= dual_tolerance:
            break
    return primal, dual
