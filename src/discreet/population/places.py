"""Checks of where records are: geographies that nest, and households that stand in one place; it counts nothing."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.engine.records import Records
from discreet.engine.sources import open_source
from discreet.errors import Problem
from discreet.population import encode
from discreet.schema.programme import Programme, Unit, Variable


def place_problems(programme: Programme, unit: Unit) -> Iterator[Problem]:
    """Say whether the unit's geography nests as declared and each household stands in one place."""
    rule = programme.population
    if rule is None or not rule.geography:
        return
    records = open_source(unit.source, f"population.{unit.name}")
    columns = [column for column in rule.geography if column in records.schema.names]
    household = rule.ids.get("households")
    with_household = household if unit.name == "persons" and household in records.schema.names else None
    if not columns:
        return
    places: set[tuple[str, ...]] = set()
    homes = _Homes()
    plain = [with_household] if with_household else []
    for batch in records.batches(plain, columns):
        places.update(_distinct(batch, columns))
        if with_household:
            homes.add(batch.column(with_household), batch.column(columns[-1]))
    yield from _nesting_problems(places, columns, records, unit)
    yield from _codelist_problems(places, columns, records, programme.variables.values())
    if with_household and not homes.sound():
        yield Problem(
            records.name,
            "population.household_id",
            f"a household stands in two places of {columns[-1]!r}",
            "give all its members the same geography",
        )


def _distinct(batch: pa.RecordBatch, columns: list[str]) -> Iterator[tuple[str, ...]]:
    texts = {column: _text(batch.column(column)) for column in columns}
    rows = pa.table(texts).group_by(columns).aggregate([]).to_pylist()
    return (tuple(str(row[column]) for column in columns) for row in rows)


def _text(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return pc.take(pc.cast(column.dictionary, pa.string()), column.indices)
    return pc.cast(column, pa.string())


def _nesting_problems(
    places: Iterable[tuple[str, ...]], columns: list[str], records: Records, unit: Unit
) -> Iterator[Problem]:
    parents: dict[tuple[str, str], str] = {}
    told: set[str] = set()
    for place in sorted(places):
        for k in range(1, len(columns)):
            first = parents.setdefault((columns[k], place[k]), place[k - 1])
            if first != place[k - 1] and columns[k] not in told:
                told.add(columns[k])
                value = (
                    f"{columns[k]} {place[k]!r} lies in {columns[k - 1]} {first!r} and in {place[k - 1]!r}"
                )
                yield Problem(
                    records.name, f"population.geography ({unit.name})", value, "make the geography nest"
                )


def _codelist_problems(
    places: Iterable[tuple[str, ...]], columns: list[str], records: Records, variables: Iterable[Variable]
) -> Iterator[Problem]:
    """Compare the coarser columns with the tree of the finest one's codelist."""
    variable = next((variable for variable in variables if variable.column == columns[-1]), None)
    if variable is None or variable.codelist.depth != len(columns):
        return
    tree = variable.codelist
    for place in sorted(places):
        if place[-1] not in tree.position:
            continue  # told where the codes are checked
        chain = tuple(tree.codes[index] for index in reversed(tree.ancestors(tree.position[place[-1]])))
        if chain != place:
            value = f"{place[-1]!r} lies in {'/'.join(place[:-1])}, in the codelist in {'/'.join(chain[:-1])}"
            yield Problem(
                records.name, f"variables.{variable.name}", value, "correct the codelist or the records"
            )
            return


class _Homes:
    """The places of households, by hashes of their ids under a key that is thrown away."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._ids: list[NDArray[np.uint64]] = []
        self._places: list[NDArray[np.uint64]] = []

    def add(self, ids: pa.Array, places: pa.Array) -> None:
        known = pc.is_valid(ids)
        ids, places = ids.filter(known), _text(places).filter(known)
        try:
            self._ids.append(encode.hashed_ids(ids, self._key, "household"))
            self._places.append(encode.hashed_ids(pc.fill_null(places, ""), self._key, "place"))
        except encode.BadColumn:
            return

    def sound(self) -> bool:
        if not self._ids:
            return True
        ids, places = np.concatenate(self._ids), np.concatenate(self._places)
        order = np.argsort(ids)
        same = ids[order][1:] == ids[order][:-1]
        return not bool((same & (places[order][1:] != places[order][:-1])).any())
