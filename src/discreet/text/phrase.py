"""A sentence that is English to all code that takes a text, and that can be said in other languages.

It owns how a template is filled and how a language writes numbers; the translations are dictionaries beside it, and
which language somebody wants is decided where they are answered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any

from discreet.text.german import GERMAN

PLACEHOLDER = re.compile(r"\{(\w+)\}")
LONGEST_READ = 2_000  # characters of a sentence that is read back: matching takes longer than it is long
LEAST_LITERAL = 6  # letters that a template has of its own, for a sentence to be known by them


class Language(StrEnum):
    """The languages of the server's own words; labels are the office's."""

    ENGLISH = "en"
    GERMAN = "de"


CATALOGUES: Mapping[Language, Mapping[str, str]] = {Language.GERMAN: GERMAN}
SIGNS = {Language.GERMAN: str.maketrans(",.", ".,")}  # of the thousands and of the decimals


class Phrase(str):
    """An English sentence that knows its template and what was filled in."""

    __slots__ = ("filled", "template")
    template: str
    filled: Mapping[str, object]

    def __new__(cls, template: str, filled: Mapping[str, object]) -> Phrase:
        """Fill the English template."""
        made = super().__new__(cls, _fill(template, filled, Language.ENGLISH))
        made.template, made.filled = template, filled
        return made

    def __getnewargs__(self) -> tuple[str, Mapping[str, object]]:  # type: ignore[override]
        """What a copy is made of."""
        return self.template, self.filled


def phrase(template: str, **filled: object) -> Phrase:
    """A sentence that every language has; numbers are written as the language does, lists with commas."""
    return Phrase(template, filled)


def joined(*parts: str, by: str = " ") -> Phrase:
    """Sentences one after another; empty ones are left out."""
    held = {f"part{place}": part for place, part in enumerate(part for part in parts if part)}
    return Phrase(by.join(f"{{{name}}}" for name in held), held)


def said(text: str, language: Language) -> str:
    """The sentence of a language; a text that is no phrase is said as it is."""
    if not isinstance(text, Phrase) or language is Language.ENGLISH:
        return str(text)
    template = CATALOGUES[language].get(text.template, text.template)
    return _fill(template, text.filled, language)


def spoken(value: Any, language: Language) -> Any:
    """Something to be written as JSON, with every phrase in it said in a language."""
    if isinstance(value, str):
        return said(value, language)
    if isinstance(value, Mapping):
        return {key: spoken(held, language) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [spoken(held, language) for held in value]
    return value


def _fill(template: str, filled: Mapping[str, object], language: Language) -> str:
    return template.format_map({name: _shown(value, language) for name, value in filled.items()})


def _shown(value: object, language: Language) -> str:
    if isinstance(value, str):
        return said(value, language)
    if isinstance(value, tuple):
        return ", ".join(_shown(one, language) for one in value)
    if isinstance(value, int | float):
        text = f"{value:,}" if isinstance(value, int) else f"{value:g}"
        return text.translate(SIGNS.get(language, {}))
    return str(value)


@lru_cache(maxsize=256)
def recognised(text: str) -> str:
    """The phrase that an English sentence of ours once was, where it was read back from a file; else the text."""
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
        if _shown(number, Language.ENGLISH) == text:
            return number
    return recognised(text)


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """All templates that a sentence can be known by, those with most letters of their own first."""
    literal = {template: len(PLACEHOLDER.sub("", template)) for template in GERMAN}
    usual = sorted((one for one in GERMAN if literal[one] >= LEAST_LITERAL), key=lambda one: -literal[one])
    return [(template, _pattern(template)) for template in usual]


def _pattern(template: str) -> re.Pattern[str]:
    pieces = PLACEHOLDER.split(template)
    fixed = [re.escape(piece) for piece in pieces[::2]]
    fields = [f"(?P<{name}>.+?)" for name in pieces[1::2]]
    return re.compile("".join(a + b for a, b in zip(fixed, [*fields, ""], strict=True)), re.DOTALL)
