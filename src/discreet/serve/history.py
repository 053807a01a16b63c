"""The history guard: whether another table would let a user remove the noise by averaging or subtraction."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, product
from operator import attrgetter
from threading import Lock

import numpy as np
from sqlalchemy import Connection

from discreet.errors import Mistakes
from discreet.io.store import Database, one_at_a_time
from discreet.maths.attacks.information import (
    Floats,
    Ladder,
    Mask,
    Side,
    at_least,
    exact,
    information,
    least_variances,
    rarely_exact,
    side,
    typical,
)
from discreet.programme.cube import Cube, cross_named
from discreet.programme.filter import NOBODY
from discreet.programme.serve import Action, HistoryRule
from discreet.serve.answer import Refusal, Rule
from discreet.serve.history_chain import Chain, Chains, Crossed, GroupWriter, Link
from discreet.serve.history_store import (
    ANONYMOUS,
    Collected,
    HistoryStore,
    Known,
    Near,
    Population,
    Received,
    Sums,
)
from discreet.serve.information import Block, Shown, Space, Spaces, blocks_of, shown
from discreet.serve.query import Query
from discreet.serve.question import Question, resolve
from discreet.serve.records import TableSource
from discreet.tabulate.tables import ProtectedTable
from discreet.text.phrase import Phrase, joined, phrase

MOST_CROSSED = 10_000  # combinations of variables whose counts are known to be guarded or not
FEW = 8  # other variables of a user that are looked at without the database
SLACK = 50  # noisy totals may differ by this much more than their populations do

Differing = Callable[[str, str], int | None]  # two bases -> published number who are in only one of them
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Read:
    """What is stored about a user and a new table: all that a judgement depends on."""

    known: Known  # empty where averaging is not guarded
    new: tuple[str, ...]  # cross-tabulations of the table that the user does not have
    near: Near
    is_new: bool  # whether there is anything to store
    chosen: Known | None = None  # from tables with filters or groups only, where these are guarded separately

    def same(self, other: _Read) -> bool:
        """Whether nothing of it has changed."""
        return (self.known.number, self.new, self.near) == (other.known.number, other.new, other.near)


@dataclass(frozen=True)
class _Judged:
    """What would be known with a table, and the warnings."""

    sums: Mapping[str, Sums]
    warnings: tuple[str, ...] = ()
    chosen: Mapping[str, Sums] | None = None  # the same from tables with filters or groups only


@dataclass(frozen=True)
class Promise:
    """The warnings of a table that was judged without the database, and when it may be sent."""

    warnings: tuple[str, ...] = ()
    stored: Future[bool] | None = None  # False where it must be judged again; None where all is stored


class _Turns:
    """Lets the threads of this process do something for one name at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._locks: dict[str, tuple[Lock, int]] = {}  # and how many have it or wait for it

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Wait for the turn of a name."""
        with self._lock:
            mine, number = self._locks.get(name, (Lock(), 0))
            self._locks[name] = mine, number + 1
        try:
            with mine:
                yield
        finally:
            with self._lock:
                _, number = self._locks.pop(name)
                if number > 1:
                    self._locks[name] = mine, number - 1


class History:
    """The guards on what users have collected; safe for threads, processes, and processes that are killed."""

    def __init__(self, database: Database, rule: HistoryRule, variance: float = 0.0) -> None:
        """``variance`` is that of the noise of a count."""
        self._database, self._rule, self._variance = database, rule, variance
        self._store = HistoryStore(database)
        self._chains, self._writer = Chains(), GroupWriter(database, self._store)
        self._turns = _Turns()
        self._crossed: dict[tuple[Space, bool], dict[str, Crossed]] = {}

    @property
    def is_guarded(self) -> bool:
        """Whether any guard is declared."""
        return self._rule.is_guarded

    def collect(self, user: str, table: Collected, differing: Differing) -> Refusal | tuple[str, ...]:
        """Judge another table and store it, or refuse and store nothing; return the warnings."""
        if not self.is_guarded or table.is_public:
            return ()
        user = self._owner(user)
        with self._turns.of(user):  # of two at once one would be judged twice
            return self._collect(user, table, differing)

    def _collect(self, user: str, table: Collected, differing: Differing) -> Refusal | tuple[str, ...]:
        with self._database.reading() as connection:
            read = self._read(connection, user, table)
        compared: dict[tuple[str, str], int | None] = {}
        while True:
            # populations are compared outside of the transaction, because that may mean counting
            compared |= {pair: differing(*pair) for pair in read.near.pairs if pair not in compared}
            found = self._judge(table, read, compared)
            if isinstance(found, Refusal):
                return found
            if not read.is_new:
                return found.warnings
            with self._database.writing() as connection:
                one_at_a_time(connection, user)
                now = self._read_again(connection, user, table, read)
                is_same = now.same(read)
                answered = self._remember(connection, user, table, read, found) if is_same else None
            if is_same:
                self._stored(user, table, read, found, answered)
                return found.warnings
            self._break(user, table)
            read = now  # another request of this user came in between, and is to be judged, too

    def _remember(
        self, connection: Connection, user: str, table: Collected, read: _Read, found: _Judged
    ) -> set[str] | None:
        """Store a table; return all cross-tabulations of all records that the user has, for a new chain."""
        self._store.remember(connection, _received(user, table, read, found))
        is_plain = table.is_whole and not read.near.pairs and read.near.crowded is None
        with self._chains.lock:
            has_chain = self._chains.get((user, table.counted)) is not None
        if not is_plain or has_chain or not self._rule.averages:
            return None
        return self._store.answered(connection, user, table)

    def _stored(
        self, user: str, table: Collected, read: _Read, found: _Judged, answered: set[str] | None
    ) -> None:
        """Cache what is on disk now."""
        whole, *chosen = _received(user, table, read, found)
        for answer in (whole, *chosen):
            self._store.stored(answer)
        with self._chains.lock:
            chain = self._chains.get((user, table.counted))
            if chain is None and answered is not None:
                known = read.known.after(whole.sums)
                exposed = dict(self._exposed(table, known.sums, large=False))
                self._chains.put((user, table.counted), Chain(known, answered, exposed))
            elif chain is not None and chain.known.number == read.known.number and self._is_apart(table):
                self._extend(chain, table, read.new if table.is_whole else (), whole.sums)
            elif chain is not None:
                chain.is_broken = True

    def _extend(self, chain: Chain, table: Collected, new: Sequence[str], sums: Mapping[str, Sums]) -> None:
        """Add a table to a chain, with the variables that it exposes: of none is less known than before."""
        self._chains.extend(chain, new, sums)
        changed = {name: one for name, one in chain.known.sums.items() if name in sums}
        chain.exposed.update(self._exposed(table, changed, large=False))

    def _break(self, user: str, table: Collected) -> None:
        """Let further questions of a user wait for their turn: others could always come in between."""
        with self._chains.lock:
            chain = self._chains.get((user, table.counted))
            if chain is not None:
                chain.is_broken = True

    def _is_apart(self, table: Collected) -> bool:
        """Whether all records need not be compared with the populations of a table."""
        if self._rule.difference is None:
            return True
        others = (abs(one.total - table.shown.space.total) for one in table.populations if one.base)
        return all(gap >= self._rule.difference + SLACK for gap in others)

    def collect_at_once(self, user: str, table: Collected) -> Promise | None:
        """Judge another table of all records without the database, and store it in another thread.

        None where it must be judged by ``collect``: what the user has is not in memory, there is much to look at, or it
        would be refused.
        """
        if not self.is_guarded or table.is_public:
            return Promise()
        user = self._owner(user)
        with self._chains.lock:
            chain = self._chains.get((user, table.counted)) if table.is_whole else None
            if chain is None:
                return None
            new, known = chain.lacks(table), chain.known
            others = list(islice(_others(table, chain.exposed.items()), FEW + 1))
            found = self._averaging(table, new, known, others) if len(others) <= FEW else None
            if found is None or isinstance(found, Refusal):
                return None
            link = Link(chain, Received(user, table, new, found.sums, known))
            if new:
                self._extend(chain, table, new, found.sums)
            self._writer.add(link)
        return Promise(found.warnings, link.stored)

    def look(self, user: str, table: Collected, differing: Differing) -> Refusal | tuple[str, ...]:
        """Judge another table and store nothing."""
        if not self.is_guarded or table.is_public:
            return ()
        with self._database.reading() as connection:
            read = self._read(connection, self._owner(user), table)
        found = self._judge(table, read, {pair: differing(*pair) for pair in read.near.pairs})
        return found if isinstance(found, Refusal) else found.warnings

    def _owner(self, user: str) -> str:
        """Whose history a table is added to: that of the user, or of all users without a token together."""
        return ANONYMOUS if self._rule.together and user.startswith(ANONYMOUS) else user

    def _read(self, connection: Connection, user: str, table: Collected) -> _Read:
        known = self._store.known(connection, user, table) if self._rule.averages else Known()
        new = self._store.new_tables(connection, user, table)
        near = self._near(connection, user, table)
        is_new = bool(new) or not (near.has_all or self._store.has_populations(connection, user, table))
        chosen = None
        if table.chosen and self._rule.averages and self._rule.largest is not None:
            chosen = self._store.known(connection, user, table.as_choice)
        return _Read(known, new, near, is_new, chosen)

    def _read_again(self, connection: Connection, user: str, table: Collected, read: _Read) -> _Read:
        """What is stored now; from the first sums of a user on, every change has raised the last number."""
        if read.known.number and self._store.last(connection, user, table) == read.known.number:
            return read
        return self._read(connection, user, table)

    def _near(self, connection: Connection, user: str, table: Collected) -> Near:
        if self._rule.difference is None:
            return Near()
        return self._store.near(connection, user, table, self._rule.difference + SLACK)

    def _judge(
        self, table: Collected, read: _Read, differing: Mapping[tuple[str, str], int | None]
    ) -> Refusal | _Judged:
        others = _others(table, self._exposed(table, read.known.sums, large=False))
        averaging = self._averaging(table, read.new, read.known, others)
        if isinstance(averaging, Refusal):
            return averaging
        choosing = _Judged({})
        if read.chosen is not None:
            new = [name for name in read.new if name in table.chosen]
            others = _others(table, self._exposed(table, read.chosen.sums, large=True))
            found = self._averaging(table, new, read.chosen, others, large=True)
            if isinstance(found, Refusal):
                return found
            choosing = found
        differences = self._differences(read.near, [(pair, differing[pair]) for pair in read.near.pairs])
        if isinstance(differences, Refusal):
            return differences
        warnings = (*averaging.warnings, *choosing.warnings, *differences)
        return _Judged(averaging.sums, warnings, None if read.chosen is None else choosing.sums)

    def _averaging(
        self,
        table: Collected,
        new: Sequence[str],
        known: Known,
        others: Iterable[Crossed],
        *,
        large: bool = False,
    ) -> Refusal | _Judged:
        """The most exposed count among those that the table adds to, with all that is known.

        With ``large`` it is one of the counts above ``largest``, otherwise one of the others. ``others`` are further
        variables of the user, which are looked at where the table itself is not refused.
        """
        if not self._rule.averages or not new:
            return _Judged({})
        seen = table.shown
        added = information(seen.sides, _new(table, new), seen.space.records)
        blocks = seen.blocks
        before = _tensors(seen.sides, blocks, known.every)
        after = (before[0] + added[0], before[1] + added[1])
        sums = {name: Sums(after[0][at].flatten(), after[1][at].flatten()) for name, at in blocks}
        guarded, worst = self._guarded(seen.sides, seen.space, large), (0.0, "")
        is_low = self._is_low(at_least(after[1], seen.sides), guarded)
        if not is_low and not self._is_low(least_variances(*after, seen.sides), guarded):
            worst = self._worst(seen.sides, seen.space, guarded, before, after)
        is_refused = self._rule.success is not None and worst[0] > self._rule.success
        every = {**known.sums, **sums}
        for one in () if is_refused else others:
            bounded = _tensor(one.sides, one.blocks, every, _BOUNDED)
            if self._is_low(at_least(bounded, one.sides), one.guarded):
                continue
            then = _tensor(one.sides, one.blocks, every, _PLAIN), bounded
            if not self._is_low(least_variances(*then, one.sides), one.guarded):
                earlier = _tensors(one.sides, one.blocks, known.sums)
                worst = max(worst, self._worst(one.sides, seen.space, one.guarded, earlier, then))
        return self._verdict(worst, sums)

    def _verdict(self, worst: tuple[float, str], sums: Mapping[str, Sums]) -> Refusal | _Judged:
        chance, statistic = worst
        rule = self._rule
        if rule.success is not None and chance > rule.success:
            message = phrase(
                "Together with what you have collected, this table would let counts of {statistic} be found exactly "
                "with a probability above {most}; no further table that adds to them is answered.",
                statistic=statistic,
                most=rule.success,
            )
            return Refusal(Rule.HISTORY, message)
        if rule.warn is None or chance <= rule.warn:
            return _Judged(sums)
        warning = phrase(
            "Together with what you have collected, this table lets counts of {statistic} be found exactly with a "
            "probability above {most}.",
            statistic=statistic,
            most=rule.warn,
        )
        return _Judged(sums, (warning,))

    def _worst(
        self,
        sides: Sequence[Side],
        space: Space,
        guarded: Mask,
        before: tuple[Floats, Floats],
        after: tuple[Floats, Floats],
    ) -> tuple[float, str]:
        """The largest probability of finding a guarded count exactly, where it grows, and the name of the counts."""
        plain, bounded = (np.stack(states) for states in zip(before, after, strict=True))
        earlier, chances = exact(least_variances(plain, bounded, sides), self._variance)
        grows = (chances > earlier) & guarded
        if not grows.any():
            return 0.0, ""
        at = int(np.argmax(np.where(grows, chances, 0.0)))
        depths = np.unravel_index(at, chances.shape)
        levels = [(one.name, int(depth)) for one, depth in zip(sides, depths, strict=True) if depth]
        named = cross_named((name, space.level_name(name, depth)) for name, depth in levels)
        return float(chances.reshape(-1)[at]), named

    def _guarded(self, sides: Sequence[Side], space: Space, large: bool) -> Mask:
        """Which counts are guarded, by their depth along each side: those above ``largest``, or the others."""
        sizes = typical([one.shares[one.targets] for one in sides], space.records)
        if self._rule.largest is None:
            return np.ones(sizes.shape, dtype=bool)
        found: Mask = (sizes > self._rule.largest) == large
        return found

    def _is_low(self, variances: Floats, guarded: Mask) -> bool:
        """Whether guarded counts are so rarely exact that nothing is refused and no warning is given."""
        return bool(variances[guarded].min(initial=math.inf) >= self._low)

    @cached_property
    def _low(self) -> float:
        """The variance, in units of the noise's, from which nothing is refused and there is no warning."""
        limits = [limit for limit in (self._rule.success, self._rule.warn) if limit is not None]
        return rarely_exact(min(limits), self._variance)

    def _exposed(
        self, table: Collected, sums: Mapping[str, Sums], *, large: bool
    ) -> Iterator[tuple[str, Crossed]]:
        """The variables of a user whose bound may be too low: what is known of their own contrasts is not enough."""
        space = table.shown.space
        made = self._crossed.setdefault((space, large), {})
        if len(made) > MOST_CROSSED:
            made.clear()
        for name, one in sums.items():
            if one.largest * self._low <= 1:
                continue
            crossed = made.get(name)
            if crossed is None:
                crossed = made[name] = self._make_crossed(space, name, large)
            if crossed.is_guarded and crossed.most_of(one) * self._low > 1:
                yield name, crossed

    def _make_crossed(self, space: Space, name: str, large: bool) -> Crossed:
        sides = tuple(_of_variable(one, space.ladder(one)) for one in json.loads(name))
        guarded = self._guarded(sides, space, large)
        depths = np.argwhere(guarded)
        own = np.zeros(0, dtype=np.int64)
        if sides and (depths > 0).all():
            own = np.asarray(np.ravel_multi_index(tuple((depths - 1).T), [one.rungs - 1 for one in sides]))
        names = tuple("" for _ in sides)
        return Crossed(frozenset(one.name for one in sides), sides, blocks_of(sides, names), guarded, own)

    def _differences(
        self, near: Near, numbers: Sequence[tuple[tuple[str, str], int | None]]
    ) -> Refusal | tuple[Phrase, ...]:
        rule = self._rule
        alike = [pair for pair, number in numbers if number is not None and number < (rule.difference or 0)]
        if not alike and near.crowded is None:
            return ()
        if near.crowded is not None:
            finding = phrase(
                "You have counts of too many populations of nearly the size of {one} to compare them",
                one=_who(near.crowded),
            )
            message = joined(finding, ".", by="")
        else:
            new, earlier = alike[0]
            finding = phrase(
                "The counts of {one} and of {other} differ by fewer than {least} records",
                one=_who(new),
                other=_who(earlier),
                least=rule.difference,
            )
            message = phrase("{finding}; only one of them is answered.", finding=finding)
        if rule.on_difference is Action.WARN:
            return (phrase("{finding}: their difference reveals a count of few people.", finding=finding),)
        return Refusal(Rule.DIFFERENCE, message)


def _received(user: str, table: Collected, read: _Read, found: _Judged) -> list[Received]:
    """A table as it is stored, and its chosen cross-tabulations where these are added up separately."""
    # a table that adds only populations raises the number as well: what is known of a user has one number
    sums = found.sums or dict(islice(read.known.sums.items(), 1))
    answers = [Received(user, table, read.new, sums, read.known)]
    if found.chosen is not None and read.chosen is not None:
        answers.append(Received(user, table.as_choice, (), found.chosen, read.chosen))
    return answers


def _others(table: Collected, exposed: Iterable[tuple[str, Crossed]]) -> Iterator[Crossed]:
    """The variables whose bound depends on what a table adds, besides its own."""
    changed, added = {one.name for one in table.shown.sides}, {name for name, _ in table.shown.blocks}
    for name, crossed in exposed:
        if name not in added and not changed.isdisjoint(crossed.variables):
            yield crossed


def _new(table: Collected, names: Sequence[str]) -> Floats:
    """1 for each cross-tabulation that is new, by its depth along each side."""
    new = np.zeros([len(one.inside) for one in table.shown.sides])
    for name in names:
        new[table.tables[name]] = 1.0
    return new


_PLAIN, _BOUNDED = attrgetter("plain"), attrgetter("bounded")


def _tensors(
    sides: Sequence[Side], blocks: Sequence[Block], sums: Mapping[str, Sums]
) -> tuple[Floats, Floats]:
    return _tensor(sides, blocks, sums, _PLAIN), _tensor(sides, blocks, sums, _BOUNDED)


def _tensor(
    sides: Sequence[Side], blocks: Sequence[Block], sums: Mapping[str, Sums], kind: Callable[[Sums], Floats]
) -> Floats:
    """All contrasts of some variables, with what is known of each."""
    made = np.zeros([one.rungs for one in sides])
    for name, at in blocks:
        found = sums.get(name)
        if found is not None:
            part = made[at]
            part[...] = kind(found).reshape(part.shape)
    return made


@lru_cache(maxsize=1_000)
def _of_variable(name: str, ladder: Ladder) -> Side:
    """A variable of which no table is looked at."""
    return side(name, ladder)


def _who(base: str) -> Phrase:
    return phrase("those with {base}", base=base) if base else phrase("all records")


@dataclass(frozen=True)
class Collecting:
    """One question and the source that answers it."""

    source: TableSource
    question: Question
    spaces: Spaces

    def collected(self, table: ProtectedTable) -> Collected:
        """Every cross-tabulation and every population of an answer."""
        cube = self.question.cube
        seen = shown(cube, self.spaces.of(cube))
        tables = dict(zip(_levels(cube), _places(seen, cube), strict=True))
        populations = tuple({one.base: one for one in self._populations(table, seen.space)}.values())
        base = cube.base.canonical if cube.base else ""
        is_public = tables.keys() <= self.source.catalogue.levels_published(cube.unit, base, cube.count or "")
        chosen = self._chosen(tables, seen)
        return Collected(cube.unit, base, cube.count or "", tables, seen, populations, chosen, is_public)

    def _chosen(self, tables: Mapping[str, tuple[int, ...]], seen: Shown) -> frozenset[str]:
        """The cross-tabulations of a filter or of groups that the user chose."""
        if not self.question.is_declared:
            return frozenset(tables)
        groups = [
            at for at, axis in zip(seen.order, self.question.cube.axes, strict=True) if axis.is_grouping
        ]
        return frozenset(
            name for name, depths in (tables.items() if groups else ()) if any(depths[at] for at in groups)
        )

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

    def _populations(self, table: ProtectedTable, space: Space) -> Iterator[Population]:
        """The populations of a table: all records, those that pass the filter, and each group of a grouping.

        A release shows only populations that it has published, which no question here can change.
        """
        catalogue, cube = self.source.catalogue, self.question.cube
        if not catalogue.may_filter:
            return
        base = cube.base.canonical if cube.base else ""
        yield Population("", space.total)
        yield Population(base, value_at(table, 0))
        for k, axis in enumerate(cube.axes):
            for node in range(1, len(axis)) if axis.is_grouping else ():
                leaves = np.flatnonzero(axis.node_of_leaf == node)
                codes = (catalogue.variables[axis.root].codelist.leaf_codes[leaf] for leaf in leaves)
                text = f"{axis.root} in ({', '.join(map(repr, codes))},)"
                both = f"({base}) and {text}" if base else text
                normal = resolve(Query(cube.unit, (), both, cube.count or ""), catalogue).query.where
                yield Population(normal, value_at(table, node * cube.strides[k]))


def _levels(cube: Cube) -> list[str]:
    """The levels of each cross-tabulation as JSON, as ``Cube.signature`` has them."""
    texts = (["", *(_level(axis.variable, one + 1) for one in range(axis.deepest))] for axis in cube.axes)
    every: Iterable[Sequence[str]] = product(*texts)
    order = [k for k, _ in cube.by_name]
    if order != sorted(order):
        every = ([along[k] for k in order] for along in every)
    return [f"[{', '.join(filter(None, along))}]" for along in every]


@lru_cache(maxsize=10_000)
def _level(variable: str, depth: int) -> str:
    return json.dumps([variable, depth])


def _places(seen: Shown, cube: Cube) -> Sequence[tuple[int, ...]]:
    """The depths of each cross-tabulation along each side; a variable that is only filtered has depth 0."""
    if seen.order == tuple(range(len(seen.sides))):
        return cube.depths
    axis_of = {side: axis for axis, side in enumerate(seen.order)}
    order = [axis_of.get(side) for side in range(len(seen.sides))]
    return [tuple([0 if axis is None else depths[axis] for axis in order]) for depths in cube.depths]


def value_at(table: ProtectedTable, cell: int) -> int:
    """The published value of one cell; what is not stored is zero."""
    place = int(np.searchsorted(table.cells, cell))
    found = place < len(table) and int(table.cells[place]) == cell
    return int(table.values[place]) if found else 0
