"""The own API: what it says of itself, tables and their notes, entity tags, refusals and mistakes as problems."""

import json
from collections.abc import Callable

import pytest
from httpx import Client, Response

from discreet.programme.serve import SparsityRule
from discreet.release.reader import Release
from discreet.serve.open import TableBuilder
from discreet.serve.query import Axis, Query
from tests.serve.conftest import cells, published
from tests.serve.http.conftest import Web

Ruled = Callable[..., TableBuilder]


def problem(answer: Response, status: int) -> dict[str, object]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    said = answer.json()
    assert said["status"] == status
    assert said["title"]
    assert said["detail"]
    return dict(said)


def test_the_catalogue_and_codes_say_what_can_be_asked_for(client: Client, builder: TableBuilder) -> None:
    said = client.get("/api/v1/catalogue").json()
    assert said["units"] == list(builder.catalogue.units)
    assert said["limits"] == {"axes": 5, "cells": 100_000, "job_cells": 1_000_000}
    age = next(one for one in said["variables"] if one["name"] == "AGE")
    assert age["may_group"]
    assert [one["name"] for one in age["breakdowns"]] == ["AGE.L", "AGE.M", "AGE.H"]
    codes = client.get("/api/v1/breakdowns/AGE.L").json()
    assert codes["codes"][0] == "_T"
    assert codes["parents"] == ["", *["_T"] * (len(codes["codes"]) - 1)]
    every = client.get("/api/v1/variables/AGE").json()
    assert "Y0" in every["codes"][2]
    assert every["levels"] == ["broad groups", "five-year groups", "single years"]
    places = client.get("/api/v1/variables/GEO").json()
    assert [places["levels"][depth - 1] for depth in places["depths"][:4]] == [
        "",
        "provinces",
        "districts",
        "municipalities",
    ]
    for path in ("breakdowns/AGE.X", "variables/NONE"):
        problem(client.get(f"/api/v1/{path}"), 404)


def test_a_table_by_post_and_by_get_has_the_values_of_the_builder(
    client: Client, builder: TableBuilder
) -> None:
    asked = {"unit": "persons", "axes": [{"breakdown": "AGE.L", "codes": ["_T", "Y15-29"]}, "SEX"]}
    posted = client.post("/api/v1/table", json=asked)
    got = client.get("/api/v1/table", params={"query": json.dumps(asked)})
    assert posted.json() == got.json()
    same = Query("persons", (Axis("AGE.L", ("_T", "Y15-29")), Axis("SEX")))
    wanted = builder.ask(same, "somebody")
    assert posted.json()["value"] == list(cells(wanted).values())
    assert posted.json()["extension"]["id"] == builder.canonical(same).id
    assert any("perturbed on its own" in note for note in posted.json()["note"])


def test_a_table_without_axes_still_has_a_dimension(client: Client) -> None:
    said = client.post("/api/v1/table", json={}).json()
    assert (said["id"], said["size"]) == (["ContentsCode"], [1])
    assert len(said["value"]) == 1


def test_what_has_not_changed_is_not_sent_again(client: Client) -> None:
    first = client.get("/api/v1/catalogue")
    assert first.headers["content-encoding"] == "gzip"
    again = client.get("/api/v1/catalogue", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    asked = {"axes": ["SEX"]}
    table = client.post("/api/v1/table", json=asked)
    assert table.headers["cache-control"] == "private, no-cache"
    assert "Authorization" in table.headers["vary"]
    tags = f'"other", {table.headers["etag"]}'
    assert client.post("/api/v1/table", json=asked, headers={"If-None-Match": tags}).status_code == 304
    assert (
        client.post("/api/v1/table", json={"axes": ["EDU"]}, headers={"If-None-Match": tags}).status_code
        == 200
    )


def test_a_mistake_names_the_key_and_the_alternatives(client: Client) -> None:
    said = problem(client.post("/api/v1/table", json={"axes": ["SEXX", "AGE.Q"], "where": "NO == 1"}), 400)
    assert isinstance(said["problems"], list)
    assert [one["key"] for one in said["problems"]][:2] == ["axes[0].breakdown", "axes[1].breakdown"]
    assert "SEX" in said["problems"][0]["remedy"]
    wrong = [{"axes": 3}, {"axes": [{"codes": []}]}, [], "x", {"unit": "a\x00b"}, {"what": 1}]
    for body in wrong:
        problem(client.post("/api/v1/table", json=body), 400)
    for text in ("{", "[]", '{"axes":[{}]}', '"\\ud800"'):
        problem(client.get("/api/v1/table", params={"query": text}), 400)
    surrogate = client.post(
        "/api/v1/table", content=b'{"unit":"\\ud800"}', headers={"Content-Type": "application/json"}
    )
    problem(surrogate, 400)
    problem(client.get("/api/v1/nothing"), 404)
    problem(client.delete("/api/v1/table"), 405)


def test_a_refusal_names_the_rule_and_the_nearest_tables_which_pass(web: Web, ruled: Ruled) -> None:
    client = web(ruled(axes=2))
    asked = {"axes": ["SEX", "AGE.L", "EDU"]}
    said = problem(client.post("/api/v1/table", json=asked), 403)
    assert (said["rule"], said["type"]) == ("axes", "/problems/refused-axes")
    assert isinstance(said["nearest"], list)
    assert said["nearest"]
    for near in said["nearest"]:
        assert client.get(near["href"]).status_code == 200, near
    preview = client.post("/api/v1/preview", json=asked).json()
    assert (preview["refusal"]["rule"], preview["refusal"]["nearest"]) == ("axes", [])
    offering = client.post("/api/v1/preview", params={"nearest": True}, json=asked).json()
    assert offering["refusal"]["nearest"] == said["nearest"]
    passed = client.get("/api/v1/preview", params={"query": '{"axes":["SEX","EDU"]}'}).json()
    assert passed["refusal"] is None
    assert passed["cells"] == 3 * len(client.get("/api/v1/breakdowns/EDU").json()["codes"])


def test_cells_of_blocked_areas_are_null_with_a_status(web: Web, ruled: Ruled) -> None:
    client = web(ruled(place="GEO", area_population=500, blocked=0.99))
    said = client.post("/api/v1/table", json={"axes": ["GEO.H", "SEX"]}).json()
    blocked = {one["code"] for one in said["extension"]["blocked"]}
    assert blocked
    assert said["extension"]["blocked_count"] == len(blocked)
    codes = list(said["dimension"]["GEO"]["category"]["index"])
    for place, value in enumerate(said["value"]):
        hidden = codes[place // 3] in blocked
        assert (value is None) == hidden
        assert said.get("status", {}).get(str(place)) == ("withheld" if hidden else None)
    preview = client.post("/api/v1/preview", json={"axes": ["GEO.H", "SEX"]}).json()
    assert {one["code"] for one in preview["blocked"]} == blocked
    assert {one["rule"] for one in preview["blocked"]} == {"area_population"}


def test_noise_ranges_hold_their_cells_and_tell_nothing_of_withheld_ones(web: Web, ruled: Ruled) -> None:
    client = web(ruled(place="GEO", area_population=500, blocked=0.99))
    asked = {"axes": ["GEO.H", "SEX"]}
    table = client.post("/api/v1/table", json=asked).json()
    shown = next(place for place, value in enumerate(table["value"]) if value)
    hidden = table["value"].index(None)
    said = client.post("/api/v1/noise-ranges", json={"query": asked, "cells": [shown, hidden]}).json()
    first, second = said["ranges"]
    assert first["low"] <= table["value"][shown] <= first["high"]
    assert "95%" in first["words"]
    assert (second["low"], second["high"]) == (None, None)
    beyond = {"query": asked, "cells": [len(table["value"])]}
    problem(client.post("/api/v1/noise-ranges", json=beyond), 400)
    problem(client.post("/api/v1/noise-ranges", json={"query": asked, "cells": [0], "level": 7}), 400)


def test_a_table_that_is_too_large_is_sent_to_the_background(web: Web, ruled: Ruled) -> None:
    client = web(ruled(cells=10))
    said = problem(client.post("/api/v1/table", json={"axes": ["AGE.M"]}), 403)
    assert said["rule"] == "cells"
    assert "background job" in str(said["detail"])


@pytest.mark.parametrize("rule", [SparsityRule(0.0, 0.0)])
def test_a_sparse_table_is_refused_as_a_whole(web: Web, ruled: Ruled, rule: SparsityRule) -> None:
    client = web(ruled(sparsity=rule))
    said = problem(client.post("/api/v1/table", json={"axes": ["AGE.H", "EDU", "OCC"]}), 403)
    assert said["rule"] == "sparsity"


def test_percentages_of_a_download_are_shares_of_published_values(client: Client, release: Release) -> None:
    told = published(release, "wide")
    areas, ages = (client.get(f"/api/v1/breakdowns/{name}").json()["codes"] for name in ("GEO.H", "AGE.H"))
    asked = {"axes": ["GEO.H", "SEX", "AGE.H"]}
    ways = {"format": "csv", "columns": "SEX", "texts": "codes", "percent": "row"}
    lines = [
        line.split(",") for line in client.post("/api/v1/table", json=asked, params=ways).text.splitlines()
    ]
    assert lines[0] == ["", "", "_T", "1", "2"]
    assert [(area, age) for area, age, *_ in lines[2:]] == [(area, age) for area in areas for age in ages]
    empty = 0
    for area, age, *shares in lines[2:]:
        total = told.get((area, "_T", age), 0)
        empty += not total
        for sex, share in zip(("_T", "1", "2"), shares, strict=True):
            if total:
                assert float(share) == round(100 * told.get((area, sex, age), 0) / total, 2)
            else:
                assert share == ""
    assert 1000 < empty < len(lines) - 1000


def test_a_layout_that_cannot_be_had_is_a_problem(client: Client) -> None:
    asked = {"axes": ["SEX", "AGE.L"]}
    for ways in ({"format": "csv", "columns": "EDU"}, {"format": "px", "percent": "row"}):
        assert (
            problem(client.post("/api/v1/table", json=asked, params=ways), 400)["type"] == "/problems/layout"
        )
    assert client.post("/api/v1/table", json=asked, params={"percent": "half"}).status_code == 400
