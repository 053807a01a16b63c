"""``discreet study``: published studies of methods, repeated on a synthetic census or on the records of a programme."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.table import Table

from discreet.advise.declared_geography import (
    DeclaredGeography,
    DeclaredStudy,
    declared_records,
    study_declared,
)
from discreet.advise.prior_knowledge import (
    LEAST_COUNT,
    SENSITIVITY,
    Study,
    StudyOutcome,
    UtilityDifferences,
    check,
    study,
)
from discreet.cli.output import JSON, QUIET, console, emit_json, say, shown_progress
from discreet.errors import mistake
from discreet.io.atomic_folder import OWNER_ONLY, AtomicFolder, require_free
from discreet.io.whole_file import PUBLIC_FILE, whole_file
from discreet.programme.programme import load_programme
from discreet.report.prior_knowledge import study_chart

T = TypeVar("T", int, float)

REPORT, PICTURE = "prior-knowledge.json", "prior-knowledge.png"
NOTES = (
    f"error: mean |sum of a cluster's noisy cells - its records|; the sensitivity is {SENSITIVITY}, for only",
    "substitutions agree with known cluster sizes. zeroed, signed: absolute differences of relative frequencies",
    f"within zip codes, in percentage points, over all cross-tabulations, cells of {LEAST_COUNT} and more, with",
    "negative counts set to zero or unchanged. Synthetic records, pseudo-random noise: a study, never a release.",
)

DECLARED_NOTES = (
    *NOTES[:2],
    NOTES[2].replace("zip codes", "regions"),
    "negative counts set to zero or unchanged. The places are public by declaration: only datasets with the same",
    "places are neighbours. True counts were used: keep this confidential. Pseudo-random noise: never a release.",
)
LEAST_PERSONS = 1_000  # of a synthetic census

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def studies() -> None:
    """Studies of methods, on synthetic records or on a programme's own."""


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
        with whole_file(out / REPORT, PUBLIC_FILE) as draft:
            draft.write_text(json.dumps(_report(found), indent=1) + "\n", encoding="utf-8")
        with whole_file(out / PICTURE, PUBLIC_FILE) as draft:
            draft.write_bytes(study_chart(found).png())
    if as_json:
        emit_json(_report(found))
    elif not quiet:
        _show(found, out)


@app.command("declared-geography")
def declared_geography(
    programme: Annotated[Path, typer.Argument(help="The programme file, whose persons are read.")],
    regions: Annotated[
        str, typer.Option("--regions", help="The breakdown that no cluster crosses, such as GEO.M.")
    ],
    attributes: Annotated[
        str, typer.Option("--attributes", help="The breakdowns to protect, separated by commas: SEX,AGE.L.")
    ],
    clusters: Annotated[
        str | None,
        typer.Option(
            "--clusters", help="The variable of micro-aggregated places: its finest codes are the clusters."
        ),
    ] = None,
    x: Annotated[str, typer.Option("--x", help="Without --clusters: the column of a coordinate.")] = "",
    y: Annotated[str, typer.Option("--y", help="The column of the other coordinate.")] = "",
    k: Annotated[
        str, typer.Option("--k", help="With coordinates: records per cluster; several separated by commas.")
    ] = "50,200",
    epsilon: Annotated[
        str, typer.Option("--epsilon", help="Privacy losses; several separated by commas.")
    ] = "0.1,1,4.6",
    targets: Annotated[
        int, typer.Option("--targets", help="Persons sampled as targets of the adversary.", min=1, max=10_000)
    ] = 100,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same study.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option("--out", help=f"A new folder for {REPORT} and {PICTURE}, for its owner only."),
    ] = None,
    quiet: QUIET = False,
    as_json: JSON = False,
) -> None:
    """Geography as prior knowledge on a programme's own records: clusters are public, attributes are protected.

    The result is confidential: it is computed from the true counts.
    """
    ks, epsilons = _listed(k, "--k", int), _listed(epsilon, "--epsilon", float)
    check(LEAST_PERSONS, seed, ks, epsilons)
    if out is not None:
        require_free(out, "--out")
    names = tuple(name.strip() for name in attributes.split(",") if name.strip())
    declared = DeclaredGeography(regions=regions, attributes=names, clusters=clusters, x=x, y=y)
    with shown_progress(quiet or as_json) as progress:
        records = declared_records(load_programme(programme), declared, progress)
        found = study_declared(records, seed, ks, epsilons, targets, progress)
    report = _declared_report(declared, found)
    if out is not None:
        with AtomicFolder(out, "--out", permissions=OWNER_ONLY) as folder:
            with folder.file(REPORT) as file:
                file.write((json.dumps(report, indent=1) + "\n").encode())
            with folder.file(PICTURE) as file:
                file.write(study_chart(found.study).png())
            folder.publish()
    if as_json:
        emit_json(report)
    elif not quiet:
        _show_declared(declared, found, out)


def _declared_report(declared: DeclaredGeography, found: DeclaredStudy) -> dict[str, object]:
    public = (
        f"the cluster of every person, by {declared.clusters or f'{declared.x} and {declared.y}'}; clusters lie "
        f"within {declared.regions}"
    )
    return _report(found.study) | {
        "confidential": True,
        "declared_public": public,
        "protected": list(declared.attributes),
        "smallest_cluster": found.smallest,
        "largest_cluster": found.largest,
        "unique_in_cluster": found.unique,
        "adversaries": [asdict(one) for one in found.adversaries],
    }


def _show_declared(declared: DeclaredGeography, found: DeclaredStudy, out: Path | None) -> None:
    _show_outcomes(found.study, f"regions ({declared.regions})")
    say("\n" + "\n".join(DECLARED_NOTES))
    say(
        f"\nClusters of {found.smallest:,} to {found.largest:,} records; {found.unique:.1%} of the records are "
        "unique in their cluster (the smallest k)."
    )
    for one in found.adversaries:
        say(
            f"k {one.k:,}, epsilon {one.epsilon:g}: an adversary who knows the target's cluster and all others in it "
            f"is right in {one.right:.1%} ({one.guessed:.1%} by the region's commonest cell; "
            f"{one.right_as_if_1:.1%} with noise for sensitivity 1)"
        )
    _show_files(out)


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
    _show_outcomes(found, "zip codes")
    say("\n" + "\n".join(NOTES))
    _show_files(out)


def _show_files(out: Path | None) -> None:
    if out is not None:
        say(f"\n{out / REPORT}\n{out / PICTURE}")


def _show_outcomes(found: Study, regions: str) -> None:
    say(
        f"{found.records:,} fully observed records of {found.persons:,} persons, {found.zips:,} {regions}, "
        f"{found.cells} cells per cluster\n"
    )
    error = ("error: predicted", "realised", "predicted / k")
    difference = ("zeroed: median", "95%", "signed: median", "95%")
    table = Table(
        "k", "epsilon", "clusters", *error, *difference, box=None, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for column in table.columns:
        column.justify = "right"
    for outcome in found.outcomes:
        table.add_row(*_row(outcome))
    console().print(table)


def _row(outcome: StudyOutcome) -> tuple[str, ...]:
    zeroed, signed = outcome.utility.quantiles, outcome.utility_signed.quantiles
    points = (zeroed[0.5], zeroed[0.95], signed[0.5], signed[0.95])
    return (
        f"{outcome.k:,}",
        f"{outcome.epsilon:g}",
        f"{outcome.clusters:,}",
        *(f"{error:.2f}" for error in (outcome.predicted, outcome.realised)),
        f"{outcome.predicted_relative:.1%}",
        *(f"{point:.2f}" for point in points),
    )
