"""Checks of the geography: that its levels nest, and that each household is in one place.

The first refuses a release. Only swapping depends on the second, and finds it itself, so it is otherwise a warning.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.errors import Problem
from discreet.io.databases import open_source
from discreet.io.files import Records
from discreet.maths.cells.keys import hash_order
from discreet.population import encode
from discreet.programme.codelist import Codelist
from discreet.programme.programme import Programme, Unit, Variable

Place = tuple[str, ...]  # coarse to fine


def place_problems(programme: Programme, unit: Unit) -> Iterator[Problem]:
    """The problems of a unit's geography: missing columns, records without a place, levels that do not nest."""
    rule = programme.population
    if rule is None or not rule.geography:
        return
    records = open_source(unit.source, f"population.{unit.name}")
    columns = [column for column in rule.geography if column in records.schema.names]
    if not columns and len(rule.units) > 1:
        return  # the places may be only in the tables of the other units
    yield from _lacking(rule.geography, records, unit)
    if not columns:
        return
    nested = [column for column in columns if pa.types.is_nested(records.schema.field(column).type)]
    for column in nested:
        value, remedy = f"values of type {records.schema.field(column).type}", "give codes as text or numbers"
        yield Problem(records.name, f"column {column}", value, remedy)
    if nested:
        return
    places: set[Place] = set()
    for batch in records.batches([], columns):
        places.update(_distinct(batch, columns))
    if code_of_missing(columns[-1], programme.variables.values()) is not None:
        places = {place for place in places if place[-1] is not None}
    yield from _gap_problems(places, columns, records)
    places = {place for place in places if None not in place}
    yield from _nesting_problems(places, columns, records, unit)
    yield from _codelist_problems(places, columns, records, programme.variables.values())


def divided_households(programme: Programme) -> Iterator[Problem]:
    """Whether members of one household are in several places."""
    rule = programme.population
    if rule is None or not rule.geography or "persons" not in rule.units:
        return
    records = open_source(rule.units["persons"].source, "population.persons")
    names, household = records.schema.names, rule.ids.get("households")
    finest = next((column for column in reversed(rule.geography) if column in names), None)
    if household is None or household not in names or finest is None:
        return
    if not (_adjacent(records, household, finest) or _Homes.of(records, household, finest).sound()):
        yield Problem(
            records.name,
            "population.household_id",
            f"a household is in two places of {finest!r}",
            "give all its members the same geography",
        )


def code_of_missing(column: str, variables: Iterable[Variable]) -> str | None:
    """The code of records without a place, where the variable of the finest geography has one."""
    found = (variable.coding.missing for variable in variables if variable.column == column)
    return next((code for code in found if code is not None), None)


def _lacking(geography: Iterable[str], records: Records, unit: Unit) -> Iterator[Problem]:
    """The columns missing from a table that has part of the geography."""
    for column in geography:
        if column not in records.schema.names:
            near = get_close_matches(column, records.schema.names, 1)
            remedy = f"did you mean {near[0]!r}?" if near else "add it or remove it from the geography"
            yield Problem(
                records.name, f"population.geography ({unit.name})", f"unknown column {column!r}", remedy
            )


def _distinct(batch: pa.RecordBatch, columns: list[str]) -> Iterator[Place]:
    """The different places of some records, as text: values are compared, and only different ones become text."""
    stored = [batch.column(name) for name in columns]
    plain = [_plain(column) for column in stored]
    found = pa.table(_run_starts(plain), names=columns).group_by(columns).aggregate([])
    yield from zip(*(_text(found.column(name).combine_chunks()).to_pylist() for name in columns), strict=True)


def _run_starts(columns: list[pa.Array]) -> list[pa.Array]:
    """The rows that differ from the one before: records are mostly ordered by place, so that these are few."""
    first = np.zeros(len(columns[0]), dtype=bool)
    first[:1] = True
    for column in columns:
        if not pa.types.is_dictionary(column.type) or column.null_count:
            return columns
        codes = column.indices.to_numpy(zero_copy_only=False)
        first[1:] |= codes[1:] != codes[:-1]
    rows = pa.array(np.flatnonzero(first))
    return [column.take(rows) for column in columns]


def _text(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return pc.take(_text(column.dictionary), column.indices)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    try:
        text = pc.cast(column, pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.nulls(len(column), pa.string())
    return pc.if_else(pc.equal(pc.utf8_trim_whitespace(text), ""), pa.scalar(None, pa.string()), text)


def _gap_problems(places: Iterable[Place], columns: list[str], records: Records) -> Iterator[Problem]:
    for k, column in enumerate(columns):
        if any(place[k] is None for place in places):
            remedy = "give every record its place, for example a code for 'not known'"
            yield Problem(records.name, f"column {column}", "some records have no place", remedy)


def _nesting_problems(
    places: Iterable[Place], columns: list[str], records: Records, unit: Unit
) -> Iterator[Problem]:
    parents: dict[tuple[str, str], str] = {}
    reported: set[str] = set()
    for place in sorted(places):
        for k in range(1, len(columns)):
            first = parents.setdefault((columns[k], place[k]), place[k - 1])
            if first != place[k - 1] and columns[k] not in reported:
                reported.add(columns[k])
                value = f"{columns[k]} {place[k]!r} is in {columns[k - 1]} {first!r} and in {place[k - 1]!r}"
                yield Problem(
                    records.name, f"population.geography ({unit.name})", value, "make the geography nest"
                )


def _codelist_problems(
    places: Iterable[Place], columns: list[str], records: Records, variables: Iterable[Variable]
) -> Iterator[Problem]:
    """Compare the coarser columns with the tree of the finest one's codelist."""
    variable = next((variable for variable in variables if variable.column == columns[-1]), None)
    if variable is None or variable.codelist.depth != len(columns):
        return
    tree = variable.codelist
    leaves = set(tree.leaf_codes)
    named: dict[tuple[int, str], str] = {}  # a column may use other names than the codelist, but consistently
    for place in sorted(places):
        if place[-1] not in leaves:
            continue  # reported where the codes are checked
        chain = tuple(tree.codes[index] for index in reversed(tree.ancestors(tree.position[place[-1]])))
        if any(
            _code_of(tree, level, place[level], chain, named) != chain[level] for level in range(len(chain))
        ):
            value = (
                f"{place[-1]!r} is in {'/'.join(place[:-1])}, but in the codelist in {'/'.join(chain[:-1])}"
            )
            yield Problem(
                records.name, f"variables.{variable.name}", value, "correct the codelist or the records"
            )
            return


def _code_of(tree: Codelist, level: int, name: str, chain: Place, named: dict[tuple[int, str], str]) -> str:
    """The code of a value of a coarser column: itself, or the first code that it occurred with."""
    position = tree.position.get(name)
    if position is not None and tree.depths[position] == level + 1:
        return name
    return named.setdefault((level, name), chain[level])


def _adjacent(records: Records, household: str, finest: str) -> bool:
    """Whether members of each household are adjacent, and in one place, as they mostly are; costs a third of _Homes."""
    starts: list[NDArray[np.integer]] = []
    last = None
    for batch in records.batches([household], [finest]):
        ids, places = batch.column(household), _plain(batch.column(finest))
        if not pa.types.is_integer(ids.type) or ids.null_count or places.null_count:
            return False
        if not len(ids):
            continue
        coded = places if pa.types.is_dictionary(places.type) else places.dictionary_encode()
        numbers, here = ids.to_numpy(), coded.indices.to_numpy(zero_copy_only=False)
        first = np.ones(len(numbers), dtype=bool)
        first[1:] = (numbers[1:] != numbers[:-1]) | (here[1:] != here[:-1])
        first[0] = (numbers[0], coded.dictionary[int(here[0])].as_py()) != last
        last = (numbers[-1], coded.dictionary[int(here[-1])].as_py())
        starts.append(numbers[first])
    if not starts:
        return True
    found = np.sort(np.concatenate(starts))
    return not bool((found[1:] == found[:-1]).any())


def _plain(column: pa.Array) -> pa.Array:
    return column.storage if isinstance(column, pa.ExtensionArray) else column


class _Homes:
    """The places of households, by hashes of their ids under a temporary key.

    Members are mostly adjacent, so that only the first of those with the same household and place is stored.
    """

    def __init__(self, column: str) -> None:
        self._key = secrets.token_bytes(32)
        self._ids: list[NDArray[np.uint64]] = []
        self._places: list[NDArray[np.int32]] = []
        self._known: dict[str, int] = {}  # place -> its number
        self._column = column

    @classmethod
    def of(cls, records: Records, household: str, finest: str) -> _Homes:
        """The places of all records."""
        homes = cls(household)
        for batch in records.batches([household], [finest]):
            homes.add(batch, batch.column(finest))
        return homes

    def add(self, batch: pa.RecordBatch, places: pa.Array) -> None:
        """Record the places of households; members without a household or a place are skipped."""
        ids, place = batch.column(self._column), self._numbers(places)
        if ids.null_count or (place < 0).any():
            known = (place >= 0) & pc.is_valid(ids).to_numpy(zero_copy_only=False)
            ids, place = ids.filter(pa.array(known)), place[known]
        try:
            hashes = encode.hashed_ids(ids, self._key, "household")
        except encode.BadColumn:
            return
        first = np.ones(len(hashes), dtype=bool)
        first[1:] = (hashes[1:] != hashes[:-1]) | (place[1:] != place[:-1])
        self._ids.append(hashes[first])
        self._places.append(place[first])

    def _numbers(self, places: pa.Array) -> NDArray[np.int32]:
        """The number of each record's place, -1 where it is missing."""
        places = _plain(places)
        coded = places if pa.types.is_dictionary(places.type) else places.dictionary_encode()
        names = [*_text(coded.dictionary).to_pylist(), None]
        found = [-1 if name is None else self._known.setdefault(name, len(self._known)) for name in names]
        entries = pc.fill_null(pc.cast(coded.indices, pa.int64()), len(names) - 1)
        numbers: NDArray[np.int32] = np.array(found, dtype=np.int32)[entries.to_numpy(zero_copy_only=False)]
        return numbers

    def sound(self) -> bool:
        """Whether each household is in one place."""
        if not self._ids:
            return True
        order, ids = hash_order(np.concatenate(self._ids))
        places = np.concatenate(self._places)[order]
        return not bool(((ids[1:] == ids[:-1]) & (places[1:] != places[:-1])).any())
