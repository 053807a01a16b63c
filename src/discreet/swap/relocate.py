"""Applies swaps to tables: finds the household of each record and its new place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.io.databases import open_source
from discreet.io.files import Records
from discreet.maths.swap import Places
from discreet.population import encode
from discreet.population.encode import Codes
from discreet.population.reading import Relocation
from discreet.population.values import coder_of
from discreet.programme.programme import PopulationRule, Programme, Unit, Variable
from discreet.swap.result import HOUSEHOLD, Moves
from discreet.swap.tables import codes_of

STAYS = -1


@dataclass(frozen=True)
class Hashing:
    """Hashes ids for one purpose."""

    purpose: str
    secret: bytes = field(repr=False)

    def __call__(self, column: pa.Array) -> NDArray[np.uint64]:
        """The hashes of a column of ids."""
        return encode.hashed_ids(column, self.secret, self.purpose)


@dataclass(frozen=True, eq=False)
class Link:
    """A column of ids, the ids whose records move (hashed and sorted), and the move of each."""

    column: str
    ids: NDArray[np.uint64]
    moves: NDArray[np.int64]
    hashed: Hashing

    def unhashed(self) -> tuple[str, NDArray[np.uint64], NDArray[np.int64], str]:
        """The link without the secret: its column, ids, moves, and the purpose that ids are hashed for."""
        return self.column, self.ids, self.moves, self.hashed.purpose

    def moves_of(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """The move of each record, or STAYS; a record without an id belongs to no household and stays."""
        return self._found(batch.column(self.column))

    def _found(self, column: pa.Array) -> NDArray[np.int64]:
        found = np.full(len(column), STAYS, dtype=np.int64)
        if not len(self.ids):
            return found
        known = pc.is_valid(column)
        places = self._places.numbers(self.hashed(column.filter(known)))
        found[known.to_numpy(zero_copy_only=False)] = np.where(places >= 0, self.moves[places], STAYS)
        return found

    @cached_property
    def _places(self) -> Places:
        return Places(self.ids)


def household_link(column: str, households: NDArray[np.uint64], hashed: Hashing) -> Link:
    """The link of a table that names the household of each record."""
    return Link(column, households, np.arange(len(households)), hashed)


def link_through(through: Records, own: str, household: Link, hashed: Hashing) -> Link:
    """The link of a table without household ids, through a table with both its ids and those of households.

    A record that several households share, such as a dwelling, can only move with them if all move to the same place.
    """
    ids: list[NDArray[np.uint64]] = []
    moves: list[NDArray[np.int64]] = []
    for batch in through.batches([own, household.column], []):
        present = batch.filter(pc.is_valid(batch.column(own)))
        ids.append(hashed(present.column(own)))
        moves.append(household.moves_of(present))
    pairs = _distinct(_joined(ids, np.uint64), _joined(moves, np.int64))
    if (pairs[0][1:] == pairs[0][:-1]).any():
        value = f"records of {own!r} are shared by households that are swapped to different places"
        remedy = "swap none of these households: list them as excluded, or give each a separate record"
        raise mistake(through.name, "swap", value, remedy)
    moving = pairs[1] != STAYS
    return Link(own, pairs[0][moving], pairs[1][moving], hashed)


def _joined(parts: Iterable[NDArray[np.generic]], kind: type[np.generic]) -> NDArray[np.generic]:
    return np.concatenate([np.empty(0, dtype=kind), *parts])


def _distinct(
    ids: NDArray[np.generic], moves: NDArray[np.generic]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    order = np.lexsort((moves, ids))
    ids, moves = ids[order], moves[order]
    new = np.ones(len(ids), dtype=bool)
    new[1:] = (ids[1:] != ids[:-1]) | (moves[1:] != moves[:-1])
    return ids[new].astype(np.uint64, copy=False), moves[new].astype(np.int64, copy=False)


def hashing(secret: bytes, purpose: str) -> Hashing:
    """The function that hashes ids for one purpose."""
    return Hashing(purpose, secret)


def unit_link(
    name: str, tables: Mapping[str, Records], rule: PopulationRule, moves: Moves, secret: bytes
) -> Link | None:
    """The link from the records of a table to their households; None if the table has no places."""
    records = tables[name]
    if not set(moves.values) & set(records.schema.names):
        return None
    household = rule.ids["households"]
    direct = household_link(household, moves.ids, hashing(secret, HOUSEHOLD))
    if household in records.schema.names:
        return direct
    own = rule.ids.get(name)
    for other in tables.values():
        if own in records.schema.names and {own, household} <= set(other.schema.names):
            return link_through(other, str(own), direct, hashing(secret, f"swap/{name}"))
    remedy = f"add the column {household!r}, or one that leads to it through another table"
    raise mistake(records.name, f"population.{name}", "places without a household", remedy)


@dataclass(frozen=True)
class Relocations:
    """The moves of one population, for any of its tables."""

    programme: Programme
    moves: Moves
    secret: bytes

    def of(self, unit: Unit) -> Relocation | None:
        """The relocation of a unit's table; None if it has no places."""
        link = self.link(unit)
        return None if link is None else Relocation(link.column, link.moves_of, self.leaves(unit))

    def link(self, unit: Unit) -> Link | None:
        """How the records of a unit's table are found among the moves; None if it has no places."""
        rule = self.programme.population
        if rule is None:
            return None
        tables = {name: open_source(one.source, f"population.{name}") for name, one in rule.units.items()}
        return unit_link(unit.name, tables, rule, self.moves, self.secret)

    def leaves(self, unit: Unit) -> dict[str, Codes]:
        """Variable -> move -> leaf, for the variables in exchanged columns."""
        records = open_source(unit.source, f"population.{unit.name}")
        return {
            name: self._encoded(variable, records.decimal)
            for name, variable in self.programme.variables.items()
            if variable.column in self.moves.values
            and variable.column in records.schema.names
            and (variable.units is None or unit.name in variable.units)
        }

    def _encoded(self, variable: Variable, decimal: str) -> Codes:
        values = self.moves.values[variable.column]
        return codes_of(variable, coder_of(variable, decimal), values, "the exchanged places")
