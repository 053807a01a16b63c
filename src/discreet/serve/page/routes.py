"""Routes of the page: its files, their security policy and their caching. The page uses the same API as all clients."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request
from fastapi.responses import Response

from discreet.serve.http.downloads import File
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.respond import SHARED, send, send_json
from discreet.serve.http.security import PAGE_POLICY
from discreet.serve.http.service import ServiceOf
from discreet.serve.page.scripts import joined, vega_bundle, vega_version
from discreet.text.phrase import phrase

FOR_EVER = "public, max-age=31536000, immutable"  # the address of a file changes with its content
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
router = APIRouter(include_in_schema=False)


STYLES = ("style.css", "table.css")
VEGA = "vega-bundle.js"


@dataclass(frozen=True)
class PageFiles:
    """The files of the page by name, without the start page, and a hash of all their contents."""

    index: bytes
    others: Mapping[str, bytes]
    edition: str


@cache
def page_files() -> PageFiles:
    """Read the page out of the installed package, once: one script and one style, so that it needs few requests."""
    contents = dict(_walk(files(__package__) / "files", ""))
    index = contents.pop("index.html").decode()
    scripts = {name: contents.pop(name).decode() for name in sorted(contents) if name.endswith(".js")}
    contents["page.css"] = b"\n".join(contents.pop(name) for name in STYLES)
    contents["page.js"] = joined(scripts).encode()
    edition = hashlib.blake2b(vega_version().encode(), digest_size=8)
    for name in sorted(contents):
        edition.update(name.encode() + b"\0" + contents[name])
    edition.update(index.encode())
    return PageFiles(index.replace("{edition}", edition.hexdigest()).encode(), contents, edition.hexdigest())


def _walk(folder: Traversable, before: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _walk(entry, f"{before}{entry.name}/")
        elif _ending(entry.name) in MEDIA:
            found.append((before + entry.name, entry.read_bytes()))
    return found


def _ending(name: str) -> str:
    return name[name.rfind(".") :]


@router.get("/")
def index(request: Request) -> Response:
    """The page."""
    policy = {"Content-Security-Policy": PAGE_POLICY}
    return send(request, File(page_files().index, MEDIA[".html"], "html"), cache=SHARED, headers=policy)


@router.get("/page/settings")
def settings(request: Request, service: ServiceOf) -> Response:
    """What the page must know before it can ask the API: the language of labels, and if there are maps and tokens."""
    given = service.settings
    content = {
        "language": given.language,
        "geometry": given.geometry is not None,
        "tokens": given.tokens is not None,
    }
    return send_json(request, content, cache=SHARED)


@router.get("/page/geometry")
def geometry(request: Request, service: ServiceOf) -> Response:
    """The GeoJSON of the areas, as the office gave it."""
    path = service.settings.geometry
    if path is None or not path.is_file():
        raise HttpProblem(404, phrase("This server has no map of its areas."))
    return send(request, File(path.read_bytes(), "application/geo+json", "json"), cache=SHARED)


@router.get("/page/{edition}/{name:path}")
def file(request: Request, edition: str, name: str) -> Response:
    """A module, a style or a picture of the page; one of another edition is sent, but not cached."""
    found = page_files()
    if name != VEGA and name not in found.others:
        raise HttpProblem(404, phrase("The page has no such file."))
    content = vega_bundle() if name == VEGA else found.others[name]
    caching = FOR_EVER if edition == found.edition else SHARED
    return send(request, File(content, MEDIA[_ending(name)], _ending(name)[1:]), cache=caching)
