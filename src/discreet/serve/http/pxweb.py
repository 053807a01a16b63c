"""PxWebApi 2: the routes that the PxWeb 2 client, pxwebpy and R pxweb call, over the declared tables.

It owns the shapes of requests; selections are read in ``pxweb_select``, and what is said is ``pxweb_words``'.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from math import ceil
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi import Query as Parameter
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from discreet.serve.answer import Answer
from discreet.serve.http.bodies import Codes, Name
from discreet.serve.http.downloads import File, Format, Layout, Texts, written
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.pxweb_select import CODELIST, Picked, PxTable, px_tables, question_of, split_values
from discreet.serve.http.pxweb_words import DATA_FORMATS, PxWords
from discreet.serve.http.respond import SHARED, as_json, send, send_json
from discreet.serve.http.saved import SavedName, find
from discreet.serve.http.security import Caller
from discreet.serve.http.service import CallerOf, Service, ServiceOf
from discreet.serve.http.settings import RateLimit

PREFIX = "/api/v2"
PAGE_SIZE = 20
UNLIMITED = RateLimit(0, 0)
JSON_STAT = DATA_FORMATS[0]
SEPARATORS = {"separatortab": "\t", "separatorspace": " ", "separatorsemicolon": ";"}
SHOWN = {"usecodes": Texts.CODES, "usetexts": Texts.LABELS, "usecodesandtexts": Texts.BOTH}
_VARIABLE = re.compile(r"(valuecodes|codelist)\[(.+)\]", re.IGNORECASE)
_BY_VARIABLE = {
    "in": "query",
    "style": "deepObject",
    "explode": True,
    "schema": {"type": "object", "additionalProperties": {"type": "string"}},
}
_EXTRA = {"parameters": [{"name": name, **_BY_VARIABLE} for name in ("valueCodes", "codelist")]}
router = APIRouter(prefix=PREFIX, tags=["PxWebApi 2"])


class VariableBody(BaseModel):
    """What is selected of one variable."""

    model_config = ConfigDict(extra="ignore")

    variableCode: Name  # noqa: N815 - the standard's name
    valueCodes: Codes | None = None  # noqa: N815
    codelist: Name | None = None
    codeList: Name | None = None  # noqa: N815 - as earlier clients spell it


class PlacementBody(BaseModel):
    """Which variables go across and which down."""

    model_config = ConfigDict(extra="ignore")

    heading: list[Name] | None = None
    stub: list[Name] | None = None


class SelectionBody(BaseModel):
    """A selection; an empty one asks for the default."""

    model_config = ConfigDict(extra="ignore")

    selection: list[VariableBody] | None = Field(default=None, max_length=100)
    placement: PlacementBody | None = None


class SavedBody(BaseModel):
    """A saved query of PxWebApi."""

    model_config = ConfigDict(extra="ignore")

    tableId: Name  # noqa: N815
    selection: SelectionBody = SelectionBody()
    language: Name | None = None
    outputFormat: Name | None = None  # noqa: N815
    outputFormatParams: list[Name] | None = None  # noqa: N815


Lang = Annotated[
    str | None, Parameter(max_length=20, description="Labels have one language, whatever is asked.")
]
OutputFormat = Annotated[str, Parameter(max_length=40, description=", ".join(DATA_FORMATS))]
Listed = Annotated[list[str] | None, Parameter(description="Values with commas, or several times.")]


@router.get("/config")
def config(request: Request, service: ServiceOf, caller: CallerOf, lang: Lang = None) -> Response:
    """Limits, languages and formats."""
    limits = service.settings.limits
    rate = {"public": limits.public, "trusted": limits.trusted}.get(caller.role.value, UNLIMITED)
    return send_json(request, _words(request, service).config(rate))


@router.get("/tables")
def tables(
    request: Request,
    service: ServiceOf,
    lang: Lang = None,
    query: Annotated[str, Parameter(max_length=1_000)] = "",
    page_number: Annotated[int, Parameter(alias="pageNumber", ge=1, le=1_000_000)] = 1,
    page_size: Annotated[int, Parameter(alias="pageSize", ge=1, le=1_000_000)] = PAGE_SIZE,
) -> Response:
    """The declared tables, those whose id, title or variables hold every word of a query."""
    words = _words(request, service)
    found = [told for told in map(words.table, px_tables(service.catalogue).values()) if _holds(told, query)]
    start = (page_number - 1) * page_size
    page = {
        "pageNumber": page_number,
        "pageSize": page_size,
        "totalElements": len(found),
        "totalPages": ceil(len(found) / page_size),
        "links": [],
    }
    said = {
        "language": service.settings.language,
        "tables": found[start : start + page_size],
        "page": page,
        "links": [words.link("self", "/tables")],
    }
    return send_json(request, said, cache=SHARED)


@router.get("/tables/{id}")
def table(request: Request, service: ServiceOf, id: str, lang: Lang = None) -> Response:  # noqa: A002
    """One table."""
    return send_json(request, _words(request, service).table(_table(service, id)), cache=SHARED)


@router.get("/tables/{id}/metadata", openapi_extra={"parameters": [_EXTRA["parameters"][1]]})
async def metadata(
    request: Request,
    service: ServiceOf,
    id: str,  # noqa: A002
    lang: Lang = None,
    saved_query: Annotated[str | None, Parameter(alias="savedQuery", max_length=64)] = None,
) -> Response:
    """The variables of a table and their values, as a JSON-stat dataset without values."""
    codelists = {name: one.codelist for name, one in _from_address(request).items() if one.codelist}
    if saved_query:
        held = SavedBody.model_validate((await _saved(service, saved_query))["query"])
        codelists |= {
            one.variableCode: one.codelist for one in held.selection.selection or () if one.codelist
        }
    return send_json(request, _words(request, service).metadata(_table(service, id), codelists), cache=SHARED)


@router.get("/tables/{id}/defaultselection")
def default_selection(request: Request, service: ServiceOf, id: str, lang: Lang = None) -> Response:  # noqa: A002
    """What is answered when nothing is selected."""
    return send_json(request, _words(request, service).selection(_table(service, id)), cache=SHARED)


@router.get("/codelists/{id}")
def codelist(request: Request, service: ServiceOf, id: str, lang: Lang = None) -> Response:  # noqa: A002
    """A set of values of a variable."""
    found = service.catalogue.breakdown(id.removeprefix(CODELIST)) if id.startswith(CODELIST) else None
    if found is None:
        raise HttpProblem(404, "There is no such codelist.")
    return send_json(request, _words(request, service).codelist(found), cache=SHARED)


@router.get("/tables/{id}/data", openapi_extra=_EXTRA)
async def data(
    request: Request,
    service: ServiceOf,
    caller: CallerOf,
    id: str,  # noqa: A002
    lang: Lang = None,
    form: Annotated[OutputFormat, Parameter(alias="outputFormat")] = JSON_STAT,
    shape: Annotated[Listed, Parameter(alias="outputFormatParams")] = None,
    heading: Listed = None,
    stub: Listed = None,
) -> Response:
    """The data of a table; the selection is in the address: valueCodes[SEX]=1,2."""
    layout = _layout(shape, heading)
    return await _data(request, service, caller, _table(service, id), _from_address(request), form, layout)


@router.post("/tables/{id}/data", openapi_extra=_EXTRA)
async def data_by_post(
    request: Request,
    service: ServiceOf,
    caller: CallerOf,
    id: str,  # noqa: A002
    body: SelectionBody | None = None,
    lang: Lang = None,
    form: Annotated[OutputFormat, Parameter(alias="outputFormat")] = JSON_STAT,
    shape: Annotated[Listed, Parameter(alias="outputFormatParams")] = None,
) -> Response:
    """The data of a table; the selection is in the body, codelists may be in the address."""
    body = body or SelectionBody()
    placement = body.placement.heading if body.placement else None
    layout = _layout(shape, placement)
    selection = _from_body(body, _from_address(request))
    return await _data(request, service, caller, _table(service, id), selection, form, layout)


@router.post("/savedqueries", status_code=201)
async def save(request: Request, service: ServiceOf, body: SavedBody) -> Response:
    """Keep a selection of a table for ever."""
    question = question_of(_table(service, body.tableId), _from_body(body.selection, {}), service.catalogue)
    extra = json.dumps({"pxweb": body.model_dump(mode="json", exclude_none=True)}, sort_keys=True)
    kept = await service.desk.run(
        lambda: service.store.save_query(service.builder.canonical(question), extra)
    )
    said = {"id": kept.id, **json.loads(extra)["pxweb"]}
    headers = {"Location": f"{PREFIX}/savedqueries/{kept.id}"}
    return Response(as_json(said), 201, media_type="application/json", headers=headers)


@router.get("/savedqueries/{id}")
async def saved(request: Request, service: ServiceOf, id: SavedName) -> Response:  # noqa: A002
    """A kept selection."""
    found = await _saved(service, id)
    return send_json(request, {"id": id, **found["query"], "savedQuery": found["query"]}, cache=SHARED)


@router.get("/savedqueries/{id}/selection")
async def saved_selection(request: Request, service: ServiceOf, id: SavedName, lang: Lang = None) -> Response:  # noqa: A002
    """The selection of a saved query."""
    found = (await _saved(service, id))["query"]
    said = {**found["selection"], "language": service.settings.language, "links": []}
    return send_json(request, {"selection": [], **said}, cache=SHARED)


@router.get("/savedqueries/{id}/data")
async def saved_data(
    request: Request,
    service: ServiceOf,
    caller: CallerOf,
    id: SavedName,  # noqa: A002
    lang: Lang = None,
    form: Annotated[str | None, Parameter(alias="outputFormat", max_length=40)] = None,
    shape: Annotated[Listed, Parameter(alias="outputFormatParams")] = None,
) -> Response:
    """The data of a saved query."""
    held = SavedBody.model_validate((await _saved(service, id))["query"])
    layout = _layout(shape or held.outputFormatParams, None)
    chosen, selection = form or held.outputFormat or JSON_STAT, _from_body(held.selection, {})
    return await _data(request, service, caller, _table(service, held.tableId), selection, chosen, layout)


async def _data(
    request: Request,
    service: Service,
    caller: Caller,
    table: PxTable,
    selection: Mapping[str, Picked],
    form: str,
    layout: Layout,
) -> Response:
    if form.lower() not in DATA_FORMATS:
        raise HttpProblem(400, f"outputFormat is one of {', '.join(DATA_FORMATS)}.", kind="mistakes")
    words, query = _words(request, service), question_of(table, selection, service.catalogue)

    def write(answer: Answer) -> File:
        if form.lower() == JSON_STAT:
            return File(words.dataset(table, answer), "application/json", "json")
        return written(answer, Format(form.lower()), service.catalogue, layout)

    way = (table.served.id, form.lower(), layout, str(request.base_url))
    file = await service.file(caller, query, way, write)
    name = "" if form.lower() == JSON_STAT else f"{table.served.id}.{file.ending}"
    return send(request, file, name=name)


def _words(request: Request, service: Service) -> PxWords:
    return PxWords(service.catalogue, service.settings, str(request.base_url).rstrip("/") + PREFIX)


def _table(service: Service, name: str) -> PxTable:
    found = px_tables(service.catalogue).get(name)
    if found is None:
        raise HttpProblem(404, "There is no such table; /tables lists them.")
    return found


def _holds(told: Mapping[str, Any], query: str) -> bool:
    text = " ".join([told["id"], told["label"], *told["variableNames"]]).lower()
    return all(word.strip("*") in text for word in query.lower().split())


def _from_address(request: Request) -> dict[str, Picked]:
    """The selection in an address: valueCodes[SEX]=1,2 and codelist[AGE]=vs_AGE.L."""
    values: dict[str, list[str]] = {}
    lists: dict[str, str] = {}
    for key, text in request.query_params.multi_items():
        named = _VARIABLE.fullmatch(key)
        if named is not None and named[1].lower() == "valuecodes":
            values.setdefault(named[2], []).extend(split_values(text))
        elif named is not None and text:
            lists[named[2]] = text
    return {
        name: Picked(tuple(values.get(name, ("*",))), lists.get(name, ""))
        for name in dict.fromkeys([*values, *lists])
    }


def _from_body(body: SelectionBody, address: Mapping[str, Picked]) -> dict[str, Picked]:
    """The selection in a body; codelists that stand in the address hold for it, too."""
    found = {}
    for one in body.selection or ():
        codelist = one.codelist or one.codeList or ""
        if not codelist and one.variableCode in address:
            codelist = address[one.variableCode].codelist
        found[one.variableCode] = Picked(tuple(one.valueCodes or ()), codelist)
    return found or dict(address)


def _layout(shape: Iterable[str] | None, heading: Iterable[str] | None) -> Layout:
    wanted = [part.lower() for text in shape or () for part in split_values(text)]
    texts = next((SHOWN[part] for part in wanted if part in SHOWN), Texts.BOTH)
    separator = next((SEPARATORS[part] for part in wanted if part in SEPARATORS), ",")
    across = tuple(name for text in heading or () for name in split_values(text))
    return Layout(across, texts, separator, "includetitle" in wanted)


async def _saved(service: Service, name: str) -> dict[str, Any]:
    found = await find(service, name)
    held = json.loads(found.extra or "{}").get("pxweb")
    try:
        SavedBody.model_validate(held)
    except ValidationError:
        raise HttpProblem(404, "There is no saved query of PxWebApi of this id.") from None
    return {"query": held}
