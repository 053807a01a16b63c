"""Sums, quotients and independence of estimates with known covariances: coverage and size by simulation."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from discreet.hierarchy.estimate import covariances, estimate, known_totals
from discreet.hierarchy.joint import Cell, Joint
from discreet.hierarchy.measure import measure, plan_of
from discreet.hierarchy.spine import spine_of
from discreet.maths.inference.linear import combination, independence, quotient
from tests.cases import few
from tests.hierarchy.forests import PLAIN, strategy

COVARIANCE = np.array([[9.0, 4.0], [4.0, 16.0]])


def test_a_difference_has_the_variance_of_its_covariance() -> None:
    found = combination(np.array([30.0, 20.0]), COVARIANCE, np.array([1.0, -1.0]), 0.95)
    assert (found.estimate, found.error**2) == pytest.approx((10, 9 + 16 - 2 * 4))
    assert found.high - found.low == pytest.approx(2 * 1.959964 * found.error)
    assert found.p_value == pytest.approx(0.0152, abs=1e-3)
    same = combination(np.array([5.0]), np.zeros((1, 1)), np.ones(1), 0.95)
    assert (same.low, same.high, same.statistic, same.p_value) == (5, 5, None, 0)
    assert combination(np.zeros(1), np.zeros((1, 1)), np.ones(1), 0.95).p_value == 1


@pytest.mark.parametrize("true", [(40.0, 60.0), (5.0, 12.0), (0.0, 9.0), (30.0, 8.0)])
def test_quotients_cover_the_true_one_however_small_the_base(true: tuple[float, float]) -> None:
    rng, draws = np.random.default_rng(5), 4000
    errors = rng.multivariate_normal(np.zeros(2), COVARIANCE, draws)
    covered = 0
    for error in errors:
        found = quotient(np.array(true) + error, COVARIANCE, 0.9)
        covered += found.low <= true[0] / true[1] <= found.high
    # limits end at 0, so that a quotient of 0 is missed on one side only; a base that may be empty bounds nothing
    assert covered / draws > 0.88
    if true[0] > 0 and true[1] > 3 * 4:
        assert covered / draws < 0.92


def test_the_error_of_a_quotient_is_that_to_first_order() -> None:
    found = quotient(np.array([400.0, 1000.0]), COVARIANCE, 0.95)
    assert found.estimate == 0.4
    assert found.error is not None
    assert found.error == pytest.approx(np.sqrt(9 - 2 * 0.4 * 4 + 0.16 * 16) / 1000)
    assert (found.low, found.high) == pytest.approx(
        (0.4 - 1.96 * found.error, 0.4 + 1.96 * found.error), rel=1e-3
    )
    empty = quotient(np.array([3.0, 2.0]), COVARIANCE, 0.95)
    assert (empty.low, empty.high, empty.bounded) == (0, np.inf, False)
    assert quotient(np.array([3.0, -2.0]), COVARIANCE, 0.95).estimate is None


@pytest.mark.parametrize("area", few(["town", "country"], "country"))
def test_the_size_of_the_test_of_independence_is_nominal(area: str) -> None:
    """Releases of independent rows and columns: a twentieth is rejected at 5 %; without the noise many more are."""
    rng, releases = np.random.default_rng(31), 400
    spine = spine_of(("country", "region", "town"), [np.array([0, 0]), np.array([0, 0, 0, 1, 1])])
    asked = strategy(spine, PLAIN, Fraction(1, 10))
    node = int(spine.node_of[spine.levels.index(area)][0])
    unit = [np.eye(3), np.eye(2)]
    cells = [Cell(node, (unit[0][c], unit[1][e])) for c in range(3) for e in range(2)]
    covariance = Joint(covariances(plan_of(spine, asked), known_totals(spine, ()))).matrix(cells)
    shares = np.outer([0.5, 0.3, 0.2], [0.45, 0.55]).reshape(-1)
    found = []
    naive = []
    for _ in range(releases):
        leaf = np.stack([rng.multinomial(300, shares) for _ in range(5)])
        noisy = estimate(measure(spine, csr_array(leaf.astype(np.int64)), asked, rng.bytes(32)))
        ((_, values),) = noisy.histograms(np.array([node]))
        table = values.reshape(3, 2)
        found.append(independence(table, covariance).p_value)
        naive.append(independence(table, 1e-9 * np.eye(6)).p_value)
    assert independence(table, covariance).df == 2
    for level in (0.05, 0.5):
        allowed = 4.5 * np.sqrt(level * (1 - level) / releases)
        assert abs(np.mean(np.array(found) < level) - level) < allowed
    if area == "town":
        assert np.mean(np.array(naive) < 0.05) > np.mean(np.array(found) < 0.05)
