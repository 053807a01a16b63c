"""The book of what each user has collected: cross-tabulations with their sizes, populations with their totals.

It owns the tables, what is read of them for one more answer, and how that stays cheap when a user has much; what is too
much is the history's to say. Users are told apart by opaque ids.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    MetaData,
    Select,
    String,
    Table,
    func,
    literal,
    select,
    union_all,
)

from discreet.engine.books import Book, add_new, lay_out
from discreet.engine.transactions import Database
from discreet.schema.crosstab import Signature
from discreet.serve.held_tables import Held, Levels

MOST_COMPARED = 20  # earlier populations that are compared with a new one, the nearest first
MOST_HELD = 1_000_000  # cross-tabulations of users that a process keeps at hand
AT_ONCE = 100  # populations that one statement asks for: SQLite joins at most 500 parts

_tables = MetaData()
_statistics = Table(
    "serve_statistics",
    _tables,
    Column("owner", String, primary_key=True),
    Column("population", String, primary_key=True),
    Column("levels", String, primary_key=True),
    Column("cells", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),  # of the answer: later ones have larger numbers
    Index("serve_statistics_order", "owner", "population", "number"),
)
_populations = Table(
    "serve_bases",
    _tables,
    Column("owner", String, primary_key=True),
    Column("counted", String, primary_key=True),
    Column("name", String, primary_key=True),  # a base may be longer than an index of PostgreSQL allows
    Column("base", String, nullable=False),
    Column("total", BigInteger, nullable=False),
    Index("serve_bases_order", "owner", "counted", "total", "name"),
)
_BOOK = Book("history", _tables)


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
        """Who is counted, as a short text."""
        one = self.statistics[0].signature
        return _name(json.dumps([one.unit, one.base, one.count]))

    @property
    def counted(self) -> str:
        """What is counted, whoever: populations of the same are compared."""
        one = self.statistics[0].signature
        return json.dumps([one.unit, one.count])


class CollectedBook:
    """What users have collected; a transaction is the caller's, who holds the user's turn where it writes."""

    def __init__(self, database: Database) -> None:
        lay_out(database, _BOOK)
        self._held: OrderedDict[tuple[str, str], Held] = OrderedDict()
        self._lock = Lock()

    def held(self, connection: Connection, user: str, table: Collected) -> Held:
        """The cross-tabulations of the same population that the user has: what is at hand, and what came since."""
        key = (user, table.population)
        with self._lock:
            known = self._held.get(key, Held())
        columns = _statistics.c
        wanted = select(columns.levels, columns.cells, columns.number).where(
            columns.owner == user, columns.population == table.population, columns.number > known.number
        )
        rows = connection.execute(wanted).all()
        if rows:
            known = known.extended(
                [_read_levels(row.levels) for row in rows],
                [row.cells for row in rows],
                max(row.number for row in rows),
            )
        self._keep(key, known)
        return known

    def new_statistics(self, connection: Connection, user: str, table: Collected) -> tuple[Statistic, ...]:
        """The cross-tabulations of a table that the user does not have."""
        names = {_levels_text(one): one for one in table.statistics}
        columns = _statistics.c
        wanted = select(columns.levels).where(
            columns.owner == user, columns.population == table.population, columns.levels.in_(names)
        )
        for known in connection.execute(wanted).scalars():
            del names[known]
        return tuple(names.values())

    def has_populations(self, connection: Connection, user: str, table: Collected) -> bool:
        """Whether the user has been told of all populations of a table."""
        names, columns = {_name(one.base) for one in table.populations}, _populations.c
        wanted = select(func.count()).where(
            columns.owner == user, columns.counted == table.counted, columns.name.in_(names)
        )
        return connection.execute(wanted).scalar_one() == len(names)

    def near(
        self, connection: Connection, user: str, table: Collected, reach: int
    ) -> tuple[tuple[str, str], ...]:
        """Pairs of a new and an earlier population whose totals differ by less; those of one table are pairs, too."""
        earlier: dict[int, list[tuple[int, str]]] = {k: [] for k in range(len(table.populations))}
        for start in range(0, len(table.populations), AT_ONCE):
            parts = [
                part
                for k, new in list(enumerate(table.populations))[start : start + AT_ONCE]
                for part in _around(user, table.counted, k, new, reach)
            ]
            for row in connection.execute(union_all(*parts)):
                earlier[row.k].append((abs(row.total - table.populations[row.k].total), row.base))
        pairs: dict[tuple[str, str], None] = {}
        for k, new in enumerate(table.populations):
            beside = [
                one.base
                for one in table.populations
                if one.base != new.base and abs(one.total - new.total) < reach
            ]
            nearest = [base for _, base in sorted(earlier[k])[:MOST_COMPARED]]
            pairs.update(dict.fromkeys((new.base, base) for base in (*nearest, *beside)))
        return tuple(pairs)

    def remember(self, connection: Connection, user: str, table: Collected) -> None:
        """Write down what the user gets now."""
        columns, population = _statistics.c, table.population
        last = connection.execute(
            select(func.max(columns.number)).where(columns.owner == user, columns.population == population)
        ).scalar()
        answer = {"owner": user, "population": population, "number": (last or 0) + 1}
        tables = [{**answer, "levels": _levels_text(one), "cells": one.cells} for one in table.statistics]
        add_new(connection, _statistics, tables)
        who = {"owner": user, "counted": table.counted}
        bases = [
            {**who, "name": _name(one.base), "base": one.base, "total": one.total}
            for one in table.populations
        ]
        add_new(connection, _populations, bases)

    def _keep(self, key: tuple[str, str], held: Held) -> None:
        """Keep at hand what was read, the longest unused forgotten first; the database stays the book."""
        with self._lock:
            self._held[key] = held
            self._held.move_to_end(key)
            while len(self._held) > 1 and sum(map(len, self._held.values())) > MOST_HELD:
                self._held.popitem(last=False)


def _around(
    user: str, counted: str, k: int, new: Population, reach: int
) -> list[Select[tuple[int, int, str]]]:
    """The earlier populations with the nearest totals on both sides: an index holds each side in its order."""
    columns = _populations.c
    mine = (columns.owner == user, columns.counted == counted, columns.name != _name(new.base))
    above = (columns.total >= new.total, columns.total < new.total + reach)
    below = (columns.total < new.total, columns.total > new.total - reach)
    sides = [(above, (columns.total, columns.name)), (below, (columns.total.desc(), columns.name.desc()))]
    found = [
        select(literal(k).label("k"), columns.total, columns.base)
        .where(*mine, *side)
        .order_by(*order)
        .limit(MOST_COMPARED)
        .subquery()
        for side, order in sides
    ]
    return [select(part.c.k, part.c.total, part.c.base) for part in found]


def _name(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _levels_text(statistic: Statistic) -> str:
    return json.dumps(statistic.signature.levels)


def _read_levels(text: str) -> Levels:
    return tuple((str(variable), int(depth)) for variable, depth in json.loads(text))
