"""Datasets as Parquet files in long form."""

from __future__ import annotations

import pyarrow.parquet as pq

from discreet.formats.columns import CODES_AND_LABELS, LongForm, batches, schema
from discreet.formats.dataset import VALUE, Dataset, Sink

METADATA_PREFIX = "discreet."


def write_parquet(dataset: Dataset, sink: Sink, form: LongForm = CODES_AND_LABELS) -> None:
    """Write the listed cells; the same table gives the same bytes."""
    metadata = {METADATA_PREFIX + key: value for key, value in dataset.facts.items()}
    columns = schema(dataset, form).with_metadata(metadata)
    # Statistics of a text column cost more than writing it; a reader only prunes by the first axis and the value.
    statistics = [columns.names[0], VALUE]
    with pq.ParquetWriter(
        sink, columns, compression="zstd", compression_level=1, write_statistics=statistics
    ) as writer:
        for batch in batches(dataset, form):
            writer.write_batch(batch.replace_schema_metadata(columns.metadata))
