"""A checked question: custom groupings, the axes the rules look at, the table to count and the cells to return."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem
from discreet.programme.codelist import TOTAL, TOTAL_LABEL, Breakdown, Codelist, breakdown
from discreet.programme.cube import Cube
from discreet.programme.filter import MOST_TOLD, Comparison, Filter, Term, alternatives, parse_filter
from discreet.serve.catalogue import Catalogue, ServedVariable
from discreet.serve.query import LONGEST_NAME, Axis, Group, Query
from discreet.text.phrase import phrase

MOST_GROUPS = 200


def grouped(variable: ServedVariable, axis: Axis, key: str) -> tuple[Breakdown | None, list[Problem]]:
    """The axis of some groups, the one with the first leaf first; leaves in no group count only in the total."""
    problems = list(_problems(variable, axis, key))
    if problems:
        return None, problems
    masks = {group.name: variable.codelist.leaves_below(group.codes) for group in axis.groups}
    names = sorted(masks, key=lambda name: int(np.argmax(masks[name])))
    node_of_leaf = np.zeros(len(variable.codelist.leaves), dtype=np.int32)
    for node, name in enumerate(names, start=1):
        node_of_leaf[masks[name]] = node
    parents = np.array([-1, *(0 for _ in names)], dtype=np.int32)
    # as long as no two groupings can be found that share it: equal names have equal noise and are paid for once
    alias = f"{variable.name}~{hashlib.blake2b(node_of_leaf.tobytes(), digest_size=32).hexdigest()}"
    codes, labels = (TOTAL, *names), (TOTAL_LABEL, *names)
    return Breakdown(alias, alias, codes, labels, parents, node_of_leaf, grouped=variable.name), []


def tree_of(axis: Breakdown) -> Codelist:
    """The groups as a codelist of their own, which names them by their place and not by the user's names."""
    groups = len(axis) - 1
    return Codelist(axis.variable, axis.codes[1:], axis.labels[1:], (-1,) * groups, (1,) * groups)


def normal(tree: Codelist, group: Group) -> Group:
    """The group with the fewest codes that mean the same, in the order of the codelist."""
    return Group(group.name, tree.fewest_codes(tree.leaves_below(group.codes)))


def _problems(variable: ServedVariable, axis: Axis, key: str) -> Iterator[Problem]:
    if axis.breakdown != variable.name:
        value = phrase("groups of the breakdown {name}", name=repr(axis.breakdown))
        remedy = phrase("give the name of the variable, {variable}", variable=variable.name)
        yield Problem("", f"{key}.breakdown", value, remedy)
    if len(axis.groups) > MOST_GROUPS:
        value = phrase("{number} groups", number=len(axis.groups))
        yield Problem("", f"{key}.groups", value, phrase("use at most {most}", most=MOST_GROUPS))
        return
    names = [group.name for group in axis.groups]
    for name in names:
        if not _is_plain(name) or name == TOTAL or len(name) > LONGEST_NAME or names.count(name) > 1:
            remedy = phrase(
                "give each group its own name of up to {most} printable characters, the first none of = + - @",
                most=LONGEST_NAME,
            )
            yield Problem("", f"{key}.groups", phrase("name {name}", name=repr(name[:60])), remedy)
    unknown = list(islice(_unknown_codes(variable.codelist, axis.groups, key), MOST_TOLD))
    yield from unknown or _overlaps(variable.codelist, axis.groups, key)


def _is_plain(name: str) -> bool:
    """Whether no file and no spreadsheet takes a name for a formula: links pass it to other users than its author."""
    return name.isprintable() and bool(name.strip()) and not name.lstrip().startswith(("=", "+", "-", "@"))


def _unknown_codes(tree: Codelist, groups: Sequence[Group], key: str) -> Iterator[Problem]:
    for group in groups:
        if not group.codes:
            value = phrase("{group} has no codes", group=repr(group.name[:60]))
            yield Problem("", f"{key}.groups", value, phrase("name some"))
        for code in group.codes:
            if code not in tree.position:
                value = phrase("unknown code {code}", code=repr(code[:60]))
                yield Problem("", f"{key}.groups", value, alternatives(code, tree.codes))


def _overlaps(tree: Codelist, groups: Sequence[Group], key: str) -> Iterator[Problem]:
    used = np.zeros(len(tree.leaves), dtype=bool)
    for group in groups:
        leaves = tree.leaves_below(group.codes)
        if (used & leaves).any():
            value = phrase("{group} shares codes with another group", group=repr(group.name[:60]))
            yield Problem("", f"{key}.groups", value, phrase("put each code into one group"))
        used |= leaves


Mask = NDArray[np.bool_]  # leaf -> is it inside
EVERY_CODE = "*"  # the name of a breakdown that is not declared


def judged_axes(
    axes: Sequence[Breakdown], base: Filter | None, catalogue: Catalogue, keeps: Callable[[str], bool]
) -> Iterator[Breakdown]:
    """The axes, each fine enough for the filter, and the variables that are only in the filter.

    A grouping whose variable is not one to keep is judged by a breakdown that separates its groups.
    """
    grouped = {axis.root: axis for axis in axes if axis.is_grouping}
    plain = {axis.variable: axis for axis in axes if not axis.is_grouping}
    parts = list(comparisons(base.term)) if base else []
    yield from (axis for variable, axis in grouped.items() if keeps(variable))
    for name in dict.fromkeys([*plain, *grouped, *(part.variable for part in parts)]):
        masks = [part.lookup for part in parts if part.variable == name]
        if name in grouped and not keeps(name):
            masks += masks_of(grouped[name])
        if masks:
            yield separating(catalogue.variables[name], masks, plain.get(name))
        elif name in plain:
            yield plain[name]


def separating(variable: ServedVariable, masks: Iterable[Mask], least: Breakdown | None = None) -> Breakdown:
    """The coarsest breakdown that separates all masks and has all codes of ``least``; all codes where none does."""
    wanted = list(masks)
    for axis in variable.breakdowns.values():
        holds = least is None or axis.position.keys() >= least.position.keys()
        if holds and all(_separates(axis, inside) for inside in wanted):
            return axis
    tree = variable.codelist
    return breakdown(variable.name, EVERY_CODE, tree, tree.leaves)


def masks_of(grouping: Breakdown) -> list[Mask]:
    """The leaves of each group."""
    return [grouping.node_of_leaf == node for node in range(1, len(grouping))]


def picks_codes(axes: Iterable[Breakdown], ungrouped: Iterable[Breakdown]) -> bool:
    """Whether some group is one finest code of the axis that separates it."""
    by_variable = {axis.variable: axis for axis in ungrouped}
    pairs = ((axis, by_variable.get(axis.root)) for axis in axes if axis.is_grouping)
    return any(
        len(np.unique(finer.node_of_leaf[inside])) == 1
        for axis, finer in pairs
        if finer is not None
        for inside in masks_of(axis)
    )


def comparisons(term: Term) -> Iterator[Comparison]:
    """All comparisons of a filter."""
    if isinstance(term, Comparison):
        yield term
    else:
        for part in term.terms:
            yield from comparisons(part)


def _separates(axis: Breakdown, inside: Mask) -> bool:
    """Whether all leaves of each node are inside, or none."""
    leaves = np.bincount(axis.node_of_leaf, minlength=len(axis))
    found = np.bincount(axis.node_of_leaf, weights=inside, minlength=len(axis))
    return bool(((found == 0) | (found == leaves)).all())


Nodes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Question:
    """A resolved question.

    ``cube`` is the whole table with its margins, its axes sorted by variable: it is the same for every order of axes.
    ``judged`` is what the rules look at: the same table with no filter but a declared base, and with the variables of
    any other filter as further axes, fine enough to separate those who pass. ``ungrouped`` is the judged table with
    breakdowns that separate the groups of groupings: a user who may have it could add up the groups.
    """

    query: Query  # canonical, its axes in the requested order
    cube: Cube
    judged: Cube
    ungrouped: Cube  # judged itself where there is no grouping
    order: tuple[int, ...]  # requested axis -> axis of the cube
    picked: tuple[Nodes, ...]  # requested axis -> nodes of that axis of the cube
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
        if self.query.unit not in self.catalogue.units:
            raise Mistakes(self.problems)  # no variable of it is known: the others would be named wrongly
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
            self._ungrouped(axes, base, judged),
            tuple(order.index(k) for k in range(len(axes))),
            tuple(picked),
            declared,
        )

    def _judged(self, axes: Sequence[Breakdown], base: Filter | None, keeps: Callable[[str], bool]) -> Cube:
        return self._cube(list(judged_axes(axes, base, self.catalogue, keeps)), None)

    def _ungrouped(self, axes: Sequence[Breakdown], base: Filter | None, judged: Cube) -> Cube:
        """The judged table without groupings; but groups of areas are areas, and are judged as such."""
        place = self.catalogue.rule.place
        if not any(axis.is_grouping and axis.root != place for axis in axes):
            return judged
        free = None if judged.base else base  # a declared base stays
        ungrouped = self._judged(axes, free, lambda variable: variable == place)
        return replace(ungrouped, base=judged.base)

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
        found = self.catalogue.variables.get(name)
        if found is not None and unit in found.units:
            return found
        known = [other for other, one in self.catalogue.variables.items() if unit in one.units]
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
        roots = [axis.root for axis in axes]
        if len(set(roots)) == len(roots):
            return
        times = Counter(roots)
        for variable in (name for name, count in times.items() if count > 1):
            value = phrase("{variable} is given {times} times", variable=variable, times=times[variable])
            self._add("axes", value, phrase("keep one axis of each variable"))

    def _picked(self, place: int, axis: Breakdown) -> Nodes:
        """The nodes of the requested codes, in the order of the codelist, or of the groups."""
        asked = self.query.axes[place]
        if not asked.codes and not asked.groups:
            return np.arange(len(axis), dtype=np.int64)
        every = [axis.codes[0], *(group.name for group in asked.groups)] if asked.groups else axis.codes
        wanted = set(asked.codes) or set(every)
        unknown = (code for code in asked.codes if code not in axis.position)
        for code in islice(unknown, max(0, MOST_TOLD - len(self.problems))):
            value = phrase("unknown code {code} of {of}", code=repr(code[:60]), of=asked.breakdown)
            self._add(f"axes[{place}].codes", value, alternatives(code, tuple(every)))
        return np.array([axis.position[code] for code in every if code in wanted], dtype=np.int64)

    def _base(self) -> Filter | None:
        """The filter; None where all records pass."""
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
        normal_axes = []
        for asked, axis, nodes in zip(self.query.axes, axes, picked, strict=True):
            if not asked.codes and not asked.groups:
                normal_axes.append(asked)
                continue
            codes = () if len(nodes) == len(axis) else tuple(axis.codes[node] for node in nodes)
            tree = self.catalogue.variables[axis.root].codelist
            groups = tuple(normal(tree, group) for group in asked.groups)
            normal_axes.append(replace(asked, codes=codes, groups=groups))
        where = base.canonical if base else ""
        return Query(self.query.unit, tuple(normal_axes), where, self.query.count)

    def _add(self, key: str, value: str, remedy: str) -> None:
        self.problems.append(Problem("", key, value, remedy))


def _by_level(variable: ServedVariable) -> dict[str, Breakdown]:
    return {axis.name: axis for axis in variable.breakdowns.values()}
