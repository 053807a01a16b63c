"""Resolves the population, release and limits of a programme.

It owns the checks inside these sections; variables, cubes and noise are resolved by their own modules.
"""

from __future__ import annotations

from collections import Counter

from discreet.schema.declared import ID_KEYS, UNITS, DeclaredPopulation, DeclaredProgramme
from discreet.schema.findings import Findings
from discreet.schema.rules import (
    Disclosure,
    Limits,
    PopulationRule,
    ReleaseFormat,
    ReleaseRule,
    Unit,
)
from discreet.schema.sources import resolve_source


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
