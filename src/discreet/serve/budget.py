"""Charging answers to users' accounts before they leave; a cross-tabulation is paid for once.

It owns who is charged for what; the book is ``perturb.ledger`` and the prices are ``private_noise``'s.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

from sqlalchemy import Column, Connection, MetaData, String, Table, select

from discreet.engine.books import Book, add_new, lay_out
from discreet.errors import BudgetExceeded
from discreet.perturb.ledger import Ledger, question_key
from discreet.schema.crosstab import Signature, signatures
from discreet.schema.cube import Cube
from discreet.schema.noise import Claim
from discreet.serve.answer import Balance, Refusal, Rule
from discreet.serve.private_noise import PrivateTables
from discreet.words.phrase import phrase

_tables = MetaData()
_charged = Table(
    "serve_charged",
    _tables,
    Column("owner", String, primary_key=True),
    Column("key", String, primary_key=True),
)
_BOOK = Book("charged", _tables)


class Accounts:
    """The accounts of all users in one ledger."""

    def __init__(self, ledger: Ledger, prices: PrivateTables, key: bytes) -> None:
        """``key`` is derived from the secret and the inputs: keys in the books tell nothing of what was asked."""
        self._ledger, self._prices, self._key = ledger, prices, key
        lay_out(ledger.database, _BOOK)

    def charge(self, user: str, cube: Cube) -> Refusal | None:
        """Charge what of a table the user has not paid for; on disk when this returns, or refused and not charged.

        What is paid for is written in the ledger's database and in the transaction of its charge: killed at any moment,
        or asked by several workers at once, nothing is charged twice and nothing is paid for without a charge.
        """
        if not self._new(user, cube):
            return None
        rule, account = self._prices.rule, account_of(user)
        self._ledger.create_account(account, self._prices.budget, rule.neighbours, rule.protects.value)
        try:
            self._charge(user, cube)
        except BudgetExceeded:
            return self._refusal(account, tuple(self._new(user, cube).values()))
        return None

    def _charge(self, user: str, cube: Cube) -> None:
        account = account_of(user)
        with self._ledger.charging(account) as connection:
            new = self._unpaid(connection, user, cube)  # looked up again: another worker may have charged it
            if new:
                asked = question_key(self._key, "\n".join(sorted(new)))
                price = self._prices.loss(tuple(new.values()))
                self._ledger.charge_within(connection, account, price, asked, _words(cube))
                add_new(connection, _charged, [{"owner": user, "key": key} for key in new])

    def cost(self, user: str, cube: Cube) -> str:
        """What a table would cost the user, in words."""
        new = self._new(user, cube)
        if not new:
            return phrase("nothing: you have it already")
        price = self._told(self._price(new))
        return phrase("{price} for {number} new cross-tabulations", price=price, number=len(new))

    def balance(self, user: str, cube: Cube) -> Balance:
        """What a table would cost the user, and what is left to pay it from."""
        whole: Fraction = getattr(self._prices.budget, self._measure)
        account = account_of(user)
        has = self._ledger.has_account(account)  # it is made with its first charge
        left: Fraction = getattr(self._ledger.remaining(account), self._measure) if has else whole
        return Balance(self._measure, self._price(self._new(user, cube)), left, whole)

    @property
    def _measure(self) -> str:
        return "rho" if self._prices.rule.is_gaussian else "epsilon"

    def _told(self, amount: Fraction) -> str:
        """An amount for people; the ledger has it exactly."""
        return phrase("{measure} = {amount}", measure=self._measure, amount=float(f"{float(amount):.4g}"))

    def _price(self, new: dict[str, Signature]) -> Fraction:
        return sum((self._prices.share(signature) for signature in new.values()), Fraction(0))

    def _new(self, user: str, cube: Cube) -> dict[str, Signature]:
        """The cross-tabulations that the user has not paid for, by their keys in the books."""
        with self._ledger.database.reading() as connection:
            return self._unpaid(connection, user, cube)

    def _unpaid(self, connection: Connection, user: str, cube: Cube) -> dict[str, Signature]:
        wanted = {self._key_of(signature): signature for signature in signatures([cube])}
        mine = select(_charged.c.key).where(_charged.c.owner == user, _charged.c.key.in_(wanted))
        for key in connection.execute(mine).scalars():
            del wanted[key]
        return wanted

    def _key_of(self, signature: Signature) -> str:
        """Bound to the price: another price is other noise, and is paid for again."""
        return question_key(self._key, f"{signature} {self._prices.parameter(signature)}")

    def _refusal(self, account: str, wanted: tuple[Signature, ...]) -> Refusal:
        price, left = self._prices.loss(wanted), self._ledger.remaining(account)
        needed, held = getattr(price, self._measure), getattr(left, self._measure)
        # deltas are fractions of many digits, told only where it is the delta that is short
        told = [self._told(one) for one in (needed, held)] if needed > held else [price, left]
        words = phrase(
            "This table would cost {price}; {left} is left of your privacy budget. "
            "Tables that you already have stay free: ask for fewer axes, or for one of those.",
            price=told[0],
            left=told[1],
        )
        return Refusal(Rule.BUDGET, words)


def account_of(user: str) -> str:
    """The name of a user's account in the ledger."""
    return f"serve/{hashlib.blake2b(user.encode(), digest_size=16).hexdigest()}"


def is_charged(prices: PrivateTables) -> bool:
    """Whether answers cost: where the noise claims a guarantee."""
    return prices.rule.claim is Claim.DP


def _words(cube: Cube) -> str:
    axes = " x ".join(axis.full_name for axis in cube.axes) or "total"
    return f"table builder: {axes} of {cube.unit}"
