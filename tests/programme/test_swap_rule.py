"""The [swap] section: what it resolves to, and every mistake it can hold."""

from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.programme.programme import load_programme
from discreet.programme.swap import Composition, Donors, SwapRule

POPULATION = """
[population]
persons = "persons.parquet"
person_id = "pid"
household_id = "hid"
geography = ["region", "town"]
"""
REST = """
[variables.GEO]
column = "town"
codelist = "geo.csv"

[variables.SEX]
codelist = "sex.csv"

[variables.AGE]
codelist = "age.csv"
breakdowns = { L = 1, H = 2 }

[[cubes]]
id = "people"
axes = ["SEX"]

[noise]
kind = "cell-key"
V = 2.0
D = 5
"""
GOOD = {"risk": '["AGE.L", "SEX"]', "similar": '[["SEX", { composition = ["AGE.L"] }], ["AGE"]]'}


def programme(folder: Path, keys: dict[str, str], population: str = POPULATION) -> Path:
    swap = "[swap]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())
    (folder / "programme.toml").write_text(population + swap + REST)
    (folder / "geo.csv").write_text("code,parent,label\nN,,\nN1,N,\nN2,N,\n")
    (folder / "sex.csv").write_text("code,parent,label\n1,,\n2,,\n")
    (folder / "age.csv").write_text("code,parent,label\nY,,\nY1,Y,\nY2,Y,\nO,,\n")
    (folder / "persons.parquet").write_text("")
    return folder / "programme.toml"


def resolved(folder: Path, **keys: str) -> SwapRule:
    rule = load_programme(programme(folder, GOOD | keys)).swap
    assert rule is not None
    return rule


def test_defaults_and_what_is_named(tmp_path: Path) -> None:
    rule = resolved(tmp_path)
    assert (rule.k, rule.rate, rule.cap, rule.donors) == (3, Fraction(0), None, Donors.RISK)
    assert rule.inside_parent
    assert rule.levels == ("region", "town")
    assert [axis.full_name for axis in rule.risk] == ["AGE.L", "SEX"]
    by_members = rule.similar[0][1]
    assert isinstance(by_members, Composition)
    assert [axis.full_name for axis in by_members.axes] == ["AGE.L"]
    leaves = rule.similar[1][0]
    assert leaves.codes == ("_T", "Y", "Y1", "Y2", "O")  # type: ignore[union-attr]


def test_shares_are_exact(tmp_path: Path) -> None:
    rule = resolved(tmp_path, rate="0.1", cap="0.3", quotas="{ levels = { region = 0.7 } }")
    assert (rule.rate, rule.cap) == (Fraction(1, 10), Fraction(3, 10))
    assert rule.level_quotas == {"region": Fraction(7, 10)}


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"k": "1"}, "swap.k: 1; it should be greater than or equal to 2"),
        ({"rate": "1.0"}, "swap.rate: 1.0; it should be less than 1"),
        ({"rate": "-0.1"}, "swap.rate: -0.1; it should be greater than or equal to 0"),
        ({"rate": "nan"}, "swap.rate"),
        ({"rate": "0.2", "cap": "0.1"}, "a cap of 0.1 below the rate of 0.2"),
        ({"similar": "[]"}, "swap.similar: is empty"),
        ({"similar": '[["SEX"], []]'}, r"swap.similar\[1\]: is empty"),
        ({"similar": '[["SEXX"]]'}, "unknown variable 'SEXX'; did you mean 'SEX'"),
        ({"similar": "[[{ composition = ['AGE.M'] }]]"}, "unknown breakdown 'AGE.M'"),
        ({"risk": '["AGE.X"]'}, "unknown breakdown 'AGE.X'; did you mean 'AGE.L'"),
        ({"risk": "[]"}, "swap.risk: is missing"),
        ({"risk": '["GEO"]'}, "GEO is a place, not a property of the household"),
        ({"carry": '["sex"]'}, "SEX is a place, not a property"),
        ({"carry": '["town"]'}, "column 'town' is geography or an id"),
        ({"carry": '["hid"]'}, "column 'hid' is geography or an id"),
        ({"levels": '["nuts", "town"]'}, "unknown level 'nuts'"),
        ({"levels": '["region"]'}, "leaves out the finest column"),
        ({"quotas": "{ regions = { towns = 0.1 } }"}, "unknown level 'towns'; did you mean 'town'"),
        ({"quotas": "{ levels = { town = 2.0 } }"}, "it should be less than or equal to 1"),
        ({"exclude": "'SEX == \"7\"'"}, "unknown code '7' of SEX"),
        ({"exclude": '\'SEX in ("1", "2")\''}, "excludes every household"),
        ({"exclude_zero_risk": "true"}, "is given without a risk_column"),
        ({"donors": '"nearest"'}, "use 'risk' or 'uniform'"),
        ({"ratio": "0.1"}, "unknown key 'ratio'; did you mean 'rate'"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, keys: dict[str, str], told: str) -> None:
    with pytest.raises(Mistakes, match=told):
        load_programme(programme(tmp_path, GOOD | keys))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('household_id = "hid"\n', "population.household_id: is missing"),
        ('geography = ["region", "town"]\n', "population.geography: is missing"),
        ('persons = "persons.parquet"\nperson_id = "pid"\n', "needs a table of persons"),
    ],
)
def test_a_population_that_cannot_be_swapped(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(Mistakes, match=told):
        load_programme(programme(tmp_path, GOOD, POPULATION.replace(line, "")))


def test_no_guarantee_is_stated_of_swapped_records(tmp_path: Path) -> None:
    path = programme(tmp_path, GOOD)
    private = '[noise]\nkind = "geometric"\nepsilon = 1\n'
    path.write_text(path.read_text().replace('[noise]\nkind = "cell-key"\nV = 2.0\nD = 5\n', private))
    with pytest.raises(Mistakes, match="a differential privacy guarantee, which swapping breaks"):
        load_programme(path)
    path.write_text(path.read_text() + 'claim = "none"\n')
    assert load_programme(path).swap is not None


def test_rules_about_places_are_refused_beside_swapping(tmp_path: Path) -> None:
    path = programme(tmp_path, GOOD)
    rule = '\n[[structural_zeros]]\nwhere = \'GEO == "N1" and SEX == "2"\'\n'
    path.write_text(path.read_text() + rule)
    with pytest.raises(Mistakes, match="a rule about the place GEO"):
        load_programme(path)


def test_everything_that_decides_the_swaps_is_part_of_the_description(tmp_path: Path) -> None:
    path = programme(tmp_path, GOOD)
    plain = load_programme(path).canonical()["swap"]
    changes = {
        "k": "4",
        "risk": '["SEX"]',
        "similar": '[["SEX"]]',
        "rate": "0.1",
        "cap": "0.5",
        "levels": '["town"]',
        "donors": '"uniform"',
        "inside_parent": "false",
        "carry": '["grid"]',
        "exclude": "'SEX == \"2\"'",
        "risk_column": '"danger"',
        "quotas": "{ levels = { town = 0.1 }, regions = { town = 0.2 } }",
    }
    for key, value in changes.items():
        assert load_programme(programme(tmp_path, GOOD | {key: value})).canonical()["swap"] != plain, key
    assert {*changes, "exclude_zero_risk", "level_quotas", "region_quotas"} - {"quotas"} == set(plain)


def test_a_programme_without_swapping_is_described_as_before(tmp_path: Path) -> None:
    path = programme(tmp_path, GOOD)
    text = path.read_text()
    path.write_text(text[: text.index("[swap]")] + REST)
    assert "swap" not in load_programme(path).canonical()
