"""Records from tables and queries of SQL databases, and the function that opens any declared source.

A query is one statement that reads. DuckDB runs it without extensions, without the network, with only those files that
the query names, and with its settings locked; SQLite and DuckDB files are opened to read, and PostgreSQL runs it in a
transaction that can only read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from glob import has_magic
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

from discreet.errors import Mistakes, mistake
from discreet.io.files import BATCH, Records, open_files
from discreet.io.memory import open_memory
from discreet.lazy import lazily
from discreet.programme.section import with_home
from discreet.programme.sources import (
    ClusterSource,
    DatabaseSource,
    FileSource,
    MemorySource,
    QuerySource,
    Source,
    without_user,
)

if TYPE_CHECKING:
    import adbc_driver_manager
    import duckdb
else:
    adbc_driver_manager, duckdb = lazily("adbc_driver_manager"), lazily("duckdb")


_BATCH_ROWS = "adbc.sqlite.query.batch_rows"
_USER = re.compile(r'\b(user|role) "[^"]*"')

_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "temp_directory": "",  # records must not reach a file that a killed run would leave behind
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,  # a table name must never resolve to a Python variable
}
_READS = ("select", "with", "values", "table", "from")  # how a query begins
_READ_ONLY = "SET TRANSACTION READ ONLY"

Run = Callable[[str], pa.RecordBatchReader]
Connect = Callable[[], AbstractContextManager[Run]]


def quoted(name: str) -> str:
    """Quote a column's name."""
    return '"' + name.replace('"', '""') + '"'


def open_database(source: DatabaseSource, key: str) -> Records:
    """Open a table (``schema.table`` or ``table``) or a query of a database."""
    if source.query is not None:
        _require_reading(source.query, without_user(source.uri), key)
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
    _require_reading(source.query, name, key)
    connect = partial(_over_files, source.folder, tuple(_named_files(source.query)))
    return _open_sql(connect, _bracketed(source.query), name, key)


def _bracketed(query: str) -> str:
    """The query as a relation; its end is the last token that is neither a comment nor a semicolon."""
    last = max(
        (
            end
            for _, kind, text, end in _tokens(query)
            if kind is not duckdb.token_type.comment and text != ";"
        ),
        default=0,
    )
    return f"({query[:last]}\n) AS records"


def _tokens(query: str) -> Iterator[tuple[int, duckdb.token_type, str, int]]:
    """Where each token of a query begins, its kind, its text and where it ends."""
    found = duckdb.tokenize(query)
    ends = [*(first for first, _ in found), len(query)][1:]
    for (first, kind), after in zip(found, ends, strict=True):
        text = query[first:after].rstrip()
        yield first, kind, text, first + len(text)


def _require_reading(query: str, name: str, key: str) -> None:
    """Refuse what is not one statement that reads, whatever the database would do with it."""
    tokens = [token for token in _tokens(query) if token[1] is not duckdb.token_type.comment]
    while tokens and tokens[-1][2] == ";":
        tokens.pop()
    opening = [text for _, _, text, _ in tokens if text != "("]
    if not opening or opening[0].lower() not in _READS:
        raise mistake(
            name, key, "a query that is no SELECT", "write one statement that begins with SELECT or WITH"
        )
    if any(kind is duckdb.token_type.operator and ";" in text for _, kind, text, _ in tokens):
        raise mistake(name, key, "a query of several statements", "write one SELECT")
    depth = 0
    for _, kind, text, _ in tokens:
        if kind is duckdb.token_type.operator:
            for mark in text:
                depth += (mark == "(") - (mark == ")")
                if depth < 0:
                    raise mistake(name, key, "a query with a bracket that nothing opens", "write one SELECT")


def _named_files(query: str) -> Iterator[str]:
    """The files that a query may read: those that it names as texts or quoted names, not those that it computes."""
    for _, kind, text, _ in _tokens(query):
        if kind in (duckdb.token_type.string_const, duckdb.token_type.identifier) and text[:1] in ("'", '"'):
            name = text[1:-1].replace(text[0] * 2, text[0])
            if name and "://" not in name:
                yield name


def _connector(source: DatabaseSource) -> Connect:
    """How to connect; drivers are imported here because they are slow to import and most records are in files."""
    match source.scheme:
        case "sqlite":
            import adbc_driver_sqlite.dbapi  # noqa: PLC0415

            read_only = f"file:{quote(str(source.file.absolute()))}?mode=ro"
            return partial(
                _through_adbc, adbc_driver_sqlite.dbapi.connect, read_only, {_BATCH_ROWS: str(BATCH)}, None
            )
        case "duckdb":
            return partial(_duckdb_file, source.file)
    import adbc_driver_postgresql.dbapi  # noqa: PLC0415

    return partial(_through_adbc, adbc_driver_postgresql.dbapi.connect, source.uri, {}, _READ_ONLY)


@contextmanager
def _through_adbc(
    connect: Callable[[str], Any], uri: str, options: dict[str, str], first: str | None
) -> Iterator[Run]:
    with connect(uri) as connection, connection.cursor() as cursor:
        if first is not None:
            cursor.execute(first)
        cursor.adbc_statement.set_options(**options)

        def run(sql: str) -> pa.RecordBatchReader:
            cursor.execute(sql)
            return cursor.fetch_record_batch()

        yield run


@contextmanager
def _duckdb_file(path: Path) -> Iterator[Run]:
    with duckdb.connect(str(path), read_only=True, config=_CLOSED) as connection:
        yield _closed(connection, [], [])


@contextmanager
def _over_files(folder: Path, names: Sequence[str]) -> Iterator[Run]:
    # DuckDB compares a name with what is allowed before it searches the folder, and again after it
    places = [place for name in names for place in (name, str(folder / with_home(name)))]
    patterns = [place for place in places if has_magic(place)]
    with duckdb.connect(":memory:", config=_CLOSED) as connection:
        connection.execute("SET GLOBAL file_search_path = $folder", {"folder": str(folder)})
        yield _closed(
            connection,
            [place for place in places if place not in patterns],
            [_above(one) for one in patterns],
        )


def _above(pattern: str) -> str:
    """The folder above the first wildcard of a pattern."""
    parts = Path(pattern).parts
    first = next(k for k, part in enumerate(parts) if has_magic(part))
    return f"{Path(*parts[:first])}/"


def _closed(connection: duckdb.DuckDBPyConnection, files: list[str], folders: list[str]) -> Run:
    """Let queries reach only these files and folders, and lock that."""
    connection.execute("SET allowed_paths = $files", {"files": files})
    connection.execute("SET allowed_directories = $folders", {"folders": folders})
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return lambda sql: connection.sql(sql).to_arrow_reader(BATCH)


def _open_sql(connect: Connect, relation: str, name: str, key: str) -> Records:
    with closing(_run(connect, f"SELECT * FROM {relation} LIMIT 0", name, key)) as empty:  # noqa: S608
        schema = next(empty)

    def read(plain: Sequence[str], coded: Sequence[str]) -> Iterator[pa.RecordBatch]:
        columns = ", ".join(quoted(column) for column in dict.fromkeys((*plain, *coded)))
        return islice(_run(connect, f"SELECT {columns} FROM {relation}", name, key), 1, None)  # noqa: S608

    return Records(name, schema, read)


def _answers() -> tuple[type[Exception], ...]:
    """What databases raise."""
    return duckdb.Error, adbc_driver_manager.Error


def _run(connect: Connect, sql: str, name: str, key: str) -> Generator[Any, None, None]:
    """Yield the schema of the result, then its batches."""
    try:
        with connect() as run:
            reader = run(sql)
            yield reader.schema
            yield from _streamed(reader, name, key)
    except _answers() as error:
        raise _refused(error, name, key) from None


def _streamed(reader: pa.RecordBatchReader, name: str, key: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches; error messages from here on may quote records, so they are not repeated."""
    try:
        for batch in reader:
            _require_text(batch, name, key)
            yield batch
    except (*_answers(), pa.ArrowException, OSError):  # an Arrow stream wraps the errors of its database
        remedy = "check that the server is up and that the query completes there"
        raise mistake(name, key, "the database failed while records were read", remedy) from None


def _require_text(batch: pa.RecordBatch, name: str, key: str) -> None:
    """Refuse what SQLite stores as text and is none: libraries would fail on it later."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        raise mistake(name, key, "a text that is not in UTF-8", "correct it in the database") from None


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
        case MemorySource():
            return open_memory(source)
        case ClusterSource():
            remedy = "run with --engine spark, or give files of this machine"
            raise mistake(source.name, key, "only Spark can read it", remedy)
    return open_query(source, key)
