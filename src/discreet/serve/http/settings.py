"""Settings of the server: what one request, one user and all of them together may take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from discreet.serve.jobs_store import Store


@dataclass(frozen=True)
class RateLimit:
    """At most ``calls`` requests in ``seconds`` seconds, for each user."""

    calls: int
    seconds: int


@dataclass(frozen=True)
class Limits:
    """What one request, one user and all of them together may take."""

    body: int = 1 << 20  # bytes of a request
    storing_body: int = 1 << 18  # bytes of a request that stores something
    body_seconds: float = 20.0  # in which a request must have arrived
    seconds: float = 60.0  # of an answer
    running: int = 2  # answers that are computed at once
    waiting: int = 64  # answers that wait for their turn; 503 beyond
    share: int = 4  # one user may have a 1/share of them, computed ones included
    work: RateLimit = RateLimit(
        60, 60
    )  # seconds of computing, as estimated, that a public user may have in how many
    trusted_work: RateLimit = RateLimit(600, 60)
    cached: int = 128 << 20  # bytes of answers that are cached
    retry: int = 2  # seconds after which rejected clients may retry
    public: RateLimit = RateLimit(100, 10)
    trusted: RateLimit = RateLimit(1_000, 10)
    storing: RateLimit = RateLimit(200, 3_600)  # saved queries and jobs of a public user
    jobs: int = 5  # unfinished jobs of a public user
    trusted_jobs: int = 50
    results: int = 10 << 30  # bytes of all results of jobs; the oldest make room
    job_days: int = 28  # days for which results of jobs are stored
    job_lease: float = 60.0  # seconds after which a silent worker's job is taken over


@dataclass(frozen=True)
class Settings:
    """How a table builder is served."""

    store: Store
    user_key: bytes  # key of the pseudonyms of anonymous users, made from their addresses
    tokens: Path | None = None  # file of API tokens
    tokens_only: bool = False  # whether tables need an API token
    limits: Limits = Limits()
    origins: tuple[str, ...] = ("*",)  # of other sites whose pages may read answers
    language: str = "en"  # of the labels, and the default of messages
    log_queries: bool = False  # whether the access log contains the questions
    geometry: Path | None = None  # GeoJSON of the areas, for maps
    hosts: tuple[str, ...] = ()  # names under which the server may be addressed; empty: any
