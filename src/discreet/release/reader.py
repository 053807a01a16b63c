"""Reading a release: its manifest, codelists and cubes."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.errors import BrokenRelease, mistake
from discreet.formats.dataset import VALUE
from discreet.io.files import UNREADABLE
from discreet.perturb.noise import Noise
from discreet.programme.codelist import TOTAL, TOTAL_LABEL, Breakdown, write_code_columns
from discreet.programme.cube import Cube
from discreet.programme.definitions import LABEL, Definitions, definition_in, text_columns, text_in
from discreet.programme.release import ReleaseFormat
from discreet.release.manifest import CubeEntry, Manifest, read_manifest

HEADER = ("code", "parent", "label")
MOST_CELLS = 2**62  # possible ones of a cube: cells are numbered in 64 bits
MOST_CROSSTABS = 2**24  # of a cube, which are all looked at


@dataclass(frozen=True)
class PublishedCodes:
    """The codes of a breakdown as a release lists them, the total first."""

    codes: tuple[str, ...]
    parents: tuple[str, ...]
    labels: tuple[str, ...]
    definitions: Definitions = field(default_factory=dict)


def breakdowns(cubes: Iterable[Cube]) -> dict[str, Breakdown]:
    """Every breakdown that the cubes use, by full name; one name must mean one list of codes."""
    found: dict[str, Breakdown] = {}
    for cube in cubes:
        for axis in cube.axes:
            known = found.setdefault(axis.full_name, axis)
            if known is not axis and (known.codes, known.labels) != (axis.codes, axis.labels):
                raise mistake(
                    "",
                    f"cube {cube.id}",
                    f"{axis.full_name} has two lists of codes",
                    "give them different names",
                )
    return found


def write_codes(axis: Breakdown, path: Path) -> None:
    """Write code, parent and label of every node, and its other texts; the total has no parent."""
    parents = ["" if parent < 0 else axis.codes[parent] for parent in axis.parents.tolist()]
    texts = list(text_columns(axis.codes, (str(axis.labels[0]), *axis.labels[1:]), axis.definitions))
    write_code_columns(path, axis.codes, parents, texts)


def read_rows(path: Path) -> list[list[str]]:
    """The rows of a CSV file of a release; none where it cannot be read, or is no file: a pipe may never end."""
    try:
        if not path.is_file():
            return []
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def read_codes(path: Path) -> PublishedCodes:
    """Read such a file back."""
    rows = read_rows(path)
    head = tuple(rows[0]) if rows else ()
    if head[: len(HEADER)] != HEADER or any(len(row) != len(head) for row in rows):
        raise BrokenRelease(f"{path}: not a list of code,parent,label; fetch the release again")
    codes, parents = zip(*(row[:2] for row in rows[1:]), strict=True) if len(rows) > 1 else ((), ())
    if codes[:1] != (TOTAL,) or len(set(codes)) != len(codes):
        raise BrokenRelease(
            f"{path}: does not start with {TOTAL}, or a code occurs twice; fetch the release again"
        )
    texts = [dict(zip(head, row, strict=True)) for row in rows[1:]] if len(head) > len(HEADER) else []
    labels = tuple(text_in(row, LABEL) for row in texts) or tuple(row[2] for row in rows[1:])
    defined = {row["code"]: found for row in texts if (found := definition_in(row))}
    return PublishedCodes(codes, parents, (TOTAL_LABEL, *labels[1:]), defined)


def size_problem(cube: CubeEntry, lists: Sequence[PublishedCodes]) -> str:
    """What is wrong with codelists whose cells cannot be numbered, or levels not be listed; empty otherwise."""
    many_cells = prod(len(listed.codes) for listed in lists) > MOST_CELLS
    if many_cells or prod(_deepest(listed) + 1 for listed in lists) > MOST_CROSSTABS:
        return f"cube {cube.id}: its codelists have more codes or levels than those of a cube can have"
    return ""


def _deepest(listed: PublishedCodes) -> int:
    """How many levels there are below the total."""
    depths: dict[str, int] = {}
    for code, parent in zip(listed.codes, listed.parents, strict=True):
        depths[code] = depths.get(parent, -1) + 1
    return max(depths.values())


@dataclass(frozen=True)
class Release:
    """A release folder, opened."""

    folder: Path
    manifest: Manifest

    @cached_property
    def noise(self) -> Noise:
        """What the release discloses about its noise."""
        return self.manifest.noise.noise()

    def cube(self, cube: str) -> CubeEntry:
        """The description of a cube."""
        for entry in self.manifest.cubes:
            if entry.id == cube:
                return entry
        known = ", ".join(entry.id for entry in self.manifest.cubes) or "none"
        raise mistake(self.folder, "cube", repr(cube), f"this release has {known}")

    def read_cube(self, cube: str) -> pa.Table:
        """The published cells of a cube: codes and labels of each axis, then the value."""
        entry = self.cube(cube)
        file = entry.file(ReleaseFormat.PARQUET)
        if file is None:
            raise BrokenRelease(f"{self.folder}: cube {cube} has no Parquet file; fetch the release again")
        try:
            # Arrow takes a relative path such as census:2021 for an address
            table = pq.read_table((self.folder / file.path).absolute())
            table.validate(full=True)
        except UNREADABLE:
            value = f"{self.folder / file.path}: not readable as Parquet; fetch the release again"
            raise BrokenRelease(value) from None
        wanted = _columns(entry)
        if not set(wanted) <= set(table.column_names) or not _are(table.select(list(wanted)), wanted):
            raise BrokenRelease(f"cube {cube}: its file does not have the columns of its axes")
        return table

    def read_codes(self, breakdown: str) -> PublishedCodes:
        """Codes, parents and labels of a breakdown, such as ``AGE.M``."""
        places = {axis.breakdown: axis.codelist for cube in self.manifest.cubes for axis in cube.axes}
        if breakdown not in places:
            raise mistake(
                self.folder, "breakdown", repr(breakdown), f"this release has {', '.join(sorted(places))}"
            )
        return read_codes(self.folder / places[breakdown])


def open_release(folder: Path | str) -> Release:
    """Open a release folder; its manifest is checked, its files are not (``discreet verify`` does)."""
    return Release(Path(folder), read_manifest(Path(folder)))


class HasRelease(Protocol):
    """An object of a notebook that has an opened release."""

    @property
    def opened(self) -> Release:
        """The release."""
        ...


@runtime_checkable
class HasCube(HasRelease, Protocol):
    """A table of a notebook: one cube of a release."""

    def whole_cube(self) -> str:
        """The id of the cube; refused where the table is only a part of it."""
        ...


AnyRelease = str | Path | Release | HasRelease


def opened_release(release: AnyRelease) -> Release:
    """A release that is open, or that of a folder or of a table."""
    if isinstance(release, Release):
        return release
    if isinstance(release, str | Path):
        return open_release(release)
    if not hasattr(type(release), "opened"):
        remedy = "give a release, a table of it, or the path of a release folder"
        raise mistake("", "release", f"an object of type {type(release).__name__}", remedy)
    return release.opened


def opened_cube(release: AnyRelease, cube: str | None) -> tuple[Release, CubeEntry]:
    """A cube of a release: by its id, that of a table, or the only one that there is."""
    opened = opened_release(release)
    if isinstance(release, HasCube):
        own = release.whole_cube()
        if cube not in (None, own):
            remedy = f"the table is that of cube {own}: leave cube out, and name filters by where="
            raise mistake(opened.folder, "cube", repr(cube), remedy)
        return opened, opened.cube(own)
    if cube is None:
        if len(opened.manifest.cubes) != 1:
            known = ", ".join(entry.id for entry in opened.manifest.cubes) or "none"
            raise mistake(opened.folder, "cube", "left out", f"name one: this release has {known}")
        return opened, opened.manifest.cubes[0]
    return opened, opened.cube(cube)


Values = NDArray[Any]  # int64 counts, or float64 estimates


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts: the different ones, and which of them each row has."""

    distinct: tuple[str, ...]
    which: NDArray[np.int32]

    def are(self, texts: Sequence[str], nodes: NDArray[np.int64]) -> bool:
        """Whether every row has the text of its node."""
        place = {text: number for number, text in enumerate(self.distinct)}
        wanted = np.array([place.get(text, -1) for text in texts], dtype=np.int64)
        return np.array_equal(wanted[nodes], self.which)


@dataclass(frozen=True, eq=False)
class Nodes:
    """A column of codes by the nodes of its axis: those of the different codes, and which of them each row has."""

    distinct: NDArray[np.int64]
    which: NDArray[np.int32]

    def times(self, stride: int) -> NDArray[np.int64]:
        """What the node of each row adds to its position in the grid."""
        if np.array_equal(self.distinct, np.arange(len(self.distinct))):  # as ``protect`` writes them
            return np.multiply(self.which, stride, dtype=np.int64)
        # no code is beyond the dictionary: that was validated
        return np.take(self.distinct * stride, self.which, mode="clip")


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a cube."""

    axes: tuple[Nodes, ...]
    cells: NDArray[np.int64]  # flat positions in the grid of all nodes, ascending
    values: Values

    @cached_property
    def nodes(self) -> tuple[NDArray[np.int64], ...]:
        """The nodes of the rows, one array for each axis."""
        return tuple(axis.times(1) for axis in self.axes)


def texts_of(column: pa.ChunkedArray) -> Texts:
    """A dictionary-encoded column as one."""
    if column.num_chunks != 1:
        whole = column.unify_dictionaries().combine_chunks()
        column = whole if isinstance(whole, pa.ChunkedArray) else pa.chunked_array([whole])
    chunk = column.chunk(0)
    return Texts(tuple(chunk.dictionary.to_pylist()), chunk.indices.to_numpy())


def _columns(entry: CubeEntry, texts: Sequence[str] = ()) -> dict[str, pa.DataType]:
    """The columns of a cube's file and their types, with some more of texts."""
    text = pa.dictionary(pa.int32(), pa.string())
    number = pa.float64() if entry.weight else pa.int64()
    return {**{axis.variable: text for axis in entry.axes}, VALUE: number, **dict.fromkeys(texts, text)}


def _are(table: pa.Table, wanted: dict[str, pa.DataType]) -> bool:
    """Whether a table has exactly these columns, without gaps."""
    found = dict(zip(table.schema.names, table.schema.types, strict=True))
    once = len(found) == len(table.schema.names)
    return once and found == wanted and not any(column.null_count for column in table.columns)


def _has_all_texts(table: pa.Table) -> bool:
    """Whether the texts of all rows are in the dictionaries: damaged pages have codes beyond them.

    What ``validate(full=True)`` finds in such columns, at a fourth of its cost.
    """
    for column in table.columns:
        for chunk in column.chunks if pa.types.is_dictionary(column.type) else ():
            chunk.dictionary.validate(full=True)
            which = chunk.indices.to_numpy().view(np.uint32)
            if len(which) and which.max() >= len(chunk.dictionary):
                return False
    return True


@dataclass(frozen=True, eq=False)
class CubeFile:
    """A cube's Parquet file and the codes of its axes, the total first."""

    entry: CubeEntry
    path: Path
    codes: tuple[tuple[str, ...], ...]
    signed: bool = False  # whether negative counts are published as they are

    def parts(self) -> Iterator[Rows]:
        """The rows by row group."""
        return (rows for rows, _ in self.parts_with(()))

    def parts_with(self, columns: Sequence[str]) -> Iterator[tuple[Rows, dict[str, Texts]]]:
        """The rows by row group, and the texts of more columns."""
        strides = np.cumprod([1, *(len(codes) for codes in reversed(self.codes))])[-2::-1]
        last = -1
        for table in self._row_groups(columns):
            axes = tuple(self._nodes(k, table) for k in range(len(self.codes)))
            cells = np.zeros(len(table), dtype=np.int64)
            for axis, stride in zip(axes, strides.tolist(), strict=True):
                cells += axis.times(stride)
            values = table[VALUE].to_numpy()
            self._require_rows(cells, last, values)
            last = int(cells[-1])
            yield Rows(axes, cells, values), {name: texts_of(table[name]) for name in columns}

    @cached_property
    def _positions(self) -> tuple[dict[str, int], ...]:
        return tuple({code: node for node, code in enumerate(codes)} for codes in self.codes)

    def _row_groups(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The parts of the file, if it has the columns of its axes and no gaps."""
        wanted = _columns(self.entry, columns)
        try:
            with pq.ParquetFile(self.path.absolute()) as file:
                if (rows := file.metadata.num_rows) != self.entry.cells:
                    raise BrokenRelease(
                        f"cube {self.entry.id}: the manifest states {self.entry.cells} cells, its file has {rows}"
                    )
                for group in range(file.num_row_groups):
                    table = file.read_row_group(group, columns=list(wanted))
                    table.validate()
                    if not _are(table, wanted):
                        raise BrokenRelease(
                            f"cube {self.entry.id}: its file does not have the columns of its axes"
                        )
                    if not _has_all_texts(table):
                        raise BrokenRelease(f"cube {self.entry.id}: its file is not readable as Parquet")
                    if len(table):
                        yield table
        except FileNotFoundError:
            raise BrokenRelease(
                f"cube {self.entry.id}: its file is missing; fetch the release again"
            ) from None
        except UNREADABLE:
            raise BrokenRelease(f"cube {self.entry.id}: its file is not readable as Parquet") from None

    def _nodes(self, axis: int, table: pa.Table) -> Nodes:
        variable, position = self.entry.axes[axis].variable, self._positions[axis]
        column = texts_of(table[variable])
        strange = [code for code in column.distinct if code not in position]
        if strange:
            raise BrokenRelease(f"cube {self.entry.id}: {variable} has the unlisted code {strange[0]!r}")
        return Nodes(np.array([position[code] for code in column.distinct], dtype=np.int64), column.which)

    def _require_rows(self, cells: NDArray[np.int64], last: int, values: Values) -> None:
        if cells[0] <= last or not (cells[1:] > cells[:-1]).all():
            raise BrokenRelease(
                f"cube {self.entry.id}: its rows are not in the order of its codes, or one occurs twice"
            )
        if not (values != 0 if self.signed else values > 0).all():
            kind = "zero" if self.signed else "not positive"
            raise BrokenRelease(f"cube {self.entry.id}: a listed value is {kind}")
