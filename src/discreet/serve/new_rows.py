"""Adding rows to a table of the store unless they are there already, by any number of workers at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite


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
