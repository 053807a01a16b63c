"""Answers as Excel workbooks: a sheet of notes, then the table."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from itertools import chain
from math import prod
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

import xlsxwriter
from xlsxwriter.utility import xl_col_to_name

from discreet.serve.answer import Answer, Rule
from discreet.serve.catalogue import Catalogue
from discreet.serve.http.json_stat import label_of, notes, title_in
from discreet.serve.http.layout import Cell, Layout, Percent, laid_out, long, measures, sides
from discreet.serve.http.problems import HttpProblem
from discreet.serve.query import to_json
from discreet.serve.rules import WORDS
from discreet.text.phrase import phrase, said

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


CREATED = datetime(2000, 1, 1)  # noqa: DTZ001 - Excel knows no zones; fixed so that bytes depend on content alone
SHEET_ROWS, SHEET_COLUMNS = 1_048_576, 16_384  # what Excel holds
CELL_TEXT = 32_767  # characters of a cell
MOST_AREAS = 1_000  # withheld areas that are listed
_OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}


def workbook(answer: Answer, catalogue: Catalogue, layout: Layout) -> bytes:
    """The workbook; a table that no sheet can hold is a problem."""
    lines, top, left = _table(answer, layout)
    held = io.BytesIO()
    with xlsxwriter.Workbook(held, _OPTIONS) as book:
        book.set_properties({"title": title_in(answer, catalogue.labels), "created": CREATED})
        _notes_sheet(book, answer, catalogue, layout)
        book.add_worksheet("Data").freeze_panes(top, left)
    return filled(held.getvalue(), "xl/worksheets/sheet2.xml", lines)


def _table(answer: Answer, layout: Layout) -> tuple[Iterator[list[Cell]], int, int]:
    """The lines, and how many lines and columns of headers stay in sight."""
    if not layout.columns:
        _check_size(answer.size + 1, 3 + 2 * len(answer.axes))
        return long(answer, layout), 1, 0
    across, down = sides(answer, layout)
    top, left = len(across) + (layout.percent is not None), len(down)
    rows = top + prod(answer.shape[k] for k in down)
    _check_size(rows, left + len(measures(layout)) * prod(answer.shape[k] for k in across))
    return laid_out(answer, layout), top, left


def _check_size(rows: int, columns: int) -> None:
    if rows > SHEET_ROWS or columns > SHEET_COLUMNS:
        words = phrase(
            "A sheet of Excel holds {most_rows} rows and {most_columns} columns, this table has {rows} and {columns}: "
            "put other variables across, or take it as CSV or Parquet.",
            most_rows=SHEET_ROWS,
            most_columns=SHEET_COLUMNS,
            rows=rows,
            columns=columns,
        )
        raise HttpProblem(413, words, kind="size")


def _notes_sheet(book: xlsxwriter.Workbook, answer: Answer, catalogue: Catalogue, layout: Layout) -> None:
    sheet = book.add_worksheet("Notes")
    sheet.set_column(0, 0, 24)
    sheet.set_column(1, 1, 100, book.add_format({"text_wrap": True}))
    lines = [*_about(answer, catalogue), *_how_to_read(answer, layout), *_withheld(answer, catalogue)]
    for number, (head, text) in enumerate([*lines, *_again(answer, layout)]):
        sheet.write_string(number, 0, said(head, answer.language))
        sheet.write_string(number, 1, said(text, answer.language)[:CELL_TEXT])


def _about(answer: Answer, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    query, labels = answer.query, catalogue.labels
    yield phrase("Table"), label_of(query, labels)
    yield phrase("Source"), f"{catalogue.heading} {catalogue.version}, {catalogue.agency}"
    yield phrase("Counted"), labels.counted(query.unit, query.count)
    yield phrase("Population"), query.where or phrase("all")
    yield phrase("Axes"), ", ".join(labels.axis(axis.breakdown) for axis in answer.axes) or phrase("none")


def _how_to_read(answer: Answer, layout: Layout) -> Iterator[tuple[str, str]]:
    yield phrase("Totals"), phrase("The code _T means the total along a variable.")
    for note in notes(answer):
        yield phrase("Note"), note
    if layout.percent is not None:
        yield phrase("Percentages"), _PERCENT[layout.percent]
        yield phrase("Percentages"), _PERCENT_NOTE
    yield (
        phrase("Empty cells"),
        phrase("Cells without a number are withheld; of percentages also those of a total of 0."),
    )


_PERCENT = {
    Percent.ROW: phrase("Each is a share of the published total of its row."),
    Percent.COLUMN: phrase("Each is a share of the published total of its column."),
    Percent.TOTAL: phrase("Each is a share of the published total of the table."),
}
_PERCENT_NOTE = phrase(
    "They are made of published counts, which are perturbed: they need not add up to 100 %, and may exceed it."
)


def _withheld(answer: Answer, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    """The rules by which areas are judged, and the areas that they withhold."""
    rule = catalogue.rule
    held = {
        Rule.AREA_POPULATION: rule.area_population,
        Rule.SPARSITY: rule.sparsity,
        Rule.ATTRIBUTE: rule.attribute,
    }
    for one in (one for one, declared in held.items() if rule.place and declared is not None):
        yield phrase("Rules"), phrase("An area that {reason} is withheld.", reason=WORDS[one])
    for area in answer.blocked[:MOST_AREAS]:
        yield (
            phrase("Withheld"),
            phrase("{area} {reason}", area=f"{area.code} {area.label}", reason=WORDS[area.rule]),
        )
    if len(answer.blocked) > MOST_AREAS:
        yield phrase("Withheld"), phrase("{areas} areas in all", areas=len(answer.blocked))


def _again(answer: Answer, layout: Layout) -> Iterator[tuple[str, str]]:
    """How to get the table once more."""
    if layout.link:
        yield phrase("Permanent link"), layout.link
    yield phrase("Question"), json.dumps(to_json(answer.query), ensure_ascii=False)
