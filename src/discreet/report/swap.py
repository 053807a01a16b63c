"""The auditor's report on a swap: pictures, page and figures as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

import vl_convert

from discreet.io.atomic_folder import WholeFolder
from discreet.programme.swap import SwapRule
from discreet.swap.figures import NO_REGION, Distances, SwapFigures

Spec = dict[str, Any]

WIDTH = 520
BEFORE, AFTER = "before", "after"
TRUE, SAME = "one such person lived there", "and it is the same person"
SWAPPED = "swapped at this level"
_COLOURS = {BEFORE: "#b0b7bf", AFTER: "#08519c"}
_OUTCOMES = {
    SWAPPED: "#08519c",
    "kept: no donor": "#d95f0e",
    "kept: excluded": "#8c8c8c",
    "kept: cap": "#756bb1",
    "kept: quota": "#31a354",
}


def svg(spec: Spec) -> str:
    """Draw a picture as SVG, to stand inside a page."""
    return str(vl_convert.vegalite_to_svg(spec))


def pictures(figures: SwapFigures) -> Mapping[str, Spec]:
    """Every picture that the figures allow, by its name."""
    drawn = {
        "risk": risk_picture(figures),
        "uniques": unique_picture(figures),
        "swapped": swapped_picture(figures),
        "shared": shared_picture(figures),
        "changes": change_picture(figures),
    }
    return drawn if figures.distances is None else {**drawn, "distances": distance_picture(figures.distances)}


def risk_picture(figures: SwapFigures) -> Spec:
    """Households at risk at each level, before and after."""
    rows = [
        {
            "level": level.level,
            "when": when,
            "households": number,
            "label": _share(number, figures.households),
        }
        for level in figures.levels
        for when, number in ((BEFORE, level.at_risk_before), (AFTER, level.at_risk_after))
    ]
    order = [level.level for level in figures.levels]
    spec = _bars(rows, "households", order, "Households with a member at risk", "households")
    return _grouped(spec, "when", _COLOURS)


def unique_picture(figures: SwapFigures) -> Spec:
    """How likely an apparent unique is a true one, and the very person, at each level."""
    rows = [
        {"level": level.level, "true": kind, "percent": 100 * chance, "label": f"{100 * chance:.1f} %"}
        for level in figures.levels
        for kind, chance in ((TRUE, level.chance_true), (SAME, level.chance_same))
        if chance is not None
    ]
    order = [level.level for level in figures.levels]
    title = "Chance that an apparent unique is a true one"
    spec = _bars(rows, "percent", order, title, "percent of the persons unique in the swapped data", 100)
    return _grouped(spec, "true", {TRUE: _COLOURS[BEFORE], SAME: _COLOURS[AFTER]})


def swapped_picture(figures: SwapFigures) -> Spec:
    """Households swapped at each level, and those at risk there that kept their place."""
    counted = [(level.level, SWAPPED, level.swapped) for level in figures.levels]
    counted += [(kept.level, f"kept: {kept.why}", kept.households) for kept in figures.unswapped]
    rows = [
        {
            "level": level,
            "outcome": outcome,
            "households": number,
            "label": _share(number, figures.households),
        }
        for level, outcome, number in counted
    ]
    order = [level.level for level in figures.levels]
    spec = _bars(rows, "households", order, "Swapped, and at risk but not swapped", "households")
    return _grouped(spec, "outcome", _OUTCOMES)


def shared_picture(figures: SwapFigures) -> Spec:
    """The finest region that partners share."""
    rows = [
        {"level": _no_region(level), "households": number, "label": _share(number, figures.swapped)}
        for level, number in figures.shared.items()
    ]
    order = [_no_region(level) for level in (NO_REGION, *(level.level for level in figures.levels))]
    spec = _bars(rows, "households", order, "The finest region that both partners live in", "households")
    spec["layer"][0]["mark"]["color"] = _COLOURS[AFTER]
    return spec


def distance_picture(distances: Distances) -> Spec:
    """A histogram of the distances."""
    rows = [
        {"from": low, "to": high, "households": number}
        for low, high, number in zip(
            distances.edges[:-1], distances.edges[1:], distances.households, strict=True
        )
    ]
    x = {"field": "from", "type": "quantitative", "bin": {"binned": True}, "title": _unit(distances)}
    y = {"field": "households", "type": "quantitative", "title": "households"}
    return {
        **_frame("Distance between partners"),
        "data": {"values": rows},
        "mark": {"type": "bar", "color": _COLOURS[AFTER]},
        "encoding": {"x": x, "x2": {"field": "to"}, "y": y},
        "width": WIDTH,
        "height": 160,
    }


def change_picture(figures: SwapFigures) -> Spec:
    """The mean absolute change of a cell, for each table and level."""
    rows = [
        {
            "table": change.table,
            "level": change.level,
            "mean": change.mean_absolute,
            "label": f"{change.mean_absolute:.2f}",
        }
        for change in figures.tables
    ]
    strongest = max((change.mean_absolute for change in figures.tables), default=0.0) or 1.0
    dark = {"test": f"datum.mean > {0.5 * strongest}", "value": "white"}
    scale = {"range": ["#f2f6fb", "#08519c"], "domain": [0, strongest]}
    levels = [level.level for level in figures.levels]
    tables = list(dict.fromkeys(change.table for change in figures.tables))
    top = {"orient": "top", "labelAngle": 0, "domain": False, "ticks": False}
    return {
        **_frame("Mean absolute change of a cell, persons"),
        "data": {"values": rows},
        "encoding": {
            "x": {"field": "level", "type": "ordinal", "sort": levels, "title": None, "axis": top},
            "y": {"field": "table", "type": "ordinal", "sort": tables, "title": None, "axis": _PLAIN_AXIS},
        },
        "layer": [
            {
                "mark": {"type": "rect", "stroke": "white"},
                "encoding": {"color": {"field": "mean", "type": "quantitative", "scale": scale, "legend": None}},
            },
            {
                "mark": {"type": "text", "fontSize": 12},
                "encoding": {"text": {"field": "label"}, "color": {"condition": dark, "value": "#1a1a1a"}},
            },
        ],
        "width": {"step": 88},
        "height": {"step": 30},
    }  # fmt: skip


_PLAIN_AXIS: Spec = {"domain": False, "ticks": False, "labelLimit": 260, "labelPadding": 6}
_LEGEND: Spec = {"legend": {"title": None, "orient": "top", "direction": "horizontal"}, "type": "nominal"}


def _bars(
    rows: Sequence[Spec], value: str, order: Sequence[str], title: str, axis: str, top: float | None = None
) -> Spec:
    """Horizontal bars, one row for each level, with their labels behind them."""
    longest = max((row[value] for row in rows), default=0)
    x = {
        "field": value,
        "type": "quantitative",
        "title": axis,
        "scale": {"domain": [0, top or max(1.0, 1.3 * longest)], "nice": False},
        "axis": {"grid": True, "tickCount": 6, "format": ",~f"},
    }
    y = {"field": "level", "type": "nominal", "sort": list(order), "title": None, "axis": _PLAIN_AXIS}
    return {
        **_frame(title),
        "data": {"values": list(rows)},
        "encoding": {"x": x, "y": y},
        "layer": [
            {"mark": {"type": "bar"}},
            {
                "mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 12, "clip": False},
                "encoding": {"text": {"field": "label"}},
            },
        ],
        "width": WIDTH,
        "height": {"step": 28},
    }


def _grouped(spec: Spec, field: str, colours: Mapping[str, str]) -> Spec:
    """The bars of each level side by side, one for each kind that occurs."""
    shown = [kind for kind in colours if any(row[field] == kind for row in spec["data"]["values"])]
    scale = {"domain": shown, "range": [colours[kind] for kind in shown]}
    colour = {"color": {"field": field, "scale": scale, **_LEGEND}}
    side_by_side = {"field": field, "sort": shown}
    bars, labels = spec["layer"]
    return {
        **spec,
        "encoding": {**spec["encoding"], "yOffset": side_by_side},
        "layer": [{**bars, "encoding": colour}, labels],
        "height": {"step": 22},
    }


def _frame(title: str) -> Spec:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {"text": title, "anchor": "start", "fontSize": 14, "offset": 10},
        "config": {
            "font": "sans-serif",
            "background": "white",
            "view": {"stroke": None},
            "axis": {"gridColor": "#e4e4e4", "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
            "legend": {"labelFontSize": 12, "columnPadding": 48},
        },
    }  # fmt: skip


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({100 * part / whole:.2f} %)" if whole else f"{part:,}"


def _no_region(level: str) -> str:
    return "no common region" if level == NO_REGION else level


def _unit(distances: Distances) -> str:
    return f"distance, in the unit of {' and '.join(distances.columns)}"


REPORT = "report.html"
FIGURES = "figures.json"

_STYLE = """
body { font: 15px/1.5 sans-serif; color: #1a1a1a; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; margin: .8rem 0; display: block; overflow-x: auto; }
th, td { padding: .25rem .8rem .25rem 0; text-align: right; }
th { border-bottom: 1px solid #888; font-weight: 600; vertical-align: bottom; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
.private { border-left: 4px solid #b30000; padding-left: .8rem; } svg { max-width: 100%; height: auto; }
"""

Row = Sequence[object]


def write_report(figures: SwapFigures, rule: SwapRule, name: str, folder: WholeFolder) -> None:
    """Write the page and the figures into a private folder."""
    with folder.file(REPORT) as file:
        file.write(page(figures, rule, name).encode())
    with folder.file(FIGURES) as file:
        file.write((json.dumps(machine_figures(figures), indent=1, ensure_ascii=False) + "\n").encode())


def machine_figures(figures: SwapFigures) -> dict[str, Any]:
    """The figures for machines."""
    levels = [
        {**asdict(level), "chance_true": level.chance_true, "chance_same": level.chance_same}
        for level in figures.levels
    ]
    return {**asdict(figures), "levels": levels}


def page(figures: SwapFigures, rule: SwapRule, name: str) -> str:
    """The whole page."""
    title = escape(f"Record swapping: {name}")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>{title}</h1>\n"
        + "\n".join(_body(figures, rule))
        + "\n</body></html>\n"
    )


def _body(figures: SwapFigures, rule: SwapRule) -> Iterator[str]:
    drawn = {name: svg(spec) for name, spec in pictures(figures).items()}
    yield _text(
        "Private: this page tells true counts of small groups. Keep it with the microdata.", "private"
    )
    yield from _overview(figures, rule)
    yield "<h2>Risk before and after</h2>"
    yield _text(_risk_words(rule))
    yield drawn["risk"]
    yield from _risk_table(figures)
    yield "<h2>Is an apparent unique a true one?</h2>"
    yield _text(
        "Who finds a person alone in a region of the swapped data with some values of the risk variables may be wrong:"
        " the region may hold nobody like that, or several, or another person. True: exactly one such person lived"
        " there. The same: it is that very record, so that its other values belong to the person who lives there."
    )
    yield drawn["uniques"]
    yield from _unique_table(figures)
    yield "<h2>Who was swapped, and who was not</h2>"
    yield drawn["swapped"]
    yield from _reason_tables(figures)
    yield "<h2>How far households went</h2>"
    yield drawn["shared"]
    yield drawn.get("distances", "")
    yield from _distance_table(figures)
    yield "<h2>Utility</h2>"
    yield _text(
        "Persons by region and the risk variables, one by one and crossed: the change of a cell that holds somebody"
        " before or after. A level whose regions all partners share does not change."
    )
    yield drawn["changes"]
    yield from _change_table(figures)


def _overview(figures: SwapFigures, rule: SwapRule) -> Iterator[str]:
    share = 100 * figures.swapped / figures.households if figures.households else 0.0
    yield _text(
        f"{figures.households:,} households, {figures.persons:,} persons. Swapped: {figures.swapped:,} households"
        f" ({share:.2f} %); the rate asked for was {100 * float(rule.rate):g} %"
        + ("." if rule.cap is None else f", the cap {100 * float(rule.cap):g} %.")
    )
    for conflict in figures.conflicts:
        yield _text(f"Conflict: {conflict}", "private")


def _risk_words(rule: SwapRule) -> str:
    if not rule.risk:
        return "The office supplied the risks; a household at risk is so until it is swapped."
    crossed = " x ".join(axis.full_name for axis in rule.risk)
    words = f"At risk: fewer than {rule.k} persons of the region share the values of {crossed}."
    added = " Risks that the office supplied besides are not counted here." if rule.risk_column else ""
    return f"{words} Counted anew from the records, before and after.{added}"


def _risk_table(figures: SwapFigures) -> Iterator[str]:
    rows = (
        (
            level.level,
            level.regions,
            level.at_risk_before,
            level.at_risk_after,
            level.swapped,
            _percent(level.swapped, figures.households),
        )
        for level in figures.levels
    )
    head = (
        "level",
        "regions",
        "at risk before",
        "at risk after",
        "swapped at this level",
        "of all households",
    )
    yield _table(head, rows)


def _unique_table(figures: SwapFigures) -> Iterator[str]:
    rows = (
        (
            level.level,
            level.uniques_before,
            level.uniques_after,
            level.true_uniques,
            _percent(level.true_uniques, level.uniques_after),
            level.same_persons,
            _percent(level.same_persons, level.uniques_after),
        )
        for level in figures.levels
    )
    yield _table(("level", "uniques before", "uniques after", "true", "chance", "the same", "chance"), rows)


def _reason_tables(figures: SwapFigures) -> Iterator[str]:
    rows = [(why, number, _percent(number, figures.households)) for why, number in figures.reasons.items()]
    yield _table(("swapped because", "households", "of all"), rows)
    rows = [
        (profile, number, _percent(number, figures.swapped)) for profile, number in figures.profiles.items()
    ]
    yield _table(("similar in", "households", "of those swapped"), rows)
    kept = [(one.level, one.why, one.households) for one in figures.unswapped]
    if kept:
        yield _table(("at risk, not swapped, at", "why", "households"), kept)
    else:
        yield _text("Every household at risk was swapped.")
    excluded = [(why, number) for why, number in figures.excluded.items() if why != "not excluded"]
    if excluded:
        yield _table(("excluded", "households"), excluded)


def _distance_table(figures: SwapFigures) -> Iterator[str]:
    rows = [
        ("no common region" if level == NO_REGION else level, number, _percent(number, figures.swapped))
        for level, number in figures.shared.items()
    ]
    yield _table(("finest region that both share", "households", "of those swapped"), rows)
    if figures.distances is not None:
        found = figures.distances
        yield _text(f"Distances in the unit of {' and '.join(found.columns)}:")
        yield _table(
            ("mean", *found.quantiles),
            [(f"{found.mean:.3g}", *(f"{distance:.3g}" for distance in found.quantiles.values()))],
        )


def _change_table(figures: SwapFigures) -> Iterator[str]:
    rows = (
        (
            change.table,
            change.level,
            change.cells,
            _percent(change.changed, change.cells),
            f"{change.mean_absolute:.3f}",
            change.largest,
        )
        for change in figures.tables
    )
    yield _table(("table", "level", "cells", "changed", "mean absolute change", "largest"), rows)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else ""


def _text(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def _table(head: Sequence[str], rows: Iterable[Row]) -> str:
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    return f"<table><tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>\n{body}</table>"


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"<td>{value:,}</td>"
    text = escape(str(value))
    is_word = bool(text) and not text[0].isdigit()
    return f'<td class="text">{text}</td>' if is_word else f"<td>{text}</td>"
