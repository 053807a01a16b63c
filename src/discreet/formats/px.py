"""Datasets as PX files (PC-Axis and PxWeb; https://www.scb.se/px-en, AXIS-VERSION 2013) and as the JSON of PxWeb 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import orjson

from discreet.formats.columns import ROWS_AT_ONCE
from discreet.formats.dataset import DECIMALS, NO_COLUMN, Dataset, DatasetAxis, Sink, opened
from discreet.programme.codelist import TOTAL
from discreet.text.phrase import phrase, said

LONGEST = 250  # characters of a line
MEDIA_TYPE = "application/octet-stream"
WITHHELD_SYMBOL = ".."  # the usual symbol for a number that may not be shown; DATASYMBOL2 names it
ABSENT_SYMBOL = "."  # of a cell that is not published; DATASYMBOL1 names it
CONTENTS = "contents"


def write_px(dataset: Dataset, sink: Sink, columns: Sequence[str] = ()) -> None:
    """Write every cell, zeros too: some variables in the heading, or the last, and the others in the stub."""
    axes = dataset.axes or (_counted(dataset),)
    across = _across(axes, columns)
    order = (*(place for place in range(len(axes)) if place not in across), *across)
    whole = replace(dataset, axes=axes)
    if order != tuple(range(len(axes))):
        whole = whole.transposed(order)
    with opened(sink) as file:
        file.write(("\n".join(_keywords(whole, len(across))) + "\nDATA=\n").encode())
        file.writelines(_data(whole, len(across)))


def _keywords(dataset: Dataset, across: int) -> Iterator[str]:
    """The keywords in the order that the description of the format recommends."""
    names = _names(dataset.axes)
    decimals = 0 if dataset.values.dtype.kind == "i" else DECIMALS
    yield 'CHARSET="ANSI";\nAXIS-VERSION="2013";\nCODEPAGE="utf-8";'
    if dataset.language_tag:
        yield _keyword("LANGUAGE", dataset.language_tag)
    if dataset.table:
        yield _keyword("TABLEID", dataset.table)
    yield f"DECIMALS={decimals};\nSHOWDECIMALS={decimals};"
    yield _keyword("MATRIX", dataset.table or dataset.id[:20])
    yield "AGGREGALLOWED=NO;"
    yield _keyword("SUBJECT-CODE", dataset.agency)
    yield _keyword("SUBJECT-AREA", dataset.source)
    yield "COPYRIGHT=NO;"
    yield _keyword("DESCRIPTION", dataset.title)
    yield _keyword("TITLE", dataset.title)
    yield "DESCRIPTIONDEFAULT=YES;"
    yield _keyword("CONTENTS", dataset.counted)
    yield _keyword("UNITS", dataset.unit)
    if names[:-across]:
        yield _listed("STUB", names[:-across])
    yield _listed("HEADING", names[-across:])
    yield from _variables(dataset.axes, names)
    yield _keyword("SOURCE", f"{dataset.source} {dataset.version}")
    yield _keyword("NOTEX", " ".join(dataset.notes))
    if dataset.part is not None:
        yield _keyword("DATASYMBOL1", said(phrase("not published"), dataset.language))
    if dataset.withheld is not None:
        yield _keyword("DATASYMBOL2", said(phrase("withheld"), dataset.language))


def _across(axes: Sequence[DatasetAxis], columns: Sequence[str]) -> list[int]:
    places = {axis.variable: place for place, axis in enumerate(axes)}
    return [places[name] for name in columns if name in places] or [len(axes) - 1]


def _names(axes: Sequence[DatasetAxis]) -> list[str]:
    """Names of the variables; with their codes where two are equal, since PX identifies variables by name."""
    names = [_plain(axis.name) for axis in axes]
    return [
        name if names.count(name) == 1 else f"{name} ({axis.variable})"
        for name, axis in zip(names, axes, strict=True)
    ]


def _counted(dataset: Dataset) -> DatasetAxis:
    """The axis of a table without any: a PX file has at least one."""
    return DatasetAxis(
        variable=CONTENTS,
        name=CONTENTS,
        label=CONTENTS,
        codes=(NO_COLUMN,),
        labels=(dataset.unit,),
        parents=("",),
    )


def _variables(axes: Sequence[DatasetAxis], names: Sequence[str]) -> Iterator[str]:
    """The keywords of each variable."""
    both = list(zip(axes, names, strict=True))
    yield from (_listed(f'VALUES("{name}")', _distinct(axis)) for axis, name in both)
    yield from (_listed(f'CODES("{name}")', axis.codes) for axis, name in both)
    yield from (_keyword(f'VARIABLECODE("{name}")', axis.variable) for axis, name in both)
    yield from (f'VARIABLE-TYPE("{name}")="G";' for axis, name in both if axis.is_place)
    yield from (_keyword(f'NOTE("{name}")', " ".join(axis.notes)) for axis, name in both if axis.notes)
    for axis, name in both:
        texts = dict(zip(axis.codes, _distinct(axis), strict=True)) if axis.code_notes else {}
        for code, note in axis.code_notes.items():
            yield _keyword(f'VALUENOTE("{name}","{_plain(texts[code])}")', note)
    for axis, name in both:
        if TOTAL in axis.codes:
            yield _listed(f'ELIMINATION("{name}")', [_distinct(axis)[axis.codes.index(TOTAL)]])


def _distinct(axis: DatasetAxis) -> Sequence[str]:
    """The labels; with their codes where two are equal, since PX identifies values by their texts."""
    if len(set(axis.labels)) == len(axis.labels):
        return axis.labels
    return [f"{code} {label}" for code, label in zip(axis.codes, axis.labels, strict=True)]


def _data(dataset: Dataset, across: int) -> Iterator[bytes]:
    """A line for each row of the stub, with a space at its end; a bounded number of cells at a time.

    orjson writes a grid as ``[[1,2],[3,4]]``, which is PX except for brackets and commas.
    """
    width = prod(dataset.shape[-across:])
    step = max(1, ROWS_AT_ONCE // width) * width
    hidden = dataset.hidden if dataset.withheld is not None else None
    for start in range(0, dataset.size, step):
        stop = min(start + step, dataset.size)
        cells = dataset.window(start, stop)
        absent = dataset.absent(start, stop)
        if absent.any() or (hidden is not None and hidden[start:stop].any()):
            cells = cells.astype(object)
            cells[absent] = ABSENT_SYMBOL
            if hidden is not None:
                cells[hidden[start:stop]] = WITHHELD_SYMBOL
        grid: Any = np.ascontiguousarray(cells).reshape(-1, width)
        rows = orjson.dumps(
            grid if grid.dtype != object else grid.tolist(), option=orjson.OPT_SERIALIZE_NUMPY
        )
        text = rows[2:-2].replace(b"],[", b" \n").replace(b",", b" ")
        yield text + (b";\n" if stop == dataset.size else b" \n")


def _keyword(name: str, text: str) -> str:
    """A text, over several lines where it is long; it must not contain double quotes."""
    plain = _plain(text)
    room = LONGEST - len(name) - 4
    parts = [plain[start : start + room] for start in range(0, len(plain), room)] or [""]
    return f"{name}=" + "\n".join(f'"{part}"' for part in parts) + ";"


def _listed(name: str, texts: Iterable[str]) -> str:
    return f"{name}=" + ",\n".join(_short_lines(f'"{_plain(text)}"' for text in texts)) + ";"


def _short_lines(items: Iterable[str]) -> Iterator[str]:
    line = ""
    for item in items:
        if line and len(line) + len(item) > LONGEST // 2:
            yield line
            line = ""
        line = f"{line},{item}" if line else item
    yield line


def _plain(text: str) -> str:
    return text.replace('"', "'").replace("\r", " ").replace("\n", " ")


DIMENSION, CONTENT = "d", "c"


def json_px(dataset: Dataset) -> bytes:
    """A dataset, its values as texts, as PxWebApi 1 has always written them."""
    columns = [{"code": axis.variable, "text": axis.label, "type": DIMENSION} for axis in dataset.axes]
    counted = {
        "code": dataset.contents,
        "text": dataset.counted,
        "comment": " ".join(dataset.all_notes),
        "type": CONTENT,
    }
    keys = product(*(axis.codes for axis in dataset.axes))
    shown = zip(dataset.window(0, dataset.size).tolist(), dataset.hidden.tolist(), strict=True)
    values = (WITHHELD_SYMBOL if withheld else str(value) for value, withheld in shown)
    content = {
        "columns": [*columns, counted],
        "comments": [],
        "data": [{"key": key, "values": [value]} for key, value in zip(keys, values, strict=True)],
        "metadata": [{"infofile": "", "updated": "", "label": dataset.title, "source": dataset.source}],
    }
    return orjson.dumps(content)
