"""SDMX structures; identifiers are in ``sdmx_ids``, the data messages in ``sdmx_data``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
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

from discreet.errors import Mistakes
from discreet.formats.publication import SWAPPED, Publication, additivity
from discreet.formats.sdmx_ids import (
    ATTRIBUTES,
    BOUNDS,
    CONCEPTS,
    OBSERVATION,
    PREPARED,
    Described,
    code_ids,
    codelist_id,
    component_id,
    dataflow_id,
    described,
    hierarchy_id,
    id_problems,
    structure_id,
)
from discreet.formats.sdmx_languages import in_languages, marked
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.definitions import NO_DEFINITION, Definition
from discreet.text.phrase import joined

SOURCE_NOTE = "SOURCE"  # the annotation that tells where data come from


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


# optional where an attribute belongs to the observation; sdmx1 cannot read it
_MEASURE_RELATIONSHIP = re.compile(r"\s*<str:MeasureRelationship>.*?</str:MeasureRelationship>", re.DOTALL)


def write_structures(cubes: Sequence[Cube], path: Path, publication: Publication) -> None:
    """Write everything that the SDMX-CSV files of these cubes refer to, as one SDMX-ML 3.0 message."""
    header = Header(
        id=component_id(publication.name),
        prepared=PREPARED,
        sender=Organisation(id=component_id(publication.agency)),
    )
    made = structures([described(cube, publication.labels) for cube in cubes], publication)
    text = write_sdmx(made, SdmxFormat.STRUCTURE_SDMX_ML_3_0, header=header) or ""
    path.write_text(readable(text, publication.language), encoding="utf-8")


def readable(text: str, language: str) -> str:
    """An SDMX-ML message with its texts by language, without elements that clients fail to read."""
    return in_languages(_MEASURE_RELATIONSHIP.sub("", text), language)


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
        Code(
            id=spelled,
            name=marked(label),
            description=_described(axis.definitions.get(code, NO_DEFINITION)),
            annotations=tuple(_code_notes(spelled, code, axis.definitions.get(code, NO_DEFINITION))),
        )
        for spelled, code, label in zip(code_ids(axis.codes), axis.codes, axis.labels, strict=True)
    )
    return Codelist(
        id=codelist_id(axis),
        name=marked(publication.labels.axis(axis.full_name)),
        agency=publication.agency,
        version=publication.version,
        items=codes,
    )


def _described(definition: Definition) -> str | None:
    return marked(definition.description) if definition.description else None


def _code_notes(spelled: str, code: str, definition: Definition) -> Iterator[Annotation]:
    """The code as declared where SDMX cannot write it, and where its data come from."""
    if spelled != code:
        yield Annotation(id="CODE", type="CODE", text=code)
    yield from _sources(definition)


def _sources(definition: Definition) -> Iterator[Annotation]:
    if definition.source:
        yield Annotation(id=SOURCE_NOTE, type=SOURCE_NOTE, text=marked(definition.source))


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
        name=marked(publication.labels.axis(axis.full_name)),
        agency=publication.agency,
        version=publication.version,
        codes=(code,),
    )


def _concepts(axes: Iterable[Breakdown], publication: Publication) -> ConceptScheme:
    variables = dict.fromkeys(axis.variable for axis in axes)
    labels = publication.labels
    items = [
        Concept(
            id=component_id(name),
            name=marked(labels.variable(name)),
            description=_described(labels.definition(name)),
            annotations=tuple(_sources(labels.definition(name))),
        )
        for name in variables
    ]
    items.append(Concept(id=OBSERVATION, name="Published value"))
    items += [Concept(id=name, name=title) for name, (title, _) in ATTRIBUTES.items()]
    items += [Concept(id=name, name=title) for name, title in BOUNDS.items()]
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
        name=marked(table.title or table.id),
        agency=publication.agency,
        version=publication.version,
        components=Components([*dimensions, measure, *attributes, *_bounds(publication)]),
    )


def _bounds(publication: Publication) -> Iterator[Component]:
    """The range of the true count: optional numbers of an observation."""
    for name in BOUNDS:
        yield Component(
            id=name,
            required=False,
            role=Role.ATTRIBUTE,
            concept=_concept(name, publication),
            local_dtype=DataType.DOUBLE,
            attachment_level="O",
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
        name=marked(table.title or table.id),
        description=str(table.counted),
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
