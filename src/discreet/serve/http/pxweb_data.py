"""Data of PxWebApi: from a selection to a file, including the JSON of version 1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from discreet.formats.px import MEDIA_TYPE, json_px, write_px
from discreet.serve.answer import Answer
from discreet.serve.dataset import dataset_of
from discreet.serve.http.downloads import File, Format, bytes_of, written
from discreet.serve.http.languages import language_of
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.pxweb_metadata import PxDescriptions, title_of
from discreet.serve.http.pxweb_selection import (
    JSON_PX,
    JSON_STAT,
    JSON_STAT_1,
    Asked,
    Picked,
    PxTable,
    Shape,
    px_tables,
    question_of,
    shaped,
    split_values,
)
from discreet.serve.http.respond import send
from discreet.serve.http.security import Caller
from discreet.serve.http.service import Service
from discreet.serve.http.settings import RateLimit
from discreet.serve.query import Query
from discreet.text.phrase import phrase, said

PREFIX = "/api/v2"
UNCOUNTED = RateLimit(0, 0)
_VARIABLE = re.compile(r"(valuecodes|codelist)\[(.+)\]", re.IGNORECASE)


def descriptions_of(request: Request, service: Service) -> PxDescriptions:
    """The descriptions of this server, with links to the address of the request."""
    base = str(request.base_url).rstrip("/") + PREFIX
    return PxDescriptions(service.catalogue, service.settings, base, language_of(request))


def table_of(service: Service, name: str) -> PxTable:
    """A declared table; a problem where it does not exist."""
    found = px_tables(service.catalogue).get(name)
    if found is None:
        raise HttpProblem(404, phrase("There is no such table; the list of tables has their ids."))
    return found


def rate_of(service: Service, caller: Caller) -> RateLimit:
    """The rate limit of a caller; ``UNCOUNTED`` where there is no limit."""
    limits = service.settings.limits
    return {"public": limits.public, "trusted": limits.trusted}.get(caller.role.value, UNCOUNTED)


def holds(table: Mapping[str, Any], query: str) -> bool:
    """Whether the description of a table contains every term of a query."""
    text = " ".join([table["id"], table["label"], *table["variableNames"]]).lower()
    return all(word.strip("*") in text for word in query.lower().split())


def selection_in(request: Request) -> dict[str, Picked]:
    """The selection in an address: valueCodes[SEX]=1,2 and codelist[AGE]=vs_AGE.L; the case of variables is ignored."""
    values: dict[str, list[str]] = {}
    lists: dict[str, str] = {}
    for key, text in request.query_params.multi_items():
        named = _VARIABLE.fullmatch(key)
        if named is not None and named[1].lower() == "valuecodes":
            values.setdefault(named[2].upper(), []).extend(split_values(text))
        elif named is not None and text:
            lists[named[2].upper()] = text
    return {
        name: Picked(tuple(values.get(name, ("*",))), lists.get(name, ""))
        for name in dict.fromkeys([*values, *lists])
    }


async def data_response(
    request: Request,
    service: Service,
    caller: Caller,
    table: PxTable,
    selection: Mapping[str, Picked],
    asked: Asked,
) -> Response:
    """The data of a table in the requested shape."""
    query, shape = shaped(question_of(table, selection, service.catalogue), asked)
    return await shaped_response(request, service, caller, table, query, shape)


async def shaped_response(
    request: Request, service: Service, caller: Caller, table: PxTable, query: Query, shape: Shape
) -> Response:
    """The answer to a question about a table as a file."""
    descriptions = descriptions_of(request, service)

    def write(answer: Answer) -> File:
        return _file(answer, table, shape, descriptions, service)

    file = await service.file(caller, query, (table.served.id, shape, str(request.base_url)), write)
    name = "" if file.ending == "json" else f"{table.served.id}.{file.ending}"
    return send(request, file, name=name)


def _file(
    answer: Answer, table: PxTable, shape: Shape, descriptions: PxDescriptions, service: Service
) -> File:
    if shape.form == JSON_STAT:
        return _json(descriptions.dataset(table, answer, shape.placement))
    if shape.form == JSON_STAT_1:
        return _json(descriptions.dataset_1(table, answer, shape.placement))
    title = said(title_of(table, service.catalogue.labels), answer.language)
    if shape.form == JSON_PX:
        return _json(json_px(dataset_of(answer, service.catalogue, title=title)))
    if shape.form == Format.PX:
        dataset = dataset_of(
            answer, service.catalogue, title=title, table=table.served.id, language_tag=descriptions.tag
        )
        return File(bytes_of(write_px, dataset, shape.layout.columns), MEDIA_TYPE, "px")
    return written(answer, Format(shape.form), service.catalogue, shape.layout)


def _json(body: bytes) -> File:
    return File(body, "application/json", "json")
