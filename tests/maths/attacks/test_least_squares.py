"""Least squares over published cells: against dense linear algebra, a general solver, and by what must be true."""

from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize

from discreet.maths.attacks.least_squares import (
    MOST_STEPS,
    Families,
    Sums,
    attained_variances,
    bounded,
    equations_of,
    errors,
    exact_variances,
    project,
    solve,
    tighten,
)
from tests.cases import few

Floats = NDArray[np.float64]


def table(*sizes: int) -> tuple[Sums, Floats]:
    """A full table with all margins (code 0 is the total of an axis), and its cells by its finest ones."""
    shape = tuple(size + 1 for size in sizes)
    cells = list(product(*(range(size) for size in shape)))
    number = {cell: at for at, cell in enumerate(cells)}
    which, totals, parts = [], [], []
    for cell in cells:
        for axis, size in enumerate(sizes):
            if cell[axis] == 0:
                for code in range(1, size + 1):
                    which.append(len(cells) * axis + number[cell])
                    totals.append(number[cell])
                    parts.append(number[(*cell[:axis], code, *cell[axis + 1 :])])
    zero = np.zeros(len(which))
    made = equations_of(
        len(cells), [Families(np.array(which), np.array(totals), np.array(parts), zero, zero)]
    )
    finest = [cell for cell in cells if 0 not in cell]
    adds = np.array(
        [[all(c in (0, f) for c, f in zip(cell, one, strict=True)) for one in finest] for cell in cells]
    )
    return made, adds.astype(float)


def best(adds: Floats, variances: NDArray[np.float32]) -> Floats:
    """The matrix of the best linear unbiased estimates of all cells: A (A' W A)^-1 A' W."""
    weighted = adds.T / variances
    found: Floats = adds @ np.linalg.solve(weighted @ adds, weighted)
    return found


def matrix(equations: Sums) -> Floats:
    """B: one row for each equation, +1 for the total and -1 for each part."""
    found = np.zeros((len(equations), equations.cells))
    for row, total in enumerate(equations.totals):
        found[row, total] += 1
        for part in equations.parts[equations.starts[row] : equations.starts[row + 1]]:
            found[row, part] -= 1
    return found


def settled(equations: Sums, variances: NDArray[np.float32], values: Floats) -> tuple[float, int]:
    """The root mean square of what the steps leave, in standard deviations of the noise, and how many there were."""
    b, gaps = matrix(equations), equations.gaps(values)
    system = (b * variances) @ b.T + np.diag(equations.doubt)
    exact = variances[:, None] * (b.T @ np.linalg.lstsq(system, gaps, rcond=1e-9)[0])
    found = solve(equations, variances, gaps)
    return float(((found.change - exact) ** 2 / variances[:, None]).mean() ** 0.5), found.steps


@pytest.mark.parametrize("doubt", few([0.0, 0.1, 3.0], 1))
@pytest.mark.parametrize("sizes", [(30, 12), (8, 9, 7), (3, 4, 3, 5)])
def test_steps_end_near_the_solution(sizes: tuple[int, ...], doubt: float) -> None:
    """Doubts of redundant sums make the system nearly singular; the end of the steps must not be deceived by it."""
    equations, adds = table(*sizes)
    generator = np.random.default_rng(3)
    variances = np.where(generator.random(len(adds)) < 0.3, 0.7, 2.0).astype(np.float32)
    doubts = np.where(generator.random(len(equations)) < 0.7, doubt, 20 * doubt).astype(np.float32)
    hidden = np.sqrt(doubts) * generator.standard_normal(len(equations))
    equations = replace(equations, doubt=doubts, hidden=hidden.astype(np.float32))
    true = adds @ generator.poisson(3, (adds.shape[1], 1))
    values = true + np.sqrt(variances)[:, None] * generator.standard_normal((len(adds), 4))
    left, steps = settled(equations, variances, values)
    assert left < 0.015
    assert steps < MOST_STEPS


def test_a_cell_may_be_several_parts_of_a_sum_or_its_total() -> None:
    """Groups that only look alike lead to such sums: 0 = 1 + 1 + 2, 3 = 3 + 4, 0 = 3 + 5."""
    which, totals = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([0, 0, 0, 3, 3, 0, 0])
    families = Families(which, totals, np.array([1, 1, 2, 3, 4, 3, 5]), np.zeros(7), np.full(7, 0.1))
    values = np.random.default_rng(2).normal(20, 3, (6, 3))
    left, _ = settled(equations_of(6, [families]), np.full(6, 2, np.float32), values)
    assert left < 0.015


@pytest.mark.parametrize("sizes", [(4,), (2, 3), (3, 2, 4), (1, 3)])
def test_estimates_and_variances_are_those_of_dense_least_squares(sizes: tuple[int, ...]) -> None:
    equations, adds = table(*sizes)
    generator = np.random.default_rng(prod(sizes))
    variances = generator.uniform(0.5, 3, len(adds)).astype(np.float32)
    values = generator.normal(50, 9, (len(adds), 3))
    hat = best(adds, variances)
    assert np.allclose(project(equations, variances, values), hat @ values, atol=0.05)
    assert np.abs(errors(equations, variances, values - 50) - hat @ (values - 50)).max() < 0.05
    cells = np.arange(len(adds))
    assert np.allclose(exact_variances(equations, variances, cells), np.diag(hat * variances), rtol=0.03)


def test_equal_variances_of_a_full_table_have_a_closed_form() -> None:
    """One part of n with a total: 1 - 1/(n+1); along several axes the product."""
    equations, _ = table(2, 5)
    found = exact_variances(equations, np.ones(18, np.float32), np.arange(18)).reshape(3, 6)
    along = [np.array([n / (n + 1)] * (n + 1)) for n in (2, 5)]
    assert np.allclose(found, np.outer(*along), rtol=1e-3)


def test_the_variance_is_that_of_simulated_errors() -> None:
    equations, _ = table(3, 3)
    variances = np.full(16, 2.0, np.float32)
    noise = np.random.default_rng(1).normal(0, 2**0.5, (16, 4000))
    found = errors(equations, variances, noise).var(axis=1)
    assert np.allclose(found, exact_variances(equations, variances, np.arange(16)), rtol=0.12)


@pytest.mark.parametrize("seed", range(4))
def test_bounded_estimates_are_those_of_a_general_solver(seed: int) -> None:
    equations, adds = table(3, 4)
    generator = np.random.default_rng(seed)
    finest = generator.integers(0, 3, adds.shape[1])
    true = adds @ finest
    noise = generator.integers(-2, 3, len(true))
    values = true + noise
    low, high = np.maximum(values - 2, 0), np.maximum(values + 2, 1)
    variances = np.full(len(true), 2.0, np.float32)
    found = bounded(equations, variances, values, low, high)
    assert np.abs(equations.gaps(found[:, None])).max() < 0.2
    assert (found >= low).all()
    assert (found <= high).all()
    wanted = minimize(
        lambda x: (((adds @ x - values) ** 2).sum(), 2 * adds.T @ (adds @ x - values)),
        finest,
        jac=True,
        constraints=LinearConstraint(adds, low, high),
        method="SLSQP",
        options={"maxiter": 500},
    )
    assert wanted.success
    assert ((found - values) ** 2).sum() == pytest.approx(wanted.fun, rel=0.05, abs=0.05)


def test_bounds_are_tightened_by_sums_and_never_lose_the_true_counts() -> None:
    equations, adds = table(2, 2)
    generator = np.random.default_rng(5)
    pinned = 0
    for _ in range(200):
        true = (adds @ generator.integers(0, 4, adds.shape[1])).astype(np.int64)
        low = true - generator.integers(0, 3, len(true))
        high = true + generator.integers(0, 3, len(true))
        before = (low == high).sum()
        tighten(equations, low, high)
        assert (low <= true).all()
        assert (true <= high).all()
        pinned += (low == high).sum() - before
    assert pinned > 100


def test_a_family_of_one_part_that_is_the_total_says_nothing() -> None:
    zero = np.zeros(3)
    families = Families(np.array([0, 1, 1]), np.array([4, 2, 2]), np.array([4, 0, 1]), zero, zero)
    equations = equations_of(5, [families])
    assert len(equations) == 1
    assert equations.totals.tolist() == [2]
    assert equations.parts.tolist() == [0, 1]
    assert equations.uses.tolist() == [1, 1, 1, 0, 0]


def test_what_is_hidden_is_expected_but_doubted() -> None:
    """10 = 3 + 4 + hidden (mean 1, much doubt): almost nothing changes; without doubt the gap of 2 is shared."""
    for doubt, change in ((1e6, 0.0), (0.0, 2 / 3)):
        families = Families(
            np.zeros(2, np.int64), np.zeros(2, np.int64), np.array([1, 2]), np.ones(2), np.full(2, doubt)
        )
        equations = equations_of(3, [families])
        found = project(equations, np.ones(3, np.float32), np.array([[10.0], [3.0], [4.0]]))[:, 0]
        assert found == pytest.approx([10 - change, 3 + change, 4 + change], abs=0.01)


def test_no_equations_leave_the_values() -> None:
    equations = equations_of(2, [])
    values = np.array([[3.0], [4.0]])
    assert np.array_equal(project(equations, np.ones(2, np.float32), values), values)
    found = bounded(equations, np.ones(2, np.float32), values[:, 0], np.zeros(2), np.full(2, 9))
    assert found.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("sizes", [(4,), (2, 3), (3, 2, 4), (6, 5, 4)])
def test_attained_variances_are_the_least_ones_and_never_below_them(sizes: tuple[int, ...]) -> None:
    equations, adds = table(*sizes)
    variances = np.random.default_rng(1).uniform(0.5, 3, len(adds)).astype(np.float32)
    hat = best(adds, variances)
    least = np.diag(hat * variances @ hat.T)
    found = attained_variances(equations, variances, np.arange(len(adds)))
    assert (found >= least * (1 - 1e-6)).all()
    assert found == pytest.approx(least, rel=0.01)


def test_a_combination_with_hidden_parts_is_not_attained() -> None:
    equations, adds = table(2, 2)
    doubtful = replace(equations, doubt=np.full(len(equations), 0.1, np.float32))
    with pytest.raises(ValueError, match="hidden parts"):
        attained_variances(doubtful, np.ones(len(adds), np.float32), np.arange(2))


def test_repeated_equations_are_left_out_and_nothing_else() -> None:
    equations, _ = table(3, 4)
    twice = Sums(
        equations.cells,
        np.tile(equations.totals, 2),
        np.concatenate([equations.starts, equations.starts[-1] + equations.starts[1:]]),
        np.concatenate([equations.parts, *(_reversed(equations))]),
        np.tile(equations.hidden, 2),
        np.tile(equations.doubt, 2),
    )
    found = twice.distinct()
    assert np.array_equal(matrix(found), matrix(equations))
    ones, none = np.array([0, 1], np.int32), np.zeros(2, np.float32)
    swapped = Sums(2, ones, np.arange(3), ones[::-1].copy(), none, none)
    assert len(swapped.distinct()) == 2, "0 = 1 and 1 = 0 are different rows of B"


def _reversed(equations: Sums) -> list[NDArray[np.int32]]:
    """The parts of each equation in reverse order."""
    return [
        equations.parts[begin:end][::-1]
        for begin, end in zip(equations.starts[:-1], equations.starts[1:], strict=True)
    ]
