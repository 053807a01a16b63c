"""Embedded databases as records: SQLite and DuckDB files, opened for reading alone."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from discreet.errors import Mistakes
from discreet.io.databases import open_source, quoted
from discreet.pipeline.check import check_data
from discreet.pipeline.protect import protect
from discreet.programme.programme import load_programme
from discreet.programme.sources import DatabaseSource, DeclaredSource, QuerySource, Source, resolve_source
from tests.cli.town import build, edit


@pytest.fixture(params=["sqlite", "duckdb"])
def scheme(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    scheme = str(request.param)
    statements = [
        'CREATE TABLE people (pid BIGINT, "s ""x" VARCHAR, w DOUBLE)',
        "INSERT INTO people VALUES (1, 'm', 1.5), (2, 'f', 0), (9007199254740993, NULL, 2)",
    ]
    if scheme == "sqlite":
        with closing(sqlite3.connect(tmp_path / "census.db")) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()
    else:
        with duckdb.connect(str(tmp_path / "census.db")) as database:
            for statement in statements:
                database.execute(statement)
    return scheme


def source(folder: Path, uri: str, table: str | None = None, query: str | None = None) -> Source:
    return resolve_source(
        DeclaredSource(uri=uri, table=table, query=query), folder, "p.toml", "population.persons"
    )


def test_a_table_and_a_query_are_read_relative_to_the_programme(tmp_path: Path, scheme: str) -> None:
    wanted = [
        {"pid": 1, 's "x': "m"},
        {"pid": 2, 's "x': "f"},
        {"pid": 9007199254740993, 's "x': None},
    ]
    query = "SELECT *, pid + 1 AS next FROM people -- a comment"
    for entry in (
        source(tmp_path, f"{scheme}://census.db", table="people"),
        source(Path("/"), f"{scheme}://{tmp_path}/census.db", query=query),
    ):
        records = open_source(entry, "population.persons")
        assert records.schema.names[:3] == ["pid", 's "x', "w"]
        found = [row for batch in records.batches(["pid"], ['s "x']) for row in batch.to_pylist()]
        assert found == wanted


def test_what_the_database_refuses_is_told_in_one_line(tmp_path: Path, scheme: str) -> None:
    for table, query, says in (
        ("nowhere", None, "nowhere"),
        (None, "SELECT nix FROM people", "nix"),
        (None, "DELETE FROM people", "no SELECT"),
    ):
        with pytest.raises(Mistakes) as caught:
            open_source(source(tmp_path, f"{scheme}://census.db", table, query), "population.persons")
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["census.db"]


def test_a_database_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    for scheme in ("sqlite", "duckdb"):
        with pytest.raises(Mistakes, match="no such database file"):
            source(tmp_path, f"{scheme}://nowhere.db", table="people")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "census.db").write_text("no database at all, " * 100)
    for scheme in ("sqlite", "duckdb"):
        with pytest.raises(Mistakes, match="database error"):
            open_source(source(tmp_path, f"{scheme}://census.db", table="people"), "k")


def test_unknown_kinds_and_half_declared_sources_are_refused_without_showing_them(tmp_path: Path) -> None:
    for uri, says in (
        ("oracle://scott:tiger@db/x", "unknown kind"),
        ("postgresql://scott:tiger@db/x", "contains a password"),
        ("postgresql://db/x?password=tiger", "contains a password"),
    ):
        with pytest.raises(Mistakes, match=says) as caught:
            source(tmp_path, uri, table="people")
        assert "tiger" not in str(caught.value)
        assert "scott" not in str(caught.value)


def test_names_are_quoted() -> None:
    assert quoted('a"b') == '"a""b"'


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_programme_gives_the_same_values_from_a_database_as_from_files(tmp_path: Path, kind: str) -> None:
    folder = build(tmp_path / "town")
    release(folder, tmp_path / "a")
    with duckdb.connect(str(folder / "town.duckdb")) as database:
        for table in ("persons", "households"):
            database.execute(f"CREATE TABLE {table} AS SELECT * FROM '{folder}/{table}.parquet'")
            rows = database.execute(f"SELECT * FROM {table} ORDER BY random()").fetchall()
            with closing(sqlite3.connect(folder / "town.sqlite")) as connection:
                names = ", ".join(column for column, *_ in database.description or ())
                connection.execute(f"CREATE TABLE {table} ({names})")
                connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
                connection.commit()
    for table in ("persons", "households"):
        edit(folder, (f'"{table}.parquet"', f'{{ uri = "{kind}://town.{kind}", table = "{table}" }}'))
        (folder / f"{table}.parquet").unlink()
    loaded = load_programme(folder / "programme.toml")
    assert check_data(loaded) == []
    release(folder, tmp_path / "b")
    assert held(tmp_path / "b") == held(tmp_path / "a")


def release(folder: Path, out: Path) -> None:
    protect(
        load_programme(folder / "programme.toml"),
        bytes(range(32)),
        out,
        out.with_name(f"{out.name}.json"),
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )


def held(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "parquet").iterdir()}


def test_no_record_is_spilled_to_a_file_that_a_killed_run_would_leave(tmp_path: Path) -> None:
    asked = "SELECT current_setting('temp_directory') AS place"
    duckdb.connect(str(tmp_path / "census.db")).close()
    for declared in (DeclaredSource(query=asked), DeclaredSource(uri="duckdb://census.db", query=asked)):
        source = resolve_source(declared, tmp_path, "programme.toml", "population.persons")
        (batch,) = open_source(source, "population.persons").batches(["place"], [])
        assert batch.column("place").to_pylist() == [""]


HOSTILE = (
    ("SELECT 1 AS pid; COPY (SELECT 1) TO '{out}'", "several statements"),
    (
        "SELECT 1 AS pid) AS a; COPY (SELECT 1) TO '{out}'; SELECT * FROM (SELECT 1 AS pid",
        "several statements",
    ),
    ("COPY (SELECT 1) TO '{out}'", "no SELECT"),
    ("INSTALL httpfs", "no SELECT"),
    ("-- SELECT\nATTACH '{out}'", "no SELECT"),
    ("SELECT 1 AS pid) AS a JOIN (SELECT 1", "a bracket that nothing opens"),
    ("", "no SELECT"),
)


@pytest.mark.parametrize(("query", "says"), HOSTILE)
def test_a_query_is_one_statement_that_reads(tmp_path: Path, scheme: str, query: str, says: str) -> None:
    out, text = tmp_path / "written.csv", query.format(out=tmp_path / "written.csv")
    for declared in (
        QuerySource(text, tmp_path),
        DatabaseSource(f"{scheme}://census.db", query=text, folder=tmp_path),
    ):
        with pytest.raises(Mistakes) as caught:
            open_source(declared, "population.persons")
        assert says in str(caught.value)
        assert not out.exists()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/' || '{other}')",  # computed, not named
        "SELECT * FROM read_csv('htt' || 'ps://127.0.0.1/x.csv')",
        "SELECT * FROM 'https://127.0.0.1:9/x.csv'",
        "SELECT * FROM read_text(concat('{folder}', '/other.csv'))",
        "SELECT * FROM glob(concat('{folder}', '/', chr(42)))",
        "SELECT * FROM 'sub/*.csv' JOIN read_csv(concat('sub', '/../other.csv')) USING (pid)",
    ],
)
def test_a_query_reads_only_the_files_that_it_names(tmp_path: Path, query: str) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("people.csv", "other.csv", "sub/more.csv"):
        (tmp_path / name).write_text("pid\n1\n")
    named = (
        "SELECT * FROM 'people.csv' JOIN \"sub/*.csv\" USING (pid) JOIN read_csv(['other.csv']) USING (pid)"
    )
    for ordinary in (named, "SELECT * FROM '*.csv'", f"SELECT * FROM '{tmp_path}/s*/*.csv'"):
        assert open_source(QuerySource(ordinary, tmp_path), "k").schema.names == ["pid"]
    text = query.format(other=str(tmp_path / "other.csv").lstrip("/"), folder=tmp_path)
    with pytest.raises(Mistakes, match="disabled by configuration"):
        open_source(QuerySource(text, tmp_path), "k")


def test_settings_cannot_be_changed_and_extensions_are_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("pid\n1\n")
    query = (
        "SELECT name || '=' || value AS text FROM duckdb_settings() WHERE name IN ('lock_configuration', "
        "'enable_external_access', 'autoload_known_extensions', 'autoinstall_known_extensions')"
    )
    rows = next(open_source(QuerySource(query, tmp_path), "k").batches(["text"], []))
    assert sorted(rows.column("text").to_pylist()) == [
        "autoinstall_known_extensions=false",
        "autoload_known_extensions=false",
        "enable_external_access=false",
        "lock_configuration=true",
    ]


def test_a_text_that_is_none_is_refused(tmp_path: Path) -> None:
    """SQLite checks no text."""
    with closing(sqlite3.connect(tmp_path / "census.db")) as connection:
        connection.execute("CREATE TABLE people (place TEXT)")
        connection.execute("INSERT INTO people VALUES (CAST(x'41ff' AS TEXT))")
        connection.commit()
    records = open_source(source(tmp_path, "sqlite://census.db", table="people"), "population.persons")
    with pytest.raises(Mistakes, match="a text that is not in UTF-8; correct it in the database"):
        list(records.batches([], ["place"]))
