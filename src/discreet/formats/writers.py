"""Which writer makes which format of a release, and where its files go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from discreet.formats.csv import write_csv
from discreet.formats.dataset import Dataset
from discreet.formats.levels import PART
from discreet.formats.parquet import write_parquet
from discreet.lazy import lazily
from discreet.programme.release import ReleaseFormat

_PLACES = {
    ReleaseFormat.PARQUET: "parquet/{}.parquet",
    ReleaseFormat.CSV: "csv/{}.csv",
    ReleaseFormat.SDMX_CSV: "sdmx/{}.csv",
    ReleaseFormat.JSON_STAT: "json-stat/{}.json",
    ReleaseFormat.XLSX: "xlsx/{}.xlsx",
    ReleaseFormat.PX: "px/{}.px",
}
SDMX_STRUCTURES = "sdmx/structures.xml"


class Writer(Protocol):
    """Writes a dataset to one file; the same dataset gives the same bytes."""

    def __call__(self, dataset: Dataset, sink: Path, /) -> None:
        """Write the file, which does not exist yet."""


def _imported_by_use(module: str, name: str) -> Writer:
    """A writer of a format that most releases do not have."""
    of: Any = lazily(f"discreet.formats.{module}")

    def write(dataset: Dataset, sink: Path, /) -> None:
        getattr(of, name)(dataset, sink)

    return write


WRITERS: Mapping[ReleaseFormat, Writer] = {
    ReleaseFormat.PARQUET: write_parquet,
    ReleaseFormat.CSV: write_csv,
    ReleaseFormat.SDMX_CSV: _imported_by_use("sdmx_data", "write_csv_file"),
    ReleaseFormat.JSON_STAT: _imported_by_use("json_stat", "write_json_stat"),
    ReleaseFormat.XLSX: _imported_by_use("xlsx", "write_xlsx"),
    ReleaseFormat.PX: _imported_by_use("px", "write_px"),
}


def with_parquet(formats: Iterable[ReleaseFormat]) -> tuple[ReleaseFormat, ...]:
    """The requested formats in a fixed order, Parquet always included: verification and readers use it."""
    wanted = {ReleaseFormat.PARQUET, *formats}
    return tuple(form for form in ReleaseFormat if form in wanted)


SPLIT = (ReleaseFormat.CSV, ReleaseFormat.XLSX)  # formats that may have a file for each level


def level_place(cube: str, form: ReleaseFormat, level: str) -> str:
    """The path of the file of one level: csv/9.2/GEO.COUNTY-SEX.csv; names have no hyphen of their own."""
    name = level.replace(PART, "--part").replace(" x ", "-").replace(":", ".")
    return _PLACES[form].format(f"{quote(cube, safe='')}/{quote(name, safe='')}")


def place(cube: str, form: ReleaseFormat) -> str:
    """The path of a cube's file of a format in the release; other characters of an id are percent-encoded."""
    return _PLACES[form].format(quote(cube, safe=""))
