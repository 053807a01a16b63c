"""The ledger on SQLite and PostgreSQL: many and killed processes, repeated questions, tampering, wrong places."""

import math
import os
import random
import sqlite3
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from discreet.errors import BudgetExceeded, DatabaseUnavailable, Mistakes
from discreet.maths.privacy.accounting import (
    ARITHMETIC,
    EpsilonDelta,
    Neighbours,
    PrivacyLoss,
    PureEpsilon,
    Rho,
    basic,
)
from discreet.maths.privacy.composition import Composition
from discreet.perturb.ledger import Head, Ledger, question_key
from tests.cases import BOTH_DATABASES, few
from tests.forked import Forked
from tests.perturb import charging
from tests.waiting import until

HUNDREDTH = PureEpsilon(Fraction(1, 100))


def clock() -> datetime:
    return datetime(2021, 5, 9, 12, tzinfo=UTC)


@pytest.fixture
def where(where: str) -> str:
    """Where a new and empty ledger is."""
    Ledger.create(where, clock)
    return where


@pytest.fixture
def ledger(where: str) -> Ledger:
    opened = Ledger.open(where, clock)
    opened.create_account("census", PureEpsilon(Fraction(1)), Neighbours.ADD_REMOVE, "person")
    return opened


def outside(where: str) -> Engine:
    path = where.replace("postgresql:", "postgresql+psycopg:") if "://" in where else f"sqlite:///{where}"
    return create_engine(path, poolclass=NullPool)


def tamper(where: str, *statements: str) -> None:
    """Change the ledger as somebody would who owns the database."""
    with outside(where).begin() as connection:
        for table in ("ledger_accounts", "ledger_entries"):
            if "://" in where:
                connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER ALL"))
            else:
                for action in ("delete", "update"):
                    connection.execute(text(f"DROP TRIGGER IF EXISTS {table}_no_{action}"))
        for statement in statements:
            connection.execute(text(statement))


def start(where: str, name: str, count: int, amount: str) -> Forked:
    return Forked(charging.main, where, "census", name, str(count), amount)


def test_a_charge_is_written_with_its_total(ledger: Ledger) -> None:
    first = ledger.charge("census", PureEpsilon(Fraction(1, 3)), "a", "table 9.2")
    second = ledger.charge("census", PureEpsilon(Fraction(1, 7)), "b")
    assert (first.number, first.described, first.at) == (1, "table 9.2", "2021-05-09T12:00:00+00:00")
    assert second.total == ledger.spent("census") == PureEpsilon(Fraction(10, 21))
    assert ledger.remaining("census") == PureEpsilon(Fraction(11, 21))
    assert ledger.entries("census") == (first, second)
    assert ledger.head("census") == Head(2, second.hash)
    assert ledger.accounts() == ("census",)
    assert ledger.account("census").budget == PureEpsilon(Fraction(1))
    assert ledger.verify() == ()


def test_a_budget_is_used_up_exactly_and_not_exceeded(ledger: Ledger) -> None:
    for number in range(3):
        ledger.charge("census", PureEpsilon(Fraction(1, 3)), str(number))
    with pytest.raises(BudgetExceeded, match="of which epsilon 1 is spent and epsilon 0 is left"):
        ledger.charge("census", PureEpsilon(Fraction(1, 10**9)), "more")
    assert ledger.remaining("census") == PureEpsilon(Fraction(0))
    assert len(ledger.entries("census")) == 3


def test_the_same_key_costs_nothing_again_even_when_all_is_spent(ledger: Ledger) -> None:
    entry = ledger.charge("census", PureEpsilon(Fraction(1)), "key")
    assert ledger.charge("census", PureEpsilon(Fraction(1)), "key") == entry
    with pytest.raises(Mistakes, match="this key and another cost"):
        ledger.charge("census", HUNDREDTH, "key")
    ledger.create_account("other", PureEpsilon(Fraction(1)), Neighbours.ADD_REMOVE, "person")
    assert ledger.charge("other", HUNDREDTH, "key").number == 1


def test_terms_of_an_account_never_change(ledger: Ledger) -> None:
    before = ledger.account("census")
    assert ledger.create_account("census", before.budget, before.neighbours, before.unit) == before
    with pytest.raises(Mistakes, match="other terms"):
        ledger.create_account("census", PureEpsilon(Fraction(2)), before.neighbours, before.unit)
    with pytest.raises(Mistakes, match="other terms"):
        ledger.create_account("census", before.budget, Neighbours.SUBSTITUTE, before.unit)


def test_kinds_of_loss_add_up_only_where_they_may(ledger: Ledger) -> None:
    ledger.create_account("rho", Rho(Fraction(1)), Neighbours.SUBSTITUTE, "household")
    ledger.charge("rho", PureEpsilon(Fraction(1)), "pure")
    ledger.charge("rho", Rho(Fraction(1, 4)), "rho")
    assert ledger.remaining("rho") == Rho(Fraction(1, 4))
    ledger.create_account(
        "both", EpsilonDelta(Fraction(1), Fraction(1, 10**6)), Neighbours.ADD_REMOVE, "person"
    )
    ledger.charge("both", EpsilonDelta(Fraction(1, 2), Fraction(1, 10**6)), "first")
    with pytest.raises(BudgetExceeded, match="delta"):
        ledger.charge("both", EpsilonDelta(Fraction(1, 4), Fraction(1, 10**12)), "second")
    for account, charge in (
        ("census", Rho(Fraction(1, 100))),
        ("rho", EpsilonDelta(Fraction(1, 9), Fraction(0))),
    ):
        with pytest.raises(Mistakes, match="does not add up"):
            ledger.charge(account, charge, "other kind")
    with pytest.raises(Mistakes, match="a charge of 0"):
        ledger.charge("census", PureEpsilon(Fraction(0)), "nothing")
    assert ledger.verify() == ()


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.fractions(min_value=Fraction(1, 50), max_value=Fraction(2, 3))),
        max_size=8,
    ),
    st.integers(0, 10**9),
)
def test_any_sequence_of_charges_keeps_the_books(
    tmp_path: Path, asked: list[tuple[int, Fraction]], name: int
) -> None:
    ledger = Ledger.create(tmp_path / "many.db", clock)
    account = f"{name}-{len(ledger.accounts())}"
    ledger.create_account(account, PureEpsilon(Fraction(1)), Neighbours.ADD_REMOVE, "person")
    taken: dict[str, PrivacyLoss] = {}
    for key, amount in asked:
        spent = basic(taken.values(), PureEpsilon).epsilon
        charge = PureEpsilon(amount)
        if str(key) in taken:
            with pytest.raises(Mistakes) if taken[str(key)] != charge else nullcontext():
                ledger.charge(account, charge, str(key))
        elif spent + amount > 1:
            with pytest.raises(BudgetExceeded):
                ledger.charge(account, charge, str(key))
        else:
            ledger.charge(account, charge, str(key))
            taken[str(key)] = charge
    assert ledger.spent(account) == basic(taken.values(), PureEpsilon)
    assert ledger.verify() == ()


@BOTH_DATABASES
def test_many_processes_use_up_the_budget_and_never_exceed_it(ledger: Ledger, where: str) -> None:
    processes = [start(where, str(number), 40, "1/200") for number in range(8)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.go()
    ended = [process.ended() for process in processes]
    assert [code for code, _ in ended] == [0] * 8
    told = [line for _, lines in ended for line in lines.split()]
    taken = [line for line in told if line != "exceeded"]
    assert (len(taken), len(told)) == (200, 320)
    assert ledger.spent("census") == PureEpsilon(Fraction(1))
    assert sorted(entry.key for entry in ledger.entries("census")) == sorted(taken)
    assert ledger.verify() == ()


@BOTH_DATABASES
def test_a_killed_process_loses_no_charge_that_was_acknowledged(ledger: Ledger, where: str) -> None:
    moments = random.Random(7)
    told: set[str] = set()
    for round_ in range(5):
        process = start(where, str(round_), 1000, "1/10000")
        assert process.stdout.readline() == "ready\n"
        process.go()
        told.add(process.stdout.readline().rstrip("\n"))
        time.sleep(moments.uniform(0, 0.3))
        process.kill()
        told |= set(process.ended()[1].split("\n")[:-1])
    # the server may still finish what it got from a process that was killed

    def is_settled() -> bool:
        return ledger.spent("census") == PureEpsilon(Fraction(len(ledger.entries("census")), 10000))

    until(is_settled)
    keys = {entry.key for entry in ledger.entries("census")}
    assert told <= keys
    assert len(keys - told) <= 5  # at most the one that each was writing
    assert told
    assert is_settled()
    assert ledger.verify() == ()
    ledger.charge("census", HUNDREDTH, "life goes on")


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE ledger_entries SET charge = 'epsilon=1/1000' WHERE number = 2", "entry 2"),
        ("UPDATE ledger_entries SET total = 'epsilon=1/1000' WHERE number = 3", "entry 3"),
        ("UPDATE ledger_entries SET described = 'x' WHERE number = 1", "entry 1"),
        ("UPDATE ledger_entries SET charge = 'nonsense' WHERE number = 2", "entry 2: it cannot be read"),
        ("DELETE FROM ledger_entries WHERE number = 1", "entry 1"),
        ("DELETE FROM ledger_entries WHERE number = 2", "entry 2"),
        ("DELETE FROM ledger_entries WHERE number = 4", "entry 4: entries at the end"),
        ("UPDATE ledger_accounts SET budget = 'epsilon=9/1'", "its terms were changed"),
        ("UPDATE ledger_accounts SET entries = 0", "entry 5: entries at the end"),
        ("DELETE FROM ledger_accounts", "its terms were deleted"),
    ],
)
def test_changes_and_deletions_are_found(ledger: Ledger, where: str, statement: str, says: str) -> None:
    for number in range(4):
        ledger.charge("census", HUNDREDTH, str(number))
    assert ledger.verify() == ()
    tamper(where, statement)
    (problem,) = ledger.verify()
    assert says in str(problem)
    assert "account census" in str(problem)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entries SET total = 'epsilon=1/1000' WHERE number = 2",
        "DELETE FROM ledger_entries WHERE number = 2",
        *few([f"UPDATE ledger_accounts SET budget = 'epsilon={budget}/1'" for budget in range(2, 10)], 0, 7),
    ],
)
def test_nothing_is_charged_to_an_account_whose_end_was_changed(
    ledger: Ledger, where: str, statement: str
) -> None:
    ledger.charge("census", HUNDREDTH, "1")
    ledger.charge("census", HUNDREDTH, "2")
    tamper(where, statement)
    with pytest.raises(Mistakes, match="not as they were written"):
        ledger.charge("census", HUNDREDTH, "3")


def test_a_chain_that_was_rolled_back_is_found_by_a_head_kept_elsewhere(ledger: Ledger, where: str) -> None:
    first = ledger.charge("census", HUNDREDTH, "1")
    ledger.charge("census", HUNDREDTH, "2")
    kept = {"census": ledger.head("census")}
    assert ledger.verify(kept) == ()
    back = f"UPDATE ledger_accounts SET entries = 1, head = '{first.hash}'"
    tamper(where, "DELETE FROM ledger_entries WHERE number = 2", back)
    assert ledger.verify() == ()
    assert "does not continue" in str(ledger.verify(kept)[0])
    ledger.charge("census", HUNDREDTH, "another")
    assert "does not continue" in str(ledger.verify(kept)[0])
    assert "deleted" in str(ledger.verify({"gone": Head(1, "")})[0])


@BOTH_DATABASES
def test_a_sealed_ledger_is_useless_without_its_seal(ledger: Ledger, where: str) -> None:
    sealed = Ledger.open(where, clock, seal=b"a derived key")
    sealed.create_account("sealed", PureEpsilon(Fraction(1)), Neighbours.ADD_REMOVE, "person")
    sealed.charge("sealed", HUNDREDTH, "1")
    assert [problem.key for problem in sealed.verify()] == ["account census"]
    assert [problem.key for problem in ledger.verify()] == ["account sealed"]
    with pytest.raises(Mistakes, match="not as they were written"):
        ledger.charge("sealed", HUNDREDTH, "2")


@BOTH_DATABASES
def test_the_database_itself_refuses_changes(ledger: Ledger, where: str) -> None:
    ledger.charge("census", HUNDREDTH, "1")
    for statement in (
        "DELETE FROM ledger_entries",
        "DELETE FROM ledger_accounts",
        "UPDATE ledger_entries SET charge = ''",
        "UPDATE ledger_accounts SET budget = ''",
    ):
        with outside(where).connect() as connection, pytest.raises(DBAPIError, match="append-only"):
            connection.execute(text(statement))
    Ledger.create(where, clock)  # opens what is there
    assert len(ledger.entries("census")) == 1


def test_an_unknown_account_is_told_with_the_known_ones(ledger: Ledger) -> None:
    for ask in (ledger.spent, ledger.remaining, ledger.entries, ledger.head, ledger.account):
        with pytest.raises(Mistakes, match="account censu: no such account; choose from census"):
            ask("censu")
    with pytest.raises(Mistakes, match="no such account"):
        ledger.charge("censu", HUNDREDTH, "1")


def test_wrong_places_are_told_in_one_line_without_passwords(tmp_path: Path) -> None:
    nonsense, other = tmp_path / "nonsense.db", tmp_path / "other.db"
    nonsense.write_bytes(b"not a database, and longer than a hundred bytes " * 20)
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE people (id)")
    for place, says in (
        (str(tmp_path / "missing.db"), "no such file"),
        (str(nonsense), "not a database"),
        (str(other), "contains no ledger"),
        (str(tmp_path), "no such file"),
        ("mysql://me:hush@host/db", "unknown kind"),
        ("postgresql://me:hush@127.0.0.1:1/db", "contains a password"),
        ("postgresql://me@127.0.0.1:1/db?password=hush", "contains a password"),
        ("postgresql://me@[hush/db", "contains a password"),
        ("postgresql://me@127.0.0.1:hush/db", "cannot be read"),
        ("postgresql://me@127.0.0.1:1/db", "database error"),
    ):
        with pytest.raises((Mistakes, DatabaseUnavailable)) as told:
            Ledger.open(place, clock)
        message = str(told.value)
        assert says in message
        assert "hush" not in message
        assert "\n" not in message
        assert "me@" not in message
    with pytest.raises(Mistakes, match="folder that you can write to"):
        Ledger.create(tmp_path / "no folder" / "ledger.db", clock)
    assert not (tmp_path / "missing.db").exists()


def test_a_corrupt_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger.create(path, clock)
    ledger.create_account("census", PureEpsilon(Fraction(1)), Neighbours.ADD_REMOVE, "person")
    content = bytearray(path.read_bytes())
    content[100:] = bytes(len(content) - 100)
    path.write_bytes(content)
    with pytest.raises(DatabaseUnavailable, match="database error"):
        ledger.charge("census", HUNDREDTH, "1")


def test_a_ledger_file_is_its_owners_and_holds_no_question(tmp_path: Path) -> None:
    path = tmp_path / "led ger%3f?#.db"
    ledger = Ledger.create(f"sqlite://{path}", clock)
    ledger.create_account("census", PureEpsilon(Fraction(1)), Neighbours.ADD_REMOVE, "person")
    key = question_key(b"secret", "SEX x AGE in Dingli")
    ledger.charge("census", HUNDREDTH, key)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208
    assert b"Dingli" not in path.read_bytes()
    assert key != question_key(b"another", "SEX x AGE in Dingli")


@BOTH_DATABASES
def test_an_account_that_many_open_and_charge_while_others_look_is_whole_to_all(where: str) -> None:
    budget = PureEpsilon(Fraction(1))

    def use(number: int) -> None:
        ledger = Ledger.create(where, clock)
        ledger.create_account("shared", budget, Neighbours.ADD_REMOVE, "person")
        for turn in range(10):
            if number % 2:
                ledger.charge("shared", PureEpsilon(Fraction(1, 100)), f"{number}-{turn}")
            else:
                ledger.remaining("shared")
                assert ledger.verify() == ()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))
    assert Ledger.open(where, clock).spent("shared") == PureEpsilon(Fraction(40, 100))


@pytest.fixture
def small(tmp_path: Path) -> Ledger:
    """A ledger in a file, of two charges."""
    made = Ledger.create(tmp_path / "small.sqlite", clock)
    made.create_account("census", PureEpsilon(Fraction(1)), Neighbours.ADD_REMOVE, "person")
    for key in ("1", "2"):
        made.charge("census", HUNDREDTH, key)
    return made


@pytest.mark.parametrize("budget", few(range(2, 12), 0, 9))
def test_no_change_of_terms_goes_unseen(small: Ledger, tmp_path: Path, budget: int) -> None:
    """Whether the hash of the changed terms is larger or smaller than that of the true ones."""
    tamper(str(tmp_path / "small.sqlite"), f"UPDATE ledger_accounts SET budget = 'epsilon={budget}/1'")
    with pytest.raises(Mistakes, match="not as they were written"):
        small.charge("census", HUNDREDTH, "3")
    with pytest.raises(Mistakes, match="not as they were written"):
        small.remaining("census")
    assert "its terms were changed" in str(small.verify()[0])


@pytest.mark.parametrize("head", ["", "0" * 64, "f" * 64])
def test_no_change_of_the_head_goes_unseen(small: Ledger, tmp_path: Path, head: str) -> None:
    tamper(str(tmp_path / "small.sqlite"), f"UPDATE ledger_accounts SET head = '{head}'")
    with pytest.raises(Mistakes, match="not as they were written"):
        small.spent("census")
    assert "entry 3: entries at the end were deleted or added" in str(small.verify()[0])


def test_what_a_ledger_tells_cannot_be_changed_and_its_columns_are_never_empty(
    small: Ledger, tmp_path: Path
) -> None:
    entry, account, head = small.entries("census")[0], small.account("census"), small.head("census")
    for told, name in ((entry, "charge"), (account, "budget"), (head, "entries")):
        with pytest.raises(FrozenInstanceError):
            setattr(told, name, None)
    tables = inspect(outside(str(tmp_path / "small.sqlite")))
    for table in ("ledger_accounts", "ledger_entries"):
        assert not any(column["nullable"] for column in tables.get_columns(table))


def test_charges_by_advanced_composition(where: str) -> None:
    """Releases of 0.05 against a budget of 3: by their sum 60, by advanced composition more, and not one too many."""
    ledger = Ledger.open(where, clock)
    budget, each = EpsilonDelta(Fraction(3), Fraction(1, 10**6)), PureEpsilon(Fraction(1, 20))
    ledger.create_account("small", budget, Neighbours.ADD_REMOVE, "person", Composition.ADVANCED)
    assert ledger.spent("small") == EpsilonDelta(Fraction(0), Fraction(0))
    costs = [n / 800 + math.sqrt(n / 200 * math.log(2 * 10**6)) for n in range(1, 200)]
    most = sum(cost <= 3 for cost in costs)
    for number in range(most):
        ledger.charge("small", each, f"key {number}")
    with pytest.raises(BudgetExceeded, match=r"of which epsilon 2\.9"):
        ledger.charge("small", each, "one more")
    assert most > 100
    spent = ledger.spent("small")
    assert isinstance(spent, EpsilonDelta)
    assert 2.9 < spent.epsilon <= 3
    assert spent.delta == Fraction(1, 2 * 10**6)
    assert ledger.remaining("small").epsilon < each.epsilon  # type: ignore[union-attr]
    assert ledger.charge("small", each, "key 3") == ledger.entries("small")[3]  # the same again costs nothing
    assert ledger.account("small").composition is Composition.ADVANCED
    assert ledger.verify() == ()
    tamper(where, "UPDATE ledger_entries SET total = 'epsilons=1/1 squares=1/1 deltas=0/1' WHERE number = 7")
    (problem,) = ledger.verify()
    assert "entry 7" in problem.key


def test_the_composition_is_a_term_that_cannot_be_changed(where: str) -> None:
    ledger = Ledger.open(where, clock)
    budget = EpsilonDelta(Fraction(1), Fraction(1, 1000))
    ledger.create_account("a", budget, Neighbours.ADD_REMOVE, "person")
    ledger.charge("a", PureEpsilon(Fraction(1, 2)), "one")
    tamper(where, f"UPDATE ledger_accounts SET budget = '{budget} composition=advanced'")
    assert "its terms were changed" in str(ledger.verify()[0])
    with pytest.raises(Mistakes):
        ledger.charge("a", PureEpsilon(Fraction(1, 2)), "two")


@BOTH_DATABASES
def test_no_column_may_be_empty(where: str) -> None:
    """A term or an entry that lacks a part would have no hash."""
    seen = inspect(outside(where))
    columns = [one for table in ("ledger_accounts", "ledger_entries") for one in seen.get_columns(table)]
    assert len(columns) == 16
    assert [one["name"] for one in columns if one["nullable"]] == []


HEADS = {  # as the first format of the ledger wrote them
    "both": "b1b57d23aae74e2a564f08dfc30bfc52d771472ad8e01f57ecc87c92dc552eb6",
    "pure": "5c397c36f0e39630eab703a859079e42d32a50c8131a1fd4bf2589a1f00d06a1",
    "rho": "4562bdaeba9e8e7c8f633027af6b0ec9b91d4701eec612375c60ac0693a64876",
}


def test_entries_are_written_as_they_always_were(tmp_path: Path) -> None:
    """Old ledgers open, and what is written without a raise is the same byte by byte."""
    ledger = Ledger.create(tmp_path / "l.db", clock, b"seal")
    thousandth = Fraction(1, 10**6)
    for name, budget, neighbours, unit, composition, charge in (
        ("pure", PureEpsilon(Fraction(1)), Neighbours.ADD_REMOVE, "person", Composition.BASIC,
         PureEpsilon(Fraction(1, 3))),
        ("both", EpsilonDelta(Fraction(1), thousandth), Neighbours.SUBSTITUTE, "household", Composition.ADVANCED,
         EpsilonDelta(Fraction(1, 4), Fraction(1, 10**30))),
        ("rho", Rho(Fraction(1)), Neighbours.ADD_REMOVE, "person", Composition.BASIC, Rho(Fraction(1, 3))),
    ):  # fmt: skip
        ledger.create_account(name, budget, neighbours, unit, composition)
        ledger.charge(name, charge, "a", "release x")
    assert {name: ledger.head(name).hash for name in ledger.accounts()} == HEADS


def test_a_pure_budget_pays_for_a_delta_of_arithmetic_and_for_no_more(ledger: Ledger) -> None:
    """Deltas add up beside epsilon, to at most what the account states for rounding."""
    third = ARITHMETIC / 3
    for number in range(3):
        ledger.charge("census", EpsilonDelta(Fraction(1, 10), third), str(number))
    assert ledger.spent("census") == EpsilonDelta(Fraction(3, 10), ARITHMETIC)
    assert ledger.remaining("census") == PureEpsilon(Fraction(7, 10))
    with pytest.raises(BudgetExceeded):
        ledger.charge("census", EpsilonDelta(Fraction(1, 10), Fraction(1, 10**30)), "more")
    ledger.charge("census", PureEpsilon(Fraction(7, 10)), "pure")
    with pytest.raises(BudgetExceeded):
        ledger.charge("census", HUNDREDTH, "no epsilon left")
    assert ledger.verify() == ()


@BOTH_DATABASES
def test_a_raise_is_part_of_the_chain(ledger: Ledger, where: str) -> None:
    ledger.charge("census", PureEpsilon(Fraction(9, 10)), "first")
    entry = ledger.raise_budget("census", PureEpsilon(Fraction(2)), "  the board, 3 May ")
    assert (entry.number, entry.charge, entry.described) == (2, None, "the board, 3 May")
    assert ledger.account("census").budget == PureEpsilon(Fraction(2))
    ledger.charge("census", PureEpsilon(Fraction(1)), "second")
    assert ledger.remaining("census") == PureEpsilon(Fraction(1, 10))
    ledger.raise_budget(
        "census", EpsilonDelta(Fraction(3), Fraction(1, 10**6)), "a delta for truncated noise"
    )
    assert ledger.verify() == ()
    ledger.charge("census", EpsilonDelta(Fraction(1), Fraction(1, 10**7)), "third")
    assert ledger.remaining("census") == EpsilonDelta(Fraction(1, 10), Fraction(9, 10**7))
    assert ledger.verify() == ()
    again = ledger.create_account("census", PureEpsilon(Fraction(1)), Neighbours.ADD_REMOVE, "person")
    assert again.budget == PureEpsilon(Fraction(1)), "its terms are those it was opened with"
    assert ledger.account("census").budget == EpsilonDelta(Fraction(3), Fraction(1, 10**6))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entries SET total = 'epsilon=9/10 of epsilon=9/1' WHERE number = 2",
        "UPDATE ledger_entries SET charge = 'raise epsilon=9/1' WHERE number = 2",
        "UPDATE ledger_entries SET described = 'x' WHERE number = 2",
        "UPDATE ledger_entries SET total = 'epsilon=19/10 of epsilon=9/1' WHERE number = 3",
        "UPDATE ledger_entries SET total = 'epsilon=19/10' WHERE number = 3",
        "DELETE FROM ledger_entries WHERE number = 2",
    ],
)
def test_a_raise_that_was_changed_is_found(ledger: Ledger, where: str, statement: str) -> None:
    ledger.charge("census", PureEpsilon(Fraction(9, 10)), "first")
    ledger.raise_budget("census", PureEpsilon(Fraction(2)), "the board")
    ledger.charge("census", PureEpsilon(Fraction(1)), "second")
    tamper(where, statement)
    (problem,) = ledger.verify()
    assert "account census, entry" in problem.key


def test_what_cannot_be_raised(ledger: Ledger) -> None:
    budget = EpsilonDelta(Fraction(1), Fraction(1, 1000))
    ledger.create_account("advanced", budget, Neighbours.ADD_REMOVE, "person", Composition.ADVANCED)
    more = EpsilonDelta(Fraction(2), Fraction(1, 1000))
    with pytest.raises(Mistakes, match="fixed before the first charge"):
        ledger.raise_budget("advanced", more, "x")
    ledger.create_account("both", budget, Neighbours.ADD_REMOVE, "person")
    with pytest.raises(Mistakes, match="must be larger"):
        ledger.raise_budget("both", EpsilonDelta(Fraction(2), Fraction(1, 10**4)), "less delta")
    with pytest.raises(Mistakes, match="give the amounts"):
        ledger.raise_budget("both", PureEpsilon(Fraction(2)), "no delta")
    ledger.raise_budget("both", more, "the same delta")
    assert ledger.remaining("both") == more
