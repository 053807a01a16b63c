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

import numpy as np
from numpy.typing import NDArray

from discreet.formats.csv import harmless, write_csv, write_lines
from discreet.formats.dataset import VALUE, Dataset, DatasetAxis
from discreet.formats.parquet import write_parquet
from discreet.formats.px import MEDIA_TYPE, write_px
from discreet.formats.sdmx_data import write_csv_file
from discreet.formats.sdmx_ids import BOUNDS
from discreet.formats.xlsx import Cell
from discreet.serve.answer import Answer
from discreet.serve.cache import LruCache
from discreet.serve.catalogue import Catalogue
from discreet.serve.dataset import dataset_of
from discreet.serve.http.json_stat import CONTENTS, CONTENTS_LABEL, json_stat
from discreet.serve.http.layout import HIGH, LEVEL, LOW, NO_PERCENT, Layout, check, laid_out, long_form
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.workbook import workbook
from discreet.serve.query import Query
from discreet.text.phrase import phrase, said


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
        Format.JSON_STAT: lambda: json_stat(answer, catalogue, _limits(answer, layout)),
        Format.CSV: lambda: _csv(answer, catalogue, layout),
        Format.XLSX: lambda: workbook(answer, catalogue, layout),
        Format.PX: lambda: _px(answer, catalogue, layout),
        Format.PARQUET: lambda: _parquet(answer, catalogue),
        Format.SDMX_CSV: lambda: bytes_of(
            write_csv_file,
            dataset_of(answer, catalogue),
            dict(zip(BOUNDS, _limits(answer, layout).values(), strict=False)),
        ),
    }
    media, ending = _MEDIA[form]
    return File(makers[form](), media, ending)


def require_form(query: Query, form: Format, layout: Layout) -> None:
    """Raise a problem where no answer to a question can have this form; call it before charging."""
    if form in LAID_OUT:
        check(query, layout)
    elif layout.computed:
        raise HttpProblem(400, NO_PERCENT, kind="layout")


def _csv(answer: Answer, catalogue: Catalogue, layout: Layout) -> bytes:
    dataset = dataset_of(answer, catalogue)
    if not layout.columns and not layout.title and layout.lines is None:
        columns = long_form(answer, dataset, layout, harmless)
        return bytes_of(write_csv, dataset, columns, layout.separator)
    title: list[list[Cell]] = [[dataset.title]] if layout.title else []
    lines = (
        [harmless(cell) if isinstance(cell, str) else cell for cell in line]
        for line in chain(title, laid_out(answer, dataset, layout))
    )
    file = io.BytesIO()
    write_lines(lines, file, layout.separator)
    return file.getvalue()


def _limits(answer: Answer, layout: Layout) -> dict[str, NDArray[np.float64]]:
    """Where the true counts are, by name; nothing where it was not requested or is not public."""
    if not layout.ranges:
        return {}
    low, high = answer.intervals(LEVEL)
    return {} if np.isnan(low).all() else {LOW: low, HIGH: high}


def _px(answer: Answer, catalogue: Catalogue, layout: Layout) -> bytes:
    """A PX file; ranges are codes of a variable of their own, since a cell of the format is one number."""
    dataset = dataset_of(answer, catalogue)
    limits = _limits(answer, layout)
    if not limits:
        return bytes_of(write_px, dataset, layout.columns)
    names = {VALUE: phrase("published"), LOW: phrase("from (95%)"), HIGH: phrase("to (95%)")}
    axis = DatasetAxis(
        variable=CONTENTS,
        name=said(CONTENTS_LABEL, answer.language),
        label=said(CONTENTS_LABEL, answer.language),
        codes=tuple(names),
        labels=tuple(said(one, answer.language) for one in names.values()),
        parents=("",) * len(names),
    )
    values = np.stack([dataset.values.astype(np.float64), *limits.values()], axis=-1).reshape(-1)
    hidden = np.repeat(dataset.hidden, len(names)) | np.isnan(values)
    whole = replace(
        dataset,
        axes=(*dataset.axes, axis),
        values=np.where(hidden, 0, values).astype(np.int64),
        withheld=hidden,
    )
    return bytes_of(write_px, whole, (*layout.columns, CONTENTS))


def _parquet(answer: Answer, catalogue: Catalogue) -> bytes:
    dataset = dataset_of(answer, catalogue)
    noted = replace(dataset, facts={"notes": "\n".join(dataset.all_notes)})
    return bytes_of(write_parquet, noted, long_form(answer, dataset, Layout()))


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
