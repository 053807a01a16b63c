"""One chart that the note has not: what swapping, noise and both leave of true ones, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt

from examples.running import Chart, data
from examples.statistics_netherlands_2022_trials import Combined

WAYS = ["none", "swapping only", "noise only", "both"]


def charts(found: Iterable[Combined]) -> dict[str, Chart]:
    """Risk against error by protection and variance."""
    values = [
        {"V": f"{one.V:g}", "way": way, "true": 100 * result.true_ones, "l1": result.l1}
        for one in found
        for way, result in one.results.items()
    ]
    chart = (
        alt.Chart(data(values))
        .mark_point(size=110, filled=True)
        .encode(
            x=alt.X("l1:Q", title="mean absolute error of a cell"),
            y=alt.Y("true:Q", title="published ones that are true, %", scale=alt.Scale(domain=[0, 100])),
            color=alt.Color("way:N", sort=WAYS, title="protection"),
            shape=alt.Shape("V:N", title="variance V"),
        )
        .properties(
            width=420, height=280, title="Municipalities by sex, age and citizenship: risk against error"
        )
    )
    return {"combination": chart}
