"""Privacy budgets of users: the noise and price of a cross-tabulation, charged before the answer leaves."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache

from sqlalchemy import Column, Connection, MetaData, String, Table, select

from discreet.errors import BudgetExceeded, mistake
from discreet.io.store import Book, add_new, lay_out
from discreet.maths.noise.additive import Law
from discreet.maths.noise.thresholds import ThresholdTable, zero_table
from discreet.maths.privacy.accounting import (
    ARITHMETIC,
    EpsilonDelta,
    PrivacyLoss,
    Rho,
    basic,
    exp_above,
    within,
)
from discreet.maths.privacy.composition import Composition
from discreet.maths.privacy.sensitivity import Reach
from discreet.perturb.budget import NoisePlan, law_of, shares
from discreet.perturb.cost import in_units
from discreet.perturb.ledger import Ledger, question_key
from discreet.perturb.noise import Guarantee
from discreet.perturb.private import PrivateMechanism, drawing_distances, noise_identity
from discreet.perturb.reach import fixed_variables, has_fixed_families, reach
from discreet.programme.cube import Cube, Signature, signatures
from discreet.programme.noise import Claim, PrivateNoise
from discreet.programme.programme import Programme
from discreet.serve.answer import Balance, Refusal, Rule
from discreet.serve.question import tree_of
from discreet.text.phrase import phrase


class PrivateTables:
    """The mechanism of any table: the same key as the release, the same parameter for the same cross-tabulation."""

    def __init__(self, programme: Programme, released: PrivateMechanism) -> None:
        account = programme.serve.account
        if account is None:
            remedy = "add what a cross-tabulation costs and what a user may spend: { each = 0.1, user = 5 }"
            raise mistake(programme.path, "serve.account", "is missing; noise with a law needs it", remedy)
        if released.rule.composition is not Composition.BASIC:
            value = f"{released.rule.composition.value} with a table builder"
            remedy = 'questions are chosen one after the other and charged by their sums: use composition = "basic"'
            raise mistake(programme.path, "noise.composition", value, remedy)
        if released.sums:
            value = "sums together with a table builder over records"
            remedy = "it would measure what the release publishes as a sum, a second value: serve the release instead"
            raise mistake(programme.path, "noise.split.sums", value, remedy)
        self._released, self.account = released, account
        self._shares = shares(released.rule.budget, programme.cubes)
        self._table = lru_cache(maxsize=256)(self._made_table)
        self._delta = lru_cache(maxsize=256)(self._certified)

    @property
    def rule(self) -> PrivateNoise:
        """The declared noise."""
        return self._released.rule

    @cached_property
    def budget(self) -> PrivacyLoss:
        """What one user may spend; its delta is the declared one, or what is rounding."""
        if self.rule.is_gaussian:
            return Rho(self.account.user)
        return EpsilonDelta(self.account.user, max(self.rule.delta, ARITHMETIC))

    @cached_property
    def common_budget(self) -> PrivacyLoss | None:
        """What all users together may learn; None where that is not limited."""
        if self.account.all is None:
            return None
        if self.rule.is_gaussian:
            return Rho(self.account.all)
        return EpsilonDelta(self.account.all, max(self.rule.delta, ARITHMETIC))

    def costly(self, cube: Cube) -> tuple[Signature, ...]:
        """The cross-tabulations of a table that are measured: all but a public total."""
        return tuple(one for one in signatures([cube]) if one not in self._released.totals)

    def mechanism(self, cube: Cube) -> PrivateMechanism:
        """The noise of every cross-tabulation of a cube."""
        parameters = {signature: self.parameter(signature) for signature in self.costly(cube)}
        tables = {parameter: self._table(parameter) for parameter in set(parameters.values())}
        trees = {axis.variable: tree_of(axis) for axis in cube.axes if axis.is_grouping}
        codelists = {**self._released.codelists, **trees}
        return replace(self._released, plan=NoisePlan(self.rule, parameters, tables), codelists=codelists)

    def parameter(self, signature: Signature) -> Fraction:
        """The noise parameter of a cross-tabulation: its share, divided by what one record reaches."""
        touched = reach(signature, self.rule)
        return self.share(signature) / (touched.l2_squared if self.rule.is_gaussian else touched.l1)

    def identity(self, cube: Cube, signature: Signature) -> str:
        """What the noise of a cross-tabulation belongs to: who has paid for it has it, whatever it is called."""
        return noise_identity(
            self.rule, self.parameter(signature), self._released.statistics.identity(cube, signature)
        )

    def share(self, signature: Signature) -> Fraction:
        """The epsilon or rho that a cross-tabulation costs."""
        return self._shares.get(signature, self.account.each)

    def law(self, signature: Signature) -> Law:
        """The law of the noise of a cross-tabulation, which is public."""
        return law_of(self.rule, self.parameter(signature))

    def loss(self, cube: Cube, wanted: tuple[Signature, ...]) -> PrivacyLoss:
        """What some cross-tabulations of a cube cost together: shares and certified deltas add up."""
        total = sum((self.share(signature) for signature in wanted), Fraction(0))
        if self.rule.is_gaussian:
            return Rho(total)
        chosen = self.mechanism(cube)
        distances = drawing_distances(chosen.plan, [cube], chosen.codelists)
        deltas = [self._delta(self.parameter(signature), reach(signature, self.rule)) for signature in wanted]
        deltas += [(1 + exp_above(self.share(one))) * distances[one] for one in wanted if one in distances]
        return EpsilonDelta(total, in_units(sum(deltas, Fraction(0))))

    def _certified(self, parameter: Fraction, touched: Reach) -> Fraction:
        """The delta of one cross-tabulation, as a release of only this one would state it."""
        return NoisePlan(self.rule, {}, {parameter: self._table(parameter)}).certified(parameter, touched)

    def _made_table(self, parameter: Fraction) -> ThresholdTable:
        return zero_table(law_of(self.rule, parameter))


def account_guarantee(prices: PrivateTables, every: Sequence[Signature]) -> Guarantee | None:
    """What a table builder guarantees for all answers to one user; None where nothing is claimed.

    ``every`` has each variable of each unit that can be asked for.
    """
    rule, account = prices.rule, prices.account
    if rule.claim is not Claim.DP:
        return None
    return Guarantee(
        neighbours=rule.neighbours,
        unit=rule.protects,
        largest_household=rule.largest_household,
        fixed=fixed_variables(every, rule),
        fixed_families=has_fixed_families(every, rule),
        epsilon=None if rule.is_gaussian else account.user,
        rho=account.user if rule.is_gaussian else None,
        delta=rule.delta,
        each=account.each,
        together=account.all,
    )


_tables = MetaData()
_charged = Table(
    "serve_charged",
    _tables,
    Column("owner", String, primary_key=True),
    Column("key", String, primary_key=True),
)
_BOOK = Book("charged", _tables)
EVERYONE = ""  # the owner of what any user has received
COMMON = "serve/all-users"  # the account of all users together


class Accounts:
    """The accounts of all users in one ledger."""

    def __init__(self, ledger: Ledger, prices: PrivateTables, key: bytes) -> None:
        """``key`` is derived from that of the noise: keys in the database do not reveal the questions."""
        self._ledger, self._prices, self._key = ledger, prices, key
        lay_out(ledger.database, _BOOK)
        self._open_common()

    def charge(self, user: str, cube: Cube) -> Refusal | None:
        """Charge what of a table the user has not paid for; on disk when this returns, or refused and not charged.

        What is paid for is written in the ledger's database and in the transaction of its charge: killed at any moment,
        or asked by several workers at once, nothing is charged twice and nothing is paid for without a charge.
        """
        if not self._new(user, cube) and not self._new_to_all(cube):
            return None
        rule, account = self._prices.rule, account_of(user)
        self._ledger.create_account(account, self._prices.budget, rule.neighbours, rule.protects.value)
        try:
            self._charge(user, cube)
        except BudgetExceeded:
            new = tuple(self._new(user, cube).values())
            if self._can_pay(account, cube, new):
                return self._refusal(COMMON, cube, tuple(self._new_to_all(cube).values()))
            return self._refusal(account, cube, new)
        return None

    def refusal(self, user: str, cube: Cube) -> Refusal | None:
        """What ``charge`` would refuse now; nothing is charged."""
        owed = {
            account_of(user): tuple(self._new(user, cube).values()),
            COMMON: tuple(self._new_to_all(cube).values()),
        }
        for account, wanted in owed.items():
            if wanted and not self._can_pay(account, cube, wanted):
                return self._refusal(account, cube, wanted)
        return None

    def _can_pay(self, account: str, cube: Cube, wanted: tuple[Signature, ...]) -> bool:
        price = self._prices.loss(cube, wanted)
        if not self._ledger.has_account(account):  # it is made with its first charge
            return within(price, self._prices.budget)
        together = basic([self._ledger.spent(account), price], self._kind)
        return within(together, self._ledger.account(account).budget)

    def _open_common(self) -> None:
        """Open the account of all users; it must be there before the first of them is answered."""
        budget, rule = self._prices.common_budget, self._prices.rule
        if budget is None:
            return
        with self._ledger.database.reading() as connection:
            answered = connection.execute(
                select(_charged.c.key).where(_charged.c.owner != EVERYONE).limit(1)
            ).first()
        if answered is not None and not self._ledger.has_account(COMMON):
            remedy = "what they have is not in it: start a new ledger, or leave it out"
            raise mistake(
                self._ledger.database.name,
                "serve.account.all",
                "users were answered before it was declared",
                remedy,
            )
        self._ledger.create_account(COMMON, budget, rule.neighbours, rule.protects.value)

    def _charge(self, user: str, cube: Cube) -> None:
        """Charge the user for what is new to them, and all users together for what is new to everyone, or neither.

        A cross-tabulation has the same values for everyone: users who share their answers know each once.
        """
        owners = {user: account_of(user)}
        if self._prices.common_budget is not None:
            owners[EVERYONE] = COMMON
        with self._ledger.charging(*owners.values()) as connection:
            for owner, account in owners.items():
                new = self._unpaid(
                    connection, owner, cube
                )  # looked up again: another worker may have charged it
                if new:
                    asked = question_key(self._key, "\n".join(sorted(new)))
                    price = self._prices.loss(cube, tuple(new.values()))
                    self._ledger.charge_within(connection, account, price, asked, _description(cube))
                    add_new(connection, _charged, [{"owner": owner, "key": key} for key in new])

    def _new_to_all(self, cube: Cube) -> dict[str, Signature]:
        """The cross-tabulations that no user has received, where all users together have an account."""
        return {} if self._prices.common_budget is None else self._new(EVERYONE, cube)

    @property
    def _kind(self) -> type[PrivacyLoss]:
        return type(self._prices.budget)

    def cost(self, user: str, cube: Cube) -> str:
        """What a table would cost the user, as text."""
        new = self._new(user, cube)
        if not new:
            return phrase("nothing: you have it already")
        price = self._amount(self._price(new))
        return phrase("{price} for {number} new cross-tabulations", price=price, number=len(new))

    def balance(self, user: str, cube: Cube) -> Balance:
        """What a table would cost the user, and what is left to pay it from."""
        account = account_of(user)
        has = self._ledger.has_account(account)  # it is made with its first charge
        budget = self._ledger.account(account).budget if has else self._prices.budget
        whole: Fraction = getattr(budget, self._measure)
        left: Fraction = getattr(self._ledger.remaining(account), self._measure) if has else whole
        return Balance(self._measure, self._price(self._new(user, cube)), left, whole)

    @property
    def _measure(self) -> str:
        return "rho" if self._prices.rule.is_gaussian else "epsilon"

    def _amount(self, amount: Fraction) -> str:
        return phrase("{measure} = {amount}", measure=self._measure, amount=_number(amount))

    def _price(self, new: dict[str, Signature]) -> Fraction:
        return sum((self._prices.share(signature) for signature in new.values()), Fraction(0))

    def _new(self, user: str, cube: Cube) -> dict[str, Signature]:
        """The cross-tabulations that the user has not paid for, by their keys in the database."""
        with self._ledger.database.reading() as connection:
            return self._unpaid(connection, user, cube)

    def _unpaid(self, connection: Connection, user: str, cube: Cube) -> dict[str, Signature]:
        wanted = {self._key_of(cube, signature): signature for signature in self._prices.costly(cube)}
        mine = select(_charged.c.key).where(_charged.c.owner == user, _charged.c.key.in_(wanted))
        for key in connection.execute(mine).scalars():
            del wanted[key]
        return wanted

    def _key_of(self, cube: Cube, signature: Signature) -> str:
        """Bound to what is counted and to the law: another is other noise, and is paid for again."""
        return question_key(self._key, self._prices.identity(cube, signature))

    def _refusal(self, account: str, cube: Cube, wanted: tuple[Signature, ...]) -> Refusal:
        price = self._prices.loss(cube, wanted)
        has = self._ledger.has_account(account)
        left = self._ledger.remaining(account) if has else self._prices.budget
        needed, available = getattr(price, self._measure), getattr(left, self._measure)
        # deltas are fractions of many digits, shown only where the delta is what is insufficient
        amounts = [_number(one) for one in (needed, available)] if needed > available else [price, left]
        if account == COMMON:
            message = phrase(
                "This table would cost {price}; {left} is left of the privacy budget of all users together. "
                "Tables that anyone has received stay available: choose fewer variables, or one of those.",
                price=amounts[0],
                left=amounts[1],
            )
            return Refusal(Rule.BUDGET, message)
        message = phrase(
            "This table would cost {price}; {left} is left of your privacy budget. "
            "Tables that you already have stay free: choose fewer variables, or one of those.",
            price=amounts[0],
            left=amounts[1],
        )
        return Refusal(Rule.BUDGET, message)


def _number(amount: Fraction) -> float:
    """An amount for people; the ledger has it exactly."""
    return float(f"{float(amount):.4g}")


def account_of(user: str) -> str:
    """The name of a user's account in the ledger."""
    return f"serve/{hashlib.blake2b(user.encode(), digest_size=16).hexdigest()}"


def is_charged(prices: PrivateTables) -> bool:
    """Whether answers cost: where the noise claims a guarantee."""
    return prices.rule.claim is Claim.DP


def _description(cube: Cube) -> str:
    axes = " x ".join(axis.full_name for axis in cube.axes) or "total"
    return f"table builder: {axes} of {cube.unit}"
