"""The table builder: resolves a question, judges it, charges it, answers it, or offers the nearest tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import islice
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DatabaseUnavailable, Mistakes
from discreet.formats.dataset import part_of
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.serve.answer import Answer, AnswerAxis, Nearest, NoiseRange, Preview, Refusal, Rule
from discreet.serve.budget import Accounts
from discreet.serve.cache import key_of
from discreet.serve.catalogue import Catalogue
from discreet.serve.history import Collecting, Differing, History, Promise
from discreet.serve.history_store import Collected
from discreet.serve.information import Spaces
from discreet.serve.noise_ranges import AskedCells
from discreet.serve.query import Axis, Query
from discreet.serve.question import Question, resolve
from discreet.serve.records import Stopped, TableSource, never
from discreet.serve.released import map_of, picked
from discreet.serve.rules import Verdict, judge_cells, judge_form
from discreet.tabulate.tables import ProtectedTable
from discreet.text.phrase import joined, phrase

NOT_IN_RELEASE = phrase(
    "The release does not publish all totals of this table: those that it lacks have no value, and are not zero."
)
MOST_OFFERED = 3
MOST_JUDGED = 12
MOST_SECONDS = 0.5  # of making tables that may be offered: the limit of work does not charge users for them
STEPS = 3  # changes of the refused table
MOST_WHOLE = 100_000  # cells of a table whose whole grid is laid out, to take the requested cells from
MOST_SHORT = 20_000  # cells of an answer that is made at once
MOST_RESOLVED = 100  # questions whose normal form is cached: each is needed several times

Passes = Callable[[Query], bool]


def nearest(query: Query, catalogue: Catalogue, passes: Passes) -> tuple[Nearest, ...]:
    """The largest tables within a few changes that pass; at most ``MOST_JUDGED`` are judged."""
    judged = islice(_in_order(query, catalogue), MOST_JUDGED)
    return tuple(islice((change for change in judged if passes(change.query)), MOST_OFFERED))


def _in_order(query: Query, catalogue: Catalogue) -> Iterator[Nearest]:
    """One change before two, then more cells before fewer; no table twice."""
    seen = {_whole(query).id}
    level = [Nearest(_whole(query), "")]
    if level[0].query != query:
        unfiltered = phrase("the same table without the filter")
        yield Nearest(_whole(query), unfiltered) if query.where else level[0]
    for _ in range(STEPS):
        following = {}
        for one in level:
            for change in _changes(one, catalogue):
                if change.query.id not in seen:
                    following[change.query.id] = change
        seen |= following.keys()
        level = sorted(following.values(), key=lambda one: -_cells(one.query, catalogue))
        yield from level


def _whole(query: Query) -> Query:
    """The query without filter and picked codes: the rules are judged on this anyway."""
    axes = tuple(replace(axis, codes=()) for axis in query.axes)
    return replace(query, axes=axes, where="")


def _changes(one: Nearest, catalogue: Catalogue) -> Iterator[Nearest]:
    query, labels = one.query, catalogue.labels
    for place, axis in enumerate(query.axes):
        coarser = _coarser(axis, catalogue)
        if coarser is not None:
            changed = replace(query, axes=_with(query.axes, place, coarser))
            is_place = catalogue.variables[coarser.variable].is_place
            old = labels.breakdowns.get(axis.breakdown, axis.breakdown)
            names = {"new": labels.axis(coarser.breakdown), "old": old}
            larger = phrase("larger areas: {new} for {old}", **names)
            change = larger if is_place else phrase("coarser: {new} for {old}", **names)
            yield Nearest(changed, joined(one.message, change, by=", "))
        if len(query.axes) > 1:
            left = (*query.axes[:place], *query.axes[place + 1 :])
            change = phrase("without {variable}", variable=labels.variable(axis.variable))
            yield Nearest(replace(query, axes=left), joined(one.message, change, by=", "))


def _coarser(axis: Axis, catalogue: Catalogue) -> Axis | None:
    """The next coarser breakdown of the same variable that still divides it."""
    known = catalogue.variables[axis.variable].breakdowns
    if axis.groups:
        return None
    below = [name for name, one in known.items() if 1 < len(one) < len(known[axis.breakdown])]
    return Axis(below[-1]) if below else None


def _with(axes: tuple[Axis, ...], place: int, axis: Axis) -> tuple[Axis, ...]:
    return (*axes[:place], axis, *axes[place + 1 :])


def _cells(query: Query, catalogue: Catalogue) -> int:
    return prod(
        len(axis.groups) + 1
        if axis.groups
        else len(catalogue.variables[axis.variable].breakdowns[axis.breakdown])
        for axis in query.axes
    )


Nodes = NDArray[np.int64]


def answer_of(
    question: Question,
    table: ProtectedTable,
    verdict: Verdict,
    warnings: tuple[str, ...],
    source: TableSource,
) -> Answer:
    """The answer to a question, blocked areas withheld."""
    cube, catalogue = question.cube, source.catalogue
    shape = tuple(len(nodes) for nodes in question.picked)
    values = _values(question, table, shape)
    unpublished = _unpublished(question, table.cube)
    withheld = _withheld(question, verdict, catalogue.rule.place, shape)
    if unpublished is not None:
        withheld |= unpublished
    if verdict.blocked or unpublished is not None:
        values[withheld] = 0
    axes = []
    for k, nodes, asked in zip(question.order, question.picked, question.query.axes, strict=True):
        axis, is_place = cube.axes[k], cube.axes[k].variable in catalogue.places
        is_part = asked.codes or asked.groups
        axes.append(
            _axis(axis, nodes, asked.breakdown, is_place)
            if is_part
            else _whole_axis(axis, asked.breakdown, is_place)
        )
    shown = (
        {code for axis in axes if axis.variable == catalogue.rule.place for code in axis.codes}
        if verdict.blocked
        else set()
    )
    return Answer(
        question.query,
        tuple(axes),
        values,
        withheld,
        catalogue.noise_note,
        catalogue.additivity,
        tuple(area for area in verdict.blocked if area.code in shown),
        warnings if unpublished is None or not unpublished.any() else (*warnings, NOT_IN_RELEASE),
        _Ranges(question, values, source),
    )


def _values(question: Question, table: ProtectedTable, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The values of the requested cells, in the requested order of axes."""
    cube, order = question.cube, question.order
    if cube.size > MOST_WHOLE:
        maps = [map_of(len(axis), question.picked[order.index(k)]) for k, axis in enumerate(cube.axes)]
        places, rows = picked(cube, table.cells, maps, order, shape)
        values = np.zeros(prod(shape), dtype=np.int64)
        values[places] = table.values[rows]
        return values
    grid = np.zeros(cube.size, dtype=np.int64)
    grid[table.cells] = table.values
    found = grid.reshape(cube.shape).transpose(order)
    for place, asked in enumerate(question.query.axes):
        if asked.codes or asked.groups:
            found = found.take(question.picked[place], axis=place)
    return found.reshape(-1)


def _axis(axis: Breakdown, nodes: Nodes, breakdown: str, is_place: bool) -> AnswerAxis:
    picked, parents, depths = nodes.tolist(), axis.parents.tolist(), axis.depths.tolist()
    shown = set(picked)
    above = (_above(node, parents, shown) for node in picked)
    return AnswerAxis(
        axis.root,
        breakdown,
        tuple(axis.codes[node] for node in picked),
        tuple(axis.labels[node] for node in picked),
        tuple(axis.codes[node] if node >= 0 else "" for node in above),
        tuple(depths[node] for node in picked),
        is_place,
        axis.levels,
    )


@lru_cache(maxsize=1_000)
def _whole_axis(axis: Breakdown, breakdown: str, is_place: bool) -> AnswerAxis:
    return _axis(axis, np.arange(len(axis)), breakdown, is_place)


def _above(node: int, parents: list[int], shown: set[int]) -> int:
    """The nearest node above that is shown, or -1."""
    node = parents[node]
    while node >= 0 and node not in shown:
        node = parents[node]
    return node


def _withheld(
    question: Question, verdict: Verdict, place: str | None, shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Every cell of a blocked area."""
    withheld = np.zeros(shape, dtype=bool)
    if not verdict.blocked:
        return withheld.reshape(-1)
    codes = {area.code for area in verdict.blocked}
    for asked, k in enumerate(question.order):
        axis = question.cube.axes[k]
        if axis.root == place:
            blocked = np.array([axis.codes[node] in codes for node in question.picked[asked]], dtype=bool)
            np.moveaxis(withheld, asked, 0)[blocked] = True
    return withheld.reshape(-1)


def _unpublished(question: Question, cube: Cube) -> NDArray[np.bool_] | None:
    """Every cell of a cross-tabulation that the release does not publish; None where it publishes all."""
    part = part_of(cube)
    if part is None:
        return None
    nodes = [question.picked[question.order.index(k)] for k in range(len(cube.axes))]
    levels = np.ix_(*(depths[along] for depths, along in zip(part.depths, nodes, strict=True)))
    return ~part.present[levels].transpose(question.order).reshape(-1)


class _Ranges:
    """The ranges of the cells of an answer."""

    def __init__(self, question: Question, values: NDArray[np.int64], source: TableSource) -> None:
        self._question, self._noise, self._answered = question, source.noise, values

    @cached_property
    def _axis(self) -> list[int]:
        """Axis of the cube -> of the answer."""
        return [self._question.order.index(k) for k in range(len(self._question.order))]

    @cached_property
    def _values(self) -> NDArray[np.int64]:
        """The values, their axes as the cube has them."""
        return self._answered.reshape([len(nodes) for nodes in self._question.picked]).transpose(self._axis)

    def of(self, cell: int, level: float) -> NoiseRange | None:
        """The range of a cell."""
        shape = [len(nodes) for nodes in self._question.picked]
        at = np.unravel_index(cell, shape) if shape else ()
        return self._noise.of(self._cells([slice(at[axis], at[axis] + 1) for axis in self._axis]), level)

    def all(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ranges of all cells."""
        low, high = self._noise.all(self._cells([slice(None)] * len(self._axis)), level)
        order = self._question.order
        return low.transpose(order).reshape(-1), high.transpose(order).reshape(-1)

    def _cells(self, some: Sequence[slice]) -> AskedCells:
        nodes = (self._question.picked[axis][part] for axis, part in zip(self._axis, some, strict=True))
        return AskedCells(self._question.cube, tuple(nodes), self._values[tuple(some)])


def _has_known_names(query: Query, catalogue: Catalogue) -> bool:
    """Whether all breakdowns and codes are known, without groups, and the filter is none or a declared base."""
    where = query.where.strip()
    if query.unit not in catalogue.units or (where and where not in catalogue.bases):
        return False
    for axis in query.axes:
        found = catalogue.breakdown(axis.breakdown)
        if found is None or axis.groups or not all(code in found.position for code in axis.codes):
            return False
    return True


@dataclass(frozen=True)
class AtOnce:
    """An answer that may be sent once it is stored in the history of its user."""

    answer: Answer
    stored: Future[bool] | None  # done when it is on disk; False where it must be asked again; None: it is


class TableBuilder:
    """Answers questions; safe to use from several threads at once."""

    def __init__(self, source: TableSource, history: History, accounts: Accounts | None = None) -> None:
        self._source, self._history, self._accounts = source, history, accounts
        self._needs_time = (
            accounts is not None or source.catalogue.rule.looks_at_cells
        )  # of a ledger, or to judge cells
        self._spaces = Spaces(source)
        self._resolved = lru_cache(maxsize=MOST_RESOLVED)(partial(resolve, catalogue=source.catalogue))

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of the source."""
        return self._source.catalogue

    def prepare(self, stopped: Stopped = never) -> None:
        """Do the work that would slow down the first questions; call it in another thread or before serving."""
        self._source.prepare(stopped)
        # an answer that is thrown away: the first one waits for compiled code
        for unit in () if stopped() else self.catalogue.units[:1]:
            total = self._resolved(Query(unit, ()))
            if not self._source.lacks(total.cube):
                answer_of(total, self._source.table(total.cube), Verdict(), (), self._source)

    def canonical(self, query: Query) -> Query:
        """The normal form of a question: equal questions become equal but for the order of their axes.

        Unknown names and codes raise ``Mistakes`` that name the alternatives (a client error).
        """
        return self._resolved(query).query

    def seconds(self, query: Query) -> float:
        """About how long an answer would take now: the table itself, and what is judged where a rule looks at cells."""
        question = self._resolved(query)
        looked_at = (question.judged, question.ungrouped) if self.catalogue.rule.looks_at_cells else ()
        cubes = {key_of(cube): cube for cube in (question.cube, *looked_at)}
        return sum(self._source.seconds(cube) for cube in cubes.values())

    def ask(self, query: Query, user: str, *, job: bool = False) -> Answer | Refusal:
        """Answer a question of a user (an opaque id), or refuse; a mistake in the question raises ``Mistakes``.

        ``job`` allows as many cells as background jobs may have. What the user receives is stored in the history, and
        charged where the noise has a guarantee, before this returns.
        """
        question = self._resolved(query)
        return self._answered(question, self._verdict(question, job=job), user)

    def ask_at_once(self, query: Query, user: str) -> AtOnce | None:
        """The same where it certainly takes a few milliseconds and waits for no database; None for other questions.

        Such a question is for a small table of a release, or of all records that is added up. Its names are known, and
        no rule refuses it: mistakes list alternatives, and refusals look for other tables, which may take longer.
        """
        if self._needs_time or not _has_known_names(query, self.catalogue):
            return None
        question = self._resolved(query)
        if question.cells > MOST_SHORT or not self._source.is_short(question.cube):
            return None
        is_guarded = self._history.is_guarded
        if is_guarded and not self._spaces.has(question.cube):
            return None
        verdict = self._verdict(question, job=False)
        if verdict.refusal is not None:
            return None
        table = self._source.table(question.cube)
        promise: Promise | None = Promise()
        if is_guarded:
            promise = self._history.collect_at_once(user, self._collecting(question, table)[0])
        if promise is None:
            return None
        answer = answer_of(question, table, verdict, promise.warnings, self._source)
        return AtOnce(answer, promise.stored)

    def _answered(self, question: Question, verdict: Verdict, user: str) -> Answer | Refusal:
        """The answer to a judged question, once it is charged and stored in the history."""
        if verdict.refusal is not None:
            return self._with_nearest(verdict.refusal, question, user)
        if self._accounts is not None:
            refusal = self._accounts.charge(user, question.cube)
            if refusal is not None:
                return self._with_nearest(refusal, question, user)
        table = self._source.table(question.cube)
        judged = (
            self._history.collect(user, *self._collecting(question, table))
            if self._history.is_guarded
            else ()
        )
        if isinstance(judged, Refusal):
            return self._with_nearest(judged, question, user)
        return answer_of(question, table, verdict, judged, self._source)

    def preview(self, query: Query, user: str) -> Preview:
        """How large an answer would be, which areas it would withhold, whether it would be refused; free of charge."""
        question = self._resolved(query)
        needs_job = question.cells > self.catalogue.rule.cells
        verdict = self._verdict(question, job=needs_job)
        refusal = verdict.refusal or self._refused_by_history(question, user)
        found = Preview(
            question.query,
            question.cells,
            needs_job,
            verdict.areas,
            verdict.withheld,
            verdict.blocked,
            refusal,
        )
        if self._accounts is None or refusal is not None:
            return found
        return replace(
            found,
            refusal=self._accounts.refusal(user, question.cube),
            cost=self._accounts.cost(user, question.cube),
            balance=self._accounts.balance(user, question.cube),
        )

    def with_nearest(self, preview: Preview, user: str) -> Preview:
        """A preview that lists tables that would pass where it is refused; it takes as long as judging them."""
        if preview.refusal is None:
            return preview
        question = self._resolved(preview.query)
        return replace(preview, refusal=self._with_nearest(preview.refusal, question, user))

    def _verdict(self, question: Question, *, job: bool) -> Verdict:
        """Judge a question by the rules; protected values are read only where a rule needs them."""
        refusal = judge_form(question, self.catalogue, job=job)
        if refusal is not None:
            return Verdict(refusal)
        lacking = self._source.lacks(question.cube)
        if not lacking and question.judged is not question.cube:
            lacking = self._source.lacks(question.judged)
        if lacking:
            return Verdict(Refusal(Rule.NOT_PUBLISHED, lacking))
        rule = self.catalogue.rule
        if not rule.looks_at_cells:
            return Verdict()
        return judge_cells(question, self._source.table, rule)

    def _refused_by_history(self, question: Question, user: str) -> Refusal | None:
        """The refusal of a table that would be added to the history of a user; nothing is stored."""
        if self._accounts is not None or not self._history.is_guarded:
            return None
        table = self._source.table(question.cube)
        judged = self._history.look(user, *self._collecting(question, table))
        return judged if isinstance(judged, Refusal) else None

    def _with_nearest(self, refusal: Refusal, question: Question, user: str) -> Refusal:
        """The refusal with tables that pass the rules, and the history of the user or what they can pay.

        Tables that together take too long to make are not judged.
        """
        is_guarded = self._accounts is None and self._history.is_guarded
        left = MOST_SECONDS if is_guarded or self.catalogue.rule.looks_at_cells else inf

        def passes(query: Query) -> bool:
            nonlocal left
            try:
                found = self._resolved(query)
                if (needed := self.seconds(query)) > left:
                    return False
                left -= needed
                if self._verdict(found, job=False).refusal is not None:
                    return False
                if self._accounts is not None:
                    return self._accounts.refusal(user, found.cube) is None
                return self._refused_by_history(found, user) is None
            except (Mistakes, DatabaseUnavailable):
                return False

        offers = nearest(question.query, self.catalogue, passes)
        return replace(refusal, nearest=tuple(self._priced(one, user) for one in offers))

    def _priced(self, offer: Nearest, user: str) -> Nearest:
        if self._accounts is None:
            return offer
        cube = resolve(offer.query, self.catalogue).cube
        return replace(offer, price=self._accounts.balance(user, cube).price)

    def _collecting(self, question: Question, table: ProtectedTable) -> tuple[Collected, Differing]:
        collecting = Collecting(self._source, question, self._spaces)
        return collecting.collected(table), collecting.differing
