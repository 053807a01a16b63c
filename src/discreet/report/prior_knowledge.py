"""The chart of the prior-knowledge study: predicted and realised errors, and utility."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from discreet.advise.prior_knowledge import LEAST_COUNT, QUANTILES, SENSITIVITY, Study, UtilityDifferences
from discreet.page.charts import Axis, Box, Chart, Drawing, Point, boxes, lines
from discreet.page.style import SERIES

LEAST_SHOWN = 0.01  # percentage points; the axis is logarithmic
DECADES = tuple(10.0**power for power in range(-3, 6))
ZEROED, SIGNED = "negative counts set to zero", "negative counts unchanged"
ERRORS = "Error of a cluster's total, percent of the records: line predicted, points realised"
UTILITY = "Differences of relative frequencies within zip codes, all cross-tabulations, percentage points"
QUARTILES = (
    f"5 to 95 percent, quartiles and median; cells of at least {LEAST_COUNT} true observations;"
    f" smaller values are shown as {LEAST_SHOWN}"
)


def study_chart(study: Study) -> Chart:
    """The chart: errors of cluster totals at the top, differences of frequencies below."""
    census = f"{study.records:,} records of {study.source}, {study.zips:,} zip codes"
    errors = "; ".join(
        f"k {one.k}, epsilon {one.epsilon:g}: {100 * one.predicted_relative:.3g} predicted,"
        f" {100 * one.realised_relative:.3g} realised"
        for one in study.outcomes
    )
    return Chart(
        "prior-knowledge",
        "Geography as prior knowledge: noise on clusters of k neighbours",
        f"Error of a cluster's total in percent of its records: {errors}.",
        lambda width: _drawn(study, width),
        subtitle=f"{census}, {study.cells} cells per cluster, sensitivity {SENSITIVITY}",
    )


def _drawn(study: Study, width: int) -> Drawing:
    epsilons = sorted({outcome.epsilon for outcome in study.outcomes})
    colours = {_kind(epsilon): SERIES[k % len(SERIES)] for k, epsilon in enumerate(epsilons)}
    return alt.vconcat(
        _errors(study, colours, width).properties(title=_heading(ERRORS)),
        _utility(study, colours, width).properties(title=_heading(UTILITY, QUARTILES)),
        spacing=28,
    )


def _errors(study: Study, colours: Mapping[str, str], width: int) -> Drawing:
    predicted, realised = (
        [Point(one.k, 100 * getattr(one, name), _kind(one.epsilon)) for one in study.outcomes]
        for name in ("predicted_relative", "realised_relative")
    )
    sizes = tuple(sorted({one.k for one in study.outcomes}))
    x = Axis("cluster size k", "~g", log=True, values=sizes, low=sizes[0] / 1.2, top=sizes[-1] * 1.2)
    y = Axis("percent of the records", "~g", log=True, values=DECADES)
    return lines(predicted, colours, x, y, width - 60, 190, dots=realised)


def _utility(study: Study, colours: Mapping[str, str], width: int) -> Drawing:
    rows = [
        Box(kind, str(one.k), _kind(one.epsilon), _quantiles(found))
        for one in study.outcomes
        for kind, found in ((ZEROED, one.utility), (SIGNED, one.utility_signed))
    ]
    y = Axis("percentage points", "~g", log=True, values=DECADES)
    return boxes(rows, colours, "cluster size k", y, width)


def _heading(text: str, *below: str) -> alt.TitleParams:
    return alt.TitleParams(text, subtitle=list(below), anchor="start", fontSize=12)


def _kind(epsilon: float) -> str:
    return f"epsilon {epsilon:g}"


def _quantiles(found: UtilityDifferences) -> tuple[float, float, float, float, float]:
    least, lower, middle, upper, most = (max(found.quantiles[level], LEAST_SHOWN) for level in QUANTILES[:5])
    return least, lower, middle, upper, most
