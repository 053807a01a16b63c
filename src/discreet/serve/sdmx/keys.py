"""Which part of a dataflow is asked for: keys and component filters, read into codes along each dimension.

It owns their syntax. Codes that do not exist select nothing, as SDMX has it; nothing at all is "no results".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.serve.http.problems import HttpProblem
from discreet.serve.sdmx.faults import unknown_value
from discreet.serve.sdmx.naming import ANY
from discreet.serve.sdmx.registry import Dimension, Flow
from discreet.words.phrase import phrase

MOST_KEYS = 100  # in one request
MOST_SEARCHES = 100  # component filters, and values of one: each goes through all codes
MOST_CELLS = 1_000_000  # of the hull of several keys
_FILTER = re.compile(r"c\[([^\]]*)\]")
_OPERATORS: dict[str, Callable[[str, frozenset[str]], bool]] = {
    "eq": lambda code, said: code in said,
    "ne": lambda code, said: code not in said,
    "lt": lambda code, said: any(code < one for one in said),
    "le": lambda code, said: any(code <= one for one in said),
    "gt": lambda code, said: any(code > one for one in said),
    "ge": lambda code, said: any(code >= one for one in said),
    "co": lambda code, said: any(one in code for one in said),
    "nc": lambda code, said: all(one not in code for one in said),
    "sw": lambda code, said: any(code.startswith(one) for one in said),
    "ew": lambda code, said: any(code.endswith(one) for one in said),
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
    """Read a key and the parameters of a request; parameters that are no component filters are passed over."""
    passing = _passing(flow, filters)
    keys = []
    for positions in _positions(flow, key):
        codes = [
            passed if said is None else passed & said for said, passed in zip(positions, passing, strict=True)
        ]
        if all(codes):
            keys.append(tuple(codes))
    if not keys:
        words = phrase("No results: {flow} has no observation with this key.", flow=flow.id)
        raise HttpProblem(404, words)
    hull = [frozenset().union(*column) for column in zip(*keys, strict=True)]
    ordered = tuple(
        tuple(code for code in dimension.codes if code in wanted)
        for dimension, wanted in zip(flow.dimensions, hull, strict=True)
    )
    found = Pick(ordered, tuple(dict.fromkeys(keys)))
    if len(found.keys) > 1 and prod(map(len, ordered)) > MOST_CELLS:
        raise HttpProblem(413, phrase("These keys span too much; ask for them one by one."), kind="key")
    return found


def _positions(flow: Flow, key: str) -> Iterator[list[frozenset[str] | None]]:
    """For each key the codes that it names, None for all."""
    if key in ANY:
        yield [None] * len(flow.dimensions)
        return
    keys = key.split(",")
    if len(keys) > MOST_KEYS:
        words = phrase("A request may have {most} keys; ask for the rest in another one.", most=MOST_KEYS)
        raise HttpProblem(400, words)
    for one in keys:
        parts = re.sub(r" ", "+", one).split(".")
        if len(parts) != len(flow.dimensions):
            names = ".".join(dimension.id for dimension in flow.dimensions)
            words = phrase(
                "A key of {flow} has {number} positions, {names}; this one has {found}.",
                flow=flow.id,
                number=len(flow.dimensions),
                names=names,
                found=len(parts),
            )
            raise HttpProblem(400, words, kind="key")
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
            words = phrase(
                "{flow} has no dimension {name}; filter by {names}.",
                flow=flow.id,
                name=repr(found[1][:60]),
                names=tuple(passing),
            )
            raise HttpProblem(400, words, kind="filter")
        parts = re.split(r"[+ ]", value)  # a plus in an address is read as a blank
        searches += len(parts)
        if searches > MOST_SEARCHES:
            raise HttpProblem(400, _TOO_MANY, kind="filter")
        for part in parts:
            passing[found[1]] = _passed(passing[found[1]], part)
    return [passing[dimension.id] for dimension in flow.dimensions]


def _passed(codes: frozenset[str], said: str) -> frozenset[str]:
    operator, colon, values = said.partition(":")
    if not colon:
        operator, values = "eq", said
    if operator not in _OPERATORS:
        words = phrase(
            "Unknown operator {operator}; use one of {names}.",
            operator=repr(operator[:20]),
            names=tuple(_OPERATORS),
        )
        raise HttpProblem(400, words, kind="filter")
    test, wanted = _OPERATORS[operator], frozenset(values.split(","))
    if operator not in ("eq", "ne") and len(wanted) > MOST_SEARCHES:
        raise HttpProblem(400, _TOO_MANY, kind="filter")
    return frozenset(code for code in codes if test(code, wanted))


def dimension_at(flow: Flow, said: str) -> Dimension | None:
    """The dimension at the observation; None where all are, as in tables without time."""
    if said in ("", "AllDimensions", "TIME_PERIOD"):
        return None
    for dimension in flow.dimensions:
        if dimension.id == said:
            return dimension
    names = ("AllDimensions", *(dimension.id for dimension in flow.dimensions))
    raise unknown_value("dimensionAtObservation", said, names)
