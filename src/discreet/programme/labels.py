"""Labels and titles of variables, breakdowns and units: declared, or from the built-in programme."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from discreet.programme import eu2021
from discreet.programme.filter import alternatives
from discreet.programme.population import UnitName
from discreet.programme.section import Findings
from discreet.programme.variables import DeclaredStandard, DeclaredVariable, Variable, standard_names
from discreet.text.phrase import joined, phrase


@dataclass(frozen=True)
class Labels:
    """The labels of a publication; names that have none are left out."""

    variables: Mapping[str, str] = field(default_factory=dict)
    breakdowns: Mapping[str, str] = field(default_factory=dict)  # full name (AGE.M) -> "five-year groups"
    units: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.variables or self.breakdowns or self.units)

    def variable(self, name: str) -> str:
        """A variable: Age."""
        return self.variables.get(name, name)

    def unit(self, name: str) -> str:
        """What is counted: persons."""
        return self.units.get(name, name)

    def breakdown(self, full_name: str) -> str:
        """What distinguishes a breakdown from the others of its variable: five-year groups."""
        variable, _, level = full_name.partition(".")
        return self.breakdowns.get(full_name) or level or self.variable(variable)

    def axis(self, full_name: str) -> str:
        """A breakdown with its variable: Age (five-year groups)."""
        variable, _, level = full_name.partition(".")
        if full_name in self.breakdowns or (level and variable in self.variables):
            return f"{self.variable(variable)} ({self.breakdown(full_name)})"
        return full_name if level else self.variable(variable)

    def counted(self, unit: str, count: str | None = None) -> str:
        """What a cell counts: persons, or those with a flag."""
        said = self.unit(unit)
        return phrase("{unit} with {count} = 1", unit=said, count=count) if count else said

    def title(self, counted: str, axes: Iterable[str], where: str = "") -> str:
        """A title for a table without one, from what it counts and the full names of its axes."""
        by = tuple(map(self.axis, axes))
        return joined(
            counted,
            phrase("by {axes}", axes=by) if by else "",
            phrase("where {base}", base=where) if where else "",
        )

    def only(self, breakdowns: Iterable[str], units: Iterable[str]) -> Labels:
        """The labels of some breakdowns, of their variables and of some units."""
        axes, counted = set(breakdowns), set(units)
        variables = {name.partition(".")[0] for name in axes}
        return Labels(
            {name: label for name, label in self.variables.items() if name in variables},
            {name: label for name, label in self.breakdowns.items() if name in axes},
            {name: label for name, label in self.units.items() if name in counted},
        )

    def canonical(self) -> dict[str, dict[str, str]]:
        """The labels as JSON with a stable order."""
        held = {"variables": self.variables, "breakdowns": self.breakdowns, "units": self.units}
        return {kind: dict(sorted(labels.items())) for kind, labels in held.items()}


NO_LABELS = Labels()


def resolve_labels(
    declared: Mapping[str, DeclaredVariable],
    units: Mapping[UnitName, str],
    standard: DeclaredStandard | None,
    variables: Mapping[str, Variable],
    findings: Findings,
) -> Labels:
    """The labels of all variables, breakdowns and units that have one."""
    built_in = standard_names(standard)
    named: dict[str, str] = {}
    breakdowns: dict[str, str] = {}
    for name, variable in variables.items():
        entry = declared.get(name, DeclaredVariable())
        label = entry.label or (eu2021.label(name) if name in built_in else "")
        named.update({name: label} if label else {})
        breakdowns.update(_breakdowns(variable, entry, name in built_in, findings))
    labels = Labels(named, breakdowns, dict(units.items()))
    _check_distinct(labels, variables, findings)
    return labels


def _breakdowns(
    variable: Variable, entry: DeclaredVariable, is_standard: bool, findings: Findings
) -> Iterator[tuple[str, str]]:
    """Full names and labels; those of the built-in programme apply only to its own breakdowns."""
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
    """Two variables with one label would be one column to a reader and to programs that identify columns by label."""
    first: dict[str, str] = {}
    for name in variables:
        other = first.setdefault(labels.variable(name), name)
        if other != name:
            value = f"{labels.variable(name)!r} is also shown for {other}"
            findings.add(f"variables.{name}.label", value, "give each variable a different label")


def standard_title(table: eu2021.StandardTable, labels: Labels) -> str:
    """A title for a built-in table: built-in labels in lower case, the office's labels unchanged."""
    by = ", ".join(_inside(axis, labels) for axis in table.axes)
    return f"{table.counted} by {by}"


def _inside(axis: str, labels: Labels) -> str:
    name, shown = axis.partition(".")[0], labels.axis(axis)
    is_own = labels.variable(name) == eu2021.label(name)
    return shown[:1].lower() + shown[1:] if is_own else shown
