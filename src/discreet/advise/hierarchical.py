"""What a hierarchical release will cost in accuracy: the error of every query at every level, from the spine only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from discreet.hierarchy.estimate import forecast
from discreet.hierarchy.mechanism import HierarchicalMechanism, hierarchical_mechanism
from discreet.maths.tree.marginals import size_of
from discreet.programme.programme import Programme

ROUNDING = 1e-9  # variances of exact counts, as floats compute them


@dataclass(frozen=True)
class QueryForecast:
    """Standard deviations of one query's counts at one level: of the noise, and of the estimates from everything."""

    level: str
    areas: int
    query: str
    cells: int  # of one area
    noise: float | None  # of a count as it is measured; None where it is not
    mean: float  # root of the mean variance of the estimates
    smallest: float
    largest: float


@dataclass(frozen=True)
class HierarchyForecast:
    """The forecast of a whole strategy; no data were read and nothing was spent."""

    programme: str
    measure: str  # rho or epsilon
    budget: str
    nodes: int
    bypassed: int  # areas that are equal to their only child
    queries: tuple[QueryForecast, ...]


def hierarchy_forecast(programme: Programme, queries: Sequence[str] = ()) -> HierarchyForecast:
    """Forecast the strategy of a programme, for its own queries and further ones."""
    return forecast_of(programme.name, hierarchical_mechanism(programme), queries)


def forecast_of(name: str, chosen: HierarchicalMechanism, queries: Sequence[str] = ()) -> HierarchyForecast:
    """Forecast the strategy of a mechanism."""
    plan, rule = chosen.plan, chosen.hierarchy
    spine, strategy = plan.spine, plan.strategy
    asked = tuple(dict.fromkeys(("total", *strategy.queries, *queries, "detailed")))
    # areas with the shares of bypassed parents, too, are shown only where a level has no others
    plain = {kind.bottom for kind in plan.kinds if kind.top == kind.bottom}
    measured = {
        (spine.levels[kind.bottom], query): sqrt(variance)
        for kind in plan.kinds
        if kind.top == kind.bottom or kind.bottom not in plain
        for query, variance in zip(kind.queries, kind.variances, strict=True)
    }
    sizes = {level: len(nodes) for level, nodes in zip(spine.levels, spine.node_of, strict=True)}
    cells = {query: cells_of(chosen, query) for query in asked}
    rows = tuple(
        QueryForecast(
            one.level,
            sizes[one.level],
            one.query,
            cells[one.query],
            measured.get((one.level, one.query)),
            _root(one.mean),
            _root(one.smallest),
            _root(one.largest),
        )
        for one in forecast(spine, strategy, asked, rule.totals)
    )
    return HierarchyForecast(
        name,
        "rho" if chosen.rule.is_gaussian else "epsilon",
        str(strategy.budget),
        len(spine),
        sum(sizes.values()) - len(spine),
        rows,
    )


def _root(variance: float) -> float:
    """The standard deviation; that of an exact count is 0, whatever rounding left of its variance."""
    return sqrt(variance) if variance > ROUNDING else 0.0


def cells_of(chosen: HierarchicalMechanism, query: str) -> int:
    """How many counts a query has in one area."""
    histogram = chosen.plan.strategy.histogram
    return size_of(histogram.basis, histogram.marginal(query))
