"""Which codes can be asked for: availability constraints; it looks at codelists, never at values."""

from __future__ import annotations

from typing import Any

from pysdmx.model import AvailabilityConstraint, ConstraintAttachment, CubeKeyValue, CubeRegion, CubeValue

from discreet.serve.sdmx.addresses import kinds_of
from discreet.serve.sdmx.faults import unknown_value
from discreet.serve.sdmx.keys import Pick
from discreet.serve.sdmx.registry import Flow, Registry
from discreet.serve.sdmx.selecting import StructureRequest, select

_KINDS = (
    "all",
    "none",
    "codelist",
    "conceptscheme",
    "dataflow",
    "dataproviderscheme",
    "datastructure",
    "valuelist",
)
MODES = ("exact", "available")


def constraint(flow: Flow, pick: Pick, components: list[str], mode: str) -> Any:
    """Every code of a key has an observation, since zeros are written out and withheld values have a status.

    ``available`` tells what could be added to the key: all codes.
    """
    if mode not in MODES:
        raise unknown_value("mode", mode, MODES)
    regions = [
        CubeKeyValue(
            id=dimension.id,
            values=[CubeValue(code) for code in (codes if mode == "exact" else dimension.codes)],
        )
        for dimension, codes in zip(flow.dimensions, pick.codes, strict=True)
        if dimension.id in components
    ]
    return AvailabilityConstraint(
        constraint_attachment=ConstraintAttachment(data_provider=None, dataflows=[flow.urn]),
        cube_region=CubeRegion(key_values=regions),
        series_count=pick.cells,
        obs_count=pick.cells,
    )


def with_references(registry: Registry, flow: Flow, references: str) -> list[Any]:
    """The artefacts that a client wants beside a constraint."""
    kinds = [kind for kind in kinds_of(references) if kind]
    for kind in kinds:
        if kind not in _KINDS:
            raise unknown_value("references", kind, _KINDS)
    if not {*kinds} - {"none"}:
        return []
    whole = select(registry, StructureRequest("dataflow", id=flow.id, references="descendants"))
    names = {"Dataflow": "dataflow", "DataStructureDefinition": "datastructure", "Codelist": "codelist"}
    return [one for one in whole if "all" in kinds or names.get(type(one).__name__, "conceptscheme") in kinds]
