"""Saved queries: routes of permanent links."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import RedirectResponse, Response

from discreet.serve.http.api import FormatOf, LayoutOf, SaveBody, table_response
from discreet.serve.http.downloads import TABLES, Format
from discreet.serve.http.problems import HttpProblem, table_address
from discreet.serve.http.respond import SHARED, as_json, send_json
from discreet.serve.http.service import CallerOf, Service, ServiceOf
from discreet.serve.jobs_store import SavedQuery
from discreet.serve.query import to_json
from discreet.text.phrase import phrase

LONGEST_EXTRA = 20_000
router = APIRouter(tags=["saved queries"])
SavedName = Annotated[str, Path(pattern=r"^[0-9a-f]{1,64}$", description="The id of a saved query.")]


@router.post("/api/v1/queries", status_code=201)
async def save(request: Request, service: ServiceOf, body: SaveBody) -> Response:
    """Store a question permanently; the same question and extra have the same link."""
    extra = json.dumps(body.extra, sort_keys=True) if body.extra else ""
    if len(extra) > LONGEST_EXTRA:
        message = phrase("extra may have {most} characters.", most=LONGEST_EXTRA)
        raise HttpProblem(413, message, kind="size")
    query = body.query.query()
    saved = await service.pool.run(lambda: service.store.save_query(service.builder.canonical(query), extra))
    content = as_json(saved_json(saved))
    headers = {"Location": f"/api/v1/queries/{saved.id}"}
    return Response(content, 201, media_type="application/json", headers=headers)


@router.get("/api/v1/queries/{name}")
async def saved(request: Request, service: ServiceOf, name: SavedName) -> Response:
    """A saved question."""
    return send_json(request, saved_json(await find(service, name)), cache=SHARED)


@router.get("/q/{name}", responses=TABLES)
async def follow(
    request: Request,
    service: ServiceOf,
    caller: CallerOf,
    name: SavedName,
    layout: LayoutOf,
    form: FormatOf = Format.JSON_STAT,
) -> Response:
    """The permanent link: a browser is sent to the page, which restores everything; a program gets the table."""
    found = await find(service, name)
    if "format" not in request.query_params and "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(f"/?q={name}", status_code=302)
    linked = replace(layout, link=f"{request.base_url}q/{name}")
    return await table_response(request, service, caller, found.query, form, linked)


async def find(service: Service, name: str) -> SavedQuery:
    """A saved question; a problem where it does not exist."""
    found = await service.pool.run(lambda: service.store.saved_query(name))
    if found is None:
        raise HttpProblem(404, phrase("There is no saved query of this id."))
    return found


def saved_json(saved: SavedQuery) -> dict[str, Any]:
    """A saved question for machines."""
    return {
        "id": saved.id,
        "link": f"/q/{saved.id}",
        "table": table_address(saved.query),
        "query": to_json(saved.query),
        "extra": json.loads(saved.extra) if saved.extra else {},
        "created": saved.created.isoformat(),
    }
