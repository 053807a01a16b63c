"""Input tables as arrays of whole numbers: from lists, numpy, data frames, Arrow tables and cubes of a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.maths.noise.publishing import LARGEST_COUNT
from discreet.programme.codelist import TOTAL
from discreet.programme.cube import crossed
from discreet.release.manifest import CubeEntry
from discreet.release.reader import Release, open_release

Integers = NDArray[np.int64]
LARGEST_TABLE = 10**7
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


def cross_table(
    release: str | Path | Release, cube: str, axes: Sequence[str], where: Mapping[str, str] | None = None
) -> CrossTable:
    """Some axes of a cube by their finest codes; the others are at their total, or at the code that ``where`` names."""
    opened = release if isinstance(release, Release) else open_release(release)
    entry, chosen = opened.cube(cube), dict(where or {})
    known = [axis.variable for axis in entry.axes]
    unknown = [name for name in (*axes, *chosen) if name not in known]
    if unknown or not axes or len(set(axes)) != len(axes):
        raise mistake(
            opened.folder, "axes", ", ".join(unknown or axes) or "none", f"choose from {', '.join(known)}"
        )
    _require_published(opened, entry, axes, chosen)
    columns = opened.read_cube(cube)
    places = {axis.variable: axis.breakdown for axis in entry.axes}
    finest = {name: _finest(opened, places[name]) for name in axes}
    fixed = {name: chosen.get(name, TOTAL) for name in known if name not in axes}
    return _gathered(columns, {name: finest[name] for name in axes}, fixed)


def _require_published(
    release: Release, entry: CubeEntry, axes: Sequence[str], chosen: Mapping[str, str]
) -> None:
    """Refuse a cross-tabulation that the release does not publish: its cells would be taken for zeros."""
    if entry.published is None:
        return
    levels = []
    for axis in entry.axes:
        listed = release.read_codes(axis.breakdown)
        above = dict(zip(listed.codes, listed.parents, strict=True))
        wanted = (
            _finest(release, axis.breakdown) if axis.variable in axes else (chosen.get(axis.variable, TOTAL),)
        )
        depths = {_depth(code, above) for code in wanted}
        levels += [(axis.variable, depth) for depth in depths if depth]
    name = crossed(tuple(sorted(levels)))
    if name not in entry.published:
        remedy = f"published are {', '.join(entry.published)}"
        raise mistake(release.folder, f"cube {entry.id}", f"{name} is not published", remedy)


def _depth(code: str, above: Mapping[str, str]) -> int:
    depth = 0
    while code != TOTAL and code in above:
        depth, code = depth + 1, above[code] or TOTAL
    return depth


def _finest(release: Release, breakdown: str) -> tuple[str, ...]:
    codes = release.read_codes(breakdown)
    return tuple(code for code in codes.codes if code != TOTAL and code not in codes.parents)


def _gathered(columns: Any, axes: Mapping[str, Sequence[str]], fixed: Mapping[str, str]) -> CrossTable:
    """The rows with the fixed codes, as a grid."""
    shape = tuple(len(codes) for codes in axes.values())
    if np.prod(shape, dtype=np.float64) > LARGEST_TABLE:
        raise mistake("", "table", f"{np.prod(shape, dtype=np.float64):.3g} cells", "take fewer axes")
    texts = {name: np.array(columns[name].to_pylist(), dtype=object) for name in (*axes, *fixed)}
    selected = np.ones(columns.num_rows, dtype=np.bool_)
    for name, code in fixed.items():
        selected &= texts[name] == code
    for name, codes in axes.items():
        selected &= np.isin(texts[name].astype(str), list(codes))
    counts = np.zeros(shape, dtype=np.int64)
    if selected.any():
        order = {name: {code: at for at, code in enumerate(codes)} for name, codes in axes.items()}
        at = tuple(np.array([order[name][code] for code in texts[name][selected]]) for name in axes)
        counts[at] = integers(columns[VALUE].to_numpy()[selected], VALUE)
    return CrossTable(counts, tuple(axes), tuple(tuple(codes) for codes in axes.values()))


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
