"""Spines, and measurements whose noise and cost are as declared."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from discreet.errors import Mistakes
from discreet.hierarchy.measure import at_level, measure, node_counts, plan_of, spent
from discreet.hierarchy.spine import spine_of
from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.thresholds import ThresholdTable
from discreet.maths.privacy.accounting import Neighbours
from discreet.maths.tree.marginals import answers
from discreet.programme.strategy import LAWS, pl94_2020
from tests.hierarchy.forests import HISTOGRAM, LEVELS, PLAIN, counts, grown, strategy
from tests.hierarchy.sampling import is_binomial

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


def cost_of_one_change(table: ThresholdTable, noise: LawKind) -> float:
    """What a change by 1 costs by the numbers of 128-bit words that lead to each value, and no other statement.

    ln(n(0) / n(1)) is 1 / (2 s^2), the rho of a change by 1, for Gaussian noise and its epsilon for geometric noise.
    """
    ratios = [log(table.number(v) / table.number(v + 1)) for v in range(3)]
    shape = (1, 3, 5) if noise is LawKind.DISCRETE_GAUSSIAN else (1, 1, 1)
    assert ratios == pytest.approx([ratios[0] * one for one in shape], rel=1e-9)
    assert table.number(2) == pytest.approx(table.number(-2), rel=1e-12)
    return ratios[0]


@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_budget_of_every_path_follows_from_what_is_drawn(noise: LawKind, neighbours: Neighbours) -> None:
    """Level by level from the root to every leaf: integers that draw, times how far one person reaches."""
    rng = np.random.default_rng(6)
    reach = (
        2 if neighbours is Neighbours.SUBSTITUTE else 1
    )  # counts that change by 1: squared L2 and L1 alike
    for _ in range(4):
        spine = grown(rng)
        asked = strategy(spine, HISTOGRAM, Fraction(7, 3), noise, neighbours)
        plan = measure(spine, counts(rng, spine, HISTOGRAM), asked, rng.bytes(32)).plan
        shares = {one.level: float(one.share) for one in asked.levels}
        for leaf in spine.leaves.tolist():
            node, left = leaf, list(reversed(LEVELS))
            whole = 0.0
            while node >= 0:
                kind = plan.kinds[plan.kind_of[node]]
                spent_here = reach * sum(cost_of_one_change(one, noise) for one in kind.tables)
                covered = left[
                    : kind.bottom - kind.top + 1
                ]  # equal areas of several levels have all their shares
                assert spent_here == pytest.approx(7 / 3 * sum(shares[one] for one in covered), rel=1e-9)
                left, whole = left[len(covered) :], whole + spent_here
                node = int(spine.parent[node])
            assert not left
            assert whole == pytest.approx(7 / 3, rel=1e-9)


def test_noise_that_was_drawn_has_the_law_of_its_level_and_query() -> None:
    """Noisy less true counts of every kind of area: how many are beyond 0, 1 and 2 is binomial."""
    rng = np.random.default_rng(5)
    parents = [np.zeros(40, dtype=np.int64), np.repeat(np.arange(40), 20), np.repeat(np.arange(800), 4)]
    parents[2] = np.concatenate([parents[2], np.arange(800, 830)])  # 30 towns with one block each
    parents[1] = np.concatenate([parents[1], np.arange(30)])
    spine = spine_of(LEVELS, parents)
    asked = strategy(spine, PLAIN, Fraction(2))
    leaf = counts(rng, spine, PLAIN)
    drawn = measure(spine, leaf, asked, rng.bytes(32))
    true = node_counts(spine, leaf, asked).toarray().reshape(len(spine), PLAIN.basis.d, -1)
    seen: dict[tuple[int, str], list[np.ndarray]] = {}
    for parent in (-1, *spine.inner.tolist()):
        for one in drawn.noisy(parent):
            kind = drawn.plan.kinds[one.kind]
            for query, marginal, values in zip(kind.queries, kind.marginals, one.values, strict=True):
                noise = values - answers(PLAIN.basis, marginal, true[one.nodes])
                seen.setdefault((one.kind, query), []).append(noise.reshape(-1))
    parts = {one.level: {query: one.share * part for query, part in one.queries} for one in asked.levels}
    told_apart = 0
    for (number, query), found in seen.items():
        kind, noise = drawn.plan.kinds[number], np.concatenate(found)
        part = 2 * sum(parts[level].get(query, Fraction(0)) for level in LEVELS[kind.top : kind.bottom + 1])
        beyond = np.array([(np.abs(noise) > least).sum() for least in range(3)])
        law = LawKind.DISCRETE_GAUSSIAN
        assert is_binomial(beyond, len(noise), probabilities(law, float(part))[0], 3 * len(seen))
        if len(noise) >= 15_000:
            told_apart += 1
            for off in (0.9, 1.1):
                other = probabilities(law, float(part) / off)[0]
                assert not is_binomial(beyond, len(noise), other, 3 * len(seen))
    assert told_apart >= 1
    assert len(seen) > 8


def probabilities(noise: LawKind, part: float) -> tuple[NDArray[np.float64], float]:
    """P(|v| > 0), P(|v| > 1), P(|v| > 2) and the variance of the noise of a part of the budget, by direct sums.

    exp(-v^2 part / 2) and exp(-|v| part / 2): one person replaced changes two counts by 1.
    """
    v = np.arange(-400, 401)
    weight = np.exp(-(v**2) * part / 2 if noise is LawKind.DISCRETE_GAUSSIAN else -np.abs(v) * part / 2)
    weight /= weight.sum()
    return np.array([weight[np.abs(v) > least].sum() for least in range(3)]), float((weight * v**2).sum())


@pytest.mark.parametrize("noise", LAWS)
def test_noise_has_the_declared_scale_and_no_other(noise: LawKind) -> None:
    """How many of 90,000 independent values are beyond 0, 1 and 2 is binomial; with a variance 10 % off it is not."""
    require_scale(noise, bytes(range(32)))


def require_scale(noise: LawKind, key: bytes) -> None:
    areas = 15_000
    spine = spine_of(("top", "low"), [np.zeros(areas, dtype=np.int64)])
    asked = strategy(spine, PLAIN, Fraction(2), noise)
    drawn = measure(spine, csr_array((areas, 6), dtype=np.int64), asked, key)
    ((listed, siblings),) = at_level(drawn, "low")
    assert listed.tolist() == list(range(areas))
    kind = drawn.plan.kinds[siblings.kind]
    at = kind.queries.index("detailed")
    values = siblings.values[at].reshape(-1)
    part = float(Fraction(2) * Fraction(3, 4) * Fraction(3, 4))
    declared, variance = probabilities(noise, part)
    assert kind.variances[at] == pytest.approx(variance, rel=1e-9)
    beyond = np.array([(np.abs(values) > least).sum() for least in range(3)])
    assert is_binomial(beyond, len(values), declared, 4)
    assert is_binomial(int((values > 0).sum()), int(beyond[0]), 0.5, 4)  # as many above zero as below
    for off in (0.9, 1.1):  # the variance goes with 1 / part, and with its square
        other = part / off if noise is LawKind.DISCRETE_GAUSSIAN else part / off**0.5
        assert probabilities(noise, other)[1] / variance == pytest.approx(off, abs=0.02)
        assert not is_binomial(beyond, len(values), probabilities(noise, other)[0], 4)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(300_000, 300_200))
def test_noise_of_any_key_has_the_declared_scale(seed: int) -> None:
    for noise in LAWS:
        require_scale(noise, np.random.default_rng(seed).bytes(32))


@pytest.mark.parametrize("seed", range(5))
def test_measured_areas_come_in_their_order_and_once(seed: int) -> None:
    """Of every level those that are not bypassed, with the counts that are drawn for their parent's children."""
    rng = np.random.default_rng(seed)
    spine = grown(rng, most=4)
    drawn = measure(spine, counts(rng, spine, PLAIN), strategy(spine, PLAIN), rng.bytes(32))
    for number, level in enumerate(LEVELS):
        found = list(at_level(drawn, level))
        listed = [area for areas, _ in found for area in areas.tolist()]
        nodes = spine.node_of[number]
        assert listed == np.flatnonzero(spine.bottom[nodes] == number).tolist()
        for areas, one in found:
            assert one.nodes.tolist() == nodes[areas].tolist()
            again = next(
                other for other in drawn.noisy(int(spine.parent[one.nodes[0]])) if other.kind == one.kind
            )
            assert all((a == b).all() for a, b in zip(one.values, again.values, strict=True))


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
    # noise is symmetric, so that the sign of a product of independent values is a fair coin
    signs = np.sign(first * second)
    assert is_binomial(int((signs > 0).sum()), int((signs != 0).sum()), 0.5, 1)
    assert not is_binomial(int((first * first > 0).sum()), int((first != 0).sum()), 0.5, 1)


def test_wrong_input_is_refused_by_name() -> None:
    spine = spine_of(LEVELS, CHAIN, [["x"], ["r0", "r1"], ["t0", "t1", "t2"], list("abcde")])
    asked = strategy(spine)
    leaf = np.zeros((5, 48), dtype=np.int64)
    leaf[3, ~HISTOGRAM.possible] = 1
    with pytest.raises(
        Mistakes, match="1 areas have persons in structural zeros, or negative counts: block d"
    ):
        measure(spine, csr_array(leaf), asked, bytes(32))
    with pytest.raises(Mistakes, match="more than 2,000,000,000 records"):
        measure(spine, csr_array(500_000_000 * HISTOGRAM.possible[None] * np.ones((5, 1))), asked, bytes(32))
    with pytest.raises(Mistakes, match="give 5 areas with 48 cells"):
        measure(spine, csr_array((5, 6), dtype=np.int64), asked, bytes(32))
    with pytest.raises(Mistakes, match="the areas have country, region, town, block"):
        plan_of(spine, pl94_2020("units-us"))
    with pytest.raises(Mistakes, match="level region: 1 areas have no town below: r1"):
        spine_of(LEVELS[:3], [np.array([0, 0]), np.array([0, 0])], [["x"], ["r0", "r1"], ["t0", "t1"]])
    with pytest.raises(Mistakes, match="has no parent among 1 of country"):
        spine_of(LEVELS[:2], [np.array([0, 1])])
