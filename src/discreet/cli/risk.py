"""``discreet risk``: what an outsider can find out, by formula and without data; it owns no formula."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from discreet.audit.redundancy import (
    Mode,
    Regions,
    Universe,
    eu_redundancy,
    programme_redundancy,
    regions_of,
)
from discreet.cli.output import JSON, console, emit_json
from discreet.errors import mistake
from discreet.maths.redundancy import Average, Exposure, Redundancy
from discreet.schema import eu2021
from discreet.schema.programme import load_declaration

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

SHOWN = 10


@app.callback()
def risk() -> None:
    """Say what an outsider can find out, by formula."""


@app.command()
def redundancy(
    programme: Annotated[str, typer.Argument(help="A programme file, or eu-census-2021.")],
    country: Annotated[
        str | None, typer.Option("--country", help="eu-census-2021: whose regions, as MT.")
    ] = None,
    regions: Annotated[
        str | None,
        typer.Option("--regions", help="eu-census-2021: numbers of NUTS 1, 2, 3 and LAU, as 1,1,2,68."),
    ] = None,
    mode: Annotated[Mode, typer.Option("--mode", help="What counts as a representation.")] = Mode.LITERAL,
    as_json: JSON = False,
) -> None:
    """Count the representations t of each statistic and the cells k they add up; low k / t^2 is exposed."""
    places = _regions(programme, country, regions)
    universes = (
        programme_redundancy(load_declaration(Path(programme)), mode)
        if places is None
        else eu_redundancy(places, mode)
    )
    report: dict[str, Any] = {
        "programme": programme,
        "country": country,
        "regions": None
        if places is None
        else dict(zip(("NUTS1", "NUTS2", "NUTS3", "LAU"), places, strict=True)),
        "mode": mode.value,
        "universes": [_universe(universe) for universe in universes],
    }
    if as_json:
        emit_json(report)
        return
    for universe in universes:
        console.print(_exposed(universe))


def _regions(programme: str, country: str | None, regions: str | None) -> Regions | None:
    """The regions of the EU programme; None for a declared one, which has its own."""
    if programme != eu2021.NAME:
        for name, value in (("--country", country), ("--regions", regions)):
            if value is not None:
                raise mistake(
                    "", name, value, f"leave it out, or take {eu2021.NAME}: a programme has its regions"
                )
        return None
    if (country is None) == (regions is None):
        raise mistake("", "--country or --regions", "none" if country is None else "both", "give one of them")
    if country is not None:
        return regions_of(country)
    parts = str(regions).split(",")
    if len(parts) != 4 or not all(part.strip().isdecimal() for part in parts):
        raise mistake("", "--regions", str(regions), "give four whole numbers, as 1,1,2,68")
    nuts1, nuts2, nuts3, lau = (int(part) for part in parts)
    return nuts1, nuts2, nuts3, lau


def _universe(universe: Universe) -> dict[str, Any]:
    return {
        "counted": universe.counted,
        "tables": universe.tables,
        "most_exposed": {
            "same_noise": [_name(one) for one in _by_risk(universe, same=True)[:SHOWN]],
            "fresh_noise": [_name(one) for one in _by_risk(universe, same=False)[:SHOWN]],
        },
        "statistics": [
            {
                "statistic": _name(one),
                "same_noise": _exposure(one.same_noise),
                "fresh_noise": _exposure(one.fresh_noise),
            }
            for one in universe.statistics
        ],
    }


def _by_risk(universe: Universe, same: bool) -> list[Redundancy]:
    return sorted(
        universe.statistics,
        key=lambda one: (one.same_noise if same else one.fresh_noise).riskiest.ratio,
    )


def _name(one: Redundancy) -> str:
    return " x ".join(level.name for level in sorted(one.statistic)) or "total"


def _exposure(found: Exposure) -> dict[str, Any]:
    return {
        **_average(found.all),
        "riskiest": _average(found.riskiest),
        "first_minimum": _average(found.first_minimum),
    }


def _average(found: Average) -> dict[str, Any]:
    whole = found.k.denominator == 1
    return {"t": found.t, "k": int(found.k) if whole else float(found.k), "k_over_t2": found.ratio}


def _exposed(universe: Universe) -> Table:
    """The statistics that averaging threatens most, with the same noise for the same participants."""
    headers = ("t", "k", "k/t2", "riskiest", "t", "k", "k/t2", "riskiest")
    table = Table(universe.counted, *headers, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.title = "same noise for the same participants | noise of its own in every table"
    for column in table.columns[1:]:
        column.justify = "right"
    for one in _by_risk(universe, same=True)[:SHOWN]:
        numbers = [_numbers(found) for found in (one.same_noise, one.fresh_noise)]
        table.add_row(_name(one), *numbers[0], *numbers[1])
    return table


def _numbers(found: Exposure) -> tuple[str, ...]:
    ratios = (f"{found.all.ratio:.4g}", f"{found.riskiest.ratio:.4f}")
    return str(found.all.t), f"{float(found.all.k):.4g}", *ratios
