"""Errors as RFC 9457 problem details: what a client is told, and what it is never told.

It owns the words and the status codes; whether something is wrong is decided elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from discreet.errors import Mistakes
from discreet.serve.answer import Area, Nearest, Refusal, Rule
from discreet.serve.query import Query, to_json

MEDIA_TYPE = "application/problem+json"
MOST_AREAS = 1_000  # that are listed; their number is told
TITLES = {
    400: "The request cannot be understood",
    401: "The token is not known",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    408: "The request took too long to arrive",
    409: "Not ready",
    413: "The request is too large",
    415: "Unsupported media type",
    429: "Too many requests",
    500: "Something went wrong",
    503: "The server is busy",
}


class HttpProblem(Exception):
    """Something to tell a client: a status, words, and members for machines."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: str = "",
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.kind = status, detail, kind
        self.headers, self.members = dict(headers or {}), dict(members or {})

    def response(self) -> Response:
        """The problem as a response."""
        title = TITLES.get(self.status, "Error")
        kind = f"/problems/{self.kind}" if self.kind else "about:blank"
        said = {"type": kind, "title": title, "status": self.status, "detail": self.detail, **self.members}
        body = json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"Cache-Control": "no-store", **self.headers}
        return Response(body, self.status, media_type=MEDIA_TYPE, headers=headers)


class Refused(HttpProblem):
    """A rule of the table builder refused."""

    def __init__(self, refusal: Refusal) -> None:
        status = 404 if refusal.rule is Rule.NOT_PUBLISHED else 403
        super().__init__(
            status, refusal.words, kind=f"refused-{refusal.rule.value}", members=refusal_members(refusal)
        )
        self.refusal = refusal


def refusal_members(refusal: Refusal) -> dict[str, Any]:
    """The rule, the areas and the nearest tables of a refusal."""
    return {
        "rule": refusal.rule.value,
        "areas": areas_json(refusal.areas),
        "areas_count": len(refusal.areas),
        "nearest": [nearest_json(one) for one in refusal.nearest],
    }


def areas_json(areas: tuple[Area, ...]) -> list[dict[str, str]]:
    """Areas for machines, no more than a client can show."""
    return [{"code": area.code, "label": area.label, "rule": area.rule.value} for area in areas[:MOST_AREAS]]


def nearest_json(nearest: Nearest) -> dict[str, Any]:
    """A table that would pass, and where to get it."""
    return {
        "words": nearest.words,
        "query": to_json(nearest.query),
        "href": table_address(nearest.query),
    }


def table_address(query: Query) -> str:
    """Where the answer to a question is, as a path with the question in it."""
    text = json.dumps(to_json(query), ensure_ascii=False, separators=(",", ":"))
    return f"/api/v1/table?query={quote(text, safe='')}"


def mistakes_problem(mistakes: Mistakes) -> HttpProblem:
    """What is wrong with a question; problems of the server's own files and databases are not told."""
    if any(problem.file for problem in mistakes.problems):
        return HttpProblem(
            503, "The server cannot reach its books; try again later.", headers=retry_after(10)
        )
    told = [
        {"key": problem.key, "value": problem.value, "remedy": problem.remedy}
        for problem in mistakes.problems
    ]
    return HttpProblem(400, str(mistakes), kind="mistakes", members={"problems": told})


def retry_after(seconds: int) -> dict[str, str]:
    """The header that says when to come again."""
    return {"Retry-After": str(seconds)}


def unexpected() -> HttpProblem:
    """What is told of an error of our own: nothing."""
    return HttpProblem(500, "The server made a mistake; it has been noted.")


def install(app: FastAPI) -> None:
    """Let every error of the app be a problem."""
    app.add_exception_handler(HttpProblem, _on_problem)
    app.add_exception_handler(Mistakes, _on_mistakes)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


async def _on_problem(_request: Request, error: Exception) -> Response:
    return error.response() if isinstance(error, HttpProblem) else unexpected().response()


async def _on_mistakes(_request: Request, error: Exception) -> Response:
    return (mistakes_problem(error) if isinstance(error, Mistakes) else unexpected()).response()


async def _on_invalid(_request: Request, error: Exception) -> Response:
    """Where in the request something is wrong; what was sent is not repeated."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    told = [
        {"key": ".".join(map(str, one["loc"])), "value": str(one["msg"]), "remedy": "see /openapi.json"}
        for one in found[:20]
    ]
    detail = "; ".join(f"{one['key']}: {one['value']}" for one in told)
    return HttpProblem(400, detail, kind="mistakes", members={"problems": told}).response()


async def _on_http(_request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return unexpected().response()
    detail = error.detail if error.status_code < 500 else unexpected().detail
    return HttpProblem(error.status_code, str(detail), headers=error.headers).response()
