"""The EU 2021 census programme: its tables, variables, codes and breakdowns, as package data.

The tables are those of annex I of Regulation (EU) 2017/712, the categories those of Regulation (EU) 2017/543.
Countries have ISO-like codes; the numbers of countries and territories in each group are the regulation's, but which
small dependent territories are listed in addition to the sovereign states is a choice made here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from discreet.errors import Mistakes, Problem, mistake
from discreet.programme.attributes import Attribute, attribute
from discreet.programme.codelist import Code, Codelist
from discreet.programme.definitions import text_in
from discreet.text.phrase import Phrase, others_of, phrase, translated

NAME = "eu-census-2021"
GEOGRAPHY = "GEO"  # its codelist is the office's own
WORKPLACE = "LPW"  # its codelist follows from the geography: see lpw_rows
NUTS2 = 2
OWN = "en"  # the language of its texts, which have translations

Cut = int | tuple[str, ...]
_COUNTED = {  # unit and base -> who is counted, for titles
    ("persons", ""): phrase("Persons"),
    ("households", ""): phrase("Private households"),
    ("families", ""): phrase("Families"),
    ("dwellings", ""): phrase("Living quarters"),
    ("dwellings", 'TLQ == "1"'): phrase("Conventional dwellings"),
    ("dwellings", 'TLQ == "1" and OCS == "1"'): phrase("Occupied conventional dwellings"),
}


@dataclass(frozen=True)
class StandardTable:
    """One table of the programme; ``alternatives`` are axes that an office may deliver instead."""

    id: str
    group: str
    unit: str  # persons, households, families or dwellings
    base: str  # a filter expression, empty when every record counts
    axes: tuple[str, ...]  # breakdown names: AGE.M, SEX
    alternatives: tuple[tuple[str, ...], ...] = ()

    @property
    def counted(self) -> Phrase:
        """Who is counted, as text."""
        return _COUNTED[self.unit, self.base]

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that the axes need."""
        return tuple(axis.partition(".")[0] for axis in self.axes)


def tables(selection: Sequence[str] | None = None) -> tuple[StandardTable, ...]:
    """The tables named by their ids ("9.2") or groups ("9"), in the regulation's order; None means all."""
    if selection is None:
        return _all_tables()
    known = {name for table in _all_tables() for name in (table.id, table.group)}
    problems = [_unknown_table(name) for name in selection if name not in known]
    if problems:
        raise Mistakes(problems)
    return tuple(table for table in _all_tables() if {table.id, table.group} & set(selection))


def variables() -> tuple[str, ...]:
    """The names of all variables of the programme."""
    return tuple(_all_breakdowns())


def units(variable: str) -> tuple[str, ...]:
    """The units whose tables use a variable (GEO: all four)."""
    _known(variable)
    used = {
        table.unit
        for table in _all_tables()
        for axes in (table.axes, *table.alternatives)
        if variable in {axis.partition(".")[0] for axis in axes}
    }
    return tuple(unit for unit in ("persons", "households", "families", "dwellings") if unit in used)


def column(variable: str) -> str:
    """The column of a variable unless the office declares another."""
    return variable.lower()


def breakdowns(variable: str) -> Mapping[str, Cut]:
    """How each breakdown cuts the variable's tree: at a level, or at the named codes.

    The single breakdown of a variable (SEX) has the variable's name.
    """
    return _all_breakdowns()[_known(variable)]


def attribute_of(variable: str) -> Attribute:
    """Whose attribute a variable is; what follows from who lives together is not fixed: an office decides that."""
    return _all_attributes()[_known(variable)]


@dataclass(frozen=True)
class VariableTexts:
    """What readers see of a variable instead of its name; with translations."""

    label: str
    topic: str
    description: str


NO_TEXTS = VariableTexts("", "", "")


def texts(variable: str, own: str = OWN) -> VariableTexts:
    """The texts of a variable, in the language ``own`` if they have it."""
    row = _all_labels()[_known(variable)]
    label, topic, description = (
        own_first(text_in(row, kind), own) for kind in ("label", "topic", "description")
    )
    return VariableTexts(label, topic, description)


def breakdown_labels(variable: str, own: str = OWN) -> Mapping[str, str]:
    """What distinguishes each breakdown of a variable from the others; a single one has no label."""
    names = {name: f"{variable}.{name}" for name in breakdowns(variable) if name != variable}
    return {
        name: own_first(text_in(_all_labels()[full_name], "label"), own) for name, full_name in names.items()
    }


def own_first(text: str, own: str) -> str:
    """A built-in text as one of the language ``own``, if it has it: then English is a translation."""
    others = others_of(text)
    if own == OWN or own not in others:
        return text
    rest = {tag: other for tag, other in others.items() if tag != own}
    return translated(others[own], {**rest, OWN: str(text)})


def codelist_rows(variable: str, own: str = OWN) -> list[Code]:
    """The codes of a variable; the geography has none here, and the place of work only its five groups."""
    if _known(variable) == GEOGRAPHY:
        raise mistake(
            NAME, GEOGRAPHY, "no codelist", "declare the codelist of your regions under [variables.GEO]"
        )
    return [
        Code(row["code"], row["parent"], own_first(text_in(row, "label"), own))
        for row in _csv("codelists", f"{variable.lower()}.csv")
    ]


def lpw_rows(geo: Codelist, own: str = OWN) -> list[Code]:
    """The place of work in one country: code 1 is refined by the NUTS 1 and NUTS 2 regions of ``geo``."""
    inside, *others = codelist_rows(WORKPLACE, own)
    regions = [
        Code(
            f"1.{geo.codes[index]}",
            f"1.{geo.codes[geo.parents[index]]}" if geo.depths[index] == NUTS2 else inside.code,
            geo.labels[index],
        )
        for index in range(len(geo.codes))
        if geo.depths[index] <= NUTS2
    ]
    unknown = translated("Region of the place of work unknown", {"de": "Region des Arbeitsorts unbekannt"})
    return [inside, *regions, Code("1.y", inside.code, own_first(unknown, own)), *others]


def _csv(*path: str) -> Iterator[dict[str, str]]:
    text = files(__name__).joinpath(*path).read_text(encoding="utf-8")
    return csv.DictReader(text.splitlines())


@cache
def _all_tables() -> tuple[StandardTable, ...]:
    return tuple(_table(row) for row in _csv("tables.csv"))


def _table(row: Mapping[str, str]) -> StandardTable:
    choices = [axis.split("|") for axis in row["axes"].split()]
    alternatives = [
        (*(first[0] for first in choices[:k]), other, *(first[0] for first in choices[k + 1 :]))
        for k, choice in enumerate(choices)
        for other in choice[1:]
    ]
    default = tuple(choice[0] for choice in choices)
    return StandardTable(row["table"], row["group"], row["unit"], row["base"], default, tuple(alternatives))


@cache
def _all_breakdowns() -> Mapping[str, Mapping[str, Cut]]:
    found: dict[str, dict[str, Cut]] = {}
    for row in _csv("breakdowns.csv"):
        variable, _, name = row["breakdown"].partition(".")
        cut: Cut = tuple(row["codes"].split()) if row["codes"] else int(row["level"])
        found.setdefault(variable, {})[name or variable] = cut
    return found


@cache
def _all_attributes() -> Mapping[str, Attribute]:
    return {row["variable"]: attribute(row["of"], row["fixed"] == "true") for row in _csv("attributes.csv")}


@cache
def _all_labels() -> Mapping[str, Mapping[str, str]]:
    return {row["name"]: row for row in _csv("labels.csv")}


def _known(variable: str) -> str:
    if variable not in _all_breakdowns():
        raise mistake(
            NAME, "variable", f"no variable {variable!r}", f"use one of {', '.join(_all_breakdowns())}"
        )
    return variable


def _unknown_table(name: str) -> Problem:
    groups = list(dict.fromkeys(table.group for table in _all_tables()))
    inside = [table.id for table in _all_tables() if table.group == name.partition(".")[0]]
    exists = (
        f"tables {', '.join(inside)}"
        if inside
        else f"groups {groups[0]} to {groups[-1]} or table ids such as 9.2"
    )
    return Problem(NAME, "tables", f"no table or group {name!r}", f"use {exists}")
