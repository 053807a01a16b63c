"""The declared tables of a catalogue as SDMX artefacts: those of a release, under its names; it answers no request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from pysdmx.model import (
    Agency,
    AgencyScheme,
    Codelist,
    ConceptScheme,
    Dataflow,
    DataStructureDefinition,
    Hierarchy,
)

from discreet.release.publication import Publication
from discreet.release.sdmx_ids import code_ids, component_id, dataflow_id, structure_id
from discreet.release.sdmx_structures import CONCEPTS, Described, counted, structures
from discreet.schema.codelist import Breakdown
from discreet.schema.labels import Labels
from discreet.serve.catalogue import Catalogue, ServedTable


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
    name: str  # for readers
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
        labels = self._catalogue.labels
        tables = [_described(flow, labels) for flow in self.flows.values()]
        made: list[Any] = structures(tables, self._publication)
        return {(_KINDS[type(one)], one.id): one for one in [*made, self._agencies()]}

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
        return Publication(
            held.name, held.agency, held.version, held.noise, swapped=held.swapped, labels=held.labels
        )

    def _flow(self, table: ServedTable, axes: Iterable[Breakdown]) -> Flow:
        dimensions = tuple(
            Dimension(
                component_id(axis.variable),
                self._catalogue.labels.variable(axis.variable),
                axis,
                dict(zip(code_ids(axis.codes), axis.codes, strict=True)),
            )
            for axis in axes
        )
        return Flow(
            table, self.agency, dataflow_id(table.id), structure_id(table.id), self.version, dimensions
        )

    def _agencies(self) -> Any:
        agency = Agency(id=self.agency, name=self.agency)
        return AgencyScheme(id="AGENCIES", name="Agencies", agency="SDMX", version="1.0", items=(agency,))


def _described(flow: Flow, labels: Labels) -> Described:
    """The table as a release describes it."""
    table, axes = flow.table, tuple(dimension.axis for dimension in flow.dimensions)
    who = labels.counted(table.unit, table.count)
    return Described(table.id, table.title, axes, counted(who, table.base))


def _references(key: Key, made: Any) -> Iterator[Key]:
    kind, name = key
    if kind is Kind.DATAFLOW:
        yield Kind.STRUCTURE, name.replace("DF_", "DSD_", 1)
    elif kind is Kind.STRUCTURE:
        yield Kind.CONCEPTS, CONCEPTS
        yield from ((Kind.CODELIST, one.local_codes.id) for one in made.components if one.local_codes)
    elif kind is Kind.HIERARCHY:
        yield Kind.CODELIST, name.replace("H_", "CL_", 1)
