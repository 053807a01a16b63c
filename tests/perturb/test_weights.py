"""Weighted sums under the cell key method: the law, what it shows of the count, and what its key decides."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.maths.cells.lookup import KEYS, Order, build
from discreet.maths.cells.permutation import secret_permutation
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.perturb.noise import Noise, ScaledWeights
from discreet.perturb.weights import reach_of, weighted_sums
from discreet.programme.codelist import Code, breakdown, codelist
from discreet.programme.cube import Cube
from discreet.programme.release import Disclosure
from discreet.release.noise_entry import NoiseEntry, entry_of
from discreet.tabulate.tables import ConfidentialTable, ProtectedTable

SECRET = bytes(range(5, 37))
CELLS = 60_000
V = 2.0
UNIT = 1_000_000


def mechanism(secret: bytes = SECRET, V: float = V) -> CellKeyMechanism:
    made = CellKeyMechanism(build(solve(PTableParameters(5, V)), Order.PLAIN), secret_permutation(secret))
    return replace(made, weights=weighted_sums(secret, made.variance))


def table(weights: list[float], seed: int = 1, column: str = "w") -> ConfidentialTable:
    """Many cells of the same weights and different people."""
    tree = codelist("X", [Code(f"x{n}", "", "") for n in range(3)])
    cube = Cube("line", "persons", (breakdown("X", "X", tree, tree.leaves),), weight=column)
    keys = np.random.default_rng(seed).integers(0, KEYS, CELLS, dtype=np.uint32)
    cells = (keys.astype(np.uint64) << np.uint64(32)) | np.uint64(len(weights))
    sums = np.full(CELLS, round(sum(weights) * UNIT), dtype=np.uint64)
    largest = np.full(CELLS, round(max(weights) * UNIT), dtype=np.uint64)
    return ConfidentialTable(cube, cells, np.arange(CELLS), sums, largest)


def whole(made: ProtectedTable) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Counts and sums of all cells, zero where nothing is published."""
    counts, sums = np.zeros(CELLS, dtype=np.int64), np.zeros(CELLS)
    assert made.weighted is not None
    counts[made.cells], sums[made.cells] = made.values, made.weighted
    return counts, sums


def expected_variance(law: dict[int, float], weights: list[float], reach: float) -> float:
    n, mean, largest = len(weights), sum(weights) / len(weights), max(weights)
    counts = np.array([n + v for v in law])
    p = np.array(list(law.values()))
    own = np.minimum(reach * largest, counts * mean) ** 2 / 3
    return float(p @ ((counts * mean) ** 2 + own) - sum(weights) ** 2)


@pytest.mark.parametrize(
    "weights",
    [[4.0], [1.0, 1.0, 7.0], [2.5] * 6, [1.0] * 39 + [60.0]],
    ids=["one", "few", "equal", "dominated"],
)
def test_a_weighted_sum_has_the_true_mean_and_the_stated_variance(weights: list[float]) -> None:
    chosen = mechanism()
    assert chosen.weights is not None
    _, sums = whole(chosen.perturb(table(weights)))
    law = chosen.law[min(len(weights), len(chosen.law) - 1)]
    variance = expected_variance(law, weights, chosen.weights.reach)
    mean, largest = sum(weights) / len(weights), max(weights)
    assert variance <= V * (mean**2 + largest**2) * (1 + 1e-6)
    assert abs(sums.mean() - sum(weights)) < 4 * np.sqrt(variance / CELLS)
    assert sums.var() == pytest.approx(variance, rel=0.03)
    assert sums.var() != pytest.approx(1.1 * variance, rel=0.03)  # the test would see ten percent


def test_its_own_noise_is_uniform_and_independent_of_that_of_the_count() -> None:
    chosen = mechanism()
    assert chosen.weights is not None
    counts, sums = whole(chosen.perturb(table([2.0] * 30)))
    drawn = (sums - 2.0 * counts) / (2.0 * chosen.weights.reach)
    assert stats.kstest(drawn, stats.uniform(-1, 2).cdf).pvalue > 0.001
    assert stats.kstest(drawn / 1.05, stats.uniform(-1, 2).cdf).pvalue < 1e-6
    assert abs(np.corrcoef(drawn, counts)[0, 1]) < 4 / np.sqrt(CELLS)


def test_sums_are_positive_and_published_where_the_count_is() -> None:
    counts, sums = whole(mechanism().perturb(table([1.0, 1.0, 50.0])))
    assert (counts == 0).any()
    assert ((sums > 0) == (counts > 0)).all()


def test_a_known_constant_weight_shows_nothing_more_of_the_count() -> None:
    """Beside the same published count, one record or six of the same weight have the same law."""
    chosen = mechanism()
    seen = {}
    for n in (1, 2, 3, 6):
        counts, sums = whole(chosen.perturb(table([3.0] * n, seed=n)))
        seen[n] = sums[counts == 3]
    assert all(len(one) > 200 for one in seen.values())
    for n in (2, 3, 6):
        assert stats.ks_2samp(seen[1], seen[n]).pvalue > 0.001


def test_no_lattice_shows_whole_weights() -> None:
    """The fractional parts of published sums, before they are rounded, are uniform."""
    _, sums = whole(mechanism().perturb(table([7.0, 3.0, 3.0, 1.0, 2.0])))
    assert stats.kstest(sums[sums > 0] % 1, stats.uniform(0, 1).cdf).pvalue > 0.001


def test_the_secret_the_people_and_the_column_decide_the_noise() -> None:
    one = whole(mechanism().perturb(table([2.0, 5.0])))
    again = whole(mechanism().perturb(table([2.0, 5.0])))
    assert one[1].tobytes() == again[1].tobytes()
    for other in (
        mechanism().perturb(table([2.0, 5.0], column="another")),
        replace(mechanism(), weights=weighted_sums(bytes(32), V)).perturb(table([2.0, 5.0])),
    ):
        counts, sums = whole(other)
        both = counts > 0
        assert (counts == one[0]).all()
        own = [(drawn[1][both] - 3.5 * counts[both]) / counts[both] for drawn in (one, (counts, sums))]
        assert abs(np.corrcoef(own[0], own[1])[0, 1]) < 4 / np.sqrt(both.sum())


def test_averaging_weighted_tables_of_a_constant_weight_is_no_better_than_averaging_counts() -> None:
    """Two parts and their total, counts known too: the sums add only noise to the published counts."""
    chosen = mechanism()
    counts, sums = whole(chosen.perturb(table([1.0] * 40)))
    best = np.cov(np.stack([counts - 40.0, sums - 40.0]))
    weights = np.linalg.solve(best, np.ones(2))
    variance = 1 / weights.sum()
    assert variance == pytest.approx(V, rel=0.03)  # of the best linear estimate of the count from both


def told(noise: Noise) -> ScaledWeights | None:
    """What an outsider reads in the manifest."""
    return NoiseEntry.model_validate_json(entry_of(noise).model_dump_json()).noise().weighted


def test_the_manifest_states_what_may_be_known() -> None:
    noise = mechanism().noise()
    reach = reach_of(noise.variance or 0.0)
    exact = told(noise)
    assert exact is not None
    assert exact.reach == pytest.approx(reach)
    assert told(noise.public(Disclosure.VARIANCE)) == ScaledWeights(2.5)
    assert told(noise.public(Disclosure.NONE)) == ScaledWeights(None)
    assert told(replace(noise, weighted=None)) is None
    assert "scaled by the largest weight" in str(noise.sentence())
