"""The pictures of the auditor's report on a swap, as Vega-Lite specifications; they compute no figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import vl_convert

from discreet.swap.distances import Distances
from discreet.swap.figures import NO_REGION, Figures

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


def pictures(figures: Figures) -> Mapping[str, Spec]:
    """Every picture that the figures allow, by its name."""
    drawn = {
        "risk": risk_picture(figures),
        "uniques": unique_picture(figures),
        "swapped": swapped_picture(figures),
        "shared": shared_picture(figures),
        "changes": change_picture(figures),
    }
    return drawn if figures.distances is None else {**drawn, "distances": distance_picture(figures.distances)}


def risk_picture(figures: Figures) -> Spec:
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


def unique_picture(figures: Figures) -> Spec:
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


def swapped_picture(figures: Figures) -> Spec:
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


def shared_picture(figures: Figures) -> Spec:
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


def change_picture(figures: Figures) -> Spec:
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
