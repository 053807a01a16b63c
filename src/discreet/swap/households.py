"""Households for swapping: their regions, persons, risks and similarity, read from a population's tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.errors import Mistakes, mistake
from discreet.io.progress import Progress
from discreet.maths.cells.counting import recode
from discreet.maths.cells.keys import hash_order
from discreet.maths.swap import (
    NO_REGION,
    Numbering,
    Places,
    add_members,
    coarsest_at_risk,
    combine,
    inverse,
    least_counts,
    nest,
    numbered,
    one_for_all,
    values_at,
)
from discreet.population.encode import Codes, code_type
from discreet.population.places import NEST, code_of_missing, not_nested
from discreet.population.values import are_rare, coder_of
from discreet.programme.codelist import Breakdown
from discreet.programme.swap import Composition
from discreet.programme.variables import Variable
from discreet.swap.result import HOUSEHOLD, Excluded, SwapHouseholds
from discreet.swap.tables import (
    DWELLINGS,
    HOUSEHOLDS,
    PERSONS,
    SwapTables,
    codes_of,
    risks_of,
    some_hashes,
)

_NO_HASHES = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Regions:
    """All regions, numbered at each level in the order of their names from the coarsest level down."""

    columns: tuple[str, ...]  # coarse to fine
    names: tuple[tuple[str, ...], ...]  # level -> number -> value of the column
    above: NDArray[np.int32]  # (level, finest region) -> region

    def __len__(self) -> int:
        return int(self.above.shape[1])


NO_PLACE = "\0"  # the beginning of the name of a region of records without a place; after it the name above


def place_values(names: Sequence[str]) -> pa.Array:
    """The values of a column for some regions; none for the records without a place."""
    return pa.array([None if name.startswith(NO_PLACE) else name for name in names], pa.string())


class RegionsSeen:
    """Numbers regions as they appear, until all are known.

    ``gaps``: records without a place are a region of their own within the one above; otherwise they are refused.
    """

    def __init__(self, columns: Sequence[str], gaps: bool = False) -> None:
        self._columns, self._gaps = tuple(columns), gaps
        self._known: list[dict[str, int]] = [{} for _ in columns]
        self._parents = [np.empty(0, dtype=np.int32) for _ in columns]  # level -> region -> the one above
        self._records = 0

    def add(self, batch: pa.RecordBatch, table: str) -> NDArray[np.int32]:
        """The finest region of each record, by its provisional number."""
        self._records += batch.num_rows
        codes: list[NDArray[np.int32]] = []
        for level in range(len(self._columns)):
            codes.append(self._codes(level, batch, table, codes))
        for level in range(1, len(codes)):
            self._nest(level, codes[level], codes[level - 1], table)
        return codes[-1]

    def _codes(
        self, level: int, batch: pa.RecordBatch, table: str, above: Sequence[NDArray[np.int32]]
    ) -> NDArray[np.int32]:
        name, known = self._columns[level], self._known[level]
        column = batch.column(name)
        column = column.storage if isinstance(column, pa.ExtensionArray) else column
        column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        values = pc.cast(column.dictionary, pa.string()).to_pylist()
        column_gaps = column.is_null().to_numpy(zero_copy_only=False)
        if (column_gaps.any() or None in values) and not self._gaps:
            remedy = "give every record its place, for example a code for 'not known'"
            raise mistake(table, f"column {name}", "some records have no place", remedy)
        named = [NO_PLACE if value is None else value for value in values]
        found = np.array([known.setdefault(value, len(known)) for value in named], dtype=np.int32)
        codes = np.zeros(len(column), dtype=np.int32)
        if not column_gaps.any():
            recode(column.indices.to_numpy(zero_copy_only=False), found, codes)
        else:
            codes[~column_gaps] = found[column.indices.drop_null().to_numpy(zero_copy_only=False)]
            upper = above[-1][column_gaps] if above else np.zeros(int(column_gaps.sum()), dtype=np.int32)
            heads = list(self._known[level - 1]) if above else [""]
            names = {code: f"{NO_PLACE}{heads[code]}" for code in np.unique(upper).tolist()}
            numbers = {code: known.setdefault(name, len(known)) for code, name in names.items()}
            codes[column_gaps] = [numbers[code] for code in upper.tolist()]
        return codes

    def _nest(self, level: int, codes: NDArray[np.int32], above: NDArray[np.int32], table: str) -> None:
        parents = np.full(len(self._known[level]), NO_REGION, dtype=np.int32)
        parents[: len(self._parents[level])] = self._parents[level]
        self._parents[level] = parents
        wrong = nest(parents, codes, above)
        if wrong >= 0:
            raise self._not_nested(level, int(codes[wrong]), int(above[wrong]), table)

    def _not_nested(self, level: int, code: int, other: int, table: str) -> Exception:
        fine, coarse = list(self._known[level]), list(self._known[level - 1])
        first = coarse[self._parents[level][code]]
        hidden = [are_rare(len(known), self._records) for known in (fine, coarse)]
        names, are_hidden = (first, coarse[other]), (hidden[0], hidden[1])
        value = not_nested(self._columns[level], fine[code], self._columns[level - 1], names, are_hidden)
        return mistake(table, "population.geography", value, NEST)

    def all(self) -> tuple[Regions, NDArray[np.int32]]:
        """Every region seen, and the number of each provisional finest one."""
        levels = len(self._columns)
        seen = [list(known) for known in self._known]
        paths = [self._path(code, seen) for code in range(len(seen[-1]))]
        order = sorted(range(len(paths)), key=lambda code: paths[code])
        above = np.empty((levels, len(order)), dtype=np.int32)
        names: list[tuple[str, ...]] = []
        for level in range(levels):
            heads = list(dict.fromkeys(paths[code][: level + 1] for code in order))
            number = {head: place for place, head in enumerate(heads)}
            above[level] = [number[paths[code][: level + 1]] for code in order]
            names.append(tuple(head[-1] for head in heads))
        final = np.empty(len(order), dtype=np.int32)
        final[order] = np.arange(len(order), dtype=np.int32)
        return Regions(self._columns, tuple(names), above), final

    def _path(self, code: int, names: Sequence[Sequence[str]]) -> tuple[str, ...]:
        path: list[str] = []
        for level in range(len(names) - 1, -1, -1):
            path.append(names[level][code])
            code = int(self._parents[level][code]) if level else code
        return tuple(reversed(path))


@dataclass(frozen=True)
class Wanted:
    """The columns that are read from one table."""

    unit: str
    risk: tuple[Breakdown, ...]
    compositions: tuple[Composition, ...]
    alike: tuple[Breakdown, ...]  # of the household as a whole
    excludes: bool
    risk_column: str | None
    places: bool

    def variables(self, tables: SwapTables) -> tuple[Variable, ...]:
        """The variables to be read."""
        axes = [*self.risk, *(axis for part in self.compositions for axis in part.axes), *self.alike]
        names = [axis.variable for axis in axes]
        if self.excludes and tables.rule.exclude is not None:
            names += tables.rule.exclude.variables
        return tuple(tables.variable(name) for name in dict.fromkeys(names))


def wanted(tables: SwapTables) -> tuple[Wanted, Wanted]:
    """The columns to read from the table of persons and from that of households, if there is one."""
    rule = tables.rule
    parts = [part for profile in rule.similar for part in profile]
    compositions = tuple(dict.fromkeys(part for part in parts if isinstance(part, Composition)))
    members = [*rule.risk, *(axis for part in compositions for axis in part.axes)]
    for axis in members:
        tables.holder(tables.variable(axis.variable).column, "swap", PERSONS)
    alike = {part.full_name: part for part in parts if isinstance(part, Breakdown)}
    unit_of = {name: _holder(axis, tables) for name, axis in alike.items()}
    excluder = _excluder(tables)
    risker = rule.risk_column and tables.holder(rule.risk_column, "swap.risk_column", PERSONS, HOUSEHOLDS)
    placed = [unit for unit in (PERSONS, HOUSEHOLDS) if tables.has(unit, *tables.population.geography)]
    if not placed:
        for column in tables.population.geography:
            tables.holder(column, "population.geography", PERSONS)
    return tuple(  # type: ignore[return-value]
        Wanted(
            unit,
            rule.risk if unit == PERSONS else (),
            compositions if unit == PERSONS else (),
            tuple(axis for name, axis in alike.items() if unit_of[name] == unit),
            excluder == unit,
            rule.risk_column if risker == unit else None,
            unit in placed,
        )
        for unit in (PERSONS, HOUSEHOLDS)
    )


def _holder(axis: Breakdown, tables: SwapTables) -> str:
    variable = tables.variable(axis.variable)
    units = [unit for unit in (HOUSEHOLDS, PERSONS) if variable.units is None or unit in variable.units]
    return tables.holder(variable.column, "swap.similar", *units)


def _excluder(tables: SwapTables) -> str | None:
    """The table that has all variables of the filter."""
    if tables.rule.exclude is None:
        return None
    columns = [tables.variable(name).column for name in tables.rule.exclude.variables]
    for unit in (PERSONS, HOUSEHOLDS):
        if tables.has(unit, *columns):
            return unit
    for column in columns:
        tables.holder(column, "swap.exclude", PERSONS)
    raise AssertionError("a table lacks a column that it has")


@dataclass(frozen=True, eq=False, repr=False)
class HouseholdRows:
    """The records of one table, with one row for adjacent persons of one household.

    A person outside all households has a row, and so has each record of the table of households.
    """

    hashes: NDArray[np.uint64]  # of the household, 0 where there is none
    known: NDArray[np.bool_]  # whether there is one
    records: NDArray[np.int32]  # how many
    combination: NDArray[np.int32] | None  # record -> number of its values of the risk variables
    members: tuple[NDArray[np.uint64], ...]  # composition -> sum of the records' values
    alike: tuple[Codes, ...]  # breakdown -> node
    excluded: NDArray[np.bool_] | None  # one of the records
    risk: NDArray[np.float64] | None  # the largest of the records
    place: NDArray[np.int32] | None  # provisional number of the finest region
    differing: frozenset[int]  # breakdowns in which the records of a row differ, ``PLACE`` for places


PLACE = -1


def read_rows(
    tables: SwapTables, want: Wanted, secret: bytes, regions: RegionsSeen, pool: Executor, progress: Progress
) -> HouseholdRows:
    """Stream a table once."""
    records, variables = tables.opened[want.unit], want.variables(tables)
    plain = [tables.household_id, *([want.risk_column] if want.risk_column else [])]
    coded = [variable.column for variable in variables]
    coded += tables.population.geography if want.places else ()
    progress.stage(f"reading {want.unit}")
    reader = _Reader(tables, want, secret, regions, pool)
    parts = []
    for batch in records.batches(plain, list(dict.fromkeys(coded))):
        if batch.num_rows:
            parts.append(reader.rows(batch))
            progress.step(batch.num_rows)
    rows = _joined(parts, want)
    if not rows.known.any():
        value = f"no records with a household in {tables.household_id!r}"
        raise mistake(records.name, "population", value, "give a table with households")
    return rows


class _Reader:
    def __init__(
        self, tables: SwapTables, want: Wanted, secret: bytes, regions: RegionsSeen, pool: Executor
    ) -> None:
        self._tables, self._want, self._secret = tables, want, secret
        self._regions, self._pool = regions, pool
        self._numbering = Numbering()
        self._records = tables.opened[want.unit]
        self._table = self._records.name
        self._variables = want.variables(tables)
        decimal = self._records.decimal
        self._coders = {variable.name: coder_of(variable, decimal) for variable in self._variables}

    def rows(self, batch: pa.RecordBatch) -> HouseholdRows:
        want, household = self._want, self._tables.household_id
        ids = self._pool.submit(
            some_hashes, batch.column(household), self._secret, HOUSEHOLD, household, self._table
        )
        codes = self._codes(batch)
        rule, number = self._tables.rule, batch.num_rows
        excluded = rule.exclude.mask(codes) if want.excludes and rule.exclude is not None else None
        risk = (
            risks_of(batch.column(want.risk_column), want.risk_column, self._records)
            if want.risk_column
            else None
        )
        place = self._regions.add(batch, self._table) if want.places else None
        alike = tuple(_nodes(axis, codes) for axis in want.alike)
        hashes, known = ids.result()
        begins = _row_begins(hashes, known) if want.unit == PERSONS else np.ones(number, dtype=bool)
        first, row = np.flatnonzero(begins), np.cumsum(begins, dtype=np.int32) - 1
        members = tuple(np.zeros(len(first), dtype=np.uint64) for _ in want.compositions)
        for part, sums in zip(want.compositions, members, strict=True):
            add_members(sums, row, _combined(part.axes, codes, number))
        inside = ~begins[1:]
        compared = {PLACE: place, **dict(enumerate(alike))}
        return HouseholdRows(
            hashes[first],
            known[first],
            np.diff(first, append=number).astype(np.int32),
            self._numbering.numbers(_combined(want.risk, codes, number)) if want.risk else None,
            members,
            tuple(nodes[first] for nodes in alike),
            None if excluded is None else np.logical_or.reduceat(excluded, first),
            None if risk is None else np.maximum.reduceat(risk, first),
            None if place is None else place[first],
            frozenset(
                number
                for number, values in compared.items()
                if values is not None and ((values[1:] != values[:-1]) & inside).any()
            ),
        )

    def _codes(self, batch: pa.RecordBatch) -> dict[str, Codes]:
        def read(variable: Variable) -> Codes:
            column = batch.column(variable.column)
            return codes_of(variable, self._coders[variable.name], column, self._table)

        names = [variable.name for variable in self._variables]
        return dict(zip(names, self._pool.map(read, self._variables), strict=True))


def _row_begins(hashes: NDArray[np.uint64], known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where another household begins; each record outside all of them is by itself."""
    begins = ~known
    begins[:1] = True
    begins[1:] |= (hashes[1:] != hashes[:-1]) | ~known[:-1]
    return begins


def _nodes(axis: Breakdown, codes: Mapping[str, Codes]) -> Codes:
    nodes: Codes = axis.node_of_leaf.astype(code_type(len(axis)))[codes[axis.variable]]
    return nodes


def _combined(axes: Iterable[Breakdown], codes: Mapping[str, Codes], number: int) -> NDArray[np.uint64]:
    combined = np.ones(number, dtype=np.uint64)
    for axis in axes:
        combine(combined, _nodes(axis, codes))
    return combined


def _joined(parts: list[HouseholdRows], want: Wanted) -> HouseholdRows:
    """The rows of all parts; a column of the parts is released as soon as it is joined."""
    if not parts:
        none = _NO_HASHES.astype(np.int32)
        return HouseholdRows(
            _NO_HASHES, _NO_HASHES.astype(bool), none, None, (), (), None, None, None, frozenset()
        )
    columns = [dict(vars(part)) for part in parts]
    parts.clear()

    def all_of(name: str) -> Any:
        found = [part.pop(name) for part in columns]
        return np.concatenate(found) if found[0] is not None else None

    def each(name: str, number: int) -> tuple[Any, ...]:
        found = [part.pop(name) for part in columns]
        return tuple(np.concatenate([part[k] for part in found]) for k in range(number))

    return HouseholdRows(
        all_of("hashes"),
        all_of("known"),
        all_of("records"),
        all_of("combination"),
        each("members", len(want.compositions)),
        each("alike", len(want.alike)),
        all_of("excluded"),
        all_of("risk"),
        all_of("place"),
        frozenset().union(*(part["differing"] for part in columns)),
    )


_DWELLING = "swap/dwelling"


@dataclass(frozen=True, eq=False, repr=False)
class Gathered:
    """The households, and the finest region of each."""

    households: SwapHouseholds
    place: NDArray[np.int32]
    regions: Regions
    places: Places  # the numbers of households by their first record
    number: NDArray[np.int32]  # household -> that number


def gather(tables: SwapTables, secret: bytes, threads: int, progress: Progress) -> Gathered:
    """Read the tables and assemble the households, in the order of the hashes of their ids."""
    finest = tables.population.geography[-1]
    gaps = code_of_missing(finest, tables.programme.variables.values()) is not None
    seen = RegionsSeen(tables.population.geography, gaps)
    of_persons, of_households = wanted(tables)
    with ThreadPoolExecutor(threads) as pool:
        gathering = _Gathering(
            tables,
            read_rows(tables, of_persons, secret, seen, pool, progress),
            of_persons,
            read_rows(tables, of_households, secret, seen, pool, progress)
            if HOUSEHOLDS in tables.opened
            else None,
            of_households,
            secret,
        )
    progress.stage("finding households at risk")
    return gathering.gathered(seen)


class _Gathering:
    """Assembles the households; they are numbered by their first record, so that a table is walked in its own order.

    Only the results are put into the order of the hashes.
    """

    def __init__(
        self,
        tables: SwapTables,
        persons: HouseholdRows,
        of_persons: Wanted,
        homes: HouseholdRows | None,
        of_homes: Wanted,
        secret: bytes,
    ) -> None:
        self._tables, self._secret = tables, secret
        self._persons, self._of_persons = replace(persons, hashes=_NO_HASHES), of_persons
        self._homes, self._of_homes = homes, of_homes
        self._ids, self._number, self._member = grouped(persons.hashes, persons.known)
        self._places = Places(self._ids, self._number)
        self._listed = np.ones(len(self._ids), dtype=bool)
        self._row = self._rows_of_homes() if homes is not None else None

    def gathered(self, seen: RegionsSeen) -> Gathered:
        regions, final = seen.all()
        number, appeared = self._number, self._place(final)
        levels = [regions.columns.index(column) for column in self._tables.rule.levels]
        risk = self._risk(regions, levels, appeared, final)
        place = values_at(appeared, number)
        area = np.empty((len(levels), len(number)), dtype=np.int32)
        for level, above in enumerate(regions.above[levels]):
            recode(place, above, area[level])
        households = SwapHouseholds(
            self._ids,
            self._tables.rule.levels,
            tuple(regions.names[level] for level in levels),
            area,
            values_at(self._sizes(), number),
            risk,
            coarsest_at_risk(risk, self._tables.rule.k),
            values_at(self._excluded(), number),
            self._profiles(),
        )
        return Gathered(households, place, regions, self._places, number)

    def _sizes(self) -> NDArray[np.int32]:
        """The number of members of each household."""
        sizes = np.zeros(len(self._ids), dtype=np.int32)
        add_members(sizes, self._member, self._persons.records)
        return sizes

    def _rows_of_homes(self) -> NDArray[np.int32]:
        """The row of each household in the table of households, -1 where it is not listed."""
        assert self._homes is not None
        table = self._tables.opened[HOUSEHOLDS].name
        if not self._homes.known.all():
            raise mistake(
                table, "population.household_id", "some records have no id", "give each record its own id"
            )
        hashes = self._homes.hashes
        found = self._places.numbers(hashes)
        others = hashes[found < 0]
        rows = np.full(len(self._ids), -1, dtype=np.int32)
        mine = inverse(found, rows)
        self._listed = rows >= 0
        if self._listed.sum() < mine or len(np.unique(others)) < len(others):
            value = f"duplicate ids in {self._tables.household_id!r}"
            raise mistake(table, "population.households", value, "give each record its own id")
        return rows

    def _place(self, final: NDArray[np.int32]) -> NDArray[np.int32]:
        """The finest region of each household, which must agree in both tables."""
        persons, homes = self._persons, self._homes
        place = np.full(len(self._ids), -1, dtype=np.int32)
        if persons.place is not None:
            place = self._one_for_all(
                values_at(final, persons.place), PLACE, "population.geography", _IN_TWO_PLACES
            )
        if homes is not None and homes.place is not None and self._row is not None:
            there = values_at(values_at(final, homes.place), self._row)
            if persons.place is not None and (there != place)[self._listed].any():
                raise self._mistake("population.geography", *_PLACES_DIFFER)
            place = np.where(self._listed, there, place).astype(np.int32)
        if (place < 0).any():
            raise self._mistake("population.geography", *_NO_PLACE)
        return place

    def _one_for_all(
        self, values: NDArray[np.int32], kind: int, key: str, wrong: tuple[str, str]
    ) -> NDArray[np.int32]:
        """The value that all members of a household have; ``kind`` is as in ``HouseholdRows.differing``."""
        out = np.zeros(len(self._ids), dtype=np.int32)
        if not one_for_all(self._member, values, out) or kind in self._persons.differing:
            raise self._mistake(key, *wrong)
        return out

    def _mistake(self, key: str, value: str, remedy: str) -> Mistakes:
        return mistake(self._tables.opened[PERSONS].name, key, value, remedy)

    def _risk(
        self, regions: Regions, levels: list[int], place: NDArray[np.int32], final: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """(level, household in the order of the hashes) -> the largest risk of a member.

        Supplied risks are used at the finest level.
        """
        persons, number = self._persons, len(self._ids)
        risk = np.zeros((len(levels), number))
        if persons.combination is not None:
            for level, counts in enumerate(self._least_counts(regions.above[levels], place, final)):
                np.divide(1.0, values_at(counts, self._number), out=risk[level])
        own = self._own_risk()
        if own is not None:
            risk[-1] = own[self._number]
        return risk

    def _least_counts(
        self, above: NDArray[np.int32], place: NDArray[np.int32], final: NDArray[np.int32]
    ) -> NDArray[np.uint32]:
        """(level, household) -> the least count of persons like one of its members."""
        persons, member, inside = self._persons, self._member, self._member >= 0
        assert persons.combination is not None
        if persons.place is not None:
            finest, records, alike = values_at(final, persons.place), persons.records, persons.combination
        else:  # only persons with a place are counted
            alike = persons.combination[np.repeat(inside, persons.records)]
            member, records = member[inside], persons.records[inside]
            finest = place[member]
        return least_counts(finest, above, records, alike, member, len(self._ids))

    def _own_risk(self) -> NDArray[np.float64] | None:
        persons, homes = self._persons, self._homes
        if persons.risk is not None:
            own = np.zeros(len(self._ids))
            inside = self._member >= 0
            np.maximum.at(own, self._member[inside], persons.risk[inside])
            return own
        if homes is not None and homes.risk is not None and self._row is not None:
            return np.where(self._listed, homes.risk[self._row], 0.0)
        return None

    def _excluded(self) -> NDArray[np.uint8]:
        excluded = np.zeros(len(self._ids), dtype=np.uint8)
        excluded[self._shared_dwellings()] = Excluded.SHARED_DWELLING
        own = self._own_risk()
        if self._tables.rule.exclude_zero_risk and own is not None:
            excluded[own == 0] = Excluded.ZERO_RISK
        excluded[self._by_rule()] = Excluded.RULE
        excluded[~self._listed] = Excluded.NOT_LISTED
        return excluded

    def _by_rule(self) -> NDArray[np.bool_]:
        persons, homes = self._persons, self._homes
        marked = np.zeros(len(self._ids), dtype=bool)
        if persons.excluded is not None:
            marked[self._member[persons.excluded & (self._member >= 0)]] = True
        if homes is not None and homes.excluded is not None and self._row is not None:
            marked |= homes.excluded[self._row] & self._listed
        return marked

    def _shared_dwellings(self) -> NDArray[np.bool_]:
        """Households that share their dwelling, if dwellings have places that must be swapped with them."""
        tables, shared = self._tables, np.zeros(len(self._ids), dtype=bool)
        dwelling = tables.population.ids.get(DWELLINGS, "")
        exchanged = {*tables.population.geography, *tables.rule.carry}
        placed = DWELLINGS in tables.opened and exchanged & set(tables.opened[DWELLINGS].schema.names)
        if not placed or self._row is None or not tables.has(HOUSEHOLDS, dwelling):
            return shared
        records = tables.opened[HOUSEHOLDS]
        read = [
            some_hashes(batch.column(dwelling), self._secret, _DWELLING, dwelling, records.name)
            for batch in records.batches([dwelling], [])
        ]
        hashes, known = (np.concatenate(part) for part in zip(*read, strict=True))
        order, ascending = hash_order(hashes)
        again = ascending[1:] == ascending[:-1]
        crowded = np.zeros(len(hashes), dtype=bool)
        crowded[order[1:][again]] = crowded[order[:-1][again]] = True
        shared[:] = values_at(crowded & known, self._row) & self._listed
        return shared

    def _profiles(self) -> NDArray[np.int32]:
        """(profile, household in the order of the hashes) -> number of its values: equal ones are similar."""
        profiles = np.empty((len(self._tables.rule.similar), len(self._ids)), dtype=np.int32)
        for number, profile in enumerate(self._tables.rule.similar):
            combined = np.zeros(len(self._ids), dtype=np.uint64)
            for part in profile:
                if isinstance(part, Composition):
                    combine(combined, self._composition(part))
                else:
                    combine(combined, self._property(part))
            recode(self._number, numbered(combined)[0], profiles[number])
        return profiles

    def _composition(self, part: Composition) -> NDArray[np.uint64]:
        sums = np.zeros(len(self._ids), dtype=np.uint64)
        add_members(sums, self._member, self._persons.members[self._of_persons.compositions.index(part)])
        return sums

    def _property(self, axis: Breakdown) -> NDArray[np.int32]:
        names = [one.full_name for one in self._of_persons.alike]
        if axis.full_name in names:
            kind = names.index(axis.full_name)
            values = self._persons.alike[kind].astype(np.int32)
            remedy = f'compare them by {{ composition = ["{axis.full_name}"] }}'
            wrong = f"the members of some households differ in {axis.full_name}", remedy
            return self._one_for_all(values, kind, "swap.similar", wrong)
        assert self._homes is not None
        assert self._row is not None
        place = [one.full_name for one in self._of_homes.alike].index(axis.full_name)
        values = self._homes.alike[place].astype(np.int32)
        return np.where(self._listed, values_at(values, self._row), np.int32(-1))


_IN_TWO_PLACES = "a household is in two places", "give all its members the same geography"
_PLACES_DIFFER = (
    "a household has another place in the table of households",
    "give persons and households the same geography",
)
_NO_PLACE = (
    "some households of persons are not in the table of households, the only table with places",
    "add them, or give the persons their geography",
)


def grouped(
    hashes: NDArray[np.uint64], known: NDArray[np.bool_]
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32]]:
    """The distinct hashes ascending, the number of each by its first row, and that of each row (-1 where missing).

    Members are mostly in one row, so that only the others cost random accesses.
    """
    order, ascending = hash_order(hashes if known.all() else hashes[known])
    new = np.ones(len(order), dtype=bool)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    again = np.flatnonzero(~new)
    is_first = np.ones(len(order), dtype=bool)
    is_first[order[again]] = False  # the order is stable, so that a new hash is at its first row
    row = np.cumsum(is_first, dtype=np.int32) - 1
    number = order if not len(again) else row[order[new]]
    row[order[again]] = number[np.cumsum(new, dtype=np.int32)[again] - 1]
    member = np.full(len(hashes), -1, dtype=np.int32)
    member[known] = row
    return ascending[new] if len(again) else ascending, number, member
