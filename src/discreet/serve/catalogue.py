"""The catalogue of a source: units, variables and declared tables, of a programme or a release."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from discreet.errors import mistake
from discreet.formats.publication import SWAPPED, additivity
from discreet.io.column_names import shown_names
from discreet.io.databases import open_source
from discreet.io.files import Records
from discreet.perturb.noise import Noise
from discreet.programme.codelist import Breakdown, Codelist
from discreet.programme.cube import Cube, Signature, signatures
from discreet.programme.definitions import tags_of
from discreet.programme.filter import alternatives
from discreet.programme.labels import NO_LABELS, Labels
from discreet.programme.programme import Programme
from discreet.programme.serve import DEFAULT_SERVE, ServeRule
from discreet.programme.variables import Variable
from discreet.text.phrase import joined, phrase

UNLIMITED = phrase(
    "No rule limits what a user may collect: with some hundred tables, counts can be found exactly."
)


@dataclass(frozen=True, eq=False)
class ServedVariable:
    """A variable that may be an axis or part of a filter."""

    name: str
    codelist: Codelist  # name, codes, labels, parents: all codes that a filter or a grouping may name
    breakdowns: Mapping[str, Breakdown]  # full name (AGE.M, or SEX) -> axis, coarse to fine
    units: tuple[str, ...]
    is_place: bool = False
    may_group: bool = False


@dataclass(frozen=True)
class ServedTable:
    """A table that the office declared: a ready question, and what PxWeb and SDMX list."""

    id: str
    title: str
    unit: str
    axes: tuple[str, ...]  # full names of breakdowns
    base: str = ""  # filter as declared
    count: str = ""


@dataclass(frozen=True)
class Catalogue:
    """Everything that can be requested from a source."""

    name: str
    agency: str
    version: str
    units: tuple[str, ...]
    variables: Mapping[str, ServedVariable]
    tables: tuple[ServedTable, ...]
    noise: Noise  # what the public may know of it
    swapped: bool = False
    rule: ServeRule = DEFAULT_SERVE
    counts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # unit -> 0/1 columns
    bases: Mapping[str, str] = field(
        default_factory=dict
    )  # declared filter, as text or normal form -> normal form
    published: frozenset[Signature] = frozenset()  # cross-tabulations that the programme publishes anyway
    may_filter: bool = True  # whether other filters than the bases can be answered
    title: str = ""  # of the whole, for readers
    labels: Labels = NO_LABELS
    language: str = "en"  # of labels, titles and definitions

    @property
    def is_unlimited(self) -> bool:
        """Whether users may collect so much of records that any count can be found."""
        return self.may_filter and self.rule.account is None and self.rule.history.success is None

    @cached_property
    def noise_note(self) -> str:
        """What the public may know of noise and swapping."""
        return joined(self.noise.sentence(), SWAPPED if self.swapped else "")

    @cached_property
    def additivity(self) -> str:
        """Whether totals add up."""
        return additivity(self.noise)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of labels, that of the office first."""
        return tuple(dict.fromkeys((self.language, *tags_of(self.labels.variables.values()))))

    @property
    def heading(self) -> str:
        """What readers see of the whole: its title, or its name."""
        return self.title or self.name

    @cached_property
    def places(self) -> tuple[str, ...]:
        """The variables that are places."""
        return tuple(name for name, variable in self.variables.items() if variable.is_place)

    def table(self, table: str) -> ServedTable | None:
        """The declared table of an id."""
        return next((one for one in self.tables if one.id == table), None)

    def levels_published(self, unit: str, base: str, count: str) -> frozenset[str]:
        """The levels of the cross-tabulations of some records that the programme publishes anyway, as JSON."""
        return self._levels_published.get((unit, base, count), frozenset())

    @cached_property
    def _levels_published(self) -> Mapping[tuple[str, str, str], frozenset[str]]:
        found: dict[tuple[str, str, str], set[str]] = {}
        for one in self.published:
            if not one.source and not one.weight:
                found.setdefault((one.unit, one.base, one.count), set()).add(json.dumps(one.levels))
        return {who: frozenset(levels) for who, levels in found.items()}

    def statistics(self) -> tuple[Signature, ...]:
        """Each variable and each counted column of each unit, as a cross-tabulation of its own; and the totals."""
        totals = [Signature(unit, "", "", ()) for unit in self.units]
        axes = [
            Signature(unit, "", "", ((name, 1),))
            for name, variable in self.variables.items()
            for unit in variable.units
        ]
        counted = [Signature(unit, "", name, ()) for unit, names in self.counts.items() for name in names]
        return (*totals, *axes, *counted)

    def breakdown(self, full_name: str) -> Breakdown | None:
        """The breakdown of a full name, such as AGE.M, or None."""
        variable = self.variables.get(full_name.partition(".")[0])
        return None if variable is None else variable.breakdowns.get(full_name)


def programme_catalogue(programme: Programme, noise: Noise) -> Catalogue:
    """The catalogue of a programme's records: every variable that a unit has, unless fewer are named."""
    rule, population = programme.serve, programme.population
    if population is None:
        raise mistake(programme.path, "population", "is missing", "serve its release instead")
    opened = {name: open_source(unit.source, f"population.{name}") for name, unit in population.units.items()}
    columns = {name: tuple(records.schema.names) for name, records in opened.items()}
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
        _counts(programme, opened),
        {text: base.canonical for base in bases for text in (base.text, base.canonical)},
        frozenset(signatures(cubes)),
        title=programme.release.title,
        labels=programme.labels.only(
            (name for variable in served.values() for name in variable.breakdowns), columns
        ),
        language=programme.release.language,
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
        variable.column in geography or bool(variable.place),
        variable.name in groupings,
    )


def _units(variable: Variable, columns: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(
        unit
        for unit, names in columns.items()
        if variable.column in names and (variable.units is None or unit in variable.units)
    )


def _is_served(cube: Cube, served: Mapping[str, ServedVariable]) -> bool:
    names = {axis.variable for axis in cube.axes} | set(cube.base.variables if cube.base else ())
    return all(name in served and cube.unit in served[name].units for name in names)


def _counts(programme: Programme, opened: Mapping[str, Records]) -> dict[str, tuple[str, ...]]:
    """The 0/1 columns of each unit: those of its cubes, and those that the rule names."""
    for name in programme.serve.counts:
        if not any(name in records.schema.names for records in opened.values()):
            shown = {
                one for unit, records in opened.items() for one in shown_names(records, f"population.{unit}")
            }
            remedy = alternatives(name, sorted(shown))
            raise mistake(programme.path, "serve.counts", f"unknown column {name!r}", remedy)
    return {
        unit: tuple(
            dict.fromkeys(
                [
                    *(cube.count for cube in programme.cubes if cube.unit == unit and cube.count),
                    *(name for name in programme.serve.counts if name in records.schema.names),
                ]
            )
        )
        for unit, records in opened.items()
    }
