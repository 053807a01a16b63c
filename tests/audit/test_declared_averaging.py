"""Averaging by the declaration of a programme: what the attack finds where every cell has noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.audit.averaging import average
from discreet.audit.declared_averaging import most_exposed
from discreet.audit.evidence import PublishedTable, Universe
from discreet.maths.attacks.averaging import Method
from discreet.maths.noise.publishing import UNCHANGED
from discreet.programme.codelist import Code, Codelist, codelist
from discreet.programme.cube import Cube, Signature
from tests.audit.known import known
from tests.audit.made import axis, flat, nested
from tests.audit.test_averaging import dense, release


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
    """2 has no parts: at depth 2 it is the cell of depth 1 again. 1 + 2 and 1.1 + 1.2 + 2 are two sums."""
    tree = codelist("R", [Code("1", "", ""), Code("2", "", ""), Code("1.1", "1", ""), Code("1.2", "1", "")])
    one = most_exposed([universe([tree], [["R"]])], same_noise=False)
    assert (one.name, one.t) == ("total", 3)
    assert one.ratio == pytest.approx(1 / (1 + 1 / 2 + 1 / 3))


def test_each_cross_tabulation_has_its_own_variance() -> None:
    def variance(signature: Signature) -> float:
        return 5.0 if signature.levels else 100.0

    one = most_exposed([universe([flat("A", 3)], [["A"]])], same_noise=False, variance=variance)
    assert (one.name, one.ratio) == ("A=A0", 5.0), "the total: 1 / (1/100 + 1/15) = 13"


TREES = st.lists(
    st.one_of(
        st.integers(1, 4).map(lambda size: ("flat", size, 0)),
        st.tuples(st.just("nested"), st.integers(1, 3), st.integers(1, 3)),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=40, deadline=None)
@given(TREES, st.integers(0, 2**31), st.floats(0.5, 5.0))
def test_it_is_what_the_attack_finds(shapes: list[tuple[str, int, int]], seed: int, V: float) -> None:
    """On tables without empty cells: the most exposed cell of any cross-tabulation is not more exposed."""
    trees = [
        flat(name, first) if kind == "flat" else nested(name, first, second)
        for name, (kind, first, second) in zip("ABC", shapes, strict=False)
    ]
    names = [tree.name for tree in trees]
    crosses = [names, *([names[:1]] if len(names) > 1 else [])]
    axes = {tree.name: axis(tree) for tree in trees}
    cubes = [Cube("x".join(one), "persons", tuple(axes[name] for name in one)) for one in crosses]
    generator = np.random.default_rng(seed)
    shown = [(cube, dense(generator.integers(50, 99, cube.shape))) for cube in cubes]
    noise = known(False, False, V, publishing=UNCHANGED)
    found = average(release(shown, trees, noise))
    least = min(float(one.averages.variances[Method.WEIGHTED].min()) for one in found.tables)
    declared = most_exposed(release(shown, trees, noise).universes, same_noise=False, variance=lambda _: V)
    assert declared.ratio == pytest.approx(least)
