"""How the text of a CSV file is written: separator, encoding and decimal mark, declared or found in the file."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from discreet.programme.sources import Dialect

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "|"}
UTF8, UTF16, WINDOWS, LATIN = "utf-8", "utf-16", "windows-1252", "latin-1"

_BLOCK = 1 << 22
_SAMPLE = 1 << 18  # bytes in which separator and decimal mark are found
_ROWS = 2000
_UNDEFINED = bytes((0x81, 0x8D, 0x8F, 0x90, 0x9D))  # in Windows-1252
_COMMA_NUMBER = re.compile(r"[+-]?[0-9]+(,[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3},[0-9]{3}")


@dataclass(frozen=True)
class CsvForm:
    """The form of one CSV file."""

    delimiter: str = ","
    encoding: str = UTF8
    decimal: str = "."

    def __str__(self) -> str:
        mark = DELIMITERS.get(self.delimiter, repr(self.delimiter))
        return f"separated by {mark}, {self.encoding}, decimal {'comma' if self.decimal == ',' else 'point'}"


USUAL = CsvForm()


def csv_form(path: Path, declared: Dialect) -> CsvForm:
    """The form of a file: what is declared, and for the rest what its contents show."""
    state = path.stat()
    return _form(path, state.st_size, state.st_mtime_ns, declared)


@lru_cache(maxsize=256)  # a file is opened several times in a run, and its encoding may show only at its end
def _form(path: Path, size: int, modified: int, declared: Dialect) -> CsvForm:
    with _opened(path) as file:
        head = file.read(_SAMPLE)
        given = declared.encoding
        encoding = _encoding(head, file) if given is None else codecs.lookup(given).name
    text = head.decode(encoding, "ignore").removeprefix("\ufeff")
    complete = len(head) < _SAMPLE
    delimiter = declared.delimiter or _delimiter(text, complete)
    decimal = declared.decimal
    if decimal is None:
        decimal = "," if delimiter != "," and _has_comma_numbers(_rows(text, delimiter, complete)) else "."
    return CsvForm(delimiter, given or encoding, decimal)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with path.open("rb") as raw:
        if path.suffix.lower() == ".gz":
            with gzip.open(raw) as file:
                yield file  # type: ignore[misc]
        else:
            yield raw


def _encoding(head: bytes, rest: BinaryIO) -> str:
    """The encoding by a byte order mark, or by the first bytes that are not ASCII."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return UTF16
    if head.startswith(codecs.BOM_UTF8):
        return UTF8
    block = head
    while block:
        if not block.isascii():
            return _encoding_of(block)
        block = rest.read(_BLOCK)
    return UTF8


def _encoding_of(block: bytes) -> str:
    """UTF-8 unless more of it is wrong than right: in a text of another encoding hardly any sequence is valid."""
    try:
        codecs.getincrementaldecoder(UTF8)().decode(block)  # the block may end within a character
    except UnicodeDecodeError:
        wrong = block.decode(UTF8, "replace").count("\ufffd")
        right = sum(not one.isascii() for one in block.decode(UTF8, "ignore"))
        if right >= wrong:
            return UTF8
        return LATIN if any(byte in block for byte in _UNDEFINED) else WINDOWS
    return UTF8


def _delimiter(text: str, complete: bool) -> str:
    """The separator that gives most fields in the header, best one that gives every line as many."""
    best, most = ",", (False, 1)
    for mark in DELIMITERS:
        widths = [len(row) for row in _rows(text, mark, complete)]
        if widths and widths[0] > 1:
            found = (set(widths) == {widths[0]}, widths[0])
            if found > most:
                best, most = mark, found
    return best


def first_rows(path: Path, form: CsvForm) -> list[list[str]]:
    """The first lines of a file, beginning with its header."""
    with _opened(path) as file:
        head = file.read(_SAMPLE)
    text = head.decode(form.encoding, "ignore").removeprefix("\ufeff")
    return _rows(text, form.delimiter, complete=len(head) < _SAMPLE)


def _rows(text: str, delimiter: str, complete: bool) -> list[list[str]]:
    """The lines of a sample, the first is the header; the last one of a sample that is cut off is left out."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                rows.append(row)
            if len(rows) > _ROWS:
                return rows
    except csv.Error:
        return rows
    return rows if complete else rows[:-1]


def _has_comma_numbers(rows: Sequence[Sequence[str]]) -> bool:
    """Whether some column has only numbers, some with a decimal comma; 12,345 may be twelve thousand."""
    columns: dict[int, list[str]] = {}
    for row in rows[1:]:
        for k, value in enumerate(row):
            if value.strip():
                columns.setdefault(k, []).append(value.strip())
    return any(
        all(_COMMA_NUMBER.fullmatch(value) for value in values)
        and any("," in value and not _THOUSANDS.fullmatch(value) for value in values)
        for values in columns.values()
    )
