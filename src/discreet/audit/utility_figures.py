"""Errors and additivity gaps added up in several ways, with their means, shares and quantiles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.audit.cells import OwnedTable, Way, ways
from discreet.maths.additivity import Gaps
from discreet.maths.cells.alignment import Integers
from discreet.maths.noise.law import Floats
from discreet.maths.utility import (
    CellErrors,
    Measure,
    absolute_quantiles,
    class_names,
    hellinger,
    hellinger_of_counts,
    relative_quantiles,
)

LOSSES = (Measure.L1, Measure.L2, Measure.L3)


@dataclass(frozen=True, eq=False)
class ErrorFigures:
    """The errors of some cells, realised and expected by the law."""

    cells: int
    realised: dict[Measure, float]  # sums
    expected: dict[Measure, float] | None
    absolute: dict[float, int | None]  # quantiles of abs(b - a)
    relative: dict[float, float | None]  # quantiles of abs(b - a) / a
    is_empty: bool = False  # cells whose true count is zero

    def mean(self, measure: Measure) -> float | None:
        """The mean over the cells; of UNCHANGED, ZERO and POSITIVE that is a share."""
        return self.realised[measure] / self.cells if self.cells else None

    def expected_mean(self, measure: Measure) -> float | None:
        """The mean expected by the law."""
        return self.expected[measure] / self.cells if self.expected and self.cells else None

    def as_json(self) -> Mapping[str, object]:
        """The document: sums, means and quantiles by name."""
        wrong = ("false_positives", Measure.POSITIVE) if self.is_empty else ("false_zeros", Measure.ZERO)
        named = {
            "share_unchanged": Measure.UNCHANGED,
            f"share_{wrong[0]}": wrong[1],
            "bias": Measure.BIAS,
            **{f"mean_{loss.name.lower()}": loss for loss in LOSSES},
        }
        return {
            "cells": self.cells,
            wrong[0]: round(self.realised[wrong[1]]),
            **{f"total_{loss.name.lower()}": self.realised[loss] for loss in LOSSES},
            **{name: self.mean(measure) for name, measure in named.items()},
            **{f"expected_{name}": self.expected_mean(measure) for name, measure in named.items()},
            "absolute_error": self.absolute,
            "relative_error": self.relative,
        }


@dataclass(frozen=True, eq=False)
class ErrorComparison:
    """Some cross-tabulations: cells that are not empty, by size class, and the empty ones."""

    occupied: ErrorFigures
    classes: dict[str, ErrorFigures]  # by true count; "0" are the empty cells
    hellinger: float | None  # of relative frequencies, mean over the cross-tabulations
    hellinger_of_counts: float | None  # as Rinott et al. 2018 define it, mean over the cross-tabulations

    def headline(self) -> dict[str, float | None]:
        """The numbers by which releases are compared."""
        cells, empty = self.occupied, self.classes["0"]
        return {
            "mean_l1": cells.mean(Measure.L1),
            "mean_l2": cells.mean(Measure.L2),
            "mean_l3": cells.mean(Measure.L3),
            "hellinger": self.hellinger,
            "hellinger_of_counts": self.hellinger_of_counts,
            "share_unchanged": cells.mean(Measure.UNCHANGED),
            "share_false_zeros": cells.mean(Measure.ZERO),
            "share_false_positives": empty.mean(Measure.POSITIVE),
            **{f"absolute_error_{share}": value for share, value in cells.absolute.items()},
            **{f"relative_error_{share}": value for share, value in cells.relative.items()},
        }


@dataclass(frozen=True)
class Margin:
    """One cross-tabulation."""

    counted: str
    levels: str
    cube: str
    cells: int  # that are not empty
    mean_l1: float | None
    share_unchanged: float | None
    hellinger: float
    hellinger_of_counts: float


@dataclass(frozen=True, eq=False)
class ErrorWays:
    """The errors against the true counts before or after swapping."""

    total: ErrorComparison
    universes: dict[str, ErrorComparison]
    cubes: dict[str, ErrorComparison]
    axes: dict[int, ErrorComparison]
    levels: dict[str, ErrorComparison]
    margins: tuple[Margin, ...]

    def document(self, listed: int) -> Mapping[str, object]:
        """The whole as JSON, and the worst cross-tabulations by their Hellinger distance."""
        worst = sorted(self.margins, key=lambda margin: -margin.hellinger)[:listed]
        return {
            "total": self.total,
            "by_universe": self.universes,
            "by_cube": {name: one.headline() for name, one in self.cubes.items()},
            "by_axes": dict(sorted(self.axes.items())),
            "by_level": dict(sorted(self.levels.items())),
            "cross_tabulations": len(self.margins),
            "worst_cross_tabulations": worst,
        }


@dataclass(eq=False)
class _Added:
    """The sums of one way; shapes without the cross-tabulation."""

    cells: Integers
    sums: Floats
    absolute: Integers
    relative: Integers
    expected: Floats
    distances: Floats  # of relative frequencies, of counts
    crosstabs: int = 0


@dataclass(frozen=True, eq=False)
class CrosstabsByWay:
    """The cross-tabulations of a table in groups that are added in the same ways."""

    group: Integers  # cross-tabulation -> its group; those that show nothing new are in the first
    groups: dict[Way, list[int]]  # way -> the groups that are added in it
    new: Integers  # the cross-tabulations that show new cells

    def members(self, groups: list[int]) -> Integers:
        """The cross-tabulations of some groups that show new cells, ascending."""
        return self.new[np.isin(self.group[self.new], groups)]


def crosstabs_by_way(owned: OwnedTable, areas: tuple[str, ...]) -> CrosstabsByWay:
    """Group the cross-tabulations of a table."""
    group = np.zeros(len(owned.owned), dtype=np.int64)
    numbers: dict[tuple[Way, ...], int] = {}
    for c in owned.new:
        group[c] = numbers.setdefault(tuple(ways(owned, owned.levels(c), areas)), len(numbers))
    groups: dict[Way, list[int]] = {}
    for every, number in numbers.items():
        for way in every:
            groups.setdefault(way, []).append(number)
    return CrosstabsByWay(group, groups, np.array(owned.new, dtype=np.int64))


@dataclass(eq=False)
class WaySums:
    """The sums of errors against the true counts before or after swapping, while tables are added."""

    edges: tuple[int, ...]
    quantiles: tuple[float, ...]
    areas: tuple[str, ...]
    added: dict[Way, _Added] = field(default_factory=dict)
    margins: list[Margin] = field(default_factory=list)
    has_expected: bool = False

    def add(
        self, owned: OwnedTable, errors: CellErrors, expected: Floats | None, grouped: CrosstabsByWay
    ) -> None:
        """Add a table's cross-tabulations."""
        self.has_expected |= expected is not None
        expected = np.zeros_like(errors.sums) if expected is None else expected
        distances = np.stack([hellinger(errors.overlap), hellinger_of_counts(errors.overlap)], axis=1)
        for way, groups in grouped.groups.items():
            crosstabs = grouped.members(groups)
            one = self.added.get(way) or self._nothing(errors)
            self.added[way] = _Added(
                one.cells + errors.cells[crosstabs].sum(axis=0),
                _added(one.sums, errors.sums[crosstabs]),
                one.absolute + errors.absolute[groups].sum(axis=0),
                one.relative + errors.relative[groups].sum(axis=0),
                _added(one.expected, expected[crosstabs]),
                _added(one.distances, distances[crosstabs]),
                one.crosstabs + len(crosstabs),
            )
        cells, sums = errors.cells[:, 1:].sum(axis=1).tolist(), errors.sums[:, 1:].sum(axis=1)
        for c in owned.new:
            self.margins.append(_margin(owned, c, cells[c], sums[c], distances[c]))

    def ways(self) -> ErrorWays:
        """Everything added up."""
        whole = self.added.get(("total", ""), self._blank())
        return ErrorWays(
            self._comparison(whole),
            self._all("universes"),
            self._all("cubes"),
            self._all("axes"),
            self._all("levels"),
            tuple(self.margins),
        )

    def _all(self, name: str) -> dict[Any, ErrorComparison]:
        return {way[1]: self._comparison(one) for way, one in self.added.items() if way[0] == name}

    def _nothing(self, errors: CellErrors) -> _Added:
        cells, sums, absolute, relative = (
            np.zeros_like(part[0]) for part in (errors.cells, errors.sums, errors.absolute, errors.relative)
        )
        return _Added(cells, sums, absolute, relative, np.zeros_like(sums), np.zeros(2))

    def _blank(self) -> _Added:
        k = len(self.edges) + 1
        whole, real = np.zeros((k, 1), dtype=np.int64), np.zeros((k, len(Measure)))
        return _Added(whole[:, 0], real, whole, whole, real, np.zeros(2))

    def _comparison(self, one: _Added) -> ErrorComparison:
        names = class_names(self.edges)
        classes = {name: self._figures(one, slice(k, k + 1)) for k, name in enumerate(names)}
        means = (distance / one.crosstabs if one.crosstabs else None for distance in one.distances.tolist())
        return ErrorComparison(self._figures(one, slice(1, None)), classes, *means)

    def _figures(self, one: _Added, some: slice) -> ErrorFigures:
        absolute, relative = (bins[some].sum(axis=0) for bins in (one.absolute, one.relative))
        return ErrorFigures(
            int(one.cells[some].sum()),
            _by_measure(one.sums[some]),
            _by_measure(one.expected[some]) if self.has_expected else None,
            dict(zip(self.quantiles, absolute_quantiles(absolute, self.quantiles), strict=True)),
            dict(zip(self.quantiles, relative_quantiles(relative, self.quantiles), strict=True)),
            is_empty=some.start == 0,
        )


def _added(first: Floats, others: Floats) -> Floats:
    """The sum of arrays, one after the other, so that the result does not depend on how many come at once."""
    whole: Floats = np.concatenate([first[np.newaxis], others]).sum(axis=0, dtype=first.dtype)
    return whole


def _margin(owned: OwnedTable, c: int, cells: int, sums: Floats, distances: Floats) -> Margin:
    mean_l1, unchanged = (float(sums[m]) / cells if cells else None for m in (Measure.L1, Measure.UNCHANGED))
    name = owned.crosstab_name(c)
    return Margin(
        owned.universe.counted, name, owned.table.id, cells, mean_l1, unchanged, *distances.tolist()
    )


def _by_measure(sums: Floats) -> dict[Measure, float]:
    return dict(zip(Measure, sums.sum(axis=0).tolist(), strict=True))


@dataclass(frozen=True)
class GapFigures:
    """Totals along an axis against the sums of their parts."""

    totals: int
    open: int  # totals that are not the sum
    mean: float | None  # of abs(total - sum)
    rmse: float | None
    expected_rmse: float | None  # None where the noise is not known
    largest: int

    @property
    def share_open(self) -> float | None:
        """The share of totals that are not the sum of their parts."""
        return self.open / self.totals if self.totals else None

    def as_json(self) -> Mapping[str, object]:
        """The document, with the share of open totals."""
        return {**vars(self), "share_open": self.share_open}


@dataclass(eq=False)
class GapSums:
    """Gaps by axis, while tables are added."""

    sums: dict[str, Floats] = field(default_factory=dict)
    largest: dict[str, int] = field(default_factory=dict)
    has_expected: bool = True

    def add(self, variable: str, judged: Gaps, *, has_expected: bool) -> None:
        """Add a table's gaps along one axis."""
        self.has_expected &= has_expected
        self.sums[variable] = self.sums.get(variable, np.zeros(5)) + judged.sums.sum(axis=0)
        self.largest[variable] = max(self.largest.get(variable, 0), int(judged.largest.max(initial=0)))

    def figures(self) -> dict[str, GapFigures]:
        """Everything added up."""
        return {name: self._figure(sums, self.largest[name]) for name, sums in sorted(self.sums.items())}

    def _figure(self, sums: Floats, largest: int) -> GapFigures:
        totals = float(sums[Gaps.TOTALS])
        if not totals:
            return GapFigures(0, 0, None, None, None, 0)
        expected = math.sqrt(sums[Gaps.EXPECTED] / totals) if self.has_expected else None
        mean, rmse = float(sums[Gaps.SIZE]) / totals, math.sqrt(sums[Gaps.SQUARE] / totals)
        return GapFigures(round(totals), round(float(sums[Gaps.OPEN])), mean, rmse, expected, largest)
