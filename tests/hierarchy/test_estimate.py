"""The estimates are the dense least squares ones, unbiased, and as variable as forecast."""

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.hierarchy.estimate import Totals, estimate, forecast, known_totals
from discreet.hierarchy.measure import ancestors, measure, node_counts
from discreet.hierarchy.spine import Spine, spine_of
from discreet.maths.noise.additive import LawKind
from discreet.maths.tree.marginals import matrix
from discreet.programme.strategy import Histogram, Strategy
from tests.hierarchy.forests import HISTOGRAM, PLAIN, counts, dense_fit, grown, strategy

QUERIES = {HISTOGRAM: ("total", "detailed", "g", "a*c", "b*e", "g*c"), PLAIN: ("total", "c", "detailed")}


def exact_totals(spine: Spine, asked: Strategy, leaf: object, levels: tuple[str, ...]) -> Totals:
    known = known_totals(spine, levels)
    values = node_counts(spine, leaf, asked).sum(axis=1)
    return Totals(levels, known, np.where(known, values, 0).astype(np.int64))


@pytest.mark.parametrize("histogram", [HISTOGRAM, PLAIN], ids=["unequal groups and zeros", "regular"])
@pytest.mark.parametrize("levels", [(), ("country",), ("region",), ("country", "block")], ids=str)
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
                    variance = np.einsum("ij,jk,ik->i", whole, covariance, whole)
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


def test_estimates_are_unbiased_with_nominal_coverage() -> None:
    """400 releases: mean error, variance and coverage of 95 % intervals over all leaf cells and totals."""
    rng = np.random.default_rng(11)
    spine = spine_of(("country", "region", "town"), [np.array([0, 0]), np.array([0, 0, 0, 1])])
    asked = strategy(spine, PLAIN)
    leaf = counts(rng, spine, PLAIN, 20.0)
    true = node_counts(spine, leaf, asked).toarray()
    errors: dict[tuple[str, str], list[np.ndarray]] = {}
    variances = {}
    for _ in range(400):
        found = estimate(measure(spine, leaf, asked, rng.bytes(32)))
        for level, query in (
            (spine.levels[-1], "detailed"),
            (spine.levels[-1], "total"),
            ("country", "total"),
        ):
            got = found.at(level, query)
            q = matrix(PLAIN.basis, PLAIN.marginal(query))
            at = true[spine.node_of[spine.levels.index(level)]] @ q.T
            errors.setdefault((level, query), []).append(got.values - at)
            variances[level, query] = got.variances
    for key, found_errors in errors.items():
        error, variance = np.stack(found_errors), variances[key]
        deviates = error.mean(axis=0) / np.sqrt(variance / len(error))
        assert np.abs(deviates).max() < 4.5, key
        ratio = (error**2).mean() / variance.mean()
        assert abs(ratio - 1) < 5 * np.sqrt(2 / len(error)), key  # as if all errors of one release were one
        covered = (np.abs(error) <= 1.959964 * np.sqrt(variance)).mean()
        assert abs(covered - 0.95) < 0.03, key


def test_an_unknown_level_is_an_error_that_lists_the_levels() -> None:
    rng = np.random.default_rng(1)
    spine = grown(rng)
    asked = strategy(spine)
    found = estimate(measure(spine, counts(rng, spine, HISTOGRAM), asked, rng.bytes(32)))
    with pytest.raises(Mistakes, match="no level 'county'; choose from country, region, town, block"):
        found.at("county", "total")
    with pytest.raises(Mistakes, match="no level 'county'"):
        known_totals(spine, ("county",))
