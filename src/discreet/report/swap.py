"""The auditor's report on a swap: page with charts, and figures as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from discreet.io.atomic_folder import AtomicFolder
from discreet.page.charts import Axis, Bar, Chart, Drawing, HeatCell, HeatTile, bars, heat, tiled
from discreet.page.markup import (
    As,
    Column,
    Html,
    Tile,
    count,
    decimal,
    paragraph,
    share,
    table,
    tiles,
)
from discreet.page.skeleton import Block, Page, Part
from discreet.page.style import BLUE, GREEN, GREY, ORANGE, PURPLE
from discreet.programme.swap import SwapRule
from discreet.swap.figures import NO_REGION, Distances, SwapFigures

REPORT = "report.html"
FIGURES = "figures.json"

BEFORE, AFTER = "before", "after"
TRUE, SAME = "one such person lived there", "and it is the same person"
SWAPPED = "swapped at this level"
_COLOURS = {BEFORE: GREY, AFTER: BLUE}
_UNIQUES = {TRUE: GREY, SAME: BLUE}
_OUTCOMES = {
    SWAPPED: BLUE,
    "not swapped: no donor": ORANGE,
    "not swapped: excluded": GREY,
    "not swapped: cap": PURPLE,
    "not swapped: quota": GREEN,
}
_NOTICE = "Private: this page shows true counts of small groups. Store it with the microdata."


def write_report(figures: SwapFigures, rule: SwapRule, name: str, folder: AtomicFolder) -> None:
    """Write the page and the JSON figures into a private folder."""
    with folder.file(REPORT) as file:
        file.write(swap_page(figures, rule, name).html().encode())
    with folder.file(FIGURES) as file:
        file.write((json.dumps(machine_figures(figures), indent=1, ensure_ascii=False) + "\n").encode())


def machine_figures(figures: SwapFigures) -> dict[str, Any]:
    """The figures as a JSON document."""
    levels = [
        {**asdict(level), "chance_true": level.chance_true, "chance_same": level.chance_same}
        for level in figures.levels
    ]
    return {**asdict(figures), "levels": levels}


def swap_page(figures: SwapFigures, rule: SwapRule, name: str) -> Page:
    """The auditor's page."""
    return Page(
        f"Record swapping: {name}",
        "Who was at risk, who was swapped, how far households moved, and how tables changed.",
        _NOTICE,
        is_private=True,
        opening=(
            _tiles(figures, rule),
            *(paragraph(f"Conflict: {one}", "lead bad") for one in figures.conflicts),
        ),
        parts=(
            _risk_part(figures, rule),
            _uniques_part(figures),
            _swapped_part(figures),
            _distance_part(figures),
            _utility_part(figures),
        ),
    )


def _tiles(figures: SwapFigures, rule: SwapRule) -> Html:
    target = f"target: {100 * float(rule.rate):g}%"
    cap = "" if rule.cap is None else f", at most {100 * float(rule.cap):g}%"
    return tiles(
        [
            Tile("Households", count(figures.households)),
            Tile("Persons", count(figures.persons)),
            Tile("Households swapped", count(figures.swapped)),
            Tile("Share swapped", share(_share(figures.swapped, figures.households)), f"{target}{cap}"),
        ]
    )


def _risk_part(figures: SwapFigures, rule: SwapRule) -> Part:
    columns = _columns("level", "regions", "at risk before", "at risk after", "swapped at this level")
    rows = [
        (
            level.level,
            level.regions,
            level.at_risk_before,
            level.at_risk_after,
            level.swapped,
            _share(level.swapped, figures.households),
        )
        for level in figures.levels
    ]
    found = table("Risk by level", [*columns, Column("of all households", As.SHARE)], rows)
    return Part("risk", "Risk before and after", _risk_text(rule), (risk_chart(figures), found))


def _risk_text(rule: SwapRule) -> str:
    if not rule.risk:
        return "The office supplied the risks; a household stays at risk until it is swapped."
    crossed = " x ".join(axis.full_name for axis in rule.risk)
    text = f"At risk: fewer than {rule.k} persons of the region share the values of {crossed}."
    added = " Additional risks supplied by the office are not counted here." if rule.risk_column else ""
    return f"{text} Counted again from the records, before and after.{added}"


def risk_chart(figures: SwapFigures) -> Chart:
    """Households at risk at each level, before and after."""
    rows = [
        Bar(level.level, number, _labelled(number, figures.households), when)
        for level in figures.levels
        for when, number in ((BEFORE, level.at_risk_before), (AFTER, level.at_risk_after))
    ]
    text = "; ".join(
        f"{level.level}: {level.at_risk_before:,} before, {level.at_risk_after:,} after"
        for level in figures.levels
    )
    return _bar_chart("risk", "Households with a member at risk", f"{text}.", rows, _COLOURS, "households")


def _uniques_part(figures: SwapFigures) -> Part:
    lead = (
        "A person who is unique in a region of the swapped data by the risk variables may not be unique in truth:"
        " the region may have no such person, or several, or another one. True: exactly one such person"
        " lived there. The same: it is the same record, so that its other values belong to the person who lives"
        " there."
    )
    columns = [
        *_columns("level", "uniques before", "uniques after", "true"),
        Column("probability of true", As.SHARE),
        Column("the same", As.COUNT),
        Column("probability of the same", As.SHARE),
    ]
    rows = [
        (
            level.level,
            level.uniques_before,
            level.uniques_after,
            level.true_uniques,
            level.chance_true,
            level.same_persons,
            level.chance_same,
        )
        for level in figures.levels
    ]
    blocks = (unique_chart(figures), table("Persons unique in their region", columns, rows))
    return Part("uniques", "Is an apparent unique a true one?", lead, blocks)


def unique_chart(figures: SwapFigures) -> Chart:
    """The probability that an apparent unique is a true one, and the same person, at each level."""
    rows = [
        Bar(level.level, 100 * chance, share(chance), kind)
        for level in figures.levels
        for kind, chance in ((TRUE, level.chance_true), (SAME, level.chance_same))
        if chance is not None
    ]
    text = "; ".join(
        f"{level.level}: {share(level.chance_true)} true, {share(level.chance_same)} the same person"
        for level in figures.levels
        if level.chance_true is not None and level.chance_same is not None
    )
    description = f"{text or 'No person is unique in the swapped data'}."
    title, axis = (
        "Probability that an apparent unique is a true one",
        "percent of the persons unique in the swapped data",
    )
    return _bar_chart("uniques", title, description, rows, _UNIQUES, axis)


def _swapped_part(figures: SwapFigures) -> Part:
    unswapped_number = sum(one.households for one in figures.unswapped)
    lead = (
        f"In {unswapped_number:,} cases a household at risk at a level was not swapped there."
        if unswapped_number
        else "Every household at risk was swapped."
    )
    of_all, of_swapped = Column("of all households", As.SHARE), Column("of those swapped", As.SHARE)
    reasons = [(why, n, _share(n, figures.households)) for why, n in figures.reasons.items()]
    profiles = [(profile, n, _share(n, figures.swapped)) for profile, n in figures.profiles.items()]
    blocks: list[Block] = [
        swapped_chart(figures),
        table("Why households were swapped", [*_columns("swapped because", "households"), of_all], reasons),
        table("How alike partners are", [*_columns("similar in", "households"), of_swapped], profiles),
    ]
    if unswapped_number:
        columns = [Column("level"), Column("why"), Column("households", As.COUNT)]
        unswapped = [(one.level, one.why, one.households) for one in figures.unswapped]
        blocks.append(table("At risk and not swapped", columns, unswapped))
    excluded = [(why, number) for why, number in figures.excluded.items() if why != "not excluded"]
    if excluded:
        blocks.append(table("Excluded", _columns("excluded", "households"), excluded))
    return Part(
        "swapped", "Who was swapped, and who was not", lead, tuple(blocks), "" if unswapped_number else "good"
    )


def swapped_chart(figures: SwapFigures) -> Chart:
    """Households swapped at each level, and those at risk there that were not swapped."""
    counted = [(level.level, SWAPPED, level.swapped) for level in figures.levels]
    counted += [(one.level, f"not swapped: {one.why}", one.households) for one in figures.unswapped]
    rows = [Bar(level, n, _labelled(n, figures.households), outcome) for level, outcome, n in counted]
    levels = [level.level for level in figures.levels]
    rows.sort(key=lambda row: levels.index(row.item))
    text = "; ".join(f"{row.item}: {row.value:,} {row.kind}" for row in rows)
    return _bar_chart(
        "swapped", "Swapped, or at risk but not swapped", f"{text}.", rows, _OUTCOMES, "households"
    )


def _distance_part(figures: SwapFigures) -> Part:
    columns = [
        *_columns("finest region that both share", "households"),
        Column("of those swapped", As.SHARE),
    ]
    rows = [(_region(level), n, _share(n, figures.swapped)) for level, n in figures.shared.items()]
    blocks: list[Block] = [shared_chart(figures), table("Regions that partners share", columns, rows)]
    lead = "Partners live in the same region of some level, or in none."
    if figures.distances is not None:
        found = figures.distances
        lead += f" Their mean distance is {decimal(found.mean)}, in the unit of {_unit(found)}."
        quantiles = [Column(name, As.DECIMAL) for name in ("mean", *found.quantiles)]
        blocks.append(distance_chart(found))
        blocks.append(
            table("Quantiles of the distances", quantiles, [(found.mean, *found.quantiles.values())])
        )
    return Part("distances", "How far households moved", lead, tuple(blocks))


def shared_chart(figures: SwapFigures) -> Chart:
    """The finest region that partners share."""
    levels = (NO_REGION, *(level.level for level in figures.levels))
    rows = [
        Bar(_region(level), figures.shared[level], _labelled(figures.shared[level], figures.swapped))
        for level in levels
        if level in figures.shared
    ]
    text = "; ".join(f"{row.item}: {row.label}" for row in rows) or "no household was swapped"
    title = "The finest region that both partners live in"
    return _bar_chart("shared", title, f"{text}.", rows, {"": BLUE}, "households")


def distance_chart(distances: Distances) -> Chart:
    """A histogram of the distances."""
    edges = distances.edges
    gap = 0.06 * (edges[1] - edges[0])
    columns = [
        HeatTile(low + gap, high - gap, 0, number, "")
        for low, high, number in zip(edges[:-1], edges[1:], distances.households, strict=True)
    ]
    quantiles = ", ".join(f"{name}: {decimal(value)}" for name, value in distances.quantiles.items())
    x = Axis(f"distance, in the unit of {_unit(distances)}", low=0.0, top=edges[-1])
    y = Axis("households")

    def draw(width: int) -> Drawing:
        return tiled(columns, (), {"": BLUE}, x, y, width, height=180)

    return Chart("distances", "Distance between partners", f"Quantiles: {quantiles}.", draw)


def _utility_part(figures: SwapFigures) -> Part:
    lead = (
        "Persons by region and the risk variables, one by one and crossed: the change of a cell that is not empty"
        " before or after. A level at which all partners share their region does not change."
    )
    columns = [
        Column("table"),
        Column("level"),
        Column("cells", As.COUNT),
        Column("changed", As.SHARE),
        Column("mean absolute change", As.DECIMAL),
        Column("largest", As.COUNT),
    ]
    rows = [
        (
            change.table,
            change.level,
            change.cells,
            _share(change.changed, change.cells),
            change.mean_absolute,
            change.largest,
        )
        for change in figures.tables
    ]
    if not rows:
        return Part("utility", "Utility", "The rule has no risk variables, so no tables are compared.")
    blocks = (change_chart(figures), table("Changes of tables", columns, rows))
    return Part("utility", "Utility", lead, blocks)


def change_chart(figures: SwapFigures) -> Chart:
    """The mean absolute change of a cell, for each table and level."""
    cells = [
        HeatCell(change.table, change.level, change.mean_absolute, f"{change.mean_absolute:.2f}")
        for change in figures.tables
    ]
    strongest = max((cell.value for cell in cells), default=0.0) or 1.0
    levels = [level.level for level in figures.levels]
    text = "; ".join(f"{cell.row} by {cell.column}: {cell.label}" for cell in cells)

    def draw(width: int) -> Drawing:
        return heat(cells, "", "", width, columns=levels, strongest=strongest)

    return Chart("changes", "Mean absolute change of a cell, persons", f"{text}.", draw, scrolls=True)


def _bar_chart(
    name: str, title: str, description: str, rows: list[Bar], colours: dict[str, str], axis: str
) -> Chart:
    """Bars by level in the colours of the kinds that occur."""
    used = {kind: colour for kind, colour in colours.items() if any(row.kind == kind for row in rows)}
    return Chart(name, title, description, lambda width: bars(rows, used, Axis(axis), width), used)


def _columns(first: str, *counts: str) -> list[Column]:
    return [Column(first), *(Column(name, As.COUNT) for name in counts)]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _labelled(part: int, whole: int) -> str:
    return f"{part:,} ({share(part / whole)})" if whole else f"{part:,}"


def _region(level: str) -> str:
    return "no common region" if level == NO_REGION else level


def _unit(distances: Distances) -> str:
    return " and ".join(distances.columns)
