"""Tables that add up: sums, least squares, the bound at zero and whole numbers, each against brute force."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import nnls

from discreet.errors import Mistakes
from discreet.maths import consistent
from discreet.maths.consistent import (
    Lattice,
    Settled,
    consistent_cells,
    lattice,
    least_squares,
    non_negative,
    whole_numbers,
)
from tests.cases import few

Tree = NDArray[np.int32]
FLAT = np.array([-1, 0, 0, 0], dtype=np.int32)
NESTED = np.array([-1, 0, 1, 1, 0, 4, 4, 4], dtype=np.int32)  # total > 2 regions > 2 and 3 areas
RAGGED = np.array([-1, 0, 0, 2, 2, 2], dtype=np.int32)  # one finest node directly below the total
ALONE = np.array([-1], dtype=np.int32)
SHAPES = [(FLAT,), (NESTED,), (FLAT, FLAT), (NESTED, FLAT), (RAGGED, FLAT, NESTED), (ALONE, FLAT), ()]


def finest_cells(trees: tuple[Tree, ...]) -> NDArray[np.int64]:
    """Flat positions of all cells whose nodes have no node below them, in order."""
    finest = [np.flatnonzero(~np.isin(np.arange(len(tree)), tree)) for tree in trees]
    shape = [len(tree) for tree in trees]
    found = [sum(n * int(np.prod(shape[k + 1 :])) for k, n in enumerate(nodes)) for nodes in product(*finest)]
    return np.array(found, dtype=np.int64)


def contains(tree: Tree, node: int, other: int) -> bool:
    while other >= 0 and other != node:
        other = int(tree[other])
    return other == node


def dense(trees: tuple[Tree, ...], cells: Lattice) -> NDArray[np.float64]:
    """A[c, x] = 1 where cell c contains the finest cell x, by looking at every pair."""
    nodes = np.array(cells.nodes).T.reshape(len(cells), len(trees))
    inside = [
        [
            all(contains(t, int(a), int(b)) for t, a, b in zip(trees, one, other, strict=True))
            for other in nodes[: cells.finest]
        ]
        for one in nodes
    ]
    return np.array(inside, dtype=np.float64).reshape(len(cells), cells.finest)


def some(trees: tuple[Tree, ...], seed: int, share: float) -> Lattice:
    """A lattice over a random part of the finest cells."""
    finest = finest_cells(trees)
    kept = np.random.default_rng(seed).random(len(finest)) < share
    kept[0] = True
    return lattice(trees, finest[kept])


@pytest.mark.parametrize("trees", SHAPES)
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_sums_are_sums_and_spread_is_their_transpose(trees: tuple[Tree, ...], share: float) -> None:
    cells = some(trees, 1, share)
    rng = np.random.default_rng(2)
    a, x, u = dense(trees, cells), rng.random(cells.finest), rng.random(len(cells))
    assert len(np.unique(cells.positions)) == len(cells)
    assert np.allclose(cells.sums(x), a @ x)
    assert np.allclose(cells.spread(u), a.T @ u)


@pytest.mark.parametrize("trees", SHAPES)
@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_least_squares_and_its_bound_at_zero_are_those_of_dense_matrices(
    trees: tuple[Tree, ...], share: float, seed: int
) -> None:
    cells = some(trees, seed, share)
    rng = np.random.default_rng(seed)
    a, w = dense(trees, cells), rng.uniform(0.2, 2.0, len(cells))
    y = a @ rng.integers(0, 4, cells.finest) + rng.normal(0, 2, len(cells))
    root = np.sqrt(w)
    wanted, *_ = np.linalg.lstsq(root[:, None] * a, root * y, rcond=None)
    assert np.abs(least_squares(cells, y, w) - wanted).max() < 0.02
    bounded, residual = nnls(root[:, None] * a, root * y)
    found = non_negative(cells, y, w)
    assert found.min() >= 0
    assert np.linalg.norm(root * (a @ found - y)) < residual + 1e-3
    assert np.abs(found - bounded).max() < 0.05


def test_the_estimate_is_never_worse_than_a_measurement() -> None:
    """Gauss-Markov: its covariance A (A'WA)^-1 A' is at most that of the noise, cell by cell."""
    for trees in SHAPES:
        cells = some(trees, 3, 0.7)
        a, w = dense(trees, cells), np.random.default_rng(4).uniform(0.1, 3.0, len(cells))
        covariance = a @ np.linalg.inv(a.T @ (w[:, None] * a)) @ a.T
        assert (np.diag(covariance) <= 1 / w + 1e-9).all()


@pytest.mark.parametrize("seed", range(20))
def test_settled_sums_come_out_exactly_and_nothing_is_negative(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = some((NESTED, FLAT, FLAT), seed, 0.6)
    group = rng.integers(0, 6, cells.finest)
    names, group = np.unique(group, return_inverse=True)
    settled = Settled(group.astype(np.int64), rng.integers(0, 9, len(names)) * rng.integers(0, 2, len(names)))
    y, w = rng.normal(3, 5, len(cells)), rng.uniform(0.1, 2.0, len(cells))
    found = consistent_cells(cells, y, w, settled)
    assert found.dtype == np.int64
    assert found.min() >= 0
    assert np.array_equal(np.bincount(group, weights=found, minlength=len(names)), settled.sums)


def test_settled_least_squares_is_that_of_dense_matrices() -> None:
    cells = some((NESTED, FLAT), 5, 1.0)
    a, rng = dense((NESTED, FLAT), cells), np.random.default_rng(5)
    y, w = rng.normal(4, 2, len(cells)), rng.uniform(0.5, 1.5, len(cells))
    group = (np.arange(cells.finest) % 4).astype(np.int64)
    sums = np.array([9, 20, 7, 16], dtype=np.int64)
    gram, right = a.T @ (w[:, None] * a), a.T @ (w * y)
    held = (group[None, :] == np.arange(4)[:, None]).astype(float)
    whole = np.block([[gram, held.T], [held, np.zeros((4, 4))]])
    wanted = np.linalg.solve(whole, np.concatenate([right, sums]))[: cells.finest]
    assert np.abs(least_squares(cells, y, w, Settled(group, sums)) - wanted).max() < 0.02


@pytest.mark.parametrize("seed", few(range(5), 0, 3))
def test_whole_numbers_are_nearly_the_best_ones(seed: int) -> None:
    """Two by two cells: all tables near the fit are enumerated."""
    pair = np.array([-1, 0, 0], dtype=np.int32)
    cells, rng = some((pair, pair), 1, 1.0), np.random.default_rng(seed)
    a, w = dense((pair, pair), cells), np.ones(len(cells))
    y = a @ rng.integers(0, 5, cells.finest) + np.rint(rng.normal(0, 2, len(cells)))

    def squares(x: NDArray[np.float64]) -> float:
        return float(np.sum(w * (a @ x - y) ** 2))

    best = min(squares(np.array(x, dtype=np.float64)) for x in product(range(14), repeat=4))
    found = squares(consistent_cells(cells, y, w).astype(np.float64))
    assert found <= best + 4.0  # less than one more unit in two margins


def test_rounding_does_not_add_up_in_the_margins() -> None:
    """A thousand cells of 0.05 are 50 people: rounding each cell would publish none of them."""
    wide = np.array([-1, *[0] * 100], dtype=np.int32)
    narrow = np.array([-1, *[0] * 10], dtype=np.int32)
    trees = (wide, narrow)
    cells = lattice(trees, finest_cells(trees))
    x = np.full(cells.finest, 0.05)
    y, w = cells.sums(x), np.ones(len(cells))
    found = cells.sums(whole_numbers(cells, x, y, w).astype(np.float64))
    assert abs(found[cells.positions == 0].item() - 50) <= 2
    assert np.abs(found[(cells.nodes[0] == 0) & (cells.nodes[1] > 0)] - 5).max() <= 2


def test_adding_up_makes_the_errors_of_every_margin_smaller() -> None:
    """A sparse table, all noise alike: errors before (negatives as zero) and after, by the number of axes."""
    trees = (NESTED, np.array([-1, *[0] * 12], dtype=np.int32), FLAT)
    cells = lattice(trees, finest_cells(trees))
    rng = np.random.default_rng(11)
    depth = sum((nodes > 0).astype(int) for nodes in cells.nodes)
    before, after = np.zeros((4, 2)), np.zeros(4)
    for _ in range(30):
        true = np.floor(rng.gamma(0.3, 10, cells.finest))
        truth = cells.sums(true)
        y = truth + np.rint(rng.normal(0, 3, len(cells)))
        found = cells.sums(consistent_cells(cells, y, np.full(len(cells), 1 / 9)).astype(np.float64))
        for axes in range(4):
            here = depth == axes
            before[axes] += [((y - truth)[here] ** 2).mean(), ((np.maximum(y, 0) - truth)[here] ** 2).mean()]
            after[axes] += ((found - truth)[here] ** 2).mean()
    assert (after < 0.95 * before.min(axis=1)).all(), (after, before)
    assert (after[1:] < 0.75 * before[1:].min(axis=1)).all(), (after, before)


def test_no_cells_are_no_cells() -> None:
    cells = lattice((FLAT, NESTED), np.zeros(0, dtype=np.int64))
    assert len(cells) == 0
    assert len(consistent_cells(cells, np.zeros(0), np.zeros(0))) == 0


def test_counts_that_noise_cannot_explain_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit that ended too early would publish them: cells below zero are cut off, and a total is far too large."""
    trees = (np.array([-1] + [0] * 30, dtype=np.int32), np.array([-1] + [0] * 40, dtype=np.int32))
    cells = lattice(trees, finest_cells(trees))
    rng, deviation = np.random.default_rng(2), 200.0
    true = rng.multinomial(3000, rng.dirichlet(np.full(cells.finest, 0.02))).astype(float)
    y = cells.sums(true) + np.rint(rng.normal(0, deviation, len(cells)))
    w = np.full(len(cells), deviation**-2)
    assert abs(int(consistent_cells(cells, y, w).sum()) - 3000) < 4 * deviation
    cut_off = np.maximum(y[: cells.finest], 0)
    monkeypatch.setattr(consistent, "non_negative", lambda *given: cut_off)
    with pytest.raises(Mistakes, match="the fit did not come to its end"):
        consistent_cells(cells, y, w)
