"""The part of an audit's report on a hierarchical release: errors by level and size, and the adversary."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.audit.bayes_measurements import AdversaryFinding
from discreet.audit.fits import AreaError, FitError, FitErrors
from discreet.audit.hierarchy import Accuracy, HierarchyAudit, SizeError
from discreet.page.charts import Axis, Bar, Chart, Point, bars, lines
from discreet.page.markup import As, Column, Html, decimal, folded, heading, listing, share, table
from discreet.page.skeleton import Block, Part
from discreet.page.style import BLUE, GREEN, ORANGE

COUNTS, ESTIMATES = "whole counts", "estimates"
COLOURS = {COUNTS: BLUE, ESTIMATES: ORANGE}
TREE, OWN_LEVEL = "fitted to all levels", "level by level, as TopDown"
FITS = {TREE: BLUE, OWN_LEVEL: GREEN, ESTIMATES: ORANGE}
PRESENT, ABSENT, OWN = "target is there", "target is not there", "by the own count only"
DECISIONS = {PRESENT: BLUE, ABSENT: ORANGE, OWN: GREEN}
CLASSES = "datum.value < 1 ? '0' : format(datum.value, ',')"  # labels of sizes from which a class begins
FLOATING = 1e-6  # below this an error is that of floating-point numbers
MOST_SHOWN = 12  # levels and queries of one chart


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
    if found.fits is not None:
        yield from _fits(found.fits)
    if found.adversary:
        yield _adversary_chart(found.adversary)
        yield folded("Every level and query", _adversary_table(found.adversary))
    yield heading("Measures that do not apply")
    yield listing(f"{name.replace('_', ' ')}: {reason}" for name, reason in found.not_possible.items())


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
        "the 95% intervals contain the true count."
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
    places = tuple(dict.fromkeys(max(row.least, 0.1) for row in own))
    x = Axis("true count, from", log=True, values=places, labels=CLASSES)
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
        Column("recovered exactly", As.SHARE),
        Column("predicted", As.SHARE),
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
            row.recovered,
            row.recovery,
        )
        for row in rows
    ]
    return table("Errors of every cross-tabulation", head, listed)


def _fits(found: FitErrors) -> Iterator[Block]:
    """Our fit beside TopDown's and the estimates: by level, by size of area, and all of it as a table."""
    rows = [one for one in found.queries if one.query in ("total", "detailed")]
    drawn = [
        Bar(f"{row.level}: {row.query}", value, decimal(value), kind)
        for row in rows[-MOST_SHOWN:]
        for kind, value in ((TREE, row.tree), (OWN_LEVEL, row.own_level))
        if value is not None and (row.tree or row.own_level)  # exact totals have no errors to compare
    ]
    shown = {kind: colour for kind, colour in FITS.items() if any(bar.kind == kind for bar in drawn)}
    axis = Axis("mean absolute error")
    yield Chart(
        "fits-by-level",
        "Whole counts fitted in two ways",
        f"{_compared(found)} The same noisy counts are fitted to all levels together, and level by level.",
        lambda width: bars(drawn, shown, axis, width),
        shown,
    )
    for query, title in (
        ("total", "Totals of areas by their size"),
        ("detailed", "Single cells by the size of their area"),
    ):
        yield from _area_chart(query, title, [one for one in found.sizes if one.query == query])
    yield folded("Errors of every level and query", _fit_table(found.queries))


def _compared(found: FitErrors) -> str:
    """In how many of the levels and queries the fit to all levels has the smaller error."""
    both = [one for one in found.queries if one.own_level is not None]
    if not both:
        return f"Fits level by level are not possible: {found.without}."
    better = sum(one.tree <= (one.own_level or 0.0) for one in both)
    return f"The fit to all levels has the smaller or the same error in {better} of {len(both)} levels and queries."


def _area_chart(query: str, title: str, rows: list[AreaError]) -> Iterator[Chart]:
    """The errors of the smallest areas, and of those above them, by the number of persons of an area."""
    levels = list(dict.fromkeys(one.level for one in rows))
    level = levels[-1] if levels else ""
    own = [one for one in rows if one.level == level]
    if len(own) < 2:
        return
    points = [
        Point(max(row.least, 0.1), value, kind)
        for row in own
        for kind, value in ((TREE, row.tree), (OWN_LEVEL, row.own_level), (ESTIMATES, row.estimates))
        if value is not None
    ]
    shown = {kind: colour for kind, colour in FITS.items() if any(point.kind == kind for point in points)}
    describes = (
        f"The mean absolute error of “{query}” in areas of {level} by their number of persons: 0, from 1, from 10, and "
        "so on. Estimates may be negative and are unbiased; counts may not, and are more accurate where few live."
    )
    places = tuple(dict.fromkeys(max(row.least, 0.1) for row in own))
    x = Axis("persons of the area, from", log=True, values=places, labels=CLASSES)
    y = Axis("mean absolute error", low=0.0)
    yield Chart(
        f"fits-by-size-{query}", title, describes, lambda width: lines(points, shown, x, y, width), shown
    )


def _fit_table(rows: tuple[FitError, ...]) -> Html:
    head = [
        Column("level"),
        Column("query", As.LONG),
        Column("cells", As.COUNT),
        Column("estimates", As.DECIMAL),
        Column("fitted to all levels", As.DECIMAL),
        Column("level by level", As.DECIMAL),
        Column("stated deviation of estimates", As.DECIMAL),
    ]
    listed = [
        (
            row.level,
            row.query,
            row.cells,
            *map(_settled, (row.estimates, row.tree, row.own_level, row.stated)),
        )
        for row in rows
    ]
    return table("Mean absolute errors of three fits of the same noisy counts", head, listed)


def _settled(error: float | None) -> float | None:
    """An error as it is listed: what remains of floating-point numbers where a total is published exactly is none."""
    return 0.0 if error is not None and abs(error) < FLOATING else error


def _adversary_chart(rows: tuple[AdversaryFinding, ...]) -> Chart:
    """Right decisions with the hierarchy, where targets are there and where they are not, and without it."""
    shown = sorted(rows, key=lambda one: -one.targets)[:MOST_SHOWN]
    drawn = [
        Bar(f"{one.level} in {one.above}: {one.query}", value, share(value), kind)
        for one in shown
        for kind, value in ((PRESENT, one.right), (ABSENT, one.absent), (OWN, one.own_right))
    ]
    most = max(rows, key=lambda one: one.targets)
    describes = (
        "An intruder who knows all but one person of a cell decides whether that person is in it, from a prior of "
        f"{rows[0].prior:g}. Of “{most.query}” in {most.level}, {share(most.right)} of targets who are there are found "
        f"({share(most.expected)} by the exact formula), and {share(most.absent)} of targets who are not are cleared; "
        f"{share(most.balanced)} of all decisions are right. Small counts of the larger area are evidence against a "
        "target, so that fewer are found than by the area's own count."
    )
    return Chart(
        "adversary",
        "What the measurements disclose about one person",
        describes,
        lambda width: bars(drawn, DECISIONS, Axis("right decisions", format=".0%", top=1.0), width),
        DECISIONS,
    )


def _adversary_table(found: tuple[AdversaryFinding, ...]) -> Html:
    head = [
        Column("areas"),
        Column("within"),
        Column("query", As.LONG),
        Column("targets", As.COUNT),
        Column("mean posterior", As.DECIMAL),
        Column("found", As.SHARE),
        Column("by the formula", As.SHARE),
        Column("cleared", As.SHARE),
        Column("by the formula", As.SHARE),
        Column("found by the own count", As.SHARE),
        Column(f"above {found[0].gate:g}", As.SHARE),
    ]
    rows = [
        (
            one.level,
            one.above,
            one.query,
            one.targets,
            one.mean_posterior,
            one.right,
            one.expected,
            one.absent,
            one.absent_expected,
            one.own_right,
            one.over_gate,
        )
        for one in found
    ]
    return table(
        f"An intruder who knows all but one person, from a prior of {found[0].prior:g}: targets who are there and "
        "found, targets who are not and cleared",
        head,
        rows,
    )
