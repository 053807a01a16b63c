"""Records as a stream of Arrow batches, whatever they come from; it does not look at what the columns mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

BATCH = 1 << 20  # records per batch: large enough for order to pay, small enough to stream


@dataclass(frozen=True)
class Records:
    """A source that has been looked at: its name for messages, its columns, and how to read some of them."""

    name: str
    schema: pa.Schema
    read: Callable[[Sequence[str], Sequence[str]], Iterator[pa.RecordBatch]]

    def batches(self, plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream ``plain`` columns as they are and ``coded`` ones dictionary-encoded where that is cheaper."""
        return self.read(plain, coded)
