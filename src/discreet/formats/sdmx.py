"""SDMX identifiers and structures; the data messages are in ``sdmx_data``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pysdmx.io.format import Format as SdmxFormat
from pysdmx.io.writer import write_sdmx
from pysdmx.model import (
    Annotation,
    Code,
    Codelist,
    Component,
    Components,
    Concept,
    ConceptScheme,
    Dataflow,
    DataStructureDefinition,
    DataType,
    HierarchicalCode,
    Hierarchy,
    ItemReference,
    Organisation,
    Role,
)
from pysdmx.model.message import Header

from discreet.errors import Mistakes, Problem
from discreet.formats.publication import SWAPPED, Publication, additivity
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.labels import Labels
from discreet.text.phrase import joined

_FORBIDDEN = re.compile(r"[^A-Za-z0-9_@$-]")
_FORBIDDEN_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")


def code_ids(codes: Iterable[str]) -> tuple[str, ...]:
    """Write every code as an SDMX id; where two codes become equal the later gets a number."""
    spelled: dict[str, None] = {}
    for code in codes:
        plain = _FORBIDDEN.sub("_", code)
        unique, number = plain, 1
        while unique in spelled:
            number += 1
            unique = f"{plain}_{number}"
        spelled[unique] = None
    return tuple(spelled)


def component_id(variable: str) -> str:
    """Write a variable as the id of a dimension and of its concept."""
    plain = _FORBIDDEN_IN_NAME.sub("_", variable)
    return plain if plain[:1].isalpha() else f"V_{plain}"


def codelist_id(axis: Breakdown) -> str:
    """The codelist of a breakdown: CL_<VARIABLE>_<BREAKDOWN>."""
    return "CL_" + _FORBIDDEN_IN_NAME.sub("_", axis.full_name)


def hierarchy_id(axis: Breakdown) -> str:
    """The hierarchy of a breakdown: H_<VARIABLE>_<BREAKDOWN>."""
    return "H_" + _FORBIDDEN_IN_NAME.sub("_", axis.full_name)


def dataflow_id(cube: str) -> str:
    """The dataflow of a cube."""
    return "DF_" + _FORBIDDEN_IN_NAME.sub("_", cube)


def structure_id(cube: str) -> str:
    """The data structure definition of a cube."""
    return "DSD_" + _FORBIDDEN_IN_NAME.sub("_", cube)


STATUS, CONFIDENTIALITY = "OBS_STATUS", "CONF_STATUS"
PUBLISHED = {STATUS: "A", CONFIDENTIALITY: "F"}
SUPPRESSED = {STATUS: "Q", CONFIDENTIALITY: "C"}
ATTRIBUTES = {  # attribute -> name, and its codes with their labels, which are those that SDMX recommends
    STATUS: ("Status of the observation", {"A": "Normal value", "Q": "Suppressed value"}),
    CONFIDENTIALITY: ("Confidentiality", {"F": "Free for publication", "C": "Confidential"}),
}


def attribute_lists(agency: str, version: str) -> dict[str, Codelist]:
    """Attribute -> its codelist."""
    return {
        name: Codelist(
            id=f"CL_{name}",
            name=title,
            agency=agency,
            version=version,
            items=tuple(Code(id=code, name=label) for code, label in labels.items()),
        )
        for name, (title, labels) in ATTRIBUTES.items()
    }


CONCEPTS = "CS_VARIABLES"
OBSERVATION = "OBS_VALUE"
# A message must state when it was prepared; with a fixed day the bytes depend on content only.
PREPARED = datetime(2000, 1, 1, tzinfo=UTC)


# optional where an attribute belongs to the observation; sdmx1 cannot read it
_MEASURE_RELATIONSHIP = re.compile(r"\s*<str:MeasureRelationship>.*?</str:MeasureRelationship>", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Described:
    """The description of a table in its structures."""

    id: str
    title: str
    axes: tuple[Breakdown, ...]
    counted: str  # as text
    is_weighted: bool = False


def described(cube: Cube, labels: Labels) -> Described:
    """The description of a cube in its structures."""
    text = counted(labels.counted(cube.unit, cube.count), cube.base.text if cube.base else "")
    weight = f", weighted by {cube.weight}" if cube.weight else ""
    return Described(cube.id, cube.title, cube.axes, text + weight, bool(cube.weight))


def counted(who: str, base: str) -> str:
    """A sentence on what is counted."""
    return f"Count of {who}{f' where {base}' if base else ''}"


def write_structures(cubes: Sequence[Cube], path: Path, publication: Publication) -> None:
    """Write everything that the SDMX-CSV files of these cubes refer to, as one SDMX-ML 3.0 message."""
    header = Header(
        id=component_id(publication.name),
        prepared=PREPARED,
        sender=Organisation(id=component_id(publication.agency)),
    )
    made = structures([described(cube, publication.labels) for cube in cubes], publication)
    text = write_sdmx(made, SdmxFormat.STRUCTURE_SDMX_ML_3_0, header=header) or ""
    path.write_text(readable(text), encoding="utf-8")


def readable(text: str) -> str:
    """An SDMX-ML message without elements that clients fail to read."""
    return _MEASURE_RELATIONSHIP.sub("", text)


def structures(tables: Sequence[Described], publication: Publication) -> list[object]:
    """The artefacts in the order in which they refer to each other."""
    _refuse_equal_ids(tables)
    axes = {axis.full_name: axis for table in tables for axis in table.axes}
    lists = {name: _codelist(axis, publication) for name, axis in axes.items()}
    trees = [_hierarchy(axis, publication) for axis in axes.values() if axis.depths.max(initial=0) > 1]
    status = attribute_lists(publication.agency, publication.version)
    definitions = [_definition(table, lists, status, publication) for table in tables]
    flows = [_dataflow(table, publication) for table in tables]
    concepts = _concepts(axes.values(), publication)
    return [*lists.values(), *status.values(), *trees, concepts, *definitions, *flows]


def _codelist(axis: Breakdown, publication: Publication) -> Codelist:
    codes = tuple(
        Code(id=spelled, name=label, annotations=() if spelled == code else (_original(code),))
        for spelled, code, label in zip(code_ids(axis.codes), axis.codes, axis.labels, strict=True)
    )
    return Codelist(
        id=codelist_id(axis),
        name=publication.labels.axis(axis.full_name),
        agency=publication.agency,
        version=publication.version,
        items=codes,
    )


def _original(code: str) -> Annotation:
    return Annotation(id="CODE", type="CODE", text=code)


def _hierarchy(axis: Breakdown, publication: Publication) -> Hierarchy:
    """The tree below the total; it is built from the last node up, so that children exist before their parent."""
    place = f"{publication.agency}:{codelist_id(axis)}({publication.version})"
    spelled = code_ids(axis.codes)
    below: list[list[HierarchicalCode]] = [[] for _ in spelled]
    for node in range(len(spelled) - 1, -1, -1):
        code = HierarchicalCode(
            id=spelled[node],
            urn=f"urn:sdmx:org.sdmx.infomodel.codelist.Code={place}.{spelled[node]}",
            codes=tuple(reversed(below[node])),
        )
        if node == 0:
            break
        below[axis.parents[node]].append(code)
    return Hierarchy(
        id=hierarchy_id(axis),
        name=publication.labels.axis(axis.full_name),
        agency=publication.agency,
        version=publication.version,
        codes=(code,),
    )


def _concepts(axes: Iterable[Breakdown], publication: Publication) -> ConceptScheme:
    variables = dict.fromkeys(axis.variable for axis in axes)
    items = [Concept(id=component_id(name), name=publication.labels.variable(name)) for name in variables]
    items.append(Concept(id=OBSERVATION, name="Published value"))
    items += [Concept(id=name, name=title) for name, (title, _) in ATTRIBUTES.items()]
    return ConceptScheme(
        id=CONCEPTS,
        name="Variables",
        agency=publication.agency,
        version=publication.version,
        items=tuple(items),
    )


def _definition(
    table: Described, lists: dict[str, Codelist], status: dict[str, Codelist], publication: Publication
) -> DataStructureDefinition:
    dimensions = (
        _coded(Role.DIMENSION, component_id(axis.variable), lists[axis.full_name], publication)
        for axis in table.axes
    )
    measure = Component(
        id=OBSERVATION,
        required=True,
        role=Role.MEASURE,
        concept=_concept(OBSERVATION, publication),
        local_dtype=DataType.DOUBLE if table.is_weighted else DataType.LONG,
    )
    attributes = (_coded(Role.ATTRIBUTE, name, codes, publication) for name, codes in status.items())
    return DataStructureDefinition(
        id=structure_id(table.id),
        name=table.title or table.id,
        agency=publication.agency,
        version=publication.version,
        components=Components([*dimensions, measure, *attributes]),
    )


def _coded(role: Role, name: str, codes: Codelist, publication: Publication) -> Component:
    """A dimension, or an attribute of the observation, with its codelist."""
    return Component(
        id=name,
        required=role is Role.DIMENSION,
        role=role,
        concept=_concept(name, publication),
        local_codes=codes,
        local_enum_ref=_urn("codelist.Codelist", codes.id, publication),
        attachment_level="O" if role is Role.ATTRIBUTE else None,
    )


def _concept(name: str, publication: Publication) -> ItemReference:
    return ItemReference(
        sdmx_type="Concept", agency=publication.agency, id=CONCEPTS, version=publication.version, item_id=name
    )


def _dataflow(table: Described, publication: Publication) -> Dataflow:
    noise, exchanged = publication.noise, SWAPPED if publication.swapped else ""
    stated = joined(noise.sentence(), exchanged)
    notes = {"NOISE": str(stated), "ADDITIVITY": str(additivity(noise))}  # no subclass of str
    return Dataflow(
        id=dataflow_id(table.id),
        name=table.title or table.id,
        description=table.counted,
        annotations=tuple(Annotation(id=name, type=name, text=text) for name, text in notes.items()),
        agency=publication.agency,
        version=publication.version,
        structure=_urn("datastructure.DataStructure", structure_id(table.id), publication),
    )


def _urn(kind: str, name: str, publication: Publication) -> str:
    return f"urn:sdmx:org.sdmx.infomodel.{kind}={publication.agency}:{name}({publication.version})"


def _refuse_equal_ids(tables: Sequence[Described]) -> None:
    problems = list(id_problems(tables))
    if problems:
        raise Mistakes(problems)


def id_problems(tables: Sequence[Described]) -> Iterator[Problem]:
    """Ids that SDMX would have twice, or that it needs itself."""
    yield from _equal_flows(tables)
    yield from _reserved(tables)


def _equal_flows(tables: Sequence[Described]) -> Iterator[Problem]:
    seen = Counter(dataflow_id(table.id) for table in tables)
    for table in tables:
        if seen[dataflow_id(table.id)] > 1:
            value = f"SDMX id {dataflow_id(table.id)} is used twice"
            yield Problem("", f"cube {table.id}", value, "rename one of the cubes")


def _reserved(tables: Sequence[Described]) -> Iterator[Problem]:
    taken = {OBSERVATION, *ATTRIBUTES}
    variables = dict.fromkeys(axis.variable for table in tables for axis in table.axes)
    for name in variables:
        if component_id(name) in taken:
            value = f"SDMX needs the id {component_id(name)} itself"
            yield Problem("", f"variables.{name}", value, "rename the variable")
