"""The numbers of disclosures and their shares, added up in several ways; it finds none itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np

from discreet.audit.once import OwnedTable, Way, ways
from discreet.maths.aligned import Integers
from discreet.maths.disclosure import Column, RowKind, Tallies


@dataclass(frozen=True)
class Tally:
    """One kind of disclosure: seen in the published tables; None where the truth was not at hand."""

    seen: int
    original: int | None = None  # in the true tables before swapping
    counted: int | None = None  # in the true tables after swapping
    true: int | None = None  # of those seen, so before swapping
    true_counted: int | None = None  # of those seen, so after swapping
    kept: int | None = None  # of those before swapping, still seen

    @property
    def share_true(self) -> float | None:
        """The share of those seen that are true: what an attacker who believes them is right in."""
        return _share(self.true, self.seen)

    @property
    def share_true_counted(self) -> float | None:
        """The same against the swapped records: what noise alone leaves."""
        return _share(self.true_counted, self.seen)

    @property
    def share_kept(self) -> float | None:
        """The share of the true ones that are still seen."""
        return _share(self.kept, self.original)

    def summary(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        if self.true is None:
            return {"seen": self.seen}
        shares = {name: getattr(self, name) for name in ("share_true", "share_true_counted", "share_kept")}
        return {**vars(self), **shares}


@dataclass(frozen=True, eq=False)
class Figures:
    """Cells by count and rows by kind, over some of the tables."""

    cells: Tally  # not empty
    small: tuple[Tally, ...]  # of value 1, 2, ..
    rows: dict[RowKind, Tally]
    has_cells: bool = True  # False where only rows were added up

    @property
    def ones(self) -> Tally:
        """Uniques: cells of value 1."""
        return self.small[0]

    @property
    def share_small(self) -> float | None:
        """The share of ones and twos among the cells that are not empty."""
        return _share(sum(tally.seen for tally in self.small[:2]), self.cells.seen)

    @property
    def weight(self) -> int:
        """Uniques and telling groups (true ones where judged)."""
        tallies = (self.ones, self.rows[RowKind.INDIVIDUAL], self.rows[RowKind.GROUP])
        return sum(tally.seen if tally.true is None else tally.true for tally in tallies)

    def summary(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        cells = {
            "share_ones_and_twos": self.share_small,
            "non_empty": self.cells.summary(),
            **{f"count_{value}": tally.summary() for value, tally in enumerate(self.small, start=1)},
        }
        return {
            **(cells if self.has_cells else {}),
            **{kind.name.lower(): tally.summary() for kind, tally in self.rows.items()},
        }


class AllFigures(TypedDict):
    """The ways in which figures are told."""

    total: Figures
    whole_areas: Figures
    universes: dict[str, Figures]
    cubes: dict[str, Figures]
    axes: dict[int, Figures]
    levels: dict[str, Figures]
    attributes: dict[str, Figures]


@dataclass(eq=False)
class Sums:
    """Tallies of cross-tabulations, added up by what they belong to."""

    below: int
    is_judged: bool
    areas: tuple[str, ...]
    cells: dict[Way, Integers] = field(default_factory=dict)
    rows: dict[Way, Integers] = field(default_factory=dict)

    def add_cells(self, owned: OwnedTable, tallies: Tallies) -> None:
        """Add the cells of a table."""
        for crosstab in np.flatnonzero(owned.owned).tolist():
            for key in ways(owned, owned.levels(crosstab), self.areas):
                _add(self.cells, key, tallies[crosstab])

    def add_rows(self, owned: OwnedTable, axis: int, tallies: Tallies) -> None:
        """Add the rows of a table that one of its axes is the attribute of."""
        variable = owned.cube.axes[axis].variable
        for crosstab in np.flatnonzero(owned.owned).tolist():
            if not owned.depths[crosstab][axis]:
                continue
            levels = owned.levels(crosstab)
            keys: list[Way] = [*ways(owned, levels, self.areas), ("attributes", variable)]
            group = [name for name, _ in levels if name != variable]
            if len(group) == 1 and group[0] in self.areas:
                keys.append(("whole_areas", ""))
            for key in keys:
                _add(self.rows, key, tallies[crosstab])

    def figures(self) -> AllFigures:
        """Everything added up."""
        return AllFigures(
            total=self._figures(("total", "")),
            whole_areas=self._figures(("whole_areas", "")),
            universes=self._all("universes"),
            cubes=self._all("cubes"),
            axes=self._all("axes"),
            levels=self._all("levels"),
            attributes=self._all("attributes"),
        )

    def _all(self, way: str) -> dict[Any, Figures]:
        keys = dict.fromkeys(key for key in (*self.cells, *self.rows) if key[0] == way)
        return {key[1]: self._figures(key) for key in keys}

    def _figures(self, key: Way) -> Figures:
        cells = self.cells.get(key, np.zeros((self.below, len(Column)), dtype=np.int64))
        rows = self.rows.get(key, np.zeros((len(RowKind), len(Column)), dtype=np.int64))
        return Figures(
            self._tally(cells[0]),
            tuple(map(self._tally, cells[1:])),
            {kind: self._tally(rows[kind]) for kind in RowKind},
            has_cells=key[0] not in ("attributes", "whole_areas"),
        )

    def _tally(self, numbers: Integers) -> Tally:
        if not self.is_judged:
            return Tally(int(numbers[Column.SEEN]))
        return Tally(*map(int, numbers))


def _add(sums: dict[Way, Integers], key: Way, tallies: Integers) -> None:
    if key in sums:
        sums[key] += tallies
    else:
        sums[key] = tallies.copy()


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None
