"""Metrics for operators: complete, for administrators only, and without counts or what was asked."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from httpx import Client

from discreet.release.reader import Release
from discreet.serve.http.metrics import Metrics, _forget_ended, collected_over_processes
from discreet.serve.http.tokens import Role, create_token
from tests.serve.http.conftest import Web
from tests.serve.http.test_killed import served, waited
from tests.serve.http.test_native import Ruled
from tests.waiting import PATIENCE, until

WORKER = """
from discreet.serve.http.metrics import Metrics
metrics = Metrics()
metrics.cached(hit=True)
metrics.answered("/api/v1/table", "POST", 200, 0.03)
metrics.refused("axes")
with metrics.queued():
    print("counted", flush=True)
    input()
"""


def test_metrics_count_requests_refusals_and_files_and_show_no_query(
    web: Web, ruled: Ruled, tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens.json"
    bearer = {"Authorization": f"Bearer {create_token(tokens, 'ann', Role.ADMIN, '')}"}
    client = web(ruled(axes=2), tokens=tokens)
    assert client.get("/metrics").status_code == 403
    before = client.get("/metrics", headers=bearer).text
    assert 'discreet_file_cache_total{result="hit"}' not in before
    for _ in range(2):
        assert client.post("/api/v1/table", json={"axes": ["SEX"]}).status_code == 200
    assert client.post("/api/v1/table", json={"axes": ["NOSUCHTHING"]}).status_code == 400
    assert client.get("/secret/place").status_code == 404
    assert client.post("/api/v1/table", json={"axes": ["SEX", "AGE.L", "EDU"]}).status_code == 403
    found = client.get("/metrics", headers=bearer).text
    assert 'discreet_requests_total{method="POST",route="/api/v1/table",status="200"} 2.0' in found
    assert 'discreet_requests_total{method="GET",route="-",status="404"} 1.0' in found
    assert 'discreet_request_seconds_count{route="/api/v1/table"} 4.0' in found
    assert 'discreet_refusals_total{rule="axes"} 1.0' in found
    assert 'discreet_file_cache_total{result="hit"} 1.0' in found
    assert "discreet_queue 0.0" in found
    assert not re.search("SEX|NOSUCHTHING|secret|ann", found)


def test_the_numbers_of_all_workers_are_added_up_and_only_living_ones_have_a_queue() -> None:
    with collected_over_processes():
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        try:
            for worker in workers:
                assert worker.stdout is not None
                assert worker.stdout.readline() == "counted\n"
            assert "discreet_queue 2.0" in Metrics().text().decode()
            workers[0].kill()
            workers[0].wait(PATIENCE)
            found = Metrics().text().decode()
        finally:
            for worker in workers:
                worker.kill()
                worker.communicate(timeout=PATIENCE)
    assert "discreet_queue 1.0" in found
    assert 'discreet_file_cache_total{result="hit"} 2.0' in found
    assert 'discreet_requests_total{method="POST",route="/api/v1/table",status="200"} 2.0' in found
    assert 'discreet_request_seconds_bucket{le="0.05",route="/api/v1/table"} 2.0' in found
    assert 'discreet_request_seconds_bucket{le="0.02",route="/api/v1/table"} 0.0' in found
    assert 'discreet_refusals_total{rule="axes"} 2.0' in found


@pytest.mark.parametrize("error", [ProcessLookupError, PermissionError])
def test_a_number_that_no_worker_has_is_forgotten_whoever_has_it_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    def asked(process: int, signal: int) -> None:
        assert signal == 0
        if process != 7:
            raise error

    monkeypatch.setattr(os, "kill", asked)
    for name in ("gauge_livesum_7.db", "gauge_livesum_8.db", "counter_8.db"):
        (tmp_path / name).touch()
    _forget_ended(tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["counter_8.db", "gauge_livesum_7.db"]


@pytest.mark.long
def test_each_worker_shows_the_metrics_of_all_and_whether_their_database_is_there(
    release: Release, tmp_path: Path
) -> None:
    tokens, store, log = tmp_path / "tokens.json", tmp_path / "store.sqlite", tmp_path / "log"
    bearer = {"Authorization": f"Bearer {create_token(tokens, 'ann', Role.ADMIN, '')}"}
    with served(release.folder, "--workers", 2, "--store", store, "--tokens", tokens, log=log) as (
        _,
        address,
    ):
        asked = 0

        def on_a_new_connection(method: str, path: str, **given: object) -> tuple[int, str]:
            with Client(base_url=address, timeout=PATIENCE, verify=False, headers=bearer) as client:
                answer = client.request(method, path, **given)  # type: ignore[arg-type]
            return answer.status_code, answer.text

        def both_have_answered() -> bool:
            nonlocal asked
            asked += 1
            assert on_a_new_connection("POST", "/api/v1/table", json={"axes": ["SEX"]})[0] == 200
            return len(set(re.findall(r"(\d+) discreet\.serve\.access POST", log.read_text()))) == 2

        with waited(address):
            until(both_have_answered)
        wanted = f'discreet_requests_total{{method="POST",route="/api/v1/table",status="200"}} {asked}.0'
        until(lambda: all(wanted in on_a_new_connection("GET", "/metrics")[1] for _ in range(6)))
        store.rename(tmp_path / "elsewhere")
        until(lambda: {on_a_new_connection("GET", "/health")[0] for _ in range(6)} == {503})
        (tmp_path / "elsewhere").rename(store)
        until(lambda: {on_a_new_connection("GET", "/health")[0] for _ in range(6)} == {200})
