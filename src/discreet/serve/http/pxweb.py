"""PxWebApi 2: the routes that the PxWeb 2 client, pxwebpy and R pxweb call, over the declared tables.

It owns these routes; selections are read in ``pxweb_select``, what is said is ``pxweb_words``', and saved queries are
``pxweb_saved``'s.
"""

from __future__ import annotations

from math import ceil
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi import Query as Parameter
from fastapi.responses import Response

from discreet.serve.http.downloads import TABLES
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.pxweb_bodies import SelectionBody
from discreet.serve.http.pxweb_data import (
    PREFIX,
    data_response,
    holds,
    rate_of,
    selection_in,
    table_of,
    words_of,
)
from discreet.serve.http.pxweb_saved import codelists_of_saved
from discreet.serve.http.pxweb_select import CODELIST, Picked, px_tables
from discreet.serve.http.pxweb_shape import DATA_FORMATS, JSON_STAT, asked_of
from discreet.serve.http.respond import SHARED, send_json, send_words
from discreet.serve.http.service import CallerOf, ServiceOf
from discreet.words.phrase import phrase

PAGE_SIZE = 20
_BY_VARIABLE = {
    "in": "query",
    "style": "deepObject",
    "explode": True,
    "schema": {"type": "object", "additionalProperties": {"type": "string"}},
}
_EXTRA = {"parameters": [{"name": name, **_BY_VARIABLE} for name in ("valueCodes", "codelist")]}
router = APIRouter(prefix=PREFIX, tags=["PxWebApi 2"])

Lang = Annotated[
    str | None,
    Parameter(max_length=20, description="The language of notes and errors; labels have the office's one."),
]
OutputFormat = Annotated[str, Parameter(max_length=40, description=", ".join(DATA_FORMATS))]
Listed = Annotated[list[str] | None, Parameter(description="Values with commas, or several times.")]


@router.get("/config")
def config(request: Request, service: ServiceOf, caller: CallerOf, lang: Lang = None) -> Response:
    """Limits, languages and formats."""
    return send_json(request, words_of(request, service).config(rate_of(service, caller)))


@router.get("/tables")
def tables(
    request: Request,
    service: ServiceOf,
    lang: Lang = None,
    query: Annotated[str, Parameter(max_length=1_000)] = "",
    past_days: Annotated[int | None, Parameter(alias="pastDays", ge=1, le=1_000_000)] = None,
    include_discontinued: Annotated[bool, Parameter(alias="includeDiscontinued")] = False,
    page_number: Annotated[int, Parameter(alias="pageNumber", ge=1, le=1_000_000)] = 1,
    page_size: Annotated[int, Parameter(alias="pageSize", ge=1, le=1_000_000)] = PAGE_SIZE,
) -> Response:
    """The declared tables, those whose id, title or variables hold every word of a query.

    None is known to have been updated in the last days, and none is discontinued.
    """
    words = words_of(request, service)
    listed = () if past_days else px_tables(service.catalogue).values()
    found = [told for told in map(words.table, listed) if holds(told, query)]
    pages = max(1, ceil(len(found) / page_size))
    if page_number > pages:
        raise HttpProblem(404, phrase("There is no such page; there are {pages}.", pages=pages))
    start = (page_number - 1) * page_size
    page = {
        "pageNumber": page_number,
        "pageSize": page_size,
        "totalElements": len(found),
        "totalPages": pages,
        "links": words.page_links(request.url.query, page_number, pages),
    }
    said = {
        "language": words.tag,
        "tables": found[start : start + page_size],
        "page": page,
        "links": [words.link("self", "/tables")],
    }
    return send_words(request, said, cache=SHARED)


@router.get("/tables/{id}")
def table(request: Request, service: ServiceOf, id: str, lang: Lang = None) -> Response:  # noqa: A002
    """One table."""
    return send_words(request, words_of(request, service).table(table_of(service, id)), cache=SHARED)


@router.get("/tables/{id}/metadata", openapi_extra={"parameters": [_EXTRA["parameters"][1]]})
async def metadata(
    request: Request,
    service: ServiceOf,
    id: str,  # noqa: A002
    lang: Lang = None,
    saved_query: Annotated[str | None, Parameter(alias="savedQuery", max_length=64)] = None,
    default_selection: Annotated[bool, Parameter(alias="defaultSelection")] = False,
) -> Response:
    """The variables of a table and their values, as a JSON-stat dataset without values."""
    codelists = {name: one.codelist for name, one in selection_in(request).items() if one.codelist}
    if saved_query:
        codelists |= await codelists_of_saved(service, saved_query)
    said = words_of(request, service).metadata(table_of(service, id), codelists)
    return send_words(request, said, cache=SHARED)


@router.get("/tables/{id}/defaultselection")
def default_selection(request: Request, service: ServiceOf, id: str, lang: Lang = None) -> Response:  # noqa: A002
    """What is answered when nothing is selected."""
    return send_words(request, words_of(request, service).selection(table_of(service, id)), cache=SHARED)


@router.get("/codelists/{id}")
def codelist(request: Request, service: ServiceOf, id: str, lang: Lang = None) -> Response:  # noqa: A002
    """A set of values of a variable."""
    found = service.catalogue.breakdown(id.removeprefix(CODELIST)) if id.startswith(CODELIST) else None
    if found is None:
        raise HttpProblem(404, phrase("There is no such codelist."))
    return send_json(request, words_of(request, service).codelist(found), cache=SHARED)


@router.get("/tables/{id}/data", openapi_extra=_EXTRA, responses=TABLES)
async def data(
    request: Request,
    service: ServiceOf,
    caller: CallerOf,
    id: str,  # noqa: A002
    lang: Lang = None,
    form: Annotated[OutputFormat, Parameter(alias="outputFormat")] = JSON_STAT,
    parameters: Annotated[Listed, Parameter(alias="outputFormatParams")] = None,
    heading: Listed = None,
    stub: Listed = None,
) -> Response:
    """The data of a table; the selection is in the address: valueCodes[SEX]=1,2."""
    asked, table = asked_of(form, parameters, heading, stub), table_of(service, id)
    return await data_response(request, service, caller, table, selection_in(request), asked)


@router.post("/tables/{id}/data", openapi_extra=_EXTRA, responses=TABLES)
async def data_by_post(
    request: Request,
    service: ServiceOf,
    caller: CallerOf,
    id: str,  # noqa: A002
    body: SelectionBody | None = None,
    lang: Lang = None,
    form: Annotated[OutputFormat, Parameter(alias="outputFormat")] = JSON_STAT,
    parameters: Annotated[Listed, Parameter(alias="outputFormatParams")] = None,
) -> Response:
    """The data of a table; the selection is in the body, codelists may be in the address."""
    body = body or SelectionBody()
    asked = body.asked(form, parameters)
    selection = _with_codelists(body.picked(), selection_in(request))
    return await data_response(request, service, caller, table_of(service, id), selection, asked)


def _with_codelists(body: dict[str, Picked], address: dict[str, Picked]) -> dict[str, Picked]:
    """The selection in a body; codelists that stand in the address hold for it, too."""
    lists = {name: one.codelist for name, one in address.items()}
    return {
        name: Picked(one.expressions, one.codelist or lists.get(name.upper(), ""))
        for name, one in body.items()
    } or address
