"""Observations as SDMX-ML: generic of 2.1, structure-specific of 2.1 and 3.0; it owns the elements, not their content.

Ids and codes are letters, digits and a few signs that need no escaping (see release.sdmx_ids), so that each code is
turned into its piece of text once and the observations are put together from pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from discreet.release.sdmx_ids import component_id
from discreet.release.sdmx_status import PUBLISHED, SUPPRESSED
from discreet.release.sdmx_structures import OBSERVATION, PREPARED
from discreet.serve.sdmx.observations import Detail, Observations
from discreet.serve.sdmx.pieces import cells, series
from discreet.serve.sdmx.registry import Dimension

_SCHEMAS = "http://www.sdmx.org/resources/sdmxml/schemas"
_ALL = "AllDimensions"
V2_1, V3_0 = "v2_1", "v3_0"  # as the names of schemas spell the versions


def write_generic(found: Observations, at: Dimension | None) -> bytes:
    """Generic data: every dimension and attribute is an element with its name; ``at`` stands at the observation."""
    opened = f'<mes:GenericData {_spaces(V2_1)} xmlns:gen="{_SCHEMAS}/{V2_1}/data/generic">'
    data = f'<mes:DataSet structureRef="{found.flow.structure}" action="Information">'
    inside = _generic_flat(found) if at is None else _generic_series(found.with_last(at))
    return _message(opened, _header(found, at, "", V2_1), data, inside, "</mes:DataSet></mes:GenericData>")


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
    return _message(opened, header, data, inside, "</mes:DataSet></mes:StructureSpecificData>")


def _message(opened: str, header: str, data: str, inside: Iterable[str], closed: str) -> bytes:
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
