"""``discreet init`` on files as users have them: the draft passes check, protect and verify without an edit."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.errors import Mistakes
from discreet.programme.noise import PrivateNoise
from discreet.programme.programme import load_programme
from tests.cli import init_files

Decisions = dict[str, str]


def discreet(*arguments: object) -> tuple[int, str]:
    """Exit code and output, as the program's own frame makes them of mistakes."""
    done = CliRunner().invoke(app, list(map(str, arguments)))
    if isinstance(done.exception, Mistakes):
        return 2, str(done.exception)
    return done.exit_code, done.output


def drafted(folder: Path, file: str, make: Callable[[Path], None], *options: str) -> dict[str, object]:
    make(folder / file)
    code, said = discreet("init", folder / file, "--out", folder / "draft", "--json", *options)
    assert code == 0, said
    found: dict[str, object] = json.loads(said)
    return found


def published(folder: Path) -> None:
    """The draft as it is goes through the whole path."""
    programme = folder / "draft" / "programme.toml"
    code, said = discreet("check", programme)
    assert code == 0, said
    assert discreet("secret", "--out", folder / "secret.key")[0] == 0
    code, said = discreet(
        "protect", programme, "--secret", folder / "secret.key", "--out", folder / "release", "--threads", "1"
    )
    assert code == 0, said
    code, said = discreet("verify", folder / "release")
    assert code == 0, said


def roles(found: dict[str, object]) -> Decisions:
    decisions = found["decisions"]
    assert isinstance(decisions, list)
    return {one["column"]: one["role"] for one in decisions}


def test_areas_with_codes_and_names(tmp_path: Path) -> None:
    found = drafted(tmp_path, "melbourne.parquet", init_files.melbourne)
    assert found["geography"] == [f"SA{n}_CODE_2021" for n in (4, 3, 2, 1)]
    assert found["ids"] == {"persons": "person_ref"}
    assert {name: role for name, role in roles(found).items() if "NAME" in name} == {
        f"SA{n}_NAME_2021": "labels" for n in (2, 3, 4)
    }
    assert roles(found)["AGEP"] == "age"
    assert roles(found)["OCC1"] == "level"
    assert roles(found)["INCOME"] == "left out"
    text = (tmp_path / "draft" / "programme.toml").read_text()
    assert "breakdowns = { SA4 = 1, SA3 = 2, SA2 = 3, SA1 = 4 }" in text
    assert 'missing = "unknown"' in text
    assert "Suburb 0 - North East" in (tmp_path / "draft" / "codelists" / "geo.csv").read_text()
    published(tmp_path)


def test_a_public_use_file(tmp_path: Path) -> None:
    found = drafted(tmp_path, "pums.parquet", init_files.pums)
    assert found["ids"] == {"persons": None, "households": "SERIALNO"}
    assert found["member_number"] == "SPORDER"
    assert found["weight"] == "PWGTP"
    assert found["geography"] == ["ST", "PUMA"]
    assert {name for name, role in roles(found).items() if role == "left out"} == {
        "PWGTP1",
        "PWGTP2",
        "PINCP",
    }
    assert roles(found)["AGEP"] == "age"
    assert roles(found)["WKHP"] == "bands"
    published(tmp_path)
    released = pq.read_table(next((tmp_path / "release").rglob("1.1.parquet")))
    assert released.num_rows


def test_codes_without_telling_names(tmp_path: Path) -> None:
    found = drafted(tmp_path, "national.csv", init_files.national)
    assert found["ids"] == {"persons": "A1", "households": "A2"}
    assert found["geography"] == ["A3", "A4"]
    kinds = [roles(found)[f"A{n}"] for n in range(5, 10)]
    assert kinds == ["age", "codes", "codes", "bands", "codes"]
    assert 'missing_values = ["N"]' in (tmp_path / "draft" / "programme.toml").read_text()
    published(tmp_path)


def test_dates_of_birth(tmp_path: Path) -> None:
    found = drafted(tmp_path, "births.parquet", init_files.births)
    assert roles(found)["birth_date"] == "date of birth"
    assert roles(found)["moved_in"] == "left out"
    assert found["ids"] == {"persons": "pid", "households": "hid"}
    published(tmp_path)


def test_semicolons_latin_letters_and_decimal_commas(tmp_path: Path) -> None:
    found = drafted(tmp_path, "german.csv", init_files.german)
    assert found["dialects"] == {"persons": {"delimiter": ";", "encoding": "windows-1252", "decimal": ","}}
    assert found["geography"] == ["kreis", "ags"]
    assert found["ids"] == {"persons": "lfdnr", "households": "haushalt"}
    assert found["weight"] == "hochrechnungsfaktor"
    assert roles(found)["alter"] == "age"
    assert roles(found)["miete"] == "left out"
    assert "Größdorf" in (tmp_path / "draft" / "codelists" / "geo.csv").read_text(encoding="utf-8")
    published(tmp_path)


def test_a_table_of_counts(tmp_path: Path) -> None:
    """It has no cell keys, so the draft has noise with a guarantee; its variables are named as the columns."""
    found = drafted(tmp_path, "cells.parquet", init_files.cells)
    assert found["count"] == "n"
    assert found["geography"] == ["county", "district"]
    assert found["ids"] == {}
    programme = load_programme(tmp_path / "draft" / "programme.toml")
    (cube,) = programme.cubes
    assert [axis.full_name for axis in cube.axes] == ["GEO.DISTRICT", "SEX", "AGE"]
    assert programme.population is None
    assert isinstance(programme.noise, PrivateNoise)
    published(tmp_path)


def test_several_tables_of_counts_one_under_another_are_refused(tmp_path: Path) -> None:
    rows = [(f"t{n % 90}", f"D{n // 45}", f"c{n * 7 % 4500}", n % 9) for n in range(45 * 900)]
    names = ("table", "area", "category", "count")
    pq.write_table(
        pa.table({name: [row[k] for row in rows] for k, name in enumerate(names)}), tmp_path / "t.parquet"
    )
    code, said = discreet("init", tmp_path / "t.parquet", "--out", tmp_path / "draft")
    assert code == 2
    assert "several tables one under another: give one of them, selected by table" in said
    assert not (tmp_path / "draft").exists()


def test_what_is_stated_overrides_what_is_found(tmp_path: Path) -> None:
    found = drafted(
        tmp_path,
        "national.csv",
        init_files.national,
        "--geography",
        "A3",
        "--age",
        "A5",
        "--household-id",
        "A2",
    )
    assert found["geography"] == ["A3"]
    published(tmp_path)


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    init_files.national(tmp_path / "national.csv")
    monkeypatch.setattr("discreet.cli.init.putting", full)
    before = set(tmp_path.rglob("*"))
    done = CliRunner().invoke(app, ["init", str(tmp_path / "national.csv"), "--out", str(tmp_path / "a/b")])
    assert isinstance(done.exception, OSError)
    assert set(tmp_path.rglob("*")) == before
    nowhere = tmp_path / "c/../none.csv/d"  # a folder is made before the file in the way is met
    (tmp_path / "none.csv").write_text("")
    done = CliRunner().invoke(app, ["init", str(tmp_path / "national.csv"), "--out", str(nowhere)])
    assert isinstance(done.exception, OSError)
    assert not (tmp_path / "c").exists()
    (tmp_path / "a").mkdir()
    CliRunner().invoke(app, ["init", str(tmp_path / "national.csv"), "--out", str(tmp_path / "a")])
    assert list((tmp_path / "a").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--age", "years"), "--age: unknown column 'years'; the columns are A1, A2, A3"),
        (("--weight", "w"), "--weight: unknown column 'w'"),
        (("--geography", "A4,A3"), "--geography: 'A3' does not lie within 'A4'"),
        (("--decimal", "x"), "--decimal: 'x'; give . or ,"),
    ],
)
def test_a_wrong_name_is_one_line_and_writes_nothing(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    init_files.national(tmp_path / "national.csv")
    code, said = discreet("init", tmp_path / "national.csv", "--out", tmp_path / "draft", *options)
    assert code == 2
    assert message in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "draft").exists()
