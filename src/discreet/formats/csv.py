"""Cubes as CSV files with the columns of the Parquet files; it owns nothing but the quoting."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from discreet.formats.columns import batches, published, schema
from discreet.tabulate.tables import ProtectedTable


def write_csv(table: ProtectedTable, path: Path) -> None:
    """Write the published cells: UTF-8, commas, a header, text in quotes."""
    _, values = published(table)
    columns = schema(table.cube, pa.from_numpy_dtype(values.dtype))
    with csv.CSVWriter(path, columns) as writer:
        for batch in batches(table):
            writer.write_batch(batch)
