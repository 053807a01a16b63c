"""``discreet risk redundancy``: in how many ways each statistic of a programme can be computed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from discreet.audit.redundancy import (
    Mode,
    Regions,
    UniverseRedundancy,
    eu_redundancy,
    programme_redundancy,
    regions_of,
)
from discreet.cli.output import JSON, console, emit_json
from discreet.errors import mistake
from discreet.maths.attacks.redundancy import Average, Exposure, Redundancy
from discreet.programme import eu2021
from discreet.programme.programme import load_declaration

SHOWN = 10


def redundancy(
    programme: Annotated[str, typer.Argument(help="A programme file, or eu-census-2021.")],
    country: Annotated[
        str | None,
        typer.Option("--country", help="eu-census-2021: the country whose regions are used, e.g. MT."),
    ] = None,
    regions: Annotated[
        str | None,
        typer.Option("--regions", help="eu-census-2021: numbers of NUTS 1, 2, 3 and LAU, e.g. 1,1,2,68."),
    ] = None,
    mode: Annotated[Mode, typer.Option("--mode", help="What counts as a representation.")] = Mode.LITERAL,
    as_json: JSON = False,
) -> None:
    """Count the representations t of each statistic and the cells k they add up; a low k / t^2 means exposed."""
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
        console().print(_exposed(universe))


def _regions(programme: str, country: str | None, regions: str | None) -> Regions | None:
    """The regions of the EU programme; None for a declared one, which has its own."""
    if programme != eu2021.NAME:
        for name, value in (("--country", country), ("--regions", regions)):
            if value is not None:
                raise mistake(
                    "",
                    name,
                    value,
                    f"leave it out, or use {eu2021.NAME}: a programme file declares its regions",
                )
        return None
    if (country is None) == (regions is None):
        raise mistake("", "--country or --regions", "none" if country is None else "both", "give one of them")
    if country is not None:
        return regions_of(country)
    parts = str(regions).split(",")
    if len(parts) != 4 or not all(part.strip().isdecimal() for part in parts):
        raise mistake("", "--regions", str(regions), "give four whole numbers, e.g. 1,1,2,68")
    nuts1, nuts2, nuts3, lau = (int(part) for part in parts)
    return nuts1, nuts2, nuts3, lau


def _universe(universe: UniverseRedundancy) -> dict[str, Any]:
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


def _by_risk(universe: UniverseRedundancy, same: bool) -> list[Redundancy]:
    return sorted(
        universe.statistics,
        key=lambda one: (one.same_noise if same else one.fresh_noise).best.variance,
    )


def _name(one: Redundancy) -> str:
    return " x ".join(level.name for level in sorted(one.statistic)) or "total"


def _exposure(found: Exposure) -> dict[str, Any]:
    return {
        **_average(found.all),
        "riskiest": _average(found.riskiest),
        "first_minimum": _average(found.first_minimum),
        "best": found.best.variance,
    }


def _average(found: Average) -> dict[str, Any]:
    whole = found.k.denominator == 1
    return {"t": found.t, "k": int(found.k) if whole else float(found.k), "k_over_t2": found.ratio}


def _exposed(universe: UniverseRedundancy) -> Table:
    """The statistics that averaging threatens most, with the same noise for the same participants."""
    headers = ("t", "k", "k/t2", "best", "t", "k", "k/t2", "best")
    table = Table(universe.counted, *headers, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.title = "same noise for the same participants | independent noise in every table"
    for column in table.columns[1:]:
        column.justify = "right"
    for one in _by_risk(universe, same=True)[:SHOWN]:
        numbers = [_numbers(found) for found in (one.same_noise, one.fresh_noise)]
        table.add_row(_name(one), *numbers[0], *numbers[1])
    return table


def _numbers(found: Exposure) -> tuple[str, ...]:
    ratios = (f"{found.all.ratio:.4g}", f"{found.best.variance:.4f}")
    return str(found.all.t), f"{float(found.all.k):.4g}", *ratios
