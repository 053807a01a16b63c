"""The utility of the tables: realised against the true counts for the office, expected by the law for all users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from discreet.audit.utility import AreaDistortion, Utility
from discreet.audit.utility_figures import ErrorComparison
from discreet.formats.publication import additivity, same_everywhere
from discreet.maths.noise.publishing import PublishedLaw
from discreet.maths.utility import ExpectedLosses, Measure
from discreet.page.charts import Axis, Bar, Chart, Point, bars, lines
from discreet.page.markup import (
    As,
    Column,
    Html,
    count,
    decimal,
    folded,
    heading,
    paragraph,
    several,
    share,
    table,
)
from discreet.page.skeleton import Block, Part
from discreet.page.style import BLUE, GREY, ORANGE, RED
from discreet.perturb.noise import LARGE, Noise
from discreet.programme.hierarchical import HierarchyRule, Output

SMALL = 10
SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
EXPECTED, REALISED = "expected by the law of the noise", "found against the true counts"
CONFIDENT = 0.95
LEAST = 0.005  # errors of empty cells that are smaller are not drawn


def utility_part(found: Utility) -> Part:
    """Errors of counts, areas, sums and associations, against the true counts."""
    cells = found.total.total.occupied
    lead = (
        f"A published count is off by {decimal(cells.mean(Measure.L1))} on average and by at most"
        f" {decimal(cells.absolute.get(0.95))} in 95 of 100 cases;"
        f" {share(cells.mean(Measure.UNCHANGED))} are"
        " unchanged."
    )
    blocks: list[Block] = [_size_chart(found), _size_table(found)]
    blocks += list(_areas(found.areas))
    blocks += list(_sums_and_tests(found))
    blocks.append(folded("Every table", _cube_table(found.total.cubes)))
    return Part("utility", "How useful are the tables?", lead, tuple(blocks))


def _size_chart(found: Utility) -> Chart:
    """Realised errors are against the true counts before swapping; the law applies to those after it."""
    classes, noisy = found.total.total.classes, found.noisy.total.classes
    rows = []
    for size, one in classes.items():
        error, expected = one.mean(Measure.L1), noisy[size].expected_mean(Measure.L1)
        if error is None or (size == "0" and error < LEAST):
            continue
        name = "empty cells" if size == "0" else f"counts of {size}"
        if expected is not None:
            rows.append(Bar(name, expected, decimal(expected), EXPECTED))
        rows.append(Bar(name, error, decimal(error), REALISED))
    means = "; ".join(f"{row.item} {row.label}" for row in rows if row.kind == REALISED)
    says = f"Mean distance between published and true count: {means}."
    if len(found.errors) > 1:
        says += " What is found includes the swapping; what is expected is only the noise."
    colours = {EXPECTED: GREY, REALISED: BLUE}
    used = {kind: colour for kind, colour in colours.items() if any(row.kind == kind for row in rows)}
    axis = Axis("persons, households or dwellings")
    title = "How far counts are off, by their true size"
    return Chart("error-by-size", title, says, lambda width: bars(rows, used, axis, width), used)


def _size_table(found: Utility) -> Html:
    classes, noisy = found.total.total.classes, found.noisy.total.classes
    head = [
        Column("true count"),
        Column("cells", As.COUNT),
        Column("unchanged", As.SHARE),
        Column("mean error", As.DECIMAL),
        Column("expected", As.DECIMAL),
        Column("95 of 100 within", As.DECIMAL),
        Column("relative, half within", As.SHARE),
        Column("relative, 95 of 100 within", As.SHARE),
    ]
    rows = [
        (
            size,
            one.cells,
            one.mean(Measure.UNCHANGED),
            one.mean(Measure.L1),
            noisy[size].expected_mean(Measure.L1),
            one.absolute.get(0.95),
            one.relative.get(0.5),
            one.relative.get(0.95),
        )
        for size, one in classes.items()
        if one.cells
    ]
    return table("Errors by the true size of a count", head, rows)


def _areas(areas: Sequence[AreaDistortion]) -> Iterator[Block]:
    observed = [one for one in areas if any(size.observations for size in one.classes)]
    if not observed:
        return
    yield heading("Small areas")
    if any(many for one in observed for size in one.classes for many in size.distorted.values()):
        yield _area_chart(observed)
    else:
        yield paragraph(f"No count of an area is off by {share(_limits(observed)[0])} or more.")
    head = [
        Column("counted"),
        Column("level"),
        Column("true count"),
        Column("counts of areas", As.COUNT),
        *(Column(f"off by {share(limit)} or more", As.COUNT) for limit in _limits(observed)),
        Column("expected, first limit", As.DECIMAL),
    ]
    rows = [
        (
            one.counted,
            one.level,
            size.size,
            size.observations,
            *size.distorted.values(),
            next(iter(size.expected.values())) if size.expected else None,
        )
        for one in observed
        for size in one.classes
        if size.observations
    ]
    yield folded("Areas by size, in numbers", table("Distorted counts of areas", head, rows))


def _limits(areas: Sequence[AreaDistortion]) -> list[float]:
    return list(areas[0].classes[0].distorted)


def _area_chart(areas: Sequence[AreaDistortion]) -> Chart:
    """All levels of all universes together, by the size of the area's count."""
    sizes = dict.fromkeys(size.size for one in areas for size in one.classes)
    limits, palette = _limits(areas), (BLUE, ORANGE, RED)
    kinds = {f"off by {share(limit)} or more": colour for limit, colour in zip(limits, palette, strict=False)}
    rows: list[Bar] = []
    for name in sizes:
        same = [size for one in areas for size in one.classes if size.size == name]
        seen = sum(size.observations for size in same)
        for kind, limit in zip(kinds, limits, strict=False):
            off = sum(size.distorted[limit] for size in same)
            if seen:
                rows.append(Bar(f"true count {name}", off / seen, f"{count(off)} of {count(seen)}", kind))
    worst = max(rows, key=lambda row: row.value)
    says = f"Worst: {worst.item}, {worst.label} {worst.kind}."
    axis = Axis("share of the counts of areas", "~%", None)
    title = "Counts of areas that are distorted"
    return Chart("areas", title, says, lambda width: bars(rows, kinds, axis, width), kinds)


def _sums_and_tests(found: Utility) -> Iterator[Block]:
    if found.two_way:
        yield heading("Effect on analyses")
        yield paragraph(
            f"In {several(len(found.two_way), 'two-way table', 'two-way tables')} a test of independence has"
            " another result"
            f" than with the true counts in {count(found.changed_tests)}; Cramér's V changes by"
            f" {decimal(found.mean_shift)} on average and"
            f" {decimal(max(found.shifts, default=None))}"
            f" at most."
        )
    head = [
        Column("along"),
        Column("totals", As.COUNT),
        Column("not the sum of their parts", As.SHARE),
        Column("mean gap", As.DECIMAL),
        Column("largest gap", As.COUNT),
    ]
    rows = [
        (name, one.totals, one.share_open, one.mean, one.largest)
        for name, one in found.gaps.items()
        if one.totals
    ]
    if rows:
        yield table("Totals against the sum of their parts", head, rows)


def _cube_table(by_cube: Mapping[str, ErrorComparison]) -> Html:
    head = [
        Column("table"),
        Column("mean error", As.DECIMAL),
        Column("Hellinger distance", As.DECIMAL),
        Column("Hellinger distance of counts", As.DECIMAL),
        Column("unchanged", As.SHARE),
        Column("95 of 100 within", As.DECIMAL),
    ]
    rows = [
        (
            cube,
            one.occupied.mean(Measure.L1),
            one.hellinger,
            one.hellinger_of_counts,
            one.occupied.mean(Measure.UNCHANGED),
            one.occupied.absolute.get(0.95),
        )
        for cube, one in by_cube.items()
    ]
    return table("Errors of each table", head, rows)


@dataclass(frozen=True)
class ExpectedError:
    """The error of a count of one size, by the public description of the noise."""

    size: int
    deviation: float  # root of the mean squared change; with only a public variance, at most this
    unchanged: float | None  # None where the law is not public
    within: int | None  # 95 of 100 changes are at most this


def expected_errors(noise: Noise) -> tuple[ExpectedError, ...]:
    """By the widest law where laws are public, by the variance where that is; empty otherwise."""
    if noise.law is None:
        if noise.variance is None:
            return ()
        return tuple(ExpectedError(size, sqrt(noise.variance), None, None) for size in SIZES)
    law = noise.widest
    each = ExpectedLosses(law).at(np.array(SIZES, dtype=np.int64))
    return tuple(
        ExpectedError(size, float(sqrt(row[Measure.L2])), float(row[Measure.UNCHANGED]), _within(law, size))
        for size, row in zip(SIZES, each, strict=True)
    )


def _within(law: PublishedLaw, size: int) -> int:
    """The smallest distance that contains 95 of 100 published counts."""
    row = law.row(size)
    away = np.abs(row.values - size)
    order = np.argsort(away, kind="stable")
    reached = np.searchsorted(np.cumsum(row.p[order]), CONFIDENT - 1e-12)
    return int(away[order][min(int(reached), len(order) - 1)])


def expected_part(noise: Noise, swapped: bool = False) -> Part:
    """What users of the tables should expect."""
    title = "What the noise means for your analysis"
    errors = expected_errors(noise)
    if not errors:
        lead = "The size of the noise is not published, so the error of a count is unknown."
        if noise.hierarchy is not None:
            lead = _fitted_lead(noise.hierarchy)
        return Part("expected", title, lead, tuple(_advice(noise, None)))
    large = errors[-1]
    most = "about" if noise.has_one_law else "at most about"
    lead = (
        f"The noise changes a count by {most} {decimal(large.deviation)} (one standard deviation):"
        f" {share(large.deviation / SMALL)} of a count of {SMALL}, {share(large.deviation / LARGE)} of one of"
        f" {count(LARGE)}."
    )
    if swapped:
        lead += " Swapping of households adds an error to counts of areas that is not published."
    blocks: list[Block] = [_expected_chart(errors), _expected_table(errors), *_advice(noise, large.deviation)]
    return Part("expected", title, lead, tuple(blocks))


def _fitted_lead(rule: HierarchyRule) -> str:
    """Counts that were fitted to measurements have no error of their own; the estimates do."""
    if Output.ESTIMATES in rule.outputs:
        return (
            "The error differs from cell to cell: the folder estimates has an unbiased estimate of every count with its"
            " standard error and an interval, which discreet infer estimate reads."
        )
    if Output.MEASUREMENTS in rule.outputs:
        return "The error differs from cell to cell; the folder measurements has the noisy counts with their variances."
    return "The noise is known for each level and query, but not the error of a fitted count."


def _expected_chart(errors: Sequence[ExpectedError]) -> Chart:
    points = [Point(one.size, one.deviation / one.size, "") for one in errors if one.deviation]
    deviations = "; ".join(
        f"{share(one.deviation / one.size)} of a count of {count(one.size)}"
        for one in errors
        if one.size in (10, 100, 1000)
    )
    x = Axis("count", ",~f", 1000, log=True, values=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000))
    top = 10.0 if max((p.y for p in points), default=1) > 1.5 else 2.0
    y = Axis("standard deviation / count", "~%", top, log=True, values=(0.001, 0.01, 0.1, 1, 10))
    title = "Relative error of a count, by its size"
    return Chart(
        "expected-error",
        title,
        f"One standard deviation is {deviations}.",
        lambda width: lines(points, {"": BLUE}, x, y, width),
    )


def _expected_table(errors: Sequence[ExpectedError]) -> Html:
    has_law = any(one.unchanged is not None for one in errors)
    head = [
        Column("true count", As.COUNT),
        Column("standard deviation", As.DECIMAL),
        Column("relative", As.SHARE),
    ]
    rows: list[tuple[object, ...]] = [(one.size, one.deviation, one.deviation / one.size) for one in errors]
    if has_law:
        head += [Column("published unchanged", As.SHARE), Column("95 of 100 within", As.COUNT)]
        rows = [(*row, one.unchanged, one.within) for row, one in zip(rows, errors, strict=True)]
    return table("Expected error of a count, by its true size", head, rows)


def _advice(noise: Noise, deviation: float | None) -> Iterator[Html]:
    yield heading("Working with these tables")
    if deviation is not None and not noise.adjusted:
        most = "about" if noise.has_one_law else "at most about"
        yield paragraph(
            f"By the noise the difference of two large counts is off by {most} {decimal(deviation * sqrt(2))} (one"
            " standard deviation): take a published total where there is one instead of adding up its parts."
        )
    yield paragraph(f"{additivity(noise)} {same_everywhere(noise)}")
    yield paragraph(
        "Shares and averages of small groups have large errors. Tests and intervals should allow for the noise:"
        " discreet infer, or"
        " the Python package discreet.inference, does so with what is published here."
    )
