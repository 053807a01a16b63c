"""``discreet risk differencing``: the small areas that two geographies disclose by subtraction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from discreet.audit.differencing import THRESHOLD, DifferenceNoise, ExactNoise, NormalNoise
from discreet.audit.differencing_areas import (
    AreaDifferences,
    ListedDifference,
    difference_areas,
    read_crossing,
)
from discreet.cli.noise_options import NoiseOptions, expanded
from discreet.cli.options import confidence, variance
from discreet.cli.output import JSON, emit_json, say, shown_progress
from discreet.errors import mistake
from discreet.io.files import open_files
from discreet.maths.attacks.differencing import REACH
from discreet.maths.noise.additive import Law
from discreet.maths.noise.publishing import PublishedLaw
from discreet.programme.sources import file_source

LARGEST_THRESHOLD = 1000
LARGEST_REACH = 1000
NAMED = 6  # areas of a side that are printed; --json has them all


@expanded
def differencing(
    noise: NoiseOptions,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Microdata, or a table of pieces: CSV, Parquet or a folder.")
    ],
    a: Annotated[str, typer.Option("--a", help="The column of one geography, e.g. grid.")],
    b: Annotated[str, typer.Option("--b", help="The column of the other, e.g. lau.")],
    count: Annotated[
        str | None,
        typer.Option(
            "--count", help="The column with the number of records per row; default: a row is a record."
        ),
    ] = None,
    threshold: Annotated[
        int, typer.Option("--threshold", help="Differences of fewer records count as small.")
    ] = THRESHOLD,
    reach: Annotated[
        int, typer.Option("--reach", help="Blocks of areas on the smaller side of a difference.")
    ] = REACH,
    most: Annotated[int, typer.Option("--most", help="Number of differences to list.", min=0)] = 20,
    alpha: Annotated[
        float,
        typer.Option("--alpha", help="Count differences that stay visible with at least this probability."),
    ] = 0.5,
    as_json: JSON = False,
) -> None:
    """Find the small areas that are a union of areas of one geography minus areas of the other.

    Noise is optional: with it the report shows which differences remain visible. --V by itself means any noise of that
    variance.
    """
    _within("--threshold", threshold, 2, LARGEST_THRESHOLD)
    _within("--reach", reach, 1, LARGEST_REACH)
    confidence("--alpha", alpha)
    between = _noise(noise)
    with shown_progress(as_json) as progress:
        records = open_files(file_source(data, Path.cwd(), "", "DATA"), "DATA")
        crossing = read_crossing(records, a, b, count, progress)
        progress.stage("searching differences")
        found = difference_areas(crossing, threshold, reach, noise=between, alpha=alpha, most=most)
    if as_json:
        emit_json(found)
        return
    _print(found)


def _within(name: str, value: int, least: int, largest: int) -> None:
    if not least <= value <= largest:
        raise mistake("", name, str(value), f"give a whole number from {least} to {largest}")


def _noise(options: NoiseOptions) -> DifferenceNoise | None:
    """The noise of a difference; None where none is described. A variance by itself means normal noise."""
    if options.is_empty:
        return None
    if options.kind is None and options.ptable is None and options.given == {"V"}:
        variance("--V", float(options.V or 0))
        return NormalNoise(float(options.V or 0))
    return _exact(options.law())


def _exact(law: Law) -> ExactNoise:
    """The same law on both sides; every area has records, so that no zero needs a rule."""
    published = PublishedLaw(law, keeps_zeros=True)
    return ExactNoise(published, published)


def _print(found: AreaDifferences) -> None:
    a, b = found.geographies
    say(f"{found.areas[0]:,} areas of {a} and {found.areas[1]:,} of {b} overlap in {found.pieces:,} pieces")
    say(f"differences that disclose an area with fewer than {found.threshold} records: {found.found:,}")
    say(_how_far(found))
    for areas, many in found.by_areas.items():
        say(f"  {many:,} of {areas} areas added and subtracted")
    if not found.found:
        return
    if found.after is None:
        say(
            "exact counts disclose every one of them; --V, --ptable or --kind shows which remain visible after noise"
        )
    else:
        after = found.after
        say(
            f"after noise {after.expected:.4g} of them are expected to be published unchanged, each with a "
            f"probability of at most {after.largest:.4f}; {after.above:,} with {after.alpha:g} or more"
        )
    for one in found.listed:
        say(f"  {_named(one.plus_of, one.plus)} without {_named(one.minus_of, one.minus)}{_mark(one)}")


def _how_far(found: AreaDifferences) -> str:
    if not found.complete:
        return "the search was cut short: there may be more; use a smaller --reach or --threshold"
    if found.exhaustive:
        return "these are all"
    return f"these are all with at most {found.reach} blocks of areas on one side; a larger --reach searches further"


def _named(geography: str, areas: Sequence[str]) -> str:
    more = f" and {len(areas) - NAMED:,} more" if len(areas) > NAMED else ""
    return f"{geography} {', '.join(areas[:NAMED])}{more}"


def _mark(one: ListedDifference) -> str:
    return " (above alpha)" if one.above else ""
