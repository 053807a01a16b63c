"""What PxWebApi 2 says of the server, its tables and its codelists; it owns these shapes, and asks nothing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from discreet.release.publication import ADDITIVITY
from discreet.schema.codelist import TOTAL, Breakdown
from discreet.serve.answer import Answer
from discreet.serve.catalogue import Catalogue
from discreet.serve.http.json_stat import (
    CONTENTS,
    add_contents,
    contents_code,
    dimension,
    dimension_of,
    extension,
    head_of,
    places_of,
    with_values,
)
from discreet.serve.http.pxweb_select import CODELIST, PxTable, codelists_of, codes_of, default_codes
from discreet.serve.http.settings import RateLimit, Settings
from discreet.serve.query import Query

API_VERSION = "2.0.0"
DATA_FORMATS = ("json-stat2", "csv", "xlsx", "px", "parquet")


class PxWords:
    """The words of one server; ``base`` is its own address, for links."""

    def __init__(self, catalogue: Catalogue, settings: Settings, base: str) -> None:
        self._catalogue, self._settings, self._base = catalogue, settings, base

    def config(self, rate: RateLimit) -> dict[str, Any]:
        """The configuration: limits and formats."""
        language = self._settings.language
        return {
            "apiVersion": API_VERSION,
            "appVersion": version("discreet"),
            "languages": [{"id": language, "label": language}],
            "defaultLanguage": language,
            "maxDataCells": self._catalogue.rule.cells,
            "maxCallsPerTimeWindow": rate.calls,
            "timeWindow": rate.seconds,
            "license": "",
            "sourceReferences": [{"language": language, "text": self._catalogue.name}],
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
            "label": title_of(table),
            "description": "",
            "updated": None,
            "firstPeriod": None,
            "lastPeriod": None,
            "timeUnit": "Other",
            "category": "public",
            "variableNames": [*(axis.full_name for axis in table.axes), CONTENTS],
            "source": self._catalogue.name,
            "subjectCode": self._catalogue.agency,
            "paths": [],
            "links": self.table_links(served.id),
            "language": self._settings.language,
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
        return {"rel": relation, "hreflang": self._settings.language, "href": f"{self._base}{path}"}

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
        head = head_of(title_of(table), self._catalogue, dimensions, places)
        add_contents(head, _query(table))
        head["note"] = [ADDITIVITY, self._catalogue.noise.sentence()]
        return {**head, "extension": self._px(table, list(dimensions)), "href": self._data(table)}

    def dataset(self, table: PxTable, answer: Answer) -> bytes:
        """An answer as the data of a table."""
        dimensions = {axis.variable: dimension(axis) for axis in answer.axes}
        head = head_of(title_of(table), self._catalogue, dimensions, places_of(answer.axes))
        add_contents(head, answer.query)
        told = {**self._px(table, list(dimensions)), "discreet": extension(answer)}
        return with_values({**head, "extension": told, "href": self._data(table)}, answer)

    def selection(self, table: PxTable) -> dict[str, Any]:
        """The default selection."""
        picked = [
            {"variableCode": axis.variable, "codelist": None, "valueCodes": list(codes)}
            for axis, codes in default_codes(table)
        ]
        contents = {
            "variableCode": CONTENTS,
            "codelist": None,
            "valueCodes": [contents_code(table.served.count)],
        }
        names = [axis.variable for axis in table.axes]
        return {
            "selection": [*picked, contents],
            "placement": {"heading": [*names[-1:], CONTENTS], "stub": names[:-1]},
            "language": self._settings.language,
            "links": self.table_links(table.served.id),
        }

    def codelist(self, axis: Breakdown) -> dict[str, Any]:
        """A set of values: the codes of a breakdown."""
        name, language = CODELIST + axis.full_name, self._settings.language
        return {
            "id": name,
            "label": axis.full_name,
            "language": language,
            "languages": [language],
            "elimination": True,
            "eliminationValueCode": TOTAL,
            "type": "Valueset",
            "values": [
                {"code": code, "label": label, "valueMap": [code]}
                for code, label in zip(axis.codes, axis.labels, strict=True)
            ],
            "links": [self.link("self", f"/codelists/{quote(name, safe='')}")],
        }

    def _dimension(self, axis: Breakdown, codes: tuple[str, ...]) -> dict[str, Any]:
        nodes = [axis.position[code] for code in codes]
        parents = [axis.codes[node] if node >= 0 else "" for node in axis.parents[nodes].tolist()]
        labels = tuple(axis.labels[node] for node in nodes)
        made = dimension_of(axis.full_name, codes, labels, tuple(parents))
        lists = [
            {
                "id": CODELIST + one.full_name,
                "label": one.full_name,
                "type": "Valueset",
                "links": [self.link("metadata", f"/codelists/{quote(CODELIST + one.full_name, safe='')}")],
            }
            for one in codelists_of(axis, self._catalogue)
        ]
        # clients of two generations of PxWebApi look for them under two names
        made["extension"] |= {"codeLists": lists, "codelists": lists}
        return made

    def _px(self, table: PxTable, names: list[str]) -> dict[str, Any]:
        return {
            "px": {
                "tableid": table.served.id,
                "matrix": table.served.id,
                "language": self._settings.language,
                "contents": title_of(table),
                "decimals": 0,
                "official-statistics": True,
                "aggregallowed": False,
                "copyright": "NO",
                "description": title_of(table),
                "descriptiondefault": True,
                "subject-code": self._catalogue.agency,
                "subject-area": self._catalogue.name,
                "heading": [*names[-1:], CONTENTS],
                "stub": names[:-1],
            },
            "noteMandatory": {"0": True, "1": True},
        }

    def _data(self, table: PxTable) -> str:
        return f"{self._base}/tables/{quote(table.served.id, safe='')}/data"


def title_of(table: PxTable) -> str:
    """The title of a table, or what it counts by what."""
    served = table.served
    if served.title:
        return served.title
    by = ", ".join(served.axes)
    return f"{served.id}: {served.unit}" + (f" by {by}" if by else "")


def _query(table: PxTable) -> Query:
    return Query(table.served.unit, (), table.served.base, table.served.count)
