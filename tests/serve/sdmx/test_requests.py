"""The requests that clients send, to the letter: each is answered in the format that its client reads, with its values.

sdmx1 2.28 and pysdmx 1.21 also run themselves in test_clients; of R's rsdmx 0.6 there are these lines alone.
"""

import csv
import io
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from httpx import Client

from tests.cases import few
from tests.serve.sdmx.conftest import Cells

ANYTHING, XML = "*/*", "application/xml"
STRUCTURE_2_1 = "application/vnd.sdmx.structure+xml;version=2.1"
STRUCTURE_3_0 = "application/vnd.sdmx.structure+xml;version=3.0.0"
JSON = "application/vnd.sdmx.structure+json;version=2.0.0"
GENERIC = "application/vnd.sdmx.genericdata+xml;version=2.1"
SPECIFIC = "application/vnd.sdmx.structurespecificdata+xml;version=2.1"
CSV = "application/vnd.sdmx.data+csv;version=2.0.0"
GENERIC_SPACE = "{http://www.sdmx.org/resources/sdmxml/schemas/v2_1/data/generic}"

STRUCTURES = [
    # sdmx1, 2.1
    (ANYTHING, "/dataflow/CENSUS/all/latest", STRUCTURE_2_1, ["DF_wide", "DF_1_1"], ["CL_SEX"]),
    (ANYTHING, "/dataflow/CENSUS/DF_wide/latest?references=all", STRUCTURE_2_1, ["DSD_wide", "CL_SEX"], ["DF_1_1"]),
    (ANYTHING, "/availableconstraint/DF_wide", STRUCTURE_2_1, ["CubeRegion", "Y0"], ["<str:Codelist "]),
    (ANYTHING, "/codelist/CENSUS/CL_SEX/latest", STRUCTURE_2_1, ['id="CL_SEX"'], ['id="CL_AGE_H"']),
    # sdmx1, 3.0
    (ANYTHING, "/structure/dataflow/CENSUS/DF_wide/+", STRUCTURE_3_0, ["DF_wide"], ["<str:DataStructure "]),
    # pysdmx
    (JSON, "/structure/dataflow/CENSUS/DF_wide/", JSON, ['"id":"DF_wide"'], ['"dataStructures"']),
    (JSON, "/schema/dataflow/CENSUS/DF_wide/1.0", JSON, ['"DSD_wide"', '"CL_SEX"', '"CS_VARIABLES"'], []),
    (JSON, "/structure/dataflow?detail=allcompletestubs", JSON, ['"DF_1_1"', "annotations"], ['"dataStructures"']),
    (JSON, "/availability/dataflow/CENSUS/DF_wide/1.0?references=all", JSON, ['"Y0"', '"codelists"'], []),
    # rsdmx
    (XML, "/datastructure/all/DSD_wide/latest/?references=children", STRUCTURE_2_1, ["CL_SEX", "CS_VAR"], ["DF_w"]),
    (XML, "/dataflow/all/all/latest/", STRUCTURE_2_1, ["DF_wide"], []),
    (XML, "/conceptscheme/all/all/latest/", STRUCTURE_2_1, ["OBS_STATUS"], ["<str:Codelist "]),
]  # fmt: skip
DATA = [
    # sdmx1, 2.1: whatever comes, and by the structure that it holds
    (ANYTHING, "/data/DF_wide/_T+MT1.1.?startPeriod=2021", GENERIC),
    (SPECIFIC, "/data/DF_wide/_T+MT1.1.", SPECIFIC),
    # sdmx1, 3.0
    (ANYTHING, "/data/dataflow/CENSUS/DF_wide/1.0/_T+MT1.1.*", GENERIC),
    # pysdmx
    (CSV, "/data/dataflow/CENSUS/DF_wide/1.0/_T+MT1.1.*/", CSV),
    (CSV, "/data/dataflow/CENSUS/DF_wide/1.0/*?c[GEO]=_T,MT1&c[SEX]=1&dimensionAtObservation=AllDimensions", CSV),
    (CSV, "/data/dataflow/CENSUS/DF_wide/1.0?c[GEO]=_T,MT1&c[SEX]=1&updatedAfter=2021-01-01T00:00:00Z", CSV),
    # rsdmx
    (XML, "/data/DF_wide/_T+MT1.1./all/", GENERIC),
    (XML, "/data/DF_wide/_T+MT1.1./CENSUS/?startPeriod=2020&endPeriod=2022", GENERIC),
]  # fmt: skip


@pytest.mark.parametrize(("accept", "path", "sent", "holds", "lacks"), STRUCTURES)
def test_structures_are_sent_as_the_client_reads_them(
    rest: Client, accept: str, path: str, sent: str, holds: list[str], lacks: list[str]
) -> None:
    found = rest.get(path, headers={"Accept": accept})
    assert found.headers["content-type"] == sent
    assert [text for text in holds if text not in found.text] == []
    assert [text for text in lacks if text in found.text] == []


@pytest.mark.parametrize(("accept", "path", "sent"), few(DATA, 0, 3, 6))
def test_data_are_sent_as_the_client_reads_them_with_the_published_values(
    rest: Client, wide: Cells, accept: str, path: str, sent: str
) -> None:
    found = rest.get(path, headers={"Accept": accept})
    assert found.headers["content-type"] == sent
    values = read(found.text, sent)
    assert {codes[:2] for codes in values} == {("_T", "1"), ("MT1", "1")}
    assert all(value == wide.get(codes, 0) for codes, value in values.items())
    assert sum(values.values()) > 0


def read(text: str, sent: str) -> dict[tuple[str, ...], int]:
    """Values by (GEO, SEX, AGE)."""
    rows: list[dict[str, Any]]
    if sent == CSV:
        rows = list(csv.DictReader(io.StringIO(text)))
    elif sent == SPECIFIC:
        rows = [dict(one.attrib) for one in ET.fromstring(text).iter("Obs")]
    else:
        rows = [_generic(one) for one in ET.fromstring(text).iter(f"{GENERIC_SPACE}Obs")]
    return {(row["GEO"], row["SEX"], row["AGE"]): int(row["OBS_VALUE"]) for row in rows}


def _generic(element: ET.Element) -> dict[str, Any]:
    key = {one.get("id", ""): one.get("value") for one in element.iter(f"{GENERIC_SPACE}Value")}
    value = element.find(f"{GENERIC_SPACE}ObsValue")
    assert value is not None
    return {**key, "OBS_VALUE": value.get("value")}


@pytest.mark.parametrize("path", ["/metadata/dataflow/CENSUS/DF_wide", "/registration/id/x", "/metadata"])
def test_what_sdmx_has_and_this_server_has_not_is_not_implemented(rest: Client, path: str) -> None:
    found = rest.get(path)
    assert found.status_code == 501
    assert 'code="501"' in found.text


def test_a_key_that_a_client_took_for_a_way_up_is_explained(rest: Client) -> None:
    found = rest.get("/data/DF_wide/..")  # clients, this one too, send /data
    assert found.status_code == 422
    assert "write all" in found.text


def test_errors_are_those_of_sdmx_json_too(rest: Client) -> None:
    found = rest.get("/data/DF_wide/x..", headers={"Accept": "application/vnd.sdmx.data+json;version=2.0.0"})
    assert found.headers["content-type"] == "application/problem+json"
    assert found.json()["errors"] == [{"code": 100, "detail": found.json()["detail"]}]
