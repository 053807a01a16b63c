"""Background jobs: made by a worker, told with progress, kept for their owner; saved queries: kept for everybody."""

import io
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from httpx import Client

from discreet.serve.http.jobs import JobWorker
from discreet.serve.http.settings import Limits
from discreet.serve.http.tokens import Role, create_token
from discreet.serve.jobs_store import JobState, Store
from discreet.serve.open import TableBuilder
from tests.serve.conftest import cells, query
from tests.serve.http.conftest import OFTEN, Web
from tests.serve.http.test_native import problem
from tests.serve.http.test_security import bearer
from tests.waiting import until

Ruled = Callable[..., TableBuilder]
LARGE = {"axes": ["GEO.M", "SEX", "AGE.M"]}


def finished(client: Client, path: str, **headers: Any) -> Any:
    def ended() -> Any:
        said = client.get(path, **headers).json()
        return said if said["state"] in ("done", "failed") else None

    return until(ended)


def test_a_large_table_is_made_in_the_background(web: Web, ruled: Ruled, tmp_path: Path) -> None:
    token = create_token(tmp_path / "t.json", "ann", Role.PUBLIC, "")
    builder = ruled(cells=10)
    client = web(builder, tokens=tmp_path / "t.json")
    problem(client.post("/api/v1/table", json=LARGE), 403)
    assert client.post("/api/v1/preview", json=LARGE).json()["needs_job"]
    made = client.post("/api/v1/jobs", json={"query": LARGE, "format": "parquet"})
    assert made.status_code == 202
    path = made.headers["location"]
    said = finished(client, path)
    assert (said["state"], said["progress"]) == ("done", 1.0)
    answer = client.get(said["result"])
    assert answer.headers["content-type"] == "application/vnd.apache.parquet"
    assert answer.headers["content-disposition"].endswith('.parquet"')
    values = pq.read_table(io.BytesIO(answer.content))["value"].to_pylist()
    assert values == list(cells(builder.ask(query(*LARGE["axes"]), "u", job=True)).values())
    problem(client.get(path, headers=bearer(token)), 404)
    problem(client.get(f"{path}/result", headers=bearer(token)), 404)


def test_jobs_are_listed_for_those_with_a_token_since_others_share_an_address(
    web: Web, tmp_path: Path
) -> None:
    token = create_token(tmp_path / "t.json", "ann", Role.PUBLIC, "")
    client, asked = web(tokens=tmp_path / "t.json"), {"query": {"axes": ["SEX"]}}
    assert client.post("/api/v1/jobs", json=asked).status_code == 202
    assert client.get("/api/v1/jobs").json()["jobs"] == []
    mine = client.post("/api/v1/jobs", json=asked, headers=bearer(token)).json()
    listed = client.get("/api/v1/jobs", headers=bearer(token)).json()["jobs"]
    assert [one["id"] for one in listed] == [mine["id"]]


def test_a_job_that_the_rules_refuse_is_refused_at_once(web: Web, ruled: Ruled) -> None:
    client = web(ruled(cells=5, job_cells=10))
    assert problem(client.post("/api/v1/jobs", json={"query": LARGE}), 403)["rule"] == "cells"
    problem(client.post("/api/v1/jobs", json={"query": {"axes": ["X"]}}), 400)
    problem(client.post("/api/v1/jobs", json={"query": LARGE, "format": "doc"}), 400)
    problem(client.get("/api/v1/jobs/abc"), 404)


def test_a_user_has_only_so_many_unfinished_jobs(
    web: Web, builder: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobWorker, "start", lambda _self: None)
    monkeypatch.setattr(JobWorker, "stop", lambda _self: None)
    client = web(builder, limits=Limits(jobs=2, public=OFTEN))
    first = client.post("/api/v1/jobs", json={"query": LARGE})
    assert client.post("/api/v1/jobs", json={"query": LARGE}).status_code == 202
    assert client.post("/api/v1/jobs", json={"query": LARGE}).status_code == 429
    waiting = client.get(f"{first.headers['location']}/result")
    problem(waiting, 409)
    assert waiting.headers["retry-after"]


def test_a_job_is_given_up_by_its_owner_alone(
    web: Web, builder: TableBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = create_token(tmp_path / "t.json", "ann", Role.PUBLIC, "")
    monkeypatch.setattr(JobWorker, "start", lambda _self: None)
    monkeypatch.setattr(JobWorker, "stop", lambda _self: None)
    client = web(builder, tokens=tmp_path / "t.json", limits=Limits(jobs=1, public=OFTEN))
    path = client.post("/api/v1/jobs", json={"query": LARGE}).headers["location"]
    problem(client.delete(path, headers=bearer(token)), 404)
    assert client.get(path).json()["state"] == "queued"
    wanted = {"Origin": "https://other.example", "Access-Control-Request-Method": "DELETE"}
    assert client.options(path, headers=wanted).status_code == 200
    assert client.delete(path).status_code == 204
    problem(client.get(path), 404)
    problem(client.get(f"{path}/result"), 404)
    problem(client.delete(path), 404)
    assert client.post("/api/v1/jobs", json={"query": LARGE}).status_code == 202


def test_a_worker_makes_no_file_of_a_job_that_was_given_up_and_goes_on(
    builder: TableBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "s.sqlite", lambda: datetime.now(UTC))
    given_up = store.add_job("ann", query("SEX"), '{"format": "csv"}')
    ask, asked = builder.ask, []

    def dropping(*args: Any, **named: Any) -> Any:
        asked.append(store.drop_job(given_up.id))
        return ask(*args, **named)

    monkeypatch.setattr(builder, "ask", dropping)
    worker = JobWorker(builder, store, Limits())
    worker.start()
    try:
        until(lambda: asked)
        after = store.add_job("ann", query("EDU"), '{"format": "csv"}')
        worker.wake()
        until(lambda: (found := store.job(after.id)) and found.state is JobState.DONE)
    finally:
        worker.stop()
    assert [job.id for job in store.jobs("ann")] == [after.id]
    assert store.result(given_up.id) is None


def test_results_are_forgotten_after_their_days(web: Web, builder: TableBuilder) -> None:
    client = web(builder, limits=Limits(job_days=0, public=OFTEN))
    path = client.post("/api/v1/jobs", json={"query": {"axes": ["SEX"]}}).headers["location"]
    until(lambda: client.get(f"{path}/result").status_code == 404)
    assert "limited time" in str(problem(client.get(f"{path}/result"), 404)["detail"])


def test_a_finished_job_can_be_opened_as_a_table(web: Web, ruled: Ruled) -> None:
    builder = ruled(cells=10)
    client = web(builder)
    made = client.post("/api/v1/jobs", json={"query": LARGE, "format": "json-stat"})
    said = finished(client, made.headers["location"])
    dataset = client.get(said["result"]).json()
    assert (dataset["class"], dataset["id"]) == ("dataset", ["GEO", "SEX", "AGE"])
    assert dataset["value"] == list(cells(builder.ask(query(*LARGE["axes"]), "u", job=True)).values())


def test_a_job_is_laid_out_as_its_body_says_and_refused_where_it_cannot_be(web: Web) -> None:
    client = web()
    asked = {"axes": ["SEX", "AGE.L"]}

    def submitted(**layout: Any) -> Any:
        return client.post("/api/v1/jobs", json={"query": asked, "format": "csv", "layout": layout})

    taken = submitted(columns=["SEX"], texts="codes", percent="row", counts=True)
    said = finished(client, taken.headers["location"])
    ways = {"columns": "SEX", "texts": "codes", "percent": "row", "counts": "true", "format": "csv"}
    assert client.get(said["result"]).text == client.post("/api/v1/table", json=asked, params=ways).text
    told = problem(submitted(columns=["EDU"]), 400)
    assert told["detail"] == "columns: EDU is no axis of the table; it has SEX, AGE."


def test_a_worker_takes_up_what_a_killed_one_left_and_goes_on_after_failures(
    builder: TableBuilder, tmp_path: Path
) -> None:
    store = Store(tmp_path / "s.sqlite", lambda: datetime.now(UTC))
    left = store.add_job("ann", query("SEX"), '{"format": "csv"}')
    assert store.claim_job("killed", -1.0) is not None
    unknown = store.add_job("ann", query("NONE"), '{"format": "csv"}')
    broken = store.add_job("ann", query("SEX"), '{"format": "none"}')
    last = store.add_job("ann", query("EDU"), '{"format": "json-stat"}')
    worker = JobWorker(builder, store, replace(Limits(), job_lease=5.0))
    worker.start()
    try:
        until(lambda: all(job.state in (JobState.DONE, JobState.FAILED) for job in store.jobs("ann")))
    finally:
        worker.stop()
    found = {job.id: job for job in store.jobs("ann")}
    assert found[left.id].state is JobState.DONE
    assert (store.result(left.id) or b"").startswith(b"text/csv; charset=utf-8\n")
    assert "unknown variable" in found[unknown.id].message
    assert found[broken.id].message == "Internal server error; it has been logged."
    assert found[last.id].state is JobState.DONE


def test_a_saved_query_has_a_permanent_link(client: Client) -> None:
    body = {
        "query": {"axes": ["SEX", {"breakdown": "AGE.L", "codes": ["Y15-29", "_T"]}]},
        "extra": {"rows": ["SEX"]},
    }
    made = client.post("/api/v1/queries", json=body)
    assert made.status_code == 201
    said = made.json()
    assert client.post("/api/v1/queries", json=body).json() == said
    assert client.get(made.headers["location"]).json()["extra"] == {"rows": ["SEX"]}
    assert client.get(said["link"]).json() == client.get(said["table"]).json()
    assert client.get(said["link"]).json()["size"] == [3, 2]
    assert client.get(said["link"], params={"format": "csv", "columns": "SEX"}).text.count("\n") == 3
    page = client.get(said["link"], headers={"Accept": "text/html,*/*"})
    assert (page.status_code, page.headers["location"]) == (302, f"/?q={said['id']}")
    problem(client.get("/q/0123"), 404)
    problem(client.get("/q/NOT"), 400)
    problem(client.post("/api/v1/queries", json={"query": {"axes": ["X"]}}), 400)
    problem(client.post("/api/v1/queries", json={**body, "extra": {"x": "y" * 30_000}}), 413)
