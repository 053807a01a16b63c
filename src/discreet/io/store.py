"""Durable tables on SQLite and PostgreSQL for several processes: short, serializable, durable transactions."""

from __future__ import annotations

import os
import re
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from sqlalchemy import (
    DDL,
    ClauseElement,
    Column,
    Connection,
    Dialect,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    bindparam,
    create_engine,
    event,
    func,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.pool import NullPool, QueuePool
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from discreet.errors import DatabaseUnavailable, Mistakes, Problem, mistake
from discreet.io.ending import putting
from discreet.io.whole_file import is_special
from discreet.programme.section import with_home
from discreet.programme.sources import without_user

WAIT = 30.0  # seconds that one transaction waits for others
AT_ONCE = 32  # rows that one statement inserts
_POOL: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 4, "max_overflow": 60, "pool_timeout": WAIT}
_SERVERS = ("postgresql", "postgres", "postgresql+psycopg")
_SECRET = {"password", "sslpassword"}
_USER = re.compile(r'\b(user|role) "[^"]*"')
_FORMS = "give the path of a file, or postgresql://host:port/database"


class Journal(StrEnum):
    """Journal modes of SQLite; both sync a commit to disk before it returns."""

    BESIDE = "delete"  # one file when idle, so that a copy of it is complete
    AHEAD = "wal"  # one sync per commit, readers do not wait; two more files while open


class Database:
    """A database and the name under which it may be shown; thread-safe."""

    def __init__(self, where: str | Path, key: str, journal: Journal = Journal.BESIDE) -> None:
        self.key = key
        address = str(where)
        scheme, separator, rest = address.partition("://")
        if separator and scheme not in (*_SERVERS, "sqlite"):
            raise mistake(
                "", key, "an address of an unknown kind", _FORMS
            )  # not shown: it may contain a password
        self.file = with_home(rest if separator else address) if scheme not in _SERVERS else None
        self.name = str(self.file) if self.file else without_user(address)
        if self.file and is_special(self.file):
            raise mistake(self.name, key, "is a device or a pipe", _FORMS)
        engine = _sqlite(self.file, journal) if self.file else _postgresql(address, self.name, key)
        self._writer = engine.execution_options(writing=True)
        self._reader = engine if self.file else engine.execution_options(isolation_level="REPEATABLE READ")
        self._turn = Lock()
        self._engine = engine
        self._errors = (SQLAlchemyError, OSError, UnicodeError, engine.dialect.loaded_dbapi.Error)
        weakref.finalize(self, engine.dispose)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading in one transaction, which sees one consistent snapshot."""
        with self._errors_reported(), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection for writing in one transaction, on disk when the block ends; SQLite has one writer at a time."""
        with (
            self._errors_reported(),
            self._in_turn(),
            putting(self.name),
            self._writer.begin() as connection,
        ):
            if self.file is None:
                rows_of(connection, _DURABLE, {"wait": f"{WAIT:.0f}s"})
            yield connection

    def look(self) -> None:
        """Ask the database for nothing; DatabaseUnavailable where it does not answer."""
        if self.file is not None and not self.file.exists():
            raise self._refused(FileNotFoundError("no such file"))
        with self.reading() as connection:
            connection.execute(select(1))

    def close(self) -> None:
        """Close idle connections; after the last one, a SQLite database is a single file again."""
        self._engine.dispose()

    def create_file(self) -> None:
        """Create the empty file of a SQLite database, readable by its owner only; an existing one is not changed."""
        if self.file is None:
            return
        try:
            # an existing one is not opened: closing it would release the locks that this process has on it
            with putting(self.name):
                os.close(os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            reason = (error.strerror or "cannot be written").lower()
            raise mistake(self.name, self.key, reason, "choose a folder that you can write to") from None

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Serialize the writing threads with a lock, which wakes them at once; SQLite itself would make them sleep."""
        if self.file is None:
            yield
            return
        if not self._turn.acquire(timeout=WAIT):
            raise TimeoutError("database is locked")
        try:
            yield
        finally:
            self._turn.release()

    @contextmanager
    def _errors_reported(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise self._refused(error) from None

    def _refused(self, error: Exception) -> DatabaseUnavailable:
        """The error with the first line of the database's message, without the statement, its values and the user."""
        cause = error.orig if isinstance(error, DBAPIError) else error
        answer = next(iter(str(cause).strip().splitlines()), "no reason")
        of_driver = not isinstance(error, SQLAlchemyError | UnicodeError) or isinstance(error, DBAPIError)
        shown = _USER.sub(r"\1", answer)[:200] if of_driver else type(error).__name__
        value, remedy = f"database error: {shown}", "check the address, the permissions and the file"
        return DatabaseUnavailable(Problem(self.name, self.key, value, remedy))


def append_only(table: Table, columns: tuple[str, ...]) -> None:
    """Add triggers by which the database refuses deletions from a table and changes of these columns."""
    name, changes = table.name, ", ".join(columns)
    for action, moment in (("delete", "DELETE"), ("update", f"UPDATE OF {changes}")):
        trigger = f"{name}_no_{action}"
        sqlite = (
            f"CREATE TRIGGER IF NOT EXISTS {trigger} BEFORE {moment} ON {name} "
            f"BEGIN SELECT RAISE(ABORT, '{name} is append-only'); END"
        )
        postgresql = (
            f"CREATE OR REPLACE TRIGGER {trigger} BEFORE {moment} ON {name} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_ledger()"
        )
        for dialect, statement in (("postgresql", _REFUSE), ("postgresql", postgresql), ("sqlite", sqlite)):
            ddl = DDL(statement)  # type: ignore[no-untyped-call]  # untyped in SQLAlchemy
            event.listen(table, "after_create", ddl.execute_if(dialect=dialect))


_REFUSE = """CREATE OR REPLACE FUNCTION refuse_change_of_ledger() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$"""


def _sqlite(file: Path, journal: Journal) -> Engine:
    # mode=rw: a mistyped path must not become a new and empty database
    uri = URL.create("sqlite", database=f"file:{_quoted(file)}", query={"mode": "rw", "uri": "true"})
    # a new connection for each transaction, except with a write-ahead log, which closing would copy back
    pool = _POOL if journal is Journal.AHEAD else {"poolclass": NullPool}
    engine = create_engine(uri, connect_args={"timeout": WAIT, "check_same_thread": False}, **pool)

    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # begin and commit are issued below, not by the driver
        _set_journal(connection, journal)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA secure_delete = ON")  # deleted values are in no copy of the file

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", _begin_sqlite)
    if journal is Journal.AHEAD:
        same = _SameFile(file)
        event.listen(
            engine, "do_connect", same
        )  # before SQLite combines another file with the journal of the first
        event.listen(engine, "checkout", same)
    return engine


class _SameFile:
    """Refuses a file that has replaced the one opened first: the journal would be mixed with another file's pages."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._first: tuple[int, int] | None = None

    def __call__(self, *_connection: object) -> None:
        try:
            found = self._file.stat()
        except OSError:
            raise OSError("the file no longer exists; restore it") from None
        self._first = self._first or (found.st_dev, found.st_ino)
        if self._first != (found.st_dev, found.st_ino):
            raise OSError("the file was replaced; restore the first one, or restart")


def _set_journal(connection: sqlite3.Connection, journal: Journal) -> None:
    """Sync each commit to disk; write-ahead mode is set once per file, by the first process that opens it."""
    connection.execute(f"PRAGMA synchronous = {'FULL' if journal is Journal.AHEAD else 'EXTRA'}")
    deadline = time.monotonic() + WAIT
    while journal is Journal.AHEAD and _journal(connection) != journal.value:
        try:
            connection.execute(f"PRAGMA journal_mode = {journal.value}")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)  # SQLite itself does not wait here


def _journal(connection: sqlite3.Connection) -> str:
    (found,) = connection.execute("PRAGMA journal_mode").fetchone()
    return str(found)


def _quoted(file: Path) -> str:
    return str(file.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _begin_sqlite(connection: Connection) -> None:
    # the write lock is taken before the first read, so that what was read is still valid at the commit
    writing = connection.get_execution_options().get("writing", False)
    _cursor(connection).execute("BEGIN IMMEDIATE" if writing else "BEGIN")


def _postgresql(address: str, name: str, key: str) -> Engine:
    if _holds_password(address):
        remedy = "remove it and use PGPASSWORD or a .pgpass file instead"
        raise mistake(name, key, "the address contains a password", remedy)
    try:
        url = make_url(address).set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError):
        raise mistake("", key, "an address that cannot be read", _FORMS) from None
    # no prepared statements: a proxy may give each transaction another session
    settings = {"connect_timeout": 10, "tcp_user_timeout": 10_000, "prepare_threshold": None}
    return create_engine(url, connect_args=settings, pool_pre_ping=True, **_POOL)


def _holds_password(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.password is not None or any(
            name.lower() in _SECRET for name, _ in parse_qsl(parts.query)
        )
    except ValueError:
        return True  # unreadable: refuse rather than show


# only for the transaction, in one round trip; a server may be configured to acknowledge what is not on disk yet
_DURABLE = text("""
SELECT set_config('lock_timeout', :wait, true),
       set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true)
""")


_versions = Table(
    "discreet_books",
    MetaData(),
    Column("book", String, primary_key=True),
    Column("version", Integer, nullable=False),
)


@dataclass(frozen=True)
class Book:
    """Tables that belong together; the version is raised when an earlier Discreet must no longer write to them."""

    name: str
    tables: MetaData
    version: int = 1


def lay_out(database: Database, book: Book) -> None:
    """Create the missing tables, in one process at a time, or refuse tables of a newer version."""
    database.create_file()
    with database.writing() as connection:
        one_at_a_time(connection, _versions.name)
        _versions.create(connection, checkfirst=True)
        _refuse_newer(connection, database, book)
        book.tables.create_all(connection)
        add_new(connection, _versions, [{"book": book.name, "version": book.version}])


def open_book(database: Database, book: Book) -> None:
    """Refuse a database without the tables, where creating empty ones would be wrong."""
    if database.file is not None and not database.file.is_file():
        raise mistake(
            database.name, database.key, "no such file", f"correct the path, or create a {book.name} there"
        )
    with database.reading() as connection:
        found = set(inspect(connection).get_table_names())
        if not found >= set(book.tables.tables):
            remedy = f"correct the address, or create a {book.name} there"
            raise mistake(database.name, database.key, f"contains no {book.name}", remedy)
        if _versions.name in found and _refuse_newer(connection, database, book) is None:
            raise _without_version(database, book)


def rows_of(
    connection: Connection, statement: ClauseElement, values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """The rows that a statement finds, whose values have types that the driver knows.

    It is compiled once and given to the driver: what SQLAlchemy does for each execution takes longer than SQLite.
    """
    return cast("list[tuple[Any, ...]]", _executed(connection, statement, values).fetchall())


def _executed(connection: Connection, statement: ClauseElement, values: Mapping[str, Any]) -> DBAPICursor:
    made = _compiled(statement, connection.dialect.name)
    cursor = _cursor(connection)
    cursor.execute(made.text, made.of(values))
    return cursor


def _cursor(connection: Connection) -> DBAPICursor:
    return connection.connection.cursor()


@dataclass(frozen=True)
class _Compiled:
    """A statement as text of one kind of database, and what it needs to know of its parameters."""

    text: str
    constants: Mapping[str, Any]
    converted: Mapping[str, Callable[[Any], Any]]  # parameters of types that the driver does not know
    order: tuple[str, ...] | None  # of the parameters; None where the text names them

    def of(self, values: Mapping[str, Any]) -> Any:
        """The parameters of one execution."""
        given = {**self.constants, **values}
        for name, convert in self.converted.items():
            given[name] = convert(given[name])
        return given if self.order is None else [given[name] for name in self.order]


_DIALECTS: Mapping[str, Dialect] = {
    "sqlite": sqlite.dialect(),
    "postgresql": PGDialect_psycopg(),  # type: ignore[no-untyped-call]  # untyped in SQLAlchemy
}


@cache
def _compiled(statement: ClauseElement, kind: str) -> _Compiled:
    dialect = _DIALECTS[kind]
    made = cast("SQLCompiler", statement.compile(dialect=dialect))
    constants = {name: value for name, value in made.params.items() if value is not None}
    found = {name: one.type.dialect_impl(dialect).bind_processor(dialect) for name, one in made.binds.items()}
    converted = {name: convert for name, convert in found.items() if convert is not None}
    order = made.positiontup
    return _Compiled(str(made), constants, converted, None if order is None else tuple(order))


class Lines(FunctionElement[str]):
    """All texts of a column as one, a line each; null where there are none."""

    type = String()
    name = "lines"
    inherit_cache = True


@compiles(Lines, "sqlite")
def _lines_sqlite(element: Lines, compiler: SQLCompiler, **options: Any) -> str:
    return f"group_concat({compiler.process(element.clauses, **options)}, char(10))"


@compiles(Lines, "postgresql")
def _lines_postgresql(element: Lines, compiler: SQLCompiler, **options: Any) -> str:
    return f"string_agg({compiler.process(element.clauses, **options)}, chr(10))"


def add_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; rows whose primary key exists already are skipped."""
    for some in _parts(rows):
        # the last row is repeated, and skipped, so that few different statements are compiled
        number = 1 << (len(some) - 1).bit_length()
        every = [*some, *(some[-1] for _ in range(number - len(some)))]
        _executed(
            connection, _adding(connection.dialect.name, table, tuple(some[0]), number), _numbered(every)
        )


def put(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], changed: Sequence[str]
) -> None:
    """Insert different rows, or change these columns of those whose primary key exists already."""
    left = rows
    while left:  # in powers of two, so that few different statements are compiled
        number = min(AT_ONCE, 1 << (len(left).bit_length() - 1))
        some, left = left[:number], left[number:]
        made = _putting(connection.dialect.name, table, tuple(some[0]), number, tuple(changed))
        _executed(connection, made, _numbered(some))


def _parts(rows: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Rows for one statement each: a statement for each row would give way to other threads as often."""
    yield from (rows[start : start + AT_ONCE] for start in range(0, len(rows), AT_ONCE))


def _numbered(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {f"r{k}_{name}": value for k, row in enumerate(rows) for name, value in row.items()}


# built once: building a statement takes longer than executing it
@cache
def _adding(dialect: str, table: Table, columns: tuple[str, ...], number: int) -> ClauseElement:
    found: ClauseElement = _inserting(dialect, table, columns, number).on_conflict_do_nothing()
    return found


@cache
def _putting(
    dialect: str, table: Table, columns: tuple[str, ...], number: int, changed: tuple[str, ...]
) -> ClauseElement:
    made = _inserting(dialect, table, columns, number)
    keys = [column.name for column in table.primary_key]
    values = {name: made.excluded[name] for name in changed}
    found: ClauseElement = made.on_conflict_do_update(index_elements=keys, set_=values)
    return found


def _inserting(dialect: str, table: Table, columns: tuple[str, ...], number: int) -> Any:
    rows = [
        {name: bindparam(f"r{k}_{name}", type_=table.c[name].type) for name in columns} for k in range(number)
    ]
    return _insert(dialect)(table).values(rows)


def _insert(dialect: str) -> Any:
    return postgresql.insert if dialect == "postgresql" else sqlite.insert


_LOCK = select(func.pg_advisory_xact_lock(func.hashtext(bindparam("name", type_=String))))


def one_at_a_time(connection: Connection, name: str) -> None:
    """Take a lock of this name until the transaction ends; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        rows_of(connection, _LOCK, {"name": name})


def _refuse_newer(connection: Connection, database: Database, book: Book) -> int | None:
    """The version that a database states for its tables, or None; one of a newer Discreet is refused."""
    wanted = select(_versions.c.version).where(_versions.c.book == book.name)
    found = connection.execute(wanted).scalar()
    if found is None:
        return None
    if not isinstance(found, int) or found < 1:  # SQLite stores anything in any column
        raise _without_version(database, book)
    if found > book.version:
        value = f"its {book.name} has version {found}, and this Discreet supports {book.version}"
        raise mistake(database.name, database.key, value, "use the newer Discreet that wrote it")
    return found


def _without_version(database: Database, book: Book) -> Mistakes:
    value = f"is damaged: no version of its {book.name}"
    return mistake(database.name, database.key, value, "restore it from a backup")
