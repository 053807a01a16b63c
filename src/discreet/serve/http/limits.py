"""How much is taken on at once: rates of each user, and a bounded desk where answers are worked on.

It owns waiting and sending away; it knows nothing of what is asked.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from math import ceil
from threading import Lock
from typing import TypeVar

from discreet.serve.http.problems import HttpProblem, retry_after
from discreet.serve.http.settings import Limits, RateLimit
from discreet.words.phrase import phrase

T = TypeVar("T")
MOST_USERS = 50_000  # whose rates are remembered; the longest silent is forgotten first

Clock = Callable[[], float]


class Rates:
    """A bucket for each user: a request takes one from it, and time fills it again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # user -> (left, when)
        self._lock = Lock()

    def take(self, user: str, limit: RateLimit) -> None:
        """Let a request pass, or raise the problem that says when to come again."""
        now, speed = self._clock(), limit.calls / limit.seconds
        with self._lock:
            left, then = self._buckets.pop(user, (float(limit.calls), now))
            left = min(float(limit.calls), left + (now - then) * speed)
            self._buckets[user] = (left - 1 if left >= 1 else left, now)
            while len(self._buckets) > MOST_USERS:
                self._buckets.popitem(last=False)
        if left < 1:
            words = phrase(
                "More than {calls} requests in {seconds} seconds.", calls=limit.calls, seconds=limit.seconds
            )
            raise HttpProblem(429, words, kind="rate", headers=retry_after(max(1, ceil((1 - left) / speed))))


class Desk:
    """Works on a few answers at once and lets some wait; more are sent away at once."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pool = ThreadPoolExecutor(limits.running, thread_name_prefix="answer")
        self._held = 0
        self._lock = Lock()

    @property
    def held(self) -> int:
        """How many answers are worked on or waited for."""
        return self._held

    async def run(self, work: Callable[[], T]) -> T:
        """Do some work in its turn; too much of it, or too long, is a problem with a time to come again."""
        with self._lock:
            if self._held >= self._limits.running + self._limits.waiting:
                raise self._busy(phrase("Too many tables are asked for at once."))
            self._held += 1
        future = self._pool.submit(work)
        future.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._limits.seconds)
        except TimeoutError:
            # work that has begun goes on and keeps its place at the desk until it is done
            future.cancel()
            words = phrase("The table took too long; ask for a smaller one or for a background job.")
            raise self._busy(words) from None

    def close(self) -> None:
        """Take no more work."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _done(self, _future: Future[T]) -> None:
        with self._lock:
            self._held -= 1

    def _busy(self, words: str) -> HttpProblem:
        return HttpProblem(503, words, kind="busy", headers=retry_after(self._limits.retry))
