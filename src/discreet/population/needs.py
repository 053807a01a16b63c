"""Which columns of a unit's table a programme needs, and which of them are missing; it reads no records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from discreet.engine.records import Records
from discreet.errors import Problem
from discreet.schema.cube import Cube
from discreet.schema.expression import Filter
from discreet.schema.programme import Programme, Unit, Variable


@dataclass(frozen=True)
class Needs:
    """What counting some cubes of one unit takes from its table."""

    unit: Unit
    variables: tuple[Variable, ...]
    flags: tuple[str, ...]
    weights: tuple[str, ...]
    rules: tuple[Filter, ...]  # structural zeros that these variables decide
    order: Variable | None  # the finest geography
    record_key: str | None

    @property
    def key_column(self) -> str:
        """The column that the record keys come from."""
        return self.record_key or self.unit.id_column or ""

    def plain_columns(self) -> list[str]:
        """The columns that are read as they stand."""
        return list(dict.fromkeys([self.key_column, *self.flags, *self.weights]))

    def coded_columns(self) -> list[str]:
        """The columns that hold codes."""
        return list(dict.fromkeys(variable.column for variable in self.variables))


def needs_of(programme: Programme, unit: Unit, cubes: Iterable[Cube]) -> Needs:
    """Gather what the cubes of a unit need; the geography is read too, to order the records by it."""
    cubes = tuple(cubes)
    rule = programme.population
    if rule is None:
        raise ValueError("a programme without a population reads no records")
    names = {axis.variable for cube in cubes for axis in cube.axes}
    names |= {name for cube in cubes if cube.base for name in cube.base.variables}
    order = _finest_geography(programme, unit)
    rules = tuple(zero for zero in programme.structural_zeros if set(zero.variables) <= names)
    if order is not None:
        names.add(order.name)
    return Needs(
        unit,
        tuple(variable for name, variable in programme.variables.items() if name in names),
        tuple(sorted({cube.count for cube in cubes if cube.count})),
        tuple(sorted({cube.weight for cube in cubes if cube.weight})),
        rules,
        order,
        rule.record_key if unit.name == "persons" else None,
    )


def _finest_geography(programme: Programme, unit: Unit) -> Variable | None:
    columns = programme.population.geography if programme.population else ()
    if not columns:
        return None
    found = (variable for variable in programme.variables.values() if variable.column == columns[-1])
    return next((v for v in found if v.units is None or unit.name in v.units), None)


def missing_columns(needs: Needs, records: Records) -> Iterator[Problem]:
    """Name the columns that the table lacks, with the nearest that it has."""
    keys = {variable.column: f"variables.{variable.name}.column" for variable in needs.variables}
    for column in (*needs.plain_columns(), *needs.coded_columns()):
        if column not in records.schema.names:
            near = get_close_matches(column, records.schema.names, 1)
            remedy = (
                f"did you mean {near[0]!r}?"
                if near
                else f"the table has {', '.join(records.schema.names[:12])}"
            )
            key = keys.get(column, f"population.{needs.unit.name}")
            yield Problem(records.name, key, f"unknown column {column!r}", remedy)
