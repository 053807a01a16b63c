"""The part of an audit's report on a hierarchical release: errors by level and size, and the adversary."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.audit.hierarchy import Accuracy, HierarchyAudit, SizeError
from discreet.page.charts import Axis, Bar, Chart, Point, bars, lines
from discreet.page.markup import As, Column, Html, decimal, folded, heading, listing, share, table
from discreet.page.skeleton import Block, Part
from discreet.page.style import BLUE, ORANGE

COUNTS, ESTIMATES = "whole counts", "estimates"
COLOURS = {COUNTS: BLUE, ESTIMATES: ORANGE}


def hierarchy_part(found: HierarchyAudit) -> Part:
    """Errors of counts and estimates by level, by area size, and what the noisy marginals disclose."""
    lead = (
        "Whole counts are fitted to noisy marginals of all levels. Here they and the published estimates are compared "
        "with the true counts, and an intruder who knows all but one person attacks the marginals themselves."
    )
    return Part(
        "hierarchy",
        "How accurate is each level, and what do its marginals disclose?",
        lead,
        tuple(_blocks(found)),
    )


def _blocks(found: HierarchyAudit) -> Iterator[Block]:
    if found.accuracy:
        yield _level_chart(_finest(found.accuracy))
        yield folded("Every cross-tabulation", _accuracy_table(found.accuracy))
    if found.sizes:
        yield from _size_charts(found.sizes)
    if found.adversary:
        yield _adversary_table(found)
    yield heading("Measures that do not apply")
    yield listing(f"{name}: {reason}" for name, reason in found.not_possible.items())


def _finest(rows: tuple[Accuracy, ...]) -> list[Accuracy]:
    """The finest cells of the first cube at each level."""
    return list({row.level: row for row in rows if row.cube == rows[0].cube}.values())


def _level_chart(rows: list[Accuracy]) -> Chart:
    drawn = [
        Bar(f"{row.level}: {row.crosstab}", value, decimal(value), kind)
        for row in rows
        for kind, value in ((COUNTS, row.counts), (ESTIMATES, row.estimates))
    ]
    cells = sum(row.cells for row in rows)
    covered = sum(row.coverage * row.cells for row in rows) / cells
    says = (
        f"The mean absolute error of the finest cells of {rows[0].cube} by level of the geography. {share(covered)} of "
        "the 95 % intervals contain the true count."
    )
    axis = Axis("mean absolute error")
    return Chart(
        "errors-by-level", "Errors by level", says, lambda width: bars(drawn, COLOURS, axis, width), COLOURS
    )


def _size_charts(rows: tuple[SizeError, ...]) -> Iterator[Chart]:
    """One chart for the smallest areas: the error of their cells by true count."""
    level = rows[-1].level
    own = [row for row in rows if row.level == level]
    points = [
        Point(max(row.least, 0.1), value, kind)
        for row in own
        for kind, value in ((COUNTS, row.counts), (ESTIMATES, row.estimates))
    ]
    says = f"The mean absolute error of cells of {level} by their true count: 0, from 1, from 10, and so on."
    x = Axis("true count, from", log=True, labels="datum.value < 1 ? '0' : format(datum.value, ',')")
    y = Axis("mean absolute error", low=0.0)
    yield Chart(
        "errors-by-size", "Errors by size", says, lambda width: lines(points, COLOURS, x, y, width), COLOURS
    )


def _accuracy_table(rows: tuple[Accuracy, ...]) -> Html:
    head = [
        Column("cube"),
        Column("crossed", As.LONG),
        Column("level"),
        Column("cells", As.COUNT),
        Column("error of counts", As.DECIMAL),
        Column("of estimates", As.DECIMAL),
        Column("stated deviation", As.DECIMAL),
        Column("observed", As.DECIMAL),
        Column("in the interval", As.SHARE),
    ]
    listed = [
        (
            row.cube,
            row.crosstab,
            row.level,
            row.cells,
            row.counts,
            row.estimates,
            row.stated,
            row.observed,
            row.coverage,
        )
        for row in rows
    ]
    return table("Errors of every cross-tabulation", head, listed)


def _adversary_table(found: HierarchyAudit) -> Html:
    head = [
        Column("areas"),
        Column("within"),
        Column("query", As.LONG),
        Column("targets", As.COUNT),
        Column("mean posterior", As.DECIMAL),
        Column("decided rightly", As.SHARE),
        Column("above 0.95", As.SHARE),
    ]
    rows = [
        (one.level, one.above, one.query, one.targets, one.mean_posterior, one.right, one.over_gate)
        for one in found.adversary
    ]
    return table("An intruder who knows all but one person, from a prior of 1/2", head, rows)
