"""Labels, titles and definitions of variables, breakdowns and units: declared, or from the built-in programme.

A text may have translations (``text/phrase.py``); all code sees the office's own language.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from discreet.programme import eu2021
from discreet.programme.definitions import NO_DEFINITION, Definition, Definitions, tags_of
from discreet.programme.filter import alternatives
from discreet.programme.release import DeclaredRelease
from discreet.programme.section import Findings, worded
from discreet.programme.variables import DeclaredVariable, Variable
from discreet.text.phrase import Phrase, joined, others_of, phrase, translated

Texts = Mapping[str, str]
UNIT_NAMES: Texts = {
    "persons": phrase("persons"),
    "households": phrase("households"),
    "families": phrase("families"),
    "dwellings": phrase("dwellings"),
}


@dataclass(frozen=True)
class Labels:
    """The labels of a publication, its definitions and topics; names that have none are left out."""

    variables: Texts = field(default_factory=dict)
    breakdowns: Texts = field(default_factory=dict)  # full name (AGE.M) -> "five-year groups"
    units: Texts = field(default_factory=dict)
    definitions: Definitions = field(default_factory=dict)  # of variables
    topics: Texts = field(default_factory=dict)  # variable -> the group in which readers look for it

    def __bool__(self) -> bool:
        return any((self.variables, self.breakdowns, self.units, self.definitions, self.topics))

    def variable(self, name: str) -> str:
        """A variable: Age."""
        return self.variables.get(name, name)

    def unit(self, name: str) -> str:
        """What is counted: persons."""
        return self.units.get(name) or UNIT_NAMES.get(name, name)

    def definition(self, variable: str) -> Definition:
        """What a variable means, and where its data come from."""
        return self.definitions.get(variable, NO_DEFINITION)

    def breakdown(self, full_name: str) -> str:
        """What distinguishes a breakdown from the others of its variable: five-year groups."""
        variable, _, level = full_name.partition(".")
        return self.breakdowns.get(full_name) or level or self.variable(variable)

    def axis(self, full_name: str) -> str:
        """A breakdown with its variable: Age (five-year groups)."""
        return self._axes.get(full_name) or self._axis(full_name)

    @cached_property
    def _axes(self) -> Texts:
        """The breakdowns that have a label, with their variables."""
        return {full_name: self._axis(full_name) for full_name in self.breakdowns}

    def _axis(self, full_name: str) -> str:
        variable, _, level = full_name.partition(".")
        if full_name in self.breakdowns or (level and variable in self.variables):
            shown = {"variable": self.variable(variable), "breakdown": self.breakdown(full_name)}
            return Phrase("{variable} ({breakdown})", shown)
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
        """The texts of some breakdowns, of their variables and of some units."""
        axes, counted = set(breakdowns), set(units)
        variables = {name.partition(".")[0] for name in axes}
        return Labels(
            {name: label for name, label in self.variables.items() if name in variables},
            {name: label for name, label in self.breakdowns.items() if name in axes},
            {name: label for name, label in self.units.items() if name in counted},
            {name: one for name, one in self.definitions.items() if name in variables},
            {name: topic for name, topic in self.topics.items() if name in variables},
        )

    def canonical(self) -> dict[str, dict[str, str]]:
        """The labels in the office's language as JSON with a stable order, as they enter the digest of a programme."""
        held = {"variables": self.variables, "breakdowns": self.breakdowns, "units": self.units}
        return {kind: _plain(labels) for kind, labels in held.items()}

    def own_texts(self) -> dict[str, dict[str, str]]:
        """Kind -> name -> text in the office's language, with a stable order; later kinds only if they occur."""
        later = {kind: _plain(texts) for kind, texts in self._kinds().items() if texts}
        return {**self.canonical(), **later}

    def translations(self) -> dict[str, dict[str, dict[str, str]]]:
        """Language -> kind -> name -> text, with a stable order; what is not translated is left out."""
        kinds = self._kinds()
        tags = tags_of(text for texts in kinds.values() for text in texts.values())
        return {
            tag: {kind: _in(texts, tag) for kind, texts in kinds.items() if _in(texts, tag)} for tag in tags
        }

    def _kinds(self) -> dict[str, Texts]:
        return {
            "variables": self.variables,
            "breakdowns": self.breakdowns,
            "units": self.units,
            "descriptions": {
                name: one.description for name, one in self.definitions.items() if one.description
            },
            "sources": {name: one.source for name, one in self.definitions.items() if one.source},
            "topics": self.topics,
        }


NO_LABELS = Labels()


def labels_of(own: Mapping[str, Texts], others: Mapping[str, Mapping[str, Texts]]) -> Labels:
    """The labels of ``Labels.own_texts`` and ``Labels.translations``."""

    def texts(kind: str) -> dict[str, str]:
        return {
            name: translated(text, {tag: kinds.get(kind, {}).get(name, "") for tag, kinds in others.items()})
            for name, text in own.get(kind, {}).items()
        }

    said, sources = texts("descriptions"), texts("sources")
    named = dict.fromkeys((*said, *sources))
    return Labels(
        texts("variables"),
        texts("breakdowns"),
        texts("units"),
        {name: Definition(said.get(name, ""), sources.get(name, "")) for name in named},
        texts("topics"),
    )


def _plain(texts: Texts) -> dict[str, str]:
    return {name: str(text) for name, text in sorted(texts.items())}


def _in(texts: Texts, tag: str) -> dict[str, str]:
    return {name: others_of(text)[tag] for name, text in sorted(texts.items()) if tag in others_of(text)}


def resolve_labels(
    declared: Mapping[str, DeclaredVariable],
    release: DeclaredRelease,
    is_standard: bool,
    variables: Mapping[str, Variable],
    findings: Findings,
) -> Labels:
    """The texts of all variables, breakdowns and units that have one."""
    own, built_in = release.language, set(eu2021.variables()) if is_standard else set()
    named: dict[str, str] = {}
    topics: dict[str, str] = {}
    breakdowns: dict[str, str] = {}
    definitions: dict[str, Definition] = {}
    for name, variable in variables.items():
        entry, key = declared.get(name, DeclaredVariable()), f"variables.{name}"
        standard = eu2021.texts(name, own) if name in built_in else eu2021.NO_TEXTS
        named[name] = worded(f"{key}.label", entry.label, own, findings) or standard.label
        topics[name] = worded(f"{key}.topic", entry.topic, own, findings) or standard.topic
        description = worded(f"{key}.description", entry.description, own, findings) or standard.description
        definitions[name] = Definition(description, worded(f"{key}.source", entry.source, own, findings))
        breakdowns.update(_breakdowns(variable, entry, name in built_in, own, findings))
    units = {
        unit: worded(f"release.unit_labels.{unit}", label, own, findings)
        for unit, label in release.unit_labels.items()
    }
    labels = Labels(
        {name: text for name, text in named.items() if text},
        breakdowns,
        {unit: text for unit, text in units.items() if text},
        {name: one for name, one in definitions.items() if one},
        {name: text for name, text in topics.items() if text},
    )
    _check_distinct(labels, variables, findings)
    return labels


def _breakdowns(
    variable: Variable, entry: DeclaredVariable, is_standard: bool, own: str, findings: Findings
) -> Iterator[tuple[str, str]]:
    """Full names and labels; those of the built-in programme apply only to its own breakdowns."""
    key = f"variables.{variable.name}.breakdown_labels"
    for name in entry.breakdown_labels:
        if name not in variable.breakdowns:
            findings.add(
                f"{key}.{name}", f"unknown breakdown {name!r}", alternatives(name, list(variable.breakdowns))
            )
    built_in = eu2021.breakdown_labels(variable.name, own) if is_standard and entry.breakdowns is None else {}
    given = {
        name: worded(f"{key}.{name}", one, own, findings) for name, one in entry.breakdown_labels.items()
    }
    labels = {**built_in, **given}
    for name, axis in variable.breakdowns.items():
        if name in labels:
            yield axis.full_name, labels[name]


def _check_distinct(labels: Labels, variables: Mapping[str, Variable], findings: Findings) -> None:
    """Two variables with one label would be one column to a reader and to programs that identify columns by label."""
    for tag in ("", *tags_of(labels.variables.values())):
        first: dict[str, str] = {}
        for name in variables:
            label = labels.variable(name)
            shown = others_of(label).get(tag, str(label))
            other = first.setdefault(shown, name)
            if other != name:
                value = f"{shown!r} is also shown for {other}"
                findings.add(f"variables.{name}.label", value, "give each variable a different label")


def standard_title(table: eu2021.StandardTable, labels: Labels) -> str:
    """A title for a built-in table: built-in English labels in lower case, the others unchanged."""
    by = tuple(_inside(axis, labels) for axis in table.axes)
    return phrase("{counted} by {axes}", counted=table.counted, axes=by)


def _inside(axis: str, labels: Labels) -> str:
    name, shown = axis.partition(".")[0], labels.axis(axis)
    is_own = labels.variable(name) == eu2021.texts(name).label
    return translated(shown[:1].lower() + shown[1:], others_of(shown)) if is_own else shown
