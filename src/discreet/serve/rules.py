"""The rules of a table builder: on the form of a question, and on the protected values of the whole table.

A verdict follows from protected tables that any user may have, so that a refusal reveals no more than the table would.
The rules are judged on the table without its filter (see question).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.perturb.private import passing_nodes
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.serve import ServeRule, SparsityRule
from discreet.serve.answer import Area, Refusal, Rule
from discreet.serve.catalogue import Catalogue
from discreet.serve.question import (
    Question,
    comparisons,
    masks_of,
    picks_codes,
    separating,
)
from discreet.tabulate.tables import ProtectedTable
from discreet.text.phrase import joined, phrase

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
TableOf = Callable[[Cube], ProtectedTable]

REASONS = {
    Rule.AREA_POPULATION: phrase("has too few people or other records"),
    Rule.SPARSITY: phrase("has too many small counts"),
    Rule.ATTRIBUTE: phrase("has too many groups that share one category"),
}


@dataclass(frozen=True)
class Verdict:
    """The verdict of the rules on a question: refused, or answered except for some areas."""

    refusal: Refusal | None = None
    areas: int = 0  # finest ones, judged separately; 0 where the table was judged as a whole
    blocked: tuple[Area, ...] = ()  # of every level
    withheld: int = 0  # blocked areas that are finest ones


def judge_form(question: Question, catalogue: Catalogue, *, job: bool) -> Refusal | None:
    """Judge what needs no counts: sizes, axes, forbidden combinations, filters and groupings."""
    return next(_form(question, catalogue, job=job), None)


def _form(question: Question, catalogue: Catalogue, *, job: bool) -> Iterator[Refusal]:
    rule, axes, name_of = catalogue.rule, question.judged.axes, catalogue.labels.axis
    if len(axes) > rule.axes:
        filtered = "" if question.is_declared else phrase(", those of the filter included")
        message = phrase(
            "The table has {axes} axes{filtered}; {most} are allowed.",
            axes=len(axes),
            filtered=filtered,
            most=rule.axes,
        )
        yield Refusal(Rule.AXES, message)
    for names in rule.forbidden:
        if all(_occurs(name, question, catalogue) for name in names):
            yield Refusal(
                Rule.FORBIDDEN,
                phrase("{names} may not be combined in one table.", names=_listed(map(name_of, names))),
            )
    if not question.is_declared and not (rule.filters and catalogue.may_filter):
        message = phrase("Only the filters of the declared tables are allowed.")
        yield Refusal(Rule.FILTERS, message)
    for variable in (axis.root for axis in question.cube.axes if axis.is_grouping):
        if variable not in rule.groupings:
            allowed = _listed(map(name_of, rule.groupings)) or phrase("no variable")
            message = phrase(
                "The codes of {variable} may not be grouped; {allowed} may.",
                variable=name_of(variable),
                allowed=allowed,
            )
            yield Refusal(Rule.GROUPINGS, message)
        if variable == rule.place and variable in (axis.variable for axis in question.judged.axes):
            message = phrase(
                "The areas of {variable} are grouped and filtered; do only one of these.",
                variable=name_of(variable),
            )
            yield Refusal(Rule.GROUPINGS, message)
    yield from _sizes(question, rule, job=job)


def _occurs(name: str, question: Question, catalogue: Catalogue) -> bool:
    """Whether a variable or a breakdown is in a question: as an axis, in the filter, as groups, in a finer one."""
    wanted = catalogue.breakdown(name)
    for axis in question.judged.axes:
        root = catalogue.variables[axis.root]
        finer_axis = separating(root, masks_of(axis)) if axis.is_grouping else axis
        finer = (
            wanted is not None
            and wanted.variable == root.name
            and finer_axis.position.keys() >= wanted.position.keys()
        )
        if finer or root.name == name:
            return True
    return False


def _sizes(question: Question, rule: ServeRule, *, job: bool) -> Iterator[Refusal]:
    job_helps = not job and question.cells <= rule.job_cells
    most = rule.cells if job_helps else rule.job_cells  # the limit that no job lifts, where one is above it
    if question.cells > most:
        fewer = phrase("Pick fewer codes or coarser breakdowns.")
        remedy = phrase("Request it as a background job.") if job_helps else fewer
        message = phrase("The table has {cells} cells; {most} are allowed.", cells=question.cells, most=most)
        yield Refusal(Rule.CELLS, joined(message, remedy))
    counted = max(cube.size for cube in (question.cube, question.judged, question.ungrouped))
    if counted > rule.counted:
        message = phrase(
            "The whole table has {cells} cells with its margins; {most} can be counted. "
            "Take coarser breakdowns or fewer axes.",
            cells=counted,
            most=rule.counted,
        )
        yield Refusal(Rule.COUNTED, message)


def judge_cells(question: Question, table_of: TableOf, rule: ServeRule) -> Verdict:
    """Judge the protected values of the whole table, each area separately where a place is among its axes.

    Each group of a grouping is judged separately, too; but the groups pass where the table that separates them passes.
    A group that is one code of that table is a code picked from it, and only that table decides.
    """
    cube, place = question.judged, _place(question.judged, rule)
    broken = dict(_broken(_Judged(cube, table_of(cube), place), rule))
    picks = question.ungrouped is not cube and picks_codes(question.cube.axes, question.ungrouped.axes)
    if question.ungrouped is not cube and (broken or picks):
        finer = dict(
            _broken(
                _Judged(question.ungrouped, table_of(question.ungrouped), _place(question.ungrouped, rule)),
                rule,
            )
        )
        broken = finer if picks else _both(broken, finer)
    if not broken:
        return Verdict(areas=0 if place is None else int(cube.axes[place].finest.sum()))
    if place is None:
        named = min(broken, key=list(REASONS).index)
        message = phrase("The table {why}.", why=REASONS[named])
        return Verdict(Refusal(named, message)) if broken[named].any() else Verdict()
    axis = cube.axes[place]
    blocked = tuple(
        Area(axis.codes[node], axis.labels[node], next(name for name in broken if broken[name][node]))
        for node in np.flatnonzero(np.logical_or.reduce(list(broken.values()))).tolist()
    )
    finest = [area for area in blocked if axis.finest[axis.position[area.code]]]
    areas = int(axis.finest.sum())
    stated = (len(finest), areas) if finest else (len(blocked), len(axis))
    refusal = None
    if len(blocked) > rule.blocked * len(axis):  # areas of every level count
        refusal = _too_many(blocked, *stated)
    refusal = refusal or _filtered(blocked, question, axis)
    return Verdict(refusal, areas, blocked, len(finest))


def _both(broken: dict[Rule, Mask], finer: dict[Rule, Mask]) -> dict[Rule, Mask]:
    """What is broken where something is broken in the finer table, too."""
    there: Mask | bool = np.logical_or.reduce(list(finer.values())) if finer else False
    return {name: areas & there for name, areas in broken.items() if (areas & there).any()}


def _place(cube: Cube, rule: ServeRule) -> int | None:
    return next((k for k, axis in enumerate(cube.axes) if axis.root == rule.place), None)


def _too_many(blocked: tuple[Area, ...], withheld: int, areas: int) -> Refusal:
    times = Counter(area.rule for area in blocked)
    named = max(times, key=lambda name: times[name])
    message = phrase(
        "{blocked} of {areas} areas would be withheld, most because the area {why}.",
        blocked=withheld,
        areas=areas,
        why=REASONS[named],
    )
    return Refusal(named, message, blocked)


def _filtered(blocked: tuple[Area, ...], question: Question, axis: Breakdown) -> Refusal | None:
    """Refuse a filter that picks a blocked area: what it leaves of other areas would be that area."""
    base = None if question.is_declared else question.cube.base
    parts = comparisons(base.term) if base else ()
    picked = [passing_nodes(axis, part.lookup) for part in parts if part.variable == axis.variable]
    inside = {axis.codes[node] for nodes in picked for node in np.flatnonzero(_highest(axis, nodes))}
    found = tuple(area for area in blocked if area.code in inside)
    if not found:
        return None
    message = phrase(
        "The filter picks the area {area}, which {why}.", area=found[0].label, why=REASONS[found[0].rule]
    )
    return Refusal(found[0].rule, message, found)


def _highest(axis: Breakdown, nodes: Mask) -> Mask:
    """The marked nodes without a marked one above."""
    below = nodes[axis.parents] & (axis.parents >= 0)
    highest: Mask = nodes & ~below
    return highest


def _broken(judged: _Judged, rule: ServeRule) -> Iterator[tuple[Rule, Mask]]:
    """Area -> does it break the rule, for each rule that is declared and broken somewhere."""
    rules: list[tuple[Rule, Callable[[], Mask]]] = []
    least, sparsity, attribute = rule.area_population, rule.sparsity, rule.attribute
    if least is not None and judged.place is not None:
        rules.append((Rule.AREA_POPULATION, lambda: judged.totals() < least))
    if sparsity is not None:
        rules.append((Rule.SPARSITY, lambda: judged.sparse(sparsity)))
    if attribute is not None:
        rules.append((Rule.ATTRIBUTE, lambda: judged.concentrated() > attribute))
    for name, measure in rules:
        broken = measure()
        if broken.any():
            yield name, broken


class _Judged:
    """A protected table seen area by area; one area where it has no place."""

    def __init__(self, cube: Cube, table: ProtectedTable, place: int | None) -> None:
        self.cube, self.place = cube, place
        self.areas = 1 if place is None else len(cube.axes[place])
        self._cells, self._values = table.cells, table.values
        self._others = [k for k in range(len(cube.axes)) if k != place]
        self._grouped = [k for k in self._others if cube.axes[k].is_grouping]
        inside = np.ones(len(table), dtype=bool)
        for k in self._others:
            inside &= cube.axes[k].finest[cube.nodes(table.cells, k)]
        self._interior = np.flatnonzero(inside)

    def _area(self, cells: Integers) -> Integers:
        return (
            np.zeros(len(cells), dtype=np.int64) if self.place is None else self.cube.nodes(cells, self.place)
        )

    def _parts(self, cells: Integers) -> Iterator[tuple[Integers, int]]:
        """The areas and the groups inside them, judged separately, as (part of each cell, parts of each area)."""
        area = self._area(cells)
        yield area, 1
        for k in self._grouped:
            groups = len(self.cube.axes[k])
            yield area * groups + self.cube.nodes(cells, k), groups

    def totals(self) -> Integers:
        """The published total of each area."""
        at_total = np.ones(len(self._cells), dtype=bool)
        for k in self._others:
            at_total &= self.cube.nodes(self._cells, k) == 0
        totals = np.zeros(self.areas, dtype=np.int64)
        totals[self._area(self._cells[at_total])] = self._values[at_total]
        return totals

    def sparse(self, rule: SparsityRule) -> Mask:
        """All interior cells empty, or too many ones, or too many ones and twos, among those that are not."""
        cells, values = self._cells[self._interior], self._values[self._interior]
        broken: Mask = np.bincount(self._area(cells), minlength=self.areas) == 0
        for part, parts in self._parts(cells):
            size = self.areas * parts
            filled = np.bincount(part, minlength=size)
            ones = np.bincount(part[values == 1], minlength=size)
            twos = np.bincount(part[values == 2], minlength=size)
            small = (ones > rule.ones * filled) | (ones + twos > rule.ones_and_twos * filled)
            broken |= small.reshape(self.areas, parts).any(axis=1)
        return broken

    def concentrated(self) -> NDArray[np.float64]:
        """The largest share, over the variables, of groups of two or more that are in one category of the variable.

        A group is a combination of finest codes of all other axes; only variables with two or more categories count,
        and an area without groups has none concentrated.
        """
        worst = np.zeros(self.areas)
        cells, values = self._cells[self._interior], self._values[self._interior]
        for k in self._others:
            if int(self.cube.axes[k].finest.sum()) > 1:
                worst = np.maximum(worst, self._share(k, cells, values))
        return worst

    def _share(self, k: int, cells: Integers, values: Integers) -> NDArray[np.float64]:
        group = cells - self.cube.nodes(cells, k) * self.cube.strides[k]
        groups, which, categories = np.unique(group, return_inverse=True, return_counts=True)
        members = np.bincount(which, weights=values, minlength=len(groups))
        counted = members >= 2
        worst = np.zeros(self.areas)
        for part, parts in self._parts(groups):
            every = np.bincount(part[counted], minlength=self.areas * parts)
            alone = np.bincount(part[counted & (categories == 1)], minlength=self.areas * parts)
            share = alone / np.maximum(every, 1)
            worst = np.maximum(worst, share.reshape(self.areas, parts).max(axis=1))
        return worst


def _listed(given: Iterable[str]) -> str:
    names = tuple(given)
    if len(names) < 2:
        return next(iter(names), "")
    return phrase("{names} and {last}", names=names[:-1], last=names[-1])
