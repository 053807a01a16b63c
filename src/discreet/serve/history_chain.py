"""Tables that are judged without the database: what a process knows of its users, and a thread that stores answers.

A table of all records is judged by a *chain*: what a user has, as this process read it, and the tables that were judged
since and are being stored. Each answer of a chain expects the number that the one before it stores. Where the database
has another number, another process or thread stored something of this user in between: the chain is broken, nothing
that was judged by it is stored any more, and these questions are judged again. No answer is sent before it is on disk.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock

from sqlalchemy import Connection

from discreet.io.store import Database, one_at_a_time
from discreet.maths.attacks.information import Integers, Mask, Side
from discreet.serve.history_store import NO_INFORMATION, Collected, HistoryStore, Known, Received, Sums
from discreet.serve.information import Block

MOST_NAMES = 500_000  # cross-tabulations and sums of the chains of a process
MOST_TOGETHER = 64  # answers that are stored in one transaction

Key = tuple[str, str]  # user, and what is counted


@dataclass(frozen=True, eq=False)
class Crossed:
    """Some variables that a user may know together, and which of their counts are guarded."""

    variables: frozenset[str]
    sides: tuple[Side, ...]
    blocks: tuple[Block, ...]
    guarded: Mask  # by depth along each side
    own: Integers  # their places among the sums of all these variables; none where counts of some of them are guarded

    @cached_property
    def is_guarded(self) -> bool:
        """Whether any count is."""
        return bool(self.guarded.any())

    def most_of(self, sums: Sums) -> float:
        """The most information on a guarded count, by its own contrast; infinite where that is not among the sums."""
        found = sums.largest_of.get(self)
        if found is None:
            found = float(sums.plain[self.own].max(initial=NO_INFORMATION)) if len(self.own) else math.inf
            sums.largest_of[self] = found
        return found


@dataclass(eq=False)
class Chain:
    """What a user has of all records; judged tables are added before they are stored."""

    known: Known
    answered: set[str]  # cross-tabulations
    exposed: dict[str, Crossed]  # variables whose counts a further table may expose, as JSON
    is_broken: bool = False

    def lacks(self, table: Collected) -> tuple[str, ...]:
        """The cross-tabulations of a table that the user does not have."""
        return tuple(name for name in table.tables if name not in self.answered)

    def __len__(self) -> int:
        return len(self.answered) + len(self.known.sums)


class Chains:
    """The chains of a process; the least recently used are dropped first. Take ``lock`` around every use."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._chains: OrderedDict[Key, Chain] = OrderedDict()
        self._names = 0  # in all of them

    def get(self, key: Key) -> Chain | None:
        """The chain of a user, where it is not broken."""
        chain = self._chains.get(key)
        if chain is not None and chain.is_broken:
            self._names -= len(self._chains.pop(key))
            return None
        if chain is not None:
            self._chains.move_to_end(key)
        return chain

    def put(self, key: Key, chain: Chain) -> None:
        """Add the chain of a user who has none."""
        self._chains[key] = chain
        self._names += len(chain)
        self._drop()

    def extend(self, chain: Chain, new: Iterable[str], sums: Mapping[str, Sums]) -> None:
        """Add a table that the user receives."""
        before = len(chain)
        chain.answered.update(new)
        chain.known = chain.known.after(sums)
        self._names += len(chain) - before
        self._drop()

    def _drop(self) -> None:
        while self._names > MOST_NAMES and len(self._chains) > 1:
            self._names -= len(self._chains.popitem(last=False)[1])


def _running() -> Future[bool]:
    """A future that cannot be cancelled: a user who no longer waits does not change what is stored."""
    made: Future[bool] = Future()
    made.set_running_or_notify_cancel()
    return made


@dataclass(frozen=True, eq=False)
class Link:
    """One answer of a chain, which is to be stored."""

    chain: Chain
    answer: Received
    stored: Future[bool] = field(default_factory=_running)  # False where the chain was broken


class GroupWriter:
    """Stores answers in the order in which they came, those that wait together in one transaction."""

    def __init__(self, database: Database, store: HistoryStore) -> None:
        self._database, self._store = database, store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="history")
        self._lock = Lock()
        self._waiting: list[Link] = []
        self._is_busy = False

    def add(self, link: Link) -> None:
        """Store an answer soon; its future is done when it is on disk."""
        with self._lock:
            self._waiting.append(link)
            begins, self._is_busy = not self._is_busy, True
        if begins:
            self._thread.submit(self._store_all)

    def _store_all(self) -> None:
        while True:
            with self._lock:
                some, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
                if not some:
                    self._is_busy = False
                    return
            try:
                found = self._store_some(some)
            except BaseException as error:  # each question reports it
                for link in some:
                    link.chain.is_broken = True
                    link.stored.set_exception(error)
                continue
            for link, is_stored in zip(some, found, strict=True):
                link.stored.set_result(is_stored)

    def _store_some(self, some: Sequence[Link]) -> list[bool]:
        """Whether each was stored; all that were are on disk when this returns."""
        with self._database.writing() as connection:
            for user in sorted(
                {link.answer.user for link in some}
            ):  # in one order, so that no two writers wait for each other
                one_at_a_time(connection, user)
            numbers: dict[Key, int] = {}  # of the last answers, with those before
            found = [self._follows(connection, link, numbers) for link in some]
            answers = [link.answer for link, follows in zip(some, found, strict=True) if follows]
            # of answers without anything new it is only seen that there is nothing else to compare them with
            answers = [answer for answer in answers if answer.new]
            self._store.remember(connection, answers)
        last = {(answer.user, answer.table.counted): answer for answer in answers}
        for answer in last.values():  # with all that is known before it
            self._store.stored(answer)
        return found

    def _follows(self, connection: Connection, link: Link, numbers: dict[Key, int]) -> bool:
        """Whether the database has the number that a chain expects; those after one that it has not are broken, too."""
        if link.chain.is_broken:
            return False
        answer = link.answer
        key = (answer.user, answer.table.counted)
        if key not in numbers:
            numbers[key] = self._store.last(connection, answer.user, answer.table)
        if numbers[key] != answer.known.number:
            link.chain.is_broken = True  # those after it know of an answer that there is not
            return False
        numbers[key] += bool(answer.new)
        return True
