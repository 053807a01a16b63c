"""``discreet init``: files written, nothing overwritten, several units."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from discreet.cli.init import init
from discreet.errors import Mistakes
from discreet.programme.programme import load_programme
from discreet.programme.sources import FileSource

PERSONS = pa.table(
    {
        "person_id": list(range(8)),
        "household_id": [0, 0, 1, 1, 2, 2, 3, 3],
        "region": ["A", "A", "A", "A", "B", "B", "B", "B"],
        "town": ["a1", "a1", "a2", "a2", "b1", "b1", "b2", "b2"],
        "sex": [1, 2, 1, 2, 1, 2, 1, 2],
        "age": [1, 40, 80, 7, 7, 30, 30, 66],
    }
)
HOUSEHOLDS = pa.table({"household_id": [0, 1, 2, 3], "town": ["a1", "a2", "b1", "b2"], "rooms": [1, 2, 2, 3]})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    pq.write_table(PERSONS, tmp_path / "persons.parquet")
    pa_csv.write_csv(HOUSEHOLDS, tmp_path / "households.csv")
    return tmp_path


def test_the_draft_loads_from_its_own_folder(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    init([str(data / "households.csv"), str(data / "persons.parquet")], data / "out")
    programme = load_programme(data / "out" / "programme.toml")
    assert programme.population is not None
    source = programme.population.units["persons"].source
    assert isinstance(source, FileSource)
    assert source.given == "../persons.parquet"
    assert source.paths()[0].samefile(data / "persons.parquet")
    assert programme.population.geography == ("town",)  # the households lack the region
    assert list(programme.variables["GEO"].breakdowns) == ["REGION", "TOWN"]
    assert programme.variables["AGE"].codelist.depth == 3
    assert {cube.unit for cube in programme.cubes} == {"persons", "households"}
    said = capsys.readouterr().out
    assert "GEO.REGION x SEX x AGE.L" in said
    assert "discreet check" in said


def test_nothing_is_overwritten(data: Path) -> None:
    (data / "codelists").mkdir()
    (data / "codelists" / "sex.csv").write_text("mine")
    with pytest.raises(Mistakes, match=r"sex\.csv: exists already"):
        init([str(data / "persons.parquet")], data)
    assert (data / "codelists" / "sex.csv").read_text() == "mine"
    assert not (data / "programme.toml").exists()
    init([str(data / "persons.parquet")], data / "out", quiet=True)
    before = (data / "out" / "programme.toml").read_bytes()
    with pytest.raises(Mistakes, match="exists already"):
        init([str(data / "persons.parquet")], data / "out")
    assert (data / "out" / "programme.toml").read_bytes() == before


def test_units_are_told_or_guessed(data: Path) -> None:
    pq.write_table(PERSONS, data / "a.parquet")
    pq.write_table(HOUSEHOLDS, data / "b.parquet")
    with pytest.raises(Mistakes, match="write UNIT=FILE"):
        init([str(data / "a.parquet"), str(data / "b.parquet")], data / "out")
    init([str(data / "a.parquet"), f"households={data / 'b.parquet'}"], data / "out")
    population = load_programme(data / "out" / "programme.toml").population
    assert population is not None
    assert list(population.units) == ["persons", "households"]


def test_json(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    init([str(data / "persons.parquet")], data / "out", json_=True)
    report = json.loads(capsys.readouterr().out)
    assert report["files"][0] == "programme.toml"
    assert report["geography"] == ["region", "town"]
    assert report["ids"] == {"persons": "person_id", "households": "household_id"}
    roles = {one["column"]: one["role"] for one in report["decisions"]}
    assert roles == {
        "person_id": "id",
        "household_id": "id",
        "region": "geography",
        "town": "geography",
        "sex": "codes",
        "age": "age",
    }
    assert all((data / "out" / name).is_file() for name in report["files"])


def test_a_missing_file_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match="no file"):
        init([str(tmp_path / "none.parquet")], tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_unknown_unit_lists_those_that_exist(data: Path) -> None:
    with pytest.raises(
        Mistakes, match="unknown unit 'person'; write UNIT=FILE with one of persons, households"
    ):
        init([f"person={data / 'persons.parquet'}"], data / "out")
    assert not (data / "out").exists()


def test_names_of_columns_keep_their_letters_and_levels_their_case(data: Path) -> None:
    table = PERSONS.rename_columns(["Kennung", "Haushalt", "Kreis", "Gemeinde", "Sex", "Alter"])
    table = table.append_column(
        "Größe", pa.array(["klein", "klein", "groß", "groß", "groß", "klein", "klein", "groß"])
    )
    pq.write_table(table, data / "personen.parquet")
    init([str(data / "personen.parquet")], data / "out", "Kreis,Gemeinde", "Kennung", "Haushalt")
    text = (data / "out" / "programme.toml").read_text(encoding="utf-8")
    assert "[variables.GROSSE]" in text
    assert 'KREIS = "Kreis", GEMEINDE = "Gemeinde"' in text
