"""What each user has collected, and whether one more table would let them average or subtract the noise away.

It owns the record of answered cross-tabulations and populations, and the two guards on it; it counts nothing itself.
Users are told apart by opaque ids; whether two of them are one person is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from sqlalchemy import BigInteger, Column, Connection, MetaData, String, Table, func, select

from discreet.engine.transactions import Database
from discreet.maths.redundancy import Average, exposure
from discreet.schema.crosstab import Signature
from discreet.schema.serve_rule import Action, HistoryRule
from discreet.serve.answer import Refusal, Rule
from discreet.serve.new_rows import add_new, one_at_a_time
from discreet.words.phrase import Phrase, joined, phrase

SLACK = 50  # noisy totals may differ by so much more than their populations do
MOST_COMPARED = 20  # earlier populations that are compared, the nearest first

_tables = MetaData()
_collected = Table(
    "serve_collected",
    _tables,
    Column("owner", String, primary_key=True),
    Column("population", String, primary_key=True),
    Column("levels", String, primary_key=True),
    Column("cells", BigInteger, nullable=False),
)
_populations = Table(
    "serve_populations",
    _tables,
    Column("owner", String, primary_key=True),
    Column("counted", String, primary_key=True),
    Column("base", String, primary_key=True),
    Column("total", BigInteger, nullable=False),
)

Levels = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Statistic:
    """A cross-tabulation and how many cells it has."""

    signature: Signature
    cells: int


@dataclass(frozen=True)
class Population:
    """Who is counted in a table or in a group of it, and the published number of them."""

    base: str  # normal form, empty for everybody
    total: int


@dataclass(frozen=True)
class Collected:
    """What a user gets with one answer: all cross-tabulations of a table, and the populations that it shows."""

    statistics: tuple[Statistic, ...]
    populations: tuple[Population, ...]

    @property
    def population(self) -> str:
        """Who is counted, as text."""
        one = self.statistics[0].signature
        return json.dumps([one.unit, one.base, one.count])

    @property
    def counted(self) -> str:
        """What is counted, whoever: populations of the same are compared."""
        one = self.statistics[0].signature
        return json.dumps([one.unit, one.count])


Differing = Callable[[str, str], int | None]  # two bases -> published number who are in one of them alone


class History:
    """The record of what users have collected; safe for threads, processes, and processes that are killed."""

    def __init__(self, database: Database, rule: HistoryRule) -> None:
        self._database, self._rule = database, rule
        with database.writing() as connection:
            _tables.create_all(connection)

    @property
    def is_kept(self) -> bool:
        """Whether any guard is declared."""
        rule = self._rule
        return any(level is not None for level in (rule.warn, rule.refuse, rule.difference))

    def collect(self, user: str, table: Collected, differing: Differing) -> Refusal | tuple[str, ...]:
        """Judge one more table and remember it, or refuse and remember nothing; return the warnings."""
        if not self.is_kept:
            return ()
        judged: dict[tuple[str, str], int | None] = {}

        def once(new: str, earlier: str) -> int | None:
            if (new, earlier) not in judged:
                judged[new, earlier] = differing(new, earlier)
            return judged[new, earlier]

        while True:
            found = self.look(user, table, once)
            if isinstance(found, Refusal) or not self._is_new(user, table):
                return found
            with self._database.writing() as connection:
                one_at_a_time(connection, user)
                averaging = self._averaging(table.statistics, self._held(connection, user, table))
                if isinstance(averaging, Refusal):
                    return averaging
                if judged.keys() >= set(self._near(connection, user, table)):
                    self._remember(connection, user, table)
                    return found
            # another request of this user came in between, and what it asked for has to be compared, too

    def look(self, user: str, table: Collected, differing: Differing) -> Refusal | tuple[str, ...]:
        """Judge one more table and remember nothing."""
        if not self.is_kept:
            return ()
        with self._database.reading() as connection:
            held = self._held(connection, user, table)
            near = list(self._near(connection, user, table))
        averaging = self._averaging(table.statistics, held)
        differences = self._differences(near, differing)
        for judged in (averaging, differences):
            if isinstance(judged, Refusal):
                return judged
        return (*averaging, *differences)  # type: ignore[misc]

    def _held(self, connection: Connection, user: str, table: Collected) -> dict[Levels, int]:
        """The cross-tabulations of the same population that the user has, and their cells."""
        wanted = select(_collected.c.levels, _collected.c.cells).where(
            _collected.c.owner == user, _collected.c.population == table.population
        )
        return {_read_levels(levels): cells for levels, cells in connection.execute(wanted)}

    def _averaging(self, statistics: Sequence[Statistic], held: dict[Levels, int]) -> Refusal | list[str]:
        """The most exposed statistic of the table, among all that the user would have."""
        rule = self._rule
        if rule.warn is None and rule.refuse is None:
            return []
        every = {**held, **{one.signature.levels: one.cells for one in statistics}}
        if len(every) == len(held):
            return []  # nothing new
        worst, average = min(
            ((one, representations(one, every)) for one in statistics), key=lambda pair: pair[1].ratio
        )
        said = phrase(
            "{statistic} could be averaged from {times} representations "
            "(k/t\N{SUPERSCRIPT TWO} = {ratio}) in what you have collected",
            statistic=str(worst.signature),
            times=average.t,
            ratio=float(f"{average.ratio:.3g}"),
        )
        if rule.refuse is not None and average.ratio < rule.refuse:
            words = phrase("{finding}; no further table that adds to it is answered.", finding=said)
            return Refusal(Rule.HISTORY, words)
        warned = rule.warn is not None and average.ratio < rule.warn
        return [joined(said, ".", by="")] if warned else []

    def _near(self, connection: Connection, user: str, table: Collected) -> Iterator[tuple[str, str]]:
        """Pairs of a new and an earlier population whose totals are close; those of one table are pairs, too."""
        if self._rule.difference is None:
            return
        reach, total = self._rule.difference + SLACK, _populations.c.total
        mine = (_populations.c.owner == user, _populations.c.counted == table.counted)
        for new in table.populations:
            wanted = select(_populations.c.base).where(
                *mine, func.abs(total - new.total) < reach, _populations.c.base != new.base
            )
            nearest = wanted.order_by(func.abs(total - new.total)).limit(MOST_COMPARED)
            others = [one for one in table.populations if one.base != new.base]
            beside = [one.base for one in others if abs(one.total - new.total) < reach]
            for base in dict.fromkeys([*connection.execute(nearest).scalars(), *beside]):
                yield new.base, base

    def _differences(self, near: Sequence[tuple[str, str]], differing: Differing) -> Refusal | list[str]:
        rule = self._rule
        numbers = [(pair, differing(*pair)) for pair in near]
        alike = [pair for pair, number in numbers if number is not None and number < (rule.difference or 0)]
        if not alike:
            return []
        new, earlier = alike[0]
        said = phrase(
            "The counts of {one} and of {other} differ by fewer than {least} records",
            one=_who(new),
            other=_who(earlier),
            least=rule.difference,
        )
        if rule.on_difference is Action.WARN:
            return [phrase("{finding}: their difference tells of few people.", finding=said)]
        words = phrase("{finding}; only one of them is answered.", finding=said)
        return Refusal(Rule.DIFFERENCE, words)

    def _is_new(self, user: str, table: Collected) -> bool:
        """Whether there is anything to remember: a repeated question writes nothing."""
        bases = select(_populations.c.base).where(
            _populations.c.owner == user, _populations.c.counted == table.counted
        )
        with self._database.reading() as connection:
            held = self._held(connection, user, table)
            seen = set(connection.execute(bases).scalars())
        return not (
            held.keys() >= {one.signature.levels for one in table.statistics}
            and seen >= {one.base for one in table.populations}
        )

    def _remember(self, connection: Connection, user: str, table: Collected) -> None:
        who = {"owner": user, "population": table.population}
        tables = [
            {**who, "levels": json.dumps(one.signature.levels), "cells": one.cells}
            for one in table.statistics
        ]
        add_new(connection, _collected, tables)
        who = {"owner": user, "counted": table.counted}
        bases = [{**who, "base": one.base, "total": one.total} for one in table.populations]
        add_new(connection, _populations, bases)


def representations(statistic: Statistic, held: dict[Levels, int]) -> Average:
    """The choice of the collected cross-tabulations whose mean tells most of a statistic: the smallest k/t^2."""
    wanted = statistic.signature.levels
    sizes = [cells for levels, cells in held.items() if _refines(levels, wanted)]
    return exposure(sizes, statistic.cells).riskiest


def cells_of(signature: Signature, sizes: dict[str, tuple[int, ...]]) -> int:
    """The number of cells of a cross-tabulation; ``sizes`` has the number of codes of each depth of a variable."""
    return prod(sizes[variable][depth] for variable, depth in signature.levels)


def _refines(finer: Levels, wanted: Levels) -> bool:
    depths = dict(finer)
    return all(depths.get(variable, 0) >= depth for variable, depth in wanted)


def _read_levels(text: str) -> Levels:
    return tuple((str(variable), int(depth)) for variable, depth in json.loads(text))


def _who(base: str) -> Phrase:
    return phrase("those with {base}", base=base) if base else phrase("everybody")
