"""Describes what a programme's records or a release can be asked for; it reads headers and manifests, no records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from discreet.engine.sources import open_source
from discreet.errors import mistake
from discreet.release.noise import NoiseStatement
from discreet.schema.codelist import Breakdown
from discreet.schema.cube import Cube
from discreet.schema.expression import alternatives
from discreet.schema.programme import Programme
from discreet.schema.rules import Variable
from discreet.serve.catalogue import Catalogue, ServedTable, ServedVariable


def programme_catalogue(programme: Programme, noise: NoiseStatement) -> Catalogue:
    """What the records of a programme can be asked for: every variable that a unit has, unless fewer are named."""
    rule, population = programme.serve, programme.population
    if population is None:
        raise mistake(programme.path, "population", "is missing", "serve its release instead")
    columns = {
        name: tuple(open_source(unit.source, f"population.{name}").schema.names)
        for name, unit in population.units.items()
    }
    wanted = set(programme.variables if rule.variables is None else rule.variables)
    served = {
        name: _variable(variable, _units(variable, columns), population.geography, rule.groupings)
        for name, variable in programme.variables.items()
        if name in wanted
    }
    cubes = [cube for cube in programme.cubes if not cube.weight and _is_served(cube, served)]
    bases = {cube.base for cube in cubes if cube.base}
    return Catalogue(
        programme.release.name,
        programme.release.agency,
        programme.release.version,
        tuple(columns),
        {name: variable for name, variable in served.items() if variable.units},
        tuple(map(table_of, cubes)),
        noise,
        programme.swap is not None,
        rule,
        _counts(programme, columns),
        {text: base.canonical for base in bases for text in (base.text, base.canonical)},
        title=programme.release.title,
        labels=programme.labels.only(
            (name for variable in served.values() for name in variable.breakdowns), columns
        ),
    )


def table_of(cube: Cube) -> ServedTable:
    """A declared cube as a ready question."""
    axes = tuple(axis.full_name for axis in cube.axes)
    return ServedTable(
        cube.id, cube.title, cube.unit, axes, cube.base.text if cube.base else "", cube.count or ""
    )


def by_name(axes: Iterable[Breakdown]) -> dict[str, Breakdown]:
    """Breakdowns by full name, coarse to fine."""
    return {axis.full_name: axis for axis in sorted(axes, key=len)}


def _variable(
    variable: Variable, units: tuple[str, ...], geography: tuple[str, ...], groupings: tuple[str, ...]
) -> ServedVariable:
    return ServedVariable(
        variable.name,
        variable.codelist,
        by_name(variable.breakdowns.values()),
        units,
        variable.column in geography,
        variable.name in groupings,
    )


def _units(variable: Variable, columns: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(
        unit
        for unit, held in columns.items()
        if variable.column in held and (variable.units is None or unit in variable.units)
    )


def _is_served(cube: Cube, served: Mapping[str, ServedVariable]) -> bool:
    names = {axis.variable for axis in cube.axes} | set(cube.base.variables if cube.base else ())
    return all(name in served and cube.unit in served[name].units for name in names)


def _counts(programme: Programme, columns: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The 0/1 columns of each unit: those of its cubes, and those that the rule names."""
    known = {column for held in columns.values() for column in held}
    for name in programme.serve.counts:
        if name not in known:
            raise mistake(
                programme.path, "serve.counts", f"unknown column {name!r}", alternatives(name, sorted(known))
            )
    return {
        unit: tuple(
            dict.fromkeys(
                [
                    *(cube.count for cube in programme.cubes if cube.unit == unit and cube.count),
                    *(name for name in programme.serve.counts if name in held),
                ]
            )
        )
        for unit, held in columns.items()
    }
