"""The binomial test: section 6.2 of Rinott et al. by enumeration, and exact sizes for every law."""

import numpy as np
import pytest
from scipy.stats import binom, chi2

from discreet.errors import Mistakes
from discreet.maths.inference.binomial import BinomialFit, binomial_test, enumerated
from discreet.maths.noise.additive import discrete_laplace, truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import NO_NOISE, Negatives, PublishedLaw, Publishing

LIMIT = float(chi2.ppf(0.95, 1))
RINOTT = {5: (3.361, 0.0537, 0.0844, 0.9360, 0.95), 10: (3.816, 0.0442, 0.0678, 0.8960, 0.92)}


@pytest.mark.parametrize("m", list(RINOTT))
def test_section_6_2_of_rinott_et_al(m: int) -> None:
    critical, beyond, from_there, power, printed = RINOTT[m]
    noise = PublishedLaw(truncated_laplace("0.5", m))
    test = binomial_test(80, 0.5, noise)
    assert (
        np.abs(test.statistic - critical).min() < 5e-4
    )  # their empirical 3.36 and 3.82 are values it can take
    at = test.statistic[np.abs(test.statistic - critical).argmin()]
    assert test.size(at) == pytest.approx(beyond, abs=5e-5)
    assert test.p_value(at) == pytest.approx(from_there, abs=5e-5)
    found = binomial_test(80, 0.7, noise).power(0.5, round(critical, 2))
    assert found == pytest.approx(power, abs=5e-5)
    assert abs(found - printed) < 2.5 * np.sqrt(printed * (1 - printed) / 500)


def test_the_power_without_noise_is_the_printed_one() -> None:
    assert binomial_test(80, 0.7, NO_NOISE).power(0.5, LIMIT) == pytest.approx(
        0.9535, abs=5e-5
    )  # printed: 0.96


def test_the_power_falls_with_the_noise() -> None:
    powers = [
        binomial_test(80, 0.7, PublishedLaw(truncated_laplace(epsilon, 10))).power(0.5, LIMIT)
        for epsilon in ("0.1", "0.5", "2")
    ]
    assert powers == sorted(powers)


NOISES = [
    PublishedLaw(truncated_laplace("0.5", 5)),
    PublishedLaw(discrete_laplace("0.7"), Publishing(Negatives.ZERO, rounding=3)),
    PublishedLaw(PTableLaw(solve(PTableParameters(4, 1.5, 1)))),
]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("n", "p0"), [(20, 0.1), (35, 0.6)])
def test_exact_p_values_have_their_level_by_enumeration(noise: PublishedLaw, n: int, p0: float) -> None:
    test = binomial_test(n, p0, noise)
    assert test.probability.sum() == pytest.approx(1, abs=1e-9)
    p = np.array([test.p_value(statistic) for statistic in test.statistic])
    for level in (0.01, 0.05, 0.2):
        assert test.probability[p <= level].sum() <= level + 1e-12
        assert test.size(test.critical(level)) <= level + 1e-12


def test_outcomes_are_the_binomial_law_convolved() -> None:
    noise = PublishedLaw(truncated_laplace(1, 2))
    found = enumerated(12, 0.4, noise)
    plain = np.convolve(binom.pmf(np.arange(13), 12, 0.4), noise.change.p)
    np.testing.assert_allclose(found.probability, plain, rtol=1e-9)
    assert found.values.tolist() == list(range(-2, 15))


def test_the_estimate_and_its_interval() -> None:
    plain = BinomialFit(80, 41, NO_NOISE)
    assert plain.estimate == pytest.approx(41 / 80, abs=1e-6)
    noisy = BinomialFit(80, 41, PublishedLaw(truncated_laplace("0.5", 10)))
    low, high = noisy.interval(0.95)
    assert noisy.statistic(low) == pytest.approx(LIMIT, abs=1e-6)
    assert low < plain.interval(0.95)[0] < plain.interval(0.95)[1] < high
    assert BinomialFit(80, -3, PublishedLaw(truncated_laplace("0.5", 10))).interval(0.95)[0] == 0.0
    assert BinomialFit(80, 85, PublishedLaw(truncated_laplace("0.5", 10))).interval(0.95)[1] == 1.0


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    noise = PublishedLaw(truncated_laplace("0.5", 5))
    for p in (0.2, 0.5):
        found = enumerated(60, p, noise)
        inside = [
            low <= p <= high
            for low, high in (BinomialFit(60, int(x), noise).interval(0.9) for x in found.values)
        ]
        assert 0.87 < found.probability[np.array(inside)].sum() < 0.96


def test_large_populations_are_enumerated_near_the_mean_only() -> None:
    test = binomial_test(10**6, 0.3, PublishedLaw(truncated_laplace(1, 10)))
    assert test.probability.sum() == pytest.approx(1, abs=1e-9)
    assert test.size(LIMIT) == pytest.approx(0.05, abs=0.002)


@pytest.mark.parametrize(
    ("n", "p0", "said"), [(0, 0.5, "n: 0"), (10, 1.0, "p0: 1"), (10**8, 0.5, "n: 100000000")]
)
def test_what_is_no_binomial_law_is_refused(n: int, p0: float, said: str) -> None:
    with pytest.raises(Mistakes, match=said):
        binomial_test(n, p0, NO_NOISE)
