"""Tables and releases of a notebook are those of the command line, and what is confidential stays out of sight."""

import copy
import json
import pickle
import re
import sqlite3
import tempfile
import tomllib
import traceback
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomlkit
from typer.testing import CliRunner

import discreet as ds
from discreet.cli.app import app
from discreet.tabulate.tables import ConfidentialTable

KEY = bytes(range(32))
NOISE = ds.CellKey(V=2, D=5)


def persons(number: int = 2000, seed: int = 3) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    place = draw.integers(0, 12, number)
    return pd.DataFrame(
        {
            "pid": np.arange(number),
            "hid": np.arange(number) // 3,
            "sex": draw.choice(["F", "M"], number),
            "age": draw.integers(0, 100, number),
            "lau": [f"L{k:02d}" for k in place],
            "nuts3": [f"N{k // 4}" for k in place],
        }
    )


FRAME = persons()
CUBE = ds.Cube("lau", "sex", ds.bands("age", 0, 15, 30, 45, 65))


def census(table: Any = FRAME, **further: Any) -> ds.Population:
    return ds.Population(persons=table, person_id="pid", geography=["nuts3", "lau"], **further)


def command(*arguments: str) -> int:
    return CliRunner().invoke(app, list(arguments)).exit_code


@pytest.fixture(scope="module")
def table() -> ds.Table:
    return ds.protect(census(), CUBE, NOISE, secret=KEY)


def written(folder: Path, programme: ds.Programme) -> Path:
    """The release that the command line makes of a programme that was written."""
    path = programme.to_toml(folder / "declared")
    secret = ds.Secret(KEY).save(folder / "secret.key")
    assert command("check", str(path), "--quiet") == 0
    assert secret.path is not None
    assert (
        command("protect", str(path), "--secret", str(secret.path), "--out", str(folder / "out"), "--quiet")
        == 0
    )
    return folder / "out"


def test_the_command_line_gives_the_same_bytes_of_counts(tmp_path: Path, table: ds.Table) -> None:
    release = written(tmp_path, census().programme(CUBE, NOISE))
    assert isinstance(table.release, ds.Release)
    mine = (table.release.folder / "parquet" / f"{table.id}.parquet").read_bytes()
    assert (release / "parquet" / f"{table.id}.parquet").read_bytes() == mine


KINDS: dict[str, Any] = {
    "polars": pl.from_pandas(FRAME),
    "categories": FRAME.astype({"sex": "category", "lau": "category"}),
    "enums": pl.from_pandas(FRAME).with_columns(pl.col("sex").cast(pl.Enum(["F", "M"]))),
    "arrow": pa.Table.from_pandas(FRAME, preserve_index=False),
    "small chunks": pa.Table.from_batches(
        pa.Table.from_pandas(FRAME, preserve_index=False).to_batches(max_chunksize=77)
    ),
    "duckdb": duckdb.connect().from_df(FRAME),
    "narrow numbers": FRAME.astype({"age": "int16", "pid": "int32"}),
    "decimals": FRAME.astype({"age": "float64"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_kind_of_table_gives_the_same_counts(kind: str, table: ds.Table) -> None:
    found = ds.protect(census(KINDS[kind]), CUBE, NOISE, secret=KEY)
    assert found.to_arrow().equals(table.to_arrow())


def test_paths_and_databases_give_the_same_counts(tmp_path: Path, table: ds.Table) -> None:
    FRAME.to_parquet(tmp_path / "persons.parquet")
    with duckdb.connect(str(tmp_path / "census.db")) as connection:
        connection.from_df(FRAME).create("persons")
    with closing(sqlite3.connect(tmp_path / "census.sqlite")) as connection:
        FRAME.to_sql("persons", connection, index=False)
    for source in (
        tmp_path / "persons.parquet",
        f"file://{tmp_path}/persons.parquet",
        {"uri": f"duckdb:///{tmp_path}/census.db", "table": "persons"},
        {"uri": f"sqlite://{tmp_path}/census.sqlite", "table": "persons"},
        {
            "uri": f"sqlite:///{tmp_path}/census.sqlite",
            "query": "SELECT * FROM persons",
        },  # as SQLAlchemy has it
    ):
        found = ds.protect(census(source), CUBE, NOISE, secret=KEY)
        assert found.to_arrow().equals(table.to_arrow())


def test_programme_files_and_populations_meet(tmp_path: Path, table: ds.Table) -> None:
    path = census().programme(CUBE, NOISE, name="census").to_toml(tmp_path / "declared")
    assert oct(path.parent.stat().st_mode & 0o777) == "0o700"
    assert pq.read_schema(path.parent / "persons.parquet").names == ["pid", "sex", "age", "lau", "nuts3"]
    loaded = ds.load_programme(path)
    again = ds.protect(loaded, secret=KEY)
    assert again[CUBE.id].to_arrow().equals(table.to_arrow())
    population = ds.Population.from_toml(path)
    assert repr(population) == "Population(persons; geography nuts3 > lau)"
    third = ds.protect(population, ds.Cube("lau", "sex", "age"), NOISE, secret=KEY)
    assert third.to_arrow().equals(table.to_arrow())
    copied = loaded.to_toml(tmp_path / "copied")
    assert ds.protect(copied, secret=KEY)[CUBE.id].to_arrow().equals(table.to_arrow())


def test_levels_of_the_geography_are_axes(table: ds.Table) -> None:
    coarse = ds.protect(census(), ds.Cube("nuts3", "sex"), NOISE, secret=KEY)
    assert coarse.axes[0].variable == "lau"
    assert coarse.axes[0].codes == ("_T", "N0", "N1", "N2")
    assert coarse.value(lau="N1", sex="F") == table.value(lau="N1", sex="F")
    assert coarse.axis("nuts3") is coarse.axes[0]
    assert coarse.sel(nuts3="N1").to_arrow().equals(table.sel(lau="N1", age="_T").to_arrow())


def test_two_ways_of_banding_need_two_names() -> None:
    other = ds.Cube(ds.bands("age", 0, 50))
    with pytest.raises(ds.Mistakes, match="age is declared in another way, too; name one of the two"):
        census().programme([CUBE, other], NOISE)
    named = ds.Cube(ds.bands("age", 0, 50, name="halves"))
    release = ds.protect(census(), [CUBE, named], NOISE, secret=KEY)
    assert release["halves"].axes[0].codes == ("_T", "0-49", "50+")


def test_missing_values_need_a_meaning() -> None:
    gaps = FRAME.copy()
    gaps.loc[:9, "sex"] = None
    with pytest.raises(
        ds.Mistakes, match=r"column sex: some records have no value; give them a code: missing="
    ):
        census(gaps).programme(CUBE, NOISE)
    for missing in ("unknown", {"sex": "unknown"}):
        found = ds.protect(census(gaps, missing=missing), ds.Cube("sex"), NOISE, secret=KEY)
        assert found.axes[0].codes == ("_T", "F", "M", "unknown")
        assert found.axes[0].labels[-1] == "Not stated"


def test_dates_of_birth_and_filters_and_labels() -> None:
    born = FRAME.assign(
        born=pd.Timestamp("2021-05-09") - pd.to_timedelta(FRAME["age"] * 365.25 + 40, unit="D")
    )
    cubes = [
        ds.Cube(ds.ages("born", 0, 15, 65, on="2021-05-09"), where='sex == "F"', id="ages"),
        ds.Cube("sex", title="By sex"),
    ]
    release = ds.protect(
        census(born, codelists={"sex": {"F": "Women", "M": "Men"}}, labels={"sex": "Sex"}),
        cubes,
        NOISE,
        secret=KEY,
    )
    assert release["ages"].axes[0].codes == ("_T", "0-14", "15-64", "65+")
    assert release["sex"].axes[0].labels == ("Total", "Women", "Men")
    assert release["ages"].value() == release["sex"].value(sex="F")
    assert release.manifest.labels.variables == {"sex": "Sex"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"geography": ["nuts3", "lao"]}, "unknown column 'lao'; did you mean 'lau'?"),
        ({"geography": "lau"}, 'give a list: geography=["lau"]'),
        ({"geography": ["sex", "lau"]}, "is in sex"),
        ({"labels": {"sax": "Sex"}}, "unknown column 'sax'; did you mean 'sex'?"),
        ({"person_id": "pit"}, "unknown column 'pit'; did you mean 'pid'?"),
        ({"weights": ["wait"]}, "unknown column 'wait'; the tables have pid"),
        ({"geografy": ["lau"]}, "unknown: geografy=; did you mean geography=?"),
        ({"persons": FRAME["sex"]}, "persons: an object of type Series; give a pandas"),
        ({"persons": "https://example.org/p.csv"}, "is a web address; fetch the file"),
    ],
)
def test_mistakes_are_refused_in_one_line(change: dict[str, Any], said: str) -> None:
    given = {"persons": FRAME, "person_id": "pid", "geography": ["nuts3", "lau"], **change}
    with pytest.raises(ds.Mistakes) as refused:
        ds.Population(**given).programme(CUBE, NOISE)
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


NAMES: Any = ["lau"]
WORD: Any = "cell-key"
NOTHING: Any = None
OTHER: Any = NOISE
CLASS: Any = ds.CellKey


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: ds.protect(census(), NAMES, NOISE, secret=KEY), "cubes: no cubes, or other objects"),
        (lambda: ds.protect(census(), OTHER, NOISE, secret=KEY), "cubes: no cubes, or other objects"),
        (lambda: ds.protect(census(), CUBE, CLASS, secret=KEY), "noise: a class; give noise such as"),
        (
            lambda: ds.protect(census(), CUBE, WORD, secret=KEY),
            "noise: an object of type str; give noise",
        ),
        (lambda: ds.protect(FRAME, CUBE, NOISE, secret=KEY), "population: an object of type DataFrame"),
        (lambda: ds.protect(census(), CUBE, NOISE, secret=NOTHING), "secret: an object of type NoneType"),
        (lambda: ds.audit(FRAME), "release: an object of type DataFrame"),
        (lambda: ds.serve(FRAME), "programme: an object of type DataFrame"),
        (lambda: ds.swap(census(), ds.Swap(similar=[]), secret=KEY), "swap.similar: is empty"),
    ],
)
def test_objects_of_another_type_are_refused_in_one_line(made: Any, said: str) -> None:
    with pytest.raises(ds.Mistakes) as refused:
        made()
    assert str(refused.value).startswith(said)
    assert len(str(refused.value).splitlines()) == 1


def test_a_risk_of_households_is_refused_by_its_table() -> None:
    homes = pd.DataFrame({"hid": range(667), "rooms": ["2"] * 667})
    found = census(households=homes, household_id="hid")
    with pytest.raises(
        ds.Mistakes, match="column 'rooms' is in the table of households; name a column of persons"
    ):
        ds.swap(found, ds.Swap(risk=["rooms"], similar=[["rooms"]], rate=0.1), secret=KEY, progress=False)


def test_noise_is_checked_as_in_a_programme_file() -> None:
    with pytest.raises(
        ds.Mistakes, match=r"noise\.V: 99.0; a change of at most D = 5 has a variance of at most 25"
    ):
        ds.protect(census(), CUBE, ds.CellKey(V=99, D=5), secret=KEY)
    with pytest.raises(ds.Mistakes, match="unknown key 'colour'"):
        ds.protect(census(), CUBE, ds.Private("geometric", {"epsilon": 1, "colour": "red"}), secret=KEY)
    with pytest.raises(ds.Mistakes, match="a population without cubes or noise"):
        ds.protect(census(), secret=KEY)


def test_nothing_confidential_is_shown_or_pickled() -> None:
    found = census()
    programme = found.programme(CUBE, NOISE)
    secret = ds.Secret(KEY)
    for one in (found, programme, secret):
        assert "2000" not in repr(one) + str(one)
        assert KEY.hex() not in repr(one)
        for copied in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError):
                copied(one)
        assert not hasattr(one, "to_pandas")
    assert not hasattr(found, "_repr_html_")
    true = {len(FRAME), *FRAME["sex"].value_counts(), *FRAME["lau"].value_counts()}
    for shown in (vars(found), vars(found._tables), vars(programme)):
        assert not set(map(str, true)) & set(re.findall(r"\b\d+\b", repr(shown)))
    confidential = ConfidentialTable(programme.cubes[0], np.full(4, 2000, dtype=np.uint64))
    assert repr(confidential) == f"ConfidentialTable({CUBE.id})"
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            duplicate(confidential)


def test_an_error_has_no_value_of_a_record() -> None:
    wrong = FRAME.assign(age=["secret"] * len(FRAME))
    with pytest.raises(ds.DiscreetError) as refused:
        ds.protect(census(wrong), ds.Cube("sex"), ds.Geometric(epsilon=1), secret=KEY, progress=False)
    lines = "".join(traceback.format_exception(refused.value))
    assert "2000" not in lines
    assert KEY.hex() not in lines


def test_addresses_of_databases_need_a_table() -> None:
    with pytest.raises(
        ds.Mistakes, match=r'persons: a database address; name its table, too: persons={"uri"'
    ):
        ds.Population(persons="postgresql://localhost/census", person_id="pid")


def test_limits_of_bands_rise() -> None:
    with pytest.raises(ds.Mistakes, match="limits that do not rise; give each once, in order: 0, 15, 30"):
        ds.bands("age", 15, 0, 30)
    with pytest.raises(ds.Mistakes, match="limits that do not rise"):
        ds.ages("born", 0, 15, 15, on="2021-05-09")
    with pytest.raises(ds.Mistakes, match="limits that are no numbers"):
        ds.bands("age", "15")  # type: ignore[arg-type]


def test_a_population_of_a_file_has_the_variables_of_the_standard_programme(tmp_path: Path) -> None:
    made = ds.synth(500, out=tmp_path / "census", tables=["3.1"], progress=False)
    path = made.folder / "eu.toml"
    declared = tomllib.loads((made.folder / "programme.toml").read_text(encoding="utf-8"))
    keys = {"population": declared["population"], "noise": declared["noise"]}
    geography = {"column": "lau", "codelist": "codelists/geo.csv"}
    standard = {"programme": "eu-census-2021", "tables": ["3.1"]}
    path.write_text(tomlkit.dumps({**keys, "variables": {"GEO": geography}, "standard": standard}))
    found = ds.Population.from_toml(path)
    cube = ds.Cube("GEO.L", "SEX", "AGE.M")
    table = ds.protect(found, cube, NOISE, secret=KEY, progress=False)
    assert (
        table.to_arrow()
        .equals(ds.protect(made.population(), cube, NOISE, secret=KEY, progress=False).to_arrow())
    )  # fmt: skip
    with pytest.raises(ds.Mistakes, match="unknown variable 'SAX'"):
        found.programme(ds.Cube("SAX"), NOISE)


def test_a_protected_table_may_be_pickled(table: ds.Table) -> None:
    again = pickle.loads(pickle.dumps(table))
    assert again.to_arrow().equals(table.to_arrow())
    assert again.release is None


def test_a_release_in_memory_leaves_nothing_behind() -> None:
    release = ds.protect(census(), [CUBE], NOISE, secret=KEY)
    folder = release.folder
    assert oct(folder.parent.stat().st_mode & 0o777) == "0o700"
    assert (folder / "manifest.json").exists()
    assert {path.name for path in folder.parent.iterdir()} - {
        folder.name,
        f".{folder.name}.lock",
        ".lock",
    } == set()
    with pytest.raises(TypeError, match="open_release"):
        pickle.dumps(release)
    del release
    assert not folder.exists()


def test_a_folder_is_written_as_the_command_writes_it(tmp_path: Path) -> None:
    secret = ds.Secret.new().save(tmp_path / "secret.key")
    release = ds.protect(census(), [CUBE], NOISE, secret=secret, out=tmp_path / "out")
    assert release.folder == tmp_path / "out"
    assert ds.verify(tmp_path / "out").passed
    assert json.loads((tmp_path / "secret.key.out.json").read_text())["rows"] == {"persons": 2000}
    assert (tmp_path / "secret.key.register").exists()
    with pytest.raises(ds.Mistakes, match="has another one, or other keys, under this secret"):
        ds.protect(census(), [CUBE], ds.CellKey(V=1, D=3), secret=secret, out=tmp_path / "other")
    with pytest.raises(ds.Mistakes, match="a folder is written under a secret without a file"):
        ds.protect(census(), [CUBE], NOISE, secret=KEY, out=tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_a_table_in_memory_is_recorded_like_a_written_one(tmp_path: Path) -> None:
    secret = ds.Secret.new().save(tmp_path / "secret.key")
    first = ds.protect(census(), CUBE, NOISE, secret=secret)
    assert ds.protect(census(), CUBE, NOISE, secret=secret).to_arrow().equals(first.to_arrow())
    other = ds.CellKey(V=1, D=3)
    with pytest.raises(ds.Mistakes, match="has another one, or other keys, under this secret"):
        ds.protect(census(), CUBE, other, secret=tmp_path / "secret.key")
    with pytest.raises(ds.Mistakes, match="has another one, or other keys, under this secret"):
        ds.protect(census(), CUBE, other, secret=secret, out=tmp_path / "out")
    assert len(ds.protect(census(), CUBE, other, secret=secret, another_ptable=True)) > 0
    assert len(ds.protect(census(), CUBE, other, secret=ds.Secret.new())) > 0


def test_nothing_is_left_behind_by_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    strict = {"averaging": {"limit": 0.01}}
    with pytest.raises(ds.DiscreetError) as refused:
        ds.protect(census(), [CUBE], NOISE, secret=KEY, gates=strict)
    assert refused.tb is not None  # frames that refer to a folder are kept, as a notebook keeps them
    with pytest.raises(ds.Mistakes) as unserved:
        ds.serve(census().programme(CUBE, NOISE))
    with pytest.raises(ds.Mistakes) as unmade:
        ds.synth(0)
    assert unserved.tb is not None
    assert unmade.tb is not None
    assert list(tmp_path.iterdir()) == []


def test_a_budget_is_charged_once_it_is_spent(tmp_path: Path) -> None:
    secret = ds.Secret.new()
    ledger = ds.open_ledger(tmp_path / "budget.sqlite", secret)
    ledger.create_account(
        "census", ds.EpsilonDelta(Fraction(2), Fraction(1, 10**9)), ds.Neighbours.ADD_REMOVE, "person"
    )
    for _ in range(2):
        ds.protect(
            census(of="person"), CUBE, ds.Geometric(epsilon=1), secret=secret, ledger=ledger, account="census",
        )  # fmt: skip
    with pytest.raises(ds.DiscreetError, match="would exceed the budget"):
        ds.protect(
            census(of="person"), CUBE, ds.Geometric(epsilon=1), secret=secret, ledger=ledger, account="census"
        )
    with pytest.raises(ds.Mistakes, match="a ledger without an account"):
        ds.protect(census(of="person"), CUBE, ds.Geometric(epsilon=1), secret=secret, ledger=ledger)
