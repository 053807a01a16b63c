"""The further files of a hierarchical release: its areas, its noisy measurements and the estimates of every cube.

``hierarchy/areas.csv`` has the tree of areas, ``measurements/`` a Parquet file per level and query, ``estimates/`` a
Parquet and a CSV file per cube. From the areas and the manifest every law of noise follows, so that ``verify`` can
compute all variances again.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.errors import BrokenRelease, Mistakes
from discreet.formats.dataset import VALUE
from discreet.hierarchy.cubes import CubeEstimates
from discreet.hierarchy.estimate import Covariances, covariances, known_totals
from discreet.hierarchy.measure import Plan, Siblings, Stored, plan_of
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.hierarchy.spine import spine_of
from discreet.io.files import UNREADABLE
from discreet.lazy import lazily
from discreet.maths.tree.marginals import size_of
from discreet.programme.cube import Cube
from discreet.programme.hierarchical import HierarchyRule, groups_of
from discreet.programme.release import ReleaseFormat
from discreet.release.folder import ReleaseFolder
from discreet.release.manifest import FileEntry
from discreet.release.reader import Release, read_rows
from discreet.tabulate.tables import ProtectedTable

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")

AREAS = "hierarchy/areas.csv"
AREA_COLUMNS = ("level", "code", "parent")
CATEGORIES = "hierarchy/categories.csv"
CATEGORY_COLUMNS = ("variable", "category", "breakdown", "code")
BOUNDS = "hierarchy/bounds.csv"
CONFIDENCE = 0.95
DIGITS = 3  # decimals of estimates and intervals
ERROR_DIGITS = 4  # of standard errors
ESTIMATE, ERROR, LOWER, UPPER = "estimate", "standard_error", "lower", "upper"
PARAMETER, VARIANCE = "parameter", "variance"
NUMBERS = (VALUE, ESTIMATE, ERROR, LOWER, UPPER, VARIANCE)  # columns of numbers; all others are texts
ROWS_AT_ONCE = 1 << 20
NAMED = 5

Floats = NDArray[np.float64]


def estimates_place(cube: str, form: ReleaseFormat) -> str:
    """The path of a cube's estimates."""
    return f"estimates/{cube}.{'csv' if form is ReleaseFormat.CSV else 'parquet'}"


def measurements_place(level: str, query: str) -> str:
    """The path of the noisy counts of one query at one level."""
    return f"measurements/{level}/{query.replace('*', '_x_')}.parquet"


def write_areas(folder: ReleaseFolder, chosen: HierarchicalMechanism) -> FileEntry:
    """Write the tree of areas: level, code and the code of the parent at the level above."""
    tree = chosen.statistics.codelists[chosen.hierarchy.geography]
    parents, codes = chosen.hierarchy.area_parents(tree)

    def write(path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(AREA_COLUMNS)
            for at, level in enumerate(chosen.hierarchy.levels):
                above = (
                    [""] * len(codes[at]) if not at else [codes[at - 1][p] for p in parents[at - 1].tolist()]
                )
                writer.writerows((level, code, parent) for code, parent in zip(codes[at], above, strict=True))

    return folder.write(AREAS, write)


def write_categories(
    folder: ReleaseFolder, chosen: HierarchicalMechanism, cubes: Sequence[Cube]
) -> FileEntry:
    """Write the categories of the histogram in their order, and the code of each in every breakdown that has it."""
    rows: list[tuple[str, str, str, str]] = []
    for fine in chosen.leaf.axes[1:]:
        name, categories = fine.variable, fine.codes[1:]
        rows += [(name, code, "", code) for code in categories]
        for axis in {
            one.full_name: one for cube in cubes for one in cube.axes if one.variable == name
        }.values():
            groups = groups_of(fine, axis)
            nodes = [] if groups is None else groups.tolist()
            rows += [
                (name, code, axis.full_name, axis.codes[node])
                for code, node in zip(categories, nodes, strict=True)
            ]
        for one in chosen.plan.strategy.histogram.groupings:
            if one.variable == name:
                labels = [chosen.group_codes[one.name][group] for group in one.groups]
                rows += [
                    (name, code, one.name, label) for code, label in zip(categories, labels, strict=True)
                ]

    def write(path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([CATEGORY_COLUMNS, *dict.fromkeys(rows)])

    return folder.write(CATEGORIES, write)


def write_bounds(folder: ReleaseFolder, rule: HierarchyRule) -> Iterator[FileEntry]:
    """Publish the declared bounds, where there are some, as they were given."""
    if rule.bounds is not None:
        yield folder.write(BOUNDS, partial(_copied, Path(rule.bounds.path)))


def _copied(source: Path, path: Path) -> None:
    path.write_bytes(source.read_bytes())


def measured(plan: Plan) -> list[tuple[str, str]]:
    """Every level and query that some area is measured by."""
    levels = plan.spine.levels
    used = sorted({int(kind) for kind in np.unique(plan.kind_of)}, key=lambda kind: plan.kinds[kind].bottom)
    pairs = ((levels[plan.kinds[kind].bottom], query) for kind in used for query in plan.kinds[kind].queries)
    return list(dict.fromkeys(pairs))


def coded(labels: Sequence[str], index: NDArray[np.integer[Any]]) -> pa.Array:
    """A column of codes, as a dictionary."""
    return pa.DictionaryArray.from_arrays(
        pa.array(index.astype(np.int32, copy=False)), pa.array(list(labels), pa.string())
    )


def write_estimates(
    folder: ReleaseFolder,
    cube: Cube,
    parts: Iterable[CubeEstimates],
    table: ProtectedTable,
    formats: Sequence[ReleaseFormat],
) -> tuple[FileEntry, ...]:
    """Write the estimates of every cell of a cube beside its whole counts, as Parquet and where declared as CSV.

    One part of the cube is in memory at a time.
    """
    forms = [ReleaseFormat.PARQUET, *(form for form in formats if form is ReleaseFormat.CSV)]
    places = [estimates_place(cube.id, form) for form in forms]

    def write(paths: Sequence[Path]) -> None:
        made = (estimates_table(part, table) for part in parts)
        first = next(made)
        with ExitStack() as opened:
            binary = opened.enter_context(pq.ParquetWriter(paths[0], first.schema))
            text = [opened.enter_context(pa_csv.CSVWriter(path, _plain(first).schema)) for path in paths[1:]]
            for one in chain([first], made):
                binary.write_table(one, row_group_size=ROWS_AT_ONCE)
                for writer in text:
                    writer.write_table(_plain(one))

    return folder.write_together(places, write)


def _plain(table: pa.Table) -> pa.Table:
    """The same without dictionaries, which CSV does not have."""
    text = [
        column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.table(dict(zip(table.column_names, text, strict=True)))


def estimates_table(part: CubeEstimates, table: ProtectedTable) -> pa.Table:
    """Some cells of a cube in their order: codes, whole count, estimate, standard error and a 95 % interval."""
    cube, cells = part.cube, np.arange(part.first, part.first + len(part.values))
    counts = np.zeros(len(cells), dtype=np.int64)
    listed = slice(*np.searchsorted(table.cells, [part.first, part.first + len(cells)]))
    counts[table.cells[listed] - part.first] = table.values[listed]
    estimate, error = np.round(part.values, DIGITS) + 0.0, np.round(part.errors, ERROR_DIGITS)
    lower, upper = interval(estimate, error)
    columns = {
        axis.variable: _coded_nodes(axis.codes, cube.nodes(cells, k)) for k, axis in enumerate(cube.axes)
    }
    return pa.table(
        {**columns, VALUE: counts, ESTIMATE: estimate, ERROR: error, LOWER: lower, UPPER: upper}
    ).replace_schema_metadata({"confidence": str(CONFIDENCE)})


def _coded_nodes(codes: Sequence[str], nodes: NDArray[np.int64]) -> pa.Array:
    """A column of codes; its dictionary has those between the first and the last only."""
    first, last = int(nodes.min()), int(nodes.max())
    return coded(codes[first : last + 1], nodes - first)


def interval(estimate: Floats, error: Floats, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
    """The normal interval of an estimate, never below 0: a count is not."""
    reach = float(special.ndtri((1 + confidence) / 2)) * error
    lower, upper = np.round(estimate - reach, DIGITS), np.round(estimate + reach, DIGITS)
    return np.maximum(lower, 0.0), np.maximum(upper, 0.0)


@dataclass(frozen=True, eq=False)
class PublishedHierarchy:
    """The measurements and estimates of a release, read from its public files."""

    release: Release
    rule: HierarchyRule

    @cached_property
    def areas(self) -> tuple[list[NDArray[np.int64]], list[tuple[str, ...]]]:
        """Parents of each area by level but the first, and codes by level."""
        path = self.release.folder / AREAS
        rows = read_rows(path)
        if not rows or tuple(rows[0]) != AREA_COLUMNS or any(len(row) != len(AREA_COLUMNS) for row in rows):
            raise BrokenRelease(f"{AREAS}: not a list of level,code,parent; fetch the release again")
        codes = [tuple(row[1] for row in rows[1:] if row[0] == level) for level in self.rule.levels]
        place = [{code: at for at, code in enumerate(one)} for one in codes]
        if any(len(known) != len(one) for known, one in zip(place, codes, strict=True)):
            raise BrokenRelease(f"{AREAS}: an area is there twice; fetch the release again")
        try:
            parents = [
                np.array([place[at][row[2]] for row in rows[1:] if row[0] == level], dtype=np.int64)
                for at, level in enumerate(self.rule.levels[1:])
            ]
        except KeyError:
            raise BrokenRelease(f"{AREAS}: an area has an unknown parent; fetch the release again") from None
        return parents, codes

    @cached_property
    def plan(self) -> Plan:
        """What was measured where, by the manifest and the areas."""
        try:
            spine = spine_of(self.rule.levels, *self.areas, self.rule.bypass)
            return plan_of(spine, self.rule.strategy)
        except Mistakes as wrong:
            raise BrokenRelease(f"{AREAS}: {wrong}") from None

    @cached_property
    def categories(self) -> dict[tuple[str, str], dict[str, str]]:
        """(variable, breakdown) -> category -> its code there; the breakdown "" has the categories themselves."""
        path = self.release.folder / CATEGORIES
        rows = read_rows(path)
        if not rows or tuple(rows[0]) != CATEGORY_COLUMNS or any(len(row) != len(rows[0]) for row in rows):
            raise BrokenRelease(
                f"{CATEGORIES}: not a list of {','.join(CATEGORY_COLUMNS)}; fetch the release again"
            )
        found: dict[tuple[str, str], dict[str, str]] = {}
        for variable, category, breakdown, code in rows[1:]:
            found.setdefault((variable, breakdown), {})[category] = code
        for axis in self.rule.strategy.histogram.axes:
            if len(found.get((axis.name, ""), ())) != axis.size:
                raise BrokenRelease(f"{CATEGORIES}: not {axis.size} categories of {axis.name}")
        return found

    @cached_property
    def covariances(self) -> Covariances:
        """Of all estimates, by the strategy and the areas; no data are needed."""
        return covariances(self.plan, known_totals(self.plan.spine, self.rule.totals))

    @property
    def bounds(self) -> Path:
        """The file of public bounds."""
        return self.release.folder / BOUNDS

    def measurements(self, level: str, query: str) -> pa.Table:
        """The noisy counts of one query at one level."""
        return _read(self.release.folder / measurements_place(level, query))

    @cached_property
    def stored(self) -> Stored:
        """All published measurements, by the parents of their areas: what estimates and counts are fitted to."""
        plan = self.plan
        basis = plan.strategy.histogram.basis
        read: dict[tuple[int, str], NDArray[np.int32]] = {}
        for level, query in measured(plan):
            number = plan.spine.levels.index(level)
            width = size_of(basis, plan.strategy.histogram.marginal(query))
            table = self.measurements(level, query)
            place = {code: at for at, code in enumerate(self.areas[1][number])}
            of = [k for k, kind in enumerate(plan.kinds) if kind.bottom == number and query in kind.queries]
            wanted = np.flatnonzero(np.isin(plan.kind_of[plan.spine.node_of[number]], of))
            try:
                areas = [place[code] for code in areas_of(table, self.rule.geography, width)]
                values = table[VALUE].to_numpy().reshape(len(wanted), width)
            except (KeyError, ValueError):  # a column, an area or rows that the query does not have
                raise _not_its_cells(level, query) from None
            if not np.array_equal(np.sort(areas), wanted):
                raise _not_its_cells(level, query)
            rows = np.zeros((len(place), width), dtype=np.int32)
            rows[areas] = values
            read[number, query] = rows
        area = np.zeros(len(plan.spine), dtype=np.int64)
        for nodes in plan.spine.node_of:  # the last one of equal areas is the measured one
            area[nodes] = np.arange(len(nodes))
        siblings = {
            parent: [
                Siblings(
                    nodes, number, tuple(read[kind.bottom, query][area[nodes]] for query in kind.queries)
                )
                for nodes, number in plan.classes(parent)
                for kind in [plan.kinds[number]]
            ]
            for parent in [-1, *plan.spine.inner.tolist()]
        }
        return Stored(plan, siblings)

    def estimates(self, cube: str) -> pa.Table:
        """The estimates of all cells of a cube."""
        path = self.release.folder / estimates_place(cube, ReleaseFormat.PARQUET)
        table, axes = _read(path), self.release.cube(cube).axes
        wanted = [*(axis.variable for axis in axes), VALUE, ESTIMATE, ERROR, LOWER, UPPER]
        if table.column_names != wanted or len(table) != prod(axis.codes for axis in axes):
            raise BrokenRelease(f"{path}: not the columns and cells of cube {cube}; fetch the release again")
        return table

    def estimated(self, cube: str) -> Floats:
        """The estimates of all cells of a cube and their standard errors, as two rows."""
        table = self.estimates(cube)
        return np.stack([table[ESTIMATE].to_numpy(), table[ERROR].to_numpy()])


def published_hierarchy(release: Release) -> PublishedHierarchy | None:
    """The hierarchy of a release; None where it has none."""
    rule = release.noise.hierarchy
    return None if rule is None else PublishedHierarchy(release, rule)


def areas_of(table: pa.Table, geography: str, width: int) -> list[str]:
    """The areas of measurements, each of which has so many rows one after the other; otherwise a ValueError."""
    coded = table[geography].dictionary_encode().unify_dictionaries().combine_chunks()
    if coded.null_count:
        raise ValueError("a row without an area")
    rows = coded.indices.to_numpy().reshape(-1, width)
    if (rows != rows[:, :1]).any():
        raise ValueError("rows of an area are not together")
    areas: list[str] = coded.dictionary.take(pa.array(rows[:, 0])).to_pylist()
    return areas


def _not_its_cells(level: str, query: str) -> BrokenRelease:
    return BrokenRelease(
        f"{measurements_place(level, query)}: not the cells of its query; fetch the release again"
    )


def _read(path: Path) -> pa.Table:
    try:
        table = pq.read_table(path.absolute())
        table.validate(full=True)  # damaged pages have codes beyond the dictionary
    except FileNotFoundError:
        raise BrokenRelease(f"{path}: missing; the release does not publish it") from None
    except UNREADABLE:
        raise BrokenRelease(f"{path}: not readable as Parquet; fetch the release again") from None
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not (_is_number(column) if name in NUMBERS else _is_text(column)):
            raise BrokenRelease(
                f"{path}: the column {name} has gaps or another type; fetch the release again"
            )
    return table


def _is_number(column: pa.ChunkedArray) -> bool:
    if pa.types.is_integer(column.type):
        return not column.null_count
    return (
        pa.types.is_floating(column.type)
        and not column.null_count
        and bool(np.isfinite(column.to_numpy()).all())
    )


def _is_text(column: pa.ChunkedArray) -> bool:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(pa.types.is_string(kind) and not column.null_count)
