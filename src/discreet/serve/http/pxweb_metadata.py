"""PxWebApi 2 descriptions of the server, its tables and its codelists."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from discreet.formats.dataset import Dataset, defined
from discreet.formats.publication import SWAPPED
from discreet.programme.codelist import TOTAL, Breakdown
from discreet.programme.labels import Labels
from discreet.serve.answer import Answer
from discreet.serve.catalogue import Catalogue
from discreet.serve.dataset import dataset_of
from discreet.serve.http.json_stat import (
    CONTENTS,
    CONTENTS_LABEL,
    add_contents,
    answer_head,
    contents_code,
    dimension_of,
    encoded,
    encoded_1,
    extension,
    head_of,
)
from discreet.serve.http.languages import language_tagged, offered, tag_of
from discreet.serve.http.pxweb_selection import (
    CODELIST,
    DATA_FORMATS,
    Placement,
    PxTable,
    codelists_of,
    codes_of,
    default_codes,
    placed,
)
from discreet.serve.http.settings import RateLimit, Settings
from discreet.serve.query import Query
from discreet.text.phrase import Language, joined, said, spoken

API_VERSION = "2.0.0"
TIME_UNIT = "Other"  # a census has no periods
# calls a second shown to callers without a limit, since the standard requires a number
UNLIMITED = 1_000_000


class PxDescriptions:
    """The descriptions of one server in a language; ``base`` is its address, for links."""

    def __init__(self, catalogue: Catalogue, settings: Settings, base: str, language: Language) -> None:
        self._catalogue, self._settings, self._base = catalogue, settings, base
        self._labels, self._language = catalogue.labels, language
        self.tag = tag_of(language, settings.language)

    def config(self, rate: RateLimit) -> dict[str, Any]:
        """The configuration: limits and formats."""
        language = self._settings.language
        return {
            "apiVersion": API_VERSION,
            "appVersion": version("discreet"),
            "languages": [{"id": tag, "label": label} for tag, label in offered(language).items()],
            "defaultLanguage": language,
            "maxDataCells": self._catalogue.rule.cells,
            "maxCallsPerTimeWindow": rate.calls or UNLIMITED,
            "timeWindow": rate.seconds or 1,
            "license": "",
            "sourceReferences": [
                {
                    "language": tag,
                    "text": said(self._catalogue.heading, language_tagged(tag) or Language.ENGLISH),
                }
                for tag in offered(language)
            ],
            "defaultDataFormat": DATA_FORMATS[0],
            "dataFormats": list(DATA_FORMATS),
            "features": [{"id": "CORS", "params": [{"key": "enabled", "value": "True"}]}],
        }

    def table(self, table: PxTable) -> dict[str, Any]:
        """One table of the list."""
        served = table.served
        return {
            "type": "Table",
            "id": served.id,
            "label": self._title(table),
            "description": "",
            "updated": None,
            "firstPeriod": None,
            "lastPeriod": None,
            "timeUnit": TIME_UNIT,
            "category": "public",
            "variableNames": [
                *(self._axis(axis) for axis in table.axes),
                said(CONTENTS_LABEL, self._language),
            ],
            "source": self._heading,
            "subjectCode": self._catalogue.agency,
            "paths": [[{"id": self._catalogue.agency, "label": self._heading}]],
            "discontinued": False,
            "links": self.table_links(served.id),
            "language": self.tag,
        }

    def table_links(self, table: str) -> list[dict[str, str]]:
        """Where a table, its metadata and its data are."""
        path = f"/tables/{quote(table, safe='')}"
        return [
            self.link("self", path),
            self.link("metadata", f"{path}/metadata"),
            self.link("data", f"{path}/data"),
        ]

    def link(self, relation: str, path: str) -> dict[str, str]:
        """A link into this API."""
        return {"rel": relation, "hreflang": self.tag, "href": f"{self._base}{path}"}

    def page_links(self, query: str, page: int, pages: int) -> list[dict[str, str]]:
        """Where the pages before and after one of the list are."""
        around = {"prev": page - 1, "next": page + 1, "last": pages}
        others = [(name, value) for name, value in parse_qsl(query) if name != "pageNumber"]
        return [
            self.link(relation, f"/tables?{urlencode([*others, ('pageNumber', number)])}")
            for relation, number in around.items()
            if 1 <= number <= pages
        ]

    def metadata(self, table: PxTable, codelists: Mapping[str, str]) -> dict[str, Any]:
        """A table's dataset without its values; ``codelists`` narrows variables to sets of their values."""
        chosen = {table.axis(name).variable: codelist for name, codelist in codelists.items()}
        dimensions = {
            axis.variable: self._dimension(
                axis, codes_of(axis, chosen.get(axis.variable, ""), self._catalogue)
            )
            for axis in table.axes
        }
        places = [axis.variable for axis in table.axes if axis.variable in self._catalogue.places]
        noise, exchanged = self._catalogue.noise, [SWAPPED] if self._catalogue.swapped else []
        notes = spoken([self._catalogue.additivity, noise.sentence(), *exchanged], self._language)
        px = self._px(table, placed([*dimensions, CONTENTS], (), ()), len(notes))
        head = head_of(
            label=self._title(table),
            source=self._heading,
            notes=notes,
            dimensions=dimensions,
            sizes=[len(one["category"]["index"]) for one in dimensions.values()],
            extension=px,
            places=places,
        )
        add_contents(head, _query(table), self._labels, self._language)
        path = _path(table)
        links = {"data": [{"type": "application/json", "href": self._base + f"{path}/data"}]}
        return {
            **head,
            "value": None,
            "href": self._base + f"{path}/metadata",
            "link": links,
        }

    def dataset(self, table: PxTable, answer: Answer, placement: Placement) -> bytes:
        """An answer as the data of a table."""
        return encoded(*self._dataset(table, answer, placement))

    def dataset_1(self, table: PxTable, answer: Answer, placement: Placement) -> bytes:
        """The same in the form of JSON-stat 1."""
        return encoded_1(*self._dataset(table, answer, placement))

    def _dataset(
        self, table: PxTable, answer: Answer, placement: Placement
    ) -> tuple[Dataset, dict[str, Any]]:
        """The dataset, and its members other than the values."""
        dataset = dataset_of(answer, self._catalogue, title=self._title(table))
        px = self._px(table, placement, len(dataset.all_notes))
        head = answer_head(dataset, {**px, "discreet": extension(answer)})
        add_contents(head, answer.query, self._labels, answer.language)
        path = self._base + _path(table)
        links = {"describedby": [{"type": "application/json", "href": f"{path}/metadata"}]}
        return dataset, {**head, "href": f"{path}/data", "link": links}

    def selection(self, table: PxTable) -> dict[str, Any]:
        """The default selection."""
        return self.selected(table, default_codes(table, self._catalogue.rule.axes), {})

    def selected(
        self, table: PxTable, codes: Mapping[str, tuple[str, ...]], codelists: Mapping[str, str]
    ) -> dict[str, Any]:
        """A selection: the codes of each variable that it has, and the codelists they were picked from."""
        contents = {CONTENTS: (contents_code(table.served.count),)}
        placement = placed([*codes, CONTENTS], (), ())
        return {
            "selection": [
                {"variableCode": name, "codelist": codelists.get(name) or None, "valueCodes": list(held)}
                for name, held in {**codes, **contents}.items()
            ],
            "placement": {"heading": list(placement.heading), "stub": list(placement.stub)},
            "language": self.tag,
            "links": self.table_links(table.served.id),
        }

    def saved(self, name: str, query: Mapping[str, Any]) -> dict[str, Any]:
        """A saved query: as a member and its parts next to it, for clients of two generations."""
        held = {"language": self.tag, **query}
        links = [self.link("self", f"/savedqueries/{name}"), self.link("data", f"/savedqueries/{name}/data")]
        return {**held, "id": name, "savedQuery": {**held, "id": name}, "links": links}

    def codelist(self, axis: Breakdown) -> dict[str, Any]:
        """A set of values: the codes of a breakdown."""
        name = CODELIST + axis.full_name
        return {
            "id": name,
            "label": self._axis(axis),
            "language": self.tag,
            "languages": list(offered(self._settings.language)),
            "elimination": True,
            "eliminationValueCode": TOTAL,
            "type": "Valueset",
            "values": [
                {"code": code, "label": said(label, self._language), "valueMap": [code]}
                for code, label in zip(axis.codes, axis.labels, strict=True)
            ],
            "links": [self.link("self", f"/codelists/{quote(name, safe='')}")],
        }

    def _dimension(self, axis: Breakdown, codes: tuple[str, ...]) -> dict[str, Any]:
        labels = tuple(said(axis.labels[axis.position[code]], self._language) for code in codes)
        noted = defined(codes, self._labels.definition(axis.variable), axis.definitions, self._language)
        made = dimension_of(self._axis(axis), codes, labels, _parents(axis, codes), **noted)
        lists = [
            {
                "id": CODELIST + one.full_name,
                "label": self._axis(one),
                "type": "Valueset",
                "links": [self.link("metadata", f"/codelists/{quote(CODELIST + one.full_name, safe='')}")],
            }
            for one in codelists_of(axis, self._catalogue)
        ]
        # clients of two generations of PxWebApi look for them under two names
        made["extension"] |= {"codeLists": lists, "codelists": lists}
        return made

    @property
    def _heading(self) -> str:
        return said(self._catalogue.heading, self._language)

    def _axis(self, axis: Breakdown) -> str:
        return said(self._labels.axis(axis.full_name), self._language)

    def _title(self, table: PxTable) -> str:
        return said(title_of(table, self._labels), self._language)

    def _px(self, table: PxTable, placement: Placement, notes_count: int) -> dict[str, Any]:
        title = self._title(table)
        px = {
            "tableid": table.served.id,
            "matrix": table.served.id,
            "language": self.tag,
            "contents": title,
            "decimals": 0,
            "official-statistics": True,
            "aggregallowed": False,
            "description": title,
            "descriptiondefault": True,
            "subject-code": self._catalogue.agency,
            "subject-area": self._heading,
            "heading": list(placement.heading),
            "stub": list(placement.stub),
        }
        return {
            "px": px,
            "noteMandatory": {str(place): True for place in range(notes_count)},
            "timeUnit": TIME_UNIT,
            "discontinued": False,
        }


def _path(table: PxTable) -> str:
    return f"/tables/{quote(table.served.id, safe='')}"


def _parents(axis: Breakdown, codes: tuple[str, ...]) -> tuple[str, ...]:
    """The nearest code above each that is among the codes, or empty."""
    held, above = set(codes), axis.parents.tolist()

    def parent(node: int) -> str:
        while node >= 0 and axis.codes[node] not in held:
            node = above[node]
        return axis.codes[node] if node >= 0 else ""

    return tuple(parent(above[axis.position[code]]) for code in codes)


def title_of(table: PxTable, labels: Labels) -> str:
    """The title of a table, or a description of what it counts."""
    served = table.served
    return served.title or joined(f"{served.id}:", labels.title(labels.unit(served.unit), served.axes))


def _query(table: PxTable) -> Query:
    return Query(table.served.unit, (), table.served.base, table.served.count)
