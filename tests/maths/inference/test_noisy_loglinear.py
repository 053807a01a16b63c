"""Log-linear models: the standard fit without noise, honest standard errors with it, thin tables."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from discreet.errors import Mistakes
from discreet.maths.inference.independence import independence_tests
from discreet.maths.inference.loglinear import Design, design, fit
from discreet.maths.noise.additive import discrete_laplace, truncated_laplace
from discreet.maths.noise.publishing import NO_NOISE, Negatives, PublishedLaw, Publishing

LABELS = [["1", "2", "3"], ["1", "2", "3", "4"], ["1", "2"]]
AXES = ["A", "B", "C"]
SHAPE = (3, 4, 2)


def model(*terms: str) -> Design:
    return design(SHAPE, LABELS, AXES, terms)


def test_the_design_is_hierarchical_and_named() -> None:
    found = model("A*C", "B")
    assert found.names[:4] == ("intercept", "A=2", "A=3", "B=2")
    assert found.names[-2:] == ("A=2*C=2", "A=3*C=2")
    assert found.matrix.shape == (24, 1 + 2 + 3 + 1 + 2)
    assert np.linalg.matrix_rank(found.matrix) == 9


def test_without_noise_it_is_the_standard_fit() -> None:
    table = np.random.default_rng(3).poisson(20, (3, 4))
    found = fit(table.ravel(), design((3, 4), LABELS, AXES[:2], ["A", "B"]), NO_NOISE)
    known = chi2_contingency(table, correction=False, lambda_="log-likelihood")
    assert found.deviance == pytest.approx(known.statistic, rel=1e-8)
    assert found.df == known.dof
    np.testing.assert_allclose(found.fitted.reshape(3, 4), known.expected_freq, rtol=1e-5)
    mu = found.fitted
    x = design((3, 4), LABELS, AXES[:2], ["A", "B"]).matrix
    np.testing.assert_allclose(found.variances, np.diag(np.linalg.inv(x.T @ (mu[:, None] * x))), rtol=1e-6)


def test_main_effects_of_two_axes_are_the_test_of_independence() -> None:
    noise = PublishedLaw(truncated_laplace("0.5", 7), Publishing(Negatives.ZERO))
    rng = np.random.default_rng(4)
    true = rng.poisson(12, (3, 4))
    x = noise.publishing.publish(true + rng.choice(noise.change.values, size=true.shape, p=noise.change.p))
    found = fit(x.ravel(), design((3, 4), LABELS, AXES[:2], ["A", "B"]), noise)
    assert found.deviance == pytest.approx(
        independence_tests(x[None], noise).likelihood_ratio.statistic[0], abs=1e-5
    )


@pytest.mark.long
def test_estimates_scatter_as_their_standard_errors_say_and_naive_ones_do_not() -> None:
    noise, wanted = PublishedLaw(discrete_laplace("0.25")), model("A*B", "C")
    rng = np.random.default_rng(6)
    theta = rng.uniform(-0.3, 0.3, len(wanted.names))
    theta[0] = 4.0
    mu = np.exp(wanted.matrix @ theta)
    off, naive_off, levels = [], [], []
    for _ in range(80):
        x = rng.poisson(mu) + rng.choice(noise.change.values, size=len(mu), p=noise.change.p)
        aware, naive = fit(x, wanted, noise), fit(np.maximum(x, 0), wanted, NO_NOISE)
        off.append((aware.estimates - theta) / aware.standard_errors)
        naive_off.append((naive.estimates - theta) / naive.standard_errors)
        levels.append((aware.p_value <= 0.05, naive.p_value <= 0.05))
    assert np.std(off) == pytest.approx(1, abs=0.12)
    assert np.std(naive_off) > 1.2
    assert np.mean(levels, axis=0)[0] < 0.13
    assert np.mean(levels, axis=0)[1] > 0.25


def test_the_saturated_model_fits_and_leaves_nothing_to_test() -> None:
    noise = PublishedLaw(truncated_laplace(1, 4))
    x = np.random.default_rng(7).poisson(30, 24)
    found = fit(x, model("A*B*C"), noise)
    assert found.df == 0
    assert found.p_value == 1.0
    assert found.deviance < 1e-4


def test_an_empty_category_has_no_estimate_and_says_so() -> None:
    noise = PublishedLaw(truncated_laplace(2, 3), Publishing(Negatives.ZERO))
    table = np.array([[40, 35, 0], [38, 44, 0]])
    found = fit(table.ravel(), design((2, 3), LABELS, ["A", "B"], ["A", "B"]), noise)
    errors = dict(zip(found.names, found.standard_errors.tolist(), strict=True))
    assert errors["B=3"] == np.inf
    assert errors["A=2"] < 1
    assert found.settled


@pytest.mark.parametrize("term", ["A*X", "A*A", ""])
def test_unknown_terms_are_refused(term: str) -> None:
    with pytest.raises(Mistakes, match="join different axes by"):
        model(term)


def test_too_large_a_model_is_refused() -> None:
    with pytest.raises(Mistakes, match="parameters for"):
        design((60, 60), [[str(k) for k in range(60)]] * 2, ["A", "B"], ["A*B"])
