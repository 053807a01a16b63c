"""Whether names of columns are names: where a header is missing or damaged, a record is read as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from discreet.errors import Mistakes, mistake

LONGEST = 100  # characters of a name
_DIGITS = re.compile(r"\d{6}")  # an id, perhaps behind a name
_LETTER = re.compile(r"[^\W\d_]")
_UPPER, _LOWER, _DIGIT = re.compile(r"[A-Z]"), re.compile(r"[^\W\d_A-Z]"), re.compile(r"\d")
_NOT_A_HEADER = "the first line looks like a record, not like the names of columns"
WRITE_NAMES = "write the names of the columns in the first line, and only there"


def is_record(names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> bool:
    """Whether more than half of the names are values like those of the records below them.

    Such a name is one of the values; or has no letter, as they; or is written like them, with digits or in words.
    """
    columns = zip(*(_filled(row, len(names)) for row in rows), strict=True)
    below = [[value for value in column if value] for column in columns] or [[] for _ in names]
    pairs = [(name.strip(), values) for name, values in zip(names, below, strict=True) if name.strip()]
    alike = sum(_is_value(name, values) for name, values in pairs)
    return 2 * alike > len(pairs)


def _filled(row: Sequence[str | None], width: int) -> list[str]:
    """The fields of a record, as many as there are names."""
    return [("" if value is None else value.strip()) for value in (*row, *[None] * width)[:width]]


def _is_value(name: str, values: Sequence[str]) -> bool:
    if name in values:
        return True
    if not _LETTER.search(name):
        return not any(map(_LETTER.search, values))
    form = _form(name)
    if "9" not in form and " " not in form:
        return False
    return 2 * sum(_form(value) == form for value in values) > len(values)


def _form(text: str) -> str:
    """How a text is written: p0001 as a9999; words, whose lengths differ, as Aa Aa."""
    form = _DIGIT.sub("9", _UPPER.sub("A", _LOWER.sub("a", text)))
    return re.sub(r"a+", "a", form) if " " in form else form


def may_be_shown(name: str) -> bool:
    """Whether a name may be shown although nothing of its table is known: neither digits, nor text of several lines."""
    return bool(could_be_name(name) and _LETTER.search(name) and not _DIGITS.search(name))


def could_be_name(name: str) -> bool:
    """Whether a text could be the name of a column; a year could."""
    return len(name) <= LONGEST and name.isprintable() and (bool(_LETTER.search(name)) or len(name) <= 4)


def headerless(path: object, key: str) -> Mistakes:
    """The refusal of a file whose first line is a record."""
    return mistake(path, key, _NOT_A_HEADER, WRITE_NAMES)
