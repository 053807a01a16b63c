import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.maths.attacks.bayes import Adversary, LawRows
from discreet.maths.attacks.bayes_histogram import HistogramAdversary
from discreet.maths.noise.additive import discrete_gaussian, discrete_laplace, truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve

TABLE = PTableLaw(solve(PTableParameters(3, 1.0)))
BOUNDED = truncated_laplace("0.7", 3)


def enumerated(one: HistogramAdversary, category: int) -> tuple[float, float]:
    """The chance of a right decision, ties by lot, and the expected posterior, over all published histograms."""
    rows = [one.law.row(x + (c == category)) for c, x in enumerate(one.known)]
    correct = mean = 0.0
    for cells in itertools.product(*(row.values.tolist() for row in rows)):
        chance = math.prod(row.at(j) for row, j in zip(rows, cells, strict=True))
        if chance > 0:
            weights = np.array(
                [
                    p
                    * math.prod(
                        one.law.row(x + (k == c)).at(j)
                        for k, (x, j) in enumerate(zip(one.known, cells, strict=True))
                    )
                    for c, p in enumerate(one.prior)
                ]
            )
            best = weights >= weights.max() * (1 - 1e-9)
            correct += chance * best[category] / best.sum()
            mean += chance * weights[category] / weights.sum()
    return correct, mean


@pytest.mark.parametrize("law", [TABLE, BOUNDED], ids=["table", "laplace"])
@pytest.mark.parametrize(
    ("known", "prior"),
    [
        ((0, 0, 0), (1 / 3, 1 / 3, 1 / 3)),
        ((2, 0, 1), (0.6, 0.1, 0.3)),
        ((1, 4), (0.5, 0.5)),
        ((0, 3), (0, 1)),
    ],
)
def test_chances_by_enumeration(law: LawRows, known: tuple[int, ...], prior: tuple[float, ...]) -> None:
    one = HistogramAdversary(law, known, prior)
    for category in range(len(known)):
        if prior[category] > 0:
            correct, mean = enumerated(one, category)
            assert one.correct(category) == pytest.approx(correct, abs=1e-9)
            assert one.mean_posterior(category) == pytest.approx(mean, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0.05, 1)), min_size=2, max_size=6), st.floats(0.05, 2))
def test_the_release_helps_the_adversary_on_average(cells: list[tuple[int, float]], rho: float) -> None:
    total = sum(weight for _, weight in cells)
    prior = tuple(weight / total for _, weight in cells)
    one = HistogramAdversary(discrete_gaussian(rho), tuple(x for x, _ in cells), prior)
    assert one.success >= one.baseline - 1e-9
    for category, p in enumerate(prior):
        assert p - 1e-7 <= one.mean_posterior(category) <= 1 + 1e-9


def test_two_categories_are_two_observations_of_one_person() -> None:
    """Whether the target is in the first or the second of two: the factor of one over that of the other."""
    law = discrete_gaussian("0.2")
    one = HistogramAdversary(law, (3, 0), (0.5, 0.5))
    odds = Adversary(law, 3).log_factor(5) - Adversary(law, 0).log_factor(1)
    assert one.posterior([5, 1])[0] == pytest.approx(1 / (1 + math.exp(-odds)))
    assert one.decision([5, 1]) == 0


def test_the_gvhr_query_of_the_census_gives_little_away() -> None:
    """863 empty categories drown the target's own: the sharper release does not."""
    known, prior = (34, 10, *(0,) * 862), (1 / 864,) * 864
    census = HistogramAdversary(discrete_gaussian("0.0992264"), known, prior)
    assert census.correct(5) < 0.01
    assert census.mean_posterior(5) < 0.005
    assert HistogramAdversary(discrete_gaussian(10), known, prior).correct(5) > 0.98


def test_chances_are_those_of_simulated_releases() -> None:
    one = HistogramAdversary(discrete_laplace("1.2"), (2, 0, 0, 5, 1), (0.3, 0.2, 0.2, 0.2, 0.1))
    generator, runs, right, mean = np.random.default_rng(4), 4000, 0.0, 0.0
    noise = discrete_laplace("1.2").pmf
    true = np.array(one.known) + np.array([0, 1, 0, 0, 0])
    for drawn in generator.choice(noise.values, size=(runs, 5), p=noise.p / noise.p.sum()):
        posterior = one.posterior((true + drawn).tolist())
        best = posterior > posterior.max() - 1e-9
        right += best[1] / best.sum() / runs
        mean += float(posterior[1]) / runs
    assert one.correct(1) == pytest.approx(right, abs=4 * math.sqrt(0.25 / runs))
    assert one.mean_posterior(1) == pytest.approx(mean, abs=4 * math.sqrt(0.25 / runs))


def test_a_count_in_an_empty_category_is_proof_where_zeros_stay() -> None:
    one = HistogramAdversary(TABLE, (0, 6, 0), (1e-6, 0.5, 0.5 - 1e-6))
    assert one.posterior([1, 6, 0]).tolist() == [1, 0, 0]
    assert one.correct(0) >= 1 - TABLE.row(1).at(0) - 1e-12
    with pytest.raises(Mistakes, match="explains them"):
        one.posterior([1, 6, 2])


@pytest.mark.parametrize(
    ("known", "prior", "message"),
    [((1, 2), (1.0,), "one probability"), ((1, 2), (0.5, 0.6), "add up to 1"), ((), (), "one probability")],
)
def test_priors_that_are_none(known: tuple[int, ...], prior: tuple[float, ...], message: str) -> None:
    with pytest.raises(Mistakes, match=message):
        HistogramAdversary(TABLE, known, prior)


def test_counts_must_fit_the_categories() -> None:
    with pytest.raises(Mistakes, match="one count for each"):
        HistogramAdversary(TABLE, (1, 2), (0.5, 0.5)).posterior([1])
