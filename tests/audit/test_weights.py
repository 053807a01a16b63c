"""The attack on weighted tables: exact mean weights are broken at the predicted rate, scaled noise resists."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.audit.evidence import Published, PublishedTable, Truth, Universe, WeightedTable
from discreet.audit.weights import attack_weights, judge, published_counts
from discreet.errors import Mistakes
from discreet.maths.cells.counting import counts_of
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.perturb.noise import Noise, ScaledWeights, WeightNoise
from discreet.perturb.weights import reach_of, weighted_sums
from discreet.population.encode import EncodedRecords
from discreet.programme.cube import Cube
from discreet.tabulate.counter import CubeCounter
from discreet.tabulate.tables import ConfidentialTable
from tests.audit.made import axis, cell_key, flat, random_columns

SECRET = bytes(range(9, 41))
PERSONS = 12_000
TREES = [flat("A", 300), flat("B", 6), flat("C", 3)]

Sums = NDArray[np.float64]
Publish = Callable[[CellKeyMechanism, ConfidentialTable], tuple[NDArray[np.int64], Sums]]


@dataclass(frozen=True)
class Census:
    published: Published
    truth: Truth


def with_exact_means(mechanism: CellKeyMechanism, table: ConfidentialTable) -> tuple[NDArray[np.int64], Sums]:
    """The law of version 0.1: published count x mean weight."""
    made = mechanism.perturb(table)
    assert table.weights is not None
    mean = table.weights[made.cells] / counts_of(table.cells[made.cells]) / 1e6
    return made.cells, np.round(made.values * mean, 1)


def with_scaled_noise(
    mechanism: CellKeyMechanism, table: ConfidentialTable
) -> tuple[NDArray[np.int64], Sums]:
    made = mechanism.perturb(table)
    assert made.weighted is not None
    return made.cells, np.round(made.weighted, 1)


def census(
    publish: Publish,
    weights: NDArray[np.uint64],
    known: Callable[[Noise], Noise],
    V: float = 2.0,
    D: int = 5,
) -> Census:
    """Counts by A x B x C beside weighted sums by A x B, and by A x C."""
    mechanism, noise = cell_key(V, D)
    mechanism = replace(mechanism, weights=weighted_sums(SECRET, mechanism.variance))
    axes = {tree.name: axis(tree) for tree in TREES}
    plain = [Cube("counts", "persons", tuple(axes.values()))]
    summed = [Cube(name, "persons", tuple(axes[one] for one in name), weight="w") for name in ("AB", "AC")]
    keys = np.random.default_rng(3).integers(0, 2**32, PERSONS, dtype=np.uint32)
    columns = random_columns(TREES, PERSONS, seed=4)
    with ThreadPoolExecutor(1) as pool:
        counter = CubeCounter([*plain, *summed], pool)
        counter.add(EncodedRecords(columns, keys, {}, {"w": weights * np.uint64(1_000_000)}))
        tables = [counter.table(k) for k in range(3)]
    counts = mechanism.perturb(tables[0])
    shown = PublishedTable(plain[0], lambda: (counts.cells, counts.values))
    universe = Universe("persons", "", "", (shown,), {tree.name: tree for tree in TREES})
    weighted = tuple(
        WeightedTable(table.cube, "persons", "", "", lambda table=table: publish(mechanism, table))  # type: ignore[misc]
        for table in tables[1:]
    )
    true = {table.cube.id: _occupied(table) for table in tables}
    seen = Published("census", (universe,), known(noise), (), ("AB", "AC"), weighted)
    return Census(seen, Truth(true, true))


def _occupied(table: ConfidentialTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    here = np.flatnonzero(counts_of(table.cells))
    return here, counts_of(table.cells[here])


def whole_weights(most: int, seed: int = 5) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(1, most + 1, PERSONS).astype(np.uint64)


def scaled(noise: Noise) -> Noise:
    assert noise.variance is not None
    return replace(noise, weighted=ScaledWeights(reach_of(noise.variance)))


@pytest.mark.parametrize(
    ("V", "D", "most", "share"),
    [(1.0, 2, 20, 0.475), (1.0, 3, 20, 0.36), (2.0, 4, 20, 0.288), (2.0, 5, 3, 0.204), (2.0, 5, 1000, 0.222)],
)
def test_exact_mean_weights_give_many_small_counts_away(V: float, D: int, most: int, share: float) -> None:
    old = census(with_exact_means, whole_weights(most), lambda noise: noise, V, D)
    attack = attack_weights(old.published)
    found, judged = attack.findings(), judge(attack, old.truth)
    assert found.reach is None
    assert found.cells > 1000
    assert found.certain / found.cells == pytest.approx(share, abs=0.02)
    assert found.certain_without == 0
    assert judged.certain == judged.right == found.certain


@pytest.mark.parametrize(
    ("V", "D", "most", "left"),
    [(1.0, 2, 20, 4.6), (1.0, 3, 20, 6.2), (2.0, 5, 1, 9.1), (2.0, 5, 20, 9.1), (2.0, 5, 5000, 9.1)],
)
def test_noise_scaled_by_the_weights_gives_none_away(V: float, D: int, most: int, left: float) -> None:
    new = census(with_scaled_noise, whole_weights(most), scaled, V, D)
    attack = attack_weights(new.published)
    found = attack.findings()
    assert found.cells > 1000
    assert found.certain == 0
    assert judge(attack, new.truth).certain == 0
    assert found.left == pytest.approx(left, abs=0.2)  # of at most 2 D + 1, fewer near zero


def test_an_assumption_that_is_too_narrow_is_wrong_about_the_new_noise() -> None:
    """Who takes the sums for exact means deduces counts, and most of them are false."""
    new = census(with_scaled_noise, whole_weights(20), lambda noise: noise)
    judged = judge(attack := attack_weights(new.published), new.truth)
    assert attack.findings().certain > 0
    assert judged.right < 0.5 * judged.certain


def test_the_true_count_is_always_among_those_that_stay_possible() -> None:
    for publish, known in ((with_exact_means, lambda noise: noise), (with_scaled_noise, scaled)):
        made = census(publish, whole_weights(9), known)
        attack = attack_weights(made.published)
        assert judge(attack, made.truth).certain == judge(attack, made.truth).right


def test_counts_are_found_in_any_table_of_the_same_records() -> None:
    made = census(with_scaled_noise, whole_weights(3), scaled)
    table = made.published.weighted[0]
    cells, _ = table.load()
    shown = dict(zip(*(part.tolist() for part in made.published.universes[0].tables[0].load()), strict=True))
    strides = made.published.universes[0].tables[0].cube.strides
    a, b = (table.cube.nodes(cells, k) for k in range(2))
    wanted = [shown.get(int(x * strides[0] + y * strides[1]), 0) for x, y in zip(a, b, strict=True)]
    assert published_counts(made.published, table, cells).tolist() == wanted
    assert all(wanted)


def test_what_cannot_be_attacked_is_told() -> None:
    made = census(with_scaled_noise, whole_weights(3), scaled)
    for changed, text in (
        (replace(made.published, weighted=()), "no table is weighted"),
        (replace(made.published, noise=replace(made.published.noise, weighted=ScaledWeights(None))), "reach"),
        (
            replace(
                made.published,
                noise=replace(made.published.noise, weights=WeightNoise(50, 1)),  # type: ignore[arg-type]
            ),
            "known law",
        ),
    ):
        with pytest.raises(Mistakes, match=text):
            attack_weights(changed)
