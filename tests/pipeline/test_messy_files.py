"""An office's own files: a messy CSV is checked, protected and verified, and gives the tables of clean Parquet."""

import json
import shutil
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.errors import Mistakes
from discreet.programme.coding import coding, made_codes
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release
from discreet.release.verify import verify
from discreet.serve.answer import Answer
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_programme
from discreet.serve.query import Axis, Query
from tests.pipeline.conftest import NOON, SECRET, run

PERSONS = 900
DAY = date(2021, 5, 9)
BORN, RENT = [0, 15, 30, 45, 65], [0.0, 450.5, 900.0]

MESSY = """
[population]
persons = "persons.csv"
person_id = "pid"
geography = ["ort"]
[variables.TOWN]
column = "ort"
codelist = "town.csv"
missing = "?"
[variables.AGE]
column = "geb"
reference_day = "2021-05-09"
bands = [0, 15, 30, 45, 65]
missing = "unknown"
[variables.YEARS]
column = "AGEP"
codelist = "years.csv"
missing = "unknown"
[variables.RENT]
column = "miete"
bands = [0.0, 450.5, 900.0]
missing = "none"
missing_values = ["k.A.", -9]
"""
CLEAN = """
[population]
persons = "persons.parquet"
person_id = "pid"
geography = ["town"]
[variables.TOWN]
codelist = "town.csv"
[variables.AGE]
codelist = "age.csv"
[variables.YEARS]
codelist = "years.csv"
[variables.RENT]
codelist = "rent.csv"
"""
REST = """
[[cubes]]
id = "ages"
axes = ["TOWN", "AGE", "RENT"]
[[cubes]]
id = "years"
axes = ["YEARS"]
base = 'RENT != "none"'
[[cubes]]
id = "weighted"
axes = ["TOWN", "AGE"]
weight = "gewicht"
[[structural_zeros]]
where = 'AGE == "0-14" and RENT == "900+"'
[noise]
kind = "cell-key"
V = 2.0
D = 5
[release]
formats = ["csv", "parquet"]
"""


@dataclass(frozen=True)
class Person:
    town: str | None
    born: date | None
    rent: float | None
    weight: float

    @property
    def age(self) -> int | None:
        if self.born is None:
            return None
        return DAY.year - self.born.year - ((DAY.month, DAY.day) < (self.born.month, self.born.day))


def persons() -> list[Person]:
    rng = np.random.default_rng(4)
    found = []
    for _ in range(PERSONS):
        born = None if rng.random() < 0.05 else DAY - timedelta(days=int(rng.integers(0, 35_000)))
        rent = None if rng.random() < 0.2 else round(float(rng.integers(0, 1600)) / 2, 1)
        person = Person(
            None if rng.random() < 0.02 else str(rng.choice(["Zürich", "Genève", "Wil"])),
            born,
            rent,
            float(rng.integers(2, 40)) / 4,
        )
        if person.age is not None and person.age < 15 and rent is not None and rent >= 900:
            continue
        found.append(person)
    return found


def band(value: float | None, limits: list[float], names: list[str], missing: str) -> str:
    if value is None:
        return missing
    return names[max(k for k, limit in enumerate(limits) if limit <= value)]


def comma(number: float) -> str:
    return f"{number:.2f}".replace(".", ",")


def messy_line(k: int, one: Person) -> str:
    """A record as an office might have it: every value in one of several spellings."""
    none = ("", "k.A.", "-9", "-9,0")[k % 4]
    born = (
        ""
        if one.born is None
        else (one.born.isoformat(), one.born.strftime("%d.%m.%Y"), f"{one.born} 00:00")[k % 3]
    )
    years = "" if one.age is None else (f"{one.age}", f"{one.age}.0", f"{one.age},0", f" {one.age} ")[k % 4]
    rent = none if one.rent is None else comma(one.rent)
    town = "" if one.town is None else f'"{one.town}"'
    return f'{k};{k // 2};{town};{born};{years};{rent};{comma(one.weight)};"a;b\nc"\r\n'


def write_lists(folder: Path) -> None:
    for name, limits, missing in (("age", BORN, "unknown"), ("rent", RENT, "none")):
        rows = made_codes(coding(limits, missing, None, None))
        lines = "".join(f"{row.code},,{row.label}\n" for row in rows)
        (folder / f"{name}.csv").write_text("code,parent,label\n" + lines)
    (folder / "town.csv").write_text("code\nZürich\nGenève\nWil\n?\n", encoding="utf-8")
    (folder / "years.csv").write_text("code\n" + "".join(f"{age}\n" for age in range(100)) + "unknown\n")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The messy office and the clean one, with the same persons."""
    messy, clean = tmp_path / "messy", tmp_path / "clean"
    people = persons()
    for folder in (messy, clean):
        folder.mkdir()
        write_lists(folder)
    header = "pid;hid;ort;geb;AGEP;miete;gewicht;bemerkung ö\r\n"
    text = header + "".join(messy_line(k, one) for k, one in enumerate(people))
    (messy / "persons.csv").write_bytes(text.encode("latin-1"))
    (messy / "programme.toml").write_text(MESSY + REST, encoding="utf-8")
    ages = [row.code for row in made_codes(coding(BORN, None, None, None))]
    rents = [row.code for row in made_codes(coding(RENT, None, None, None))]
    table = {
        "pid": list(range(len(people))),
        "hid": [k // 2 for k in range(len(people))],
        "town": [one.town or "?" for one in people],
        "age": [band(one.age, [*BORN], ages, "unknown") for one in people],
        "years": ["unknown" if one.age is None else str(one.age) for one in people],
        "rent": [band(one.rent, RENT, rents, "none") for one in people],
        "gewicht": [one.weight for one in people],
    }
    pq.write_table(pa.table(table), clean / "persons.parquet")
    (clean / "programme.toml").write_text(CLEAN + REST, encoding="utf-8")
    return messy, clean


def tables(release: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(release.rglob("*.csv"))}


def command(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(done.exception, Mistakes):
        return 2, done.output + str(done.exception)
    return done.exit_code, done.output


def test_a_messy_file_gives_the_tables_of_a_clean_one(folders: tuple[Path, Path], tmp_path: Path) -> None:
    for folder in folders:
        run(folder, tmp_path / f"{folder.name}-release")
    found = tables(tmp_path / "messy-release")
    assert len(found) >= 3
    assert found == tables(tmp_path / "clean-release")
    assert not verify(tmp_path / "messy-release").problems
    rows = open_release(tmp_path / "messy-release").read_cube("ages").to_pylist()
    missing = [row for row in rows if row["AGE"] == "unknown" and row["TOWN"] == "_T" and row["RENT"] == "_T"]
    assert missing[0]["value"] > 10, "records without a date of birth are counted"


def test_check_shows_how_the_file_is_read(folders: tuple[Path, Path]) -> None:
    messy, clean = folders
    code, text = command("check", messy / "programme.toml")
    assert code == 0, text
    assert "read as CSV separated by semicolons, windows-1252, decimal comma" in text
    assert "Sums and means of amounts are not protected" in text
    assert "read as CSV" not in command("check", clean / "programme.toml")[1]
    notes = json.loads(command("check", messy / "programme.toml", "--json")[1])["notes"]
    assert any("semicolons" in note for note in notes)


def test_the_table_builder_counts_the_same(folders: tuple[Path, Path], tmp_path: Path) -> None:
    answers = []
    for folder in folders:
        store = Store(tmp_path / f"{folder.name}.sqlite", lambda: NOON)
        builder = serve_programme(load_programme(folder / "programme.toml"), SECRET, store)
        answer = builder.ask(Query("persons", (Axis("AGE"), Axis("RENT")), 'TOWN != "?"'), "user")
        assert isinstance(answer, Answer)
        answers.append(answer)
    np.testing.assert_array_equal(answers[0].values, answers[1].values)
    assert answers[0].values.max() > 100


def test_check_reports_everything_at_once_and_no_record(folders: tuple[Path, Path]) -> None:
    messy, _ = folders
    text = (messy / "persons.csv").read_bytes().decode("latin-1")
    lines = text.split("\r\n")
    lines[1] = "10001;7;Bern;1974-02-30;7,5;viel;1,0;x"
    lines[2] = "10002;7;Bern;09.05.2022;abc;-3;1,0;x"
    (messy / "persons.csv").write_bytes("\r\n".join(lines).encode("latin-1"))
    declared = (messy / "programme.toml").read_text(encoding="utf-8")
    (messy / "programme.toml").write_text(
        declared.replace('codelist = "town.csv"\nmissing = "?"', 'codelist = "town.csv"')
    )
    code, said = command("check", messy / "programme.toml")
    assert code == 2
    for part in (
        "variables.TOWN: some records have no value; name the code that they get",
        "variables.TOWN: 1 codes that are not leaves of the codelist: 'Bern'",
        "variables.AGE: 1 values that are not dates: '1974-02-30'",
        "variables.AGE: dates of birth in 'geb' after 2021-05-09",
        "variables.YEARS: 2 codes that are not leaves of the codelist: '7,5', 'abc'",
        "variables.RENT: 1 values that are not numbers: 'viel'",
        "variables.RENT: 1 numbers below the first band: '-3'",
        "is read as CSV separated by semicolons",
    ):
        assert part in said, said
    assert "10001" not in said
    assert "2022" not in said.replace("2021-05-09", "")


def test_an_amount_is_refused_as_a_weight_by_its_values(folders: tuple[Path, Path], tmp_path: Path) -> None:
    _, clean = folders
    table = pq.read_table(clean / "persons.parquet")
    paid = pa.array([1000.0 + 100 * (k % 40) for k in range(len(table))])
    pq.write_table(table.append_column("paid_out", paid), clean / "persons.parquet")
    declared = (clean / "programme.toml").read_text(encoding="utf-8").replace('"gewicht"', '"paid_out"')
    (clean / "programme.toml").write_text(declared)
    assert command("secret", "--out", tmp_path / "secret")[0] == 0
    for words in (("check",), ("protect", "--out", tmp_path / "release", "--secret", tmp_path / "secret")):
        code, said = command(words[0], clean / "programme.toml", *words[1:])
        assert code == 2
        assert "column paid_out: its values look like amounts, not like survey weights" in said
    assert not (tmp_path / "release").exists()
    stated = declared.replace('geography = ["town"]', 'geography = ["town"]\nweights = ["paid_out"]')
    (clean / "programme.toml").write_text(stated)
    assert command("check", clean / "programme.toml")[0] == 0


SWAP = """
[swap]
k = 3
risk = ["AGE.M", "SEX"]
similar = [["HHSIZE"], [{ composition = ["AGE.L"] }]]
rate = 0.1
carry = ["grid_x", "grid_y"]
"""


def test_swapping_reads_messy_files_as_clean_ones(census: Path, tmp_path: Path) -> None:
    """The synthetic census with dates of birth, sizes as decimals and CSV, under the built-in codelist of ages."""
    clean, messy = tmp_path / "clean", tmp_path / "messy"
    shutil.copytree(census, clean)
    shutil.copytree(census, messy)
    declared = (census / "programme.toml").read_text(encoding="utf-8").replace("[noise]", SWAP + "[noise]")
    (clean / "programme.toml").write_text(declared, encoding="utf-8")
    for key, value in (
        ("persons", "persons.csv"),
        ("households", "households.csv"),
    ):
        declared = declared.replace(f'{key} = "{key}.parquet"', f'{key} = "{value}"')
    coded = 'column = "born"\nreference_day = "2021-05-09"\nbands = "codelist"\n'
    (messy / "programme.toml").write_text(declared.replace('column = "age"\n', coded), encoding="utf-8")
    persons = pq.read_table(census / "persons.parquet")
    ages = [int(one.removeprefix("Y").removeprefix("_GE")) for one in persons["age"].to_pylist()]
    born = [(date(2021 - age, 5, 9) - timedelta(days=k % 300)).isoformat() for k, age in enumerate(ages)]
    for name, table in (
        ("persons", persons.drop_columns(["age"]).append_column("born", pa.array(born))),
        ("households", pq.read_table(census / "households.parquet")),
    ):
        texts = {column: [f"{one}" for one in table[column].to_pylist()] for column in table.column_names}
        if "hhsize" in texts:
            texts["hhsize"] = [f"{one}.0" if one.isdigit() else one for one in texts["hhsize"]]
        lines = [";".join(table.column_names), *(";".join(row) for row in zip(*texts.values(), strict=True))]
        (messy / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-16")
        (messy / f"{name}.parquet").unlink()
    for folder in (clean, messy):
        run(folder, tmp_path / f"{folder.name}-release")
    found = tables(tmp_path / "messy-release")
    assert len(found) >= 5
    assert found == tables(tmp_path / "clean-release")
    assert not verify(tmp_path / "messy-release").problems
