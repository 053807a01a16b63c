"""The ``[release]`` and ``[limits]`` sections: what is written, its formats, and what it discloses of the noise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from discreet.programme.population import UnitName
from discreet.programme.section import (
    Declared,
    Findings,
    Identifier,
    LabelEntry,
    LanguageTag,
    matching,
    worded,
)

Agency = Annotated[
    str,
    matching(
        r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*", "write an SDMX agency such as NSI or NSI.CENSUS"
    ),
]
Version = Annotated[
    str, matching(r"\d{1,6}\.\d{1,6}(\.\d{1,6})?", 'write a version such as "1.0" or "1.0.2", in quotes')
]


LONGEST_NAME = 64


class DeclaredRelease(Declared):
    """What is written and what it discloses about the noise."""

    name: Identifier | None = None
    title: LabelEntry | None = None
    language: LanguageTag = "en"
    unit_labels: dict[UnitName, LabelEntry] = {}
    agency: Agency | None = None
    version: Version = "1.0"
    formats: list[Literal["parquet", "csv", "sdmx-csv", "json-stat", "xlsx", "px"]] = ["parquet"]
    disclose: Literal["law", "variance", "none"] = "variance"
    consistent: bool = False
    levels: Literal["together", "split"] = "together"


class DeclaredLimits(Declared):
    """Limits on the size of a programme's cubes."""

    cells: Annotated[int, Field(ge=1, le=2**62)] = 200_000_000  # positions of cells take 64 bits
    published: Annotated[int, Field(ge=1)] = 50_000_000


class Disclosure(Enum):
    """What the public files disclose about the noise."""

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
    PX = "px"


@dataclass(frozen=True, kw_only=True)
class ReleaseRule:
    """What is written and what it discloses about the noise."""

    name: str
    agency: str
    version: str
    formats: tuple[ReleaseFormat, ...]
    disclose: Disclosure
    title: str = ""  # for readers
    language: str = "en"  # of labels, titles and definitions that do not state theirs
    consistent: bool = False  # whether counts are adjusted so that all totals add up
    split: bool = False  # whether CSV files and workbooks have one level each
    declared: tuple[str | None, str | None] = (None, None)  # name and agency, None where the folder decides


@dataclass(frozen=True)
class Limits:
    """Limits on the size of a programme's cubes."""

    cells: int  # possible ones of a cube, margins included
    published: int  # non-zero ones of a cube


def default_name(programme: Path) -> str:
    """The name of the programme file, or of its folder where the file is called programme as most are."""
    folder = programme.absolute().parent.name
    given = folder if programme.stem.lower() == "programme" and folder else programme.stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", given).strip("._-")[:LONGEST_NAME] or "release"


def default_agency(name: str) -> str:
    """The name of the release as an SDMX agency id; an office declares its own."""
    plain = re.sub(r"[^A-Z0-9_-]+", "_", name.upper()).strip("_-")
    return plain if plain[:1].isalpha() else f"A_{plain}"


def resolve_release(declared: DeclaredRelease, findings: Findings) -> ReleaseRule:
    """What is written; Parquet is always included."""
    formats = [ReleaseFormat.PARQUET, *(ReleaseFormat(form) for form in declared.formats)]
    name = declared.name or default_name(findings.path)
    return ReleaseRule(
        name=name,
        agency=declared.agency or default_agency(name),
        version=declared.version,
        formats=tuple(dict.fromkeys(formats)),
        disclose=Disclosure(declared.disclose),
        title=worded("release.title", declared.title, declared.language, findings),
        language=declared.language,
        consistent=declared.consistent,
        split=declared.levels == "split",
        declared=(declared.name, declared.agency),
    )


def resolve_limits(declared: DeclaredLimits) -> Limits:
    """Limits on the size of the programme's cubes."""
    return Limits(declared.cells, declared.published)
