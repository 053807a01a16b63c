"""Averaging by the declaration of a programme: what the attack finds where every cell has noise."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.audit.declared_averaging import Design, RefiningSums, declared_pieces, most_exposed
from discreet.audit.evidence import PublishedTable, Universe
from discreet.audit.refinements import PublishedPieces
from discreet.programme.codelist import Code, Codelist, codelist
from discreet.programme.cube import Cube, Signature
from tests.audit.made import axis, flat, nested
from tests.audit.test_averaging import dense
from tests.cases import few


def universe(trees: list[Codelist], crosses: list[list[str]]) -> Universe:
    axes = {tree.name: axis(tree) for tree in trees}
    cubes = [Cube("x".join(names), "persons", tuple(axes[name] for name in names)) for names in crosses]
    tables = tuple(PublishedTable(cube, lambda: dense([])) for cube in cubes)
    return Universe("persons", "", "", tables, {tree.name: tree for tree in trees})


def test_the_paper_s_table_of_nine_cells_with_the_best_weights() -> None:
    one = most_exposed(
        [declared_pieces(universe([flat("SEX", 2), flat("AGE", 2)], [["SEX", "AGE"]]))], same_noise=True
    )
    assert (str(one), one.t) == ("total of persons", 4)
    assert one.ratio == pytest.approx(1 / (1 + 1 / 2 + 1 / 2 + 1 / 4))


def chain() -> Codelist:
    """A country with one region, which has two towns."""
    return codelist("GEO", [Code("R", "", ""), Code("R.1", "R", ""), Code("R.2", "R", "")])


def test_a_region_that_is_the_whole_country_is_the_same_group() -> None:
    """With noise by cell it is a second observation, with noise by participants it is not."""
    tables = [declared_pieces(universe([chain()], [["GEO"]]))]
    assert most_exposed(tables, same_noise=True).ratio == pytest.approx(1 / (1 + 1 / 2))
    assert most_exposed(tables, same_noise=False).ratio == pytest.approx(1 / (1 + 1 + 1 / 2))


def test_a_branch_that_ends_early_is_one_cell_at_every_depth() -> None:
    """2 has no parts, and is one observation: 1 is itself, 1.1 + 1.2, and the total less 2."""
    tree = codelist("R", [Code("1", "", ""), Code("2", "", ""), Code("1.1", "1", ""), Code("1.2", "1", "")])
    one = most_exposed([declared_pieces(universe([tree], [["R"]]))], same_noise=False)
    assert one.name == "R=1"
    assert one.ratio == pytest.approx(1 / (1 + 1 / 2 + 1 / 2))


def test_each_cross_tabulation_has_its_own_variance() -> None:
    def variance(signature: Signature) -> float:
        return 5.0 if signature.levels else 100.0

    one = most_exposed(
        [declared_pieces(universe([flat("A", 3)], [["A"]]))], same_noise=False, variance=variance
    )
    assert one.name == "A=A0", "the total: 1 / (1/100 + 1/15) = 13"
    assert one.ratio == pytest.approx(1 / (1 / 5 + 1 / 110)), "itself, and the total less two others"


TREES = st.lists(
    st.one_of(
        st.integers(1, 4).map(lambda size: ("flat", size, 0)),
        st.tuples(st.just("nested"), st.integers(1, 3), st.integers(1, 3)),
    ),
    min_size=1,
    max_size=3,
)


def exact_variances(tables: Universe) -> dict[tuple[int, ...], float]:
    """Published cell by its codes -> the variance of its best linear unbiased estimate, by dense algebra."""
    pieces = declared_pieces(tables)
    trees = list(pieces.trees.values())
    rows: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for key in pieces.measured:
        numbers = dict(key)
        codes = [
            np.flatnonzero(pieces.members[numbers[name]]).tolist() if name in numbers else [0]
            for name in pieces.trees
        ]
        for cell in product(*codes):
            row: NDArray[np.float64] = np.ones(1)
            for tree, code in zip(trees, cell, strict=True):
                leaves = np.zeros(tree.leaves_of[0].stop)
                leaves[tree.leaves_of[code]] = 1
                row = np.kron(row, leaves).astype(np.float64)
            rows[cell] = row
    every = np.array(list(rows.values()))
    gram = np.linalg.pinv(every.T @ every, hermitian=True)
    return {cell: float(row @ gram @ row) for cell, row in rows.items()}


@settings(max_examples=40, deadline=None)
@given(TREES, st.booleans())
def test_it_is_what_the_strongest_linear_adversary_finds(
    shapes: list[tuple[str, int, int]], whole: bool
) -> None:
    """Trees whose siblings are alike: the most exposed cell of one table or of two is found exactly."""
    trees = [
        flat(name, first) if kind == "flat" else nested(name, first, second)
        for name, (kind, first, second) in zip("ABC", shapes, strict=False)
    ]
    names = [tree.name for tree in trees]
    tables = universe(trees, [names] if whole or len(names) < 2 else [names[:2], names[1:]])
    least = min(exact_variances(tables).values())
    declared = most_exposed([declared_pieces(tables)], same_noise=False).ratio
    assert declared <= least * (1 + 1e-6), "never less exposed than it is"
    assert declared == pytest.approx(least, rel=1e-6 if whole else 0.05)


def lopsided(name: str) -> Codelist:
    """A with one code below it, B with three, C with none."""
    rows = [Code(f"{name}{k}", "", "") for k in "ABC"]
    rows += [Code(f"{name}A.1", f"{name}A", ""), *(Code(f"{name}B.{k}", f"{name}B", "") for k in range(3))]
    return codelist(name, rows)


def most_information(pieces: PublishedPieces, some: tuple[int, ...], same_noise: bool) -> float:
    """The largest sum of 1/m over the different sums of a count by some variables, by enumeration."""
    trees, names, best = list(pieces.trees.values()), list(pieces.trees), 0.0
    for cell in product(*(range(1, len(trees[k].codes)) for k in some)):
        target = dict(zip(some, cell, strict=True))
        sums: dict[frozenset[object], int] = {}
        for one in pieces.refinements:
            cuts = dict(one)
            below = []
            for k, tree in enumerate(trees):
                cut, code = cuts.get(names[k], 0), target.get(k, 0)
                inside, span = np.flatnonzero(tree.cuts[cut]).tolist(), tree.leaves_of[code]
                under = [a for a in inside if span.start <= tree.leaves_of[a].start < span.stop]
                below.append([(str(tree.leaves_of[a]) if same_noise else a) for a in under])
                if not tree.divides(cut)[code]:
                    break
            else:
                cells = frozenset(product(*below))
                sums[cells] = len(cells)
        best = max(best, sum(1 / m for m in sums.values()))
    return best


@pytest.mark.parametrize("same_noise", [True, False])
@pytest.mark.parametrize("crosses", few([[["A", "B", "C"]], [["A", "B"], ["B", "C"], ["A", "C"]]], 1))
def test_the_most_exposed_count_by_several_variables_is_that_of_an_enumeration(
    same_noise: bool, crosses: list[list[str]]
) -> None:
    """Counts by all codes of a variable are left to those without it, which are judged with differences."""
    pieces = declared_pieces(universe([lopsided("A"), lopsided("B"), nested("C", 2, 2)], crosses))
    sums = RefiningSums.of(pieces, same_noise, lambda _: 1.0)
    for size in range(2, len(crosses[0]) + 1):
        for some in combinations(range(3), size):
            wanted = most_information(pieces, some, same_noise)
            cells = list(sums.crossed(some, 0.0))
            found = [information for _, _, information in cells]
            assert max(found) == pytest.approx(wanted)
            assert all(code for cell, _, _ in cells for code in cell)
            assert not list(sums.crossed(some, max(found))), "nothing is more exposed than the most exposed"


def test_several_variables_are_one_sum_of_kronecker_products() -> None:
    tables = universe([uneven(), flat("B", 3), nested("C", 2, 2)], [["A", "B"], ["B", "C"]])
    design = Design(declared_pieces(tables), same_noise=False, variance=lambda one: 1.0 + len(one.levels))
    for some, codes in (((0, 1), (1, 2)), ((1, 2), (1, 3)), ((0, 1, 2), (4, 1, 6))):
        sets, weights = design._weights(some)
        matrix = np.zeros((1, 1))
        for numbers, weight in zip(zip(*sets, strict=True), weights.tolist(), strict=True):
            part = np.full((1, 1), weight)
            for k, code, number in zip(some, codes, numbers, strict=True):
                part = np.kron(part, design._gram(k, code, number))
            matrix = matrix + part
        wanted = np.linalg.inv(matrix + 1e-12 * np.trace(matrix) * np.eye(len(matrix)))[0, 0]
        assert design.several(some, codes) == pytest.approx(wanted)


CROSSES = ([["A", "B", "C"]], [["A", "B"], ["B", "C"]], [["A", "B", "C"], ["C"]], [["A", "C"], ["B"]])


@pytest.mark.parametrize("same_noise", few([True, False], 0))
@pytest.mark.parametrize("crosses", few(CROSSES, 0, 3))
def test_no_count_by_several_variables_has_less_than_its_floor(
    same_noise: bool, crosses: list[list[str]]
) -> None:
    pieces = declared_pieces(universe([lopsided("A"), chained("B"), nested("C", 2, 2)], crosses))
    design = Design(pieces, same_noise, lambda one: 1.0 + len(one.levels))
    close = []
    for size in (1, 2, 3):
        for some in combinations(range(3), size):
            for codes in product(*(range(1, len(tree.codes)) for tree in pieces.trees.values())):
                chosen = [codes[k] for k in some]
                floor, variance = design.floor(some, chosen), design.several(some, chosen)
                assert floor <= variance * (1 + 1e-9)
                close.append(floor / variance)
    assert max(close) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("same_noise", [True, False])
@pytest.mark.parametrize("crosses", CROSSES)
def test_what_is_left_out_is_not_the_most_exposed(same_noise: bool, crosses: list[list[str]]) -> None:
    """All counts by several variables are computed here, and the smallest of all variances is the one that is found."""
    pieces = declared_pieces(universe([lopsided("A"), chained("B"), nested("C", 2, 2)], crosses))
    design = Design(pieces, same_noise, lambda _: 1.0)
    sums = RefiningSums.of(pieces, same_noise, lambda _: 1.0)
    least = [design.one(k) for k in range(3)]
    variances = [float(one.min()) for one in least]
    for size in range(2, max(map(len, crosses)) + 1):
        for some in combinations(range(3), size):
            if any({"ABC"[k] for k in some} <= set(names) for names in crosses):
                variances.append(design.several(some, [1 + int(least[k][1:].argmin()) for k in some]))
                variances += [1 / information for _, _, information in sums.crossed(some, 0.0)]
    assert most_exposed([pieces], same_noise=same_noise).ratio == pytest.approx(min(variances), rel=1e-9)


def chained(name: str) -> Codelist:
    """A with one code below it, which has two; B with two."""
    below = {"A": "", "A.1": "A", "A.1.1": "A.1", "A.1.2": "A.1", "B": "", "B.1": "B", "B.2": "B"}
    return codelist(name, [Code(code, parent, "") for code, parent in below.items()])


def uneven() -> Codelist:
    rows = [Code("1", "", ""), Code("2", "", ""), Code("3", "", "")]
    below = [Code(f"1.{k}", "1", "") for k in range(5)] + [Code("2.1", "2", ""), Code("2.2", "2", "")]
    return codelist("A", [*rows, *below])


def test_no_count_by_one_variable_is_less_exposed_than_declared_where_siblings_differ() -> None:
    tables = universe([uneven(), flat("B", 3), flat("C", 2)], [["A", "B"], ["B", "C"]])
    pieces = declared_pieces(tables)
    design = Design(pieces, same_noise=False, variance=lambda _: 1.0)
    close = []
    for cell, wanted in exact_variances(tables).items():
        crossed = [k for k, code in enumerate(cell) if code]
        if len(crossed) <= 1:
            found = design.one(crossed[0] if crossed else 0)[cell[crossed[0]] if crossed else 0]
        else:
            found = design.several(tuple(crossed), [cell[k] for k in crossed])
        assert found <= wanted * (1 + 1e-6)
        close.append(found / wanted)
    assert min(close) > 0.9
    assert max(close) == pytest.approx(1, rel=1e-3)


def test_subtraction_makes_parts_as_exposed_as_their_total() -> None:
    """Averaging leaves a part of a full table as it is: only the adversary who subtracts has n/(n+1) of it."""
    pieces = declared_pieces(universe([flat("A", 4)], [["A"]]))
    found = Design(pieces, same_noise=False, variance=lambda _: 3.0).one(0)
    assert found == pytest.approx([3 * 4 / 5] * 5)


def test_the_total_of_balanced_tables_is_what_averaging_makes_of_it() -> None:
    """Siblings that are alike get equal weights, so that only sums over whole cross-tabulations count: 1 / sum(1/m)."""
    tables = universe([flat("A", 3), flat("B", 4), nested("C", 2, 3)], [["A", "B"], ["B", "C"], ["A", "C"]])
    a, b, c = [3], [4], [2, 6]
    pairs = [x * y for one, other in ((a, b), (b, c), (a, c)) for x in one for y in other]
    wanted = 1 / sum(1 / m for m in [1, *a, *b, *c, *pairs])
    assert exact_variances(tables)[0, 0, 0] == pytest.approx(wanted)
    assert most_exposed([declared_pieces(tables)], same_noise=False).ratio <= wanted * (1 + 1e-9)
