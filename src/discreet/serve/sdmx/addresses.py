"""Addresses of data, availability and schemas, in the spelling of 2.1 and of 3.0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from discreet.formats.sdmx_data import Detail
from discreet.serve.http.problems import HttpProblem
from discreet.serve.query import Axis, Query
from discreet.serve.sdmx.negotiation import unknown_value
from discreet.serve.sdmx.registry import ANY, Flow, Pick, Registry, matches, matches_version
from discreet.text.phrase import phrase

CONTEXTS = ("dataflow", "datastructure", "provisionagreement", "*")
_DETAILS = {
    "full": Detail.FULL,
    "dataonly": Detail.VALUES,
    "nodata": Detail.KEYS,
    "serieskeysonly": Detail.KEYS,
}


@dataclass(frozen=True)
class DataAddress:
    """Which dataflow, which key, and for availability which component."""

    context: str = "*"
    agency: str = "*"
    id: str = "*"
    version: str = "*"
    key: str = "*"
    component: str = "*"


def parts_of(path: str) -> list[str]:
    """The parts of a path; a slash at its end is ignored."""
    return path.strip("/").split("/") if path.strip("/") else []


def data_address(path: str, provider: str) -> DataAddress:
    """Read ``dataflow/AGENCY/ID/VERSION/KEY/COMPONENT`` (3.0) or ``AGENCY,ID,VERSION/KEY/PROVIDER/COMPONENT`` (2.1)."""
    parts = parts_of(path)
    if parts and parts[0] in CONTEXTS:
        _check_length(parts, 6)
        return DataAddress(*parts)
    _check_length(parts, 4)
    flow, key, by, component = (*parts, *["all"] * (4 - len(parts)))
    if not any(matches(name, provider) for name in by.split(",")):
        message = phrase("No results: the only provider is {provider}.", provider=provider)
        raise HttpProblem(404, message)
    *agency, name = flow.split(",")[:2]
    version = flow.split(",")[2:3]
    return DataAddress(
        "dataflow", agency[0] if agency else "all", name, version[0] if version else "latest", key, component
    )


def _check_length(parts: list[str], most: int) -> None:
    if len(parts) > most:
        message = phrase("The address has {parts} parts; it may have {most}.", parts=len(parts), most=most)
        raise HttpProblem(400, message, kind="address")


def flow_of(registry: Registry, asked: DataAddress) -> Flow:
    """The one dataflow that an address means."""
    found = [flow for flow in registry.flows.values() if _is_meant(flow, asked)]
    if not found:
        message = phrase("No results: there is no {kind} of this agency, id and version.", kind="dataflow")
        raise HttpProblem(404, message)
    if len(found) > 1:
        message = phrase(
            "{number} dataflows match ({some}, ..); name one of them. For a key of only dots write all: "
            "clients take /.. for a step up.",
            number=len(found),
            some=tuple(flow.id for flow in found[:5]),
        )
        raise HttpProblem(422, message, kind="address")
    return found[0]


def _is_meant(flow: Flow, asked: DataAddress) -> bool:
    names = {"dataflow": (flow.id,), "datastructure": (flow.structure,), "*": (flow.id, flow.structure)}
    return (
        matches(asked.agency, flow.agency)
        and any(matches(asked.id, name) for name in names.get(asked.context, ()))
        and matches_version(asked.version, flow.version)
    )


def query_of(flow: Flow, pick: Pick) -> Query:
    """The question whose answer contains the observations of a pick."""
    axes = []
    for dimension, ids in zip(flow.dimensions, pick.codes, strict=True):
        codes = tuple(dimension.codes[name] for name in ids)
        axes.append(Axis(dimension.axis.full_name, () if len(codes) == len(dimension.axis) else codes))
    return Query(flow.table.unit, tuple(axes), flow.table.base, flow.table.count)


def detail_of(parameters: Mapping[str, str]) -> Detail:
    """The requested detail: ``detail`` of 2.1, ``attributes`` and ``measures`` of 3.0."""
    value = parameters.get("detail", "full")
    if value not in _DETAILS:
        raise unknown_value("detail", value, _DETAILS)
    if parameters.get("measures") == "none":
        return Detail.KEYS
    if parameters.get("attributes") == "none" and value == "full":
        return Detail.VALUES
    return _DETAILS[value]


def number_of(parameters: Mapping[str, str]) -> int:
    """The requested number of observations of a series: the first ones, or the last where it is negative, 0 for all."""
    for name, sign in (("firstNObservations", 1), ("lastNObservations", -1)):
        value = parameters.get(name, "")
        if value:
            if not (value.isascii() and value.isdecimal() and 0 < int(value[:10]) < inf):
                raise HttpProblem(400, phrase("{name}: write a number above 0.", name=name))
            return sign * int(value[:9])
    return 0


def components_of(flow: Flow, asked: str) -> list[str]:
    """The dimensions whose availability is requested."""
    wanted = [one.id for one in flow.dimensions if asked in ANY or matches(asked, one.id)]
    if not wanted:
        names = tuple(one.id for one in flow.dimensions)
        message = phrase("No results: {flow} has the dimensions {names}.", flow=flow.id, names=names)
        raise HttpProblem(404, message)
    return wanted


def kinds_of(references: str) -> Iterable[str]:
    """The kinds of artefacts that an availability request asks for in addition to the constraint."""
    return references.replace("+", ",").replace(" ", ",").split(",")
