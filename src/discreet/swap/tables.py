"""Which table of a population supplies what swapping needs, and streaming it as codes, hashes and risks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem, mistake
from discreet.io.column_names import require_header, shown_names, similar
from discreet.io.databases import open_source
from discreet.io.files import Records
from discreet.population import encode
from discreet.population.encode import Codes
from discreet.population.values import Coder, look_like_ids, values_problem
from discreet.programme.programme import PopulationRule, Programme, Variable
from discreet.programme.swap import SwapRule

PERSONS, HOUSEHOLDS, DWELLINGS = "persons", "households", "dwellings"


@dataclass(frozen=True)
class SwapTables:
    """The opened tables of a programme that swaps."""

    programme: Programme
    rule: SwapRule
    population: PopulationRule
    opened: Mapping[str, Records]

    @property
    def household_id(self) -> str:
        """The column of the household's id."""
        return self.population.ids[HOUSEHOLDS]

    def has(self, unit: str, *columns: str) -> bool:
        """Whether a unit has a table with all these columns."""
        return unit in self.opened and set(columns) <= set(self.opened[unit].schema.names)

    def holder(self, column: str, key: str, *order: str) -> str:
        """The first of the units whose table has a column."""
        for unit in order:
            if self.has(unit, column):
                return unit
        if other := [unit for unit in self.opened if self.has(unit, column)]:
            value = f"column {column!r} is in the table of {other[0]}"
            raise mistake(self.programme.path, key, value, f"name a column of {' or '.join(order)} here")
        opened = {unit: self.opened[unit] for unit in order if unit in self.opened}
        columns = {name for unit, one in opened.items() for name in shown_names(one, f"population.{unit}")}
        remedy = similar(column, sorted(columns), "the tables have")
        raise mistake(self.programme.path, key, f"unknown column {column!r}", remedy)

    def variable(self, name: str) -> Variable:
        """A variable by its name."""
        return self.programme.variables[name]


def open_tables(programme: Programme) -> SwapTables:
    """Open the tables, and check that all exchanged columns can move with their households."""
    rule, population = programme.swap, programme.population
    if rule is None or population is None:
        raise ValueError("a programme without [swap] swaps nothing")
    opened = {name: open_source(unit.source, f"population.{name}") for name, unit in population.units.items()}
    tables = SwapTables(programme, rule, population, opened)
    problems = list(_unlinked(tables))
    if problems:
        raise Mistakes(problems)
    return tables


def _unlinked(tables: SwapTables) -> Iterator[Problem]:
    """Problems for tables whose places could not move with their households."""
    exchanged = {*tables.population.geography, *tables.rule.carry}
    for unit in (PERSONS, HOUSEHOLDS):
        if unit in tables.opened and not tables.has(unit, tables.household_id):
            require_header(tables.opened[unit], f"population.{unit}")
            value, key = f"unknown column {tables.household_id!r}", "population.household_id"
            yield Problem(
                tables.opened[unit].name,
                key,
                value,
                "swapping exchanges households: give the column of their ids",
            )
    for unit, records in tables.opened.items():
        if not exchanged & set(records.schema.names) or tables.has(unit, tables.household_id):
            continue
        own = tables.population.ids.get(unit, "")
        if unit not in (PERSONS, HOUSEHOLDS) and not any(
            tables.has(other, own, tables.household_id) for other in tables.opened
        ):
            remedy = f"add the column {tables.household_id!r}, or {own!r} to the table of households"
            value = "has places that cannot move with swapped households"
            yield Problem(records.name, f"population.{unit}", value, remedy)


def hashes_of(column: pa.Array, secret: bytes, purpose: str, name: str, table: str) -> NDArray[np.uint64]:
    """Hash ids under the secret."""
    try:
        return encode.hashed_ids(column, secret, purpose)
    except encode.BadColumn as bad:
        raise mistake(table, f"column {name}", bad.value, bad.remedy) from None


def some_hashes(
    column: pa.Array, secret: bytes, purpose: str, name: str, table: str
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Hash ids that may be missing; return the hashes (0 for missing ids) and which are present."""
    if not column.null_count:
        return hashes_of(column, secret, purpose, name, table), np.ones(len(column), dtype=bool)
    valid = pc.is_valid(column)
    known: NDArray[np.bool_] = valid.to_numpy(zero_copy_only=False)
    hashes = np.zeros(len(column), dtype=np.uint64)
    hashes[known] = hashes_of(column.filter(valid), secret, purpose, name, table)
    return hashes, known


def codes_of(variable: Variable, coder: Coder, column: pa.Array, table: str) -> Codes:
    """The leaf of each record."""
    try:
        found = coder.encode(column)
    except encode.BadColumn as bad:
        raise mistake(table, f"variables.{variable.name}", bad.value, bad.remedy) from None
    if found.wrong:
        raise Mistakes(
            values_problem(variable, why, values, table, look_like_ids(len(values), len(column)))
            for why, values in found.wrong.items()
        )
    return found.codes


def risks_of(column: pa.Array, name: str, records: Records) -> NDArray[np.float64]:
    """Supplied risks, from 0 to 1."""
    table, remedy = records.name, "give each record a risk from 0 to 1"
    try:
        risks = encode.numbers_of(column, "a column of risks", records.decimal).astype(np.float64)
    except encode.BadColumn as bad:
        raise mistake(table, f"column {name}", bad.value, remedy) from None
    if not ((risks >= 0) & (risks <= 1)).all():
        raise mistake(table, f"column {name}", "risks that are missing or not from 0 to 1", remedy)
    return risks
