"""Noise with a guarantee: its law, its budget, its zeros, and that every cube shows the same value."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import stats

from discreet.errors import Mistakes
from discreet.maths.cells.counting import increments
from discreet.maths.noise.additive import AdditiveLaw, LawKind
from discreet.maths.noise.hellinger import hellinger
from discreet.maths.noise.named import budgeted_law
from discreet.maths.noise.publishing import Negatives, Publishing
from discreet.maths.noise.thresholds import delta_between, row_table, threshold_table
from discreet.maths.privacy.accounting import EpsilonDelta, Neighbours, epsilon_of_rho
from discreet.perturb import private
from discreet.perturb.budget import plan
from discreet.perturb.private import PrivateMechanism, drawing_distances, impossible, least_visible
from discreet.programme.codelist import Breakdown, Code, Codelist, breakdown, codelist
from discreet.programme.cube import Cube, crosstabs, signatures
from discreet.programme.filter import Filter, parse_filter
from discreet.programme.noise import (
    NO_NEGATIVES,
    BudgetRule,
    Claim,
    Draw,
    KeptZeros,
    PrivateNoise,
    Protects,
    Split,
)
from discreet.programme.statistic import Statistics
from discreet.tabulate.counter import AxisRows, SparseGrid
from discreet.tabulate.tables import ConfidentialTable, ProtectedTable
from tests.attributes import own

KEY = bytes(range(32))
Integers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def variable(name: str, groups: int, each: int) -> tuple[Codelist, dict[str, Breakdown]]:
    """A tree of two levels with the breakdowns L and H."""
    rows = [Code(f"{g}", "", "") for g in range(groups)]
    rows += [Code(f"{g}.{c}", f"{g}", "") for g in range(groups) for c in range(each)]
    tree = codelist(name, rows)
    return tree, {
        level: breakdown(name, level, tree, tree.level(depth)) for level, depth in (("L", 1), ("H", 2))
    }


TREES: dict[str, Codelist] = {}
AXES: dict[str, Breakdown] = {}
for _name, _groups, _each in (("A", 3, 4), ("B", 5, 2), ("C", 40, 50)):
    TREES[_name], _cuts = variable(_name, _groups, _each)
    AXES.update({f"{_name}.{level}": axis for level, axis in _cuts.items()})


def cube(name: str, *axes: str) -> Cube:
    return Cube(name, "persons", tuple(AXES[axis] for axis in axes))


def counted(of: Cube, leaves: dict[str, Integers]) -> ConfidentialTable:
    """The true table of records with these leaves."""
    records = len(next(iter(leaves.values())))
    position = np.zeros(records, dtype=np.int64)
    for axis, stride in zip(of.axes, of.strides, strict=True):
        position += axis.node_of_leaf[leaves[axis.variable]] * stride
    keys = np.random.default_rng(1).integers(0, 2**32, records).astype(np.uint32)
    grid = SparseGrid(of, AxisRows(of, {}, {}))
    grid.add_cells(position.astype(np.uint64), increments(keys))
    positions, cells = grid.rolled_up()
    return ConfidentialTable(of, cells, positions)


def people(records: int, seed: int = 0) -> dict[str, Integers]:
    rng = np.random.default_rng(seed)
    return {name: rng.integers(0, len(tree.leaves), records) for name, tree in TREES.items()}


def declared(kind: LawKind, budget: BudgetRule, **changed: object) -> PrivateNoise:
    return PrivateNoise(kind, budget, attributes=own(*TREES), **changed)  # type: ignore[arg-type]


def noise(epsilon: float | str = 2, **changed: object) -> PrivateNoise:
    return declared(LawKind.GEOMETRIC, BudgetRule(Fraction(str(epsilon))), **changed)


def mechanism(
    rule: PrivateNoise, *cubes: Cube, key: bytes = KEY, zeros: tuple[Filter, ...] = (), cells: int = 10**7
) -> PrivateMechanism:
    return PrivateMechanism(plan(rule, cubes), TREES, zeros, cells, key, Statistics(TREES, {}, zeros))


def published(table: ProtectedTable) -> dict[int, int]:
    return dict(zip(table.cells.tolist(), table.values.tolist(), strict=True))


def described(table: ProtectedTable) -> dict[frozenset[tuple[str, str]], int]:
    """Values by what their cells describe, whatever the cube."""
    found = {}
    for cell, value in published(table).items():
        nodes = [
            (axis, int(table.cube.nodes(np.array([cell]), k)[0])) for k, axis in enumerate(table.cube.axes)
        ]
        found[frozenset((axis.variable, axis.codes[node]) for axis, node in nodes if node)] = value
    return found


def test_the_same_cell_has_the_same_value_in_every_cube() -> None:
    one, two, both = cube("1", "A.H", "B.L"), cube("2", "B.H", "A.L"), people(300)
    asked = mechanism(noise(20, published=Publishing(Negatives.KEEP)), one, two)
    first, second = (described(asked.perturb(counted(of, both))) for of in (one, two))
    shared = {cell for cell in first.keys() | second.keys() if _held(cell, one) and _held(cell, two)}
    assert len(shared) > 20
    assert all(first.get(cell, 0) == second.get(cell, 0) for cell in shared)


def _held(cell: frozenset[tuple[str, str]], of: Cube) -> bool:
    codes = {axis.variable: axis.codes for axis in of.axes}
    return all(code in codes.get(name, ()) for name, code in cell)


@pytest.mark.parametrize("epsilon", [0.7, 1.5])
def test_noise_follows_the_law_of_the_budget_share_and_no_other(epsilon: float) -> None:
    """C.H has 2000 cells; the budget is split over its three cross-tabulations."""
    of = cube("c", "C.H")
    asked = mechanism(noise(str(3 * Fraction(str(epsilon))), published=Publishing(Negatives.KEEP)), of)
    assert set(asked.plan.parameters.values()) == {Fraction(str(epsilon))}
    table = counted(of, people(1000))
    noisy = published(asked.perturb(table))
    assert table.positions is not None
    true = dict(zip(table.positions.tolist(), (table.cells & np.uint64(0xFFFFFFFF)).tolist(), strict=True))
    finest = np.flatnonzero(AXES["C.H"].finest).tolist()
    drawn = [noisy.get(cell, 0) - true.get(cell, 0) for cell in finest]
    assert _fits(drawn, epsilon) > 1e-4
    assert _fits(drawn, 1.35 * epsilon) < 1e-4


def _fits(drawn: list[int], epsilon: float) -> float:
    """The p-value of a chi-square test against the discrete Laplace law."""
    a, most = np.exp(-epsilon), 6
    law = (1 - a) / (1 + a) * a ** np.abs(np.arange(-most, most + 1))
    law[[0, -1]] = a**most / (1 + a)
    seen = np.bincount(np.clip(drawn, -most, most) + most, minlength=2 * most + 1)
    return float(stats.chisquare(seen, law / law.sum() * seen.sum()).pvalue)


def test_the_sparse_draw_has_the_law_of_the_dense_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over many keys, which empty cells become visible and with what values: sparse against cell by cell."""
    of, rule = cube("b", "B.H"), noise(3, published=Publishing(Negatives.ZERO, threshold=2))
    seen: dict[int, list[int]] = {}
    for at_once in (1 << 16, 0):
        monkeypatch.setattr(private, "ALL_AT_ONCE", at_once)
        values = seen.setdefault(at_once, [])
        for key in range(400):
            asked = mechanism(rule, of, key=key.to_bytes(32, "little"))
            table = ConfidentialTable(of, np.zeros(of.size, dtype=np.uint64))
            values.extend(asked.perturb(table).values.tolist())
    dense, sparse = seen[1 << 16], seen[0]
    share = float(np.exp(-2) / (1 + np.exp(-1)))  # Pr[v >= 2] at epsilon 1
    expected = 400 * of.size * share
    for drawn in (dense, sparse):
        assert abs(len(drawn) - expected) < 5 * expected**0.5
        assert min(drawn) == 2
    kinds = [np.bincount(np.minimum(drawn, 6), minlength=7)[2:] for drawn in (dense, sparse)]
    assert stats.chi2_contingency(np.array(kinds)).pvalue > 1e-4


def test_structural_zeros_are_never_perturbed() -> None:
    of = cube("ab", "A.H", "B.H")
    rule = parse_filter('A == "1" and B in ("2", "3.0")', TREES)
    asked = mechanism(noise("1/10", published=Publishing(Negatives.KEEP)), of, zeros=(rule,))
    cells = described(asked.perturb(ConfidentialTable(of, np.zeros(of.size, dtype=np.uint64))))
    inside = [
        c for c in cells if _code(c, "A").startswith("1") and _code(c, "B") in ("2", "2.0", "2.1", "3.0")
    ]
    assert inside == []
    assert len(cells) > of.size * 0.7


def _code(cell: frozenset[tuple[str, str]], name: str) -> str:
    return dict(cell).get(name, "")


def test_the_drawing_rules() -> None:
    of, who = cube("ab", "A.H", "B.H"), people(50)
    table = counted(of, who)
    keyed = [published(mechanism(noise(9), of, key=key).perturb(table)) for key in (KEY, KEY, bytes(32))]
    assert keyed[0] == keyed[1] != keyed[2]
    by_group = noise(9, draw=Draw.PARTICIPANTS, keep_zeros=KeptZeros.ALL, claim=Claim.NONE)
    asked = mechanism(by_group, of)
    assert asked.noise().guarantee is None
    lonely = described(asked.perturb(counted(of, {name: leaf[:1] for name, leaf in who.items()})))
    assert len(set(lonely.values())) <= 1  # one person in every cell: one group, one value
    assert mechanism(noise(9), of).noise().guarantee is not None


def test_two_laws_never_draw_from_the_same_words() -> None:
    """Their difference would betray the words, and with them the count."""
    of = cube("c", "C.H")
    table = ConfidentialTable(of, np.zeros(of.size, dtype=np.uint64))
    kept = Publishing(Negatives.KEEP)
    drawn = [
        published(mechanism(noise(epsilon, published=kept), of).perturb(table)) for epsilon in ("3/2", "2")
    ]
    both = np.array([[field.get(cell, 0) for cell in range(of.size)] for field in drawn])
    assert abs(np.corrcoef(both)[0, 1]) < 0.12  # 2041 cells: five standard deviations


def test_a_dense_release_is_refused_with_what_to_expect_and_two_remedies() -> None:
    of = cube("c", "C.H")
    empty = ConfidentialTable(of, np.zeros(of.size, dtype=np.uint64))
    with pytest.raises(Mistakes, match=r"about \d.* cells visible; raise the budget, or set a threshold"):
        mechanism(noise("1/10"), of, cells=500).perturb(empty)
    thin = noise(3, published=Publishing(Negatives.ZERO, threshold=12))
    assert len(mechanism(thin, of, cells=500).perturb(empty)) < 500


def test_a_budget_is_divided_by_what_a_household_reaches() -> None:
    household = noise(protects=Protects.HOUSEHOLD, largest_household=8)
    of = cube("ab", "A.H", "B.H")
    assert set(plan(household, [of]).parameters.values()) == {Fraction(2, 9 * 8)}


def test_the_budget_is_used_up_and_never_exceeded() -> None:
    one, two = cube("1", "A.H", "B.L"), cube("2", "B.L")
    every = signatures([one, two])
    assert len(every) == 6  # the margin of B stands in both
    by_table = BudgetRule(Fraction(1), Split.BY_TABLE, {"1": Fraction(1, 3), "2": Fraction(2, 3)})
    by_axes = BudgetRule(Fraction(1), Split.BY_AXES, {str(n): Fraction(1, 3) for n in range(3)})
    for budget in (BudgetRule(Fraction(1)), by_table, by_axes):
        rule = declared(LawKind.GEOMETRIC, budget)
        assert sum(plan(rule, [one, two]).parameters.values()) == 1


def test_the_stated_epsilon_and_delta_hold_for_the_integers_that_are_drawn() -> None:
    of = cube("ab", "A.H", "B.H")
    found = plan(noise(9), [of])
    (table,) = found.tables.values()
    assert table.certified_epsilon() * 9 <= 9 * (1 + 1e-12)
    assert 0 < found.delta() < Fraction(1, 10**30)
    truncated = declared(LawKind.LAPLACE, BudgetRule(Fraction(9)), bound=10)
    tail = np.exp(-10) / (1 + 2 * (np.exp(-1) - np.exp(-11)) / (1 - np.exp(-1)))
    assert float(plan(truncated, [of]).delta()) == pytest.approx(9 * tail, rel=1e-9)


def test_cross_tabulations_partition_the_cells_of_a_cube() -> None:
    of = cube("ab", "B.H", "A.H")
    seen: list[int] = []
    for crosstab in crosstabs(of, TREES):
        numbers = np.arange(crosstab.size)
        cells, held = crosstab.cells(of, numbers)
        assert held.all()
        assert (crosstab.numbers(of, cells) == numbers).all()
        seen.extend(cells.tolist())
    assert sorted(seen) == list(range(of.size))


@pytest.mark.parametrize(
    ("rule", "given", "expected"),
    [
        (NO_NEGATIVES, [-3, 0, 4], [0, 0, 4]),
        (Publishing(Negatives.KEEP), [-3, 0, 4], [-3, 0, 4]),
        (Publishing(Negatives.ZERO, rounding=5), [-3, 2, 3, 7, 8], [0, 0, 5, 5, 10]),
        (Publishing(Negatives.ZERO, threshold=4), [-3, 3, 4], [0, 0, 4]),
    ],
)
def test_post_processing(rule: Publishing, given: list[int], expected: list[int]) -> None:
    assert rule.publish(np.array(given)).tolist() == expected
    least = least_visible(rule)
    for v in range(-9, 10):
        shown = rule.publish(np.array([v]))[0] != 0
        assert shown == (v != 0 if least is None else v >= least)


def test_a_gaussian_budget_is_divided_by_the_squared_reach() -> None:
    of = cube("ab", "A.L", "B.L")
    gaussian = declared(
        LawKind.DISCRETE_GAUSSIAN,
        BudgetRule(Fraction(8)),
        delta=Fraction(1, 10**6),
        protects=Protects.HOUSEHOLD,
        largest_household=3,
    )
    found = plan(gaussian, [of])
    assert set(found.parameters.values()) == {Fraction(8, 4 * 9)}
    assert found.delta() == Fraction(1, 10**6)


def test_delta_is_certified_for_records_that_spread_and_that_pile_up() -> None:
    """A household of three changes three cells by one, or one cell by three, whichever is worse."""
    of = cube("a", "A.L")
    rule = declared(
        LawKind.LAPLACE, BudgetRule(Fraction(6)), bound=9, protects=Protects.HOUSEHOLD, largest_household=3
    )
    found = plan(rule, [of])
    ((epsilon, table),) = found.tables.items()
    assert epsilon == 1  # two cross-tabulations, three persons
    spread, piled = 3 * table.certified_delta(epsilon), table.certified_delta(3 * epsilon, 3)
    assert 1 <= found.delta() / (2 * max(spread, piled)) < 1 + Fraction(1, 10**20)


@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        (LawKind.LAPLACE, 3),
        (LawKind.LAPLACE, 9),
        (LawKind.NORMAL, 2),
        (LawKind.NORMAL, 6),
        (LawKind.GEOMETRIC, None),
    ],
)
@pytest.mark.parametrize("epsilon", [Fraction(1, 7), Fraction(2)])
def test_no_division_of_a_change_over_cells_costs_more_than_the_certified_delta(
    kind: LawKind, bound: int | None, epsilon: Fraction
) -> None:
    """Every division into cells; and for small ones the true delta of the cells together, by enumeration."""
    law = budgeted_law(kind, epsilon, bound)
    assert isinstance(law, AdditiveLaw)
    table = threshold_table(law)
    for largest in (1, 2, 3, 5, 8):
        rate = table.delta_per_change(epsilon, largest)
        each = {k: table.certified_delta(k * epsilon, k) for k in range(1, largest + 1)}
        for total in (largest, 2 * largest, 2 * largest + 1):
            worst = max(sum(each[k] for k in parts) for parts in _divisions(total, largest))
            assert worst <= total * rate
    if bound is not None and bound <= 3:
        p = {v: table.number(v) / 2**128 for v in range(-bound, bound + 1)}
        for parts in _divisions(4, 3):
            joint = [
                (
                    np.prod([p[v] for v in drawn]),
                    np.prod([p.get(v - k, 0.0) for v, k in zip(drawn, parts, strict=True)]),
                )
                for drawn in product(p, repeat=len(parts))
            ]
            true = sum(max(0.0, a - np.exp(float(4 * epsilon)) * b) for a, b in joint)
            assert true <= float(4 * table.delta_per_change(epsilon, 3)) * (1 + 1e-9)


def _divisions(total: int, largest: int) -> list[tuple[int, ...]]:
    """Every way to write a number as a sum of numbers from 1 to the largest, in descending order."""
    if total == 0:
        return [()]
    return [
        (first, *rest)
        for first in range(min(total, largest), 0, -1)
        for rest in _divisions(total - first, first)
    ]


def test_the_delta_of_hellinger_noise_is_that_of_its_first_rows() -> None:
    """A person moves a household between two cells, or it comes or goes; of three members all may be in one."""
    shares = {"0": Fraction(1, 3), "1": Fraction(2, 3)}
    rule = declared(LawKind.HELLINGER, BudgetRule(Fraction(30), Split.BY_AXES, shares))
    of = Cube("a", "households", (AXES["A.L"],))
    found = plan(rule, [of])
    (epsilon,) = found.tables
    assert epsilon == 10  # the total with one cell, the other cross-tabulation with two
    rows = [row_table(hellinger(epsilon), count) for count in range(4)]
    one = max(delta_between(p, q, epsilon) for p, q in pairwise(rows))
    assert found.delta() == 3 * one
    members = declared(
        LawKind.HELLINGER, BudgetRule(Fraction(60)), protects=Protects.HOUSEHOLD, largest_household=3
    )
    grouped = plan(members, [cube("a", "A.L")])
    assert set(grouped.tables) == {epsilon}
    assert grouped.delta() == 2 * EpsilonDelta(epsilon, one).grouped(3).delta


def test_a_delta_of_one_in_the_population_is_a_problem() -> None:
    of = cube("a", "A.L")
    rule = declared(LawKind.LAPLACE, BudgetRule(Fraction(2)), bound=5)
    drawn = mechanism(rule, of)
    most = int(1 / drawn.plan.delta())
    assert list(drawn.problems(most)) == []
    (problem,) = drawn.problems(most + 1)
    assert problem.key == "noise.delta"
    for allowed in ({"large_delta": True}, {"claim": Claim.NONE}):
        accepted = declared(LawKind.LAPLACE, BudgetRule(Fraction(2)), bound=5, **allowed)
        assert list(mechanism(accepted, of).problems(10 * most)) == []


def test_the_least_noise_that_shows_in_an_empty_cell_is_the_least_that_is_not_published_as_zero() -> None:
    """Noise that were not drawn though it shows would tell empty cells from occupied ones."""
    every = np.arange(1, 60)
    for rounding in range(1, 12):
        for threshold in range(30):
            rule = Publishing(Negatives.ZERO, rounding, threshold)
            assert least_visible(rule) == every[rule.publish(every) > 0][0]
    assert least_visible(Publishing(Negatives.KEEP, 5, 5)) is None


def test_a_rho_is_told_in_rho_and_in_epsilon_only_at_a_declared_delta() -> None:
    """What the sampler adds to delta is part of the epsilon that is told: less of the delta is left for rho."""
    budget, of, delta = BudgetRule(Fraction(2)), cube("a", "A.L", "C.H"), Fraction(1, 10**6)
    bare = mechanism(declared(LawKind.DISCRETE_GAUSSIAN, budget), of).noise().guarantee
    assert bare is not None
    assert bare.figures() == {"rho": 2.0}
    assert "epsilon" not in bare.sentence()
    assert "delta" not in bare.sentence()
    asked = mechanism(declared(LawKind.DISCRETE_GAUSSIAN, budget, delta=delta), of)
    found = replace(asked.plan, distances=drawing_distances(asked.plan, [of], TREES))
    told = replace(asked, plan=found).noise().guarantee
    assert told is not None
    assert 0 < told.distance < Fraction(1, 2**80)
    assert told.figures()["epsilon"] >= epsilon_of_rho(Fraction(2), delta)
    wide = replace(told, distance=Fraction(1, 10**12))
    assert wide.figures()["epsilon"] > epsilon_of_rho(Fraction(2), delta)
    with pytest.raises(Mistakes, match="what the sampler itself adds"):
        replace(told, distance=Fraction(1, 10**8)).figures()


@pytest.mark.parametrize(
    "text",
    [
        'A in ("0.0", "0.1")',
        'A in ("0.0", "0.1", "0.2", "0.3")',
        'A == "0" and B == "1.0"',
        'A == "0" or B in ("1", "2.1")',
        'A != "0.0" and not B == "1"',
    ],
)
def test_a_cell_is_impossible_only_if_all_records_it_could_hold_are(text: str) -> None:
    """Compared with every combination of leaves; a rule with an alternative may miss cells that both parts cover."""
    of, rule = cube("ab", "A.H", "B.H"), parse_filter(text, TREES)
    leaves = np.array(list(product(*(range(len(TREES[name].leaves)) for name in "AB"))))
    passing = rule.mask({"A": leaves[:, 0], "B": leaves[:, 1]})
    found = impossible(of, np.arange(of.size), [rule])
    for cell in range(of.size):
        inside = np.ones(len(leaves), dtype=bool)
        for k, axis in enumerate(of.axes):
            node = int(of.nodes(np.array([cell]), k)[0])
            below = {node}
            for later in range(node + 1, len(axis)):
                if axis.parents[later] in below:
                    below.add(later)
            inside &= np.isin(axis.node_of_leaf[leaves[:, k]], list(below))
        whole = bool(passing[inside].all())
        assert whole or not found[cell]
        assert " or " in text or found[cell] == whole


def test_a_delta_of_exactly_one_in_the_population_is_a_problem() -> None:
    rule = declared(LawKind.DISCRETE_GAUSSIAN, BudgetRule(Fraction(2)), delta=Fraction(1, 1000))
    drawn = mechanism(rule, cube("a", "A.L"))
    assert len(list(drawn.problems(1000))) == 1
    assert list(drawn.problems(999)) == []


def test_the_parameters_that_are_told() -> None:
    of = cube("a", "A.L")
    geometric = mechanism(noise(2), of)
    told = dict(geometric.noise().parameters())
    assert told == {
        "epsilon": "2",
        "cross-tabulations": 2,
        "split": "even",
        "noise per cross-tabulation": "1",
        "draw": "fresh",
        "keep_zeros": "structural",
        "negatives": "zero",
        "rounding": 1,
        "threshold": 0,
        "neighbours": "add-remove",
        "protects": "person",
    }
    bounded = mechanism(declared(LawKind.LAPLACE, BudgetRule(Fraction(2)), bound=7), of)
    assert dict(bounded.noise().parameters()) == told | {"bound": 7}
    assert geometric.identity != mechanism(noise(3), of).identity
    assert b"1" in geometric.identity


@pytest.mark.parametrize("kind", [LawKind.LAPLACE, LawKind.NORMAL])
def test_a_truncated_law_needs_a_bound(kind: LawKind) -> None:
    with pytest.raises(Mistakes, match="bound: 0"):
        plan(declared(kind, BudgetRule(Fraction(1))), [cube("a", "A.L")])


def filled(of: Cube, count: int) -> ConfidentialTable:
    """Every cell with the same count, and a key of its own."""
    cells = (np.arange(of.size, dtype=np.uint64) << np.uint64(32)) | np.uint64(count)
    return ConfidentialTable(of, cells)


@pytest.mark.parametrize("draw", list(Draw))
def test_no_occupied_cell_is_without_noise(draw: Draw) -> None:
    """Of 40 keys some change each cell, the first and the last of a cross-tabulation, too."""
    of = cube("ab", "A.L", "B.L")
    rule = noise("1/2", draw=draw, keep_zeros=KeptZeros.ALL, claim=Claim.NONE)
    seen = np.zeros(of.size, dtype=np.int64)
    for key in range(40):
        table = mechanism(rule, of, key=key.to_bytes(32, "little")).perturb(filled(of, 1000))
        seen[table.cells[table.values != 1000]] += 1
    assert (seen > 0).all()


def test_cells_drawn_in_parts_have_the_noise_of_cells_drawn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    of = cube("ab", "A.H", "B.H")
    asked = mechanism(noise(9, published=Publishing(Negatives.KEEP)), of)
    together = published(asked.perturb(filled(of, 50)))
    for parts in (1, 7, 16):
        monkeypatch.setattr(private, "AT_ONCE", parts)
        assert published(asked.perturb(filled(of, 50))) == together


def test_empty_cells_show_every_value_from_the_threshold_on() -> None:
    """2000 empty cells with discrete Laplace noise of epsilon 1, of which only 2 and more is published."""
    of = cube("c", "C.H")
    rule = noise(3, published=Publishing(Negatives.ZERO, threshold=2))
    empty = ConfidentialTable(of, np.zeros(of.size, dtype=np.uint64))
    values = mechanism(rule, of).perturb(empty).values
    a = np.exp(-1)
    for least in (2, 3, 4):
        expected = of.size * a**least / (1 + a)
        assert abs((values >= least).sum() - expected) < 4 * expected**0.5
    assert values.min() == 2


@pytest.mark.parametrize("count", [0, 1, 7])
def test_hellinger_noise_follows_the_row_of_the_count(count: int) -> None:
    of = cube("c", "C.H")
    asked = mechanism(declared(LawKind.HELLINGER, BudgetRule(Fraction(12))), of)
    assert set(asked.plan.parameters.values()) == {Fraction(4)}
    found = published(asked.perturb(filled(of, count)))
    finest = np.flatnonzero(AXES["C.H"].finest).tolist()
    drawn = np.array([found.get(cell, 0) for cell in finest])
    fits = {}
    for row in (count, count + 1):
        law = hellinger(4).row(row)
        expected = len(drawn) * np.array(
            [*(law.at(j) for j in range(12)), 1 - sum(law.at(j) for j in range(12))]
        )
        seen = np.bincount(np.minimum(drawn, 12), minlength=13)
        fits[row] = stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue
    assert fits[count] > 1e-4
    assert fits[count + 1] < 1e-4


def test_hellinger_noise_is_refused_for_a_count_that_is_too_large() -> None:
    of = cube("a", "A.L")
    asked = mechanism(declared(LawKind.HELLINGER, BudgetRule(Fraction(20))), of)
    values = asked.perturb(filled(of, private.MOST_ROWS)).values
    assert len(values) == of.size
    assert np.abs(values - private.MOST_ROWS).max() < 10**3  # the square root changes by a few fifths
    with pytest.raises(Mistakes, match="counts above 10000"):
        asked.perturb(filled(of, private.MOST_ROWS + 1))


def test_the_identity_does_not_depend_on_the_order_of_the_cubes() -> None:
    one, two = cube("1", "B.L", "A.L"), cube("2", "A.H")
    assert mechanism(noise(), one, two).identity == mechanism(noise(), two, one).identity


def test_each_cross_tabulation_is_told_with_its_own_law() -> None:
    """Of a budget split unevenly the widest noise is the one of the release, the others are told beside it."""
    one, two = cube("1", "A.L"), cube("2", "B.L")
    shares = {"1": Fraction(1, 4), "2": Fraction(3, 4)}
    rule = declared(LawKind.GEOMETRIC, BudgetRule(Fraction(2), Split.BY_TABLE, shares))
    asked = mechanism(rule, one, two)
    told = asked.noise()
    parameters = asked.plan.parameters
    assert len(set(parameters.values())) > 1
    for signature, parameter in parameters.items():
        assert told.law_of(signature).parameter == parameter
    assert told.law is not None
    assert told.law.parameter == min(parameters.values())
    variances = {asked.plan.table(signature).pmf().variance for signature in parameters}
    assert told.variance == max(variances) > min(variances)
    assert set(told.laws) == {str(s) for s, p in parameters.items() if p != min(parameters.values())}
    amounts = dict(told.parameters())["noise per cross-tabulation"]
    assert amounts == ", ".join(sorted(map(str, set(parameters.values()))))


def test_the_noise_of_a_described_cell_does_not_depend_on_its_count() -> None:
    """Empty cells, which are drawn apart, have the noise that they would have with records in them."""
    of = cube("ab", "A.H", "B.H")
    asked = mechanism(noise(9, published=Publishing(Negatives.KEEP)), of)
    empty, full = (published(asked.perturb(filled(of, count))) for count in (0, 50))
    assert {cell: value + 50 for cell, value in empty.items()} == {
        cell: value for cell, value in full.items() if value != 50
    }
    assert len(full) == of.size


def test_cell_keys_matter_only_where_the_participants_decide() -> None:
    of = cube("a", "A.L")
    for draw in Draw:
        rule = noise(draw=draw, keep_zeros=KeptZeros.ALL, claim=Claim.NONE)
        assert mechanism(rule, of).key_modulus == (2**32 if draw is Draw.PARTICIPANTS else 1)


def test_the_guarantee_tells_the_measure_of_the_law_and_a_delta_that_is_rounded_up() -> None:
    of = cube("a", "A.L")
    laplace = mechanism(declared(LawKind.LAPLACE, BudgetRule(Fraction(2)), bound=30), of)
    told = laplace.noise().guarantee
    assert told is not None
    assert (told.epsilon, told.rho) == (Fraction(2), None)
    assert told.delta >= laplace.plan.delta()
    assert told.delta <= laplace.plan.delta() * (1 + Fraction(1, 10**11))
    assert len(f"{Decimal(told.delta.numerator) / Decimal(told.delta.denominator):e}".split("e")[0]) <= 13
    normal = declared(LawKind.DISCRETE_GAUSSIAN, BudgetRule(Fraction(2)), delta=Fraction(1, 10**6))
    told = mechanism(normal, of).noise().guarantee
    assert told is not None
    assert (told.epsilon, told.rho, told.delta) == (None, Fraction(2), Fraction(1, 10**6))


def test_delta_counts_every_pile_of_a_substitution() -> None:
    """Two households that move alike change two cells by two each, and both may leave the support."""
    of = Cube("a", "households", (AXES["A.L"],))
    rule = declared(LawKind.LAPLACE, BudgetRule(Fraction(8)), bound=9, neighbours=Neighbours.SUBSTITUTE)
    found = plan(rule, [of])
    by_levels = {len(signature.levels): parameter for signature, parameter in found.parameters.items()}
    assert by_levels == {0: Fraction(2), 1: Fraction(1)}, (
        "4 of epsilon each; totals change by 2, the others by 4"
    )
    total, crossed = found.tables[Fraction(2)], found.tables[Fraction(1)]
    piled = 2 * crossed.certified_delta(2, 2)
    assert 1 <= found.delta() / (2 * total.certified_delta(2) + piled) < 1 + Fraction(1, 10**20)
    assert piled > 4 * crossed.certified_delta(1)
