"""Where a large CSV file can be divided: at the starts of records, which a line break inside quotes is not.

Quotes are read as Arrow's parser reads them: they open a value only at its beginning, two of them inside are one quote,
and what follows the closing one belongs to the value. The file is read once; nothing of it is stored.
"""

from __future__ import annotations

import codecs
from io import RawIOBase
from pathlib import Path
from typing import Any

import numpy as np

from discreet.io.csv_form import CsvForm
from discreet.lazy import njit

BLOCK = 1 << 22  # bytes that are read at once
_START, _INSIDE, _QUOTED, _QUOTE = range(4)  # of a value; inside it; inside quotes; a quote inside quotes
_QUOTE_MARK, _LINE, _RETURN = 0x22, 0x0A, 0x0D
_ONE_BYTE = (
    "ascii",
    "utf-8",
    "iso8859",
    "cp125",
)  # encodings in which no other character has the bytes of marks


def can_be_divided(path: Path, form: CsvForm) -> bool:
    """Whether the bytes of separators, quotes and line breaks are nothing else; compressed files are read whole."""
    name = codecs.lookup(form.encoding).name
    return path.suffix.lower() != ".gz" and name.startswith(_ONE_BYTE)


def record_starts(path: Path, form: CsvForm, size: int) -> list[int]:
    """The first start of a record after each ``size`` bytes, ascending; none of the header's."""
    found: list[int] = []
    state, before, wanted = _START, 0, size
    with path.open("rb") as file:
        if file.read(3) != codecs.BOM_UTF8:
            file.seek(0)
        before = file.tell()
        while block := file.read(BLOCK):
            if state in (_START, _INSIDE) and b'"' not in block:
                while (at := block.find(b"\n", max(0, wanted - before - 1)) + 1) and before + at >= wanted:
                    found.append(before + at)
                    wanted = before + at + size
                state = _START if block[-1:] in (b"\n", b"\r", form.delimiter.encode()) else _INSIDE
            else:
                bytes_ = np.frombuffer(block, dtype=np.uint8)
                starts = np.empty(len(block) // size + 1, dtype=np.int64)
                state, number = _scan(bytes_, ord(form.delimiter), state, wanted - before, size, starts)
                found += (before + starts[:number]).tolist()
                wanted = found[-1] + size if number else wanted
            before += len(block)
    return [start for start in found if start < before]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _scan(block: Any, delimiter: int, state: int, wanted: int, size: int, starts: Any) -> tuple[int, int]:
    """Put the starts of records into ``starts``; return the state after the block, and their number."""
    number = 0
    for k in range(block.size):
        mark = block[k]
        if state == _QUOTED:
            if mark == _QUOTE_MARK:
                state = _QUOTE
            continue
        if mark == _QUOTE_MARK and (state in (_START, _QUOTE)):
            state = _QUOTED
        elif mark == _LINE:
            state = _START
            if k + 1 >= wanted:
                starts[number] = k + 1
                number += 1
                wanted = k + 1 + size
        else:
            state = _START if mark in (delimiter, _RETURN) else _INSIDE
    return state, number


class FileRange(RawIOBase):
    """Some bytes of a file, as a file."""

    def __init__(self, path: Path, first: int, last: int) -> None:
        super().__init__()
        self._file, self._left = path.open("rb", buffering=0), last - first
        self._file.seek(first)

    def readable(self) -> bool:
        """It can only be read."""
        return True

    def readinto(self, room: Any, /) -> int:
        """Read at most as many bytes as there is room for."""
        view = memoryview(room)[: self._left]
        read = self._file.readinto(view) if len(view) else 0
        self._left -= read
        return read

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
