import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.attacks.bayes import Adversary, BayesFactors
from discreet.maths.noise.additive import Law, discrete_gaussian, discrete_laplace, truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw, hellinger
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import Negatives, PublishedLaw, Publishing
from tests.cases import few

TABLE = PTableLaw(solve(PTableParameters(5, 2.0)))
LAWS: list[Law] = [
    discrete_gaussian("0.1"),
    discrete_laplace("0.6"),
    truncated_laplace(1, 4),
    TABLE,
    hellinger(3),
]
RULES = [
    Publishing(Negatives.KEEP),
    Publishing(Negatives.ZERO),
    Publishing(Negatives.ZERO, 5),
    Publishing(Negatives.ZERO, 4, 3),
    Publishing(Negatives.ZERO, 5, 7),
    Publishing(Negatives.KEEP, 3),
    Publishing(Negatives.KEEP, 1, 4),
]


@pytest.mark.parametrize("rule", few(RULES, 0, 2, 4))
@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_factors_are_those_of_the_rows(law: Law, rule: Publishing) -> None:
    for keeps_zeros in (False, True):
        one = PublishedLaw(law, rule, keeps_zeros)
        for known in (0, 1, 4, 40):
            row, without = one.row(known + 1), one.row(known)
            assert float(row.p.sum()) == pytest.approx(1)
            likely = row.values[row.p > 1e-12]
            found = BayesFactors(one).log_factors(np.full(len(likely), known), likely)
            for j, factor in zip(likely.tolist(), found.tolist(), strict=True):
                away = without.at(j)
                expected = math.log(row.at(j)) - math.log(away) if away > 0 else math.inf
                assert factor == pytest.approx(expected, abs=1e-9), (known, j)


@given(st.integers(0, 60), st.integers(0, 60))
def test_without_post_processing_they_are_those_of_the_noise(known: int, published: int) -> None:
    law = discrete_gaussian("0.3")
    found = BayesFactors(PublishedLaw(law, Publishing(Negatives.KEEP))).log_factors(
        np.array([known]), np.array([published])
    )
    assert found[0] == pytest.approx(Adversary(law, known).log_factor(published))


def test_clipped_counts_speak_less_clearly() -> None:
    """A published zero stands for all negative counts; taking it at its word would be too sure of an absence."""
    law = discrete_gaussian("0.1")
    clipped = BayesFactors(PublishedLaw(law, Publishing(Negatives.ZERO))).log_factors(
        np.array([0]), np.array([0])
    )[0]
    naive = Adversary(law, 0).log_factor(0)
    assert clipped < naive < 0
    assert clipped == pytest.approx(math.log(law.pmf.cdf(-1)) - math.log(law.pmf.cdf(0)))


def test_a_kept_zero_makes_any_count_proof() -> None:
    one = PublishedLaw(discrete_laplace(1), Publishing(Negatives.ZERO), keeps_zeros=True)
    assert BayesFactors(one).log_factors(np.array([0, 0, 1]), np.array([1, 0, 1])).tolist() == pytest.approx(
        [math.inf, math.log(one.row(1).at(0)), -1]
    )


def test_values_far_beyond_the_reported_law() -> None:
    one = PublishedLaw(discrete_gaussian(1), Publishing(Negatives.ZERO))
    assert BayesFactors(one).log_factors(np.array([500, 0]), np.array([0, 500])).tolist() == pytest.approx(
        [-1001, 999], rel=1e-2
    )


@pytest.mark.parametrize("rule", RULES[:4])
@pytest.mark.parametrize("law", LAWS[:4], ids=lambda law: type(law).__name__)
def test_posteriors_are_calibrated(law: Law, rule: Publishing) -> None:
    """In simulated worlds the target is there as often as the posterior says; bins have 4 standard errors."""
    one, generator, many, prior = PublishedLaw(law, rule), np.random.default_rng(11), 40_000, 0.3
    known = generator.integers(0, 6, many)
    present = generator.random(many) < prior
    published = np.zeros(many, dtype=np.int64)
    for count in range(7):
        here = known + present == count
        row = one.row(count)
        published[here] = generator.choice(row.values, here.sum(), p=row.p / row.p.sum())
    posterior = 1 / (1 + (1 - prior) / prior * np.exp(-BayesFactors(one).log_factors(known, published)))
    judged = 0
    for low in np.arange(0, 1, 0.1):
        inside = (posterior >= low) & (posterior < low + 0.1 + (low > 0.85))
        if inside.sum() > 50:
            said = posterior[inside].mean()
            error = math.sqrt(max(said * (1 - said), 1e-4) / inside.sum())
            assert abs(present[inside].mean() - said) < 4 * error
            judged += int(inside.sum())
    assert judged > 0.99 * many
