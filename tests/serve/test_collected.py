"""The book of collected tables: workers see each other's entries, and what is kept at hand says what the book says."""

import numpy as np
import pytest

from discreet.io.store import Database, Journal
from discreet.programme.serve import HistoryRule
from discreet.serve import history_store as collected
from discreet.serve.answer import Refusal
from discreet.serve.history import History
from discreet.serve.history_store import (
    MOST_COMPARED,
    Collected,
    HistoryStore,
    Known,
    Population,
    Received,
    Sums,
)
from tests.cases import BOTH_DATABASES
from tests.serve.test_history import VARIANCE, answered, no_difference, table

RULE = HistoryRule(success=0.38)


@pytest.fixture
def database(where: str) -> Database:
    return Database(where, "store", Journal.AHEAD)


def remember(database: Database, one: Collected, user: str = "u") -> None:
    store = HistoryStore(database)
    with database.writing() as connection:
        store.remember(connection, [Received(user, one, tuple(one.tables), {}, Known())])


def test_sums_are_read_as_they_were_written(database: Database) -> None:
    one = table("A", "B")
    rng = np.random.default_rng(3)
    store = HistoryStore(database)
    written: dict[str, Sums] = {}
    for number in range(1, 4):
        sums = {name: Sums(rng.random(number), rng.random(number)) for name in ("[]", '["A"]')}
        written |= sums
        with database.writing() as connection:
            before = store.known(connection, "u", one)
            store.remember(connection, [Received("u", one, tuple(one.tables), sums, before)])
    for reader in (store, HistoryStore(database)):
        with database.reading() as connection:
            known = reader.known(connection, "u", one)
        assert known.number == 3
        assert known.sums.keys() == written.keys()
        for name, found in known.sums.items():
            assert np.array_equal(found.plain, written[name].plain)
            assert np.array_equal(found.bounded, written[name].bounded)


@BOTH_DATABASES
def test_answers_stored_together_are_those_stored_one_by_one(where: str) -> None:
    database = Database(where, "store", Journal.AHEAD)
    read: list[tuple[object, ...]] = []
    for prefix in ("together", "apart"):
        store, rows = HistoryStore(database), np.random.default_rng(5)
        known = dict.fromkeys("uvw", Known())
        answers = []
        for name in "ABCDEFGHIJK":  # of one user several, whose sums overlap
            for user in rows.permutation(list("uvw"))[: 1 + int(rows.integers(2))]:
                one = table("X", name)
                sums = {key: Sums(rows.random(2), rows.random(2)) for key in ("[]", '["X"]', f'["{name}"]')}
                answers.append(Received(prefix + user, one, tuple(one.tables), sums, known[user]))
                known[user] = known[user].after(sums)
        size = len(answers) if prefix == "together" else 1
        for start in range(0, len(answers), size):
            with database.writing() as connection:
                store.remember(connection, answers[start : start + size])
        with database.reading() as connection:
            for user in "uvw":
                found = HistoryStore(database).known(connection, prefix + user, table("X"))
                assert found.number == known[user].number
                assert found.sums.keys() == known[user].sums.keys()
                values = {
                    name: (one.plain.tolist(), one.bounded.tolist()) for name, one in found.sums.items()
                }
                read.append((user, values, store.answered(connection, prefix + user, table("X"))))
    assert read[:3] == read[3:]


@BOTH_DATABASES
def test_workers_see_what_the_others_wrote(where: str) -> None:
    alone = answered(History(Database(where, "store", Journal.AHEAD), RULE, VARIANCE), "alone")
    workers = [History(Database(where, "store", Journal.AHEAD), RULE, VARIANCE) for _ in range(2)]
    for turn, name in enumerate("ABCDEFGHIJKLMNOP"):
        found = workers[turn % 2].collect("u", table("X", name), no_difference)
        assert isinstance(found, Refusal) == (turn >= alone)
    assert isinstance(workers[0].collect("u", table("X", "Q"), no_difference), Refusal)


def test_users_who_were_forgotten_are_read_again(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = History(Database(where, "store", Journal.AHEAD), RULE, VARIANCE)
    alone = answered(kept, "alone")
    monkeypatch.setattr(collected, "MOST_CACHED", 3)
    for turn, name in enumerate("ABCDEFGHIJKLMNOP"):
        for user in ("ann", "bob", "cec"):
            found = kept.collect(user, table("X", name), no_difference)
            assert isinstance(found, Refusal) == (turn >= alone)


def test_all_near_populations_are_compared_or_the_crowd_is_told(database: Database) -> None:
    earlier = tuple(Population(f"b{total}", total) for total in range(0, 4000, 2))
    remember(database, table(populations=earlier))
    store = HistoryStore(database)
    some = table(populations=(Population("new", 1000), Population("far", 9000), Population("", 5)))
    with database.reading() as connection:
        near = store.near(connection, "u", some, 60)
        assert store.near(connection, "another", some, 60).pairs == ()
        crowded = store.near(connection, "u", some, 110)
    assert near.crowded is None
    found = sorted(int(base[1:]) for new, base in near.pairs if new == "new")
    assert found == list(range(942, 1060, 2))
    assert not [pair for pair in near.pairs if pair[0] == "far"]
    assert {int(base[1:]) for new, base in near.pairs if new == ""} == set(range(0, 65, 2))
    assert len(found) <= MOST_COMPARED
    assert crowded.crowded == "new"


def test_filters_and_groupings_of_any_length_are_kept(database: Database) -> None:
    codes = np.random.default_rng(5).integers(0, 10**9, 2000)
    long = f"GEO in ({', '.join(map(repr, map(str, codes)))},)"
    groups = tuple(Population(f"{long} and X == {k}", 10 * k) for k in range(250))
    one = table(populations=groups)
    remember(database, one)
    store = HistoryStore(database)
    with database.reading() as connection:
        assert store.has_populations(connection, "u", one)
        assert not store.has_populations(connection, "another", one)
        assert len(store.near(connection, "u", one, 10).pairs) == 0
        assert len(store.near(connection, "u", one, 11).pairs) == 2 * 249
