"""Errors as clients of SDMX read them: SDMX-ML error messages, or problem details where JSON is wanted.

It owns the status and the SDMX code of an error, not its words.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any
from xml.sax.saxutils import escape

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from discreet.errors import Mistakes
from discreet.serve.answer import Refusal, Rule
from discreet.serve.http.languages import language_of
from discreet.serve.http.problems import HttpProblem, Refused, mistakes_problem, refusal_members, spoken_in
from discreet.serve.sdmx.media import XML, prefers_json
from discreet.words.phrase import phrase, said

_SCHEMAS = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1"
_TOO_LARGE = (Rule.CELLS, Rule.COUNTED)
_SDMX_CODES = {401: 110, 404: 100, 413: 130, 422: 150, 500: 500, 501: 501, 503: 503}
_SYNTAX = 140


class SdmxRoute(APIRoute):
    """A route whose errors are SDMX's."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Answer, or say what is wrong."""
        inner = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await inner(request)
            except Refused as refused:
                return _response(request, _refused(refused.refusal))
            except HttpProblem as problem:
                return _response(request, problem)
            except Mistakes as mistakes:
                return _response(request, mistakes_problem(mistakes))

        return answered


def unknown_value(name: str, value: str, known: Iterable[str]) -> HttpProblem:
    """The problem of a word that a parameter does not know."""
    words = phrase(
        "{name}: unknown {value}; use one of {names}.", name=name, value=repr(value[:60]), names=tuple(known)
    )
    return HttpProblem(400, words)


def _refused(refusal: Refusal) -> HttpProblem:
    """A sound request that a rule refuses: too large an answer, or not to be had."""
    status = 413 if refusal.rule in _TOO_LARGE else 404 if refusal.rule is Rule.NOT_PUBLISHED else 422
    members = refusal_members(refusal)
    return HttpProblem(status, refusal.words, kind=f"refused-{refusal.rule.value}", members=members)


def _response(request: Request, problem: HttpProblem) -> Response:
    code, language = _SDMX_CODES.get(problem.status, _SYNTAX), language_of(request)
    if prefers_json(request.headers.get("accept", "")):
        problem.members["errors"] = [{"code": code, "detail": problem.detail}]  # as SDMX-JSON has it
        return problem.response(language)
    nearest = [
        phrase("Would pass: {table}", table=one["words"]) for one in problem.members.get("nearest", ())
    ]
    told = "".join(
        f'<mes:ErrorMessage code="{code}"><com:Text xml:lang="{language}">{_plain(said(text, language))}</com:Text>'
        "</mes:ErrorMessage>"
        for text in (problem.detail, *nearest)
    )
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<mes:Error xmlns:mes="{_SCHEMAS}/message" '
        f'xmlns:com="{_SCHEMAS}/common">{told}</mes:Error>'
    )
    spoken = {**spoken_in(language), "Vary": "Accept, Accept-Language"}
    headers = {"Cache-Control": "no-store", **spoken, **problem.headers}
    return Response(body.encode("utf-8", "replace"), problem.status, media_type=XML, headers=headers)


def _plain(text: str) -> str:
    """Text without what XML cannot hold."""
    return escape("".join(sign if sign.isprintable() else " " for sign in text))
