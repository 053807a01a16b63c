"""Which columns of a unit's table a programme needs, and which of them are missing; it reads no records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
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
    id_column: str | None  # to make keys of, and to find ids that stand twice
    record_key: str | None  # the office's own keys
    private: frozenset[str]  # columns whose values no message shows

    @property
    def key_column(self) -> str | None:
        """The column that the record keys come from; None only where it is missing and nothing is counted."""
        return self.record_key or self.id_column

    def plain_columns(self) -> list[str]:
        """The columns that are read as they stand."""
        ids = [column for column in (self.record_key, self.id_column) if column is not None]
        return list(dict.fromkeys([*ids, *self.flags, *self.weights]))

    def coded_columns(self) -> list[str]:
        """The columns that hold codes."""
        return list(dict.fromkeys(variable.column for variable in self.variables))


def needs_of(programme: Programme, unit: Unit, cubes: Iterable[Cube]) -> Needs:
    """Gather what the cubes of a unit need."""
    cubes = tuple(cubes)
    rule = programme.population
    if rule is None:
        raise ValueError("a programme without a population reads no records")
    names = {axis.variable for cube in cubes for axis in cube.axes}
    names |= {name for cube in cubes if cube.base for name in cube.base.variables}
    record_key = rule.record_key if unit.name == "persons" else None
    return Needs(
        unit,
        tuple(variable for name, variable in programme.variables.items() if name in names),
        tuple(sorted({cube.count for cube in cubes if cube.count})),
        tuple(sorted({cube.weight for cube in cubes if cube.weight})),
        tuple(zero for zero in programme.structural_zeros if set(zero.variables) <= names),
        _finest_geography(programme, unit),
        unit.id_column,
        record_key,
        frozenset(column for column in (*rule.ids.values(), rule.record_key) if column),
    )


def with_order(needs: Needs, records: Records) -> Needs:
    """Read the finest geography too, to order the records by it; a table without it stays in its own order."""
    order = needs.order
    if order is None or order in needs.variables:
        return needs
    if order.column not in records.schema.names:
        return replace(needs, order=None)
    return replace(needs, variables=(*needs.variables, order))


def with_all_rules(needs: Needs, programme: Programme, records: Records) -> Needs:
    """Read what every structural zero takes that this table can decide, whether or not a cube wants it."""
    held = {
        name: variable
        for name, variable in programme.variables.items()
        if variable.column in records.schema.names
        and (variable.units is None or needs.unit.name in variable.units)
    }
    rules = tuple(zero for zero in programme.structural_zeros if set(zero.variables) <= set(held))
    known = {variable.name for variable in needs.variables}
    added = dict.fromkeys(name for zero in rules for name in zero.variables if name not in known)
    return replace(needs, rules=rules, variables=(*needs.variables, *(held[name] for name in added)))


def only_present(needs: Needs, records: Records) -> Needs:
    """What is left of the needs without the columns that a table lacks: enough to check it, not to count it."""
    names = set(records.schema.names)
    variables = tuple(variable for variable in needs.variables if variable.column in names)
    known = {variable.name for variable in variables}
    return replace(
        needs,
        variables=variables,
        flags=tuple(flag for flag in needs.flags if flag in names),
        weights=tuple(weight for weight in needs.weights if weight in names),
        rules=tuple(rule for rule in needs.rules if set(rule.variables) <= known),
        order=needs.order if needs.order in variables else None,
        id_column=needs.id_column if needs.id_column in names else None,
        record_key=needs.record_key if needs.record_key in names else None,
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
