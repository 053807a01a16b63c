"""Answers as files: which formats there are, and their media types."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import Any, BinaryIO, Concatenate, ParamSpec

from discreet.formats.columns import CODES_AND_LABELS
from discreet.formats.csv import harmless, write_csv, write_lines
from discreet.formats.dataset import Dataset
from discreet.formats.parquet import write_parquet
from discreet.formats.px import MEDIA_TYPE, write_px
from discreet.formats.sdmx_data import write_csv_file
from discreet.formats.xlsx import Cell
from discreet.serve.answer import Answer
from discreet.serve.cache import LruCache
from discreet.serve.catalogue import Catalogue
from discreet.serve.dataset import dataset_of
from discreet.serve.http.json_stat import json_stat
from discreet.serve.http.layout import NO_PERCENT, Layout, check, laid_out, long_form, with_ranges
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.workbook import workbook
from discreet.serve.query import Query


class Format(StrEnum):
    """The format of a downloaded answer."""

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
    language: str = ""  # of its texts, empty where it has none

    @cached_property
    def tag(self) -> str:
        """An entity tag: the same bytes have the same one."""
        return hashlib.blake2b(self.body, digest_size=16).hexdigest()


FILE_OVERHEAD = 2_000  # bytes of a key and of its entries
LARGEST_SHARE = 8  # a file above this fraction of the cache is not cached
FileCache = LruCache[Hashable, File]


def file_cache(most_bytes: int) -> FileCache:
    """A cache of finished files."""
    return LruCache(most_bytes, lambda file: len(file.body) + FILE_OVERHEAD, largest_share=LARGEST_SHARE)


_MEDIA = {
    Format.JSON_STAT: ("application/json", "json"),
    Format.CSV: ("text/csv; charset=utf-8", "csv"),
    Format.XLSX: ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    Format.PX: (MEDIA_TYPE, "px"),
    Format.PARQUET: ("application/vnd.apache.parquet", "parquet"),
    Format.SDMX_CSV: ("application/vnd.sdmx.data+csv; version=2.0.0", "csv"),
}
TABLES: dict[int | str, dict[str, Any]] = {  # of tables, for the description of the API
    200: {
        "description": "A protected table.",
        "content": {media_type.partition(";")[0]: {} for media_type, _ in _MEDIA.values()},
    }
}


def media_type(form: Format) -> str:
    """The media type of a format."""
    return _MEDIA[form][0]


def written(answer: Answer, form: Format, catalogue: Catalogue, layout: Layout | None = None) -> File:
    """An answer as a file of a format; a layout that it cannot have is a problem."""
    layout = layout or Layout()
    require_form(answer.query, form, layout)
    makers: Mapping[Format, Callable[[], bytes]] = {
        Format.JSON_STAT: lambda: json_stat(answer, catalogue),
        Format.CSV: lambda: _csv(answer, catalogue, layout),
        Format.XLSX: lambda: workbook(answer, catalogue, layout),
        Format.PX: lambda: bytes_of(write_px, dataset_of(answer, catalogue), layout.columns),
        Format.PARQUET: lambda: _parquet(answer, catalogue),
        Format.SDMX_CSV: lambda: bytes_of(write_csv_file, dataset_of(answer, catalogue)),
    }
    media, ending = _MEDIA[form]
    return File(makers[form](), media, ending)


def require_form(query: Query, form: Format, layout: Layout) -> None:
    """Raise a problem where no answer to a question can have this form; call it before charging."""
    if form in LAID_OUT:
        check(query, layout)
    elif layout.percent is not None:
        raise HttpProblem(400, NO_PERCENT, kind="layout")


def _csv(answer: Answer, catalogue: Catalogue, layout: Layout) -> bytes:
    dataset = dataset_of(answer, catalogue)
    if not layout.columns and not layout.title:
        columns = long_form(dataset, layout, harmless)
        columns = columns if layout.is_bare else with_ranges(columns, answer)
        return bytes_of(write_csv, dataset, columns, layout.separator)
    title: list[list[Cell]] = [[dataset.title]] if layout.title else []
    lines = (
        [harmless(cell) if isinstance(cell, str) else cell for cell in line]
        for line in chain(title, laid_out(dataset, layout))
    )
    file = io.BytesIO()
    write_lines(lines, file, layout.separator)
    return file.getvalue()


def _parquet(answer: Answer, catalogue: Catalogue) -> bytes:
    dataset = dataset_of(answer, catalogue)
    noted = replace(dataset, facts={"notes": "\n".join(dataset.all_notes)})
    return bytes_of(write_parquet, noted, with_ranges(CODES_AND_LABELS, answer))


P = ParamSpec("P")


def bytes_of(
    write: Callable[Concatenate[Dataset, BinaryIO, P], None],
    dataset: Dataset,
    *args: P.args,
    **named: P.kwargs,
) -> bytes:
    """What a writer writes."""
    file = io.BytesIO()
    write(dataset, file, *args, **named)
    return file.getvalue()
