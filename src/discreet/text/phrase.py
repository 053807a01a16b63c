"""Sentences that are English text to all code and can be rendered in other languages.

Translations are gettext catalogues in ``locale/``, keyed by the English template; ``make messages`` updates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from gettext import NullTranslations, translation
from pathlib import Path
from typing import Any

LOCALE = Path(__file__).parent / "locale"


class Language(StrEnum):
    """The languages of the server's texts; labels are the office's."""

    ENGLISH = "en"
    GERMAN = "de"


CATALOGUES: Mapping[Language, NullTranslations] = {
    language: translation("discreet", LOCALE, [language]) for language in (Language.GERMAN,)
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


def phrase(template: str, **filled: object) -> Phrase:
    """A translatable sentence; numbers are written as the language does, lists with commas."""
    return Phrase(template, filled)


def joined(*parts: str, by: str = " ") -> Phrase:
    """Sentences one after another; empty ones are left out."""
    named = {f"part{place}": part for place, part in enumerate(part for part in parts if part)}
    return Phrase(by.join(f"{{{name}}}" for name in named), named)


def said(text: str, language: Language) -> str:
    """The sentence in a language; a text that is not a phrase is returned unchanged."""
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
