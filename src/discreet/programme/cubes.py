"""The ``[[cubes]]`` and ``[[structural_zeros]]`` sections, resolved against the variables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Discriminator, Field, Tag

from discreet.programme.amounts import REMEDY, is_named_amount
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.eu2021 import StandardTable
from discreet.programme.filter import Filter, alternatives, mentioned, parse_filter
from discreet.programme.labels import Labels, standard_title
from discreet.programme.population import PopulationRule, UnitName
from discreet.programme.section import (
    Declared,
    Findings,
    Identifier,
    Label,
    LanguageTag,
    Text,
    text_or_languages,
    worded,
)
from discreet.programme.sources import FileSource, file_source
from discreet.programme.variables import Variable


class DeclaredCounts(Declared):
    """A ready-made table of counts, with cell keys where the noise is decided by them."""

    file: Text
    count: Text = "count"
    key: Text = "key"
    modulus: Annotated[int, Field(ge=2, le=2**62)] = 2**32


TitleEntry = Annotated[
    Annotated[str, Tag("|text")] | Annotated[dict[LanguageTag, Label], Field(min_length=1), Tag("|table")],
    Discriminator(text_or_languages),
]


class DeclaredCube(Declared):
    """One table: a cross of breakdowns."""

    id: Identifier
    title: TitleEntry = ""
    unit: UnitName = "persons"
    axes: Annotated[list[Text], Field(min_length=1, max_length=16)]
    base: Text | None = None
    count: Text | None = None
    weight: Text | None = None
    counts: DeclaredCounts | None = None


class DeclaredStructuralZero(Declared):
    """Combinations of codes that cannot occur."""

    where: Text


@dataclass(frozen=True)
class ReadyMade:
    """A table of counts with cell keys, tabulated elsewhere; columns are named as the variables or their columns."""

    source: FileSource
    count: str
    key: str
    modulus: int
    keyed: bool = True  # whether the noise is decided by cell keys; otherwise the file needs none
    columns: Mapping[str, str] = field(default_factory=dict)  # variable -> its declared column


@dataclass(frozen=True, kw_only=True)
class _Requested:
    """A cube as requested, in the file or by the built-in programme, and where."""

    key: str
    id: str
    title: str
    unit: str
    axes: tuple[str, ...]
    base: str | None
    count: str | None = None
    weight: str | None = None
    counts: DeclaredCounts | None = None


@dataclass(frozen=True, kw_only=True)
class CubeResolver:
    """Turns requested cubes into cubes, collecting every problem."""

    variables: Mapping[str, Variable]
    population: PopulationRule | None
    cells: int
    labels: Labels
    findings: Findings
    language: str = "en"  # of titles that do not state theirs

    def cubes(
        self, declared: Sequence[DeclaredCube | None], tables: Sequence[StandardTable]
    ) -> tuple[tuple[Cube, ...], dict[str, ReadyMade]]:
        """All cubes, the built-in ones first, and the ready-made counts of some."""
        wanted = [*_standard(tables, self.labels), *_declared(declared, self.language, self.findings)]
        if not wanted and not {"cubes", "standard"} & self.findings.broken_sections:
            self.findings.add("cubes", "none declared", "add a [[cubes]] entry or a [standard] section")
        self._check_ids(wanted)
        made = [(self._cube(one), self._ready_made(one)) for one in wanted]
        cubes = tuple(cube for cube, _ in made if cube is not None)
        return cubes, {
            one.id: ready for one, (_, ready) in zip(wanted, made, strict=True) if ready is not None
        }

    def structural_zeros(self, declared: Sequence[DeclaredStructuralZero | None]) -> tuple[Filter, ...]:
        """The combinations of codes that cannot occur."""
        found = [
            self._filter(rule.where, f"structural_zeros[{place}].where")
            for place, rule in enumerate(declared)
            if rule is not None
        ]
        return tuple(rule for rule in found if rule is not None)

    def _check_ids(self, wanted: Sequence[_Requested]) -> None:
        # without regard to case, because ids become file names
        times = Counter(one.id.lower() for one in wanted)
        seen: set[str] = set()
        for one in wanted:
            if times[one.id.lower()] > 1 and one.id.lower() in seen:
                self.findings.add(
                    f"{one.key}.id", f"id {one.id!r} occurs twice", "give every cube a different id"
                )
            seen.add(one.id.lower())

    def _cube(self, one: _Requested) -> Cube | None:
        before = len(self.findings.problems)
        axes = tuple(axis for name in one.axes if (axis := self._axis(name, one.key)) is not None)
        base = self._filter(one.base, f"{one.key}.base") if one.base else None
        self._check_unit(one, {*(axis.variable for axis in axes), *(base.variables if base else ())})
        self._check_axes(axes, one)
        if len(axes) < len(one.axes) or len(self.findings.problems) > before:
            return None
        self._check_weight(one)
        cube = Cube(one.id, one.unit, axes, base, one.count, one.weight, one.title)
        self._check_size(cube, one)
        return cube

    def _axis(self, name: str, key: str) -> Breakdown | None:
        variable, _, level = name.partition(".")
        if variable in self.findings.broken_variables:
            return None
        if variable not in self.variables:
            known = sorted({*self.variables, *self.findings.broken_variables})
            self.findings.add(f"{key}.axes", f"unknown variable {variable!r}", alternatives(variable, known))
            return None
        axes = self.variables[variable].breakdowns
        if (level or variable) in axes:
            return axes[level or variable]
        known = [f"{variable}.{axis}" if axis != variable else variable for axis in axes]
        self.findings.add(f"{key}.axes", f"unknown breakdown {name!r}", alternatives(name, known))
        return None

    def _check_axes(self, axes: Sequence[Breakdown], one: _Requested) -> None:
        for variable, times in Counter(axis.variable for axis in axes).items():
            if times > 1:
                names = {f"{axis.variable}.{axis.name}" for axis in axes if axis.variable == variable}
                value = f"{variable} occurs {times} times ({', '.join(sorted(names))})"
                self.findings.add(f"{one.key}.axes", value, "keep one breakdown of each variable")

    def _check_unit(self, one: _Requested, names: set[str]) -> None:
        findings = self.findings
        for name in sorted(names):
            units = self.variables[name].units
            if units is not None and one.unit not in units:
                value = f"{name} is a variable of {', '.join(units)}, the cube counts {one.unit}"
                findings.add(one.key, value, f"remove {name} or add {one.unit} to variables.{name}.units")
        if one.counts is not None or "population" in findings.broken_sections:
            return
        if self.population is None:
            value = "is missing, and the cube has no ready-made counts"
            findings.add("population", value, 'add [population] with persons = "persons.parquet"')
        elif one.unit not in self.population.units:
            known = ", ".join(self.population.units) or "none"
            remedy = f'add {one.unit} = ".." to [population]; declared are {known}'
            findings.add(f"{one.key}.unit", f"no table of {one.unit}", remedy)

    def _check_weight(self, one: _Requested) -> None:
        stated = self.population.weights if self.population else frozenset()
        if one.weight is not None and one.weight not in stated and is_named_amount(one.weight):
            value = f"column {one.weight!r} is named like an amount, not like a survey weight"
            self.findings.add(f"{one.key}.weight", value, REMEDY)

    def _check_size(self, cube: Cube, one: _Requested) -> None:
        if cube.size <= self.cells:
            return
        largest = max(cube.axes, key=len)
        sizes = " x ".join(f"{axis.variable}.{axis.name} {len(axis):,}" for axis in cube.axes)
        self.findings.add(
            one.key,
            f"{cube.size:,} cells ({sizes}) are more than limits.cells = {self.cells:,}",
            f"use a coarser breakdown of {largest.variable} or raise limits.cells",
        )

    def _filter(self, text: str, key: str) -> Filter | None:
        """A checked filter; None if every record passes."""
        findings = self.findings
        if mentioned(text) & findings.broken_variables:
            return None
        trees = {name: variable.codelist for name, variable in self.variables.items()}
        axes = {name: variable.breakdowns for name, variable in self.variables.items()}
        with findings.gathering():
            found = parse_filter(text, trees, findings.path, key, axes)
            return None if found.passes_all else found
        return None

    def _ready_made(self, one: _Requested) -> ReadyMade | None:
        if one.counts is None:
            return None
        for key in ("count", "weight"):
            if getattr(one, key) is not None:
                remedy = "leave it out: it applies to records, and the counts are ready-made"
                self.findings.add(f"{one.key}.{key}", "is given together with counts", remedy)
        with self.findings.gathering():
            key = f"{one.key}.counts.file"
            source = file_source(one.counts.file, self.findings.folder, str(self.findings.path), key)
            columns = {name: variable.column for name, variable in self.variables.items()}
            return ReadyMade(source, one.counts.count, one.counts.key, one.counts.modulus, columns=columns)
        return None


def without_keys(ready_made: Mapping[str, ReadyMade]) -> dict[str, ReadyMade]:
    """The ready-made counts for noise that no cell key decides."""
    return {cube: replace(ready, keyed=False) for cube, ready in ready_made.items()}


def told_apart(cubes: Sequence[Cube], ready_made: Mapping[str, ReadyMade]) -> tuple[Cube, ...]:
    """The cubes with the source of ready-made counts: counts of two files are two statistics, whatever they describe.

    Cell keys decide by participants; noise by description would be the same for both files, and their difference exact.
    """
    first: dict[tuple[str, str], str] = {}
    found = []
    for cube in cubes:
        ready = ready_made.get(cube.id)
        if ready is None:
            found.append(cube)
        else:
            same = (json.dumps(ready.source.describe(), sort_keys=True), ready.count)
            found.append(replace(cube, source=first.setdefault(same, cube.id)))
    return tuple(found)


def _standard(tables: Sequence[StandardTable], labels: Labels) -> Iterator[_Requested]:
    for table in tables:
        key, title = f"standard.tables {table.id}", standard_title(table, labels)
        yield _Requested(
            key=key, id=table.id, title=title, unit=table.unit, axes=table.axes, base=table.base or None
        )


def _declared(
    declared: Sequence[DeclaredCube | None], language: str, findings: Findings
) -> Iterator[_Requested]:
    for place, cube in enumerate(declared):
        if cube is not None:
            yield _Requested(
                key=f"cubes[{place}]",
                id=cube.id,
                title=worded(f"cubes[{place}].title", cube.title, language, findings),
                unit=cube.unit,
                axes=tuple(cube.axes),
                base=cube.base,
                count=cube.count,
                weight=cube.weight,
                counts=cube.counts,
            )
