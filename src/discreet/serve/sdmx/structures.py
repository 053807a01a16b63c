"""SDMX structure queries and availability: selection of artefacts, references, and messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from pysdmx.io.format import Format
from pysdmx.io.writer import write_sdmx
from pysdmx.model import (
    AvailabilityConstraint,
    Components,
    ConstraintAttachment,
    CubeKeyValue,
    CubeRegion,
    CubeValue,
    Hierarchy,
    Organisation,
)
from pysdmx.model.message import Header

from discreet.formats.sdmx_ids import PREPARED, component_id
from discreet.formats.sdmx_languages import json_in_languages
from discreet.formats.sdmx_structures import readable
from discreet.serve.http.problems import HttpProblem
from discreet.serve.sdmx.addresses import kinds_of
from discreet.serve.sdmx.negotiation import STRUCTURE_2_1, STRUCTURE_3_0, STRUCTURE_JSON, Media, unknown_value
from discreet.serve.sdmx.registry import ANY, Flow, Key, Kind, Pick, Registry, matches, matches_version
from discreet.text.phrase import phrase

_FORMATS = {
    STRUCTURE_2_1: Format.STRUCTURE_SDMX_ML_2_1,
    STRUCTURE_3_0: Format.STRUCTURE_SDMX_ML_3_0,
    STRUCTURE_JSON: Format.STRUCTURE_SDMX_JSON_2_0_0,
}
_NO_COMPONENTS = re.compile(r"\s*<str:DataStructureComponents>\s*</str:DataStructureComponents>")


def write_structures(artefacts: Sequence[Any], media: Media, agency: str, language: str) -> bytes:
    """A structure message; an SDMX-ML 2.1 one has no hierarchies, which are of 3.0."""
    if media is STRUCTURE_2_1:
        artefacts = [one for one in artefacts if not isinstance(one, Hierarchy)]
    if not artefacts:
        message = phrase("No results in {one}; request {other}.", one=media.text, other=STRUCTURE_3_0.text)
        raise HttpProblem(404, message)
    header = Header(id="STRUCTURES", prepared=PREPARED, sender=Organisation(id=component_id(agency)))
    text = write_sdmx(list(artefacts), _FORMATS[media], header=header, prettyprint=False) or ""
    if media is STRUCTURE_JSON:
        return _without_empty_components(json_in_languages(json.loads(text), language))
    return readable(_NO_COMPONENTS.sub("", text), language).encode()


def _without_empty_components(message: Any) -> bytes:
    """A stub of a data structure has no components, rather than an empty list of them."""
    for structure in message["data"].get("dataStructures", ()):
        components = structure.get("dataStructureComponents", {})
        if not components.get("dimensionList", {}).get("dimensions"):
            structure.pop("dataStructureComponents", None)
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


# kinds of SDMX that are not available: a query for them is valid and finds nothing
OTHER_KINDS = frozenset({
    "actualconstraint", "allowedconstraint", "attachmentconstraint", "categorisation", "categoryscheme",
    "categoryschememap", "conceptschememap", "contentconstraint", "customtypescheme", "dataconstraint",
    "dataconsumerscheme", "dataproviderscheme", "hierarchicalcodelist", "hierarchyassociation",
    "metadataconstraint", "metadataflow", "metadataproviderscheme", "metadataprovisionagreement",
    "metadatastructure", "namealiasscheme", "namepersonalisationscheme", "organisationscheme",
    "organisationschememap", "organisationunitscheme", "process", "provisionagreement",
    "reportingtaxonomy", "reportingtaxonomymap", "representationmap", "rulesetscheme", "structuremap",
    "structureset", "transformationscheme", "userdefinedoperatorscheme", "valuelist", "vtlmappingscheme",
})  # fmt: skip
NOT_OFFERED = frozenset({"metadata", "registration"})  # resources of SDMX REST other than structures and data
ALL_KINDS = frozenset({"*", "all", "structure"})
REFERENCES = ("none", "children", "descendants", "parents", "parentsandsiblings", "ancestors", "all")
DETAILS = (
    "full",
    "allstubs",
    "referencestubs",
    "allcompletestubs",
    "referencecompletestubs",
    "referencepartial",
    "raw",
)


@dataclass(frozen=True)
class StructureRequest:
    """The request of an address."""

    kind: str
    agency: str = "*"
    id: str = "*"
    version: str = "*"
    item: str = "*"
    references: str = "none"
    detail: str = "full"


def select(registry: Registry, asked: StructureRequest) -> list[Any]:
    """The artefacts of an answer; none is a problem."""
    _check(asked)
    main = [key for key, one in registry.artefacts.items() if _is_meant(key, one, asked)]
    if not main:
        message = phrase("No results: there is no {kind} of this agency, id and version.", kind=asked.kind)
        raise HttpProblem(404, message)
    further = _further(registry, main, asked.references)
    artefacts = [_with_items(registry.artefacts[key], asked.item) for key in main]
    if asked.detail.startswith("all"):
        artefacts = [_stub(key, one, asked.detail) for key, one in zip(main, artefacts, strict=True)]
    if asked.detail not in ("full", "raw", "referencepartial"):
        return artefacts + [_stub(key, registry.artefacts[key], asked.detail) for key in further]
    return artefacts + [registry.artefacts[key] for key in further]


def _check(asked: StructureRequest) -> None:
    if asked.kind in NOT_OFFERED:
        message = phrase(
            "There is no {kind} here: request structures, data or availability.", kind=asked.kind
        )
        raise HttpProblem(501, message)
    kinds = {*Kind, *OTHER_KINDS, *ALL_KINDS}
    for name, value, known in (
        (phrase("kind of artefact"), asked.kind, kinds),
        ("references", asked.references, {*REFERENCES, *kinds}),
        ("detail", asked.detail, DETAILS),
    ):
        if value not in known:
            raise unknown_value(name, value, sorted(known))


def _is_meant(key: Key, artefact: Any, asked: StructureRequest) -> bool:
    return (
        (asked.kind in ALL_KINDS or asked.kind == key[0])
        and matches(asked.agency, artefact.agency)
        and matches(asked.id, artefact.id)
        and matches_version(asked.version, artefact.version)
    )


def _further(registry: Registry, main: Iterable[Key], references: str) -> list[Key]:
    """What is sent in addition to the requested artefacts, in the order of the registry."""
    start = frozenset(main)
    down, up = registry.below, registry.above
    parents = _step(start, up)
    found = {
        "none": frozenset[Key](),
        "children": _step(start, down),
        "descendants": _walk(start, down),
        "parents": parents,
        "parentsandsiblings": parents | _step(parents, down),
        "ancestors": _walk(start, up),
        "all": parents | _step(parents, down) | _walk(start, down),
    }.get(references)
    if found is None:
        related = _walk(start, down) | _walk(start, up)
        found = frozenset(key for key in related if key[0] == references)
    return [key for key in registry.artefacts if key in found - start]


def _step(keys: frozenset[Key], edges: Mapping[Key, frozenset[Key]]) -> frozenset[Key]:
    return frozenset(other for key in keys for other in edges.get(key, ()))


def _walk(keys: frozenset[Key], edges: Mapping[Key, frozenset[Key]]) -> frozenset[Key]:
    found: frozenset[Key] = frozenset()
    reached = _step(keys, edges)
    while not reached <= found:
        found |= reached
        reached = _step(reached, edges)
    return found


def _with_items(artefact: Any, item: str) -> Any:
    """A scheme with only the requested items."""
    if item in ANY or not hasattr(artefact, "items"):
        return artefact
    items = tuple(one for one in artefact.items if matches(item, one.id))
    if not items:
        message = phrase("No results: {artefact} has no such item.", artefact=artefact.id)
        raise HttpProblem(404, message)
    return msgspec.structs.replace(artefact, items=items, is_partial=True)


def _stub(key: Key, artefact: Any, detail: str) -> Any:
    """Only names; a complete stub keeps annotations and description."""
    emptied = {} if detail.endswith("completestubs") else {"annotations": (), "description": None}
    return msgspec.structs.replace(
        artefact, is_external_reference=True, **_emptied(key[0], artefact), **emptied
    )


def _emptied(kind: Kind, artefact: Any) -> dict[str, Any]:
    """An artefact's parts, without what is in them; a hierarchy must have one code."""
    if kind is Kind.DATAFLOW:
        return {}
    if kind is Kind.STRUCTURE:
        return {"components": Components([])}
    if kind is Kind.HIERARCHY:
        return {"codes": (msgspec.structs.replace(artefact.codes[0], codes=()),)}
    return {"items": ()}


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

    ``available`` shows what could be added to the key: all codes.
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
    """The artefacts that a client requests in addition to a constraint."""
    kinds = [kind for kind in kinds_of(references) if kind]
    for kind in kinds:
        if kind not in _KINDS:
            raise unknown_value("references", kind, _KINDS)
    if not {*kinds} - {"none"}:
        return []
    whole = select(registry, StructureRequest("dataflow", id=flow.id, references="descendants"))
    names = {"Dataflow": "dataflow", "DataStructureDefinition": "datastructure", "Codelist": "codelist"}
    return [one for one in whole if "all" in kinds or names.get(type(one).__name__, "conceptscheme") in kinds]
