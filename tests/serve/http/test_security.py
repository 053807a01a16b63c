"""Tokens and roles, rates, sizes, headers, and what never leaves: addresses in books, texts of errors in answers."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from httpx import Client
from sqlalchemy import text

from discreet.errors import Mistakes
from discreet.programme.serve import HistoryRule
from discreet.serve.http.limits import Rates
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.security import stored_key
from discreet.serve.http.settings import Limits, RateLimit
from discreet.serve.http.tokens import Role, create_token, read_tokens, revoke_token
from discreet.serve.open import TableBuilder
from tests.serve.http.conftest import OFTEN, Web, settings_in
from tests.serve.http.test_native import problem
from tests.waiting import until

Ruled = Callable[..., TableBuilder]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_tokens_are_hashed_at_rest_and_have_roles_until_they_are_revoked(web: Web, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    admin = create_token(file, "ann", Role.ADMIN, "2026-01-01")
    public = create_token(file, "bob", Role.PUBLIC, "2026-01-01")
    assert file.stat().st_mode & 0o777 == 0o600
    assert admin not in file.read_text()
    assert [one.role for one in read_tokens(file)] == [Role.ADMIN, Role.PUBLIC]
    client = web(tokens=file)
    assert client.get("/api/v1/status", headers=bearer(admin)).json()["at_the_desk"] == 0
    problem(client.get("/api/v1/status", headers=bearer(public)), 403)
    problem(client.get("/api/v1/status"), 403)
    refused = client.get("/api/v1/catalogue", headers=bearer("dsc_guess"))
    problem(refused, 401)
    assert refused.headers["www-authenticate"] == "Bearer"
    revoke_token(file, "ann")
    problem(client.get("/api/v1/status", headers=bearer(admin)), 401)
    file.write_text("{")
    problem(client.get("/api/v1/catalogue", headers=bearer(public)), 401)


def test_a_file_of_tokens_is_read_with_care(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    with pytest.raises(Mistakes, match="discreet token create"):
        read_tokens(file)
    create_token(file, "ann", Role.PUBLIC, "")
    with pytest.raises(Mistakes, match="has a token"):
        create_token(file, "ann", Role.ADMIN, "")
    with pytest.raises(Mistakes, match="letters, digits"):
        create_token(file, "a b", Role.ADMIN, "")
    with pytest.raises(Mistakes, match="choose from ann"):
        revoke_token(file, "bob")


def test_trusted_users_get_large_tables_at_once(web: Web, ruled: Ruled, tmp_path: Path) -> None:
    trusted = create_token(tmp_path / "t.json", "ann", Role.TRUSTED, "")
    client = web(ruled(cells=10), tokens=tmp_path / "t.json")
    problem(client.post("/api/v1/table", json={"axes": ["AGE.M"]}), 403)
    assert client.post("/api/v1/table", json={"axes": ["AGE.M"]}, headers=bearer(trusted)).status_code == 200
    looks = [
        client.post("/api/v1/preview", json={"axes": ["AGE.M"]}, headers=who) for who in ({}, bearer(trusted))
    ]
    assert [look.json()["needs_job"] for look in looks] == [True, False]


def test_each_user_has_a_rate_and_comes_in_again_later(web: Web) -> None:
    client = web(limits=Limits(public=RateLimit(3, 2)))
    assert client.get("/api/v2/config").json()["maxCallsPerTimeWindow"] == 3
    answers = [client.get("/api/v1/catalogue") for _ in range(4)]
    assert [one.status_code for one in answers[:2]] == [200, 200]
    late = answers[-1]
    problem(late, 429)
    assert 1 <= int(late.headers["retry-after"]) <= 2
    assert client.get("/health").status_code == 200, "the watch is not counted"


def test_the_bucket_of_a_user_fills_with_time() -> None:
    now = [0.0]
    rates, limit = Rates(lambda: now[0]), RateLimit(2, 10)
    rates.take("ann", limit)
    rates.take("ann", limit)
    with pytest.raises(HttpProblem) as found:
        rates.take("ann", limit)
    assert found.value.headers["Retry-After"] == "5"
    rates.take("bob", limit)
    now[0] = 5.0
    rates.take("ann", limit)
    with pytest.raises(HttpProblem):
        rates.take("ann", limit)


def test_guessing_tokens_is_counted_like_any_request(web: Web, tmp_path: Path) -> None:
    create_token(tmp_path / "t.json", "ann", Role.ADMIN, "")
    client = web(limits=Limits(public=RateLimit(3, 100)), tokens=tmp_path / "t.json")
    said = [client.get("/api/v1/catalogue", headers=bearer("x")).status_code for _ in range(5)]
    assert said == [401, 401, 401, 429, 429]


def test_a_request_that_is_too_large_is_refused_whatever_it_claims(web: Web) -> None:
    client = web(limits=Limits(body=1000, public=OFTEN))
    body = json.dumps({"where": "x" * 2000}).encode()
    problem(client.post("/api/v1/table", content=body), 413)
    problem(client.post("/api/v1/table", content=iter([body[:600], body[600:]])), 413)


def test_every_answer_has_the_headers_that_keep_a_browser_honest(client: Client) -> None:
    for path in ("/api/v1/catalogue", "/api/v1/nothing", "/health", "/openapi.json"):
        headers = client.get(path, headers={"Origin": "https://elsewhere.example"}).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("at_once", [False, True], ids=["in the pool", "at once"])
def test_an_error_of_our_own_tells_nothing_and_logs_no_text(
    web: Web, builder: TableBuilder, caplog: pytest.LogCaptureFixture, at_once: bool
) -> None:
    def broken(*_given: object, **_named: object) -> None:
        raise RuntimeError("secret 12345")

    class Broken:
        catalogue = builder.catalogue
        prepare = builder.prepare
        seconds = builder.seconds
        ask = broken
        ask_at_once = broken if at_once else builder.ask_at_once

    with caplog.at_level(logging.INFO):
        where = "" if at_once else 'AGE == "Y_LT15"'
        answer = web(Broken()).post("/api/v1/table", json={"axes": ["SEX"], "where": where})
    assert "12345" not in answer.text
    problem(answer, 500)
    assert "12345" not in caplog.text
    assert "RuntimeError in broken" in caplog.text


def test_the_access_log_holds_routes_and_no_questions_unless_it_is_asked_to(
    web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "discreet.serve.access"):
        web().get("/api/v1/table", params={"query": '{"axes":["EDU"]}'})
        web().get("/api/v1/breakdowns/AGE.L")
        logged(caplog, "/api/v1/breakdowns/{name}")
        logged(caplog, "/api/v1/table")
        assert "EDU" not in caplog.text
        assert "AGE.L" not in caplog.text
        web(log_queries=True).get("/api/v1/table", params={"query": '{"axes":["EDU"]}'})
        logged(caplog, "EDU")


def logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    """Wait for a line: it is written after the answer has left."""
    until(lambda: text in caplog.text)


def test_books_hold_no_addresses_and_histories_go_by_user(web: Web, ruled: Ruled, tmp_path: Path) -> None:
    first = create_token(tmp_path / "t.json", "ann", Role.PUBLIC, "")
    second = create_token(tmp_path / "t.json", "bob", Role.PUBLIC, "")
    rule = HistoryRule(difference=10_000)
    client = web(ruled(history=rule), tokens=tmp_path / "t.json")
    everybody, most = {"axes": ["OCC"]}, {"axes": ["OCC"], "where": 'AGE != "Y_LT15"'}
    assert client.post("/api/v1/table", json=everybody, headers=bearer(first)).status_code == 200
    said = problem(client.post("/api/v1/table", json=most, headers=bearer(first)), 403)
    assert said["rule"] == "difference"
    assert client.post("/api/v1/table", json=everybody, headers=bearer(second)).status_code == 200
    assert client.post("/api/v1/table", json=everybody).status_code == 200
    held = b"".join(path.read_bytes() for path in tmp_path.glob("*.sqlite*"))
    assert b"127.0.0.1" not in held
    assert b"address:" in held


def test_a_server_without_a_secret_keeps_its_key_of_users(tmp_path: Path) -> None:
    store = settings_in(tmp_path).store
    key = stored_key(store.database, "users")
    assert key == stored_key(settings_in(tmp_path).store.database, "users")
    assert len(key) == 32
    assert stored_key(store.database, "others") != key
    with store.database.reading() as connection:
        assert connection.execute(text("select count(*) from serve_keys")).scalar() == 2


def test_trouble_with_the_books_is_told_without_their_names(web: Web, tmp_path: Path) -> None:
    client = web()
    assert client.post("/api/v1/queries", json={"query": {"axes": ["SEX"]}}).status_code == 201
    (tmp_path / "http.sqlite").unlink()
    (tmp_path / "http.sqlite").write_bytes(b"not a database" * 100)
    answer = client.post("/api/v1/queries", json={"query": {"axes": ["EDU"]}})
    problem(answer, 503)
    assert "sqlite" not in answer.text
    assert answer.headers["retry-after"]


def test_the_front_is_the_page_under_a_policy_without_anything_inline(client: Client) -> None:
    answer = client.get("/")
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert client.get("/page/settings").json()["languages"][0] == "en"
