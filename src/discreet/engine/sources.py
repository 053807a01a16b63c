"""Opening whatever source a programme declares; the one door from declared sources to records."""

from __future__ import annotations

from discreet.engine.databases import open_database, open_query
from discreet.engine.files import open_files
from discreet.engine.records import Records
from discreet.schema.sources import DatabaseSource, FileSource, Source


def open_source(source: Source, key: str) -> Records:
    """Open a source; ``key`` is its place in the programme file, for messages."""
    match source:
        case FileSource():
            return open_files(source, key)
        case DatabaseSource():
            return open_database(source, key)
    return open_query(source, key)
