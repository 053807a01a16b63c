"""``discreet risk subsets``: records reconstructed from random subset queries of a flexible mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from discreet.cli.noise_options import NoiseOptions, expanded
from discreet.cli.output import JSON, console, emit_json, say
from discreet.errors import mistake
from discreet.maths.attacks.subsets import (
    MOST_REPETITIONS,
    AddedNoise,
    CellKeys,
    SharedBudget,
    SubsetAnswers,
    SubsetReconstruction,
    queries_of_theorem,
    reconstruct_subsets,
    usual_queries,
)
from discreet.maths.noise.additive import AdditiveLaw, exact
from discreet.maths.noise.hellinger import PTableLaw


@expanded
def subsets(
    noise: NoiseOptions,
    records: Annotated[int, typer.Option("--records", help="Records of the random population.")] = 128,
    queries: Annotated[
        str | None,
        typer.Option(
            "--queries",
            help="Numbers of random subsets asked, separated by commas; default: n/2, n, 2n, 4n, .. to n log^2 n.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            help="Geometric noise under one epsilon that all queries share, in place of a noise law.",
        ),
    ] = None,
    repetitions: Annotated[
        int,
        typer.Option(
            "--repetitions", help="Populations that are drawn and reconstructed.", min=1, max=MOST_REPETITIONS
        ),
    ] = 10,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same result.", min=0)] = 1,
    as_json: JSON = False,
) -> None:
    """Show how many records of a random population come back from counts of random subsets, by least squares.

    A demonstration of Dinur and Nissim's theorem for the table builder: no data are read.
    """
    answers = _answers(noise, budget)
    asked = _numbers(records, queries)

    def draws(which: Sequence[int]) -> np.random.Generator:
        return np.random.default_rng([seed, *which])

    found = [reconstruct_subsets(answers, records, many, repetitions, draws) for many in asked]
    if as_json:
        emit_json(
            {
                "records": records,
                "queries_of_theorem": queries_of_theorem(max(records, 2)),
                "repetitions": repetitions,
                "seed": seed,
                "reconstructions": [asdict(one) for one in found],
            }
        )
        return
    console().print(_table(found))
    say(f"n log^2 n = {queries_of_theorem(records):,} queries, sqrt(n) = {records**0.5:.3g}; guessing: 50%")


def _answers(noise: NoiseOptions, budget: str | None) -> SubsetAnswers:
    if budget is not None:
        if not noise.is_empty:
            raise mistake("", "--budget", budget, "leave out the noise law, or the budget")
        epsilon = exact("--budget", budget)
        if not 0 < epsilon <= 10**6:
            raise mistake("", "--budget", budget, "give an epsilon above 0, at most 1000000")
        return SharedBudget(float(epsilon))
    law = noise.law()
    if isinstance(law, PTableLaw):
        return CellKeys(law)
    if not isinstance(law, AdditiveLaw):
        raise mistake("", "--kind", "hellinger", "take noise that is added, or a p-table")
    return AddedNoise(law)


def _numbers(records: int, text: str | None) -> list[int]:
    if text is not None:
        parts = [part.strip() for part in text.split(",")]
        if not all(part.isdecimal() and len(part) < 10 for part in parts):
            raise mistake("", "--queries", text, "give whole numbers, separated by commas")
        return [int(part) for part in parts]
    return usual_queries(records)


def _table(found: list[SubsetReconstruction]) -> Table:
    table = Table(
        "queries",
        "noise (sd)",
        "right",
        "+-",
        "predicted",
        "all right",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for column in table.columns:
        column.justify = "right"
    for one in found:
        table.add_row(
            f"{one.queries:,}",
            f"{one.deviation:.3g}",
            f"{one.share:.1%}",
            f"{100 * one.error:.1f}",
            f"{one.predicted:.1%}",
            f"{one.exact:.0%}",
        )
    return table
