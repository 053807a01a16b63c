"""Cubes as Parquet files in long form; it owns the file's layout and metadata, not the columns."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.formats.columns import batches, published, schema
from discreet.programme.cube import Cube
from discreet.tabulate.tables import ProtectedTable

METADATA_PREFIX = "discreet."


def write_parquet(table: ProtectedTable, path: Path) -> None:
    """Write the published cells; the same table gives the same bytes."""
    _, values = published(table)
    columns = schema(table.cube, pa.from_numpy_dtype(values.dtype)).with_metadata(_metadata(table.cube))
    # Statistics of a text column cost more than writing it; a reader only prunes by the first axis and the value.
    statistics = [columns.names[0], columns.names[-1]]
    with pq.ParquetWriter(
        path, columns, compression="zstd", compression_level=1, write_statistics=statistics
    ) as writer:
        for batch in batches(table):
            writer.write_batch(batch.replace_schema_metadata(columns.metadata))


def _metadata(cube: Cube) -> dict[str, str]:
    entries = {
        "cube": cube.id,
        "title": cube.title,
        "unit": cube.unit,
        "base": cube.base.text if cube.base else "",
        "count": cube.count or "",
        "weight": cube.weight or "",
        "axes": json.dumps([axis.full_name for axis in cube.axes], ensure_ascii=False),
    }
    return {METADATA_PREFIX + key: value for key, value in entries.items()}
