"""The built-in EU 2021 programme holds the numbers of the two regulations."""

from __future__ import annotations

import pytest

from discreet.errors import Mistakes
from discreet.programme import eu2021
from discreet.programme.attributes import Holder
from discreet.programme.codelist import Code, codelist

# breakdown -> finest categories, all categories with sub-totals; neither counts the total
NUMBERS = {
    "LPW.N": (5, 5),
    "LOC": (13, 13),
    "SEX": (2, 2),
    "AGE.L": (6, 6),
    "AGE.M": (21, 27),
    "AGE.H": (101, 127),
    "LMS.L": (5, 5),
    "LMS.H": (6, 7),
    "CAS.L": (4, 5),
    "CAS.H": (7, 9),
    "OCC": (12, 12),
    "IND.L": (12, 12),
    "IND.H": (23, 28),
    "SIE": (6, 6),
    "EDU": (11, 11),
    "POB.L": (5, 6),
    "POB.M": (10, 12),
    "POB.H": (234, 243),
    "COC.L": (5, 6),
    "COC.M": (10, 12),
    "COC.H": (211, 220),
    "YAT": (3, 3),
    "YAE.L": (11, 12),
    "YAE.H": (24, 29),
    "ROY": (6, 8),
    "FST.L": (5, 5),
    "FST.M": (7, 9),
    "FST.H": (8, 11),
    "HST.L": (2, 2),
    "HST.M": (5, 7),
    "HST.H": (6, 9),
    "HAR": (4, 5),
    "TPH.L": (4, 5),
    "TPH.H": (10, 15),
    "SPH": (7, 8),
    "TSH": (4, 4),
    "TFN.L": (4, 4),
    "TFN.H": (13, 20),
    "SFN": (6, 8),
    "TOB": (5, 6),
    "OCS": (3, 3),
    "POC": (9, 9),
    "OWS": (5, 5),
    "NOC": (11, 14),
    "UFS": (10, 10),
    "NOR": (10, 10),
    "DFS": (9, 9),
    "DRM": (9, 9),
    "WSS": (3, 3),
    "TOI": (3, 3),
    "BAT": (3, 3),
    "TOH": (3, 3),
    "TLQ": (4, 4),
}
GEO = [
    Code("XX1", "", "North"),
    Code("XX11", "XX1", "North coast"),
    Code("XX12", "XX1", "North hills"),
    Code("XX111", "XX11", "Port"),
    Code("XX121", "XX12", "Hill"),
    Code("XX_1", "XX111", "Town"),
    Code("XX_2", "XX121", "Village"),
]


def nodes(variable: str, name: str) -> tuple[int, int]:
    tree = codelist(variable, eu2021.codelist_rows(variable))
    cut = eu2021.breakdowns(variable)[name]
    finest = tree.level(cut) if isinstance(cut, int) else tuple(tree.position[code] for code in cut)
    covered = [leaf for index in finest for leaf in tree.leaves if index in tree.ancestors(leaf)]
    assert sorted(covered) == list(tree.leaves), "a cut covers every leaf exactly once"
    return len(finest), len({above for index in finest for above in tree.ancestors(index)})


@pytest.mark.parametrize("axis", NUMBERS)
def test_breakdowns_have_the_numbers_of_the_regulation(axis: str) -> None:
    variable, _, name = axis.partition(".")
    assert nodes(variable, name or variable) == NUMBERS[axis]


def test_there_are_119_tables_of_which_103_count_persons() -> None:
    tables = eu2021.tables()
    assert len(tables) == len({table.id for table in tables}) == 119
    units = [table.unit for table in tables]
    assert {unit: units.count(unit) for unit in set(units)} == {
        "persons": 103,
        "households": 3,
        "families": 3,
        "dwellings": 10,
    }


def test_every_axis_is_a_breakdown_that_exists() -> None:
    for table in eu2021.tables():
        for axis in {axis for axes in (table.axes, *table.alternatives) for axis in axes}:
            variable, _, name = axis.partition(".")
            assert (name or variable) in eu2021.breakdowns(variable)


def test_dwelling_tables_have_the_base_of_their_title() -> None:
    bases = {table.id: table.base for table in eu2021.tables(["37", "39.1", "41", "33"])}
    assert bases == {
        "33.1": "",
        "37.1": 'TLQ == "1"',
        "39.1": 'TLQ == "1" and OCS == "1"',
        "41.1": "",
    }


def test_alternative_axes_are_kept_beside_the_default() -> None:
    (table,) = eu2021.tables(["39.2"])
    assert table.axes == ("GEO.M", "TOB", "UFS", "NOC")
    assert table.alternatives == (("GEO.M", "TOB", "NOR", "NOC"),)


def test_groups_and_ids_select_in_the_order_of_the_regulation() -> None:
    assert [table.id for table in eu2021.tables(["9.2", "3"])] == ["3.1", "3.2", "3.3", "9.2"]
    assert eu2021.tables([]) == ()


def test_unknown_tables_and_variables_are_all_named_with_what_exists() -> None:
    with pytest.raises(Mistakes) as raised:
        eu2021.tables(["9.9", "3", "77"])
    first, second = raised.value.problems
    assert "9.9" in first.value
    assert "9.4" in first.remedy
    assert "77" in second.value
    assert "1 to 41" in second.remedy
    with pytest.raises(Mistakes, match="AGE"):
        eu2021.breakdowns("AEG")
    with pytest.raises(Mistakes, match="declare the codelist"):
        eu2021.codelist_rows("GEO")


def test_the_place_of_work_follows_the_regions_of_the_country() -> None:
    tree = codelist("LPW", eu2021.lpw_rows(codelist("GEO", GEO)))
    nuts1, nuts2 = 1, 2
    assert len(tree.level(1)) == 5
    assert len(tree.level(3)) == len(tree.leaves) == nuts2 + 5
    assert len(tree.codes) == 5 + nuts1 + nuts2 + 1
    assert tree.leaf_codes == ("1.XX11", "1.XX12", "1.y", "2", "3", "4", "5")


def test_variables_know_their_units_and_columns() -> None:
    assert eu2021.units("GEO") == ("persons", "households", "families", "dwellings")
    assert eu2021.units("NOR") == ("dwellings",)
    assert eu2021.column("AGE") == "age"
    assert {table.variables[0] for table in eu2021.tables()} == {"GEO"}


def test_every_variable_has_an_owner_and_nothing_that_follows_from_who_lives_together_is_fixed() -> None:
    found = {name: eu2021.attribute_of(name) for name in eu2021.variables()}
    assert all(one.of is not None for one in found.values())
    persons = {
        name for name, one in found.items() if eu2021.units(name) == ("persons",) and one.of is Holder.PERSON
    }
    assert persons >= {"SEX", "AGE", "LMS", "CAS", "OCC", "EDU", "POB", "COC"}
    derived = {"FST", "HST", "TPH", "SPH", "TSH", "TFN", "SFN", "OCS", "OWS", "NOC", "DFS", "DRM", "TLQ"}
    assert not any(found[name].fixed or found[name].of is Holder.PERSON for name in derived)
