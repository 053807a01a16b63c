"""``discreet study``: published studies of methods, repeated on a synthetic census.

No study takes a path to microdata: each draws its own census.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.table import Table

from discreet.advise.prior_knowledge import (
    LEAST_COUNT,
    SENSITIVITY,
    Study,
    StudyOutcome,
    UtilityDifferences,
    check,
    study,
)
from discreet.cli.output import JSON, QUIET, console, emit_json, shown_progress
from discreet.errors import mistake
from discreet.report.prior_knowledge import study_chart

T = TypeVar("T", int, float)

REPORT, PICTURE = "prior-knowledge.json", "prior-knowledge.png"
NOTES = (
    f"error: mean |sum of a cluster's noisy cells - its records|; the sensitivity is {SENSITIVITY}, for only",
    "substitutions agree with known cluster sizes. zeroed, signed: absolute differences of relative frequencies",
    f"within zip codes, in percentage points, over all cross-tabulations, cells of {LEAST_COUNT} and more, with",
    "negative counts set to zero or unchanged. Synthetic records, pseudo-random noise: a study, never a release.",
)

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def studies() -> None:
    """Studies of methods on synthetic records."""


@app.command("prior-knowledge")
def prior_knowledge(
    records: Annotated[
        int, typer.Option("--records", help="Persons of the synthetic census; 4000000 for the full study.")
    ] = 200_000,
    k: Annotated[
        str, typer.Option("--k", help="Records per cluster of neighbours; several separated by commas.")
    ] = ("50,100,200,500"),
    epsilon: Annotated[
        str, typer.Option("--epsilon", help="Privacy losses; several separated by commas.")
    ] = ("0.1,1,4.6"),
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same study.")] = 1,
    out: Annotated[Path | None, typer.Option("--out", help=f"A folder for {REPORT} and {PICTURE}.")] = None,
    quiet: QUIET = False,
    as_json: JSON = False,
) -> None:
    """Geography as prior knowledge: geometric noise on clusters of neighbours within zip codes."""
    ks, epsilons = _listed(k, "--k", int), _listed(epsilon, "--epsilon", float)
    check(records, seed, ks, epsilons)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    with shown_progress(quiet or as_json) as progress:
        found = study(records, seed, ks, epsilons, progress)
    if out is not None:
        (out / REPORT).write_text(json.dumps(_report(found), indent=1) + "\n", encoding="utf-8")
        (out / PICTURE).write_bytes(study_chart(found).png())
    if as_json:
        emit_json(_report(found))
    elif not quiet:
        _show(found, out)


def _listed(text: str, key: str, kind: Callable[[str], T]) -> list[T]:
    """Distinct numbers in ascending order."""
    try:
        return sorted({kind(part) for part in text.split(",") if part.strip()})
    except ValueError:
        raise mistake("", key, repr(text), "give numbers separated by commas") from None


def _report(found: Study) -> dict[str, object]:
    facts = {name: getattr(found, name) for name in ("persons", "records", "zips", "cells", "seed")}
    return facts | {
        "sensitivity": SENSITIVITY,
        "neighbours": "substitution of the attributes of one person whose place is known",
        "noise": "two-sided geometric, pseudo-random: for study, not for release",
        "least_count": LEAST_COUNT,
        "outcomes": [_outcome(outcome) for outcome in found.outcomes],
    }


def _outcome(outcome: StudyOutcome) -> dict[str, object]:
    facts = asdict(outcome) | {"predicted_relative": outcome.predicted_relative}
    return facts | {name: _differences(getattr(outcome, name)) for name in ("utility", "utility_signed")}


def _differences(found: UtilityDifferences) -> dict[str, object]:
    return asdict(found) | {"quantiles": {f"{level:g}": value for level, value in found.quantiles.items()}}


def _show(found: Study, out: Path | None) -> None:
    typer.echo(
        f"{found.records:,} fully observed records of {found.persons:,} persons, {found.zips:,} zip codes, "
        f"{found.cells} cells per cluster\n"
    )
    error = ("error: predicted", "realised", "predicted / k")
    difference = ("zeroed: median", "95 %", "signed: median", "95 %")
    table = Table(
        "k", "epsilon", "clusters", *error, *difference, box=None, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for column in table.columns:
        column.justify = "right"
    for outcome in found.outcomes:
        table.add_row(*_row(outcome))
    console.print(table)
    typer.echo("\n" + "\n".join(NOTES))
    if out is not None:
        typer.echo(f"\n{out / REPORT}\n{out / PICTURE}")


def _row(outcome: StudyOutcome) -> tuple[str, ...]:
    zeroed, signed = outcome.utility.quantiles, outcome.utility_signed.quantiles
    points = (zeroed[0.5], zeroed[0.95], signed[0.5], signed[0.95])
    return (
        f"{outcome.k:,}",
        f"{outcome.epsilon:g}",
        f"{outcome.clusters:,}",
        *(f"{error:.2f}" for error in (outcome.predicted, outcome.realised)),
        f"{100 * outcome.predicted_relative:.1f} %",
        *(f"{point:.2f}" for point in points),
    )
