"""Answers as files: CSV, XLSX with notes, SDMX-CSV, Parquet; long, or as the table is laid out.

It owns columns and sheets; JSON-stat and PX have modules of their own, and nothing here changes a value.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import xlsxwriter
from numpy.typing import NDArray

from discreet.release.columns import LABEL_SUFFIX, VALUE
from discreet.release.sdmx_ids import code_ids, component_id, dataflow_id
from discreet.serve.answer import WITHHELD, Answer, AnswerAxis
from discreet.serve.catalogue import Catalogue
from discreet.serve.http.json_stat import dataset, label_of, notes
from discreet.serve.http.px_file import px_file

STATUS = "status"
CREATED = datetime(2000, 1, 1)  # noqa: DTZ001 - Excel knows no zones; fixed so that bytes depend on content alone
SHEET_ROWS, SHEET_COLUMNS = 1_048_576, 16_384  # what Excel holds
Cell = str | int | None


class Format(StrEnum):
    """What an answer can be downloaded as."""

    JSON_STAT = "json-stat"
    CSV = "csv"
    XLSX = "xlsx"
    PX = "px"
    PARQUET = "parquet"
    SDMX_CSV = "sdmx-csv"


class Texts(StrEnum):
    """How codes are shown."""

    CODES = "codes"
    LABELS = "labels"
    BOTH = "both"


@dataclass(frozen=True)
class Layout:
    """How a table is laid out: the variables of its columns (none: one line for each cell), and its texts."""

    columns: tuple[str, ...] = ()
    texts: Texts = Texts.BOTH
    separator: str = ","
    title: bool = False


@dataclass(frozen=True)
class File:
    """A finished file."""

    body: bytes
    media_type: str
    ending: str
    language: str = ""  # of the words in it, empty where it has none

    @cached_property
    def tag(self) -> str:
        """An entity tag: the same bytes have the same one."""
        return hashlib.blake2b(self.body, digest_size=16).hexdigest()


_MEDIA = {
    Format.JSON_STAT: ("application/json", "json"),
    Format.CSV: ("text/csv; charset=utf-8", "csv"),
    Format.XLSX: ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    Format.PX: ("application/octet-stream", "px"),
    Format.PARQUET: ("application/vnd.apache.parquet", "parquet"),
    Format.SDMX_CSV: ("application/vnd.sdmx.data+csv; version=2.0.0", "csv"),
}


def written(answer: Answer, form: Format, catalogue: Catalogue, layout: Layout | None = None) -> File:
    """An answer as a file of a format."""
    layout = layout or Layout()
    makers: Mapping[Format, Callable[[], bytes]] = {
        Format.JSON_STAT: lambda: dataset(answer, catalogue),
        Format.CSV: lambda: _csv(answer, catalogue, layout),
        Format.XLSX: lambda: _xlsx(answer, catalogue, layout),
        Format.PX: lambda: px_file(
            answer, catalogue, label_of(answer.query, catalogue.labels), layout.columns
        ),
        Format.PARQUET: lambda: _parquet(answer),
        Format.SDMX_CSV: lambda: _sdmx_csv(answer, catalogue),
    }
    media_type, ending = _MEDIA[form]
    return File(makers[form](), media_type, ending)


def arrow_table(answer: Answer, texts: Texts = Texts.BOTH) -> pa.Table:
    """One line for each cell: codes and labels of each axis, the value, and a status where it is withheld."""
    names: list[str] = []
    columns: list[pa.Array] = []
    for axis, places in zip(answer.axes, _places(answer.shape), strict=True):
        if texts is not Texts.LABELS:
            names.append(axis.variable)
            columns.append(_column(axis.codes, places))
        if texts is not Texts.CODES:
            names.append(axis.variable + LABEL_SUFFIX if texts is Texts.BOTH else axis.variable)
            columns.append(_column(axis.labels, places))
    columns.append(pa.array(answer.values, mask=answer.withheld))
    columns.append(_column(("", WITHHELD), answer.withheld.astype(np.int32)))
    return pa.table(columns, names=[*names, VALUE, STATUS])


def _places(shape: Sequence[int]) -> Iterator[NDArray[np.int32]]:
    """The place along each axis of every cell, last axis fastest."""
    size = prod(shape)
    for k, length in enumerate(shape):
        inner = prod(shape[k + 1 :])
        each = np.repeat(np.arange(length, dtype=np.int32), inner)
        yield np.tile(each, size // max(1, length * inner))


def _column(texts: Sequence[str], places: NDArray[np.int32]) -> pa.DictionaryArray:
    """Each text once in the dictionary: of repeated ones the Parquet writer would write whatever its memory held."""
    unique = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    place_of = np.array([unique[text] for text in texts], dtype=np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(place_of[places]), pa.array(list(unique), pa.string()))


def _csv(answer: Answer, catalogue: Catalogue, layout: Layout) -> bytes:
    if layout.columns or layout.title:
        return _csv_laid_out(answer, catalogue, layout)
    held = io.BytesIO()
    options = pa_csv.WriteOptions(delimiter=layout.separator, quoting_style="needed")
    table = arrow_table(answer, layout.texts)
    pa_csv.write_csv(table, held, options)
    return held.getvalue()


def _csv_laid_out(answer: Answer, catalogue: Catalogue, layout: Layout) -> bytes:
    held = io.StringIO(newline="")
    writer = csv.writer(held, delimiter=layout.separator, lineterminator="\n")
    if layout.title:
        writer.writerow([label_of(answer.query, catalogue.labels)])
    writer.writerows(laid_out(answer, layout))
    return held.getvalue().encode()


def laid_out(answer: Answer, layout: Layout) -> Iterator[list[Cell]]:
    """The lines of a table with some axes across: a line of headers for each, then one for each row."""
    across = [k for name in layout.columns for k, axis in enumerate(answer.axes) if axis.variable == name]
    down = [k for k in range(len(answer.axes)) if k not in across]
    cells = answer.values.astype(object)
    cells[answer.withheld] = None
    width = prod(answer.shape[k] for k in across)
    grid = cells.reshape(answer.shape).transpose([*down, *across]).reshape(-1, width)
    heads = [_shown(answer.axes[k], layout.texts) for k in down]
    for number, places in enumerate(_places([answer.shape[k] for k in across])):
        texts = _shown(answer.axes[across[number]], layout.texts)
        corner = [answer.axes[k].variable for k in down] if number == len(across) - 1 else [""] * len(down)
        yield [*corner, *(texts[place] for place in places.tolist())]
    if not across:
        yield [*(answer.axes[k].variable for k in down), VALUE]
    rows = zip(*(places.tolist() for places in _places([answer.shape[k] for k in down])), strict=True)
    for places_of_row, values in zip(rows if down else [()], grid.tolist(), strict=True):
        texts_of_row = [texts[place] for texts, place in zip(heads, places_of_row, strict=True)]
        yield [*texts_of_row, *values]


def _shown(axis: AnswerAxis, texts: Texts) -> tuple[str, ...]:
    if texts is Texts.CODES:
        return axis.codes
    if texts is Texts.LABELS:
        return axis.labels
    return tuple(
        code if code == label else f"{code} {label}"
        for code, label in zip(axis.codes, axis.labels, strict=True)
    )


def _parquet(answer: Answer) -> bytes:
    held = io.BytesIO()
    table = arrow_table(answer).replace_schema_metadata({"discreet.notes": "\n".join(notes(answer))})
    pq.write_table(table, held, compression="zstd", compression_level=1)
    return held.getvalue()


def _sdmx_csv(answer: Answer, catalogue: Catalogue) -> bytes:
    """SDMX-CSV 2.0; cells that are withheld have no value, OBS_STATUS Q (suppressed) and CONF_STATUS C."""
    size, flow = answer.size, f"{catalogue.agency}:{dataflow_id(answer.query.id)}({catalogue.version})"
    columns: dict[str, pa.Array] = {
        "STRUCTURE": pa.repeat("dataflow", size),
        "STRUCTURE_ID": pa.repeat(flow, size),
        "ACTION": pa.repeat("I", size),
    }
    for axis, places in zip(answer.axes, _places(answer.shape), strict=True):
        columns[component_id(axis.variable)] = pa.array(code_ids(axis.codes)).take(pa.array(places))
    withheld = answer.withheld
    columns["OBS_VALUE"] = pa.array(answer.values, mask=withheld)
    columns["OBS_STATUS"] = pa.array(np.where(withheld, "Q", "A"))
    columns["CONF_STATUS"] = pa.array(np.where(withheld, "C", "F"))
    held = io.BytesIO()
    pa_csv.write_csv(pa.table(columns), held, pa_csv.WriteOptions(quoting_style="needed"))
    return held.getvalue()


def _xlsx(answer: Answer, catalogue: Catalogue, layout: Layout) -> bytes:
    """A sheet of notes, then the table over as many sheets as it needs."""
    held = io.BytesIO()
    # Strings stay strings: a label that starts with "=" or "http" must not become a formula or a link.
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with xlsxwriter.Workbook(held, options) as book:
        book.set_properties({"title": label_of(answer.query, catalogue.labels), "created": CREATED})
        _notes_sheet(book, answer, catalogue)
        pivoted = layout.columns and _width(answer, layout) < SHEET_COLUMNS
        _data_sheets(book, laid_out(answer, layout) if pivoted else _long(answer, layout.texts))
    return held.getvalue()


def _long(answer: Answer, texts: Texts) -> Iterator[list[Cell]]:
    table = arrow_table(answer, texts)
    yield list(table.column_names)
    yield from map(list, zip(*(column.to_pylist() for column in table.columns), strict=True))


def _width(answer: Answer, layout: Layout) -> int:
    return len(answer.axes) + prod(len(axis) for axis in answer.axes if axis.variable in layout.columns)


def _notes_sheet(book: xlsxwriter.Workbook, answer: Answer, catalogue: Catalogue) -> None:
    sheet = book.add_worksheet("Notes")
    sheet.set_column(0, 0, 24)
    sheet.set_column(1, 1, 100, book.add_format({"text_wrap": True}))
    query, labels = answer.query, catalogue.labels
    lines = [
        ("Table", label_of(query, labels)),
        ("Source", f"{catalogue.heading} {catalogue.version}, {catalogue.agency}"),
        ("Counted", labels.counted(query.unit, query.count)),
        ("Population", query.where or "all"),
        ("Axes", ", ".join(labels.axis(axis.breakdown) for axis in answer.axes) or "none"),
        ("Totals", "The code _T means the total along a variable."),
        *(("Note", note) for note in notes(answer)),
        ("Empty cells", "are withheld."),
    ]
    for number, line in enumerate(lines):
        sheet.write_row(number, 0, line)


def _data_sheets(book: xlsxwriter.Workbook, lines: Iterator[list[Cell]]) -> None:
    sheet, row, number = book.add_worksheet("Data"), 0, 1
    for line in lines:
        if row == SHEET_ROWS:
            number += 1
            sheet, row = book.add_worksheet(f"Data {number}"), 0
        sheet.write_row(row, 0, line)
        row += 1
