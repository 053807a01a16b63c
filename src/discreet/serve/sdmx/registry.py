"""SDMX artefacts of the declared tables: names and versions, dataflows, keys and component filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pysdmx.model import (
    Agency,
    AgencyScheme,
    Codelist,
    ConceptScheme,
    Dataflow,
    DataStructureDefinition,
    Hierarchy,
)

from discreet.formats.publication import Publication
from discreet.formats.sdmx_ids import (
    CONCEPTS,
    Described,
    code_ids,
    component_id,
    counted,
    dataflow_id,
    structure_id,
)
from discreet.formats.sdmx_structures import structures
from discreet.programme.codelist import Breakdown
from discreet.programme.labels import Labels
from discreet.serve.catalogue import Catalogue, ServedTable
from discreet.serve.http.problems import HttpProblem
from discreet.serve.sdmx.negotiation import unknown_value
from discreet.text.phrase import phrase

ANY = frozenset({"", "*", "all"})
_ANY_VERSION = ANY | {"latest", "+", "~"}
_NUMBERS = re.compile(r"[0-9]+")


def matches(asked: str, own: str) -> bool:
    """Whether a name in an address matches an own one: itself, a list with it, or all."""
    return any(part in ANY or part == own for part in re.split(r"[,+ ]", asked))


def matches_version(asked: str, own: str) -> bool:
    """Whether a version in an address matches the own one: there is only one version of everything.

    ``1.0`` is ``1.0.0``; ``2.3+.0`` (or ``~``) is any version from 2.3.0 on whose numbers before the sign are the same.
    """
    return any(_one_version(part, own) for part in asked.split(","))


def _one_version(asked: str, own: str) -> bool:
    if asked in _ANY_VERSION:
        return True
    before, sign, _ = asked.replace("~", "+").partition("+")
    wanted, have = _numbers(asked), _numbers(own)
    if not wanted:
        return False
    if not sign:
        return wanted == have and bool(re.fullmatch(r"[0-9.]+", asked))
    fixed = len(_NUMBERS.findall(before)) - 1
    return wanted[:fixed] == have[:fixed] and wanted <= have


def _numbers(version: str) -> tuple[int, ...]:
    found = [int(number[:9]) for number in _NUMBERS.findall(version)[:3]]
    return (*found, *[0] * (3 - len(found))) if found else ()


class Kind(StrEnum):
    """The available kinds of artefacts, as they are spelled in addresses."""

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
        """The URN of the dataflow."""
        package = "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow"
        return f"{package}={self.agency}:{self.id}({self.version})"


class Registry:
    """All artefacts of a catalogue, made on first use."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self.agency, self.version, self.language = catalogue.agency, catalogue.version, catalogue.language

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
        own = self._catalogue
        return Publication(
            own.name, own.agency, own.version, own.noise, swapped=own.swapped, labels=own.labels
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


MOST_KEYS = 100  # in one request
MOST_SEARCHES = 100  # component filters, and values of one: each goes through all codes
MOST_CELLS = 1_000_000  # of the hull of several keys
_FILTER = re.compile(r"c\[([^\]]*)\]")
_OPERATORS: dict[str, Callable[[str, frozenset[str]], bool]] = {
    "eq": lambda code, given: code in given,
    "ne": lambda code, given: code not in given,
    "lt": lambda code, given: any(code < one for one in given),
    "le": lambda code, given: any(code <= one for one in given),
    "gt": lambda code, given: any(code > one for one in given),
    "ge": lambda code, given: any(code >= one for one in given),
    "co": lambda code, given: any(one in code for one in given),
    "nc": lambda code, given: all(one not in code for one in given),
    "sw": lambda code, given: any(code.startswith(one) for one in given),
    "ew": lambda code, given: any(code.endswith(one) for one in given),
}

KeyCodes = tuple[frozenset[str], ...]  # dimension -> SDMX ids of the codes


_TOO_MANY = phrase("A request may have {most} filters; name the codes in its key.", most=MOST_SEARCHES)


@dataclass(frozen=True)
class Pick:
    """Codes along each dimension in the order of its codelist, and the keys of which they are the hull."""

    codes: tuple[tuple[str, ...], ...]  # dimension -> SDMX ids
    keys: tuple[KeyCodes, ...]

    @property
    def cells(self) -> int:
        """The number of observations."""
        return int(self.inside.sum()) if len(self.keys) > 1 else prod(map(len, self.codes))

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which cells of the hull belong to some key, in row-major order."""
        found = np.zeros(tuple(map(len, self.codes)), dtype=bool)
        for key in self.keys:
            places = [
                [at for at, code in enumerate(codes) if code in wanted]
                for codes, wanted in zip(self.codes, key, strict=True)
            ]
            found[np.ix_(*places)] = True
        return found.reshape(-1)


def pick(flow: Flow, key: str, filters: Iterable[tuple[str, str]]) -> Pick:
    """Read a key and the parameters of a request; parameters that are not component filters are ignored."""
    passing = _passing(flow, filters)
    keys = []
    for positions in _positions(flow, key):
        codes = [
            passed if given is None else passed & given
            for given, passed in zip(positions, passing, strict=True)
        ]
        if all(codes):
            keys.append(tuple(codes))
    if not keys:
        message = phrase("No results: {flow} has no observation with this key.", flow=flow.id)
        raise HttpProblem(404, message)
    hull = [frozenset().union(*column) for column in zip(*keys, strict=True)]
    ordered = tuple(
        tuple(code for code in dimension.codes if code in wanted)
        for dimension, wanted in zip(flow.dimensions, hull, strict=True)
    )
    found = Pick(ordered, tuple(dict.fromkeys(keys)))
    if len(found.keys) > 1 and prod(map(len, ordered)) > MOST_CELLS:
        raise HttpProblem(413, phrase("These keys span too many cells; request them one by one."), kind="key")
    return found


def _positions(flow: Flow, key: str) -> Iterator[list[frozenset[str] | None]]:
    """For each key the codes that it names, None for all."""
    if key in ANY:
        yield [None] * len(flow.dimensions)
        return
    keys = key.split(",")
    if len(keys) > MOST_KEYS:
        message = phrase("A request may have {most} keys; request the rest in another one.", most=MOST_KEYS)
        raise HttpProblem(400, message)
    for one in keys:
        parts = re.sub(r" ", "+", one).split(".")
        if len(parts) != len(flow.dimensions):
            names = ".".join(dimension.id for dimension in flow.dimensions)
            message = phrase(
                "A key of {flow} has {number} positions, {names}; this one has {found}.",
                flow=flow.id,
                number=len(flow.dimensions),
                names=names,
                found=len(parts),
            )
            raise HttpProblem(400, message, kind="key")
        yield [None if part in ANY else frozenset(part.split("+")) for part in parts]


def _passing(flow: Flow, filters: Iterable[tuple[str, str]]) -> list[frozenset[str]]:
    """The codes of each dimension that pass all filters."""
    passing = {dimension.id: frozenset(dimension.codes) for dimension in flow.dimensions}
    searches = 0
    for name, value in filters:
        found = _FILTER.fullmatch(name)
        if found is None:
            continue
        if found[1] not in passing:
            message = phrase(
                "{flow} has no dimension {name}; filter by {names}.",
                flow=flow.id,
                name=repr(found[1][:60]),
                names=tuple(passing),
            )
            raise HttpProblem(400, message, kind="filter")
        parts = re.split(r"[+ ]", value)  # a plus in an address is read as a blank
        searches += len(parts)
        if searches > MOST_SEARCHES:
            raise HttpProblem(400, _TOO_MANY, kind="filter")
        for part in parts:
            passing[found[1]] = _passed(passing[found[1]], part)
    return [passing[dimension.id] for dimension in flow.dimensions]


def _passed(codes: frozenset[str], given: str) -> frozenset[str]:
    operator, colon, values = given.partition(":")
    if not colon:
        operator, values = "eq", given
    if operator not in _OPERATORS:
        message = phrase(
            "Unknown operator {operator}; use one of {names}.",
            operator=repr(operator[:20]),
            names=tuple(_OPERATORS),
        )
        raise HttpProblem(400, message, kind="filter")
    test, wanted = _OPERATORS[operator], frozenset(values.split(","))
    if operator not in ("eq", "ne") and len(wanted) > MOST_SEARCHES:
        raise HttpProblem(400, _TOO_MANY, kind="filter")
    return frozenset(code for code in codes if test(code, wanted))


def dimension_at(flow: Flow, given: str) -> Dimension | None:
    """The dimension at the observation; None where all are, as in tables without time."""
    if given in ("", "AllDimensions", "TIME_PERIOD"):
        return None
    for dimension in flow.dimensions:
        if dimension.id == given:
            return dimension
    names = ("AllDimensions", *(dimension.id for dimension in flow.dimensions))
    raise unknown_value("dimensionAtObservation", given, names)
