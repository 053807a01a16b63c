"""Drafting a programme from the facts of some columns."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.programme.attributes import UNDECLARED, Attribute, Holder
from discreet.programme.codelist import codelist, write_codelist
from discreet.programme.draft import (
    ColumnFacts,
    Draft,
    Kind,
    TableFacts,
    draft,
    is_place,
    programme_text,
    quote,
    unit_of,
)
from discreet.programme.programme import Programme, load_programme

SEX = ColumnFacts("sex", Kind.WHOLE, ("2", "1"))
AGE = ColumnFacts("age", Kind.WHOLE, tuple(map(str, range(98))))
PID = ColumnFacts("pid", Kind.WHOLE, None, unique=True)
HID = ColumnFacts("hid", Kind.TEXT, None)
COUNTY = ColumnFacts("county", Kind.TEXT, ("1", "2"))
TRACT = ColumnFacts("tract", Kind.TEXT, ("1", "20", "3"))
WITHIN = {("county", "tract"): {"1": "1", "20": "2", "3": "1"}}
PERSONS = TableFacts("persons", "persons.parquet", (PID, HID, COUNTY, TRACT, SEX, AGE), WITHIN)


def loaded(proposed: Draft, folder: Path) -> Programme:
    (folder / "codelists").mkdir(exist_ok=True)
    for variable in proposed.variables:
        write_codelist(folder / variable.file, codelist(variable.name, variable.rows))
    for table in proposed.tables:
        (folder / table.source).touch()
    (folder / "programme.toml").write_text(programme_text(proposed))
    return load_programme(folder / "programme.toml")


def test_ids_places_ages_and_cubes(tmp_path: Path) -> None:
    programme = loaded(draft([PERSONS]), tmp_path)
    assert programme.population is not None
    assert programme.population.ids == {"persons": "pid", "households": "hid"}
    assert programme.population.geography == ("county", "tract")
    assert list(programme.variables) == ["GEO", "SEX", "AGE"]
    assert programme.variables["SEX"].codelist.codes == ("1", "2")
    assert [cube.id for cube in programme.cubes] == ["1.1", "1.2"]
    assert [f"{axis.variable}.{axis.name}" for axis in programme.cubes[0].axes] == [
        "GEO.COUNTY",
        "SEX.SEX",
        "AGE.L",
    ]


def test_whose_attribute_a_variable_is_is_drafted_only_where_its_table_shows_it(tmp_path: Path) -> None:
    """A variable of persons may derive from the household: no one is spared that decision."""
    tenure = ColumnFacts("tenure", Kind.TEXT, ("own", "rent"))
    homes = TableFacts(
        "households", "households.parquet", (ColumnFacts("hid", Kind.TEXT, None, unique=True), tenure)
    )
    programme = loaded(draft([PERSONS, homes]), tmp_path)
    assert programme.variables["TENURE"].attribute == Attribute(Holder.HOUSEHOLD)
    assert programme.variables["SEX"].attribute == UNDECLARED
    assert '# of = "person"' in (tmp_path / "programme.toml").read_text()


def test_labels_are_drafted_from_the_names_of_columns(tmp_path: Path) -> None:
    marital = ColumnFacts("MARITAL_status", Kind.WHOLE, ("1", "2"))
    table = TableFacts("persons", "persons.parquet", (PID, COUNTY, TRACT, AGE, marital), WITHIN)
    programme = loaded(draft([table]), tmp_path)
    labels = programme.labels
    assert labels.axis("MARITAL_STATUS") == "Marital status"
    assert labels.axis("AGE.M") == "Age (five-year groups)"
    assert labels.axis("GEO.TRACT") == "Place of residence (tract)"
    assert programme.cubes[1].title == "Persons by Place of residence (tract), Age (broad groups)"


def test_columns_that_would_look_alike_keep_their_names(tmp_path: Path) -> None:
    alike = [ColumnFacts(name, Kind.WHOLE, ("1", "2")) for name in ("work", "Work", "sex")]
    labels = loaded(draft([TableFacts("persons", "p.csv", (PID, *alike))]), tmp_path).labels
    assert [labels.variable(name) for name in ("WORK", "WORK_2", "SEX")] == ["WORK", "WORK_2", "Sex"]


def test_a_place_keeps_its_values_as_leaves_when_levels_share_codes(tmp_path: Path) -> None:
    places = loaded(draft([PERSONS]), tmp_path).variables["GEO"].codelist
    assert set(places.leaf_codes) == {"1", "20", "3"}
    assert places.codes == ("county:1", "1", "3", "2", "20")


def test_ages_are_banded_and_cover_every_year(tmp_path: Path) -> None:
    age = loaded(draft([PERSONS]), tmp_path).variables["AGE"]
    assert age.codelist.leaf_codes == tuple(map(str, range(98)))
    assert age.breakdowns["L"].codes == ("_T", "Y0-14", "Y15-29", "Y30-49", "Y50-64", "Y65-84", "Y_GE85")
    assert "A95-97" in age.breakdowns["M"].codes


@pytest.mark.parametrize("oldest", [60, 84, 85, 86, 130])
def test_any_highest_age_works(tmp_path: Path, oldest: int) -> None:
    ages = ColumnFacts("age", Kind.WHOLE, tuple(map(str, range(oldest + 1))))
    tree = loaded(draft([TableFacts("persons", "p.csv", (PID, ages))]), tmp_path).variables["AGE"].codelist
    assert tree.leaf_codes == tuple(map(str, range(oldest + 1)))
    assert tree.depth == 3


def test_age_groups_are_left_as_they_are() -> None:
    groups = ColumnFacts("age_band", Kind.WHOLE, ("1", "2", "8"))
    (variable,) = draft([TableFacts("persons", "p.csv", (PID, groups))]).variables
    assert [row.code for row in variable.rows] == ["1", "2", "8"]
    assert not variable.breakdowns


def test_several_units_share_variables(tmp_path: Path) -> None:
    own = ColumnFacts("hid", Kind.TEXT, None, unique=True)
    rooms = ColumnFacts("rooms", Kind.WHOLE, ("1", "2", "3"))
    households = TableFacts("households", "households.csv", (own, COUNTY, TRACT, rooms), WITHIN)
    programme = loaded(draft([PERSONS, households]), tmp_path)
    assert programme.population is not None
    assert programme.population.units["households"].id_column == "hid"
    assert programme.variables["GEO"].units is None
    assert programme.variables["ROOMS"].units == ("households",)
    assert {cube.unit for cube in programme.cubes} == {"persons", "households"}


def test_a_table_without_ids_is_numbered_and_told(tmp_path: Path) -> None:
    for name in ("p.parquet", "p.csv", "folder"):
        proposed = draft(
            [TableFacts("persons", name, (SEX, ColumnFacts("person_number", Kind.TEXT, ("a",))))]
        )
        assert "no column identifies the records" in proposed.notes[0]
        population = loaded(proposed, tmp_path).population
        assert population is not None
        assert population.units["persons"].id_column == "person_number_"


def test_units_never_share_an_id_column(tmp_path: Path) -> None:
    own = ColumnFacts("id", Kind.WHOLE, None, unique=True)
    tables = [TableFacts(unit, f"{unit}.csv", (own, SEX)) for unit in ("persons", "households", "dwellings")]
    population = loaded(draft(tables), tmp_path).population
    assert population is not None
    assert list(population.ids.values()) == ["id", "household_number", "dwelling_number"]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (ColumnFacts("x", Kind.TEXT, ("a",), missing=True), "some records have no value"),
        (ColumnFacts("x", Kind.TEXT, ("a", "")), "some records have no value"),
        (ColumnFacts("x", Kind.OTHER, None), "neither text nor whole numbers"),
        (ColumnFacts("x", Kind.TEXT, ("a", "_T")), "means the total"),
        (ColumnFacts("x", Kind.WHOLE, tuple(map(str, range(201)))), "too many different values"),
        (ColumnFacts("x", Kind.TEXT, tuple(map(str, range(5001)))), "too many different values"),
        (ColumnFacts("x", Kind.TEXT, None), "too many different values"),
    ],
)
def test_what_is_left_out_is_told(column: ColumnFacts, said: str) -> None:
    proposed = draft([TableFacts("persons", "p.csv", (PID, SEX, column))])
    assert [variable.column for variable in proposed.variables] == ["sex"]
    assert said in proposed.notes[0]


def test_nothing_to_draft() -> None:
    with pytest.raises(Mistakes, match="no column looks like a variable"):
        draft([TableFacts("persons", "p.csv", (PID,))])


def test_names_of_places_and_units() -> None:
    for name in ("nuts3", "LAU", "county", "region_code", "blkgrp", "oa11cd", "taz", "municipality"):
        assert is_place(name), name
    for name in ("age", "country_of_birth", "region_of_birth", "religion", "status", "age_area", "lady"):
        assert not is_place(name), name
    assert unit_of("ni_persons_2021.parquet") == "persons"
    assert unit_of("households.csv") == "households"
    assert unit_of("x.csv") is None


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
COLUMNS = st.builds(
    ColumnFacts,
    NAMES,
    st.sampled_from(Kind),
    st.lists(VALUES, min_size=1, max_size=6, unique=True).map(tuple),
    st.booleans(),
    st.booleans(),
).filter(
    lambda column: column.kind is not Kind.WHOLE or all(value.isdecimal() for value in column.values or ())
)


@given(st.lists(COLUMNS, max_size=6, unique_by=lambda column: column.name))
def test_whatever_the_columns_the_draft_loads(
    tmp_path_factory: pytest.TempPathFactory, found: list[ColumnFacts]
) -> None:
    table = TableFacts("persons", "p.parquet", (SEX, *(column for column in found if column.name != "sex")))
    programme = loaded(draft([table]), tmp_path_factory.mktemp("draft"))
    assert programme.cubes


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_quoted_text_is_toml(text: str) -> None:
    assert tomllib.loads(f"x = {quote(text)}")["x"] == text


def test_a_table_of_counts_is_pointed_out() -> None:
    number = ColumnFacts("Count", Kind.WHOLE, ("1", "2"))
    cells = TableFacts("persons", "cells.parquet", (COUNTY, SEX, number))
    assert any("'Count' looks like a number of persons per line" in note for note in draft([cells]).notes)
    size = ColumnFacts("Size", Kind.WHOLE, ("1", "2"))
    homes = TableFacts("persons", "homes.parquet", (COUNTY, SEX, size))
    assert not any("per line" in note for table in (PERSONS, homes) for note in draft([table]).notes)
