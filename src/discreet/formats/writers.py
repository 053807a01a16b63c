"""Which writer makes which format, and where its files go; the writers themselves are modules of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from discreet.formats.columns import Publication
from discreet.formats.csv import write_csv
from discreet.formats.json_stat import write_json_stat
from discreet.formats.parquet import write_parquet
from discreet.formats.sdmx import write_sdmx_csv
from discreet.formats.xlsx import write_xlsx
from discreet.programme.release import ReleaseFormat
from discreet.tabulate.tables import ProtectedTable

_PLACES = {
    ReleaseFormat.PARQUET: "parquet/{}.parquet",
    ReleaseFormat.CSV: "csv/{}.csv",
    ReleaseFormat.SDMX_CSV: "sdmx/{}.csv",
    ReleaseFormat.JSON_STAT: "json-stat/{}.json",
    ReleaseFormat.XLSX: "xlsx/{}.xlsx",
}
SDMX_STRUCTURES = "sdmx/structures.xml"


class Writer(Protocol):
    """Writes the published cells of one cube to one file; the same table gives the same bytes."""

    def __call__(self, table: ProtectedTable, path: Path) -> None:
        """Write the file, which does not exist yet."""


def writers(publication: Publication) -> Mapping[ReleaseFormat, Writer]:
    """The writer of every format, told what it needs to know of the release."""
    return {
        ReleaseFormat.PARQUET: write_parquet,
        ReleaseFormat.CSV: write_csv,
        ReleaseFormat.SDMX_CSV: partial(write_sdmx_csv, publication=publication),
        ReleaseFormat.JSON_STAT: partial(write_json_stat, publication=publication),
        ReleaseFormat.XLSX: partial(write_xlsx, publication=publication),
    }


def with_parquet(formats: Iterable[ReleaseFormat]) -> tuple[ReleaseFormat, ...]:
    """The wanted formats in a fixed order, Parquet always among them: verification and readers use it."""
    wanted = {ReleaseFormat.PARQUET, *formats}
    return tuple(form for form in ReleaseFormat if form in wanted)


def place(cube: str, form: ReleaseFormat) -> str:
    """Where a cube's file of a format stands in the release; odd characters of an id are percent-encoded."""
    return _PLACES[form].format(quote(cube, safe=""))
