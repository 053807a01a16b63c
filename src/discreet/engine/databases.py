"""Reading a table or query of a SQL database, or a query over files, as records; the only place with SQL text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import adbc_driver_manager
import adbc_driver_postgresql.dbapi
import adbc_driver_sqlite.dbapi
import duckdb
import pyarrow as pa

from discreet.engine.records import BATCH, Records
from discreet.errors import Mistakes, mistake
from discreet.schema.sources import DatabaseSource, QuerySource, without_user

Run = Callable[[str], pa.RecordBatchReader]
Connect = Callable[[], AbstractContextManager[Run]]


def quoted(name: str) -> str:
    """Quote a column's name."""
    return '"' + name.replace('"', '""') + '"'


def open_database(source: DatabaseSource, key: str) -> Records:
    """Open a table (``schema.table`` or ``table``) or a query of a database."""
    table = ".".join(quoted(part) for part in (source.table or "").split("."))
    relation = table if source.table else _bracketed(source.query or "")
    return _open_sql(_connector(source.uri, key), relation, without_user(source.uri), key)


def open_query(source: QuerySource, key: str) -> Records:
    """Open the result of a query over files, run by DuckDB with relative paths below a folder."""
    return _open_sql(lambda: _in_duckdb(":memory:", source.folder), _bracketed(source.query), "query", key)


def _bracketed(query: str) -> str:
    return f"({query.strip().rstrip(';')}) AS records"


def _connector(uri: str, key: str) -> Connect:
    scheme, _, path = uri.partition("://")
    match scheme:
        case "postgresql" | "postgres":
            return lambda: _through_adbc(adbc_driver_postgresql.dbapi.connect, uri)
        case "sqlite":
            return lambda: _through_adbc(adbc_driver_sqlite.dbapi.connect, path)
        case "duckdb":
            return lambda: _in_duckdb(path, Path())
    raise mistake(
        without_user(uri),
        key,
        f"unknown kind of database {urlsplit(uri).scheme!r}",
        "use postgresql, sqlite or duckdb",
    )


@contextmanager
def _through_adbc(connect: Callable[[str], Any], uri: str) -> Iterator[Run]:
    with connect(uri) as connection, connection.cursor() as cursor:

        def run(sql: str) -> pa.RecordBatchReader:
            cursor.execute(sql)
            return cursor.fetch_record_batch()

        yield run


@contextmanager
def _in_duckdb(database: str, folder: Path) -> Iterator[Run]:
    with duckdb.connect(database, read_only=database != ":memory:") as connection:
        connection.execute("SET GLOBAL file_search_path = $folder", {"folder": str(folder)})
        yield lambda sql: connection.sql(sql).to_arrow_reader(BATCH)


def _open_sql(connect: Connect, relation: str, name: str, key: str) -> Records:
    schema = next(_run(connect, f"SELECT * FROM {relation} LIMIT 0", name, key))  # noqa: S608

    def read(plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        columns = ", ".join(quoted(column) for column in (*plain, *coded))
        return islice(_run(connect, f"SELECT {columns} FROM {relation}", name, key), 1, None)  # noqa: S608

    return Records(name, schema, read)


def _run(connect: Connect, sql: str, name: str, key: str) -> Iterator[Any]:
    """Yield the schema of the result, then its batches."""
    try:
        with connect() as run:
            reader = run(sql)
            yield reader.schema
            yield from reader
    except (duckdb.Error, adbc_driver_manager.Error) as error:
        raise _refused(error, name, key) from None


def _refused(error: Exception, name: str, key: str) -> Mistakes:
    """Say what the database answered, first line only: later lines may quote values."""
    answer = str(error).strip().splitlines()[0][:200]
    return mistake(name, key, f"the database says: {answer}", "check the address, the rights and the names")
