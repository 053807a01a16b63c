"""SDMX content negotiation and error messages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from discreet.errors import DatabaseUnavailable, Mistakes
from discreet.serve.answer import Refusal, Rule
from discreet.serve.http.languages import language_of
from discreet.serve.http.problems import (
    HttpProblem,
    Refused,
    mistakes_problem,
    refusal_members,
    spoken_in,
    unavailable,
)
from discreet.text.phrase import phrase, said

VENDOR = "application/vnd.sdmx."
XML, TEXT_XML, JSON, CSV = "application/xml", "text/xml", "application/json", "text/csv"


@dataclass(frozen=True)
class Media:
    """A format that can be sent, and the plain names that also mean it."""

    name: str
    version: str
    plain: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As written in a header."""
        return f"{self.name};version={self.version}"

    @property
    def ending(self) -> str:
        """Of a file of this format."""
        return self.name.rpartition("+")[2]


GENERIC = Media(f"{VENDOR}genericdata+xml", "2.1", (XML, TEXT_XML, f"{VENDOR}generic+xml"))
SPECIFIC = Media(f"{VENDOR}structurespecificdata+xml", "2.1")
CSV_2 = Media(f"{VENDOR}data+csv", "2.0.0", (CSV,))
CSV_1 = Media(f"{VENDOR}data+csv", "1.0.0")
JSON_2 = Media(f"{VENDOR}data+json", "2.0.0", (JSON,))
JSON_1 = Media(f"{VENDOR}data+json", "1.0.0")
DATA_3_0 = Media(f"{VENDOR}data+xml", "3.0.0")
DATA = (GENERIC, SPECIFIC, CSV_2, CSV_1, JSON_2, JSON_1, DATA_3_0)  # the first is what */* means
STRUCTURE_2_1 = Media(f"{VENDOR}structure+xml", "2.1", (XML, TEXT_XML))
STRUCTURE_3_0 = Media(f"{VENDOR}structure+xml", "3.0.0", (XML, TEXT_XML))
STRUCTURE_JSON = Media(f"{VENDOR}structure+json", "2.0.0", (JSON,))
STRUCTURES_2_1 = (STRUCTURE_2_1, STRUCTURE_3_0, STRUCTURE_JSON)
STRUCTURES_3_0 = (STRUCTURE_3_0, STRUCTURE_2_1, STRUCTURE_JSON)


def wanted(accept: str, offered: Sequence[Media]) -> Media:
    """The format of an Accept header; the first offered where it accepts any."""
    for name, version in _asked(accept):
        for media in offered:
            if _fits(media, name, version):
                return media
    message = phrase(
        "None of the accepted formats is available; use {formats}.",
        formats=tuple(one.text for one in offered),
    )
    raise HttpProblem(406, message, kind="format")


def prefers_json(accept: str) -> bool:
    """Whether a client prefers errors as JSON to XML."""
    for name, _ in _asked(accept):
        if name.endswith(("+json", "/json")):
            return True
        if name.endswith(("+xml", "/xml", "/*")):
            return False
    return False


def _asked(accept: str) -> Iterator[tuple[str, str]]:
    """Names and versions, best first."""
    ranked = []
    for place, part in enumerate((accept.strip() or "*/*").split(",")[:50]):
        name, *pieces = (piece.strip().lower() for piece in part.split(";"))
        parameters = dict(one.partition("=")[::2] for one in pieces)
        quality = _quality(parameters.get("q", "1"))
        if quality > 0:
            ranked.append((-quality, place, name, parameters.get("version", "").strip('"')))
    for _, _, name, version in sorted(ranked):
        yield name, version


def _quality(text: str) -> float:
    """A weight; an invalid one counts as 1, as a missing one does."""
    try:
        return float(text)
    except ValueError:
        return 1.0


def _fits(media: Media, name: str, version: str) -> bool:
    if name in ("*/*", f"{media.name.partition('/')[0]}/*", *media.plain):
        return True
    return name == media.name and (not version or _padded(version) == _padded(media.version))


def _padded(version: str) -> list[str]:
    """2.1 and 2.1.0 are the same version."""
    parts = version.split(".")
    return parts + ["0"] * (3 - len(parts))


_SCHEMAS = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1"
_TOO_LARGE = (Rule.CELLS, Rule.COUNTED)
_SDMX_CODES = {401: 110, 404: 100, 413: 130, 422: 150, 500: 500, 501: 501, 503: 503}
_SYNTAX = 140


class SdmxRoute(APIRoute):
    """A route whose errors are SDMX's."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Answer, or send an SDMX error."""
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
            except DatabaseUnavailable:
                return _response(request, unavailable())

        return answered


def unknown_value(name: str, value: str, known: Iterable[str]) -> HttpProblem:
    """The problem of an unknown value of a parameter."""
    message = phrase(
        "{name}: unknown {value}; use one of {names}.", name=name, value=repr(value[:60]), names=tuple(known)
    )
    return HttpProblem(400, message)


def _refused(refusal: Refusal) -> HttpProblem:
    """A sound request that a rule refuses: the answer is too large or not available."""
    status = 413 if refusal.rule in _TOO_LARGE else 404 if refusal.rule is Rule.NOT_PUBLISHED else 422
    members = refusal_members(refusal)
    return HttpProblem(status, refusal.message, kind=f"refused-{refusal.rule.value}", members=members)


def _response(request: Request, problem: HttpProblem) -> Response:
    code, language = _SDMX_CODES.get(problem.status, _SYNTAX), language_of(request)
    if prefers_json(request.headers.get("accept", "")):
        problem.members["errors"] = [{"code": code, "detail": problem.detail}]  # as SDMX-JSON has it
        return problem.response(language)
    nearest = [
        phrase("Would pass: {table}", table=one["words"]) for one in problem.members.get("nearest", ())
    ]
    errors = "".join(
        f'<mes:ErrorMessage code="{code}"><com:Text xml:lang="{language}">{_plain(said(text, language))}</com:Text>'
        "</mes:ErrorMessage>"
        for text in (problem.detail, *nearest)
    )
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<mes:Error xmlns:mes="{_SCHEMAS}/message" '
        f'xmlns:com="{_SCHEMAS}/common">{errors}</mes:Error>'
    )
    spoken = {**spoken_in(language), "Vary": "Accept, Accept-Language"}
    headers = {"Cache-Control": "no-store", **spoken, **problem.headers}
    return Response(body.encode("utf-8", "replace"), problem.status, media_type=XML, headers=headers)


def _plain(text: str) -> str:
    """Text without characters that XML cannot contain."""
    return escape("".join(sign if sign.isprintable() else " " for sign in text))
