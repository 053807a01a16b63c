"""Shares of a hierarchical programme: for stated queries with weights, beside those of 2020, and their forecast."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from discreet.advise.hierarchical import hierarchy_forecast
from discreet.advise.strategy import StrategyAdvice, advise_strategy, forms_of
from discreet.errors import Mistakes
from discreet.hierarchy.estimate import forecast, known_totals
from discreet.hierarchy.mechanism import hierarchical_mechanism
from discreet.maths.tree.shares import mean_variance, weighted_variance
from discreet.programme.programme import Programme, load_programme
from discreet.programme.strategy import Strategy
from tests.pipeline.small_country import NOISE, make_country, table
from tests.pipeline.test_hierarchical_release import make_pl94

STATED = ["TRACT:total=5", "STATE:AGE.L*SEX", "BLOCK:MAR=0.5"]


@pytest.fixture(scope="module")
def programme(tmp_path_factory: pytest.TempPathFactory) -> Programme:
    return load_programme(make_country(tmp_path_factory.mktemp("country")))


def weighted(programme: Programme, found: StrategyAdvice, strategy: Strategy) -> float:
    """The weighted sum of mean variances, by the forecast."""
    spine, totals = hierarchical_mechanism(programme).plan.spine, found_totals(programme)
    queries = [one.query for one in found.wanted]
    means = {(one.level, one.query): one.mean for one in forecast(spine, strategy, queries, totals)}
    return sum(one.weight * means[one.level, one.query] for one in found.wanted)


def found_totals(programme: Programme) -> tuple[str, ...]:
    assert programme.hierarchy is not None
    return programme.hierarchy.totals


def test_no_other_shares_have_a_smaller_weighted_variance(programme: Programme) -> None:
    found = advise_strategy(programme, STATED)
    assert [(one.level, one.query, one.weight) for one in found.wanted] == [
        ("TRACT", "total", 5.0),
        ("STATE", "AGE.L*SEX", 1.0),
        ("BLOCK", "MAR", 0.5),
    ]
    best = weighted(programme, found, found.proposed)
    own = replace(found.proposed, levels=hierarchical_mechanism(programme).plan.strategy.levels)
    assert found.saved == pytest.approx(best / weighted(programme, found, own), rel=1e-9)
    names = ("total", "AGE.L*SEX", "MAR", "detailed")
    histogram, spine = found.proposed.histogram, hierarchical_mechanism(programme).plan.spine
    marginals, basis = [histogram.marginal(name) for name in names], histogram.basis
    targets = [np.zeros((basis.subsets, basis.d, basis.d)) for _ in spine.levels]
    for one in found.wanted:
        part = mean_variance(basis, histogram.marginal(one.query))
        targets[spine.levels.index(one.level)] += one.weight * part
    forms = forms_of(spine, known_totals(spine, found_totals(programme)))
    value = partial(weighted_variance, basis, marginals, forms, targets)
    start = np.array(
        [
            [float(one.share * dict(one.queries).get(name, 0)) for name in names]
            for one in found.proposed.levels
        ]
    )
    assert value(start) / float(found.proposed.budget) == pytest.approx(best, rel=1e-3)
    rng = np.random.default_rng(4)
    for spread in (0.05, 0.5, 2.0):
        for _ in range(15):
            moved = (start + 1e-4) * np.exp(spread * rng.normal(size=start.shape))
            assert value(moved / moved.sum()) > 0.999 * value(start)


def test_a_weight_moves_the_budget_to_its_query(programme: Programme) -> None:
    errors = []
    for weight in (0.1, 10):
        found = advise_strategy(programme, [f"TRACT:total={weight}", "BLOCK:detailed"])
        errors.append({one.level: one.proposed for one in found.errors})
    assert errors[1]["TRACT"] < 0.8 * errors[0]["TRACT"]
    assert errors[1]["BLOCK"] > 1.05 * errors[0]["BLOCK"]


@pytest.mark.parametrize(
    ("stated", "problem"),
    [
        ("TRACT", r"--wanted: 'TRACT'; write LEVEL:QUERY=WEIGHT"),
        ("TRACT:total=much", "write LEVEL:QUERY=WEIGHT"),
        ("TRACT:total=inf", "write LEVEL:QUERY=WEIGHT"),
        ("TRACT:total=0", "give a weight above zero"),
        ("STREET:total", "no level 'STREET'; choose from total, STATE, COUNTY, TRACT, BLOCK"),
        ("TRACT:AGE.X", "unknown query 'AGE.X'; did you mean 'AGE.M'"),
        ("TRACT:GEO", "unknown query 'GEO'"),
    ],
)
def test_wrong_queries_are_refused_in_a_line(programme: Programme, stated: str, problem: str) -> None:
    with pytest.raises(Mistakes, match=problem):
        advise_strategy(programme, [stated])


@pytest.mark.long
@pytest.mark.parametrize("name", ["pl94-2020", "pl94-2020-pr"])
def test_a_built_in_strategy_is_itself_what_the_shares_of_2020_cost(tmp_path: Path, name: str) -> None:
    path = make_pl94(tmp_path)
    path.write_text(path.read_text().replace('"pl94-2020"', f'"{name}"'))
    found = advise_strategy(load_programme(path), ["Tract:total", "Block:VOTINGAGE"])
    assert all(one.census_2020 == one.declared for one in found.errors)
    assert found.census_2020 == pytest.approx(1 / found.saved)
    assert found.census_2020 > 1
    assert f"would need {found.census_2020:.2f} times the budget" in found.compared


def test_a_forecast_has_the_noise_of_areas_that_took_over_their_parents_shares(tmp_path: Path) -> None:
    """One state of one county: the county is measured with the shares of both, the state not at all."""
    path = make_country(tmp_path, noise=NOISE.replace('totals = ["STATE"]', ""))
    rows = [("S", ""), ("C", "S"), ("T0", "C"), ("T1", "C"), ("B0", "T0"), ("B1", "T0"), ("B2", "T1")]
    table(tmp_path / "geo.csv", [("code", "parent", "label"), *((code, above, code) for code, above in rows)])
    found = {(one.level, one.query): one for one in hierarchy_forecast(load_programme(path)).queries}
    assert found["STATE", "total"].noise is None
    # rho 1/2 x (1/4 x 1/2 + 1/4 x 1/2): variance 8, and 1/4 x 1/3 for tracts with several blocks: variance 24
    assert found["COUNTY", "total"].noise == pytest.approx(8**0.5, rel=1e-6)
    assert found["TRACT", "total"].noise == pytest.approx(24**0.5, rel=1e-6)
    assert found["BLOCK", "detailed"].noise == pytest.approx(16**0.5, rel=1e-6)
