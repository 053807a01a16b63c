"""HTTP responses: entity tags, 304 Not Modified, caching, names of files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from discreet.serve.http.downloads import File
from discreet.serve.http.languages import language_of
from discreet.text.phrase import spoken

PRIVATE = "private, no-cache"  # an answer is one user's: no shared cache may serve it to another
SHARED = "no-cache"  # may be cached, and is revalidated each time
_VARY = "Accept, Authorization"


def send(
    request: Request,
    file: File,
    *,
    cache: str = PRIVATE,
    name: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A file with its entity tag, or 304 where the client has it; ``name`` makes it a download."""
    vary = f"{_VARY}, Accept-Language" if file.language else _VARY
    all_headers = {"ETag": f'W/"{file.tag}"', "Cache-Control": cache, "Vary": vary, **(headers or {})}
    if file.language:
        all_headers["Content-Language"] = file.language
    known = request.headers.get("if-none-match", "")
    if known and f'"{file.tag}"' in _tags(known):
        return Response(status_code=304, headers=all_headers)
    if name:
        all_headers["Content-Disposition"] = f'attachment; filename="{_plain(name)}"'
    return Response(file.body, media_type=file.media_type, headers=all_headers)


def send_json(request: Request, content: Any, *, cache: str = PRIVATE) -> Response:
    """A JSON response."""
    return send(request, File(as_json(content), "application/json", "json"), cache=cache)


def send_translated(request: Request, content: Any, *, cache: str = PRIVATE) -> Response:
    """JSON with its messages in the language of the request."""
    language = language_of(request)
    file = File(as_json(spoken(content, language)), "application/json", "json", language.value)
    return send(request, file, cache=cache)


def as_json(content: Any) -> bytes:
    """JSON as bytes, without spaces."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _tags(header: str) -> set[str]:
    return {tag.strip().removeprefix("W/") for tag in header.split(",")}


def _plain(name: str) -> str:
    """A file name that is safe in headers and on every system."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "table"
