from pathlib import Path

import pytest

from discreet.audit.redundancy import (
    Mode,
    UniverseRedundancy,
    eu_redundancy,
    programme_redundancy,
    regions_of,
)
from discreet.errors import Mistakes
from discreet.maths.attacks.redundancy import Redundancy
from discreet.programme.programme import Programme, load_declaration
from tests.cases import few

PAPER = {  # Bach 2020, table 1
    (): (2775, 6378),
    ("SEX",): (1376, 3105),
    ("AGE.M",): (926, 2281),
    ("GEO.L",): (766, 1734),
    ("AGE.M", "SEX"): (458, 1097),
}

PROGRAMME = """
[population]
persons = "absent.parquet"
person_id = "pid"
geography = ["lau"]

[variables.GEO]
codelist = "geo.csv"
column = "lau"
breakdowns = {{ N = 0, L = 2, M = 3, H = 4 }}
{rest}
[noise]
kind = "cell-key"
V = 2
D = 5
"""
STANDARD = """
[standard]
programme = "eu-census-2021"
tables = ["9.2"]
"""
OWN = """
[variables.AGE]
codelist = "age.csv"
breakdowns = { L = 1, M = 2 }

[variables.HAR]
codelist = "har.csv"
breakdowns = { HAR = 2 }

[[cubes]]
id = "1"
axes = ["AGE.M", "HAR"]
"""


def declaration(folder: Path, rest: str) -> Programme:
    """A country with 1 NUTS 1, 2 NUTS 2, 3 NUTS 3 and 6 LAU regions, 18 bands of ages, and housing."""
    places = [("A", ""), ("A1", "A"), ("A11", "A1"), ("A12", "A1"), ("A2", "A"), ("A21", "A2")]
    places += [(f"{place}{part}", place) for place, _ in places if len(place) == 3 for part in "xy"]
    ages = [(f"{k}", "") for k in range(6)] + [(f"{k}.{part}", f"{k}") for k in range(6) for part in range(3)]
    housing = [("1", ""), ("1.1", "1"), ("1.2", "1"), ("2", ""), ("3", "")]
    for name, rows in (("geo", places), ("age", ages), ("har", housing)):
        text = "".join(f"{code},{parent},{code}\n" for code, parent in rows)
        (folder / f"{name}.csv").write_text(f"code,parent,label\n{text}", encoding="utf-8")
    (folder / "programme.toml").write_text(PROGRAMME.format(rest=rest), encoding="utf-8")
    return load_declaration(folder / "programme.toml")


def statistics(universe: UniverseRedundancy) -> dict[tuple[str, ...], Redundancy]:
    return {tuple(sorted(level.name for level in one.statistic)): one for one in universe.statistics}


def counts(country: str, mode: Mode) -> dict[tuple[str, ...], tuple[int, int]]:
    persons = statistics(eu_redundancy(regions_of(country), mode)[0])
    return {name: (persons[name].same_noise.all.t, persons[name].fresh_noise.all.t) for name in PAPER}


@pytest.mark.parametrize("country", ["MT", "DE"])
def test_the_printed_equations_on_the_eu_programme(country: str) -> None:
    assert list(counts(country, Mode.LITERAL).values()) == [
        (1244, 3432),
        (615, 1692),
        (448, 1276),
        (480, 1344),
        (221, 630),
    ]


def test_the_paper_s_numbers_come_out_to_about_one_per_cent() -> None:
    found = counts("MT", Mode.BACH_2020)
    assert list(found.values()) == [(2747, 6330), (1362, 3081), (912, 2257), (766, 1734), (451, 1085)]
    for name, pair in PAPER.items():
        assert found[name] == pytest.approx(pair, rel=0.016)


def test_germany_has_the_paper_s_order_of_k_and_smallest_ratio() -> None:
    persons = statistics(eu_redundancy(regions_of("DE"), Mode.BACH_2020)[0])
    assert float(persons[()].same_noise.all.k) == pytest.approx(8.6e7, rel=0.15)
    assert float(persons["AGE.M",].same_noise.all.k) == pytest.approx(3.0e6, rel=0.15)
    assert persons[()].same_noise.first_minimum.ratio == pytest.approx(0.112, rel=0.06)
    assert persons[()].fresh_noise.first_minimum.ratio == pytest.approx(0.0118, rel=0.03)
    assert persons["GEO.L",].fresh_noise.first_minimum.ratio == pytest.approx(0.0170, rel=0.01)


def test_table_9_2_represents_places_by_sex_four_times(tmp_path: Path) -> None:
    """Eq. 18: GEO.M x SEX x AGE.M x YAE.H has 16 sub-tables, of which 4 represent GEO.M x SEX."""
    universe = programme_redundancy(declaration(tmp_path, STANDARD), Mode.LITERAL)[0]
    assert len(universe.statistics) == 16
    places = statistics(universe)["GEO.M", "SEX"].same_noise.all
    assert places.t == 4
    assert places.k == 1 + 21 + 24 + 21 * 24


def test_levels_that_divide_alike_are_one_in_the_nested_count() -> None:
    """Luxembourg is one NUTS 3 region: its cells have the keys of the country's, so they hold no further noise."""
    names = {
        name for one in eu_redundancy((1, 1, 1, 102), Mode.NESTED)[0].statistics for name in one.statistic
    }
    assert {level.name for level in names if level.variable == "GEO"} == {"GEO.H"}
    both = [
        statistics(eu_redundancy(regions, Mode.NESTED)[0])[()] for regions in ((1, 1, 1, 102), (2, 3, 4, 102))
    ]
    assert both[0].same_noise.all.t < both[1].same_noise.all.t
    assert both[0].fresh_noise.all.t == both[1].fresh_noise.all.t


def test_a_programme_knows_its_named_levels_and_its_other_sub_totals(tmp_path: Path) -> None:
    programme = declaration(tmp_path, OWN)
    literal, nested, other = (programme_redundancy(programme, mode)[0] for mode in Mode)
    assert set(statistics(literal)) == {(), ("AGE.M",), ("HAR",), ("AGE.M", "HAR")}
    assert ("AGE.L", "HAR") in statistics(nested)
    assert statistics(nested)["AGE.L",].same_noise.all.k == (1 + 18 // 6) * (1 + 4)
    assert statistics(other)[()].same_noise.all.t == 2 * 3
    assert statistics(other)[()].same_noise.all.k == (1 + 18) * (1 + 3 + 4)


@pytest.mark.parametrize("mode", few([Mode.LITERAL, Mode.NESTED], 0))
def test_the_declared_eu_programme_is_the_built_in_one(tmp_path: Path, mode: Mode) -> None:
    """Also GEO.N, the whole country alone, is no axis in either."""
    whole = 'programme = "eu-census-2021"'
    declared = programme_redundancy(declaration(tmp_path, f"[standard]\n{whole}\n"), mode)
    built_in = eu_redundancy((1, 2, 3, 6), mode)
    assert statistics(declared[0]) == statistics(built_in[0])
    assert [universe.tables for universe in declared] == [universe.tables for universe in built_in]


def test_records_of_other_units_do_not_represent_persons() -> None:
    universes = eu_redundancy(regions_of("AT"), Mode.LITERAL)
    assert sum(universe.tables for universe in universes) == 119
    assert universes[0].counted == "persons"
    assert universes[0].tables == 103


@pytest.mark.parametrize("bad", ["XX", "mt", ""])
def test_an_unknown_country_is_refused_with_those_there_are(bad: str) -> None:
    with pytest.raises(Mistakes, match="use one of BE, BG"):
        regions_of(bad)


@pytest.mark.parametrize("bad", [(0, 1, 1, 1), (3, 2, 4, 5)])
def test_impossible_regions_are_refused(bad: tuple[int, int, int, int]) -> None:
    with pytest.raises(Mistakes, match="do not fall"):
        eu_redundancy(bad, Mode.LITERAL)
