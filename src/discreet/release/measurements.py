"""Writes the noisy measurements of a hierarchical release: a Parquet file for each level and query.

The noise of one parent's children is drawn at a time, and all files of a level grow side by side: every measurement is
drawn once, and some million rows are in memory, however many areas there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.formats.dataset import VALUE
from discreet.hierarchy.cubes import query_cells, query_columns
from discreet.hierarchy.measure import Measurements, Siblings, at_level
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.io.progress import Progress
from discreet.release.folder import ReleaseFolder
from discreet.release.hierarchy import (
    PARAMETER,
    ROWS_AT_ONCE,
    VARIANCE,
    coded,
    measured,
    measurements_place,
)
from discreet.release.manifest import FileEntry

TEXT = pa.dictionary(pa.int32(), pa.string())
Integers = NDArray[np.int64]
Measured = tuple[Integers, Siblings]  # the numbers of some areas, and their noisy counts


def write_measurements(
    folder: ReleaseFolder,
    chosen: HierarchicalMechanism,
    measurements: Measurements,
    threads: int,
    progress: Progress,
) -> Iterator[FileEntry]:
    """Write the noisy counts of every query that a level asks, with the law of each.

    Files of a level that an interrupted run of the same noise has finished stay as they are.
    """
    queries: dict[str, list[str]] = {}
    for level, query in measured(chosen.plan):
        queries.setdefault(level, []).append(query)
    for level, asked in queries.items():
        name = measurements_place(level, "")
        files = folder.finished_files(name)
        if files is None:
            places = [measurements_place(level, query) for query in asked]
            writing = _Level(chosen, measurements, level, asked, threads, progress)
            files = folder.write_together(places, writing.write)
            folder.finish_files(name, files)
        yield from files


class _Level:
    """The files of one level."""

    def __init__(
        self,
        chosen: HierarchicalMechanism,
        measurements: Measurements,
        level: str,
        queries: Sequence[str],
        threads: int,
        progress: Progress,
    ) -> None:
        self._chosen, self._measurements, self._level = chosen, measurements, level
        self._queries, self._threads, self._progress = queries, threads, progress

    def write(self, paths: Sequence[Path]) -> None:
        """Draw some areas while those before are written, each file by one thread at a time."""
        with ExitStack() as opened, ThreadPoolExecutor(self._threads) as pool:
            files = [
                opened.enter_context(_QueryFile(self._chosen, self._level, query, path))
                for query, path in zip(self._queries, paths, strict=True)
            ]
            pending: list[Future[None]] = []
            for some in self._some_areas(sum(file.width for file in files)):
                for one in pending:
                    one.result()
                pending = [pool.submit(file.add, some) for file in files]
                self._progress.step(sum(len(areas) for areas, _ in some))
            for one in pending:
                one.result()

    def _some_areas(self, width: int) -> Iterator[list[Measured]]:
        """The measured areas, about as many at a time as rows are written at once."""
        some: list[Measured] = []
        rows = 0
        for areas, siblings in at_level(self._measurements, self._level):
            some.append((areas, siblings))
            rows += len(areas) * width
            if rows >= ROWS_AT_ONCE:
                yield some
                some, rows = [], 0
        if some:
            yield some


class _QueryFile:
    """The file of one query at one level; a row group has about ``ROWS_AT_ONCE`` rows."""

    def __init__(self, chosen: HierarchicalMechanism, level: str, query: str, path: Path) -> None:
        plan = chosen.plan
        self._query, self._kinds = query, plan.kinds
        self._geography = chosen.hierarchy.geography
        self._codes = pa.array(chosen.codes[plan.spine.levels.index(level)], pa.string())
        cells = list(query_cells(chosen, query))
        self.width = len(cells)
        self._columns: dict[str, tuple[list[str], NDArray[np.int32]]] = {}
        for at, name in enumerate(query_columns(chosen, query)):
            place = {label: number for number, label in enumerate(dict.fromkeys(cell[at] for cell in cells))}
            self._columns[name] = list(place), np.array([place[cell[at]] for cell in cells], dtype=np.int32)
        schema = pa.schema(
            [
                pa.field(self._geography, TEXT, nullable=False),
                *(pa.field(name, TEXT, nullable=False) for name in self._columns),
                pa.field(VALUE, pa.int64(), nullable=False),
                pa.field(PARAMETER, TEXT, nullable=False),
                pa.field(VARIANCE, pa.float64(), nullable=False),
            ]
        )
        self._writer = pq.ParquetWriter(path, schema, write_statistics=[self._geography])
        self._waiting: list[tuple[Integers, int, NDArray[np.int32]]] = []  # areas, their kind, noisy counts
        self._rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._write()
        self._writer.close()

    def add(self, some: Sequence[Measured]) -> None:
        """Take the areas that this query was asked in; write them when there are enough."""
        for areas, siblings in some:
            queries = self._kinds[siblings.kind].queries
            if self._query in queries:  # only its own counts wait, those of other queries may be large
                self._waiting.append((areas, siblings.kind, siblings.values[queries.index(self._query)]))
                self._rows += len(areas) * self.width
        if self._rows >= ROWS_AT_ONCE:
            self._write()

    def _write(self) -> None:
        if not self._waiting:
            return
        areas = np.concatenate([one for one, _, _ in self._waiting])
        kinds = [self._kinds[kind] for _, kind, _ in self._waiting]
        at = [kind.queries.index(self._query) for kind in kinds]
        values = [one for _, _, one in self._waiting]
        lengths = [one.size for one in values]
        texts = [str(kind.laws[number].parameter) for kind, number in zip(kinds, at, strict=True)]
        different = list(dict.fromkeys(texts))
        variances = np.array([kind.variances[number] for kind, number in zip(kinds, at, strict=True)])
        number = np.repeat(np.arange(len(areas), dtype=np.int32), self.width)
        columns = [
            pa.DictionaryArray.from_arrays(pa.array(number), self._codes.take(pa.array(areas))),
            *(coded(labels, np.tile(index, len(areas))) for labels, index in self._columns.values()),
            pa.array(np.concatenate(values).reshape(-1).astype(np.int64)),
            coded(different, np.repeat([different.index(one) for one in texts], lengths)),
            pa.array(np.repeat(variances, lengths)),
        ]
        table = pa.table(columns, schema=self._writer.schema)
        self._writer.write_table(table, row_group_size=len(table))
        self._waiting, self._rows = [], 0
