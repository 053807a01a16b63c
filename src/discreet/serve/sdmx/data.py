"""SDMX data messages: observations as CSV, JSON and XML."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from discreet.formats.sdmx import ATTRIBUTES, OBSERVATION, PREPARED, PUBLISHED, SUPPRESSED, component_id
from discreet.serve.answer import Answer
from discreet.serve.sdmx.registry import Dimension, Flow, Pick


class Detail(Enum):
    """How much of an observation is written."""

    FULL = auto()
    VALUES = auto()  # no attributes
    KEYS = auto()  # no values


@dataclass(frozen=True, eq=False)
class Observations:
    """Cells of a dataflow in row-major order of ``dimensions``; where ``withheld`` is true the value means nothing."""

    flow: Flow
    dimensions: tuple[Dimension, ...]
    codes: tuple[tuple[str, ...], ...]  # dimension -> SDMX ids
    values: NDArray[np.int64]  # (cells,)
    withheld: NDArray[np.bool_]  # (cells,)
    shown: NDArray[np.bool_]  # (cells,), false where no key asks for the cell
    detail: Detail = Detail.FULL

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of codes along each dimension."""
        return tuple(map(len, self.codes))

    def with_last(self, dimension: Dimension) -> Observations:
        """The same observations, one dimension varying fastest."""
        place = self.dimensions.index(dimension)
        order = [*(k for k in range(len(self.codes)) if k != place), place]

        def moved(cells: NDArray[np.generic]) -> NDArray[np.generic]:
            return cells.reshape(self.shape).transpose(order).reshape(-1)

        return Observations(
            self.flow,
            tuple(self.dimensions[k] for k in order),
            tuple(self.codes[k] for k in order),
            moved(self.values).astype(np.int64),
            moved(self.withheld).astype(np.bool_),
            moved(self.shown).astype(np.bool_),
            self.detail,
        )

    def first(self, number: int) -> Observations:
        """The first observations along the last dimension, or the last ones where the number is negative."""
        kept = slice(None, number) if number > 0 else slice(number, None)
        return Observations(
            self.flow,
            self.dimensions,
            (*self.codes[:-1], self.codes[-1][kept]),
            self.values.reshape(self.shape)[..., kept].reshape(-1),
            self.withheld.reshape(self.shape)[..., kept].reshape(-1),
            self.shown.reshape(self.shape)[..., kept].reshape(-1),
            self.detail,
        )


def observations(flow: Flow, pick: Pick, answer: Answer, detail: Detail) -> Observations:
    """The observations of an answer to a pick."""
    return Observations(
        flow, flow.dimensions, pick.codes, answer.values, answer.withheld, pick.inside, detail
    )


def keys_alone(flow: Flow, pick: Pick) -> Observations:
    """The keys without values, for which nobody needs to be asked."""
    shown = pick.inside
    none = np.zeros(len(shown), dtype=bool)
    return Observations(flow, flow.dimensions, pick.codes, none.astype(np.int64), none, shown, Detail.KEYS)


def cells(
    found: Observations, keys: list[list[str]], published: str, suppressed: str
) -> Iterator[tuple[str, str]]:
    """Key and ending of each cell that is shown."""
    cells = zip(
        product(*keys), found.values.tolist(), found.withheld.tolist(), found.shown.tolist(), strict=True
    )
    for key, value, withheld, shown in cells:
        if shown:
            yield "".join(key), suppressed if withheld else published % value


def series(
    found: Observations, keys: list[list[str]], last: list[str], published: str, suppressed: str
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Key of each series that has a cell shown, with its observations; none of them where keys alone are wanted."""
    shape = (-1, len(last))
    rows = zip(
        product(*keys[:-1]),
        found.values.reshape(shape).tolist(),
        found.withheld.reshape(shape).tolist(),
        found.shown.reshape(shape).tolist(),
        strict=True,
    )
    for key, values, hidden, shown in rows:
        if any(shown):
            pieces = [
                (at, suppressed if withheld else published % value)
                for at, value, withheld, is_shown in zip(last, values, hidden, shown, strict=True)
                if is_shown and found.detail is not Detail.KEYS
            ]
            yield "".join(key), pieces


# ids hold no comma, quote or line end, so that nothing needs quotes
_PLAIN = csv.WriteOptions(include_header=False, quoting_style="none")


def write_csv_2(found: Observations) -> bytes:
    """SDMX-CSV 2.0: the dataflow and the action stand in every row."""
    fixed = {"STRUCTURE": "dataflow", "STRUCTURE_ID": _flow(found), "ACTION": "I"}
    return _written(found, fixed)


def write_csv_1(found: Observations) -> bytes:
    """SDMX-CSV 1.0, which pandas connectors ask for."""
    return _written(found, {"DATAFLOW": _flow(found)})


def _flow(found: Observations) -> str:
    return f"{found.flow.agency}:{found.flow.id}({found.flow.version})"


def _written(found: Observations, fixed: dict[str, str]) -> bytes:
    rows = np.flatnonzero(found.shown)
    zeros = np.zeros(len(rows), dtype=np.int32)
    columns = {name: pa.DictionaryArray.from_arrays(zeros, pa.array([text])) for name, text in fixed.items()}
    for dimension, codes, nodes in zip(
        found.dimensions, found.codes, np.unravel_index(rows, found.shape), strict=True
    ):
        columns[dimension.id] = pa.DictionaryArray.from_arrays(nodes.astype(np.int32), pa.array(codes))
    withheld = found.withheld[rows]
    if found.detail is not Detail.KEYS:
        columns[OBSERVATION] = pa.array(found.values[rows], mask=withheld)
    if found.detail is Detail.FULL:
        for name in ATTRIBUTES:
            texts = pa.array([PUBLISHED[name], SUPPRESSED[name]])
            columns[name] = pa.DictionaryArray.from_arrays(withheld.astype(np.int32), texts)
    sink = io.BytesIO()
    sink.write((",".join(columns) + "\n").encode())
    csv.write_csv(pa.table(columns), sink, _PLAIN)
    return sink.getvalue()


_SCHEMA = "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/master/data-message/tools/schemas"
_PLACE = "%PLACE%"  # where the observations go; no id or label becomes it, since JSON text is searched for it quoted


def write_json_2(found: Observations, at: Dimension | None) -> bytes:
    """SDMX-JSON 2.0: several structures could be told, one is."""
    told = _structure(found, at, {"observation": {}})
    if found.detail is not Detail.KEYS:
        told["measures"] = {"observation": [{"id": OBSERVATION, "name": "Published value"}]}
    data = {"structures": [{**told, "dataSets": [0]}], "dataSets": [{"structure": 0, **_set(found)}]}
    return _json_message(found, at, "2.0.0", data)


def write_json_1(found: Observations, at: Dimension | None) -> bytes:
    """SDMX-JSON 1.0: one structure, and no measures but the primary one."""
    told = _structure(found, at, {"primaryMeasure": OBSERVATION})
    return _json_message(found, at, "1.0", {"structure": told, "dataSets": [_set(found)]})


def _json_message(found: Observations, at: Dimension | None, version: str, data: dict[str, Any]) -> bytes:
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


_SCHEMAS = "http://www.sdmx.org/resources/sdmxml/schemas"
_ALL = "AllDimensions"
V2_1, V3_0 = "v2_1", "v3_0"  # as the names of schemas spell the versions


def write_generic(found: Observations, at: Dimension | None) -> bytes:
    """Generic data: every dimension and attribute is an element with its name; ``at`` stands at the observation."""
    opened = f'<mes:GenericData {_spaces(V2_1)} xmlns:gen="{_SCHEMAS}/{V2_1}/data/generic">'
    data = f'<mes:DataSet structureRef="{found.flow.structure}" action="Information">'
    inside = _generic_flat(found) if at is None else _generic_series(found.with_last(at))
    return _xml_message(
        opened, _header(found, at, "", V2_1), data, inside, "</mes:DataSet></mes:GenericData>"
    )


def write_specific(found: Observations, at: Dimension | None, version: str) -> bytes:
    """Structure-specific data: dimensions and attributes are attributes of XML."""
    space = f"{found.flow.urn}:ObsLevelDim:{_name(at)}"
    opened = (
        f'<mes:StructureSpecificData {_spaces(version)} xmlns:ss="{_SCHEMAS}/{version}/data/structurespecific" '
        f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:flow="{space}">'
    )
    scope = 'ss:dataScope="DataStructure" ' if version == V2_1 else ""
    data = (
        f'<mes:DataSet ss:structureRef="{found.flow.structure}" xsi:type="flow:DataSetType" '
        f'{scope}ss:action="Information">'
    )
    inside = _specific_flat(found) if at is None else _specific_series(found.with_last(at))
    header = _header(found, at, f' namespace="{space}"', version)
    return _xml_message(opened, header, data, inside, "</mes:DataSet></mes:StructureSpecificData>")


def _xml_message(opened: str, header: str, data: str, inside: Iterable[str], closed: str) -> bytes:
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n', opened, header, data, *inside, closed]
    return "".join(parts).encode()


def _spaces(version: str) -> str:
    return f'xmlns:mes="{_SCHEMAS}/{version}/message" xmlns:com="{_SCHEMAS}/{version}/common"'


def _header(found: Observations, at: Dimension | None, space: str, version: str) -> str:
    flow, reference = found.flow, found.flow.urn
    if version == V2_1:
        reference = (
            f'<Ref agencyID="{flow.agency}" id="{flow.id}" version="{flow.version}" class="Dataflow"/>'
        )
    return (
        f"<mes:Header><mes:ID>{flow.id}</mes:ID><mes:Test>false</mes:Test>"
        f"<mes:Prepared>{PREPARED:%Y-%m-%dT%H:%M:%SZ}</mes:Prepared>"
        f'<mes:Sender id="{component_id(flow.agency)}"/>'
        f'<mes:Structure structureID="{flow.structure}"{space} dimensionAtObservation="{_name(at)}">'
        f"<com:StructureUsage>{reference}</com:StructureUsage></mes:Structure></mes:Header>"
    )


def _name(at: Dimension | None) -> str:
    return _ALL if at is None else at.id


def _generic_flat(found: Observations) -> Iterator[str]:
    for key, ending in cells(found, _generic_keys(found), *_generic_endings(found)):
        yield f"<gen:Obs><gen:ObsKey>{key}</gen:ObsKey>{ending}</gen:Obs>"


def _generic_series(found: Observations) -> Iterator[str]:
    """Series of all dimensions but the last."""
    last = [f'<gen:ObsDimension value="{code}"/>' for code in found.codes[-1]]
    endings = _generic_endings(found)
    for key, pieces in series(found, _generic_keys(found), last, *endings):
        inside = "".join(f"<gen:Obs>{at}{ending}</gen:Obs>" for at, ending in pieces)
        yield f"<gen:Series><gen:SeriesKey>{key}</gen:SeriesKey>{inside}</gen:Series>"


def _generic_keys(found: Observations) -> list[list[str]]:
    return [
        [f'<gen:Value id="{dimension.id}" value="{code}"/>' for code in codes]
        for dimension, codes in zip(found.dimensions, found.codes, strict=True)
    ]


def _generic_endings(found: Observations) -> tuple[str, str]:
    """What follows the key, where a value is shown (with a place for it) and where it is withheld."""

    def attributes(said: dict[str, str]) -> str:
        inside = "".join(f'<gen:Value id="{name}" value="{code}"/>' for name, code in said.items())
        return f"<gen:Attributes>{inside}</gen:Attributes>" if found.detail is Detail.FULL else ""

    return '<gen:ObsValue value="%d"/>' + attributes(PUBLISHED), attributes(SUPPRESSED)


def _specific_flat(found: Observations) -> Iterator[str]:
    for key, ending in cells(found, _specific_keys(found), *_specific_endings(found)):
        yield f"<Obs{key}{ending}/>"


def _specific_series(found: Observations) -> Iterator[str]:
    keys = _specific_keys(found)
    for key, pieces in series(found, keys, keys[-1], *_specific_endings(found)):
        inside = "".join(f"<Obs{at}{ending}/>" for at, ending in pieces)
        yield f"<Series{key}>{inside}</Series>"


def _specific_keys(found: Observations) -> list[list[str]]:
    return [
        [f' {dimension.id}="{code}"' for code in codes]
        for dimension, codes in zip(found.dimensions, found.codes, strict=True)
    ]


def _specific_endings(found: Observations) -> tuple[str, str]:
    def attributes(said: dict[str, str]) -> str:
        given = said.items() if found.detail is Detail.FULL else ()
        return "".join(f' {name}="{code}"' for name, code in given)

    return f' {OBSERVATION}="%d"' + attributes(PUBLISHED), attributes(SUPPRESSED)
