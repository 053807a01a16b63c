"""Records from tables and queries of SQL databases, and the function that opens any declared source."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import adbc_driver_manager
import duckdb
import pyarrow as pa

from discreet.errors import Mistakes, mistake
from discreet.io.files import BATCH, Records, open_files
from discreet.programme.sources import DatabaseSource, FileSource, QuerySource, Source, without_user

_BATCH_ROWS = "adbc.sqlite.query.batch_rows"
_ANSWER = (duckdb.Error, adbc_driver_manager.Error)
_BROKEN = (
    *_ANSWER,
    pa.ArrowException,
    OSError,
)  # an Arrow stream wraps the errors of its database
_USER = re.compile(r'\b(user|role) "[^"]*"')

# records must not reach a file that a killed run would leave behind
_NO_SPILL: dict[str, str | bool | int | float | list[str]] = {"temp_directory": ""}

Run = Callable[[str], pa.RecordBatchReader]
Connect = Callable[[], AbstractContextManager[Run]]


def quoted(name: str) -> str:
    """Quote a column's name."""
    return '"' + name.replace('"', '""') + '"'


def open_database(source: DatabaseSource, key: str) -> Records:
    """Open a table (``schema.table`` or ``table``) or a query of a database."""
    table = ".".join(quoted(part) for part in (source.table or "").split("."))
    relation = table if source.table else _bracketed(source.query or "")
    return _open_sql(_connector(source), relation, without_user(source.uri), key)


def open_query(source: QuerySource, key: str) -> Records:
    """Open the result of a query over files, run by DuckDB with relative paths below a folder."""
    if "," in str(source.folder):
        remedy = "rename the folder, or give files instead of a query"
        raise mistake(
            source.folder, key, "a query cannot read files below a folder with a comma in its name", remedy
        )
    name = f"query of {key.rpartition('.')[2]}"
    return _open_sql(partial(_over_files, source.folder), _bracketed(source.query), name, key)


def _bracketed(query: str) -> str:
    return f"({query.strip().rstrip(';')}\n) AS records"  # on a new line, because the query may end with a comment


def _connector(source: DatabaseSource) -> Connect:
    """How to connect; drivers are imported here because they are slow to import and most records are in files."""
    match source.scheme:
        case "sqlite":
            import adbc_driver_sqlite.dbapi  # noqa: PLC0415

            read_only = f"file:{quote(str(source.file.absolute()))}?mode=ro"
            return partial(
                _through_adbc, adbc_driver_sqlite.dbapi.connect, read_only, {_BATCH_ROWS: str(BATCH)}
            )
        case "duckdb":
            return partial(_duckdb_file, source.file)
    import adbc_driver_postgresql.dbapi  # noqa: PLC0415

    return partial(_through_adbc, adbc_driver_postgresql.dbapi.connect, source.uri, {})


@contextmanager
def _through_adbc(connect: Callable[[str], Any], uri: str, options: dict[str, str]) -> Iterator[Run]:
    with connect(uri) as connection, connection.cursor() as cursor:
        cursor.adbc_statement.set_options(**options)

        def run(sql: str) -> pa.RecordBatchReader:
            cursor.execute(sql)
            return cursor.fetch_record_batch()

        yield run


@contextmanager
def _duckdb_file(path: Path) -> Iterator[Run]:
    with duckdb.connect(str(path), read_only=True, config=_NO_SPILL) as connection:
        yield lambda sql: connection.sql(sql).to_arrow_reader(BATCH)


@contextmanager
def _over_files(folder: Path) -> Iterator[Run]:
    with duckdb.connect(":memory:", config=_NO_SPILL) as connection:
        connection.execute("SET GLOBAL file_search_path = $folder", {"folder": str(folder)})
        connection.execute(
            "SET python_enable_replacements = false"
        )  # a table name must never resolve to a Python variable
        yield lambda sql: connection.sql(sql).to_arrow_reader(BATCH)


def _open_sql(connect: Connect, relation: str, name: str, key: str) -> Records:
    with closing(_run(connect, f"SELECT * FROM {relation} LIMIT 0", name, key)) as empty:  # noqa: S608
        schema = next(empty)

    def read(plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        columns = ", ".join(quoted(column) for column in dict.fromkeys((*plain, *coded)))
        return islice(_run(connect, f"SELECT {columns} FROM {relation}", name, key), 1, None)  # noqa: S608

    return Records(name, schema, read)


def _run(connect: Connect, sql: str, name: str, key: str) -> Generator[Any, None, None]:
    """Yield the schema of the result, then its batches."""
    try:
        with connect() as run:
            reader = run(sql)
            yield reader.schema
            yield from _streamed(reader, name, key)
    except _ANSWER as error:
        raise _refused(error, name, key) from None


def _streamed(reader: pa.RecordBatchReader, name: str, key: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches; error messages from here on may quote records, so they are not repeated."""
    try:
        yield from reader
    except _BROKEN:
        remedy = "check that the server is up and that the query completes there"
        raise mistake(name, key, "the database failed while records were read", remedy) from None


def _refused(error: Exception, name: str, key: str) -> Mistakes:
    """A mistake with the first line of the database's error, without the user; later lines may quote values."""
    if isinstance(error, duckdb.DataError | adbc_driver_manager.DataError):
        return mistake(name, key, "the database cannot convert a value", "correct the types in the query")
    answer = _USER.sub(r"\1", next(iter(str(error).strip().splitlines()), "no reason"))[:200]
    return mistake(name, key, f"database error: {answer}", "check the address, the permissions and the names")


def open_source(source: Source, key: str) -> Records:
    """Open a source; ``key`` is its key in the programme file, for messages."""
    match source:
        case FileSource():
            return open_files(source, key)
        case DatabaseSource():
            return open_database(source, key)
    return open_query(source, key)
