"""Match English sentences of format 1 manifests back to their templates, so that they can be translated."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from gettext import GNUTranslations, translation

from discreet.text.phrase import LOCALE, Language, Phrase

PLACEHOLDER = re.compile(r"\{(\w+)\}")
LONGEST_READ = 2_000  # characters of a sentence that is matched: matching takes longer than it is long
LEAST_LITERAL = 6  # letters outside placeholders that a template needs for sentences to be recognised


class _Catalogue(GNUTranslations):
    _catalog: dict[str, str]

    def templates(self) -> list[str]:
        return [template for template in self._catalog if template]


@lru_cache(maxsize=256)
def recognised(text: str) -> str:
    """The phrase whose English text this is; the text itself where no template fits."""
    if isinstance(text, Phrase) or len(text) > LONGEST_READ:
        return text
    for template, pattern in _patterns():
        found = pattern.fullmatch(text)
        if found is not None:
            return Phrase(template, {name: _read_back(held) for name, held in found.groupdict().items()})
    return text


def _read_back(text: str) -> object:
    """A number where it is written as one here, so that another language can write it its own way."""
    for kind in (int, float):
        try:
            number = kind(text.replace(",", ""))
        except ValueError:
            continue
        if Phrase("{number}", {"number": number}) == text:
            return number
    return recognised(text)


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """All templates that can be recognised, those with most letters outside placeholders first."""
    known = translation("discreet", LOCALE, [Language.GERMAN], class_=_Catalogue).templates()
    literal = {template: len(PLACEHOLDER.sub("", template)) for template in known}
    usual = sorted((one for one in known if literal[one] >= LEAST_LITERAL), key=lambda one: -literal[one])
    return [(template, _pattern(template)) for template in usual]


def _pattern(template: str) -> re.Pattern[str]:
    pieces = PLACEHOLDER.split(template)
    fixed = [re.escape(piece) for piece in pieces[::2]]
    fields = [f"(?P<{name}>.+?)" for name in pieces[1::2]]
    return re.compile("".join(a + b for a, b in zip(fixed, [*fields, ""], strict=True)), re.DOTALL)
