"""The declared tables of a catalogue as SDMX artefacts, under the ids that releases use; it answers no request.

A data structure of the server has two attributes more than that of a release: the status of an observation and its
confidentiality, which say where a value is withheld.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec
from pysdmx.model import (
    Agency,
    AgencyScheme,
    Annotation,
    Code,
    Codelist,
    Component,
    Components,
    Concept,
    ConceptScheme,
    Dataflow,
    DataStructureDefinition,
    Hierarchy,
    ItemReference,
    Role,
)

from discreet.release.publication import ADDITIVITY, Publication
from discreet.release.sdmx_ids import code_ids, component_id, dataflow_id, structure_id
from discreet.release.sdmx_structures import CONCEPTS, structures
from discreet.schema.codelist import Breakdown
from discreet.schema.cube import Cube
from discreet.serve.catalogue import Catalogue, ServedTable

STATUS, CONFIDENTIALITY = "OBS_STATUS", "CONF_STATUS"
PUBLISHED = {STATUS: "A", CONFIDENTIALITY: "F"}
SUPPRESSED = {STATUS: "Q", CONFIDENTIALITY: "C"}
ATTRIBUTES = {  # attribute -> name, and its codes with their labels, which are those that SDMX recommends
    STATUS: ("Status of the observation", {"A": "Normal value", "Q": "Suppressed value"}),
    CONFIDENTIALITY: ("Confidentiality", {"F": "Free for publication", "C": "Confidential"}),
}


class Kind(StrEnum):
    """The kinds of artefacts that are held, as they are spelled in addresses."""

    DATAFLOW = "dataflow"
    STRUCTURE = "datastructure"
    CODELIST = "codelist"
    CONCEPTS = "conceptscheme"
    AGENCIES = "agencyscheme"
    HIERARCHY = "hierarchy"


Key = tuple[Kind, str]  # kind and id: of each there is one version
_KINDS: dict[Any, Kind] = {
    Dataflow: Kind.DATAFLOW,
    DataStructureDefinition: Kind.STRUCTURE,
    Codelist: Kind.CODELIST,
    ConceptScheme: Kind.CONCEPTS,
    AgencyScheme: Kind.AGENCIES,
    Hierarchy: Kind.HIERARCHY,
}


@dataclass(frozen=True, eq=False)
class Dimension:
    """An axis of a table under its SDMX names."""

    id: str
    axis: Breakdown
    codes: dict[str, str]  # SDMX id -> code, in the order of the codelist


@dataclass(frozen=True, eq=False)
class Flow:
    """A declared table as a dataflow."""

    table: ServedTable
    agency: str
    id: str
    structure: str
    version: str
    dimensions: tuple[Dimension, ...]

    @property
    def urn(self) -> str:
        """The name of the dataflow in the whole world."""
        package = "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow"
        return f"{package}={self.agency}:{self.id}({self.version})"

    @property
    def counted(self) -> str:
        """Who is counted, in words."""
        count = f" with {self.table.count} = 1" if self.table.count else ""
        base = f" where {self.table.base}" if self.table.base else ""
        return f"Count of {self.table.unit}{count}{base}"


class Registry:
    """All artefacts of a catalogue, made when they are first asked for."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self.agency, self.version = catalogue.agency, catalogue.version

    @cached_property
    def flows(self) -> dict[str, Flow]:
        """The dataflows by id; a table without axes has no key and is none."""
        found: dict[str, Flow] = {}
        for table in self._catalogue.tables:
            axes = [self._catalogue.breakdown(name) for name in table.axes]
            known = [axis for axis in axes if axis is not None]
            if known and len(known) == len(axes):
                flow = self._flow(table, known)
                found.setdefault(flow.id, flow)
        return found

    @cached_property
    def artefacts(self) -> dict[Key, Any]:
        """Everything, by kind and id."""
        made = structures([_cube(flow) for flow in self.flows.values()], self._publication)
        every = [*map(self._completed, made), *self._status_lists(), self._agencies()]
        return {(_KINDS[type(one)], one.id): one for one in every}

    @cached_property
    def below(self) -> dict[Key, frozenset[Key]]:
        """What each artefact refers to."""
        return {key: frozenset(_references(key, one)) for key, one in self.artefacts.items()}

    @cached_property
    def above(self) -> dict[Key, frozenset[Key]]:
        """What refers to each artefact."""
        return {
            key: frozenset(parent for parent, children in self.below.items() if key in children)
            for key in self.artefacts
        }

    @property
    def _publication(self) -> Publication:
        held = self._catalogue
        return Publication(held.name, held.agency, held.version, held.noise, swapped=held.swapped)

    def _flow(self, table: ServedTable, axes: Iterable[Breakdown]) -> Flow:
        dimensions = tuple(
            Dimension(
                component_id(axis.variable), axis, dict(zip(code_ids(axis.codes), axis.codes, strict=True))
            )
            for axis in axes
        )
        return Flow(
            table, self.agency, dataflow_id(table.id), structure_id(table.id), self.version, dimensions
        )

    def _completed(self, made: Any) -> Any:
        """What a server's artefact says beyond that of a release."""
        if isinstance(made, DataStructureDefinition):
            return msgspec.structs.replace(made, components=self._components(made.components))
        if isinstance(made, ConceptScheme):
            further = [Concept(id=name, name=said) for name, (said, _) in ATTRIBUTES.items()]
            return msgspec.structs.replace(made, items=(*made.items, *further))
        if isinstance(made, Dataflow):
            return self._dataflow(made)
        return made

    def _dataflow(self, made: Any) -> Any:
        urn = self._urn("datastructure.DataStructure", self.flows[made.id].structure)
        said = {"NOISE": self._catalogue.noise.sentence(), "ADDITIVITY": ADDITIVITY}
        notes = tuple(Annotation(id=name, type=name, text=text) for name, text in said.items() if text)
        counted = self.flows[made.id].counted
        return msgspec.structs.replace(made, structure=urn, description=counted, annotations=notes)

    def _components(self, made: Any) -> Any:
        """The components with their codelists named, and the attributes."""
        named = [
            msgspec.structs.replace(one, local_enum_ref=self._codelist_urn(one.local_codes.id))
            if one.local_codes
            else one
            for one in made
        ]
        lists = {one.id: one for one in self._status_lists()}
        attributes = [
            Component(
                id=name,
                required=False,
                role=Role.ATTRIBUTE,
                concept=ItemReference("Concept", self.agency, CONCEPTS, self.version, name),
                local_codes=lists[f"CL_{name}"],
                local_enum_ref=self._codelist_urn(f"CL_{name}"),
                attachment_level="O",
            )
            for name in ATTRIBUTES
        ]
        return Components([*named, *attributes])

    def _status_lists(self) -> Iterator[Any]:
        for name, (said, labels) in ATTRIBUTES.items():
            codes = tuple(Code(id=code, name=label) for code, label in labels.items())
            yield Codelist(id=f"CL_{name}", name=said, agency=self.agency, version=self.version, items=codes)

    def _agencies(self) -> Any:
        agency = Agency(id=self.agency, name=self.agency)
        return AgencyScheme(id="AGENCIES", name="Agencies", agency="SDMX", version="1.0", items=(agency,))

    def _codelist_urn(self, name: str) -> str:
        return self._urn("codelist.Codelist", name)

    def _urn(self, kind: str, name: str) -> str:
        return f"urn:sdmx:org.sdmx.infomodel.{kind}={self.agency}:{name}({self.version})"


def _cube(flow: Flow) -> Cube:
    """The table as releases describe it: its axes and titles alone matter here."""
    axes = tuple(dimension.axis for dimension in flow.dimensions)
    return Cube(flow.table.id, flow.table.unit, axes, title=flow.table.title)


def _references(key: Key, made: Any) -> Iterator[Key]:
    kind, name = key
    if kind is Kind.DATAFLOW:
        yield Kind.STRUCTURE, name.replace("DF_", "DSD_", 1)
    elif kind is Kind.STRUCTURE:
        yield Kind.CONCEPTS, CONCEPTS
        yield from ((Kind.CODELIST, one.local_codes.id) for one in made.components if one.local_codes)
    elif kind is Kind.HIERARCHY:
        yield Kind.CODELIST, name.replace("H_", "CL_", 1)
