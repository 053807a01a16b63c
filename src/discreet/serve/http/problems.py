"""Errors as RFC 9457 problem details."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from discreet.errors import DatabaseUnavailable, Mistakes
from discreet.serve.answer import Area, Nearest, Refusal, Rule
from discreet.serve.http.languages import language_of
from discreet.serve.query import Query, to_json
from discreet.text.phrase import Language, Phrase, joined, phrase, spoken

Context = Mapping[str, Any]

_NUMBER, _WHOLE = phrase("is no number"), phrase("is no whole number")
_LIST, _TABLE, _TEXT = phrase("is no list"), phrase("is no table"), phrase("is no text")
_FIXED = {
    "missing": phrase("is missing"),
    "extra_forbidden": phrase("is not known here"),
    "json_invalid": phrase("is no JSON"),
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "int_parsing": _WHOLE,
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "list_type": _LIST,
    "dict_type": _TABLE,
    "model_type": _TABLE,
    "model_attributes_type": _TABLE,
    "string_type": _TEXT,
}
_WITH_LIMIT: Mapping[str, Callable[[Context], Phrase]] = {
    "string_too_long": lambda context: phrase("has more than {most} characters", most=context["max_length"]),
    "too_long": lambda context: phrase("has more than {most} entries", most=context["max_length"]),
    "too_short": lambda context: phrase("has fewer than {least} entries", least=context["min_length"]),
    "greater_than_equal": lambda context: phrase("is below {least}", least=context["ge"]),
    "less_than_equal": lambda context: phrase("is above {most}", most=context["le"]),
    "enum": lambda context: phrase("is none of {expected}", expected=context["expected"]),
    "string_pattern_mismatch": lambda context: phrase("is not of the form {form}", form=context["pattern"]),
}


def invalid_message(error: Mapping[str, Any]) -> str:
    """What is wrong, without what was sent; an error that is not known here keeps its English text."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _WITH_LIMIT:
        return _WITH_LIMIT[kind](context)
    ours = next(iter(getattr(context.get("error"), "args", ())), "")  # raised by a validator of this package
    return ours if isinstance(ours, Phrase) else _FIXED.get(kind, str(error["msg"]))


MEDIA_TYPE = "application/problem+json"
MOST_INVALID = 20  # errors of form that are listed
MOST_AREAS = 1_000  # that are listed; their number is always given
TITLES = {
    400: phrase("The request cannot be understood"),
    401: phrase("The token is not known"),
    403: phrase("Not allowed"),
    404: phrase("Not found"),
    405: phrase("Method not allowed"),
    406: phrase("Not acceptable"),
    408: phrase("The request took too long to arrive"),
    409: phrase("Not ready"),
    413: phrase("The request is too large"),
    415: phrase("Unsupported media type"),
    422: phrase("The request cannot be answered"),
    429: phrase("Too many requests"),
    500: phrase("Something went wrong"),
    501: phrase("Not offered"),
    503: phrase("The server is busy"),
}
ROUTING = {  # messages where no route was found
    404: phrase("There is no resource at this address."),
    405: phrase("This address takes other methods."),
}


class HttpProblem(Exception):
    """An error for a client: a status, a message, and members for machines."""

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

    def response(self, language: Language) -> Response:
        """The problem as a response."""
        title = TITLES.get(self.status, phrase("Error"))
        kind = f"/problems/{self.kind}" if self.kind else "about:blank"
        content = {"type": kind, "title": title, "status": self.status, "detail": self.detail, **self.members}
        body = json.dumps(spoken(content, language), ensure_ascii=False).encode("utf-8", "replace")
        headers = {"Cache-Control": "no-store", **spoken_in(language), **self.headers}
        return Response(body, self.status, media_type=MEDIA_TYPE, headers=headers)


class Refused(HttpProblem):
    """A rule of the table builder refused."""

    def __init__(self, refusal: Refusal) -> None:
        status = 404 if refusal.rule is Rule.NOT_PUBLISHED else 403
        super().__init__(
            status, refusal.message, kind=f"refused-{refusal.rule.value}", members=refusal_members(refusal)
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
        "words": nearest.message,
        "query": to_json(nearest.query),
        "href": table_address(nearest.query),
        **({} if nearest.price is None else {"price": float(nearest.price)}),
    }


def table_address(query: Query) -> str:
    """Where the answer to a question is, as a path with the question in it."""
    text = json.dumps(to_json(query), ensure_ascii=False, separators=(",", ":"))
    return f"/api/v1/table?query={quote(text, safe='')}"


def mistakes_problem(mistakes: Mistakes) -> HttpProblem:
    """What is wrong with a question; problems of the server's own files and databases are not shown."""
    if any(problem.file for problem in mistakes.problems):
        return unavailable()
    listed = [
        {"key": problem.key, "value": problem.value, "remedy": problem.remedy}
        for problem in mistakes.problems
    ]
    lines = [Phrase("{key}: {value}; {remedy}", one) for one in listed]
    return HttpProblem(400, joined(*lines, by="\n"), kind="mistakes", members={"problems": listed})


def unavailable() -> HttpProblem:
    """The answer while the server's own database cannot be used; what it answered is not shown."""
    message = phrase("The server's database is unavailable; try again later.")
    return HttpProblem(503, message, headers=retry_after(10))


def spoken_in(language: Language) -> dict[str, str]:
    """The headers of what depends on the language."""
    return {"Content-Language": language.value, "Vary": "Accept-Language"}


def retry_after(seconds: int) -> dict[str, str]:
    """The header with the seconds after which to retry."""
    return {"Retry-After": str(seconds)}


def unexpected() -> HttpProblem:
    """The answer to an internal error, without details."""
    return HttpProblem(500, phrase("Internal server error; it has been logged."))


def problem_of(error: Exception) -> HttpProblem | None:
    """The problem that an error is for a client; None where it is an internal one."""
    if isinstance(error, HttpProblem):
        return error
    if isinstance(error, Mistakes):
        return mistakes_problem(error)
    return unavailable() if isinstance(error, DatabaseUnavailable) else None


def install(app: FastAPI) -> None:
    """Answer the errors of the web framework with problems; those of this package reach the middleware ``Errors``."""
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


async def _on_invalid(request: Request, error: Exception) -> Response:
    """Where in the request something is wrong; what was sent is not repeated."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    return invalid_problem(found).response(language_of(request))


def invalid_problem(found: Sequence[Mapping[str, Any]], within: tuple[str, ...] = ()) -> HttpProblem:
    """What is wrong with the form of a request, by the errors that its models found."""
    remedy = phrase("see {address}", address="/openapi.json")
    listed = [
        {"key": ".".join(map(str, (*within, *one["loc"]))), "value": invalid_message(one), "remedy": remedy}
        for one in found[:MOST_INVALID]
    ]
    lines = [Phrase("{key}: {value}", one) for one in listed]
    return HttpProblem(400, joined(*lines, by="; "), kind="mistakes", members={"problems": listed})


async def _on_http(request: Request, error: Exception) -> Response:
    found = unexpected()
    if isinstance(error, HTTPException):
        status = error.status_code
        detail = ROUTING.get(status, error.detail) if status < 500 else found.detail
        found = HttpProblem(status, detail, headers=error.headers)
    return found.response(language_of(request))
