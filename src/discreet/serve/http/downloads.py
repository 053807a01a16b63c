"""Answers as files: which formats there are, and the writers of CSV, SDMX-CSV and Parquet.

JSON-stat, PX and workbooks have modules of their own, and so has the layout; nothing here changes a value.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from discreet.formats.sdmx import PUBLISHED, SUPPRESSED, code_ids, component_id, dataflow_id
from discreet.serve.answer import Answer
from discreet.serve.catalogue import Catalogue
from discreet.serve.http.json_stat import dataset, notes, title_in
from discreet.serve.http.layout import NO_PERCENT, Layout, arrow_table, check, harmless, laid_out, places_of
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.px_file import MEDIA_TYPE, Named, px_file
from discreet.serve.http.workbook import workbook
from discreet.serve.query import Query


class Format(StrEnum):
    """What an answer can be downloaded as."""

    JSON_STAT = "json-stat"
    CSV = "csv"
    XLSX = "xlsx"
    PX = "px"
    PARQUET = "parquet"
    SDMX_CSV = "sdmx-csv"


LAID_OUT = (Format.CSV, Format.XLSX)  # formats that take a layout


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
    Format.PX: (MEDIA_TYPE, "px"),
    Format.PARQUET: ("application/vnd.apache.parquet", "parquet"),
    Format.SDMX_CSV: ("application/vnd.sdmx.data+csv; version=2.0.0", "csv"),
}
TABLES: dict[int | str, dict[str, Any]] = {  # how the description of the API tells what a table comes as
    200: {
        "description": "A protected table.",
        "content": {media_type.partition(";")[0]: {} for media_type, _ in _MEDIA.values()},
    }
}


def written(answer: Answer, form: Format, catalogue: Catalogue, layout: Layout | None = None) -> File:
    """An answer as a file of a format; a layout that it cannot have is a problem."""
    layout = layout or Layout()
    require_form(answer.query, form, layout)
    makers: Mapping[Format, Callable[[], bytes]] = {
        Format.JSON_STAT: lambda: dataset(answer, catalogue),
        Format.CSV: lambda: _csv(answer, catalogue, layout),
        Format.XLSX: lambda: workbook(answer, catalogue, layout),
        Format.PX: lambda: px_file(
            answer, catalogue, Named(title_in(answer, catalogue.labels)), layout.columns
        ),
        Format.PARQUET: lambda: _parquet(answer),
        Format.SDMX_CSV: lambda: _sdmx_csv(answer, catalogue),
    }
    media_type, ending = _MEDIA[form]
    return File(makers[form](), media_type, ending)


def require_form(query: Query, form: Format, layout: Layout) -> None:
    """Raise the problem that no answer to a question can have this form; best before it is charged for."""
    if form in LAID_OUT:
        check(query, layout)
    elif layout.percent is not None:
        raise HttpProblem(400, NO_PERCENT, kind="layout")


def _csv(answer: Answer, catalogue: Catalogue, layout: Layout) -> bytes:
    if layout.columns or layout.title:
        return _csv_laid_out(answer, catalogue, layout)
    held = io.BytesIO()
    options = pa_csv.WriteOptions(delimiter=layout.separator, quoting_style="needed")
    pa_csv.write_csv(arrow_table(answer, layout, harmless), held, options)
    return held.getvalue()


def _csv_laid_out(answer: Answer, catalogue: Catalogue, layout: Layout) -> bytes:
    held = io.StringIO(newline="")
    writer = csv.writer(held, delimiter=layout.separator, lineterminator="\n")
    if layout.title:
        writer.writerow([harmless(title_in(answer, catalogue.labels))])
    for line in laid_out(answer, layout):
        writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in line])
    return held.getvalue().encode()


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
    for axis, places in zip(answer.axes, places_of(answer.shape), strict=True):
        columns[component_id(axis.variable)] = pa.array(code_ids(axis.codes)).take(pa.array(places))
    withheld = answer.withheld
    columns["OBS_VALUE"] = pa.array(answer.values, mask=withheld)
    for name in PUBLISHED:
        columns[name] = pa.array(np.where(withheld, SUPPRESSED[name], PUBLISHED[name]))
    held = io.BytesIO()
    pa_csv.write_csv(pa.table(columns), held, pa_csv.WriteOptions(quoting_style="needed"))
    return held.getvalue()
