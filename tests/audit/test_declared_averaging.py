"""Averaging by the declaration of a programme: what the attack finds where every cell has noise."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.audit.declared_averaging import Design, most_exposed
from discreet.audit.evidence import PublishedTable, Universe
from discreet.audit.refinements import PublishedPieces
from discreet.programme.codelist import Code, Codelist, codelist
from discreet.programme.cube import Cube, Signature
from tests.audit.made import axis, flat, nested
from tests.audit.test_averaging import dense


def universe(trees: list[Codelist], crosses: list[list[str]]) -> Universe:
    axes = {tree.name: axis(tree) for tree in trees}
    cubes = [Cube("x".join(names), "persons", tuple(axes[name] for name in names)) for names in crosses]
    tables = tuple(PublishedTable(cube, lambda: dense([])) for cube in cubes)
    return Universe("persons", "", "", tables, {tree.name: tree for tree in trees})


def test_the_paper_s_table_of_nine_cells_with_the_best_weights() -> None:
    one = most_exposed([universe([flat("SEX", 2), flat("AGE", 2)], [["SEX", "AGE"]])], same_noise=True)
    assert (str(one), one.t) == ("total of persons", 4)
    assert one.ratio == pytest.approx(1 / (1 + 1 / 2 + 1 / 2 + 1 / 4))


def chain() -> Codelist:
    """A country with one region, which has two towns."""
    return codelist("GEO", [Code("R", "", ""), Code("R.1", "R", ""), Code("R.2", "R", "")])


def test_a_region_that_is_the_whole_country_is_the_same_group() -> None:
    """With noise by cell it is a second observation, with noise by participants it is not."""
    tables = [universe([chain()], [["GEO"]])]
    assert most_exposed(tables, same_noise=True).ratio == pytest.approx(1 / (1 + 1 / 2))
    assert most_exposed(tables, same_noise=False).ratio == pytest.approx(1 / (1 + 1 + 1 / 2))


def test_a_branch_that_ends_early_is_one_cell_at_every_depth() -> None:
    """2 has no parts, and is one observation: 1 is itself, 1.1 + 1.2, and the total less 2."""
    tree = codelist("R", [Code("1", "", ""), Code("2", "", ""), Code("1.1", "1", ""), Code("1.2", "1", "")])
    one = most_exposed([universe([tree], [["R"]])], same_noise=False)
    assert one.name == "R=1"
    assert one.ratio == pytest.approx(1 / (1 + 1 / 2 + 1 / 2))


def test_each_cross_tabulation_has_its_own_variance() -> None:
    def variance(signature: Signature) -> float:
        return 5.0 if signature.levels else 100.0

    one = most_exposed([universe([flat("A", 3)], [["A"]])], same_noise=False, variance=variance)
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
    pieces = PublishedPieces(tables)
    for table in tables.tables:
        pieces.declare(table.cube)
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
    declared = most_exposed([tables], same_noise=False).ratio
    assert declared <= least * (1 + 1e-6), "never less exposed than it is"
    assert declared == pytest.approx(least, rel=1e-6 if whole else 0.05)


def uneven() -> Codelist:
    rows = [Code("1", "", ""), Code("2", "", ""), Code("3", "", "")]
    below = [Code(f"1.{k}", "1", "") for k in range(5)] + [Code("2.1", "2", ""), Code("2.2", "2", "")]
    return codelist("A", [*rows, *below])


def test_no_count_by_one_variable_is_less_exposed_than_declared_where_siblings_differ() -> None:
    tables = universe([uneven(), flat("B", 3), flat("C", 2)], [["A", "B"], ["B", "C"]])
    pieces = PublishedPieces(tables)
    for table in tables.tables:
        pieces.declare(table.cube)
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
    pieces = PublishedPieces(universe([flat("A", 4)], [["A"]]))
    pieces.declare(pieces.universe.tables[0].cube)
    found = Design(pieces, same_noise=False, variance=lambda _: 3.0).one(0)
    assert found == pytest.approx([3 * 4 / 5] * 5)


def test_the_total_of_balanced_tables_is_what_averaging_makes_of_it() -> None:
    """Siblings that are alike get equal weights, so that only sums over whole cross-tabulations count: 1 / sum(1/m)."""
    tables = universe([flat("A", 3), flat("B", 4), nested("C", 2, 3)], [["A", "B"], ["B", "C"], ["A", "C"]])
    a, b, c = [3], [4], [2, 6]
    pairs = [x * y for one, other in ((a, b), (b, c), (a, c)) for x in one for y in other]
    wanted = 1 / sum(1 / m for m in [1, *a, *b, *c, *pairs])
    assert exact_variances(tables)[0, 0, 0] == pytest.approx(wanted)
    assert most_exposed([tables], same_noise=False).ratio <= wanted * (1 + 1e-9)
