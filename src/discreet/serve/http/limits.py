"""Rate limits, and the bounded worker pool."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from math import ceil
from threading import Lock
from typing import TypeVar

from discreet.serve.http.problems import HttpProblem, retry_after
from discreet.serve.http.settings import Limits, RateLimit
from discreet.text.phrase import phrase

T = TypeVar("T")
MOST_USERS = 50_000  # whose rates are stored; the least recently active is evicted first

Clock = Callable[[], float]


class Rates:
    """A token bucket for each user."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # user -> (left, when)
        self._lock = Lock()

    def take(self, user: str, limit: RateLimit) -> None:
        """Let a request pass, or raise a problem with the time to retry."""
        wait = self._taken(user, limit, 1.0)
        if wait:
            message = phrase(
                "More than {calls} requests in {seconds} seconds.", calls=limit.calls, seconds=limit.seconds
            )
            raise HttpProblem(429, message, kind="rate", headers=retry_after(wait))

    def work(self, user: str, limit: RateLimit, seconds: float) -> None:
        """Let work of so many seconds pass, or raise a problem with the time to retry."""
        if seconds > limit.calls:
            message = phrase(
                "The table would take about {need} seconds; {most} are allowed. "
                "Write a shorter filter, or take fewer axes.",
                need=ceil(seconds),
                most=limit.calls,
            )
            raise HttpProblem(403, message, kind="work")
        wait = self._taken(f"{user} work", limit, seconds)
        if wait:
            message = phrase("Your tables of the last minute took too long; wait before you request more.")
            raise HttpProblem(429, message, kind="rate", headers=retry_after(wait))

    def _taken(self, user: str, limit: RateLimit, amount: float) -> int:
        """Take an amount; return 0, or the seconds after which it will be there."""
        now, speed = self._clock(), limit.calls / limit.seconds
        with self._lock:
            left, then = self._buckets.pop(user, (float(limit.calls), now))
            left = min(float(limit.calls), left + (now - then) * speed)
            self._buckets[user] = (left - amount if left >= amount else left, now)
            while len(self._buckets) > MOST_USERS:
                self._buckets.popitem(last=False)
        return 0 if left >= amount else max(1, ceil((amount - left) / speed))


class WorkerPool:
    """Bounded worker pool in which users take turns: ``running`` answers at once, ``waiting`` queued, 503 beyond."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pool = ThreadPoolExecutor(limits.running, thread_name_prefix="answer")
        self._turns: OrderedDict[str, deque[Callable[[], None]]] = (
            OrderedDict()
        )  # user -> what waits, next first
        self._pending: Counter[str] = Counter()
        self._lock = Lock()

    @property
    def pending(self) -> int:
        """The number of answers that are computed or queued."""
        return self._pending.total()

    async def run(self, work: Callable[[], T], user: str = "") -> T:
        """Run ``work`` in the pool; a full queue, a user's full share or a timeout is a problem with the time to retry.

        Short work that no user can make long needs no ``user``; it has a turn of its own, and no share.
        """
        return await self.wait(self._queued(work, user))

    async def wait(self, future: Future[T]) -> T:
        """Wait for what another thread does; a timeout is a problem with the time to retry."""
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            # work that has begun goes on and counts as pending until it is done
            future.cancel()
            message = phrase("The table took too long; request a smaller one or a background job.")
            raise self._busy(message) from None

    def _queued(self, work: Callable[[], T], user: str) -> Future[T]:
        future: Future[T] = Future()
        places = self._limits.running + self._limits.waiting
        share = max(1, places // self._limits.share)
        with self._lock:
            if self.pending >= places:
                raise self._busy(phrase("Too many tables are requested at once."))
            if user and self._pending[user] >= share:
                message = phrase("You have {share} tables in the queue; wait for one of them.", share=share)
                raise HttpProblem(429, message, kind="rate", headers=retry_after(self._limits.retry))
            self._pending[user] += 1
            self._turns.setdefault(user, deque()).append(lambda: _work(future, work))
        future.add_done_callback(lambda _: self._done(user))
        self._pool.submit(self._next)
        return future

    def _next(self) -> None:
        """Do the first work of the user whose turn it is; the user's other work waits for all others' turns."""
        with self._lock:
            user, waiting = self._turns.popitem(last=False)
            work = waiting.popleft()
            if waiting:
                self._turns[user] = waiting
        work()

    def close(self) -> None:
        """Accept no more work."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _done(self, user: str) -> None:
        with self._lock:
            self._pending[user] -= 1
            if not self._pending[user]:
                del self._pending[user]

    def _busy(self, message: str) -> HttpProblem:
        return HttpProblem(503, message, kind="busy", headers=retry_after(self._limits.retry))


def _work(future: Future[T], work: Callable[[], T]) -> None:
    """Do the work of a future, unless it was cancelled."""
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)
