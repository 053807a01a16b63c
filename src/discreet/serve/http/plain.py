"""Questions in their plain form, which most clients send: read without the general machinery of the web framework.

FastAPI reads each parameter of a request separately, which takes longer than making a small table. Plain is a question
as JSON, in the body or in the address, without options. Every other request, and every one that is not valid, goes on
to the route of the same address: its models are the same, and it reports what is wrong.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet.serve.http.api import QueryBody, router, table_response
from discreet.serve.http.downloads import Format
from discreet.serve.http.layout import Layout
from discreet.serve.http.middleware import replayed
from discreet.serve.http.service import Service
from discreet.serve.query import Query

PATH = "/api/v1/table"
ROUTES = {
    method: route
    for route in router.routes
    if getattr(route, "path", "") == PATH
    for method in getattr(route, "methods", ())
}
LONGEST = 100_000  # bytes; longer questions may take long to read
JSON = b"application/json"
PLAIN = Layout()
LANGUAGE = "lang"  # a parameter that is read before: see languages


class PlainTables:
    """Answers plain questions for tables, and passes on all other requests."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        method = scope.get("method")
        if scope.get("path") != PATH or scope.get("root_path") or method not in ("GET", "POST"):
            await self._app(scope, receive, send)
            return
        asked, again = _in_address(scope), receive
        if method == "POST":
            body = (await receive()).get("body", b"")  # all of it: see Admission
            again = replayed(body, receive)
            asked = body if asked == b"" and _is_json(scope) else None
        query = _read(asked) if asked else None
        if query is None:
            await self._app(scope, again, send)
            return
        scope["route"] = ROUTES[method]
        caller = scope["state"]["caller"]
        response = await table_response(Request(scope), self._service, caller, query, Format.JSON_STAT, PLAIN)
        await response(scope, receive, send)


def _in_address(scope: Scope) -> bytes | None:
    """The question in the address, empty where it has none; None where it has other parameters."""
    text = scope.get("query_string", b"")
    if not text:
        return b""
    found = [pair for pair in parse_qsl(text.decode("latin-1"), True) if pair[0] != LANGUAGE]
    if not found:
        return b""
    return found[0][1].encode() if len(found) == 1 and found[0][0] == "query" else None


def _is_json(scope: Scope) -> bool:
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    return len(kinds) == 1 and kinds[0].partition(b";")[0].strip().lower() == JSON


def _read(text: bytes) -> Query | None:
    """A question; None where it is none, or so long that reading it may take long."""
    try:
        return QueryBody.model_validate_json(text).query() if len(text) <= LONGEST else None
    except ValidationError:
        return None
