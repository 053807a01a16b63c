"""The adviser's pictures: feasible region, averaging, and risk-utility curves."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import vl_convert

from discreet.advise.advise import Advice
from discreet.advise.curves import CurvePoint, Curves
from discreet.io.atomic_folder import AtomicFolder
from discreet.maths.attacks.averaging import success
from discreet.maths.feasible import Constraint, three_tuples
from discreet.maths.noise.additive import LawKind

Spec = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """A chart and what it says to those who cannot see it."""

    spec: Spec
    text: str


def write_pictures(out: Path, drawn: Mapping[str, Picture], report: Mapping[str, Any]) -> list[str]:
    """Write every picture as SVG and PNG, their texts and the whole report into a new folder; "
    "return the names."""
    with AtomicFolder(out, "--out") as folder:
        names = []
        for name, content in _files(drawn, report):
            with folder.file(name) as file:
                file.write(content)
            names.append(name)
        folder.publish()
    return names


def _files(drawn: Mapping[str, Picture], report: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    for name, one in drawn.items():
        yield f"{name}.svg", vl_convert.vegalite_to_svg(one.spec).encode()
        yield f"{name}.png", vl_convert.vegalite_to_png(one.spec, scale=2)
    texts = "\n\n".join(f"{name}: {one.text}" for name, one in drawn.items())
    yield "pictures.txt", f"{texts}\n".encode()
    yield "advice.json", json.dumps(report, ensure_ascii=False, indent=1).encode()


def pictured(spec: Spec, text: str) -> Picture:
    """A picture whose text stands in its specification too."""
    return Picture({**spec, "description": text}, text)


def framed(title: str, subtitle: str) -> Spec:
    """Title and style of a picture."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {"text": title, "subtitle": subtitle, "anchor": "start", "fontSize": 15, "offset": 12},
        "config": {
            "font": "sans-serif",
            "background": "white",
            "view": {"stroke": None},
            "axis": {"gridColor": "#e4e4e4", "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal"},
            "legend": {"labelFontSize": 11},
        },
    }  # fmt: skip


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


WIDTH, HEIGHT = 560, 360
FEASIBLE = "all limits kept"
COLOURS = {
    FEASIBLE: "#9ecae1",
    Constraint.AVERAGING.value: "#fdd0a2",
    Constraint.UNIQUES.value: "#d9d9a0",
    Constraint.BOUND.value: "#c7b7de",
    Constraint.DISTORTION.value: "#f4b6b6",
    Constraint.LARGEST.value: "#e6e6e6",
    Constraint.PTABLE.value: "#f7f7f7",
}
SAID = {
    FEASIBLE: FEASIBLE,
    Constraint.AVERAGING.value: "averaging finds the truth",
    Constraint.UNIQUES.value: "ones are published as ones",
    Constraint.BOUND.value: "tuples reveal D",
    Constraint.DISTORTION.value: "small counts too far off",
    Constraint.LARGEST.value: "D too large",
    Constraint.PTABLE.value: "no such p-table",
}
MARK = "#08306b"
MOST_NEEDED = 1e12


def pictures(advice: Advice, curves: Curves | None = None) -> dict[str, Picture]:
    """Every picture that the advice allows, by its name."""
    drawn = {"region": region(advice), "tuples": tuples(advice), "averaging": averaging(advice)}
    if advice.line is not None:
        drawn["line"] = line(advice)
    if curves is not None:
        drawn["curves"] = curves_picture(curves)
    return drawn


def region(advice: Advice) -> Picture:
    """The V x D plane, each square by the first limit that it breaks, with the declared and the "
    "proposed choice."""
    found = advice.plane
    broken = np.full(found.feasible.shape, FEASIBLE, dtype=object)
    for name in reversed([name for name in COLOURS if name != FEASIBLE]):
        broken[~found.holds[Constraint(name)]] = name
    rows = [
        {"V": float(V), "V2": float(V + step), "D": int(D), "D2": int(D) + 1, "why": SAID[broken[i, j]]}
        for step in [found.V[1] - found.V[0]]
        for i, D in enumerate(found.D)
        for j, V in enumerate(found.V)
    ]
    shown = [SAID[name] for name in COLOURS if any(row["why"] == SAID[name] for row in rows)]
    colours = [COLOURS[name] for name in COLOURS if SAID[name] in shown]
    squares = {
        "data": {"values": _merged(rows)},
        "mark": {"type": "rect", "strokeWidth": 0},
        "encoding": {
            **_axes(found.V[0], found.V[-1] + found.V[1] - found.V[0], len(found.D)),
            "x2": {"field": "V2"},
            "y2": {"field": "D2"},
            "color": {
                "field": "why", "type": "nominal", "scale": {"domain": shown, "range": colours},
                "legend": {"title": None, "orient": "bottom", "columns": 3, "labelLimit": 240, "symbolType": "square"},
            },
        },
    }  # fmt: skip
    spec = {
        **framed(f"Noise of the cell key method for {advice.facts.programme}", _chosen_words(advice)),
        "width": WIDTH,
        "height": HEIGHT,
        "layer": [squares, *_marks(advice)],
    }
    return pictured(
        spec, f"Variance V across, largest change D upwards. {_chosen_words(advice)} {_region_words(advice)}"
    )


def _merged(rows: list[Spec]) -> list[Spec]:
    """Neighbouring squares of one row and colour as one: fewer shapes, no hairlines between them."""
    found: list[Spec] = []
    for row in rows:
        last = found[-1] if found else None
        if last and last["D"] == row["D"] and last["why"] == row["why"]:
            last["V2"] = row["V2"]
        else:
            found.append(dict(row))
    return found


def _axes(low: float, high: float, rows: int) -> Spec:
    x = {
        "field": "V", "type": "quantitative", "title": "variance V",
        "scale": {"domain": [float(low), float(high)], "nice": False, "zero": False},
        "axis": {"grid": False, "tickCount": 8},
    }  # fmt: skip
    y = {
        "field": "D", "type": "quantitative", "title": "largest change D",
        "scale": {"domain": [1, rows + 1], "nice": False, "zero": False},
        "axis": {"grid": False, "values": [k + 0.5 for k in range(1, rows + 1)], "labelExpr": "datum.value - 0.5"},
    }  # fmt: skip
    return {"x": x, "y": y}


def _marks(advice: Advice) -> Iterator[Spec]:
    """The proposed and the declared choice, each in the middle of its square, with its name."""
    step = float(advice.plane.V[1] - advice.plane.V[0])
    points = []
    if advice.proposal is not None and advice.task.kind is LawKind.CELL_KEY:
        V, D = float(advice.proposal.noise["V"]), int(advice.proposal.noise["D"])
        points.append(
            {"V": V + step / 2, "D": D + 0.5, "what": f"proposed: V {V:g}, D {D}", "shape": "circle"}
        )
    if advice.task.declared is not None:
        V, D = advice.task.declared
        if advice.plane.V[-1] >= V and len(advice.plane.D) >= D:
            points.append(
                {"V": V + step / 2, "D": D + 0.5, "what": f"declared: V {V:g}, D {D}", "shape": "diamond"}
            )
    if len(points) == 2 and points[0]["V"] == points[1]["V"] and points[0]["D"] == points[1]["D"]:
        points = [{**points[0], "what": f"proposed and declared: V {V:g}, D {D}"}]
    if not points:
        return
    at = {name: {"field": name, "type": "quantitative"} for name in ("V", "D")}
    place = {"x": at["V"], "y": at["D"]}
    shape = {"field": "shape", "type": "nominal", "scale": None}
    data = {"data": {"values": points}}
    yield {
        **data,
        "mark": {"type": "point", "filled": True, "size": 110, "color": MARK},
        "encoding": {**place, "shape": shape},
    }
    text = {
        "type": "text",
        "align": "left",
        "dx": 9,
        "dy": -9,
        "fontSize": 12,
        "fontWeight": "bold",
        "color": MARK,
    }
    yield {
        **data,
        "mark": {**text, "stroke": "white", "strokeWidth": 3},
        "encoding": {**place, "text": {"field": "what"}},
    }
    yield {**data, "mark": text, "encoding": {**place, "text": {"field": "what"}}}


def tuples(advice: Advice) -> Picture:
    """How many tuples of two parts reveal D, and which choices have fewer of all kinds than that."""
    found, have = advice.plane, three_tuples(advice.facts.tuples)
    some = _some(len(found.V), 16)
    step = float(found.V[1] - found.V[0]) * (some[1] - some[0] if len(some) > 1 else 1)
    rows = [
        {
            "V": float(found.V[j]), "V2": float(found.V[j]) + step, "D": int(D), "D2": int(D) + 1,
            "VM": float(found.V[j]) + step / 2, "DM": int(D) + 0.5,
            "m": min(max(float(found.needed[i, j]), 1.0), MOST_NEEDED),
            "text": _power(float(found.needed[i, j])), "safe": bool(found.holds[Constraint.BOUND][i, j]),
        }
        for i, D in enumerate(found.D)
        for j in some
    ]  # fmt: skip
    scale = {"type": "log", "domain": [1, MOST_NEEDED], "range": ["#f7fbff", "#6baed6"]}
    legend = {
        "title": "tuples needed",
        "orient": "right",
        "format": ".0e",
        "values": [1, 1e3, 1e6, 1e9, 1e12],
    }
    axes = _axes(float(found.V[0]), float(found.V[some[-1]]) + step, len(found.D))
    layers: list[Spec] = [
        {
            "mark": {"type": "rect", "stroke": "white", "strokeWidth": 0.5},
            "encoding": {
                **axes, "x2": {"field": "V2"}, "y2": {"field": "D2"},
                "color": {"field": "m", "type": "quantitative", "scale": scale, "legend": legend},
            },
        },
        {
            "mark": {"type": "text", "fontSize": 10},
            "encoding": {
                "x": {"field": "VM", "type": "quantitative"},
                "y": {"field": "DM", "type": "quantitative"},
                "text": {"field": "text"},
                "color": {"condition": {"test": "datum.safe", "value": "#08306b"}, "value": "#b30000"},
            },
        },
    ]  # fmt: skip
    words = (
        f"The programme has {have:,} tuples of two parts; red: they and the others reveal D with "
        f"{advice.task.limits.revealed:.0%}"
    )
    spec = {
        **framed("How many tuples {F, M, T} reveal the largest change D", f"{words}."),
        "data": {"values": rows}, "width": WIDTH + 60, "height": HEIGHT, "layer": layers,
    }  # fmt: skip
    return pictured(spec, f"Powers of ten by V and D. {words}, blue: not.")


def _power(number: float) -> str:
    return "∞" if math.isinf(number) else f"{number:.0f}" if number < 1000 else f"1e{math.log10(number):.0f}"


def _some(number: int, most: int) -> list[int]:
    step = max(1, math.ceil(number / most))
    return list(range(0, number, step))


def averaging(advice: Advice) -> Picture:
    """Probability of averaging to the truth against V, for the riskiest statistic with and without "
    "the same noise."""
    facts, limit = advice.facts, advice.task.limits.averaging
    top = max(float(advice.plane.V[-1]), 1.2 * advice.least_variance)
    places = np.linspace(top / 200, top, 200)
    rows = [
        {
            "V": float(V),
            "p": success(float(V), one.ratio),
            "noise": f"{said}: {one.name}, k/t² {one.ratio:.3g}",
        }
        for said, one in (
            ("one noise", facts.same_noise),
            ("noise of its own in each table", facts.fresh_noise),
        )
        for V in places
    ]
    kinds = list(dict.fromkeys(row["noise"] for row in rows))
    x = {
        "field": "V",
        "type": "quantitative",
        "title": "variance V of a cell's noise",
        "scale": {"domain": [0, top], "nice": False},
    }
    y = {
        "field": "p", "type": "quantitative", "title": "probability that the mean is the truth",
        "scale": {"domain": [0, 1]}, "axis": {"format": ".0%"},
    }  # fmt: skip
    colour = {
        "field": "noise", "type": "nominal", "scale": {"domain": kinds, "range": ["#08519c", "#d95f0e"]},
        "legend": {"title": None, "orient": "bottom", "direction": "vertical", "labelLimit": 520},
    }  # fmt: skip
    need = [
        {"V": advice.least_variance, "p": limit, "what": f"{limit:.0%} at V = {advice.least_variance:.3g}"}
    ]
    spot = {"x": {"field": "V", "type": "quantitative"}, "y": {"field": "p", "type": "quantitative"}}
    dot = {"type": "point", "filled": True, "size": 90, "color": MARK}
    name = {"type": "text", "align": "left", "dx": 8, "dy": -10, "fontWeight": "bold", "color": MARK}
    layers = [
        {"data": {"values": rows}, "mark": {"type": "line"}, "encoding": {"x": x, "y": y, "color": colour}},
        {"data": {"values": [{"p": limit}]}, "mark": {"type": "rule", "strokeDash": [4, 4], "color": "#555"},
         "encoding": {"y": {"field": "p", "type": "quantitative"}}},
        {"data": {"values": need}, "mark": dot, "encoding": spot},
        {"data": {"values": need}, "mark": name, "encoding": {**spot, "text": {"field": "what"}}},
    ]  # fmt: skip
    words = (
        f"The riskiest statistic is averaged to the truth with less than {limit:.0%} from V = "
        f"{advice.least_variance:.3g} on."
    )
    spec = {**framed("Averaging noise away", words), "width": WIDTH, "height": 300, "layer": layers}
    return pictured(spec, words)


def line(advice: Advice) -> Picture:
    """The limits on the parameter of one count: utility from below, risk from above."""
    assert advice.line is not None
    name, limits = advice.line.law.name, advice.line.limits
    ends = [one.value for one in limits]
    low, high = 10 ** math.floor(math.log10(min(ends) / 1.5)), 10 ** math.ceil(math.log10(max(ends) * 1.5))
    rows = [
        {
            "limit": one.constraint.value,
            "from": low if one.is_least else one.value,
            "to": one.value if one.is_least else high,
            "why": "too much noise" if one.is_least else "too little noise",
            "at": one.value,
            "text": f"{'at least' if one.is_least else 'at most'} {one.value:.3g}",
        }
        for one in sorted(limits, key=lambda one: (not one.is_least, one.value))
    ]
    order = [row["limit"] for row in rows]
    x = {
        "field": "from", "type": "quantitative", "title": f"{name} of one count",
        "scale": {"type": "log", "domain": [low, high], "nice": False}, "axis": {"format": "~g", "tickCount": 5},
    }  # fmt: skip
    y = {
        "field": "limit",
        "type": "nominal",
        "sort": order,
        "title": None,
        "axis": {"domain": False, "ticks": False, "labelPadding": 6},
    }
    colour = {
        "field": "why", "type": "nominal",
        "scale": {"domain": ["too much noise", "too little noise"], "range": ["#f4b6b6", "#fdd0a2"]},
        "legend": {"title": None, "orient": "bottom", "direction": "horizontal", "symbolType": "square"},
    }  # fmt: skip
    layers: list[Spec] = [
        *_allowed(advice),
        {"mark": {"type": "bar", "height": 18}, "encoding": {"x": x, "x2": {"field": "to"}, "y": y, "color": colour}},
        {"mark": {"type": "text", "dx": 6, "align": "left", "fontSize": 12},
         "encoding": {"x": {"field": "at", "type": "quantitative"}, "y": y, "text": {"field": "text"}}},
        *_spot(advice),
    ]  # fmt: skip
    words = _line_words(advice)
    spec = {
        **framed(f"Limits on the {name} of one count", words),
        "data": {"values": rows}, "width": WIDTH, "height": {"step": 34}, "layer": layers,
    }  # fmt: skip
    return pictured(spec, f"{words} " + "; ".join(f"{row['limit']}: {row['text']}" for row in rows) + ".")


def _allowed(advice: Advice) -> Iterator[Spec]:
    """The band that is left, behind everything."""
    found = advice.line
    if found is None or not found.is_feasible or found.least is None or found.most is None:
        return
    band = [{"from": found.least.value, "to": found.most.value}]
    encoding = {"x": {"field": "from", "type": "quantitative"}, "x2": {"field": "to"}}
    yield {
        "data": {"values": band},
        "mark": {"type": "rect", "color": COLOURS[FEASIBLE], "opacity": 0.6},
        "encoding": encoding,
    }


def _spot(advice: Advice) -> Iterator[Spec]:
    if advice.proposal is None or advice.proposal.parameter is None:
        return
    data = {"data": {"values": [{"at": advice.proposal.parameter}]}}
    yield {
        **data,
        "mark": {"type": "rule", "color": MARK, "strokeWidth": 2},
        "encoding": {"x": {"field": "at", "type": "quantitative"}},
    }


def _line_words(advice: Advice) -> str:
    found = advice.line
    if found is None or found.least is None or found.most is None:
        return ""
    if not found.is_feasible:
        least, most = (f"{one.constraint.value} {one.value:.3g}" for one in (found.least, found.most))
        return f"Nothing is left: {least} is the least that can be used, {most} the most that is safe."
    chosen = advice.proposal.parameter if advice.proposal is not None else None
    proposed = "" if chosen is None else f" The dark line is the proposal, {chosen:.3g}."
    return f"From {found.least.value:.3g} to {found.most.value:.3g} all limits are kept.{proposed}"


def _chosen_words(advice: Advice) -> str:
    if advice.task.kind is not LawKind.CELL_KEY:
        return "The region of the cell key method, for comparison."
    return "Nothing keeps all limits." if advice.proposal is None else f"Proposed: {advice.proposal}."


def _region_words(advice: Advice) -> str:
    share = float(advice.plane.feasible.mean())
    return f"{share:.0%} of the plane keeps all limits."
