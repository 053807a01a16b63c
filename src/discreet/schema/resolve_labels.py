"""Resolves the labels of a programme: those declared, and those that the built-in programme gives its variables.

It owns the check that labels fit their names and tell variables apart, and the titles of the built-in tables; how
labels are shown is up to labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from discreet.schema import eu2021
from discreet.schema.declared import DeclaredProgramme, DeclaredVariable
from discreet.schema.expression import alternatives
from discreet.schema.findings import Findings
from discreet.schema.labels import Labels
from discreet.schema.rules import Variable


def resolve_labels(
    declared: DeclaredProgramme, variables: Mapping[str, Variable], findings: Findings
) -> Labels:
    """The labels of all variables, breakdowns and units that have one."""
    standard = set(eu2021.variables()) if declared.standard is not None else set()
    named: dict[str, str] = {}
    breakdowns: dict[str, str] = {}
    for name, variable in variables.items():
        entry = declared.variables.get(name, DeclaredVariable())
        label = entry.label or (eu2021.label(name) if name in standard else "")
        named.update({name: label} if label else {})
        breakdowns.update(_breakdowns(variable, entry, name in standard, findings))
    units: dict[str, str] = dict(declared.release.unit_labels.items())
    labels = Labels(named, breakdowns, units)
    _check_distinct(labels, variables, findings)
    return labels


def _breakdowns(
    variable: Variable, entry: DeclaredVariable, is_standard: bool, findings: Findings
) -> Iterator[tuple[str, str]]:
    """Full names and labels; those of the built-in programme hold only for its own breakdowns."""
    for name in entry.breakdown_labels:
        if name not in variable.breakdowns:
            key = f"variables.{variable.name}.breakdown_labels.{name}"
            findings.add(key, f"unknown breakdown {name!r}", alternatives(name, list(variable.breakdowns)))
    built_in = eu2021.breakdown_labels(variable.name) if is_standard and entry.breakdowns is None else {}
    labels = {**built_in, **entry.breakdown_labels}
    for name, axis in variable.breakdowns.items():
        if name in labels:
            yield axis.full_name, labels[name]


def _check_distinct(labels: Labels, variables: Mapping[str, Variable], findings: Findings) -> None:
    """Two variables that look the same would be one column to a reader and to programs that go by labels."""
    first: dict[str, str] = {}
    for name in variables:
        other = first.setdefault(labels.variable(name), name)
        if other != name:
            value = f"{labels.variable(name)!r} is also shown for {other}"
            findings.add(f"variables.{name}.label", value, "give each variable a label of its own")


def standard_title(table: eu2021.StandardTable, labels: Labels) -> str:
    """A title for a built-in table: its own words inside a sentence, the words of the office as they are."""
    by = ", ".join(_inside(axis, labels) for axis in table.axes)
    return f"{table.counted} by {by}"


def _inside(axis: str, labels: Labels) -> str:
    name, shown = axis.partition(".")[0], labels.axis(axis)
    is_own = labels.variable(name) == eu2021.label(name)
    return shown[:1].lower() + shown[1:] if is_own else shown
