"""``discreet forecast``: expected errors of each noise for a programme, without its data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import sqrt
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from discreet.advise.forecast import (
    DELTA,
    SIZES,
    CandidateForecast,
    Forecast,
    LawForecast,
    MarginForecast,
    Unavailable,
    candidates_for,
    read_epsilons,
)
from discreet.advise.forecast import forecast as forecast_of
from discreet.advise.hierarchical import hierarchy_forecast
from discreet.cli.output import JSON, console, emit_json, say
from discreet.errors import mistake
from discreet.hierarchy.errors import AdjustedError
from discreet.page.skeleton import check_picture
from discreet.programme.noise import PrivateNoise
from discreet.programme.programme import Programme, load_declaration
from discreet.report.forecast import write_forecast_picture

SHOWN_SIZES = (1, 3, 10, 100, 1000)
MOST_LAWS = 12  # of one candidate in the summary
NAMED = 3  # names that are listed one by one
DIGITS = 6


def forecast(
    programme: Annotated[Path, typer.Argument(help="The programme file; its data are not needed.")],
    epsilon: Annotated[
        str, typer.Option("--epsilon", help="Budgets of the whole programme to compare, separated by commas.")
    ] = "1,5,20",
    cube: Annotated[
        str | None, typer.Option("--cube", help="Show these cubes in detail; ids separated by commas.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw to this .png, .svg or .html.")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Expected errors per cube, margin and cell size for the declared noise and others; no data are read."""
    if picture is not None:
        check_picture(picture)
    epsilons, declared = read_epsilons(epsilon), load_declaration(programme)
    if declared.hierarchy is not None:
        _hierarchical(declared, cube, picture, as_json)
        return
    cubes = _cubes(declared, cube)
    found = forecast_of(declared, candidates_for(declared, epsilons)).only(cubes)
    if picture is not None:
        write_forecast_picture(picture, found)
    if as_json:
        emit_json({**report(found), "picture": str(picture) if picture else None})
        return
    _show(found, detailed=cube is not None)
    if picture is not None:
        say(f"\n{picture}: drawn")


def _hierarchical(programme: Programme, cube: str | None, picture: Path | None, as_json: bool) -> None:
    """The error of every query at every level of a hierarchical release."""
    for option, given in (("--cube", cube), ("--picture", picture)):
        if given is not None:
            remedy = "leave it out: a hierarchical release is forecast by level and query"
            raise mistake(programme.path, option, str(given), remedy)
    found = hierarchy_forecast(programme)
    if as_json:
        emit_json(asdict(found))
        return
    say(
        f"{found.programme}: {found.measure} {found.budget}, {found.nodes:,} measured areas, {found.bypassed:,} equal "
        "to their only child. No data were read."
    )
    say(
        "noise: standard deviation of a measured count. estimate: of the count estimated from all measurements.\n"
    )
    headers = ("level", "areas", "query", "cells", "noise", "estimate", "smallest", "largest")
    table = Table(*headers, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in (table.columns[1], *table.columns[3:]):
        column.justify, column.no_wrap = "right", True
    for row in found.queries:
        noise = "-" if row.noise is None else _number(row.noise)
        shown = (_number(one) for one in (row.mean, row.smallest, row.largest))
        table.add_row(row.level, f"{row.areas:,}", row.query, f"{row.cells:,}", noise, *shown)
    console().print(table)


def _cubes(programme: Programme, text: str | None) -> set[str]:
    known = [cube.id for cube in programme.cubes]
    if text is None:
        return set(known)
    wanted = {part.strip() for part in text.split(",") if part.strip()}
    unknown = sorted(wanted - set(known))
    if unknown or not wanted:
        value = f"no cube {', '.join(map(repr, unknown)) or repr(text)}"
        raise mistake(programme.path, "--cube", value, f"choose from {', '.join(known)}")
    return wanted


def report(found: Forecast) -> dict[str, object]:
    """Everything that was forecast, ready for JSON."""
    return {
        "programme": found.programme,
        "crosstabs": found.crosstabs,
        "delta": float(DELTA),
        "sizes": list(SIZES),
        "candidates": [_candidate(one) for one in found.candidates],
        "adjusted": [
            {key: _rounded(value) for key, value in asdict(error).items()} for error in found.adjusted
        ],
    }


def _candidate(one: CandidateForecast) -> dict[str, object]:
    noise = one.candidate.noise
    facts: dict[str, object] = {"name": one.candidate.name, "notes": list(one.candidate.notes)}
    facts["available"] = not isinstance(noise, Unavailable)
    if isinstance(noise, Unavailable):
        facts["reason"] = noise.reason
    elif isinstance(noise, PrivateNoise):
        budget = "rho" if noise.is_gaussian else "epsilon"
        facts |= {"kind": noise.kind.value, budget: str(noise.budget.total)}
        facts |= {"bound": noise.bound, "delta": float(noise.delta), "composition": noise.composition.value}
    else:
        facts["kind"] = "cell-key"
    return {**facts, "margins": [_margin(margin) for margin in one.margins]}


def _margin(margin: MarginForecast) -> dict[str, object]:
    law = margin.law
    return {
        "cube": margin.cube,
        "axes": margin.axes,
        "crosstabs": margin.crosstabs,
        "cells": margin.cells,
        "parameter": None if law.parameter is None else str(law.parameter),
        "standard_deviation": _rounded(law.deviation),
        "too_much_noise": law.too_much,
        "errors": [{key: _rounded(value) for key, value in asdict(error).items()} for error in law.errors],
    }


def _rounded(value: float | None) -> float | None:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _show(found: Forecast, detailed: bool) -> None:
    say(f"{found.programme}: {found.crosstabs:,} different cross-tabulations. No data were read.")
    say(
        "Columns 1 .. 1,000: expected |published - true| of a cell with that true count. 0 seen: chance that an empty "
        "cell is published above 0. 1 lost: chance that a 1 is published as 0. sd: standard deviation of the noise.\n"
    )
    if detailed:
        _show_margins(found)
    else:
        console().print(_table("candidate", [(one.candidate.name, one, law) for one, law in _main(found)]))
        _show_differing(found)
        say("")
    _show_notes(found)
    _show_adjusted(found, detailed)
    if not detailed:
        say("\n--cube ID shows the margins of a cube, --json everything, --picture draws it.")


def _main(found: Forecast) -> Iterator[tuple[CandidateForecast, LawForecast | None]]:
    """Each candidate with the law of most of its cross-tabulations."""
    for one in found.candidates:
        yield one, one.laws[0] if one.laws else None


def _show_differing(found: Forecast) -> None:
    """The laws of the first candidate that has several; all others divide their budgets in the same way."""
    one = next((one for one in found.candidates if len(one.laws) > 1), None)
    if one is None:
        return
    say(f"\nAbove: the noise of most cross-tabulations. Where it differs, for {one.candidate.name}:\n")
    console().print(_table("cubes and axes", [(_where(one, law), one, law) for law in one.laws[:MOST_LAWS]]))
    if len(one.laws) > MOST_LAWS:
        say(f"and {len(one.laws) - MOST_LAWS} more: see --json")


def _show_adjusted(found: Forecast, detailed: bool) -> None:
    """Errors before and after totals are made to add up: of each cube, or of all cubes by number of axes."""
    if not found.adjusted:
        return
    draws = found.adjusted[0].draws
    say(
        "\nconsistent = true, declared noise: standard deviation of the error before and after counts are adjusted "
        f"so that totals add up, by {draws} draws of noise, before they are made whole numbers >= 0.\n"
    )
    table = Table("cube", "axes", "cells", "before", "after", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in table.columns[1:]:
        column.justify = "right"
    rows = found.adjusted if detailed else tuple(_summed(found.adjusted))
    for row in rows:
        table.add_row(row.cube, str(row.axes), f"{row.cells:,}", f"{row.before:.3g}", f"{row.after:.3g}")
    console().print(table)


def _summed(errors: Sequence[AdjustedError]) -> Iterator[AdjustedError]:
    """The errors of all cubes together, by number of axes."""
    for axes in sorted({error.axes for error in errors}):
        alike = [error for error in errors if error.axes == axes]
        cells = sum(error.cells for error in alike)
        before, after = (
            sqrt(sum(error.cells * getattr(error, side) ** 2 for error in alike) / cells)
            for side in ("before", "after")
        )
        yield AdjustedError("all", axes, cells, before, after, alike[0].draws)


def _show_margins(found: Forecast) -> None:
    places: dict[tuple[str, int], list[tuple[CandidateForecast, MarginForecast]]] = {}
    for one in found.candidates:
        for margin in one.margins:
            places.setdefault((margin.cube, margin.axes), []).append((one, margin))
    for (cube, axes), here in places.items():
        say(f"cube {cube}, {axes} {'axis' if axes == 1 else 'axes'}")
        console().print(_table("candidate", [(_named(one, margin), one, margin.law) for one, margin in here]))
        say("")


def _named(one: CandidateForecast, margin: MarginForecast) -> str:
    """A candidate, and how many cross-tabulations are meant where they have different noise."""
    alike = [other for other in one.margins if (other.cube, other.axes) == (margin.cube, margin.axes)]
    return one.candidate.name + (f" ({margin.crosstabs} cross-tabulations)" if len(alike) > 1 else "")


def _show_notes(found: Forecast) -> None:
    notes: dict[str, list[str]] = {}
    for one in found.candidates:
        for note in _notes(one):
            notes.setdefault(note, []).append(one.candidate.name)
    for note, names in notes.items():
        say(f"{'; '.join(names) if len(names) <= NAMED else f'{len(names)} candidates'}: {note}")


def _notes(one: CandidateForecast) -> Iterator[str]:
    if isinstance(one.candidate.noise, Unavailable):
        yield f"not available, {one.candidate.noise.reason}"
    yield from one.candidate.notes
    if any(law.too_much for law in one.laws):
        yield "too much noise to draw; protect refuses it"


def _table(what: str, rows: Sequence[tuple[str, CandidateForecast, LawForecast | None]]) -> Table:
    headers = (what, "per cell", "sd", *(f"{size:,}" for size in SHOWN_SIZES), "0 seen", "1 lost")
    table = Table(*headers, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    for name, one, law in rows:
        table.add_row(name, *(("-",) if law is None else (_parameter(one, law), *_errors(law))))
    return table


def _parameter(one: CandidateForecast, law: LawForecast) -> str:
    noise = one.candidate.noise
    if law.parameter is None or not isinstance(noise, PrivateNoise):
        return "p-table"
    return f"{'rho' if noise.is_gaussian else 'eps'} {float(law.parameter):.2g}"


def _errors(law: LawForecast) -> tuple[str, ...]:
    if law.too_much:
        return (_number(law.deviation), *["-"] * (len(SHOWN_SIZES) + 2))
    by_size = {error.count: error for error in law.errors}
    seen, lost = by_size[0].false_positive or 0.0, by_size[1].false_zero or 0.0
    sizes = (_number(by_size[size].l1) for size in SHOWN_SIZES)
    return (_number(law.deviation), *sizes, f"{100 * seen:.1f}%", f"{100 * lost:.1f}%")


def _where(one: CandidateForecast, law: LawForecast) -> str:
    """The cubes of a law and their numbers of axes, those with the same ones together."""
    mine: dict[str, set[int]] = {}
    for margin in one.margins:
        if margin.law is law:
            mine.setdefault(margin.cube, set()).add(margin.axes)
    alike: dict[str, list[str]] = {}
    for cube, axes in mine.items():
        others = {margin.axes for margin in one.margins if margin.cube == cube} - axes
        alike.setdefault(", ".join(map(str, sorted(axes))) if others else "all", []).append(cube)
    return "; ".join(f"{_listed(cubes)}: {axes}" for axes, cubes in alike.items())


def _listed(cubes: Sequence[str]) -> str:
    return ", ".join(cubes) if len(cubes) <= NAMED else f"{len(cubes)} cubes, {cubes[0]} .."


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
