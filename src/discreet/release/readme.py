"""The README.md of a release, for users of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.formats.publication import (
    PARTS_ADD_UP,
    SUMS,
    SWAPPED,
    Publication,
    additivity,
    purpose,
    same_everywhere,
    small_counts,
    weighted_note,
    zeros,
)
from discreet.formats.writers import SDMX_STRUCTURES
from discreet.programme.hierarchical import Output
from discreet.programme.labels import Labels
from discreet.programme.release import ReleaseFormat
from discreet.release.manifest import CubeEntry

_FORMATS = {
    ReleaseFormat.PARQUET: "`parquet/`: one Parquet file per table",
    ReleaseFormat.CSV: "`csv/`: the same as CSV (UTF-8, commas)",
    ReleaseFormat.SDMX_CSV: f"`sdmx/`: the same as SDMX-CSV 2.0; `{SDMX_STRUCTURES}` holds "
    "structures and codelists (SDMX-ML 3.0). A code with a character that SDMX does not allow, such as a dot, is "
    "spelled with `_` there",
    ReleaseFormat.JSON_STAT: "`json-stat/`: the same as JSON-stat 2.0",
    ReleaseFormat.XLSX: "`xlsx/`: the same as Excel workbooks: a table to read, notes, and data by line",
    ReleaseFormat.PX: "`px/`: the same as PX files for PxWeb and PC-Axis, zeros written out",
}

_OUTPUTS = {
    Output.ESTIMATES: "- `estimates/`: of every cell of a table the unbiased estimate, its standard error and a 95 % "
    "interval, beside the whole count. Use these for intervals and tests",
    Output.MEASUREMENTS: "- `measurements/`: the noisy counts themselves, by level and query, with their variances",
}


def readme(publication: Publication, cubes: Sequence[CubeEntry]) -> str:
    """The whole text; equal releases give equal text."""
    parts = (
        f"# {publication.title or publication.name}",
        _contents(cubes, publication),
        *_variables(publication.labels, cubes),
        _protection(publication, cubes),
        _use(cubes),
        _tables(cubes, publication.labels),
        _check(publication),
    )
    return "\n\n".join(parts) + "\n"


def _contents(cubes: Sequence[CubeEntry], publication: Publication) -> str:
    present = {file.format for cube in cubes for file in cube.files}
    split = {file.format for cube in cubes for file in cube.files if file.level}
    each = ", in a folder per table, one file for each level"
    lines = [f"- {text}{each if form in split else ''}" for form, text in _FORMATS.items() if form in present]
    rule = publication.noise.hierarchy
    if rule is not None:
        lines += [text for output, text in _OUTPUTS.items() if output in rule.outputs]
        lines.append("- `hierarchy/`: the tree of areas that was measured, its categories and public bounds")
    return "\n".join(
        (
            "## What is here",
            "",
            f"{len(cubes)} tables of counts, {_margins(cubes)}.",
            "",
            *lines,
            "- `codelists/`: code, parent and label of every category, one file per breakdown",
            "- `manifest.json`: the list of tables and files with their checksums",
            "",
            "In a table every row is one cell: for each variable a column with its code and one with its label, then",
            "`level` and `value`. The code `_T` means the total along that variable. The rows of one level count",
            "everyone once; rows of different levels must not be added up. A level is named by the breakdowns that are",
            "crossed there; one whose name ends with `(part)` lacks codes.",
        )
    )


def _variables(labels: Labels, cubes: Sequence[CubeEntry]) -> Iterator[str]:
    """What the names of variables and breakdowns mean, where there are labels."""
    names = dict.fromkeys(axis.breakdown for cube in cubes for axis in cube.axes)
    rows = [f"| `{name}` | {_cell(labels.axis(name))} |" for name in sorted(names)]
    if labels:
        yield "\n".join(("## Variables", "", "| breakdown | meaning |", "|---|---|", *rows))


def _protection(publication: Publication, cubes: Sequence[CubeEntry]) -> str:
    noise = publication.noise
    return "\n\n".join(
        (
            "## How the people behind the numbers are protected",
            f"{noise.sentence()} {purpose(noise, publication.swapped)}",
            *([f"**Households were exchanged.** {SWAPPED}"] if publication.swapped else []),
            *_totals(cubes, publication),
            f"**Zeros are not listed.** {zeros(noise, publication.swapped)} A program that needs them fills in 0.",
            f"**One cell, one value.** {same_everywhere(noise)} Its value in another table gives nothing new.",
            small_counts(noise),
            *([weighted_note(publication.noise)] if any(cube.weight for cube in cubes) else []),
        )
    )


def _margins(cubes: Sequence[CubeEntry]) -> str:
    if all(cube.published is None for cube in cubes):
        return "each with all its totals and sub-totals"
    return "with those of their totals and sub-totals that `manifest.json` lists as published"


def _totals(cubes: Sequence[CubeEntry], publication: Publication) -> Iterator[str]:
    """Why totals differ from sums, and which totals there are."""
    if all(cube.published is None for cube in cubes):
        sums = "add up" if publication.noise.adjusted else "may not add up"
        yield f"**Totals {sums}.** {additivity(publication.noise)}"
    else:
        yield (
            "**Only some totals are published.** A cell of a cross-tabulation that the manifest does not list as "
            f"published is not zero. {PARTS_ADD_UP}"
        )
    if any(cube.sums for cube in cubes):
        yield f"**Some totals are sums.** {SUMS}"


def _use(cubes: Sequence[CubeEntry]) -> str:
    if not cubes:
        return "## How to use it\n\nThere are no tables in this release."
    file = next(file.path for file in cubes[0].files if file.format is ReleaseFormat.PARQUET)
    level = cubes[0].axes[0].level(1)
    return f"""## How to use it

Python:

```python
import pandas as pd
table = pd.read_parquet("{file}")
table[table["level"] == "{level}"]
```

R:

```r
library(arrow)
table <- read_parquet("{file}")
table[table$level == "{level}", ]
```"""


def _tables(cubes: Sequence[CubeEntry], labels: Labels) -> str:
    rows = [
        f"| {_cell(cube.id)} | {_cell(cube.title)} | {_cell(_counted(cube, labels))} | {_cell(cube.base or 'all')} "
        f"| {_cell(' × '.join(axis.breakdown for axis in cube.axes))} | {cube.cells} |"
        for cube in cubes
    ]
    head = (
        "## Tables",
        "",
        "| table | title | counted | base | breakdowns | listed cells |",
        "|---|---|---|---|---|---|",
    )
    return "\n".join((*head, *rows))


def _counted(cube: CubeEntry, labels: Labels) -> str:
    counted = labels.counted(cube.unit, cube.count)
    return f"{counted}, weighted by {cube.weight}" if cube.weight else counted


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _check(publication: Publication) -> str:
    sums = " and that all totals add up" if publication.noise.adjusted else ""
    return f"""## How to check it

`discreet verify` with the name of this folder recomputes every checksum and checks that the same cell has the same
value in every table{sums}. Release `{publication.name}`, version {publication.version}."""
