"""Routes of the page: its files, their security policy and their caching. The page uses the same API as all clients."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import product, takewhile
from pathlib import Path

import pyarrow as pa
from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from discreet.serve.catalogue import Catalogue
from discreet.serve.http.api import QueryBody, catalogue_json, read_query
from discreet.serve.http.downloads import File
from discreet.serve.http.geometry import codes_of_shapes
from discreet.serve.http.languages import language_of
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.respond import SHARED, as_json, send, send_json
from discreet.serve.http.security import PAGE_POLICY
from discreet.serve.http.service import Service, ServiceOf
from discreet.serve.page.api_page import api_page, example_query
from discreet.serve.page.examples import own_examples
from discreet.serve.page.scripts import FIRST, joined, texts_in, vega_bundle, vega_version
from discreet.serve.records import Stopped, never
from discreet.text.phrase import phrase, spoken

FOR_EVER = "public, max-age=31536000, immutable"  # the address of a file changes with its content
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}
router = APIRouter(include_in_schema=False)


STYLES = ("style.css", "choosing.css", "table.css", "view.css")
HAS_BROTLI = pa.Codec.is_available("brotli")  # not in every build of Arrow
VEGA = "vega-bundle.js"
TEXTS = "texts/"


@dataclass(frozen=True)
class PageFiles:
    """The files of the page by name, without the start page, and a hash of all their contents."""

    index: str
    others: Mapping[str, bytes]
    edition: str

    @property
    def preloads(self) -> str:
        """The header by which a browser requests script and style before it has the page that names them."""
        folder = f"page/{self.edition}"
        return f"<{folder}/{FIRST}>; rel=modulepreload, <{folder}/page.css>; rel=preload; as=style"


@lru_cache(maxsize=64)
def _compressed(content: bytes, coding: str) -> bytes:
    """Compressed as much as the coding can, once: the time of an answer has no room for that."""
    if coding == "br":
        return bytes(pa.Codec("brotli", compression_level=11).compress(content))
    return gzip.compress(content, 9, mtime=0) if coding == "gzip" else content


def _coding(request: Request) -> str:
    """The best compression that the browser accepts; none is an empty name."""
    accepted = {
        one.partition(";")[0].strip() for one in request.headers.get("accept-encoding", "").split(",")
    }
    return "br" if "br" in accepted and HAS_BROTLI else "gzip" if "gzip" in accepted else ""


def prepare_page(stopped: Stopped = never) -> None:
    """Compress the files of the page before the first reader comes."""
    codings = ("br", "gzip") if HAS_BROTLI else ("gzip",)
    every = product(page_files().others.values(), codings)
    for content, coding in takewhile(lambda _: not stopped(), every):
        _compressed(content, coding)


@cache
def page_files() -> PageFiles:
    """Read the page out of the installed package, once: few scripts and one style, so that it needs few requests."""
    contents = dict(_walk(files(__package__) / "files", ""))
    index = contents.pop("index.html").decode()
    scripts = {name: contents.pop(name).decode() for name in sorted(contents) if name.endswith(".js")}
    contents["page.css"] = b"\n".join(contents.pop(name) for name in STYLES)
    for name in [name for name in scripts if name.startswith(TEXTS)]:
        contents[name.replace(".js", ".json")] = as_json(texts_in(scripts.pop(name)))
    contents |= {name: text.encode() for name, text in joined(scripts).items()}
    edition = hashlib.blake2b(vega_version().encode(), digest_size=8)
    for name in sorted(contents):
        edition.update(name.encode() + b"\0" + contents[name])
    edition.update(index.encode())
    return PageFiles(index.replace("{edition}", edition.hexdigest()), contents, edition.hexdigest())


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
def index(request: Request, service: ServiceOf) -> Response:
    """The page, with what it asks first: the catalogue in the reader's language, and the settings."""
    language = language_of(request)
    told = as_json(
        {
            "language": language.value,
            "texts": json.loads(page_files().others[f"{TEXTS}{language.value}.json"]),
            "catalogue": spoken(catalogue_json(service.catalogue), language),
            "settings": _settings(service),
        }
    ).replace(b"<", b"\\u003c")
    body = page_files().index.encode().replace(b"{first}", told)
    headers = {"Content-Security-Policy": PAGE_POLICY, "Link": page_files().preloads}
    return _send_compressed(request, File(body, MEDIA[".html"], "html", language.value), SHARED, headers)


@router.get("/api")
def api(request: Request, service: ServiceOf, query: str = "") -> Response:
    """How programs get tables; with a question, its table is the example."""
    language = language_of(request)
    asked = read_query(query) if query else example_query(service.catalogue)
    style = f"page/{page_files().edition}/page.css"
    with_token = service.settings.tokens_only
    body = api_page(asked, service.catalogue, str(request.base_url), language, style, with_token)
    policy = {"Content-Security-Policy": PAGE_POLICY}
    return send(request, File(body, MEDIA[".html"], "html", language.value), headers=policy)


@router.post("/page/examples")
def examples(request: Request, query: QueryBody, token: bool = False) -> Response:
    """A table as code for other programs."""
    found = own_examples(query.query(), str(request.base_url), token)
    return send_json(request, {one.name: one.text for one in found})


@router.get("/page/settings")
def settings(request: Request, service: ServiceOf) -> Response:
    """What the page must know before it can ask the API: the languages of labels, and if there are maps and tokens."""
    return send_json(request, _settings(service), cache=SHARED)


def _settings(service: Service) -> dict[str, object]:
    given = service.settings
    return {
        "languages": list(dict.fromkeys((given.language, *service.catalogue.languages))),
        "geometry": given.geometry is not None,
        "mapped": "" if given.geometry is None else _mapped(given.geometry, service.catalogue),
        "tokens": given.tokens is not None,
    }


def _mapped(path: Path, catalogue: Catalogue) -> str:
    """The breakdown of places whose finest areas have the most shapes, the coarsest of equal ones."""
    shapes = codes_of_shapes(path, path.stat().st_mtime_ns)
    found, best = "", 0
    for variable in catalogue.variables.values():
        for name, axis in variable.breakdowns.items() if variable.is_place else ():
            finest = axis.depths == axis.depths.max()
            drawn = sum(code in shapes for code, is_area in zip(axis.codes, finest, strict=True) if is_area)
            found, best = (name, drawn) if drawn > best else (found, best)
    return found


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
    file = File(content, MEDIA[_ending(name)], _ending(name)[1:])
    if name == VEGA:  # megabytes: the time that the best compression takes is not worth it
        return send(request, file, cache=caching)
    return _send_compressed(request, file, caching, {})


def _send_compressed(request: Request, file: File, cache: str, headers: Mapping[str, str]) -> Response:
    """A file that is the same for all readers of a language, compressed once."""
    coding = _coding(request)
    response = send(request, replace(file, body=_compressed(file.body, coding)), cache=cache, headers=headers)
    response.headers["Vary"] += ", Accept-Encoding"
    if coding:
        response.headers["Content-Encoding"] = coding
    return response


for _route in router.routes:
    if isinstance(_route, APIRoute) and "GET" in (_route.methods or ()):
        _route.methods = {"GET", "HEAD"}  # the latter is how monitors and link checkers ask
