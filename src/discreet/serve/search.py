"""One search over variables, categories and declared tables, in the words of labels, definitions and topics."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet.programme.codelist import Codelist
from discreet.serve.catalogue import Catalogue, ServedTable, ServedVariable
from discreet.text.phrase import Language, said

MOST = 12  # of each kind
LONGEST = 200  # characters of a search
_WORDS = re.compile(r"\w+")


def plain(text: str) -> str:
    """A text as it is compared: in lower case, without accents."""
    spread = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in spread if not unicodedata.combining(sign))


@dataclass(frozen=True)
class _Entry:
    """Something that can be found: by its label, and less directly by its definition."""

    kind: str  # variables, categories or tables
    label: str  # plain
    about: str  # plain
    place: tuple[str, int]  # name, and the position of a code


class SearchIndex:
    """Everything that can be found in a catalogue, in one language."""

    def __init__(self, catalogue: Catalogue, language: Language) -> None:
        self._catalogue, self._language = catalogue, language

    def find(self, text: str, unit: str = "") -> dict[str, Any]:
        """The best matches of each kind; every word must occur, at the start of a word or inside one."""
        words = _WORDS.findall(plain(text[:LONGEST]))
        found: dict[str, list[tuple[float, int, _Entry]]] = {"variables": [], "categories": [], "tables": []}
        if words:
            for at, entry in enumerate(self._entries):
                if unit and not self._counts(entry, unit):
                    continue
                score = _score(entry, words)
                if score:
                    found[entry.kind].append((-score, at, entry))
        made = {"variables": self._variable, "categories": self._category, "tables": self._table}
        return {
            kind: [made[kind](entry) for _, _, entry in sorted(hits, key=lambda hit: hit[:2])[:MOST]]
            for kind, hits in found.items()
        } | {"counts": {kind: len(hits) for kind, hits in found.items()}}

    @cached_property
    def _entries(self) -> list[_Entry]:
        return [*self._variables(), *self._categories(), *self._tables()]

    def _variables(self) -> Iterator[_Entry]:
        for name in self._catalogue.variables:
            about = (name, self._topic(name), self._catalogue.labels.definition(name).description)
            yield _Entry("variables", self._plain(self._label(name)), self._plain(*about), (name, 0))

    def _categories(self) -> Iterator[_Entry]:
        for name, variable in self._catalogue.variables.items():
            tree, whose = variable.codelist, self._plain(self._label(name))
            for at, (code, label) in enumerate(zip(tree.codes, tree.labels, strict=True)):
                defined = tree.definitions.get(code)
                more = f" {self._plain(defined.description)}" if defined else ""
                yield _Entry("categories", self._plain(label), f"{plain(code)} {whose}{more}", (name, at))

    def _tables(self) -> Iterator[_Entry]:
        for at, table in enumerate(self._catalogue.tables):
            yield _Entry("tables", self._plain(self._title(table)), plain(table.id), (table.id, at))

    def _counts(self, entry: _Entry, unit: str) -> bool:
        """Whether something belongs to a unit."""
        if entry.kind == "tables":
            return True
        return unit in self._catalogue.variables[entry.place[0]].units

    def _variable(self, entry: _Entry) -> dict[str, Any]:
        name = entry.place[0]
        return {"name": name, "label": self._label(name), "topic": self._topic(name)}

    def _category(self, entry: _Entry) -> dict[str, Any]:
        name, at = entry.place
        variable = self._catalogue.variables[name]
        tree = variable.codelist
        path = [said(tree.labels[place], self._language) for place in reversed(tree.ancestors(at)[1:])]
        return {
            "variable": name,
            "variable_label": self._label(name),
            "code": tree.codes[at],
            "label": said(tree.labels[at], self._language),
            "path": path,
            "breakdown": _coarsest(variable, tree, at),
        }

    def _table(self, entry: _Entry) -> dict[str, Any]:
        table = self._catalogue.tables[entry.place[1]]
        return {"id": table.id, "title": self._title(table), "unit": table.unit}

    def _label(self, variable: str) -> str:
        return said(self._catalogue.labels.variable(variable), self._language)

    def _topic(self, variable: str) -> str:
        return said(self._catalogue.labels.topics.get(variable, ""), self._language)

    def _title(self, table: ServedTable) -> str:
        labels = self._catalogue.labels
        title = said(table.title or labels.title(labels.unit(table.unit), table.axes), self._language)
        return title[:1].upper() + title[1:]

    def _plain(self, *texts: str) -> str:
        return plain(" ".join(said(text, self._language) for text in texts))


def _coarsest(variable: ServedVariable, tree: Codelist, at: int) -> str:
    """The coarsest breakdown that has a code; empty where none has."""
    code = tree.codes[at]
    return next((name for name, axis in variable.breakdowns.items() if code in axis.position), "")


def _score(entry: _Entry, words: list[str]) -> float:
    """How well an entry fits; zero where a word is missing, or none is in the label of a category."""
    total = 0.0
    in_label = 0
    for word in words:
        if word in entry.label:
            in_label += 1
            starts = entry.label.startswith(word) or f" {word}" in entry.label
            total += (3.0 if starts else 1.5) + len(word) / max(len(entry.label), 1)
        elif word in entry.about:
            total += 1.0 if f" {word}" in f" {entry.about}" else 0.5
        else:
            return 0.0
    return total if in_label or entry.kind == "variables" else 0.0
