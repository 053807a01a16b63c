"""Resolves the population, noise, release and limits of a programme.

It owns the checks inside these sections; variables and cubes are resolved by their own modules.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

import numpy as np

from discreet.errors import Mistakes
from discreet.maths.lookup import Order
from discreet.maths.ptable_solver import PTableParameters, Variance
from discreet.schema.declared import ID_KEYS, UNITS, DeclaredCellKey, DeclaredPopulation, DeclaredProgramme
from discreet.schema.findings import Findings
from discreet.schema.rules import (
    CellKeyNoise,
    Disclosure,
    Limits,
    PopulationRule,
    ReleaseFormat,
    ReleaseRule,
    Unit,
)
from discreet.schema.sources import resolve_source

_Value = TypeVar("_Value")
EXAMPLE_NOISE = '[noise] kind = "cell-key", V = 2.0, D = 5, js = 0'


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


def resolve_noise(declared: DeclaredCellKey | None, findings: Findings) -> CellKeyNoise | None:
    """The noise rule; a programme without one is refused, for absent protection is an error."""
    if declared is None:
        if "noise" not in findings.broken_sections:
            findings.add("noise", "is missing", f"declare how counts are protected: {EXAMPLE_NOISE}")
        return None
    order = Order(declared.order)
    if declared.ptable is None:
        parameters = _parameters(declared, findings)
        return None if parameters is None else CellKeyNoise(parameters, order)
    for key in ("V", "D", "js", "pstay", "variance"):
        if getattr(declared, key) is not None:
            findings.add(f"noise.{key}", "stands beside ptable", "keep the file or the parameters, not both")
    path = findings.folder / declared.ptable
    if not path.is_file():
        findings.add("noise.ptable", f"no file {declared.ptable!r}", "correct the path of the p-table")
    return CellKeyNoise(path, order)


def _parameters(declared: DeclaredCellKey, findings: Findings) -> PTableParameters | None:
    for key in ("V", "D"):
        if getattr(declared, key) is None:
            findings.add(f"noise.{key}", "is missing", f"add it, or a ptable file: {EXAMPLE_NOISE}")
    if declared.V is None or declared.D is None:
        return None
    V = _per_row(declared.V)
    pstay = None if declared.pstay is None else _per_row(declared.pstay)
    if np.max(V) > declared.D**2:
        remedy = f"a change of at most D = {declared.D} has a variance of at most {declared.D**2}"
        findings.add("noise.V", str(declared.V), remedy)
        return None
    try:
        return PTableParameters(
            declared.D, V, declared.js or 0, pstay, variance=Variance(declared.variance or "at-most")
        )
    except Mistakes as mistakes:
        for problem in mistakes.problems:
            findings.add(f"noise.{problem.key}", problem.value, problem.remedy)
    return None


def _per_row(value: _Value | list[_Value]) -> _Value | tuple[_Value, ...]:
    return tuple(value) if isinstance(value, list) else value


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
    )
    return rule, Limits(declared.limits.cells)
