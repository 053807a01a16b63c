"""The ``[population]``, ``[release]`` and ``[limits]`` sections: their rules and checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from discreet.programme.codelist import Breakdown, Codelist
from discreet.programme.declared import ID_KEYS, UNITS, DeclaredPopulation, DeclaredProgramme
from discreet.programme.reading import Findings
from discreet.programme.sources import FileSource, Source, resolve_source


class Disclosure(Enum):
    """What the public files tell of the noise."""

    LAW = "law"
    VARIANCE = "variance"
    NONE = "none"


class ReleaseFormat(Enum):
    """A format in which cubes are written."""

    PARQUET = "parquet"
    CSV = "csv"
    SDMX_CSV = "sdmx-csv"
    JSON_STAT = "json-stat"
    XLSX = "xlsx"
    PX = "px"


@dataclass(frozen=True)
class Unit:
    """One kind of record, its table and the column of its ids (None where record keys are given)."""

    name: str
    source: Source
    id_column: str | None


@dataclass(frozen=True)
class PopulationRule:
    """The tables of records and the columns that identify and place them."""

    units: Mapping[str, Unit]
    ids: Mapping[str, str]  # unit -> id column; also of units that have no table of their own
    geography: tuple[str, ...]  # coarse to fine
    record_key: str | None  # a column with the office's own record keys


@dataclass(frozen=True)
class Variable:
    """One variable: the column that holds its leaf codes, and the breakdowns that cubes use."""

    name: str
    column: str
    codelist: Codelist
    breakdowns: Mapping[str, Breakdown]
    units: tuple[str, ...] | None  # None: any unit whose table has the column


@dataclass(frozen=True)
class ReadyMade:
    """A table of counts with cell keys, tabulated elsewhere; its columns are named as the variables."""

    source: FileSource
    count: str
    key: str
    modulus: int


@dataclass(frozen=True)
class ReleaseRule:
    """What is written and what it tells of the noise."""

    name: str
    agency: str
    version: str
    formats: tuple[ReleaseFormat, ...]
    disclose: Disclosure
    title: str = ""  # for readers


@dataclass(frozen=True)
class Limits:
    """What a programme may at most ask for."""

    cells: int  # possible ones of a cube, margins included
    published: int  # non-zero ones of a cube


def resolve_population(declared: DeclaredPopulation | None, findings: Findings) -> PopulationRule | None:
    """The tables of records; None where none is declared."""
    if declared is None:
        return None
    ids = {unit: column for unit, key in ID_KEYS.items() if (column := getattr(declared, key)) is not None}
    units = {name: unit for name in UNITS if (unit := _unit(name, declared, ids, findings)) is not None}
    if all(getattr(declared, name) is None for name in UNITS):
        findings.add("population", "names no table of records", 'add persons = "persons.parquet"')
    _check_columns(declared, ids, findings)
    return PopulationRule(units, ids, tuple(declared.geography), declared.record_key)


def _unit(name: str, declared: DeclaredPopulation, ids: dict[str, str], findings: Findings) -> Unit | None:
    entry = getattr(declared, name)
    if entry is None:
        return None
    keyed = name == "persons" and declared.record_key is not None
    if name not in ids and not keyed:
        remedy = f"name the column that identifies the {name}" + (
            ", or record_key" if name == "persons" else ""
        )
        findings.add(f"population.{ID_KEYS[name]}", "is missing", remedy)
    with findings.gathering():
        source = resolve_source(entry, findings.folder, str(findings.path), f"population.{name}")
        return Unit(name, source, ids.get(name))
    findings.broken_sections.add("population")
    return None


def _check_columns(declared: DeclaredPopulation, ids: dict[str, str], findings: Findings) -> None:
    for column, times in Counter(declared.geography).items():
        if times > 1:
            findings.add("population.geography", f"column {column!r} stands {times} times", "keep it once")
    named = Counter([*ids.values(), *([declared.record_key] if declared.record_key else [])])
    for column, times in named.items():
        if times > 1:
            remedy = "give each id and the record key a column of its own"
            findings.add("population", f"column {column!r} is named for {times} purposes", remedy)


def resolve_release(declared: DeclaredProgramme, findings: Findings) -> tuple[ReleaseRule, Limits]:
    """What is written, and the limits; Parquet is always written."""
    release = declared.release
    formats = [ReleaseFormat.PARQUET, *(ReleaseFormat(form) for form in release.formats)]
    rule = ReleaseRule(
        release.name or findings.path.stem,
        release.agency,
        release.version,
        tuple(dict.fromkeys(formats)),
        Disclosure(release.disclose),
        release.title or "",
    )
    return rule, Limits(declared.limits.cells, declared.limits.published)
