from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.audit.bayes import Belief, scan
from discreet.audit.cells import Reader, located_crosstabs, once
from discreet.audit.disclosure import judge
from discreet.audit.evidence import Cells, Published, PublishedTable, Truth, Universe
from discreet.audit.utility import UtilityRule, utility
from discreet.io.serialize import to_json
from discreet.perturb.mechanism import Mechanism
from discreet.programme.codelist import Codelist, breakdown
from discreet.programme.cube import Cube
from discreet.tabulate.tables import ConfidentialTable
from tests.audit.made import axis, cell_key, flat, nested
from tests.audit.subsets import counted, occupied

GEO, SEX = nested("GEO", 3, 2), flat("SEX", 2)
NOTHING = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def universe(*cubes: Cube) -> Universe:
    tables = tuple(PublishedTable(cube, lambda: NOTHING) for cube in cubes)
    return Universe("persons", "", "", tables, {"GEO": GEO, "SEX": SEX})


def cells_once(*cubes: Cube) -> list[int]:
    """How many cells each cube is the first to show."""
    found = []
    for owned in once(universe(*cubes)):
        which = owned.which(np.arange(owned.cube.size))
        found.append(int((which >= 0).sum()))
    return found


def test_a_cross_tabulation_counts_where_it_is_met_first() -> None:
    whole = Cube("1", "persons", (axis(GEO), axis(SEX)))
    assert cells_once(whole, whole, Cube("2", "persons", (axis(SEX),))) == [30, 0, 0]
    assert cells_once(Cube("2", "persons", (axis(SEX),)), whole) == [3, 27]


def test_tables_that_hold_parts_of_a_level_complete_each_other() -> None:
    """One table divides the first region alone, the next the second alone, the last all of them."""
    first, second = (
        [GEO.position[code] for code in codes]
        for codes in (("GEO0.0", "GEO0.1", "GEO1", "GEO2"), ("GEO0", "GEO1.0", "GEO1.1", "GEO2"))
    )
    cubes = [
        Cube(str(k), "persons", (breakdown("GEO", "P", GEO, cut),)) for k, cut in enumerate((first, second))
    ]
    assert cells_once(*cubes, Cube("3", "persons", (axis(GEO),))) == [6, 2, 2]


def test_other_orders_of_the_axes_are_the_same_cells() -> None:
    whole, turned = (
        Cube(i, "persons", axes) for i, axes in (("1", (axis(GEO), axis(SEX))), ("2", (axis(SEX), axis(GEO))))
    )
    assert cells_once(whole, turned) == [30, 0]


def test_signatures_and_words() -> None:
    cube = Cube("1", "persons", (axis(GEO), axis(SEX)))
    (owned,) = once(universe(cube))
    cell = int(np.ravel_multi_index((2, 1), cube.shape))
    which = int(owned.which(np.array([cell]))[0])
    assert owned.signature(which).levels == (("GEO", 2), ("SEX", 1))
    assert cube.codes_of(cell) == {"GEO": "GEO0.0", "SEX": "SEX0"}
    assert cube.codes_of(0) == {}


CUTS = [
    ["GEO0.0", "GEO0.1", "GEO1", "GEO2"],
    ["GEO0", "GEO1.0", "GEO1.1", "GEO2"],
    ["GEO0.0", "GEO0.1", "GEO1.0", "GEO1.1", "GEO2"],
    ["GEO0", "GEO1", "GEO2"],
    list(GEO.leaf_codes),
]


def cut(number: int, *others: Codelist) -> Cube:
    places = breakdown("GEO", str(number), GEO, [GEO.position[code] for code in CUTS[number]])
    return Cube(str(number), "persons", (places, *map(axis, others)))


@given(st.lists(st.tuples(st.integers(0, len(CUTS) - 1), st.booleans()), min_size=1, max_size=6))
def test_whatever_tables_show_each_cell_is_counted_once(chosen: list[tuple[int, bool]]) -> None:
    seen: set[frozenset[tuple[str, str]]] = set()
    for owned in once(universe(*(cut(number, *([SEX] if crossed else [])) for number, crossed in chosen))):
        which = owned.which(np.arange(owned.cube.size))
        for cell in range(owned.cube.size):
            codes = frozenset(owned.cube.codes_of(cell).items())
            assert (which[cell] >= 0) == (codes not in seen)
            seen.add(codes)
        assert np.bincount(which + 1, minlength=len(owned.sizes) + 1)[1:].tolist() == list(owned.sizes)


def parts_of_levels(seed: int) -> tuple[Published, Truth, Published, Truth]:
    """Three tables of which each shows other towns; and one table that shows all of them, with the same noise."""
    generator = np.random.default_rng(seed)
    columns = {
        tree.name: generator.integers(0, len(tree.leaves), 60).astype(np.uint32) for tree in (GEO, SEX)
    }
    keys = generator.integers(0, 2**32, 60, dtype=np.uint32)
    mechanism, known = cell_key(2.0, 3)
    found = []
    for cubes in ([cut(0, SEX), cut(1, SEX), cut(4, SEX)], [cut(4, SEX)]):
        tables = counted(cubes, columns, keys)
        truth = {table.cube.id: occupied(table) for table in tables}
        shown = tuple(PublishedTable(table.cube, _loaded(mechanism, table)) for table in tables)
        one = Universe("persons", "", "", shown, {"GEO": GEO, "SEX": SEX})
        found += [Published("made", (one,), known, places=("GEO",)), Truth(truth, truth)]
    return tuple(found)  # type: ignore[return-value]


def _loaded(mechanism: Mechanism, table: ConfidentialTable) -> Callable[[], Cells]:
    protected = mechanism.perturb(table)
    return lambda: (protected.cells, protected.values)


def alike(one: Any, other: Any) -> bool:
    """Equal but for the order in which floats were added; distances are means over cross-tabulations and parts."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            alike(one[k], other[k]) for k in one if "hellinger" not in k
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == pytest.approx(other)) if isinstance(one, float) else bool(one == other)


@pytest.mark.parametrize("seed", range(3))
def test_measures_find_the_same_in_parts_as_in_the_whole(seed: int) -> None:
    parts, truth, whole, whole_truth = parts_of_levels(seed)
    rule = UtilityRule(areas=("GEO",), by="SEX")
    one, other = to_json(utility(parts, truth, rule)), to_json(utility(whole, whole_truth, rule))
    assert alike(one["errors"]["original"]["total"], other["errors"]["original"]["total"])
    for areas in (
        one["areas"],
        other["areas"],
    ):  # a part has a breakdown of its own, and names its levels by it
        for level in areas:
            level.pop("level")
    assert alike(one["areas"], other["areas"])
    assert alike(one["additivity"], other["additivity"])
    few, all_of_it = judge(parts, truth), judge(whole, whole_truth)
    assert few.total.cells == all_of_it.total.cells
    assert few.total.small == all_of_it.total.small
    assert scan(parts, truth, Belief()).cells == scan(whole, whole_truth, Belief()).cells
    first, second = (located_crosstabs(some.universes[0]) for some in (parts, whole))
    assert first.keys() == second.keys()
    for levels in first:
        for a, b in zip(Reader().cells(first[levels]), Reader().cells(second[levels]), strict=True):
            assert np.array_equal(a, b)
        assert first[levels].has(np.arange(12)[: 6 if len(levels) == 1 else 12]).any()


def test_a_row_that_one_table_shows_whole_is_not_told_again() -> None:
    """The row of an area by sex stands in the first table and in the second; only new areas have new rows."""
    parts, truth, whole, whole_truth = parts_of_levels(5)
    few, every = judge(parts, truth), judge(whole, whole_truth)
    assert to_json(few.attributes["SEX"]) == to_json(every.attributes["SEX"])
