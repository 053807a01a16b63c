"""``discreet utility``: errors of published counts, for one release or several."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from discreet.audit.case import Case, open_case
from discreet.audit.utility import UNSWAPPED, AreaDistortion, Utility, UtilityRule, side_by_side
from discreet.audit.utility import utility as measure
from discreet.audit.utility_figures import ErrorComparison, ErrorFigures
from discreet.cli.output import JSON, QUIET, THREADS, emit_json, shown_progress
from discreet.errors import mistake
from discreet.io.progress import Progress
from discreet.io.secret import read_secret
from discreet.maths.utility import Measure
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release

Row = Sequence[str]
EMPTY = "0"  # the size class of cells without records
USUAL = ("median", 0.5), ("95%", 0.95), ("largest", 1.0)
HEAD = (
    "cells", "mean error", "(expected)", "unchanged", "(expected)", *(name for name, _ in USUAL)
)  # fmt: skip


def utility_lines(found: Utility) -> Iterator[str]:
    """One release: overall, by size of the cells, by level of the areas; small areas, totals, associations."""
    for name, errors in found.errors.items():
        against = "before swapping" if name == UNSWAPPED and len(found.errors) > 1 else "after swapping"
        title = "against the true counts" if len(found.errors) == 1 else f"against the counts {against}"
        yield f"Errors {title}, {len(errors.margins):,} cross-tabulations, each once:"
        yield from _indented([("", *HEAD), *_rows(errors.total), *_levels(errors.levels)])
        yield from _shifts(errors.total)
    yield from _areas(found.areas)
    yield from _gaps(found)
    yield from _tables(found)


def compared_lines(compared: Mapping[str, Mapping[str, float | None]]) -> Iterator[str]:
    """Several releases side by side, measure by measure, over the occupied cells."""
    names = list(next(iter(compared.values())))
    rows = [
        (measure.replace("_", " "), *(_number(by[name]) for name in names))
        for measure, by in compared.items()
    ]
    yield "Side by side:"
    yield from _indented([("", *names), *rows])


def _rows(one: ErrorComparison) -> Iterator[Row]:
    yield "occupied", *_figures(one.occupied)
    for size, figures in one.classes.items():
        if figures.cells and size != EMPTY:
            yield f"  true count {size}", *_figures(figures)
    yield "empty", *_figures(one.classes[EMPTY])


def _levels(levels: Mapping[str, ErrorComparison]) -> Iterator[Row]:
    for name, one in sorted(levels.items()):
        yield f"with {name}", *_figures(one.occupied)


def _figures(one: ErrorFigures) -> Row:
    return (
        f"{one.cells:,}",
        _number(one.mean(Measure.L1)),
        _number(one.expected_mean(Measure.L1)),
        _share(one.mean(Measure.UNCHANGED)),
        _share(one.expected_mean(Measure.UNCHANGED)),
        *(_number(one.absolute.get(share)) for _, share in USUAL),
    )


def _shifts(one: ErrorComparison) -> Iterator[str]:
    lost, made = one.occupied, one.classes[EMPTY]
    yield (
        f"  bias {_number(lost.mean(Measure.BIAS))} (expected {_number(lost.expected_mean(Measure.BIAS))}); occupied "
        f"but published as 0: {_share(lost.mean(Measure.ZERO))}; empty but published above 0: "
        f"{_share(made.mean(Measure.POSITIVE))}; Hellinger distance {_number(one.hellinger)} "
        f"of relative frequencies, {_number(one.hellinger_of_counts)} of counts"
    )


def _areas(areas: Sequence[AreaDistortion]) -> Iterator[str]:
    for one in areas:
        sizes = [size for size in one.classes if size.observations]
        if not sizes:
            continue
        limits = list(sizes[0].distorted)
        by = f" by {one.by}" if one.by else ""
        yield f"Small areas, {one.counted}, {one.level}{by}: counts with at least this relative error (expected):"
        head = ("true count", "counts", *(f"{limit:.0%}" for limit in limits))
        rows = [
            (
                size.size,
                f"{size.observations:,}",
                *(_distorted(size.distorted[r], size.expected, r) for r in limits),
            )
            for size in sizes
        ]
        yield from _indented([head, *rows])


def _distorted(number: int, expected: Mapping[float, float] | None, limit: float) -> str:
    return f"{number:,}" if expected is None else f"{number:,} ({expected[limit]:,.1f})"


def _gaps(found: Utility) -> Iterator[str]:
    rows = [
        (name, f"{gap.totals:,}", _share(gap.share_open), _number(gap.rmse), _number(gap.expected_rmse),
         f"{gap.largest:,}")
        for name, gap in found.gaps.items() if gap.totals
    ]  # fmt: skip
    if rows:
        yield "Totals against the sums of their parts:"
        yield from _indented(
            [("along", "totals", "not the sum", "root mean square", "(expected)", "largest"), *rows]
        )


def _tables(found: Utility) -> Iterator[str]:
    shifts = found.shifts
    if shifts:
        yield (
            f"{len(found.two_way):,} two-way tables: Cramer's V is off by {sum(shifts) / len(shifts):.4f} on average, "
            f"{max(shifts):.4f} at most; {found.changed_tests:,} tests of independence have another outcome at "
            f"{found.level:g}"
        )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _indented(rows: Sequence[Row]) -> Iterator[str]:
    """Aligned columns: the first to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        numbers = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
        yield f"  {first.ljust(widths[0])}  {'  '.join(numbers)}"


def utility(
    release: Annotated[Path, typer.Argument(help="The release folder.")],
    programme: Annotated[Path, typer.Option("--programme", help="The programme that made it.")],
    secret: Annotated[str, typer.Option("--secret", help="A secret file, env:NAME or fd:NUMBER.")],
    others: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Another release to compare; repeatable."),
    ] = None,
    other_programmes: Annotated[
        list[Path] | None,
        typer.Option("--with-programme", help="The programme of each --with, in their order."),
    ] = None,
    by: Annotated[
        str, typer.Option("--by", help="A variable whose categories are compared in small areas, e.g. SEX.")
    ] = "",
    json: JSON = False,
    threads: THREADS = 0,
    quiet: QUIET = False,
) -> None:
    """Compare every published count with the true one: errors realised and expected, small areas, totals, associations.

    All releases must have the same secret. The result is confidential: review it before publishing any part.
    """
    key = read_secret(secret, os.environ)
    pairs = [(release, programme), *_paired(others or [], other_programmes or [])]
    found: dict[str, Utility] = {}
    with shown_progress(quiet or json) as progress:
        for folder, declared in pairs:
            case = open_case(load_programme(declared), key, open_release(folder), threads, progress)
            found[_name(folder, case, found)] = _measured(case, by, progress)
    if json:
        emit_json(_document(found))
    elif not quiet:
        _show(found)


def _paired(releases: list[Path], programmes: list[Path]) -> list[tuple[Path, Path]]:
    if len(releases) != len(programmes):
        value = f"given {len(programmes)} times for {len(releases)} releases"
        raise mistake("", "--with-programme", value, "give one for each --with")
    return list(zip(releases, programmes, strict=True))


def _measured(case: Case, by: str, progress: Progress) -> Utility:
    seen = case.published
    if by and by not in seen.variables:
        raise mistake("", "--by", by, f"choose from {', '.join(seen.variables)}")
    return measure(seen, case.truth, UtilityRule(areas=seen.places, by=by), progress)


def _name(folder: Path, case: Case, taken: dict[str, Utility]) -> str:
    """The name of a release among others: its folder's name, the path or a number where that is not enough."""
    name = folder.resolve().name or case.published.name
    return next(one for one in (name, str(folder), f"{folder} ({len(taken) + 1})") if one not in taken)


def _document(found: dict[str, Utility]) -> dict[str, object]:
    first = next(iter(found))
    first_release = {"release": first, **found[first].as_json()}
    if len(found) == 1:
        return first_release
    others = {name: one for name, one in found.items() if name != first}
    return {**first_release, "with": others, "side_by_side": side_by_side(found)}


def _show(found: dict[str, Utility]) -> None:
    for name, one in found.items():
        typer.echo(f"{name}:")
        for line in utility_lines(one):
            typer.echo(line)
    if len(found) > 1:
        for line in compared_lines(side_by_side(found)):
            typer.echo(line)
