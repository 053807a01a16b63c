"""The real clients, against a running server: what they read is what the release has published."""

import json
import urllib.parse
import urllib.request
from typing import Any

import pytest
from pxweb import PxApi
from pyjstat import pyjstat

from discreet.release.reader import Release
from tests.serve.conftest import published
from tests.waiting import PATIENCE

FIRST, CUBE = "3.1", "wide"
# pyjstat warns of its own way of writing data frames
OWN_WARNING = pytest.mark.filterwarnings("ignore:Shouldn't use this function anymore:DeprecationWarning")


def variables_of(release: Release, cube: str) -> list[str]:
    return [axis.variable for axis in release.cube(cube).axes]


def by_codes(api: PxApi, rows: list[dict[str, Any]]) -> dict[tuple[str, ...], int]:
    """Codes of the variables -> value; pxwebpy names columns by the labels of the variables."""
    columns = [one["label"] for name, one in api.get_table_variables(CUBE).items() if name != "ContentsCode"]
    held = [name for name in columns if name in rows[0]]
    return {tuple(row[name] for name in held): row["value"] for row in rows}


@OWN_WARNING
def test_pyjstat_reads_a_pxweb_table(address: str, release: Release) -> None:
    listed = published(release, "flag")
    names = variables_of(release, "flag")
    selected = "&".join(f"valueCodes%5B{name}%5D=*" for name in names)
    dataset = pyjstat.Dataset.read(f"{address}/api/v2/tables/flag/data?{selected}")
    frame = dataset.write("dataframe", naming="id")
    assert list(frame.columns) == [*names, "ContentsCode", "value"]
    found = {tuple(row[:-2]): row[-1] for row in frame.itertuples(index=False)}
    assert {codes: value for codes, value in found.items() if value} == listed
    assert len(found) == dataset["size"][0] * dataset["size"][1] * dataset["size"][2]
    assert set(frame["ContentsCode"]) == {"works"}


@OWN_WARNING
def test_pyjstat_reads_an_answer_of_the_own_api(address: str, release: Release) -> None:
    asked = {"axes": [{"breakdown": "AGE.M", "codes": ["_T", "Y_LT15"]}, "SEX"], "count": "works"}
    text = urllib.parse.quote(json.dumps(asked))
    frame = pyjstat.Dataset.read(f"{address}/api/v1/table?query={text}").write("dataframe", naming="id")
    listed = published(release, "flag")
    names = variables_of(release, "flag")
    for row in frame.to_dict("records"):
        cell = {"GEO": "_T", "AGE": row["AGE"], "SEX": row["SEX"]}
        assert row["value"] == listed.get(tuple(cell[name] for name in names), 0)
    assert len(frame) == 6


def test_pxwebpy_finds_its_way_and_reads_the_published_values(address: str, release: Release) -> None:
    api = PxApi(f"{address}/api/v2", disable_cache=True)
    assert api.get_config()["maxDataCells"] == 100_000
    assert {table["id"] for table in api.all_tables()} == {entry.id for entry in release.manifest.cubes}
    assert [table["id"] for table in api.search(query="flag")["tables"]] == ["flag"]
    variables = api.get_table_variables(CUBE)
    assert list(variables) == [*variables_of(release, CUBE), "ContentsCode"]
    assert variables["GEO"]["elimination"]
    rows = api.get_table_data(
        CUBE, {"GEO": ["*"], "SEX": ["1", "_T"], "AGE": ["Y*"], "ContentsCode": ["*"]}, show="code"
    )
    listed = published(release, CUBE)
    found = by_codes(api, rows)
    assert found
    assert {sex for _, sex, _ in found} == {"1", "_T"}
    assert all(listed.get(codes, 0) == value for codes, value in found.items())
    assert sum(value > 0 for value in found.values()) == sum(
        codes[1] in ("1", "_T") and codes[2].startswith("Y") for codes in listed
    )


def test_pxwebpy_uses_codelists_and_eliminates_what_it_leaves_out(address: str, release: Release) -> None:
    api = PxApi(f"{address}/api/v2", disable_cache=True)
    lists = {one["id"] for one in api.get_table_variables(CUBE)["AGE"]["codelists"]}
    assert {"vs_AGE.L", "vs_AGE.M", "vs_AGE.H"} <= lists
    rows = api.get_table_data(CUBE, {"AGE": ["*"]}, {"AGE": "vs_AGE.L"}, show="code")
    found = by_codes(api, rows)
    assert [codes[0] for codes in found] == [one["code"] for one in api.get_code_list("vs_AGE.L")["values"]]
    listed = published(release, CUBE)
    assert all(value == listed["_T", "_T", age] for (age,), value in found.items())


def test_pxwebpy_splits_what_is_too_large_and_gets_it_whole(address: str, release: Release) -> None:
    api = PxApi(f"{address}/api/v2", disable_cache=True, max_workers=1)
    api._client.configuration["maxDataCells"] = 300
    rows = api.get_table_data_all(CUBE, show="code")
    listed = published(release, CUBE)
    found = by_codes(api, rows)
    assert {codes: value for codes, value in found.items() if value} == listed


def test_pxwebpy_shows_the_words_of_an_error(address: str) -> None:
    api = PxApi(f"{address}/api/v2", disable_cache=True)
    with pytest.raises(OSError, match="SEX has no value '7'"):
        api.get_table_data(CUBE, {"SEX": ["7"]})


def test_a_browser_of_another_origin_may_read(address: str) -> None:
    asked = urllib.request.Request(
        f"{address}/api/v2/tables/{FIRST}/data",
        method="OPTIONS",
        headers={
            "Origin": "https://px.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type",
        },
    )
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        assert answer.status == 200
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "POST" in answer.headers["Access-Control-Allow-Methods"]
