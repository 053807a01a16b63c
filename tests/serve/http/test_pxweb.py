"""PxWebApi 2: selections in all their forms, the default, codelists, saved queries and the shapes that clients need."""

from collections.abc import Callable
from typing import Any

import pytest
from httpx import Client
from hypothesis import given
from hypothesis import strategies as st

from discreet.release.reader import Release
from discreet.serve.http.problems import HttpProblem
from discreet.serve.http.pxweb_selection import DEFAULT_CELLS, expanded, px_tables, question_of, split_values
from discreet.serve.jobs_store import Store
from discreet.serve.open import TableBuilder, serve_release
from tests.serve.conftest import published
from tests.serve.http.conftest import Web
from tests.serve.http.test_native import problem

CODES = ("_T", "A", "A1", "A2", "B", "B1", "k,l", "x*y")
DATA = "/api/v2/tables/wide/data"


@pytest.mark.parametrize(
    ("expressions", "wanted"),
    [
        (["*"], CODES),
        (["A*"], ("A", "A1", "A2")),
        (["*1"], ("A1", "B1")),
        (["?1"], ("A1", "B1")),
        (["B", "A"], ("A", "B")),
        (["top(2)"], ("_T", "A")),
        (["TOP(2,3)"], ("A2", "B")),
        (["BOTTOM(2)"], ("k,l", "x*y")),
        (["bottom(1,1)"], ("k,l",)),
        (["FROM(B)"], ("B", "B1", "k,l", "x*y")),
        (["TO(A)"], ("_T", "A")),
        (["[range(A1,B)]"], ("A1", "A2", "B")),
        (["RANGE(B,A1)"], ("A1", "A2", "B")),
        (["a1", "*b*"], ("A1", "B", "B1")),
        (["from(b1)"], ("B1", "k,l", "x*y")),
        (["[k,l]"], ("k,l",)),
        (["x*y"], ("x*y",)),
        ([], ()),
        (["top(100)", "A"], CODES),
    ],
)
def test_expressions_pick_codes_in_the_order_of_the_codelist(
    expressions: list[str], wanted: tuple[str, ...]
) -> None:
    assert expanded(expressions, CODES, "V") == wanted


@pytest.mark.parametrize(
    "wrong",
    [
        "C",
        "top()",
        "top(x)",
        "TOP(-1)",
        "RANGE(A)",
        "FROM(Q)",
        "range(A,B,C)",
        "",
        "top(99999999999)",
        "Z*",
        "TOP(0)",
        "TOP(1,99)",
    ],
)
def test_an_expression_that_picks_nothing_known_is_a_mistake(wrong: str) -> None:
    with pytest.raises(HttpProblem) as found:
        expanded([wrong], CODES, "V")
    assert found.value.status == 400


@given(st.lists(st.text(max_size=12), max_size=4))
def test_any_expression_picks_codes_or_is_a_mistake(texts: list[str]) -> None:
    try:
        found = expanded(texts, CODES, "V")
    except HttpProblem:
        found = ()
    assert set(found) <= set(CODES)


def test_values_in_an_address_are_split_at_commas_outside_brackets() -> None:
    assert split_values("1,top(2,3),[k,l],,x") == ("1", "top(2,3)", "[k,l]", "x")


def selected(client: Client, *selection: dict[str, Any], **params: str) -> Any:
    answer = client.post(DATA, json={"selection": list(selection)}, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_empty_selection_is_the_default_by_post_by_get_and_as_it_is_told(client: Client) -> None:
    empty = selected(client)
    assert empty == client.get(DATA).json()
    assert empty == client.post(DATA).json()
    told = client.get("/api/v2/tables/wide/defaultselection").json()
    assert empty["value"] == selected(client, *told["selection"])["value"]
    assert 0 < len(empty["value"]) <= DEFAULT_CELLS


def test_every_default_selection_is_small_and_answered(builder: TableBuilder) -> None:
    for table in px_tables(builder.catalogue).values():
        preview = builder.preview(question_of(table, {}, builder.catalogue), "somebody")
        assert preview.refusal is None
        assert 0 < preview.cells <= DEFAULT_CELLS


def test_the_default_selection_has_no_more_axes_than_the_rules_allow(
    web: Web, ruled: Callable[..., TableBuilder]
) -> None:
    client = web(ruled(axes=2))
    told = client.get("/api/v2/tables/wide/defaultselection").json()["selection"]
    assert [one["variableCode"] for one in told] == ["GEO", "SEX", "ContentsCode"]
    assert client.get(DATA).status_code == 200


def test_patterns_are_bounded_since_each_goes_through_all_codes() -> None:
    with pytest.raises(HttpProblem):
        expanded(["A*"] * 21, CODES, "V")
    assert expanded(["A"] * 1_000, CODES, "V") == ("A",)


def test_codelists_come_in_the_body_in_two_spellings_and_in_the_address(client: Client) -> None:
    wanted = selected(client, {"variableCode": "AGE", "valueCodes": ["*"], "codelist": "vs_AGE.L"})
    spelled = selected(client, {"variableCode": "AGE", "valueCodes": ["*"], "codeList": "vs_AGE.L"})
    address = {"codelist[AGE]": "vs_AGE.L", "outputValues[AGE]": "aggregated"}
    assert wanted == spelled
    assert wanted == selected(client, {"variableCode": "AGE", "valueCodes": ["*"]}, **address)
    assert wanted == client.get(DATA, params={"valueCodes[AGE]": "*", **address}).json()
    assert wanted == client.get(DATA, params={"valuecodes[age]": "*", "codelist[AGE]": "vs_AGE.L"}).json()
    metadata = client.get("/api/v2/tables/wide/metadata", params={"codelist[AGE]": "vs_AGE.L"}).json()
    assert list(metadata["dimension"]["AGE"]["category"]["index"]) == list(
        wanted["dimension"]["AGE"]["category"]["index"]
    )
    unknown = {"selection": [{"variableCode": "AGE", "valueCodes": ["*"], "codelist": "agg_1"}]}
    assert "vs_AGE.L" in str(problem(client.post(DATA, json=unknown), 400)["detail"])


def test_metadata_has_no_values_and_what_the_pxweb_client_reads(client: Client) -> None:
    said = client.get("/api/v2/tables/wide/metadata?lang=en&defaultSelection=true&savedQuery=").json()
    assert said["value"] is None
    assert said["role"] == {"geo": ["GEO"], "metric": ["ContentsCode"]}
    assert said["extension"]["px"]["tableid"] == "wide"
    assert set(said["extension"]["px"]["stub"] + said["extension"]["px"]["heading"]) == set(said["id"])
    sex = said["dimension"]["SEX"]
    assert sex["extension"]["eliminationValueCode"] == "_T"
    assert sex["extension"]["show"] in ("code", "value", "code_value")
    assert sex["category"]["child"] == {"_T": ["1", "2"]}
    assert sex["category"]["index"] == {"_T": 0, "1": 1, "2": 2}
    contents = said["dimension"]["ContentsCode"]
    assert contents["category"]["unit"] == {"COUNT": {"base": "persons", "decimals": 0}}
    geo = said["dimension"]["GEO"]["extension"]
    assert geo["codeLists"] == geo["codelists"]


def test_tables_are_listed_in_pages(client: Client, release: Release) -> None:
    said = client.get(
        "/api/v2/tables", params={"pageSize": 2, "pageNumber": 2, "includeDiscontinued": "true"}
    ).json()
    ids = [entry.id for entry in release.manifest.cubes]
    assert [one["id"] for one in said["tables"]] == ids[2:4]
    assert said["page"]["totalElements"] == len(ids)
    assert said["page"]["totalPages"] == -(-len(ids) // 2)
    problem(client.get("/api/v2/tables", params={"pageNumber": 99}), 404)
    assert client.get("/api/v2/tables/wide").json()["variableNames"][1:] == [
        "Sex",
        "Age (single years)",
        "contents",
    ]
    for path in ("/api/v2/tables/none", "/api/v2/tables/none/data", "/api/v2/codelists/none"):
        problem(client.get(path), 404)
    problem(client.get("/api/v2/tables", params={"pageNumber": 0}), 400)


@pytest.mark.parametrize("again", ["SEX", "sex"])
def test_a_variable_is_selected_once(client: Client, again: str) -> None:
    body = {"selection": [{"variableCode": name, "valueCodes": ["*"]} for name in ("SEX", again)]}
    assert again in str(problem(client.post(DATA, json=body), 400)["detail"])


def test_a_base_and_a_counted_column_hold_for_the_table(client: Client, release: Release) -> None:
    names = [axis.variable for axis in release.cube("adults").axes]
    selection = [{"variableCode": name, "valueCodes": ["*"]} for name in names]
    said = client.post("/api/v2/tables/adults/data", json={"selection": selection}).json()
    listed = published(release, "adults")
    assert sum(value > 0 for value in said["value"]) == len(listed)
    assert sum(said["value"]) == sum(listed.values())


def test_a_release_is_served_with_its_own_values(web: Web, release: Release, store: Store) -> None:
    client = web(serve_release(release, store))
    said = client.get(DATA, params={"valueCodes[SEX]": "1", "valueCodes[AGE]": "_T"}).json()
    assert said["value"] == [published(release, "wide")["_T", "1", "_T"]]
    refused = client.post("/api/v1/table", json={"axes": ["EDU", "AGE.M"]})
    assert problem(refused, 404)["rule"] == "not_published"


@pytest.mark.parametrize("form", ["csv", "xlsx", "px", "parquet"])
def test_data_come_in_other_formats(client: Client, form: str) -> None:
    answer = client.get(DATA, params={"outputFormat": form, "valueCodes[SEX]": "*"})
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == f'attachment; filename="wide.{form}"'
    assert len(answer.content) > 20
    problem(client.get(DATA, params={"outputFormat": "html"}), 400)


def test_csv_is_shaped_by_parameters(client: Client) -> None:
    params = {
        "outputFormat": "csv",
        "outputFormatParams": "usecodes,separatorsemicolon,includetitle",
        "valueCodes[SEX]": "*",
        "valueCodes[AGE]": "top(2)",
        "heading": "SEX",
    }
    lines = client.get(DATA, params=params).text.splitlines()
    assert lines[1] == "AGE;_T;1;2"
    assert len(lines) == 4
    assert lines[2].startswith("_T;")


def test_saved_queries_of_pxweb_are_kept_and_run(client: Client) -> None:
    selection = {"selection": [{"variableCode": "AGE", "valueCodes": ["*"], "codelist": "vs_AGE.L"}]}
    body = {"tableId": "wide", "selection": selection, "language": "en", "outputFormat": "json-stat2"}
    made = client.post("/api/v2/savedqueries", json=body)
    assert made.status_code == 201
    path = made.headers["location"]
    assert client.get(path).json()["tableId"] == "wide"
    told = client.get(f"{path}/selection").json()["selection"]
    assert [one["variableCode"] for one in told] == ["AGE", "ContentsCode"]
    assert (told[0]["codelist"], len(told[0]["valueCodes"])) == ("vs_AGE.L", 7)
    assert client.get(f"{path}/data").json() == client.post(DATA, json=selection).json()
    narrowed = client.get("/api/v2/tables/wide/metadata", params={"savedQuery": made.json()["id"]}).json()
    assert len(narrowed["dimension"]["AGE"]["category"]["index"]) == 7
    problem(client.get("/api/v2/savedqueries/abc/data"), 404)
    problem(client.post("/api/v2/savedqueries", json={"tableId": "none"}), 404)
    own = client.post("/api/v1/queries", json={"query": {"axes": ["SEX"]}}).json()["id"]
    problem(client.get(f"/api/v2/savedqueries/{own}"), 404)
