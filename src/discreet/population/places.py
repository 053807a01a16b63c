"""Checks of the geography: that its levels nest, and that each household is in one place.

The first refuses a release. Only swapping depends on the second, and finds it itself, so it is otherwise a warning.
Both look at batches of records, either of a reading of their own or of one that counts them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import Problem
from discreet.io.column_names import shown_names
from discreet.io.databases import open_source
from discreet.io.files import Records
from discreet.io.id_hashes import Ascending, IdHashes
from discreet.lazy import lazily
from discreet.maths.cells.keys import SECRET_BYTES
from discreet.population import encode
from discreet.population.values import are_rare
from discreet.programme.codelist import Codelist
from discreet.programme.programme import Programme, Unit, Variable

pc = lazily("pyarrow.compute")

Place = tuple[str, ...]  # coarse to fine


class PlacesSeen:
    """The different places of a unit's records; ``coded`` are its columns of the geography."""

    def __init__(self, programme: Programme, unit: Unit, records: Records) -> None:
        rule = programme.population
        self._geography = rule.geography if rule is not None else ()
        self._unit, self._records, self._variables = unit, records, tuple(programme.variables.values())
        self.plain: Sequence[str] = ()
        found = [column for column in self._geography if column in records.schema.names]
        self._nested = [column for column in found if _is_nested(records, column)]
        self.coded = [] if self._nested else found
        if not found and rule is not None and len(rule.units) > 1:
            self._geography = ()  # the places may be only in the tables of the other units
        self._places: set[Place] = set()
        self._number = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Note the places of some records."""
        self._number += batch.num_rows
        if self.coded:
            self._places.update(_distinct(batch, self.coded))

    def problems(self) -> Iterator[Problem]:
        """Missing columns, columns of lists, records without a place, levels that do not nest."""
        yield from _lacking(self._geography, self._records, self._unit)
        for column in self._nested:
            value = f"values of type {self._records.schema.field(column).type}"
            yield Problem(self._records.name, f"column {column}", value, "give codes as text or numbers")
        if not self.coded:
            return
        places, columns = self._places, self.coded
        if code_of_missing(columns[-1], self._variables) is not None:
            places = {place for place in places if place[-1] is not None}
        yield from _gap_problems(places, columns, self._records)
        places = {place for place in places if None not in place}
        hidden = [are_rare(len(set(values)), self._number) for values in zip(*places, strict=True)]
        yield from _nesting_problems(places, columns, hidden, self._records, self._unit)
        yield from _codelist_problems(places, columns, hidden, self._records, self._variables)


def _is_nested(records: Records, column: str) -> bool:
    """Whether the values of a column are lists or the like."""
    nested: bool = pa.types.is_nested(records.schema.field(column).type)
    return nested


def place_problems(programme: Programme, unit: Unit) -> Iterator[Problem]:
    """The problems of a unit's geography, and of a source that cannot be opened, counted or not."""
    records = open_source(unit.source, f"population.{unit.name}")
    if programme.population is None or not programme.population.geography:
        return
    seen = PlacesSeen(programme, unit, records)
    for batch in records.batches([], seen.coded) if seen.coded else ():
        seen.add(batch)
    yield from seen.problems()


class HomesSeen:
    """Whether members of one household are in several places.

    Members are mostly adjacent, so that no household begins twice where none is divided. Where one does, its members
    may only be apart: the records are then read again. Ids are hashed under a temporary key, in bounded memory.
    """

    def __init__(self, records: Records, household: str, finest: str) -> None:
        self._records, self._household, self._finest = records, household, finest
        self.plain, self.coded = (household,), (finest,)
        self._key = secrets.token_bytes(SECRET_BYTES)
        self._begun = IdHashes()  # households, each where its members begin or change their place
        self._ascending = Ascending()  # the ids of the same, where they are whole numbers
        self._last: tuple[int, pa.Scalar] | None = None  # household and place of the last record
        self._is_simple = True  # whether every record has a household and a place

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at the next records."""
        ids, places = encode.bare(batch.column(self._household)), encode.bare(batch.column(self._finest))
        self._is_simple &= not (ids.null_count or places.null_count)
        if not self._is_simple or not batch.num_rows:
            return
        coded = places if pa.types.is_dictionary(places.type) else places.dictionary_encode()
        here = coded.indices.to_numpy(zero_copy_only=False)
        try:
            whole = encode.integers(ids)
            numbers: NDArray[Any] = self._hashed(ids) if whole is None else whole
            first = _begins(numbers, here)
            ends = [(int(numbers[at]), coded.dictionary[int(here[at])]) for at in (0, -1)]
            first[0] = ends[0] != self._last
            self._last = ends[1]
            self._ascending.add(None if whole is None else whole[first])
            self._begun.add(numbers[first] if whole is None else self._hashed(pa.array(whole[first])))
        except encode.BadColumn:
            self._is_simple = False

    def problems(self) -> Iterator[Problem]:
        """The problem of a household that is in two places."""
        if not (self._is_simple and self._are_whole()) and self._is_divided():
            yield Problem(
                self._records.name,
                "population.household_id",
                f"a household is in two places of {self._finest!r}",
                "give all its members the same geography",
            )

    def _are_whole(self) -> bool:
        """Whether no household begins twice."""
        return bool(self._ascending) or not self._begun.occurs(2)

    def _is_divided(self) -> bool:
        """Whether there are more pairs of a household and a place than households, in another reading of the records.

        Members without a household or a place are skipped.
        """
        homes, pairs, known = IdHashes(), IdHashes(), dict[str, int]()
        for batch in self._records.batches(self.plain, self.coded):
            ids, place = batch.column(self._household), _numbers(batch.column(self._finest), known)
            if ids.null_count or (place < 0).any():
                present = (place >= 0) & pc.is_valid(ids).to_numpy(zero_copy_only=False)
                ids, place = ids.filter(pa.array(present)), place[present]
            try:
                hashes = self._hashed(ids)
            except encode.BadColumn:
                return False
            first = _begins(hashes, place)
            homes.add(hashes[first])
            pairs.add(hashes[first] ^ _spread(place[first]))
        return pairs.distinct() > homes.distinct()

    def _hashed(self, ids: pa.Array) -> NDArray[np.uint64]:
        return encode.hashed_ids(ids, self._key, "household")


def _begins(households: NDArray[Any], places: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark the records that are of another household or in another place than the one before."""
    first = np.ones(len(households), dtype=bool)
    first[1:] = (households[1:] != households[:-1]) | (places[1:] != places[:-1])
    return first


class GeographySeen:
    """What is looked at in the records of a unit while they are read: their places, and the homes of persons."""

    def __init__(self, programme: Programme, unit: Unit, records: Records) -> None:
        self._places = PlacesSeen(programme, unit, records)
        self._homes = homes_seen(programme, records) if unit.name == "persons" else None

    @property
    def looks(self) -> tuple[PlacesSeen | HomesSeen, ...]:
        """What looks at each batch."""
        return (self._places,) if self._homes is None else (self._places, self._homes)

    def problems(self) -> Iterator[Problem]:
        """What is wrong with the geography."""
        return self._places.problems()

    def divided(self) -> tuple[Problem, ...]:
        """The problem of a household that is in two places, if there is one."""
        return () if self._homes is None else tuple(self._homes.problems())


def divided_households(programme: Programme) -> Iterator[Problem]:
    """The problem of a household that is in two places."""
    records = _persons(programme)
    seen = None if records is None else homes_seen(programme, records)
    if records is None or seen is None:
        return
    for batch in records.batches(seen.plain, seen.coded):
        seen.add(batch)
    yield from seen.problems()


def homes_seen(programme: Programme, records: Records) -> HomesSeen | None:
    """A look at the homes of persons; None where they have no households, or no places."""
    rule = programme.population
    if rule is None:
        return None
    names, household = records.schema.names, rule.ids.get("households")
    finest = next((column for column in reversed(rule.geography) if column in names), None)
    if household is None or household not in names or finest is None or _is_nested(records, finest):
        return None
    return HomesSeen(records, household, finest)


def _persons(programme: Programme) -> Records | None:
    rule = programme.population
    if rule is None or not rule.geography or "persons" not in rule.units:
        return None
    return open_source(rule.units["persons"].source, "population.persons")


def code_of_missing(column: str, variables: Iterable[Variable]) -> str | None:
    """The code of records without a place, where the variable of the finest geography has one."""
    found = (variable.coding.missing for variable in variables if variable.column == column)
    return next((code for code in found if code is not None), None)


def _lacking(geography: Iterable[str], records: Records, unit: Unit) -> Iterator[Problem]:
    """The columns missing from a table that has part of the geography."""
    for column in geography:
        if column not in records.schema.names:
            near = get_close_matches(column, shown_names(records, f"population.{unit.name}"), 1)
            remedy = f"did you mean {near[0]!r}?" if near else "add it or remove it from the geography"
            yield Problem(
                records.name, f"population.geography ({unit.name})", f"unknown column {column!r}", remedy
            )


def _distinct(batch: pa.RecordBatch, columns: list[str]) -> Iterator[Place]:
    """The different places of some records, as text: values are compared, and only different ones become text."""
    plain = [encode.bare(batch.column(name)) for name in columns]
    if all(pa.types.is_dictionary(column.type) and not column.null_count for column in plain):
        sizes = [len(column.dictionary) for column in plain]
        if prod(sizes) <= np.iinfo(np.int64).max:
            found = np.unravel_index(np.unique(np.ravel_multi_index(_run_starts(plain), sizes)), sizes)
            yield from zip(*map(_named, plain, found), strict=True)
            return
    places = pa.table(plain, names=columns).group_by(columns).aggregate([])
    yield from zip(*(_texts(places.column(name).combine_chunks()) for name in columns), strict=True)


def _run_starts(columns: list[pa.DictionaryArray]) -> tuple[NDArray[np.int64], ...]:
    """The codes that differ from the record before: records are mostly ordered by place, so that these are few."""
    codes = [column.indices.to_numpy(zero_copy_only=False) for column in columns]
    first = np.zeros(len(codes[0]), dtype=bool)
    first[:1] = True
    for one in codes:
        first[1:] |= one[1:] != one[:-1]
    return tuple(one[first].astype(np.int64) for one in codes)


def _named(column: pa.DictionaryArray, codes: NDArray[np.int64]) -> list[str | None]:
    """The values of some codes as text; only the part of the dictionary that has them is read."""
    low, high = int(codes.min()), int(codes.max())
    texts = _texts(column.dictionary.slice(low, high - low + 1))
    return [texts[code - low] for code in codes.tolist()]


def _texts(column: pa.Array) -> list[str | None]:
    """The values as text; None where one is missing, blank or no text."""
    if pa.types.is_dictionary(column.type):
        return _texts(pc.take(column.dictionary, column.indices))
    column = encode.bare(column)
    if not encode.is_text(column.type):
        try:
            column = pc.cast(column, pa.string())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            return [None] * len(column)
    return [text if text and not text.isspace() else None for text in column.to_pylist()]


def _gap_problems(places: Iterable[Place], columns: list[str], records: Records) -> Iterator[Problem]:
    for k, column in enumerate(columns):
        if any(place[k] is None for place in places):
            remedy = "give every record its place, for example a code for 'not known'"
            yield Problem(records.name, f"column {column}", "some records have no place", remedy)


def _nesting_problems(
    places: Iterable[Place], columns: list[str], hidden: Sequence[bool], records: Records, unit: Unit
) -> Iterator[Problem]:
    parents: dict[tuple[str, str], str] = {}
    reported: set[str] = set()
    for place in sorted(places):
        for k in range(1, len(columns)):
            first = parents.setdefault((columns[k], place[k]), place[k - 1])
            if first != place[k - 1] and columns[k] not in reported:
                reported.add(columns[k])
                names, are_hidden = (first, place[k - 1]), (hidden[k], hidden[k - 1])
                value = not_nested(columns[k], place[k], columns[k - 1], names, are_hidden)
                yield Problem(records.name, f"population.geography ({unit.name})", value, NEST)


NEST = "make the geography nest"


def not_nested(column: str, name: str, above: str, names: tuple[str, str], hidden: tuple[bool, bool]) -> str:
    """A value of a column that has two values of the column above; ``hidden``: which of the columns shows none.

    Columns with few records for each value show none: they may be columns of ids, by mistake.
    """
    what = f"a value of {column}" if hidden[0] else f"{column} {name!r}"
    where = f"two values of {above}" if hidden[1] else f"{above} {names[0]!r} and in {names[1]!r}"
    return f"{what} is in {where}"


def _codelist_problems(
    places: Iterable[Place],
    columns: list[str],
    hidden: Sequence[bool],
    records: Records,
    variables: Iterable[Variable],
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
            where = "another place" if any(hidden[:-1]) else "/".join(place[:-1])
            value = f"{place[-1]!r} is in {where}, but in the codelist in {'/'.join(chain[:-1])}"
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


def _numbers(places: pa.Array, known: dict[str, int]) -> NDArray[np.int64]:
    """The number of each record's place, by those that are known, -1 where it is missing."""
    places = encode.bare(places)
    coded = places if pa.types.is_dictionary(places.type) else places.dictionary_encode()
    names = [*_texts(coded.dictionary), None]
    found = [-1 if name is None else known.setdefault(name, len(known)) for name in names]
    entries = pc.fill_null(pc.cast(coded.indices, pa.int64()), len(names) - 1)
    numbers: NDArray[np.int64] = np.array(found, dtype=np.int64)[entries.to_numpy(zero_copy_only=False)]
    return numbers


def _spread(places: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Different words for different places: a hash that is combined with two of them differs in many bits."""
    return (places.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
