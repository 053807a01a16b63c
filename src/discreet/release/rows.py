"""The rows of a cube's Parquet file as nodes and values, checked against what a release may hold.

It owns the reading of published cells; what they are read for is its callers'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.errors import BrokenRelease
from discreet.release.columns import VALUE
from discreet.release.manifest import CubeEntry

Values = NDArray[Any]  # int64 counts, or float64 estimates


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a cube."""

    nodes: tuple[NDArray[np.int64], ...]  # one array for each axis
    cells: NDArray[np.int64]  # flat positions in the grid of all nodes, ascending
    values: Values


@dataclass(frozen=True, eq=False)
class CubeFile:
    """A cube's Parquet file and the codes of its axes, the total first."""

    entry: CubeEntry
    path: Path
    codes: tuple[tuple[str, ...], ...]

    def parts(self) -> Iterator[Rows]:
        """The rows by row group."""
        strides = np.cumprod([1, *(len(codes) for codes in reversed(self.codes))])[-2::-1]
        last, rows = -1, 0
        for table in self._row_groups():
            nodes = tuple(self._nodes(k, table) for k in range(len(self.codes)))
            cells = np.asarray(sum(n * stride for n, stride in zip(nodes, strides, strict=True)))
            values = table[VALUE].to_numpy()
            self._require_rows(cells, last, values)
            last, rows = int(cells[-1]), rows + len(cells)
            yield Rows(nodes, cells, values)
        if rows != self.entry.cells:
            raise BrokenRelease(
                f"cube {self.entry.id}: the manifest says {self.entry.cells} cells, its file has {rows}"
            )

    @cached_property
    def _positions(self) -> tuple[dict[str, int], ...]:
        return tuple({code: node for node, code in enumerate(codes)} for codes in self.codes)

    def _row_groups(self) -> Iterator[pa.Table]:
        """The parts of the file, if it has the columns that its axes call for and no gaps."""
        text = pa.dictionary(pa.int32(), pa.string())
        number = pa.float64() if self.entry.weight else pa.int64()
        wanted = {**{axis.variable: text for axis in self.entry.axes}, VALUE: number}
        try:
            with pq.ParquetFile(self.path) as file:
                for group in range(file.num_row_groups):
                    table = file.read_row_group(group, columns=list(wanted))
                    found = dict(zip(table.schema.names, table.schema.types, strict=True))
                    if found != wanted or any(column.null_count for column in table.columns):
                        raise BrokenRelease(
                            f"cube {self.entry.id}: its file does not have the columns of its axes"
                        )
                    if len(table):
                        yield table
        except FileNotFoundError:
            raise BrokenRelease(
                f"cube {self.entry.id}: its file is missing; fetch the release again"
            ) from None
        except pa.ArrowException:
            raise BrokenRelease(f"cube {self.entry.id}: its file is not readable as Parquet") from None

    def _nodes(self, axis: int, table: pa.Table) -> NDArray[np.int64]:
        variable, position = self.entry.axes[axis].variable, self._positions[axis]
        column = table[variable].unify_dictionaries().combine_chunks()
        chunk = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        codes = chunk.dictionary.to_pylist()
        strange = [code for code in codes if code not in position]
        if strange:
            raise BrokenRelease(f"cube {self.entry.id}: {variable} has the unlisted code {strange[0]!r}")
        node_of: NDArray[np.int64] = np.array([position[code] for code in codes], dtype=np.int64)
        nodes: NDArray[np.int64] = node_of[chunk.indices.to_numpy()]
        return nodes

    def _require_rows(self, cells: NDArray[np.int64], last: int, values: Values) -> None:
        if (np.diff(cells, prepend=last) <= 0).any():
            raise BrokenRelease(
                f"cube {self.entry.id}: its rows are not in the order of its codes, or one stands twice"
            )
        if not (values > 0).all():
            raise BrokenRelease(f"cube {self.entry.id}: a listed value is not positive")
