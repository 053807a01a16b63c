"""Drafting a programme: variables, codelists and cubes from what columns are, and the text with its reasons."""

from __future__ import annotations

import tomllib
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.population.look import look
from discreet.programme.attributes import UNDECLARED, Attribute, Holder
from discreet.programme.codelist import codelist, write_codelist
from discreet.programme.columns import unit_of
from discreet.programme.draft import programme_text, quote
from discreet.programme.facts import ColumnFacts, Kind, Numbers, TableFacts, kind_of_texts
from discreet.programme.inference import Role, infer
from discreet.programme.programme import Programme, load_programme
from discreet.programme.proposal import Proposal, bands_of, natural, propose
from discreet.programme.sources import file_source


def facts(
    name: str, *values: str, kind: Kind | None = None, missing: float = 0.0, unique: bool = False
) -> ColumnFacts:
    found = kind or kind_of_texts(values)
    number = [float(v) for v in values if v.lstrip("-").isdecimal()]
    counted = (
        Numbers(min(number), max(number), (sorted(number)[len(number) // 2],) * 9, 0, 0, 1.0)
        if number
        else None
    )
    return ColumnFacts(
        name=name, kind=found, values=values, distinct=len(values), missing=missing, unique=unique,
        largest=1 / max(len(values), 1), numbers=counted if found in (Kind.WHOLE, Kind.DECIMAL) else None,
    )  # fmt: skip


PID = ColumnFacts(name="pid", kind=Kind.WHOLE, values=None, distinct=99, unique=True)
SEX = facts("sex", "2", "1")
AGE = facts("age", *map(str, range(98)))
COUNTY = facts("county", "1", "2")
TRACT = facts("tract", "1", "20", "3")
WITHIN = {("county", "tract"): {"1": "1", "20": "2", "3": "1"}}


def persons(*columns: ColumnFacts, source: str = "p.parquet") -> TableFacts:
    within = WITHIN if COUNTY in columns and TRACT in columns else {}
    return TableFacts("persons", source, 99, columns, within)


def proposed(*tables: TableFacts) -> Proposal:
    return propose(infer(tables))


def loaded(proposal: Proposal, folder: Path) -> Programme:
    (folder / "codelists").mkdir(exist_ok=True)
    for variable in proposal.variables:
        if variable.rows:
            write_codelist(folder / variable.file, codelist(variable.name, variable.rows))
    for table in proposal.tables:
        (folder / table.source).touch()
    (folder / "programme.toml").write_text(programme_text(proposal))
    return load_programme(folder / "programme.toml")


def test_ids_places_ages_and_cubes(tmp_path: Path) -> None:
    programme = loaded(proposed(persons(PID, COUNTY, TRACT, SEX, AGE)), tmp_path)
    assert programme.population is not None
    assert programme.population.ids == {"persons": "pid"}
    assert programme.population.geography == ("county", "tract")
    assert list(programme.variables) == ["GEO", "SEX", "AGE"]
    assert programme.variables["SEX"].codelist.codes == ("1", "2")
    assert [cube.id for cube in programme.cubes] == ["1.1", "1.2"]
    axes = [f"{axis.variable}.{axis.name}" for axis in programme.cubes[0].axes]
    assert axes == ["GEO.COUNTY", "SEX.SEX", "AGE.L"]


def test_places_that_nest_in_one_table_only_are_drafted_from_that_table(tmp_path: Path) -> None:
    """Damaged records of persons are reported by ``check``; the tables of households are drafted without them."""
    elsewhere = facts("tract", "1", "20", "4")  # no columns of this table decide each other
    broken = TableFacts("persons", "p.parquet", 99, (PID, COUNTY, elsewhere, SEX), {})
    homes = TableFacts(
        "households",
        "h.parquet",
        50,
        (facts("hid", "a", "b", unique=True), COUNTY, TRACT, facts("rooms", "1", "2", "3")),
        WITHIN,
    )
    programme = loaded(proposed(broken, homes), tmp_path)
    places = programme.variables["GEO"]
    assert set(places.codelist.codes) == {"COUNTY 1", "1", "3", "2", "20"}
    assert places.units == ("households",)


def test_whose_attribute_a_variable_is_is_drafted_only_where_its_table_shows_it(tmp_path: Path) -> None:
    """A variable of persons may derive from the household: no one is spared that decision."""
    homes = TableFacts(
        "households", "h.parquet", 50, (facts("hid", "a", "b", unique=True), facts("tenure", "own", "rent"))
    )
    programme = loaded(proposed(persons(PID, SEX), homes), tmp_path)
    assert programme.variables["TENURE"].attribute == Attribute(Holder.HOUSEHOLD)
    assert programme.variables["SEX"].attribute == UNDECLARED
    assert 'add of = "person"' in (tmp_path / "programme.toml").read_text()


def test_labels_and_levels_are_drafted_from_the_names_of_columns(tmp_path: Path) -> None:
    programme = loaded(
        proposed(persons(PID, COUNTY, TRACT, AGE, facts("MARITAL_status", "1", "2"))), tmp_path
    )
    labels = programme.labels
    assert labels.axis("MARITAL_STATUS") == "Marital status"
    assert labels.axis("AGE.M") == "Age (five-year groups)"
    assert labels.axis("GEO.TRACT") == "Place of residence (tract)"
    assert programme.cubes[1].title == "Persons by Place of residence (tract), Age (broad groups)"


def test_the_end_that_all_levels_share_is_no_part_of_their_names() -> None:
    one, other = facts("SA3_CODE_2021", "1", "2"), facts("SA2_CODE_2021", "11", "12", "23")
    within = {(one.name, other.name): {"11": "1", "12": "1", "23": "2"}}
    table = TableFacts("persons", "p.parquet", 99, (PID, one, other, SEX), within)
    (place, _) = propose(infer([table])).variables
    assert list(place.breakdowns) == ["SA3", "SA2"]


def test_columns_that_would_look_alike_keep_their_names(tmp_path: Path) -> None:
    alike = [facts(name, "1", "2") for name in ("work", "Work", "sex")]
    labels = loaded(proposed(persons(PID, *alike)), tmp_path).labels
    assert [labels.variable(name) for name in ("WORK", "WORK_2", "SEX")] == ["WORK", "WORK_2", "Sex"]


def test_a_place_keeps_its_values_as_leaves_when_levels_share_codes(tmp_path: Path) -> None:
    places = loaded(proposed(persons(PID, COUNTY, TRACT, SEX)), tmp_path).variables["GEO"].codelist
    assert set(places.leaf_codes) == {"1", "20", "3"}
    assert places.codes == ("COUNTY 1", "1", "3", "2", "20")


def test_ages_are_banded_and_cover_every_year(tmp_path: Path) -> None:
    age = loaded(proposed(persons(PID, AGE)), tmp_path).variables["AGE"]
    assert age.codelist.leaf_codes == tuple(map(str, range(98)))
    assert age.breakdowns["L"].codes == ("_T", "Y0-14", "Y15-29", "Y30-49", "Y50-64", "Y65-84", "Y_GE85")
    assert "A95-97" in age.breakdowns["M"].codes


@pytest.mark.parametrize("oldest", [60, 84, 85, 86, 130])
def test_any_highest_age_works(tmp_path: Path, oldest: int) -> None:
    ages = facts("age", *map(str, range(oldest + 1)))
    tree = loaded(proposed(persons(PID, ages)), tmp_path).variables["AGE"].codelist
    assert tree.leaf_codes == tuple(map(str, range(oldest + 1)))
    assert tree.depth == 3


def test_ages_with_letters_and_a_last_open_one(tmp_path: Path) -> None:
    ages = facts("age", *(f"Y{n}" for n in range(90)), "90+", "N")
    tree = loaded(proposed(persons(PID, ages)), tmp_path).variables["AGE"].codelist
    assert set(tree.leaf_codes) == {*(f"Y{n}" for n in range(90)), "90+", "N"}
    assert tree.codes[tree.parents[tree.position["90+"]]] == "A90-90"


def test_records_without_a_value_get_a_code(tmp_path: Path) -> None:
    gaps = [facts("age", *map(str, range(98)), missing=0.002), facts("job", "a", "unknown", missing=0.4)]
    proposal = proposed(persons(PID, *gaps))
    assert [one.missing for one in proposal.variables] == ["unknown", "unknown_2"]
    programme = loaded(proposal, tmp_path)
    assert "unknown" in programme.variables["AGE"].codelist.leaf_codes


def test_whole_numbers_written_as_decimals_become_plain_codes() -> None:
    (job,) = proposed(persons(PID, facts("job", "1.0", "2.0", "10.0"))).variables
    assert [row.code for row in job.rows] == ["1", "2", "10"]


def test_dates_of_birth_need_a_reference_day(tmp_path: Path) -> None:
    days = (date(1923, 5, 6), date(2021, 3, 4))
    born = ColumnFacts(name="dob", kind=Kind.DATE, values=None, distinct=80, days=days)
    proposal = proposed(persons(PID, SEX, born))
    (_, age) = proposal.variables
    assert age.reference_day == days[1]
    assert {row.code for row in age.rows} >= {"0", "97"}
    assert loaded(proposal, tmp_path).variables["DOB"].codelist.depth == 3


@pytest.mark.parametrize(
    ("written", "readable"), [("%d.%m.%Y", True), ("%d/%m/%Y", True), ("%Y-%m-%d", True), ("%m/%d/%Y", False)]
)
def test_dates_of_birth_with_the_day_first_become_ages(tmp_path: Path, written: str, readable: bool) -> None:
    """Dates with the month first are left out with the forms that are read, since nothing else tells them apart."""
    days = [date(1930, 1, 1) + timedelta(days=97 * k) for k in range(340)]
    table = pa.table(
        {"pid": list(range(340)), "sex": ["1", "2"] * 170, "dob": [d.strftime(written) for d in days]}
    )
    pq.write_table(table, tmp_path / "people.parquet")
    source = file_source("people.parquet", tmp_path, "people.parquet", "file")
    inferred = infer([look(source, "persons", "people.parquet")])
    found = inferred.decision("persons", "dob")
    assert found is not None
    assert (found.role is Role.BIRTH) == readable
    assert readable or "write them as 1974-03-01 or 01.03.1974" in found.reason
    if readable:
        programme = loaded(propose(inferred), tmp_path)
        assert programme.variables["DOB"].coding.reference_day == max(days)


def test_variables_that_follow_from_each_other_are_never_crossed(tmp_path: Path) -> None:
    fine, coarse = facts("k", "a", "b", "c"), facts("m", "x", "y")
    within = {("m", "k"): {"a": "x", "b": "x", "c": "y"}}
    table = TableFacts(
        "persons", "p.parquet", 99, (PID, fine, coarse, facts("z", "1", "2", "3", "4")), within
    )
    proposal = propose(infer([table]))
    assert all({"K", "M"} - set(cube.axes) for cube in proposal.cubes)
    assert "M from K" in programme_text(proposal)
    loaded(proposal, tmp_path)


def test_bands_are_round() -> None:
    def hours(low: float, high: float, deciles: list[float], kind: Kind = Kind.WHOLE) -> ColumnFacts:
        numbers = Numbers(low, high, tuple(deciles), 0.0, 0.1, 1.0)
        return ColumnFacts(name="h", kind=kind, values=None, distinct=80, numbers=numbers)

    assert bands_of([hours(0, 99, [0, 4, 16, 30, 38, 40, 40, 45, 55])]) == (0, 1, 15, 40, 55)
    assert bands_of([hours(1.5, 61.2, [18.1, 19, 21, 23, 24.9, 26, 28.2, 31, 36], Kind.DECIMAL)])[0] == 0
    assert bands_of([hours(-400, 900, [-20, 0, 10, 20, 30, 50, 80, 100, 300])])[0] == float("-inf")
    years = [*range(1900, 2021)]
    column = ColumnFacts(
        name="y", kind=Kind.WHOLE, values=tuple(map(str, years)), distinct=len(years),
        numbers=Numbers(1900, 2020, (1960,) * 9, 0, 0, 1960),
    )  # fmt: skip
    assert bands_of([column]) == (1900, 1920, 1940, 1960, 1980, 2000, 2020)


def test_several_units_share_variables(tmp_path: Path) -> None:
    homes = TableFacts(
        "households",
        "h.csv",
        9,
        (facts("hid", "a", "b", unique=True), COUNTY, TRACT, facts("rooms", "1", "2", "3")),
        WITHIN,
    )
    programme = loaded(proposed(persons(PID, COUNTY, TRACT, SEX), homes), tmp_path)
    assert programme.population is not None
    assert programme.population.units["households"].id_column == "hid"
    assert programme.variables["GEO"].units is None
    assert programme.variables["ROOMS"].units == ("households",)
    assert {cube.unit for cube in programme.cubes} == {"persons", "households"}


def test_a_table_with_part_of_the_places_keeps_the_columns_that_all_have(tmp_path: Path) -> None:
    homes = TableFacts(
        "households", "h.csv", 9, (facts("hid", "a", "b", unique=True), TRACT, facts("rooms", "1", "2"))
    )
    programme = loaded(proposed(persons(PID, COUNTY, TRACT, SEX), homes), tmp_path)
    assert programme.population is not None
    assert programme.population.geography == ("tract",)
    assert programme.variables["GEO"].codelist.depth == 2


def test_a_table_without_ids_is_numbered_and_says_so(tmp_path: Path) -> None:
    for name in ("p.parquet", "p.csv", "folder"):
        proposal = proposed(persons(SEX, facts("person_number", "a"), source=name))
        assert "No column identifies the persons" in programme_text(proposal).replace("\n# ", " ")
        population = loaded(proposal, tmp_path).population
        assert population is not None
        assert population.units["persons"].id_column == "person_number_"


def test_decimal_commas_are_replaced_where_a_query_adds_an_id() -> None:
    rate = ColumnFacts(
        name="rate", kind=Kind.DECIMAL, values=None, distinct=9, numbers=Numbers(1, 9, (4.0,) * 9, 0, 0, 4)
    )
    dialect = {"delimiter": ";", "encoding": "windows-1252", "decimal": ","}
    table = TableFacts("persons", "p.csv", 99, (SEX, rate), dialect=dialect)
    text = programme_text(propose(infer([table])))
    query = tomllib.loads(text)["population"]["persons"]["query"]
    assert "* REPLACE (replace(\"rate\", ',', '.') AS \"rate\")" in query
    assert "delim = ';', encoding = 'latin-1'" in query


def test_what_is_left_out_is_listed_with_the_reason() -> None:
    income = ColumnFacts(
        name="income",
        kind=Kind.WHOLE,
        values=None,
        distinct=90,
        numbers=Numbers(0, 9e5, (3e4,) * 9, 1, 0, 4e4),
    )
    text = programme_text(proposed(persons(PID, SEX, income)))
    assert (
        "# Left out, and why:\n# - persons: income: an amount: sums and means of it are not protected" in text
    )


def test_nothing_to_draft() -> None:
    with pytest.raises(Mistakes, match="no column looks like a variable"):
        proposed(persons(PID))


def test_units_by_file_names() -> None:
    assert unit_of("ni_persons_2021.parquet") == "persons"
    assert unit_of("households.csv") == "households"
    assert unit_of("x.csv") is None


def test_codes_are_in_natural_order() -> None:
    assert sorted(["15-17", "5-9", "0-4"], key=natural) == ["0-4", "5-9", "15-17"]
    assert sorted(["10", "-9", "2", "N"], key=natural) == ["-9", "2", "10", "N"]
    ages = ["0-4", "15-19", "20", "21", "22-24", "85+", "unknown"]
    assert sorted(set(ages), key=natural) == ages


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=4).filter(lambda text: text.strip() != "")
COLUMNS = st.builds(
    lambda name, values, missing, unique: facts(name, *values, missing=missing, unique=unique),
    NAMES,
    st.lists(VALUES, min_size=1, max_size=6, unique_by=lambda text: text.strip()),
    st.sampled_from([0.0, 0.1]),
    st.booleans(),
)


@given(st.lists(COLUMNS, max_size=6, unique_by=lambda column: column.name))
def test_whatever_the_columns_the_draft_loads(
    tmp_path_factory: pytest.TempPathFactory, found: list[ColumnFacts]
) -> None:
    table = persons(SEX, *(column for column in found if column.name != "sex"))
    programme = loaded(proposed(table), tmp_path_factory.mktemp("draft"))
    assert programme.cubes


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_quoted_text_is_toml(text: str) -> None:
    assert tomllib.loads(f"x = {quote(text)}")["x"] == text
