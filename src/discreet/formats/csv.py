"""Datasets as CSV files: UTF-8, a header, text in quotes that no spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from pyarrow import csv as arrow_csv

from discreet.formats.columns import LongForm, batches, schema
from discreet.formats.dataset import Dataset, Sink, opened

# what a spreadsheet could take for a formula: plain numbers and a single sign are not
_FORMULA = re.compile(r"\s*([=@]|[+-](?!(\d+([.,]\d+)?)?$))")


def harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula, nor for two lines: an apostrophe marks it as text."""
    line = text.replace("\r", " ")
    return f"'{line}" if _FORMULA.match(line) else line


HARMLESS = LongForm(spelled=harmless)


def write_csv(dataset: Dataset, sink: Sink, columns: LongForm = HARMLESS, separator: str = ",") -> None:
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
