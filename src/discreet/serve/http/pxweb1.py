"""PxWebApi 1: the routes that R pxweb before 0.19 and the many scripts of its time call, over the declared tables.

Selections, rules and files are those of PxWebApi 2.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from fastapi import Query as Parameter
from fastapi.responses import Response
from pydantic import ValidationError

from discreet.formats.columns import Texts
from discreet.serve.catalogue import Catalogue
from discreet.serve.http.downloads import TABLES
from discreet.serve.http.json_stat import CONTENTS
from discreet.serve.http.languages import language_tagged, note, offered
from discreet.serve.http.layout import Layout
from discreet.serve.http.problems import HttpProblem, invalid_problem
from discreet.serve.http.pxweb_data import descriptions_of, holds, rate_of, shaped_response, table_of
from discreet.serve.http.pxweb_metadata import UNLIMITED, title_of
from discreet.serve.http.pxweb_selection import (
    JSON_PX,
    JSON_STAT,
    JSON_STAT_1,
    PxTable,
    Shape,
    TableQueryBody,
    placed,
    px_tables,
    question_of,
)
from discreet.serve.http.respond import SHARED, send_json, send_translated
from discreet.serve.http.security import Caller
from discreet.serve.http.service import CallerOf, Service, ServiceOf
from discreet.serve.query import Query
from discreet.text.phrase import phrase

PREFIX = "/pxweb/api/v1"  # clients look for the configuration at every part of the address; /api/v1 is our own API's
FORMS = {  # format of PxWebApi 1 -> ours, and the texts of CSV
    "json": (JSON_PX, Texts.BOTH),
    "json-stat": (JSON_STAT_1, Texts.BOTH),
    "json-stat2": (JSON_STAT, Texts.BOTH),
    "csv": ("csv", Texts.LABELS),
    "csv2": ("csv", Texts.LABELS),
    "csv3": ("csv", Texts.CODES),
    "px": ("px", Texts.BOTH),
    "xlsx": ("xlsx", Texts.LABELS),
}
PIVOTED = ("csv", "xlsx")  # the last variable is in columns; csv2 and csv3 have a line for each cell


async def speak(request: Request) -> None:
    """Answer in the language of the address, where it is supported."""
    language = language_tagged(request.path_params.get("lang", ""))
    if language is not None:
        note(request.scope, language)
        request.state.caller = replace(request.state.caller, language=language)


router = APIRouter(prefix=PREFIX, tags=["PxWebApi 1"], dependencies=[Depends(speak)])

Lang = Annotated[str, Path(max_length=20, description="The language of notes and errors, as lang elsewhere.")]
Database = Annotated[str, Path(max_length=200, description="The id in the list of databases.")]
Terms = Annotated[str, Parameter(alias="query", max_length=1_000, description="Terms to search for.")]
_BODY = {
    "requestBody": {
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "query": {"type": "array", "items": {"type": "object"}},
                        "response": {"type": "object", "properties": {"format": {"type": "string"}}},
                    },
                }
            }
        }
    }
}


@router.get("")
@router.get("/", include_in_schema=False)
def languages(request: Request, service: ServiceOf, caller: CallerOf) -> Response:
    """The languages, that of the labels first; with ?config, here and below, the limits."""
    listed = offered(service.settings.language)
    return _send(request, service, caller, [{"id": tag, "text": text} for tag, text in listed.items()])


@router.get("/{lang}")
@router.get("/{lang}/", include_in_schema=False)
def databases(request: Request, service: ServiceOf, caller: CallerOf, lang: Lang) -> Response:
    """The databases: one."""
    catalogue = service.catalogue
    return _send(request, service, caller, [{"dbid": database_of(catalogue), "text": catalogue.heading}])


@router.get("/{lang}/{database}")
@router.get("/{lang}/{database}/", include_in_schema=False)
def tables(
    request: Request, service: ServiceOf, caller: CallerOf, lang: Lang, database: Database, terms: Terms = ""
) -> Response:
    """The tables, all or those that contain every term of a query."""
    _check(service, database)
    found = [(one, title_of(one, service.catalogue.labels)) for one in px_tables(service.catalogue).values()]
    if not terms:
        levels = [{"id": one.served.id, "type": "t", "text": title} for one, title in found]
        return _send(request, service, caller, levels)
    descriptions = descriptions_of(request, service)
    hits = [
        {"id": one.served.id, "path": "/", "title": title, "score": 1.0}
        for one, title in found
        if holds(descriptions.table(one), terms)
    ]
    return _send(request, service, caller, hits)


@router.get("/{lang}/{database}/{table}")
@router.get("/{lang}/{database}/{table}/", include_in_schema=False)
def metadata(
    request: Request, service: ServiceOf, caller: CallerOf, lang: Lang, database: Database, table: str
) -> Response:
    """The variables of a table and their values."""
    _check(service, database)
    return _send(request, service, caller, table_metadata(table_of(service, table), service.catalogue))


@router.post("/{lang}/{database}/{table}", openapi_extra=_BODY, responses=TABLES)
@router.post("/{lang}/{database}/{table}/", include_in_schema=False)
async def data(
    request: Request, service: ServiceOf, caller: CallerOf, lang: Lang, database: Database, table: str
) -> Response:
    """The data of a table; the query is read for any media type, since clients send none."""
    _check(service, database)
    found, body = table_of(service, table), _body(await request.body())
    query = question_of(found, body.picked(), service.catalogue)
    shape = shape_of(query, body.response.format)
    return await shaped_response(request, service, caller, found, query, shape)


def database_of(catalogue: Catalogue) -> str:
    """The id of the database: the name of the release, without characters that an address cannot have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", catalogue.name).strip("-.") or "census"


def table_metadata(table: PxTable, catalogue: Catalogue) -> dict[str, Any]:
    """The title and the variables of a table; what is counted is no variable here, but the column of the values."""
    variables = [
        {
            "code": axis.variable,
            "text": catalogue.labels.axis(axis.full_name),
            "values": list(axis.codes),
            "valueTexts": list(axis.labels),
            "elimination": True,
            "time": False,
        }
        for axis in table.axes
    ]
    return {"title": title_of(table, catalogue.labels), "variables": variables}


def shape_of(query: Query, form: str) -> Shape:
    """The shape that a format of PxWebApi 1 has."""
    wanted = form.strip().lower()
    if wanted not in FORMS:
        message = phrase("The format is one of {names}.", names=tuple(FORMS))
        raise HttpProblem(400, message, kind="mistakes")
    names = [axis.variable for axis in query.axes]
    kind, texts = FORMS[wanted]
    layout = Layout(columns=tuple(names[-1:]) if wanted in PIVOTED else (), texts=texts, is_bare=True)
    return Shape(kind, layout, placed([*names, CONTENTS], (), ()))


def _send(request: Request, service: Service, caller: Caller, content: Any) -> Response:
    """The content of an address, or the limits with ``?config``."""
    if "config" in request.query_params:
        rate, cells = rate_of(service, caller), service.catalogue.rule.cells
        limits = {"maxCalls": rate.calls or UNLIMITED, "timeWindow": rate.seconds or 1, "CORS": True}
        return send_json(request, {"maxValues": cells, "maxCells": cells, **limits})
    return send_translated(request, content, cache=SHARED)


def _check(service: Service, database: str) -> None:
    known = database_of(service.catalogue)
    if database.lower() != known.lower():
        raise HttpProblem(404, phrase("There is no such database; there is {name}.", name=known))


def _body(sent: bytes) -> TableQueryBody:
    try:
        return TableQueryBody.model_validate_json(sent or b"{}")
    except ValidationError as error:
        raise invalid_problem(error.errors(include_url=False, include_input=False), ("body",)) from None
