"""What readers see instead of the names of variables, breakdowns and units, and the titles that follow from it.

It owns the one rule that a name without a label is shown as it is; which labels there are is declared elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from discreet.words.phrase import joined, phrase


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
        """What tells a breakdown from the others of its variable: five-year groups."""
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
