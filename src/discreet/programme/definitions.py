"""Definitions of variables and codes, and the columns of codelist files that have them in one or several languages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from discreet.text.phrase import others_of, translated

LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")  # such as de or pt-BR


@dataclass(frozen=True)
class Definition:
    """What a variable or a code means, and where its data come from; either may be empty."""

    description: str = ""
    source: str = ""

    def __bool__(self) -> bool:
        return bool(self.description or self.source)


Definitions = Mapping[str, Definition]  # by code, or by variable; those that have none are left out
NO_DEFINITIONS: Definitions = {}
NO_DEFINITION = Definition()
LABEL, DESCRIPTION, SOURCE = "label", "description", "source"


def text_in(row: Mapping[str, str], kind: str, default: str = "") -> str:
    """The text of a kind in a line of a codelist, with its translations: label, and label.de where there is one."""
    lead = f"{kind}."
    others = {
        name.removeprefix(lead): text
        for name, text in row.items()
        if name.startswith(lead) and LANGUAGE_TAG.fullmatch(name.removeprefix(lead))
    }
    return translated(row.get(kind, "") or (default if any(others.values()) else ""), others)


def definition_in(row: Mapping[str, str]) -> Definition:
    """The definition in a line of a codelist."""
    return Definition(text_in(row, DESCRIPTION), text_in(row, SOURCE))


def text_columns(
    codes: Sequence[str], labels: Sequence[str], definitions: Definitions
) -> Iterator[tuple[str, list[str]]]:
    """The columns of a codelist file with texts: the label, and whatever else some code has."""
    yield from _columns(LABEL, labels)
    found = [definitions.get(code, NO_DEFINITION) for code in codes] if definitions else []
    if any(one.description for one in found):
        yield from _columns(DESCRIPTION, [one.description for one in found])
    if any(one.source for one in found):
        yield from _columns(SOURCE, [one.source for one in found])


def _columns(kind: str, texts: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    yield kind, [str(text) for text in texts]
    for tag in tags_of(texts):
        yield f"{kind}.{tag}", [others_of(text).get(tag, "") for text in texts]


def tags_of(texts: Iterable[str]) -> list[str]:
    """The languages that some texts are translated into, in order."""
    return sorted({tag for text in texts for tag in others_of(text)})
