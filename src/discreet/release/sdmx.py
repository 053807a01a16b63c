"""Cubes as SDMX-CSV 2.0; it owns the data files, not the structures that they refer to (see sdmx_structures)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from discreet.perturb.table import ProtectedTable
from discreet.release.columns import ROWS_AT_ONCE, axis_nodes, published
from discreet.release.publication import Publication
from discreet.release.sdmx_ids import code_ids, component_id, dataflow_id

_TEXT = pa.dictionary(pa.int32(), pa.string())


def write_sdmx_csv(table: ProtectedTable, path: Path, publication: Publication) -> None:
    """Write the published cells as observations to insert into the cube's dataflow."""
    _, values = published(table)
    dimensions = [component_id(axis.variable) for axis in table.cube.axes]
    names = ["STRUCTURE", "STRUCTURE_ID", "ACTION", *dimensions]
    columns = pa.schema(
        [*(pa.field(name, _TEXT) for name in names), pa.field("OBS_VALUE", pa.from_numpy_dtype(values.dtype))]
    )
    with csv.CSVWriter(path, columns) as writer:
        for batch in _observations(table, publication, columns):
            writer.write_batch(batch)


def _observations(
    table: ProtectedTable, publication: Publication, columns: pa.Schema
) -> Iterator[pa.RecordBatch]:
    flow = f"{publication.agency}:{dataflow_id(table.cube.id)}({publication.version})"
    cells, values = published(table)
    codes = [pa.array(code_ids(axis.codes)) for axis in table.cube.axes]
    for start in range(0, len(cells), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        zeros = np.zeros(len(cells[part]), dtype=np.int32)
        fixed = [pa.DictionaryArray.from_arrays(zeros, pa.array([text])) for text in ("dataflow", flow, "I")]
        keys = [
            pa.DictionaryArray.from_arrays(nodes, texts)
            for nodes, texts in zip(axis_nodes(table.cube, cells[part]), codes, strict=True)
        ]
        yield pa.RecordBatch.from_arrays([*fixed, *keys, pa.array(values[part])], schema=columns)
