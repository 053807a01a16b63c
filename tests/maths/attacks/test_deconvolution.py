import numpy as np
import pytest

from discreet.maths.attacks.disclosure import mixture
from discreet.maths.noise.additive import truncated_laplace
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Pmf
from discreet.maths.noise.ptable_solver import PTableParameters, solve

COUNTS = range(1, 40)


def test_without_noise_the_weights_are_the_shares() -> None:
    sure = [(count, Pmf(count, np.ones(1))) for count in COUNTS]
    found = mixture(sure, 1, [5, 3, 2])
    assert found.counts == (1, 2, 3)
    assert found.joint.sum(axis=1) == pytest.approx([0.5, 0.3, 0.2])
    assert [found.chance_true(value) for value in (1, 2, 3)] == pytest.approx([1, 1, 1])


def test_the_chance_comes_back_from_expected_numbers() -> None:
    law = PTableLaw(solve(PTableParameters(5, 2.0, 0)))
    laws = [(count, law.row(count)) for count in COUNTS]
    true = np.array([1000 / count**1.5 for count in COUNTS])
    p = np.array([[row.at(j) for j in range(1, 30)] for _, row in laws])
    seen = np.round(1000 * (true @ p)).astype(int).tolist()
    found = mixture(laws, 1, seen)
    for value in (1, 2):
        exact = true[value - 1] * p[value - 1, value - 1] / (true @ p[:, value - 1])
        assert found.chance_true(value) == pytest.approx(exact, abs=0.03)


def test_empty_cells_that_are_perturbed_lower_the_chance() -> None:
    law = truncated_laplace(1, 10)
    laws = [(count, law.row(count).negatives_to_zero()) for count in range(30)]
    true = np.array([50_000.0, *(1000 / count for count in range(1, 30))])
    p = np.array([[row.at(j) for j in range(20)] for _, row in laws])
    found = mixture(laws, 0, np.round(true @ p).astype(int).tolist())
    exact = true[1] * p[1, 1] / (true @ p[:, 1])
    assert exact < 0.06
    assert found.chance_true(1) == pytest.approx(exact, abs=0.03)


def test_values_that_cannot_be_have_no_chance() -> None:
    sure = [(5, Pmf(3, np.ones(1)))]
    found = mixture(sure, 1, [0, 0, 4])
    assert found.chance_true(1) is None
    assert found.chance_true(0) is None
    assert found.chance_true(3) == 0.0
