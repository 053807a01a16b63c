"""The history guard: whether another table would let a user remove the noise by averaging or subtraction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from sqlalchemy import Connection

from discreet.errors import Mistakes
from discreet.io.store import Database, one_at_a_time
from discreet.maths.attacks.averaging import Recovery, recovery
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Signature, crossed, signatures
from discreet.programme.filter import NOBODY
from discreet.programme.serve import Action, HistoryRule
from discreet.serve.answer import Refusal, Rule
from discreet.serve.history_store import Collected, HistoryStore, Population, Received, Statistic
from discreet.serve.query import Query
from discreet.serve.question import Question, resolve
from discreet.serve.records import TableSource
from discreet.tabulate.tables import ProtectedTable
from discreet.text.phrase import Phrase, joined, phrase

SLACK = 50  # noisy totals may differ by this much more than their populations do

Differing = Callable[[str, str], int | None]  # two bases -> published number who are in only one of them
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Seen:
    """What is stored about a user and a new table: all that a judgement depends on."""

    received: Received  # empty where averaging is not guarded
    new: tuple[Statistic, ...]  # of the table, that the user does not have
    near: Pairs
    is_new: bool  # whether there is anything to store


class History:
    """The guards on what users have collected; safe for threads, processes, and processes that are killed."""

    def __init__(self, database: Database, rule: HistoryRule) -> None:
        self._database, self._rule, self._store = database, rule, HistoryStore(database)

    @property
    def is_guarded(self) -> bool:
        """Whether any guard is declared."""
        return self._averages or self._rule.difference is not None

    @property
    def _averages(self) -> bool:
        return self._rule.warn is not None or self._rule.refuse is not None

    def collect(self, user: str, table: Collected, differing: Differing) -> Refusal | tuple[str, ...]:
        """Judge another table and store it, or refuse and store nothing; return the warnings."""
        if not self.is_guarded:
            return ()
        with self._database.reading() as connection:
            seen = self._read(connection, user, table)
        judged: dict[tuple[str, str], int | None] = {}
        while True:
            # populations are compared outside of the transaction, because that may mean counting
            judged |= {pair: differing(*pair) for pair in seen.near if pair not in judged}
            found = self._judge(table, seen, judged)
            if isinstance(found, Refusal) or not seen.is_new:
                return found
            with self._database.writing() as connection:
                one_at_a_time(connection, user)
                now = self._read(connection, user, table)
                if (now.received.number, now.new, now.near) == (seen.received.number, seen.new, seen.near):
                    self._store.remember(connection, user, table)
                    return found
            seen = now  # another request of this user came in between, and is to be judged, too

    def look(self, user: str, table: Collected, differing: Differing) -> Refusal | tuple[str, ...]:
        """Judge another table and store nothing."""
        if not self.is_guarded:
            return ()
        with self._database.reading() as connection:
            seen = self._read(connection, user, table)
        return self._judge(table, seen, {pair: differing(*pair) for pair in seen.near})

    def _read(self, connection: Connection, user: str, table: Collected) -> _Seen:
        received = self._store.received(connection, user, table) if self._averages else Received()
        new = self._store.new_statistics(connection, user, table)
        near: Pairs = ()
        if self._rule.difference is not None:
            near = self._store.near(connection, user, table, self._rule.difference + SLACK)
        is_new = bool(new) or not self._store.has_populations(connection, user, table)
        return _Seen(received, new, near, is_new)

    def _judge(
        self, table: Collected, seen: _Seen, differing: Mapping[tuple[str, str], int | None]
    ) -> Refusal | tuple[str, ...]:
        averaging = self._averaging(table.statistics, seen)
        if isinstance(averaging, Refusal):
            return averaging
        differences = self._differences([(pair, differing[pair]) for pair in seen.near])
        return differences if isinstance(differences, Refusal) else (*averaging, *differences)

    def _averaging(self, statistics: Sequence[Statistic], seen: _Seen) -> Refusal | list[Phrase]:
        """The most exposed statistic of the table, among all that the user would have."""
        rule = self._rule
        if not self._averages or not seen.new:
            return []
        every = seen.received.extended(
            [one.signature.levels for one in seen.new], [one.cells for one in seen.new], seen.received.number
        )
        worst, average = min(
            ((one, averaged(one, every)) for one in statistics), key=lambda pair: pair[1].variance
        )
        finding = phrase(
            "{statistic} could be averaged from {times} representations "
            "to {ratio} times the variance of one count in what you have collected",
            statistic=_named(worst.signature),
            times=average.t,
            ratio=float(f"{average.variance:.3g}"),
        )
        if rule.refuse is not None and average.variance < rule.refuse:
            message = phrase("{finding}; no further table that adds to it is answered.", finding=finding)
            return Refusal(Rule.HISTORY, message)
        warned = rule.warn is not None and average.variance < rule.warn
        return [joined(finding, ".", by="")] if warned else []

    def _differences(self, numbers: Sequence[tuple[tuple[str, str], int | None]]) -> Refusal | list[Phrase]:
        rule = self._rule
        alike = [pair for pair, number in numbers if number is not None and number < (rule.difference or 0)]
        if not alike:
            return []
        new, earlier = alike[0]
        finding = phrase(
            "The counts of {one} and of {other} differ by fewer than {least} records",
            one=_who(new),
            other=_who(earlier),
            least=rule.difference,
        )
        if rule.on_difference is Action.WARN:
            return [phrase("{finding}: their difference reveals a count of few people.", finding=finding)]
        message = phrase("{finding}; only one of them is answered.", finding=finding)
        return Refusal(Rule.DIFFERENCE, message)


def averaged(statistic: Statistic, received: Received) -> Recovery:
    """The best combination of the collected cross-tabulations that add up to a statistic; one count has variance 1."""
    return recovery(received.refining(statistic.signature.levels) / statistic.cells)


def cells_of(signature: Signature, sizes: dict[str, tuple[int, ...]]) -> int:
    """The number of cells of a cross-tabulation; ``sizes`` has the number of codes of each depth of a variable."""
    return prod(sizes[variable][depth] for variable, depth in signature.levels)


def _who(base: str) -> Phrase:
    return phrase("those with {base}", base=base) if base else phrase("all records")


def _named(signature: Signature) -> str:
    """A cross-tabulation as readers know it: what is counted by what, of whom."""
    of = [part for part in (signature.unit, signature.count, signature.base) if part]
    return f"{crossed(signature.levels)} ({', '.join(of)})"


@dataclass(frozen=True)
class Collecting:
    """One question and the source that answers it."""

    source: TableSource
    question: Question

    def collected(self, table: ProtectedTable) -> Collected:
        """Every cross-tabulation and every population of an answer."""
        cube = self.question.judged  # a filter shows cells of the table that has its variables as axes
        sizes = {axis.variable: self._sizes(axis) for axis in cube.axes}
        statistics = tuple(Statistic(one, cells_of(one, sizes)) for one in signatures([cube]))
        return Collected(statistics, tuple({one.base: one for one in self._populations(table)}.values()))

    def differing(self, new: str, earlier: str) -> int | None:
        """The published number of records that are in only one of two populations; None where none can be."""
        if new and earlier:
            text = f"(({new}) and not ({earlier})) or (({earlier}) and not ({new}))"
        else:
            text = f"not ({new or earlier})"
        try:
            return self._number(text)
        except Mistakes as mistakes:
            if all(problem.remedy == NOBODY for problem in mistakes.problems):
                return None  # no record can be in only one: the filters mean the same
            return 0  # too long or too deep to be compared: what cannot be judged is refused

    def _number(self, where: str) -> int:
        """The published number of records that pass a filter."""
        cube = self.question.cube
        asked = Query(cube.unit, (), where, cube.count or "")
        return value_at(self.source.table(resolve(asked, self.source.catalogue).cube), 0)

    def _sizes(self, axis: Breakdown) -> tuple[int, ...]:
        """The number of codes of each depth of a variable, or of a grouping of it."""
        if axis.is_grouping:
            return (1, len(axis) - 1)
        tree = self.source.catalogue.variables[axis.variable].codelist
        return tuple(np.bincount(np.array([0, *tree.depths])).tolist())

    def _populations(self, table: ProtectedTable) -> Iterator[Population]:
        """The populations of a table: all records, those that pass the filter, and each group of a grouping.

        A release shows only populations that it has published, which no question here can change.
        """
        catalogue, cube = self.source.catalogue, self.question.cube
        if not catalogue.may_filter:
            return
        base = cube.base.canonical if cube.base else ""
        yield Population("", self._number(""))
        yield Population(base, value_at(table, 0))
        for k, axis in enumerate(cube.axes):
            for node in range(1, len(axis)) if axis.is_grouping else ():
                leaves = np.flatnonzero(axis.node_of_leaf == node)
                codes = (catalogue.variables[axis.root].codelist.leaf_codes[leaf] for leaf in leaves)
                text = f"{axis.root} in ({', '.join(map(repr, codes))},)"
                both = f"({base}) and {text}" if base else text
                normal = resolve(Query(cube.unit, (), both, cube.count or ""), catalogue).query.where
                yield Population(normal, value_at(table, node * cube.strides[k]))


def value_at(table: ProtectedTable, cell: int) -> int:
    """The published value of one cell; what is not stored is zero."""
    place = int(np.searchsorted(table.cells, cell))
    found = place < len(table) and int(table.cells[place]) == cell
    return int(table.values[place]) if found else 0
