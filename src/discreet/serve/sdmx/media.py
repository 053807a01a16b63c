"""Which format a client wants, by its Accept header; it owns the names of the formats, not their writers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from discreet.serve.http.problems import HttpProblem
from discreet.words.phrase import phrase

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
        """As it stands in a header."""
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
    """The format that an Accept header asks for, the first offered where it does not mind."""
    for name, version in _asked(accept):
        for media in offered:
            if _fits(media, name, version):
                return media
    words = phrase(
        "None of the accepted formats can be sent; ask for {formats}.",
        formats=tuple(one.text for one in offered),
    )
    raise HttpProblem(406, words, kind="format")


def prefers_json(accept: str) -> bool:
    """Whether a client would rather read an error as JSON than as XML."""
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
        name, *said = (piece.strip().lower() for piece in part.split(";"))
        parameters = dict(one.partition("=")[::2] for one in said)
        quality = _quality(parameters.get("q", "1"))
        if quality > 0:
            ranked.append((-quality, place, name, parameters.get("version", "").strip('"')))
    for _, _, name, version in sorted(ranked):
        yield name, version


def _quality(text: str) -> float:
    """A weight; nonsense counts as 1, as if it had not been said."""
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
