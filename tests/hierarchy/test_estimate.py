"""The estimates are the dense least squares ones, unbiased, and as variable as forecast."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from discreet.errors import Mistakes
from discreet.hierarchy.estimate import Estimates, Totals, estimate, forecast, known_totals
from discreet.hierarchy.measure import ancestors, measure, node_counts
from discreet.hierarchy.spine import Spine, spine_of
from discreet.maths.noise.additive import LawKind
from discreet.maths.tree.marginals import matrix
from discreet.programme.strategy import Histogram, Strategy
from tests.cases import few
from tests.hierarchy.forests import HISTOGRAM, PLAIN, counts, dense_fit, grown, strategy
from tests.hierarchy.sampling import is_binomial, is_chi_squared, normal_reach

COVERED = 0.95
REACH = float(norm.ppf((1 + COVERED) / 2))

QUERIES = {HISTOGRAM: ("total", "detailed", "g", "a*c", "b*e", "g*c"), PLAIN: ("total", "c", "detailed")}


def exact_totals(spine: Spine, asked: Strategy, leaf: object, levels: tuple[str, ...]) -> Totals:
    known = known_totals(spine, levels)
    values = node_counts(spine, leaf, asked).sum(axis=1)
    return Totals(levels, known, np.where(known, values, 0).astype(np.int64))


@pytest.mark.parametrize("histogram", [HISTOGRAM, PLAIN], ids=["unequal groups and zeros", "regular"])
@pytest.mark.parametrize(
    "levels", few([(), ("country",), ("region",), ("country", "block")], 0, 3, single=True), ids=str
)
def test_estimates_are_dense_least_squares(histogram: Histogram, levels: tuple[str, ...]) -> None:
    rng = np.random.default_rng(7)
    for trial in range(3):
        spine = grown(rng)
        asked = strategy(
            spine, histogram, noise=LawKind.GEOMETRIC if trial == 2 else LawKind.DISCRETE_GAUSSIAN
        )
        leaf = counts(rng, spine, histogram)
        measured = measure(spine, leaf, asked, rng.bytes(32)).stored()
        totals = exact_totals(spine, asked, leaf, levels)
        cells, below = histogram.basis.cells, ancestors(spine).toarray()
        exact = [
            (np.kron(below[node], np.ones(cells)), float(totals.values[node]))
            for node in np.flatnonzero(totals.known)
        ]
        x, covariance = dense_fit(measured, exact)
        found = estimate(measured, totals)
        for number, level in enumerate(spine.levels):
            for query in QUERIES[histogram]:
                q = matrix(histogram.basis, histogram.marginal(query))
                got = found.at(level, query)
                for area, node in enumerate(spine.node_of[number].tolist()):
                    whole = np.kron(below[node], q)
                    np.testing.assert_allclose(got.values[area], whole @ x, atol=1e-9)
                    variance = ((whole @ covariance) * whole).sum(axis=1)
                    np.testing.assert_allclose(got.variances[area], variance, atol=1e-9)


def test_the_forecast_is_the_variance_of_the_estimates() -> None:
    rng = np.random.default_rng(3)
    spine = grown(rng)
    asked = strategy(spine)
    found = estimate(measure(spine, counts(rng, spine, HISTOGRAM), asked, rng.bytes(32)).stored())
    for line in forecast(spine, asked, QUERIES[HISTOGRAM]):
        variances = found.at(line.level, line.query).variances
        if line.query != "g":  # rows of unequal width weigh the same in both
            assert line.mean == pytest.approx(variances.mean(), rel=1e-12)
        assert line.smallest == pytest.approx(variances.min(), rel=1e-12)
        assert line.largest == pytest.approx(variances.max(), rel=1e-12)


RELEASES = 500


@pytest.mark.long
def test_estimates_are_unbiased_with_the_stated_variance_and_nominal_coverage() -> None:
    require_sampling(11)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(300_000, 300_200))
def test_estimates_of_any_noise_have_the_stated_distribution(seed: int) -> None:
    require_sampling(seed)


def require_sampling(seed: int) -> None:
    """The errors of 500 releases are independent normal vectors with the covariance of dense least squares.

    Noise of a variance of at least 4 has the moments of normal noise to within 1e-33 (Poisson summation), so that a
    sum of squares is chi-squared, a mean normal, and how often an interval contains the truth binomial.
    """
    rng = np.random.default_rng(seed)
    spine = spine_of(("country", "region", "town"), [np.array([0, 0]), np.array([0, 0, 0, 0, 1, 1, 1, 1])])
    asked = strategy(spine, PLAIN, Fraction(1, 2))
    leaf = counts(rng, spine, PLAIN, 20.0)
    true = node_counts(spine, leaf, asked).toarray()
    drawn = measure(spine, leaf, asked, rng.bytes(32))
    assert min(variance for kind in drawn.plan.kinds for variance in kind.variances) >= 4
    keys = [rng.bytes(32) for _ in range(RELEASES)]
    histograms = np.stack([_histograms(estimate(replace(drawn, key=key))) for key in keys])
    _, covariance = dense_fit(drawn)
    errors = (histograms - true)[:, spine.leaves].reshape(RELEASES, -1)
    independent = np.linalg.solve(np.linalg.cholesky(covariance), errors.T)
    squares, values = float((independent**2).sum()), independent.size
    assert is_chi_squared(squares, values, 3)
    for wrong in (0.9, 1.1):
        assert not is_chi_squared(squares / wrong, values, 3)
    assert is_chi_squared(float((independent.mean(axis=1) ** 2).sum()) * RELEASES, len(independent), 3)
    assert is_binomial(int((np.abs(independent) <= REACH).sum()), values, COVERED, 3)
    _require_cells(estimate(drawn), histograms - true, spine)


def _histograms(found: Estimates) -> NDArray[np.float64]:
    """The estimates of all nodes."""
    nodes = np.arange(len(found.covariances.form_of))
    histograms = np.empty((len(nodes), PLAIN.basis.cells))
    for some, values in found.histograms(nodes):
        histograms[some] = values.reshape(len(some), -1)
    return histograms


def _require_cells(stated: Estimates, errors: NDArray[np.float64], spine: Spine) -> None:
    """Bias, variance and coverage of single cells, as an office publishes them."""
    asked = [(level, query) for level in spine.levels for query in ("total", "c", "detailed")]
    cells = sum(stated.at(*one).values.size for one in asked)
    for level, query in asked:
        q = matrix(PLAIN.basis, PLAIN.marginal(query))
        variance = stated.at(level, query).variances
        error = errors[:, spine.node_of[spine.levels.index(level)]] @ q.T
        deviates = error.mean(axis=0) / np.sqrt(variance / RELEASES)
        assert np.abs(deviates).max() < normal_reach(3 * cells), (level, query)
        assert is_chi_squared((error**2).sum(axis=0) / variance, RELEASES, 3 * cells), (level, query)
        inside = (np.abs(error) <= REACH * np.sqrt(variance)).sum(axis=0)
        assert is_binomial(inside, RELEASES, COVERED, 3 * cells), (level, query)


def test_an_unknown_level_is_an_error_that_lists_the_levels() -> None:
    rng = np.random.default_rng(1)
    spine = grown(rng)
    asked = strategy(spine)
    found = estimate(measure(spine, counts(rng, spine, HISTOGRAM), asked, rng.bytes(32)))
    with pytest.raises(Mistakes, match="no level 'county'; choose from country, region, town, block"):
        found.at("county", "total")
    with pytest.raises(Mistakes, match="no level 'county'"):
        known_totals(spine, ("county",))
