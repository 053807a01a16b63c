"""Sentences that are English text to all code and can be rendered in other languages, and the office's own texts.

Translations of sentences are gettext catalogues in ``locale/``, keyed by the English template; ``make messages``
updates them. Translations of the office's texts (labels, titles, definitions) are given by the office and stay with
each text.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from typing import Any

LOCALE = files("discreet.text") / "locale"  # also where the package is in a zip file, as Spark ships it


class Language(StrEnum):
    """The languages of the server's texts; labels may have further ones."""

    ENGLISH = "en"
    GERMAN = "de"


def _catalogue(language: Language) -> NullTranslations:
    with (LOCALE / language / "LC_MESSAGES" / "discreet.mo").open("rb") as file:
        return GNUTranslations(file)


CATALOGUES: Mapping[Language, NullTranslations] = {
    language: _catalogue(language) for language in (Language.GERMAN,)
}
SIGNS = {Language.GERMAN: str.maketrans(",.", ".,")}  # of the thousands and of the decimals


class Phrase(str):
    """An English sentence with its template and the values filled in."""

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


class Translated(str):
    """A text of the office, in its own language, with its translations by the tag of their language."""

    __slots__ = ("others",)
    others: Mapping[str, str]

    def __new__(cls, own: str, others: Mapping[str, str]) -> Translated:
        """The office's text and its translations."""
        made = super().__new__(cls, own)
        made.others = others
        return made

    def __getnewargs__(self) -> tuple[str, Mapping[str, str]]:  # type: ignore[override]
        """What a copy is made of."""
        return str(self), self.others


def translated(own: str, others: Mapping[str, str]) -> str:
    """A text with its translations; a plain one where there are none."""
    given = {tag: text for tag, text in others.items() if text}
    return Translated(own, given) if given else own


def others_of(text: str) -> Mapping[str, str]:
    """The translations of a text by the tag of their language: those of the office, or of the catalogues."""
    if isinstance(text, Translated):
        return text.others
    if isinstance(text, Phrase):
        return {language.value: said(text, language) for language in CATALOGUES}
    return {}


def phrase(template: str, **filled: object) -> Phrase:
    """A translatable sentence; numbers are written as the language does, lists with commas."""
    return Phrase(template, filled)


def joined(*parts: str, by: str = " ") -> Phrase:
    """Sentences one after another; empty ones are left out."""
    named = {f"part{place}": part for place, part in enumerate(part for part in parts if part)}
    return Phrase(by.join(f"{{{name}}}" for name in named), named)


def said(text: str, language: Language) -> str:
    """The sentence in a language; a text without a translation is returned unchanged."""
    if isinstance(text, Translated):
        return text.others.get(language, str(text))
    if not isinstance(text, Phrase) or language is Language.ENGLISH:
        return str(text)
    # gettext returns its header for an empty message
    template = text.template and CATALOGUES[language].gettext(text.template)
    return _fill(template, text.filled, language)


def spoken(value: Any, language: Language) -> Any:
    """A value for JSON, with every phrase in it translated."""
    if isinstance(value, str):
        return said(value, language)
    if isinstance(value, Mapping):
        return {key: spoken(one, language) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [spoken(one, language) for one in value]
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
