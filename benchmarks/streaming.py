"""A census larger than one would hold in memory, through the whole path."""

from __future__ import annotations

from pathlib import Path

from benchmarks.census import census
from benchmarks.ingest import whole_path
from benchmarks.lines import Section

PERSONS = 50_000_000


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    return [whole_path(str(census(data, persons)), persons, (("peak GB", 12),))]
