"""What an operator may set of the server; it owns the defaults, and nothing of what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from discreet.serve.store import Store


@dataclass(frozen=True)
class RateLimit:
    """So many requests in so many seconds, for each user."""

    calls: int
    seconds: int


@dataclass(frozen=True)
class Limits:
    """What one request, one user and all of them together may take."""

    body: int = 1 << 20  # bytes of a request
    kept_body: int = 1 << 18  # bytes of a request to keep something
    body_seconds: float = 20.0  # in which a request must have arrived
    seconds: float = 60.0  # of an answer
    running: int = 2  # answers that are worked on at once
    waiting: int = 64  # answers that wait for their turn; more are sent away
    kept: int = 128 << 20  # bytes of answers that are kept to be sent again
    retry: int = 2  # seconds after which those may come again
    public: RateLimit = RateLimit(100, 10)
    trusted: RateLimit = RateLimit(1_000, 10)
    keeping: RateLimit = RateLimit(200, 3_600)  # saved queries and jobs of a public user
    jobs: int = 5  # unfinished jobs of a public user
    trusted_jobs: int = 50
    results: int = 10 << 30  # bytes of all results of jobs; the oldest make room
    job_days: int = 28  # results of jobs are kept so long
    job_lease: float = 60.0  # seconds after which a silent worker's job is taken over


@dataclass(frozen=True)
class Settings:
    """How a table builder is served."""

    store: Store
    user_key: bytes  # names of anonymous users are made from their addresses with it
    tokens: Path | None = None  # file of API tokens
    tokens_only: bool = False  # whether tables are for those who have a token
    limits: Limits = Limits()
    origins: tuple[str, ...] = ("*",)  # of pages elsewhere that may read answers
    language: str = "en"  # of the labels, and of words to those who ask for none
    log_queries: bool = False  # whether the access log holds what was asked for
    geometry: Path | None = None  # GeoJSON of the areas, for maps
