"""What a source can be asked for: units, variables with their breakdowns, declared tables, places and rules.

It owns the description; it answers nothing, and everything in it is public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from discreet.release.noise import NoiseStatement
from discreet.schema.codelist import Breakdown, Codelist
from discreet.schema.labels import NO_LABELS, Labels
from discreet.schema.serve_rule import DEFAULT_SERVE, ServeRule


@dataclass(frozen=True, eq=False)
class ServedVariable:
    """One variable that may be an axis or stand in a filter."""

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
    """Everything that a source can be asked for."""

    name: str
    agency: str
    version: str
    units: tuple[str, ...]
    variables: Mapping[str, ServedVariable]
    tables: tuple[ServedTable, ...]
    noise: NoiseStatement  # the public words; ``noise.sentence()`` says them
    swapped: bool = False
    rule: ServeRule = DEFAULT_SERVE
    counts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # unit -> 0/1 columns
    bases: Mapping[str, str] = field(
        default_factory=dict
    )  # declared filter, as text or normal form -> normal form
    may_filter: bool = True  # whether other filters than the bases can be answered
    title: str = ""  # of the whole, for readers
    labels: Labels = NO_LABELS

    @property
    def heading(self) -> str:
        """What readers see of the whole: its title, or its name."""
        return self.title or self.name

    @property
    def places(self) -> tuple[str, ...]:
        """The variables that are places."""
        return tuple(name for name, variable in self.variables.items() if variable.is_place)

    def table(self, table: str) -> ServedTable | None:
        """The declared table of an id."""
        return next((one for one in self.tables if one.id == table), None)

    def breakdown(self, full_name: str) -> Breakdown | None:
        """The breakdown of a full name, such as AGE.M; None where there is none."""
        variable = self.variables.get(full_name.partition(".")[0])
        return None if variable is None else variable.breakdowns.get(full_name)
