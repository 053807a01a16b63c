"""The forecast of errors before and after adjusting, against exact covariances of small cubes."""

import numpy as np
import pytest

from discreet.hierarchy import errors
from discreet.hierarchy.blocks import arranged
from discreet.hierarchy.errors import adjusted_errors
from discreet.maths.consistent import lattice
from tests.cases import few
from tests.hierarchy.trees import TREES, cube
from tests.maths.test_consistent import dense, finest_cells


@pytest.mark.parametrize("axes", few([("SEX", "WORK"), ("GEO.H", "SEX"), ("AGE.H",)], 2, single=True))
def test_errors_of_one_cube_are_those_of_the_exact_covariance(
    axes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "MOST_DRAWS", 1500)
    one = cube("one", *axes)
    depths = [int(axis.depths.max()) + 1 for axis in one.axes]
    variances = np.random.default_rng(3).uniform(1, 6, depths)
    trees = tuple(axis.parents for axis in one.axes)
    cells = lattice(trees, finest_cells(trees))
    a = dense(trees, cells)
    where = tuple(axis.depths[nodes] for axis, nodes in zip(one.axes, cells.nodes, strict=True))
    w = 1 / variances[where]
    exact = np.diag(a @ np.linalg.inv(a.T @ (w[:, None] * a)) @ a.T)
    number = np.sum([nodes > 0 for nodes in cells.nodes], axis=0)
    for found in adjusted_errors(arranged([one], TREES), {"one": variances}):
        here = number == found.axes
        assert found.cells == here.sum()
        assert found.before == pytest.approx(np.sqrt((1 / w[here]).mean()), rel=1e-9)
        assert found.after == pytest.approx(np.sqrt(exact[here].mean()), rel=0.07)
        assert found.after < found.before


def test_several_cubes_are_forecast_with_what_they_share() -> None:
    cubes = [cube("a", "SEX", "WORK"), cube("b", "WORK", "EDU"), cube("c", "SEX", "EDU")]
    variances = {one.id: np.full([2, 2], 4.0) for one in cubes}
    found = adjusted_errors(arranged(cubes, TREES), variances)
    assert {(one.cube, one.axes) for one in found} == {(name, axes) for name in "abc" for axes in range(3)}
    assert all(one.after < one.before == 2.0 for one in found)
    totals = {one.after for one in found if one.axes == 0}
    assert max(totals) - min(totals) < 1e-6  # one value for the same cell
