"""Datasets as Parquet files in long form."""

from __future__ import annotations

import pyarrow.parquet as pq

from discreet.formats.columns import CODES_AND_LABELS, ROWS_AT_ONCE, LongForm, batches, schema
from discreet.formats.dataset import VALUE, Dataset, Sink

METADATA_PREFIX = "discreet."
_WRITTEN_AT_ONCE = 1 << 16  # values of a column
_PAGE = 1 << 24  # bytes, more than the values of a row group have


def write_parquet(dataset: Dataset, sink: Sink, form: LongForm = CODES_AND_LABELS) -> None:
    """Write the listed cells; the same table gives the same bytes."""
    metadata = {METADATA_PREFIX + key: value for key, value in dataset.facts.items()}
    columns = schema(dataset, form).with_metadata(metadata)
    # Statistics of a text column cost more than writing it; a reader only prunes by the first axis and the value.
    statistics = [columns.names[0], VALUE]
    with pq.ParquetWriter(
        sink,
        columns,
        compression="zstd",
        compression_level=1,
        write_statistics=statistics,
        write_batch_size=_WRITTEN_AT_ONCE,
        max_rows_per_page=ROWS_AT_ONCE,  # each page costs a writer and every reader a new compressor
        data_page_size=_PAGE,
    ) as writer:
        for batch in batches(dataset, form):
            writer.write_batch(batch.replace_schema_metadata(columns.metadata))
