"""One name has one content: what a release says of its tables in SDMX is what a server over it or its records says."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from httpx import Client
from pysdmx.io import get_datasets, read_sdmx
from pysdmx.model import DataStructureDefinition
from sdmx import read_sdmx as read_with_sdmx1

from discreet.pipeline.protect import protect
from discreet.programme.programme import Programme
from discreet.programme.release import ReleaseFormat
from tests.serve.conftest import NOON, SECRET
from tests.waiting import PATIENCE

STRUCTURE = "application/vnd.sdmx.structure+xml;version=3.0.0"


@pytest.fixture(scope="module")
def files(programme: Programme, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SDMX files of the release."""
    folder = tmp_path_factory.mktemp("structures")
    wanted = replace(programme.release, formats=(ReleaseFormat.SDMX_CSV,))
    protect(replace(programme, release=wanted), SECRET, folder / "r", folder / "p.json", clock=lambda: NOON)
    return folder / "r/sdmx"


def by_urn(message: str | Path) -> dict[tuple[str, ...], Any]:
    """Artefacts by what their URN consists of."""
    read = read_sdmx(message).structures
    return {(type(one).__name__, one.agency, one.id, one.version): one for one in read}


def parts(structure: Any) -> list[tuple[Any, ...]]:
    """The components of a data structure."""
    return [
        (one.id, one.role, one.required, one.dtype, one.attachment_level, one.local_enum_ref)
        for one in structure.components
    ]


@pytest.mark.parametrize("over", ["endpoint", "released"])
def test_a_server_and_a_release_say_the_same_of_the_same_urn(
    files: Path, over: str, request: pytest.FixtureRequest
) -> None:
    with Client(base_url=request.getfixturevalue(over), timeout=PATIENCE, verify=False) as rest:
        sent = rest.get("/structure/*/CENSUS", headers={"Accept": STRUCTURE}).text
    held, served = by_urn(files / "structures.xml"), by_urn(sent)
    assert len(held) > 20
    assert served.keys() == held.keys()
    for urn, artefact in held.items():
        if isinstance(artefact, DataStructureDefinition):
            assert parts(served[urn]) == parts(artefact)
        assert served[urn] == artefact, urn


def test_the_status_of_an_observation_is_declared_and_optional(files: Path) -> None:
    read: Any = read_with_sdmx1(io.BytesIO((files / "structures.xml").read_bytes()))
    attributes = read.structure["DSD_wide"].attributes
    assert [one.id for one in attributes] == ["OBS_STATUS", "CONF_STATUS", "LOWER_BOUND", "UPPER_BOUND"]
    (dataset,) = get_datasets(files / "wide.csv", files / "structures.xml")
    assert "OBS_STATUS" not in dataset.data.columns
    assert not dataset.structure.components["OBS_STATUS"].required
    assert "cell key" in str(read.dataflow["DF_wide"].annotations[0].text)
