"""The persons of a swapped population with their places and risk variables, read anew for the auditor.

It shares no code with the search for risk, so that one can check the other; it counts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.engine.records import Records
from discreet.engine.sources import open_source
from discreet.population.encode import encode
from discreet.schema.codelist import Breakdown
from discreet.schema.programme import Programme, Variable
from discreet.swap.links import STAYS, hashing, household_link
from discreet.swap.result import HOUSEHOLD, Households

Ints = NDArray[np.integer[Any]]
OUTSIDE = STAYS


@dataclass(frozen=True, eq=False, repr=False)
class Members:
    """Persons with a place, their households, and their values of the risk variables."""

    household: NDArray[np.int64]  # person -> row of the household, -1 outside all of them
    region: NDArray[np.int32]  # (level, person) -> region code before anything was swapped
    codes: Mapping[str, Ints]  # risk variable -> code of each person

    def __len__(self) -> int:
        return len(self.household)


def read_members(programme: Programme, households: Households, secret: bytes) -> Members:
    """Read the persons; one outside all households counts where the table tells a place."""
    rule, population = programme.swap, programme.population
    if rule is None or population is None:
        raise ValueError("a programme without [swap] and a population has no members to read")
    reader = _Reader(programme, households, population.ids["households"], secret)
    persons = reader.opened("persons")
    held = [axis for axis in rule.risk if programme.variables[axis.variable].column in persons.schema.names]
    own = {axis.full_name: [] for axis in held}  # type: dict[str, list[Ints]]
    rows: list[NDArray[np.int64]] = []
    regions: list[NDArray[np.int32]] = []
    for batch, found in reader.batches(persons, held, households.levels):
        rows.append(found)
        regions.append(_regions(batch, found, households))
        for axis in held:
            own[axis.full_name].append(_codes(batch, axis, programme.variables[axis.variable]))
    household = np.concatenate([np.empty(0, dtype=np.int64), *rows])
    region = np.concatenate([np.empty((len(households.levels), 0), dtype=np.int32), *regions], axis=1)
    codes: dict[str, Ints] = {}
    for axis in rule.risk:
        if axis in held:
            codes[axis.full_name] = np.concatenate([np.empty(0, dtype=np.int32), *own[axis.full_name]])
        else:
            codes[axis.full_name] = _of_the_household(reader, axis, household)
    placed = (region >= 0).all(axis=0)
    return Members(household[placed], region[:, placed], {name: code[placed] for name, code in codes.items()})


class _Reader:
    """Reads tables that name the household of each record."""

    def __init__(self, programme: Programme, households: Households, column: str, secret: bytes) -> None:
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


def _codes(batch: pa.RecordBatch, axis: Breakdown, variable: Variable) -> Ints:
    leaves = {code: leaf for leaf, code in enumerate(variable.codelist.leaf_codes)}
    codes, _ = encode(batch.column(variable.column), leaves)
    return axis.node_of_leaf[codes]


def _of_the_household(reader: _Reader, axis: Breakdown, household: NDArray[np.int64]) -> Ints:
    """A variable that only the table of households holds; persons outside have a code of their own."""
    of_row = np.full(reader.number + 1, len(axis), dtype=np.int32)
    for batch, rows in reader.batches(reader.opened("households"), [axis], []):
        codes = _codes(batch, axis, reader.programme.variables[axis.variable])
        of_row[rows[rows != OUTSIDE]] = codes[rows != OUTSIDE]
    return of_row[household]  # row -1 is the last: outside


def _regions(batch: pa.RecordBatch, rows: NDArray[np.int64], households: Households) -> NDArray[np.int32]:
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
