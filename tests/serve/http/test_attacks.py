"""Every door leads past the same books, tokens and limits; what is sent or kept holds nothing that it should not."""

import csv
import io
import json
import logging
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from httpx import Client, Response
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.errors import BrokenRelease, DiscreetError, Mistakes
from discreet.io.register import Register
from discreet.perturb.ledger import Ledger
from discreet.serve.http.server import Serving, _config
from discreet.serve.http.settings import Limits, RateLimit
from discreet.serve.http.tokens import Role, create_token
from discreet.serve.jobs_store import JobState, Store
from discreet.serve.open import TableBuilder, serve_programme
from discreet.serve.query import Query
from tests.serve.conftest import NOON, SECRET
from tests.serve.http.conftest import OFTEN, Web
from tests.serve.http.test_jobs import finished
from tests.serve.http.test_native import problem
from tests.serve.http.test_security import bearer, logged
from tests.serve.test_budget import GEOMETRIC, declared

Ruled = Callable[..., TableBuilder]
Door = Callable[[Client], Response]
TABLE = {"axes": ["GEO.H", "SEX", "AGE.H"]}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def by_job(client: Client) -> Response:
    made = client.post("/api/v1/jobs", json={"query": TABLE})
    return client.get(finished(client, made.headers["location"])["result"]) if made.is_success else made


def by_link(client: Client) -> Response:
    return client.get(client.post("/api/v1/queries", json={"query": TABLE}).json()["link"])


def by_conditional_get(client: Client) -> Response:
    return client.get(
        "/api/v1/table", params={"query": json.dumps(TABLE)}, headers={"If-None-Match": 'W/"0", *'}
    )


def by_saved_selection(client: Client) -> Response:
    every = [{"variableCode": name, "valueCodes": ["*"]} for name in ("GEO", "SEX", "AGE")]
    saved = client.post("/api/v2/savedqueries", json={"tableId": "wide", "selection": {"selection": every}})
    return client.get(f"/api/v2/savedqueries/{saved.json()['id']}/data")


DOORS: dict[str, Door] = {
    "post": lambda client: client.post("/api/v1/table", json=TABLE),
    "csv": lambda client: client.post("/api/v1/table", params={"format": "csv"}, json=TABLE),
    "get": lambda client: client.get("/api/v1/table", params={"query": json.dumps(TABLE)}),
    "conditional": by_conditional_get,
    "ranges": lambda client: client.post("/api/v1/noise-ranges", json={"query": TABLE, "cells": [0]}),
    "job": by_job,
    "link": by_link,
    "pxweb": lambda client: client.get(
        "/api/v2/tables/wide/data",
        params={"valueCodes[GEO]": "*", "valueCodes[SEX]": "*", "valueCodes[AGE]": "*"},
    ),
    "pxweb saved": by_saved_selection,
    "pxweb 1": lambda client: client.post(
        f"/pxweb/api/v1/en/{client.get('/pxweb/api/v1/en').json()[0]['dbid']}/wide",
        json={
            "query": [
                {"code": name, "selection": {"filter": "all", "values": ["*"]}}
                for name in ("GEO", "SEX", "AGE")
            ],
            "response": {"format": "json-stat2"},
        },
    ),
    "sdmx": lambda client: client.get("/sdmx/data/DF_wide/all"),
    "sdmx post": lambda client: client.post("/sdmx/data/DF_wide/body", content="key=all", headers=FORM),
}
FREE = (
    "/api/v1/catalogue",
    "/api/v2/tables/wide/metadata",
    "/sdmx/dataflow",
    "/sdmx/availableconstraint/DF_wide/all",
)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.sqlite", lambda: NOON)


@pytest.fixture
def charged(census: Path, tmp_path: Path, store: Store, ledger: Ledger) -> TableBuilder:
    programme = declared(census, tmp_path / "c", GEOMETRIC, "account = { each = 1, user = 1000 }")
    register = Register.of(tmp_path / "register", SECRET)
    return serve_programme(programme, SECRET, store, ledger=ledger, register=register)


def test_every_door_charges_before_anything_leaves(
    web: Web, charged: TableBuilder, ledger: Ledger, tmp_path: Path
) -> None:
    """A user at each door pays what the table costs, once; looking at what could be asked for is free."""
    tokens = {
        name: create_token(tmp_path / "t.json", name.replace(" ", "."), Role.PUBLIC, "") for name in DOORS
    }
    client = web(charged, tokens=tmp_path / "t.json")
    spent = {}
    for name, door in DOORS.items():
        client.headers.update(bearer(tokens[name]))
        for path in FREE:
            assert client.get(path).status_code == 200, path
        assert "epsilon" in client.post("/api/v1/preview", json=TABLE).json()["cost"]
        before = set(ledger.accounts())
        assert client.head("/api/v1/table", params={"query": json.dumps(TABLE)}).status_code == 200
        assert set(ledger.accounts()) == before, "nothing of this costs, and nothing of it has values"
        first = door(client)
        assert first.status_code == 200, (name, first.text)
        (account,) = set(ledger.accounts()) - before
        spent[name] = str(ledger.spent(account))
        assert door(client).status_code in (200, 304)
        assert str(ledger.spent(account)) == spent[name], f"{name}: the same again is free"
    assert len(set(spent.values())) == 1, spent


def test_a_layout_that_cannot_be_is_told_before_it_is_charged_for(
    web: Web, charged: TableBuilder, ledger: Ledger
) -> None:
    client, wrong = web(charged), {"format": "csv", "columns": "EDU"}
    problem(client.post("/api/v1/table", params=wrong, json=TABLE), 400)
    percent = {"format": "parquet", "percent": "row"}
    problem(client.post("/api/v1/table", params=percent, json=TABLE), 400)
    job = {"query": TABLE, "format": "xlsx", "layout": {"columns": ["EDU"]}}
    problem(client.post("/api/v1/jobs", json=job), 400)
    assert not ledger.accounts()


def test_tables_can_be_for_those_who_have_a_token_at_every_door(web: Web, tmp_path: Path) -> None:
    token = create_token(tmp_path / "t.json", "ann", Role.PUBLIC, "")
    client = web(tokens=tmp_path / "t.json", tokens_only=True)
    for name, door in DOORS.items():
        assert door(client).status_code == 401, name
    assert [client.get(path).status_code for path in ("/", *FREE)] == [200] * 5
    client.headers.update(bearer(token))
    for name, door in DOORS.items():
        assert door(client).status_code == 200, name
    del client.headers["authorization"]
    for name, door in DOORS.items():
        assert door(client).status_code == 401, (
            f"{name}: what a token holder was answered is not had without one"
        )


def test_tables_for_those_with_tokens_need_a_file_of_tokens(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match="--tokens-only: needs a file of tokens"):
        Serving(tmp_path / "programme.toml", str(tmp_path / "s.sqlite"), tokens_only=True).app()


def test_a_server_that_cannot_start_leaves_no_store(tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    (tmp_path / "tokens.json").write_text("{")
    store = tmp_path / "s.sqlite"
    programme = tmp_path / "programme.toml"
    for serving, remedy in (
        (Serving(tmp_path / "release", str(store)), "give the folder of a release"),
        (Serving(tmp_path / "release", str(store), tokens=tmp_path / "tokens.json"), "tokens.json"),
    ):
        with pytest.raises(DiscreetError, match=remedy):
            serving.app()
    missing = Serving(programme, str(store), secret=bytes(32), ledger=str(tmp_path / "l.sqlite"))
    with pytest.raises(Mistakes, match=r"l\.sqlite"):
        missing.lay_out()
    assert not list(tmp_path.glob("s.sqlite*"))


def test_a_server_that_cannot_start_leaves_an_existing_store_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    Store(tmp_path / "s.sqlite", lambda: NOON).database.close()
    before = (tmp_path / "s.sqlite").read_bytes()
    with pytest.raises(BrokenRelease):
        Serving(tmp_path / "release", str(tmp_path / "s.sqlite")).app()
    assert (tmp_path / "s.sqlite").read_bytes() == before


def test_an_address_is_believed_from_declared_proxies_alone(web: Web) -> None:
    client = web(limits=Limits(public=RateLimit(3, 100)))
    names = ("X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP")
    said = [
        client.get("/api/v1/catalogue", headers=dict.fromkeys(names, f"for=203.0.113.{n}")).status_code
        for n in range(5)
    ]
    assert said == [200, 200, 200, 429, 429]
    assert _config(client, "").proxy_headers is False  # type: ignore[arg-type]
    behind = _config(client, "10.0.0.7")  # type: ignore[arg-type]
    assert (behind.proxy_headers, behind.forwarded_allow_ips) == (True, "10.0.0.7")


def test_what_is_kept_has_a_rate_and_a_size_of_its_own(web: Web, tmp_path: Path) -> None:
    trusted = create_token(tmp_path / "t.json", "ann", Role.TRUSTED, "")
    limits = Limits(public=OFTEN, storing=RateLimit(3, 3_600), storing_body=2_000)
    client = web(limits=limits, tokens=tmp_path / "t.json")
    small = {"query": {"axes": ["SEX"]}}
    problem(client.post("/api/v1/queries", json={**small, "extra": {"a": "x" * 3_000}}), 413)
    assert client.post("/api/v1/queries", json=small).status_code == 201
    assert client.post("/api/v1/jobs", json=small).status_code == 202
    late = client.post("/api/v2/savedqueries", json={"tableId": "wide"})
    problem(late, 429)
    assert int(late.headers["retry-after"]) > 60
    assert client.post("/api/v1/table", json={"axes": ["SEX"]}).status_code == 200
    assert client.post("/api/v1/queries", json=small, headers=bearer(trusted)).status_code == 201


def test_old_results_make_room_and_leave_no_trace_in_the_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite", lambda: datetime.now(UTC))
    names = []
    for number in range(4):
        names.append(store.add_job("u", Query("persons", ())).id)
        assert store.claim_job("w", 60) is not None
        assert store.finish_job(names[-1], "w", b"result %d " % number + b"x" * 5_000)
    assert store.drop_beyond(30_000) == 0
    assert b"result 1 " in at_rest(tmp_path / "s.sqlite")
    assert store.drop_beyond(11_000) == 2
    assert [store.job(name) is None for name in names] == [True, True, False, False]
    held = at_rest(tmp_path / "s.sqlite")
    assert b"result 1 " not in held, "deleted and overwritten"
    assert b"result 3 " in held
    waiting = store.add_job("u", Query("persons", ()))
    assert store.drop_beyond(0) == 2
    kept = store.job(waiting.id)
    assert kept is not None
    assert kept.state is JobState.QUEUED


def at_rest(path: Path) -> bytes:
    """The file once its journal has been carried over."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


def test_files_are_their_owner_s(web: Web, tmp_path: Path) -> None:
    client = web()
    assert client.post("/api/v1/queries", json={"query": {"axes": ["SEX"]}}).status_code == 201
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("http.sqlite*")}
    assert modes
    assert set(modes.values()) == {0o600}, modes


@pytest.mark.parametrize("extra", ['"\\ud800"', "NaN", "-Infinity"], ids=["half", "nan", "infinite"])
def test_what_no_file_can_hold_is_not_kept(client: Client, extra: str) -> None:
    body = f'{{"query": {{"axes": ["SEX"]}}, "extra": {{"a": {extra}}}}}'
    answer = client.post("/api/v1/queries", content=body, headers={"Content-Type": "application/json"})
    problem(answer, 400)


def test_what_nests_deep_is_kept_whole_or_refused(client: Client) -> None:
    """How deep a parser goes depends on the Python that runs; half a document is never kept."""
    kept = {}
    for depth in (10, 200, 890, 5_000, 20_000):
        body = f'{{"query": {{"axes": ["SEX"]}}, "extra": {{"a": {"[" * depth + "]" * depth}}}}}'
        answer = client.post("/api/v1/queries", content=body, headers={"Content-Type": "application/json"})
        kept[depth] = answer.status_code == 201
        if kept[depth]:
            assert client.get(answer.headers["location"]).status_code == 200
            assert f'"a":{"[" * depth + "]" * depth}' in answer.text
        else:
            problem(answer, 400)
    assert kept[10]
    assert kept[200]
    assert not kept[20_000]


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 400_000,
        b'{"axes": ["SEX"], "where": "' + b"(" * 19_000 + b'"}',
        b'{"axes": ["SEX"], "where": "' + b"not " * 4_900 + b"SEX == '1'" + b'"}',
        b'{"axes": ["SEX"], "where": "9**9**9**9**9"}',
        b'{"axes": ["SEX"], "where": "__import__(\'os\').system(\'id\') == \'1\'"}',
        b'{"axes": ["SEX"], "cells": ' + b"9" * 5_000 + b"}",
        b'{"axes": ["SEX\xed\xa0\x80"]}',
        b"\xff\xfe{}",
    ],
)
def test_what_is_no_question_is_a_mistake_and_told_in_few_words(client: Client, body: bytes) -> None:
    answer = client.post("/api/v1/table", content=body, headers={"Content-Type": "application/json"})
    problem(answer, 400)
    assert len(answer.content) < 20_000


def test_names_of_groups_reach_no_header_and_mean_nothing_to_a_spreadsheet(client: Client) -> None:
    """A link hands the names of its author's groups on to whoever follows it."""

    def asked(name: str, form: str) -> Response:
        groups = {name: ["Y_LT15"]}
        return client.post(
            "/api/v1/table", params={"format": form}, json={"axes": [{"breakdown": "AGE", "groups": groups}]}
        )

    for name in (
        "a\r\nSet-Cookie: x=1",
        "=HYPERLINK(1)",
        " +1",
        "-1",
        "@SUM(1)",
        "\t=1",
        "a\u2028b",
        "\u202ea",
    ):
        problem(asked(name, "csv"), 400)
    for form in ("json-stat", "csv", "xlsx", "px", "parquet", "sdmx-csv"):
        answer = asked('a";<script>&=65+', form)
        assert answer.status_code == 200, answer.text
        assert "script" not in answer.headers.get("content-disposition", "")
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_path_cannot_write_lines_of_its_own_into_the_log(
    web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "discreet.serve.access"):
        web(log_queries=True).get("/api/v1/breakdowns/x%0d%0aGET%20forged?a=%0d%0aforged")
        logged(caplog, "forged")
    assert all(
        "\n" not in record.getMessage() and "\r" not in record.getMessage() for record in caplog.records
    )


def test_answers_are_for_one_user_and_no_cache_between(client: Client) -> None:
    for answer in (
        DOORS["post"](client),
        DOORS["pxweb"](client),
        DOORS["sdmx"](client),
        client.get("/api/v1/jobs"),
    ):
        assert "private" in answer.headers["cache-control"]
        assert "Authorization" in answer.headers["vary"]
        assert "access-control-allow-credentials" not in answer.headers


def test_searches_among_codes_are_few(client: Client) -> None:
    """Each goes through all codes of a variable, of which there may be a hundred thousand."""
    for said in ("+".join(["co:a"] * 1_000), "co:" + ",".join(map(str, range(1_000)))):
        form = f"key=all&c[GEO]={said}"
        assert client.post("/sdmx/data/DF_wide/body", content=form, headers=FORM).status_code == 400
    many = ",".join(f"code{number}" for number in range(5_000))
    form = f"key=all&c[GEO]=ne:{many}&c[SEX]=1"
    assert client.post("/sdmx/data/DF_wide/body", content=form, headers=FORM).status_code == 200
    for patterns in (["*a*b*"] * 1_000, ["*a" * 99 + "*"] * 1_000):
        picked = {"selection": [{"variableCode": "GEO", "valueCodes": patterns}]}
        problem(client.post("/api/v2/tables/wide/data", json=picked), 400)
    long = client.get("/api/v2/tables/wide/data", params={"valueCodes[GEO]": "*a" * 15_000})
    assert "GEO has no value" in str(
        problem(long, 400)["detail"]
    )  # and no pattern that goes back and forth for ever


def values_of(answer: Response) -> list[int]:
    """All values of an answer, sorted, whatever it is written in."""
    kind = answer.headers["content-type"]
    if "json" in kind:
        return sorted(answer.json()["value"])
    if "xml" in kind:
        return sorted(map(int, re.findall(r'(?:OBS_VALUE|ObsValue value)="(-?\d+)"', answer.text)))
    return sorted(int(row["value"]) for row in csv.DictReader(io.StringIO(answer.text)))


def test_every_door_shows_the_same_values(client: Client) -> None:
    doors = {name: door for name, door in DOORS.items() if name != "ranges"}
    found = {name: values_of(door(client)) for name, door in doors.items()}
    assert len(found["post"]) > 1_000
    assert all(values == found["post"] for values in found.values()), {k: len(v) for k, v in found.items()}


def test_no_answer_sends_a_browser_to_the_host_that_a_request_names(web: Web) -> None:
    client = web()
    for path in ("/api/v1/catalogue/", "/api/v1/table/", "/page", "/health/", "/sdmx/v2/", "/pxweb/api/v1/"):
        answer = client.get(path, headers={"Host": "evil.example"}, follow_redirects=False)
        assert "evil.example" not in answer.headers.get("location", ""), path


def test_a_host_that_is_not_declared_is_refused(web: Web) -> None:
    client = web(hosts=("tables.example", "127.0.0.1"))
    assert client.get("/api/v1/catalogue").status_code == 200
    assert client.get("/api/v1/catalogue", headers={"Host": "tables.example"}).status_code == 200
    assert client.get("/api/v1/catalogue", headers={"Host": "evil.example"}).status_code == 400


@pytest.mark.parametrize("proxies", ["*", "0.0.0.0/0", "::/0", "10.0.0.7,*", "proxy.example", "10.0.0.7/33"])
def test_proxies_are_named_and_never_everybody(tmp_path: Path, proxies: str) -> None:
    (tmp_path / "programme.toml").write_text("")
    answer = CliRunner().invoke(app, ["serve", str(tmp_path / "programme.toml"), "--proxies", proxies])
    assert isinstance(answer.exception, Mistakes)
    assert "--proxies" in str(answer.exception)
