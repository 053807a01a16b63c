"""Excel workbooks: a sheet of notes, then the table over as many sheets as it needs.

xlsxwriter makes the empty workbook with its styles; the rows are written here as text, some ten times faster.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import chain, islice
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import xlsxwriter
from xlsxwriter.utility import xl_col_to_name

from discreet.formats.columns import rows, schema
from discreet.formats.dataset import LABEL_SUFFIX, Dataset, Sink

SHEET_ROWS, SHEET_COLUMNS = 1_048_576, 16_384  # limits of Excel, headers included
CELL_TEXT = 32_767  # characters of a cell
FASTEST, SMALL = 1, 6  # levels of compression
NOTES, TABLE = "Notes", "Data"
WRAPPED, BOLD = 1, 2  # styles, in the order in which the empty workbook uses them
CREATED = datetime(2000, 1, 1)  # noqa: DTZ001 - Excel knows no zones; fixed so that bytes depend on content only
_FILE_TIME = (1980, 1, 31, 0, 0, 0)
_FILE_MODE = 0o100600 << 16
_ROWS_AT_ONCE = 4096
_ZIP_LIMIT = 1 << 31  # bytes of a member, without the longer headers
_CELL_XML = 80  # bytes around a cell's text
_SHEET = re.compile(r"xl/worksheets/sheet(\d+)\.xml")
_OUTER_SPACE = re.compile(r"^\s|\s$")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]|_x[0-9A-Fa-f]{4}_")
# Strings stay strings: a label that starts with "=" or "http" must not become a formula or a link.
_OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "use_zip64": True}

Cell = str | int | float | None
Line = Sequence[Cell]


@dataclass(frozen=True)
class SheetTable:
    """The lines of a table, headers first: ``top`` lines and ``left`` columns stay visible."""

    lines: Iterable[Line]
    length: int  # number of lines
    top: int = 1
    left: int = 0


def long_table(dataset: Dataset) -> SheetTable:
    """One line for each listed cell; a column of labels has the variable's name for readers, where there is one."""
    shown = {axis.variable + LABEL_SUFFIX: axis.name for axis in dataset.axes if axis.name != axis.variable}
    header = [shown.get(name, name) for name in schema(dataset).names]
    return SheetTable(chain([header], rows(dataset)), len(dataset.values) + 1)


def write_xlsx(dataset: Dataset, sink: Sink, table: SheetTable | None = None, level: int = SMALL) -> None:
    """Write the headed notes and a table; without one, a line for each cell.

    A table that is longer than a sheet continues in the next one, under its headers.
    """
    table = table or long_table(dataset)
    lines = iter(table.lines)
    headers = list(islice(lines, table.top))
    room = SHEET_ROWS - table.top  # lines of a sheet below its headers
    left = table.length - table.top
    notes = [(head, text[:CELL_TEXT]) for head, text in dataset.headed_notes]
    longest = _longest(dataset)
    with (
        ZipFile(_empty_workbook(dataset.title, max(1, -(-left // room)), table)) as before,
        ZipFile(sink, "w", ZIP_DEFLATED) as after,
    ):
        for item in before.infolist():
            xml = before.read(item).decode()
            number = _SHEET.fullmatch(item.filename)
            if number is None:
                _write_member(after, item.filename, [xml], len(xml), level)
            elif number[1] == "1":
                sheet = _Sheet(len(notes), 2, wrapped=1)
                _write_member(after, item.filename, sheet.filled(xml, notes), 0, level)
            else:
                sheet = _Sheet(min(room, left) + len(headers), len(headers[0]), bold=len(headers))
                filled = sheet.filled(xml, chain(headers, islice(lines, room)))
                _write_member(after, item.filename, filled, sheet.length * sheet.width * longest, level)
                left -= room


def _empty_workbook(title: str, sheets: int, table: SheetTable) -> io.BytesIO:
    """The workbook with a cell of each style, whose rows are to be replaced."""
    made = io.BytesIO()
    with xlsxwriter.Workbook(made, _OPTIONS) as book:
        book.set_properties({"title": title, "created": CREATED})
        wrapped, bold = book.add_format({"text_wrap": True}), book.add_format({"bold": True})
        notes = book.add_worksheet(NOTES)
        notes.set_column(0, 0, 24)
        notes.set_column(1, 1, 100, wrapped)
        notes.write_blank(0, 0, None, wrapped)
        for number in range(1, sheets + 1):
            sheet = book.add_worksheet(TABLE if number == 1 else f"{TABLE} {number}")
            sheet.freeze_panes(table.top, table.left)
            sheet.write_blank(0, 0, None, bold)
    made.seek(0)
    return made


def _write_member(book: ZipFile, name: str, pieces: Iterable[str], at_most: int, level: int) -> None:
    member = ZipInfo(name, _FILE_TIME)
    member.external_attr, member.compress_type = _FILE_MODE, ZIP_DEFLATED
    member._compresslevel = level  # type: ignore[attr-defined]  # noqa: SLF001 - no public way for a stream
    with book.open(member, "w", force_zip64=at_most > _ZIP_LIMIT) as file:
        for piece in pieces:
            file.write(piece.encode())


def _longest(dataset: Dataset) -> int:
    """Bytes that no cell of a table exceeds, escapes included."""
    texts = (text for axis in dataset.axes for text in (*axis.codes, *axis.labels))
    return _CELL_XML + 4 * max((len(text) for text in texts), default=0)


@dataclass(frozen=True)
class _Sheet:
    """The size of a sheet, and which of its cells have a style."""

    length: int  # lines
    width: int  # columns
    bold: int = 0  # first lines
    wrapped: int | None = None  # column

    def filled(self, xml: str, lines: Iterable[Line]) -> Iterator[str]:
        """The sheet's XML with the lines for its rows."""
        names = [xl_col_to_name(place) for place in range(self.width)]
        before, _, rest = xml.partition("<sheetData>")
        _, _, after = rest.partition("</sheetData>")
        yield re.sub(
            r'<dimension ref="[^"]*"/>', f'<dimension ref="A1:{names[-1]}{max(1, self.length)}"/>', before
        )
        yield "<sheetData>"
        made = self._rows(names, lines)
        while piece := "".join(islice(made, _ROWS_AT_ONCE)):
            yield piece
        yield f"</sheetData>{after}"

    def _rows(self, names: list[str], lines: Iterable[Line]) -> Iterator[str]:
        text = cache(_text)  # of this sheet only
        styles = [f' s="{WRAPPED}"' if place == self.wrapped else "" for place in range(self.width)]
        for number, line in enumerate(lines, start=1):
            shown = [f' s="{BOLD}"'] * self.width if number <= self.bold else styles
            cells = "".join(
                f'<c r="{name}{number}"{style}{text(cell) if isinstance(cell, str) else _number(cell)}'
                for name, style, cell in zip(names, shown, line, strict=True)
                if cell is not None and cell != ""
            )
            yield f'<row r="{number}">{cells}</row>'


def _number(number: float) -> str:
    return f"><v>{number:.16G}</v></c>" if isinstance(number, float) else f"><v>{number}</v></c>"


def _text(text: str) -> str:
    """A text as the end of a cell; what XML cannot contain is escaped as Excel does."""
    spelled = escape(_CONTROL.sub(_spelled, text))
    preserve = ' xml:space="preserve"' if _OUTER_SPACE.search(spelled) else ""
    return f' t="inlineStr"><is><t{preserve}>{spelled}</t></is></c>'


def _spelled(found: re.Match[str]) -> str:
    sign = found[0]
    return f"_x{ord(sign):04X}_" if len(sign) == 1 else f"_x005F{sign}"
