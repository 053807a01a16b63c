"""Covariances between any counts of any areas are those of dense least squares, and those of many releases."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from discreet.hierarchy.estimate import covariances, estimate, known_totals
from discreet.hierarchy.joint import Cell, Joint
from discreet.hierarchy.measure import ancestors, measure, plan_of
from discreet.hierarchy.spine import Spine, spine_of
from discreet.programme.strategy import Histogram
from tests.cases import few
from tests.hierarchy.forests import HISTOGRAM, PLAIN, counts, dense_fit, grown, strategy


def chosen_cells(rng: np.random.Generator, spine: Spine, histogram: Histogram, number: int) -> list[Cell]:
    """Counts of random areas that sum random categories; of each area several."""
    nodes = rng.integers(0, len(spine), number)
    found = []
    for node in nodes.tolist():
        rows = []
        for axis in histogram.axes:
            row = (rng.random(axis.size) < 0.5).astype(np.float64)
            row[rng.integers(axis.size)] = 1
            rows.append(row)
        found.append(Cell(node, tuple(rows)))
    return found


def functional(spine: Spine, histogram: Histogram, cell: Cell) -> np.ndarray:
    """The same count as a sum of cells of the leaves, in the order of the basis."""
    whole = cell.rows[0]
    for row in cell.rows[1:]:
        whole = np.multiply.outer(whole, row)
    placed = np.zeros(histogram.basis.cells)
    inside = histogram.place >= 0
    placed[histogram.place[inside]] = whole.reshape(-1)[inside]
    return np.kron(ancestors(spine).toarray()[cell.node], placed)


@pytest.mark.parametrize("histogram", [HISTOGRAM, PLAIN], ids=["unequal groups and zeros", "regular"])
@pytest.mark.parametrize(
    "levels", few([(), ("country",), ("region",), ("country", "block")], 0, 3, single=True), ids=str
)
def test_covariances_are_those_of_dense_least_squares(histogram: Histogram, levels: tuple[str, ...]) -> None:
    rng = np.random.default_rng(19)
    for _ in range(3):
        spine = grown(rng)
        asked = strategy(spine, histogram)
        known = known_totals(spine, levels)
        leaf = counts(rng, spine, histogram)
        below, size = ancestors(spine).toarray(), histogram.basis.cells
        exact = [(np.kron(below[node], np.ones(size)), 0.0) for node in np.flatnonzero(known)]
        _, dense = dense_fit(measure(spine, leaf, asked, rng.bytes(32)).stored(), exact)
        cells = chosen_cells(rng, spine, histogram, 25)
        rows = np.stack([functional(spine, histogram, cell) for cell in cells])
        found = Joint(covariances(plan_of(spine, asked), known)).matrix(cells)
        np.testing.assert_allclose(found, rows @ dense @ rows.T, atol=1e-8)
        assert np.abs(found - np.diag(np.diag(found))).max() > 0.1  # estimates are correlated


@pytest.mark.long
def test_differences_vary_as_their_covariance_says() -> None:
    """500 releases of siblings, of an area and its parent, and of two counts of one area."""
    rng = np.random.default_rng(23)
    spine = spine_of(("country", "region", "town"), [np.array([0, 0]), np.array([0, 0, 0, 1, 1])])
    asked = strategy(spine, PLAIN)
    leaf = csr_array(rng.poisson(30, (5, 6)).astype(np.int64))
    every, one = (np.ones(3), np.ones(2)), (np.array([1.0, 0, 0]), np.ones(2))
    town, beside, above = (int(spine.node_of[level][at]) for level, at in ((2, 0), (2, 1), (1, 0)))
    pairs = [
        (Cell(town, every), Cell(beside, every)),
        (Cell(town, every), Cell(above, every)),
        (Cell(town, one), Cell(town, every)),
    ]
    joint = Joint(covariances(plan_of(spine, asked), known_totals(spine, ())))
    errors = np.zeros((500, len(pairs)))
    true = ancestors(spine) @ leaf.toarray()
    for release in errors:
        fitted = estimate(measure(spine, leaf, asked, rng.bytes(32))).histograms(np.arange(len(spine)))
        found = {
            node: one for some, values in fitted for node, one in zip(some.tolist(), values, strict=True)
        }
        for at, two in enumerate(pairs):
            off = [
                float(c.rows[0] @ (found[c.node].reshape(3, 2) - true[c.node].reshape(3, 2)) @ c.rows[1])
                for c in two
            ]
            release[at] = off[0] - off[1]
    for at, two in enumerate(pairs):
        matrix = joint.matrix(two)
        variance = float(matrix[0, 0] + matrix[1, 1] - 2 * matrix[0, 1])
        independent = float(matrix[0, 0] + matrix[1, 1])
        assert abs((errors[:, at] ** 2).mean() / variance - 1) < 5 * np.sqrt(2 / len(errors))
        assert (
            abs((errors[:, at] ** 2).mean() / independent - 1) > 0.1
        )  # and not that of independent estimates
        assert abs((np.abs(errors[:, at]) < 1.96 * np.sqrt(variance)).mean() - 0.95) < 0.035
