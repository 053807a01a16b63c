from __future__ import annotations

import numpy as np

from discreet.audit.cells import Reader, described, located_crosstabs
from tests.audit.made import flat, nested, random_columns
from tests.audit.subsets import record_keys, universe

TREES = [nested("GEO", 3, 4), flat("SEX", 2), flat("AGE", 5)]


def test_cells_are_numbered_alike_in_every_table_and_named_by_their_codes() -> None:
    columns = random_columns(TREES, 400, 1)
    crosses = [["SEX", "GEO"], ["GEO", "SEX"], ["AGE", "GEO", "SEX"]]
    found, _ = universe(TREES, crosses, columns, record_keys(400, 1), None)
    every = [
        located_crosstabs(type(found)("persons", "", "", (table,), found.codelists)) for table in found.tables
    ]
    shared = [levels for levels in every[2] if levels in every[0]]
    assert len(shared) == 6
    geo = np.array([code.split(".")[0] for code in TREES[0].leaf_codes])[columns["GEO"]]
    for levels in shared:
        numbers, values = zip(*(Reader().cells(tables[levels]) for tables in every), strict=True)
        assert np.array_equal(numbers[0], numbers[1])
        assert np.array_equal(numbers[0], numbers[2])
        assert np.array_equal(values[0], values[2])
        for number, value in zip(numbers[0].tolist(), values[0].tolist(), strict=True):
            cell = described(levels, found.codelists, number)
            here = np.ones(400, dtype=bool)
            if "SEX" in cell:
                here &= np.array([f"SEX{code}" for code in columns["SEX"]]) == cell["SEX"]
            if "GEO" in cell:
                leaves = np.array(TREES[0].leaf_codes)[columns["GEO"]]
                here &= (leaves if "." in cell["GEO"] else geo) == cell["GEO"]
            assert here.sum() == value


def test_a_cross_tabulation_is_read_from_the_first_table_that_holds_all_of_it() -> None:
    from_others = located_crosstabs(
        universe(TREES, [["SEX"], ["GEO", "SEX"]], random_columns(TREES, 50, 2), record_keys(50, 2), None)[0]
    )
    one = from_others[("SEX", 1),]
    assert one.table == "SEX"
    assert one.has(np.array([0, 1])).all()
