from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.maths.attacks.differencing import MOST_FREQUENCIES, cancel
from discreet.maths.noise.additive import discrete_gaussian, discrete_laplace, uniform
from discreet.maths.noise.law import Pmf

weights = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)
laws = st.builds(lambda first, w: Pmf(first, np.array(w) / sum(w)), st.integers(-4, 4), weights)
parts = st.lists(st.tuples(laws, st.integers(1, 3)), max_size=3)


def by_convolution(added: list[tuple[Pmf, int]], subtracted: list[tuple[Pmf, int]]) -> float:
    total = {0: 1.0}
    for sign, side in ((1, added), (-1, subtracted)):
        for law, many in side:
            for _ in range(many):
                grown: dict[int, float] = {}
                for value, p in total.items():
                    for change, q in zip(law.values.tolist(), law.p.tolist(), strict=True):
                        grown[value + sign * change] = grown.get(value + sign * change, 0.0) + p * q
                total = grown
    return total.get(0, 0.0)


@settings(max_examples=150, deadline=None)
@given(parts, parts)
def test_it_is_the_probability_of_the_plain_convolution(
    added: list[tuple[Pmf, int]], subtracted: list[tuple[Pmf, int]]
) -> None:
    assert cancel(dict(added), dict(subtracted)) == pytest.approx(
        by_convolution(added, subtracted), abs=1e-12
    )


def test_two_uniform_noises_cancel_in_one_of_their_values() -> None:
    assert cancel({uniform(5).pmf: 1}, {uniform(5).pmf: 1}) == pytest.approx(1 / 11)
    assert cancel({}, {}) == pytest.approx(1.0)


def test_many_wide_noises_are_near_the_normal_density_and_never_below() -> None:
    law = discrete_gaussian("1/2000").pmf  # sigma about 31.6, wider than the frequencies when summed
    density = 1 / np.sqrt(2 * np.pi * 400 * law.variance)
    assert 400 * len(law.p) > MOST_FREQUENCIES
    assert cancel({law: 400}, {}) == pytest.approx(density, rel=1e-3)
    wide = discrete_laplace("1/2000").pmf
    assert cancel({wide: 500}, {}) >= 0.99 / MOST_FREQUENCIES


def test_sums_far_from_zero_are_not_taken_for_zero() -> None:
    """Sixteen noises of -8 or 8: their sums are multiples of 16, and zero is one of seventeen."""
    coin = Pmf(-8, np.array([0.5, *[0.0] * 15, 0.5]))
    assert cancel({coin: 16}, {}) == pytest.approx(comb(16, 8) / 2**16)
    assert cancel({coin: 8}, {coin: 8}) == pytest.approx(comb(16, 8) / 2**16)
