"""The picture of a forecast: expected relative error against cell size, one line a candidate; it computes no errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import vl_convert

from discreet.advise.forecast import CandidateForecast, Forecast
from discreet.errors import mistake
from discreet.maths.cells.lookup import Lookup
from discreet.maths.noise.additive import LawKind
from discreet.programme.noise import PrivateNoise

FONT = "sans-serif"
WIDTH, HEIGHT = 520, 420
LABEL_GAP = 15  # pixels between two labels
LEADER = 20  # pixels from the end of a line to its label
COLOURS = {
    LawKind.CELL_KEY: "#1a1a1a",
    LawKind.GEOMETRIC: "#08519c",
    LawKind.LAPLACE: "#d95f0e",
    LawKind.NORMAL: "#31a354",
    LawKind.DISCRETE_GAUSSIAN: "#756bb1",
    LawKind.HELLINGER: "#de2d26",
}
KINDS = (".png", ".svg", ".html")


def check_picture(path: Path) -> None:
    """Refuse a path that no picture can be written to."""
    if path.suffix.lower() not in KINDS:
        remedy = f"choose one of {', '.join(KINDS)}"
        raise mistake(path, "--picture", f"the ending {path.suffix or 'missing'}", remedy)
    if not path.absolute().parent.is_dir():
        raise mistake(path, "--picture", "there is no such folder", "make it, or choose another path")


def write_forecast_picture(path: Path, forecast: Forecast) -> None:
    """Draw the forecast to a .png, .svg or .html file, which needs no network to be seen."""
    check_picture(path)
    spec, kind = forecast_picture(forecast), path.suffix.lower()
    if kind == ".png":
        content = vl_convert.vegalite_to_png(spec, scale=2)
    elif kind == ".svg":
        content = vl_convert.vegalite_to_svg(spec).encode()
    else:
        content = vl_convert.vegalite_to_html(spec, bundle=True).encode()
    path.write_bytes(content)


def forecast_picture(forecast: Forecast) -> dict[str, Any]:
    """Return the Vega-Lite specification; a candidate shows the law of most of its cross-tabulations."""
    lines = [line for one in forecast.candidates if (line := _line(one))]
    extent = _extent(lines)
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {
            "text": f"Expected relative error of {forecast.programme}, before any data",
            "subtitle": _subtitle(forecast),
            "anchor": "start",
            "fontSize": 15,
            "offset": 12,
        },
        "width": WIDTH,
        "height": HEIGHT,
        "layer": [_curves(lines, extent), *_labels(lines, extent)],
        "config": {
            "font": FONT,
            "background": "white",
            "view": {"stroke": None},
            "axis": {"gridColor": "#e4e4e4", "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal"},
        },
    }  # fmt: skip


def _subtitle(forecast: Forecast) -> list[str]:
    missing = [one.candidate.name for one in forecast.candidates if _line(one) is None]
    told = [
        f"|published - true| / true of a cell; budgets are divided over {forecast.crosstabs:,} cross-tabulations",
    ]
    if missing:
        told.append("not drawn, too much noise or not available:")
        told += ["; ".join(missing[k : k + 3]) for k in range(0, len(missing), 3)]
    return told


def _kind(one: CandidateForecast) -> LawKind:
    noise = one.candidate.noise
    if isinstance(noise, PrivateNoise):
        return noise.kind
    return LawKind.CELL_KEY if isinstance(noise, Lookup) else LawKind.UNIFORM


def _line(one: CandidateForecast) -> list[dict[str, Any]] | None:
    """The points of a candidate's line; a law that leaves a size alone has no point there."""
    if not one.laws or one.laws[0].too_much:
        return None
    name, declared = one.candidate.name, one.candidate.name.startswith("declared")
    return [
        {
            "candidate": name,
            "declared": declared,
            "colour": COLOURS[_kind(one)],
            "dash": [7, 5] if _kind(one) is LawKind.LAPLACE else [1, 0],  # it lies on the geometric law
            "size": error.count,
            "percent": 100 * error.relative,
        }
        for error in one.laws[0].errors
        if error.relative
    ] or None


def _extent(lines: Sequence[Sequence[dict[str, Any]]]) -> tuple[float, float]:
    """Whole decades around all points."""
    values = [point["percent"] for line in lines for point in line] or [1.0]
    return 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values)))


def _curves(lines: Sequence[list[dict[str, Any]]], extent: tuple[float, float]) -> dict[str, Any]:
    decades = [10.0**k for k in range(round(math.log10(extent[0])), round(math.log10(extent[1])) + 1)]
    return {
        "data": {"values": [point for line in lines for point in line]},
        "mark": {"type": "line", "point": {"size": 22}},
        "encoding": {
            "x": {
                "field": "size",
                "type": "quantitative",
                "scale": {"type": "log", "domain": [1, 1000], "nice": False},
                "title": "true count of the cell",
                "axis": {"values": [1, 2, 3, 5, 10, 20, 50, 100, 1000], "format": "~g"},
            },
            "y": {
                "field": "percent",
                "type": "quantitative",
                "scale": {"type": "log", "domain": list(extent), "nice": False},
                "title": "expected error, percent of the count",
                "axis": {"values": decades, "labelExpr": "format(datum.value, datum.value < 1 ? '~g' : ',.0f')"},
            },
            "color": {"field": "colour", "type": "nominal", "scale": None},
            "strokeWidth": {"condition": {"test": "datum.declared", "value": 3}, "value": 1.4},
            "strokeDash": {"field": "dash", "type": "nominal", "scale": None},
            "detail": {"field": "candidate"},
            "tooltip": [{"field": name} for name in ("candidate", "size", "percent")],
        },
    }  # fmt: skip


def _labels(lines: Sequence[list[dict[str, Any]]], extent: tuple[float, float]) -> list[dict[str, Any]]:
    """Names beside the ends of the lines, moved apart where they would cover each other, and what leads to them."""
    low, high = (math.log10(end) for end in extent)
    places = [HEIGHT * (high - math.log10(line[-1]["percent"])) / (high - low) for line in lines]
    order = sorted(range(len(lines)), key=lambda k: places[k])
    moved = spread([places[k] for k in order], LABEL_GAP)
    ends = [
        {**lines[k][-1], "from": places[k], "to": to, "left": WIDTH + 3, "right": WIDTH + LEADER}
        for k, to in zip(order, moved, strict=True)
    ]
    shared = {"data": {"values": ends}}
    colour = {"field": "colour", "type": "nominal", "scale": None}
    at = {
        name: {"field": name, "type": "quantitative", "scale": None}
        for name in ("from", "to", "left", "right")
    }
    leader = {
        "x": at["left"],
        "x2": {"field": "right"},
        "y": at["from"],
        "y2": {"field": "to"},
        "color": colour,
    }
    name = {"x": at["right"], "y": at["to"], "text": {"field": "candidate"}, "color": colour}
    return [
        {**shared, "mark": {"type": "rule", "strokeWidth": 0.7}, "encoding": leader},
        {**shared, "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11}, "encoding": name},
    ]


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Move ascending places apart to at least a gap; those that push each other stay centred on where they were."""
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _first(groups[-1], gap) < _last(groups[-2], gap) + gap:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_first(group, gap) + gap * k for group in groups for k in range(len(group))]


def _first(group: Sequence[float], gap: float) -> float:
    return sum(group) / len(group) - gap * (len(group) - 1) / 2


def _last(group: Sequence[float], gap: float) -> float:
    return _first(group, gap) + gap * (len(group) - 1)
