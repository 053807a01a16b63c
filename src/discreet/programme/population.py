"""The ``[population]`` section: where the records are and what identifies them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from discreet.programme.attributes import Attribute, DeclaredAttribute, attribute
from discreet.programme.section import Amount, Declared, Findings, Text, positive, text_or_table
from discreet.programme.sources import DeclaredSource, Source, resolve_source

UNITS = ("persons", "households", "families", "dwellings")
ID_KEYS = {
    "persons": "person_id",
    "households": "household_id",
    "families": "family_id",
    "dwellings": "dwelling_id",
}
NO_SOURCES: Mapping[str, Source] = {}
UnitName = Literal["persons", "households", "families", "dwellings"]
SourceEntry = Annotated[
    Annotated[Text, Tag("|text")] | Annotated[DeclaredSource, Tag("|table")], Discriminator(text_or_table)
]


class DeclaredSample(Declared):
    """The records are a sample, and who is in it stays secret."""

    rate: Amount
    method: Literal["poisson", "without-replacement"]
    unit: Literal["persons", "households"] = "persons"


class DeclaredPopulation(Declared):
    """Where the records are and what identifies them."""

    persons: SourceEntry | None = None
    households: SourceEntry | None = None
    families: SourceEntry | None = None
    dwellings: SourceEntry | None = None
    person_id: Text | None = None
    household_id: Text | None = None
    family_id: Text | None = None
    dwelling_id: Text | None = None
    record_key: Text | None = None
    geography: list[Text] = []
    flags: dict[Text, DeclaredAttribute] = {}
    weights: list[Text] = []
    fixed_families: bool = False
    sample: DeclaredSample | None = None


@dataclass(frozen=True)
class Unit:
    """One kind of record, its table and the column of its ids (None where record keys are given)."""

    name: str
    source: Source
    id_column: str | None


class SampleMethod(StrEnum):
    """How a sample was drawn: each unit independently, or a fixed number of them."""

    POISSON = "poisson"
    WITHOUT_REPLACEMENT = "without-replacement"


@dataclass(frozen=True)
class Sample:
    """A secret sample: the share of the population in it, how it was drawn, and of which units."""

    rate: Fraction
    method: SampleMethod
    unit: str


@dataclass(frozen=True)
class PopulationRule:
    """The tables of records and the columns that identify and place them."""

    units: Mapping[str, Unit]
    ids: Mapping[str, str]  # unit -> id column; also of units without a table
    geography: tuple[str, ...]  # coarse to fine
    record_key: str | None  # a column with the office's own record keys
    flags: Mapping[str, Attribute] = field(default_factory=dict)  # 0/1 column -> whose it is
    fixed_families: bool = False  # who belongs to which family does not change for the others
    not_places: frozenset[str] = frozenset()  # 0/1 columns that are declared to be no places
    weights: frozenset[str] = frozenset()  # columns that are stated to be survey weights
    sample: Sample | None = (
        None  # None where all of the population is there, or nothing follows from sampling
    )


def resolve_population(
    declared: DeclaredPopulation | None, findings: Findings, supplied: Mapping[str, Source] = NO_SOURCES
) -> PopulationRule | None:
    """The tables of records; None where none is declared. Supplied sources replace those that are declared."""
    if declared is None:
        return None
    ids = {unit: column for unit, key in ID_KEYS.items() if (column := getattr(declared, key)) is not None}
    units = {
        name: unit for name in UNITS if (unit := _unit(name, declared, ids, findings, supplied)) is not None
    }
    if all(getattr(declared, name) is None for name in UNITS):
        findings.add("population", "no table of records", 'add persons = "persons.parquet"')
    _check_columns(declared, ids, findings)
    return PopulationRule(
        units,
        ids,
        tuple(
            dict.fromkeys(declared.geography)
        ),  # one that is repeated is reported, and records are still checked
        declared.record_key,
        {column: attribute(flag.of, flag.fixed) for column, flag in declared.flags.items()},
        declared.fixed_families,
        frozenset(column for column, flag in declared.flags.items() if flag.place is False),
        frozenset(declared.weights),
        None if declared.sample is None else _sample(declared.sample, findings),
    )


def _sample(declared: DeclaredSample, findings: Findings) -> Sample:
    rate = positive("population.sample.rate", declared.rate, findings)
    if rate > 1:
        findings.add("population.sample.rate", str(declared.rate), "give a share of the population, up to 1")
    return Sample(rate, SampleMethod(declared.method), declared.unit)


def _unit(
    name: str,
    declared: DeclaredPopulation,
    ids: dict[str, str],
    findings: Findings,
    supplied: Mapping[str, Source],
) -> Unit | None:
    entry = getattr(declared, name)
    if entry is None:
        return None
    keyed = name == "persons" and declared.record_key is not None
    if name not in ids and not keyed:
        remedy = f"name the column that identifies the {name}" + (
            ", or record_key" if name == "persons" else ""
        )
        findings.add(f"population.{ID_KEYS[name]}", "is missing", remedy)
    if name in supplied:
        return Unit(name, supplied[name], ids.get(name))
    with findings.gathering():
        source = resolve_source(entry, findings.folder, str(findings.path), f"population.{name}")
        return Unit(name, source, ids.get(name))
    findings.broken_sections.add("population")
    return None


def _check_columns(declared: DeclaredPopulation, ids: dict[str, str], findings: Findings) -> None:
    for column, times in Counter(declared.geography).items():
        if times > 1:
            findings.add("population.geography", f"column {column!r} occurs {times} times", "keep it once")
    for unit, column in ids.items():
        if column in declared.geography:
            value = f"column {column!r} identifies the {unit}"
            findings.add("population.geography", value, "name columns of places only")
    named = Counter([*ids.values(), *([declared.record_key] if declared.record_key else [])])
    for column, times in named.items():
        if times > 1:
            remedy = "give each id and the record key a different column"
            findings.add("population", f"column {column!r} is named for {times} purposes", remedy)
