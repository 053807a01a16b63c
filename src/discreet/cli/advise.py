"""``discreet advise``: noise parameters for a programme, with reasons, pictures and trials; it owns "
"no constraint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.advise.advise import Advice, Task, task_of
from discreet.advise.advise import advise as advise_on
from discreet.advise.curves import Curves, curves
from discreet.advise.facts import counted_facts, declared_facts, eu_facts, seeded_secret
from discreet.advise.reasons import caveats, conflicts, declared_words, reasons, summary, swap_words
from discreet.advise.swap import advise_swap
from discreet.advise.write import write_noise
from discreet.audit.redundancy import Mode, Regions, regions_of
from discreet.cli.noise_options import confidence as checked_confidence
from discreet.cli.output import JSON, QUIET, THREADS, console, emit_json, shown_progress
from discreet.errors import Mistakes, mistake
from discreet.io.atomic_folder import require_free
from discreet.io.progress import Progress
from discreet.maths.feasible import Limits
from discreet.maths.noise.additive import LawKind
from discreet.programme import eu2021
from discreet.programme.programme import Programme, inspect_programme
from discreet.report.advice import advice_charts, write_charts

USUAL = Limits()
USUAL_D = 5
MOST = 10**12


def advise(
    programme: Annotated[str, typer.Argument(help="A programme file, or eu-census-2021.")],
    country: Annotated[
        str | None, typer.Option("--country", help="eu-census-2021: whose regions, as MT.")
    ] = None,
    kind: Annotated[
        LawKind | None,
        typer.Option("--kind", help="cell-key, geometric or discrete-gaussian; as declared unless given."),
    ] = None,
    population: Annotated[
        int | None,
        typer.Option("--population", help="How many persons, where the data are not there.", min=1),
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option("--mode", help="What counts as a representation; nested, for eu-census-2021 literal."),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option("--confidence", help="Attacks must succeed, and areas be exact enough, with this."),
    ] = USUAL.averaging,
    uniques: Annotated[
        float, typer.Option("--uniques", help="A 1 is published as 1 at most this often.")
    ] = USUAL.uniques,
    largest_change: Annotated[
        int, typer.Option("--largest-change", help="The largest bearable D.", min=1, max=60)
    ] = USUAL.largest_change,
    size: Annotated[
        int, typer.Option("--size", help="The smallest count that must be useful.", min=1)
    ] = USUAL.size,
    relative: Annotated[
        float, typer.Option("--relative", help="It may be off by more than this share of itself ..")
    ] = USUAL.relative,
    share: Annotated[float, typer.Option("--share", help=".. this often at most.")] = USUAL.share,
    area_change: Annotated[
        int,
        typer.Option("--area-change", help="No area's total may be off by more (unbounded noise).", min=1),
    ] = USUAL.area_change,
    without_data: Annotated[
        bool, typer.Option("--without-data", help="Do not read the data, even where they are there.")
    ] = False,
    draw_curves: Annotated[
        bool, typer.Option("--curves", help="Perturb the data again and again: risk against utility.")
    ] = False,
    repeats: Annotated[int, typer.Option("--repeats", help="Perturbations of each point of a curve.")] = 20,
    seed: Annotated[int, typer.Option("--seed", help="Of the trials.", min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A new folder for pictures and the whole advice; confidential."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Put the proposal into the [noise] section of the programme file.")
    ] = False,
    as_json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Propose noise parameters that keep risk and error within limits, or say why there are none.

    Where the declared data are there they are read: tuples, areas, swap rates and curves come from them.
    """
    limits = _limits(confidence, uniques, largest_change, size, relative, share, area_change)
    if out is not None:
        require_free(out, "--out")
    with shown_progress(quiet or as_json) as progress:
        if programme == eu2021.NAME:
            _only_for_files(write, draw_curves)
            found, trials = _for_country(country, kind, limits, mode, population), None
        else:
            found, trials = _for_file(
                Path(programme), country, kind, limits, mode, population, without_data,
                repeats if draw_curves else None, seed, threads, progress,
            )  # fmt: skip
    report = {**summary(found), "curves": None if trials is None else trials.summary()}
    if write:
        report["written"] = _written(Path(programme), found)
    if out is not None:
        report["pictures"] = write_charts(out, advice_charts(found, trials), report)
    if as_json:
        emit_json(report)
    elif not quiet:
        _show(found, trials, report)


def _limits(
    confidence: float,
    uniques: float,
    largest_change: int,
    size: int,
    relative: float,
    share: float,
    area: int,
) -> Limits:
    checked_confidence("--confidence", confidence)
    for name, value in (("--uniques", uniques), ("--share", share)):
        if not 0 < value < 1:
            raise mistake("", name, f"{value:g}", "give a number between 0 and 1, as 0.05")
    if not 0 < relative <= 10:
        raise mistake("", "--relative", f"{relative:g}", "give a share above 0, as 0.2")
    return Limits(
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
    country: str | None, kind: LawKind | None, limits: Limits, mode: Mode | None, population: int | None
) -> Advice:
    if country is None:
        raise mistake("", "--country", "missing", "say whose regions are meant, as --country MT")
    regions: Regions = regions_of(country)
    facts = eu_facts(country, regions, mode or Mode.LITERAL, population)
    return advise_on(facts, Task(kind or LawKind.CELL_KEY, limits))


def _for_file(
    path: Path,
    country: str | None,
    kind: LawKind | None,
    limits: Limits,
    mode: Mode | None,
    population: int | None,
    without_data: bool,
    repeats: int | None,
    seed: int,
    threads: int,
    progress: Progress,
) -> tuple[Advice, Curves | None]:
    if country is not None:
        raise mistake(
            "", "--country", country, f"leave it out, or take {eu2021.NAME}: a programme has its regions"
        )
    declared, has_data = _opened(path)
    task = task_of(declared, kind, limits)
    counted = mode or Mode.NESTED
    if without_data or not has_data:
        if repeats is not None:
            raise mistake(path, "--curves", "the data are not there", "curves perturb the data themselves")
        return advise_on(declared_facts(declared, counted, population), task), None
    facts = counted_facts(declared, counted, threads, progress)
    swap = advise_swap(declared, seeded_secret(seed, "swap"), threads, progress)
    found = advise_on(facts, task, swap)
    if repeats is None:
        return found, None
    D, also = _chosen(found)
    return found, curves(declared, facts, task, D, repeats, seed, also, threads, progress)


def _opened(path: Path) -> tuple[Programme, bool]:
    """The programme, and whether all of its data are there; any other mistake is reported."""
    inspected = inspect_programme(path)
    problems = [problem for problem in inspected.problems if problem not in inspected.absent]
    if inspected.sound is None or problems:
        raise Mistakes(problems)
    return inspected.sound, not inspected.absent


def _chosen(found: Advice) -> tuple[int, float | None]:
    """The D of the curves, and the proposed parameter, which they pass through."""
    if found.proposal is None:
        return (found.task.declared or (0.0, USUAL_D))[1], None
    noise = found.proposal.noise
    return int(noise.get("D", USUAL_D)), float(noise.get("V", found.proposal.parameter or 0.0))


def _written(path: Path, found: Advice) -> str:
    if found.proposal is None:
        raise mistake(
            path, "--write", "there is no proposal", "nothing was written; see the conflicts without --write"
        )
    return write_noise(path, found.proposal.noise)


def _show(found: Advice, trials: Curves | None, report: dict[str, Any]) -> None:
    facts = found.facts
    _say(
        f"{facts.programme}: {facts.crosstabs:,} cross-tabulations, {facts.cells:,} cells, known from the "
        f"{facts.known_from}."
    )
    _say("")
    if found.proposal is not None:
        _say(f"Proposed: {found.proposal}")
        for line in (*reasons(found), *(f"note: {note}" for note in found.proposal.notes)):
            _say(f"  {line}")
    else:
        _say("Nothing keeps all limits.")
        for line in conflicts(found):
            _say(f"  {line}")
    for line in filter(None, (declared_words(found), *swap_words(found))):
        _say(line)
    if trials is not None:
        _show_curves(trials)
    _say("\nNot said by these numbers:")
    for line in caveats(found):
        _say(f"  {line}")
    if "written" in report:
        _say(f"\nWritten: {report['written']}")
    if "pictures" in report:
        _say(f"\nPictures: {', '.join(report['pictures'])}")


def _show_curves(trials: Curves) -> None:
    _say(f"\nRisk against utility, means of {trials.repeats} perturbations by {trials.name}:")
    for point in trials.points:
        told = ", ".join(f"{name} {one.mean:.4g}" for name, one in point.measures.items() if one is not None)
        _say(f"  {point.parameter:g}: averaging {point.averaging:.3f}, {told}")


def _say(text: str) -> None:
    console.print(text, soft_wrap=True, markup=False, highlight=False)
