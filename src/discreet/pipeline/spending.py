"""Charging a release to a ledger before it leaves; it owns what is charged and under which key, not the book."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from discreet.errors import mistake
from discreet.maths.accounting import EpsilonDelta, PrivacyLoss, Rho
from discreet.perturb.ledger import Entry, Ledger
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.private import PrivateMechanism
from discreet.schema.noise import Claim

DELTA_UNITS = 10**30  # deltas are charged in whole units of 1e-30, rounded up


@dataclass(frozen=True)
class Spending:
    """The account that a release is charged to."""

    ledger: Ledger
    account: str

    def charge(self, mechanism: Mechanism, release: str, key: str) -> Entry:
        """Write the charge down; the same key (the same noise on the same records) costs nothing again."""
        loss = self._loss(mechanism)
        return self.ledger.charge(self.account, loss, key, f"release {release}")

    def _loss(self, mechanism: Mechanism) -> PrivacyLoss:
        if not isinstance(mechanism, PrivateMechanism) or mechanism.rule.claim is Claim.NONE:
            value = "a ledger beside noise without a guarantee"
            raise mistake("", "ledger", value, "leave it out, or declare noise with a guarantee")
        rule = mechanism.rule
        account = self.ledger.account(self.account)
        if (account.neighbours, account.unit) != (rule.neighbours, rule.protects.value):
            value = f"account {self.account!r} is kept for {account.neighbours.value} of a {account.unit}"
            raise mistake("", "ledger", value, "charge an account that is kept for what the noise protects")
        if rule.is_gaussian:
            return Rho(rule.budget.total)
        delta = Fraction(ceil(mechanism.plan.delta() * DELTA_UNITS), DELTA_UNITS)
        return EpsilonDelta(rule.budget.total, delta)
