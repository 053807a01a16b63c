"""Answers on the wire: entity tags, what has not changed, names of files; it knows no format."""

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

PRIVATE = "private, no-cache"  # an answer is one user's: no cache on the way may give it to another
SHARED = "no-cache"  # may be kept, and is asked after each time
_VARY = "Accept, Authorization"


def send(
    request: Request,
    file: File,
    *,
    cache: str = PRIVATE,
    name: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A file with its entity tag, or 304 where the client has it; ``name`` makes it one to save."""
    vary = f"{_VARY}, Accept-Language" if file.language else _VARY
    said = {"ETag": f'W/"{file.tag}"', "Cache-Control": cache, "Vary": vary, **(headers or {})}
    if file.language:
        said["Content-Language"] = file.language
    if f'"{file.tag}"' in _tags(request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=said)
    if name:
        said["Content-Disposition"] = f'attachment; filename="{_plain(name)}"'
    return Response(file.body, media_type=file.media_type, headers=said)


def send_json(request: Request, said: Any, *, cache: str = PRIVATE) -> Response:
    """Something as JSON."""
    return send(request, File(as_json(said), "application/json", "json"), cache=cache)


def send_words(request: Request, said: Any, *, cache: str = PRIVATE) -> Response:
    """Something as JSON that has words for people in it, in the language of the request."""
    language = language_of(request)
    file = File(as_json(spoken(said, language)), "application/json", "json", language.value)
    return send(request, file, cache=cache)


def as_json(said: Any) -> bytes:
    """JSON as bytes, without spaces."""
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def _tags(header: str) -> set[str]:
    return {tag.strip().removeprefix("W/") for tag in header.split(",")}


def _plain(name: str) -> str:
    """A file name that no header and no system takes amiss."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "table"
