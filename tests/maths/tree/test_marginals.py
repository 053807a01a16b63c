"""Marginals in the residual basis are the dense matrices that they stand for."""

import numpy as np
import pytest

from discreet.maths.tree.marginals import (
    answers,
    applied,
    cell_variances,
    matrix,
    precision,
    spread,
    undetermined,
)
from discreet.maths.tree.shares import mean_variance
from discreet.programme.strategy import Axis, Histogram, pl94_persons
from tests.hierarchy.forests import HISTOGRAM, PLAIN

CASES = [
    (HISTOGRAM, ("total", "g", "a*c", "b*c*e", "detailed", "g*b*e", "c")),
    (PLAIN, ("total", "c", "e", "detailed")),
    (Histogram((Axis("only", 4),)), ("total", "only")),
]


@pytest.mark.parametrize(("histogram", "queries"), CASES)
def test_blocks_are_the_dense_precision(histogram: Histogram, queries: tuple[str, ...]) -> None:
    rng = np.random.default_rng(5)
    basis, marginals = histogram.basis, [histogram.marginal(query) for query in queries]
    weights = rng.random(len(queries)) + 0.1
    blocks = precision(basis, marginals, weights.tolist())
    dense = sum(
        w * matrix(basis, one).T @ matrix(basis, one) for w, one in zip(weights, marginals, strict=True)
    )
    x = rng.normal(size=(3, basis.d, basis.width))
    np.testing.assert_allclose(applied(basis, blocks, x).reshape(3, -1), x.reshape(3, -1) @ dense, atol=1e-10)
    covariance = np.linalg.inv(dense)
    for one in marginals:
        q = matrix(basis, one)
        variances = np.diag(q @ covariance @ q.T).reshape(one.row_count, -1)
        found = cell_variances(basis, np.linalg.inv(blocks), one)
        np.testing.assert_allclose(variances, np.tile(found[:, None], variances.shape[1]), rtol=1e-9)
        mean = float((mean_variance(basis, one) * np.linalg.inv(blocks)).sum())
        assert mean == pytest.approx(variances.mean(), rel=1e-9)
        np.testing.assert_allclose(answers(basis, one, x), x.reshape(3, -1) @ q.T, atol=1e-12)
        y = rng.normal(size=(2, len(q)))
        np.testing.assert_allclose(spread(basis, one, y).reshape(2, -1), y @ q, atol=1e-12)


def test_every_cell_of_the_histogram_has_one_place_and_its_marginals() -> None:
    """By brute force over the codes of all 2,016 cells."""
    histogram = pl94_persons()
    basis = histogram.basis
    assert (basis.cells, basis.d, basis.regular) == (1890, 15, (2, 63))
    place = histogram.place
    assert sorted(place[place >= 0].tolist()) == list(range(1890))
    codes = np.stack(np.unravel_index(np.arange(2016), histogram.shape), axis=1)
    assert ((place < 0) == ((codes[:, 0] == 3) & (codes[:, 1] == 0))).all()
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 5, 2016) * (place >= 0)
    flat = np.zeros(1890)
    flat[place[place >= 0]] = counts[place >= 0]
    x = flat.reshape(basis.d, basis.width)
    inst = np.array([0, 1, 1, 1, 1, 2, 2, 2])
    columns = {"hhgq": codes[:, 0], "votingage": codes[:, 1], "hispanic": codes[:, 2], "cenrace": codes[:, 3]}
    columns["hhinstlevels"] = inst[codes[:, 0]]
    for query in (
        "hhinstlevels",
        "hhgq",
        "votingage*cenrace",
        "hispanic*cenrace",
        "votingage*hispanic",
        "detailed",
    ):
        names = list(columns)[:4] if query == "detailed" else query.split("*")
        keys = np.stack([columns[name] for name in names], axis=1)[place >= 0]
        _, which = np.unique(keys, axis=0, return_inverse=True)
        brute = np.bincount(which.reshape(-1), weights=counts[place >= 0])
        assert sorted(answers(basis, histogram.marginal(query), x).tolist()) == sorted(brute.tolist())
        if query != "detailed":  # rows ascend by code, dense variables first
            assert answers(basis, histogram.marginal(query), x).tolist() == brute.tolist()


def test_queries_that_leave_cells_open_are_undetermined() -> None:
    basis = PLAIN.basis
    assert undetermined(precision(basis, [PLAIN.marginal("c"), PLAIN.marginal("e")], [1.0, 1.0]))
    assert not undetermined(precision(basis, [PLAIN.marginal("detailed")], [1e-6]))
    grouped = HISTOGRAM.basis
    assert undetermined(precision(grouped, [HISTOGRAM.marginal("g*b*c*e")], [1.0]))
