"""The picture of risk-utility curves (Rinott et al. 2018, Figures 1-3); it perturbs and measures nothing."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.pipeline.curves import CurvePoint, Curves
from discreet.pipeline.pictured import Picture, Spec, framed, pictured

LOSSES = {
    "l1": "mean |b - a|",
    "l2": "mean (b - a)²",
    "l3": "mean |√b - √a|",
    "hellinger": "Hellinger distance",
    "cramers_v_shift": "shift of Cramér's V",
}


def curves_picture(curves: Curves) -> Picture:
    """Losses against the share of published ones that are true, one panel a loss, quartiles as bars."""
    rows = [row for point in curves.points for row in _curve_rows(point)]
    shown = [said for name, said in LOSSES.items() if any(row["loss"] == said for row in rows)]
    x = {
        "field": "risk", "type": "quantitative", "title": "published ones that are true",
        "scale": {"zero": False}, "axis": {"format": ".0%", "tickCount": 5},
    }  # fmt: skip
    y = {
        "field": "value",
        "type": "quantitative",
        "title": None,
        "scale": {"zero": False},
        "axis": {"tickCount": 5},
    }
    both, dark = {"x": x, "y": y}, "#08519c"
    upright = {"x": x, "y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}
    level = {"x": {"field": "left", "type": "quantitative"}, "x2": {"field": "right"}, "y": y}
    name = {"type": "text", "align": "left", "dx": 6, "dy": -7, "fontSize": 11}
    layers = [
        {"mark": {"type": "line", "color": "#b0b7bf"}, "encoding": {**both, "order": {"field": "parameter"}}},
        {"mark": {"type": "rule", "color": dark}, "encoding": upright},
        {"mark": {"type": "rule", "color": dark}, "encoding": level},
        {"mark": {"type": "point", "filled": True, "size": 45, "color": dark}, "encoding": both},
        {"mark": name, "encoding": {**both, "text": {"field": "parameter", "format": "~g"}}},
    ]
    words = (
        f"Each point is one {curves.name}, the mean of {curves.repeats} perturbations; bars are quartiles."
    )
    spec = {
        **framed(f"Risk against utility, {curves.kind.value}" + (f", D = {curves.D}" if curves.D else ""), words),
        "data": {"values": rows},
        "facet": {"field": "loss", "type": "nominal", "sort": shown, "title": None, "header": {"labelFontSize": 12}},
        "columns": 2,
        "spec": {"width": 300, "height": 190, "layer": layers},
        "resolve": {"scale": {"y": "independent"}},
    }  # fmt: skip
    said = "; ".join(f"{curves.name} {p.parameter:g}: {_curve_words(p)}" for p in curves.points)
    return pictured(spec, f"{words} {said}.")


def _curve_rows(point: CurvePoint) -> Iterator[Spec]:
    risk = point.measures["true_ones"]
    for name, said in LOSSES.items():
        one = point.measures[name]
        if one is not None and risk is not None:
            yield {
                "loss": said, "parameter": point.parameter, "value": one.mean, "low": one.quartiles[0],
                "high": one.quartiles[-1], "risk": risk.mean, "left": risk.quartiles[0], "right": risk.quartiles[-1],
            }  # fmt: skip


def _curve_words(point: CurvePoint) -> str:
    risk, loss = point.measures["true_ones"], point.measures["l1"]
    if risk is None or loss is None:
        return "no published ones"
    return f"{risk.mean:.1%} of published ones true, mean absolute error {loss.mean:.3g}"
