"""The ledger of privacy budgets: each charge is stored before its answer is sent, or the answer is not sent.

The charges of an account form a hash chain, and so does every raise of its budget; what a release costs is computed in
``maths``. Nothing confidential is stored: a question is represented by the caller's key and description.

A raise is an entry too: its charge is ``raise`` with the new budget, and from then on every total carries the budget
in force (``epsilon=2/1 of epsilon=5/1``), so that the last link of the chain proves both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    UniqueConstraint,
    select,
)

from discreet.errors import BudgetExceeded, Mistakes, Problem, mistake
from discreet.io.store import Book, Database, append_only, lay_out, one_at_a_time, open_book
from discreet.maths.privacy.accounting import Neighbours, PrivacyLoss, read_loss
from discreet.maths.privacy.allowance import Allowance, Spent, read_allowance
from discreet.maths.privacy.amounts import readable, without_rounding
from discreet.maths.privacy.composition import Composition

Clock = Callable[[], datetime]

_KEY = "ledger"
_LONGEST = 10**1000  # denominators beyond this would no longer be written as text
_tables = MetaData()
_accounts = Table(
    "ledger_accounts",
    _tables,
    Column("name", String, primary_key=True),
    Column("budget", String, nullable=False),
    Column("neighbours", String, nullable=False),
    Column("unit", String, nullable=False),
    Column("opened", String, nullable=False),
    Column("hash", String, nullable=False),
    Column("entries", Integer, nullable=False),
    Column("head", String, nullable=False),
)
_entries = Table(
    "ledger_entries",
    _tables,
    Column("account", String, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("key", String, nullable=False),
    Column("charge", String, nullable=False),
    Column("total", String, nullable=False),
    Column("described", String, nullable=False),
    Column("at", String, nullable=False),
    Column("hash", String, nullable=False),
    UniqueConstraint("account", "key"),
)
append_only(_accounts, ("name", "budget", "neighbours", "unit", "opened", "hash"))
append_only(_entries, tuple(column.name for column in _entries.columns))
_BOOK = Book(_KEY, _tables)


@dataclass(frozen=True)
class Account:
    """A budget and its terms."""

    name: str
    budget: PrivacyLoss
    neighbours: Neighbours
    unit: str  # the unit of privacy: person, household
    opened: str
    composition: Composition = Composition.BASIC

    @property
    def allowance(self) -> Allowance:
        """Its budget, with how charges are composed."""
        return Allowance(self.budget, self.composition)


@dataclass(frozen=True)
class Entry:
    """One charge or one raise, as written: its place in the account, what it cost and what all cost up to it."""

    number: int
    key: str
    charge: PrivacyLoss | None  # None where the budget was raised
    total: Spent
    described: str
    at: str
    hash: str
    budget: Allowance | None = None  # in force after it, once it has been raised

    @property
    def charged(self) -> str:
        """The charge as it is written."""
        return f"{_RAISE}{self.budget}" if self.charge is None else str(self.charge)

    @property
    def totalled(self) -> str:
        """The total as it is written, with the budget once it has been raised."""
        return str(self.total) if self.budget is None else f"{self.total}{_OF}{self.budget}"


@dataclass(frozen=True)
class _State:
    """What an account has spent, and of what."""

    spent: Spent
    allowance: Allowance
    is_raised: bool = False

    @property
    def left(self) -> PrivacyLoss:
        return self.allowance.left(self.spent)

    def charged(self, charge: PrivacyLoss) -> _State:
        """After one more charge."""
        return replace(self, spent=self.allowance.plus(self.spent, charge))


@dataclass(frozen=True)
class Head:
    """The last entry of an account; stored elsewhere, it proves that no later state removed entries."""

    entries: int
    hash: str


def question_key(key: bytes, question: str) -> str:
    """A key for a question that reveals nothing about it without the secret it was derived from."""
    return hashlib.blake2b(question.encode(), digest_size=32, key=key, person=b"ledger-question").hexdigest()


class Ledger:
    """An append-only ledger of charges, safe for many processes at once and for processes that are killed.

    >>> import discreet as ds
    >>> ledger = ds.open_ledger(getfixture("tmp_path") / "budget.sqlite", ds.Secret.new())
    >>> account = ledger.create_account("census", ds.Rho(2), ds.Neighbours.ADD_REMOVE, "person")
    >>> account.name, str(ledger.remaining("census"))
    ('census', 'rho=2/1')
    """

    def __init__(self, database: Database, clock: Clock, seal: bytes = b"") -> None:
        self.database, self._clock, self._seal = database, clock, seal

    @classmethod
    def create(cls, where: str | Path, clock: Clock, seal: bytes = b"") -> Ledger:
        """Create a ledger, or open an existing one; a seal (a derived key) makes forged chains detectable."""
        database = Database(where, _KEY)
        lay_out(database, _BOOK)
        return cls(database, clock, seal)

    @classmethod
    def open(cls, where: str | Path, clock: Clock, seal: bytes = b"") -> Ledger:
        """Open a ledger by path or by URL; a missing one is refused, because a new one has all its budget."""
        database = Database(where, _KEY)
        open_book(database, _BOOK)
        return cls(database, clock, seal)

    def create_account(
        self,
        name: str,
        budget: PrivacyLoss,
        neighbours: Neighbours,
        unit: str,
        composition: Composition = Composition.BASIC,
    ) -> Account:
        """Open an account; opening it again with the same terms changes nothing, with other terms is refused."""
        with self.database.writing() as connection:
            one_at_a_time(connection, f"{_accounts.name}/{name}")
            row = self._row(connection, name)
            opened = row.opened if row else self._now()
            account = Account(name, budget, neighbours, unit, opened, composition)
            if row is None:
                start = self._link("", _terms(account))
                values = dict(
                    zip(("name", "budget", "neighbours", "unit", "opened"), _terms(account), strict=True)
                )
                connection.execute(_accounts.insert().values(**values, hash=start, entries=0, head=start))
            elif _account(row) != account:
                remedy = "open one with another name, or decide on a larger budget: discreet ledger raise"
                raise mistake(self.database.name, f"account {name}", "it exists with other terms", remedy)
        return account

    def charge(self, account: str, charge: PrivacyLoss, key: str, described: str = "") -> Entry:
        """Store a charge, on disk when this returns, or raise BudgetExceeded and write nothing.

        The same key costs nothing again. So the same key must mean the same answer: noise that is drawn from the
        key, or an answer that was stored. A question whose noise is drawn again needs a new key each time.
        """
        with self.charging(account) as connection:
            return self.charge_within(connection, account, charge, key, described)

    @contextmanager
    def charging(self, *accounts: str) -> Iterator[Connection]:
        """A transaction in which no one else charges the accounts: all charges and what belongs to them, or none.

        They are locked in the given order: callers that lock several use one order, a common account last.
        """
        with self.database.writing() as connection:
            for account in accounts:
                self._known(connection, account, lock=True)
            yield connection

    def charge_within(
        self, connection: Connection, account: str, charge: PrivacyLoss, key: str, described: str = ""
    ) -> Entry:
        """Charge as one step of a transaction of ``charging``."""
        row = self._known(connection, account)
        earlier = connection.execute(
            select(_entries).where(_entries.c.account == account, _entries.c.key == key)
        ).first()
        if earlier is not None:
            return self._repeated(_entry(earlier, _account(row).allowance), charge, account)
        state = self._state(connection, row)
        if not any(amount > 0 for amount in astuple(charge)):
            raise self._mistake(account, "a charge of 0", "charge what the release costs")
        after = self._paid(state, charge, account)
        if any(amount.denominator > _LONGEST for amount in astuple(after.spent)):
            raise self._mistake(
                account, "denominators grow beyond bounds", "round charges up to a common denominator"
            )
        return self._append(connection, row, after, charge, key, described)

    def raise_budget(self, account: str, budget: PrivacyLoss, reason: str) -> Entry:
        """Give an account a larger budget, as an entry of its chain with the reason."""
        if not reason.strip():
            raise self._mistake(account, "no reason for a larger budget", "state who decided it and why")
        with self.charging(account) as connection:
            row = self._known(connection, account)
            state = self._state(connection, row)
            after = replace(state, allowance=state.allowance.raised(budget), is_raised=True)
            return self._append(connection, row, after, None, f"raise/{row.entries + 1}", reason.strip())

    def require_affordable(self, account: str, charge: PrivacyLoss, key: str) -> None:
        """Raise BudgetExceeded if a charge would be refused now; one that was made before costs nothing."""
        with self.database.reading() as connection:
            row = self._known(connection, account)
            made = select(_entries.c.number).where(_entries.c.account == account, _entries.c.key == key)
            if connection.execute(made).first() is None:
                self._paid(self._state(connection, row), charge, account)

    def account(self, name: str) -> Account:
        """The terms of an account, with the budget that is in force."""
        with self.database.reading() as connection:
            row = self._known(connection, name)
            return replace(_account(row), budget=self._state(connection, row).allowance.budget)

    def has_account(self, name: str) -> bool:
        """Whether there is an account of this name."""
        with self.database.reading() as connection:
            return self._row(connection, name) is not None

    def accounts(self) -> tuple[str, ...]:
        """The names of all accounts."""
        with self.database.reading() as connection:
            return tuple(connection.execute(select(_accounts.c.name).order_by(_accounts.c.name)).scalars())

    def entries(self, account: str) -> tuple[Entry, ...]:
        """All charges of an account, in their order."""
        with self.database.reading() as connection:
            allowance = _account(self._known(connection, account)).allowance
            return tuple(_entry(row, allowance) for row in connection.execute(_in_order(account)))

    def is_new(self, account: str, key: str) -> bool:
        """Whether nothing was charged under a key."""
        with self.database.reading() as connection:
            made = select(_entries.c.number).where(_entries.c.account == account, _entries.c.key == key)
            return connection.execute(made).first() is None

    def head(self, account: str) -> Head:
        """The last entry of the account, to be stored elsewhere, for instance in a release's manifest."""
        with self.database.reading() as connection:
            row = self._known(connection, account)
            return Head(row.entries, row.head)

    def spent(self, account: str) -> PrivacyLoss:
        """What all charges of an account cost together."""
        with self.database.reading() as connection:
            state = self._state(connection, self._known(connection, account))
            return state.allowance.stated(state.spent)

    def remaining(self, account: str) -> PrivacyLoss:
        """What is left of the budget: the largest charge that it still allows."""
        with self.database.reading() as connection:
            return self._state(connection, self._known(connection, account)).left

    def verify(self, stored: Mapping[str, Head] | None = None) -> tuple[Problem, ...]:
        """Recompute every account's chain and sums; with heads stored elsewhere, also that no entry was removed."""
        with self.database.reading() as connection:
            rows = {row.name: row for row in connection.execute(select(_accounts).order_by(_accounts.c.name))}
            owners = set(connection.execute(select(_entries.c.account).distinct()).scalars())
            found = [Problem(self.database.name, f"account {name}", "its terms were deleted", _RESTORE)
                     for name in sorted((owners | set(stored or {})) - set(rows), key=str)]  # fmt: skip
            for name, row in rows.items():
                if not _is_written(row, _accounts):
                    unread = "its terms cannot be read"
                    found.append(Problem(self.database.name, f"account {name}", unread, _RESTORE))
                    continue
                found += self._broken(connection, row, (stored or {}).get(name))
        return tuple(found)

    def _broken(self, connection: Connection, row: Row[Any], stored: Head | None) -> Iterator[Problem]:
        """Walk one chain; the first broken link is reported, since it breaks all later ones."""

        def problem(key: str, value: str) -> Problem:
            return Problem(self.database.name, f"account {row.name}{key}", value, _RESTORE)

        head, number = self._link("", [getattr(row, name) for name in _TERMS]), 0
        if head != row.hash:
            yield problem("", "its terms were changed, or the secret is not that of the ledger")
            return
        heads = {0: head}
        try:
            allowance = read_allowance(row.budget)
            state = _State(allowance.nothing(), allowance)
            with closing(connection.execute(_in_order(row.name))) as rows:
                for written in rows:
                    entry, number = _entry(written, allowance), number + 1
                    state = _after(state, entry)
                    head = self._link(head, _content(entry))
                    if (entry.number, entry.hash, _state_of(entry, allowance)) != (number, head, state):
                        yield problem(f", entry {number}", "it was changed, or one before it was deleted")
                        return
                    if stored is not None and number == stored.entries:
                        heads[number] = head
        except Mistakes:
            yield problem(f", entry {number + 1}", "it cannot be read")
            return
        if (number, head) != (row.entries, row.head):
            yield problem(f", entry {number + 1}", "entries at the end were deleted or added")
        elif stored is not None and heads.get(stored.entries) != stored.hash:
            yield problem("", f"it does not continue its state at entry {stored.entries}")
        elif not state.allowance.allows(state.spent):
            yield problem("", "its charges exceed its budget")

    def _paid(self, state: _State, charge: PrivacyLoss, account: str) -> _State:
        """The state after a charge, or BudgetExceeded."""
        after = state.charged(charge)
        if not state.allowance.allows(after.spent):
            asked, known = (without_rounding(one) for one in (charge, state.allowance.stated(state.spent)))
            raise BudgetExceeded(
                f"account {account}: {readable(asked)} would exceed the budget of {readable(state.allowance.budget)}, "
                f"of which {readable(known)} is spent and {readable(state.left, down=True)} is left; request less, "
                "charge another account, or decide on a larger budget: discreet ledger raise"
            )
        return after

    def _append(
        self,
        connection: Connection,
        row: Row[Any],
        after: _State,
        charge: PrivacyLoss | None,
        key: str,
        described: str,
    ) -> Entry:
        """Write one more entry, chained to the last."""
        budget = after.allowance if after.is_raised else None
        entry = Entry(row.entries + 1, key, charge, after.spent, described, self._now(), "", budget)
        entry = replace(entry, hash=self._link(row.head, _content(entry)))
        connection.execute(_entries.insert().values(account=row.name, **_columns(entry)))
        values = {"entries": entry.number, "head": entry.hash}
        connection.execute(_accounts.update().where(_accounts.c.name == row.name).values(values))
        return entry

    def _state(self, connection: Connection, row: Row[Any]) -> _State:
        """What the last entry states, once the terms and the last link of the chain are found intact."""
        terms = self._link("", [getattr(row, name) for name in _TERMS])
        allowance = read_allowance(row.budget)
        last = connection.execute(_in_order(row.name, backward=True).limit(2)).all()
        if not all(_is_written(one, _entries) for one in last):
            raise self._mistake(row.name, "its last entries cannot be read", _RESTORE)
        entry, number = (_entry(last[0], allowance), last[0].number) if last else (None, 0)
        head = self._link(last[1].hash if len(last) > 1 else terms, _content(entry)) if entry else terms
        if terms != row.hash or (number, head) != (row.entries, row.head):
            raise self._mistake(
                row.name, "its terms or its last entry are not as they were written", _RESTORE
            )
        return _state_of(entry, allowance) if entry else _State(allowance.nothing(), allowance)

    def _mistake(self, account: str, value: str, remedy: str) -> Mistakes:
        return mistake(self.database.name, f"account {account}", value, remedy)

    def _repeated(self, earlier: Entry, charge: PrivacyLoss, account: str) -> Entry:
        if earlier.charge != charge:
            value = f"entry {earlier.number} has this key and another cost"
            raise mistake(self.database.name, f"account {account}", value, "use a key for one question only")
        return earlier

    def _row(self, connection: Connection, name: str) -> Row[Any] | None:
        row = connection.execute(select(_accounts).where(_accounts.c.name == name)).first()
        if row is not None and not _is_written(row, _accounts):
            raise self._mistake(name, "its terms cannot be read", _RESTORE)
        return row

    def _known(self, connection: Connection, name: str, *, lock: bool = False) -> Row[Any]:
        """The account's row; where it is locked (PostgreSQL), until the transaction ends."""
        wanted = select(_accounts).where(_accounts.c.name == name)
        row = connection.execute(wanted.with_for_update() if lock else wanted).first()
        if row is not None and not _is_written(row, _accounts):
            raise self._mistake(name, "its terms cannot be read", _RESTORE)
        if row is None:
            names = connection.execute(
                select(_accounts.c.name).order_by(_accounts.c.name).limit(20)
            ).scalars()
            remedy = f"choose from {', '.join(map(str, names)) or 'none yet'}, or create it"
            raise mistake(self.database.name, f"account {name}", "no such account", remedy)
        return row

    def _link(self, previous: str, content: list[str]) -> str:
        text = json.dumps([previous, *content], ensure_ascii=True, separators=(",", ":"))
        return hashlib.blake2b(
            text.encode(), digest_size=32, key=self._seal, person=b"discreet-ledger"
        ).hexdigest()

    def _now(self) -> str:
        return self._clock().astimezone(UTC).isoformat()


_TERMS = ("name", "budget", "neighbours", "unit", "opened")
_RESTORE = "stop publishing, find out who wrote to it, and restore the last intact copy"
_RAISE, _OF = "raise ", " of "


def _terms(account: Account) -> list[str]:
    return [account.name, str(account.allowance), account.neighbours.value, account.unit, account.opened]


def _content(entry: Entry) -> list[str]:
    return [str(entry.number), entry.key, entry.charged, entry.totalled, entry.described, entry.at]


def _columns(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "key": entry.key,
        "charge": entry.charged,
        "total": entry.totalled,
        "described": entry.described,
        "at": entry.at,
        "hash": entry.hash,
    }


def _is_written(row: Row[Any], table: Table) -> bool:
    """Whether a row has the kinds of values that are written here; SQLite stores any kind in any column."""
    return all(
        isinstance(row._mapping[column.name], int if isinstance(column.type, Integer) else str)  # noqa: SLF001
        for column in table.columns
    )


def _account(row: Row[Any]) -> Account:
    kept = read_allowance(row.budget)
    if row.neighbours not in {one.value for one in Neighbours}:
        raise mistake("", f"account {row.name}", "its terms cannot be read", _RESTORE)
    neighbours = Neighbours(row.neighbours)
    return Account(row.name, kept.budget, neighbours, row.unit, row.opened, kept.composition)


def _entry(row: Row[Any], allowance: Allowance) -> Entry:
    if not _is_written(row, _entries):
        raise mistake("", f"account {row.account}", "an entry cannot be read", _RESTORE)
    charge = None if row.charge.startswith(_RAISE) else read_loss(row.charge)
    total, raised, budget = row.total.partition(_OF)
    if charge is None and row.charge != f"{_RAISE}{budget}":
        raise mistake("", "raise", "cannot be read", _RESTORE)
    return Entry(
        row.number,
        row.key,
        charge,
        allowance.read(total),
        row.described,
        row.at,
        row.hash,
        read_allowance(budget) if raised else None,
    )


def _after(state: _State, entry: Entry) -> _State:
    """What an entry makes of a state; a budget that is not raised by it cannot be read."""
    if entry.charge is not None:
        return state.charged(entry.charge)
    if entry.budget is None:
        raise mistake("", "raise", "cannot be read", _RESTORE)
    return replace(state, allowance=state.allowance.raised(entry.budget.budget), is_raised=True)


def _state_of(entry: Entry, allowance: Allowance) -> _State:
    """What an entry states, where the account was opened with an allowance."""
    return _State(entry.total, entry.budget or allowance, entry.budget is not None)


def _in_order(account: str, *, backward: bool = False) -> Any:
    number = _entries.c.number
    return (
        select(_entries).where(_entries.c.account == account).order_by(number.desc() if backward else number)
    )
