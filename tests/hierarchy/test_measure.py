"""Spines, and measurements whose noise and cost are as declared."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from discreet.errors import Mistakes
from discreet.hierarchy.measure import Drawn, measure, node_counts, plan_of, published, spent
from discreet.hierarchy.spine import spine_of
from discreet.maths.noise.additive import LawKind
from discreet.maths.privacy.accounting import Neighbours
from discreet.maths.tree.marginals import answers
from discreet.programme.strategy import LAWS, pl94_2020
from tests.hierarchy.forests import HISTOGRAM, LEVELS, PLAIN, counts, grown, strategy

CHAIN = [np.array([0, 0]), np.array([0, 1, 1]), np.array([0, 0, 1, 2, 2])]


def test_only_children_bypass_their_parents() -> None:
    """Region 0 has one town: one node for both. Town 1 has one block: one node for both."""
    spine = spine_of(LEVELS, CHAIN)
    assert len(spine) == 1 + 2 + (2 + 2) + 2
    assert spine.node_of[1][0] == spine.node_of[2][0]
    assert spine.node_of[2][1] == spine.node_of[3][2]
    node = int(spine.node_of[2][1])
    assert (spine.top[node], spine.bottom[node]) == (2, 3)
    for inner in spine.inner.tolist():
        below = spine.children(inner)
        assert below.stop - below.start >= 2
        assert (spine.parent[below] == inner).all()
    assert spine.node_name(node) == "block 2"


@pytest.mark.parametrize("seed", range(10))
def test_every_area_has_the_node_with_its_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parents, size = [], 1
    for _ in range(3):
        children = rng.integers(1, 4, size)
        parents.append(rng.permutation(np.repeat(np.arange(size), children)))
        size = int(children.sum())
    spine = spine_of(LEVELS, parents)
    asked = strategy(spine, PLAIN)
    leaf = counts(rng, spine, PLAIN)
    found = node_counts(spine, leaf, asked).toarray()
    here = leaf.toarray()
    for level in range(3, -1, -1):
        assert (found[spine.node_of[level]] == here).all()
        if level:
            here = np.stack(
                [here[parents[level - 1] == p].sum(axis=0) for p in range(len(spine.node_of[level - 1]))]
            )


@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_every_path_spends_the_declared_budget(noise: LawKind, neighbours: Neighbours) -> None:
    rng = np.random.default_rng(4)
    for _ in range(5):
        spine = grown(rng)
        asked = strategy(spine, PLAIN, Fraction(7, 3), noise, neighbours)
        found = spent(measure(spine, counts(rng, spine, PLAIN), asked, rng.bytes(32)))
        assert sum(one.paths for one in found) == len(spine.leaves)
        shares = {one.level: one.share for one in asked.levels}
        for path in found:
            assert path.total == Fraction(7, 3)
            for label, part in path.steps:
                assert part == Fraction(7, 3) * sum(shares[level] for level in label.split("+"))
            assert "+".join(label for label, _ in path.steps) == "+".join(LEVELS)


def test_the_published_strategy_spends_its_rho_along_every_path() -> None:
    asked = pl94_2020("persons-us", ("State", "Tract", "Block"))
    spine = spine_of(("State", "Tract", "Block"), [np.array([0, 0, 0]), np.array([0, 0, 1, 2, 2, 2])])
    for path in spent(measure(spine, csr_array((6, 2016), dtype=np.int64), asked, bytes(32))):
        assert path.total == Fraction(293764, 114921)


@pytest.mark.parametrize("noise", LAWS)
def test_noise_has_the_declared_scale_and_no_other(noise: LawKind) -> None:
    """The variance of 90,000 values agrees within 5 standard errors, and 10 % off it does not."""
    spine = spine_of(("top", "low"), [np.zeros(15_000, dtype=np.int64)])
    asked = strategy(spine, PLAIN, Fraction(2), noise)
    found = published(
        measure(spine, csr_array((15_000, 6), dtype=np.int64), asked, bytes(range(32))), "low", "detailed"
    )
    part = Fraction(2) * Fraction(3, 4) * Fraction(3, 4)
    if noise is LawKind.DISCRETE_GAUSSIAN:
        declared = float(1 / part)
    else:
        a = np.exp(-float(part) / 2)
        declared = float(2 * a / (1 - a) ** 2)
    assert found.variances[0] == pytest.approx(
        declared, rel=2e-3
    )  # a discrete law, almost as wide as a continuous one
    drawn = found.values.astype(np.float64).reshape(-1)
    error = np.sqrt((((drawn**2) - (drawn**2).mean()) ** 2).mean() / len(drawn))
    assert abs((drawn**2).mean() - found.variances[0]) < 5 * error
    for wrong in (0.9, 1.1):
        assert abs((drawn**2).mean() - wrong * found.variances[0]) > 5 * error
    assert abs(drawn.mean()) < 5 * np.sqrt(found.variances[0] / len(drawn))


def test_measurements_are_true_answers_plus_noise_and_drawn_again_the_same() -> None:
    rng = np.random.default_rng(9)
    spine = grown(rng)
    asked = strategy(spine)
    leaf = counts(rng, spine, HISTOGRAM)
    key = rng.bytes(32)
    drawn, empty = measure(spine, leaf, asked, key), measure(spine, leaf * 0, asked, key)
    true = node_counts(spine, leaf, asked).toarray().reshape(len(spine), HISTOGRAM.basis.d, -1)
    stored = drawn.stored()
    assert not hasattr(stored, "counts")
    for parent in (-1, *spine.inner.tolist()):
        for one, noise, again in zip(
            drawn.noisy(parent), empty.noisy(parent), stored.noisy(parent), strict=True
        ):
            for at, marginal in enumerate(drawn.plan.kinds[one.kind].marginals):
                expected = answers(HISTOGRAM.basis, marginal, true[one.nodes])
                assert (one.values[at] - noise.values[at] == expected).all()
                assert (one.values[at] == again.values[at]).all()
    other = measure(spine, leaf, asked, rng.bytes(32))
    assert any(
        (a.values[0] != b.values[0]).any() for a, b in zip(other.noisy(0), drawn.noisy(0), strict=True)
    )


def test_siblings_of_different_parents_have_different_noise() -> None:
    spine = spine_of(("top", "middle", "low"), [np.array([0, 0]), np.repeat([0, 1], 500)])
    asked = strategy(spine, PLAIN)
    drawn = measure(spine, csr_array((1000, 6), dtype=np.int64), asked, bytes(32))
    first, second = (drawn.noisy(node)[0].values[0].reshape(-1).astype(float) for node in (1, 2))
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(len(first))


def test_wrong_input_is_refused_by_name() -> None:
    spine = spine_of(LEVELS, CHAIN, [["x"], ["r0", "r1"], ["t0", "t1", "t2"], list("abcde")])
    asked = strategy(spine)
    leaf = np.zeros((5, 48), dtype=np.int64)
    leaf[3, ~HISTOGRAM.possible] = 1
    with pytest.raises(
        Mistakes, match="1 areas have persons in structural zeros, or negative counts: block d"
    ):
        measure(spine, csr_array(leaf), asked, bytes(32))
    with pytest.raises(Mistakes, match="give 5 areas with 48 cells"):
        measure(spine, csr_array((5, 6), dtype=np.int64), asked, bytes(32))
    with pytest.raises(Mistakes, match="the areas have country, region, town, block"):
        plan_of(spine, pl94_2020("units-us"))
    with pytest.raises(Mistakes, match="level region: 1 areas have no town below: r1"):
        spine_of(LEVELS[:3], [np.array([0, 0]), np.array([0, 0])], [["x"], ["r0", "r1"], ["t0", "t1"]])
    with pytest.raises(Mistakes, match="has no parent among 1 of country"):
        spine_of(LEVELS[:2], [np.array([0, 1])])
    drawn = measure(spine, csr_array((5, 48), dtype=np.int64), asked, bytes(32))
    assert isinstance(drawn, Drawn)
    with pytest.raises(Mistakes, match="query b was not measured; choose from detailed, g"):
        published(drawn, "block", "b")
