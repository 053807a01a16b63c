"""Choosing noise before a release: advice on parameters, and forecasts of errors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from discreet.advise.advise import KINDS, Advice
from discreet.advise.forecast import CandidateForecast, Forecast, candidates_for, read_epsilons
from discreet.advise.forecast import forecast as forecast_of
from discreet.advise.hierarchical import HierarchyForecast, QueryForecast, hierarchy_forecast
from discreet.advise.programme_advice import USUAL_MARGIN, Wish, advice_lines, advise_programme, trials
from discreet.advise.reasons import document
from discreet.advise.strategy import StrategyAdvice, advise_strategy
from discreet.api.arguments import in_arguments, names_arguments
from discreet.api.cubes import Cube
from discreet.api.noise import Noise
from discreet.api.population import Population
from discreet.api.programme import Programme
from discreet.api.protect import programme_of
from discreet.api.results import Result, figure_rows
from discreet.errors import mistake
from discreet.io.progress_bar import cores, shown_progress
from discreet.maths.feasible import RiskLimits
from discreet.maths.noise.additive import LawKind
from discreet.report.advice import advice_charts
from discreet.report.forecast import forecast_chart


@names_arguments
def advise(
    what: Population | Programme | str | Path,
    cubes: Cube | Iterable[Cube] | None = None,
    noise: Noise | None = None,
    *,
    kind: str | None = None,
    limits: RiskLimits | None = None,
    margin: float = USUAL_MARGIN,
    curves: int = 0,
    population: int | None = None,
    without_data: bool = False,
    seed: int = 0,
    threads: int = 0,
    progress: bool = True,
    **declared: object,
) -> Result[Advice | StrategyAdvice]:
    """Propose noise parameters that keep risk and error within limits, or explain why no parameters do.

    ``found.proposal`` has the parameters, ``chart()`` shows where the limits hold. ``kind`` is the noise, as declared
    by default; ``margin`` is how far the proposal stays inside every limit. The records are read unless
    ``without_data``; ``population`` is then the number of persons. ``curves`` perturbs the records so many times at
    each point and also plots risk against utility. Of a hierarchical programme the shares of its budget are proposed.

    >>> import discreet as ds
    >>> persons = {"pid": range(600), "sex": ["F", "M", "F"] * 200, "lau": ["A", "B"] * 300}
    >>> census = ds.Population(persons=persons, person_id="pid", geography=["lau"])
    >>> advice = ds.advise(census, ds.Cube("lau", "sex"), ds.CellKey(V=1, D=3))
    >>> advice.proposal.noise["kind"]
    'cell-key'
    """
    resolved = programme_of(what, cubes, noise, **declared).resolved
    if resolved.hierarchy is not None:
        shares = advise_strategy(resolved)
        saved = f"The declared mean error needs {shares.saved:.2f} of the budget with these shares."
        return Result(
            shares, (f"Proposed shares of {shares.measure} {shares.budget}:", *shares.lines(), saved)
        )
    wish = Wish(
        kind=None if kind is None else _kind(kind),
        limits=limits or RiskLimits(),
        population=population,
        margin=margin,
    )
    with shown_progress(not progress) as listener:
        found = advise_programme(resolved, wish, not without_data, seed, cores(threads), listener)
        drawn = None
        if curves:
            if without_data:
                raise mistake(
                    "", "curves", "without_data", "curves perturb the records: leave one of them out"
                )
            drawn = trials(resolved, found, curves, seed, cores(threads), listener)
    lines = map(in_arguments, advice_lines(found))
    charts = tuple(advice_charts(found, drawn))
    return Result(found, tuple(lines), drawings=charts, rows=figure_rows(document(found)))


def _kind(kind: str) -> LawKind:
    if kind not in [one.value for one in KINDS]:
        raise mistake("", "kind", repr(kind), f"choose from {', '.join(one.value for one in KINDS)}")
    return LawKind(kind)


@names_arguments
def forecast(
    what: Population | Programme | str | Path,
    cubes: Cube | Iterable[Cube] | None = None,
    noise: Noise | None = None,
    *,
    epsilon: str | Iterable[float] = "1,5,20",
    **declared: object,
) -> Result[Forecast | HierarchyForecast]:
    """Expected errors of every cube for the declared noise and for others; no record is counted.

    ``epsilon`` are budgets of all tables together to compare. A hierarchical programme is forecast by level and query.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": [1, 2], "sex": ["F", "M"]}, person_id="pid")
    >>> found = ds.forecast(census, ds.Cube("sex"), ds.CellKey(V=2, D=5), epsilon=[1])
    >>> found.candidates[0].candidate.name
    'declared: cell-key'
    """
    text = epsilon if isinstance(epsilon, str) else ",".join(map(str, epsilon))
    resolved = programme_of(what, cubes, noise, **declared).resolved
    if resolved.hierarchy is not None:
        levels = hierarchy_forecast(resolved)
        return Result(levels, tuple(map(_level_line, levels.queries)))
    found = forecast_of(resolved, candidates_for(resolved, read_epsilons(text)))
    rows = tuple(
        {
            "noise": one.candidate.name,
            "cube": margin.cube,
            "cross_tabulations": margin.crosstabs,
            "deviation": margin.law.deviation,
        }
        for one in found.candidates
        for margin in one.margins
    )
    return Result(found, tuple(map(_line, found.candidates)), drawings=(forecast_chart(found),), rows=rows)


def _line(one: CandidateForecast) -> str:
    deviations = [law.deviation for law in one.laws]
    if not deviations:
        return f"{one.candidate.name}: not available"
    return f"{one.candidate.name}: standard deviation of the noise {min(deviations):.3g} to {max(deviations):.3g}"


def _level_line(one: QueryForecast) -> str:
    measured = "not measured" if one.noise is None else f"noise {one.noise:.3g}"
    return f"{one.level}, {one.query}: {measured}, standard deviation of the estimate {one.mean:.3g}"
