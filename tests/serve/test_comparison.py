"""Ranges of shares and comparisons contain the true ones at least as often as they state."""

from statistics import NormalDist

import numpy as np
import pytest

from discreet.serve.comparison import Comparison, Ranges, compared, compared_ranges, level_of_each

LEVEL = 0.95
TIMES = 20_000


@pytest.mark.parametrize("kind", list(Comparison))
@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_ranges_contain_the_true_comparison_however_the_noise_is_related(kind: Comparison, sign: int) -> None:
    rng = np.random.default_rng(5)
    true_a, true_b, spread = 400.0, 900.0, 20.0
    noise = rng.normal(0, spread, TIMES)
    a, b = true_a + noise, true_b + (sign * noise if sign else rng.normal(0, spread, TIMES))
    true = compared(kind, np.array([true_a]), np.array([true_b]))[0]

    def covered(reach: float) -> float:
        found = compared_ranges(
            kind, Ranges(a - reach, a + reach), Ranges(b - reach, b + reach), np.zeros(TIMES, bool)
        )
        return float(((found.low <= true) & (true <= found.high)).mean())

    each = NormalDist(0, spread).inv_cdf((1 + level_of_each(LEVEL)) / 2)
    assert covered(each) >= LEVEL
    assert sign == 1 or covered(each / 3) < LEVEL, "narrower ones would not do"


def test_limits_of_ratios() -> None:
    low, high = np.array([0.0, 5.0, 5.0, np.nan]), np.array([3.0, 9.0, 9.0, np.nan])
    bases = Ranges(np.array([0.0, 0.0, 10.0, 10.0]), np.array([0.0, 4.0, 20.0, 20.0]))
    found = compared_ranges(
        Comparison.RATIO, Ranges(low, high), bases, np.array([False, False, False, False])
    )
    assert found.low.tolist()[:3] == [0.0, 1.25, 0.25]
    assert found.high.tolist()[:3] == [np.inf, np.inf, 0.9]
    assert np.isnan(found.low[3])
    assert np.isnan(found.high[3])
    share = compared_ranges(Comparison.SHARE, Ranges(low, high), bases, np.zeros(4, bool))
    assert share.high[1] == 1
    same = compared_ranges(Comparison.INDEX, Ranges(low, high), bases, np.ones(4, bool))
    assert same.low.tolist() == same.high.tolist() == [100.0] * 4
    assert np.isnan(compared(Comparison.RATIO, np.array([3.0]), np.array([0.0])))[0]
