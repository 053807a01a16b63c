"""What an auditor wants to know of a swap: risk before and after, moves, utility; computed, not shown.

It owns the figures of one finished swap; it swaps nothing and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.swap.distances import Distances, distances_of
from discreet.swap.members import Ints, Members
from discreet.swap.naming import EXCLUDED, WHY
from discreet.swap.result import SwapResult

_DENSE = 50_000_000  # cells that are counted in an array rather than sorted
NO_REGION = "none"  # where partners share no region of any level


@dataclass(frozen=True)
class LevelFigures:
    """One level of the geography."""

    level: str
    regions: int
    at_risk_before: int  # households
    at_risk_after: int
    swapped: int  # households swapped at this level
    uniques_before: int  # persons alone in their region with their values of the risk variables
    uniques_after: int
    true_uniques: int  # of those after: the region had exactly one such person before, whoever it was
    same_persons: int  # of these: the same person, who kept the place

    @property
    def chance_true(self) -> float | None:
        """The probability that an apparent unique is a true one; None where there is none."""
        return self.true_uniques / self.uniques_after if self.uniques_after else None

    @property
    def chance_same(self) -> float | None:
        """The probability that an apparent unique is true and the very person; None where there is none."""
        return self.same_persons / self.uniques_after if self.uniques_after else None


@dataclass(frozen=True)
class Unswapped:
    """Households at risk that kept their place, by the reason."""

    level: str
    why: str
    households: int


@dataclass(frozen=True)
class TableChange:
    """One table of persons by region, before against after."""

    table: str
    level: str
    cells: int  # with somebody in them before or after
    changed: int
    mean_absolute: float
    largest: int


@dataclass(frozen=True)
class Figures:
    """Everything that the auditor's report shows."""

    households: int
    persons: int
    swapped: int
    reasons: Mapping[str, int]  # why -> households swapped
    profiles: Mapping[str, int]  # profile -> households swapped
    excluded: Mapping[str, int]  # why, or not -> households
    levels: tuple[LevelFigures, ...]  # coarse to fine
    unswapped: tuple[Unswapped, ...]
    shared: Mapping[str, int]  # the finest level that both places share -> households swapped
    distances: Distances | None
    tables: tuple[TableChange, ...]
    conflicts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Recount:
    """A table of persons by region and values, before and after: the cell of each person, and the counts."""

    cell_before: Ints  # person -> cell
    cell_after: Ints
    before: Ints  # cell -> persons
    after: Ints

    def households_below(self, k: int, members: Members, households: int) -> tuple[int, int]:
        """Households with a member in a cell of fewer than k persons, before and after."""
        counts = self.before[self.cell_before], self.after[self.cell_after]
        before, after = (_marked(members.household[count < k], households) for count in counts)
        return before, after

    def uniques(self) -> tuple[int, int, int, int]:
        """Persons alone in their cell: before, after, after where one was alone before, and that same one."""
        alone = self.before[self.cell_before] == 1
        seems_alone = self.after[self.cell_after] == 1
        true = seems_alone & (self.before[self.cell_after] == 1)
        same = true & (self.cell_before == self.cell_after)
        return int(alone.sum()), int(seems_alone.sum()), int(true.sum()), int(same.sum())

    def change(self, table: str, level: str) -> TableChange:
        """How much the counts of the cells differ."""
        held = (self.before > 0) | (self.after > 0)
        change = np.abs(self.after[held] - self.before[held])
        cells = int(held.sum())
        mean = float(change.mean()) if cells else 0.0
        return TableChange(table, level, cells, int((change > 0).sum()), mean, int(change.max(initial=0)))


def _recount(values: Ints, before: Ints, after: Ints) -> _Recount:
    """Count persons by region before and after and by their values."""
    size = int(values.max(initial=0)) + 1
    one, two = before.astype(np.int64) * size + values, after.astype(np.int64) * size + values
    if max(one.max(initial=0), two.max(initial=0)) >= _DENSE:
        _, places = np.unique(np.concatenate([one, two]), return_inverse=True)
        one, two = places[: len(one)], places[len(one) :]
    cells = int(max(one.max(initial=0), two.max(initial=0))) + 1
    return _Recount(one, two, np.bincount(one, minlength=cells), np.bincount(two, minlength=cells))


def _crossed(members: Members) -> Ints:
    """One number for each combination of values that occurs."""
    crossed: Ints = np.zeros(len(members), dtype=np.int64)
    for code in members.codes.values():
        pairs = crossed * (int(code.max(initial=0)) + 1) + code
        crossed = np.unique(pairs, return_inverse=True)[1]
    return crossed


def _marked(rows: Ints, number: int) -> int:
    marks = np.zeros(number, dtype=bool)
    marks[rows[rows >= 0]] = True
    return int(marks.sum())


def figures_of(result: SwapResult, members: Members, k: int, profiles: Sequence[str]) -> Figures:
    """Compute everything; memory is a few numbers for each person, time grows with persons times tables."""
    households, swapped = result.households, result.partner >= 0
    crossed = _crossed(members)
    recounted = [_recounted(result, members, crossed, k, number) for number in range(len(households.levels))]
    return Figures(
        len(households),
        len(members),
        result.swapped,
        _tally(result.why[swapped], list(WHY.values())),
        _tally(result.profile[swapped], profiles),
        _tally(households.excluded, ["not excluded", *list(EXCLUDED.values())[1:]]),
        tuple(level for level, _ in recounted),
        tuple(_unswapped(result)),
        _shared(result),
        distances_of(result),
        tuple(change for _, changes in recounted for change in changes),
        result.conflicts,
    )


def _recounted(
    result: SwapResult, members: Members, values: Ints, k: int, number: int
) -> tuple[LevelFigures, list[TableChange]]:
    """One level: who is at risk and unique before and after, and how each table changes."""
    level = result.households.levels[number]
    here = members.region[number]
    there = _after(result, members, number)
    tables = {name: _recount(codes, here, there) for name, codes in members.codes.items()}
    crossed = _recount(values, here, there)
    changes = [table.change(name, level) for name, table in tables.items()]
    if len(tables) != 1:
        changes.append(crossed.change(" x ".join(tables) or "persons", level))
    return _level(crossed, result, members, k, number), changes


def _after(result: SwapResult, members: Members, number: int) -> Ints:
    """The region of each person after the swap; those outside households stay."""
    area = result.households.area[number]
    after: Ints = np.where(result.partner >= 0, area[result.partner], area)
    return np.where(members.household >= 0, after[members.household], members.region[number])


def _level(crossed: _Recount, result: SwapResult, members: Members, k: int, number: int) -> LevelFigures:
    households = result.households
    if members.codes:
        before, after = crossed.households_below(k, members, len(households))
    else:  # risks that the office supplied go with the household: only a swap ends them
        risky = households.at_risk_level == number
        before, after = int(risky.sum()), int((risky & (result.partner < 0)).sum())
    swapped = int(((result.partner >= 0) & (result.level == number)).sum())
    regions = len(np.unique(members.region[number]))
    return LevelFigures(households.levels[number], regions, before, after, swapped, *crossed.uniques())


def _tally(codes: Ints, names: Sequence[str]) -> dict[str, int]:
    counts = np.bincount(codes[codes >= 0].astype(np.int64), minlength=len(names))
    return {name: int(count) for name, count in zip(names, counts, strict=True) if count}


def _unswapped(result: SwapResult) -> Iterator[Unswapped]:
    for number, level in enumerate(result.households.levels):
        rows = (result.partner < 0) & (result.households.at_risk_level == number)
        for why, households in _tally(result.why[rows], list(WHY.values())).items():
            yield Unswapped(level, why, households)


def _shared(result: SwapResult) -> dict[str, int]:
    """How many swapped households stayed inside the same region of a level, by the finest such level."""
    rows = np.flatnonzero(result.partner >= 0)
    area = result.households.area
    depth = (area[:, rows] == area[:, result.partner[rows]]).sum(axis=0)  # levels nest
    return _tally(depth, [NO_REGION, *result.households.levels])
