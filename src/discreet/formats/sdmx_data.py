"""SDMX data messages of a dataset: SDMX-CSV 1.0 and 2.0, SDMX-JSON 1.0 and 2.0, SDMX-ML 2.1 and 3.0.

CSV streams in batches; JSON and XML are joined from pieces of text, since pysdmx takes far longer (decision 014).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from discreet.formats.columns import ROWS_AT_ONCE, TEXT
from discreet.formats.dataset import Dataset, Sink, opened
from discreet.formats.sdmx_ids import (
    ATTRIBUTES,
    OBSERVATION,
    PREPARED,
    PUBLISHED,
    SUPPRESSED,
    code_ids,
    component_id,
    dataflow_id,
    structure_id,
)


class Detail(Enum):
    """How much of an observation is written."""

    FULL = auto()
    VALUES = auto()  # no attributes
    KEYS = auto()  # no values


@dataclass(frozen=True, eq=False)
class Observations:
    """The cells of a dataset as observations of its dataflow."""

    dataset: Dataset
    shown: NDArray[np.bool_] | None = None  # (cells,), false where no key selects the cell; None for all
    detail: Detail = Detail.FULL
    positions: tuple[int, ...] | None = None  # axis -> position in a key; None where they are in that order

    @property
    def dimensions(self) -> list[str]:
        """Their ids, in the order in which the cells vary, last fastest."""
        return [component_id(axis.variable) for axis in self.dataset.axes]

    @cached_property
    def codes(self) -> list[tuple[str, ...]]:
        """Dimension -> SDMX ids of its codes."""
        return [axis.ids or code_ids(axis.codes) for axis in self.dataset.axes]

    @property
    def flow(self) -> str:
        """The id of the dataflow."""
        return dataflow_id(self.dataset.id)

    @property
    def reference(self) -> str:
        """The dataflow with its agency and version."""
        return f"{self.dataset.agency}:{self.flow}({self.dataset.version})"

    @property
    def urn(self) -> str:
        """The URN of the dataflow."""
        return f"urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow={self.reference}"

    def with_last(self, dimension: str) -> Observations:
        """The same observations, one dimension varying fastest."""
        place = self.dimensions.index(dimension)
        order = (*(k for k in range(len(self.codes)) if k != place), place)
        shown = self.shown
        if shown is not None:
            shown = shown.reshape(self.dataset.shape).transpose(order).reshape(-1)
        before = self.positions or range(len(order))
        positions = tuple(before[k] for k in order)
        return Observations(self.dataset.transposed(order), shown, self.detail, positions)

    def first(self, number: int) -> Observations:
        """The first observations along the last dimension, or the last ones where the number is negative."""
        part = slice(None, number) if number > 0 else slice(number, None)
        dataset, last = self.dataset, self.dataset.axes[-1]

        def cut(cells: NDArray[Any]) -> NDArray[Any]:
            return cells.reshape(dataset.shape)[..., part].reshape(-1)

        axis = replace(
            last,
            codes=last.codes[part],
            labels=last.labels[part],
            parents=last.parents[part],
            ids=self.codes[-1][part],
        )
        smaller = replace(
            dataset,
            axes=(*dataset.axes[:-1], axis),
            values=cut(dataset.values),
            withheld=None if dataset.withheld is None else cut(dataset.withheld),
        )
        return replace(self, dataset=smaller, shown=None if self.shown is None else cut(self.shown))


def write_csv_2(found: Observations, sink: Sink) -> None:
    """SDMX-CSV 2.0: with the dataflow and the action in every row."""
    _write_csv(found, sink, _fixed(found), _PLAIN)


def write_csv_1(found: Observations, sink: Sink) -> None:
    """SDMX-CSV 1.0, which pandas connectors request."""
    _write_csv(found, sink, {"DATAFLOW": found.reference}, _PLAIN)


def write_csv_file(
    dataset: Dataset, sink: Sink, numbers: Mapping[str, NDArray[np.float64]] | None = None
) -> None:
    """SDMX-CSV 2.0 as a file, with its texts in quotes as in other CSV files; ``numbers`` are further attributes."""
    found = Observations(dataset)
    _write_csv(found, sink, _fixed(found), csv.WriteOptions(), numbers or {})


# ids contain no comma, quote or line end, so that nothing needs quotes
_PLAIN = csv.WriteOptions(include_header=False, quoting_style="none")


def _fixed(found: Observations) -> dict[str, str]:
    return {"STRUCTURE": "dataflow", "STRUCTURE_ID": found.reference, "ACTION": "I"}


def _write_csv(
    found: Observations,
    sink: Sink,
    fixed: Mapping[str, str],
    options: csv.WriteOptions,
    numbers: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
) -> None:
    """Fixed texts, the key, the value, and its status where some are withheld; a bounded number of rows at a time."""
    dataset = found.dataset
    fields = [pa.field(name, TEXT) for name in (*fixed, *found.dimensions)]
    if found.detail is not Detail.KEYS:
        fields.append(pa.field(OBSERVATION, pa.from_numpy_dtype(dataset.values.dtype)))
    if found.detail is Detail.FULL and dataset.withheld is not None:
        fields += [pa.field(name, TEXT) for name in ATTRIBUTES]
    fields += [pa.field(name, pa.float64()) for name in numbers]
    schema = pa.schema(fields)
    with opened(sink) as file:
        if not options.include_header:
            file.write((",".join(schema.names) + "\n").encode())
        with csv.CSVWriter(file, schema, write_options=options) as writer:
            for start in range(0, len(dataset.values), ROWS_AT_ONCE):
                part = slice(start, start + ROWS_AT_ONCE)
                columns = _csv_columns(found, fixed, part)
                for name, of_cells in numbers.items():
                    columns[name] = pa.array(of_cells[part], from_pandas=True)
                arrays = [columns[name] for name in schema.names]
                writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _csv_columns(found: Observations, fixed: Mapping[str, str], part: slice) -> dict[str, pa.Array]:
    dataset = found.dataset
    wanted = slice(None) if found.shown is None else np.flatnonzero(found.shown[part])
    values = dataset.values[part][wanted]
    withheld = None if dataset.withheld is None else dataset.withheld[part][wanted]
    zeros = np.zeros(len(values), dtype=np.int32)
    columns = {name: _coded(zeros, [text]) for name, text in fixed.items()}
    for name, codes, nodes in zip(found.dimensions, found.codes, dataset.nodes(part), strict=True):
        columns[name] = _coded(nodes[wanted], codes)
    columns[OBSERVATION] = pa.array(values, mask=withheld)
    status = zeros if withheld is None else withheld.astype(np.int32)
    for name in ATTRIBUTES:
        columns[name] = _coded(status, [PUBLISHED[name], SUPPRESSED[name]])
    return columns


def _coded(places: NDArray[np.int32], texts: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(places, pa.array(texts, pa.string()))


def cells(
    found: Observations, keys: list[list[str]], published: str, suppressed: str
) -> Iterator[tuple[str, str]]:
    """Key and ending of each cell that is shown."""
    dataset = found.dataset
    cells = zip(
        product(*keys),
        dataset.window(0, dataset.size).tolist(),
        dataset.hidden.tolist(),
        _shown(found).tolist(),
        strict=True,
    )
    for key, value, withheld, shown in cells:
        if shown:
            yield "".join(key), suppressed if withheld else published % value


def series(
    found: Observations, keys: list[list[str]], last: list[str], published: str, suppressed: str
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Key of each series that has a cell shown, with its observations, unless only keys are requested."""
    shape = (-1, len(last))
    dataset = found.dataset
    rows = zip(
        product(*keys[:-1]),
        dataset.values.reshape(shape).tolist(),
        dataset.hidden.reshape(shape).tolist(),
        _shown(found).reshape(shape).tolist(),
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


def _shown(found: Observations) -> NDArray[np.bool_]:
    return np.ones(found.dataset.size, dtype=bool) if found.shown is None else found.shown


_SCHEMA = "https://raw.githubusercontent.com/sdmx-twg/sdmx-json/master/data-message/tools/schemas"
_PLACE = "%PLACE%"  # where the observations go; no id or label becomes it, since JSON text is searched for it quoted


def write_json_2(found: Observations, sink: Sink, at: str = "") -> None:
    """SDMX-JSON 2.0: a list of structures, of which there is one."""
    structure = _structure(found, at, {"observation": {}})
    if found.detail is not Detail.KEYS:
        structure["measures"] = {"observation": [{"id": OBSERVATION, "name": "Published value"}]}
    data = {"structures": [{**structure, "dataSets": [0]}], "dataSets": [{"structure": 0, **_set(found)}]}
    _write_json(found, sink, at, "2.0.0", data)


def write_json_1(found: Observations, sink: Sink, at: str = "") -> None:
    """SDMX-JSON 1.0: one structure, and no measures but the primary one."""
    structure = _structure(found, at, {"primaryMeasure": OBSERVATION})
    _write_json(found, sink, at, "1.0", {"structure": structure, "dataSets": [_set(found)]})


def _write_json(found: Observations, sink: Sink, at: str, version: str, data: dict[str, Any]) -> None:
    meta = {
        "schema": f"{_SCHEMA}/{version}/sdmx-json-data-schema.json",
        "id": found.flow,
        "test": False,
        "prepared": f"{PREPARED:%Y-%m-%dT%H:%M:%SZ}",
        "sender": {"id": component_id(found.dataset.agency)},
    }
    data["dataSets"][0]["series" if at else "observations"] = _PLACE
    text = json.dumps({"meta": meta, "data": data}, ensure_ascii=False, separators=(",", ":"))
    before, _, after = text.rpartition(f'"{_PLACE}"')
    inside = _series(found.with_last(at)) if at else _flat(found)
    with opened(sink) as file:
        file.write(f"{before}{{{inside}}}{after}".encode())


def _set(found: Observations) -> dict[str, Any]:
    return {"action": "Information", "links": [{"rel": "dataflow", "urn": found.urn}]}


def _structure(found: Observations, at: str, relationship: dict[str, Any]) -> dict[str, Any]:
    """Which codes the positions in keys mean, and which status those behind a value."""
    every = [_dimension(found, place) for place in range(len(found.codes))]
    series = [one for one in every if at and one["id"] != at]
    dimensions = {
        "dataSet": [],
        "series": series,
        "observation": [one for one in every if one not in series],
    }
    with_attributes = found.detail is Detail.FULL
    attributes = [_attribute(name, relationship) for name in ATTRIBUTES if with_attributes]
    return {
        "name": found.dataset.title,
        "links": [{"rel": "dataflow", "urn": found.urn}],
        "dimensions": dimensions,
        "attributes": {"dataSet": [], "series": [], "observation": attributes},
    }


def _dimension(found: Observations, place: int) -> dict[str, Any]:
    axis = found.dataset.axes[place]
    return {
        "id": component_id(axis.variable),
        "name": axis.name,
        "keyPosition": found.positions[place] if found.positions else place,
        "values": [
            {"id": code, "name": label} for code, label in zip(found.codes[place], axis.labels, strict=True)
        ],
    }


def _attribute(name: str, relationship: dict[str, Any]) -> dict[str, Any]:
    title, labels = ATTRIBUTES[name]
    values = [{"id": code, "name": labels[code]} for code in (PUBLISHED[name], SUPPRESSED[name])]
    return {"id": name, "name": title, "relationship": relationship, "values": values}


def _flat(found: Observations) -> str:
    return ",".join(
        f'"{key}":{ending}' for key, ending in cells(found, _keys(found.dataset.shape), *_endings(found))
    )


def _series(found: Observations) -> str:
    """Series of all dimensions but the last; a table of one dimension is one series without a key."""
    *others, length = found.dataset.shape
    last = [str(place) for place in range(length)]
    written = []
    for key, pieces in series(found, [*_keys(tuple(others)), last], last, *_endings(found)):
        inside = ",".join(f'"{at}":{ending}' for at, ending in pieces)
        written.append(f'"{key or 0}":{{"observations":{{{inside}}}}}')
    return ",".join(written)


def _keys(shape: tuple[int, ...]) -> list[list[str]]:
    """Positions along each dimension, with the colon that follows where another one does."""
    return [
        [f"{place}:" if k < len(shape) - 1 else str(place) for place in range(length)]
        for k, length in enumerate(shape)
    ]


def _endings(found: Observations) -> tuple[str, str]:
    """The value and the places of its status in the structure: published ones first, suppressed ones second."""
    return ("[%s,0,0]", "[null,1,1]") if found.detail is Detail.FULL else ("[%s]", "[null]")


_SCHEMAS = "http://www.sdmx.org/resources/sdmxml/schemas"
_ALL = "AllDimensions"
V2_1, V3_0 = "v2_1", "v3_0"  # as the names of schemas spell the versions


def write_generic(found: Observations, sink: Sink, at: str = "") -> None:
    """Generic data: every dimension and attribute is a named element; ``at`` is the dimension at the observation."""
    start = f'<mes:GenericData {_spaces(V2_1)} xmlns:gen="{_SCHEMAS}/{V2_1}/data/generic">'
    data = f'<mes:DataSet structureRef="{structure_id(found.dataset.id)}" action="Information">'
    inside = _generic_series(found.with_last(at)) if at else _generic_flat(found)
    parts = (start, _header(found, at, "", V2_1), data, *inside, "</mes:DataSet></mes:GenericData>")
    _write_xml(parts, sink)


def write_specific(found: Observations, sink: Sink, at: str = "", *, version: str) -> None:
    """Structure-specific data: dimensions and attributes are attributes of XML."""
    space = f"{found.urn}:ObsLevelDim:{at or _ALL}"
    start = (
        f'<mes:StructureSpecificData {_spaces(version)} xmlns:ss="{_SCHEMAS}/{version}/data/structurespecific" '
        f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:flow="{space}">'
    )
    scope = 'ss:dataScope="DataStructure" ' if version == V2_1 else ""
    data = (
        f'<mes:DataSet ss:structureRef="{structure_id(found.dataset.id)}" xsi:type="flow:DataSetType" '
        f'{scope}ss:action="Information">'
    )
    inside = _specific_series(found.with_last(at)) if at else _specific_flat(found)
    header = _header(found, at, f' namespace="{space}"', version)
    _write_xml((start, header, data, *inside, "</mes:DataSet></mes:StructureSpecificData>"), sink)


def _write_xml(parts: Iterable[str], sink: Sink) -> None:
    with opened(sink) as file:
        file.write("".join(['<?xml version="1.0" encoding="UTF-8"?>\n', *parts]).encode())


def _spaces(version: str) -> str:
    return f'xmlns:mes="{_SCHEMAS}/{version}/message" xmlns:com="{_SCHEMAS}/{version}/common"'


def _header(found: Observations, at: str, space: str, version: str) -> str:
    reference = found.urn
    if version == V2_1:
        named = f'agencyID="{found.dataset.agency}" id="{found.flow}" version="{found.dataset.version}"'
        reference = f'<Ref {named} class="Dataflow"/>'
    return (
        f"<mes:Header><mes:ID>{found.flow}</mes:ID><mes:Test>false</mes:Test>"
        f"<mes:Prepared>{PREPARED:%Y-%m-%dT%H:%M:%SZ}</mes:Prepared>"
        f'<mes:Sender id="{component_id(found.dataset.agency)}"/>'
        f'<mes:Structure structureID="{structure_id(found.dataset.id)}"{space} dimensionAtObservation="{at or _ALL}">'
        f"<com:StructureUsage>{reference}</com:StructureUsage></mes:Structure></mes:Header>"
    )


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
        [f'<gen:Value id="{dimension}" value="{code}"/>' for code in codes]
        for dimension, codes in zip(found.dimensions, found.codes, strict=True)
    ]


def _generic_endings(found: Observations) -> tuple[str, str]:
    """What follows the key, where a value is shown (with a place for it) and where it is withheld."""

    def attributes(status: dict[str, str]) -> str:
        inside = "".join(f'<gen:Value id="{name}" value="{code}"/>' for name, code in status.items())
        return f"<gen:Attributes>{inside}</gen:Attributes>" if found.detail is Detail.FULL else ""

    return '<gen:ObsValue value="%s"/>' + attributes(PUBLISHED), attributes(SUPPRESSED)


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
        [f' {dimension}="{code}"' for code in codes]
        for dimension, codes in zip(found.dimensions, found.codes, strict=True)
    ]


def _specific_endings(found: Observations) -> tuple[str, str]:
    def attributes(status: dict[str, str]) -> str:
        given = status.items() if found.detail is Detail.FULL else ()
        return "".join(f' {name}="{code}"' for name, code in given)

    return f' {OBSERVATION}="%s"' + attributes(PUBLISHED), attributes(SUPPRESSED)
