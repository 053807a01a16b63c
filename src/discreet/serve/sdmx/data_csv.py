"""Observations as SDMX-CSV 2.0 and 1.0; it owns the columns, not what is in them."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
from pyarrow import csv

from discreet.release.sdmx_status import ATTRIBUTES, PUBLISHED, SUPPRESSED
from discreet.release.sdmx_structures import OBSERVATION
from discreet.serve.sdmx.observations import Detail, Observations

# ids hold no comma, quote or line end, so that nothing needs quotes
_PLAIN = csv.WriteOptions(include_header=False, quoting_style="none")


def write_csv_2(found: Observations) -> bytes:
    """SDMX-CSV 2.0: the dataflow and the action stand in every row."""
    fixed = {"STRUCTURE": "dataflow", "STRUCTURE_ID": _flow(found), "ACTION": "I"}
    return _written(found, fixed)


def write_csv_1(found: Observations) -> bytes:
    """SDMX-CSV 1.0, which pandas connectors ask for."""
    return _written(found, {"DATAFLOW": _flow(found)})


def _flow(found: Observations) -> str:
    return f"{found.flow.agency}:{found.flow.id}({found.flow.version})"


def _written(found: Observations, fixed: dict[str, str]) -> bytes:
    rows = np.flatnonzero(found.shown)
    zeros = np.zeros(len(rows), dtype=np.int32)
    columns = {name: pa.DictionaryArray.from_arrays(zeros, pa.array([text])) for name, text in fixed.items()}
    for dimension, codes, nodes in zip(
        found.dimensions, found.codes, np.unravel_index(rows, found.shape), strict=True
    ):
        columns[dimension.id] = pa.DictionaryArray.from_arrays(nodes.astype(np.int32), pa.array(codes))
    withheld = found.withheld[rows]
    if found.detail is not Detail.KEYS:
        columns[OBSERVATION] = pa.array(found.values[rows], mask=withheld)
    if found.detail is Detail.FULL:
        for name in ATTRIBUTES:
            texts = pa.array([PUBLISHED[name], SUPPRESSED[name]])
            columns[name] = pa.DictionaryArray.from_arrays(withheld.astype(np.int32), texts)
    sink = io.BytesIO()
    sink.write((",".join(columns) + "\n").encode())
    csv.write_csv(pa.table(columns), sink, _PLAIN)
    return sink.getvalue()
