"""Cubes as Excel workbooks with notes; it owns sheets and their limits, not the cells."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path

import pyarrow as pa
import xlsxwriter

from discreet.formats.columns import (
    ADDITIVITY,
    LABEL_SUFFIX,
    SAME_CELL,
    WEIGHTED,
    ZEROS,
    Publication,
    batches,
    published,
    schema,
)
from discreet.programme.cube import Cube
from discreet.programme.labels import Labels
from discreet.tabulate.tables import ProtectedTable

SHEET_ROWS = 1_048_576  # what Excel holds, the header included
CREATED = datetime(2000, 1, 1)  # noqa: DTZ001 - Excel knows no zones; fixed so that bytes depend on content alone
Row = tuple[str | int | float, ...]


def write_xlsx(table: ProtectedTable, path: Path, publication: Publication) -> None:
    """Write a sheet of notes, then the cells over as many sheets as they need."""
    _, values = published(table)
    sheets = max(1, -(-len(values) // (SHEET_ROWS - 1)))
    header = _header(schema(table.cube, pa.from_numpy_dtype(values.dtype)), publication.labels)
    # Strings stay strings: a label that starts with "=" or "http" must not become a formula or a link.
    options = {
        "constant_memory": True,
        "tmpdir": str(path.parent),
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "use_zip64": True,
    }
    with xlsxwriter.Workbook(str(path), options) as book:
        book.set_properties({"title": table.cube.title or table.cube.id, "created": CREATED})
        _write_notes(book, table.cube, publication)
        _write_rows(book, header, _rows(table), sheets)


def _write_notes(book: xlsxwriter.Workbook, cube: Cube, publication: Publication) -> None:
    sheet = book.add_worksheet("Notes")
    sheet.set_column(0, 0, 24)
    sheet.set_column(1, 1, 100, book.add_format({"text_wrap": True}))
    for number, line in enumerate(notes(cube, publication)):
        sheet.write_row(number, 0, line)


def notes(cube: Cube, publication: Publication) -> tuple[tuple[str, str], ...]:
    """What a user of the workbook must know, as pairs of heading and text."""
    return (
        ("Table", f"{cube.id}: {cube.title}" if cube.title else cube.id),
        ("Release", publication.title or publication.name),
        ("Counted", publication.labels.counted(cube.unit, cube.count)),
        ("Population base", cube.base.text if cube.base else "all"),
        ("Weight", f"{cube.weight}. {WEIGHTED}" if cube.weight else "none"),
        ("Axes", ", ".join(publication.labels.axis(axis.full_name) for axis in cube.axes)),
        ("Totals", "The code _T means the total along a variable."),
        ("Why totals may differ", ADDITIVITY),
        ("Zeros", ZEROS),
        ("Other tables", SAME_CELL),
        ("Noise", publication.noise.sentence()),
    )


def _header(columns: pa.Schema, labels: Labels) -> tuple[str, ...]:
    """The names of the columns; beside the codes of a variable that has a label stands that."""
    shown = {name + LABEL_SUFFIX: label for name, label in labels.variables.items()}
    return tuple(shown.get(name, name) for name in columns.names)


def _rows(table: ProtectedTable) -> Iterator[Row]:
    for batch in batches(table):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _write_rows(book: xlsxwriter.Workbook, header: Row, rows: Iterator[Row], sheets: int) -> None:
    bold = book.add_format({"bold": True})
    for number in range(1, sheets + 1):
        sheet = book.add_worksheet("Data" if number == 1 else f"Data {number}")
        sheet.freeze_panes(1, 0)
        sheet.write_row(0, 0, header, bold)
        for line, row in enumerate(islice(rows, SHEET_ROWS - 1), start=1):
            sheet.write_row(line, 0, row)
