"""The declared cubes of a hierarchical release: sums of its whole counts, and estimates with their variances.

Let x be the histogram of an area, with covariance sum_S V_S (x) P_S (see ``maths.tree.marginals``). A cell of a cube
sums a set of dense cells with the indicator a and, of every regular variable v, g_v of its n_v categories. With
|P a|^2 = g - g^2 / n on the residual space of a variable and g^2 / n on its mean, its variance is

    sum over S of (a' V_S a) prod over v in S of (g_v - g_v^2 / n_v) prod over the others of g_v^2 / n_v.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from discreet.errors import Mistakes, Problem, mistake
from discreet.hierarchy.estimate import Covariances, Estimates, covariances, known_totals, node_variances
from discreet.hierarchy.integers import Bounds, Tables
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.maths.cells.counting import roll_up_sparse
from discreet.maths.tree.bounds import UNBOUNDED
from discreet.maths.tree.marginals import Blocks, positions, size_of
from discreet.maths.tree.matrices import product
from discreet.programme.codelist import Breakdown, Codelist
from discreet.programme.cube import Cube
from discreet.programme.hierarchical import groups_of
from discreet.programme.strategy import Histogram
from discreet.tabulate.tables import ProtectedTable, added_up

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
AT_ONCE = 1 << 22  # cells of histograms in memory together
ROUNDING = 1e-9  # variances of exact counts, as floats compute them
NAMED = 5


def count_table(chosen: HierarchicalMechanism, counts: csr_array, cube: Cube) -> ProtectedTable:
    """Sum whole counts (smallest area, cell in row-major order) to the cells of a cube, with all its margins."""
    leaf = chosen.leaf
    found = counts.tocoo()
    shape = tuple(size - 1 for size in leaf.shape[1:])
    along = [found.row, *np.unravel_index(found.col, shape)]
    of = {axis.variable: (axis, nodes) for axis, nodes in zip(leaf.axes, along, strict=True)}
    place = np.zeros(len(found.data), dtype=np.int64)
    for axis, stride in zip(cube.axes, cube.strides, strict=True):
        fine, nodes = of[axis.variable]
        place += _contained(fine, axis)[nodes] * stride
    cells, where = np.unique(place, return_inverse=True)
    sums = np.zeros(len(cells), dtype=np.int64)
    np.add.at(sums, where.reshape(-1), found.data.astype(np.int64))
    at, values = cells.astype(np.uint64), sums.astype(np.uint64)
    for k, axis in enumerate(cube.axes):
        at, values = roll_up_sparse(at, values, cube.shape, k, axis.parents)
    order = np.argsort(at)
    listed, whole = at[order].astype(np.int64), values[order].astype(np.int64)
    return added_up(cube, listed[whole > 0], whole[whole > 0])


def _contained(fine: Breakdown, coarse: Breakdown) -> Integers:
    groups = groups_of(fine, coarse)
    if groups is None:
        raise ValueError("a cube is coarser than what is measured")
    return groups


def leaf_counts(tables: Tables) -> csr_array:
    """Whole counts of the smallest areas."""
    return tables.level(tables.spine.levels[-1])


@dataclass(frozen=True, eq=False)
class CubeEstimates:
    """The estimate of every cell of a cube and its standard error, in the cube's grid."""

    cube: Cube
    values: Floats
    errors: Floats


def cube_estimates(chosen: HierarchicalMechanism, estimates: Estimates, cube: Cube) -> CubeEstimates:
    """The estimates of all cells of a cube, margins included."""
    kind = Sums.of(chosen, cube)
    nodes = _nodes_of_areas(chosen, cube, kind.place)
    values = np.zeros((nodes.size, kind.cells))
    rows: dict[int, list[int]] = {}
    for row, node in enumerate(nodes.tolist()):
        rows.setdefault(node, []).append(row)
    different = np.unique(nodes)
    for some, histograms in _batches(estimates, different, chosen.plan.strategy.histogram):
        for node, found in zip(some, kind.summed(histograms), strict=True):
            values[rows[node]] = found
    errors = standard_errors(kind, estimates.covariances, nodes)
    values = np.where(errors == 0, np.rint(values), values)
    return CubeEstimates(cube, *(kind.placed(one) for one in (values, errors)))


def standard_errors(kind: Sums, found: Covariances, nodes: Integers) -> Floats:
    """The standard error of each cell of a cube in each of some nodes, 0 where it is exact."""
    variances = node_variances(found, nodes)
    by_block = np.stack([kind.variances(block) for block in variances.blocks])
    errors: Floats = np.sqrt(np.where(by_block <= ROUNDING, 0.0, by_block))[variances.which]
    return errors


def cube_errors(chosen: HierarchicalMechanism, cube: Cube) -> Floats:
    """The standard error of every cell of a cube, by the strategy and the areas only; 0 where a count is exact."""
    kind, plan = Sums.of(chosen, cube), chosen.plan
    nodes = _nodes_of_areas(chosen, cube, kind.place)
    found = covariances(plan, known_totals(plan.spine, chosen.hierarchy.totals))
    return kind.placed(standard_errors(kind, found, nodes))


def _nodes_of_areas(chosen: HierarchicalMechanism, cube: Cube, place: int | None) -> Integers:
    """The node of the spine of each area of a cube's geography; of the root where it has none."""
    spine, rule = chosen.plan.spine, chosen.hierarchy
    if place is None:
        return np.array([spine.node_of[0][0]], dtype=np.int64)
    axis, tree = cube.axes[place], chosen.statistics.codelists[rule.geography]
    numbers = [{code: at for at, code in enumerate(codes)} for codes in chosen.codes]
    return np.array(
        [spine.node_of[depth][numbers[depth][code]] for code, depth in _depths(axis, tree)], dtype=np.int64
    )


def _depths(axis: Breakdown, tree: Codelist) -> Iterator[tuple[str, int]]:
    yield axis.codes[0], 0
    for code in axis.codes[1:]:
        yield code, tree.depths[tree.position[code]]


def _batches(
    estimates: Estimates, nodes: Integers, histogram: Histogram
) -> Iterator[tuple[list[int], Floats]]:
    """Some nodes at a time, with their histograms in row-major order."""
    place = histogram.place
    inside = place >= 0
    size = max(1, AT_ONCE // len(place))
    some: list[int] = []
    held = np.zeros((min(size, len(nodes)), len(place)))
    for node, values in estimates.histograms(nodes):
        held[len(some), inside] = values.reshape(-1)[place[inside]]
        some.append(node)
        if len(some) == len(held):
            yield some, held
            some = []
    if some:
        yield some, held[: len(some)]


class Sums:
    """How the cells of a cube sum a histogram: for each variable a 0/1 matrix (node of the axis, category)."""

    def __init__(
        self,
        histogram: Histogram,
        variables: Sequence[str],
        indicators: Mapping[str, Floats],
        shape: Sequence[int],
    ) -> None:
        """Of a cube with these axes; ``indicators`` has the matrices of those that the histogram has."""
        names = [axis.name for axis in histogram.axes]
        self._histogram, self._shape = histogram, tuple(shape)
        self._matrices = [indicators.get(axis.name, np.ones((1, axis.size))) for axis in histogram.axes]
        self._order = [names.index(name) for name in variables if name in names]
        self.place = next((k for k, name in enumerate(variables) if name not in names), None)
        self.cells = prod(len(matrix) for matrix in self._matrices)

    @classmethod
    def of(cls, chosen: HierarchicalMechanism, cube: Cube) -> Sums:
        """The sums of a declared cube."""
        leaf = {axis.variable: axis for axis in chosen.leaf.axes[1:]}
        found = {
            axis.variable: indicators(_contained(leaf[axis.variable], axis), axis.parents)
            for axis in cube.axes
            if axis.variable in leaf
        }
        return cls(chosen.plan.strategy.histogram, [axis.variable for axis in cube.axes], found, cube.shape)

    def summed(self, histograms: Floats) -> Floats:
        """(node, cell of the histogram) -> (node, cell of the cube in one area)."""
        found = histograms.reshape((len(histograms), *self._histogram.shape))
        for v, matrix in enumerate(self._matrices):
            lead = found.shape[: v + 1]
            summed = product(matrix, found.reshape(prod(lead), found.shape[v + 1], -1))
            found = np.asarray(summed, dtype=np.float64).reshape(*lead, len(matrix), *found.shape[v + 2 :])
        return self._ordered(found)

    def variances(self, covariance: Blocks) -> Floats:
        """The variance of each cell of the cube in an area with this covariance (subset, d, d)."""
        histogram = self._histogram
        dense, regular = histogram.dense, histogram.regular
        codes = histogram.dense_codes
        rows = [self._matrices[v][:, codes[:, at]] for at, v in enumerate(dense)]  # (node, dense cell)
        indicator = reduce(
            lambda made, one: (made[:, None, :] * one[None, :, :]).reshape(-1, one.shape[1]),
            rows,
            np.ones((1, len(codes))),
        )
        sizes = [(self._matrices[v].sum(axis=1), histogram.shape[v]) for v in regular]
        found = np.zeros((len(indicator), *(len(size) for size, _ in sizes)))
        for subset, block in enumerate(covariance):
            part = (product(indicator, block) * indicator).sum(axis=1)
            for v, (g, n) in enumerate(sizes):
                factor = g - g * g / n if subset >> v & 1 else g * g / n
                part = part[..., None] * factor
            found += part
        shape = [len(self._matrices[v]) for v in (*dense, *regular)]
        shaped = np.moveaxis(found.reshape(shape), range(len(shape)), (*dense, *regular))
        return self._ordered(shaped[None]).reshape(-1)

    def _ordered(self, found: Floats) -> Floats:
        """Variables in the order of the cube; those that it does not have are summed and have one node."""
        missing = [v for v in range(len(self._matrices)) if v not in self._order]
        moved = np.moveaxis(found, [v + 1 for v in (*self._order, *missing)], range(1, found.ndim))
        return np.ascontiguousarray(moved).reshape(len(found), -1)

    def placed(self, found: Floats) -> Floats:
        """(area, cell in it) -> the cube's grid."""
        if self.place is None:
            return found.reshape(-1)
        others = [size for k, size in enumerate(self._shape) if k != self.place]
        return np.moveaxis(found.reshape(-1, *others), 0, self.place).reshape(-1)


def indicators(finest: Integers, parents: NDArray[np.int32] | Sequence[int]) -> Floats:
    """(node of an axis, category) -> 1 where the node contains the category; ``finest`` is the finest such node."""
    found = np.zeros((len(parents), len(finest)))
    for category, node in enumerate(finest.tolist()):
        while node >= 0:
            found[node, category] = 1
            node = int(parents[node])
    return found


def read_bounds(chosen: HierarchicalMechanism) -> Bounds | None:
    """The declared bounds of every smallest area; every mistake of the file is named by its line."""
    rule = chosen.hierarchy
    if rule.bounds is None:
        return None
    path, query = Path(rule.bounds.path), rule.bounds.query
    histogram = rule.strategy.histogram
    marginal = histogram.marginal(query)
    shape = (len(chosen.codes[-1]), size_of(histogram.basis, marginal))
    lower, upper = np.zeros(shape, dtype=np.int64), np.full(shape, UNBOUNDED)
    cells = query_cells(chosen, query)
    areas = {code: at for at, code in enumerate(chosen.codes[-1])}
    names = query_columns(chosen, query)
    problems = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        wanted = [rule.geography, *names, "lower", "upper"]
        if missing := [name for name in wanted if name not in (reader.fieldnames or ())]:
            raise mistake(
                path, "columns", f"no {', '.join(missing)}", f"name the columns {', '.join(wanted)}"
            )
        for number, row in enumerate(reader, start=2):
            key = tuple(row[name] for name in names)
            value = _row_problem(row, row[rule.geography] in areas, key in cells)
            if value:
                problems.append(Problem(str(path), f"line {number}", value, "correct the line"))
                continue
            at = areas[row[rule.geography]], cells[key]
            lower[at] = int(row["lower"] or 0)
            upper[at] = int(row["upper"]) if row["upper"] else UNBOUNDED
    if problems:
        raise Mistakes(problems[: NAMED * 4])
    return Bounds(query, lower, upper, tuple(", ".join(key) or query for key in cells))


def _row_problem(row: Mapping[str, str], known_area: bool, known_cell: bool) -> str:
    if not known_area:
        return "no smallest area of this code"
    if not known_cell:
        return "no count of the query with these codes"
    for name in ("lower", "upper"):
        if row[name] and not row[name].isdecimal():
            return f"{name} is {row[name]!r}, no whole number"
    if row["lower"] and row["upper"] and int(row["lower"]) > int(row["upper"]):
        return f"lower is {row['lower']}, above upper {row['upper']}"
    return ""


def bounds_problems(chosen: object) -> Iterator[Problem]:
    """The mistakes of a file of bounds; whether the records are within them is known once they are counted."""
    if isinstance(chosen, HierarchicalMechanism):
        try:
            read_bounds(chosen)
        except Mistakes as found:
            yield from found.problems


def query_columns(chosen: HierarchicalMechanism, query: str) -> tuple[str, ...]:
    """The columns of a query's cells: its variables and groupings."""
    if query == "total":
        return ()
    if query == "detailed":
        return tuple(variable for variable, _ in chosen.hierarchy.axes)
    return tuple(query.split("*"))


def query_cells(chosen: HierarchicalMechanism, query: str) -> dict[tuple[str, ...], int]:
    """The codes of each cell of a query, in the order of ``query_columns`` -> its number."""
    histogram = chosen.plan.strategy.histogram
    cells = positions(histogram.basis, histogram.marginal(query))
    here = np.flatnonzero(histogram.place >= 0)
    number = cells[histogram.place[here]]
    _, first = np.unique(number, return_index=True)
    codes = np.unravel_index(here[first], histogram.shape)
    names = [_codes_of(chosen, column, codes) for column in query_columns(chosen, query)]
    listed = list(zip(*names, strict=True)) if names else [()] * len(first)
    return {key: at for at, key in enumerate(listed)}


def _codes_of(chosen: HierarchicalMechanism, column: str, codes: Sequence[Integers]) -> list[str]:
    """The codes of one column of some cells, by the categories of all variables."""
    histogram, leaf = chosen.plan.strategy.histogram, chosen.leaf
    names = [axis.name for axis in histogram.axes]
    if column in names:
        v = names.index(column)
        return [leaf.axes[v + 1].codes[category + 1] for category in codes[v].tolist()]
    grouping = next(one for one in histogram.groupings if one.name == column)
    v = names.index(grouping.variable)
    labels = chosen.group_codes[column]
    return [labels[grouping.groups[category]] for category in codes[v].tolist()]
