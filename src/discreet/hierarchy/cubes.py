"""The declared cubes of a hierarchical release: sums of its whole counts, and estimates with their variances.

Let x be the histogram of an area, with covariance sum_S V_S (x) P_S (see ``maths.tree.marginals``). A cell of a cube
sums a set of dense cells with the indicator a and, of every regular variable v, g_v of its n_v categories. With
|P a|^2 = g - g^2 / n on the residual space of a variable and g^2 / n on its mean, its variance is

    sum over S of (a' V_S a) prod over v in S of (g_v - g_v^2 / n_v) prod over the others of g_v^2 / n_v.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem, mistake
from discreet.hierarchy.estimate import (
    NODES_AT_ONCE,
    Covariances,
    Estimates,
    covariances,
    known_totals,
    node_variances,
)
from discreet.hierarchy.integers import Bounds, Tables
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.io.progress import Progress, Quiet
from discreet.lazy import lazily, njit
from discreet.maths.cells.margins import with_margins
from discreet.maths.tree.bounds import UNBOUNDED
from discreet.maths.tree.marginals import positions, size_of
from discreet.maths.tree.matrices import product
from discreet.programme.codelist import Breakdown, Codelist
from discreet.programme.cube import Cube
from discreet.programme.hierarchical import groups_of
from discreet.programme.strategy import Histogram
from discreet.tabulate.tables import ProtectedTable, added_up

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = lazily("scipy.sparse")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
AT_ONCE = 1 << 22  # cells of histograms in memory together
CELLS_AT_ONCE = 1 << 20  # of a cube
WHOLE_NUMBER = "^[0-9]{0,15}$"
ROUNDING = 1e-9  # variances of exact counts, as floats compute them
NAMED = 5


def count_table(chosen: HierarchicalMechanism, counts: sparse.csr_array, cube: Cube) -> ProtectedTable:
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
    parents = [axis.parents for axis in cube.axes]
    listed, added = with_margins(cells.view(np.uint64), sums.view(np.uint64), cube.shape, parents)
    whole = added.view(np.int64)
    return added_up(cube, listed[whole > 0], whole[whole > 0])


def _contained(fine: Breakdown, coarse: Breakdown) -> Integers:
    groups = groups_of(fine, coarse)
    if groups is None:
        raise ValueError("a cube is coarser than what is measured")
    return groups


def leaf_counts(tables: Tables) -> sparse.csr_array:
    """Whole counts of the smallest areas."""
    return tables.level(tables.spine.levels[-1])


@dataclass(frozen=True, eq=False)
class CubeEstimates:
    """The estimates of some cells of a cube and their standard errors, in the cube's grid from ``first`` on."""

    cube: Cube
    first: int
    values: Floats
    errors: Floats


def cube_estimates(
    chosen: HierarchicalMechanism,
    estimates: Estimates,
    cube: Cube,
    threads: int = 1,
    progress: Progress | None = None,
) -> Iterator[CubeEstimates]:
    """The estimates of all cells of a cube, margins included: some areas at a time, in the order of the grid.

    A cube whose geography is not its first axis is one part.
    """
    seen, kind = progress or Quiet(), Sums.of(chosen, cube)
    nodes = _nodes_of_areas(chosen, cube, kind.place)
    errors = Errors.of(kind, estimates.covariances, nodes)
    histogram = chosen.plan.strategy.histogram
    some = max(1, CELLS_AT_ONCE // kind.cells) if kind.place == 0 else len(nodes)
    few = max(1, AT_ONCE // len(histogram.place) // threads)
    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(nodes), some):
            here = nodes[start : start + some]
            different, which = np.unique(here, return_inverse=True)
            parts = [different[at : at + few] for at in range(0, len(different), few)]
            found = pool.map(partial(_estimated, estimates, kind, histogram), parts)
            values = np.concatenate(list(found))[which.reshape(-1)]
            error = errors.rows(slice(start, start + some))
            values = np.where(error == 0, np.rint(values), values)
            seen.step(len(here))
            yield CubeEstimates(cube, start * kind.cells, kind.placed(values), kind.placed(error))


def _estimated(estimates: Estimates, kind: Sums, histogram: Histogram, nodes: Integers) -> Floats:
    """(node, cell of the cube in one area) of nodes in ascending order."""
    place = histogram.place
    inside = np.flatnonzero(place >= 0)
    found = np.empty((len(nodes), kind.cells))
    for some, values in estimates.histograms(nodes):
        whole = np.zeros((len(some), len(place)))
        whole[:, inside] = values.reshape(len(some), -1)[:, place[inside]]
        found[np.searchsorted(nodes, some)] = kind.summed(whole)
    return found


@dataclass(frozen=True, eq=False)
class Errors:
    """Standard errors of the cells of a cube in some nodes: nodes of the same covariance have the same."""

    by_block: Floats  # (covariance, cell of the cube in one area), 0 where it is exact
    which: Integers  # node -> covariance

    @classmethod
    def of(cls, kind: Sums, found: Covariances, nodes: Integers) -> Errors:
        """By the strategy and the areas only."""
        variances = node_variances(found, nodes)
        used, which = np.unique(variances.which, return_inverse=True)
        by_block = np.concatenate(
            [
                kind.variances(np.stack([variances.blocks[at] for at in used[first : first + NODES_AT_ONCE]]))
                for first in range(0, len(used), NODES_AT_ONCE)
            ]
        )
        return cls(np.sqrt(np.where(by_block <= ROUNDING, 0.0, by_block)), which.reshape(-1))

    def rows(self, some: slice) -> Floats:
        """(node, cell of the cube in one area) of some of the nodes."""
        return self.by_block[self.which[some]]


def area_estimates(kind: Sums, estimates: Estimates, nodes: Integers) -> Floats:
    """The estimate of each cell of a cube in each of some nodes."""
    different, which = np.unique(nodes, return_inverse=True)
    histogram = estimates.covariances.plan.strategy.histogram
    return _estimated(estimates, kind, histogram, different)[which.reshape(-1)]


def standard_errors(kind: Sums, found: Covariances, nodes: Integers) -> Floats:
    """The standard error of each cell of a cube in each of some nodes, 0 where it is exact."""
    return Errors.of(kind, found, nodes).rows(slice(None))


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


def areas_of(chosen: HierarchicalMechanism, cube: Cube) -> int:
    """How many areas a cube has, all levels together."""
    return next((len(axis) for axis in cube.axes if axis.variable == chosen.hierarchy.geography), 1)


def _depths(axis: Breakdown, tree: Codelist) -> Iterator[tuple[str, int]]:
    yield axis.codes[0], 0
    for code in axis.codes[1:]:
        yield code, tree.depths[tree.position[code]]


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
        ratios = [matrix.shape[0] / matrix.shape[1] for matrix in self._matrices]
        self._fewest_first = np.argsort(
            ratios, kind="stable"
        ).tolist()  # what leaves the fewest cells to the rest

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
        for v in self._fewest_first:
            matrix = self._matrices[v]
            before, size, after = found.shape[: v + 1], found.shape[v + 1], found.shape[v + 2 :]
            out = np.zeros((prod(before), len(matrix), prod(after)))
            rows, columns = np.nonzero(matrix)
            _sum_along(np.ascontiguousarray(found).reshape(prod(before), size, -1), rows, columns, out)
            found = out.reshape(*before, len(matrix), *after)
        return self._ordered(found)

    def variances(self, covariances: Floats) -> Floats:
        """The variance of each cell of the cube in areas with these covariances, (area, subset, d, d)."""
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
        found = np.zeros((len(covariances), len(indicator), *(len(size) for size, _ in sizes)))
        for subset in range(covariances.shape[1]):
            part = (product(indicator, covariances[:, subset]) * indicator).sum(axis=-1)
            for v, (g, n) in enumerate(sizes):
                factor = g - g * g / n if subset >> v & 1 else g * g / n
                part = part[..., None] * factor
            found += part
        shape = [len(self._matrices[v]) for v in (*dense, *regular)]
        shaped = found.reshape(len(covariances), *shape)
        moved = np.moveaxis(shaped, range(1, shaped.ndim), [v + 1 for v in (*dense, *regular)])
        return self._ordered(moved)

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


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sum_along(x: Any, rows: Any, columns: Any, out: Any) -> None:
    """out[p, row] += x[p, column] for all pairs, in their order."""
    for p in range(x.shape[0]):
        for at in range(rows.size):
            row, column = rows[at], columns[at]
            for q in range(x.shape[2]):
                out[p, row, q] += x[p, column, q]


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
    cells, names = query_cells(chosen, query), query_columns(chosen, query)
    table = _text_columns(path, [rule.geography, *names, "lower", "upper"])
    area = _places(table[rule.geography], chosen.codes[-1])
    cell = _cells_of([table[name] for name in names], list(cells), len(table))
    problems = dict(_row_problems(table, area, cell))
    if problems:
        raise Mistakes(
            Problem(str(path), f"line {row + 2}", problems[row], "correct the line")
            for row in sorted(problems)[: NAMED * 4]
        )
    for name, found, unlisted in (("lower", lower, 0), ("upper", upper, UNBOUNDED)):
        text = table[name]
        given = pc.if_else(pc.equal(text, ""), str(unlisted), text).cast(pa.int64())
        found[area, cell] = given.to_numpy()
    return Bounds(query, lower, upper, tuple(", ".join(key) or query for key in cells))


def _text_columns(path: Path, wanted: Sequence[str]) -> pa.Table:
    """Some columns of a CSV file, as text."""
    try:
        with path.open("rb") as file:
            table = pa_csv.read_csv(
                file,
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(wanted, pa.string()), strings_can_be_null=False
                ),
                parse_options=pa_csv.ParseOptions(newlines_in_values=True),
            )
    except pa.ArrowException as broken:
        raise mistake(path, "lines", str(broken), "write a CSV file with one header") from None
    if missing := [name for name in wanted if name not in table.column_names]:
        raise mistake(path, "columns", f"no {', '.join(missing)}", f"name the columns {', '.join(wanted)}")
    return table.select(wanted).combine_chunks()


def _places(column: pa.ChunkedArray, labels: Sequence[str]) -> Integers:
    """The place of each text among the labels; -1 where it is none."""
    found = pc.index_in(column, value_set=pa.array(labels, pa.string()))
    return np.asarray(pc.fill_null(found, -1).to_numpy(), dtype=np.int64)


def _cells_of(columns: Sequence[pa.ChunkedArray], cells: Sequence[tuple[str, ...]], rows: int) -> Integers:
    """The cell of a query with the codes of each row; -1 where no cell has them."""
    labels = [list(dict.fromkeys(cell[at] for cell in cells)) for at in range(len(columns))]
    number = np.full([len(one) + 1 for one in labels], -1, dtype=np.int64)  # the last place is no code
    for at, cell in enumerate(cells):
        number[tuple(one.index(code) for one, code in zip(labels, cell, strict=True))] = at
    if not columns:
        return np.zeros(rows, dtype=np.int64)
    found: Integers = number[tuple(map(_places, columns, labels))]
    return found


def _row_problems(table: pa.Table, area: Integers, cell: Integers) -> Iterator[tuple[int, str]]:
    """The rows that cannot be used, each with the reason; the first reasons come last."""
    lower, upper = table["lower"], table["upper"]
    whole = {name: pc.match_substring_regex(table[name], WHOLE_NUMBER) for name in ("lower", "upper")}
    both = pc.and_(*(pc.and_(whole[name], pc.not_equal(table[name], "")) for name in whole)).to_numpy()
    rows = np.flatnonzero(both)
    low, high = (one.take(pa.array(rows)).cast(pa.int64()).to_numpy() for one in (lower, upper))
    for row in rows[low > high][: NAMED * 4].tolist():
        yield row, f"lower is {lower[row]}, above upper {upper[row]}"
    listed = np.flatnonzero((area >= 0) & (cell >= 0))
    _, first = np.unique(area[listed] * (cell.max(initial=0) + 1) + cell[listed], return_index=True)
    again = np.ones(len(listed), dtype=bool)
    again[first] = False
    for row in listed[again][: NAMED * 4].tolist():
        yield row, "bounds of this count were given above"
    for name in ("upper", "lower"):
        for row in np.flatnonzero(~whole[name].to_numpy())[: NAMED * 4].tolist():
            yield row, f"{name} is {table[name][row].as_py()!r}, no whole number"
    for wrong, reason in (
        (cell < 0, "no count of the query with these codes"),
        (area < 0, "no smallest area of this code"),
    ):
        for row in np.flatnonzero(wrong)[: NAMED * 4].tolist():
            yield row, reason


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
