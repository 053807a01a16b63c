"""What a server must not lose: saved queries, background jobs and what users have collected.

It owns the tables of that database (SQLite, or PostgreSQL where several workers share it); every write is on disk when
a method returns. No true count, no secret and no record is ever in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from discreet.serve.query import Query

Clock = Callable[[], datetime]


class JobState(StrEnum):
    """Where a background job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"  # with words for the user


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
    extra: str  # the caller's own JSON text, such as the wanted format
    state: JobState
    progress: float  # 0 to 1
    words: str  # why it failed
    created: datetime
    finished: datetime | None


class Store:
    """The database of a table builder; safe for threads, processes, and processes that are killed."""

    def __init__(self, where: str | Path, clock: Clock) -> None:
        raise NotImplementedError

    def save_query(self, query: Query, extra: str = "") -> SavedQuery:
        """Keep a question for ever; the same question and extra have the same id."""
        raise NotImplementedError

    def saved_query(self, name: str) -> SavedQuery | None:
        """A kept question."""
        raise NotImplementedError

    def add_job(self, user: str, query: Query, extra: str = "") -> Job:
        """Queue a job."""
        raise NotImplementedError

    def claim_job(self, worker: str, seconds: float) -> Job | None:
        """Take the oldest job that waits, or whose worker has not been heard of for its lease; None where none does."""
        raise NotImplementedError

    def tell_progress(self, name: str, worker: str, progress: float, seconds: float) -> bool:
        """Renew the lease and say how far a job is; False where another worker has it by now."""
        raise NotImplementedError

    def finish_job(self, name: str, worker: str, result: bytes) -> None:
        """Keep the result of a job (bytes that the caller can read again); ignored where another worker has it."""
        raise NotImplementedError

    def fail_job(self, name: str, worker: str, words: str) -> None:
        """Say why a job has no result."""
        raise NotImplementedError

    def job(self, name: str) -> Job | None:
        """A job."""
        raise NotImplementedError

    def jobs(self, user: str) -> tuple[Job, ...]:
        """The jobs of a user, newest first."""
        raise NotImplementedError

    def result(self, name: str) -> bytes | None:
        """The result of a finished job."""
        raise NotImplementedError

    def drop_results(self, before: datetime) -> int:
        """Forget the jobs that finished before a moment; return how many."""
        raise NotImplementedError
