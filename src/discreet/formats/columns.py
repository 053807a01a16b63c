"""A dataset as Arrow columns in long form: one row for each listed cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.formats.dataset import LABEL_SUFFIX, VALUE, WITHHELD, Dataset, DatasetAxis
from discreet.formats.levels import LEVEL
from discreet.maths.cells.counting import recode

STATUS = "status"
ROWS_AT_ONCE = 1 << 20
TEXT = pa.dictionary(pa.int32(), pa.string())


class Texts(StrEnum):
    """How codes are shown."""

    CODES = "codes"
    LABELS = "labels"
    BOTH = "both"


@dataclass(frozen=True)
class LongForm:
    """Which columns there are, and how their texts are spelled."""

    texts: Texts = Texts.BOTH
    spelled: Callable[[str], str] | None = None  # as they are
    measures: Mapping[str, NDArray[np.float64]] = field(
        default_factory=dict
    )  # in addition to the value; nan is empty
    has_level: bool = True


CODES_AND_LABELS = LongForm()


def schema(dataset: Dataset, columns: LongForm = CODES_AND_LABELS) -> pa.Schema:
    """The columns: codes and labels of each axis, level, value, further measures, a status where cells are withheld."""
    texts = [name for axis in dataset.axes for name, _ in _axis_columns(axis, columns.texts)]
    fields = [
        *(pa.field(name, TEXT, nullable=False) for name in texts),
        *([pa.field(LEVEL, TEXT, nullable=False)] if dataset.axes and columns.has_level else []),
        pa.field(VALUE, pa.from_numpy_dtype(dataset.values.dtype), nullable=dataset.withheld is not None),
        *(pa.field(name, pa.float64()) for name in columns.measures),
    ]
    return pa.schema(fields if dataset.withheld is None else [*fields, pa.field(STATUS, TEXT)])


def batches(dataset: Dataset, columns: LongForm = CODES_AND_LABELS) -> Iterator[pa.RecordBatch]:
    """The listed cells, a bounded number of rows at a time."""
    fields = schema(dataset, columns)
    texts = [
        [_dictionary(text, columns.spelled) for _, text in _axis_columns(axis, columns.texts)]
        for axis in dataset.axes
    ]
    status = _dictionary(("", WITHHELD))
    levels = None
    if dataset.axes and columns.has_level:
        levels = _dictionary((dataset.level,) if dataset.level else dataset.levels.names)
    for start in range(0, len(dataset.values), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        places = list(dataset.nodes(part))
        arrays = [
            text.column(nodes) for nodes, axis_texts in zip(places, texts, strict=True) for text in axis_texts
        ]
        if levels is not None:
            of_cells = np.zeros_like(places[0]) if dataset.level else dataset.levels.places(places)
            arrays.append(levels.column(of_cells))
        hidden = None if dataset.withheld is None else dataset.withheld[part]
        arrays.append(pa.array(dataset.values[part], mask=hidden))
        arrays += [pa.array(measure[part], from_pandas=True) for measure in columns.measures.values()]
        if hidden is not None:
            arrays.append(status.column(hidden.astype(np.int32)))
        yield pa.RecordBatch.from_arrays(arrays, schema=fields)


def rows(
    dataset: Dataset, columns: LongForm = CODES_AND_LABELS
) -> Iterator[tuple[str | int | float | None, ...]]:
    """The same rows as Python values."""
    for batch in batches(dataset, columns):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


@dataclass(frozen=True, eq=False)
class _Dictionary:
    """Texts of nodes, each text once: of a dictionary with repeated texts the Parquet writer fills part of the
    page with arbitrary content of memory, so that bytes differ from run to run and may disclose something."""

    texts: pa.Array
    place_of_node: NDArray[np.int32] | None = None  # None: the node itself

    def column(self, nodes: NDArray[np.int32]) -> pa.DictionaryArray:
        places = nodes
        if self.place_of_node is not None:
            places = np.empty_like(nodes)
            recode(nodes, self.place_of_node, places)
        return pa.DictionaryArray.from_arrays(places, self.texts, safe=False)


def _axis_columns(axis: DatasetAxis, texts: Texts) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if texts is Texts.CODES:
        return ((axis.variable, axis.codes),)
    if texts is Texts.LABELS:
        return ((axis.variable, axis.labels),)
    return (axis.variable, axis.codes), (axis.variable + LABEL_SUFFIX, axis.labels)


def _dictionary(texts: Sequence[str], spelled: Callable[[str], str] | None = None) -> _Dictionary:
    texts = texts if spelled is None else [spelled(text) for text in texts]
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    if len(places) == len(texts):
        return _Dictionary(pa.array(texts, pa.string()))
    return _Dictionary(
        pa.array(list(places), pa.string()), np.array([places[text] for text in texts], dtype=np.int32)
    )
