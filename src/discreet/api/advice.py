"""Choosing noise before a release: advice on parameters, and forecasts of errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from discreet.advise.advise import KINDS, Advice, Task
from discreet.advise.advise import advise as advise_on
from discreet.advise.curves import Curves
from discreet.advise.facts import eu_facts
from discreet.advise.forecast import CandidateForecast, Forecast, candidates_for, read_epsilons
from discreet.advise.forecast import forecast as forecast_of
from discreet.advise.hierarchical import HierarchyForecast, QueryForecast, hierarchy_forecast
from discreet.advise.programme_advice import USUAL_MARGIN, Wish, advice_lines, advise_programme, trials
from discreet.advise.reasons import document
from discreet.advise.strategy import StrategyAdvice, advise_strategy
from discreet.advise.write import write_noise
from discreet.api.arguments import chosen, in_arguments, names_arguments, require
from discreet.api.cubes import Cube
from discreet.api.noise import Noise
from discreet.api.population import Population
from discreet.api.programme import Programme
from discreet.api.protect import programme_of
from discreet.api.results import Result, figure_rows
from discreet.audit.redundancy import Mode, regions_of
from discreet.errors import mistake
from discreet.io.atomic_folder import require_free
from discreet.io.progress_bar import cores, shown_progress
from discreet.io.serialize import to_json
from discreet.maths.feasible import RiskLimits
from discreet.maths.noise.additive import LawKind
from discreet.programme import eu2021
from discreet.report.advice import advice_charts, advice_page, write_charts
from discreet.report.forecast import forecast_chart


@names_arguments
def advise(
    what: Population | Programme | str | Path,
    cubes: Cube | Iterable[Cube] | None = None,
    noise: Noise | None = None,
    *,
    kind: Literal["cell-key", "geometric", "discrete-gaussian", "hierarchical"] | None = None,
    wanted: Sequence[str] = (),
    country: str | None = None,
    mode: Literal["literal", "nested", "bach-2020"] | None = None,
    limits: RiskLimits | None = None,
    margin: float = USUAL_MARGIN,
    curves: int = 0,
    population: int | None = None,
    without_data: bool = False,
    seed: int = 0,
    out: str | Path | None = None,
    write: bool = False,
    threads: int = 0,
    progress: bool = True,
    **declared: object,
) -> Result[Advice | StrategyAdvice]:
    """Propose noise parameters that keep risk and error within limits, or explain why no parameters do.

    ``found.proposal`` has the parameters, ``chart()`` shows where the limits hold. ``kind`` is the noise, as declared
    by default; ``margin`` is how far the proposal stays inside every limit. The records are read unless
    ``without_data``; ``population`` is then the number of persons. ``curves`` perturbs the records so many times at
    each point and also plots risk against utility. ``mode`` is what counts as a representation of a statistic. Of a
    hierarchical programme the shares of its budget are proposed, for the queries of its cubes or those ``wanted``, such
    as ``["TRACT:total=2", "TRACT:SEX*AGE.L"]``, with weights. ``"eu-census-2021"`` with a ``country`` is the EU
    programme. ``out`` writes pictures and the advice into a new folder, ``write`` puts the proposal into the noise
    section of a programme file.

    >>> import discreet as ds
    >>> persons = {"pid": range(600), "sex": ["F", "M", "F"] * 200, "lau": ["A", "B"] * 300}
    >>> census = ds.Population(persons=persons, person_id="pid", geography=["lau"])
    >>> advice = ds.advise(census, ds.Cube("lau", "sex"), ds.CellKey(V=1, D=3))
    >>> advice.proposal.noise["kind"]
    'cell-key'
    """
    require(0 <= margin < 1, "margin", f"{margin:g}", "give a share of at least 0 and below 1, e.g. 0.1")
    require(
        not (curves and without_data), "curves", "without_data", "curves perturb the records: leave one out"
    )
    file = Path(what) if isinstance(what, str | Path) and str(what) != eu2021.NAME else None
    require(
        file is not None or not write, "write", "no programme file", "give its path, or see proposal.noise"
    )
    if out is not None:
        require_free(Path(out), "out")
    wish = Wish(
        kind=None if kind is None or kind == "hierarchical" else _kind(kind),
        limits=limits or RiskLimits(),
        mode=Mode.NESTED if mode is None else chosen("mode", mode, Mode),
        population=population,
        margin=margin,
    )
    if str(what) == eu2021.NAME:
        require(not curves, "curves", "the EU programme has no records", "give a programme with records")
        return _advised(_eu_advice(country, wish, mode), None, out, None)
    require(country is None, "country", str(country), f"leave it out, or advise on {eu2021.NAME!r}")
    resolved = programme_of(what, cubes, noise, **declared).resolved
    hierarchical = resolved.hierarchy is not None
    require(hierarchical or kind != "hierarchical", "kind", str(kind), "the declared noise is another")
    require(hierarchical or not wanted, "wanted", str(wanted), "only a hierarchical strategy weighs queries")
    if hierarchical:
        shares = advise_strategy(resolved, wanted)
        first = f"Proposed shares of {shares.measure} {shares.budget}:"
        return Result(shares, (first, *shares.lines(), shares.compared))
    with shown_progress(not progress) as listener:
        found = advise_programme(resolved, wish, not without_data, seed, cores(threads), listener)
        drawn = trials(resolved, found, curves, seed, cores(threads), listener) if curves else None
    return _advised(found, drawn, out, file if write else None)


def _eu_advice(country: str | None, wish: Wish, mode: str | None) -> Advice:
    if country is None:
        raise mistake("", "country", "missing", 'name the country whose regions are meant: country="MT"')
    facts = eu_facts(country, regions_of(country), wish.mode if mode else Mode.LITERAL, wish.population)
    return advise_on(facts, Task(wish.kind or LawKind.CELL_KEY, wish.limits, margin=wish.margin))


def _advised(
    found: Advice, drawn: Curves | None, out: str | Path | None, file: Path | None
) -> Result[Advice | StrategyAdvice]:
    """The advice as a result; its pictures and its proposal are written where they are requested."""
    charts = tuple(advice_charts(found, drawn))
    if file is not None:
        if found.proposal is None:
            raise mistake(file, "write", "no proposal", "nothing was written; see the conflicts without it")
        write_noise(file, found.proposal.noise)
    if out is not None:
        write_charts(Path(out), advice_page(found, drawn), to_json({**document(found), "curves": drawn}))
    lines = map(in_arguments, advice_lines(found))
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
    low, high = f"{min(deviations):.3g}", f"{max(deviations):.3g}"
    return (
        f"{one.candidate.name}: standard deviation of the noise {low if low == high else f'{low} to {high}'}"
    )


def _level_line(one: QueryForecast) -> str:
    measured = "not measured" if one.noise is None else f"noise {one.noise:.3g}"
    return f"{one.level}, {one.query}: {measured}, standard deviation of the estimate {one.mean:.3g}"
