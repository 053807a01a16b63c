"""Shapes of PxWebApi 2: which variables stand across, what may be combined; values stay where they belong."""

import csv
from io import StringIO
from typing import Any

import pytest
from httpx import Client

from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.pxweb_selection import Asked, Placement, asked_of, placed, shaped
from discreet.serve.query import Axis, Query
from tests.serve.http.test_native import problem

NAMES = ("GEO", "SEX", "AGE", "ContentsCode")
QUERY = Query("persons", (Axis("GEO.L"), Axis("SEX"), Axis("AGE.M")))
DATA = "/api/v2/tables/wide/data"
SMALL = {"valueCodes[SEX]": "1,2", "valueCodes[AGE]": "_T,Y15,Y16"}


@pytest.mark.parametrize(
    ("heading", "stub", "wanted"),
    [
        ((), (), (("AGE", "ContentsCode"), ("GEO", "SEX"))),
        (("sex",), (), (("SEX",), ("GEO", "AGE", "ContentsCode"))),
        ((), ("AGE", "GEO"), (("SEX", "ContentsCode"), ("AGE", "GEO"))),
        (("AGE", "SEX"), ("ContentsCode", "GEO"), (("AGE", "SEX"), ("ContentsCode", "GEO"))),
        (("AGE",), ("SEX", "GEO"), (("AGE", "ContentsCode"), ("SEX", "GEO"))),
    ],
)
def test_what_one_side_leaves_out_stands_on_the_other(
    heading: tuple[str, ...], stub: tuple[str, ...], wanted: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    assert placed(NAMES, heading, stub) == Placement(*wanted)


@pytest.mark.parametrize(
    ("heading", "stub"),
    [
        (("EDU",), ()),
        (("SEX", "SEX"), ()),
        (("SEX",), ("SEX", "GEO", "AGE")),
        (("SEX",), ("GEO",)),
        ((), ("TIME",)),
    ],
)
def test_a_placement_that_is_none_is_a_mistake(heading: tuple[str, ...], stub: tuple[str, ...]) -> None:
    with pytest.raises(HttpProblem) as found:
        placed(NAMES, heading, stub)
    assert found.value.status == 400


def test_axes_stand_in_the_order_of_their_placement() -> None:
    query, shape = shaped(QUERY, asked_of("CSV", ["UseCodes,SeparatorTab"], ["SEX"], ["AGE,GEO"]))
    assert [axis.breakdown for axis in query.axes] == ["AGE.M", "GEO.L", "SEX"]
    assert query.id == QUERY.id
    assert (shape.form, shape.layout.columns, shape.layout.separator) == ("csv", ("SEX",), "\t")
    assert shaped(QUERY, Asked())[1].layout.columns == ()


@pytest.mark.parametrize(
    ("form", "parameters"),
    [
        ("csv", ["UseCodes", "UseTexts"]),
        ("csv", ["SeparatorTab,SeparatorSpace"]),
        ("csv", ["Separator"]),
        ("xlsx", ["SeparatorTab"]),
        ("px", ["UseCodes"]),
        ("json-stat2", ["IncludeTitle"]),
        ("html", []),
    ],
)
def test_what_cannot_be_combined_is_a_mistake(client: Client, form: str, parameters: list[str]) -> None:
    params: dict[str, Any] = {**SMALL, "outputFormat": form, "outputFormatParams": parameters}
    problem(client.get(DATA, params=params), 400)


def cells(said: dict[str, Any]) -> dict[tuple[str, str], int]:
    """(sex, age) -> value, in whatever order the dataset has its dimensions."""
    names, found = said["id"], {}
    codes = {name: list(said["dimension"][name]["category"]["index"]) for name in names}
    for place, value in enumerate(said["value"]):
        at = {}
        for name in reversed(names):
            place, at[name] = divmod(place, len(codes[name]))
        found[codes["SEX"][at["SEX"]], codes["AGE"][at["AGE"]]] = value
    return found


def test_every_placement_has_the_same_values(client: Client) -> None:
    first = client.get(DATA, params=SMALL).json()
    assert first["id"] == ["SEX", "AGE", "ContentsCode"]
    turned = client.get(DATA, params={**SMALL, "heading": "SEX", "stub": "AGE"}).json()
    assert turned["id"] == ["AGE", "SEX", "ContentsCode"]
    assert turned["extension"]["px"]["heading"] == ["SEX", "ContentsCode"]
    assert turned["extension"]["px"]["stub"] == ["AGE"]
    assert cells(turned) == cells(first)
    body = {
        "selection": [
            {"variableCode": "SEX", "valueCodes": ["1", "2"]},
            {"variableCode": "AGE", "valueCodes": ["_T", "Y15", "Y16"]},
        ],
        "placement": {"heading": ["SEX", "ContentsCode"], "stub": ["AGE"]},
    }
    assert client.post(DATA, json=body).json() == turned
    text = client.post(DATA, json=body, params={"outputFormat": "csv", "outputFormatParams": "UseCodes"}).text
    lines = list(csv.reader(StringIO(text)))
    assert lines[0][1:] == ["1", "2"]
    assert {
        (sex, line[0]): int(line[place + 1]) for line in lines[1:] for place, sex in enumerate("12")
    } == cells(first)
    px = client.post(DATA, json=body, params={"outputFormat": "px"}).text
    assert 'TABLEID="wide";' in px
    assert 'LANGUAGE="en";' in px
    rows = px.partition("DATA=\n")[2].rstrip(";\n").splitlines()
    assert [row.split() for row in rows] == [line[1:] for line in lines[1:]]


def test_json_px_has_the_values_by_key(client: Client) -> None:
    said = client.get(DATA, params={**SMALL, "outputFormat": "json-px"}).json()
    found = {tuple(one["key"]): int(one["values"][0]) for one in said["data"]}
    assert found == cells(client.get(DATA, params=SMALL).json())


def test_a_saved_query_keeps_its_shape_and_may_be_had_in_another(client: Client) -> None:
    selection = {
        "selection": [
            {"variableCode": "AGE", "valueCodes": ["top(3)"]},
            {"variableCode": "SEX", "valueCodes": ["?"]},
        ],
        "placement": {"heading": ["SEX"], "stub": []},
    }
    body = {
        "id": "",
        "tableId": "wide",
        "language": "en",
        "selection": selection,
        "outputFormat": "csv",
        "outputFormatParams": ["SeparatorSemicolon", "UseCodes"],
    }
    made = client.post("/api/v2/savedqueries", json=body)
    path = made.headers["location"]
    assert made.json()["id"] == path.rpartition("/")[2]
    said = client.get(path).json()
    assert set(said) >= {"language", "id", "savedQuery", "links"}
    assert said["savedQuery"] | {"selection": None} == body | {"id": said["id"], "selection": None}
    told = client.get(f"{path}/selection").json()
    assert told["selection"][0]["valueCodes"] == ["_T", "Y_LT15", "Y0-4"]
    assert told["placement"] == {"heading": ["SEX"], "stub": ["AGE", "ContentsCode"]}
    assert client.get(f"{path}/data").text.splitlines()[0] == "AGE;1;2"
    other = client.get(f"{path}/data", params={"outputFormat": "json-stat2"}).json()
    assert other["size"] == [3, 2, 1]
    problem(client.post("/api/v2/savedqueries", json={**body, "outputFormat": "px"}), 400)
    problem(client.post("/api/v2/savedqueries", json={**body, "selection": {"selection": [{}]}}), 400)
