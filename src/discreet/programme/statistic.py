"""The identity of a statistic: everything that decides what a cross-tabulation counts, and not how it is named.

Noise that is drawn by description may be repeated only where the very same thing is counted. Two programmes may give
one name to two things (age groups with other limits, another column, a code under another parent); if their noise
were the same, the difference of their releases would be an exact count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from discreet.programme.codelist import Breakdown, Codelist
from discreet.programme.coding import PLAIN, Coding
from discreet.programme.cube import Cube, Signature
from discreet.programme.filter import Filter
from discreet.programme.programme import Programme
from discreet.programme.sources import Dialect, FileSource
from discreet.programme.swap import SwapRule


@dataclass(frozen=True, eq=False)
class Statistics:
    """What the variables, filters and sources of a programme mean; a variable's column is its name if not given."""

    codelists: Mapping[str, Codelist]
    columns: Mapping[str, str] = field(default_factory=dict)
    structural_zeros: tuple[Filter, ...] = ()
    swap: str = ""  # how places are exchanged before counting; empty where they are not
    sources: Mapping[str, str] = field(
        default_factory=dict
    )  # source of ready-made counts -> its file and column
    codings: Mapping[str, Coding] = field(default_factory=dict)  # of the variables whose values are not codes
    files: Mapping[str, str] = field(default_factory=dict)  # unit -> how its files are read, where declared
    _digests: dict[object, str] = field(default_factory=dict, init=False, repr=False)

    def identity(self, cube: Cube, signature: Signature) -> str:
        """A digest of what a cross-tabulation of a cube counts: two are equal only where every cell counts the same.

        Codelists count as a whole, with the order of their codes: the cells of a cross-tabulation are numbered by them.
        """
        axes = {axis.variable: axis for axis in cube.axes}
        return _digest(
            [
                cube.unit,
                self.sources.get(cube.source, ""),
                cube.count,
                cube.weight,
                self._filter(cube.base),
                [[variable, depth, self._axis(axes[variable])] for variable, depth in signature.levels],
                sorted(self._filter(rule) for rule in self.structural_zeros),
                self.swap,
                *self._read_as(cube.unit),
            ]
        )

    def _read_as(self, unit: str) -> list[list[str]]:
        """The declared form of the files behind a table: the same file read in two ways has two contents."""
        return [[name, form] for name, form in sorted(self.files.items()) if name == unit or self.swap]

    def swapping(self, rule: SwapRule) -> str:
        """A digest of how places are exchanged, with what the breakdowns and the filter of the rule mean."""
        axes = [[self._variable(axis.root), axis.codes] for axis in rule.breakdowns()]
        return _digest([rule.canonical(), axes, self._filter(rule.exclude)])

    def _axis(self, axis: Breakdown) -> str:
        """The leaves behind every code of an axis; of a user's groups also which leaves each has."""
        meant = self._variable(axis.root)
        if not axis.is_grouping:
            return meant
        return _digest([meant, axis.node_of_leaf.tolist()])  # groups have no names of their own

    def _variable(self, name: str) -> str:
        if name not in self._digests:
            tree = self.codelists[name]
            coding = self.codings.get(name, PLAIN)
            made = [] if coding.is_plain else [coding.canonical()]
            self._digests[name] = _digest([self.columns.get(name, name), tree.codes, tree.parents, *made])
        return self._digests[name]

    def _filter(self, rule: Filter | None) -> str:
        if rule is None:
            return ""
        return _digest([rule.canonical, [self._variable(name) for name in rule.variables]])


def statistics(programme: Programme) -> Statistics:
    """What a programme counts."""
    sources = {
        cube: _digest([ready.source.describe(), ready.count]) for cube, ready in programme.ready_made.items()
    }
    codelists = {name: variable.codelist for name, variable in programme.variables.items()}
    columns = {name: variable.column for name, variable in programme.variables.items()}
    codings = {name: variable.coding for name, variable in programme.variables.items()}
    counted = Statistics(
        codelists,
        columns,
        programme.structural_zeros,
        sources=sources,
        codings=codings,
        files=_files(programme),
    )
    return counted if programme.swap is None else replace(counted, swap=counted.swapping(programme.swap))


def _files(programme: Programme) -> dict[str, str]:
    units = programme.population.units if programme.population else {}
    return {
        name: _digest(unit.source.dialect.describe())
        for name, unit in units.items()
        if isinstance(unit.source, FileSource) and unit.source.dialect != Dialect()
    }


def together(identities: Iterable[str]) -> str:
    """The identity of several statistics, in whatever order and however often each is named."""
    return _digest(sorted(set(identities)))


def _digest(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
