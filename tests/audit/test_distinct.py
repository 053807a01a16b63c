import numpy as np

from discreet.audit.distinct import parts
from discreet.audit.published import PublishedTable, Universe
from discreet.schema.codelist import breakdown
from discreet.schema.cube import Cube
from tests.audit.made import axis, flat, nested

GEO, SEX = nested("GEO", 3, 2), flat("SEX", 2)
NOTHING = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def universe(*cubes: Cube) -> Universe:
    tables = tuple(PublishedTable(cube, lambda: NOTHING) for cube in cubes)
    return Universe("persons", "", "", tables, {"GEO": GEO, "SEX": SEX})


def cells_once(*cubes: Cube) -> list[int]:
    """How many cells each cube is the first to show."""
    found = []
    for part in parts(universe(*cubes)):
        which = part.which(np.arange(part.cube.size))
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
    (part,) = parts(universe(cube))
    cell = int(np.ravel_multi_index((2, 1), cube.shape))
    which = int(part.which(np.array([cell]))[0])
    assert part.signature(which).levels == (("GEO", 2), ("SEX", 1))
    assert cube.codes_of(cell) == {"GEO": "GEO0.0", "SEX": "SEX0"}
    assert cube.codes_of(0) == {}
