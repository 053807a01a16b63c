"""Figures 1 to 4 of Rinott et al. (2018), from perturbed tables and, for figure 4, by enumeration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import altair as alt

from examples.rinott_2018_trials import Figure
from examples.running import Chart, data

TITLES = {
    "figure-1": "Table 1 of the paper",
    "figure-2": "10 x 10 independent cells, 100 persons each on average",
    "figure-3": "25 x 40 independent cells, 10 persons each on average",
}
Values = list[dict[str, Any]]
RARE = 1e-6  # outcomes that 500 draws do not show


def charts(
    drawn: Iterable[Figure], histograms: Mapping[str, tuple[list[float], list[float]]]
) -> dict[str, Chart]:
    """All four figures."""
    return {**{one.name: _boxes(one) for one in drawn}, "figure-4": _statistics(histograms)}


def _boxes(one: Figure) -> Chart:
    measures = (
        ["Cramér's V", "l1", "l2", "l3"]
        if one.name == "figure-1"
        else ["p-value", "Cramér's V", "l1", "l2", "l3"]
    )
    values: Values = []
    for (law, epsilon), trial in one.trials.items():
        found = {"p-value": trial.p_value, "Cramér's V": trial.cramers_v}
        found |= {name: trial.losses[:, k] for k, name in enumerate(("l1", "l2", "l3"))}
        values += [
            {"law": law, "epsilon": epsilon, "measure": name, "value": float(value)}
            for name in measures
            for value in found[name]
        ]
    true = {"p-value": one.true_p, "Cramér's V": one.true_v}
    panels = [
        _panel([row for row in values if row["measure"] == name], name, true.get(name)) for name in measures
    ]
    return alt.concat(*panels, columns=3, title=TITLES[one.name])


def _panel(values: Values, name: str, true: float | None) -> Chart:
    boxes = (
        alt.Chart(data(values))
        .mark_boxplot(size=9, outliers={"size": 8})
        .encode(
            x=alt.X("epsilon:O", title="epsilon", axis=alt.Axis(labelAngle=0)),
            xOffset="law:N",
            y=alt.Y("value:Q", title=name, scale=alt.Scale(zero=name != "Cramér's V")),
            color=alt.Color("law:N", scale=alt.Scale(range=["#08519c", "#d95f0e"]), title=None),
        )
    )
    rule: Values = [] if true is None else [{"value": true}]
    return (boxes + alt.Chart(data(rule)).mark_rule(strokeDash=[4, 3]).encode(y="value:Q")).properties(
        width=230, height=190
    )


def _statistics(histograms: Mapping[str, tuple[list[float], list[float]]]) -> Chart:
    """The law of the statistic where p is 0.5: exact, where the paper has 500 draws."""
    panels = []
    for (name, (statistics, probabilities)), step in zip(histograms.items(), (0.5, 2.0), strict=True):
        values: Values = [
            {"statistic": statistic, "probability": probability}
            for statistic, probability in zip(statistics, probabilities, strict=True)
            if probability > RARE
        ]
        panels.append(
            alt.Chart(data(values), title=f"hypothesis {name}")
            .mark_bar(color="#08519c")
            .encode(
                x=alt.X("statistic:Q", bin=alt.Bin(step=step), title="2 log(likelihood ratio)"),
                y=alt.Y("sum(probability):Q", title="probability"),
            )
            .properties(width=300, height=220)
        )
    return alt.hconcat(*panels)
