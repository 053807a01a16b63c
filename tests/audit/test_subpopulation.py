"""The attack on part of the tables: never stronger than on all of them, and as strong where the part is the whole."""

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.audit import subpopulation
from discreet.audit.averaging import ExposedCell
from discreet.audit.cells import once
from discreet.audit.least_squares import VARIANCES, Fitted, least_squares
from discreet.audit.subpopulation import Subpopulations, exposed_by_parts
from discreet.perturb.noise import Noise
from tests.audit.known import known
from tests.audit.made import Made, cell_key, flat, made, nested, random_columns
from tests.maths.attacks.test_least_squares import matrix

TREES = [nested("A", 3, 3), flat("B", 3), nested("C", 2, 2), flat("D", 4)]
CROSSES = [["A", "B", "C"], ["A", "B", "D"], ["B", "C", "D"]]
NOISE = cell_key(2.0, 5)
Variances = dict[frozenset[tuple[str, str]], float]  # cell by its codes -> variance


@pytest.fixture(scope="module")
def town() -> Made:
    return made(TREES, CROSSES, random_columns(TREES, 120, 3), *NOISE, seed=5)


@pytest.fixture(scope="module")
def parts(town: Made) -> Subpopulations:
    return Subpopulations(once(town.published.universes[0]), town.truth)


def exact(fit: Fitted) -> Variances:
    """The variance of the best linear unbiased estimate of every cell with records, by dense algebra."""
    b, v = matrix(fit.equations), fit.variances.astype(np.float64)
    gain = (v[:, None] * b.T) @ np.linalg.pinv((b * v) @ b.T, hermitian=True) @ (b * v)
    variances: NDArray[np.float64] = v - np.diag(gain)
    return {
        frozenset(
            (variable, fit.pieces.trees[variable].codes[int(code)])
            for (variable, _), code in zip(piece.levels, codes, strict=True)
        ): float(variances[fit.unknown[piece.first + row]])
        for piece in fit.pieces.pieces.values()
        for row, codes in enumerate(piece.codes)
    }


@pytest.fixture(scope="module")
def wanted(town: Made) -> Variances:
    (fit,) = least_squares(town.published, rule=VARIANCES, truth=town.truth).fits
    return exact(fit)


def variance(one: ExposedCell) -> float:
    return one.ratio * 2.0


def within(parts: Subpopulations, codes: dict[str, str], noise: Noise) -> tuple[ExposedCell, ...]:
    fit = parts.fit(codes, noise)
    assert fit is not None
    return fit.exposed()


def test_the_whole_is_attacked_as_well_as_by_least_squares_over_all_tables(
    town: Made, parts: Subpopulations, wanted: Variances
) -> None:
    found = within(parts, {}, town.published.noise)
    assert [variance(one) for one in found] == pytest.approx(
        [wanted[frozenset(one.cell.items())] for one in found], rel=0.02
    )
    every = least_squares(town.published, rule=VARIANCES, truth=town.truth).exposed
    assert found[0].ratio == pytest.approx(every[0].ratio, rel=0.02)
    assert found[0].success == pytest.approx(every[0].success, rel=0.02)


@pytest.mark.parametrize(
    "codes", [{"A": "A0"}, {"B": "B1"}, {"A": "A1", "B": "B0"}, {"C": "C0.1"}, {"A": "A2.1", "D": "D0"}]
)
def test_no_count_is_less_exposed_than_its_part_shows(
    town: Made, parts: Subpopulations, wanted: Variances, codes: dict[str, str]
) -> None:
    found = within(parts, codes, town.published.noise)
    assert found
    for one in found:
        assert wanted[frozenset(one.cell.items())] <= variance(one) * (1 + 1e-6)
        for variable, code in codes.items():
            assert one.cell[variable].startswith(code), "a count of records with these codes"
    assert [one.success for one in found] == sorted((one.success for one in found), reverse=True)


def test_a_small_population_is_attacked_as_a_whole(town: Made, parts: Subpopulations) -> None:
    noise = town.published.noise
    assert exposed_by_parts([parts], noise) == within(parts, {}, noise)


def test_the_most_exposed_count_is_that_of_all_fits_and_the_least_promising_are_left_out(
    town: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subpopulation, "MOST_CELLS", 100)
    monkeypatch.setattr(subpopulation, "EFFORT", 0)
    universe, noise = town.published.universes[0], town.published.noise
    some = Subpopulations(once(universe), town.truth)
    apart = [fit.exposed() for fit in some.fits(noise)]
    assert len(apart) > 1
    assert max(len(one) for one in apart) > subpopulation.AT_ONCE
    found = exposed_by_parts([some, some], noise)
    assert found[0].ratio == min(one[0].ratio for one in apart)
    assert [one.ratio for one in found] == sorted(one.ratio for one in found)
    assert len(found) == 2 * sum(map(len, apart))
    monkeypatch.setattr(subpopulation, "FAR", 0.0)
    fewer = exposed_by_parts([some, some], noise)
    assert fewer[0].ratio == found[0].ratio
    assert len(fewer) < len(found)
    assert len(fewer) >= 2 * sum(min(len(one), subpopulation.AT_ONCE) for one in apart)


def test_a_fit_of_many_counts_is_left_out_where_no_simulated_error_is_below_the_known_variance(
    town: Made, parts: Subpopulations, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = parts.fit({}, town.published.noise)
    assert fit is not None
    assert fit.least_simulated < min(map(variance, fit.exposed()))
    monkeypatch.setattr(subpopulation, "CHOSEN", 10**9)
    assert fit.exposed(0.99 * fit.least_simulated), "all of them are computed"
    monkeypatch.setattr(subpopulation, "CHOSEN", 8)
    monkeypatch.setattr(subpopulation, "EFFORT", 0)
    assert len(fit.exposed()) == 8
    assert fit.exposed(1.01 * fit.least_simulated)
    assert fit.exposed(0.99 * fit.least_simulated) == ()


def test_parts_of_a_large_population_have_few_cells_and_many_by_person(
    town: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subpopulation, "MOST_CELLS", 100)
    monkeypatch.setattr(subpopulation, "SAMPLE", 10**6)  # all cells: sizes are exact
    some = Subpopulations(once(town.published.universes[0]), town.truth)
    assert some.cells > 100
    assert 0 < len(some._likely) <= subpopulation.PARTS
    for codes in some._likely:
        chosen = [part for one in some._tables if (part := some._part(one, codes)) is not None]
        assert 25 <= sum(len(part.cells) for part in chosen) <= 100
        assert len(codes) == 2
    assert exposed_by_parts([some], town.published.noise)


@pytest.mark.parametrize(
    "noise",
    [
        known(same_noise=False, keeps_zeros=True, variance=2.0),
        known(same_noise=True, keeps_zeros=False, variance=2.0),
    ],
)
def test_noise_that_is_not_the_same_for_the_same_people_is_not_attacked(
    parts: Subpopulations, noise: Noise
) -> None:
    assert parts.fit({}, noise) is None
    assert exposed_by_parts([parts], noise) == ()
