"""Whole non-negative tables from noisy measurements: every level and margin adds up, and invariants hold.

From the root down, the children of one parent at a time: fitted within their bounds and to the parent's settled counts
(``maths.tree.nonnegative``), then rounded (``maths.tree.rounding``). With the fit ``tree`` a child weighs all
measurements at and below it; with ``own-level`` only its own, as the TopDown algorithm does (Abowd et al. 2022), in one
pass over all queries. Cells that are zero in the parent are zero in its children. Only noisy values and invariants are
used, so that it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem, mistake
from discreet.hierarchy.estimate import Totals, Upward, known_totals, no_totals, upward
from discreet.hierarchy.measure import (
    Measurements,
    Plan,
    Siblings,
    ancestors,
    node_counts,
    require_own_levels,
)
from discreet.hierarchy.spine import NAMED, Spine
from discreet.io.progress import Progress, Quiet
from discreet.lazy import lazily, njit
from discreet.maths.tree.bounds import MOST_GROUPS, UNBOUNDED, box, divided, with_total
from discreet.maths.tree.least_squares import inverse, moved_to_total, with_known_total
from discreet.maths.tree.marginals import (
    Basis,
    Blocks,
    applied,
    by_sums,
    positions,
    size_of,
    spread,
)
from discreet.maths.tree.nonnegative import (
    Fitted,
    Within,
    fit_blocks,
    fit_support,
    groups_of,
    support_weights,
)
from discreet.maths.tree.rounding import group_sums, meeting_sums, rounded_to_sums, whole_numbers
from discreet.programme.strategy import Histogram, Strategy

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = lazily("scipy.sparse")

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]

MOST_DENSE = 400  # cells of a parent; with more, W in blocks takes fewer operations than one matrix
PARENTS_AT_ONCE = 1000  # whose children's counts are stored together


class Fit(StrEnum):
    """Which measurements a child is fitted to."""

    TREE = "tree"
    OWN_LEVEL = "own-level"


@dataclass(frozen=True, eq=False)
class Bounds:
    """Public bounds on the cells of one query in every area of the last level."""

    query: str
    lower: Integers  # (area, cell of the query)
    upper: Integers  # (area, cell of the query); ``UNBOUNDED`` where there is no bound
    names: tuple[str, ...] = ()  # the codes of each cell, for messages


@dataclass(frozen=True, eq=False)
class Limits:
    """Invariants of every node: known totals, and what the sums over groups of cells can be."""

    totals: Totals
    group: Integers  # cell of the basis -> group
    lower: Integers  # (node, group)
    upper: Integers  # (node, group)
    joint: NDArray[np.bool_]  # node -> whether a total, here or below, binds several groups together
    row: Integers  # node -> row of ``sets``, -1 where it has none
    sets: tuple[Integers, Integers]  # p and b of the inner nodes among them, (row, set of groups)

    @property
    def groups(self) -> int:
        """How many groups of cells have bounds; 1 where only totals are known."""
        return int(self.lower.shape[1])

    def sets_of(self, nodes: Integers) -> tuple[Integers, Integers]:
        """P and b of some nodes (see ``maths.tree.bounds``)."""
        p, b = box(self.lower[nodes], self.upper[nodes])
        known = self.totals.known[nodes]
        if known.any():
            p[known], b[known] = with_total(p[known], b[known], self.totals.values[nodes][known])
        inner = self.row[nodes] >= 0
        for mine, own in zip((p, b), self.sets, strict=True):
            mine[inner] = own[self.row[nodes[inner]]]
        return p, b


def unlimited(plan: Plan) -> Limits:
    """No invariants."""
    spine, cells = plan.spine, plan.strategy.histogram.basis.cells
    return Limits(
        no_totals(spine),
        np.zeros(cells, dtype=np.int64),
        np.zeros((len(spine), 1), dtype=np.int64),
        np.full((len(spine), 1), UNBOUNDED),
        np.zeros(len(spine), dtype=bool),
        np.full(len(spine), -1),
        (np.zeros((0, 2), dtype=np.int64), np.zeros((0, 2), dtype=np.int64)),
    )


def limits_of(
    spine: Spine,
    strategy: Strategy,
    leaf_counts: sparse.csr_array,
    totals: tuple[str, ...] = (),
    bounds: Bounds | None = None,
) -> Limits:
    """The invariants of the data: exact totals at some levels, bounds of the last level and their sums above.

    Bounds that contradict each other or the data are refused before noise is drawn, with the areas' names and no count.
    """
    histogram, basis = strategy.histogram, strategy.histogram.basis
    counts = node_counts(spine, leaf_counts, strategy)
    known = known_totals(spine, totals)
    values = np.where(known, counts.sum(axis=1), 0).astype(np.int64)
    exact = Totals(tuple(totals), known, values)
    if bounds is None:
        group = np.zeros(basis.cells, dtype=np.int64)
        lower = np.zeros((len(spine.leaves), 1), dtype=np.int64)
        upper = np.full_like(lower, UNBOUNDED)
    else:
        marginal = histogram.marginal(bounds.query)
        _check_bounds(spine, histogram, bounds, counts)
        group = positions(basis, marginal).astype(np.int64)
        lower, upper = bounds.lower.astype(np.int64), np.minimum(bounds.upper.astype(np.int64), UNBOUNDED)
    up = ancestors(spine)
    node_lower, node_upper = up @ lower, np.minimum(up @ upper, UNBOUNDED)
    groups = node_lower.shape[1]
    row = np.full(len(spine), -1, dtype=np.int64)
    joint = np.zeros(len(spine), dtype=bool)
    if groups == 1:
        _fix_totals(spine, exact, node_lower, node_upper)
        empty = np.zeros((0, 2), dtype=np.int64)
        return Limits(exact, group, node_lower, node_upper, joint, row, (empty, empty))
    for node in range(len(spine) - 1, -1, -1):
        joint[node] |= known[node]
        if joint[node] and node:
            joint[spine.parent[node]] = True
    if joint.any() and groups > MOST_GROUPS:
        value = f"{groups} bounded counts of {bounds.query if bounds else ''} together with totals"
        raise mistake(
            "", "bounds", value, f"bound a query of at most {MOST_GROUPS} cells, or leave out the totals"
        )
    inner = np.flatnonzero(joint & (spine.last > spine.first))
    row[inner] = np.arange(len(inner))
    sets = np.zeros((2, len(inner), 1 << groups), dtype=np.int64)
    found = Limits(exact, group, node_lower, node_upper, joint, row, (sets[0], sets[1]))
    single = 1 << np.arange(groups)
    for node in inner[::-1].tolist():
        below = np.arange(spine.first[node], spine.last[node])
        p, b = (one.sum(axis=0) for one in found.sets_of(below))
        if known[node]:
            p, b = with_total(p, b, values[node])
        sets[0, row[node]], sets[1, row[node]] = p, np.minimum(b, UNBOUNDED)
        node_lower[node], node_upper[node] = p[single], np.minimum(b[single], UNBOUNDED)
    leaves = np.flatnonzero(joint & (spine.last == spine.first))
    if len(leaves):
        rest = values[leaves, None] - (node_lower[leaves].sum(axis=1)[:, None] - node_lower[leaves])
        most = values[leaves, None] - (node_upper[leaves].sum(axis=1)[:, None] - node_upper[leaves])
        node_upper[leaves] = np.minimum(node_upper[leaves], rest)
        node_lower[leaves] = np.maximum(node_lower[leaves], most)
    return found


def _fix_totals(spine: Spine, exact: Totals, lower: Integers, upper: Integers) -> None:
    """With one group a total is a bound from both sides, and bounds of parents are sums of their children's."""
    for node in range(len(spine) - 1, -1, -1):
        if not spine.is_leaf(node):
            below = spine.children(node)
            lower[node], upper[node] = (
                lower[below].sum(axis=0),
                np.minimum(upper[below].sum(axis=0), UNBOUNDED),
            )
        if exact.known[node]:
            lower[node] = upper[node] = exact.values[node]


def _check_bounds(spine: Spine, histogram: Histogram, bounds: Bounds, counts: sparse.csr_array) -> None:
    size = size_of(histogram.basis, histogram.marginal(bounds.query))
    shape = (len(spine.leaves), size)
    if bounds.lower.shape != shape or bounds.upper.shape != shape:
        value = f"of shape {bounds.lower.shape} and {bounds.upper.shape}"
        raise mistake(
            "", f"bounds of {bounds.query}", value, f"give {shape[0]} areas with {shape[1]} counts each"
        )
    place = positions(histogram.basis, histogram.marginal(bounds.query))
    onto = sparse.csr_array(
        (np.ones(len(place), dtype=np.int64), (np.arange(len(place)), place)), shape=(len(place), size)
    )
    true = (counts[spine.leaves] @ onto).toarray()
    last = len(spine.levels) - 1
    problems = []
    for wrong, what, remedy in (
        (
            bounds.lower > bounds.upper,
            "the lower bound exceeds the upper one",
            "give bounds that a count can meet",
        ),
        ((bounds.upper < 0) | (bounds.lower < 0), "a bound is negative", "give bounds of at least 0"),
        (
            (true < bounds.lower) | (true > bounds.upper),
            "the data are outside of the bounds",
            "correct the bounds or the records",
        ),
    ):
        areas, cells = np.nonzero(wrong)
        if len(areas):
            names = ", ".join(
                f"{spine.area(last, int(area))} ({bounds.names[cell] if bounds.names else f'cell {cell}'})"
                for area, cell in zip(areas[:NAMED], cells[:NAMED], strict=True)
            )
            value = f"{what} in {len(np.unique(areas))} areas: {names}"
            problems.append(Problem("", f"bounds of {bounds.query}", value, remedy))
    if problems:
        raise Mistakes(problems)


@dataclass(frozen=True, eq=False)
class Tables:
    """Whole counts of every node; areas and margins are sums of them."""

    spine: Spine
    histogram: Histogram
    counts: sparse.csr_array  # (node, cell of the basis)
    unfinished: int  # parents whose fit was stopped before both residuals were small; sums and bounds hold in any case

    def level(self, level: str) -> sparse.csr_array:
        """(area of a level, cell in row-major order) -> count."""
        found = self.counts[self._nodes(level)]
        place = self.histogram.place
        column = np.empty(self.histogram.basis.cells, dtype=np.int64)
        column[place[place >= 0]] = np.flatnonzero(place >= 0)
        return sparse.csr_array(
            (found.data, column[found.indices], found.indptr), shape=(found.shape[0], len(place))
        )

    def query(self, level: str, query: str) -> Integers:
        """(area of a level, cell of a query) -> count."""
        basis, marginal = self.histogram.basis, self.histogram.marginal(query)
        place = positions(basis, marginal)
        size = size_of(basis, marginal)
        onto = sparse.csr_array(
            (np.ones(len(place), dtype=np.int64), (np.arange(len(place)), place)), shape=(len(place), size)
        )
        return np.asarray((self.counts[self._nodes(level)] @ onto).toarray(), dtype=np.int64)

    def _nodes(self, level: str) -> Integers:
        if level not in self.spine.levels:
            raise mistake("", "level", f"no level {level!r}", f"choose from {', '.join(self.spine.levels)}")
        return self.spine.node_of[self.spine.levels.index(level)]


@dataclass(frozen=True, eq=False)
class _Whole:
    """Whole counts of siblings: the nonzero cells of one after the other."""

    lengths: Integers  # sibling -> how many
    cells: Integers
    counts: Integers
    unfinished: int  # fits that were stopped before their residuals were small

    def to_bytes(self) -> bytes:
        """All numbers, little-endian."""
        sizes = [len(self.lengths), len(self.cells), self.unfinished]
        parts = (np.array(sizes, dtype=np.int64), self.lengths, self.cells, self.counts)
        return b"".join(part.astype("<i8").tobytes() for part in parts)

    @classmethod
    def from_bytes(cls, content: bytes) -> _Whole:
        """Read them back."""
        numbers = np.frombuffer(content, dtype="<i8").astype(np.int64)
        siblings, listed, unfinished = numbers[:3].tolist()
        lengths, cells, counts = np.split(numbers[3:], [siblings, siblings + listed])
        return cls(lengths, cells, counts, unfinished)


def _joined(parts: Sequence[_Whole]) -> _Whole:
    """One after the other."""
    return _Whole(
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.cells for part in parts]),
        np.concatenate([part.counts for part in parts]),
        sum(part.unfinished for part in parts),
    )


class Parts(Protocol):
    """Where whole counts are stored that an interrupted run has fitted; they may be published."""

    def stored(self, name: str) -> bytes | None:
        """What was stored by this name."""

    def store(self, name: str, part: bytes) -> None:
        """Store a part."""


class NoParts:
    """Nothing is stored."""

    def stored(self, name: str) -> bytes | None:
        """Nothing."""

    def store(self, name: str, part: bytes) -> None:
        """Do nothing."""


def integers(
    measurements: Measurements,
    limits: Limits | None = None,
    fit: Fit = Fit.TREE,
    threads: int = 1,
    *,
    climbed: Upward | None = None,
    parts: Parts | None = None,
    progress: Progress | None = None,
) -> Tables:
    """Fit and round all areas; the measurements of one parent's children are in memory at a time, for each thread.

    ``climbed`` is the pass up over the same measurements, where it was made before. What ``parts`` has from an
    interrupted run is not fitted again: the same measurements give the same counts.
    """
    plan, seen, saved = measurements.plan, progress or Quiet(), parts or NoParts()
    found = limits or unlimited(plan)
    fitting: _TreeFit | _OwnLevelFit = (
        _TreeFit(climbed or upward(measurements, found.totals))
        if fit is Fit.TREE
        else _OwnLevelFit(measurements, found)
    )
    work = _Descent(plan, measurements, found, fitting)
    settled: dict[int, tuple[Integers, Integers]] = {}
    made: list[_Whole] = []
    with ThreadPoolExecutor(threads) as pool:
        for number, parents in enumerate(_batches(plan.spine)):
            given = [(parent, settled.pop(parent, None)) for parent in parents]
            content = saved.stored(f"fits-{number}")
            if content is None:
                whole = _joined([_counted(one, seen) for one in pool.map(work.children, given)])
                saved.store(f"fits-{number}", whole.to_bytes())
            else:
                whole = _counted(_Whole.from_bytes(content), seen)
            made.append(whole)
            _settle_children(plan.spine, parents, whole, settled)
    whole = _joined(made)
    counts = sparse.csr_array(
        (whole.counts, whole.cells, np.concatenate([[0], np.cumsum(whole.lengths)])),
        shape=(len(plan.spine), plan.strategy.histogram.basis.cells),
    )
    return Tables(plan.spine, plan.strategy.histogram, counts, whole.unfinished)


def _counted(whole: _Whole, progress: Progress) -> _Whole:
    progress.step(len(whole.lengths))
    return whole


def _settle_children(
    spine: Spine, parents: Sequence[int], whole: _Whole, settled: dict[int, tuple[Integers, Integers]]
) -> None:
    """Note the counts of the children that have children themselves."""
    start = np.concatenate([[0], np.cumsum(whole.lengths)])
    nodes = (node for parent in parents for node in range(*spine.children(parent).indices(len(spine))[:2]))
    for at, node in enumerate(nodes):
        if not spine.is_leaf(node):
            here = slice(start[at], start[at + 1])
            settled[node] = whole.cells[here], whole.counts[here]


def _batches(spine: Spine) -> Iterator[list[int]]:
    """The parents of each depth, some at a time: what is stored together."""
    for parents in _by_depth(spine):
        for first in range(0, len(parents), PARENTS_AT_ONCE):
            yield parents[first : first + PARENTS_AT_ONCE]


def _by_depth(spine: Spine) -> Iterator[list[int]]:
    """The parents in the order of their children; each list needs only what the ones before settled."""
    yield [-1]
    first = 0
    while first < len(spine):
        last = first
        while last < len(spine) and (last == 0 or spine.parent[last] < first):
            last += 1
        parents = [node for node in range(first, last) if not spine.is_leaf(node)]
        if parents:
            yield parents
        first = last


class _TreeFit:
    """Children weigh all measurements at and below them."""

    def __init__(self, fit: Upward) -> None:
        self._fit = fit

    def estimates(self, siblings: Siblings) -> Floats:
        return self._fit.estimates(siblings)

    def forms(self, nodes: Integers) -> tuple[list[Blocks], Integers, bool]:
        """The covariances of some nodes, which each has, and whether all totals are known."""
        different, which = np.unique(self._fit.covariances.form_of[nodes], return_inverse=True)
        forms = [self._fit.covariances.forms[one] for one in different.tolist()]
        return [one.up for one in forms], which.reshape(-1), all(one.fixed for one in forms)


class _OwnLevelFit:
    """Children weigh only their own measurements."""

    def __init__(self, measurements: Measurements, limits: Limits) -> None:
        self._plan, self._totals = measurements.plan, limits.totals
        require_own_levels(self._plan)
        self._inverse = [inverse(kind.precision, total_known=False) for kind in self._plan.kinds]
        self._fixed = [with_known_total(one) for one in self._inverse]

    def estimates(self, siblings: Siblings) -> Floats:
        basis, kind = self._plan.strategy.histogram.basis, self._plan.kinds[siblings.kind]
        information = np.zeros((len(siblings.nodes), basis.d, basis.width))
        for marginal, variance, values in zip(kind.marginals, kind.variances, siblings.values, strict=True):
            information += spread(basis, marginal, values / variance)
        found = applied(basis, self._inverse[siblings.kind], information)
        known = self._totals.known[siblings.nodes]
        if known.any():
            total = self._totals.values[siblings.nodes[known]].astype(np.float64)
            found[known] = moved_to_total(basis, found[known], total, self._fixed[siblings.kind][1])
        return found

    def forms(self, nodes: Integers) -> tuple[list[Blocks], Integers, bool]:
        known = self._totals.known[nodes]
        pairs = 2 * self._plan.kind_of[nodes] + known
        different, which = np.unique(pairs, return_inverse=True)
        forms = [
            self._fixed[one // 2][0] if one % 2 else self._inverse[one // 2] for one in different.tolist()
        ]
        return forms, which.reshape(-1), bool(known.all())


class _Descent:
    """One step down: the children of one parent."""

    def __init__(
        self, plan: Plan, measurements: Measurements, limits: Limits, fitting: _TreeFit | _OwnLevelFit
    ) -> None:
        self._plan, self._measurements, self._limits, self._fitting = plan, measurements, limits, fitting
        self._basis: Basis = plan.strategy.histogram.basis
        self._means = [by_sums(self._basis, kind.precision) for kind in plan.kinds]

    def children(self, given: tuple[int, tuple[Integers, Integers] | None]) -> _Whole:
        """The whole counts of a parent's children, from the parent's; without a parent those of the root."""
        parent, settled = given
        siblings = self._measurements.noisy(parent)
        if settled is None:
            return self._root(siblings[0])
        cells, counts = settled
        nodes = np.arange(*self._plan.spine.children(parent).indices(len(self._plan.spine))[:2])
        if not len(cells):
            nothing = np.zeros(0, dtype=np.int64)
            return _Whole(np.zeros(len(nodes), dtype=np.int64), nothing, nothing, 0)
        spine = self._plan.spine
        leaves = bool((spine.first[nodes] == spine.last[nodes]).all())
        known = self._limits.totals.known[nodes]
        alike = leaves and len(siblings) == 1 and (known.all() or not known.any())
        if alike and len(cells) <= MOST_DENSE:
            fitted = self._of_leaves(siblings[0], nodes, cells, counts)
        else:
            fitted = self._of_any(siblings, nodes, cells, counts)
        whole = self._rounded(fitted.values, nodes, cells, counts)
        row, column = np.nonzero(whole)
        lengths = np.bincount(row, minlength=len(nodes))
        return _Whole(lengths, cells[column], whole[row, column], int(fitted.residual > 1))

    def _of_leaves(self, siblings: Siblings, nodes: Integers, cells: Integers, counts: Integers) -> Fitted:
        kind, limits = self._plan.kinds[siblings.kind], self._limits
        weights = support_weights(self._means[siblings.kind], self._basis.places, cells)
        information = np.zeros((len(nodes), len(cells)))
        for at, (values, variance) in enumerate(zip(siblings.values, kind.variances, strict=True)):
            gather(values, kind.positions[at], cells, 1 / variance, information)
        known = limits.totals.known[nodes].all()
        return fit_support(
            weights,
            information,
            counts.astype(np.float64),
            groups_of(limits.group[cells], limits.groups),
            limits.lower[nodes].astype(np.float64),
            limits.upper[nodes].astype(np.float64),
            limits.totals.values[nodes].astype(np.float64) if known else None,
        )

    def _of_any(self, siblings: list[Siblings], nodes: Integers, cells: Integers, counts: Integers) -> Fitted:
        basis, limits = self._basis, self._limits
        estimates = np.empty((len(nodes), basis.d, basis.width))
        for one in siblings:
            estimates[one.nodes - nodes[0]] = self._fitting.estimates(one)
        forms, which, fixed = self._fitting.forms(nodes)
        whole = np.zeros(basis.cells)
        whole[cells] = counts
        found = fit_blocks(
            basis,
            estimates,
            forms,
            which,
            Within(
                groups_of(limits.group, limits.groups, whole > 0),
                limits.lower[nodes].astype(np.float64),
                limits.upper[nodes].astype(np.float64),
                whole,
            ),
            totals_known=fixed,
        )
        return Fitted(np.ascontiguousarray(found.values[:, cells]), found.residual)

    def _rounded(self, values: Floats, nodes: Integers, cells: Integers, counts: Integers) -> Integers:
        limits = self._limits
        group = limits.group[cells]
        lower, upper = limits.lower[nodes].astype(np.float64), limits.upper[nodes].astype(np.float64)
        sums = None
        if limits.joint[nodes].any():
            near = group_sums(values, group, limits.groups)
            whole = np.bincount(group, weights=counts, minlength=limits.groups).astype(np.int64)
            sums = divided(near, *limits.sets_of(nodes), whole).astype(np.float64)
        met = meeting_sums(values, counts, group, lower, upper, sums)
        return whole_numbers(met, counts, group, limits.groups)

    def _root(self, siblings: Siblings) -> _Whole:
        limits, nodes = self._limits, siblings.nodes
        forms, which, fixed = self._fitting.forms(nodes)
        lower, upper = limits.lower[nodes], limits.upper[nodes]
        found = fit_blocks(
            self._basis,
            self._fitting.estimates(siblings),
            forms,
            which,
            Within(
                groups_of(limits.group, limits.groups),
                lower.astype(np.float64),
                upper.astype(np.float64),
                None,
            ),
            totals_known=fixed,
        )
        values = found.values[0]
        near = np.bincount(limits.group, weights=values, minlength=limits.groups).astype(np.float64)
        if limits.joint[0]:
            sums = divided(near[None, :], *limits.sets_of(nodes), None)[0]
        else:
            sums = np.clip(np.rint(near).astype(np.int64), lower[0], upper[0])
        whole = rounded_to_sums(values, limits.group, sums)
        cells = np.flatnonzero(whole)
        return _Whole(np.array([len(cells)]), cells, whole[cells], int(found.residual > 1))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def gather(values: Any, places: Any, cells: Any, weight: Any, out: Any) -> None:
    """Add the weighted values of a marginal to the cells of every child that they sum."""
    for c in range(out.shape[0]):
        for j in range(cells.size):
            out[c, j] += weight * values[c, places[cells[j]]]
