"""PxWebApi 2: every answer has the members, kinds and words of the API's description, and no strange ones."""

from pathlib import Path
from typing import Any

import pytest
from httpx import Client

from discreet.serve.http.tokens import Role, create_token
from tests.serve.http.conftest import Web
from tests.serve.http.test_native import problem

API = "/api/v2"
TABLE = f"{API}/tables/wide"


class Words:
    """One of some words."""

    def __init__(self, *words: str) -> None:
        self.words = words


class By:
    """A table of something by whatever name."""

    def __init__(self, form: Any) -> None:
        self.form = form


TEXT, NUMBER, YES_NO, NOTHING = str, int, bool, type(None)
LINK = {"rel": TEXT, "hreflang": TEXT, "href": TEXT}
PAIR = {"key": TEXT, "value": TEXT}
CONFIG = {
    "apiVersion": TEXT,
    "appVersion": TEXT,
    "languages": [{"id": TEXT, "label": TEXT}],
    "defaultLanguage": TEXT,
    "maxDataCells": NUMBER,
    "maxCallsPerTimeWindow": NUMBER,
    "timeWindow": NUMBER,
    "license": TEXT,
    "sourceReferences": [{"language": TEXT, "text": TEXT}],
    "defaultDataFormat": TEXT,
    "dataFormats": [Words("px", "json-stat2", "csv", "xlsx", "html", "json-px", "parquet")],
    "features": [{"id": TEXT, "params": [PAIR]}],
}
TIME_UNIT = Words("Annual", "HalfYear", "Quarterly", "Monthly", "Weekly", "Other")
LISTED = {
    "type": Words("Table"),
    "id": TEXT,
    "label": TEXT,
    "description": TEXT,
    "updated": NOTHING,
    "firstPeriod": NOTHING,
    "lastPeriod": NOTHING,
    "timeUnit": TIME_UNIT,
    "category": Words("internal", "public", "private", "section"),
    "variableNames": [TEXT],
    "source": TEXT,
    "subjectCode": TEXT,
    "paths": [[{"id": TEXT, "label": TEXT}]],
    "discontinued": YES_NO,
    "links": [LINK],
    "language": TEXT,
}
PAGE = {
    "pageNumber": NUMBER,
    "pageSize": NUMBER,
    "totalElements": NUMBER,
    "totalPages": NUMBER,
    "links": [LINK],
}
LIST = {"language": TEXT, "tables": [LISTED], "page": PAGE, "links": [LINK]}
CODELIST_TYPE = Words("Aggregation", "Valueset")
CODELISTS = [{"id": TEXT, "label": TEXT, "type": CODELIST_TYPE, "links": [LINK]}]
CODELIST = {
    "id": TEXT,
    "label": TEXT,
    "language": TEXT,
    "languages": [TEXT],
    "elimination": YES_NO,
    "eliminationValueCode": TEXT,
    "type": CODELIST_TYPE,
    "values": [{"code": TEXT, "label": TEXT, "valueMap": [TEXT]}],
    "links": [LINK],
}
SELECTION = {
    "selection": [{"variableCode": TEXT, "codelist": (TEXT, NOTHING), "valueCodes": [TEXT]}],
    "placement": {"heading": [TEXT], "stub": [TEXT]},
    "language": TEXT,
    "links": [LINK],
}
PX = {
    "tableid": TEXT,
    "matrix": TEXT,
    "language": TEXT,
    "contents": TEXT,
    "decimals": NUMBER,
    "official-statistics": YES_NO,
    "aggregallowed": YES_NO,
    "description": TEXT,
    "descriptiondefault": YES_NO,
    "subject-code": TEXT,
    "subject-area": TEXT,
    "heading": [TEXT],
    "stub": [TEXT],
}
EXTENSION = {"px": PX, "noteMandatory": By(YES_NO), "timeUnit": TIME_UNIT, "discontinued": YES_NO}
DATASET = {
    "version": Words("2.0"),
    "class": Words("dataset"),
    "href": TEXT,
    "label": TEXT,
    "source": TEXT,
    "link": By([{"type": TEXT, "href": TEXT}]),
    "note": [TEXT],
    "role": By([TEXT]),
    "id": [TEXT],
    "size": [NUMBER],
    "dimension": dict,
    "extension": EXTENSION,
    "value": NOTHING,
}
CATEGORY = {
    "index": By(NUMBER),
    "label": By(TEXT),
    "child": By([TEXT]),
    "unit": By({"base": TEXT, "decimals": NUMBER}),
}
DIMENSION = {
    "elimination": YES_NO,
    "eliminationValueCode": TEXT,
    "show": Words("code", "value", "code_value"),
    "codelists": CODELISTS,
    "codeLists": CODELISTS,
    "refperiod": By(TEXT),
    "measuringType": By(Words("Stock", "Flow", "Average", "Other")),
}


def fits(said: Any, form: Any, where: str = "") -> None:
    """Assert that something has a form: all its members and no other, each of its kind."""
    match form:
        case Words():
            assert said in form.words, where
        case By():
            assert isinstance(said, dict), where
            for name, held in said.items():
                fits(held, form.form, f"{where}.{name}")
        case list():
            assert isinstance(said, list), where
            for place, held in enumerate(said):
                fits(held, form[0], f"{where}[{place}]")
        case dict():
            assert isinstance(said, dict), where
            assert sorted(said) == sorted(form), where
            for name, held in form.items():
                fits(said[name], held, f"{where}.{name}")
        case _:
            kinds = form if isinstance(form, tuple) else (form,)
            assert type(said) in kinds, where


def fits_dimensions(said: dict[str, Any]) -> None:
    """Assert the form of all dimensions: some members are there only where they mean something."""
    assert list(said["dimension"]) == said["id"]  # a client goes through them in this order
    for name, one in said["dimension"].items():
        assert set(one) - {"note"} == {"label", "category", "extension"}
        assert all(isinstance(text, str) and text for text in one.get("note", ()))
        fits(one["category"], {held: CATEGORY[held] for held in one["category"]}, name)
        fits(one["extension"], {held: DIMENSION[held] for held in one["extension"]}, name)
        assert list(one["category"]["index"].values()) == list(range(len(one["category"]["index"])))
        assert one["category"]["label"].keys() == one["category"]["index"].keys()
        children = one["category"].get("child", {})
        named = {*children, *(code for codes in children.values() for code in codes)}
        assert named <= one["category"]["index"].keys()
    assert said["size"] == [len(one["category"]["index"]) for one in said["dimension"].values()]
    assert {name for held in said["role"].values() for name in held} <= set(said["id"])


def test_the_configuration_has_its_form(client: Client) -> None:
    said = client.get(f"{API}/config").json()
    fits(said, CONFIG)
    assert said["defaultLanguage"] in {one["id"] for one in said["languages"]}
    assert said["defaultDataFormat"] in said["dataFormats"]


@pytest.mark.parametrize("role", list(Role))
def test_limits_are_positive_for_every_role(web: Web, tmp_path: Path, role: Role) -> None:
    token = create_token(tmp_path / "tokens.json", "ann", role, "2026-01-01")
    client = web(tokens=tmp_path / "tokens.json")
    said = client.get(f"{API}/config", headers={"Authorization": f"Bearer {token}"}).json()
    assert said["maxCallsPerTimeWindow"] >= 1
    assert said["timeWindow"] >= 1


def test_tables_are_told_in_their_form_and_pages_lead_to_each_other(client: Client) -> None:
    said = client.get(f"{API}/tables", params={"pageSize": 3, "pageNumber": 2, "query": " "}).json()
    fits(said, LIST)
    fits(client.get(TABLE).json(), LISTED)
    links = {one["rel"]: one["href"] for one in said["page"]["links"]}
    assert set(links) == {"prev", "next", "last"}
    assert client.get(links["next"]).json()["page"]["pageNumber"] == 3
    assert client.get(links["prev"]).json()["page"]["pageNumber"] == 1
    nothing = client.get(f"{API}/tables", params={"query": "no such word"}).json()
    fits(nothing, LIST)
    assert (nothing["page"]["totalElements"], nothing["page"]["totalPages"]) == (0, 1)


def test_of_tables_without_dates_none_was_updated_lately_and_none_is_discontinued(client: Client) -> None:
    assert client.get(f"{API}/tables", params={"pastDays": 30}).json()["tables"] == []
    problem(client.get(f"{API}/tables", params={"pastDays": 0}), 400)
    problem(client.get(f"{API}/tables", params={"includeDiscontinued": "perhaps"}), 400)
    kept = [
        client.get(f"{API}/tables", params={"includeDiscontinued": answer}).json()["page"]["totalElements"]
        for answer in ("true", "false")
    ]
    assert kept[0] == kept[1] > 0


def test_metadata_are_a_dataset_of_the_api_without_values(client: Client) -> None:
    for params in ({}, {"codelist[AGE]": "vs_AGE.L", "codelist[GEO]": "vs_GEO.M"}):
        said = client.get(f"{TABLE}/metadata", params=params).json()
        fits(said, DATASET)
        fits_dimensions(said)
        px = said["extension"]["px"]
        assert sorted(px["heading"] + px["stub"]) == sorted(said["id"])
        assert set(said["extension"]["noteMandatory"]) == {str(place) for place in range(len(said["note"]))}
        assert client.get(said["link"]["data"][0]["href"]).status_code == 200
        assert client.get(said["href"]).status_code == 200


def test_data_are_a_dataset_of_the_api(client: Client) -> None:
    said = client.post(f"{TABLE}/data", json={"selection": []}).json()
    own = said["extension"].pop("discreet")
    assert own["warnings"] == []
    fits(said, {**DATASET, "value": [NUMBER]})
    fits_dimensions(said)
    assert client.get(said["link"]["describedby"][0]["href"]).json()["id"] == said["id"]


def test_codelists_and_selections_have_their_form(client: Client) -> None:
    dimensions = client.get(f"{TABLE}/metadata").json()["dimension"]
    lists = dimensions["AGE"]["extension"]["codelists"]
    assert lists
    for one in lists:
        fits(client.get(one["links"][0]["href"]).json(), CODELIST)
    fits(client.get(f"{TABLE}/defaultselection").json(), SELECTION)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/tables/none", 404),
        ("/tables/none/metadata", 404),
        ("/tables?pageNumber=99", 404),
        ("/codelists/vs_none", 404),
        ("/savedqueries/abc", 404),
        ("/tables/wide/metadata?codelist[AGE]=none", 400),
        ("/tables/wide/data?valuecodes[AGE]=none", 400),
        ("/tables/wide/data?valuecodes[NONE]=*", 400),
        ("/tables/wide/data?outputFormat=html", 400),
        ("/tables/wide/data?valuecodes[GEO]=*&valuecodes[AGE]=*&valuecodes[SEX]=*&heading=EDU", 400),
    ],
)
def test_problems_have_the_status_and_the_members_of_the_api(client: Client, path: str, status: int) -> None:
    said = problem(client.get(f"{API}{path}"), status)
    assert said["status"] == status
    assert {type(said[name]) for name in ("type", "title", "detail")} == {str}
