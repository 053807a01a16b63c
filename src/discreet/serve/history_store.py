"""Stored history: the cross-tabulations each user has received, and the information that they have together."""

from __future__ import annotations

import hashlib
import json
from collections import ChainMap, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    CompoundSelect,
    Connection,
    Index,
    LargeBinary,
    MetaData,
    Select,
    String,
    Table,
    bindparam,
    func,
    literal,
    select,
    union_all,
)

from discreet.io.store import Book, Database, Lines, add_new, lay_out, put, rows_of
from discreet.serve.information import SET, Shown

Floats = NDArray[np.float64]
NO_INFORMATION = 1e-300


@dataclass(frozen=True, eq=False)
class Sums:
    """The information on all contrasts of some variables, one of each: I and J of maths.attacks.information."""

    plain: Floats
    bounded: Floats

    @cached_property
    def largest(self) -> float:
        """The most information on any of them."""
        return float(self.plain.max(initial=NO_INFORMATION))

    @cached_property
    def largest_of(self) -> dict[object, float]:
        """The most information on some of them, once it was computed."""
        return {}


@dataclass(frozen=True)
class Known:
    """What a user has collected of one population: the sums of each set of variables."""

    number: int = 0  # of the last answer among them
    sums: Mapping[str, Sums] = field(default_factory=dict)  # names of variables, as JSON -> sums
    sets: Mapping[str, Sums] = field(
        default_factory=dict
    )  # the same where users defined sets: those of one table only

    def after(self, sums: Mapping[str, Sums]) -> Known:
        """What is known after another answer; sums of sets that users defined are not cached."""
        more = {variables: one for variables, one in sums.items() if SET not in variables}
        return Known(self.number + 1, {**self.sums, **more})

    @property
    def every(self) -> Mapping[str, Sums]:
        """All of them."""
        return ChainMap(dict(self.sets), dict(self.sums)) if self.sets else self.sums


MOST_COMPARED = 100  # earlier populations of nearly the same size that are compared with a new one
MOST_CACHED = 200_000  # sums of users that a process caches
ANONYMOUS = "address:"  # ids of users without a token begin with this
AT_ONCE = 100  # populations of one statement: SQLite joins at most 500 parts

_tables = MetaData()
_answered = Table(
    "serve_answered",
    _tables,
    Column("owner", String, primary_key=True),
    Column("population", String, primary_key=True),
    Column("levels", String, primary_key=True),
)
_sums = Table(
    "serve_information",
    _tables,
    Column("owner", String, primary_key=True),
    Column("counted", String, primary_key=True),
    Column("name", String, primary_key=True),  # a digest of the variables
    Column("variables", String, nullable=False),
    Column("number", BigInteger, nullable=False),  # of the answer: later ones have larger numbers
    Column("sums", LargeBinary, nullable=False),
    Index("serve_information_order", "owner", "counted", "number"),
)
_sets = Table(  # of which a user may have many, and each table few: they are looked up, and not cached
    "serve_sets",
    _tables,
    Column("owner", String, primary_key=True),
    Column("counted", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("variables", String, nullable=False),
    Column("sums", LargeBinary, nullable=False),
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
class Population:
    """Who is counted in a table or in a group of it, and the published number of them."""

    base: str  # normal form, empty for all records
    total: int


@dataclass(frozen=True, eq=False)
class Collected:
    """What a user gets with one answer: all cross-tabulations of a table, and the populations that it shows."""

    unit: str
    base: str
    count: str
    tables: Mapping[
        str, tuple[int, ...]
    ]  # levels of a cross-tabulation, as JSON -> its depth along each side
    shown: Shown
    populations: tuple[Population, ...]
    chosen: frozenset[str] = frozenset()  # of the tables, those of a filter or of groups that the user chose
    is_public: bool = False  # whether the programme publishes all of it: it is neither refused nor added up
    part: str = ""  # of the history: tables of different parts are not added up

    @cached_property
    def population(self) -> str:
        """Who is counted, as a short text."""
        return _name(json.dumps([self.unit, self.base, self.count, *self._part]))

    @cached_property
    def counted(self) -> str:
        """What is counted, for any population: populations with the same value are compared, and add up."""
        return json.dumps([self.unit, self.count, *self._part])

    @cached_property
    def as_choice(self) -> Collected:
        """The chosen cross-tabulations, added up separately, without populations to compare."""
        tables = {name: depths for name, depths in self.tables.items() if name in self.chosen}
        return replace(self, tables=tables, populations=(), part="chosen")

    @property
    def is_whole(self) -> bool:
        """Whether all records are counted, along axes that the user has not defined."""
        return not self.base and not self.chosen and not any(one.base for one in self.populations)

    @property
    def _part(self) -> tuple[str, ...]:
        return (self.part,) if self.part else ()


@dataclass(frozen=True, eq=False)
class Received:
    """One answer that a user receives, as it is stored."""

    user: str
    table: Collected
    new: Sequence[str]  # cross-tabulations that the user did not have
    sums: Mapping[str, Sums]  # what is known with it, where that has changed
    known: Known  # what is stored before it, of which every answer raises the number


@dataclass(frozen=True)
class Near:
    """Pairs of populations to compare, or one that has too many neighbours for that."""

    pairs: tuple[tuple[str, str], ...] = ()
    crowded: str | None = None
    has_all: bool = False  # whether the user is known to have all populations of the table


class HistoryStore:
    """The stored tables of users; the caller opens the transaction, and locks the user where it writes."""

    def __init__(self, database: Database) -> None:
        lay_out(database, _BOOK)
        self._cache: OrderedDict[tuple[str, str], Known] = OrderedDict()
        self._cached = 0  # sums in it
        self._lock = Lock()

    def known(self, connection: Connection, user: str, table: Collected) -> Known:
        """The sums of a user: those cached, and newer ones from the database."""
        key = (user, table.counted)
        with self._lock:
            known = self._cache.get(key, Known())
            if key in self._cache:
                self._cache.move_to_end(key)
        whose = {"owner": user, "counted": table.counted}
        rows = rows_of(connection, _SINCE, {**whose, "known": known.number})
        if rows:
            more = {variables: _sums_of(sums) for variables, sums, _ in rows}
            known = Known(max(number for _, _, number in rows), {**known.sums, **more})
            self._put(key, known)
        wanted = [_name(one) for one in table.shown.sets]
        found = _rows_of_names(connection, _sets_of, whose, wanted)
        return replace(known, sets={variables: _sums_of(sums) for variables, sums in found})

    def last(self, connection: Connection, user: str, table: Collected) -> int:
        """The number of the last answer of a user, 0 before the first."""
        ((found,),) = rows_of(connection, _LAST, {"owner": user, "counted": table.counted})
        return found or 0

    def answered(self, connection: Connection, user: str, table: Collected) -> set[str]:
        """All cross-tabulations of a population that the user has."""
        ((found,),) = rows_of(connection, _ANSWERED, {"owner": user, "population": table.population})
        return set(found.split("\n") if found else ())

    def new_tables(self, connection: Connection, user: str, table: Collected) -> tuple[str, ...]:
        """The cross-tabulations of a table that the user does not have."""
        names = dict.fromkeys(table.tables)
        whose = {"owner": user, "population": table.population}
        for (found,) in _rows_of_names(connection, _answered_of, whose, names):
            for one in found.split("\n") if found else ():
                del names[one]
        return tuple(names)

    def has_populations(self, connection: Connection, user: str, table: Collected) -> bool:
        """Whether the user has seen all populations of a table."""
        names = {_name(one.base) for one in table.populations}
        whose = {"owner": user, "counted": table.counted}
        return len(_rows_of_names(connection, _populations_of, whose, names)) == len(names)

    def near(self, connection: Connection, user: str, table: Collected, reach: int) -> Near:
        """Pairs of a new and an earlier population whose totals differ by less; those of one table are pairs, too.

        Where one has more such neighbours than can be compared, it is returned instead of them.
        """
        every = table.populations
        earlier: list[list[str]] = [[] for _ in every]
        for start in range(0, len(every), AT_ONCE):
            some = every[start : start + AT_ONCE]
            asked: dict[str, Any] = {"owner": user, "counted": table.counted, "reach": reach}
            for k, new in enumerate(some):
                asked[f"total{k}"] = new.total
            for k, base in rows_of(connection, _nearest(len(some)), asked):
                earlier[start + k].append(base)
        has_all = all(one.base in found for one, found in zip(every, earlier, strict=True))
        earlier = [
            [base for base in found if base != one.base] for one, found in zip(every, earlier, strict=True)
        ]
        crowded = next(
            (one.base for one, found in zip(every, earlier, strict=True) if len(found) > MOST_COMPARED), None
        )
        pairs: dict[tuple[str, str], None] = {}
        for found, new in zip(earlier, every, strict=True):
            others = [one for one in every if one.base != new.base]
            beside = [one.base for one in others if abs(one.total - new.total) < reach]
            pairs.update(dict.fromkeys((new.base, base) for base in (*found, *beside)))
        return Near(tuple(pairs) if crowded is None else (), crowded, has_all)

    def remember(self, connection: Connection, answers: Sequence[Received]) -> None:
        """Store answers, of each user in their order; :meth:`stored` is to be called once they are on disk.

        All of them share few statements: around each, the driver waits for other threads.
        """
        answered = [
            {"owner": one.user, "population": one.table.population, "levels": levels}
            for one in answers
            for levels in one.new
        ]
        add_new(connection, _answered, answered)
        sums, sets = {}, {}  # a later answer replaces the sums of an earlier one
        for one in answers:
            who = {"owner": one.user, "counted": one.table.counted}
            for variables, found in one.sums.items():
                row = {**who, "name": _name(variables), "variables": variables, "sums": _bytes_of(found)}
                key = (*who.values(), variables)
                if SET in variables:
                    sets[key] = row
                else:
                    sums[key] = {**row, "number": one.known.number + 1}
        put(connection, _sums, list(sums.values()), ("number", "sums"))
        put(connection, _sets, list(sets.values()), ("sums",))
        populations = {
            (one.user, one.table.counted, each.base): each.total
            for one in answers
            for each in one.table.populations
        }
        bases = [
            {"owner": user, "counted": counted, "name": _name(base), "base": base, "total": total}
            for (user, counted, base), total in populations.items()
        ]
        add_new(connection, _populations, bases)

    def stored(self, answer: Received) -> None:
        """Cache what is on disk now, so that the next question need not read it."""
        if answer.sums:
            self._put((answer.user, answer.table.counted), answer.known.after(answer.sums))

    def _put(self, key: tuple[str, str], known: Known) -> None:
        """Cache what was read or stored, and evict the least recently used first."""
        with self._lock:
            earlier = self._cache.pop(key, None)
            if earlier is not None and earlier.number > known.number:
                known = earlier
            self._cache[key] = known
            self._cached += len(known.sums) - (0 if earlier is None else len(earlier.sums))
            while len(self._cache) > 1 and self._cached > MOST_CACHED:
                _, oldest = self._cache.popitem(last=False)
                self._cached -= len(oldest.sums)


@cache
def _nearest(number: int) -> CompoundSelect[Any]:
    """For ``number`` new populations the earlier ones with near totals and itself, one more than can be compared."""
    columns, reach = _populations.c, bindparam("reach", type_=BigInteger)
    parts = []
    for k in range(number):
        at = bindparam(f"total{k}", type_=BigInteger)
        wanted = select(literal(k).label("k"), columns.base).where(
            *_of(_populations, "counted"), columns.total > at - reach, columns.total < at + reach
        )
        parts.append(select(wanted.limit(MOST_COMPARED + 2).subquery()))
    return union_all(*parts)


def _of(table: Table, kind: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """The rows of one user and one kind."""
    return table.c.owner == bindparam("owner"), table.c[kind] == bindparam(kind)


# built once: building a statement takes longer than SQLite needs to execute it
_SINCE = select(_sums.c.variables, _sums.c.sums, _sums.c.number).where(
    *_of(_sums, "counted"), _sums.c.number > bindparam("known", type_=BigInteger)
)
_LAST = select(func.max(_sums.c.number)).where(*_of(_sums, "counted"))


@cache
def _sets_of(number: int) -> Select[Any]:
    return select(_sets.c.variables, _sets.c.sums).where(*_of(_sets, "counted"), _named(_sets.c.name, number))


# as one row: the driver gives way to other threads after each
_ANSWERED = select(Lines(_answered.c.levels)).where(*_of(_answered, "population"))


@cache
def _answered_of(number: int) -> Select[Any]:
    return _ANSWERED.where(_named(_answered.c.levels, number))


@cache
def _populations_of(number: int) -> Select[Any]:
    return select(_populations.c.name).where(
        *_of(_populations, "counted"), _named(_populations.c.name, number)
    )


def _named(column: Column[str], number: int) -> ColumnElement[bool]:
    return column.in_([bindparam(f"name{k}") for k in range(number)])


def _rows_of_names(
    connection: Connection, of: Callable[[int], Select[Any]], whose: Mapping[str, str], names: Iterable[str]
) -> list[tuple[Any, ...]]:
    """The rows of some names; the last one is repeated, so that few different statements are compiled."""
    every = list(names)
    if not every:
        return []
    number = 1 << (len(every) - 1).bit_length()
    every += every[-1:] * (number - len(every))
    return rows_of(connection, of(number), {**whose, **{f"name{k}": one for k, one in enumerate(every)}})


def _name(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _bytes_of(sums: Sums) -> bytes:
    return b"".join(one.astype("<f8").tobytes() for one in (sums.plain, sums.bounded))


def _sums_of(content: bytes) -> Sums:
    plain, bounded = np.frombuffer(content, dtype="<f8").reshape(2, -1)
    return Sums(plain, bounded)
