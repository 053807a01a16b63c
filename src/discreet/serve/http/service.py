"""The service of every endpoint: the table builder, its database, the worker pool and the settings."""

from __future__ import annotations

import time
from asyncio import Lock, to_thread, wait_for
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from discreet.errors import DatabaseUnavailable
from discreet.serve.answer import Answer, Preview, Refusal
from discreet.serve.catalogue import Catalogue
from discreet.serve.http.downloads import File, file_cache
from discreet.serve.http.limits import Rates, WorkerPool
from discreet.serve.http.metrics import Metrics
from discreet.serve.http.problems import HttpProblem, Refused
from discreet.serve.http.security import Caller
from discreet.serve.http.settings import Settings
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder
from discreet.serve.query import Query
from discreet.serve.search import SearchIndex
from discreet.text.phrase import Language, phrase

T = TypeVar("T")


HEALTH_SECONDS = 1.0  # during which an answer about the database is repeated
HEALTH_WAIT = 5.0  # a database that takes longer is unavailable


class Health:
    """Whether the database answers; it is asked by one request at a time, and seldom."""

    def __init__(self, store: Store) -> None:
        self._store, self._well, self._until, self._turn = store, False, 0.0, Lock()

    async def is_well(self) -> bool:
        """Whether the database answered in the last second, or answers now."""
        async with self._turn:
            if time.monotonic() >= self._until:
                self._well = await self._answers()
                self._until = time.monotonic() + HEALTH_SECONDS
            return self._well

    async def _answers(self) -> bool:
        try:
            await wait_for(to_thread(self._store.database.look), HEALTH_WAIT)
        except (DatabaseUnavailable, TimeoutError):
            return False
        return True


class Service:
    """One table builder, as served."""

    def __init__(self, builder: TableBuilder, settings: Settings, pool: WorkerPool, rates: Rates) -> None:
        self.builder, self.settings, self.pool, self._rates = builder, settings, pool, rates
        rule = builder.catalogue.rule
        self._is_per_user = rule.account is not None or rule.history.is_guarded
        self._files = file_cache(settings.limits.cached)
        self._indices = {language: SearchIndex(builder.catalogue, language) for language in Language}
        self.metrics, self.health = Metrics(), Health(settings.store)

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of the source."""
        return self.builder.catalogue

    @property
    def store(self) -> Store:
        """The database of saved queries and jobs."""
        return self.settings.store

    def search(self, language: Language) -> SearchIndex:
        """What can be found in the catalogue, in a language."""
        return self._indices[language]

    async def file(
        self,
        caller: Caller,
        query: Query,
        way: Hashable,
        write: Callable[[Answer], File],
        *,
        light: bool = False,
    ) -> File:
        """Answer a question as a file, or take it from the cache where it was made before in the same ``way``.

        Where users are charged or have a history, only files of this user are taken: they were charged and stored.
        A file that is ``light`` to write is made at once where the answer is short, too: a thread would cost more, and
        threads that wait for each other as much again.
        """
        self.check(caller)  # before the cache, which has answers to others
        whose = caller.user if self._is_per_user else caller.role.value
        key = (whose, query, way, caller.language)
        file = self._files.get(key)
        self.metrics.cached(hit=file is not None)
        if file is None:
            made = await self._at_once(caller, query, write) if light else None
            if made is None:
                made = await self.answer(caller, query, write)
            file = replace(made, language=caller.language.value)
            self._files.put(key, file)
        return file

    async def _at_once(self, caller: Caller, query: Query, write: Callable[[Answer], File]) -> File | None:
        """A file that is made in this thread, and stored in the history before it is returned; None where it is not."""
        short = self.builder.ask_at_once(query, caller.user)
        if short is None:
            return None
        made = write(short.answer.in_language(caller.language))
        return made if short.stored is None or await self.pool.wait(short.stored) else None

    async def answer(self, caller: Caller, query: Query, write: Callable[[Answer], T]) -> T:
        """Answer a question and write the answer, both in the worker pool; a refusal raises ``Refused``."""
        with self.metrics.queued():
            return await self.pool.run(lambda: write(self.ask(caller, query)), caller.user)

    def ask(self, caller: Caller, query: Query) -> Answer:
        """Answer a question of a caller, in their language; trusted ones need no job for large tables."""
        self.check(caller)
        self._afford(caller, query)
        found = self.builder.ask(query, caller.user, job=caller.is_trusted)
        if isinstance(found, Refusal):
            self.metrics.refused(found.rule.value)
            raise Refused(found)
        return found.in_language(caller.language)

    def check(self, caller: Caller) -> None:
        """Raise the problem where tables need an API token and the caller has none."""
        if self.settings.tokens_only and not caller.is_known:
            message = phrase("An API token is required for tables.")
            raise HttpProblem(401, message, kind="token", headers={"WWW-Authenticate": "Bearer"})

    async def preview(self, caller: Caller, query: Query) -> Preview:
        """A preview of an answer."""
        return await self.pool.run(lambda: self._preview(caller, query), caller.user)

    async def preview_with_nearest(self, caller: Caller, query: Query) -> Preview:
        """The same, with the tables that would pass where it would be refused."""
        return await self.pool.run(
            lambda: self.builder.with_nearest(self._preview(caller, query), caller.user), caller.user
        )

    def _afford(self, caller: Caller, query: Query) -> None:
        """Raise the problem where the computing that a question needs is more than the caller may have."""
        limits = self.settings.limits
        limit = limits.trusted_work if caller.is_trusted else limits.work
        self._rates.work(caller.user, limit, self.builder.seconds(query))

    def _preview(self, caller: Caller, query: Query) -> Preview:
        self._afford(caller, query)
        found = self.builder.preview(query, caller.user)
        return replace(found, needs_job=found.needs_job and not caller.is_trusted)


async def service_of(request: Request) -> Service:
    """The service of the app that a request came to."""
    service: Service = request.app.state.service
    return service


async def caller_of(request: Request) -> Caller:
    """The caller of a request, set by ``Admission``."""
    caller: Caller = request.state.caller
    return caller


ServiceOf = Annotated[Service, Depends(service_of)]
CallerOf = Annotated[Caller, Depends(caller_of)]
