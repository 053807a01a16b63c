"""Plain questions are answered as by their routes: two servers, one of which reads them quickly, are compared header by
header and byte by byte, with what they log and count."""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from discreet.programme.programme import Programme
from discreet.programme.serve import HistoryRule, ServeRule
from discreet.release.reader import Release
from discreet.serve.http import app as application
from discreet.serve.http.app import create_app
from discreet.serve.http.limits import Rates
from discreet.serve.http.settings import Limits, RateLimit
from discreet.serve.http.tokens import Role, create_token
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder, serve_programme, serve_release
from tests.serve.conftest import NOON, SECRET
from tests.serve.http.conftest import running, settings_in
from tests.waiting import PATIENCE, until

Answered = tuple[int, dict[str, str], bytes]
SEX = '{"axes":["SEX"]}'
TABLE = f"/api/v1/table?query={quote(SEX)}"
IN_ADDRESS = [
    "", "query", "query=", "query=%", "query=%zz", "query=%00", "query=%FF%FE", "query=null", "query={", "query=[]",
    f"query={quote(SEX)}", f"query={SEX}", f"query=+{quote(SEX)}%0A", f"query=%EF%BB%BF{quote(SEX)}",
    f"%71uery={quote(SEX)}", f"Query={quote(SEX)}", f"query[]={quote(SEX)}", f"&query={quote(SEX)}&&",
    f"query={quote(SEX)};lang=de", f"query={quote(SEX)}&lang=de", f"lang=de&query={quote(SEX)}&lang=en",
    f"lang=&query={quote(SEX)}", f"lang=nosuch&query={quote(SEX)}", f"query={quote(SEX)}&l%61ng=de",
    f"query={{}}&query={quote(SEX)}", f"query={quote(SEX)}&query=", f"query={quote(SEX)}&query=%7B",
    f"query={quote(SEX)}&unknown=1", f"query={quote(SEX)}&=", f"query={quote(SEX)}&texts=codes",
    f"query={quote(SEX)}&format=csv", f"query={quote(SEX)}&format=", f"query={quote(SEX)}&format=nosuch",
    f"query={quote(SEX)}&ranges=true", f"query={quote(SEX)}&percent=nosuch", "format=json-stat", "lang=de",
    "query=" + quote('{"axes":["SEX"],"axes":["AGE.M"]}'), "query=" + quote('{"axes":["SEX"],"unit":1}'),
    "query=" + quote('{"axes":["NOSUCH"],"unit":"nosuch"}'), "query=" + quote('{"axes":["SEX","SEX"]}'),
    "query=" + quote('{"axes":[{"breakdown":"AGE.M","codes":["_T","_T","nosuch"]}]}'),
    "query=" + quote('{"axes":[{"breakdown":"SEX","groups":{"a":1,"a":["1"]}}]}'),
    "query=" + quote('{"axes":["SEX"],"where":" "}'), "query=" + quote('{"where":"nosuch == 1"}'),
    "query=" + quote('{"axes":["SEX"],"count":"nosuch"}'), "query=" + quote('{"where":"\\ud83d"}'),
    "query=" + quote('{"axes":' + "[" * 300 + "]" * 300 + "}"), "query=" + quote(json.dumps({"where": "x" * 20_000})),
]  # fmt: skip
PATHS = [
    "/api/v1/table/", "//api/v1/table", "/api/v1/t%61ble", "/api/v1/table%2F", "/API/v1/table", "/api/v1/./table",
    "http://127.0.0.1/api/v1/table",
]  # fmt: skip
BODIES = [
    SEX.encode(), b'{"axes": [{"breakdown": "AGE.L", "codes": ["_T"]}], "unit": "persons"}', b'{"axes": ["NOSUCH"]}',
    b'{"axes": ["SEX"], "more": 1}', b'{"axes": "SEX"}', b'{"axes": ["SEX\\u0000"]}', b'{"axes": ["\\ud800"]}',
    b'{"axes": [', b"", b"{}", b"null", b"\xff\xfe", b"\xef\xbb\xbf" + SEX.encode(), SEX.encode("utf-16"),
    SEX.encode() + b"\x00", b'{"axes":["SEX"],"axes":["AGE.M"]}', b'{"unit":1,"unit":"persons"}', b'{"where": NaN}',
    b'{"axes":[{"breakdown":"SEX","groups":{"a":1,"a":["1"]}}]}', b'{"axes": ["SEX", "AGE.M", "EDU", "GEO.L"]}',
]  # fmt: skip
KINDS = [
    "application/json", "text/plain", "Application/JSON; charset=utf-8", "application/json;charset=utf-16",
    "application/vnd.x+json", "application/jsonx", "",
]  # fmt: skip
TIMED = re.compile("^#|_created|_seconds_(sum|bucket)")
CONDITIONS = ["", "*", '"nosuch"', "{tag}", 'W/"nosuch", {tag}', "{bare}", "W/{bare}", "nosuch"]


@dataclass(frozen=True)
class Both:
    """Two servers over equal builders: one reads plain questions quickly, the other one by their routes."""

    addresses: tuple[str, str]
    quick: list[bool] = field(default_factory=list)  # of each answer that was made at once

    def ask(self, method: str, target: str, body: bytes | None = None, **headers: str) -> Answered:
        """Send the same to both, and compare what they answer."""
        plain, other = (_sent(one, method, target, body, headers) for one in self.addresses)
        assert plain == other, (method, target, body, headers)
        return plain


def _sent(
    address: str, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
) -> tuple[int, dict[str, str], bytes]:
    """Send exactly this, which a client of more comfort would correct."""
    connection = HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE)
    try:
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders() if name.lower() != "date"}
        return answer.status, found, answer.read()
    finally:
        connection.close()


class _PassedOn:
    """In the place of the quick way: everything goes on to the routes."""

    def __init__(self, app: Any, service: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)


@contextmanager
def both_ways(over: Callable[[], TableBuilder], folder: Path, **changed: Any) -> Iterator[Both]:
    """Two servers, each with a builder and a database of its own."""
    quick, usual, made = over(), over(), []
    found = Both(("", ""))
    at_once = quick.ask_at_once

    def noted(*given: Any) -> Any:
        answer = at_once(*given)
        found.quick.append(answer is not None)
        return answer

    with pytest.MonkeyPatch.context() as patched:
        for name, builder in (("quick", quick), ("usual", usual)):
            builder.prepare()
            patched.setattr(builder, "prepare", lambda _stopped: None)
            (folder / name).mkdir()
            made.append(create_app(builder, settings_in(folder / name, **changed)))
            patched.setattr(application, "PlainTables", _PassedOn)
        patched.setattr(quick, "ask_at_once", noted)
        patched.setattr(usual, "ask_at_once", lambda *_given: None)
        with running(made[0]) as one, running(made[1]) as other:
            yield Both((one, other), found.quick)


@pytest.fixture
def released(release: Release, store: Store) -> Callable[[], TableBuilder]:
    return lambda: serve_release(release, store)


@pytest.fixture(scope="module")
def both(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("both")
    store = Store(folder / "s.sqlite", lambda: NOON)
    with both_ways(lambda: serve_release(release, store), folder) as made:
        yield made
    assert any(made.quick)
    assert not all(made.quick)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_questions_in_odd_addresses(both: Both, method: str) -> None:
    assert {both.ask(method, f"/api/v1/table?{one}")[0] for one in IN_ADDRESS} == {200, 400}


def test_questions_beside_odd_addresses(both: Both) -> None:
    for one in IN_ADDRESS:
        for body in (SEX.encode(), b"", b"{"):
            both.ask("POST", f"/api/v1/table?{one}", body, Content_Type=KINDS[0])


def test_odd_paths_and_methods(both: Both) -> None:
    for path in PATHS:
        both.ask("GET", f"{path}?query={quote(SEX)}")
        both.ask("POST", path, SEX.encode(), Content_Type=KINDS[0])
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "get", "TRACE"):
        both.ask(method, TABLE)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_bodies_of_odd_kinds(both: Both, kind: str) -> None:
    headers = {"Content_Type": kind} if kind else {}
    for body in BODIES:
        for language in ("en", "de"):
            both.ask("POST", "/api/v1/table", body, Accept_Language=language, **headers)


@pytest.mark.parametrize("name", ["SEX", "AGE.M", "NOSUCH"])
def test_conditions_and_other_headers(both: Both, name: str) -> None:
    target = "/api/v1/table?query=" + quote(json.dumps({"axes": [name]}))
    tag = both.ask("GET", target)[1].get("etag", "")
    bare = tag.removeprefix("W/")
    found = {both.ask("GET", target, If_None_Match=one.format(tag=tag, bare=bare))[0] for one in CONDITIONS}
    assert found == ({400} if name == "NOSUCH" else {200, 304})
    for headers in (
        {"Accept_Encoding": "gzip"},
        {"Accept_Encoding": "gzip;q=0, identity"},
        {"Origin": "http://elsewhere.example"},
        {"Accept": "text/html"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer dsc_nosuch"},
        {"Authorization": "Basic YTpi"},
        {"Accept_Language": "de;q=x, *"},
        {"X_Forwarded_For": "1.2.3.4"},
        {"Range": "bytes=0-10"},
        {"Content_Type": KINDS[0]},
    ):
        both.ask("GET", target, None, **headers)


def test_tokens_and_rates(
    released: Callable[[], TableBuilder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        application, "Rates", lambda _clock: Rates(lambda: 1000.0)
    )  # seconds to wait are equal
    tokens = tmp_path / "tokens.json"
    bearer = f"Bearer {create_token(tokens, 'ann', Role.PUBLIC, '')}"
    few = Limits(public=RateLimit(4, 100_000))
    with both_ways(released, tmp_path, tokens=tokens, tokens_only=True, limits=few) as both:
        found = [both.ask("GET", TABLE, Authorization=bearer)[0] for _ in range(5)]
        assert found == [200, 200, 200, 200, 429]
        assert [both.ask("GET", TABLE)[0] for _ in range(5)] == [401, 401, 401, 401, 429]
        assert both.quick == [True]


def test_guards_and_rules(programme: Programme, tmp_path: Path) -> None:
    """What a history refuses, and a rule, with the warnings before."""
    rule = ServeRule(axes=2, history=HistoryRule(success=0.4, warn=0.2, difference=10))
    stores = (Store(tmp_path / f"{number}.sqlite", lambda: NOON) for number in range(2))

    def guarded() -> TableBuilder:
        return serve_programme(replace(programme, serve=rule), SECRET, next(stores))

    asked: list[dict[str, Any]] = [{"axes": ["SEX", "AGE.M", "EDU"]}]
    for one, other in combinations(("SEX", "AGE.M", "EDU", "GEO.L", "OCC"), 2):
        asked += ({"axes": [one, other]}, {"axes": [one], "where": f'{other.partition(".")[0]} != "1"'})
    with both_ways(guarded, tmp_path) as both:
        found = [
            both.ask("POST", "/api/v1/table", json.dumps(one).encode(), Content_Type=KINDS[0])
            for one in asked
        ]
        assert any(both.quick), "of all records, from the second on"
        assert not all(both.quick)
    assert {status for status, _, _ in found} == {200, 400, 403}
    assert {json.loads(body)["rule"] for status, _, body in found if status == 403} == {"axes", "history"}
    assert any(b"probability above 0.2" in body for status, _, body in found if status == 200)


@pytest.mark.parametrize("log_queries", [False, True])
def test_logs_and_metrics(
    released: Callable[[], TableBuilder],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    log_queries: bool,
) -> None:
    tokens = tmp_path / "tokens.json"
    bearer = f"Bearer {create_token(tokens, 'ann', Role.ADMIN, '')}"
    caplog.set_level(logging.INFO, "discreet.serve.access")
    with both_ways(released, tmp_path, tokens=tokens, log_queries=log_queries) as both:
        lines, counted = [], []
        for address in both.addresses:
            caplog.clear()
            for one in IN_ADDRESS:
                _sent(address, "GET", f"/api/v1/table?{one}", None, {})
            text = _sent(address, "GET", "/metrics", None, {"Authorization": bearer})[2].decode()
            until(lambda: "/metrics" in caplog.text)
            lines.append([re.sub(r"\d+ ms", "", record.getMessage()) for record in caplog.records])
            counted.append([line for line in text.splitlines() if not TIMED.search(line)])
    assert lines[0] == lines[1]
    assert ("SEX" in "".join(lines[0])) == log_queries
    assert counted[0] == counted[1]
    assert any('route="/api/v1/table",status="200"' in line for line in counted[0])
