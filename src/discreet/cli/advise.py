"""``discreet advise``: noise parameters for a programme, with reasons, pictures and trials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.advise.advise import Advice, Task
from discreet.advise.advise import advise as advise_on
from discreet.advise.alternatives import alternatives
from discreet.advise.facts import eu_facts
from discreet.advise.programme_advice import USUAL_MARGIN, Wish, advise_programme, trials
from discreet.advise.reasons import (
    alternatives_text,
    caveats,
    conflicts,
    declared_words,
    document,
    margin_text,
    meanings,
    noise_text,
    reasons,
    swap_words,
)
from discreet.audit.redundancy import Mode, Regions, regions_of
from discreet.cli.options import confidence as checked_confidence
from discreet.cli.output import JSON, QUIET, THREADS, console, emit_json, say, say_wrapped, shown_progress
from discreet.errors import Mistakes, mistake
from discreet.io.atomic_folder import require_free
from discreet.io.progress import Progress
from discreet.io.serialize import to_json
from discreet.lazy import lazily
from discreet.maths.feasible import RiskLimits
from discreet.maths.noise.additive import LawKind
from discreet.programme import eu2021
from discreet.programme.programme import Programme, inspect_programme

if TYPE_CHECKING:
    from rich import table

    from discreet.advise import strategy
    from discreet.advise import write as writing
    from discreet.advise.curves import Curves
    from discreet.page import charts
    from discreet.report import advice
else:
    table = lazily("rich.table")
    strategy, writing = lazily("discreet.advise.strategy"), lazily("discreet.advise.write")
    charts, advice = lazily("discreet.page.charts"), lazily("discreet.report.advice")

USUAL = RiskLimits()
MOST = 10**12


def advise(
    programme: Annotated[str, typer.Argument(help="A programme file, or eu-census-2021.")],
    wanted: Annotated[
        list[str] | None,
        typer.Option(
            "--wanted",
            help="hierarchical: a query that matters, LEVEL:QUERY=WEIGHT; repeat it. Default: those of the cubes.",
        ),
    ] = None,
    country: Annotated[
        str | None,
        typer.Option("--country", help="eu-census-2021: the country whose regions are used, e.g. MT."),
    ] = None,
    kind: Annotated[
        AdvisedKind | None,
        typer.Option(
            "--kind", help="cell-key, geometric, discrete-gaussian or hierarchical; default: as declared."
        ),
    ] = None,
    population: Annotated[
        int | None,
        typer.Option("--population", help="Number of persons, where the data are not available.", min=1),
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(
            "--mode", help="What counts as a representation; default: nested, for eu-census-2021 literal."
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            "--confidence",
            help="Largest success of attacks, least probability of exact areas.",
        ),
    ] = USUAL.averaging,
    uniques: Annotated[
        float, typer.Option("--uniques", help="Largest probability that a 1 is published as 1.")
    ] = USUAL.uniques,
    largest_change: Annotated[
        int, typer.Option("--largest-change", help="The largest acceptable D.", min=1, max=60)
    ] = USUAL.largest_change,
    size: Annotated[
        int, typer.Option("--size", help="The smallest count that must be useful.", min=1)
    ] = USUAL.size,
    relative: Annotated[
        float, typer.Option("--relative", help="Relative error that such a count may exceed ..")
    ] = USUAL.relative,
    share: Annotated[float, typer.Option("--share", help=".. with at most this probability.")] = USUAL.share,
    area_change: Annotated[
        int,
        typer.Option("--area-change", help="Largest error of an area's total (unbounded noise).", min=1),
    ] = USUAL.area_change,
    margin: Annotated[
        float,
        typer.Option(
            "--margin",
            help="How far a proposal stays inside every limit, as a share of the limit; 0: at the edge.",
        ),
    ] = USUAL_MARGIN,
    without_data: Annotated[
        bool, typer.Option("--without-data", help="Do not read the data, even where they are available.")
    ] = False,
    draw_curves: Annotated[
        bool, typer.Option("--curves", help="Perturb the data repeatedly and plot risk against utility.")
    ] = False,
    repeats: Annotated[int, typer.Option("--repeats", help="Perturbations for each point of a curve.")] = 20,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the trials.", min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A new folder for a page, pictures and the full advice; confidential."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Put the proposal into the [noise] section of the programme file.")
    ] = False,
    as_json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Propose noise parameters that keep risk and error within limits, or explain why no parameters do.

    The declared data are read where they are available: tuples, areas, swap rates and curves come from them.
    """
    opened = cache(partial(_opened, Path(programme)))
    if _is_hierarchical(programme, kind, opened):
        more = bool(write or draw_curves or out)
        _strategy(Path(programme), opened()[0], wanted or [], as_json, quiet, more)
        return
    _require_no_wanted(wanted)
    law = None if kind is None else LawKind(kind.value)
    limits = _limits(confidence, uniques, largest_change, size, relative, share, area_change)
    _require_margin(margin)
    if out is not None:
        require_free(out, "--out")
        charts.require_room()
    with shown_progress(quiet or as_json) as progress:
        if programme == eu2021.NAME:
            _only_for_files(write, draw_curves)
            found, trials = _for_country(country, law, limits, mode, population, margin), None
        else:
            found, trials = _for_file(
                Path(programme), opened, country, law, limits, mode, population, margin, without_data,
                repeats if draw_curves else None, seed, threads, progress,
            )  # fmt: skip
    written = _written(Path(programme), found) if write else ""
    report: dict[str, object] = {}
    if as_json or out is not None:
        report |= {**document(found), "curves": trials}
        report |= {"written": written} if write else {}
    if out is not None:
        report["pictures"] = drawn = advice.write_charts(
            out, advice.advice_page(found, trials), to_json(report)
        )
    if as_json:
        emit_json(report)
        return
    if quiet:
        return
    _show(found, trials)
    if write:
        say(f"\nWritten: {written}")
    if out is not None:
        say("")
        say(f"Report: {out / advice.PAGE}")
        say_wrapped(f"Files: {', '.join(drawn)}")


def _require_no_wanted(wanted: list[str] | None) -> None:
    if wanted:
        raise mistake("", "--wanted", wanted[0], "leave it out: only a hierarchical strategy weighs queries")


def _require_margin(margin: float) -> None:
    if not 0 <= margin < 1:
        raise mistake("", "--margin", f"{margin:g}", "give a share of at least 0 and below 1, e.g. 0.1")


class AdvisedKind(StrEnum):
    """The noise that is advised on."""

    LAPLACE = "laplace"
    NORMAL = "normal"
    GEOMETRIC = "geometric"
    DISCRETE_GAUSSIAN = "discrete-gaussian"
    HELLINGER = "hellinger"
    EXPONENTIAL = "exponential"
    UNIFORM = "uniform"
    CELL_KEY = "cell-key"
    HIERARCHICAL = "hierarchical"


Opened = tuple[Programme, bool]  # and whether all of its data are available


def _is_hierarchical(programme: str, kind: AdvisedKind | None, opened: Callable[[], Opened]) -> bool:
    """Whether a strategy is requested: by the option, or because the programme declares one."""
    if kind is not None or programme == eu2021.NAME:
        return kind is AdvisedKind.HIERARCHICAL
    return opened()[0].hierarchy is not None


def _strategy(
    path: Path, declared: Programme, wanted: list[str], as_json: bool, quiet: bool, more: bool
) -> None:
    """The shares that make wanted counts most accurate, beside those that are declared and those of 2020."""
    if declared.hierarchy is None:
        remedy = 'declare kind = "hierarchical" with a geography and a histogram: any shares, to start from'
        raise mistake(path, "noise.kind", "is not hierarchical", remedy)
    if more:
        remedy = "leave them out: the strategy is printed as it is written in the programme file"
        raise mistake(path, "--out, --write or --curves", "for a hierarchical strategy", remedy)
    found = strategy.advise_strategy(declared, wanted)
    if as_json:
        emit_json({**asdict(found), "toml": found.lines()})
        return
    if quiet:
        return
    say(
        f"{found.programme}: shares of {found.measure} {found.budget} that make "
        f"{'the wanted' if wanted else 'the published'} counts most accurate.\n"
    )
    for line in found.lines():
        say(f"  {line}")
    say(
        "\nStandard deviation of the estimates: as declared, as proposed, and by the shares of the 2020 US census."
    )
    rows = table.Table(
        "level", "query", "declared", "proposed", "2020", box=None, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for row in found.errors:
        shown = (f"{one:.3g}" for one in (row.declared, row.proposed, row.census_2020))
        rows.add_row(row.level, row.query, *shown)
    console().print(rows)
    say_wrapped(found.compared)


def _limits(
    confidence: float,
    uniques: float,
    largest_change: int,
    size: int,
    relative: float,
    share: float,
    area: int,
) -> RiskLimits:
    checked_confidence("--confidence", confidence)
    for name, value in (("--uniques", uniques), ("--share", share)):
        if not 0 < value < 1:
            raise mistake("", name, f"{value:g}", "give a number between 0 and 1, e.g. 0.05")
    if not 0 < relative <= 10:
        raise mistake("", "--relative", f"{relative:g}", "give a share above 0, e.g. 0.2")
    return RiskLimits(
        averaging=confidence,
        revealed=confidence,
        uniques=uniques,
        largest_change=largest_change,
        size=size,
        relative=relative,
        share=share,
        area_change=area,
        area_confidence=confidence,
    )


def _only_for_files(write: bool, draw_curves: bool) -> None:
    for option, wanted in (("--write", write), ("--curves", draw_curves)):
        if wanted:
            raise mistake("", option, eu2021.NAME, "give a programme file; this one is only declared")


def _for_country(
    country: str | None,
    kind: LawKind | None,
    limits: RiskLimits,
    mode: Mode | None,
    population: int | None,
    margin: float,
) -> Advice:
    if country is None:
        raise mistake(
            "", "--country", "missing", "name the country whose regions are meant, e.g. --country MT"
        )
    regions: Regions = regions_of(country)
    facts = eu_facts(country, regions, mode or Mode.LITERAL, population)
    return advise_on(facts, Task(kind or LawKind.CELL_KEY, limits, margin=margin))


def _for_file(
    path: Path,
    opened: Callable[[], Opened],
    country: str | None,
    kind: LawKind | None,
    limits: RiskLimits,
    mode: Mode | None,
    population: int | None,
    margin: float,
    without_data: bool,
    repeats: int | None,
    seed: int,
    threads: int,
    progress: Progress,
) -> tuple[Advice, Curves | None]:
    if country is not None:
        raise mistake(
            "",
            "--country",
            country,
            f"leave it out, or use {eu2021.NAME}: a programme file declares its regions",
        )
    declared, has_data = opened()
    has_data = has_data and not without_data
    if repeats is not None and not has_data:
        raise mistake(path, "--curves", "the data are not available", "curves perturb the data themselves")
    wish = Wish(kind=kind, limits=limits, mode=mode or Mode.NESTED, population=population, margin=margin)
    found = advise_programme(declared, wish, has_data, seed, threads, progress)
    return found, None if repeats is None else trials(declared, found, repeats, seed, threads, progress)


def _opened(path: Path) -> Opened:
    """The programme, and whether all of its data are available; any other mistake is reported."""
    inspected = inspect_programme(path)
    problems = [problem for problem in inspected.problems if problem not in inspected.absent]
    if inspected.sound is None or problems:
        raise Mistakes(problems)
    return inspected.sound, not inspected.absent


def _written(path: Path, found: Advice) -> str:
    if found.proposal is None:
        raise mistake(
            path, "--write", "no proposal", "nothing was written; see the conflicts without --write"
        )
    return writing.write_noise(path, found.proposal.noise)


def _show(found: Advice, trials: Curves | None) -> None:
    facts = found.facts
    say_wrapped(
        f"{facts.programme}: {facts.crosstabs:,} cross-tabulations, {facts.cells:,} cells, known from the "
        f"{facts.known_from}."
    )
    say("")
    if found.proposal is not None:
        say_wrapped(f"Proposed: {found.proposal}")
        say_wrapped(noise_text(found))
        say_wrapped(margin_text(found))
        say("\nWhy:")
        for line in (*reasons(found), *(f"note: {note}" for note in found.proposal.notes)):
            say_wrapped(line, 2)
        _show_alternatives(found)
    else:
        within = f" with a margin of {found.task.margin:.0%}" if found.task.margin else ""
        say(f"No parameters keep all limits{within}.")
        for line in conflicts(found):
            say_wrapped(line, 2)
        if found.edge is not None:
            _show_alternatives(found)
    say("\nWhat the limits are for:")
    for name, meaning in meanings(found):
        say_wrapped(f"{name.value}: {meaning}", 2)
    others = list(filter(None, (declared_words(found), *swap_words(found))))
    if others:
        say("")
    for line in others:
        say_wrapped(line.strip(), len(line) - len(line.lstrip()))
    if trials is not None:
        _show_curves(trials)
    say("\nNot covered by these numbers:")
    for line in caveats(found):
        say_wrapped(line, 2)


def _show_alternatives(found: Advice) -> None:
    rows = alternatives(found)
    say("\nAlternatives:")
    for number, line in enumerate(alternatives_text(found, rows)):
        if number < 2 + len(rows):
            say(f"  {line}")
        else:
            say_wrapped(line, 2)


def _show_curves(trials: Curves) -> None:
    say_wrapped(f"Risk against utility, means of {trials.repeats} perturbations by {trials.name}:")
    for point in trials.points:
        measured = ", ".join(
            f"{name} {one.mean:.4g}" for name, one in point.measures.items() if one is not None
        )
        say_wrapped(f"{point.parameter:g}: averaging {point.averaging:.3f}, {measured}", 2)
