"""Tables that are judged without the database are judged by the same rule, and nothing is given before it is stored."""

import asyncio
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from threading import Event
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Connection

from discreet.errors import DatabaseUnavailable
from discreet.io.store import Database, Journal
from discreet.maths.attacks.information import FEWEST, Ladder, Side, exact, least_variances, side, typical
from discreet.programme.serve import Action, HistoryRule
from discreet.serve import history_chain
from discreet.serve.answer import Refusal
from discreet.serve.history import History, Promise
from discreet.serve.history_store import ANONYMOUS, Collected, HistoryStore, Population, Sums
from discreet.serve.http.limits import WorkerPool
from discreet.serve.http.settings import Limits
from discreet.serve.information import blocks_of
from tests.cases import BOTH_DATABASES, few
from tests.serve.test_history import EVEN, VARIANCE, Even, history, no_difference, table
from tests.waiting import PATIENCE

Floats = NDArray[np.float64]
Found = tuple[str, ...]  # how a question is answered
EVERYBODY = Population("", EVEN.total)
TOTALS = {
    "": EVEN.total,
    "near": 999_975,  # differs from all records by fewer than 30
    "close": 999_940,  # does not, but is compared
    "far": 900_000,
    "alike": 899_990,
    "another": 500_000,
}
RULES = [
    HistoryRule(success=0.6, warn=0.5),
    HistoryRule(success=0.42, largest=50_000, difference=30, together=True),
    HistoryRule(success=0.5, warn=0.4, largest=200_000, difference=30, on_difference=Action.WARN),
    HistoryRule(difference=30),
]
USERS = ("token:ann", "token:bob", "address:one", "address:two")


def whole(*variables: str) -> Collected:
    """A table of all records."""
    return table(*variables, populations=(EVERYBODY,))


def differing(new: str, earlier: str) -> int:
    return abs(TOTALS[new] - TOTALS[earlier])


@dataclass
class _Given:
    """What a user was given."""

    tables: set[tuple[str, str]] = field(default_factory=set)
    bases: set[str] = field(default_factory=set)
    sums: dict[str, Sums] = field(default_factory=dict)
    chosen: dict[str, Sums] = field(default_factory=dict)  # from tables that the user chose only


class Plain:
    """The rule as it is declared: nothing is stored, shared, cached or skipped."""

    def __init__(self, rule: HistoryRule) -> None:
        self._rule = rule
        self.given: dict[str, _Given] = {}

    def ask(self, user: str, one: Collected) -> Found:
        owner = ANONYMOUS if self._rule.together and user.startswith(ANONYMOUS) else user
        given = self.given.setdefault(owner, _Given())
        new = [name for name in one.tables if (one.base, name) not in given.tables]
        sums, chance = self._with(given.sums, one, new, large=False)
        chosen, chance_of_choice = given.chosen, 0.0
        if one.chosen and self._rule.largest is not None:
            picked = [name for name in new if name in one.chosen]
            chosen, chance_of_choice = self._with(given.chosen, one, picked, large=True)
        warned = []
        for found in (chance, chance_of_choice):
            if self._rule.success is not None and found > self._rule.success:
                return "refused", "history"
            warned += ["history"] if self._rule.warn is not None and found > self._rule.warn else []
        if self._is_alike(given.bases, one):
            if self._rule.on_difference is Action.REFUSE:
                return "refused", "difference"
            warned.append("difference")
        given.tables |= {(one.base, name) for name in new}
        given.bases |= {each.base for each in one.populations}
        given.sums, given.chosen = sums, chosen
        return "answered", *warned

    def _is_alike(self, bases: set[str], one: Collected) -> bool:
        if self._rule.difference is None:
            return False
        mine = {each.base for each in one.populations}
        pairs = ((new, old) for new in mine for old in bases | mine if new != old)
        return any(differing(*pair) < self._rule.difference for pair in pairs)

    def _with(
        self, before: dict[str, Sums], one: Collected, new: Sequence[str], *, large: bool
    ) -> tuple[dict[str, Sums], float]:
        """All sums with more cross-tabulations, and the largest probability among counts of which more is known."""
        if not self._rule.averages or not new:
            return before, 0.0
        sides, mine = one.shown.sides, {each.name for each in one.shown.sides}
        after = before | added(before, one, new)
        others = [
            tuple(side(name, EVEN.ladder(name)) for name in sorted(names))
            for names, sums in ((set(_names(text)), sums) for text, sums in before.items())
            if names & mine and not names <= mine and self._is_exposed(sums)
        ]
        return after, max(self._chance(before, after, some, large) for some in [sides, *others])

    def _is_exposed(self, sums: Sums) -> bool:
        """Whether counts of all of some variables may be; counts of fewer of them are looked at by themselves."""
        limits = [limit for limit in (self._rule.success, self._rule.warn) if limit is not None]
        return float(exact(1 / sums.plain.max(keepdims=True), VARIANCE)[0]) > min(limits)

    def _chance(
        self, before: Mapping[str, Sums], after: Mapping[str, Sums], sides: Sequence[Side], large: bool
    ) -> float:
        earlier, then = (
            exact(least_variances(*tensors(known, sides), sides), VARIANCE) for known in (before, after)
        )
        sizes = typical([each.shares[each.targets] for each in sides], EVEN.records)
        is_large = sizes > (math.inf if self._rule.largest is None else self._rule.largest)
        return float(then[(then > earlier) & (is_large == large)].max(initial=0.0))


def _names(text: str) -> list[str]:
    return [each for each in text.strip("[]").replace('"', "").split(", ") if each]


def _blocks(sides: Sequence[Side]) -> tuple[tuple[str, tuple[slice, ...]], ...]:
    return blocks_of(sides, ["" for _ in sides])


def added(before: Mapping[str, Sums], one: Collected, new: Sequence[str]) -> dict[str, Sums]:
    """The sums of the variables of a table with some cross-tabulations of it, one by one."""
    sides = one.shown.sides
    plain, bounded = tensors(before, sides)
    rare = 1 / np.maximum(EVEN.records * outer([each.shares for each in sides]), FEWEST)
    for name in new:
        along = list(zip(sides, one.tables[name], strict=True))
        for total, rows in (
            (plain, [each.plain[depth] for each, depth in along]),
            (bounded, [each.bounded[depth] for each, depth in along]),
        ):
            inside = [
                np.concatenate([[each.inside[depth]], row[1:]])
                for (each, depth), row in zip(along, rows, strict=True)
            ]
            total += outer(rows) * (1 - rare) + outer(inside) * rare
    return {name: Sums(plain[at].reshape(-1), bounded[at].reshape(-1)) for name, at in _blocks(sides)}


def outer(rows: Sequence[Floats]) -> Floats:
    """All products of one value of each."""
    return np.asarray(reduce(np.multiply.outer, rows, np.ones(())))


def tensors(known: Mapping[str, Sums], sides: Sequence[Side]) -> tuple[Floats, Floats]:
    plain, bounded = np.zeros((2, *(each.rungs for each in sides)))
    for name, at in _blocks(sides):
        if name in known:
            plain[at] = known[name].plain.reshape(plain[at].shape)
            bounded[at] = known[name].bounded.reshape(plain[at].shape)
    return plain, bounded


def told(found: Refusal | tuple[str, ...]) -> Found:
    if isinstance(found, Refusal):
        return "refused", found.rule.value
    return "answered", *("history" if "probability" in one else "difference" for one in found)


def questions(rng: random.Random, number: int) -> Iterator[tuple[str, Collected]]:
    """Questions of several users, in part repeated, of all records and of others."""
    made: list[Collected] = []
    for _ in range(number):
        if made and rng.random() < 0.25:
            yield rng.choice(USERS), rng.choice(made)
            continue
        one = whole(*rng.sample("ABCDEwxyz", rng.choice((1, 2, 2, 3))))
        base = rng.choice(list(TOTALS)) if rng.random() < 0.25 else ""
        if base:
            chosen = frozenset(one.tables) if rng.random() < 0.7 else frozenset()
            both = (EVERYBODY, Population(base, TOTALS[base]))
            one = replace(one, base=base, populations=both, chosen=chosen)
        made.append(one)
        yield rng.choice(USERS), one


def in_order(kept: History, asked: Sequence[tuple[str, Collected]], ways: Counter[str]) -> list[Found]:
    """Ask without waiting as long as the database is not needed; of each user in this order."""
    found: list[Found] = []
    waiting: list[tuple[str, Collected, Promise]] = []

    def collect(user: str, one: Collected) -> None:
        found.append(told(kept.collect(user, one, differing)))

    def settle() -> None:
        for user, one, promise in waiting:
            if promise.stored is None or promise.stored.result(PATIENCE):
                ways["at once"] += 1
                found.append(told(promise.warnings))
            else:
                ways["again"] += 1
                collect(user, one)
        waiting.clear()

    for user, one in asked:
        promise = kept.collect_at_once(user, one)
        if promise is None:
            settle()
            collect(user, one)
        else:
            waiting.append((user, one, promise))
    settle()
    return found


def compare(where: str, rule: HistoryRule, number: int, seed: int) -> tuple[Counter[str], Counter[Found]]:
    """Ask two workers on one store, which are restarted now and then, and the plain rule."""
    rng, ways, kinds = random.Random(seed), Counter[str](), Counter[Found]()
    plain, workers = Plain(rule), [history(where, rule) for _ in range(2)]
    asked = list(questions(rng, number))
    while asked:
        size = rng.choice((1, 1, 2, 5, 12))
        some, asked = asked[:size], asked[size:]
        if rng.random() < 0.05:
            workers[rng.randrange(2)] = history(where, rule)
        expected = [plain.ask(*one) for one in some]
        kinds.update(expected)
        assert in_order(rng.choice(workers[:1] * 3 + workers), some, ways) == expected, len(asked)
    for owner, given in plain.given.items():
        assert stored(where, owner) == given.tables
    return ways, kinds


def stored(where: str, owner: str) -> set[tuple[str, str]]:
    """The cross-tabulations that are on disk."""
    database = Database(where, "store", Journal.AHEAD)
    store, found = HistoryStore(database), set()
    with database.reading() as connection:
        for base in TOTALS:
            some = store.answered(connection, owner, replace(whole("A"), base=base))
            found |= {(base, name) for name in some}
    return found


@pytest.mark.parametrize(
    ("rule", "at_once"),
    few([(RULES[0], 30), (RULES[1], 30), (RULES[2], 15), (RULES[3], 0)], 0, 3),
    ids=["warn", "difference", "both", "no averaging"],
)
def test_every_question_is_answered_as_by_the_plain_rule(where: str, rule: HistoryRule, at_once: int) -> None:
    """Two workers on one store, in turns and restarted now and then."""
    if where.startswith("postgresql"):
        compare(where, rule, 60, 6)
        return
    ways, kinds = compare(where, rule, 250, 5)
    assert ways["at once"] >= at_once
    assert (ways["again"] > 0) == rule.averages
    said = {word for kind in kinds for word in kind}
    assert {"answered", "refused"} <= said
    assert ("history" in said) == rule.averages
    assert ("difference" in said) == (rule.difference is not None)


def uneven(_population: Even, variable: str) -> Ladder:
    """Codes of many sizes, those of capital letters in groups of one, four and five."""
    groups, sizes = np.array([0, *[1] * 5, *[2] * 4]), np.array([5, 1, 1, 1, 1, 1, 30, 30, 20, 10]) * 1e4
    leaves = np.arange(2 if variable.islower() else 10)
    levels = (0 * leaves, leaves) if variable.islower() else (0 * leaves, groups, leaves)
    return Ladder(levels, sizes[-len(leaves) :] * 1e6 / sizes[-len(leaves) :].sum())


@pytest.mark.parametrize("success", [0.6, 0.65])
def test_counts_of_uneven_codes_are_judged_as_by_the_plain_rule(
    where: str, success: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where contrasts of codes overlap, the two sums of information differ, and so do the bounds that they give."""
    monkeypatch.setattr(Even, "ladder", uneven)
    ways, kinds = compare(where, HistoryRule(success=success, largest=300_000), 120, 3)
    assert ways["at once"] > 10
    assert kinds["refused", "history"] > 10


def chained(where: str, rule: HistoryRule = RULES[0], *, user: str = "u") -> History:
    """The guard of a user with one table."""
    kept = history(where, rule)
    assert kept.collect(user, whole("A"), no_difference) == ()
    return kept


def promised(kept: History, one: Collected, user: str = "u") -> Future[bool]:
    found = kept.collect_at_once(user, one)
    assert found is not None
    assert found.stored is not None
    return found.stored


@contextmanager
def writing_waits() -> Iterator[Event]:
    """Nothing is on disk before the event is set."""
    go, store_some = Event(), history_chain.GroupWriter._store_some

    def waiting(self: Any, some: Any) -> list[bool]:
        assert go.wait(PATIENCE)
        return store_some(self, some)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(history_chain.GroupWriter, "_store_some", waiting)
        yield go
        go.set()


@pytest.mark.parametrize("first", [("a", "x"), ("Z",)], ids=["before the chain", "by the chain"])
def test_what_other_tables_sharpen_is_judged_from_memory_too(where: str, first: tuple[str, ...]) -> None:
    """Counts of a by x, of a table before the chain or in it, are exposed by further tables by a."""
    asked = [names for names in (("a", "x"), *(("a", name) for name in "BCDEFGHIJKLMNOP")) if names != first]
    rule = HistoryRule(success=0.42, largest=300_000)
    kept, plain = history(where, rule), history(where, rule)
    for one, user in ((kept, "u"), (plain, "plain")):
        assert one.collect(user, whole(*first), no_difference) == ()
    judged = [isinstance(plain.collect("plain", whole(*names), no_difference), Refusal) for names in asked]
    refused = judged.index(True)
    assert refused > 1
    for names in asked[:refused]:
        assert promised(kept, whole(*names)).result(PATIENCE)
    assert kept.collect_at_once("u", whole(*asked[refused])) is None


@BOTH_DATABASES
def test_an_answer_is_promised_for_when_it_is_on_disk(where: str) -> None:
    kept = chained(where)
    before = stored(where, "u")
    with writing_waits() as go:
        found = [promised(kept, whole("x", name)) for name in "BCD"]
        assert not any(one.done() for one in found)
        assert stored(where, "u") == before
        on_disk: list[int] = []
        for one in found:
            one.add_done_callback(lambda _: on_disk.append(len(stored(where, "u"))))
        go.set()
        assert [one.result(PATIENCE) for one in found] == [True] * 3
    assert stored(where, "u") == before | {("", name) for each in "BCD" for name in whole("x", each).tables}
    assert on_disk[0] >= len(before) + 3


@BOTH_DATABASES
def test_what_another_worker_stored_meanwhile_is_judged_too(where: str) -> None:
    """Nothing that was judged without it is stored, the ones after it included."""
    kept, other = chained(where), history(where, RULES[0])
    with writing_waits() as go:
        found = [promised(kept, whole("x", name)) for name in "BC"]
        assert not isinstance(other.collect("u", whole("x", "D"), no_difference), Refusal)
        assert not isinstance(other.collect("u", whole("x", "E"), no_difference), Refusal)
        go.set()
        assert [one.result(PATIENCE) for one in found] == [False, False]
    assert kept.collect_at_once("u", whole("x", "B")) is None, "the chain is broken"
    names = {name for each in ("A", "xD", "xE") for name in whole(*each).tables}
    assert stored(where, "u") == {("", name) for name in names}


def test_a_thread_of_the_same_worker_may_come_in_between(where: str) -> None:
    kept = chained(where, RULES[1])
    with writing_waits() as go:
        found = promised(kept, whole("x", "B"))
        both = (EVERYBODY, Population("close", TOTALS["close"]))
        near = replace(whole("x"), base="close", populations=both)
        assert kept.collect("u", near, differing) == ()
        go.set()
        assert not found.result(PATIENCE)
    assert kept.collect_at_once("u", whole("x", "B")) is None
    assert kept.collect("u", whole("x", "B"), differing) == ()
    assert kept.collect_at_once("u", whole("x", "C")) is None, "all records are compared with others"


def test_a_table_without_anything_new_waits_for_those_before_it_and_stores_nothing(where: str) -> None:
    """What another worker stored meanwhile is seen by it, too: there may be something to say of its population."""
    kept, other = chained(where), history(where, RULES[0])
    with writing_waits() as go:
        found = [promised(kept, whole("B")), promised(kept, whole("B"))]
        assert not any(one.done() for one in found)
        go.set()
        assert [one.result(PATIENCE) for one in found] == [True, True]
    before = stored(where, "u")
    assert promised(kept, whole("A")).result(PATIENCE)
    assert stored(where, "u") == before
    assert not isinstance(other.collect("u", whole("x"), no_difference), Refusal)
    assert not promised(kept, whole("A")).result(PATIENCE)


def test_a_store_that_fails_ends_the_promise_and_what_was_judged_by_it(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, remember = chained(where), HistoryStore.remember

    def failing(_self: HistoryStore, connection: Connection, *_given: Any) -> None:
        connection.exec_driver_sql("select * from nosuch")

    with writing_waits() as go:
        first, second = (promised(kept, whole("x", name)) for name in "BC")
        monkeypatch.setattr(HistoryStore, "remember", failing)
        go.set()
        with pytest.raises(DatabaseUnavailable):
            first.result(PATIENCE)
        assert second.exception(PATIENCE) or not second.result(), "together with the first, or after it"
    monkeypatch.setattr(HistoryStore, "remember", remember)
    assert kept.collect_at_once("u", whole("x", "C")) is None
    assert kept.collect("u", whole("x", "C"), no_difference) == ()
    assert promised(kept, whole("x", "D")).result(PATIENCE), "the writer goes on"
    assert ("", '[["B", 1], ["x", 1]]') not in stored(where, "u")


def test_a_user_who_no_longer_waits_stops_nothing(where: str) -> None:
    """A client that hangs up cancels what waits for the future, not the future that others have, nor the writer."""
    kept, pool = chained(where), WorkerPool(Limits())

    async def scene(go: Event) -> None:
        found = promised(kept, whole("x", "B"))
        waits = asyncio.create_task(pool.wait(found))
        await asyncio.sleep(0)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        assert not found.cancel()
        go.set()
        assert await pool.wait(found)
        assert await pool.wait(promised(kept, whole("x", "C")))

    with writing_waits() as go:
        asyncio.run(scene(go))
    pool.close()


@BOTH_DATABASES
def test_workers_and_threads_at_once_lose_nothing(where: str) -> None:
    """What is stored is what was given, and the sums are those of all of it."""
    rule = HistoryRule(success=0.6)
    workers = [history(where, rule) for _ in range(2)]
    rng, given = random.Random(8), dict[str, list[Collected]]()
    asked = [(rng.choice("uv"), whole(*rng.sample("ABCDEFwxyz", 2))) for _ in range(120)]

    def ask(number: int) -> None:
        user, one = asked[number]
        kept = workers[number % 2]
        promise = kept.collect_at_once(user, one)
        is_stored = promise is not None and promise.stored is not None and promise.stored.result(PATIENCE)
        if is_stored or not isinstance(kept.collect(user, one, no_difference), Refusal):
            given.setdefault(user, []).append(one)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(ask, range(len(asked))))
    database = Database(where, "store", Journal.AHEAD)
    for user, tables in given.items():
        names = {name for one in tables for name in one.tables}
        assert stored(where, user) == {("", name) for name in names}
        assert len(names) > 20
        sums: dict[str, Sums] = {}
        had: set[str] = set()
        for one in tables:
            sums |= added(sums, one, [name for name in one.tables if name not in had])
            had |= set(one.tables)
        with database.reading() as connection:
            known = HistoryStore(database).known(connection, user, tables[0])
        assert known.sums.keys() == sums.keys()
        for name, expected in sums.items():
            assert known.sums[name].plain == pytest.approx(expected.plain)
            assert known.sums[name].bounded == pytest.approx(expected.bounded)
