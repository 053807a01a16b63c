"""Figures of a swap for the auditor: risk before and after, moves, distances and changes of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.io.databases import open_source
from discreet.io.files import Records
from discreet.population.values import coder_of
from discreet.programme.codelist import Breakdown
from discreet.programme.programme import Programme, Variable
from discreet.swap.relocate import STAYS, hashing, household_link
from discreet.swap.result import EXCLUDED, HOUSEHOLD, WHY, SwapHouseholds, SwapResult

Ints = NDArray[np.integer[Any]]
OUTSIDE = STAYS


@dataclass(frozen=True, eq=False, repr=False)
class RiskMembers:
    """Persons with a place, their households and their values of the risk variables."""

    household: NDArray[np.int64]  # person -> row of the household, -1 outside all of them
    region: NDArray[np.int32]  # (level, person) -> region code before anything was swapped
    codes: Mapping[str, Ints]  # risk variable -> code of each person

    def __len__(self) -> int:
        return len(self.household)


def read_members(programme: Programme, households: SwapHouseholds, secret: bytes) -> RiskMembers:
    """Read the persons; one outside all households is included if the table contains a place."""
    rule, population = programme.swap, programme.population
    if rule is None or population is None:
        raise ValueError("a programme without [swap] and a population has no members to read")
    reader = _Reader(programme, households, population.ids["households"], secret)
    persons = reader.opened("persons")
    of_persons = [
        axis for axis in rule.risk if programme.variables[axis.variable].column in persons.schema.names
    ]
    own = {axis.full_name: [] for axis in of_persons}  # type: dict[str, list[Ints]]
    rows: list[NDArray[np.int64]] = []
    regions: list[NDArray[np.int32]] = []
    for batch, found in reader.batches(persons, of_persons, households.levels):
        rows.append(found)
        regions.append(_regions(batch, found, households))
        for axis in of_persons:
            own[axis.full_name].append(
                _codes(batch, axis, programme.variables[axis.variable], persons.decimal)
            )
    household = np.concatenate([np.empty(0, dtype=np.int64), *rows])
    region = np.concatenate([np.empty((len(households.levels), 0), dtype=np.int32), *regions], axis=1)
    codes: dict[str, Ints] = {}
    for axis in rule.risk:
        if axis in of_persons:
            codes[axis.full_name] = np.concatenate([np.empty(0, dtype=np.int32), *own[axis.full_name]])
        else:
            codes[axis.full_name] = _of_the_household(reader, axis, household)
    placed = (region >= 0).all(axis=0)
    return RiskMembers(
        household[placed], region[:, placed], {name: code[placed] for name, code in codes.items()}
    )


class _Reader:
    """Reads tables with a column of household ids."""

    def __init__(self, programme: Programme, households: SwapHouseholds, column: str, secret: bytes) -> None:
        self.programme, self.column = programme, column
        self.number = len(households)
        self._link = household_link(column, households.ids, hashing(secret, HOUSEHOLD))

    def opened(self, unit: str) -> Records:
        population = self.programme.population
        assert population is not None
        return open_source(population.units[unit].source, f"population.{unit}")

    def batches(
        self, records: Records, axes: Sequence[Breakdown], levels: Sequence[str]
    ) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        """The records, and the household's row of each."""
        columns = [self.programme.variables[axis.variable].column for axis in axes]
        columns += [level for level in levels if level in records.schema.names]
        for batch in records.batches([self.column], list(dict.fromkeys(columns))):
            yield batch, self._link.moves_of(batch)


def _codes(batch: pa.RecordBatch, axis: Breakdown, variable: Variable, decimal: str) -> Ints:
    return axis.node_of_leaf[coder_of(variable, decimal).encode(batch.column(variable.column)).codes]


def _of_the_household(reader: _Reader, axis: Breakdown, household: NDArray[np.int64]) -> Ints:
    """The codes of a variable that is only in the table of households; persons outside have a separate code."""
    of_row = np.full(reader.number + 1, len(axis), dtype=np.int32)
    records = reader.opened("households")
    for batch, rows in reader.batches(records, [axis], []):
        codes = _codes(batch, axis, reader.programme.variables[axis.variable], records.decimal)
        of_row[rows[rows != OUTSIDE]] = codes[rows != OUTSIDE]
    return of_row[household]  # row -1 is the last: outside


def _regions(batch: pa.RecordBatch, rows: NDArray[np.int64], households: SwapHouseholds) -> NDArray[np.int32]:
    """(level, person) -> region: the household's, or the person's own; -1 where neither is known."""
    regions = np.full((len(households.levels), len(rows)), -1, dtype=np.int32)
    inside = rows != OUTSIDE
    regions[:, inside] = households.area[:, rows[inside]]
    if not inside.all():
        for number, level in enumerate(households.levels):
            if level in batch.schema.names:
                own = batch.column(level).filter(pa.array(~inside))
                regions[number, ~inside] = _places(own, households.regions[number])
    return regions


def _places(column: pa.Array, regions: Sequence[str]) -> NDArray[np.int32]:
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    found = pc.index_in(pc.cast(plain, pa.string()), pa.array(list(regions), pa.string()))
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int32)  # type: ignore[no-any-return]


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_BINS = 24
_NAMED = {"easting": "northing"}


@dataclass(frozen=True)
class Distances:
    """Distances between partners, in the unit of the coordinates."""

    columns: tuple[str, str]
    mean: float
    quantiles: Mapping[str, float]  # "5%" .. "95%" -> distance
    edges: tuple[float, ...]  # of a histogram
    households: tuple[int, ...]


def coordinate_columns(values: Mapping[str, pa.Array]) -> tuple[str, str] | None:
    """Two numeric columns whose names differ only in x and y, or easting and northing."""
    for name in values:
        lower = name.lower()
        other = _NAMED.get(lower) or (lower[:-1] + "y" if lower.endswith("x") else None)
        match = next((column for column in values if column.lower() == other), None)
        if match is not None and _is_number(values[name]) and _is_number(values[match]):
            return name, match
    return None


def distances_of(result: SwapResult) -> Distances | None:
    """The distances; None if no coordinates are swapped with the place or all are missing."""
    values = result.moves.values
    columns = coordinate_columns(values)
    if columns is None:
        return None
    moved = np.flatnonzero(result.partner >= 0)  # in the order of the moves
    partner = np.searchsorted(moved, result.partner[moved])
    x, y = (_numbers(values[column]) for column in columns)
    distance = np.hypot(x - x[partner], y - y[partner])  # the partner's donor is the household itself
    distance = distance[np.isfinite(distance)]
    if not len(distance):
        return None
    counts, edges = np.histogram(distance, bins=_BINS, range=(0, float(distance.max()) or 1.0))
    quantiles = {f"{share:.0%}": float(np.quantile(distance, share)) for share in QUANTILES}
    return Distances(
        columns, float(distance.mean()), quantiles, tuple(edges.tolist()), tuple(counts.tolist())
    )


def _is_number(column: pa.Array) -> bool:
    return bool(pa.types.is_integer(column.type) or pa.types.is_floating(column.type))


def _numbers(column: pa.Array) -> NDArray[np.float64]:
    """The values as floats, NaN where missing."""
    numbers: NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


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
    uniques_before: int  # persons who are unique in their region by the risk variables
    uniques_after: int
    true_uniques: int  # of those after: the region had exactly one such person before, the same or another
    same_persons: int  # of these: the same person, who was not moved

    @property
    def chance_true(self) -> float | None:
        """The probability that an apparent unique is a true one; None without apparent uniques."""
        return self.true_uniques / self.uniques_after if self.uniques_after else None

    @property
    def chance_same(self) -> float | None:
        """The probability that an apparent unique is true and the same person; None without apparent uniques."""
        return self.same_persons / self.uniques_after if self.uniques_after else None


@dataclass(frozen=True)
class Unswapped:
    """Households at risk that were not swapped, by reason."""

    level: str
    why: str
    households: int


@dataclass(frozen=True)
class TableChange:
    """One table of persons by region, before against after."""

    table: str
    level: str
    cells: int  # not empty before or after
    changed: int
    mean_absolute: float
    largest: int


@dataclass(frozen=True)
class SwapFigures:
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

    def households_below(self, k: int, members: RiskMembers, households: int) -> tuple[int, int]:
        """Households with a member in a cell of fewer than k persons, before and after."""
        counts = self.before[self.cell_before], self.after[self.cell_after]
        before, after = (_marked(members.household[count < k], households) for count in counts)
        return before, after

    def uniques(self) -> tuple[int, int, int, int]:
        """Uniques: before, after, after where the cell had a unique before, and of these the same person."""
        unique = self.before[self.cell_before] == 1
        seems_unique = self.after[self.cell_after] == 1
        true = seems_unique & (self.before[self.cell_after] == 1)
        same = true & (self.cell_before == self.cell_after)
        return int(unique.sum()), int(seems_unique.sum()), int(true.sum()), int(same.sum())

    def change(self, table: str, level: str) -> TableChange:
        """How much the counts of the cells differ."""
        occupied = (self.before > 0) | (self.after > 0)
        change = np.abs(self.after[occupied] - self.before[occupied])
        cells = int(occupied.sum())
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


def _crossed(members: RiskMembers) -> Ints:
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


def figures_of(result: SwapResult, members: RiskMembers, k: int, profiles: Sequence[str]) -> SwapFigures:
    """Compute all figures; memory is a few numbers per person, time is proportional to persons times tables."""
    households, swapped = result.households, result.partner >= 0
    crossed = _crossed(members)
    recounted = [_recounted(result, members, crossed, k, number) for number in range(len(households.levels))]
    return SwapFigures(
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
    result: SwapResult, members: RiskMembers, values: Ints, k: int, number: int
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


def _after(result: SwapResult, members: RiskMembers, number: int) -> Ints:
    """The region of each person after the swap; persons outside households stay."""
    area = result.households.area[number]
    after: Ints = np.where(result.partner >= 0, area[result.partner], area)
    return np.where(members.household >= 0, after[members.household], members.region[number])


def _level(crossed: _Recount, result: SwapResult, members: RiskMembers, k: int, number: int) -> LevelFigures:
    households = result.households
    if members.codes:
        before, after = crossed.households_below(k, members, len(households))
    else:  # supplied risks belong to the household: only a swap removes them
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
    """Numbers of swapped households by the finest level at which both places are in the same region."""
    rows = np.flatnonzero(result.partner >= 0)
    area = result.households.area
    depth = (area[:, rows] == area[:, result.partner[rows]]).sum(axis=0)  # levels nest
    return _tally(depth, [NO_REGION, *result.households.levels])
