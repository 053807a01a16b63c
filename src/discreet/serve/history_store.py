"""Stored history: the cross-tabulations each user has received, and which of them add up to others."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BigInteger,
    BindParameter,
    Column,
    ColumnElement,
    CompoundSelect,
    Connection,
    Index,
    MetaData,
    String,
    Table,
    bindparam,
    func,
    literal,
    select,
    union_all,
)

from discreet.io.store import Book, Database, add_new, lay_out
from discreet.programme.cube import Signature

Levels = Sequence[tuple[str, int]]  # variable, depth
Integers = NDArray[np.int64]
_NONE: Integers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Received:
    """Sizes of all cross-tabulations, and for each variable which of them have it, and how deep."""

    number: int = 0  # of the last answer among them
    cells: Integers = field(default_factory=lambda: _NONE)  # (cross-tabulation) -> cells
    depths: Mapping[str, tuple[Integers, Integers]] = field(default_factory=dict)  # where, how deep

    def __len__(self) -> int:
        return len(self.cells)

    def extended(self, levels: Sequence[Levels], cells: Sequence[int], number: int) -> Received:
        """With more cross-tabulations."""
        added: defaultdict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for place, one in enumerate(levels, start=len(self)):
            for variable, depth in one:
                added[variable][0].append(place)
                added[variable][1].append(depth)
        joined = {name: _joined(self.depths.get(name, (_NONE, _NONE)), more) for name, more in added.items()}
        every = np.concatenate([self.cells, np.array(cells, dtype=np.int64)])
        return Received(number, every, {**self.depths, **joined})

    def refining(self, wanted: Levels) -> Integers:
        """The sizes of the cross-tabulations whose cells add up to those of another, the smallest first."""
        order, ordered = self._sorted
        if not wanted:
            return ordered
        times = np.zeros(len(self), dtype=np.int64)
        for variable, depth in wanted:
            where, depths = self.depths.get(variable, (_NONE, _NONE))
            times[where[depths >= depth]] += 1
        found: Integers = ordered[times[order] == len(wanted)]
        return found

    @cached_property
    def _sorted(self) -> tuple[Integers, Integers]:
        order = np.argsort(self.cells, kind="stable")
        return order, self.cells[order]


def _joined(
    received: tuple[Integers, Integers], more: tuple[Sequence[int], Sequence[int]]
) -> tuple[Integers, Integers]:
    where, depths = (np.concatenate([one, np.array(two)]) for one, two in zip(received, more, strict=True))
    return where, depths


MOST_COMPARED = 20  # earlier populations that are compared with a new one, the nearest first
MOST_CACHED = 1_000_000  # cross-tabulations of users that a process caches
AT_ONCE = 100  # populations of one statement: SQLite joins at most 500 parts

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

    base: str  # normal form, empty for all records
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
        """What is counted, for any population: populations with the same value are compared."""
        one = self.statistics[0].signature
        return json.dumps([one.unit, one.count])


class HistoryStore:
    """The stored tables of users; the caller opens the transaction, and locks the user where it writes."""

    def __init__(self, database: Database) -> None:
        lay_out(database, _BOOK)
        self._cache: OrderedDict[tuple[str, str], Received] = OrderedDict()
        self._lock = Lock()

    def received(self, connection: Connection, user: str, table: Collected) -> Received:
        """The user's cross-tabulations of the same population: those cached, and newer ones from the database."""
        key = (user, table.population)
        with self._lock:
            known = self._cache.get(key, Received())
        whose = {"owner": user, "population": table.population}
        rows = connection.execute(_SINCE, {**whose, "known": known.number}).all()
        if rows:
            levels = json.loads(f"[{','.join(row.levels for row in rows)}]")
            number = max(row.number for row in rows)
            known = known.extended(levels, [row.cells for row in rows], number)
        self._put(key, known)
        return known

    def new_statistics(self, connection: Connection, user: str, table: Collected) -> tuple[Statistic, ...]:
        """The cross-tabulations of a table that the user does not have."""
        names = {_levels_text(one): one for one in table.statistics}
        asked = {"owner": user, "population": table.population, "names": list(names)}
        for known in connection.execute(_KNOWN, asked).scalars():
            del names[known]
        return tuple(names.values())

    def has_populations(self, connection: Connection, user: str, table: Collected) -> bool:
        """Whether the user has seen all populations of a table."""
        names = {_name(one.base) for one in table.populations}
        asked = {"owner": user, "counted": table.counted, "names": list(names)}
        return connection.execute(_KNOWN_POPULATIONS, asked).scalar_one() == len(names)

    def near(
        self, connection: Connection, user: str, table: Collected, reach: int
    ) -> tuple[tuple[str, str], ...]:
        """Pairs of a new and an earlier population whose totals differ by less; those of one table are pairs, too."""
        every = table.populations
        earlier: list[list[tuple[int, str]]] = [[] for _ in every]
        for start in range(0, len(every), AT_ONCE):
            some = every[start : start + AT_ONCE]
            asked: dict[str, Any] = {"owner": user, "counted": table.counted, "reach": reach}
            for k, new in enumerate(some):
                asked |= {f"total{k}": new.total, f"name{k}": _name(new.base)}
            for row in connection.execute(_nearest(len(some)), asked):
                place = start + row.k
                earlier[place].append((abs(row.total - every[place].total), row.base))
        pairs: dict[tuple[str, str], None] = {}
        for found, new in zip(earlier, every, strict=True):
            others = [one for one in every if one.base != new.base]
            beside = [one.base for one in others if abs(one.total - new.total) < reach]
            nearest = [base for _, base in sorted(found)[:MOST_COMPARED]]
            pairs.update(dict.fromkeys((new.base, base) for base in (*nearest, *beside)))
        return tuple(pairs)

    def remember(self, connection: Connection, user: str, table: Collected) -> None:
        """Store what the user receives now."""
        whose = {"owner": user, "population": table.population}
        answer = {**whose, "number": (connection.execute(_LAST, whose).scalar() or 0) + 1}
        tables = [{**answer, "levels": _levels_text(one), "cells": one.cells} for one in table.statistics]
        add_new(connection, _statistics, tables)
        who = {"owner": user, "counted": table.counted}
        bases = [
            {**who, "name": _name(one.base), "base": one.base, "total": one.total}
            for one in table.populations
        ]
        add_new(connection, _populations, bases)

    def _put(self, key: tuple[str, str], received: Received) -> None:
        """Cache what was read, and evict the least recently used first."""
        with self._lock:
            self._cache[key] = received
            self._cache.move_to_end(key)
            while len(self._cache) > 1 and sum(map(len, self._cache.values())) > MOST_CACHED:
                self._cache.popitem(last=False)


@cache
def _nearest(number: int) -> CompoundSelect[Any]:
    """For ``number`` new populations the earlier ones with the nearest totals on both sides, in order of an index."""
    columns, reach = _populations.c, bindparam("reach", type_=BigInteger)
    total, base = columns.total, columns.name
    parts = []
    for k in range(number):
        at = bindparam(f"total{k}", type_=BigInteger)
        other = base != bindparam(f"name{k}")
        wanted = select(literal(k).label("k"), total, columns.base).where(
            *_of(_populations, "counted"), other
        )
        above = wanted.where(total >= at, total < at + reach).order_by(total, base)
        below = wanted.where(total < at, total > at - reach).order_by(total.desc(), base.desc())
        parts += [select(one.limit(MOST_COMPARED).subquery()) for one in (above, below)]
    return union_all(*parts)


def _of(table: Table, kind: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """The rows of one user and one kind."""
    return table.c.owner == bindparam("owner"), table.c[kind] == bindparam(kind)


# built once: building a statement takes longer than SQLite needs to execute it
_MINE = _of(_statistics, "population")
_NAMES: BindParameter[str] = bindparam("names", expanding=True)
_SINCE = select(_statistics.c.levels, _statistics.c.cells, _statistics.c.number).where(
    *_MINE, _statistics.c.number > bindparam("known")
)
_KNOWN = select(_statistics.c.levels).where(*_MINE, _statistics.c.levels.in_(_NAMES))
_LAST = select(func.max(_statistics.c.number)).where(*_MINE)
_KNOWN_POPULATIONS = select(func.count()).where(
    *_of(_populations, "counted"), _populations.c.name.in_(_NAMES)
)


def _name(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _levels_text(statistic: Statistic) -> str:
    return json.dumps(statistic.signature.levels)
