import numpy as np
import pytest

from discreet.maths.attacks.corrections import evidence, hidden_by_law, hidden_by_variance, posterior
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Pmf
from discreet.maths.noise.ptable_solver import PTableParameters, solve


def test_a_change_is_hidden_where_new_noise_takes_the_newcomer_back() -> None:
    assert hidden_by_law(Pmf(-1, np.array([0.25, 0.5, 0.25]))) == pytest.approx(0.25)
    law = PTableLaw(solve(PTableParameters(5, 2.0, 0))).row(1000).shifted(-1000)
    noise = np.random.default_rng(1).choice(law.values, size=(2, 400_000), p=law.p)
    assert hidden_by_law(law) == pytest.approx((noise[1] + 1 == noise[0]).mean(), abs=0.003)
    assert hidden_by_variance(2.0) == pytest.approx(hidden_by_law(law), abs=0.02)
    assert hidden_by_variance(0.0) == pytest.approx(1e-6)


def test_evidence_is_the_ratio_of_the_likelihoods() -> None:
    hit, miss = evidence(0.2, 0.01)
    assert (hit, miss) == pytest.approx((np.log(0.8 / 0.01), np.log(0.2 / 0.99)))
    assert evidence(0.2, 0.99)[0] == 0.0  # where all cells change a changed one says nothing
    assert posterior(np.log([0.2, 0.6])).tolist() == pytest.approx([0.25, 0.75])
