"""Datasets as CSV files: UTF-8, a header, text in quotes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from pyarrow import csv as arrow_csv

from discreet.formats.columns import CODES_AND_LABELS, LongForm, batches, schema
from discreet.formats.dataset import Dataset, Sink, opened


def write_csv(
    dataset: Dataset, sink: Sink, columns: LongForm = CODES_AND_LABELS, separator: str = ","
) -> None:
    """Write the listed cells, one to a line."""
    options = arrow_csv.WriteOptions(delimiter=separator)
    with arrow_csv.CSVWriter(sink, schema(dataset, columns), write_options=options) as writer:
        for batch in batches(dataset, columns):
            writer.write_batch(batch)


def write_lines(
    lines: Iterable[Sequence[str | int | float | None]], sink: Sink, separator: str = ","
) -> None:
    """Write a table as arranged; text is quoted only where needed."""
    with opened(sink) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        csv.writer(text, delimiter=separator, lineterminator="\n").writerows(lines)
        text.detach()
