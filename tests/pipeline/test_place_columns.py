"""A second column of places: refused by check, swap, protect and the table builder until it is declared."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.errors import Mistakes
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_programme

HOMES, TOWNS = 900, 12
PROGRAMME = """
[population]
persons = "persons.parquet"
person_id = "pid"
household_id = "hid"
geography = ["region", "town"]

[variables.TOWN]
column = "town"
codelist = "town.csv"

[variables.NAME]
column = "town_name"
codelist = "name.csv"

[variables.AGE]
codelist = "age.csv"

[variables.SIZE]
codelist = "size.csv"

[[cubes]]
id = "by-code"
axes = ["TOWN", "AGE"]

[[cubes]]
id = "by-name"
axes = ["NAME", "AGE"]

[swap]
k = 3
risk = ["AGE"]
similar = [["SIZE"]]
rate = 0.2

[noise]
kind = "cell-key"
V = 2.0
D = 5
"""
UNDECLARED = "variables.NAME: column 'town_name' is equivalent to 'town', and is not exchanged with it"


def census(folder: Path, declared: str = "", text: str = PROGRAMME) -> Path:
    """Households in towns that have a code and a name."""
    draw = np.random.default_rng(4)
    town = draw.integers(0, TOWNS, HOMES)
    size = draw.integers(1, 4, HOMES)
    home = np.repeat(np.arange(HOMES), size)
    folder.mkdir()
    pq.write_table(
        pa.table(
            {
                "pid": np.arange(len(home)),
                "hid": home,
                "region": [f"R{one % 3}" for one in town[home]],
                "town": [f"T{one}" for one in town[home]],
                "town_name": [f"Town {one}" for one in town[home]],
                "age": [f"a{one}" for one in draw.integers(0, 30, len(home))],
                "size": [f"s{one}" for one in size[home]],
            }
        ),
        folder / "persons.parquet",
    )
    codes = {
        "town": [f"T{one}" for one in range(TOWNS)],
        "name": [f"Town {one}" for one in range(TOWNS)],
        "age": [f"a{one}" for one in range(30)],
        "size": ["s1", "s2", "s3"],
    }
    for name, some in codes.items():
        (folder / f"{name}.csv").write_text("code,parent,label\n" + "".join(f"{one},,\n" for one in some))
    key = 'codelist = "name.csv"\n'
    (folder / "programme.toml").write_text(text.replace(key, key + declared))
    (folder / "secret.key").write_text("ab" * 32)
    (folder / "secret.key").chmod(0o600)
    return folder / "programme.toml"


def discreet(*words: str | Path) -> tuple[int, str]:
    """Exit code and output, as the program's own frame makes them of mistakes."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(done.exception, Mistakes):
        return 2, str(done.exception)
    return done.exit_code, done.output


def cells(release: Path, cube: str) -> dict[tuple[str, str], int]:
    """The published counts of a cube by the number of the town and the age."""
    table = pq.read_table(release / "parquet" / f"{cube}.parquet").to_pylist()
    place = "TOWN" if cube == "by-code" else "NAME"
    return {(row[place].removeprefix("T").removeprefix("own "), row["AGE"]): row["value"] for row in table}


def test_a_twin_of_the_geography_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    programme = census(tmp_path / "census")
    secret, out = tmp_path / "census" / "secret.key", tmp_path / "out"
    for words in (
        ("check", programme),
        ("protect", programme, "--secret", secret, "--out", out),
        ("swap", programme, "--secret", secret, "--out", out),
    ):
        code, said = discreet(*words)
        assert code == 2
        assert UNDECLARED in " ".join(said.split())
        assert "place = true" in said
        assert not out.exists()
        assert len(said.strip().splitlines()) <= 2


@pytest.mark.parametrize(("declared", "equal"), [("place = true\n", True), ("place = false\n", False)])
def test_a_declared_place_is_exchanged_too(tmp_path: Path, declared: str, equal: bool) -> None:
    programme = census(tmp_path / "census", declared)
    secret, out = tmp_path / "census" / "secret.key", tmp_path / "out"
    assert discreet("check", programme)[0] == 0
    assert discreet("protect", programme, "--secret", secret, "--out", out)[0] == 0
    code, name = cells(out, "by-code"), cells(out, "by-name")
    differing = sum(code.get(cell, 0) != name.get(cell, 0) for cell in code.keys() | name.keys())
    assert (differing == 0) is equal
    if not equal:
        assert differing > 0.3 * len(code)  # what a second column of places gives away
    places = open_release(out).manifest.places
    assert places == (("NAME", "TOWN") if equal else ("TOWN",))


def test_carry_declares_a_place_as_well(tmp_path: Path) -> None:
    text = PROGRAMME.replace("rate = 0.2\n", 'rate = 0.2\ncarry = ["town_name"]\n')
    assert discreet("check", census(tmp_path / "census", text=text))[0] == 0


def test_without_swapping_only_the_guards_of_the_table_builder_ask(tmp_path: Path) -> None:
    before, _, after = PROGRAMME.partition("[swap]")
    plain = before + "[noise]" + after.partition("[noise]")[2]
    assert discreet("check", census(tmp_path / "plain", text=plain))[0] == 0
    served = plain + '\n[serve]\nplace = "TOWN"\narea_population = 20\n'
    programme = census(tmp_path / "served", text=served)
    code, said = discreet("check", programme)
    assert code == 2
    assert "tables by NAME evade the rules about TOWN" in " ".join(said.split())
    store = Store(tmp_path / "store.sqlite", lambda: datetime(2026, 1, 1, tzinfo=UTC))
    with pytest.raises(Mistakes, match="evade the rules about TOWN"):
        serve_programme(load_programme(programme), bytes(32), store)
    for key, text in (
        ("left-out", served + 'variables = ["TOWN", "AGE"]\n'),
        ("declared", served),
    ):
        declared = "place = false\n" if key == "declared" else ""
        assert discreet("check", census(tmp_path / key, declared, text))[0] == 0


def test_places_of_persons_are_found_through_their_households(tmp_path: Path) -> None:
    """The geography is in the table of households only, the second column in that of persons."""
    text = PROGRAMME.replace(
        'persons = "persons.parquet"\n', 'persons = "persons.parquet"\nhouseholds = "households.parquet"\n'
    ).replace('axes = ["TOWN", "AGE"]', 'axes = ["TOWN"]\nunit = "households"')
    text = text.replace('column = "town"\n', 'column = "town"\nunits = ["households"]\n')
    programme = census(tmp_path / "census", text=text)
    persons = pq.read_table(tmp_path / "census" / "persons.parquet")
    homes = persons.group_by("hid", use_threads=False).aggregate(
        [("region", "first"), ("town", "first"), ("size", "first")]
    )
    homes = homes.rename_columns(["hid", "region", "town", "size"])
    pq.write_table(homes, tmp_path / "census" / "households.parquet")
    pq.write_table(persons.drop_columns(["region", "town"]), tmp_path / "census" / "persons.parquet")
    code, said = discreet("check", programme)
    assert code == 2
    assert UNDECLARED in " ".join(said.split())


def test_a_counted_flag_that_follows_from_the_area_is_refused(tmp_path: Path) -> None:
    cube = '[[cubes]]\nid = "flag"\naxes = ["AGE"]\ncount = "coastal"\n\n[swap]'
    for declared, code in (("", 2), ("flags = { coastal = { place = false } }\n", 0)):
        text = PROGRAMME.replace("[swap]", cube).replace("geography =", f"{declared}geography =")
        programme = census(tmp_path / f"census{code}", "place = true\n", text)
        people = pq.read_table(programme.with_name("persons.parquet"))
        coastal = pa.array([int(one[1:]) % 4 == 0 for one in people["town"].to_pylist()])
        pq.write_table(people.append_column("coastal", coastal), programme.with_name("persons.parquet"))
        found, said = discreet("check", programme)
        assert found == code
        assert ("population.flags: column 'coastal' follows from 'town'" in said) is (code == 2)


def test_a_draft_declares_the_places_that_it_finds(tmp_path: Path) -> None:
    """A name beside a code labels it; a column that nearly decides the geography is declared as a place."""
    programme = census(tmp_path / "census")
    people = pq.read_table(programme.with_name("persons.parquet"))
    towns = people["town"].to_pylist()
    grid = [f"{town}-{n % 2}" if n % 97 else f"{towns[0]}-1" for n, town in enumerate(towns)]
    pq.write_table(people.append_column("grid", pa.array(grid)), programme.with_name("persons.parquet"))
    code, said = discreet(
        "init", programme.with_name("persons.parquet"), "--out", tmp_path / "draft", "--json"
    )
    assert code == 0
    report = json.loads(said)
    assert report["geography"] == ["region", "town"]
    assert [one["of"] for one in report["decisions"] if one["column"] == "town_name"] == ["town"]
    assert report["places"] == {"grid": "'grid' nearly always decides 'town'"}
    text = (tmp_path / "draft" / "programme.toml").read_text()
    assert text.count("place = true") == 1
    assert discreet("check", tmp_path / "draft" / "programme.toml")[0] == 0


def test_bands_of_a_coordinate_are_places_though_no_two_households_share_one(tmp_path: Path) -> None:
    """The values are all different, which proves nothing; the bands that are counted are the towns."""
    text = PROGRAMME.replace(
        'column = "town_name"\ncodelist = "name.csv"\n',
        f'column = "north"\nbands = {[100 * town for town in range(TOWNS)]}\n',
    )
    programme = census(tmp_path / "census", text=text)
    path = tmp_path / "census" / "persons.parquet"
    persons = pq.read_table(path)
    town = np.array([int(one.removeprefix("T")) for one in persons["town"].to_pylist()])
    north = 100 * town + 100 * persons["hid"].to_numpy() / HOMES
    pq.write_table(persons.append_column("north", pa.array(north)), path)
    code, said = discreet("check", programme)
    assert code == 2
    assert "variables.NAME: column 'north' is equivalent to 'town'" in " ".join(said.split())
    programme.write_text(text.replace("bands = ", "place = true\nbands = "))
    assert discreet("check", programme)[0] == 0
    secret, out = tmp_path / "census" / "secret.key", tmp_path / "out"
    assert discreet("protect", programme, "--secret", secret, "--out", out)[0] == 0
    codes, names = (
        {
            (row[place], row["AGE"]): row["value"]
            for row in pq.read_table(out / "parquet" / f"{cube}.parquet").to_pylist()
        }
        for cube, place in (("by-code", "TOWN"), ("by-name", "NAME"))
    )
    bands = {f"T{k}": f"{100 * k}-{100 * k + 99}" for k in range(TOWNS - 1)} | {
        f"T{TOWNS - 1}": f"{100 * (TOWNS - 1)}+"
    }
    assert {(bands.get(place, place), age): value for (place, age), value in codes.items()} == names
