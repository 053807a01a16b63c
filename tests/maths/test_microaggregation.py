"""The partition equals MDAV written out plainly, on piles, lines and clouds, and each region is on its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.maths.microaggregation import clusters_in, lattice, mdav, partition, plant


def plain_mdav(points: NDArray[np.float64], k: int) -> list[int]:
    """The steps of the method in exact whole numbers, with every distance computed."""
    steps = [(int(x), int(y)) for x, y in lattice(points)]
    left, labels, label = list(range(len(steps))), [-1] * len(steps), 0

    def distance(i: int, to: tuple[int, int]) -> int:
        return (steps[i][0] - to[0]) ** 2 + (steps[i][1] - to[1]) ** 2

    def furthest(to: tuple[int, int]) -> int:
        return min(left, key=lambda i: (-distance(i, to), i))

    def gather(core: int) -> None:
        nonlocal label
        left.remove(core)
        members = [core, *sorted(left, key=lambda i: (distance(i, steps[core]), i))[: k - 1]]
        for i in members:
            labels[i] = label
            if i != core:
                left.remove(i)
        label += 1

    while len(left) >= 2 * k:
        pair, n = len(left) >= 3 * k, len(left)
        sums = (sum(steps[i][axis] for i in left) for axis in (0, 1))
        x, y = ((2 * total + n) // (2 * n) for total in sums)
        r = furthest((x, y))
        gather(r)
        if pair:
            gather(furthest(steps[r]))
    for i in left:
        labels[i] = label
    return labels


SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(1, 150)
KS = st.integers(1, 12)


@given(SEEDS, SIZES, KS, st.sampled_from([1, 2, 4, 30, 10_000]))
@settings(max_examples=120, deadline=None)
def test_piles_and_grids_of_places(seed: int, places: int, k: int, side: int) -> None:
    points = np.random.default_rng(seed).integers(0, side, (places, 2)).astype(np.float64)
    assert mdav(points, k).tolist() == plain_mdav(points, k)


@given(SEEDS, SIZES, KS)
@settings(max_examples=60, deadline=None)
def test_clouds_of_places(seed: int, places: int, k: int) -> None:
    points = np.random.default_rng(seed).normal(4e6, 1e3, (places, 2))
    assert mdav(points, k).tolist() == plain_mdav(points, k)


@given(SEEDS, SIZES, KS, st.sampled_from([(1, 0), (0, 1), (1, 1), (3, -2)]))
@settings(max_examples=60, deadline=None)
def test_places_on_a_line(seed: int, places: int, k: int, slope: tuple[int, int]) -> None:
    along = np.random.default_rng(seed).integers(-60, 60, (places, 1)).astype(np.float64)
    points = along * np.array(slope, dtype=np.float64)
    assert mdav(points, k).tolist() == plain_mdav(points, k)


def test_the_first_clusters_lie_at_the_ends_of_a_line() -> None:
    points = np.array([[x, 0.0] for x in (0, 1, 2, 10, 11, 12, 23, 24, 25)])
    assert mdav(points, 3).tolist() == [1, 1, 1, 2, 2, 2, 0, 0, 0]


@given(SEEDS, st.integers(1, 400), KS)
@settings(max_examples=60, deadline=None)
def test_every_cluster_has_k_places_but_the_last_of_a_region(seed: int, places: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    points, regions = rng.random((places, 2)), rng.integers(0, 5, places)
    labels = partition(points, regions, k)
    sizes = np.bincount(labels)
    assert sizes.min() >= 1
    for region in np.unique(regions):
        inside, count = np.unique(labels[regions == region], return_counts=True)
        assert (count == sizes[inside]).all()  # no cluster crosses a border
        assert len(inside) == clusters_in(int((regions == region).sum()), k)
        assert sorted(count)[:-1] == [k] * (len(inside) - 1)
        assert count.max() < 2 * k


def test_a_region_is_grouped_as_if_it_were_alone() -> None:
    rng = np.random.default_rng(3)
    points, regions = rng.random((300, 2)), rng.integers(10, 13, 300)
    labels = partition(points, regions, 7)
    alone = [mdav(points[regions == region], 7) for region in (10, 11, 12)]
    assert (labels[regions == 11] == alone[1] + alone[0].max() + 1).all()
    assert labels.max() + 1 == sum(group.max() + 1 for group in alone)


def test_shifting_and_doubling_a_map_changes_no_cluster() -> None:
    points = np.random.default_rng(4).integers(0, 1000, (500, 2)).astype(np.float64)
    assert (mdav(points * 4 + 4_200_000, 5) == mdav(points, 5)).all()


@pytest.mark.parametrize("turned", [False, True], ids=["tall", "wide"])
def test_a_tree_is_cut_across_its_wider_side(*, turned: bool) -> None:
    """Every box is halved, so that few are searched; the clusters themselves are those of any tree."""
    sides = np.random.default_rng(6).integers([5, 0], [60, 900], (500, 2))
    x, y = (np.ascontiguousarray(side) for side in (sides[:, ::-1] if turned else sides).T)
    tree = plant(x, y)
    ends = tree.box.reshape(-1, 2, 2)  # node, axis, least and greatest
    for node in range(1, tree.least.size // 2):
        wider = int(np.argmax(np.diff(ends[node]).ravel()))
        assert ends[2 * node, wider, 1] <= ends[2 * node + 1, wider, 0]


def test_a_large_pile_is_quick() -> None:
    labels = mdav(np.zeros((50_000, 2)), 10)
    assert (np.bincount(labels) == 10).all()


def test_nobody_lives_here() -> None:
    assert partition(np.empty((0, 2)), np.empty(0, dtype=np.int64), 3).size == 0


@pytest.mark.parametrize(
    ("points", "k"),
    [
        (np.zeros((4, 3)), 2),
        (np.zeros((4, 2)), 0),
        (np.array([[0.0, np.nan]]), 1),
        (np.array([[-1e308, 0], [1e308, 0]]), 1),
    ],
)
def test_what_cannot_be_grouped_is_refused(points: NDArray[np.float64], k: int) -> None:
    with pytest.raises(ValueError, match=r"coordinates|at least"):
        mdav(points, k)
