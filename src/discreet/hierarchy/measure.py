"""Noisy marginals of every area of a spine, and what they spent.

Noise is drawn for the children of one parent at a time, from bits that the key and the parent determine. So the same
measurements can be drawn again when the next pass needs them, and no more than one parent's are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem, mistake
from discreet.hierarchy.spine import NAMED, Spine
from discreet.lazy import lazily, njit
from discreet.maths.cells.keys import derive
from discreet.maths.noise.additive import AdditiveLaw
from discreet.maths.noise.draws import BitSource, draw_into
from discreet.maths.noise.thresholds import ThresholdTable, threshold_table
from discreet.maths.tree.marginals import Blocks, Marginal, positions, precision, size_of, undetermined
from discreet.programme.strategy import Strategy

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = lazily("scipy.sparse")

Integers = NDArray[np.int64]
MOST_RECORDS = 2_000_000_000


@dataclass(frozen=True, eq=False)
class Kind:
    """What is measured in nodes that represent the same levels: queries, their laws and their marginals."""

    top: int
    bottom: int
    queries: tuple[str, ...]
    laws: tuple[AdditiveLaw, ...]
    tables: tuple[ThresholdTable, ...]
    marginals: tuple[Marginal, ...]
    positions: NDArray[np.int32]  # (query, cell of the histogram) -> cell of the query
    variances: tuple[float, ...]
    precision: Blocks


@dataclass(frozen=True, eq=False)
class Siblings:
    """The noisy counts of nodes of one kind below one parent."""

    nodes: Integers
    kind: int
    values: tuple[NDArray[np.int32], ...]  # query -> (node, cell of the query)

    def chosen(self, which: NDArray[np.bool_]) -> Siblings:
        """Some of them."""
        return Siblings(self.nodes[which], self.kind, tuple(values[which] for values in self.values))


@dataclass(frozen=True, eq=False)
class Plan:
    """A strategy applied to a spine: the kind of each node, known before any data are read."""

    spine: Spine
    strategy: Strategy
    kinds: tuple[Kind, ...]
    kind_of: Integers  # node -> kind

    def classes(self, parent: int) -> list[tuple[Integers, int]]:
        """The children of a parent (-1: the root itself) by kind."""
        below = self.spine.children(parent)
        kinds = self.kind_of[below]
        if kinds[0] == kinds[-1] and (kinds == kinds[0]).all():
            return [(np.arange(below.start, below.stop), int(kinds[0]))]
        return [(below.start + np.flatnonzero(kinds == kind), int(kind)) for kind in np.unique(kinds)]


def plan_of(spine: Spine, strategy: Strategy) -> Plan:
    """Plan the measurements of a strategy in a spine whose levels it names in the same order."""
    declared = tuple(one.level for one in strategy.levels)
    if declared != spine.levels:
        value = f"the strategy has the levels {', '.join(declared)}; the areas have {', '.join(spine.levels)}"
        raise mistake("", "strategy.levels", value, "give a share for each level, in the order of the areas")
    pairs = np.stack([spine.top, spine.bottom], axis=1)
    found, kind_of = np.unique(pairs, axis=0, return_inverse=True)
    tables: dict[AdditiveLaw, ThresholdTable] = {}
    kinds = tuple(_kind(strategy, int(top), int(bottom), tables) for top, bottom in found)
    return Plan(spine, strategy, kinds, kind_of.reshape(-1).astype(np.int64))


def _kind(strategy: Strategy, top: int, bottom: int, tables: dict[AdditiveLaw, ThresholdTable]) -> Kind:
    chain = strategy.levels[top : bottom + 1]
    parts: dict[str, Fraction] = {}
    for one in chain:
        for query, part in one.queries:
            parts[query] = parts.get(query, Fraction(0)) + one.share * part
    asked = [(query, part) for query, part in parts.items() if part]
    queries = tuple(query for query, _ in asked)
    laws = tuple(strategy.law(strategy.budget * part) for _, part in asked)
    for law in laws:
        if law not in tables:
            tables[law] = threshold_table(law)
    basis = strategy.histogram.basis
    marginals = tuple(strategy.histogram.marginal(query) for query in queries)
    places = [positions(basis, marginal) for marginal in marginals]
    variances = tuple(tables[law].variance for law in laws)
    return Kind(
        top,
        bottom,
        queries,
        laws,
        tuple(tables[law] for law in laws),
        marginals,
        np.stack(places) if places else np.zeros((0, basis.cells), dtype=np.int32),
        variances,
        precision(basis, marginals, [1 / variance for variance in variances]),
    )


def require_own_levels(plan: Plan) -> None:
    """Refuse a plan in which some level cannot be fitted to its own measurements."""
    problems = [
        Problem(
            "",
            f"level {plan.spine.levels[kind.bottom]}",
            f"its queries ({', '.join(kind.queries) or 'nothing'}) do not determine every cell",
            "fit = own-level needs that at every level: use fit = tree, or add the query detailed",
        )
        for kind in plan.kinds
        if undetermined(kind.precision)
    ]
    if problems:
        raise Mistakes(dict.fromkeys(problems))


class Measurements(Protocol):
    """Noisy counts of every node, for the children of one parent at a time."""

    @property
    def plan(self) -> Plan:
        """What is measured where."""
        ...

    def noisy(self, parent: int) -> list[Siblings]:
        """The noisy counts of the children of a parent; of -1 those of the root."""
        ...


@dataclass(frozen=True, eq=False)
class Drawn:
    """Measurements that are drawn when they are used. Confidential: it has the true counts and the key of the noise."""

    plan: Plan
    counts: sparse.csr_array  # (node, cell of the basis) -> true count
    key: bytes

    def noisy(self, parent: int) -> list[Siblings]:
        """Draw the noise of one parent's children; the same at every call."""
        bits = BitSource(derive(self.key, f"tree/{parent}"))
        basis = self.plan.strategy.histogram.basis
        found = []
        for nodes, number in self.plan.classes(parent):
            kind = self.plan.kinds[number]
            values = []
            for at, (table, marginal) in enumerate(zip(kind.tables, kind.marginals, strict=True)):
                drawn = np.empty((len(nodes), size_of(basis, marginal)), dtype=np.int32)
                draw_into(drawn.reshape(-1), table, bits)
                _add_counts(
                    drawn,
                    nodes,
                    self.counts.indptr,
                    self.counts.indices,
                    self.counts.data,
                    kind.positions[at],
                )
                values.append(drawn)
            found.append(Siblings(nodes, number, tuple(values)))
        return found

    def stored(self) -> Stored:
        """All noisy counts in memory, without the true ones: what may be published."""
        parents = [-1, *self.plan.spine.inner.tolist()]
        return Stored(self.plan, {parent: self.noisy(parent) for parent in parents})


@dataclass(frozen=True, eq=False)
class Stored:
    """Noisy counts in memory; they may be published with the variances of their kinds."""

    plan: Plan
    values: dict[int, list[Siblings]]

    def noisy(self, parent: int) -> list[Siblings]:
        """The noisy counts of one parent's children."""
        return self.values[parent]


def measure(spine: Spine, leaf_counts: sparse.csr_array, strategy: Strategy, key: bytes) -> Drawn:
    """Measure all nodes; ``leaf_counts`` are (area of the last level, cell in row-major order), ``key`` 32 fresh bytes.

    One key, one release: the noise of a key that is used again is the same.
    """
    plan = plan_of(spine, strategy)
    return Drawn(plan, node_counts(spine, leaf_counts, strategy), key)


def node_counts(spine: Spine, leaf_counts: sparse.csr_array, strategy: Strategy) -> sparse.csr_array:
    """The true counts of every node, cells in the order of the basis."""
    histogram = strategy.histogram
    if leaf_counts.shape != (len(spine.leaves), len(histogram.place)):
        value = f"{leaf_counts.shape[0]} areas with {leaf_counts.shape[1]} cells"
        raise mistake(
            "", "counts", value, f"give {len(spine.leaves)} areas with {len(histogram.place)} cells"
        )
    counts = leaf_counts.tocsr()
    if counts.sum() > MOST_RECORDS:
        value = f"more than {MOST_RECORDS:,} records"
        raise mistake("", "counts", value, "noisy counts have 32 bits: publish parts of the population")
    outside = histogram.place[counts.indices] < 0
    if (counts.data[outside] != 0).any() or (counts.data < 0).any():
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        wrong = np.unique(rows[(outside & (counts.data != 0)) | (counts.data < 0)])
        names = ", ".join(spine.area(len(spine.levels) - 1, int(at)) for at in wrong[:NAMED])
        value = f"{len(wrong)} areas have persons in structural zeros, or negative counts: {names}"
        raise mistake("", "counts", value, "correct the records, or declare fewer structural zeros")
    size = (counts.shape[0], histogram.basis.cells)
    placed = sparse.csr_array(
        (np.where(outside, 0, counts.data), np.maximum(histogram.place[counts.indices], 0), counts.indptr),
        shape=size,
    )
    return ancestors(spine) @ placed


def ancestors(spine: Spine) -> sparse.csr_array:
    """(node, area of the last level) -> 1 where the node contains the area."""
    leaves = spine.leaves
    rows, columns = [leaves], [np.arange(len(leaves))]
    here, at = spine.parent[leaves], np.arange(len(leaves))
    while (here >= 0).any():
        at, here = at[here >= 0], here[here >= 0]
        rows.append(here)
        columns.append(at)
        here = spine.parent[here]
    row, column = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array(
        (np.ones(len(row), dtype=np.int64), (row, column)), shape=(len(spine), len(leaves))
    )


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add_counts(out: Any, nodes: Any, indptr: Any, indices: Any, data: Any, places: Any) -> None:
    for i in range(nodes.size):
        for at in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            out[i, places[indices[at]]] += data[at]


@dataclass(frozen=True)
class Spent:
    """What the measurements along one kind of path spent: levels of each node on it, and the budget of each."""

    steps: tuple[tuple[str, Fraction], ...]
    paths: int  # leaves with such a path

    @property
    def total(self) -> Fraction:
        """The budget along the whole path."""
        return sum((part for _, part in self.steps), Fraction(0))


def spent(measurements: Measurements) -> tuple[Spent, ...]:
    """The budget that was spent along every path from the root to a leaf, from the laws that were drawn."""
    plan = measurements.plan
    spine, strategy = plan.spine, plan.strategy
    parts = [sum((strategy.part(law) for law in kind.laws), Fraction(0)) for kind in plan.kinds]
    labels = [_label(strategy, kind) for kind in plan.kinds]
    path_of: list[tuple[int, ...]] = []  # node -> kinds from the root
    for node in range(len(spine)):
        above = () if node == 0 else path_of[int(spine.parent[node])]
        path_of.append((*above, int(plan.kind_of[node])))
    counted: dict[tuple[int, ...], int] = {}
    for leaf in spine.leaves.tolist():
        counted[path_of[leaf]] = counted.get(path_of[leaf], 0) + 1
    return tuple(
        Spent(tuple((labels[kind], parts[kind]) for kind in path), number) for path, number in counted.items()
    )


def _label(strategy: Strategy, kind: Kind) -> str:
    return "+".join(one.level for one in strategy.levels[kind.top : kind.bottom + 1])


def at_level(measurements: Measurements, level: str) -> Iterator[tuple[Integers, Siblings]]:
    """The areas that are measured at a level with their noisy counts, the children of one parent at a time.

    Bypassed areas have none. Areas are in their order, if those of one parent follow each other.
    """
    plan = measurements.plan
    spine, number = plan.spine, plan.spine.levels.index(level)
    area_of = np.full(len(spine), -1, dtype=np.int64)
    area_of[spine.node_of[number]] = np.arange(len(spine.node_of[number]))
    here = np.flatnonzero(spine.bottom == number)
    first = np.full(
        len(spine) + 1, len(spine)
    )  # parent -> its first area; the last entry is that of the root
    np.minimum.at(first, spine.parent[here], area_of[here])
    parents = np.unique(spine.parent[here])
    for parent in parents[np.argsort(first[parents])].tolist():
        for one in measurements.noisy(parent):
            if plan.kinds[one.kind].bottom == number:
                yield area_of[one.nodes], one
