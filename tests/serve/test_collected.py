"""The book of collected tables: workers see each other's entries, and what is kept at hand says what the book says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.io.store import Database, Journal
from discreet.maths.attacks.averaging import recovery
from discreet.maths.attacks.redundancy import exposure
from discreet.programme.serve import HistoryRule
from discreet.serve import history_store as collected
from discreet.serve.answer import Refusal
from discreet.serve.history import History
from discreet.serve.history_store import MOST_COMPARED, Collected, HistoryStore, Population, Received
from tests.serve.test_history import no_difference, statistic, table

LEVELS = st.dictionaries(st.sampled_from("ABCD"), st.integers(1, 3), max_size=4).map(
    lambda levels: tuple(sorted(levels.items()))
)


@pytest.fixture
def database(where: str) -> Database:
    return Database(where, "store", Journal.AHEAD)


def remember(database: Database, one: Collected, user: str = "u") -> None:
    store = HistoryStore(database)
    with database.writing() as connection:
        store.remember(connection, user, one)


@given(
    st.lists(st.tuples(LEVELS, st.integers(1, 10**6)), min_size=1, max_size=30), LEVELS, st.integers(1, 29)
)
def test_what_is_held_is_found_as_if_all_were_looked_through(
    every: list[tuple[tuple[tuple[str, int], ...], int]], wanted: tuple[tuple[str, int], ...], cut: int
) -> None:
    received = Received()
    for part in (every[:cut], every[cut:]):
        received = received.extended([levels for levels, _ in part], [cells for _, cells in part], 1)
    refining = sorted(
        cells
        for levels, cells in every
        if all(dict(levels).get(variable, 0) >= depth for variable, depth in wanted)
    )
    found = received.refining(wanted)
    assert found.tolist() == refining
    if refining:
        assert recovery(found / 7) == exposure(refining, 7).best


def test_workers_see_what_the_others_wrote(where: str) -> None:
    rule = HistoryRule(refuse=0.5)
    workers = [History(Database(where, "store", Journal.AHEAD), rule) for _ in range(2)]
    asked = [table(statistic(1), statistic(2, **{name: 1})) for name in "ABC"]
    assert workers[0].collect("u", asked[0], no_difference) == ()
    assert workers[1].collect("u", asked[1], no_difference) == ()
    assert isinstance(workers[0].collect("u", asked[2], no_difference), Refusal)
    assert isinstance(workers[1].collect("u", asked[2], no_difference), Refusal)


def test_users_who_were_forgotten_are_read_again(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "MOST_CACHED", 3)
    kept = History(Database(where, "store", Journal.AHEAD), HistoryRule(refuse=0.5))
    asked = [table(statistic(1), statistic(2, **{name: 1})) for name in "ABC"]
    for one in asked[:2]:
        for user in ("ann", "bob", "cec"):
            assert kept.collect(user, one, no_difference) == ()
    for user in ("ann", "bob", "cec"):
        assert isinstance(kept.collect(user, asked[2], no_difference), Refusal)


def test_the_nearest_populations_on_both_sides_are_compared(database: Database) -> None:
    earlier = tuple(Population(f"b{total}", total) for total in range(0, 4000, 2))
    remember(database, Collected((statistic(1),), earlier))
    asked = Collected((statistic(1),), (Population("new", 1000), Population("far", 9000), Population("", 5)))
    store = HistoryStore(database)
    with database.reading() as connection:
        pairs = store.near(connection, "u", asked, 60)
        assert store.near(connection, "another", asked, 60) == ()
    near = sorted(int(base[1:]) for new, base in pairs if new == "new")
    assert len(near) == MOST_COMPARED
    assert (near[0], near[-1]) in {(980, 1018), (982, 1020)}
    assert not [pair for pair in pairs if pair[0] == "far"]
    assert {int(base[1:]) for new, base in pairs if new == ""} == set(range(0, 40, 2))


def test_filters_and_groupings_of_any_length_are_kept(database: Database) -> None:
    codes = np.random.default_rng(5).integers(0, 10**9, 2000)
    long = f"GEO in ({', '.join(map(repr, map(str, codes)))},)"
    groups = tuple(Population(f"{long} and X == {k}", 10 * k) for k in range(250))
    one = Collected((statistic(1),), groups)
    remember(database, one)
    store = HistoryStore(database)
    with database.reading() as connection:
        assert store.has_populations(connection, "u", one)
        assert not store.has_populations(connection, "another", one)
        assert len(store.near(connection, "u", one, 10)) == 0
        assert len(store.near(connection, "u", one, 11)) == 2 * 249
