"""The real clients sdmx1 and pysdmx against a running server: they read what the release has published."""

import socket
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sdmx
import sdmx.reader.xml.v30  # it cannot be imported after a 2.1 data message was read
from pysdmx.api.dc.pd import PandasConnector
from pysdmx.api.dc.rest import SdmxConnector
from pysdmx.api.fmr import RegistryClient
from pysdmx.api.qb import (
    ApiVersion,
    AvailabilityFormat,
    AvailabilityQuery,
    DataContext,
    DataFormat,
    DataQuery,
    RestService,
    SchemaContext,
    SchemaQuery,
    StructureFormat,
    StructureQuery,
    StructureType,
)
from pysdmx.api.qb.structure import StructureReference
from pysdmx.errors import Invalid, NotFound
from pysdmx.io import get_datasets, read_sdmx
from requests import HTTPError
from sdmx.format import Version
from sdmx.source import Source

from discreet.formats.sdmx_ids import code_ids
from discreet.programme.codelist import Breakdown
from discreet.release.reader import Release
from tests.cases import few
from tests.serve.conftest import published
from tests.serve.sdmx.conftest import Cells

AGENCY = "CENSUS"
FLOW = f"Dataflow={AGENCY}:DF_wide(1.0)"


@pytest.fixture(autouse=True)
def inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No client calls anything but the server under test."""
    connect = socket.socket.connect

    def connected(one: socket.socket, address: Any) -> None:
        assert address[0] == "127.0.0.1", f"a call to {address}"
        connect(one, address)

    monkeypatch.setattr(socket.socket, "connect", connected)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """pysdmx says of its connectors that they are experimental; sdmx1 asks pandas in a way that will change."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is experimental.*")
        warnings.filterwarnings("ignore", category=FutureWarning, module=r"sdmx\.")
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"sdmx\.")
        yield


def client(endpoint: str, version: str = "2.1") -> sdmx.Client:
    """A client of sdmx1 for this server alone: it does not enter the list of sources that it knows."""
    made = sdmx.Client()
    supports: dict[Any, bool] = {"availableconstraint": True, "preview": True}
    made.source = Source(AGENCY, endpoint, "test", versions={Version[version]}, supports=supports)
    return made


def agrees(found: Mapping[Any, float], cells: Cells) -> bool:
    """Whether values are the published ones, and zero where nothing is listed."""
    assert found
    assert all(value == cells.get(codes, 0) for codes, value in found.items())
    return True


def table(series: "pd.Series[float]") -> dict[tuple[str, ...], float]:
    """Values by (GEO, SEX, AGE)."""
    ordered = series.reorder_levels(["GEO", "SEX", "AGE"])
    return {tuple(map(str, key)): float(value) for key, value in ordered.items()}


@pytest.mark.parametrize("version", ["2.1", "3.0.0"])
def test_sdmx1_lists_dataflows_and_their_structures(
    endpoint: str, release: Release, axes: tuple[Breakdown, ...], version: str
) -> None:
    asked = client(endpoint, version)
    listed = asked.dataflow()
    assert {flow.id for flow in listed.dataflow.values()} == {
        f"DF_{entry.id.replace('.', '_')}" for entry in release.manifest.cubes
    }
    found = asked.dataflow("DF_wide", params={"references": "all"})
    structure = found.structure["DSD_wide"]
    assert [one.id for one in structure.dimensions] == ["GEO", "SEX", "AGE"]
    assert [one.id for one in structure.attributes] == [
        "OBS_STATUS",
        "CONF_STATUS",
        "LOWER_BOUND",
        "UPPER_BOUND",
    ]
    assert [code.id for code in found.codelist["CL_AGE_H"]] == list(code_ids(axes[2].codes))
    assert "cell key" in str(found.dataflow["DF_wide"].annotations[0].text)


def test_sdmx1_reads_the_published_values_as_generic_data(
    endpoint: str, release: Release, wide: Cells
) -> None:
    asked = client(endpoint)
    some = table(sdmx.to_pandas(asked.data("DF_wide", key="_T+MT1.1.", params={"startPeriod": "2021"})))
    assert {codes[:2] for codes in some} == {("_T", "1"), ("MT1", "1")}
    assert agrees(some, wide)
    whole = sdmx.to_pandas(asked.data("DF_adults")).reorder_levels(["GEO", "CAS", "EDU"])
    adults = published(release, "adults")
    found = {tuple(map(str, key)): float(value) for key, value in whole.items()}
    assert sorted(value for value in found.values() if value) == sorted(adults.values())


def test_sdmx1_makes_keys_from_the_structure_and_reads_structure_specific_data(
    endpoint: str, wide: Cells
) -> None:
    asked = client(endpoint)
    structure = asked.dataflow("DF_wide").structure["DSD_wide"]
    message = asked.data("DF_wide", key={"SEX": "2", "GEO": ["_T"]}, dsd=structure)
    assert "structurespecific" in message.response.headers["content-type"]
    found = table(sdmx.to_pandas(message))
    assert {codes[:2] for codes in found} == {("_T", "2")}
    assert agrees(found, wide)
    unasked = table(sdmx.to_pandas(asked.data("DF_wide", key={"SEX": "1", "AGE": "Y0"})))
    assert agrees(unasked, wide)
    assert {codes[1] for codes in unasked} == {"1"}


def test_sdmx1_reads_series_and_their_keys(endpoint: str, wide: Cells) -> None:
    asked = client(endpoint)
    message = asked.data("DF_wide", key="_T..", params={"dimensionAtObservation": "SEX"})
    assert len(message.data[0].series) == len({codes[2] for codes in table(sdmx.to_pandas(message))})
    assert agrees(table(sdmx.to_pandas(message)), wide)
    keys = asked.series_keys("DF_wide")
    assert {str(key["SEX"].value) for key in keys} == {"_T", "1", "2"}


def test_sdmx1_speaks_3_0(endpoint: str, wide: Cells) -> None:
    asked = client(endpoint, "3.0.0")
    message = asked.data("DF_wide", key="_T.*.Y0+Y1", context="dataflow", version="1.0")
    found = table(sdmx.to_pandas(message))
    assert {codes[2] for codes in found} == {"Y0", "Y1"}
    assert agrees(found, wide)


def test_sdmx1_reads_the_data_of_3_0(endpoint: str, wide: Cells) -> None:
    headers = {"Accept": "application/vnd.sdmx.data+xml;version=3.0.0"}
    key = {"key": "_T.*.Y0+Y1", "context": "dataflow", "version": "1.0"}
    message = client(endpoint, "3.0.0").data("DF_wide", **key, headers=headers)
    assert message.response.headers["content-type"] == headers["Accept"]
    read = sdmx.to_pandas(message)  # it has no structure at hand and takes attributes for dimensions
    found = table(read.droplevel(["OBS_STATUS", "CONF_STATUS"]))
    assert {codes[2] for codes in found} == {"Y0", "Y1"}
    assert agrees(found, wide)


def test_sdmx1_learns_what_is_available(endpoint: str) -> None:
    message = client(endpoint).availableconstraint("DF_wide", key="_T.1+2.")
    (region,) = next(iter(message.constraint.values())).data_content_region
    members = {one.id: {value.value for value in held.values} for one, held in region.member.items()}
    assert members["GEO"] == {"_T"}
    assert members["SEX"] == {"1", "2"}
    assert "Y0" in members["AGE"]


def test_sdmx1_tells_that_there_is_nothing(endpoint: str) -> None:
    with pytest.raises(HTTPError, match="404"):
        client(endpoint).data("DF_nothing")
    with pytest.raises(HTTPError, match="404"):
        client(endpoint).data("DF_wide", key="nowhere..")


def test_pysdmx_discovers_dataflows_and_reads_their_data(
    endpoint: str, release: Release, axes: tuple[Breakdown, ...], wide: Cells
) -> None:
    connector = SdmxConnector(endpoint)
    flows = connector.dataflows()
    assert len(flows) == len(release.manifest.cubes)
    assert connector.dataflows("wide")[0].description == "Count of persons"
    flow = connector.dataflow(FLOW)
    assert [one.id for one in flow.components.dimensions] == ["GEO", "SEX", "AGE"]
    assert [one.id for one in flow.components["SEX"].enumeration] == ["_T", "1", "2"]
    assert flow.obs_count == int(np.prod([len(axis) for axis in axes]))
    rows = list(connector.data(FLOW, "SEX = '1' AND AGE IN ('Y0', 'Y1') AND GEO <> '_T'"))
    found = {(row["GEO"], row["SEX"], row["AGE"]): float(row["OBS_VALUE"]) for row in rows}
    assert {codes[1:] for codes in found} == {("1", "Y0"), ("1", "Y1")}
    assert all(codes[0] != "_T" for codes in found)
    assert agrees(found, wide)


def test_pysdmx_makes_data_frames(endpoint: str, wide: Cells) -> None:
    frame = PandasConnector(endpoint).data(f"{AGENCY}:DF_wide(1.0)", "GEO = '_T'")
    found = {(str(r.GEO), str(r.SEX), str(r.AGE)): float(r.OBS_VALUE) for r in frame.itertuples()}
    assert agrees(found, wide)
    assert set(frame.OBS_STATUS) == {"A"}


def test_pysdmx_reads_structures_as_from_a_registry(endpoint: str, axes: tuple[Breakdown, ...]) -> None:
    registry = RegistryClient(endpoint)
    assert {flow.id for flow in registry.get_dataflows(AGENCY)} >= {"DF_wide", "DF_1_1"}
    schema = registry.get_schema("dataflow", AGENCY, "DF_wide", "1.0")
    assert [one.id for one in schema.components.dimensions] == ["GEO", "SEX", "AGE"]
    codes = registry.get_codes(AGENCY, "CL_AGE_H", "1.0")
    assert [code.id for code in codes] == list(code_ids(axes[2].codes))
    assert {one.id for one in registry.get_concepts(AGENCY, "CS_VARIABLES", "1.0")} >= {"SEX", "OBS_STATUS"}
    (definition,) = registry.get_data_structures(AGENCY, "DSD_wide", "1.0")
    assert [one.id for one in definition.components.attributes] == [
        "OBS_STATUS",
        "CONF_STATUS",
        "LOWER_BOUND",
        "UPPER_BOUND",
    ]
    tree = registry.get_hierarchy(AGENCY, "H_AGE_H", "1.0")
    assert tree.codes[0].id == "_T"
    assert [agency.id for agency in registry.get_agencies("SDMX")] == [AGENCY]


@pytest.mark.parametrize("form", [DataFormat.SDMX_CSV_2_0_0, DataFormat.SDMX_CSV_1_0_0, DataFormat.SDMX_ML_2_1_GEN,
                                  DataFormat.SDMX_ML_2_1_STR, DataFormat.SDMX_ML_3_0])  # fmt: skip
@pytest.mark.parametrize("version", few([ApiVersion.V1_5_0, ApiVersion.V2_2_0], 1))
def test_pysdmx_reads_every_format_of_both_versions(
    endpoint: str, wide: Cells, form: DataFormat, version: ApiVersion
) -> None:
    service = RestService(endpoint, version, data_format=form, structure_format=StructureFormat.SDMX_ML_2_1)
    whole = "1.0" if version < ApiVersion.V2_0_0 else "+"
    query = DataQuery(DataContext.DATAFLOW, AGENCY, "DF_wide", whole, "_T+MT1.2._T+Y_LT15")
    asked = StructureQuery(
        StructureType.DATAFLOW, AGENCY, "DF_wide", references=StructureReference.DESCENDANTS
    )
    structures = service.structure(asked).decode()
    (dataset,) = get_datasets(service.data(query).decode(), structures)
    frame = dataset.data
    found = {(str(r.GEO), str(r.SEX), str(r.AGE)): float(r.OBS_VALUE) for r in frame.itertuples()}
    assert len(found) == 4
    assert agrees(found, wide)


@pytest.mark.parametrize("form", list(AvailabilityFormat))
def test_pysdmx_reads_availability_and_schemas(endpoint: str, form: AvailabilityFormat) -> None:
    offered = {
        AvailabilityFormat.SDMX_JSON_2_0_0,
        AvailabilityFormat.SDMX_ML_2_1,
        AvailabilityFormat.SDMX_ML_3_0,
    }
    service = RestService(endpoint, ApiVersion.V2_0_0, avail_format=form)
    query = AvailabilityQuery(DataContext.DATAFLOW, AGENCY, "DF_wide", "1.0", "_T.*.*", "SEX")
    if form not in offered:
        with pytest.raises(Invalid, match="406"):
            service.availability(query)
        return
    (constraint,) = read_sdmx(service.availability(query).decode(), validate=False).structures
    (only,) = constraint.cube_region.key_values
    assert (only.id, [value.value for value in only.values]) == ("SEX", ["_T", "1", "2"])
    schema = service.schema(SchemaQuery(SchemaContext.DATAFLOW, AGENCY, "DF_wide", "1.0"))
    assert b"DSD_wide" in schema


def test_pysdmx_tells_what_is_wrong(endpoint: str) -> None:
    connector = SdmxConnector(endpoint)
    with pytest.raises(NotFound):
        list(connector.data(f"Dataflow={AGENCY}:DF_nothing(1.0)"))
    with pytest.raises(NotFound):
        list(connector.data(FLOW, "SEX = '3'"))
    with pytest.raises(Invalid, match="400"):
        list(connector.data(FLOW, "HEIGHT = '3'"))


def test_a_release_without_records_gives_the_same_data(released: str, wide: Cells) -> None:
    assert agrees(table(sdmx.to_pandas(client(released).data("DF_wide", key=".1._T+Y_LT15"))), wide)
    rows = SdmxConnector(released).data(FLOW, "SEX = '2'")
    assert agrees({(row["GEO"], row["SEX"], row["AGE"]): float(row["OBS_VALUE"]) for row in rows}, wide)
