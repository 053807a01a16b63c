"""Published cells as Arrow columns in long form, and what a release's files repeat about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.perturb.noise import Noise
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.labels import NO_LABELS, Labels
from discreet.tabulate.tables import ProtectedTable
from discreet.text.phrase import phrase

ADDITIVITY = phrase(
    "Each count is perturbed on its own, totals and sub-totals included. A total may therefore differ a little "
    "from the sum of its parts. Use the published total; do not add up its parts to get a better one."
)
ZEROS = (
    "Cells that are not listed are zero: nobody was counted there, or the perturbation made the count zero."
)
WEIGHTED = "A weighted value is the perturbed count of the cell times the mean weight of its records, to one decimal."
SAME_CELL = "The same group has the same published count in every table."

SWAPPED = phrase(
    "Before anything was counted, some households exchanged their places with similar households elsewhere. A count "
    "of a small area may hold people from another one; which were exchanged is kept secret."
)


@dataclass(frozen=True)
class Publication:
    """A release's name, its SDMX maintenance agency and version, its noise, its geography and labels."""

    name: str
    agency: str  # an SDMX agency id, such as "ESTAT"
    version: str  # a semantic version, such as "1.0.0"
    noise: Noise  # what the public may know of it
    title: str = ""
    geography: frozenset[str] = frozenset({"GEO"})  # variables that are places
    swapped: bool = False  # whether households exchanged their places
    labels: Labels = NO_LABELS


VALUE = "value"
LABEL_SUFFIX = "_label"
ROWS_AT_ONCE = 1 << 20
DECIMALS = 1  # of a weighted estimate


def published(table: ProtectedTable) -> tuple[NDArray[np.int64], NDArray[np.int64] | NDArray[np.float64]]:
    """Cells and the values that go into the files: counts, or weighted estimates where the cube has a weight.

    An estimate that rounds to zero is left out like any other zero.
    """
    if table.weighted is None:
        return table.cells, table.values
    estimates = np.round(table.weighted, DECIMALS)
    shown = estimates != 0
    return table.cells[shown], estimates[shown]


def schema(cube: Cube, value_type: pa.DataType, *, labels: bool = True) -> pa.Schema:
    """The columns of a cube: codes (and labels) of each axis, then the value."""
    text = pa.dictionary(pa.int32(), pa.string())
    names = [name for axis in cube.axes for name in _column_names(axis, labels=labels)]
    if len({*names, VALUE}) != len(names) + 1:
        raise mistake(
            "", f"cube {cube.id}", f"columns {names}", f"rename a variable: columns and {VALUE!r} must differ"
        )
    return pa.schema([*(pa.field(name, text) for name in names), pa.field(VALUE, value_type)])


def batches(table: ProtectedTable, *, labels: bool = True) -> Iterator[pa.RecordBatch]:
    """The published cells, a bounded number of rows at a time."""
    cells, values = published(table)
    columns = schema(table.cube, pa.from_numpy_dtype(values.dtype), labels=labels)
    texts = [_dictionaries(axis, labels=labels) for axis in table.cube.axes]
    for start in range(0, len(cells), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        arrays = [
            text.column(nodes)
            for nodes, axis_texts in zip(axis_nodes(table.cube, cells[part]), texts, strict=True)
            for text in axis_texts
        ]
        yield pa.RecordBatch.from_arrays([*arrays, pa.array(values[part])], schema=columns)


def axis_nodes(cube: Cube, cells: NDArray[np.int64]) -> Iterator[NDArray[np.int32]]:
    """The node of each cell along each axis in turn, by one division per axis."""
    rest = cells
    for stride in cube.strides:
        nodes = rest // stride
        rest = rest - nodes * stride
        yield nodes.astype(np.int32)


@dataclass(frozen=True, eq=False)
class _Dictionary:
    """Texts of nodes, each text once: of a dictionary with repeated texts the Parquet writer fills part of the
    page with whatever its memory held, so that bytes differ from run to run and tell what they must not."""

    texts: pa.Array
    place_of_node: NDArray[np.int32] | None = None  # None: the node itself

    def column(self, nodes: NDArray[np.int32]) -> pa.DictionaryArray:
        places = nodes if self.place_of_node is None else self.place_of_node[nodes]
        return pa.DictionaryArray.from_arrays(places, self.texts, safe=False)


def _column_names(axis: Breakdown, *, labels: bool) -> tuple[str, ...]:
    return (axis.variable, axis.variable + LABEL_SUFFIX) if labels else (axis.variable,)


def _dictionaries(axis: Breakdown, *, labels: bool) -> tuple[_Dictionary, ...]:
    texts = (axis.codes, axis.labels) if labels else (axis.codes,)
    return tuple(_dictionary(text) for text in texts)


def _dictionary(texts: Sequence[str]) -> _Dictionary:
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    if len(places) == len(texts):
        return _Dictionary(pa.array(texts, pa.string()))
    return _Dictionary(
        pa.array(list(places), pa.string()), np.array([places[text] for text in texts], dtype=np.int32)
    )
