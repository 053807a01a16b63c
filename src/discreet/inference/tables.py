"""Input tables as arrays of whole numbers: from lists, numpy, data frames and Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.maths.noise.publishing import LARGEST_COUNT
from discreet.programme.codelist import TOTAL

Integers = NDArray[np.int64]
VALUE = "value"


@dataclass(frozen=True, eq=False)
class CrossTable:
    """Counts along named axes; cells that are not listed are zero."""

    counts: Integers
    axes: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]  # of each axis
    structural: NDArray[np.bool_] | None = None  # cells that must be empty by definition

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The counts, so that numpy accepts the table."""
        return np.array(self.counts, dtype=dtype, copy=True if copy is None else copy)


def counts_in(table: Any, name: str = "table") -> Integers:
    """Whole numbers from a list, an array, a data frame or an Arrow table (its number columns side by side)."""
    if isinstance(table, pa.Table):
        numbers = [
            column.to_numpy() for column in table.itercolumns() if pa.types.is_integer(column.type)
            or pa.types.is_floating(column.type)
        ]  # fmt: skip
        table = np.stack(numbers, axis=1) if numbers else np.zeros((0, 0))
    try:
        return integers(np.asarray(table), name)
    except ValueError:
        raise mistake("", name, "rows of different length", "give a full table of counts") from None


def integers(values: NDArray[Any], name: str) -> Integers:
    """Values as whole numbers; the error names the first that is none, since published values are public."""
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise mistake("", name, "not all numbers", "give only counts, without labels") from None
    if np.isnan(numbers).any():
        raise mistake(
            "", name, "a cell without a value", "fill it with 0: cells that a release does not list are zero"
        )
    wrong = ~np.isfinite(numbers) | (numbers != np.rint(numbers)) | (np.abs(numbers) > LARGEST_COUNT)
    if values.dtype == np.bool_ or wrong.any():
        value = "true or false" if values.dtype == np.bool_ else f"{numbers[wrong].flat[0]:g}"
        raise mistake("", name, value, f"give published counts: whole numbers up to {LARGEST_COUNT}")
    return numbers.astype(np.int64)


def table_in(table: Any, axes: Sequence[str] | None = None) -> CrossTable:
    """A table with names: its own, those given, or A, B, C; the codes are those of a data frame, or numbers from 1."""
    if isinstance(table, CrossTable):
        return table
    counts = counts_in(table)
    names = tuple(axes) if axes is not None else tuple(chr(ord("A") + k) for k in range(counts.ndim))
    if len(names) != counts.ndim or counts.ndim > 26:
        raise mistake("", "axes", ", ".join(names), f"name each of the {counts.ndim} axes of the table")
    return CrossTable(counts, names, tuple(tuple(str(k + 1) for k in range(size)) for size in counts.shape))


def long_table(
    columns: Mapping[str, Sequence[object]], axes: Sequence[str], value: str = VALUE
) -> CrossTable:
    """A table from columns of codes and a column of counts: one row for each cell, those left out are zero."""
    missing = [name for name in (*axes, value) if name not in columns]
    if missing:
        raise mistake("", "column", missing[0], f"choose from {', '.join(columns)}")
    codes = [np.array([str(code) for code in columns[name]], dtype=object) for name in axes]
    selected = np.all([column != TOTAL for column in codes], axis=0)
    labels = [tuple(dict.fromkeys(column[selected].tolist())) for column in codes]
    at = tuple(
        np.array([label.index(code) for code in column[selected]], dtype=np.int64)
        for label, column in zip(labels, codes, strict=True)
    )
    cells = list(zip(*(place.tolist() for place in at), strict=True))
    if len(set(cells)) != len(cells):
        remedy = "give one row a cell: leave out totals and name every axis"
        raise mistake("", ", ".join(axes), "a cell that is listed twice", remedy)
    counts = np.zeros([len(label) for label in labels], dtype=np.int64)
    counts[at] = integers(np.asarray(columns[value])[selected], value)
    return CrossTable(counts, tuple(axes), tuple(labels))
