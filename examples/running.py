"""Run an example: its arguments, its printed table, its charts and its page in the documentation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from examples.claims import HEAD, Claim, markdown, summary

BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"
PAGES = Path(__file__).parent.parent / "docs" / "explanation" / "replication"
WIDEST = 58

Chart = Any  # of altair, or its specification; the operators of altair are not typed


class Size(StrEnum):
    """How much is drawn: seconds, or as much as the paper drew."""

    SMALL = "small"
    FULL = "full"


@dataclass(frozen=True, eq=False)
class Replication:
    """What an example found."""

    claims: Sequence[Claim]
    charts: Mapping[str, Chart] = field(default_factory=dict)

    @property
    def broken(self) -> list[Claim]:
        """The claims whose verdict the numbers do not bear out."""
        return [claim for claim in self.claims if not claim.holds]

    @property
    def doubtful(self) -> list[Claim]:
        """The claims whose verdict is not the one that the numbers give: at the full size there must be none."""
        return [claim for claim in self.claims if claim.found is not claim.verdict]


@dataclass(frozen=True)
class Example:
    """One paper: the name of its page, its title and how it is computed."""

    page: str
    title: str
    replicate: Callable[[Size], Replication]

    @property
    def path(self) -> Path:
        """Its page in the documentation."""
        return PAGES / f"{self.page}.md"


def data(values: Sequence[Mapping[str, Any]]) -> Any:
    """The rows of a chart, kept in its specification."""
    return alt.Data(values=list(values))  # type: ignore[no-untyped-call]


def main(example: Example, arguments: Sequence[str] | None = None) -> int:
    """Run an example from the command line; 1 where a verdict no longer holds."""
    given = _parser(example).parse_args(arguments)
    found = example.replicate(Size(given.size))
    print(text(example, found))
    if given.out:
        print("\n".join(str(path) for path in write_charts(given.out, found.charts)))
    wrong = found.doubtful if given.size == Size.FULL else found.broken
    for claim in wrong:
        print(f"not {claim.verdict} but {claim.found}: {claim.where}, {claim.what}", file=sys.stderr)
    if given.page and not wrong:
        write_page(example, found)
        print(example.path)
    return 1 if wrong else 0


def _parser(example: Example) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=example.title)
    parser.add_argument("--size", choices=list(Size), default=Size.SMALL, help="how much is drawn")
    parser.add_argument("--out", type=Path, help="folder for the charts, as SVG and PNG")
    parser.add_argument(
        "--page", action="store_true", help="write the numbers into the page of the documentation"
    )
    return parser


def text(example: Example, found: Replication) -> str:
    """The table as plain text."""
    rows = [HEAD[:-1], *(claim.row()[:-1] for claim in found.claims)]
    widths = [min(WIDEST, max(len(row[k]) for row in rows)) for k in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([example.title, "", *lines, "", summary(found.claims)])


def write_charts(out: Path, charts: Mapping[str, Chart]) -> list[Path]:
    """Write every chart as SVG and PNG."""
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, chart in charts.items():
        spec = specification(chart)
        svg, png = out / f"{name}.svg", out / f"{name}.png"
        svg.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
        png.write_bytes(vl_convert.vegalite_to_png(spec, scale=2))
        paths += [svg, png]
    return paths


def specification(chart: Chart) -> dict[str, Any]:
    """The Vega-Lite specification of a chart."""
    found: dict[str, Any] = chart if isinstance(chart, dict) else chart.to_dict(validate=False)
    return found


def write_page(example: Example, found: Replication) -> None:
    """Put the numbers between the marks of the page; the words around them are written by hand."""
    page = example.path.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    example.path.write_text(f"{before}{block(found)}{after}", encoding="utf-8")


def block(found: Replication) -> str:
    """The part of a page that is computed."""
    return f"{BEGIN}\n{summary(found.claims)}.\n\n{markdown(found.claims)}\n{END}"


def rows_of(page: str) -> list[tuple[str, ...]]:
    """The rows of the computed part of a page."""
    inside = page.partition(BEGIN)[2].partition(END)[0]
    lines = [line for line in inside.splitlines() if line.startswith("| ")]
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines[2:]]
