"""PxWebApi 2: routes of tables, metadata and saved queries."""

from __future__ import annotations

import json
from math import ceil
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi import Query as Parameter
from fastapi.responses import Response
from pydantic import ValidationError

from discreet.serve.http.downloads import TABLES
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.pxweb_data import (
    PREFIX,
    data_response,
    descriptions_of,
    holds,
    rate_of,
    selection_in,
    table_of,
)
from discreet.serve.http.pxweb_selection import (
    CODELIST,
    DATA_FORMATS,
    JSON_STAT,
    Picked,
    SavedBody,
    SelectionBody,
    asked_of,
    px_tables,
    question_of,
    selected_codes,
    shaped,
)
from discreet.serve.http.respond import SHARED, as_json, send_json, send_translated
from discreet.serve.http.saved import SavedName, find
from discreet.serve.http.service import CallerOf, Service, ServiceOf
from discreet.text.phrase import phrase

saved_router = APIRouter(prefix=f"{PREFIX}/savedqueries", tags=["PxWebApi 2"])
KEY = "pxweb"  # of a saved query of this API in the extra of its question


@saved_router.post("", status_code=201)
async def save(request: Request, service: ServiceOf, body: SavedBody) -> Response:
    """Store a selection of a table permanently."""
    question = question_of(table_of(service, body.tableId), body.selection.picked(), service.catalogue)
    shaped(question, body.asked())  # an invalid query is not stored
    stored = body.model_dump(mode="json", exclude_none=True)
    extra = json.dumps({KEY: stored}, sort_keys=True)
    entry = await service.pool.run(
        lambda: service.store.save_query(service.builder.canonical(question), extra)
    )
    headers = {"Location": f"{saved_router.prefix}/{entry.id}"}
    content = as_json(descriptions_of(request, service).saved(entry.id, stored))
    return Response(content, 201, media_type="application/json", headers=headers)


@saved_router.get("/{id}")
async def saved(request: Request, service: ServiceOf, id: SavedName) -> Response:  # noqa: A002
    """A stored selection."""
    stored = await saved_query(service, id)
    content = descriptions_of(request, service).saved(id, stored.model_dump(mode="json", exclude_none=True))
    return send_json(request, content, cache=SHARED)


@saved_router.get("/{id}/selection")
async def saved_selection(
    request: Request,
    service: ServiceOf,
    id: SavedName,  # noqa: A002
    lang: Annotated[str | None, Parameter(max_length=20)] = None,
) -> Response:
    """The selection of a saved query, its expressions as the codes that they pick."""
    stored = await saved_query(service, id)
    table, picked = table_of(service, stored.tableId), stored.selection.picked()
    codes = selected_codes(table, picked, service.catalogue)
    codelists = {table.axis(name).variable: one.codelist for name, one in picked.items() if one.codelist}
    content: dict[str, Any] = descriptions_of(request, service).selected(table, codes, codelists)
    _, shape = shaped(question_of(table, picked, service.catalogue), stored.asked())
    placement = {"heading": list(shape.placement.heading), "stub": list(shape.placement.stub)}
    return send_json(request, {**content, "placement": placement}, cache=SHARED)


@saved_router.get("/{id}/data", responses=TABLES)
async def saved_data(
    request: Request,
    service: ServiceOf,
    caller: CallerOf,
    id: SavedName,  # noqa: A002
    lang: Annotated[str | None, Parameter(max_length=20)] = None,
    form: Annotated[str | None, Parameter(alias="outputFormat", max_length=40)] = None,
    parameters: Annotated[list[str] | None, Parameter(alias="outputFormatParams")] = None,
) -> Response:
    """The data of a saved query, in its own format or in another."""
    stored = await saved_query(service, id)
    own = form is None or form.lower() == (stored.outputFormat or JSON_STAT).lower()
    own_parameters = stored.outputFormatParams if own else None  # they apply to one format only
    asked = stored.selection.asked(form or stored.outputFormat or JSON_STAT, parameters or own_parameters)
    table = table_of(service, stored.tableId)
    return await data_response(request, service, caller, table, stored.selection.picked(), asked)


async def codelists_of_saved(service: Service, name: str) -> dict[str, str]:
    """The codelists that a saved query picks from, by variable."""
    picked = (await saved_query(service, name)).selection.picked()
    return {variable: one.codelist for variable, one in picked.items() if one.codelist}


async def saved_query(service: Service, name: str) -> SavedBody:
    """A saved query of this API; a problem where it does not exist."""
    found = await find(service, name)
    try:
        return SavedBody.model_validate(json.loads(found.extra or "{}").get(KEY))
    except ValidationError:
        raise HttpProblem(404, phrase("There is no saved query of PxWebApi of this id.")) from None


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
    Parameter(
        max_length=20,
        description="The language of texts; labels without a translation have the office's one.",
    ),
]
OutputFormat = Annotated[str, Parameter(max_length=40, description=", ".join(DATA_FORMATS))]
Listed = Annotated[list[str] | None, Parameter(description="Values with commas, or several times.")]


@router.get("/config")
def config(request: Request, service: ServiceOf, caller: CallerOf, lang: Lang = None) -> Response:
    """Limits, languages and formats."""
    return send_json(request, descriptions_of(request, service).config(rate_of(service, caller)))


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
    """The declared tables, those whose id, title or variables contain every term of a query.

    None is known to have been updated in the last days, and none is discontinued.
    """
    descriptions = descriptions_of(request, service)
    listed = () if past_days else px_tables(service.catalogue).values()
    found = [one for one in map(descriptions.table, listed) if holds(one, query)]
    pages = max(1, ceil(len(found) / page_size))
    if page_number > pages:
        raise HttpProblem(404, phrase("There is no such page; there are {pages}.", pages=pages))
    start = (page_number - 1) * page_size
    page = {
        "pageNumber": page_number,
        "pageSize": page_size,
        "totalElements": len(found),
        "totalPages": pages,
        "links": descriptions.page_links(request.url.query, page_number, pages),
    }
    content = {
        "language": descriptions.tag,
        "tables": found[start : start + page_size],
        "page": page,
        "links": [descriptions.link("self", "/tables")],
    }
    return send_translated(request, content, cache=SHARED)


@router.get("/tables/{id}")
def table(request: Request, service: ServiceOf, id: str, lang: Lang = None) -> Response:  # noqa: A002
    """One table."""
    return send_translated(
        request, descriptions_of(request, service).table(table_of(service, id)), cache=SHARED
    )


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
    content = descriptions_of(request, service).metadata(table_of(service, id), codelists)
    return send_translated(request, content, cache=SHARED)


@router.get("/tables/{id}/defaultselection")
def default_selection(request: Request, service: ServiceOf, id: str, lang: Lang = None) -> Response:  # noqa: A002
    """The default selection."""
    return send_translated(
        request, descriptions_of(request, service).selection(table_of(service, id)), cache=SHARED
    )


@router.get("/codelists/{id}")
def codelist(request: Request, service: ServiceOf, id: str, lang: Lang = None) -> Response:  # noqa: A002
    """A set of values of a variable."""
    found = service.catalogue.breakdown(id.removeprefix(CODELIST)) if id.startswith(CODELIST) else None
    if found is None:
        raise HttpProblem(404, phrase("There is no such codelist."))
    return send_translated(request, descriptions_of(request, service).codelist(found), cache=SHARED)


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
    """The selection in a body; codelists in the address apply to it, too."""
    lists = {name: one.codelist for name, one in address.items()}
    return {
        name: Picked(one.expressions, one.codelist or lists.get(name.upper(), ""))
        for name, one in body.items()
    } or address
