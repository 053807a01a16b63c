"""Tables that several processes make, open and add to at once, on SQLite and on PostgreSQL.

It owns how tables of one book come to be, by which version of Discreet they can be read, and additions that two
processes may make at once; what the tables mean is the book's, and the database is ``transactions``'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, func, inspect, select
from sqlalchemy.dialects import postgresql, sqlite

from discreet.engine.transactions import Database
from discreet.errors import mistake

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
    """Make the tables of a book that are not there, by one process at a time, or refuse a book of a newer version."""
    database.create_file()
    with database.writing() as connection:
        one_at_a_time(connection, _versions.name)
        _versions.create(connection, checkfirst=True)
        _refuse_newer(connection, database, book)
        book.tables.create_all(connection)
        add_new(connection, _versions, [{"book": book.name, "version": book.version}])


def open_book(database: Database, book: Book) -> None:
    """Refuse a database that does not hold the book: where a new and empty one would be worse than none."""
    if database.file is not None and not database.file.is_file():
        raise mistake(
            database.name, database.key, "no such file", f"correct the path, or create a {book.name} there"
        )
    with database.reading() as connection:
        found = set(inspect(connection).get_table_names())
        if not found >= set(book.tables.tables):
            remedy = f"correct the address, or create a {book.name} there"
            raise mistake(database.name, database.key, f"holds no {book.name}", remedy)
        if _versions.name in found:
            _refuse_newer(connection, database, book)


def add_new(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows; one whose primary key is there already is left as it is."""
    if not rows:
        return
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    connection.execute(insert(table).on_conflict_do_nothing(), list(rows))


def one_at_a_time(connection: Connection, name: str) -> None:
    """Let one transaction of this name in at a time; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(name))))


def _refuse_newer(connection: Connection, database: Database, book: Book) -> None:
    wanted = select(_versions.c.version).where(_versions.c.book == book.name)
    found = connection.execute(wanted).scalar()
    if found is not None and found > book.version:
        value = f"its {book.name} is of version {found}, and this Discreet knows {book.version}"
        raise mistake(database.name, database.key, value, "use the newer Discreet that wrote it")
