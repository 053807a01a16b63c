"""The resolved parts of a programme: units, variables, release, limits.

It owns their shape, not how they are read from a file nor what is done with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from discreet.schema.codelist import Breakdown, Codelist
from discreet.schema.sources import FileSource, Source


class Disclosure(Enum):
    """What the public files tell of the noise."""

    LAW = "law"
    VARIANCE = "variance"
    NONE = "none"


class ReleaseFormat(Enum):
    """A format in which cubes are written."""

    PARQUET = "parquet"
    CSV = "csv"
    SDMX_CSV = "sdmx-csv"
    JSON_STAT = "json-stat"
    XLSX = "xlsx"


@dataclass(frozen=True)
class Unit:
    """One kind of record, its table and the column of its ids (None where record keys are given)."""

    name: str
    source: Source
    id_column: str | None


@dataclass(frozen=True)
class PopulationRule:
    """The tables of records and the columns that identify and place them."""

    units: Mapping[str, Unit]
    ids: Mapping[str, str]  # unit -> id column; also of units that have no table of their own
    geography: tuple[str, ...]  # coarse to fine
    record_key: str | None  # a column with the office's own record keys


@dataclass(frozen=True)
class Variable:
    """One variable: the column that holds its leaf codes, and the breakdowns that cubes use."""

    name: str
    column: str
    codelist: Codelist
    breakdowns: Mapping[str, Breakdown]
    units: tuple[str, ...] | None  # None: any unit whose table has the column


@dataclass(frozen=True)
class ReadyMade:
    """A table of counts with cell keys, tabulated elsewhere; its columns are named as the variables."""

    source: FileSource
    count: str
    key: str
    modulus: int


@dataclass(frozen=True)
class ReleaseRule:
    """What is written and what it tells of the noise."""

    name: str
    agency: str
    version: str
    formats: tuple[ReleaseFormat, ...]
    disclose: Disclosure
    title: str = ""  # for readers


@dataclass(frozen=True)
class Limits:
    """What a programme may at most ask for."""

    cells: int  # possible ones of a cube, margins included
    published: int  # non-zero ones of a cube
