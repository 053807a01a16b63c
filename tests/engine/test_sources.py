"""Records that only Spark reads: copied for the tasks with the values and the identity that they have as files."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engine import sources
from discreet.engine.hadoop import Hadoop
from discreet.engine.sources import readable
from discreet.errors import Mistakes
from discreet.io.databases import open_source
from discreet.programme.engine import EngineRule
from discreet.programme.engine_kind import EngineKind
from discreet.programme.programme import Programme, load_programme
from discreet.run.identity import begin_again, digest_inputs

SECRET = bytes(32)
RULE = EngineRule(EngineKind.SPARK, {"spark.master": "local[2]"})
DECLARED = """
[population]
persons = {persons}
person_id = "pid"

[variables.SEX]
column = "sex"
codelist = "sex.csv"

[[cubes]]
id = "sex"
axes = ["SEX"]

[noise]
kind = "cell-key"
V = 2.0
D = 5
js = 0
"""
PERSONS = pa.table({"pid": pa.array(range(60), pa.int64()), "sex": [str(k % 2 + 1) for k in range(60)]})


def programme(folder: Path, persons: str) -> Programme:
    folder.mkdir(exist_ok=True)
    (folder / "sex.csv").write_text("code,parent,label\n1,,men\n2,,women\n")
    path = folder / "programme.toml"
    path.write_text(DECLARED.format(persons=persons))
    return load_programme(path)


def records(found: Programme) -> pa.Table:
    assert found.population is not None
    opened = open_source(found.population.units["persons"].source, "population.persons")
    columns = ["pid", "sex"]
    table = pa.Table.from_batches(
        opened.batches(columns, ()), opened.schema.empty_table().select(columns).schema
    )
    return table.sort_by("pid")


def ids(table: pa.Table) -> list[str]:
    return sorted(str(value) for value in table.column("pid").to_pylist())


def digest(found: Programme) -> str:
    return digest_inputs(found, SECRET)["persons"]


@pytest.fixture
def view(spark_folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder of this machine that Spark sees as viewfs://census/data/NAME and s3a://bucket/data/NAME."""
    folder = spark_folder / "view" / request.node.name.partition("[")[0][:40]
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("address", ["viewfs://census/data", "s3a://bucket/data"])
def test_files_of_a_hadoop_file_system_are_those_of_this_machine(
    spark: Any, view: Path, tmp_path: Path, address: str
) -> None:
    for k in range(3):
        (view / f"part={k}").mkdir()
        pq.write_table(PERSONS.slice(20 * k, 20), view / f"part={k}" / "x.parquet")
    (view / "_SUCCESS").touch()
    there = programme(tmp_path / "there", f'"{address}/{view.name}"')
    here = programme(tmp_path / "here", f'"{view}"')
    with readable(there, spark, RULE) as copied:
        assert records(copied) == records(here)
        assert digest(copied) == digest(here)
        assert copied.canonical()["population"]["units"]["persons"] == {"files": f"{address}/{view.name}"}
        _, identity = begin_again(copied, SECRET)
        assert identity.resumable
        place = copied.population.units["persons"].source.paths()[0].parents[2]  # type: ignore[union-attr]
        assert place.stat().st_mode & 0o077 == 0
    assert not place.exists()


def test_a_csv_file_is_read_in_its_form(spark: Any, view: Path, tmp_path: Path) -> None:
    text = 'pid;sex;note\n1;1;"a;\nb"\n2;2;""\n3;1;ü\n'
    (view / "persons.csv").write_bytes(text.encode("windows-1252"))
    there = programme(tmp_path / "there", f'"viewfs://census/data/{view.name}/persons.csv"')
    here = programme(tmp_path / "here", f'"{view}/persons.csv"')
    with readable(there, spark, RULE) as copied:
        assert records(copied) == records(here)
        assert digest(copied) == digest(here)


def test_a_table_and_a_query_of_the_catalog(spark: Any, tmp_path: Path) -> None:
    pq.write_table(PERSONS.append_column("other", PERSONS.column(0)), tmp_path / "p.parquet")
    spark.sql("CREATE DATABASE IF NOT EXISTS db")
    spark.read.parquet(str(tmp_path / "p.parquet")).repartition(4).write.mode("overwrite").saveAsTable(
        "db.persons"
    )
    table = programme(tmp_path / "table", '{ table = "db.persons" }')
    query = programme(tmp_path / "query", '{ query = "SELECT pid, sex FROM db.persons WHERE pid < 30" }')
    with readable(table, spark, RULE) as copied:
        assert records(copied) == PERSONS
        opened = open_source(copied.population.units["persons"].source, "")  # type: ignore[union-attr]
        assert set(opened.schema.names) == {"pid", "sex"}
        first = digest(copied)
        assert digest(table) == first  # by its declaration, as for a database
        assert not begin_again(copied, SECRET)[1].resumable
        assert copied.canonical() == table.canonical()
    with readable(query, spark, RULE) as copied:
        assert records(copied) == PERSONS.slice(0, 30)
        assert digest(copied) == digest(query) != first


def test_a_database_by_jdbc(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_folder: Path
) -> None:
    uri = f"jdbc:derby:{tmp_path / 'census'};create=true"
    monkeypatch.setenv("DISCREET_JDBC_USER", "census")
    monkeypatch.setenv("DISCREET_JDBC_PASSWORD", "hunter2-jdbc")
    frame = spark.range(20).selectExpr("cast(id as decimal(12, 0)) pid", "'1' sex")
    options = {"url": uri, "dbtable": "persons", "user": "census", "password": "hunter2-jdbc"}
    frame.write.format("jdbc").options(**options).save()
    declared = programme(tmp_path / "p", f'{{ uri = "{uri}", table = "persons" }}')
    with readable(declared, spark, RULE) as copied:
        found = open_source(copied.population.units["persons"].source, "")  # type: ignore[union-attr]
        # Derby writes names in capitals, so that all columns are copied
        (batch,) = found.batches(found.schema.names, ())
        assert sorted(batch.column(0).to_pylist()) == list(range(20))
        assert pa.types.is_int64(batch.schema.field(0).type)
    described = json.dumps(declared.canonical()["population"]["units"])
    assert "create" not in described
    for path in (spark_folder / "events").rglob("*"):
        assert path.is_dir() or b"hunter2-jdbc" not in path.read_bytes()


def test_an_embedded_database_is_read_by_one_task(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    with duckdb.connect(str(tmp_path / "p" / "census.duckdb")) as connection:
        connection.register("given", PERSONS)
        connection.execute("CREATE TABLE persons AS SELECT * FROM given")
    declared = programme(tmp_path / "p", '{ uri = "duckdb://census.duckdb", table = "persons" }')
    with readable(declared, spark, RULE) as copied:
        assert records(copied) == records(declared)
        assert digest(copied) == digest(declared)
        assert copied.canonical() == declared.canonical()
    wrong = programme(tmp_path / "p", '{ uri = "duckdb://census.duckdb", table = "people" }')
    with pytest.raises(Mistakes, match=r"database error: .*people"), readable(wrong, spark, RULE):
        pass


@pytest.mark.parametrize(
    ("persons", "message"),
    [
        ('{ table = "db.nobody" }', r"table db\.nobody: population\.persons: no table `db`\.`nobody`"),
        (
            "{ query = \"SELECT * FROM 'a.parquet'\" }",
            r"query: population\.persons: not Spark SQL",
        ),
        ('"viewfs://census/data/none"', r"viewfs://census/data/none: population\.persons: no file there"),
        ('"viewfs://nowhere/data/none"', r"viewfs://nowhere/data/none: population\.persons: "),
        ('"abfss://c@a.dfs.core.windows.net/x"', r"population\.persons: Spark has no file system"),
        (
            '{ uri = "jdbc:postgresql://127.0.0.1:1/x", table = "t" }',
            "no JDBC driver for this address; name its",
        ),
    ],
)
def test_mistakes_are_one_line(spark: Any, tmp_path: Path, persons: str, message: str) -> None:
    with (
        pytest.raises(Mistakes, match=message) as refused,
        readable(programme(tmp_path, persons), spark, RULE),
    ):
        pass
    assert "\n" not in str(refused.value)


def test_a_delta_table_needs_its_package_and_is_never_read_as_files(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "persons" / "_delta_log").mkdir(parents=True)
    pq.write_table(PERSONS, tmp_path / "persons" / "old.parquet")
    declared = programme(tmp_path, '"persons"')
    with pytest.raises(
        Mistakes, match=r"persons: population\.persons: only Spark can read it; .*--engine spark"
    ):
        records(declared)
    with (
        pytest.raises(Mistakes, match=r"Spark cannot read delta; name its package in engine\.packages"),
        readable(declared, spark, RULE),
    ):
        pass


def test_what_changes_while_it_is_read_is_detected(
    spark: Any, view: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(PERSONS, view / "a.parquet")
    declared = programme(tmp_path, f'"viewfs://census/data/{view.name}"')
    download = Hadoop.download

    def changing(self: Hadoop, uri: str, place: Path) -> None:
        download(self, uri, place)
        pq.write_table(PERSONS.slice(1), view / "b.parquet")

    monkeypatch.setattr(Hadoop, "download", changing)
    with (
        pytest.raises(Mistakes, match="changed while it was read; run again"),
        readable(declared, spark, RULE),
    ):
        pass
    frame = spark.read.parquet(str(view))
    plain = sources.plain

    def rewriting(frame: Any, columns: frozenset[str]) -> Any:
        pq.write_table(PERSONS.slice(2), view / "b.parquet")
        os.utime(view / "b.parquet", (1, 1))
        return plain(frame, columns).limit(1)

    monkeypatch.setattr(sources, "plain", rewriting)
    with pytest.raises(Mistakes, match="changed while it was read"):
        sources._written(Hadoop(spark), frame, frozenset({"pid"}), tmp_path / "copy", "table x", "key")


def test_a_cluster_needs_a_shared_folder(spark: Any, tmp_path: Path) -> None:
    declared = programme(tmp_path, '{ table = "db.persons" }')
    rule = EngineRule(EngineKind.SPARK, {"spark.master": "yarn"})
    with (
        pytest.raises(Mistakes, match=r"engine\.folder: is missing, and records must be copied"),
        readable(declared, spark, rule),
    ):
        pass


@pytest.mark.parametrize(
    "uri",
    [
        "jdbc:postgresql://host/db?user=a&password=hunter2",
        "jdbc:mysql://census:hunter2@host/db",
        "jdbc:oracle:thin:census/hunter2@host:1521:orcl",
        "jdbc:sqlserver://host;user=a;passwd=hunter2",
    ],
)
def test_a_password_in_an_address_is_refused(tmp_path: Path, uri: str) -> None:
    with pytest.raises(
        Mistakes, match=r"contains a password; remove it and set .*DISCREET_JDBC_PASSWORD"
    ) as refused:
        programme(tmp_path, f'{{ uri = "{uri}", table = "t" }}')
    assert "hunter2" not in str(refused.value)
