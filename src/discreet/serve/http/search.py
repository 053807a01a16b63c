"""The route of the search over variables, categories and tables."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi import Query as Parameter
from fastapi.responses import Response

from discreet.serve.http.languages import language_of
from discreet.serve.http.respond import SHARED, send_translated
from discreet.serve.http.service import ServiceOf
from discreet.serve.search import LONGEST

router = APIRouter(prefix="/api/v1", tags=["table builder"])


@router.get("/search")
async def search(
    request: Request,
    service: ServiceOf,
    text: Annotated[str, Parameter(max_length=LONGEST, description="Words of labels or definitions.")],
    unit: Annotated[str, Parameter(max_length=40, description="Only what this unit has.")] = "",
) -> Response:
    """Variables, categories (with their path) and declared tables that contain all words; free of charge."""
    index = service.search(language_of(request))
    found = await service.pool.run(lambda: index.find(text, unit))
    return send_translated(request, found, cache=SHARED)
