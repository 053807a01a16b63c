"""PxWebApi 1: what R pxweb and the scripts of its time send and read; the rules hold at this door, too."""

import csv
import json
from collections.abc import Callable
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from httpx import Client, Response
from pyjstat import pyjstat

from discreet.io.register import Register
from discreet.perturb.ledger import Ledger
from discreet.programme.serve import HistoryRule
from discreet.release.reader import Release
from discreet.serve.http.settings import Limits, RateLimit
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder, serve_programme
from tests.serve.conftest import NOON, SECRET, published
from tests.serve.http.conftest import Web
from tests.serve.http.test_clients import OWN_WARNING
from tests.serve.http.test_native import problem
from tests.serve.test_budget import GEOMETRIC, declared

API = "/pxweb/api/v1"
Filter = tuple[str, list[str]]
AGENT = {"User-Agent": "https://github.com/rOpenGov/pxweb", "Content-Type": ""}


@pytest.fixture
def base(client: Client) -> str:
    """The address of the tables."""
    return f"{API}/en/{client.get(f'{API}/en').json()[0]['dbid']}"


def ask(client: Client, path: str, form: str = "json", /, **picked: Filter) -> Response:
    """Post a query as R does: JSON without the name of its media type."""
    query = [
        {"code": name, "selection": {"filter": kind, "values": values}}
        for name, (kind, values) in picked.items()
    ]
    body = json.dumps({"query": query, "response": {"format": form}})
    return client.post(path, content=body, headers=AGENT)


def cells(answer: Response) -> dict[tuple[str, ...], int]:
    assert answer.status_code == 200, answer.text
    return {tuple(one["key"]): int(one["values"][0]) for one in answer.json()["data"]}


def test_the_limits_are_found_by_walking_the_address(client: Client, base: str) -> None:
    for path in (API, f"{API}/", f"{API}/en", base, f"{base}/", f"{base}/wide"):
        said = client.get(f"{path}?config").json()
        assert said == {
            "maxValues": 100_000,
            "maxCells": 100_000,
            "maxCalls": 10**6,
            "timeWindow": 1,
            "CORS": True,
        }
    for path in ("/pxweb?config", "/pxweb/api?config"):
        problem(client.get(path), 404)


def test_levels_list_databases_and_tables(client: Client, base: str, release: Release) -> None:
    assert [set(one) for one in client.get(f"{API}/en").json()] == [{"dbid", "text"}]
    tables = client.get(base).json()
    assert [one["id"] for one in tables] == [entry.id for entry in release.manifest.cubes]
    assert {(one["type"], bool(one["text"])) for one in tables} == {("t", True)}
    assert client.get(f"{base}/").json() == tables
    assert [one["id"] for one in client.get(base, params={"query": "wide"}).json()] == ["wide"]
    for path in (f"{API}/en/other", f"{base}/none", f"{API}/en/other/wide"):
        problem(client.get(path), 404)


def test_metadata_have_the_members_that_clients_check(client: Client, base: str) -> None:
    said = client.get(f"{base}/wide").json()
    assert set(said) == {"title", "variables"}
    for one in said["variables"]:
        assert {name: type(held) for name, held in one.items()} == {
            "code": str,
            "text": str,
            "values": list,
            "valueTexts": list,
            "elimination": bool,
            "time": bool,
        }
        assert len(one["values"]) == len(one["valueTexts"])
    assert [one["code"] for one in said["variables"]] == ["GEO", "SEX", "AGE"]


def test_json_has_the_published_values(client: Client, base: str, release: Release) -> None:
    answer = ask(client, f"{base}/wide", SEX=("item", ["1", "_T"]), GEO=("all", ["*"]), AGE=("all", ["Y1*"]))
    listed = published(release, "wide")
    found = cells(answer)
    assert found
    assert all(listed.get(codes, 0) == value for codes, value in found.items())
    said = answer.json()
    assert [(one["code"], one["type"]) for one in said["columns"]] == [
        ("GEO", "d"),
        ("SEX", "d"),
        ("AGE", "d"),
        ("COUNT", "c"),
    ]
    assert said["columns"][-1]["comment"]
    assert said["comments"] == []


def test_a_variable_that_is_left_out_is_eliminated_and_an_empty_query_is_the_default(
    client: Client, base: str, release: Release
) -> None:
    listed = published(release, "wide")
    assert cells(ask(client, f"{base}/wide", SEX=("item", ["1"]))) == {("1",): listed["_T", "1", "_T"]}
    told = client.get("/api/v2/tables/wide/defaultselection").json()["selection"]
    codes = {one["variableCode"]: one["valueCodes"] for one in told}
    assert list(cells(ask(client, f"{base}/wide"))) == list(product(codes["GEO"], codes["SEX"], codes["AGE"]))
    assert (
        ask(client, f"{base}/wide").json()
        == client.post(f"{base}/wide/", content=b'{"response":{"format":"json"}}').json()
    )


@pytest.mark.parametrize("kind", ["vs:AGE.L", "vs:vs_AGE.L", "agg:AGE.L", "Vs:AGE.L"])
def test_codelists_are_filters(client: Client, base: str, kind: str) -> None:
    found = cells(ask(client, f"{base}/wide", AGE=(kind, ["Y_LT15", "Y15-29"])))
    assert [codes for (codes,) in found] == ["Y_LT15", "Y15-29"]
    problem(ask(client, f"{base}/wide", AGE=(kind, ["Y17"])), 400)


def test_a_query_may_also_say_that_it_is_json(client: Client, base: str) -> None:
    item = {"code": "SEX", "selection": {"filter": "item", "values": ["1"]}}
    said = client.post(f"{base}/wide", json={"query": [item], "response": {"format": "json"}})
    assert said.json() == ask(client, f"{base}/wide", SEX=("item", ["1"])).json()


def test_top_counts_and_the_name_of_what_is_counted_may_be_said(client: Client, base: str) -> None:
    found = cells(ask(client, f"{base}/wide", SEX=("top", ["2"]), ContentsCode=("item", ["COUNT"])))
    assert list(found) == [("_T",), ("1",)]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("item", ["7"]),
        ("item", ["*"]),
        ("item", ["TOP(1)"]),
        ("all", ["Z*"]),
        ("top", []),
        ("top", ["x"]),
        ("vs:none", ["1"]),
        ("near", ["1"]),
    ],
)
def test_a_wrong_filter_is_told(client: Client, base: str, kind: str, values: list[str]) -> None:
    assert "SEX" in str(problem(ask(client, f"{base}/wide", SEX=(kind, values)), 400)["detail"])


def test_what_is_no_query_is_told(client: Client, base: str) -> None:
    for body in (b"[]", b"{", b'{"query": 1}', b'{"query": [{}]}', b"\xff"):
        problem(client.post(f"{base}/wide", content=body), 400)
    problem(ask(client, f"{base}/wide", "sdmx"), 400)
    problem(ask(client, f"{base}/none"), 404)
    problem(ask(client, f"{API}/en/other/wide"), 404)


@OWN_WARNING
@pytest.mark.parametrize("form", ["json-stat", "json-stat2"])
def test_both_versions_of_json_stat_are_read_by_pyjstat(client: Client, base: str, form: str) -> None:
    picked: dict[str, Filter] = {"SEX": ("item", ["1", "2"]), "AGE": ("vs:AGE.L", ["_T", "Y_LT15"])}
    answer = ask(client, f"{base}/wide", form, **picked)
    said = answer.json()
    frame = pyjstat.from_json_stat(said, naming="id")[0] if form == "json-stat" else None
    if frame is None:
        frame = pyjstat.Dataset.read(StringIO(answer.text)).write("dataframe", naming="id")
    found = {(row["SEX"], row["AGE"]): row["value"] for row in frame.to_dict("records")}
    assert found == cells(ask(client, f"{base}/wide", **picked))


def test_files_come_in_the_formats_of_their_time(client: Client, base: str) -> None:
    picked: dict[str, Filter] = {"SEX": ("item", ["1", "2"]), "AGE": ("vs:AGE.L", ["_T", "Y_LT15"])}
    found = cells(ask(client, f"{base}/wide", **picked))

    def lines(form: str) -> list[list[str]]:
        answer = ask(client, f"{base}/wide", form, **picked)
        assert answer.headers["content-disposition"] == 'attachment; filename="wide.csv"'
        return list(csv.reader(StringIO(answer.text)))

    assert lines("csv")[0][1:] == ["Total", "Under 15 years"]
    assert lines("csv")[1] == ["Male", str(found["1", "_T"]), str(found["1", "Y_LT15"])]
    assert lines("csv2")[1][:3] == ["Male", "Total", str(found["1", "_T"])]
    assert [line[:3] for line in lines("csv3")[1:]] == [[*codes, str(held)] for codes, held in found.items()]
    for form in ("px", "xlsx"):
        answer = ask(client, f"{base}/wide", form, **picked)
        assert answer.headers["content-disposition"] == f'attachment; filename="wide.{form}"'
    assert ask(client, f"{base}/wide", "px", **picked).text.startswith('CHARSET="ANSI";')


def test_notes_and_errors_are_said_in_the_language_of_the_address(client: Client, base: str) -> None:
    german = base.replace("/en/", "/de/")
    said = ask(client, f"{german}/wide", SEX=("item", ["1"]))
    assert "Zahlen" in said.json()["columns"][-1]["comment"]
    assert said.headers["content-language"] == "de"
    wrong = problem(ask(client, f"{german}/wide", SEX=("item", ["7"])), 400)
    assert "hat keinen Wert" in str(wrong["detail"])


def test_rules_hold_here_as_elsewhere(web: Web, ruled: Callable[..., TableBuilder]) -> None:
    client = web(ruled(cells=10, forbidden=(("SEX", "AGE"),)))
    base = f"{API}/en/{client.get(f'{API}/en').json()[0]['dbid']}"
    assert client.get(f"{base}?config").json()["maxCells"] == 10
    large = problem(ask(client, f"{base}/wide", AGE=("all", ["*"])), 403)
    assert large["rule"] == "cells"
    together = problem(ask(client, f"{base}/wide", AGE=("item", ["_T"]), SEX=("item", ["1"])), 403)
    assert together["rule"] == "forbidden"


def test_what_a_user_has_collected_here_counts_elsewhere(
    web: Web, ruled: Callable[..., TableBuilder]
) -> None:
    client = web(ruled(history=HistoryRule(difference=10_000)))
    base = f"{API}/en/{client.get(f'{API}/en').json()[0]['dbid']}"
    assert ask(client, f"{base}/wide", SEX=("all", ["*"])).status_code == 200
    asked = {"axes": ["SEX"], "where": 'AGE != "Y_LT15"'}
    assert problem(client.post("/api/v1/table", json=asked), 403)["rule"] == "difference"


def test_answers_are_charged_here_as_elsewhere(web: Web, census: Path, tmp_path: Path) -> None:
    programme = declared(census, tmp_path / "c", GEOMETRIC, "account = { each = 1, user = 5 }")
    ledger = Ledger.create(str(tmp_path / "l.sqlite"), lambda: NOON)
    client = web(
        serve_programme(
            programme,
            SECRET,
            Store(tmp_path / "s.sqlite", lambda: NOON),
            ledger=ledger,
            register=Register.of(tmp_path / "register", SECRET),
        )
    )
    base = f"{API}/en/{client.get(f'{API}/en').json()[0]['dbid']}"
    asked = {"axes": ["SEX"]}
    before = client.post("/api/v1/preview", json=asked).json()["cost"]
    first = ask(client, f"{base}/wide", SEX=("all", ["*"]))
    after = client.post("/api/v1/preview", json=asked).json()["cost"]
    assert before.startswith("epsilon")
    assert after.startswith("nothing")
    assert cells(first) == cells(ask(client, f"{base}/wide", SEX=("item", ["_T", "1", "2"])))
    assert (
        problem(ask(client, f"{base}/wide", AGE=("top", ["9"]), SEX=("all", ["*"])), 403)["rule"] == "budget"
    )


def test_requests_are_counted_here_as_elsewhere(web: Web) -> None:
    client = web(limits=Limits(public=RateLimit(3, 60)))
    answers = [client.get(f"{API}/en?config") for _ in range(4)]
    assert [one.status_code for one in answers] == [200, 200, 200, 429]
    said: dict[str, Any] = answers[0].json()
    assert (said["maxCalls"], said["timeWindow"]) == (3, 60)
