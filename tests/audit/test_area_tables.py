import numpy as np

from discreet.audit.area_tables import joint_space
from discreet.audit.evidence import PublishedTable, Universe
from discreet.programme.codelist import breakdown
from discreet.programme.cube import Cube
from tests.audit.made import axis, nested

NONE = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def test_categories_that_only_larger_areas_have_are_not_reconstructed() -> None:
    geo, age = nested("GEO", 2, 3), nested("AGE", 2, 4)
    regions, bands = (breakdown(tree.name, "L", tree, tree.level(1)) for tree in (geo, age))
    small = Cube("small", "persons", (axis(geo), bands))
    large = Cube("large", "persons", (regions, axis(age)))
    tables = tuple(PublishedTable(cube, lambda: NONE) for cube in (small, large))
    universe = Universe("persons", "", "", tables, {"GEO": geo, "AGE": age})
    assert joint_space(universe, "GEO", ["GEO0.1"], None, (), 1000).codes == (("AGE0", "AGE1"),)
    assert len(joint_space(universe, "GEO", ["GEO0"], None, (), 1000).codes[0]) == 8
