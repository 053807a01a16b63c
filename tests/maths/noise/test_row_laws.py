import math

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.maths.noise.additive import Law, truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw, hellinger, tail_bound
from discreet.maths.noise.law import Loss
from discreet.maths.noise.ptable_solver import PTableParameters, solve

TABLE = solve(PTableParameters(5, 2.0, 0))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_hellinger_noise_is_epsilon_private_and_not_much_better(epsilon: float) -> None:
    law = hellinger(epsilon)
    worst = law.epsilon(0)
    assert epsilon / 2 < worst <= epsilon * (1 + 1e-12)
    # no later pair of counts is worse than the first ones
    for i in (5, 20, 50):
        later = max(float(np.max(np.abs(np.log(law.row(i).p[:2000]) - np.log(law.row(i + 1).p[:2000])))), 0.0)
        assert later < worst


def test_hellinger_rows() -> None:
    row = hellinger(2).row(4)
    ratio = row.at(9) / row.at(4)
    assert ratio == pytest.approx(math.exp(-1), rel=1e-12)
    assert row.p.sum() == pytest.approx(1)
    assert row.first == 0
    # poor utility: the mean distance is far above that of the truncated Laplace law of the same epsilon
    laplace = truncated_laplace(2, 7).row(4).expected_loss(4, Loss.L1)
    assert row.expected_loss(4, Loss.L1) > 5 * laplace


def test_hellinger_noise_too_wide_to_tabulate_is_refused() -> None:
    with pytest.raises(Mistakes, match="less noise"):
        hellinger(0.001)


def test_ptable_rows_shift_beyond_the_last() -> None:
    law = PTableLaw(TABLE)
    last = TABLE.last_row
    assert np.array_equal(law.row(last + 7).p, law.row(last).p)
    assert law.row(last + 7).first == law.row(last).first + 7
    assert law.row(0).at(0) == 1
    assert law.row(1).mean == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 10.0])
def test_fixed_zeros_leave_delta_large_at_every_epsilon(epsilon: float) -> None:
    law: Law = PTableLaw(TABLE)
    assert law.delta(epsilon) >= 1 - law.row(1).at(0) - 1e-12
    assert law.epsilon(1e-6) == math.inf
    assert law.rho is None


def test_delta_of_a_ptable_is_the_largest_over_neighbours_and_directions() -> None:
    law, epsilon = PTableLaw(TABLE), 0.8
    dense = np.zeros((TABLE.last_row + 2, 40))
    for i in range(len(dense)):
        row = law.row(i)
        dense[i, row.values] = row.p
    pairs = [(dense[i], dense[i + 1]) for i in range(len(dense) - 1)]
    by_hand = max(
        np.maximum(p - math.exp(epsilon) * q, 0).sum() for a, b in pairs for p, q in ((a, b), (b, a))
    )
    assert law.delta(epsilon) == pytest.approx(by_hand, rel=1e-12)


def test_a_hellinger_row_states_what_it_omits_and_its_rho() -> None:
    """A row twice as long has no more than that beyond the end of the reported one."""
    law = hellinger(6)
    for count in (0, 1, 9):
        row = law.row(count)
        longer = np.exp(-3 * np.abs(np.sqrt(np.arange(2 * len(row.p))) - math.sqrt(count)))
        beyond = float(longer[len(row.p) :].sum() / longer.sum())
        assert 0 < beyond <= row.omitted <= 2.0**-100
        assert row.p == pytest.approx(longer[: len(row.p)] / longer.sum())
    assert law.rho == 18.0


@pytest.mark.parametrize("c", [0.7, 3.0, 5.0])
@pytest.mark.parametrize("beyond", [2.5, 4.0, 11.3])
def test_the_bound_of_a_tail_is_above_its_sum_and_not_far(c: float, beyond: float) -> None:
    j = np.arange(math.ceil(beyond**2) + 1, math.floor((beyond + 60 / c) ** 2), dtype=float)
    tail = float(np.exp(-c * (np.sqrt(j) - 1.5)).sum())
    first = math.exp(-c * (beyond - 1.5))
    assert tail <= tail_bound(c, 1.5, beyond) <= tail + 2 * first
