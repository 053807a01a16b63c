"""What verify computes again of a hierarchical release: laws, standard errors, invariants; from public files only.

Sums over levels and margins are checked as those of all tables that add up (``release.additivity``).
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BrokenRelease, Mistakes
from discreet.formats.dataset import VALUE
from discreet.hierarchy.cubes import Sums, standard_errors
from discreet.hierarchy.measure import ancestors
from discreet.maths.tree.bounds import UNBOUNDED
from discreet.maths.tree.marginals import positions, size_of
from discreet.programme.hierarchical import Output
from discreet.programme.release import ReleaseFormat
from discreet.release.hierarchy import (
    BOUNDS,
    ERROR,
    ERROR_DIGITS,
    ESTIMATE,
    LOWER,
    PARAMETER,
    UPPER,
    VARIANCE,
    PublishedHierarchy,
    areas_of,
    estimates_place,
    interval,
    measured,
    measurements_place,
    published_hierarchy,
)
from discreet.release.hierarchy_cubes import PublishedCube
from discreet.release.manifest import CubeEntry, Manifest
from discreet.release.reader import CubeFile, Release
from discreet.release.verify_estimates import estimate_problems

NAMED = 5

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def hierarchy_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """What does not follow from the manifest, the areas and the bounds; all values are public ones."""
    found = published_hierarchy(Release(folder, manifest))
    if found is None:
        return
    try:
        wrong = [
            problem
            for level, query in (measured(found.plan) if Output.MEASUREMENTS in found.rule.outputs else ())
            for problem in _measurement_problems(found, level, query)
        ]
        yield from wrong
        checking = _Checking(found)
        for cube in manifest.cubes:
            counts = _Counts(found, cube)
            yield from checking.invariant_problems(counts)
            if Output.ESTIMATES in found.rule.outputs:
                yield from _estimate_problems(found, counts)
        if not wrong:
            yield from estimate_problems(found, manifest.cubes)
    except (BrokenRelease, Mistakes) as broken:
        yield str(broken)


class _Counts:
    """The whole counts of one cube, in its grid."""

    def __init__(self, found: PublishedHierarchy, entry: CubeEntry) -> None:
        self.entry, self.cube = entry, PublishedCube(found, entry)
        self.codes, self.shape = self.cube.codes, self.cube.shape
        self.values = np.zeros(int(np.prod(self.shape)), dtype=np.int64)
        file = entry.file(ReleaseFormat.PARQUET)
        if file is not None:
            for rows in CubeFile(entry, found.release.folder / file.path, self.codes).parts():
                self.values[rows.cells] = rows.values

    def named(self, cell: int) -> str:
        """The codes of a cell, for messages."""
        along = np.unravel_index(cell, self.shape)
        names = (axis.variable for axis in self.entry.axes)
        return ", ".join(
            f"{name}={codes[at]}" for name, codes, at in zip(names, self.codes, along, strict=True)
        )


@dataclass(frozen=True, eq=False)
class _Checking:
    """The invariants of a published hierarchy."""

    found: PublishedHierarchy

    def invariant_problems(self, counts: _Counts) -> Iterator[str]:
        """No count is negative, above zero in a structural zero, or outside of the public bounds."""
        sums, nodes = counts.cube.sums, counts.cube.nodes
        histogram = self.found.plan.strategy.histogram
        possible = sums.summed(histogram.possible.reshape(1, -1).astype(np.float64))[0] > 0
        lower = np.zeros((len(nodes), sums.cells))
        upper = np.where(possible, float(UNBOUNDED), 0.0) + lower
        yield from _outside(counts, sums, lower, upper, "a structural zero, or below zero")
        bounds = self.bounds
        if bounds is not None:
            low, high = bounds.of(sums, nodes)
            yield from _outside(counts, sums, low, np.minimum(high, upper), f"not within {BOUNDS}")

    @cached_property
    def bounds(self) -> _PublicBounds | None:
        """The public bounds of every node."""
        declared = self.found.rule.bounds
        if declared is None:
            return None
        try:
            content = self.found.bounds.read_bytes()
        except OSError:
            content = b""
        if hashlib.sha256(content).hexdigest() != declared.sha256:
            raise BrokenRelease(f"{BOUNDS}: not the bounds that the manifest states")
        try:
            return _read_bounds(self.found, declared.query)
        except (KeyError, ValueError, OverflowError, csv.Error):
            raise BrokenRelease(f"{BOUNDS}: not bounds of the areas and categories of this release") from None


@dataclass(frozen=True, eq=False)
class _PublicBounds:
    """Bounds of each cell of a query in each node, and the cells of the histogram that each one sums."""

    lower: Floats  # (node, cell of the query)
    upper: Floats
    members: Floats  # (cell of the query, cell of the histogram in row-major order)

    def of(self, sums: Sums, nodes: Integers) -> tuple[Floats, Floats]:
        """What the cells of a cube can be: at least the query cells within them, at most those that they meet."""
        common = sums.summed(self.members)  # (cell of the query, cell of the cube)
        within = common == self.members.sum(axis=1)[:, None]
        return self.lower[nodes] @ within, np.minimum(self.upper[nodes] @ (common > 0), UNBOUNDED)


def _read_bounds(found: PublishedHierarchy, query: str) -> _PublicBounds:
    plan, known = found.plan, found.categories
    histogram = plan.strategy.histogram
    place = positions(histogram.basis, histogram.marginal(query))
    size = size_of(histogram.basis, histogram.marginal(query))
    here = np.flatnonzero(histogram.possible)
    members = np.zeros((size, len(histogram.place)))
    members[place[histogram.place[here]], here] = 1
    names = [axis.name for axis in histogram.axes]
    columns = () if query == "total" else tuple(names) if query == "detailed" else tuple(query.split("*"))
    of = {one.name: one.variable for one in histogram.groupings}
    codes = np.unravel_index(here, histogram.shape)
    cell_of: dict[tuple[str, ...], int] = {}
    labels = []
    for column in columns:
        variable = of.get(column, column)
        mapped = known.get((variable, column if column in of else ""), {})
        listed = [mapped[code] for code in known[variable, ""]]
        labels.append([listed[at] for at in codes[names.index(variable)].tolist()])
    for number, position in enumerate(here.tolist()):
        cell_of[tuple(one[number] for one in labels)] = int(place[histogram.place[position]])
    areas = {code: at for at, code in enumerate(found.areas[1][-1])}
    lower, upper = np.zeros((len(areas), size)), np.full((len(areas), size), float(UNBOUNDED))
    with found.bounds.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            cell = areas[row[found.rule.geography]], cell_of[tuple(row[name] for name in columns)]
            lower[cell], upper[cell] = int(row["lower"] or 0), int(row["upper"] or UNBOUNDED)
    up = ancestors(plan.spine)
    return _PublicBounds(up @ lower, np.minimum(up @ upper, UNBOUNDED), members)


def _outside(counts: _Counts, sums: Sums, lower: Floats, upper: Floats, what: str) -> Iterator[str]:
    low, high = sums.placed(lower), sums.placed(upper)
    wrong = np.flatnonzero((counts.values < low) | (counts.values > high))
    for cell in wrong[:NAMED].tolist():
        yield f"cube {counts.entry.id}: {counts.named(cell)} is {counts.values[cell]}: {what}"


def _measurement_problems(found: PublishedHierarchy, level: str, query: str) -> Iterator[str]:
    """Every measured area has all cells of the query, once, with the noise that the strategy gives it."""
    where = measurements_place(level, query)
    table, plan = found.measurements(level, query), found.plan
    names = (found.rule.geography, VALUE, PARAMETER, VARIANCE)
    if missing := [name for name in names if name not in table.column_names]:
        yield f"{where}: no column {missing[0]}"
        return
    number = plan.spine.levels.index(level)
    histogram = plan.strategy.histogram
    width = size_of(histogram.basis, histogram.marginal(query))
    expected: dict[str, tuple[str, float]] = {}
    for code, node in zip(found.areas[1][number], plan.spine.node_of[number].tolist(), strict=True):
        kind = plan.kinds[plan.kind_of[node]]
        if kind.bottom == number and query in kind.queries:
            at = kind.queries.index(query)
            expected[code] = str(kind.laws[at].parameter), kind.variances[at]
    try:
        areas = areas_of(table, found.rule.geography, width)
    except ValueError:
        areas = []
    if len(areas) != len(expected) or set(areas) != set(expected):
        yield f"{where}: not {width} counts of each of the {len(expected)} areas that are measured"
        return
    parameters = table[PARAMETER].to_pylist()
    variances = table[VARIANCE].to_numpy()
    for row, code in enumerate(table[found.rule.geography].to_pylist()):
        parameter, variance = expected[code]
        if parameters[row] != parameter or abs(variances[row] - variance) > 1e-9 * variance:
            yield f"{where}: {code}: its noise is not that of the strategy, {parameter}"
            return


def _estimate_problems(found: PublishedHierarchy, counts: _Counts) -> Iterator[str]:
    """All cells in their order, with the published counts, the errors of the strategy and their intervals."""
    entry, codes = counts.entry, counts.codes
    where = estimates_place(entry.id, ReleaseFormat.PARQUET)
    table = found.estimates(entry.id)
    names = [axis.variable for axis in entry.axes]
    places = np.unravel_index(np.arange(len(table)), counts.shape)
    for name, own, along in zip(names, codes, places, strict=True):
        if not np.array_equal(
            np.array(table[name].to_pylist(), dtype=object), np.array(own, dtype=object)[along]
        ):
            yield f"{where}: the codes of {name} are not in their order"
            return
    value, estimate, error = (table[name].to_numpy() for name in (VALUE, ESTIMATE, ERROR))
    if not np.array_equal(value, counts.values):
        yield f"{where}: its counts are not those of the cube"
    sums = counts.cube.sums
    computed = sums.placed(standard_errors(sums, found.covariances, counts.cube.nodes))
    wrong = np.flatnonzero(np.abs(error - computed) > 0.51 * 10.0**-ERROR_DIGITS)
    for cell in wrong[:NAMED].tolist():
        yield (
            f"{where}: {counts.named(cell)}: the standard error is {computed[cell]:.{ERROR_DIGITS}f} by the "
            f"strategy, and published as {error[cell]:g}"
        )
    lower, upper = interval(estimate, error)
    if not (
        np.allclose(table[LOWER].to_numpy(), lower, atol=2e-3)
        and np.allclose(table[UPPER].to_numpy(), upper, atol=2e-3)
    ):
        yield f"{where}: an interval is not that of its estimate and standard error"
    wrong = np.flatnonzero((error == 0) & (value != estimate))
    for cell in wrong[:NAMED].tolist():
        yield f"{where}: {counts.named(cell)} is exact, {estimate[cell]:g}, and published as {value[cell]}"
