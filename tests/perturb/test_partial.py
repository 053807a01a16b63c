"""Releases of some cross-tabulations only: the guarantee by enumeration, sums, public totals, and sums of weights."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.maths.cells.counting import increments
from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.publishing import Negatives, Publishing
from discreet.maths.noise.thresholds import ThresholdTable
from discreet.perturb import private
from discreet.perturb.budget import plan, touched_by
from discreet.perturb.choose import added_up
from discreet.perturb.private import PrivateMechanism
from discreet.programme.codelist import Breakdown, Code, Codelist, breakdown, codelist
from discreet.programme.cube import Cube, Signature, crosstabs
from discreet.programme.noise import BudgetRule, PrivateNoise, Split
from discreet.programme.split import public_totals, with_shown
from discreet.programme.statistic import Statistics
from discreet.tabulate.counter import AxisRows, SparseGrid
from discreet.tabulate.tables import ConfidentialTable, ProtectedTable
from tests.attributes import own
from tests.cases import few

KEEP = Publishing(Negatives.KEEP)


def axis(name: str, codes: int) -> tuple[Codelist, Breakdown]:
    tree = codelist(name, [Code(f"{name}{k}", "", "") for k in range(codes)])
    return tree, breakdown(name, name, tree, tree.level(1))


TREES, AXES = {}, {}
for _name, _size in (("A", 2), ("B", 2), ("C", 60), ("D", 40)):
    TREES[_name], AXES[_name] = axis(_name, _size)
OWN = own("A", "B", "C", "D", "U", "X")
AB = Cube("ab", "persons", (AXES["A"], AXES["B"]))


def made(
    rule: PrivateNoise, *cubes: Cube, key: bytes = bytes(32)
) -> tuple[PrivateMechanism, tuple[Cube, ...]]:
    shown = with_shown(rule.budget, cubes)
    drawn, totals = plan(rule, shown), public_totals(rule.budget)
    sums = added_up(shown, drawn.parameters)
    return PrivateMechanism(drawn, TREES, (), 10**7, key, Statistics(TREES), sums=sums, totals=totals), shown


def counted(of: Cube, records: list[tuple[int, ...]]) -> ConfidentialTable:
    position = np.array(
        [sum((leaf + 1) * s for leaf, s in zip(one, of.strides, strict=True)) for one in records]
    )
    grid = SparseGrid(of, AxisRows(of, {}, {}))
    grid.add_cells(position.astype(np.uint64), increments(np.arange(len(records), dtype=np.uint32)))
    positions, cells = grid.rolled_up()
    return ConfidentialTable(of, cells, positions)


def values(table: ProtectedTable) -> dict[int, int]:
    return dict(zip(table.cells.tolist(), table.values.tolist(), strict=True))


# --- the guarantee by enumeration ---


def laplace(budget: BudgetRule, published: Publishing) -> PrivateNoise:
    return PrivateNoise(
        LawKind.LAPLACE, budget, attributes=OWN, bound=1, delta=Fraction(9, 10), published=published
    )


def chances(table: ThresholdTable) -> dict[int, float]:
    law = table.pmf()
    return dict(zip(law.values.tolist(), law.p.tolist(), strict=True))


def outputs(
    asked: PrivateMechanism, of: Cube, records: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> Mapping[tuple[tuple[int, int], ...], float]:
    """Whole release -> its probability: the mechanism itself, run with every possible noise of every cell."""
    table = counted(of, records)
    sizes = {one.signature: one.size for one in crosstabs(of, TREES)}
    places = {
        (one, number): k for k, (one, number) in enumerate((s, n) for s in sizes for n in range(sizes[s]))
    }
    noise = np.zeros(len(places), dtype=np.int64)

    named = {asked._purpose(of, signature): signature for signature in asked.plan.parameters}

    def words(_: PrivateMechanism, purpose: str, deciding: Any) -> Any:
        return np.array([places[named[purpose], int(number)] for number in deciding], dtype=np.uint64)

    monkeypatch.setattr(PrivateMechanism, "_words", words)
    monkeypatch.setattr(private, "from_words", lambda _, word: noise[word.astype(np.int64)])
    laws = [chances(asked.plan.table(signature)) for signature, _ in places]
    found: Counter[tuple[tuple[int, int], ...]] = Counter()
    for drawn in product(*laws):
        noise[:] = drawn
        chance = math.prod(law[v] for law, v in zip(laws, drawn, strict=True))
        found[tuple(sorted(values(asked.perturb(table)).items()))] += chance  # type: ignore[assignment]
    return found


def delta(p: Mapping[Any, float], q: Mapping[Any, float], epsilon: float) -> float:
    return max(
        sum(max(0.0, one.get(x, 0.0) - math.exp(epsilon) * other.get(x, 0.0)) for x in one)
        for one, other in ((p, q), (q, p))
    )


BUDGETS = [
    (BudgetRule(Fraction(1), margins=("interior",)), Publishing(Negatives.ZERO)),
    (BudgetRule(Fraction(1), margins=("interior",), sums=True), KEEP),
    (
        BudgetRule(
            Fraction(3, 2),
            Split.BY_MARGIN,
            {"A x B": Fraction(1, 3), "A": Fraction(2, 3), "rest": Fraction(0)},
            public={"persons": 9},
        ),
        KEEP,
    ),
]


@pytest.mark.parametrize(("budget", "published"), few(BUDGETS, 0, 1))
def test_the_guarantee_holds_over_all_releases_of_a_small_population(
    budget: BudgetRule, published: Publishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, (of,) = made(laplace(budget, published), AB)
    stated = float(asked.plan.delta())
    epsilon = float(budget.spent)
    records: list[tuple[int, ...]] = [(0, 0), (0, 1), (1, 1)]
    whole = outputs(asked, of, records, monkeypatch)
    assert sum(whole.values()) == pytest.approx(1)
    worst = 0.0
    for left_out in range(len(records)):
        without = outputs(asked, of, records[:left_out] + records[left_out + 1 :], monkeypatch)
        worst = max(worst, delta(whole, without, epsilon))
        assert delta(whole, without, epsilon) <= stated + 1e-12
    assert worst > 0.5 * stated, "the stated delta is not far above what is lost"
    assert delta(whole, without, 0.5 * epsilon) > stated, "half the epsilon would be a false claim"


# --- what is published ---


@pytest.mark.parametrize("budget", [BudgetRule(Fraction(2), margins=("interior",)), BUDGETS[2][0]])
def test_nothing_is_published_that_was_not_measured(budget: BudgetRule) -> None:
    rule = PrivateNoise(LawKind.GEOMETRIC, budget, attributes=OWN, published=KEEP)
    asked, (of,) = made(rule, AB)
    allowed = set()
    for depths in of.published:
        for nodes in product(*(np.flatnonzero(a.depths == d) for a, d in zip(of.axes, depths, strict=True))):
            allowed.add(sum(int(node) * s for node, s in zip(nodes, of.strides, strict=True)))
    for key in range(20):
        found = values(replace(asked, key=key.to_bytes(32, "big")).perturb(counted(of, [(0, 0)] * 50)))
        assert found.keys() <= allowed
        if budget.public:
            assert found[0] == 9, "as declared, whatever is counted"


def test_sums_add_up_exactly_and_have_the_stated_variance() -> None:
    of = Cube("cd", "persons", (AXES["C"], AXES["D"]))
    rule = PrivateNoise(
        attributes=OWN,
        kind=LawKind.GEOMETRIC,
        budget=BudgetRule(Fraction(1), margins=("interior",), sums=True),
        published=KEEP,
    )
    asked, (of,) = made(rule, of)
    noise = asked.noise()
    one = noise.variance_of(of.signature((1, 1)))
    empty = ConfidentialTable(of, np.zeros(of.size, dtype=np.uint64))
    rows, totals = [], []
    for key in range(60):
        found = values(replace(asked, key=key.to_bytes(32, "big")).perturb(empty))
        grid = np.zeros(of.shape, dtype=np.int64)
        grid.ravel()[list(found)] = list(found.values())
        assert (grid[1:, 0] == grid[1:, 1:].sum(axis=1)).all()
        assert (grid[0, 1:] == grid[1:, 1:].sum(axis=0)).all()
        assert grid[0, 0] == grid[1:, 1:].sum()
        rows.append(grid[1:, 0])
        totals.append(grid[0, 0])
    stated = noise.variance_of(of.signature((1, 0)))
    assert stated == pytest.approx(40 * one)
    assert noise.variance_of(of.signature((0, 0))) == pytest.approx(2400 * one)
    seen = np.concatenate(rows).astype(float)
    assert seen.var() == pytest.approx(stated, rel=0.1)  # 3600 rows: more than four standard deviations
    assert abs(seen.mean()) < 5 * math.sqrt(stated / len(seen))


def test_sums_add_up_where_codes_end_at_different_levels() -> None:
    """A code that is a group by itself beside groups of several: the total adds up codes of both levels."""
    rows = [Code("a", "", ""), Code("b", "", ""), Code("b1", "b", ""), Code("b2", "b", "")]
    tree = codelist("U", rows)
    uneven = breakdown("U", "U", tree, [tree.position[code] for code in ("a", "b1", "b2")])
    of = Cube("u", "persons", (uneven, AXES["A"]))
    assert of.interior == ((1, 1), (2, 1))
    rule = PrivateNoise(
        attributes=OWN,
        kind=LawKind.GEOMETRIC,
        budget=BudgetRule(Fraction(2), margins=("interior",), sums=True),
        published=KEEP,
    )
    (shown,) = with_shown(rule.budget, [of])
    drawn, trees = plan(rule, [shown]), {**TREES, "U": tree}
    sums = added_up([shown], drawn.parameters)
    assert sums[shown.signature((0, 0))][1] == 6
    asked = PrivateMechanism(drawn, trees, (), 10**7, bytes(32), Statistics(trees), sums=sums)
    for key in range(20):
        found = values(
            replace(asked, key=key.to_bytes(32, "big")).perturb(
                ConfidentialTable(shown, np.zeros(shown.size, dtype=np.uint64))
            )
        )
        grid = np.zeros(shown.shape, dtype=np.int64)
        grid.ravel()[list(found)] = list(found.values())
        finest = [k for k in range(len(uneven)) if uneven.finest[k]]
        assert grid[0, 0] == grid[finest, 1:].sum()
        assert (grid[0, 1:] == grid[finest, 1:].sum(axis=0)).all()


# --- sums of weights ---


def weighted(largest: str, kind: LawKind = LawKind.GEOMETRIC) -> PrivateNoise:
    return PrivateNoise(
        kind, BudgetRule(Fraction(4)), attributes=OWN, published=KEEP, largest_weight=Fraction(largest)
    )


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2_345_678)), max_size=6),
    st.integers(0, 1),
    st.integers(0, 2_345_678),
)
def test_no_record_changes_a_sum_of_weights_by_more_than_claimed(
    records: list[tuple[int, int]], where: int, weight: int
) -> None:
    """In units of a weight, for weights in millionths up to the largest, one record more."""
    rule = weighted("2.345678")
    claimed = touched_by(Signature("persons", "", "", (), weight="w"), rule)
    of = Cube("a", "persons", (AXES["A"],), weight="w")

    def sums(some: list[tuple[int, int]]) -> Any:
        cells, totals = np.zeros((2, of.size), dtype=np.uint64)
        for leaf, w in some:
            for node in (0, leaf + 1):
                cells[node] += np.uint64(1)
                totals[node] += np.uint64(w)
        at, _, true = private._occupied(ConfidentialTable(of, cells, None, totals))
        dense = np.zeros(of.size, dtype=np.int64)
        dense[at] = true
        return dense

    change = np.abs(sums([*records, (where, weight)]) - sums(records))
    assert change[0] <= claimed.largest
    assert change[1:].sum() <= claimed.l1
    assert (change[1:] ** 2).sum() <= claimed.l2_squared


def test_sums_of_weights_have_noise_for_the_largest_weight() -> None:
    of = Cube("a", "persons", (AXES["A"],), weight="w")
    counts = Cube("b", "persons", (AXES["A"],))
    found = plan(weighted("7.25"), [of, counts])
    assert {one.weight: p for one, p in found.parameters.items()} == {"w": Fraction(1, 73), "": Fraction(1)}
    gaussian = plan(weighted("7.25", LawKind.DISCRETE_GAUSSIAN), [of]).parameters
    assert set(gaussian.values()) == {Fraction(2, 73**2)}
    asked, (shown, _) = made(weighted("7.25"), of, counts)
    cells, totals = np.zeros((2, of.size), dtype=np.uint64)
    cells[:2], totals[:2] = 1000, 2_500_040_000  # 2500.04
    drawn = []
    for key in range(400):
        table = replace(asked, key=key.to_bytes(32, "big")).perturb(
            ConfidentialTable(shown, cells, None, totals)
        )
        assert table.weighted is not None
        assert (table.weighted * 10 == table.values).all()
        drawn.append(dict(zip(table.cells.tolist(), table.weighted.tolist(), strict=True)).get(1, 0.0))
    a = math.exp(-1 / 73)
    deviation = math.sqrt(2 * a) / (1 - a) / 10
    assert np.mean(drawn) == pytest.approx(2500, abs=5 * deviation / math.sqrt(len(drawn)))
    assert np.std(drawn) == pytest.approx(deviation, rel=0.25)
    stated = asked.noise()
    assert stated.variance == pytest.approx(2 * math.exp(-1) / (1 - math.exp(-1)) ** 2), (
        "of counts, not of weights"
    )
    assert "for weights of at most 29/4" in stated.sentence()
