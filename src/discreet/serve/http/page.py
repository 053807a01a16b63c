"""The page in front of the API and what it draws maps from; it owns where they are served, not what is in them."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.respond import send_json
from discreet.serve.http.security import PAGE_POLICY
from discreet.serve.http.service import ServiceOf

FOLDER = Path(__file__).parent.parent / "page" / "static"
INDEX = "index.html"
router = APIRouter(tags=["page"])


class PageFiles(StaticFiles):
    """Files of the page, under the strict policy of pages."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """One file."""
        return with_policy(await super().get_response(path, scope))


def with_policy(response: Response) -> Response:
    """Let a response be a page: scripts and styles of this server alone, nothing inline."""
    response.headers["Content-Security-Policy"] = PAGE_POLICY
    return response


@router.get("/", include_in_schema=False)
def index(request: Request) -> Response:
    """The page, or where the API is when there is none."""
    if not (FOLDER / INDEX).is_file():
        return send_json(
            request, {"api": "/api/v1/catalogue", "pxweb": "/api/v2", "openapi": "/openapi.json"}
        )
    return with_policy(FileResponse(FOLDER / INDEX))


@router.get("/api/v1/geometry")
def geometry(service: ServiceOf) -> Response:
    """The GeoJSON of the areas, where the office gave one."""
    path = service.settings.geometry
    if path is None or not path.is_file():
        raise HttpProblem(404, "This server has no geometry of its areas.")
    return FileResponse(path, media_type="application/geo+json")


def mount(app: FastAPI) -> None:
    """Serve the files of the page under /page."""
    if FOLDER.is_dir():
        app.mount("/page", PageFiles(directory=FOLDER), name="page")
