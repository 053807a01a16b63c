"""Observations as SDMX-JSON 2.0 and 1.0: codes with their labels, then values by position; it owns that shape alone."""

from __future__ import annotations

import json
from typing import Any

from discreet.release.sdmx_ids import component_id
from discreet.release.sdmx_status import ATTRIBUTES, PUBLISHED, SUPPRESSED
from discreet.release.sdmx_structures import OBSERVATION, PREPARED
from discreet.serve.sdmx.observations import Detail, Observations
from discreet.serve.sdmx.pieces import cells, series
from discreet.serve.sdmx.registry import Dimension

_SCHEMA = "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/master/data-message/tools/schemas"
_PLACE = "%PLACE%"  # where the observations go; no id or label becomes it, since JSON text is searched for it quoted


def write_json_2(found: Observations, at: Dimension | None) -> bytes:
    """SDMX-JSON 2.0: several structures could be told, one is."""
    told = _structure(found, at, {"observation": {}})
    if found.detail is not Detail.KEYS:
        told["measures"] = {"observation": [{"id": OBSERVATION, "name": "Published value"}]}
    data = {"structures": [{**told, "dataSets": [0]}], "dataSets": [{"structure": 0, **_set(found)}]}
    return _message(found, at, "2.0.0", data)


def write_json_1(found: Observations, at: Dimension | None) -> bytes:
    """SDMX-JSON 1.0: one structure, and no measures but the primary one."""
    told = _structure(found, at, {"primaryMeasure": OBSERVATION})
    return _message(found, at, "1.0", {"structure": told, "dataSets": [_set(found)]})


def _message(found: Observations, at: Dimension | None, version: str, data: dict[str, Any]) -> bytes:
    meta = {
        "schema": f"{_SCHEMA}/{version}/sdmx-json-data-schema.json",
        "id": found.flow.id,
        "test": False,
        "prepared": f"{PREPARED:%Y-%m-%dT%H:%M:%SZ}",
        "sender": {"id": component_id(found.flow.agency)},
    }
    data["dataSets"][0]["observations" if at is None else "series"] = _PLACE
    text = json.dumps({"meta": meta, "data": data}, ensure_ascii=False, separators=(",", ":"))
    before, _, after = text.rpartition(f'"{_PLACE}"')
    inside = _flat(found) if at is None else _series(found.with_last(at))
    return f"{before}{{{inside}}}{after}".encode()


def _set(found: Observations) -> dict[str, Any]:
    return {"action": "Information", "links": [{"rel": "dataflow", "urn": found.flow.urn}]}


def _structure(found: Observations, at: Dimension | None, relationship: dict[str, Any]) -> dict[str, Any]:
    """Which codes the positions in keys mean, and which status those behind a value."""
    told = [_dimension(found, place) for place in range(len(found.dimensions))]
    series = [one for one in told if at is not None and one["id"] != at.id]
    dimensions = {
        "dataSet": [],
        "series": series,
        "observation": [one for one in told if one not in series],
    }
    said = found.detail is Detail.FULL
    attributes = [_attribute(name, relationship) for name in ATTRIBUTES if said]
    return {
        "name": found.flow.table.title or found.flow.table.id,
        "links": [{"rel": "dataflow", "urn": found.flow.urn}],
        "dimensions": dimensions,
        "attributes": {"dataSet": [], "series": [], "observation": attributes},
    }


def _dimension(found: Observations, place: int) -> dict[str, Any]:
    dimension = found.dimensions[place]
    labels = dict(zip(dimension.codes, dimension.axis.labels, strict=True))
    return {
        "id": dimension.id,
        "name": dimension.name,
        "keyPosition": found.flow.dimensions.index(dimension),
        "values": [{"id": code, "name": labels[code]} for code in found.codes[place]],
    }


def _attribute(name: str, relationship: dict[str, Any]) -> dict[str, Any]:
    said, labels = ATTRIBUTES[name]
    values = [{"id": code, "name": labels[code]} for code in (PUBLISHED[name], SUPPRESSED[name])]
    return {"id": name, "name": said, "relationship": relationship, "values": values}


def _flat(found: Observations) -> str:
    return ",".join(f'"{key}":{ending}' for key, ending in cells(found, _keys(found.shape), *_endings(found)))


def _series(found: Observations) -> str:
    """Series of all dimensions but the last; a table of one dimension is one series without a key."""
    *others, length = found.shape
    last = [str(place) for place in range(length)]
    told = []
    for key, pieces in series(found, [*_keys(tuple(others)), last], last, *_endings(found)):
        inside = ",".join(f'"{at}":{ending}' for at, ending in pieces)
        told.append(f'"{key or 0}":{{"observations":{{{inside}}}}}')
    return ",".join(told)


def _keys(shape: tuple[int, ...]) -> list[list[str]]:
    """Positions along each dimension, with the colon that follows where another one does."""
    return [
        [f"{place}:" if k < len(shape) - 1 else str(place) for place in range(length)]
        for k, length in enumerate(shape)
    ]


def _endings(found: Observations) -> tuple[str, str]:
    """The value and the places of its status among those told: published ones first, suppressed ones second."""
    return ("[%d,0,0]", "[null,1,1]") if found.detail is Detail.FULL else ("[%d]", "[null]")
