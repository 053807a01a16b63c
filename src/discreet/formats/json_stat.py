"""Cubes as JSON-stat 2.0 datasets; it owns that format's words, not the cells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.formats.columns import ADDITIVITY, ROWS_AT_ONCE, ZEROS, Publication, published
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.labels import Labels
from discreet.tabulate.tables import ProtectedTable

DENSE_SHARE = 0.5  # a cell's key costs about as much as a few zeros
Values = NDArray[Any]  # int64 counts, or float64 estimates


def write_json_stat(table: ProtectedTable, path: Path, publication: Publication) -> None:
    """Write one dataset: values as a list where half the cells are filled, else by position."""
    cells, values = published(table)
    head = json.dumps(dataset_head(table.cube, publication), ensure_ascii=False, separators=(",", ":"))
    with path.open("w", encoding="utf-8") as file:
        file.write(head[:-1] + ',"value":')
        if len(cells) >= DENSE_SHARE * table.cube.size:
            _write_joined(file, "[]", _dense(table.cube.size, cells, values))
        else:
            _write_joined(file, "{}", _sparse(cells, values))
        file.write("}\n")


def dataset_head(cube: Cube, publication: Publication) -> dict[str, object]:
    """All of the dataset but its values."""
    variables = [axis.variable for axis in cube.axes]
    places = [variable for variable in variables if variable in publication.geography]
    head: dict[str, object] = {
        "version": "2.0",
        "class": "dataset",
        "label": cube.title or f"{publication.name}: {cube.id}",
        "source": publication.title or publication.name,
        "note": [ADDITIVITY, ZEROS, publication.noise.sentence()],
        "id": variables,
        "size": list(cube.shape),
        "dimension": {axis.variable: _dimension(axis, publication.labels) for axis in cube.axes},
        "extension": {"cube": cube.id, "unit": cube.unit, "base": cube.base.text if cube.base else ""},
    }
    return {**head, "role": {"geo": places}} if places else head


def _dimension(axis: Breakdown, labels: Labels) -> dict[str, object]:
    children: dict[str, list[str]] = {}
    for node in range(1, len(axis)):
        children.setdefault(axis.codes[axis.parents[node]], []).append(axis.codes[node])
    category = {"index": list(axis.codes), "label": dict(zip(axis.codes, axis.labels, strict=True))}
    label = labels.axis(axis.full_name)
    return {"label": label, "category": {**category, "child": children} if children else category}


def _sparse(cells: NDArray[np.int64], values: Values) -> Iterator[pa.Array]:
    for start in range(0, len(cells), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        yield pc.binary_join_element_wise('"', _text(cells[part]), '":', _text(values[part]), "")


def _dense(size: int, cells: NDArray[np.int64], values: Values) -> Iterator[pa.Array]:
    for start in range(0, size, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, size)
        first, last = np.searchsorted(cells, (start, stop))
        filled = np.zeros(stop - start, dtype=values.dtype)
        filled[cells[first:last] - start] = values[first:last]
        yield _text(filled)


def _text(numbers: Values) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _write_joined(file: IO[str], brackets: str, parts: Iterator[pa.Array]) -> None:
    file.write(brackets[0])
    for number, part in enumerate(parts):
        whole = pa.ListArray.from_arrays(pa.array([0, len(part)], pa.int32()), part)
        file.write(("," if number else "") + pc.binary_join(whole, ",")[0].as_py())
    file.write(brackets[1])
