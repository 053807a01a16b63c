"""The strongest linear adversary against made releases: predicted and realised, weak and strong noise."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.audit.averaging import average
from discreet.audit.averaging import judge as judge_averages
from discreet.audit.evidence import Published
from discreet.audit.least_squares import (
    VARIANCES,
    LeastSquares,
    LeastSquaresJudgement,
    LeastSquaresRule,
    judge,
    least_squares,
    most_recovered,
)
from discreet.maths.attacks.averaging import Method, successes
from discreet.maths.noise.publishing import UNCHANGED
from discreet.programme.cube import Cube, Shown
from tests.audit.known import known
from tests.audit.made import Made, axis, cell_key, flat, made, nested, random_columns
from tests.audit.test_averaging import dense, release

TREES = [nested("GEO", 2, 3), flat("A", 4), flat("B", 4), flat("C", 3)]
CROSSES = [["GEO", "A", "B"], ["GEO", "B", "C"], ["A", "B", "C"], ["GEO", "A", "C"]]
D = 5
RULE = LeastSquaresRule(probes=16, trials=8)


def worlds(V: float, persons: int = 2000, secrets: int = 8) -> Iterator[Made]:
    mechanism, noise = cell_key(V, D)
    columns = random_columns(TREES, persons, 3)
    for secret in range(secrets):
        yield made(TREES, CROSSES, columns, mechanism, noise, 100 + secret)


def judged(V: float) -> tuple[LeastSquares, list[LeastSquaresJudgement]]:
    """The prediction of one release, and what is found with several secrets."""
    every = list(worlds(V))
    found = [least_squares(one.published, rule=RULE, truth=one.truth) for one in every]
    return found[0], [judge(one, world.truth) for one, world in zip(found, every, strict=True)]


def away(found: NDArray[np.float64], expected: float, standard_error: float) -> float:
    """The difference of realised and predicted in standard errors."""
    error = found.std(ddof=1) / len(found) ** 0.5
    return float((found.mean() - expected) / np.hypot(error, standard_error))


@pytest.fixture(scope="module")
def strong() -> tuple[LeastSquares, list[LeastSquaresJudgement]]:
    return judged(2.0)


@pytest.fixture(scope="module")
def weak() -> tuple[LeastSquares, list[LeastSquaresJudgement]]:
    return judged(0.5)


def test_a_weak_choice_is_broken_at_the_predicted_rate(
    weak: tuple[LeastSquares, list[LeastSquaresJudgement]],
) -> None:
    found, realised = weak
    linear, within = (
        np.array([getattr(one, name) for one in realised]) for name in ("linear", "within_bounds")
    )
    assert linear.mean() > 0.7 * found.targets
    assert within.mean() > linear.mean()
    assert abs(away(linear, found.linear.expected, found.linear.standard_error)) < 4
    assert abs(away(within, found.within_bounds.expected, found.within_bounds.standard_error)) < 4


def test_a_stronger_one_resists_as_predicted(
    strong: tuple[LeastSquares, list[LeastSquaresJudgement]],
    weak: tuple[LeastSquares, list[LeastSquaresJudgement]],
) -> None:
    found, realised = strong
    linear, within = (
        np.array([getattr(one, name) for one in realised]) for name in ("linear", "within_bounds")
    )
    assert linear.mean() < 0.55 * found.targets
    assert abs(away(linear, found.linear.expected, found.linear.standard_error)) < 4
    assert abs(away(within, found.within_bounds.expected, found.within_bounds.standard_error)) < 4
    assert abs(away(linear, weak[0].linear.expected, weak[0].linear.standard_error)) > 6, (
        "of another variance"
    )


def test_it_finds_what_averaging_does_not() -> None:
    """More counts, and a smaller variance of every count that averaging lists."""
    for world in worlds(2.0, secrets=2):
        averages = average(world.published, truth=world.truth)
        found = least_squares(world.published, rule=RULE, truth=world.truth)
        realised, before = judge(found, world.truth), judge_averages(averages, world.truth)
        assert realised.targets == before.targets
        assert realised.baseline == before.baseline
        assert realised.linear > 1.2 * before.hit[Method.WEIGHTED]
        strongest = most_recovered(averages, found)
        assert strongest[0].success >= max(averages.exposed[0].success, found.exposed[0].success)
        cells = [(one.counted, tuple(sorted(one.cell.items()))) for one in strongest]
        assert len(set(cells)) == len(cells)


def dense_variances(found: LeastSquares) -> NDArray[np.float64]:
    """The variance of each unknown by dense algebra: V - V B' (B V B')^+ B V."""
    (fit,) = found.fits
    equations = fit.equations
    rows = np.zeros((len(equations), equations.cells))
    for f in range(len(equations)):
        rows[f, equations.totals[f]] += 1
        for part in equations.parts[equations.starts[f] : equations.starts[f + 1]]:
            rows[f, part] -= 1
    V = fit.variances.astype(float)
    gram = rows * V @ rows.T
    result: NDArray[np.float64] = V - np.einsum(
        "fi,fg,gi->i", rows * V, np.linalg.pinv(gram, rcond=1e-9, hermitian=True), rows * V, optimize=True
    )
    return result


def test_the_listed_variances_are_those_of_dense_algebra() -> None:
    world = next(worlds(2.0, persons=300, secrets=1))
    found = least_squares(world.published, rule=VARIANCES, truth=world.truth)
    wanted = dense_variances(found)
    (fit,) = found.fits
    assert fit.counts is not None
    least = wanted[fit.counts >= 2].min()
    V = world.published.noise.variance_of(world.published.universes[0].signature(()))
    first = found.exposed[0]
    assert first.ratio * V == pytest.approx(least, rel=0.02), "the most exposed count of all"
    assert first.success == pytest.approx(float(successes(np.array([first.ratio * V]))[0]))
    for one in found.exposed:
        assert np.abs(wanted / V - one.ratio).min() < 0.01


def test_the_prediction_does_not_depend_on_the_noise() -> None:
    first, second = (
        least_squares(one.published, rule=VARIANCES, truth=one.truth) for one in worlds(2.0, 300, 2)
    )
    assert first.exposed == second.exposed
    assert first.linear == second.linear
    assert not np.array_equal(first.fits[0].linear, second.fits[0].linear)


def test_an_outsider_finds_more_than_by_averaging() -> None:
    """He sees only what is listed; his own prediction is not what is compared here."""
    for world in worlds(2.0, secrets=2):
        found = judge(least_squares(world.published, rule=RULE), world.truth)
        before = judge_averages(average(world.published), world.truth)
        assert found.within_bounds > 1.1 * before.hit[Method.WEIGHTED]


def grids(shown: Shown | None = None) -> tuple[Published, NDArray[np.int64]]:
    """A table of 3 x 4 whose every cell has noise of variance 4, with margins, or with those that are shown."""
    trees = [flat("A", 3), flat("B", 4)]
    cube = Cube("AB", "persons", tuple(axis(tree) for tree in trees), shown=shown)
    values = np.random.default_rng(2).integers(50, 90, cube.shape)
    return release([(cube, dense(values))], trees, known(False, False, 4.0, publishing=UNCHANGED)), values


def test_noise_in_every_cell_has_the_closed_form_of_a_full_table() -> None:
    """Equal variances and all margins: the total keeps 3/4 of 4/5 of a cell's variance."""
    seen, values = grids()
    found = least_squares(seen, rule=VARIANCES)
    assert found.targets == values.size
    assert found.exposed[0].ratio == pytest.approx(3 / 4 * 4 / 5, rel=0.01)
    assert found.linear.expected == pytest.approx(20 * successes(np.array([4 * 0.6]))[0], rel=0.35)


def test_margins_that_are_not_published_do_not_break_the_chain() -> None:
    """The total and the finest cells only: total and sum of 12 cells, so 12/13 of a cell's variance."""
    seen, _ = grids(Shown(frozenset({(0, 0), (1, 1)})))
    found = least_squares(seen, rule=VARIANCES)
    assert found.targets == 13
    (fit,) = found.fits
    assert len(fit.equations) == 1
    assert fit.equations.parts.tolist() == list(range(1, 13))
    assert found.exposed[0].ratio == pytest.approx(12 / 13, rel=0.01)


def test_too_large_a_population_is_reported() -> None:
    seen, _ = grids()
    found = least_squares(seen, rule=replace(VARIANCES, cells=10))
    assert found.left_out == ("persons",)
    assert found.targets == 0
    assert found.findings().linear.expected == 0
