"""The SDMX structures of a release: codelists, hierarchies, concepts, data structures and dataflows.

It owns what they say; pysdmx writes them as SDMX-ML 3.0. The data are written by sdmx.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
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
from discreet.release.publication import Publication
from discreet.release.sdmx_ids import (
    code_ids,
    codelist_id,
    component_id,
    dataflow_id,
    hierarchy_id,
    structure_id,
)
from discreet.schema.codelist import Breakdown
from discreet.schema.cube import Cube

CONCEPTS = "CS_VARIABLES"
OBSERVATION = "OBS_VALUE"
# A message must say when it was prepared; a fixed day keeps the bytes a matter of content alone.
PREPARED = datetime(2000, 1, 1, tzinfo=UTC)


def write_structures(cubes: Sequence[Cube], path: Path, publication: Publication) -> None:
    """Write everything that the SDMX-CSV files of these cubes refer to, as one SDMX-ML 3.0 message."""
    header = Header(
        id=component_id(publication.name),
        prepared=PREPARED,
        sender=Organisation(id=component_id(publication.agency)),
    )
    write_sdmx(structures(cubes, publication), SdmxFormat.STRUCTURE_SDMX_ML_3_0, str(path), header=header)


def structures(cubes: Sequence[Cube], publication: Publication) -> list[object]:
    """The artefacts in the order in which they refer to each other."""
    _refuse_equal_ids(cubes)
    axes = {axis.full_name: axis for cube in cubes for axis in cube.axes}
    lists = {name: _codelist(axis, publication) for name, axis in axes.items()}
    trees = [_hierarchy(axis, publication) for axis in axes.values() if axis.depths.max(initial=0) > 1]
    definitions = [_definition(cube, lists, publication) for cube in cubes]
    flows = [_dataflow(cube, publication) for cube in cubes]
    return [*lists.values(), *trees, _concepts(axes.values(), publication), *definitions, *flows]


def _codelist(axis: Breakdown, publication: Publication) -> Codelist:
    codes = tuple(
        Code(id=spelled, name=label, annotations=() if spelled == code else (_original(code),))
        for spelled, code, label in zip(code_ids(axis.codes), axis.codes, axis.labels, strict=True)
    )
    return Codelist(
        id=codelist_id(axis),
        name=axis.full_name,
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
        name=axis.full_name,
        agency=publication.agency,
        version=publication.version,
        codes=(code,),
    )


def _concepts(axes: Iterable[Breakdown], publication: Publication) -> ConceptScheme:
    variables = dict.fromkeys(axis.variable for axis in axes)
    items = [Concept(id=component_id(variable), name=variable) for variable in variables]
    items.append(Concept(id=OBSERVATION, name="Published value"))
    return ConceptScheme(
        id=CONCEPTS,
        name="Variables",
        agency=publication.agency,
        version=publication.version,
        items=tuple(items),
    )


def _definition(cube: Cube, lists: dict[str, Codelist], publication: Publication) -> DataStructureDefinition:
    dimensions = [
        Component(
            id=component_id(axis.variable),
            required=True,
            role=Role.DIMENSION,
            concept=_concept(component_id(axis.variable), publication),
            local_codes=lists[axis.full_name],
        )
        for axis in cube.axes
    ]
    measure = Component(
        id=OBSERVATION,
        required=True,
        role=Role.MEASURE,
        concept=_concept(OBSERVATION, publication),
        local_dtype=DataType.LONG if cube.weight is None else DataType.DOUBLE,
    )
    return DataStructureDefinition(
        id=structure_id(cube.id),
        name=cube.title or cube.id,
        agency=publication.agency,
        version=publication.version,
        components=Components([*dimensions, measure]),
    )


def _concept(name: str, publication: Publication) -> ItemReference:
    return ItemReference(
        sdmx_type="Concept", agency=publication.agency, id=CONCEPTS, version=publication.version, item_id=name
    )


def _dataflow(cube: Cube, publication: Publication) -> Dataflow:
    reference = f"DataStructure={publication.agency}:{structure_id(cube.id)}({publication.version})"
    return Dataflow(
        id=dataflow_id(cube.id),
        name=cube.title or cube.id,
        agency=publication.agency,
        version=publication.version,
        structure=reference,
    )


def _refuse_equal_ids(cubes: Sequence[Cube]) -> None:
    seen = Counter(dataflow_id(cube.id) for cube in cubes)
    problems = [
        Problem(
            "", f"cube {cube.id}", f"SDMX id {dataflow_id(cube.id)} is used twice", "rename one of the cubes"
        )
        for cube in cubes
        if seen[dataflow_id(cube.id)] > 1
    ]
    if problems:
        raise Mistakes(problems)
