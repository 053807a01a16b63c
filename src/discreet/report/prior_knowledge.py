"""The picture of the prior-knowledge study: predicted beside realised errors, and the utility; it computes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vl_convert

from discreet.advise.prior_knowledge import LEAST_COUNT, SENSITIVITY, Study, StudyOutcome, UtilityDifferences

FONT = "sans-serif"
COLOURS = ["#08519c", "#d95f0e", "#31a354", "#756bb1", "#636363", "#de2d26"]
LEAST_SHOWN = 0.01  # percentage points; the axis is logarithmic
DECADES = [10.0**power for power in range(-3, 6)]
ZEROED, KEPT = "negative counts set to zero", "negative counts kept"


def write_study_picture(path: Path, study: Study) -> None:
    """Draw the study to a PNG file."""
    path.write_bytes(vl_convert.vegalite_to_png(study_picture(study), scale=2))


def study_picture(study: Study) -> dict[str, Any]:
    """Return the Vega-Lite specification: errors of cluster totals on top, differences of frequencies below."""
    census = f"{study.records:,} records of a synthetic census, {study.zips:,} zip codes"
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {
            "text": "Geography as prior knowledge: noise on clusters of k neighbours",
            "subtitle": f"{census}, {study.cells} cells per cluster, sensitivity {SENSITIVITY}",
            "anchor": "start",
            "fontSize": 15,
            "offset": 12,
        },
        "vconcat": [_errors(study), _utility(study)],
        "spacing": 28,
        "config": {
            "font": FONT,
            "background": "white",
            "view": {"stroke": None},
            "axis": {"gridColor": "#e4e4e4", "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal"},
            "legend": {"labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal"},
        },
    }  # fmt: skip


def _errors(study: Study) -> dict[str, Any]:
    rows = [
        {
            "k": outcome.k,
            "epsilon": _epsilon(outcome),
            "predicted": 100 * outcome.predicted_relative,
            "realised": 100 * outcome.realised_relative,
        }
        for outcome in study.outcomes
    ]
    y = {
        "type": "quantitative",
        "scale": {"type": "log"},
        "title": "percent of the records",
        "axis": {"values": DECADES, "format": "~g"},
    }
    return {
        "title": {
            "text": "Error of a cluster's total: line predicted, points realised",
            "anchor": "start",
            "fontSize": 12,
        },
        "width": 560,
        "height": 190,
        "data": {"values": rows},
        "encoding": {"x": _sizes(study), "color": _colour(study)},
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": {"y": {"field": "predicted", **y}}},
            {"mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
             "encoding": {"y": {"field": "realised", **y}}},
        ],
    }  # fmt: skip


def _utility(study: Study) -> dict[str, Any]:
    rows = [
        {"k": outcome.k, "epsilon": _epsilon(outcome), "counts": kind, **_quantiles(found)}
        for outcome in study.outcomes
        for kind, found in ((ZEROED, outcome.utility), (KEPT, outcome.utility_signed))
    ]
    offset = {"field": "epsilon", "sort": _epsilons(study)}
    y = {
        "type": "quantitative",
        "title": "percentage points",
        "scale": {"type": "log"},
        "axis": {"values": DECADES, "format": "~g"},
    }
    place = {"x": _sizes(study), "xOffset": offset, "color": _colour(study)}
    layer = [
        {"mark": {"type": "rule"}, "encoding": {**place, "y": {"field": "q05", **y}, "y2": {"field": "q95"}}},
        {"mark": {"type": "bar", "size": 9}, "encoding": {**place, "y": {"field": "q25", **y}, "y2": {"field": "q75"}}},
        {"mark": {"type": "tick", "color": "white", "thickness": 2, "size": 9},
         "encoding": {"x": place["x"], "xOffset": offset, "y": {"field": "q50", **y}}},
    ]  # fmt: skip
    return {
        "title": {
            "text": "Differences of relative frequencies within zip codes, all cross-tabulations: 5 to 95 percent,"
            " quartiles and median",
            "subtitle": f"cells of at least {LEAST_COUNT} true observations; {LEAST_SHOWN} stands for less, too",
            "anchor": "start",
            "fontSize": 12,
        },
        "data": {"values": rows},
        "facet": {"column": {"field": "counts", "title": None, "sort": [ZEROED, KEPT]}},
        "spec": {"width": 265, "height": 220, "layer": layer},
    }  # fmt: skip


def _sizes(study: Study) -> dict[str, Any]:
    order = sorted({outcome.k for outcome in study.outcomes})
    return {
        "field": "k",
        "type": "ordinal",
        "sort": order,
        "title": "cluster size k",
        "axis": {"labelAngle": 0},
    }


def _colour(study: Study) -> dict[str, Any]:
    order = _epsilons(study)
    scale = {"domain": order, "range": [COLOURS[k % len(COLOURS)] for k in range(len(order))]}
    return {"field": "epsilon", "type": "nominal", "scale": scale, "title": "epsilon"}


def _epsilons(study: Study) -> list[str]:
    return [f"{epsilon:g}" for epsilon in sorted({outcome.epsilon for outcome in study.outcomes})]


def _epsilon(outcome: StudyOutcome) -> str:
    return f"{outcome.epsilon:g}"


def _quantiles(found: UtilityDifferences) -> dict[str, float]:
    return {f"q{100 * level:02.0f}": max(value, LEAST_SHOWN) for level, value in found.quantiles.items()}
