"""The forms that single values of a programme file must have: words, identifiers, versions, texts, labels.

It owns these forms; which keys there are is declared elsewhere.
"""

from __future__ import annotations

import keyword
import re
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

FORM = "form"  # error type whose context holds the remedy
LONGEST_LABEL = 200


def _matching(pattern: str, remedy: str) -> AfterValidator:
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise PydanticCustomError(FORM, "'{value}' does not fit", {"value": value, "remedy": remedy})
        return value

    return AfterValidator(check)


def _word(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", value) or keyword.iskeyword(value):
        remedy = (
            "start with a letter, go on with letters, digits or _, and avoid and, or, not, in and the like"
        )
        raise PydanticCustomError(FORM, "name '{value}'", {"value": value, "remedy": remedy})
    return value


Word = Annotated[str, AfterValidator(_word)]
Identifier = Annotated[
    str,
    _matching(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
        "use up to 64 letters, digits, '.', '_' or '-': it becomes a file name",
    ),
]
Agency = Annotated[
    str,
    _matching(
        r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*", "write an SDMX agency such as NSI or NSI.CENSUS"
    ),
]
Version = Annotated[
    str, _matching(r"\d{1,6}\.\d{1,6}(\.\d{1,6})?", 'write a version such as "1.0" or "1.0.2", in quotes')
]
Text = Annotated[str, Field(min_length=1)]


def _label(value: str) -> str:
    if not value.strip() or not value.isprintable() or len(value) > LONGEST_LABEL:
        remedy = f"write one line of up to {LONGEST_LABEL} characters, or leave the key out"
        raise PydanticCustomError(FORM, "{shown}", {"shown": repr(value[:60]), "remedy": remedy})
    return value.strip()


Label = Annotated[
    str, AfterValidator(_label)
]  # what readers see: it stands in headings, XML and file properties


STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)  # of every table of the file


def text_or_table(value: object) -> str:
    """Which of two forms a value has, as the mark of a tagged union."""
    return "|text" if isinstance(value, str) else "|table"
