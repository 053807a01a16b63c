"""Fits within bounds reach the optimum of an interior-point solver."""

from typing import Any

import clarabel
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from discreet.maths.tree.least_squares import with_known_total
from discreet.maths.tree.marginals import by_sums, matrix, precision
from discreet.maths.tree.nonnegative import (
    LARGEST_TOLERANCE,
    TOTAL_TOLERANCE,
    Within,
    fit_blocks,
    fit_support,
    groups_of,
    support_weights,
)
from discreet.maths.tree.projection import project
from discreet.maths.tree.rounding import meeting_sums
from tests.hierarchy.forests import HISTOGRAM

Floats = NDArray[np.floating[Any]]
QUERIES = ("total", "g", "c*e", "detailed", "a*b")
BASIS = HISTOGRAM.basis


def reference(
    weights: list[Floats],
    centre: Floats,
    parent: Floats,
    group: NDArray[np.int64],
    lower: Floats,
    upper: Floats,
) -> Floats:
    """The minimum by Clarabel: children below each other."""
    n, k = centre.shape
    square = sparse.block_diag([sparse.csc_array(one) for one in weights], format="csc")
    linear = -np.concatenate([one @ m for one, m in zip(weights, centre, strict=True)])
    member = sparse.csc_array((np.ones(k), (group, np.arange(k))), shape=(lower.shape[1], k))
    sums = sparse.block_diag([member] * n)
    rows = sparse.vstack([sparse.hstack([sparse.eye_array(k)] * n), -sparse.eye_array(n * k), sums, -sums])
    right = np.concatenate([parent, np.zeros(n * k), upper.reshape(-1), -lower.reshape(-1)])
    cones = [clarabel.ZeroConeT(k), clarabel.NonnegativeConeT(n * k + 2 * lower.size)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    upper_half = sparse.csc_matrix(sparse.triu(square))
    solved = clarabel.DefaultSolver(
        upper_half, linear, sparse.csc_matrix(rows), right, cones, settings
    ).solve()
    assert str(solved.status) == "Solved"
    return np.array(solved.x).reshape(n, k)


def objective(weights: list[Floats], centre: Floats, x: Floats) -> float:
    return float(sum((a - m) @ w @ (a - m) for w, m, a in zip(weights, centre, x, strict=True)))


def problem(seed: int) -> tuple[NDArray[np.int64], Floats, Floats, NDArray[np.int64], Floats, Floats]:
    rng = np.random.default_rng(seed)
    n, cells = int(rng.integers(2, 7)), BASIS.cells
    true = rng.poisson(rng.gamma(0.4, 4.0, cells), (n, cells))
    group = BASIS.places[1].astype(np.int64)[np.arange(cells) % BASIS.width]
    sums = np.stack([true[:, group == g].sum(axis=1) for g in range(3)], axis=1)
    lower = np.maximum(sums - rng.integers(0, 3, sums.shape), 0)
    upper = sums + rng.integers(0, 3, sums.shape)
    upper[0, 0] = lower[0, 0] = 0
    true[0, group == 0] = 0
    noisy = true + rng.normal(0, 3, true.shape)
    return (
        true,
        noisy,
        true.sum(axis=0).astype(np.float64),
        group,
        lower.astype(np.float64),
        upper.astype(np.float64),
    )


FRESH = [pytest.param(seed, marks=pytest.mark.long) for seed in range(70_000, 70_100)]


@pytest.mark.parametrize("seed", [*range(6), *FRESH])
def test_fits_of_children_that_share_weights_reach_the_optimum(seed: int) -> None:
    _, noisy, parent, group, lower, upper = problem(seed)
    rng = np.random.default_rng(seed)
    blocks = precision(
        BASIS, [HISTOGRAM.marginal(query) for query in QUERIES], (rng.random(5) + 0.05).tolist()
    )
    cells = np.flatnonzero(parent > 0)
    weights = support_weights(by_sums(BASIS, blocks), BASIS.places, cells)
    marginals = [matrix(BASIS, HISTOGRAM.marginal(query)) for query in QUERIES]
    rng = np.random.default_rng(seed)
    dense = sum(w * q.T @ q for w, q in zip(rng.random(5) + 0.05, marginals, strict=True))
    np.testing.assert_allclose(weights, dense[np.ix_(cells, cells)], atol=1e-9)
    centre, whole = noisy[:, cells], parent[cells]
    fitted = fit_support(weights, centre @ weights, whole, groups_of(group[cells], 3), lower, upper)
    assert fitted.residual <= 1
    met = meeting_sums(fitted.values, whole.astype(np.int64), group[cells], lower, upper)
    every = [weights] * len(centre)
    best = objective(every, centre, reference(every, centre, whole, group[cells], lower, upper))
    assert objective(every, centre, met) <= 1.005 * best


@pytest.mark.parametrize("seed", [*range(6), *FRESH])
@pytest.mark.parametrize("totals_known", [False, True])
def test_fits_of_different_children_reach_the_optimum(seed: int, totals_known: bool) -> None:
    true, noisy, parent, group, lower, upper = problem(seed)
    rng = np.random.default_rng(seed)
    marginals = [HISTOGRAM.marginal(query) for query in QUERIES]
    n = len(noisy)
    own = [precision(BASIS, marginals, (rng.random(5) + 0.05).tolist()) for _ in range(n)]
    forms = [np.linalg.inv(one) for one in own]
    if totals_known:
        forms = [with_known_total(one)[0] for one in forms]
        noisy += ((true.sum(axis=1) - noisy.sum(axis=1)) / BASIS.cells)[:, None]
    fitted = fit_blocks(
        BASIS,
        noisy.reshape(n, BASIS.d, BASIS.width),
        forms,
        np.arange(n),
        Within(groups_of(group, 3, parent > 0), lower, upper, parent),
        totals_known=totals_known,
    )
    assert fitted.residual <= 1
    assert (fitted.values[:, parent == 0] == 0).all()
    cells = np.flatnonzero(parent > 0)
    met = meeting_sums(
        np.ascontiguousarray(fitted.values[:, cells]),
        parent[cells].astype(np.int64),
        group[cells],
        lower,
        upper,
    )
    if totals_known:
        # known totals hold up to what the fit tolerates; they are met exactly when sums are divided
        most = TOTAL_TOLERANCE * LARGEST_TOLERANCE + 1e-6
        assert np.abs(fitted.values.sum(axis=1) - true.sum(axis=1)).max() <= most
        return
    dense = [support_weights(by_sums(BASIS, one), BASIS.places, np.arange(BASIS.cells)) for one in own]
    inside = [one[np.ix_(cells, cells)] for one in dense]
    # cells fixed at zero move the centre of the others
    centre = np.stack(
        [np.linalg.solve(w, (one @ m)[cells]) for one, w, m in zip(dense, inside, noisy, strict=True)]
    )
    whole, best = np.zeros_like(noisy), np.zeros_like(noisy)
    whole[:, cells] = met
    best[:, cells] = reference(inside, centre, parent[cells], group[cells], lower, upper)
    assert objective(dense, noisy, whole) <= 1.005 * objective(dense, noisy, best)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("steepness", [0.0, 0.3, 50.0])
def test_projections_are_the_nearest_points(seed: int, steepness: float) -> None:
    """Optimality: along every feasible direction to other feasible points the distance grows."""
    rng = np.random.default_rng(seed)
    group = np.sort(rng.integers(0, 3, 12))
    v = rng.normal(0, 3, 12)
    lower = rng.integers(0, 4, 3).astype(np.float64)
    upper = lower + rng.integers(0, 4, 3)
    groups = groups_of(group, 3, rng.random(12) < 0.9)
    out, near = np.zeros(12), np.empty(len(groups.order))
    guess = rng.normal(0, 3)  # any start leads there
    project(v[groups.order], v.sum(), groups.starts, lower[None], upper[None], 0, steepness, guess, near)
    out[groups.order] = near
    free = np.zeros(12, dtype=bool)
    free[groups.order] = True
    assert (out >= 0).all()
    assert (out[~free] == 0).all()
    slope = out - v + steepness * (out - v).sum()
    for g in range(3):
        cells = np.flatnonzero((group == g) & free)
        if not len(cells) or upper[g] == 0:
            assert (out[cells] == 0).all()
            continue
        total = out[cells].sum()
        assert lower[g] - 1e-6 <= total <= upper[g] + 1e-6
        positive = cells[out[cells] > 1e-6]
        moving = slope[positive].mean() if len(positive) else 0.0
        np.testing.assert_allclose(slope[positive], moving, atol=1e-5)  # one multiplier for each group
        assert (slope[cells] >= moving - 1e-5).all()
        if lower[g] + 1e-6 < total < upper[g] - 1e-6 and len(positive):
            assert abs(moving) < 1e-5
        if total > lower[g] + 1e-6:
            assert moving <= 1e-5
        if total < upper[g] - 1e-6 and len(positive):
            assert moving >= -1e-5
