"""Random subset queries: reconstruction where the theorem says it succeeds, and not where it cannot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import pytest

from discreet.errors import Mistakes
from discreet.maths.attacks import subsets
from discreet.maths.attacks.subsets import (
    AddedNoise,
    CellKeys,
    SharedBudget,
    SubsetAnswers,
    SubsetReconstruction,
    least_squares,
    predicted_share,
    queries_of_theorem,
)
from discreet.maths.noise.additive import discrete_laplace, uniform
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve


def reconstruct_subsets(
    answers: SubsetAnswers, records: int, queries: int, repetitions: int, seed: int
) -> SubsetReconstruction:
    def draws(which: Sequence[int]) -> np.random.Generator:
        return np.random.default_rng([seed, *which])

    return subsets.reconstruct_subsets(answers, records, queries, repetitions, draws)


CKM = CellKeys(PTableLaw(solve(PTableParameters(5, 2.0, 0))))


@pytest.mark.parametrize("records", [64, 256])
def test_noise_below_the_root_of_n_falls_to_n_log2_n_queries(records: int) -> None:
    below = AddedNoise(uniform(math.isqrt(records) // 4))
    found = reconstruct_subsets(below, records, queries_of_theorem(records), 5, 1)
    assert found.share > 0.995


@pytest.mark.parametrize("records", [64, 256])
def test_noise_of_the_order_of_n_withstands_as_many(records: int) -> None:
    found = reconstruct_subsets(AddedNoise(uniform(records)), records, queries_of_theorem(records), 10, 1)
    assert found.share < 0.65


def test_the_cell_key_method_falls_to_a_few_queries_for_each_record() -> None:
    assert reconstruct_subsets(CKM, 128, 512, 5, 1).share > 0.995
    assert reconstruct_subsets(CKM, 128, 128, 10, 1).share == pytest.approx(0.89, abs=0.03)


def test_a_budget_that_all_queries_share_withstands_any_number_of_them() -> None:
    budget = SharedBudget(1.0)
    for queries in (16, 128, queries_of_theorem(128)):
        found = reconstruct_subsets(budget, 128, queries, 10, 1)
        assert abs(found.share - 0.5) < 4 * 0.5 / math.sqrt(1280) + 0.03
    fresh = AddedNoise(discrete_laplace("1"))  # the same epsilon for each answer is no budget
    assert reconstruct_subsets(fresh, 128, queries_of_theorem(128), 5, 1).share > 0.999


@pytest.mark.parametrize(
    ("answers", "queries"),
    [
        (CKM, 64),
        (CKM, 128),
        (CKM, 200),
        (AddedNoise(uniform(20)), 256),
        (AddedNoise(uniform(20)), 1024),
        (SharedBudget(200.0), 512),
        (SharedBudget(50.0), 512),
    ],
)
def test_the_predicted_share_is_found(answers: SubsetAnswers, queries: int) -> None:
    found = reconstruct_subsets(answers, 128, queries, 20, 3)
    assert found.share == pytest.approx(found.predicted, abs=4 * found.error + 0.01)


def test_more_noise_and_fewer_queries_never_help() -> None:
    shares = [[predicted_share(100, m, sd) for m in (10, 100, 1000)] for sd in (0.1, 1.0, 10.0)]
    assert all(a < b for row in shares for a, b in pairwise(row))
    assert all(a >= b for a, b in pairwise(shares))
    assert predicted_share(100, 1000, 0.0) == 1.0


def test_the_estimate_is_the_linear_posterior_mean() -> None:
    """Both systems of equations give the estimate that minimises |A c - y|^2 / sigma^2 + 4 |c - 1/2|^2."""
    generator = np.random.default_rng(4)
    for queries, records in ((3, 6), (9, 6)):
        asked = generator.random((queries, records)) < 0.5
        y = generator.integers(0, 5, queries)
        found = least_squares(asked, y, 1.3)
        A = asked.astype(float)
        gradient = A.T @ (A @ found - y) / 1.3**2 + 4 * (found - 0.5)
        assert np.abs(gradient).max() < 1e-9


def test_without_noise_all_subsets_of_few_records_give_every_bit() -> None:
    asked = np.array(list(product([False, True], repeat=4)))
    for bits in product([False, True], repeat=4):
        y = (asked & np.array(bits)).sum(axis=1)
        assert ((least_squares(asked, y, 0.0) > 0.5) == np.array(bits)).all()


def test_cell_keys_give_equal_groups_equal_answers_and_keep_zeros() -> None:
    generator = np.random.default_rng(1)
    bits = np.array([True, True, False, False, True])
    asked = np.array([[1, 1, 0, 0, 0], [1, 1, 1, 1, 0], [0, 0, 1, 1, 0]], dtype=bool)
    for _ in range(50):
        first, second, empty = CKM.answer(asked, bits, generator).tolist()
        assert first == second
        assert empty == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"records": 1},
        {"records": -1},
        {"records": 10**6},
        {"queries": 0},
        {"repetitions": 0},
        {"repetitions": 10**12},
    ],
)
def test_what_cannot_be_computed_is_refused(wrong: dict[str, int]) -> None:
    given = {"records": 10, "queries": 10, "repetitions": 1} | wrong
    with pytest.raises(Mistakes, match=next(iter(wrong))):
        reconstruct_subsets(CKM, seed=1, **given)
