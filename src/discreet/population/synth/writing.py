"""Streaming the blocks to Parquet files, one per unit; it does not draw anything."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.population.synth.block import IDS, LEVELS, UNITS

ROW_GROUP = 1 << 20


class UnitFile:
    """One Parquet file that collects blocks until a row group is full."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, 0
        self._waiting: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None

    def add(self, table: pa.Table) -> None:
        """Take in a block and write when there is enough for a row group."""
        self._waiting.append(table)
        self.rows += table.num_rows
        if sum(waiting.num_rows for waiting in self._waiting) >= ROW_GROUP:
            self._flush()

    def finish(self) -> None:
        """Write what is left and close the file."""
        self._flush()
        self.close()

    def close(self) -> None:
        """Close the file as it stands."""
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        if not self._waiting:
            return
        # one dictionary per column and row group: the blocks know different grid cells
        table = pa.concat_tables(self._waiting).unify_dictionaries().combine_chunks()
        self._waiting = []
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self.path,
                table.schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=[name for name in table.column_names if name not in IDS],
                write_statistics=list(LEVELS),  # of the other columns they cost time and skip nothing
            )
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))


class CensusFiles:
    """The files of all units, closed together."""

    def __init__(self, folder: Path) -> None:
        self.units = {unit: UnitFile(folder / f"{unit}.parquet") for unit in UNITS}

    def __enter__(self) -> CensusFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for unit in self.units.values():
            if kind is None:
                unit.finish()
            else:
                unit.close()

    def add(self, tables: dict[str, pa.Table]) -> None:
        """Append one block to every file."""
        for unit, table in tables.items():
            self.units[unit].add(table)
