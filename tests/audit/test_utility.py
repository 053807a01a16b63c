"""Utility over a release: realised errors against the exact expectations, and what each measure must find."""

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.audit import utility as utilities
from discreet.audit.evidence import Published, Truth
from discreet.audit.utility import SizeClass, Utility, UtilityRule, side_by_side, utility
from discreet.errors import Mistakes
from discreet.io.serialize import to_json
from discreet.maths.noise.additive import Law, discrete_laplace
from discreet.maths.utility import Measure
from tests.audit.known import known as known_noise
from tests.audit.made import Made, cell_key, flat, made, nested, random_columns

TREES = [nested("GEO", 6, 15), flat("SEX", 2), flat("AGE", 10), flat("JOB", 6)]
CROSSES = [["GEO", "SEX", "AGE"], ["GEO", "AGE", "JOB"], ["SEX", "JOB"]]
PERSONS = 8000
RULE = UtilityRule(areas=("GEO",), by="SEX")


def release(V: float, D: int, seed: int = 1, persons: int = PERSONS) -> Made:
    mechanism, known = cell_key(V, D)
    return made(TREES, CROSSES, random_columns(TREES, persons, seed), mechanism, known, seed)


def with_noise(one: Made, law: Law, seed: int) -> Published:
    """The same tables with fresh noise in every cell, negative values as zero."""
    generator = np.random.default_rng(seed)
    pmf = law.row(0)
    known = known_noise(False, False, pmf.variance, None, law)
    universe = one.published.universes[0]

    def shown(cube: str, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        values = generator.choice(pmf.values, size, p=pmf.p / pmf.p.sum())
        cells, counts = one.truth.counted[cube]
        values[cells] += counts
        values = np.maximum(values, 0)
        return np.flatnonzero(values), values[values != 0]

    kept = {table.id: shown(table.id, table.cube.size) for table in universe.tables}
    tables = tuple(replace(table, load=partial(kept.__getitem__, table.id)) for table in universe.tables)
    return replace(one.published, universes=(replace(universe, tables=tables),), noise=known)


def close(found: float | None, expected: float | None, cells: int, spread: float) -> bool:
    """Inside eight standard errors: cells of margins share their noise, so that they count for fewer."""
    assert found is not None
    assert expected is not None
    return abs(found - expected) < 8 * spread / math.sqrt(cells)


@pytest.fixture(scope="module")
def noisy() -> Made:
    return release(2, 5)


@pytest.fixture(scope="module")
def found(noisy: Made) -> Utility:
    return utility(noisy.published, noisy.truth, RULE)


def test_realised_errors_are_near_the_expected_ones_in_every_size_class(found: Utility) -> None:
    for name, figures in found.total.total.classes.items():
        if name == "0":
            assert figures.realised[Measure.L1] == 0  # the cell key method keeps zeros
            continue
        assert figures.cells > 40
        for measure, spread in (
            (Measure.L1, 1.0),
            (Measure.UNCHANGED, 0.5),
            (Measure.L2, 3.0),
            (Measure.L3, 0.7),
        ):
            assert close(figures.mean(measure), figures.expected_mean(measure), figures.cells, spread)


def test_wrong_noise_law_is_told_from_the_right_one(noisy: Made) -> None:
    _, other = cell_key(3, 6)
    claimed = replace(noisy.published, noise=other)
    figures = utility(claimed, noisy.truth, RULE).total.total.occupied
    assert not close(figures.mean(Measure.L2), figures.expected_mean(Measure.L2), figures.cells, 3.0)


def test_noise_in_empty_cells_is_expected_and_found(noisy: Made) -> None:
    law = discrete_laplace(1)
    one = utility(with_noise(noisy, law, 4), noisy.truth, RULE)
    empty = one.total.total.classes["0"]
    positive = law.row(0).tail(1)
    assert close(empty.mean(Measure.POSITIVE), positive, empty.cells, 0.5)
    assert empty.expected_mean(Measure.POSITIVE) == pytest.approx(positive)
    occupied = one.total.total.occupied
    for measure in (Measure.L1, Measure.L2):
        assert close(occupied.mean(measure), occupied.expected_mean(measure), occupied.cells, 3.0)
    for gap in one.gaps.values():
        assert gap.rmse is not None
        assert gap.expected_rmse == pytest.approx(gap.rmse, rel=0.15)


def test_without_noise_nothing_is_off(noisy: Made) -> None:
    universe = noisy.published.universes[0]
    tables = tuple(
        replace(table, load=partial(noisy.truth.counted.__getitem__, table.id)) for table in universe.tables
    )
    silent = known_noise(False, True)
    exact = Published("exact", (replace(universe, tables=tables),), silent)
    one = utility(exact, noisy.truth, RULE)
    figures = one.total.total.occupied
    assert figures.mean(Measure.UNCHANGED) == 1
    assert figures.expected is None
    assert set(figures.absolute.values()) == {0}
    assert set(figures.relative.values()) == {0}
    assert one.total.total.hellinger == pytest.approx(0, abs=1e-6)
    assert one.changed_tests == 0
    assert all(table.shift == 0 and table.rank == pytest.approx(1) for table in one.two_way)
    assert all(gap.open == 0 and gap.largest == 0 for gap in one.gaps.values())
    assert all(not any(size.distorted.values()) for level in one.areas for size in level.classes)
    json.dumps(to_json(one), allow_nan=False)


def test_a_swap_is_told_from_the_noise(noisy: Made) -> None:
    generator = np.random.default_rng(2)
    columns = {**noisy.columns, "GEO": generator.permutation(noisy.columns["GEO"])}
    mechanism, known = cell_key(2, 5)
    after = made(TREES, CROSSES, columns, mechanism, known, 1)
    one = utility(after.published, Truth(noisy.truth.original, after.truth.counted), RULE)
    original, counted = (one.errors[name].total.occupied for name in ("original", "counted"))
    assert original.expected is None
    assert close(counted.mean(Measure.L1), counted.expected_mean(Measure.L1), counted.cells, 1.0)
    assert (original.mean(Measure.L1) or 0) > 1.3 * (counted.mean(Measure.L1) or 0)


def sizes(one: Utility, level: str) -> tuple[SizeClass, ...]:
    return next(areas.classes for areas in one.areas if areas.level == level)


def test_small_areas_are_distorted_as_often_as_the_law_says(noisy: Made) -> None:
    law = discrete_laplace("0.1")
    seen = {limit: [0, 0.0, 0, 0.0] for limit in RULE.distortions}
    for seed in range(8):
        for size in sizes(utility(with_noise(noisy, law, seed), noisy.truth, RULE), "GEO"):
            assert size.expected is not None
            assert size.expected_broadband is not None
            for limit, sums in seen.items():
                sums[0] += size.distorted[limit]
                sums[1] += size.expected[limit]
                sums[2] += size.broadband[limit]
                sums[3] += size.expected_broadband[limit]
    for distorted, expected, broadband, expected_broadband in seen.values():
        assert distorted == pytest.approx(expected, abs=4 * math.sqrt(expected) + 1)
        assert broadband == pytest.approx(expected_broadband, abs=4 * math.sqrt(expected_broadband) + 1)
    assert seen[0.2][2] > 10  # enough of them for the comparison to mean something


def test_areas_are_all_there_and_totals_and_categories_are_observed(found: Utility) -> None:
    assert [areas.level for areas in found.areas] == ["GEO:1", "GEO"]
    assert sum(size.observations for size in sizes(found, "GEO:1")) == 6 * 3
    assert sum(size.areas for size in sizes(found, "GEO:1")) == 6
    assert sum(size.areas for size in sizes(found, "GEO")) <= 90
    assert not any(size.distorted[0.2] for size in sizes(found, "GEO:1"))


def test_each_cross_tabulation_is_measured_once_in_every_way(found: Utility) -> None:
    ways = found.total
    cells = ways.total.occupied.cells
    assert sum(one.occupied.cells for one in ways.cubes.values()) == cells
    assert sum(one.occupied.cells for one in ways.axes.values()) == cells
    assert sum(margin.cells for margin in ways.margins) == cells
    names = [margin.levels for margin in ways.margins]
    assert len(names) == len(set(names))
    assert {"total", "GEO:1", "AGE x GEO", "JOB x SEX"} <= set(names)
    assert {table.levels for table in found.two_way} == {name for name in names if name.count(" x ") == 1}


def test_more_noise_is_worse_side_by_side(noisy: Made, found: Utility) -> None:
    calm = release(0.5, 2)
    table = side_by_side({"V = 2": found, "V = 0.5": utility(calm.published, calm.truth, RULE)})
    for measure in ("mean_l1", "mean_l2", "mean_l3", "hellinger", "share_false_zeros"):
        assert (table[measure]["V = 2"] or 0) > (table[measure]["V = 0.5"] or 0)
    assert (table["share_unchanged"]["V = 2"] or 0) < (table["share_unchanged"]["V = 0.5"] or 0)


def test_additivity_gaps_have_the_expected_size(found: Utility) -> None:
    for gap in found.gaps.values():
        assert gap.totals > 30
        assert gap.rmse is not None
        assert gap.expected_rmse == pytest.approx(gap.rmse, rel=0.2)
        assert gap.open <= gap.totals


def test_sparse_tables_have_the_gaps_of_tables_that_are_laid_out_whole(
    noisy: Made, found: Utility, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(utilities, "is_sparse", lambda _size, _listed: True)
    monkeypatch.setattr(utilities, "dense_gaps", None)  # is not called
    sparse = utility(noisy.published, noisy.truth, RULE)
    assert sparse.gaps.keys() == found.gaps.keys()
    for name, one in sparse.gaps.items():
        assert vars(one) == pytest.approx(vars(found.gaps[name]))
        assert one.totals


def test_a_summary_is_json(found: Utility) -> None:
    told = json.loads(json.dumps(to_json(found), allow_nan=False))
    occupied = told["errors"]["original"]["total"]["occupied"]
    assert occupied["cells"] == found.total.total.occupied.cells
    assert occupied["absolute_error"]["1.0"] <= 5
    assert told["two_way"]["tables"] == len(found.two_way)


def test_nothing_published_and_nobody_counted(noisy: Made) -> None:
    nothing = utility(Published("nothing", (), noisy.published.noise), noisy.truth)
    json.dumps(to_json(nothing), allow_nan=False)
    assert nothing.total.total.occupied.cells == 0
    empty = {cube: (np.empty(0, np.int64), np.empty(0, np.int64)) for cube in noisy.truth.original}
    nobody = utility(noisy.published, Truth(empty, empty), RULE)
    assert nobody.total.total.occupied.cells == 0
    json.dumps(to_json(nobody), allow_nan=False)


def test_what_cannot_be_measured_is_refused(noisy: Made) -> None:
    with pytest.raises(Mistakes, match="of at least 1"):
        UtilityRule(edges=(3, 10))
    with pytest.raises(Mistakes, match="shares above 0"):
        UtilityRule(quantiles=(0.0,))
    with pytest.raises(Mistakes, match="above 0"):
        UtilityRule(distortions=(0.0,))
    with pytest.raises(Mistakes, match="is published, but not counted"):
        utility(noisy.published, Truth({}, {}))
