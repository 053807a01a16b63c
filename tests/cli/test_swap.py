"""``discreet swap`` from files to files: what it writes, what it says, and that nothing is left half done."""

import json
import random
import resource
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from discreet.cli.app import app
from discreet.errors import Mistakes
from discreet.pipeline import swap as writing
from tests.forked import Forked, discreet

HOMES = 400
PROGRAMME = """
[population]
persons = "persons.parquet"
households = "households.parquet"
person_id = "pid"
household_id = "hid"
geography = ["region", "town"]

[variables.TOWN]
column = "town"
codelist = "town.csv"

[variables.AGE]
units = ["persons"]
codelist = "age.csv"

[variables.SIZE]
units = ["households"]
codelist = "size.csv"

[[cubes]]
id = "people"
axes = ["TOWN", "AGE"]

[swap]
k = 3
risk = ["AGE"]
similar = [["SIZE"]]
rate = 0.2
carry = ["x", "y"]

[noise]
kind = "cell-key"
V = 2.0
D = 5

[release]
title = "Census of eight towns"
"""
PLACE = ["region", "town", "x", "y"]


def census(folder: Path) -> Path:
    """Households of one to three persons in eight towns of two regions; ages that are rare in some of them."""
    dice = random.Random(3)
    homes = range(HOMES)
    town = [dice.randrange(8) for _ in homes]
    place = {
        "region": [f"R{code // 4}" for code in town],
        "town": pa.array(town, pa.int16()),
        "x": [float(10 * code + home % 7) for home, code in enumerate(town)],
        "y": [float(home % 11) for home in homes],
    }
    ids = [f"private-household-{8_000_000_000 + 7 * home}" for home in homes]
    size = [1 + home % 3 for home in homes]
    whose = [home for home in homes for _ in range(size[home])]
    dice.shuffle(whose)
    folder.mkdir()
    households = pa.table({"hid": ids, "size": size, **place})
    persons = pa.table(
        {
            "pid": range(len(whose)),
            "hid": [ids[home] for home in whose],
            "age": [min(int(dice.expovariate(0.4)), 20) for _ in whose],
        }
    )
    for name in PLACE:
        persons = persons.append_column(name, households[name].take(pa.array(whose)))
    pq.write_table(households, folder / "households.parquet")
    pq.write_table(persons, folder / "persons.parquet")
    (folder / "programme.toml").write_text(PROGRAMME)
    for name, codes in {"town": range(8), "age": range(21), "size": (1, 2, 3)}.items():
        (folder / f"{name}.csv").write_text("code,parent,label\n" + "".join(f"{code},,\n" for code in codes))
    (folder / "secret.key").write_text("cd" * 32)
    (folder / "secret.key").chmod(0o600)
    return folder


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return census(tmp_path_factory.mktemp("swap") / "in")


def call(town: Path, out: Path, *more: str, secret: str = "") -> Result:
    key = secret or str(town / "secret.key")
    arguments = ["swap", str(town / "programme.toml"), "--secret", key, "--out", str(out), *more]
    return CliRunner().invoke(app, arguments)


def rows(folder: Path, unit: str) -> pa.Table:
    return pq.read_table(folder / f"{unit}.parquet")


def test_from_files_to_swapped_files_log_and_report(town: Path, tmp_path: Path) -> None:
    out, private = tmp_path / "out", tmp_path / "private"
    done = call(town, out, "--report", str(private), "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told == {
        "microdata": str(out),
        "private": str(private),
        "units": ["persons", "households"],
        "conflicts": [],
    }
    assert sorted(path.name for path in out.iterdir()) == [
        "households.parquet",
        "persons.parquet",
        "swap-summary.json",
        "swap-summary.md",
    ]
    assert sorted(path.name for path in private.iterdir()) == ["figures.json", "log.parquet", "report.html"]
    assert "Record swapping: Census of eight towns" in (private / "report.html").read_text()
    figures = json.loads((private / "figures.json").read_text())
    assert figures["swapped"] >= 0.2 * HOMES
    assert figures["distances"]["columns"] == ["x", "y"]


def test_the_last_lines_state_what_the_public_summary_states(town: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = call(town, out, "--report", str(tmp_path / "private"))
    public = json.loads((out / "swap-summary.json").read_text())
    assert all(len(line) <= 80 or " " not in line.strip() for line in done.stdout.splitlines()), (
        "only a path is longer"
    )
    said = " ".join(done.stdout.split())
    assert said.startswith(f"{out}: swapped microdata of ")
    assert f"exchanged: {', '.join(public['exchanged'])} of households as wholes" in said
    summary = said[said.index("households swapped:") : said.index("Private log and report:")]
    assert public["share_of_households_swapped"] in summary
    figures = json.loads((tmp_path / "private" / "figures.json").read_text())
    assert str(figures["swapped"]) not in summary


def test_households_stay_whole_and_places_are_only_exchanged(town: Path, tmp_path: Path) -> None:
    assert call(town, tmp_path / "out", "--report", str(tmp_path / "private")).exit_code == 0
    for unit in ("persons", "households"):
        before, after = rows(town, unit), rows(tmp_path / "out", unit)
        assert after.schema.equals(before.schema, check_metadata=True)
        assert after.drop_columns(PLACE).equals(before.drop_columns(PLACE))
    homes = {
        row["hid"]: [row[name] for name in PLACE] for row in rows(tmp_path / "out", "households").to_pylist()
    }
    for person in rows(tmp_path / "out", "persons").to_pylist():
        assert [person[name] for name in PLACE] == homes[person["hid"]]
    was = {row["hid"]: [row[name] for name in PLACE] for row in rows(town, "households").to_pylist()}
    for line in pq.read_table(tmp_path / "private" / "log.parquet").to_pylist():
        expected = was[line["partner"]] if line["partner"] else was[line["household"]]
        assert homes.pop(line["household"]) == expected
    assert all(was[home] == place for home, place in homes.items())  # who is not in the log did not move


def test_the_same_secret_swaps_alike_and_another_one_differently(town: Path, tmp_path: Path) -> None:
    (tmp_path / "other.key").write_text("ef" * 32)
    (tmp_path / "other.key").chmod(0o600)
    assert call(town, tmp_path / "a", "--report", str(tmp_path / "ap")).exit_code == 0
    assert call(town, tmp_path / "b", "--report", str(tmp_path / "bp"), "--threads", "1").exit_code == 0
    other = call(town, tmp_path / "c", "--report", str(tmp_path / "cp"), secret=str(tmp_path / "other.key"))
    assert other.exit_code == 0
    tables = [rows(tmp_path / name, "persons") for name in "abc"]
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])


def test_what_leaves_the_private_folder_names_nobody(town: Path, tmp_path: Path) -> None:
    done = call(town, tmp_path / "out", "--report", str(tmp_path / "private"))
    summary = "".join(path.read_text() for path in (tmp_path / "out").glob("swap-summary.*"))
    assert "private-household" not in done.output + summary
    assert "about" in summary
    assert not list((tmp_path / "out").glob("*log*"))


def test_the_private_folder_is_beside_the_secret_by_default(tmp_path: Path) -> None:
    town = census(tmp_path / "in")
    done = call(town, tmp_path / "out")
    assert done.exit_code == 0
    assert (town / "secret.key.out.swap" / "log.parquet").is_file()
    assert "secret.key.out.swap" in done.output
    assert call(town, tmp_path / "more", "--quiet").output == ""


@pytest.mark.parametrize(
    ("out", "report", "told"),
    [
        ("out", "out/private", "folder of the microdata"),
        ("private/out", "private", "folder of the microdata"),
        ("full", "private", "exists and is not empty"),
        ("out", "full", "exists and is not empty"),
        ("file", "private", "is a file"),
    ],
)
def test_places_that_cannot_be_taken_are_refused_before_any_work(
    town: Path, tmp_path: Path, out: str, report: str, told: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("keep")
    (tmp_path / "file").write_text("keep")
    done = call(town, tmp_path / out, "--report", str(tmp_path / report))
    assert isinstance(done.exception, Mistakes)
    assert told in str(done.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]


def test_without_room_for_charts_nothing_is_swapped(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**30, 2**30))
    monkeypatch.setattr(writing, "AtomicFolder", None)
    done = call(town, tmp_path / "out", "--report", str(tmp_path / "private"))
    assert isinstance(done.exception, Mistakes)
    assert "charts need" in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_secret_without_a_file_needs_a_place_for_the_report(town: Path, tmp_path: Path) -> None:
    done = call(town, tmp_path / "out", secret="env:DISCREET_TEST_SECRET")
    assert isinstance(done.exception, Mistakes)
    assert not list(tmp_path.iterdir())


def test_a_programme_without_swap_is_refused(tmp_path: Path) -> None:
    town = census(tmp_path / "in")
    text = (town / "programme.toml").read_text()
    (town / "programme.toml").write_text(text[: text.index("[swap]")] + text[text.index("[noise]") :])
    done = call(town, tmp_path / "out")
    assert isinstance(done.exception, Mistakes)
    assert "swap: is missing" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_read_as_records_is_no_place_to_write_to(tmp_path: Path) -> None:
    town = census(tmp_path / "in")
    (town / "people").mkdir()
    (town / "persons.parquet").rename(town / "people" / "part-1.parquet")
    text = (town / "programme.toml").read_text()
    (town / "programme.toml").write_text(text.replace('"persons.parquet"', '"people"'))
    done = call(town, town / "people" / "swapped")
    assert isinstance(done.exception, Mistakes)
    assert "read as records" in str(done.exception)
    assert call(town, tmp_path / "out").exit_code == 0


def test_bad_records_leave_nothing_behind(tmp_path: Path) -> None:
    town = census(tmp_path / "in")
    persons = rows(town, "persons")
    apart = persons["town"].to_pylist()
    apart[0] = (apart[0] + 1) % 8
    place = persons.column_names.index("town")
    pq.write_table(persons.set_column(place, "town", pa.array(apart, pa.int16())), town / "persons.parquet")
    before = sorted(path.name for path in town.iterdir())
    done = call(town, tmp_path / "out")
    assert isinstance(done.exception, Mistakes)
    assert "private-household" not in str(done.exception)
    assert sorted(path.name for path in town.iterdir()) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


@pytest.mark.long
def test_a_run_killed_at_any_moment_leaves_whole_folders_or_none(town: Path, tmp_path: Path) -> None:
    out, private = tmp_path / "out", tmp_path / "private"
    command = [
        "swap",
        town / "programme.toml",
        "--secret",
        town / "secret.key",
        "--out",
        out,
        "--report",
        private,
    ]
    began = time.monotonic()
    assert Forked(discreet, *command).ended()[0] == 0
    length = time.monotonic() - began
    dice = random.Random(7)
    for folder in (out, private):
        for path in folder.iterdir():
            path.unlink()
    for _ in range(2):
        running = Forked(discreet, *command)
        time.sleep(dice.uniform(0.5, 1.0) * length)
        running.kill()
        running.ended()
        assert len(list(out.iterdir())) in (0, 4)
        assert len(list(private.iterdir())) in (0, 3)
        if list(out.iterdir()):
            assert list(private.iterdir())  # microdata never stand without their log
        for folder in (out, private):
            for path in folder.iterdir():
                path.unlink()
    assert Forked(discreet, *command).ended()[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "private"]
