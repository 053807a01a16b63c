"""Figures 1, 2, 5, 6 and 7 of Bach (2020), drawn anew; figures 3 and 4 need the census of 2011 and are not here."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import altair as alt
import numpy as np

from discreet.maths.attacks.averaging import (
    chebyshev_contour,
    contour,
    laplace_epsilon,
    least_variance,
    success,
)
from discreet.maths.attacks.bounds import epsilon_of_bound, maximum_entropy, reveals, tuples_needed
from discreet.maths.attacks.redundancy import Redundancy
from examples.running import Chart, data

ALPHA = 0.68
SAME, FRESH = "same noise", "without"
COUNTRIES = (("Germany", 2.8e7), ("Malta", 7.1e5))  # tuples of women, men and total, as printed
SMALLEST = {SAME: 0.0867, FRESH: 0.0118}  # printed k/t^2
AREAS = (("EU-27", 1.1e5), ("France", 3.7e4), ("Malta", 68.0))
COLOURS = ["#08519c", "#d95f0e", "#31a354"]
Values = list[dict[str, Any]]


def charts(statistics: Iterable[Redundancy], fine: bool) -> dict[str, Chart]:
    """Every figure that the programme and the laws suffice for."""
    return {
        "figure-1": _bound(),
        "figure-2": _averaging(60 if fine else 24),
        "figure-5": _areas(),
        "figure-6": _region(0.1 if fine else 0.25),
        "figure-7": _ratios(statistics),
    }


def _bound() -> Chart:
    """Tuples that reveal E over the plane; numbers are log10 m, letters who has as many."""
    values: Values = []
    for bound in range(1, 11):
        for variance in (0.5, *range(1, 11)):
            needed = tuples_needed(reveals(maximum_entropy(float(variance), bound), bound), ALPHA)
            safe = [name for name, tuples in COUNTRIES if needed > tuples]
            values.append(
                {
                    "E": bound,
                    "V": variance,
                    "m": min(math.log10(needed), 30.0),
                    "hidden": "from either"
                    if len(safe) == 2
                    else "from Malta's tuples only"
                    if safe
                    else "from none",
                }
            )
    place = alt.Chart(data(values)).encode(
        x=alt.X("V:O", axis=alt.Axis(labelAngle=0)), y=alt.Y("E:O", sort="descending")
    )
    tiles = place.mark_rect().encode(color=alt.Color("m:Q", title="log10 m", scale=alt.Scale(scheme="blues")))
    marks = (
        place.mark_point(size=70, filled=True, color="#d95f0e")
        .encode(
            shape=alt.Shape(
                "hidden:N",
                title="E stays hidden",
                scale=alt.Scale(
                    domain=["from either", "from Malta's tuples only"], range=["square", "cross"]
                ),
            )
        )
        .transform_filter("datum.hidden != 'from none'")
    )
    return (tiles + marks).properties(width=420, height=340, title="Tuples {F, M, T} that reveal E with 68 %")


def _averaging(steps: int) -> Chart:
    """Success of averaging for V (left) and epsilon (right), with the 68 % lines."""
    ratios = np.geomspace(0.005, 1.0, steps)
    left = _heat(
        "V", "variance V of a count", [(float(V), float(V)) for V in np.linspace(0.25, 5, steps)], ratios
    )
    right = _heat(
        "epsilon",
        "epsilon of a count",
        [(float(e), 2 / e**2) for e in np.linspace(0.1, 1.5, steps).tolist()],
        ratios,
    )
    return alt.hconcat(left, right).resolve_scale(color="shared")


def _heat(name: str, title: str, parameters: list[tuple[float, float]], ratios: Any) -> Chart:
    step = parameters[1][0] - parameters[0][0]
    grow = math.sqrt(ratios[1] / ratios[0])
    tiles: Values = [
        {
            "x": shown - step / 2,
            "x2": shown + step / 2,
            "y": ratio / grow,
            "y2": ratio * grow,
            "alpha": success(variance, ratio),
        }
        for shown, variance in parameters
        for ratio in ratios.tolist()
    ]
    y = alt.Y("y:Q", scale=alt.Scale(type="log", domain=[0.005, 1], clamp=True), title="k/t²")
    x = alt.X("x:Q", title=title, scale=alt.Scale(domain=[parameters[0][0], parameters[-1][0]], clamp=True))
    heat = (
        alt.Chart(data(tiles))
        .mark_rect(clip=True)
        .encode(
            x=x,
            x2="x2:Q",
            y=y,
            y2="y2:Q",
            color=alt.Color("alpha:Q", title="success", scale=alt.Scale(scheme="blues", domain=[0, 1])),
        )
    )
    lines: Values = [
        {"x": shown, "y": limit / variance, "line": line}
        for shown, variance in parameters
        for line, limit in (("normal, 68 %", contour(ALPHA)), ("Chebyshev, 68 %", chebyshev_contour(ALPHA)))
        if 0.005 <= limit / variance <= 1
    ]
    drawn = (
        alt.Chart(data(lines))
        .mark_line(color="black", clip=True)
        .encode(x=x, y=y, strokeDash=alt.StrokeDash("line:N", title=None, sort=["normal, 68 %"]))
    )
    least = alt.Chart(data([{"y": value} for value in SMALLEST.values()])).mark_rule(
        color="#d95f0e", strokeDash=[2, 3]
    )
    return alt.layer(heat, drawn, least.encode(y=y)).properties(
        width=300, height=280, title=f"Averaging succeeds, by {name}"
    )


def _areas() -> Chart:
    """The epsilon from which all areas' totals stay within E."""
    values: Values = [
        {"E": bound, "epsilon": epsilon_of_bound(bound, areas, ALPHA), "areas": name}
        for name, areas in AREAS
        for bound in np.geomspace(1, 200, 60).tolist()
    ]
    return (
        alt.Chart(data(values))
        .mark_line()
        .encode(
            x=alt.X("E:Q", scale=alt.Scale(type="log"), title="E, with 68 % for all areas together"),
            y=alt.Y("epsilon:Q", scale=alt.Scale(type="log"), title="least epsilon of a count"),
            color=alt.Color("areas:N", sort=[name for name, _ in AREAS], scale=alt.Scale(range=COLOURS)),
        )
        .properties(width=420, height=300, title="Small-area accuracy by Laplace noise")
    )


def _region(step: float) -> Chart:
    """Left: V and E that survive bound disclosure, averaging and E <= 10; right: what is left of epsilon."""
    values: Values = []
    for bound in range(1, 13):
        for variance in np.arange(step, 6 + step / 2, step).tolist():
            tuples = tuples_needed(reveals(maximum_entropy(variance, bound), bound), ALPHA)
            averaged = success(min(variance, bound * (bound + 1) / 3), SMALLEST[SAME]) < ALPHA
            kept = sum(tuples > number for _, number in COUNTRIES) if bound <= 10 and variance >= 1 else 0
            verdict = "all constraints" if kept == 2 and averaged else "some relaxed" if kept else "excluded"
            values.append(
                {"E": bound, "V": variance - step / 2, "V2": variance + step / 2, "verdict": verdict}
            )
    plane = (
        alt.Chart(data(values))
        .mark_rect()
        .encode(
            x=alt.X("V:Q", title="variance V", scale=alt.Scale(domain=[0, 6], clamp=True)),
            x2="V2:Q",
            y=alt.Y("E:O", sort="descending"),
            color=alt.Color(
                "verdict:N",
                sort=["all constraints", "some relaxed", "excluded"],
                scale=alt.Scale(
                    domain=["all constraints", "some relaxed", "excluded"],
                    range=["#6baed6", "#fee08b", "#e8e8e8"],
                ),
                title="survives",
            ),
        )
        .properties(width=300, height=260, title="Cell key method")
    )
    return alt.hconcat(plane, _line())


def _line() -> Chart:
    curves: Values = [
        {"epsilon": epsilon, "E": math.log(areas / (1 - ALPHA)) / epsilon, "areas": name}
        for name, areas in AREAS[1:]
        for epsilon in np.linspace(0.1, 1.0, 60).tolist()
    ]
    x, y = (
        alt.X("epsilon:Q", title="epsilon of a count"),
        alt.Y("E:Q", scale=alt.Scale(domain=[0, 60]), title="E at 68 %"),
    )
    lines = (
        alt.Chart(data(curves))
        .mark_line(clip=True)
        .encode(x=x, y=y, strokeDash=alt.StrokeDash("areas:N", title="areas of"))
    )
    limits = [laplace_epsilon(least_variance(ratio, ALPHA)) for ratio in (0.0118, 0.0170)]
    averaging = alt.Chart(data([{"epsilon": limit} for limit in limits])).mark_rule(color="#777").encode(x=x)
    band: Values = [{"epsilon": epsilon_of_bound(20, 68, ALPHA), "to": limits[1]}]
    left = alt.Chart(data(band)).mark_rect(color="#fee08b").encode(x=x, x2="to:Q")
    return alt.layer(left, lines, averaging).properties(
        width=300, height=260, title="Laplace noise: band that is left"
    )


def _ratios(statistics: Iterable[Redundancy]) -> Chart:
    """k/t^2 of the statistics of geographies, whose representations hold no other geography."""
    about_places = [one for one in statistics if any(level.variable == "GEO" for level in one.statistic)]
    values: Values = [
        {"ratio": exposure.first_minimum.ratio, "noise": name}
        for one in about_places
        for name, exposure in ((SAME, one.same_noise), (FRESH, one.fresh_noise))
    ]
    return (
        alt.Chart(data(values))
        .mark_bar()
        .encode(
            x=alt.X("ratio:Q", bin=alt.Bin(step=0.05), title="k/t²"),
            y=alt.Y("count():Q", title="statistics"),
            color=alt.Color("noise:N", scale=alt.Scale(range=COLOURS[:2])),
            row=alt.Row("noise:N", title=None),
        )
        .properties(width=420, height=130, title="k/t² of statistics by area, counting mode bach-2020")
    )
