"""Databases whose commits must not be lost: SQLite files and PostgreSQL, opened for short serial transactions.

It owns the addresses, the settings that make a commit durable, and the wording of what a database refuses; what the
tables mean is the caller's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sqlalchemy import DDL, Connection, Engine, Table, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from discreet.errors import Mistakes, mistake
from discreet.schema.sources import without_user

WAIT = 60.0  # seconds that one transaction waits for others
_SERVERS = ("postgresql", "postgres", "postgresql+psycopg")
_SECRET = {"password", "sslpassword"}
_USER = re.compile(r'\b(user|role) "[^"]*"')
_FORMS = "write the path of a file, or postgresql://host:port/database"


class Database:
    """A database and the name under which it may be shown."""

    def __init__(self, where: str | Path, key: str) -> None:
        self._key = key
        text = str(where)
        scheme, separator, rest = text.partition("://")
        if separator and scheme not in (*_SERVERS, "sqlite"):
            raise mistake(
                "", key, "an address of an unknown kind", _FORMS
            )  # it may hold a password: not shown
        self.file = Path(rest if separator else text).expanduser() if scheme not in _SERVERS else None
        self.name = str(self.file) if self.file else without_user(text)
        self._engine = _sqlite(self.file) if self.file else _postgresql(text, self.name, key)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read in one transaction."""
        with self._told(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Write in one transaction, which is on disk when this returns; SQLite lets one writer in at a time."""
        engine = self._engine.execution_options(writing=True)
        with self._told(), engine.begin() as connection:
            if self.file is None:
                _make_durable(connection)
            yield connection

    def create_file(self) -> None:
        """Make the empty file of a SQLite database, readable by its owner only; an existing one is left alone."""
        if self.file is None:
            return
        try:
            os.close(os.open(self.file, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError as error:
            reason = (error.strerror or "cannot be written").lower()
            raise mistake(self.name, self._key, reason, "choose a folder that you can write to") from None

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, OSError, UnicodeError) as error:
            raise self._refused(error) from None

    def _refused(self, error: Exception) -> Mistakes:
        """Say what the database answered: its first line, without the statement, its values and the user."""
        cause = error.orig if isinstance(error, DBAPIError) else error
        answer = next(iter(str(cause).strip().splitlines()), "no reason")
        shown = (
            _USER.sub(r"\1", answer)[:200]
            if isinstance(error, DBAPIError | OSError)
            else type(error).__name__
        )
        return mistake(
            self.name, self._key, f"the database says: {shown}", "check the address, the rights and the file"
        )


def append_only(table: Table, columns: tuple[str, ...]) -> None:
    """Let the database refuse deletions from a table and changes of these columns, once the table is created."""
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


def _sqlite(file: Path) -> Engine:
    # mode=rw: a mistyped path must not become a new and empty database
    uri = URL.create("sqlite", database=f"file:{_quoted(file)}", query={"mode": "rw", "uri": "true"})
    engine = create_engine(uri, poolclass=NullPool, connect_args={"timeout": WAIT})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _quoted(file: Path) -> str:
    return str(file.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _prepare_sqlite(connection: Any, _record: object) -> None:
    """Sync the file and its folder at each commit; one file at rest, so that a copy of it is whole."""
    connection.isolation_level = None  # begin and commit are said below, not guessed by the driver
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA trusted_schema = OFF")


def _begin_sqlite(connection: Connection) -> None:
    # the write lock is taken before the first read, so that what was read still holds at the commit
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _postgresql(text: str, name: str, key: str) -> Engine:
    if _holds_password(text):
        remedy = "take it out and set PGPASSWORD or a .pgpass file instead"
        raise mistake(name, key, "the address holds a password", remedy)
    try:
        url = make_url(text).set(drivername="postgresql+psycopg")
    except (ArgumentError, ValueError):
        raise mistake("", key, "an address that cannot be read", _FORMS) from None
    return create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": 10})


def _holds_password(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.password is not None or any(
            name.lower() in _SECRET for name, _ in parse_qsl(parts.query)
        )
    except ValueError:
        return True  # unreadable: refuse rather than show


def _make_durable(connection: Connection) -> None:
    if connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "off":
        connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
