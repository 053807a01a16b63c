"""SDMX identifiers: how codes, variables and cubes are named in SDMX, and names that clash."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from discreet.errors import Problem
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.labels import Labels

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


BOUNDS = {  # attribute -> name: numbers, as international organisations name them; only tables of a server have them
    "LOWER_BOUND": "The true count is at least this, with 95 % probability",
    "UPPER_BOUND": "The true count is at most this, with 95 % probability",
}

CONCEPTS = "CS_VARIABLES"
OBSERVATION = "OBS_VALUE"
# A message must state when it was prepared; with a fixed day the bytes depend on content only.
PREPARED = datetime(2000, 1, 1, tzinfo=UTC)


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
    taken = {OBSERVATION, *ATTRIBUTES, *BOUNDS}
    variables = dict.fromkeys(axis.variable for table in tables for axis in table.axes)
    for name in variables:
        if component_id(name) in taken:
            value = f"SDMX needs the id {component_id(name)} itself"
            yield Problem("", f"variables.{name}", value, "rename the variable")
