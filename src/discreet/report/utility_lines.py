"""The errors of published counts in plain lines, for one release or several side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from discreet.audit.utility import UNSWAPPED, AreaDistortion, Utility
from discreet.audit.utility_figures import ErrorComparison, ErrorFigures
from discreet.maths.utility import Measure

Row = Sequence[str]
EMPTY = "0"  # the size class of cells without records
USUAL = ("median", 0.5), ("95%", 0.95), ("largest", 1.0)
HEADS = (
    ("", "", "mean", "ex-", "un-", "ex-", "", "", ""),
    ("", "cells", "error", "pected", "changed", "pected", *(name for name, _ in USUAL)),
)
WIDTH = 80  # columns of a terminal


def utility_lines(found: Utility) -> Iterator[str]:
    """One release: overall, by size of the cells, by level of the areas; small areas, totals, associations."""
    for name, errors in found.errors.items():
        against = "before swapping" if name == UNSWAPPED and len(found.errors) > 1 else "after swapping"
        title = "against the true counts" if len(found.errors) == 1 else f"against the counts {against}"
        yield f"Errors {title}, {len(errors.margins):,} cross-tabulations, each once:"
        yield from _indented(_known([*HEADS, *_rows(errors.total), *_levels(errors.levels)]))
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
        f"  bias {_number(lost.mean(Measure.BIAS))}{_expected(lost.expected_mean(Measure.BIAS))}; occupied "
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
            f"{max(shifts):.4f} at most; {found.changed_tests:,} of the tests of independence differ in their "
            f"outcome at {found.level:g}"
        )


def _expected(value: float | None) -> str:
    return "" if value is None else f" (expected {_number(value)})"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _known(rows: Sequence[Row]) -> list[Row]:
    """The rows without columns of which nothing is known."""
    columns = zip(*rows, strict=True)
    found = [column for column in columns if any(text != "-" for text in column[len(HEADS) :])]
    return list(zip(*found, strict=True))


def _indented(rows: Sequence[Row]) -> Iterator[str]:
    """Aligned columns: the first to the left, numbers to the right; close together where they would not fit."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    gap = "  " if sum(widths) + 2 * len(widths) <= WIDTH else " "
    for first, *others in rows:
        numbers = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
        yield f"  {first.ljust(widths[0])}{gap}{gap.join(numbers)}"
