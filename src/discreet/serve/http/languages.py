"""The language of an answer: the one in the address, else the one the browser prefers, else the default.

Labels, titles and definitions have the language of the office, and those into which it has translated them.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import Scope

from discreet.text.phrase import Language

MOST_RANGES = 50  # of a header that are looked at
STATE = "language"
NAMES = {Language.ENGLISH: "English", Language.GERMAN: "Deutsch"}
_BY_TAG = {language.value: language for language in Language}


def settle(scope: Scope, own: str) -> Language:
    """Choose the language of a request, and note it where ``language_of`` finds it."""
    chosen = _chosen(scope, language_tagged(own) or Language.ENGLISH)
    note(scope, chosen)
    return chosen


def note(scope: Scope, language: Language) -> None:
    """Set the language of a request."""
    scope.setdefault("state", {})[STATE] = language


def offered(own: str) -> dict[str, str]:
    """The tags of all supported languages, with their own names; that of the labels comes first."""
    known = language_tagged(own)
    others = {one.value: NAMES[one] for one in Language if one is not known}
    return {own: NAMES[known] if known else own, **others}


def tag_of(language: Language, own: str) -> str:
    """The tag of an answer's language: that of the labels where they have it, or have an unsupported one."""
    return own if language_tagged(own) in (language, None) else language.value


def language_of(connection: HTTPConnection) -> Language:
    """The language that was chosen for a request."""
    chosen: Language = connection.scope.get("state", {}).get(STATE, Language.ENGLISH)
    return chosen


def _chosen(scope: Scope, own: Language) -> Language:
    query = scope.get("query_string", b"")
    if b"lang=" in query:  # questions in addresses are long, and few of them name a language
        known = language_tagged(parse_qs(query.decode("latin-1")).get("lang", [""])[-1])
        if known is not None:
            return known
    header = ",".join(Headers(scope=scope).getlist("accept-language"))
    return next(_preferred(header, own), own) if header else own


def _preferred(header: str, own: Language) -> Iterator[Language]:
    """The supported languages of a header, best first; a star means any that it does not name."""
    ranges = sorted(_ranges(header), key=lambda one: -one[1])  # a stable sort: equal weights keep their order
    named = {language_tagged(name) for name, _ in ranges}
    for name, weight in ranges:
        if weight > 0 and name == "*":
            yield from (one for one in (own, *Language) if one not in named)
        known = language_tagged(name)
        if weight > 0 and known is not None:
            yield known


def _ranges(header: str) -> Iterator[tuple[str, float]]:
    for part in header.split(",")[:MOST_RANGES]:
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        try:
            yield name, float(weight)
        except ValueError:  # an invalid weight counts as missing
            yield name, 1.0


def language_tagged(tag: str) -> Language | None:
    """The language of a tag such as ``de`` or ``de-AT``."""
    primary = tag.strip().lower().replace("_", "-").partition("-")[0]
    return _BY_TAG.get(primary)
