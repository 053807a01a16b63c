"""Metrics for operators, in the format of Prometheus: how much, how fast, what was refused; never what was asked.

Routes are those of the program (``/api/v1/table``), not the paths of requests. With several workers the numbers of all
are added up, through the files of a folder that ``collected_over_processes`` names.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client when it is imported
SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS"})


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "discreet_requests", "Requests by route, method and status.", ["route", "method", "status"],
            registry=self._registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "discreet_request_seconds", "Time until the answer was sent.", ["route"],
            buckets=SECONDS, registry=self._registry,
        )  # fmt: skip
        self._refusals = Counter(
            "discreet_refusals", "Tables that a rule refused, by rule.", ["rule"], registry=self._registry
        )
        self._queue = Gauge(
            "discreet_queue", "Answers that are computed or queued.",
            registry=self._registry, multiprocess_mode="livesum",
        )  # fmt: skip
        self._cache = Counter(
            "discreet_file_cache", "Files taken from the cache (hit) or made (miss).", ["result"],
            registry=self._registry,
        )  # fmt: skip

        self._of = cache(self._labelled)  # routes are those of the program: few

    def _labelled(self, route: str, method: str, status: int) -> tuple[Counter, Histogram]:
        return self._requests.labels(route, method, str(status)), self._seconds.labels(route)

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one request."""
        known = method if method in METHODS else "other"
        counter, histogram = self._of(route, known, status)
        counter.inc()
        histogram.observe(seconds)

    def refused(self, rule: str) -> None:
        """Count a table that a rule refused."""
        self._refusals.labels(rule).inc()

    def cached(self, hit: bool) -> None:
        """Count a file that was cached, or not."""
        self._cache.labels("hit" if hit else "miss").inc()

    @contextmanager
    def queued(self) -> Iterator[None]:
        """Count an answer as long as it is computed or queued."""
        with self._queue.track_inprogress():
            yield

    def text(self) -> bytes:
        """All numbers; those of all workers, where there are several."""
        if FOLDER not in os.environ:
            return generate_latest(self._registry)
        _forget_ended(Path(os.environ[FOLDER]))
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)


def _forget_ended(folder: Path) -> None:
    """Remove what workers that have ended, killed or not, state of their queues; what they have counted stays."""
    for file in folder.glob("gauge_live*_*.db") if os.name == "posix" else ():  # elsewhere 0 is a signal, too
        try:
            os.kill(int(file.stem.rpartition("_")[2]), 0)
        except (ProcessLookupError, PermissionError):  # or another user's process has the number now
            file.unlink(missing_ok=True)


@contextmanager
def collected_over_processes() -> Iterator[None]:
    """Let the workers that are started in the block add up their numbers."""
    with tempfile.TemporaryDirectory(prefix="discreet-metrics-") as folder:
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER]
