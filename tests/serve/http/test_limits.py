"""The worker pool: bounded, answers 503 with a time to retry beyond its limits, and recovers."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import httpx
import pytest
from httpx import Client, Response

from discreet.serve.answer import Answer, Refusal
from discreet.serve.http import app
from discreet.serve.http.app import create_app
from discreet.serve.http.limits import WorkerPool
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.settings import Limits, RateLimit
from discreet.serve.open import TableBuilder
from discreet.serve.query import Query
from tests.serve.http.conftest import OFTEN, Web, running, settings_in
from tests.serve.http.test_native import problem
from tests.waiting import PATIENCE, until


async def waiting(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


def test_work_beyond_the_limit_is_sent_away_and_later_work_is_done() -> None:
    async def scene() -> None:
        pool, go = WorkerPool(Limits(running=1, waiting=1)), threading.Event()
        pending = [asyncio.create_task(pool.run(go.wait)) for _ in range(2)]
        await waiting(lambda: pool.pending == 2)
        with pytest.raises(HttpProblem) as found:
            await pool.run(go.wait)
        assert (found.value.status, found.value.headers["Retry-After"]) == (503, "2")
        go.set()
        assert await asyncio.gather(*pending) == [True, True]
        assert await pool.run(lambda: 7) == 7
        pool.close()

    asyncio.run(scene())


def test_work_that_takes_too_long_is_answered_and_keeps_its_place_until_it_is_done() -> None:
    async def scene() -> None:
        pool, go = WorkerPool(Limits(running=1, waiting=0, seconds=0.05)), threading.Event()
        with pytest.raises(HttpProblem) as found:
            await pool.run(go.wait)
        assert "too long" in found.value.detail
        with pytest.raises(HttpProblem):
            await pool.run(lambda: 7)
        go.set()
        await waiting(lambda: pool.pending == 0)
        pool._limits = Limits(running=1, waiting=0)
        assert await pool.run(lambda: 7) == 7
        pool.close()

    asyncio.run(scene())


def test_users_take_turns_and_one_has_only_a_share_of_the_queue() -> None:
    async def scene() -> None:
        pool, go, done = WorkerPool(Limits(running=1, waiting=7, share=2)), threading.Event(), list[str]()

        def work(name: str) -> None:
            go.wait(PATIENCE)
            done.append(name)

        def ask(name: str) -> asyncio.Task[None]:
            return asyncio.create_task(pool.run(lambda: work(name), name[0]))

        first = [ask(f"a{n}") for n in range(4)]
        await waiting(lambda: pool.pending == 4)
        with pytest.raises(HttpProblem) as found:
            await ask("a4")
        assert (found.value.status, found.value.kind) == (429, "rate")
        others = [ask(name) for name in ("b0", "b1", "c0")]
        await waiting(lambda: pool.pending == 7)
        go.set()
        await asyncio.gather(*first, *others)
        assert done == ["a0", "a1", "b0", "c0", "a2", "b1", "a3"]
        pool.close()

    asyncio.run(scene())


def test_the_seconds_of_an_answer_are_limited_before_it_is_computed(web: Web, builder: TableBuilder) -> None:
    class Costly:
        catalogue = builder.catalogue
        prepare = builder.prepare
        ask_at_once = builder.ask_at_once
        ask = builder.ask
        cost = 45.0

        def seconds(self, query: Query) -> float:
            return self.cost

    costly = Costly()
    client = web(costly, limits=Limits(public=OFTEN, work=RateLimit(60, 60)))

    def asked(variable: str) -> Response:
        return client.post("/api/v1/table", json={"axes": [variable], "where": 'AGE == "Y_LT15"'})

    assert asked("SEX").status_code == 200
    late = asked("AGE.L")
    assert problem(late, 429)["type"] == "/problems/rate"
    assert 20 <= int(late.headers["retry-after"]) <= 30
    costly.cost = 61.0
    assert "take about 61 seconds" in str(problem(asked("CAS.H"), 403)["detail"])


def test_estimates_grow_with_the_steps_of_a_filter(builder: TableBuilder) -> None:
    plain = builder.seconds(Query("persons", ()))
    codes = builder.catalogue.variables["AGE"].codelist.leaf_codes
    few, many = (
        Query("persons", (), " or ".join(f'(AGE == "{code}" and SEX == "1")' for code in codes[:number]))
        for number in (2, 30)
    )
    assert plain < builder.seconds(few) < builder.seconds(many) / 10
    assert isinstance(builder.ask(few, "u"), Answer)
    assert builder.seconds(few) == 0  # from the cache


def test_an_overloaded_server_answers_503_with_a_time_and_recovers(web: Web, builder: TableBuilder) -> None:
    go = threading.Event()

    class Slow:
        catalogue = builder.catalogue
        prepare = builder.prepare
        ask_at_once = builder.ask_at_once
        seconds = builder.seconds

        def ask(self, query: Query, user: str, *, job: bool = False) -> Answer | Refusal:
            go.wait(PATIENCE)
            return builder.ask(query, user, job=job)

    client = web(Slow(), limits=Limits(running=1, waiting=2, share=1, seconds=PATIENCE, public=OFTEN))

    def asked(_number: int) -> int:
        with Client(base_url=client.base_url, timeout=PATIENCE, verify=False) as one:
            answer = one.post("/api/v1/table", json={"axes": ["SEX"], "where": 'AGE == "Y_LT15"'})
        if answer.status_code == 503:
            assert problem(answer, 503)["type"] == "/problems/busy"
            assert int(answer.headers["retry-after"]) >= 1
        return answer.status_code

    with ThreadPoolExecutor(8) as pool:
        running = [pool.submit(asked, number) for number in range(8)]
        until(lambda: sum(one.done() for one in running) >= 5)
        assert client.get("/health").status_code == 200
        assert client.get("/api/v1/catalogue").status_code == 200
        go.set()
        statuses = sorted(one.result() for one in running)
    assert statuses == [200] * 3 + [503] * 5
    assert asked(0) == 200


def test_a_server_answers_while_it_prepares_and_ends_that_work_when_it_ends(
    builder: TableBuilder, tmp_path: Path
) -> None:
    done: list[str] = []

    class Preparing:
        catalogue = builder.catalogue
        ask = builder.ask

        def prepare(self, stopped: Callable[[], bool]) -> None:
            until(stopped)
            done.append("prepared")

    with running(create_app(cast("TableBuilder", Preparing()), settings_in(tmp_path))) as address:
        assert httpx.get(f"{address}/health", timeout=PATIENCE).status_code == 200
        assert done == []
    assert done == ["prepared"], "compiled code must not run while the interpreter ends"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a priority is that of all threads")
def test_files_of_the_page_are_prepared_at_a_lower_priority_than_answers(
    builder: TableBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, int] = {}

    class Preparing:
        catalogue = builder.catalogue
        ask = builder.ask

        def prepare(self, stopped: Callable[[], bool]) -> None:
            seen["cells"] = os.getpriority(os.PRIO_PROCESS, 0)

    def prepare_page(stopped: Callable[[], bool]) -> None:
        seen["page"] = os.getpriority(os.PRIO_PROCESS, 0)

    monkeypatch.setattr(app, "prepare_page", prepare_page)
    monkeypatch.setattr(app, "vega_bundle", lambda: b"")
    before = os.getpriority(os.PRIO_PROCESS, 0)
    served = create_app(cast("TableBuilder", Preparing()), settings_in(tmp_path), charts=True)
    with running(served) as address:
        assert httpx.get(f"{address}/health", timeout=PATIENCE).status_code == 200
        until(lambda: "page" in seen)
    assert seen == {"cells": before, "page": min(19, before + 10)}
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
