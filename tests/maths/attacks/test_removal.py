"""Beliefs about single counts and the evidence of sums, against full enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.maths.attacks.removal import SPREAD, beliefs, posterior
from discreet.maths.noise.additive import discrete_gaussian, discrete_laplace, uniform
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.maths.noise.publishing import Negatives, PublishedLaw, Publishing


def test_without_estimates_a_belief_is_the_normalised_likelihood() -> None:
    law = PublishedLaw(PTableLaw(solve(PTableParameters(2, 0.6, 0))), Publishing(), keeps_zeros=True)
    found = beliefs(law, np.array([3, 40]), 2)
    assert found is not None
    for value in (0, 1, 3, 40, 5000):
        likelihood = {count: law.row(count).at(value) for count in range(max(value - 2, 0), value + 3)}
        total = sum(likelihood.values())
        row = found.p[found.rows(np.array([value]))[0]]
        for count, p in likelihood.items():
            assert row[count - value + found.reach] == pytest.approx(p / total, abs=1e-12)


def test_estimated_beliefs_follow_the_frequencies_of_counts() -> None:
    """Most cells are empty: a published zero is nearly certainly empty, a published two seldom one."""
    generator = np.random.default_rng(5)
    law = PublishedLaw(discrete_laplace("2"), Publishing(negatives=Negatives.ZERO))
    true = np.where(generator.random(100_000) < 0.95, 0, 1 + generator.poisson(4, 100_000))
    row = law.law.row(0)
    noisy = np.maximum(true + generator.choice(row.values, p=row.p / row.p.sum(), size=len(true)), 0)
    found = beliefs(law, noisy[noisy > 0], len(noisy))
    assert found is not None
    for value in range(8):
        here = true[noisy == value]
        claimed = found.p[found.rows(np.array([value]))[0]]
        for count in range(3 + value):
            share = float((here == count).mean())
            assert claimed[count - value + found.reach] == pytest.approx(share, abs=0.05)


def test_noise_that_spreads_too_far_is_not_attacked() -> None:
    assert beliefs(PublishedLaw(discrete_gaussian("1/10000")), np.array([3]), 1) is None
    assert beliefs(PublishedLaw(uniform(3)), np.array([3]), 1) is not None


def test_the_posterior_is_that_of_enumeration() -> None:
    law = PublishedLaw(uniform(2))
    known = beliefs(law, np.array([10, 11]), 2)
    assert known is not None
    precision, weighted = np.array([0.0, 1 / (0.3 + SPREAD)]), np.array([0.0, 1.2 / (0.3 + SPREAD)])
    found = posterior(known, known.rows(np.array([10, 11])), precision, weighted)
    assert found.p[0] == pytest.approx(1 / 5)
    weights = {c: np.exp(-((c - 1.2) ** 2) / (2 * (0.3 + SPREAD))) for c in range(-2, 3)}
    total = sum(weights.values())
    assert found.best[1] == 1
    assert found.p[1] == pytest.approx(weights[1] / total)
    spread = sum(w * (c - 1) ** 2 for c, w in weights.items()) / total
    assert found.variance[1] == pytest.approx(spread)


def test_evidence_far_outside_the_bound_never_makes_another_count_possible() -> None:
    known = beliefs(PublishedLaw(uniform(1)), np.array([10]), 1)
    assert known is not None
    found = posterior(known, known.rows(np.array([10])), np.array([5.0]), np.array([5.0 * 40]))
    assert found.best[0] == 1
