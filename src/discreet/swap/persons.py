"""Reading the persons of a population: their households, places, risks and what makes households alike.

It owns the arrays with one row for each person; households are put together elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.engine.progress import Progress
from discreet.maths.swap_risk import combine
from discreet.population.block import Codes
from discreet.population.encode import code_type
from discreet.schema.codelist import Breakdown
from discreet.schema.rules import Variable
from discreet.schema.swap_rule import Composition
from discreet.swap.regions import RegionsSeen
from discreet.swap.result import HOUSEHOLD
from discreet.swap.tables import (
    HOUSEHOLDS,
    PERSONS,
    Tables,
    codes_of,
    leaves_of,
    risks_of,
    some_hashes,
)


@dataclass(frozen=True)
class Wanted:
    """What is read from one table."""

    unit: str
    risk: tuple[Breakdown, ...]
    compositions: tuple[Composition, ...]
    alike: tuple[Breakdown, ...]  # of the household as a whole
    excludes: bool
    risk_column: str | None
    places: bool

    def variables(self, tables: Tables) -> tuple[Variable, ...]:
        """The variables to be read."""
        axes = [*self.risk, *(axis for part in self.compositions for axis in part.axes), *self.alike]
        names = [axis.variable for axis in axes]
        if self.excludes and tables.rule.exclude is not None:
            names += tables.rule.exclude.variables
        return tuple(tables.variable(name) for name in dict.fromkeys(names))


def wanted(tables: Tables) -> tuple[Wanted, Wanted]:
    """What comes from the table of persons, and what from that of households where there is one."""
    rule = tables.rule
    parts = [part for profile in rule.similar for part in profile]
    compositions = tuple(dict.fromkeys(part for part in parts if isinstance(part, Composition)))
    members = [*rule.risk, *(axis for part in compositions for axis in part.axes)]
    for axis in members:
        tables.holder(tables.variable(axis.variable).column, "swap", PERSONS)
    alike = {part.full_name: part for part in parts if isinstance(part, Breakdown)}
    held = {name: _holder(axis, tables) for name, axis in alike.items()}
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
            tuple(axis for name, axis in alike.items() if held[name] == unit),
            excluder == unit,
            rule.risk_column if risker == unit else None,
            unit in placed,
        )
        for unit in (PERSONS, HOUSEHOLDS)
    )


def _holder(axis: Breakdown, tables: Tables) -> str:
    variable = tables.variable(axis.variable)
    units = [unit for unit in (HOUSEHOLDS, PERSONS) if variable.units is None or unit in variable.units]
    return tables.holder(variable.column, "swap.similar", *units)


def _excluder(tables: Tables) -> str | None:
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
class Rows:
    """Some records of one table, one row each."""

    hashes: NDArray[np.uint64]  # of the household, 0 where there is none
    known: NDArray[np.bool_]  # whether there is one
    combination: NDArray[np.uint64]  # of the values of the risk variables
    members: tuple[NDArray[np.uint64], ...]  # composition -> combination of the values
    alike: tuple[Codes, ...]  # breakdown -> node
    excluded: NDArray[np.bool_] | None
    risk: NDArray[np.float64] | None
    place: NDArray[np.int32] | None  # provisional number of the finest region


def read_rows(
    tables: Tables, want: Wanted, secret: bytes, regions: RegionsSeen, pool: Executor, progress: Progress
) -> Rows:
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
    return _joined(parts, want)


class _Reader:
    def __init__(
        self, tables: Tables, want: Wanted, secret: bytes, regions: RegionsSeen, pool: Executor
    ) -> None:
        self._tables, self._want, self._secret = tables, want, secret
        self._regions, self._pool = regions, pool
        self._table = tables.opened[want.unit].name
        self._variables = want.variables(tables)
        self._leaves = leaves_of(self._variables)

    def rows(self, batch: pa.RecordBatch) -> Rows:
        want, household = self._want, self._tables.household_id
        ids = self._pool.submit(
            some_hashes, batch.column(household), self._secret, HOUSEHOLD, household, self._table
        )
        codes = self._codes(batch)
        rule, number = self._tables.rule, batch.num_rows
        excluded = rule.exclude.mask(codes) if want.excludes and rule.exclude is not None else None
        risk = want.risk_column
        return Rows(
            *ids.result(),
            _combined(want.risk, codes, number),
            tuple(_combined(part.axes, codes, number) for part in want.compositions),
            tuple(_nodes(axis, codes) for axis in want.alike),
            excluded,
            risks_of(batch.column(risk), risk, self._table) if risk else None,
            self._regions.add(batch, self._table) if want.places else None,
        )

    def _codes(self, batch: pa.RecordBatch) -> dict[str, Codes]:
        def read(variable: Variable) -> Codes:
            column = batch.column(variable.column)
            return codes_of(variable, self._leaves[variable.name], column, self._table)

        names = [variable.name for variable in self._variables]
        return dict(zip(names, self._pool.map(read, self._variables), strict=True))


def _nodes(axis: Breakdown, codes: Mapping[str, Codes]) -> Codes:
    nodes: Codes = axis.node_of_leaf.astype(code_type(len(axis)))[codes[axis.variable]]
    return nodes


def _combined(axes: Iterable[Breakdown], codes: Mapping[str, Codes], number: int) -> NDArray[np.uint64]:
    words = np.zeros(number, dtype=np.uint64)
    for axis in axes:
        combine(words, _nodes(axis, codes))
    return words


def _joined(parts: Sequence[Rows], want: Wanted) -> Rows:
    def all_of(name: str) -> Any:
        held = [getattr(part, name) for part in parts]
        return np.concatenate(held) if held and held[0] is not None else None

    def each(name: str, number: int) -> tuple[Any, ...]:
        return tuple(np.concatenate([getattr(part, name)[k] for part in parts]) for k in range(number))

    if not parts:
        none = np.empty(0, dtype=np.uint64)
        return Rows(none, none.astype(bool), none, (), (), None, None, None)
    return Rows(
        all_of("hashes"),
        all_of("known"),
        all_of("combination"),
        each("members", len(want.compositions)),
        each("alike", len(want.alike)),
        all_of("excluded"),
        all_of("risk"),
        all_of("place"),
    )
