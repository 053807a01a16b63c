"""Whether the files of a cube agree: the codes and values of all formats, in their order, and their labels.

Labels in CSV and JSON-stat are those of the codelists, as they are in Parquet. Workbooks (XLSX) are not compared, nor
are the texts of PX and SDMX. Nothing here shows who wrote a file: a person who changes one file and its checksum is
found, one who changes all of them alike is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from discreet.formats.columns import TEXT
from discreet.formats.csv import harmless
from discreet.formats.dataset import LABEL_SUFFIX, VALUE
from discreet.formats.px import ABSENT_SYMBOL, WITHHELD_SYMBOL
from discreet.formats.sdmx_ids import OBSERVATION, code_ids, component_id
from discreet.io.files import UNREADABLE
from discreet.programme.release import ReleaseFormat
from discreet.release.manifest import CubeEntry, FileEntry, Manifest
from discreet.release.reader import CubeFile, PublishedCodes, Values, read_codes, texts_of

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Cells:
    """The listed cells of a cube."""

    entry: CubeEntry
    codes: tuple[tuple[str, ...], ...]  # of each axis, the total first
    labels: tuple[tuple[str, ...], ...]  # of the codes
    places: Integers  # flat positions, ascending
    values: Values

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of codes along each axis."""
        return tuple(map(len, self.codes))

    def has(self, places: Integers, values: Values) -> bool:
        """Whether some cells, in their order, have these values."""
        at = np.searchsorted(self.places, places)
        known = len(self.places) > 0 and bool((at < len(self.places)).all())
        return (
            not len(places)
            or (known and np.array_equal(self.places[at], places) and np.array_equal(self.values[at], values))
        ) and bool((np.diff(places) > 0).all())


def format_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """The files whose cells are not those of the Parquet file, and Parquet files with columns that no cube has."""
    known: dict[str, PublishedCodes] = {}
    for cube in manifest.cubes:
        parquet = cube.file(ReleaseFormat.PARQUET)
        others = [file for file in cube.files if file.format in _READERS]
        if parquet is None:
            continue
        yield from _column_problems(folder, parquet, cube, manifest.level_column)
        if not others:
            continue
        for axis in cube.axes:
            known.setdefault(axis.codelist, read_codes(folder / axis.codelist))
        cells = _cells(folder / parquet.path, cube, known, manifest)
        for form in dict.fromkeys(file.format for file in others):
            files = [file for file in others if file.format is form]
            listed = 0
            for file in files:  # one, or one for each level
                found = _read(folder / file.path, file, cells)
                if found is None:
                    yield f"{file.path}: its cells, or their labels, are not those of {parquet.path}"
                    break
                listed += found
            else:
                if listed != len(cells.places):
                    yield f"{', '.join(file.path for file in files)}: not all cells of {parquet.path}"


def _column_problems(folder: Path, file: FileEntry, cube: CubeEntry, level: str) -> Iterator[str]:
    names = [axis.variable for axis in cube.axes]
    wanted = {*names, *(name + LABEL_SUFFIX for name in names), level, VALUE}
    found = pq.read_schema((folder / file.path).absolute()).names
    if strange := [name for name in found if name not in wanted]:
        yield f"{file.path}: has the column {strange[0]!r}, which no cube has"


def _cells(path: Path, cube: CubeEntry, known: Mapping[str, PublishedCodes], manifest: Manifest) -> _Cells:
    codes = tuple(known[axis.codelist].codes for axis in cube.axes)
    file = CubeFile(cube, path, codes, manifest.noise.keeps_negatives)
    parts = list(file.parts())
    number: type[np.generic] = np.float64 if cube.weight else np.int64
    return _Cells(
        cube,
        codes,
        tuple(tuple(map(str, known[axis.codelist].labels)) for axis in cube.axes),
        np.concatenate([np.empty(0, np.int64), *(rows.cells for rows in parts)]),
        np.concatenate([np.empty(0, number), *(rows.values for rows in parts)]),
    )


def _read(path: Path, file: FileEntry, cells: _Cells) -> int | None:
    """How many cells a file has; None where it cannot be read, or a cell or a label is another one."""
    assert file.format is not None
    try:
        places, values = _READERS[file.format](path, cells)
    except (*UNREADABLE, ValueError, TypeError, LookupError, RecursionError):
        return None
    return len(places) if cells.has(places, values) else None


def _csv(path: Path, cells: _Cells) -> tuple[Integers, Values]:
    names = [axis.variable for axis in cells.entry.axes]
    codes, labels = (
        [[harmless(text) for text in texts] for texts in both] for both in (cells.codes, cells.labels)
    )
    return _listed(path, dict(zip(names, codes, strict=True)), VALUE, labels)


def _sdmx_csv(path: Path, cells: _Cells) -> tuple[Integers, Values]:
    names = [component_id(axis.variable) for axis in cells.entry.axes]
    ids = [code_ids(codes) for codes in cells.codes]
    return _listed(path, dict(zip(names, ids, strict=True)), OBSERVATION)


def _listed(
    path: Path, axes: Mapping[str, Sequence[str]], value: str, labels: Sequence[Sequence[str]] = ()
) -> tuple[Integers, Values]:
    """The positions and values of a file with a line for each cell; ValueError where a label is another one."""
    labelled = [name + LABEL_SUFFIX for name in axes] if labels else []
    types = {**dict.fromkeys((*axes, *labelled), TEXT), value: pa.float64()}
    table = arrow_csv.read_csv(
        path,
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types, include_columns=[*axes, *labelled, value], strings_can_be_null=False
        ),
    )
    places = np.zeros(len(table), dtype=np.int64)
    for k, (name, codes) in enumerate(axes.items() if len(table) else ()):
        position = {code: node for node, code in enumerate(codes)}
        column = texts_of(table[name])
        nodes = np.array([position[code] for code in column.distinct], dtype=np.int64)[column.which]
        places = places * len(codes) + nodes
        if labels and not texts_of(table[labelled[k]]).are(labels[k], nodes):
            raise ValueError("other labels")
    return places, table[value].to_numpy()


def _json_stat(path: Path, cells: _Cells) -> tuple[Integers, Values]:
    document = orjson.loads(path.read_bytes())
    names = [axis.variable for axis in cells.entry.axes]
    categories = [document["dimension"][name]["category"] for name in document["id"]]
    found = [tuple(category["index"]) for category in categories]
    if document["id"] != names or tuple(found) != cells.codes or document["size"] != list(cells.shape):
        raise ValueError("other dimensions")
    for category, codes, labels in zip(categories, cells.codes, cells.labels, strict=True):
        if category["label"] != dict(zip(codes, labels, strict=True)):
            raise ValueError("other labels")
    values = document["value"]
    if isinstance(values, dict):
        return np.array([int(place) for place in values], dtype=np.int64), _numbers(list(values.values()))
    return _dense(_numbers(values), cells)


def _px(path: Path, cells: _Cells) -> tuple[Integers, Values]:
    _, _, data = path.read_bytes().partition(b"\nDATA=\n")
    hidden = {f'"{symbol}"'.encode() for symbol in (ABSENT_SYMBOL, WITHHELD_SYMBOL)}
    texts = [None if text in hidden else float(text) for text in data.rstrip(b";\n").split()]
    return _dense(_numbers(texts), cells)


def _dense(values: NDArray[np.float64], cells: _Cells) -> tuple[Integers, Values]:
    """The cells that are not zero, of all cells in their order."""
    if len(values) != np.prod(cells.shape, dtype=np.int64):
        raise ValueError("another number of cells")
    listed = np.flatnonzero(values)
    return listed, values[listed]


def _numbers(values: Sequence[Any]) -> NDArray[np.float64]:
    """Numbers, 0 where a cell is not published; ValueError or TypeError where one is a text."""
    return np.array([0.0 if value is None else value + 0.0 for value in values], dtype=np.float64)


_READERS: Mapping[ReleaseFormat, Callable[[Path, _Cells], tuple[Integers, Values]]] = {
    ReleaseFormat.CSV: _csv,
    ReleaseFormat.SDMX_CSV: _sdmx_csv,
    ReleaseFormat.JSON_STAT: _json_stat,
    ReleaseFormat.PX: _px,
}
