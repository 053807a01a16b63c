"""The database of saved queries and background jobs: SQLite, or PostgreSQL where several workers share it.

Every write is on disk when a method returns. It never contains a true count, a secret or a record; job results are
protected tables.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Float,
    LargeBinary,
    MetaData,
    Row,
    String,
    Table,
    func,
    or_,
    select,
    update,
)

from discreet.errors import DatabaseUnavailable, Mistakes, Problem
from discreet.io.store import Book, Database, Journal, add_new, lay_out
from discreet.serve.query import Query, from_json, to_json

Clock = Callable[[], datetime]

_tables = MetaData()
_queries = Table(
    "serve_queries",
    _tables,
    Column("id", String, primary_key=True),
    Column("query", String, nullable=False),
    Column("extra", String, nullable=False),
    Column("created", String, nullable=False),
)
_jobs = Table(
    "serve_jobs",
    _tables,
    Column("id", String, primary_key=True),
    Column("owner", String, nullable=False, index=True),
    Column("query", String, nullable=False),
    Column("extra", String, nullable=False),
    Column("state", String, nullable=False, index=True),
    Column("progress", Float, nullable=False),
    Column("words", String, nullable=False),
    Column("created", String, nullable=False),
    Column("finished", String),
    Column("worker", String, nullable=False),
    Column("lease", String, nullable=False),  # until when the worker has it
    Column("result", LargeBinary),
)
_BOOK = Book("store", _tables)
UNREADABLE = "a row that cannot be read"
_COLUMNS = tuple(column for column in _jobs.columns if column.name != "result")


class JobState(StrEnum):
    """The state of a background job."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"  # with a message for the user


@dataclass(frozen=True)
class SavedQuery:
    """A question with a permanent id; ``extra`` is the caller's own JSON text (layout, language)."""

    id: str
    query: Query
    extra: str
    created: datetime


@dataclass(frozen=True)
class Job:
    """A background job."""

    id: str
    user: str
    query: Query
    extra: str  # the caller's own JSON text, such as the requested format
    state: JobState
    progress: float  # 0 to 1
    message: str  # why it failed
    created: datetime
    finished: datetime | None


class Store:
    """The database of a table builder; safe for threads, processes, and processes that are killed."""

    def __init__(self, where: str | Path, clock: Clock) -> None:
        """Open the database by path or by URL, or make it."""
        self.database, self._clock = Database(where, "store", Journal.AHEAD), clock
        lay_out(self.database, _BOOK)

    def save_query(self, query: Query, extra: str = "") -> SavedQuery:
        """Store a question permanently; the same question and extra have the same id."""
        text = _text(query)
        name = hashlib.blake2b(f"{text}\n{extra}".encode(), digest_size=10).hexdigest()
        with self.database.writing() as connection:
            values = {"id": name, "query": text, "extra": extra, "created": self._now()}
            add_new(connection, _queries, [values])
            row = _row(connection, _queries, name)
        return _saved(row)

    def saved_query(self, name: str) -> SavedQuery | None:
        """A stored question."""
        with self.database.reading() as connection:
            row = _row(connection, _queries, name)
        return None if row is None else _saved(row)

    def add_job(self, user: str, query: Query, extra: str = "") -> Job:
        """Queue a job."""
        job = Job(secrets.token_hex(16), user, query, extra, JobState.QUEUED, 0.0, "", self._clock(), None)
        values = {
            "id": job.id, "owner": user, "query": _text(query), "extra": extra, "state": job.state.value,
            "progress": 0.0, "words": "", "created": self._now(), "worker": "", "lease": "",
        }  # fmt: skip
        with self.database.writing() as connection:
            connection.execute(_jobs.insert().values(values))
        return job

    def claim_job(self, worker: str, seconds: float) -> Job | None:
        """Claim the oldest job that waits, or whose worker has let its lease expire; None where no job does."""
        waits = or_(
            _jobs.c.state == JobState.QUEUED.value,
            (_jobs.c.state == JobState.RUNNING.value) & (_jobs.c.lease < self._now()),
        )
        wanted = select(*_COLUMNS).where(waits).order_by(_jobs.c.created, _jobs.c.id).limit(1)
        claimed = {"state": JobState.RUNNING.value, "worker": worker, "lease": self._now(seconds)}
        failed = {"state": JobState.FAILED.value, "words": UNREADABLE, "finished": self._now()}
        with self.database.writing() as connection:
            while (row := connection.execute(wanted.with_for_update(skip_locked=True)).first()) is not None:
                try:
                    job = _job(row)
                except DatabaseUnavailable:  # it would block the queue
                    connection.execute(_jobs.update().where(_jobs.c.id == row.id).values(failed))
                    continue
                connection.execute(_jobs.update().where(_jobs.c.id == row.id).values(claimed))
                return replace(job, state=JobState.RUNNING)
        return None

    def report_progress(self, name: str, worker: str, progress: float, seconds: float) -> bool:
        """Renew the lease and store the progress of a job; False where another worker has it now, or it was deleted."""
        return self._change(name, worker, progress=progress, lease=self._now(seconds))

    def finish_job(self, name: str, worker: str, result: bytes) -> bool:
        """Store the result of a job (bytes that the caller can read again); False where another worker has it."""
        done = JobState.DONE.value
        return self._change(name, worker, state=done, progress=1.0, result=result, finished=self._now())

    def fail_job(self, name: str, worker: str, message: str) -> bool:
        """Store why a job has no result."""
        return self._change(name, worker, state=JobState.FAILED.value, words=message, finished=self._now())

    def job(self, name: str) -> Job | None:
        """A job."""
        with self.database.reading() as connection:
            row = connection.execute(select(*_COLUMNS).where(_jobs.c.id == name)).first()
        return None if row is None else _job(row)

    def jobs(self, user: str) -> tuple[Job, ...]:
        """The jobs of a user, newest first."""
        wanted = select(*_COLUMNS).where(_jobs.c.owner == user).order_by(_jobs.c.created.desc(), _jobs.c.id)
        with self.database.reading() as connection:
            return tuple(map(_job, connection.execute(wanted)))

    def result(self, name: str) -> bytes | None:
        """The result of a finished job."""
        with self.database.reading() as connection:
            found: bytes | None = connection.execute(
                select(_jobs.c.result).where(_jobs.c.id == name)
            ).scalar()
        return found

    def drop_job(self, name: str) -> bool:
        """Delete a job and its result; a worker that is making it finds it gone. False where it does not exist."""
        with self.database.writing() as connection:
            return bool(connection.execute(_jobs.delete().where(_jobs.c.id == name)).rowcount)

    def drop_results(self, before: datetime) -> int:
        """Delete the jobs that finished before a moment; return how many."""
        with self.database.writing() as connection:
            return int(connection.execute(_jobs.delete().where(_jobs.c.finished < _moment(before))).rowcount)

    def drop_beyond(self, most: int) -> int:
        """Delete the oldest results, so that all together have at most ``most`` bytes; return how many."""
        size = func.length(_jobs.c.result)
        has_result = _jobs.c.result.is_not(None)
        newest_first = select(_jobs.c.finished, size).where(has_result).order_by(_jobs.c.finished.desc())
        total = 0
        with self.database.writing() as connection:
            for finished, length in connection.execute(newest_first).all():
                total += length
                if total > most:
                    beyond = _jobs.delete().where(has_result, _jobs.c.finished <= finished)
                    return int(connection.execute(beyond).rowcount)
        return 0

    def _change(self, name: str, worker: str, **values: Any) -> bool:
        mine = (_jobs.c.id == name, _jobs.c.worker == worker, _jobs.c.state == JobState.RUNNING.value)
        with self.database.writing() as connection:
            return bool(connection.execute(update(_jobs).where(*mine).values(values)).rowcount)

    def _now(self, later: float = 0.0) -> str:
        return _moment(self._clock() + timedelta(seconds=later))


def _moment(at: datetime) -> str:
    """A moment as text whose order is that of time."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f+00:00")


def _text(query: Query) -> str:
    return json.dumps(to_json(query), ensure_ascii=False, sort_keys=True)


def _row(connection: Connection, table: Table, name: str) -> Row[Any] | None:
    return connection.execute(select(table).where(table.c.id == name)).first()


def _saved(row: Any) -> SavedQuery:
    with _readable():
        return SavedQuery(
            row.id, from_json(json.loads(row.query)), row.extra, datetime.fromisoformat(row.created)
        )


def _job(row: Any) -> Job:
    with _readable():
        return Job(
            row.id,
            row.owner,
            from_json(json.loads(row.query)),
            row.extra,
            JobState(row.state),
            row.progress,
            row.words,
            datetime.fromisoformat(row.created),
            None if row.finished is None else datetime.fromisoformat(row.finished),
        )


@contextmanager
def _readable() -> Iterator[None]:
    """Report a row that this version did not write: a damaged database, or that of another version."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, Mistakes):
        problem = Problem("store", "rows", UNREADABLE, "restore the database from a backup")
        raise DatabaseUnavailable(problem) from None
