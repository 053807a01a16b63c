"""Lines put into the last, empty sheet of a finished workbook; it owns the XML of cells, not what they hold.

The library that makes workbooks takes ten times as long for each cell, and every other answer waits meanwhile.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

from xlsxwriter.utility import xl_col_to_name

from discreet.serve.http.layout import Cell

LEVEL = 1  # of compression: the texts repeat, and time counts
_EMPTY = "<sheetData/>"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]|_x[0-9A-Fa-f]{4}_")


def filled(book: bytes, sheet: str, lines: Iterator[list[Cell]]) -> bytes:
    """The workbook with the lines in a sheet, which is named by its place in the file."""
    held = io.BytesIO()
    with ZipFile(io.BytesIO(book)) as before, ZipFile(held, "w", ZIP_DEFLATED) as after:
        for item in before.infolist():
            content = before.read(item)
            if item.filename == sheet:
                content = _with_lines(content.decode(), lines).encode()
            after.writestr(item, content, ZIP_DEFLATED, LEVEL)
    return held.getvalue()


def _with_lines(xml: str, lines: Iterator[list[Cell]]) -> str:
    first = next(lines)
    names = [xl_col_to_name(place) for place in range(len(first))]
    rows = list(_rows(names, chain([first], lines)))
    before, _, after = xml.partition(_EMPTY)
    sized = re.sub(r'<dimension ref="[^"]*"/>', f'<dimension ref="A1:{names[-1]}{len(rows)}"/>', before)
    return f"{sized}<sheetData>{''.join(rows)}</sheetData>{after}"


def _rows(names: list[str], lines: Iterator[list[Cell]]) -> Iterator[str]:
    text = cache(_text)  # of this workbook alone
    for number, line in enumerate(lines, start=1):
        cells = "".join(
            f'<c r="{name}{number}"{text(cell) if isinstance(cell, str) else f"><v>{cell}</v></c>"}'
            for name, cell in zip(names, line, strict=True)
            if cell is not None and cell != ""
        )
        yield f'<row r="{number}">{cells}</row>'


def _text(text: str) -> str:
    """A text as the end of a cell; what XML cannot hold is spelled as Excel spells it."""
    spelled = escape(_CONTROL.sub(_spelled, text))
    return f' t="inlineStr"><is><t xml:space="preserve">{spelled}</t></is></c>'


def _spelled(found: re.Match[str]) -> str:
    sign = found[0]
    return f"_x{ord(sign):04X}_" if len(sign) == 1 else f"_x005F{sign}"
