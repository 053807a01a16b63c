"""Datasets as JSON-stat 2.0 (https://json-stat.org/full/): null and a status where a cell is withheld."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from discreet.formats.columns import ROWS_AT_ONCE
from discreet.formats.dataset import WITHHELD, Dataset, Sink, Values, opened

DENSE_SHARE = 0.5  # a cell's key costs about as much as a few zeros
_EXTENSION = ("cube", "unit", "base", "published")  # facts that a release's dataset repeats


def write_json_stat(dataset: Dataset, sink: Sink, head: Mapping[str, Any] | None = None) -> None:
    """Write one dataset: values as a list where half the cells are listed, else by position."""
    with opened(sink) as file:
        file.write(_encoded(dataset_head(dataset) if head is None else head)[:-1] + b',"value":')
        if len(dataset.values) >= DENSE_SHARE * dataset.size:
            _write_joined(file, b"[]", _dense(dataset))
        else:
            _write_joined(file, b"{}", _sparse(dataset))
        if dataset.missing:
            file.write(b',"status":' + _encoded(dict.fromkeys(map(str, dataset.missing), WITHHELD)))
        file.write(b"}\n")


def dataset_head(dataset: Dataset) -> dict[str, Any]:
    """All of a dataset but its values."""
    return head(
        label=dataset.title,
        source=dataset.source,
        notes=dataset.all_notes,
        dimensions={
            axis.variable: dimension(
                axis.label, axis.codes, axis.labels, axis.parents, axis.notes, axis.code_notes
            )
            for axis in dataset.axes
        },
        sizes=dataset.shape,
        extension={name: dataset.facts[name] for name in _EXTENSION if name in dataset.facts},
        places=[axis.variable for axis in dataset.axes if axis.is_place],
    )


def head(
    *,
    label: str,
    source: str,
    notes: Iterable[str],
    dimensions: Mapping[str, Any],
    sizes: Iterable[int],
    extension: Mapping[str, Any],
    places: Iterable[str],
) -> dict[str, Any]:
    """The parts in the order in which they are written; dimensions may be JSON already (see ``fragment``)."""
    parts: dict[str, Any] = {
        "version": "2.0",
        "class": "dataset",
        "label": label,
        "source": source,
        "note": list(notes),
        "id": list(dimensions),
        "size": list(sizes),
        "dimension": dict(dimensions),
        "extension": dict(extension),
    }
    geo = list(places)
    return {**parts, "role": {"geo": geo}} if geo else parts


NO_NOTES: Mapping[str, str] = {}


def dimension(
    label: str,
    codes: tuple[str, ...],
    labels: tuple[str, ...],
    parents: tuple[str, ...],
    notes: tuple[str, ...] = (),
    code_notes: Mapping[str, str] = NO_NOTES,
) -> dict[str, Any]:
    """A dimension: its codes in order, their labels and, where there are any, the children of each, and notes."""
    children: dict[str, list[str]] = {}
    for code, parent in zip(codes, parents, strict=True):
        if parent:
            children.setdefault(parent, []).append(code)
    category: dict[str, Any] = {"index": list(codes), "label": dict(zip(codes, labels, strict=True))}
    if children:
        category["child"] = children
    if code_notes:
        category["note"] = {code: [text] for code, text in code_notes.items()}
    return {"label": label, **({"note": list(notes)} if notes else {}), "category": category}


def _sparse(dataset: Dataset) -> Iterator[bytes]:
    cells = np.arange(dataset.size) if dataset.cells is None else dataset.cells
    for start in range(0, len(cells), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        yield _joined(
            pc.binary_join_element_wise('"', _text(cells[part]), '":', _text(dataset.values[part]), "")
        )


def _dense(dataset: Dataset) -> Iterator[bytes]:
    is_whole = dataset.part is None and not dataset.missing
    for start in range(0, dataset.size, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, dataset.size)
        values = dataset.window(start, stop)
        missing = [] if is_whole else _unseen(dataset, start, stop)
        if missing:
            listed: list[Any] = values.tolist()
            for cell in missing:
                listed[cell] = None
            yield _encoded(listed)[1:-1]
        elif values.dtype.kind == "i":
            yield _encoded(values)[1:-1]
        else:
            yield _joined(_text(values))


def _unseen(dataset: Dataset, start: int, stop: int) -> list[int]:
    """Which of some cells are withheld or not published."""
    unseen = dataset.absent(start, stop)
    if dataset.withheld is not None:
        unseen |= dataset.withheld[start:stop]
    found: list[int] = np.flatnonzero(unseen).tolist()
    return found


def fragment(value: Any) -> orjson.Fragment:
    """JSON that is made once and written many times."""
    return orjson.Fragment(_encoded(value))


def _encoded(value: Any) -> bytes:
    """JSON of a value made in this module, so that its numbers fit into 64 bits and its texts into UTF-8."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def _text(numbers: Values) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _joined(texts: pa.Array) -> bytes:
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    text: str = pc.binary_join(whole, ",")[0].as_py()
    return text.encode()


def _write_joined(file: BinaryIO, brackets: bytes, parts: Iterator[bytes]) -> None:
    file.write(brackets[:1])
    file.writelines((b"," if number else b"") + part for number, part in enumerate(parts))
    file.write(brackets[1:])
