"""Plain questions: read as the routes read them, answered with the same bytes, and at once where they are short."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from httpx import Client, Response
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry import trace
from pydantic import ValidationError

from discreet.release.reader import Release
from discreet.serve.http.api import QueryBody
from discreet.serve.http.app import create_app
from discreet.serve.http.plain import _read
from discreet.serve.http.settings import Limits
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_release
from tests.serve.http.conftest import OFTEN, running, settings_in
from tests.waiting import PATIENCE, until

ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just("SEX"),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=2),
    max_leaves=4,
)
AXIS = st.fixed_dictionaries({"breakdown": ODD}, optional={"codes": ODD, "groups": ODD, "more": ODD})
QUERY = st.fixed_dictionaries(
    {},
    optional={
        "axes": st.lists(AXIS | ODD, max_size=3) | ODD,
        "unit": ODD,
        "where": ODD,
        "count": ODD,
        "x": ODD,
    },
)


@given(content=QUERY | ODD, spoilt=st.sampled_from(["", " ", "}", "\x00", "\ufeff"]), at_start=st.booleans())
@settings(deadline=None, max_examples=300)
def test_a_question_is_read_as_the_route_reads_it_or_not_at_all(
    content: Any, spoilt: str, at_start: bool
) -> None:
    text = json.dumps(content)
    text = spoilt + text if at_start else text + spoilt
    found = _read(text.encode())
    try:
        expected = QueryBody.model_validate(json.loads(text)).query()
    except (ValidationError, ValueError):
        assert found is None
        return
    assert found == expected


@pytest.mark.parametrize(
    "body",
    [
        b'{"axes": ["SEX"]}',
        b'{"axes": [{"breakdown": "AGE.L", "codes": ["_T"]}], "unit": "persons"}',
        b'{"axes": ["NOSUCH"]}',
        b'{"axes": ["SEX"], "more": 1}',
        b'{"axes": "SEX"}',
        b'{"axes": ["SEX\\u0000"]}',
        b'{"axes": ["\\ud800"]}',
        b'{"axes": [',
        b"",
        b"\xff\xfe",
        '{"axes": ["SEX"]}'.encode("utf-16"),
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/plain", "Application/JSON; charset=utf-8", ""])
def test_both_ways_answer_alike(client: Client, body: bytes, kind: str) -> None:
    headers = {"Content-Type": kind} if kind else {}
    for language in ("en", "de"):
        sent = {**headers, "Accept-Language": language}
        plain = client.post("/api/v1/table", content=body, headers=sent)
        other = client.post("/api/v1/table?format=json-stat", content=body, headers=sent)
        assert shown(plain) == shown(other)


@pytest.mark.parametrize("text", ['{"axes":["SEX"]}', '{"axes":["NOSUCH"]}', "{", "", '{"unit":1}'])
def test_both_ways_answer_a_question_in_the_address_alike(client: Client, text: str) -> None:
    for more in ({}, {"lang": "de"}):
        plain = client.get("/api/v1/table", params={"query": text, **more})
        other = client.get("/api/v1/table", params={"query": text, "format": "json-stat", **more})
        assert shown(plain) == shown(other)
    twice = client.get("/api/v1/table", params=[("query", "{}"), ("query", text)])
    assert shown(twice) == shown(client.get("/api/v1/table", params={"query": text, "format": "json-stat"}))


def shown(answer: Response) -> tuple[int, bytes, dict[str, str]]:
    headers = {name: value for name, value in answer.headers.items() if name != "date"}
    return answer.status_code, answer.content, headers


def test_a_short_answer_of_a_release_does_not_wait_for_long_ones(
    release: Release, store: Store, tmp_path: Path
) -> None:
    builder = serve_release(release, store)
    builder.prepare()
    limits = Limits(running=1, waiting=0, public=OFTEN)
    app, go = create_app(builder, settings_in(tmp_path, limits=limits)), threading.Event()
    pool = app.state.service.pool
    with running(app) as address, Client(base_url=address, timeout=PATIENCE, verify=False) as client:
        asked = {"axes": ["SEX", "AGE.M"]}
        expected = client.post("/api/v1/table", params={"texts": "codes"}, json=asked)
        assert expected.status_code == 200
        pool._queued(lambda: go.wait(PATIENCE), "another")
        until(lambda: pool.pending == 1)
        other_order = {"axes": ["AGE.M", "SEX"]}
        assert client.post("/api/v1/table", json=other_order).status_code == 200
        assert client.post("/api/v1/table", params={"format": "csv"}, json=asked).status_code == 503
        assert client.post("/api/v1/table", json={"axes": ["NOSUCH"]}).status_code == 503
        go.set()
        until(lambda: pool.pending == 0)
        assert client.post("/api/v1/table", json={"axes": ["NOSUCH"]}).status_code == 400
        found = client.post("/api/v1/table", json=asked)
        assert (found.content, found.headers["etag"]) == (expected.content, expected.headers["etag"])


def test_no_telemetry_of_the_framework_sees_a_question(
    release: Release, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its traces would contain addresses, and so questions."""
    asked: list[str] = []

    class Provider(trace.TracerProvider):
        def get_tracer(self, *given: Any, **_named: Any) -> trace.Tracer:
            asked.append(repr(given))
            return trace.NoOpTracer()

    monkeypatch.setattr(trace, "get_tracer_provider", Provider)
    app = create_app(serve_release(release, store), settings_in(tmp_path))
    with running(app) as address, Client(base_url=address, timeout=PATIENCE, verify=False) as client:
        for more in ("", "&format=csv"):
            assert client.get(f'/api/v1/table?query={{"axes":["SEX"]}}{more}').status_code == 200
    assert asked == []
