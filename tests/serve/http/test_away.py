"""Books that go away while the server runs, and return: 503 meanwhile, nothing lost; wrong ones told at the start."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from httpx import Client

from discreet.errors import DatabaseUnavailable, Problem
from discreet.io.store import Book, Database, Journal, lay_out
from discreet.programme.programme import Programme
from discreet.programme.serve import HistoryRule, ServeRule
from discreet.release.reader import Release
from discreet.serve import jobs_store as stores
from discreet.serve.http import jobs
from discreet.serve.http.app import create_app
from discreet.serve.http.settings import Limits, Settings
from discreet.serve.jobs_store import JobState, Store
from discreet.serve.open import TableBuilder, serve_programme
from tests.cli.called import discreet
from tests.io.postgresql_server import Server
from tests.serve.conftest import SECRET, query
from tests.serve.http.conftest import OFTEN, running
from tests.serve.working import now
from tests.waiting import PATIENCE, until


@dataclass(frozen=True)
class Books:
    """A place for books that can be taken away and brought back."""

    where: str
    take_away: Callable[[], object]
    bring_back: Callable[[], object]


@pytest.fixture(params=["sqlite", "postgresql"])
def books(request: pytest.FixtureRequest, tmp_path: Path) -> Books:
    if request.param == "postgresql":
        server: Server = request.getfixturevalue("stoppable")
        return Books(server.uri, server.stop, server.start)
    file, elsewhere = tmp_path / "away.sqlite", tmp_path / "elsewhere"
    return Books(str(file), lambda: file.rename(elsewhere), lambda: elsewhere.rename(file))


@pytest.fixture
def client(books: Books, programme: Programme) -> Iterator[Client]:
    """Of a server over records whose users' histories are kept."""
    store = Store(books.where, now)
    ruled = replace(programme, serve=ServeRule(history=HistoryRule(difference=5)))
    settings = Settings(store, b"k" * 32, limits=Limits(public=OFTEN))
    with ExitStack() as opened:
        app = create_app(serve_programme(ruled, SECRET, store), settings)
        yield opened.enter_context(
            Client(base_url=opened.enter_context(running(app)), timeout=PATIENCE, verify=False)
        )


def test_books_that_go_away_and_return_lose_nothing(client: Client, books: Books) -> None:
    saved = client.post("/api/v1/queries", json={"query": {"axes": ["SEX"]}}).json()["link"]
    before = client.post("/api/v1/table", json={"axes": ["SEX", "EDU"]}).json()["value"]
    books.take_away()
    for answer in (
        client.post("/api/v1/queries", json={"query": {"axes": ["EDU"]}}),
        client.post("/api/v1/table", json={"axes": ["LOC", "EDU"]}),
        client.post("/api/v1/jobs", json={"query": {"axes": ["EDU"]}}),
        client.get(saved),
    ):
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert answer.json()["detail"] == "The server's database is unavailable; try again later."
        assert "value" not in answer.json(), "an answer that is not remembered does not leave"
        assert "127.0.0.1" not in answer.text
        assert "sqlite" not in answer.text
    until(lambda: client.get("/health").status_code == 503)
    books.bring_back()
    until(lambda: client.get("/health").status_code == 200)
    assert client.get(saved).status_code == 200
    assert client.post("/api/v1/table", json={"axes": ["SEX", "EDU"]}).json()["value"] == before
    assert client.post("/api/v1/table", json={"axes": ["LOC", "EDU"]}).status_code == 200
    assert client.post("/api/v1/queries", json={"query": {"axes": ["EDU"]}}).status_code in (200, 201)


def test_a_job_whose_books_went_away_is_taken_up_again(
    builder: TableBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "s.sqlite", now)
    job = store.add_job("ann", query("SEX"), '{"format": "csv"}')
    ask, asked = builder.ask, []

    def failing(*arguments: Any, **named: Any) -> Any:
        asked.append(True)
        if len(asked) == 1:
            raise DatabaseUnavailable(Problem("", "store", "is away", "try later"))
        return ask(*arguments, **named)

    monkeypatch.setattr(builder, "ask", failing)
    monkeypatch.setattr(jobs, "POLL", 0.05)
    worker = jobs.JobWorker(builder, store, Limits(job_lease=0.2))
    worker.start()
    try:
        until(lambda: store.result(job.id))
    finally:
        worker.stop()
    found = store.job(job.id)
    assert found is not None
    assert (found.state, len(asked)) == (JobState.DONE, 2)


def test_a_wrong_store_is_told_in_a_line_before_the_server_listens(release: Release, tmp_path: Path) -> None:
    foreign, newer = tmp_path / "foreign.sqlite", tmp_path / "newer.sqlite"
    foreign.write_bytes(b"GIF89a, and longer than a hundred bytes " * 20)
    lay_out(Database(newer, "store", Journal.AHEAD), Book("store", stores._tables, version=99))
    for place, said in (
        (foreign, "file is not a database"),
        (newer, "use the newer Discreet that wrote it"),
    ):
        found = discreet("serve", release.folder, "--store", place, "--port", "0")
        assert found.returncode == 2
        assert said in found.stderr
        assert len(found.stderr.strip().splitlines()) <= 2
        assert "Serving" not in found.stdout
