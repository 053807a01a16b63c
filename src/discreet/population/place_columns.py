"""Columns that are places: those that decide the geography of a record, or follow from it, found in the data.

Swapping exchanges the columns of the geography. A second column of the same places (a name beside a code, a postcode,
a grid cell, a region) that is not exchanged would count households where they live, and subtracting the two tables
shows who was moved. What is found must be declared: ``place = true`` or ``place = false``.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import Problem
from discreet.io.databases import open_source
from discreet.io.files import Records
from discreet.lazy import lazily
from discreet.maths.cells.dependence import Dependence, dependence
from discreet.population import encode
from discreet.population.values import Coder, coder_of
from discreet.programme.programme import PopulationRule, Programme, Variable
from discreet.programme.serve import ServeRule

pc = lazily("pyarrow.compute")

MOST_EXCEPTIONS = 0.05  # of the records whose place the commonest one does not tell
FEWEST = 20  # such records: fewer prove nothing
FIRST = 200_000  # households after which columns that say little are not read any further
LITTLE = 0.5  # of what a place would say
SURE = 10_000  # records that must show it
HOUSEHOLDS = "households"

Codes = NDArray[np.int64]


class Relation(Enum):
    """How a column and the geography depend on each other."""

    SAME = "is equivalent to"
    DECIDES = "decides"
    FOLLOWS = "follows from"


@dataclass(frozen=True)
class PlaceColumn:
    """A column that is a place, as the data show it."""

    column: str
    geography: str  # the column of the geography that it depends on
    relation: Relation
    exact: bool  # whether there is no exception

    def __str__(self) -> str:
        nearly = "" if self.exact else "nearly always "
        return f"{self.column!r} {nearly}{self.relation.value} {self.geography!r}"


class _Values:
    """The distinct values of a column so far, numbered."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def codes(self, column: pa.Array) -> Codes:
        """The number of each value; -1 where it is missing."""
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        try:
            texts = pc.cast(coded.dictionary, pa.string()).to_pylist()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            return np.full(len(column), -1, dtype=np.int64)
        table = np.full(len(texts) + 1, -1, dtype=np.int64)
        for place, text in enumerate(texts):
            if text is not None:
                table[place] = self.known.setdefault(text, len(self.known))
        indices: NDArray[np.intp] = coded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
        return table[indices]


class _Leaves:
    """The codes of a variable whose column has numbers or dates."""

    def __init__(self, coder: Coder) -> None:
        self._coder = coder

    def codes(self, column: pa.Array) -> Codes:
        """The leaf of each value; -1 in a column that cannot be used, which is reported where it is checked."""
        try:
            return self._coder.encode(column).codes.astype(np.int64)
        except encode.BadColumn:
            return np.full(len(column), -1, dtype=np.int64)


@dataclass(frozen=True)
class _Judged:
    """A column that may be a place, by its values or by the codes that a variable makes of them."""

    column: str
    name: str = ""  # of the variable; empty where the values are judged
    variable: Variable | None = field(default=None, compare=False)

    def numbering(self, decimal: str) -> _Values | _Leaves:
        """What numbers its values."""
        return _Values() if self.variable is None else _Leaves(coder_of(self.variable, decimal))


def _judged(variable: Variable) -> _Judged:
    if variable.coding.is_plain:
        return _Judged(variable.column)
    return _Judged(variable.column, variable.name, variable)


class _Pairs:
    """The counts of the pairs of two columns' values."""

    def __init__(self) -> None:
        self._keys: list[NDArray[np.uint64]] = [np.empty(0, dtype=np.uint64)]
        self._counts: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]

    def add(self, one: Codes, other: Codes) -> None:
        """Add a batch; records that lack one of the values are left out."""
        both = (one >= 0) & (other >= 0)
        keys = (one[both].astype(np.uint64) << np.uint64(32)) | other[both].astype(np.uint64)
        found, counts = np.unique(keys, return_counts=True)
        self._keys.append(found)
        self._counts.append(counts)

    def add_counted(self, one: Codes, other: Codes, counts: Codes) -> None:
        """Add pairs that are counted already."""
        self._keys.append((one.astype(np.uint64) << np.uint64(32)) | other.astype(np.uint64))
        self._counts.append(counts)

    def all(self) -> tuple[Codes, Codes, Codes]:
        """Both values and the count of every pair."""
        keys, where = np.unique(np.concatenate(self._keys), return_inverse=True)
        counts = np.bincount(where, weights=np.concatenate(self._counts), minlength=len(keys))
        self._keys, self._counts = [keys], [counts.astype(np.int64)]
        low = np.uint64(0xFFFFFFFF)
        return (keys >> np.uint64(32)).astype(np.int64), (keys & low).astype(np.int64), self._counts[0]


class _Located(Protocol):
    """Finds the finest place of each record of a batch."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns that it reads."""

    def codes(self, batch: pa.RecordBatch) -> Codes:
        """The number of the place; -1 where it is not known."""


class _Geography:
    """The numbered places of one table, and the coarser place above each."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = list(columns)
        self._values = [_Values() for _ in columns]
        self._above = [np.empty(0, dtype=np.int64) for _ in columns]

    def codes(self, batch: pa.RecordBatch) -> Codes:
        """Number the finest places, and note the coarser ones."""
        levels = [v.codes(batch.column(c)) for v, c in zip(self._values, self.columns, strict=True)]
        finest = levels[-1]
        known = finest >= 0
        for k, codes in enumerate(levels):
            grown = np.full(len(self._values[-1].known), -1, dtype=np.int64)
            grown[: len(self._above[k])] = self._above[k]
            grown[finest[known]] = codes[known]
            self._above[k] = grown
        return finest

    def levels(self) -> Iterator[tuple[str, Codes]]:
        """Each column, finest first, with the place that each finest one lies in."""
        return zip(reversed(self.columns), reversed(self._above), strict=True)


class _Elsewhere:
    """Finds the place of a record through its household, in another table."""

    def __init__(self, household: str, ids: NDArray[np.uint64], places: Codes, key: bytes) -> None:
        order = np.argsort(ids)
        self.columns = [household]
        self._ids, self._places, self._key = ids[order], places[order], key

    def codes(self, batch: pa.RecordBatch) -> Codes:
        """Look the households up; -1 for a record without one."""
        found = np.full(batch.num_rows, -1, dtype=np.int64)
        hashes, rows = _hashed(batch.column(self.columns[0]), self._key)
        if len(self._ids) and len(hashes):
            at = np.minimum(np.searchsorted(self._ids, hashes), len(self._ids) - 1)
            found[rows] = np.where(self._ids[at] == hashes, self._places[at], -1)
        return found


def _hashed(column: pa.Array, key: bytes) -> tuple[NDArray[np.uint64], Codes]:
    """The hashes of the ids that are present, under a temporary key, and their rows."""
    valid = pc.is_valid(column)
    try:
        hashes = encode.hashed_ids(column.filter(valid), key, "household")
    except encode.BadColumn:  # reported where the ids are checked
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    return hashes, np.flatnonzero(valid.to_numpy(zero_copy_only=False))


def related_columns(
    records: Records, geography: Sequence[str], columns: Collection[str], household: str | None = None
) -> list[PlaceColumn]:
    """The columns of a table that are places beside its geography, coarse to fine; one household is judged once."""
    places = _Geography(geography)
    judged = [_Judged(column) for column in columns]
    return list(_related(records, places, places, judged, household).values())


def _related(
    records: Records,
    located: _Located,
    geography: _Geography,
    columns: Iterable[_Judged],
    household: str | None,
) -> dict[_Judged, PlaceColumn]:
    wanted = [one for one in columns if one.column in records.schema.names]
    if household not in records.schema.names:
        household = None
    if not wanted:
        return {}
    pairs, complete = _paired(records, located, wanted, household, FIRST)
    if not complete:
        wanted = [one for one in wanted if _may_be_place(pairs[one], geography)]
        if not wanted:
            return {}
        pairs, _ = _paired(records, located, wanted, household, None)
    found = {one: _relation(one.column, pairs[one], geography) for one in wanted}
    return {one: place for one, place in found.items() if place is not None}


def _paired(
    records: Records, located: _Located, wanted: Sequence[_Judged], household: str | None, most: int | None
) -> tuple[dict[_Judged, _Pairs], bool]:
    """Count the pairs of each column with the finest place; whether all records were read."""
    key = secrets.token_bytes(32)
    values = {one: one.numbering(records.decimal) for one in wanted}
    pairs = {one: _Pairs() for one in wanted}
    columns = [one.column for one in wanted]
    seen = 0
    plain = list(dict.fromkeys([*([household] if household else []), *_ids_of(located)]))
    coded = list(dict.fromkeys([*(() if _ids_of(located) else located.columns), *columns]))
    for batch in records.small_batches(plain, coded):
        if most is not None and seen >= most:
            return pairs, False
        rows = _one_each(batch.column(household), key) if household else None
        picked = batch if rows is None else batch.take(pa.array(rows))
        finest = located.codes(picked)
        for one in wanted:
            pairs[one].add(values[one].codes(picked.column(one.column)), finest)
        seen += picked.num_rows
    return pairs, True


def _ids_of(located: _Located) -> Sequence[str]:
    return located.columns if isinstance(located, _Elsewhere) else ()


def _one_each(column: pa.Array, key: bytes) -> Codes:
    """The first record of each household of a batch, and every record without one."""
    hashes, rows = _hashed(column, key)
    _, first = np.unique(hashes, return_index=True)
    alone = np.setdiff1d(np.arange(len(column)), rows, assume_unique=True)
    return np.sort(np.concatenate([rows[first], alone]))


def _may_be_place(pairs: _Pairs, geography: _Geography) -> bool:
    """Whether the first records leave it open that a column is a place."""
    measured = [one for _, both in _measured(pairs, geography) for one in both]
    return any(one.gained < SURE or one.share >= LITTLE for one in measured)


def _measured(pairs: _Pairs, geography: _Geography) -> Iterator[tuple[str, tuple[Dependence, Dependence]]]:
    """For each column of the geography, finest first: how far the other decides it, and follows from it."""
    values, finest, counts = pairs.all()
    for column, above in geography.levels():
        place = above[finest]
        known = place >= 0
        level = _Pairs()
        level.add_counted(values[known], place[known], counts[known])
        yield column, (dependence(*level.all()), dependence(*_turned(level)))


def _turned(pairs: _Pairs) -> tuple[Codes, Codes, Codes]:
    one, other, counts = pairs.all()
    return other, one, counts


def _relation(column: str, pairs: _Pairs, geography: _Geography) -> PlaceColumn | None:
    """What a column is to the geography: the same places, finer ones, or coarser ones."""
    measured = list(_measured(pairs, geography))
    for name, (decides, follows) in measured:
        if _holds(decides) and _holds(follows):
            return PlaceColumn(column, name, Relation.SAME, _is_exact(decides) and _is_exact(follows))
    for name, (decides, _) in measured:
        if _holds(decides):
            return PlaceColumn(column, name, Relation.DECIDES, _is_exact(decides))
    name, (_, follows) = measured[0]
    if _holds(follows):
        return PlaceColumn(column, name, Relation.FOLLOWS, _is_exact(follows))
    return None


def _holds(found: Dependence) -> bool:
    return found.gained >= FEWEST and found.share >= 1 - MOST_EXCEPTIONS


def _is_exact(found: Dependence) -> bool:
    return found.predicted == found.judged


def place_column_problems(programme: Programme) -> Iterator[Problem]:
    """Variables that are places and not declared so, where swapping or the table builder's guards rest on places."""
    population = programme.population
    if population is None:
        return
    if programme.swap is not None and population.geography:
        exchanged = {*population.geography, *programme.swap.carry}
        open_ = [v for v in programme.variables.values() if v.place is None and v.column not in exchanged]
        flags = {cube.count for cube in programme.cubes if cube.count} | set(programme.serve.counts)
        yield from _swap_problems(programme, population, open_, flags - population.not_places)
    if programme.serve.place in programme.variables:  # an unknown one is a mistake of the programme file
        yield from _serve_problems(programme, population, programme.serve)


def _swap_problems(
    programme: Programme, population: PopulationRule, variables: Sequence[Variable], flags: Collection[str]
) -> Iterator[Problem]:
    for variable, found in _found(population, population.geography, variables, flags):
        value = f"column {found}, and is not exchanged with it: its tables would undo the swap"
        key, remedy = "population.flags", "make it a variable with place = true, or state place = false"
        if variable is not None:
            key = f"variables.{variable.name}"
            remedy = "add place = true to exchange it too, or place = false if it is no place"
        yield Problem(str(programme.path), key, value, remedy)


def _serve_problems(programme: Programme, population: PopulationRule, rule: ServeRule) -> Iterator[Problem]:
    """A second variable that decides the areas that the guards judge: tables by it would evade them."""
    place = programme.variables[str(rule.place)]
    served = programme.variables if rule.variables is None else rule.variables
    others = [
        v
        for name, v in programme.variables.items()
        if name in served and name != place.name and v.place is not False
    ]
    for variable, found in _found(population, (place.column,), others):
        if variable is not None and found.relation is not Relation.FOLLOWS:
            value = f"column {found}, so that tables by {variable.name} evade the rules about {place.name}"
            remedy = f"leave {variable.name} out of serve.variables, or add place = false if it is no place"
            yield Problem(str(programme.path), f"variables.{variable.name}", value, remedy)


def _found(
    population: PopulationRule,
    geography: Sequence[str],
    variables: Iterable[Variable],
    flags: Collection[str] = (),
) -> Iterator[tuple[Variable | None, PlaceColumn]]:
    """The variables, and 0/1 columns (None), that are places in any table that has them, each once."""
    opened = {n: open_source(unit.source, f"population.{n}") for n, unit in population.units.items()}
    household = population.ids.get(HOUSEHOLDS)
    left, left_flags = {variable.name: variable for variable in variables}, set(flags)
    for unit, records in opened.items():
        wanted = {n: v for n, v in left.items() if v.units is None or unit in v.units}
        columns = [*map(_judged, wanted.values()), *map(_Judged, sorted(left_flags))]
        places = _in_table(records, opened, geography, dict.fromkeys(columns), household)
        for name, variable in wanted.items():
            if _judged(variable) in places:
                yield variable, places[_judged(variable)]
                del left[name]
        for flag in sorted(left_flags):
            if _Judged(flag) in places:
                yield None, places[_Judged(flag)]
                left_flags.remove(flag)


def _in_table(
    records: Records,
    opened: Mapping[str, Records],
    geography: Sequence[str],
    columns: Collection[_Judged],
    household: str | None,
) -> dict[_Judged, PlaceColumn]:
    """Judge the columns of a table by its own geography, or by that of its households."""
    names = records.schema.names
    own = [column for column in geography if column in names]
    if own:
        places = _Geography(own)
        return _related(records, places, places, columns, household)
    if household is None or household not in names or not {one.column for one in columns} & set(names):
        return {}
    for other in opened.values():
        there = [column for column in geography if column in other.schema.names]
        if there and household in other.schema.names:
            places = _Geography(there)
            key = secrets.token_bytes(32)
            return _related(records, _homes(other, places, household, key), places, columns, household)
    return {}


def _homes(records: Records, places: _Geography, household: str, key: bytes) -> _Elsewhere:
    ids: list[NDArray[np.uint64]] = [np.empty(0, dtype=np.uint64)]
    codes: list[Codes] = [np.empty(0, dtype=np.int64)]
    for batch in records.batches([household], places.columns):
        hashes, rows = _hashed(batch.column(household), key)
        ids.append(hashes)
        codes.append(places.codes(batch)[rows])
    return _Elsewhere(household, np.concatenate(ids), np.concatenate(codes), key)
