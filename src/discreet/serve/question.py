"""A question that has been checked against a catalogue: the table to count, the table to judge, the cells to return.

It owns what the words of a query mean; it does not know the rules nor where the records are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem
from discreet.schema.codelist import Breakdown
from discreet.schema.cube import Cube
from discreet.schema.expression import MOST_TOLD, Comparison, Filter, alternatives, parse_filter
from discreet.serve.catalogue import Catalogue, ServedVariable
from discreet.serve.grouping import grouped, normal
from discreet.serve.query import Axis, Query
from discreet.serve.telling import is_grouping, judged_axes, root_of
from discreet.words.phrase import phrase

Nodes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, resolved.

    ``cube`` is the whole table with its margins, its axes sorted by variable: whoever asks for it in whatever order
    gets the same one. ``judged`` is what the rules look at: the same table with no filter but a declared base, and
    with the variables of any other filter as further axes, fine enough to tell who passes. ``told`` is the judged table
    with breakdowns that tell the groups of groupings apart: a user who may have it could add the groups up.
    """

    query: Query  # canonical, its axes in the order asked for
    cube: Cube
    judged: Cube
    told: Cube  # judged itself where there is no grouping
    order: tuple[int, ...]  # axis as asked -> axis of the cube
    picked: tuple[Nodes, ...]  # axis as asked -> nodes of that axis of the cube
    is_declared: bool  # whether its filter is none or a base that the office declared

    @property
    def cells(self) -> int:
        """The number of cells of the answer."""
        return prod(len(nodes) for nodes in self.picked)


def resolve(query: Query, catalogue: Catalogue) -> Question:
    """Check a query and find its normal form; every mistake in it is reported at once."""
    return _Resolver(query, catalogue).question()


class _Resolver:
    def __init__(self, query: Query, catalogue: Catalogue) -> None:
        self.query, self.catalogue = query, catalogue
        self.problems: list[Problem] = []

    def question(self) -> Question:
        self._check_unit()
        asked = [self._axis(place, axis) for place, axis in enumerate(self.query.axes)]
        axes = [axis for axis in asked if axis is not None]
        self._check_once(axes)
        base = self._base()
        if self.problems:
            raise Mistakes(self.problems)
        order = sorted(range(len(axes)), key=lambda k: axes[k].variable)
        cube = self._cube([axes[k] for k in order], base)
        declared = base is None or base.canonical in self.catalogue.bases.values()
        judged = cube if declared else self._judged(axes, base, lambda _variable: True)
        picked = [self._picked(place, axis) for place, axis in enumerate(axes)]
        if self.problems:
            raise Mistakes(self.problems)
        return Question(
            self._canonical(axes, picked, base),
            cube,
            judged,
            self._told(axes, base, judged),
            tuple(order.index(k) for k in range(len(axes))),
            tuple(picked),
            declared,
        )

    def _judged(self, axes: Sequence[Breakdown], base: Filter | None, keeps: Callable[[str], bool]) -> Cube:
        return self._cube(list(judged_axes(axes, base, self.catalogue, keeps)), None)

    def _told(self, axes: Sequence[Breakdown], base: Filter | None, judged: Cube) -> Cube:
        """The judged table without groupings; but groups of areas are areas, and are judged as such."""
        place = self.catalogue.rule.place
        if not any(is_grouping(axis) and root_of(axis) != place for axis in axes):
            return judged
        free = None if judged.base else base  # a declared base stays
        told = self._judged(axes, free, lambda variable: variable == place)
        return replace(told, base=judged.base)

    def _cube(self, axes: Sequence[Breakdown], base: Filter | None) -> Cube:
        ordered = tuple(sorted(axes, key=lambda axis: axis.variable))
        return Cube("", self.query.unit, ordered, base, self.query.count or None)

    def _check_unit(self) -> None:
        units, counts = self.catalogue.units, self.catalogue.counts.get(self.query.unit, ())
        if self.query.unit not in units:
            value = phrase("unknown unit {name}", name=repr(self.query.unit[:60]))
            self._add("unit", value, alternatives(self.query.unit, units))
        elif self.query.count and self.query.count not in counts:
            named = repr(self.query.count[:60])
            value = phrase("unknown column {name} of {unit}", name=named, unit=self.query.unit)
            self._add("count", value, alternatives(self.query.count, counts))

    def _variable(self, name: str, key: str) -> ServedVariable | None:
        unit = self.query.unit
        known = [held for held, one in self.catalogue.variables.items() if unit in one.units]
        if name in known:
            return self.catalogue.variables[name]
        value = phrase("unknown variable {name} of {unit}", name=repr(name[:60]), unit=unit[:60])
        self._add(key, value, alternatives(name, known))
        return None

    def _axis(self, place: int, axis: Axis) -> Breakdown | None:
        key = f"axes[{place}]"
        name = axis.variable
        variable = self._variable(name, f"{key}.breakdown")
        if variable is None:
            return None
        if axis.groups:
            found, problems = grouped(variable, axis, key)
            self.problems += problems
            return found
        known = tuple(variable.breakdowns)
        if axis.breakdown in known:
            return variable.breakdowns[axis.breakdown]
        value = phrase("unknown breakdown {name}", name=repr(axis.breakdown[:60]))
        self._add(f"{key}.breakdown", value, alternatives(axis.breakdown, known))
        return None

    def _check_once(self, axes: Iterable[Breakdown]) -> None:
        times = Counter(map(root_of, axes))
        for variable in (name for name, count in times.items() if count > 1):
            value = phrase("{variable} stands {times} times", variable=variable, times=times[variable])
            self._add("axes", value, phrase("keep one axis of each variable"))

    def _picked(self, place: int, axis: Breakdown) -> Nodes:
        """The nodes of the wanted codes: in the order of the codelist, or of the groups."""
        asked = self.query.axes[place]
        every = [axis.codes[0], *(group.name for group in asked.groups)] if asked.groups else axis.codes
        wanted = set(asked.codes) or set(every)
        unknown = (code for code in asked.codes if code not in axis.position)
        for code in islice(unknown, max(0, MOST_TOLD - len(self.problems))):
            value = phrase("unknown code {code} of {of}", code=repr(code[:60]), of=asked.breakdown)
            self._add(f"axes[{place}].codes", value, alternatives(code, tuple(every)))
        return np.array([axis.position[code] for code in every if code in wanted], dtype=np.int64)

    def _base(self) -> Filter | None:
        """The filter; None where it lets everybody pass."""
        text = self.query.where.strip()
        if not text:
            return None
        if not self.catalogue.may_filter and text in self.catalogue.bases:
            # a release names its bases without the codes they are made of
            return Filter(self.catalogue.bases[text], text, (), Comparison("", b"", ""))
        served = {name: one for name, one in self.catalogue.variables.items() if self.query.unit in one.units}
        try:
            found = parse_filter(
                text,
                {name: one.codelist for name, one in served.items()},
                key="where",
                breakdowns={name: _by_level(one) for name, one in served.items()},
            )
        except Mistakes as mistakes:
            self.problems += mistakes.problems
            return None
        return None if found.passes_all else found

    def _canonical(self, axes: Sequence[Breakdown], picked: Sequence[Nodes], base: Filter | None) -> Query:
        said = []
        for asked, axis, nodes in zip(self.query.axes, axes, picked, strict=True):
            codes = () if len(nodes) == len(axis) else tuple(axis.codes[node] for node in nodes)
            tree = self.catalogue.variables[root_of(axis)].codelist
            groups = tuple(normal(tree, group) for group in asked.groups)
            said.append(replace(asked, codes=codes, groups=groups))
        return replace(self.query, axes=tuple(said), where=base.canonical if base else "")

    def _add(self, key: str, value: str, remedy: str) -> None:
        self.problems.append(Problem("", key, value, remedy))


def _by_level(variable: ServedVariable) -> dict[str, Breakdown]:
    return {axis.name: axis for axis in variable.breakdowns.values()}
