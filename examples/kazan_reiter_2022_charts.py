"""Figures 1 to 6 of Kazan & Reiter (2022), computed and from releases; 4 to 6 by the stated model and by the chain
behind the printed ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import altair as alt
import numpy as np

from discreet.audit.bayes_measurements import log_odds
from discreet.maths.attacks.bayes import Adversary
from discreet.maths.attacks.bayes_hierarchy import Chain, Hierarchy
from discreet.maths.noise.additive import discrete_gaussian
from examples.kazan_reiter_2022_run import Attacked, Share
from examples.running import Chart, data

PRIORS = {"1/2": 0.5, "1/5": 0.2, "1/10": 0.1, "1/50": 0.02, "1/864": 1 / 864}
COLOUR = alt.Color("p:N", sort=list(PRIORS), title="prior p")
OTHERS = 27
CHAINS = {"stated model": Chain.EXACT, "printed chain": Chain.PAPER}
Values = list[dict[str, Any]]


def charts(rho_1: Fraction, rho_2: Fraction, fine: bool) -> dict[str, Chart]:
    """Every figure of the paper."""
    rhos = np.geomspace(0.01, 10, 160 if fine else 50).tolist()
    return {
        "figure-1": _published(rho_1),
        "figure-2": _expected(rhos, rho_1),
        "figure-3": _decisions(rhos, rho_1),
        "figure-4": _tiles(rho_1, rho_2, 1 if fine else 3),
        "figure-5": _larger_group(rho_1, rho_2, 20 if fine else 6),
        "figure-6": _larger_budget(rho_1, rho_2, 13 if fine else 3),
    }


def run_charts(made: Attacked, sharper: Mapping[Fraction, Attacked]) -> dict[str, Chart]:
    """Figures 1 and 4 to 6 with what releases show; ``sharper`` has those of different budgets of the larger group."""
    return {
        "figure-1-in-a-release": _published_in(made),
        "figure-4-in-a-release": _tiles_in(made),
        "figure-5-in-a-release": _larger_in(made),
        "figure-6-in-a-release": _budgets_in(sharper),
    }


def _published_in(made: Attacked) -> Chart:
    """The share of targets by published count, and the posterior of each count."""
    x1 = made.targets.x1 - made.targets.true + 1
    alone = Adversary(made.targets.lower)
    values: Values = [
        {
            "x1": x,
            "share": float((x1 == x).mean()),
            "law": alone.with_target.at(x),
            "posterior": alone.posterior(x),
        }
        for x in range(-6, 9)
    ]
    base = alt.Chart(data(values)).encode(x=alt.X("x1:O", title="published count less the known records"))
    bars = base.mark_bar(opacity=0.5).encode(y=alt.Y("share:Q", title="share of targets"))
    points = base.mark_point(color="black").encode(y="law:Q")
    posterior = base.mark_line(point=True).encode(y=alt.Y("posterior:Q", title="posterior, prior 1/2"))
    return alt.hconcat(
        (bars + points).properties(width=300, height=240),
        posterior.properties(width=300, height=240),
        title="Published counts of unique persons: in a release (bars), by the law (points)",
    )


def _tiles_in(made: Attacked) -> Chart:
    """What is decided of every published triple of persons who are alone in the larger area."""
    found = made.of(1)
    odds = {name: log_odds(found, chain=chain) for name, chain in CHAINS.items()}
    triples = np.stack([found.x1, found.x2, found.y1])
    inside = (np.abs(found.x1 - 1) <= 2) & (found.x2 >= -3) & (found.x2 <= 5) & (np.abs(found.y1) <= 30)
    _, first = np.unique(triples[:, inside], axis=1, return_index=True)
    values: Values = [
        {
            "x1": int(found.x1[at]),
            "x2": int(found.x2[at]),
            "y1": int(found.y1[at]),
            "chain": name,
            "decides": 1 if odds[name][at] > 0 else 0,
        }
        for name in CHAINS
        for at in np.flatnonzero(inside)[first].tolist()
    ]
    return _drawn_tiles(values)


def _larger_in(made: Attacked) -> Chart:
    """Right decisions by the count of the larger area: in a release with two standard errors, and exactly."""
    place, most = made.place, int(made.targets.larger.max())
    points: Values = []
    for x2 in np.unique(made.targets.larger).tolist():
        for name, chain in CHAINS.items():
            found = made.decided(int(x2), chain)
            points.append({"x2": int(x2), "right": found.share, "chain": name} | _around(found))
    lines: Values = [
        {"x2": x2, "right": place.correct(x2, chain), "chain": name}
        for name, chain in CHAINS.items()
        for x2 in range(1, min(most, 10) + 1)
    ]
    x = alt.X("x2:Q", title="such persons in the larger area")
    own = alt.Chart(data([{"right": Adversary(made.targets.lower).correct}]))
    rule = own.mark_rule(strokeDash=[4, 3]).encode(y="right:Q")
    return (_points(points, lines, x) + rule).properties(
        width=420,
        height=260,
        title="Right decisions in a release (points), computed (lines), own count (dashed)",
    )


def _budgets_in(sharper: Mapping[Fraction, Attacked]) -> Chart:
    """Right decisions by the budget of the larger area: one release for each."""
    points: Values = []
    lines: Values = []
    for rho, made in sharper.items():
        for x2 in np.unique(made.targets.larger).tolist():
            for name, chain in CHAINS.items():
                found = made.decided(int(x2), chain)
                at = {"rho": float(rho), "chain": name, "x2": int(x2)}
                points.append(at | {"right": found.share} | _around(found))
                lines.append(at | {"right": made.place.correct(int(x2), chain)})
    x = alt.X("rho:Q", scale=alt.Scale(type="log"), title="rho of the larger area's count")
    panels = [
        _points(
            [one for one in points if one["x2"] == x2], [one for one in lines if one["x2"] == x2], x
        ).properties(width=230, height=220, title=f"{x2} such persons in the larger area")
        for x2 in sorted({one["x2"] for one in points})
    ]
    return alt.hconcat(*panels, title="Right decisions in releases (points) and computed (lines)")


def _around(found: Share) -> dict[str, float]:
    return {"low": found.share - 2 * found.error, "high": found.share + 2 * found.error}


def _points(points: Values, lines: Values, x: alt.X) -> Chart:
    """Shares found, with two standard errors, over computed ones, by chain."""
    y = alt.Y("right:Q", title="right decisions", scale=alt.Scale(zero=False))
    colour = alt.Color(
        "chain:N", title=None, scale=alt.Scale(domain=list(CHAINS), range=["#08519c", "#e6550d"])
    )
    found, computed = alt.Chart(data(points)), alt.Chart(data(lines))
    return (
        computed.mark_line(opacity=0.6).encode(x=x, y=y, color=colour)
        + found.mark_rule().encode(x=x, y=alt.Y("low:Q", title="right decisions"), y2="high:Q", color=colour)
        + found.mark_point(filled=True, size=45).encode(x=x, y=y, color=colour)
    )


def _published(rho: Fraction) -> Chart:
    values: Values = []
    for name, prior in PRIORS.items():
        one = Adversary(discrete_gaussian(rho), 0, prior)
        values += [
            {"x1": x, "posterior": one.posterior(x), "risk": one.ratio(x), "p": name} for x in range(-8, 11)
        ]
    base = (
        alt.Chart(data(values))
        .mark_line(point=True)
        .encode(x=alt.X("x1:Q", title="published count"), color=COLOUR)
    )
    return alt.hconcat(
        base.encode(y="posterior:Q").properties(width=300, height=240),
        base.encode(y=alt.Y("risk:Q", title="risk R'")).properties(width=300, height=240),
        title="Posterior and risk of a unique person",
    )


def _by_rho(rhos: list[float]) -> Values:
    values: Values = []
    for rho in rhos:
        law = discrete_gaussian(rho)
        for name, prior in PRIORS.items():
            one = Adversary(law, 0, prior)
            values.append(
                {
                    "rho": rho,
                    "posterior": one.mean_posterior,
                    "risk": one.risk,
                    "right": one.correct,
                    "p": name,
                }
            )
    return values


def _rho_axis() -> alt.X:
    return alt.X("rho:Q", scale=alt.Scale(type="log"), title="rho of the block's count")


def _mark(rho: Fraction) -> Chart:
    return alt.Chart(data([{"rho": float(rho)}])).mark_rule(strokeDash=[4, 3]).encode(x=_rho_axis())


def _expected(rhos: list[float], rho: Fraction) -> Chart:
    base = alt.Chart(data(_by_rho(rhos))).mark_line().encode(x=_rho_axis(), color=COLOUR)
    log = alt.Scale(type="log")
    left = base.encode(y=alt.Y("posterior:Q", scale=log, title="expected posterior")) + _mark(rho)
    right = base.encode(y=alt.Y("risk:Q", scale=log, title="risk R")) + _mark(rho)
    return alt.hconcat(
        left.properties(width=300, height=240),
        right.properties(width=300, height=240),
        title="Expected posterior and risk",
    )


def _decisions(rhos: list[float], rho: Fraction) -> Chart:
    base = (
        alt.Chart(data(_by_rho(rhos)))
        .mark_line()
        .encode(x=_rho_axis(), y=alt.Y("right:Q", title="right decisions"), color=COLOUR)
    )
    return (base + _mark(rho)).properties(width=420, height=260, title="The adversary decides rightly")


def _hierarchy(rho_1: Fraction, rho_2: float | Fraction) -> Hierarchy:
    return Hierarchy(discrete_gaussian(rho_1), discrete_gaussian(rho_2), OTHERS)


def _tiles(rho_1: Fraction, rho_2: Fraction, step: int) -> Chart:
    """What is decided at each published triple, by the stated model and by the chain that drops X1 <= X2."""
    place = _hierarchy(rho_1, rho_2)
    values: Values = [
        {
            "x1": x1,
            "x2": x2,
            "y1": y1,
            "chain": name,
            "decides": 1 if place.posterior(x1, x2, y1, chain) > 0.5 else 0,
        }
        for name, chain in CHAINS.items()
        for x1 in range(-1, 4)
        for x2 in range(-3, 6)
        for y1 in range(-30, 31, step)
    ]
    return _drawn_tiles(values)


def _drawn_tiles(values: Values) -> Chart:
    return (
        alt.Chart(data(values))
        .mark_rect()
        .encode(
            x=alt.X(
                "y1:O", title="published sum of the others", axis=alt.Axis(labelOverlap=True, labelAngle=0)
            ),
            y=alt.Y("x2:O", sort="descending", title="larger group"),
            color=alt.Color(
                "decides:N",
                title="decides x1 =",
                scale=alt.Scale(domain=[1, 0], range=["#08519c", "#fdd0a2"]),
            ),
            row=alt.Row("x1:O", title="published count of the group"),
            column=alt.Column("chain:N", title=None, sort=list(CHAINS)),
        )
        .properties(width=300, height=80)
    )


def _larger_group(rho_1: Fraction, rho_2: Fraction, most: int) -> Chart:
    place, alone = _hierarchy(rho_1, rho_2), Adversary(discrete_gaussian(rho_1)).correct
    values: Values = [
        {"x2": x2, "right": place.correct(x2, chain), "chain": name}
        for name, chain in CHAINS.items()
        for x2 in range(1, most + 1)
    ]
    line = alt.Chart(data(values)).mark_line(point=True)
    rule = alt.Chart(data([{"right": alone}])).mark_rule(strokeDash=[4, 3]).encode(y="right:Q")
    drawn = line.encode(
        x=alt.X("x2:Q", title="true count of the larger group"),
        y=alt.Y("right:Q", title="right decisions", scale=alt.Scale(zero=False)),
        color=alt.Color("chain:N", title=None, sort=list(CHAINS)),
    )
    return (drawn + rule).properties(width=420, height=260, title="Few others make the hierarchy matter")


def _larger_budget(rho_1: Fraction, rho_2: Fraction, points: int) -> Chart:
    values: Values = [
        {"rho": rho, "right": place.correct(x2, chain), "x2": str(x2), "chain": name}
        for rho in np.geomspace(0.02, 100, points).tolist()
        for place in [_hierarchy(rho_1, rho)]
        for x2 in (1, 10, 100)
        for name, chain in CHAINS.items()
    ]
    x = alt.X("rho:Q", scale=alt.Scale(type="log"), title="rho of the larger group's count")
    line = alt.Chart(data(values)).mark_line(point=True)
    drawn = line.encode(
        x=x,
        y=alt.Y("right:Q", title="right decisions", scale=alt.Scale(zero=False)),
        color=alt.Color("x2:N", sort=["1", "10", "100"]),
        strokeDash=alt.StrokeDash("chain:N", title=None, sort=list(CHAINS)),
    )
    mark = alt.Chart(data([{"rho": float(rho_2)}])).mark_rule(strokeDash=[4, 3]).encode(x=x)
    return (drawn + mark).properties(width=420, height=260, title="More budget for the larger group")
