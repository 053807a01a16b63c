"""Saved queries of PxWebApi 2: its routes to keep a selection, to find it and to run it; the store keeps them."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi import Query as Parameter
from fastapi.responses import Response
from pydantic import ValidationError

from discreet.serve.http.downloads import TABLES
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.pxweb_bodies import SavedBody
from discreet.serve.http.pxweb_data import PREFIX, data_response, table_of, words_of
from discreet.serve.http.pxweb_select import question_of, selected_codes
from discreet.serve.http.pxweb_shape import JSON_STAT, shaped
from discreet.serve.http.respond import SHARED, as_json, send_json
from discreet.serve.http.saved import SavedName, find
from discreet.serve.http.service import CallerOf, Service, ServiceOf
from discreet.words.phrase import phrase

router = APIRouter(prefix=f"{PREFIX}/savedqueries", tags=["PxWebApi 2"])
KEY = "pxweb"  # under which a saved query of this API is kept beside its question


@router.post("", status_code=201)
async def save(request: Request, service: ServiceOf, body: SavedBody) -> Response:
    """Keep a selection of a table for ever."""
    question = question_of(table_of(service, body.tableId), body.selection.picked(), service.catalogue)
    shaped(question, body.asked())  # what could not be run is not kept
    held = body.model_dump(mode="json", exclude_none=True)
    extra = json.dumps({KEY: held}, sort_keys=True)
    kept = await service.desk.run(
        lambda: service.store.save_query(service.builder.canonical(question), extra)
    )
    headers = {"Location": f"{router.prefix}/{kept.id}"}
    said = as_json(words_of(request, service).saved(kept.id, held))
    return Response(said, 201, media_type="application/json", headers=headers)


@router.get("/{id}")
async def saved(request: Request, service: ServiceOf, id: SavedName) -> Response:  # noqa: A002
    """A kept selection."""
    held = await saved_query(service, id)
    said = words_of(request, service).saved(id, held.model_dump(mode="json", exclude_none=True))
    return send_json(request, said, cache=SHARED)


@router.get("/{id}/selection")
async def saved_selection(
    request: Request,
    service: ServiceOf,
    id: SavedName,  # noqa: A002
    lang: Annotated[str | None, Parameter(max_length=20)] = None,
) -> Response:
    """The selection of a saved query, its expressions as the codes that they pick."""
    held = await saved_query(service, id)
    table, picked = table_of(service, held.tableId), held.selection.picked()
    codes = selected_codes(table, picked, service.catalogue)
    codelists = {table.axis(name).variable: one.codelist for name, one in picked.items() if one.codelist}
    said: dict[str, Any] = words_of(request, service).selected(table, codes, codelists)
    _, shape = shaped(question_of(table, picked, service.catalogue), held.asked())
    placement = {"heading": list(shape.placement.heading), "stub": list(shape.placement.stub)}
    return send_json(request, {**said, "placement": placement}, cache=SHARED)


@router.get("/{id}/data", responses=TABLES)
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
    held = await saved_query(service, id)
    own = form is None or form.lower() == (held.outputFormat or JSON_STAT).lower()
    kept = held.outputFormatParams if own else None  # those of one format say nothing to another
    asked = held.selection.asked(form or held.outputFormat or JSON_STAT, parameters or kept)
    table = table_of(service, held.tableId)
    return await data_response(request, service, caller, table, held.selection.picked(), asked)


async def codelists_of_saved(service: Service, name: str) -> dict[str, str]:
    """The codelists that a saved query picks from, by variable."""
    picked = (await saved_query(service, name)).selection.picked()
    return {variable: one.codelist for variable, one in picked.items() if one.codelist}


async def saved_query(service: Service, name: str) -> SavedBody:
    """A saved query of this API, or the problem that there is none."""
    found = await find(service, name)
    try:
        return SavedBody.model_validate(json.loads(found.extra or "{}").get(KEY))
    except ValidationError:
        raise HttpProblem(404, phrase("There is no saved query of PxWebApi of this id.")) from None
